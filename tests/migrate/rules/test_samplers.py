"""Samplers that share the data out, where several processes are made one: what becomes of them, and what is refused."""

import pytest

from migrate.report.model import Kind

BATCHED = """
import torch
from torch import nn, optim
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, TensorDataset

torch.distributed.init_process_group("gloo")
data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
size = 4
sampler = DistributedSampler(data, shuffle={shuffle})
batches = BatchSampler(sampler, size, {drop_last})
{between}
loader = DataLoader(data, batch_sampler=batches)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""
EVALUATED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.distributed.init_process_group("gloo")
data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
held_out = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
sampler, held_out_sampler = DistributedSampler(data), DistributedSampler(held_out{given})
loader = DataLoader(data, batch_size=4, sampler=sampler)
test_loader = DataLoader(held_out, batch_size=4, sampler=held_out_sampler)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in test_loader:
            print(nn.functional.mse_loss(model(x), y).item())
    model.train()
"""
JOINING = """
import argparse
import os

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, TensorDataset


def init(args):
    if "RANK" in os.environ:
        args.rank = int(os.environ["RANK"])
        args.world_size = int(os.environ["WORLD_SIZE"])
    elif hasattr(args, "rank"):
        pass
    else:
        args.distributed = False
        return
    args.distributed = True
    torch.distributed.init_process_group("gloo", rank=args.rank, world_size=args.world_size)


def total(value):
    if not torch.distributed.is_available():
        return value
    if not torch.distributed.is_initialized():
        return value
    torch.distributed.all_reduce(value)
    return value


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
{option}args = parser.parse_args()
init(args)
data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
sampler = DistributedSampler(data) if args.distributed else RandomSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler)
model = nn.Linear(2, 1)
if args.distributed:
    model = nn.parallel.DistributedDataParallel(model)
optimizer = optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(2):
    if args.distributed:
        sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
print(total(torch.zeros(1)))
"""


def test_batches_of_a_sampler_are_those_of_the_loader(convert_text):
    _, result = convert_text(BATCHED.format(shuffle=True, drop_last=True, between=""))

    assert "DataLoader(data, batch_size=size, shuffle=True, drop_last=True)" in result
    assert "    loader.set_epoch(epoch)\n" in result
    assert "Sampler(" not in result


def test_batches_in_order_with_a_last_short_one(convert_text):
    _, result = convert_text(BATCHED.format(shuffle=False, drop_last=False, between=""))

    assert "DataLoader(data, batch_size=size)" in result


@pytest.mark.parametrize(
    ("size", "whole"),
    [
        ("size // torch.distributed.get_world_size()", "size"),
        ("int(size / torch.distributed.get_world_size())", "size"),
        ("max(1, 2 * size // torch.distributed.get_world_size())", "max(1, 2 * size)"),
    ],
)
def test_a_size_that_is_divided_at_such_batches_is_divided_by_the_accelerator(convert_text, size, whole):
    source = BATCHED.format(shuffle=False, drop_last=True, between="").replace("sampler, size,", f"sampler, {size},")
    _, result = convert_text(source)

    assert f"DataLoader(data, batch_size={whole}, drop_last=True)" in result
    assert "split_batches=True" in result


def test_a_size_that_changes_before_the_loader_is_refused(convert_text):
    report, result = convert_text(BATCHED.format(shuffle=True, drop_last=True, between="size = 2"))

    assert "Accelerator" not in result
    assert "what becomes of this sampler is not known" in str(report.findings)


def test_batches_that_something_else_asks_are_refused(convert_text):
    report, result = convert_text(BATCHED.format(shuffle=True, drop_last=True, between="print(len(batches))"))

    assert "Accelerator" not in result
    assert "what becomes of this sampler is not known" in str(report.findings)


def test_an_evaluation_whose_sampler_is_never_told_the_epoch_keeps_its_order(convert_text):
    _, result = convert_text(
        EVALUATED.format(given="").replace(
            "sampler, held_out_sampler = DistributedSampler(data), ",
            "sampler = DistributedSampler(data)\nheld_out_sampler = ",
        )
    )

    assert "held_out_sampler = DistributedSampler(held_out, num_replicas=1, rank=0)" in result
    assert "test_loader.set_epoch" not in result


def test_the_number_of_processes_of_such_a_sampler_is_one(convert_text):
    given = ", num_replicas=torch.distributed.get_world_size(), rank=torch.distributed.get_rank()"
    source = EVALUATED.format(given=given)
    source = source.replace(
        "sampler, held_out_sampler = DistributedSampler(data), ",
        "sampler = DistributedSampler(data)\nheld_out_sampler = ",
    )
    _, result = convert_text(source)

    assert "held_out_sampler = DistributedSampler(held_out, num_replicas=1, rank=0)" in result


CHOSEN = (
    EVALUATED.format(given="")
    .replace("DistributedSampler, TensorDataset", "DistributedSampler, SequentialSampler, TensorDataset")
    .replace("import torch\nfrom", "import argparse\n\nimport torch\nfrom", 1)
    .replace(
        "sampler, held_out_sampler = DistributedSampler(data), DistributedSampler(held_out)\n",
        """\
parser = argparse.ArgumentParser()
parser.add_argument("--dist_eval", action="store_true")
args = parser.parse_args()
count, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
sampler = DistributedSampler(data, num_replicas=count, rank=rank)
if args.dist_eval:
    if len(held_out) % count != 0:
        print("some samples are evaluated twice")
    held_out_sampler = DistributedSampler(held_out, num_replicas=count, rank=rank, shuffle=False)
else:
    held_out_sampler = SequentialSampler(held_out)
""",
    )
)


def test_an_option_that_shares_the_evaluation_out_gives_it_its_order(convert_text):
    _, result = convert_text(CHOSEN)

    assert "held_out_sampler = DistributedSampler(held_out, num_replicas=1, rank=0, shuffle=False)" in result
    assert "    held_out_sampler = SequentialSampler(held_out)\n" in result
    assert "evaluated twice" not in result
    assert "count" not in result


def test_a_warning_of_something_else_stays(convert_text):
    _, result = convert_text(CHOSEN.replace("if len(held_out) % count", "if len(data[0]) % count"))

    assert "if len(data[0]) % accelerator.num_processes != 0:" in result


def test_an_order_that_an_option_chooses_and_that_is_told_the_epoch_is_refused(convert_text):
    told = "    sampler.set_epoch(epoch)\n    held_out_sampler.set_epoch(epoch)\n"
    report, result = convert_text(CHOSEN.replace("    sampler.set_epoch(epoch)\n", told))

    assert "Accelerator" not in result
    assert "what becomes of this sampler is not known" in str(report.findings)


def test_what_is_written_out_as_false_stays(convert_text):
    _, result = convert_text(CHOSEN.replace("for epoch in", 'assert True or "this"\nfor epoch in', 1))

    assert 'assert True or "this"' in result


def test_a_rank_that_only_a_launcher_gives_is_missing(convert_text):
    _, result = convert_text(JOINING.format(option=""))

    assert "sampler = RandomSampler(data)" in result
    assert "DistributedDataParallel" not in result
    assert "hasattr" not in result
    assert "False." not in result


def test_a_rank_that_the_command_line_gives_may_be_there(convert_text):
    option = 'parser.add_argument("--rank", type=int)\n'
    _, result = convert_text(JOINING.format(option=option))

    assert "Accelerator" not in result


def test_what_is_said_of_a_sampler_goes_with_it(convert_text):
    said = 'print("Sampler = %s" % str(sampler))'
    _, result = convert_text(BATCHED.format(shuffle=True, drop_last=True, between=said))

    assert "DataLoader(data, batch_size=size, shuffle=True, drop_last=True)" in result
    assert "Sampler =" not in result


def test_a_sampler_that_is_counted_is_refused(convert_text):
    said = "print(size, len(sampler))"
    report, result = convert_text(BATCHED.format(shuffle=True, drop_last=True, between=said))

    assert "Accelerator" not in result
    assert "sampler is for several processes, and is read here for something else" in str(report.findings)


def test_an_epoch_that_only_several_processes_tell_is_told(convert_text):
    source = JOINING.format(option="").replace("DistributedSampler(data) if args.distributed else ", "")
    source = source.replace("sampler = RandomSampler(data)", "sampler = DistributedSampler(data)")
    _, result = convert_text(source)

    assert "DataLoader(data, batch_size=4, shuffle=True)" in result
    assert "    loader.set_epoch(epoch if accelerator.num_processes > 1 else 0)\n" in result


DEMAND = """if args.sync:
    assert args.distributed, "several processes"
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
assert not args.distributed or args.lr > 0
if args.distributed:
    model ="""


def test_what_an_option_demands_of_the_processes_is_asked(convert_text):
    option = 'parser.add_argument("--sync", action="store_true")\n'
    source = JOINING.format(option=option)
    _, result = convert_text(source.replace("if args.distributed:\n    model =", DEMAND))

    assert 'assert accelerator.num_processes > 1, "several processes"' in result
    assert "assert not" not in result


MUTED = """
import builtins

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def mute(is_main):
    builtin_print = builtins.print

    def print(*args, **kwargs):
        force = kwargs.pop("force", False)
        if is_main or force:
            builtin_print(*args, **kwargs)

    builtins.print = print


def init():
    torch.distributed.init_process_group("gloo")
    mute(torch.distributed.get_rank() == 0)


init()
data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, force=True)
"""


def test_a_print_that_is_no_longer_muted_is_not_forced(convert_text):
    _, result = convert_text(MUTED)

    assert 'accelerator.print("epoch", epoch)' in result
    assert "force" not in result


ON_A_CLUSTER = """
    if args.on_cluster:
        args.rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
        args.world_size = int(os.environ["OMPI_COMM_WORLD_SIZE"])
    elif "RANK" in os.environ:
"""


def test_a_flag_that_joins_as_a_launcher_does(convert_text):
    option = 'parser.add_argument("--on_cluster", action="store_true")\n'
    source = JOINING.format(option=option).replace('\n    if "RANK" in os.environ:\n', ON_A_CLUSTER)
    _, result = convert_text(source)

    assert "sampler = RandomSampler(data)" in result
    assert "OMPI" not in result


SWITCHED = EVALUATED.replace(
    "sampler, held_out_sampler = DistributedSampler(data), DistributedSampler(held_out{given})\n",
    """if {test}:  # args.distributed
    sampler = DistributedSampler(data)
    held_out_sampler = DistributedSampler(held_out, shuffle=False)
else:
    sampler = RandomSampler(data)
    held_out_sampler = SequentialSampler(held_out)
""",
).replace("DataLoader, Dist", "DataLoader, RandomSampler, SequentialSampler, Dist")


def test_a_branch_that_is_switched_to_several_processes_is_no_question(convert_text):
    _, result = convert_text(SWITCHED.format(test="True"))

    assert "loader = DataLoader(data, batch_size=4, shuffle=True)" in result
    assert "test_loader = DataLoader(held_out, batch_size=4)" in result
    assert "Sampler" not in result.replace("use_seedable_sampler", "")
    assert "if True" not in result


def test_the_other_branch_may_be_the_one_that_is_switched_on(convert_text):
    text = SWITCHED.format(test="False")
    mine, other = text[text.index("    sampler =") :].partition("loader =")[0].split("else:\n")
    _, result = convert_text(text.replace(mine + "else:\n" + other, other + "else:\n" + mine))

    assert "loader = DataLoader(data, batch_size=4, shuffle=True)" in result
    assert "RandomSampler" not in result


def test_what_is_switched_off_and_has_nothing_to_do_with_processes_stays(convert_text):
    text = EVALUATED.format(given=", shuffle=False").replace("model = nn", "if False:\n    data = None\nmodel = nn", 1)
    _, result = convert_text(text)

    assert "if False:\n    data = None\n" in result


@pytest.mark.parametrize(
    "asked", ["isinstance(loader.sampler, DistributedSampler)", 'hasattr(loader.sampler, "set_epoch")']
)
def test_what_asks_for_the_kind_of_a_sampler_before_it_tells_it_the_epoch_goes(convert_text, asked):
    told = f"    if {asked}:\n        loader.sampler.set_epoch(epoch)\n"
    _, result = convert_text(EVALUATED.format(given="").replace("    sampler.set_epoch(epoch)\n", told, 1))

    assert "for epoch in range(2):\n    loader.set_epoch(epoch)\n    for x, y in loader:\n" in result
    assert "isinstance" not in result
    assert "hasattr" not in result


def test_a_function_that_makes_a_sampler_is_named_and_not_its_rank(convert_text):
    made, rank = "sampler, held_out_sampler = ", "torch.distributed.get_rank()"
    makes = f"def make(data, rank):\n    return DistributedSampler(data, rank=rank)\n\n\n{made}make("
    text = EVALUATED.format(given=f", {rank}").replace(f"{made}DistributedSampler(", makes)
    text = text.replace("make(data), DistributedSampler(", f"make(data, {rank}), make(")

    report, result = convert_text(text)

    assert "Accelerator" not in result
    assert "what becomes of this sampler is not known" in str(report.findings)
    assert "shares its data out" not in str(report.findings)


HELD = """
import os

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trainer:
    def __init__(self):
        data = TensorDataset(torch.ones(32, 2), torch.ones(32, 1))
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, batch_size=4, sampler=self.sampler)
        self.net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self):
        for epoch in range(2):
            {told}
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.net(x), y)
                loss.backward()
                self.optimizer.step()


dist.init_process_group("gloo")
Trainer().fit()
""".lstrip("\n")


@pytest.mark.parametrize("told", ["self.sampler.set_epoch(epoch)", "self.loader.sampler.set_epoch(epoch)"])
def test_an_attribute_that_is_called_sampler_is_told_by_its_loader(convert_text, told):
    _, result = convert_text(HELD.format(told=told))

    assert "            self.loader.set_epoch(epoch)\n" in result
    assert "self.sampler" not in result


@pytest.mark.parametrize("told", ["self.note(self.sampler.seed)", "print(self.sampler)"])
def test_an_attribute_that_is_asked_for_something_else_is_refused(refused_text, told):
    text = HELD.format(told=told).replace(
        "    def fit", "    def note(self, seed):\n        print(seed)\n\n    def fit"
    )
    refused_text(text, "MIG113", told)


MADE_BY = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_loader(data, is_train):
    sampler = DistributedSampler(data, shuffle={shuffle})
    {between}
    return DataLoader(data, batch_size=4, {more}sampler=sampler)


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.ones(32, 2), torch.ones(32, 1))
    loader, val_loader = make_loader(data, True), make_loader(data, False)
    net = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            total = sum(nn.functional.mse_loss(net(x), y).item() for x, y in val_loader)
        net.train()


main()
""".lstrip("\n")


@pytest.mark.parametrize(
    ("shuffle", "more"), [("is_train", ""), ("not not is_train", ""), ("is_train", "shuffle=False, ")]
)
def test_an_order_that_a_function_is_told_is_told_to_the_loader(convert_text, shuffle, more):
    _, result = convert_text(MADE_BY.format(shuffle=shuffle, between="pass", more=more))

    assert f"DataLoader(data, batch_size=4, shuffle={shuffle})" in result
    assert "        loader.set_epoch(epoch)\n" in result
    assert "DistributedSampler" not in result


@pytest.mark.parametrize(
    ("shuffle", "between"), [("is_train", "is_train = False"), ("len(data) > 8", "pass")], ids=["set anew", "asked for"]
)
def test_an_order_that_may_be_another_at_the_loader_is_refused(refused_text, shuffle, between):
    refused_text(MADE_BY.format(shuffle=shuffle, between=between, more=""), "MIG113", "DistributedSampler(data")


def test_a_method_that_tells_the_sampler_of_its_object_tells_the_loader(convert_text):
    source = HELD.format(told="self.begin(epoch)")
    begin = "    def begin(self, epoch):\n        self.sampler.set_epoch(epoch)\n\n    def fit"
    _, result = convert_text(source.replace("    def fit", begin))

    assert "        self.loader.set_epoch(epoch)\n" in result
    assert "self.sampler" not in result


def test_samplers_that_are_made_together_go_together(convert_text):
    """They stayed where each loader had one, and asked for a group that nobody joins."""
    source = EVALUATED.format(given="").replace(
        "    model.eval()\n", "    held_out_sampler.set_epoch(epoch)\n    model.eval()\n"
    )
    _, result = convert_text(source)

    assert "DistributedSampler" not in result
    assert "loader.set_epoch(epoch)" in result
    assert "test_loader.set_epoch(epoch)" in result


def test_what_is_made_beside_a_sampler_stays(convert_text):
    _, result = convert_text(
        BATCHED.replace("size = 4\nsampler = ", "size, sampler = 4, ").format(shuffle=True, drop_last=True, between="")
    )

    assert "size = 4\n" in result
    assert "DistributedSampler" not in result


BY_COUNT = """
import os

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

size = int(os.environ.get("WORLD_SIZE", 1))
if size > 1:
    torch.distributed.init_process_group("gloo")
data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
sampler = {made} if size > 1 else None
loader = DataLoader(data, batch_size=4, sampler=sampler{shuffle})
{other}
model = nn.Linear(2, 1)
if size > 1:
    model = nn.parallel.DistributedDataParallel(model)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in {trained}:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in loader:
            print(nn.functional.mse_loss(model(x), y).item())
"""
SHUFFLED = {"made": "DistributedSampler(data)", "shuffle": ", shuffle=False", "other": "", "trained": "loader"}
OTHER = {"other": "rows = DataLoader(data, batch_size=4, shuffle=True)", "trained": "rows"}
NOT_LOST = {
    "shuffled on one": {"shuffle": ", shuffle=sampler is None"},
    "shuffled on none": {"made": "DistributedSampler(data, shuffle=False)"},
    "of an evaluation": OTHER,
}


@pytest.mark.parametrize("shuffle", ["", ", shuffle=False"])
def test_data_that_only_several_processes_shuffle_are_told(convert_text, remark, shuffle):
    source = BY_COUNT.format(**SHUFFLED | {"shuffle": shuffle}).lstrip("\n")
    report, text = convert_text(source)

    assert f"loader = DataLoader(data, batch_size=4{shuffle})" in text
    remark(report, source, "MIG113", "loader = DataLoader(data", "they are not shuffled now", Kind.NOTE)


@pytest.mark.parametrize("name", NOT_LOST)
def test_nothing_is_told_of_an_order_that_stays(convert_text, name):
    report, _ = convert_text(BY_COUNT.format(**SHUFFLED | NOT_LOST[name]))

    assert not any("shuffled" in finding.message for finding in report.findings)
