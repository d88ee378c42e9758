"""Programs written for several processes: what one process runs of them, and what still loads, is said and is drawn."""

import textwrap

import pytest

from migrate.report.model import Kind

PROGRAM = """\
import argparse
import logging
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--local_rank", type=int, default=-1)
parser.add_argument("--resume", default="")


def joined(x, count):
    total = x.clone()
    dist.all_reduce(total)
    total /= count
    return total


def joined_all(losses):
    if dist.get_world_size() < 2:
        return losses
    stacked = torch.stack([losses[key] for key in sorted(losses)])
    dist.reduce(stacked, dst=0)
    return dict(zip(sorted(losses), stacked / dist.get_world_size()))


def main():
    args = parser.parse_args()
    args.gpus = torch.cuda.device_count()
    {place}
    {start}


def worker(gpu, args):
    {join}
    {group}
    torch.cuda.set_device(gpu)
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    model = nn.Linear(4, 1).cuda(gpu)
    {wrap}
    {load}
    {sampler}
    {loader}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        {epoch}
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.cuda(gpu)), y.cuda(gpu))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {step}
        {after}


if __name__ == "__main__":
    main()
"""
SPAWNED = {
    "place": "args.rank = 0\nargs.world_size = args.gpus",
    "start": "mp.spawn(worker, (args,), args.gpus)",
    "join": "args.rank += gpu",
    "group": 'dist.init_process_group("nccl", world_size=args.world_size, rank=args.rank)',
    "wrap": "model = nn.parallel.DistributedDataParallel(model, device_ids=[gpu])",
    "load": "",
    "sampler": "sampler = DistributedSampler(data)",
    "loader": "loader = DataLoader(data, args.batch_size // args.world_size, sampler=sampler)",
    "epoch": "sampler.set_epoch(epoch)",
    "step": "",
    "after": 'if args.rank == 0:\n    torch.save({"model": model.state_dict()}, "last.pt")',
}
SPLIT = "split_batches=True"


def source(**holes):
    lines = []
    for line in PROGRAM.splitlines():
        hole, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        if hole.startswith("{") and hole.endswith("}"):
            lines += textwrap.indent((SPAWNED | holes)[hole[1:-1]], indent).splitlines()
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def result(convert_text, **holes):
    report, text = convert_text(source(**holes))
    assert any(f.kind is Kind.LOOP and f.converts for f in report.findings), [f.message for f in report.findings]
    return text


def test_a_rank_that_is_added_to(convert_text):
    text = result(convert_text)
    assert "args.rank" not in text
    assert SPLIT in text


SIZE = "args.batch_size // args.world_size"
LOADERS = {
    "options in a name": f"options = dict(batch_size={SIZE})\n",
    "a dictionary": f'options = {{"batch_size": {SIZE}}}\n',
}


@pytest.mark.parametrize("name", LOADERS)
def test_batches_that_options_divide(convert_text, name):
    text = result(convert_text, loader=f"{LOADERS[name]}loader = DataLoader(data, sampler=sampler, **options)")
    assert SPLIT in text
    assert "args.batch_size /" not in text


def test_a_size_beside_a_sum_is_not_summed_up(convert_text):
    summed = "if epoch:\n    dist.all_reduce(loss.div_(args.world_size))"
    text = result(convert_text, after=f"{summed}\nprint(args.batch_size // args.world_size)")
    assert "accelerator.print(args.batch_size // accelerator.num_processes)" in text


def test_old_checkpoints_load_behind_the_wrapper(convert_text):
    load = 'if args.resume:\n    state = torch.load(args.resume)\n    model.load_state_dict(state["model"])'
    text = result(convert_text, load=load)
    strip = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state['model'], 'module.')"
    assert strip in text.replace('"', "'")


IN_PLACE = {
    "a file": ("torch.load(args.resume)", "torch.load(args.resume, map_location='cpu')"),
    "a part of it": ("torch.load(args.resume)['model']", "torch.load(args.resume, map_location='cpu')['model']"),
    "with a device": ("torch.load(args.resume, 'cpu')", "torch.load(args.resume, 'cpu')"),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_so_do_those_without_a_name(convert_text, name):
    read, plain = IN_PLACE[name]
    text = result(convert_text, load=f"if args.resume:\n    model.load_state_dict({read})").replace('"', "'")
    assert f"model.load_state_dict({{key.removeprefix('module.'): value for key, value in {plain}.items()}})" in text


def test_and_those_that_are_passed_by_keyword(convert_text):
    load = "if args.resume:\n    state = torch.load(args.resume)\n    model.load_state_dict(state_dict=state)"
    assert 'consume_prefix_in_state_dict_if_present(state, "module.")' in result(convert_text, load=load)


def test_a_function_that_calls_itself_with_a_remainder_is_no_rank(convert_text):
    divisor = "def divisor(a, b):\n    return divisor(b, a % b) if b else a"
    text = result(convert_text, after=f"{divisor}\n\nprint(divisor(12, 8))")
    assert "return divisor(b, a % b) if b else a" in text


def test_weights_from_elsewhere_load_before_the_wrapper(convert_text):
    wrap = 'model.load_state_dict(torch.load("pretrained.pt"))\n' + SPAWNED["wrap"]
    assert "consume_prefix" not in result(convert_text, wrap=wrap)


#: What a program started by `torch.distributed.launch` has in the place of the above.
LAUNCHED = {
    "place": "",
    "start": "worker(args.local_rank, args)",
    "join": "args.distributed = args.local_rank != -1",
    "group": 'if args.distributed:\n    dist.init_process_group("nccl")',
    "sampler": "",
    "loader": "loader = DataLoader(data, args.batch_size, shuffle=True)",
    "epoch": "",
    "after": "",
}
ONLY = {
    "one way out": "    raise NotImplementedError",
    "several ways out": "    if args.resume:\n        raise ValueError\n    else:\n        raise NotImplementedError",
}


@pytest.mark.parametrize("name", ONLY)
def test_a_program_that_gives_up_on_one_process(convert_text, name):
    wrap = f"if args.distributed:\n    {SPAWNED['wrap']}\nelse:\n{ONLY[name]}"
    text = result(convert_text, **LAUNCHED | {"wrap": wrap})
    assert "raise" not in text
    assert "DistributedDataParallel(" not in text
    assert "for x, y in loader:" in text


def test_one_process_shuffles_by_the_sampler_that_it_chose(convert_text):
    text = result(
        convert_text,
        **LAUNCHED
        | {
            "sampler": "kind = RandomSampler if args.local_rank == -1 else DistributedSampler",
            "loader": "loader = DataLoader(data, args.batch_size, sampler=kind(data))",
            "wrap": f"if args.distributed:\n    {SPAWNED['wrap']}",
        },
    )
    assert "data_seed" not in text
    assert "kind = RandomSampler\n" in text


def test_people_are_told_of_several_processes(convert_text):
    told = 'logging.warning("distributed: %s", bool(args.local_rank != -1))'
    wrap = f"if args.local_rank != -1:\n    {SPAWNED['wrap']}\n{told}"
    assert "bool(accelerator.num_processes > 1)" in result(convert_text, **LAUNCHED | {"wrap": wrap})


def test_turns_that_the_program_takes_itself(convert_text):
    made = 'data = MNIST("data", download=True)'
    turns = f"if args.local_rank > 0:\n    dist.barrier()\n{made}\nif args.local_rank == 0:\n    dist.barrier()"
    wrap = f"from torchvision.datasets import MNIST\n{turns}\nif args.distributed:\n    {SPAWNED['wrap']}"
    text = result(convert_text, **LAUNCHED | {"wrap": wrap})
    assert text.count("wait_for_everyone") == 2
    assert "main_process_first" not in text


def test_what_the_main_process_reads_that_it_has_written_itself_is_not_waited_for(convert_text):
    shown = "def shown():\n    return torch.load('last.pt')\n\n\ndef worker"
    after = "if args.rank == 0:\n    torch.save(model.module.state_dict(), 'last.pt')\n    shown()"
    program = source(after=after).replace("def worker", shown)
    _, text = convert_text(program)
    assert "accelerator.unwrap_model(model).state_dict()" in text
    assert "wait_for_everyone" not in text


def test_a_branch_without_which_the_program_ends_is_no_branch_of_its_own(refused_text):
    """Where nothing else can be made of it, such a program is left: its other way only raises."""
    wrap = f"if args.distributed:\n    {SPAWNED['wrap']}\nelse:\n    raise NotImplementedError"
    lonely = LAUNCHED | {"wrap": wrap, "start": "worker(max(args.local_rank, 0), args)"}
    refused_text(source(**lonely), "MIG113", "def main()", ("asks which process it runs in",))


SUMMED = {
    "a sum for one": "dist.reduce(loss.div_(args.world_size), 0)\nprint(loss.item())",
    "a function": "print(joined(loss.detach(), args.world_size).item())",
    "some steps": "if loss.item() < 1:\n    shown = joined(loss.data, args.world_size)\n    print(shown)",
}
UNSAID = {
    "gradients": "for p in model.parameters():\n    dist.all_reduce(p.grad)\n    p.grad /= args.world_size",
    "a tensor of no batch": "print(joined(torch.ones(1), args.world_size))",
}


def lost(report):
    return [f for f in report.findings if f.code == "MIG114" and "goes away" in f.message]


@pytest.mark.parametrize("name", SUMMED)
def test_what_a_step_shows_of_all_processes_is_said_to_be_of_one(convert_text, name):
    before = source(step=SUMMED[name])
    report, result = convert_text(before)

    (finding,) = lost(report)
    assert finding.kind is Kind.NOTE
    assert any(word in before.splitlines()[finding.line - 1] for word in ("reduce(", "joined("))
    assert "reduce(loss" not in result
    assert ("dist.all_reduce" in result) is ("joined" not in SUMMED[name])  # a helper that nothing uses stays


def test_so_are_the_losses_of_a_dictionary(convert_text):
    step = 'losses = {"all": loss}\nshown = joined_all(losses)\nprint(shown["all"])'
    report, result = convert_text(source(step=step))

    (finding,) = lost(report)
    assert "`joined_all(losses)` goes away" in finding.message
    assert "shown = losses" in result


def test_what_each_step_sums_up_goes_on_being_a_sum(convert_text):
    report, result = convert_text(source(step="dist.all_reduce(loss)\nloss /= args.world_size\nprint(loss.item())"))

    assert not lost(report)
    assert (
        'loss.copy_(accelerator.reduce(loss, reduction="sum"))\n            loss /= accelerator.num_processes' in result
    )


@pytest.mark.parametrize("name", UNSAID)
def test_other_sums_go_without_a_word(convert_text, name):
    assert not lost(convert_text(source(step=UNSAID[name]))[0])


def test_what_is_summed_up_after_a_loop_is_joined_there(convert_text):
    after = "dist.all_reduce(total)\nprint(total / len(data))"
    holes = {"epoch": "sampler.set_epoch(epoch)\ntotal = torch.zeros(1)", "step": "total += loss.item() * len(x)"}
    report, result = convert_text(source(**holes, after=after))

    assert not lost(report)
    assert 'total = accelerator.reduce(total, reduction="sum")' in result


MEAN = "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes\n"
SUM = "total = sum(accelerator.gather_for_metrics([total]))\n"
SHARES = {
    "means by the data": ("loss.item()", "total / (len(data) // args.batch_size)", MEAN),
    "means": ("loss.item() / 3", "total", MEAN),
    "means by the batches": ("loss.item()", "total / len(loader)", MEAN),
    "samples": ("x.size(0)", "total", SUM),
    "samples by the batches": ("loss.item() * len(x)", "total / len(loader)", SUM),
    "hits by the batches": ("(model(x) > y).sum().item()", "total / (len(loader) * args.batch_size)", SUM),
}


@pytest.mark.parametrize("name", SHARES)
def test_of_divided_batches_means_are_averaged_and_sums_are_added_up(convert_text, name):
    step, shown, joined = SHARES[name]
    start = "sampler.set_epoch(epoch)\ntotal = 0"
    _, result = convert_text(source(epoch=start, step=f"total += {step}", after=f"print({shown})"))

    assert SPLIT in result
    assert joined in result


def test_of_whole_batches_the_divisor_says_how(convert_text):
    start = "sampler.set_epoch(epoch)\ntotal = 0"
    loader = "loader = DataLoader(data, args.batch_size, sampler=sampler)"
    after = "print(total / (len(data) // args.batch_size))"
    _, result = convert_text(source(epoch=start, loader=loader, step="total += loss.item()", after=after))

    assert SPLIT not in result
    assert SUM in result


def test_a_move_that_casts_goes_on_casting(convert_text):
    step = "x = x.to(gpu, dtype=torch.half)\nz = y.to(device=gpu, dtype=torch.long, non_blocking=True)\nprint(x, z)"
    text = result(convert_text, step=step)
    assert "x = x.to(dtype=torch.half)" in text
    assert "dtype=torch.long" in text
    assert ".cuda(dtype" not in text


@pytest.mark.parametrize("size", ["4, False", "4, None"])
def test_a_loader_that_says_by_position_that_it_does_not_shuffle(convert_text, size):
    text = result(convert_text, loader=f"loader = DataLoader(data, {size}, sampler=sampler)")
    assert "loader = DataLoader(data, 4, True)" in text


def test_a_loader_that_does_not_say_what_it_is_given(refused_text):
    text = source(loader="given = [data, 4, False]\nloader = DataLoader(*given, sampler=sampler)")
    refused_text(text, "MIG113", "sampler = DistributedSampler", ["what becomes of this sampler is not known"])


CENTER = """\
class Center:
    def __init__(self):
        self.value = torch.zeros(1)

    def update(self, output):
        self.value = output.mean(0)
        dist.all_reduce(self.value)
        self.value /= dist.get_world_size()


def main():"""


def centred(used, **holes):
    loss = "loss = nn.functional.mse_loss(model(x.cuda(gpu)), y.cuda(gpu))"
    text = source(load="center = Center()", step="center.update(loss.detach())", **holes)
    return text.replace(loss, loss + used).replace("def main():", CENTER, 1)


def test_a_sum_in_an_attribute_that_losses_are_made_of_stays(convert_text):
    report, text = convert_text(centred(" + center.value"))
    assert any(f.kind is Kind.LOOP and f.converts for f in report.findings)
    assert 'self.value.copy_(accelerator.reduce(self.value, reduction="sum"))' in text
    assert "self.value /= accelerator.num_processes" in text


def test_a_sum_in_an_attribute_that_is_only_shown_goes(convert_text):
    report, text = convert_text(centred("", after="print(center.value)"))
    assert any(f.kind is Kind.LOOP and f.converts for f in report.findings)
    assert "reduce(self.value" not in text


def test_a_sum_in_a_function_that_calls_itself(convert_text):
    function = """\
def again(x, times):
    dist.all_reduce(x)
    if times:
        return again(x, times - 1)
    return x


def main():"""
    text = source(step="print(again(loss.detach(), 2))").replace("def main():", function, 1)
    report, _ = convert_text(text)
    assert not any(finding.code == "MIG999" for finding in report.findings)


GROUP = """\
def join(gpu):
    {sets}
    dist.init_process_group("nccl")


def main():"""
VARIABLES = {
    'os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"': True,
    'os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")': True,
    'os.environ.update({"MASTER_PORT": "29500", "OMP_NUM_THREADS": "1"})': True,
    'os.environ["NCCL_DEBUG"] = "INFO"': False,
    'os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500")': False,
    'os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)': False,
}


@pytest.mark.parametrize("sets", VARIABLES)
def test_of_what_joins_a_group_the_variables_stay_that_are_for_something_else(convert_text, sets):
    text = source(group="join(gpu)").replace("def main():", GROUP.format(sets=sets), 1)
    report, text = convert_text(text)
    assert any(f.kind is Kind.LOOP and f.converts for f in report.findings)
    assert (sets in text) is VARIABLES[sets]
    assert "init_process_group" not in text


NAMESAKE = """\
def save(state, rank=int(os.environ.get("RANK", 0))):
    if rank == 0:
        torch.save(state, "last.pt")


class Log:
    def update(self, value, rank):
        if rank == 0:
            print(value)


def main():"""


def test_a_call_of_a_library_is_none_of_the_function_of_that_name(convert_text):
    step = 'seen = {}\nseen.update({"loss": loss.item()}, last=1)\nlog = Log()\nlog.update(seen, dist.get_rank())'
    text = source(step=step, after="save(model.state_dict())").replace("def main():", NAMESAKE, 1)
    report, text = convert_text(text)
    assert any(f.kind is Kind.LOOP and f.converts for f in report.findings)
    assert 'torch.save(state, "last.pt")' in text
    assert 'seen.update({"loss": loss.item()}, last=1)' in text


DIVISORS = {"dist.get_world_size()": True, "2": False}


@pytest.mark.parametrize("divisor", DIVISORS)
def test_gradients_that_are_summed_up_are_divided_by_the_number_of_processes(convert_text, divisor):
    step = f"for p in model.parameters():\n    dist.all_reduce(p.grad)\n    p.grad.div_({divisor})"
    step = f"{step}\noptimizer.step()"
    report, _ = convert_text(source(wrap="", step=step).replace("            optimizer.step()\n", "", 1))
    assert any(f.kind is Kind.LOOP and f.converts for f in report.findings) is DIVISORS[divisor]


OF_SEVERAL = {
    "sampler": "sampler = DistributedSampler(data) if args.world_size > 1 else None",
    "loader": "loader = DataLoader(data, args.batch_size, shuffle=args.world_size == 1, sampler=sampler)",
    "epoch": "if args.world_size > 1:\n    sampler.set_epoch(seen)",
}


@pytest.mark.parametrize("after", ["seen += 1", "seen += len(data)", "seen += 1\nprint(seen)"])
def test_a_count_that_only_a_sampler_was_told_goes_with_what_it_goes_on_with(convert_text, after):
    text = source(**OF_SEVERAL, after=after).replace("    for epoch", "    seen = 0\n    for epoch", 1)
    _, text = convert_text(text)
    assert "set_epoch" not in text
    assert ("seen = 0" in text) is ("seen +=" in text)
    assert ("seen = 0" in text) is ("print" in after)


TRAINER = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.{layer} = nn.Linear(4, 1)

    def forward(self, x):
        return self.{layer}(x)


class Trainer:
    def __init__(self):
        {made}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        data = TensorDataset(torch.zeros(16, 4), torch.zeros(16, 1))
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, batch_size=4, sampler=self.sampler)

    def build(self):
        model = Net()
        self.model = {wrapped}

    def load(self):
        if os.path.exists("model.pt"):
            state = torch.load("model.pt")
            {load}

    def train(self):
        self.load()
        for epoch in range(2):
            self.sampler.set_epoch(epoch)
            for x, y in self.loader:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


dist.init_process_group("gloo")
Trainer().train()
"""
BUILT = {"layer": "fc", "made": "self.build()", "wrapped": "DDP(model)", "load": "self.model.load_state_dict(state)"}
BEHIND = {
    "in another method": {},
    "beside the loader": {"made": "self.build()\n        self.model = DDP(self.model)", "wrapped": "model"},
}
AMONG = {
    "that of a plain model": {"load": "self.model.module.load_state_dict(state)"},
    "that of a model with such a layer": {"layer": "module"},
}


@pytest.mark.parametrize("name", BEHIND)
def test_what_a_method_loads_into_what_another_wraps_loads_on(convert_text, name):
    _, text = convert_text(TRAINER.format(**BUILT | BEHIND[name]))

    assert "            torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, " in text
    assert "unwrap_model(self.model).load_state_dict(state)" in text


@pytest.mark.parametrize("name", AMONG)
def test_no_prefix_is_taken_off_where_it_is_not_the_wrappers(convert_text, name):
    report, text = convert_text(TRAINER.format(**BUILT | AMONG[name]))

    assert report.changes
    assert "consume_prefix" not in text
