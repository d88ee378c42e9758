"""Programs that distribute themselves: what goes, what asks the accelerator, and what is refused."""

from textwrap import indent

import pytest

from migrate.report.model import Kind

JOIN = 'torch.distributed.init_process_group("gloo")'
RANK = f"{JOIN}\nrank = torch.distributed.get_rank()"
WRAP = "model = nn.parallel.DistributedDataParallel(model)"
SAY = "    total = 1"
MAIN = f"if accelerator.is_main_process:\n{SAY}"

CHANGED = {
    "a group": {"setup": (JOIN, "")},
    "a group under the main guard": {"end": (f'if __name__ == "__main__":\n    {JOIN}', "")},
    "a group under a flag": {"imports": ("import sys", ""), "setup": (f"if len(sys.argv) > 1:\n    {JOIN}", "")},
    "a wrapper": {"made": ("model = nn.parallel.DistributedDataParallel(model)", "")},
    "a wrapper where there are several processes": {
        "made": (
            "if torch.distributed.get_world_size() > 1:\n    model = nn.parallel.DistributedDataParallel(model)",
            "",
        )
    },
    "a wrapper where the launcher says so": {
        "imports": ("import os", ""),
        "setup": ('is_distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1', ""),
        "made": ("if is_distributed:\n    model = nn.parallel.DistributedDataParallel(model)", ""),
    },
    "the model inside the wrapper": {
        "made": ("model = nn.parallel.DistributedDataParallel(model)", ""),
        "end": ("state = model.module.state_dict()", "state = accelerator.unwrap_model(model).state_dict()"),
    },
    "either with or without the wrapper": {
        "setup": (JOIN, ""),
        "made": ("model = nn.parallel.DistributedDataParallel(model)", ""),
        "end": (
            'state = (model.module if hasattr(model, "module") else model).state_dict()',
            "state = accelerator.unwrap_model(model).state_dict()",
        ),
    },
    "rank == 0": {"setup": (RANK, ""), "end": (f"if rank == 0:\n{SAY}", MAIN)},
    "a bar of the main process": {
        "imports": "from tqdm import tqdm",
        "setup": (RANK, ""),
        "start": (
            "rows = loader\nif rank == 0:\n    rows = tqdm(loader)",
            "rows = loader\nif accelerator.is_main_process:\n    rows = tqdm(loader)",
        ),
        "over": "rows",
    },
    "rank in (-1, 0)": {"setup": (RANK, ""), "end": (f"if rank in (-1, 0):\n{SAY}", MAIN)},
    "not rank": {"setup": (RANK, ""), "end": (f"if not rank:\n{SAY}", MAIN)},
    "rank != 0": {
        "setup": (RANK, ""),
        "end": (f"if rank != 0:\n{SAY}", f"if not accelerator.is_main_process:\n{SAY}"),
    },
    "a local rank": {
        "imports": ("import os", ""),
        "setup": (f'{JOIN}\nlocal_rank = int(os.environ["LOCAL_RANK"])', ""),
        "end": (f"if local_rank == 0:\n{SAY}", f"if accelerator.is_local_main_process:\n{SAY}"),
    },
    "among other things": {
        "setup": (RANK, ""),
        "epoch": (
            f"if epoch % 2 == 0 and rank == 0:\n{SAY}",
            f"if epoch % 2 == 0 and accelerator.is_main_process:\n{SAY}",
        ),
    },
    "not distributed, or the main process": {
        "setup": (RANK, ""),
        "end": (f"if not torch.distributed.is_initialized() or rank == 0:\n{SAY}", f"{SAY.strip()}"),
    },
    "a function that says so": {
        "setup": (
            f"{JOIN}\ndef is_main_process():\n    return torch.distributed.get_rank() == 0",
            "",
        ),
        "end": (f"if is_main_process():\n{SAY}", MAIN),
    },
    "a function that knows whether there is a group": {
        "setup": (
            f"""{JOIN}
def is_initialized():
    if not torch.distributed.is_available():
        return False
    if not torch.distributed.is_initialized():
        return False
    return True
def get_rank():
    if not is_initialized():
        return 0
    return torch.distributed.get_rank()""",
            "",
        ),
        "end": (f"if get_rank() == 0:\n{SAY}", MAIN),
    },
    "a sum of all": {
        "setup": (JOIN, ""),
        "end": ("torch.distributed.all_reduce(x)\nx /= torch.distributed.get_world_size()", ""),
    },
    "a mean of all, in a function": {
        "setup": (
            f"""{JOIN}
def reduced(tensor, size):
    result = tensor.clone()
    torch.distributed.all_reduce(result)
    result /= size
    return result""",
            "",
        ),
        "step": (
            "if loss > 1:\n    mean = reduced(loss.detach(), torch.distributed.get_world_size())",
            "if loss > 1:\n    mean = loss.detach()",
        ),
    },
    "gradients that are averaged by hand": {
        "setup": (
            f"""{JOIN}
def average(model):
    for p in model.parameters():
        torch.distributed.all_reduce(p.grad)
        p.grad /= torch.distributed.get_world_size()""",
            "",
        ),
        "backward": ("loss.backward()\naverage(model)", "accelerator.backward(loss)"),
    },
    "a device by rank": {"setup": (f"{RANK}\ntorch.cuda.set_device(rank)", ""), "made": ("model.to(rank)", "")},
    "SyncBatchNorm": {
        "setup": (JOIN, ""),
        "made": "model = nn.SyncBatchNorm.convert_sync_batchnorm(model)",
    },
    "set up in a function": {
        "imports": ("import os", ""),
        "setup": (
            f"""def setup():
    os.environ["MASTER_ADDR"] = "localhost"
    {JOIN}
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
def cleanup():
    torch.distributed.destroy_process_group()
setup()""",
            "",
        ),
        "end": ("cleanup()", ""),
    },
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(**CHANGED[name])


UNCHANGED = {
    "a number called rank": {"setup": "rank = 3", "end": f"if rank == 0:\n{SAY}"},
    "one that only imports": {"imports": "import torch.distributed as dist", "end": "size = dist.ReduceOp.SUM"},
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


REFUSED = {
    "a group of its own": ("MIG113", "group = torch.distributed.new_group([0])", "new_group"),
    "sending": ("MIG113", "torch.distributed.send(x, 1)", "send"),
    "what another than the main one computes": ("MIG113", "torch.distributed.broadcast(x, 1)", "broadcast"),
    "data by rank": ("MIG113", "mine = x[torch.distributed.get_rank() :: 2]", "by hand"),
    "gathered": ("MIG113", "torch.distributed.all_gather([x], x)", "all_gather"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused, name):
    code, step, mention = REFUSED[name]
    refused(code, step, [mention], setup=JOIN, step=step)


EVALUATED = """
import time
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
if rank == 0:
    test = DataLoader(data, batch_size=4)
for epoch in range(2):
    if rank == 0:
        start = time.time()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    {leave}
    if rank == 0:
        total = 0
        model.eval()
        with torch.no_grad():
            for x, y in test:
                total += nn.functional.mse_loss(model(x), y).item()
        model.train()
        print(epoch, total, time.time() - start)
"""


def test_what_all_must_enter_is_not_left_to_one_process(convert_text):
    """Nor is what it needs: the loader and the time that only the main process had."""
    _, result = convert_text(EVALUATED.format(leave="pass"))

    assert "is_main_process" not in result
    assert "\ntest = DataLoader(data, batch_size=4)\n" in result
    assert "\n    start = time.time()\n" in result
    assert "accelerator.print(epoch, total, time.time() - start)" in result


def test_leaving_what_all_must_enter_is_refused(refused_text):
    leave = "if rank != 0:\n        continue"
    source = EVALUATED.format(leave=leave).replace("{leave}", leave)
    refused_text(source, "MIG113", "rank != 0", ["leave"])


LEFT_TO_ONE = """
import glob
import os
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

def keep_the_last(files):
    files.sort()
    for path in files[:-3]:
        os.remove(path)

def keep_the_last_in(folder):
    files = glob.glob(os.path.join(folder, "*.pt"))
    files.sort(key=len)
    for path in files[:-3]:
        os.remove(path)

def validate(rank, model, loader):
    assert rank == 0, "only on one process"
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            print(nn.functional.mse_loss(model(x), y).item())
    model.train()

dist.init_process_group("gloo")
rank = dist.get_rank()
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
test = DataLoader(data, batch_size=4)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
files = []
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    if rank == 0:
        validate(rank, model, test)
        {keep}
"""


def test_an_assertion_that_this_is_the_main_process_goes(convert_text):
    """All come to it, where the evaluation that it stands in is shared out."""
    _, result = convert_text(LEFT_TO_ONE.format(keep="pass"))

    assert "\n    validate(model, test)\n" in result
    assert "assert" not in result


def test_what_only_removes_files_that_it_has_listed_is_left_to_one_process(convert_text):
    """A list that is made for it may be sorted; one that it is handed is somebody's."""
    _, result = convert_text(LEFT_TO_ONE.format(keep="keep_the_last_in('out')"))
    assert "if accelerator.is_main_process:\n        keep_the_last_in('out')\n" in result

    _, result = convert_text(LEFT_TO_ONE.format(keep="keep_the_last(files)"))
    assert "\n    keep_the_last(files" in result


SAMPLER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
sampler = DistributedSampler(data, num_replicas=1, rank=0, seed=3)
loader = DataLoader(data, batch_size=4, sampler=sampler)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1), find_unused_parameters=True)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    {epoch}
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""


def test_a_sampler_and_what_the_wrapper_was_told(convert_text):
    _, result = convert_text(SAMPLER.format(epoch="sampler.set_epoch(epoch)"))

    assert "DataLoader(data, batch_size=4, shuffle=True)" in result
    assert "DataLoaderConfiguration(use_seedable_sampler=True, data_seed=3)" in result
    assert "DistributedDataParallelKwargs(find_unused_parameters=True)" in result
    assert "    loader.set_epoch(epoch)\n" in result
    assert "sampler." not in result.replace("_sampler", "")


PARSED = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--seed', default=3)
args = parser.parse_args([])"""
SEEDS = {
    "a name": ("seed = 3", "seed"),
    "one of several names": ("seed, other = 3, 4", "seed"),
    "an option": (PARSED, "args.seed"),
}


@pytest.mark.parametrize("name", SEEDS)
def test_the_seed_of_a_sampler_is_there_where_nothing_else_reads_it(convert_text, name):
    given, seed = SEEDS[name]
    source = SAMPLER.format(epoch="sampler.set_epoch(epoch)").replace("seed=3", f"seed={seed}")
    _, result = convert_text(source.replace("\ndata =", f"\n{given}\ndata =", 1))

    assert f"DataLoaderConfiguration(use_seedable_sampler=True, data_seed={seed})" in result
    assert given.splitlines()[-1] in result
    assert "add_argument" not in given or "'--seed'" in result


def test_a_seed_that_is_handed_to_a_function_for_its_sampler_goes_on_being_handed(convert_text):
    source = SAMPLER.format(epoch="sampler.set_epoch(epoch)").replace("seed=3", "seed=seed")
    head, _, body = source.partition("\ndata =")
    _, result = convert_text(f"{head}\n\ndef main(seed):\n" + indent(f"data ={body}", "    ") + "\n\nmain(3)\n")

    assert "def main(seed):" in result
    assert "data_seed=seed" in result
    assert "main(3)" in result


def test_the_wrapper_and_irregular_gradients_ask_for_one_handler(convert_text):
    source = SAMPLER.format(epoch="pass").replace("find_unused_parameters=True", "broadcast_buffers=False")
    source = source.replace("loss.backward()", "loss.backward(retain_graph=True)\n        (loss * 2).backward()")
    _, result = convert_text(source)

    asked = "kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False, find_unused_parameters=True)]"
    assert asked in result


def test_a_handler_that_the_wrapper_had_is_overruled_by_what_the_gradients_need(convert_text):
    source = SAMPLER.format(epoch="pass").replace("find_unused_parameters=True", "find_unused_parameters=False")
    source = source.replace("loss.backward()", "loss.backward(retain_graph=True)\n        (loss * 2).backward()")
    _, result = convert_text(source)

    assert result.count("DistributedDataParallelKwargs(") == 1
    assert "DistributedDataParallelKwargs(find_unused_parameters=True)" in result


def test_a_sampler_that_is_not_told_the_epoch_keeps_its_order(convert_text):
    _, result = convert_text(SAMPLER.format(epoch="pass"))

    assert "    loader.set_epoch(0)\n" in result


def test_a_batch_that_is_divided_is_that_of_all_processes(convert_text):
    source = SAMPLER.format(epoch="sampler.set_epoch(epoch)")
    source = source.replace("batch_size=4", "batch_size=8 // torch.distributed.get_world_size()")
    _, result = convert_text(source)

    assert "DataLoader(data, batch_size=8, shuffle=True)" in result
    assert "split_batches=True" in result


def test_lines_are_those_of_the_original(convert_text):
    source = SAMPLER.format(epoch="sampler.set_epoch(epoch)")
    report, _ = convert_text(source)

    (loop, *_) = [finding for finding in report.findings if finding.code == "MIG001"]
    assert source.lstrip("\n").splitlines()[loop.line - 1].strip() == "for x, y in loader:"


PARSED = """
parser = argparse.ArgumentParser()
parser.add_argument("--cpu", action="store_true")
args = parser.parse_args()
"""
FIRST = 'if os.environ.get("RANK", "0") == "0":'
EARLY = {
    "what only prints": ('if rank == 0:\n    print("starting")', f'{FIRST}\n    print("starting")'),
    "what only prints, under something else, too": (
        'if rank == 0 and len(data_root) > 3:\n    print("starting")',
        f'if len(data_root) > 3:\n    {FIRST}\n        print("starting")',
    ),
    "a barrier": ("torch.distributed.barrier()", ""),
}


def early(before, after=""):
    """The accelerator is made below the settings that it needs; this stands above them."""
    choice = 'device = torch.device("cpu" if args.cpu else "cuda")'
    return {
        "imports": ("import argparse", "import argparse" + "\nimport os" * (FIRST in after)),
        "setup": (f"{RANK}\n{before}{PARSED}{choice}", f"{after}{PARSED}accelerator = Accelerator(cpu=args.cpu)"),
        "accelerator": "",
        "ready": ("model.to(device)", ""),
        "batch": ("x, y = x.to(device), y.to(device)", ""),
    }


@pytest.mark.parametrize("name", EARLY)
def test_what_comes_before_the_accelerator_is_done_by_every_process(changed, name):
    changed(**early(*EARLY[name]))


def test_processes_that_part_before_the_accelerator_are_left(programs, convert_text):
    before, _ = programs(early('if rank == 0:\n    print("first")\nelse:\n    print("other")'))
    report, result = convert_text(before)

    assert result == before
    assert any("processes part ways here" in each.message for each in report.findings if each.code == "MIG113")


BARS_OF_DATA = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler
from tqdm import tqdm


class Rows(Dataset):
    def __init__(self, count{parameter}):
        self.rows = []
        items = range(count)
        {bar}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], self.rows[i][:1]


dist.init_process_group("gloo")
data = Rows(8{given})
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
FILL = "self.rows += [torch.ones(2) * i for i in items]"
SHOWN = {
    "an argument of a bar": "items = tqdm(items, disable=dist.get_rank() != 0)",
    "a bar or none": "items = tqdm(items) if dist.get_rank() == 0 else items",
    "none or a bar": "items = items if dist.get_rank() else tqdm(items)",
    "a bar under a test": "if dist.get_rank() == 0:\n            print(count)\n            items = tqdm(items)",
}
DEALT = {
    "items of its own": "items = items[dist.get_rank() :: 2]",
    "a bar around a part": "items = tqdm(items[2:]) if dist.get_rank() == 0 else items",
    "others on one process": "if dist.get_rank() == 0:\n            items = items[2:]",
    "others on the others": (
        "if dist.get_rank() == 0:\n            print(count)\n        else:\n            items = items[2:]"
    ),
}


def rows(bar, **holes):
    return BARS_OF_DATA.format(**({"parameter": "", "given": ""} | holes), bar=f"{bar}\n        {FILL}").lstrip()


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("is_handed", [False, True])
def test_data_that_ask_for_the_rank_only_to_show_a_bar_are_not_said_to_be_shared_out(refused_text, name, is_handed):
    text = rows(SHOWN[name])
    if is_handed:
        text = rows(SHOWN[name].replace("dist.get_rank()", "rank"), parameter=", rank", given=", dist.get_rank()")
    refused_text(text, "MIG113", "def __init__", ["asks which process it runs in"])


@pytest.mark.parametrize("name", DEALT)
def test_data_that_go_by_the_rank_are_shared_out_by_hand(refused_text, name):
    refused_text(rows(DEALT[name]), "MIG113", "dist.get_rank()", ["by hand"])


def test_data_that_are_handed_the_rank_and_keep_it_are_shared_out_by_hand(convert_text):
    bar = "items = tqdm(items, disable=rank != 0)\n        self.rank = rank"
    report, _ = convert_text(rows(bar, parameter=", rank", given=", dist.get_rank()"))

    assert {finding.message for finding in report.of(Kind.LEFT)} == {
        "the program shares its data out over the processes by hand, by rank"
    }


WRITERS = """
import argparse
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, TensorDataset
from torch.utils.tensorboard import SummaryWriter


def train(args, data, model):
    if args.local_rank in [-1, 0]:
        writer = SummaryWriter()
    sampler = RandomSampler(data) if args.local_rank == -1 else DistributedSampler(data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.local_rank != -1:
        model = DistributedDataParallel(model, device_ids=[args.local_rank])
    for (x,) in DataLoader(data, sampler=sampler, batch_size=8):
        optimizer.zero_grad()
        loss = model(x.to(args.device)).mean()
        loss.backward()
        optimizer.step()
    if args.local_rank in [-1, 0]:
        {told}
        writer.add_scalar("loss", loss.item(), 0)
    if args.local_rank in [-1, 0]:
        writer.close()


parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()
if args.local_rank == -1:
    args.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
else:
    torch.cuda.set_device(args.local_rank)
    args.device = torch.device("cuda", args.local_rank)
    distributed.init_process_group(backend="nccl")
torch.manual_seed(0)
train(args, TensorDataset(torch.ones(40, 4)), nn.Linear(4, 2).to(args.device))
"""


@pytest.mark.parametrize(
    ("told", "main"),
    [("model(torch.ones(1, 4))", "is_main_process"), ("print('done')", "is_local_main_process")],
    ids=["all come to one that is used before", "nobody else does"],
)
def test_what_uses_a_writer_is_the_process_that_made_it(convert_text, told, main):
    _, text = convert_text(WRITERS.format(told=told))
    assert f"    if accelerator.{main}:\n        writer = SummaryWriter()" in text
    assert f"    if accelerator.{main}:\n        writer.close()" in text
