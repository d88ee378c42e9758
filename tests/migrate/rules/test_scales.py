"""Numbers that go by how many processes there are: what the accelerator does itself goes, all else asks it."""

import pytest

SOURCE = """\
import argparse
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

def is_distributed():
    return dist.is_available() and dist.is_initialized()

def mean_of_all(tensor, count):
    tensor = tensor.clone()
    dist.all_reduce(tensor)
    tensor /= count
    return tensor

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    steps = 4
    world_size = 1
    if args.distributed:
        dist.init_process_group("gloo")
        world_size = dist.get_world_size()
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    model = nn.Linear(4, 1)
{setup}
    sampler = DistributedSampler(data) if args.distributed else None
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=sampler is None, sampler=sampler)
    if args.distributed:
        model = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * steps)
    for epoch in range(2):
        if args.distributed:
            sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
{batch}

main()
"""
COUNT = "accelerator.num_processes"

KEPT = {
    "a rate in a branch": ("if args.distributed:\n        args.lr *= world_size", f"args.lr *= {COUNT}"),
    "micro-steps, checked before": (
        "if args.distributed:\n        assert steps % world_size == 0\n        steps //= world_size",
        f"assert steps % {COUNT} == 0\n    steps //= {COUNT}",
    ),
    "under a test of the number itself": ("if world_size > 1:\n        args.lr *= world_size", f"args.lr *= {COUNT}"),
    "what one process computes otherwise": (
        "if args.distributed:\n        args.lr = args.lr * args.batch_size * world_size / 256",
        f"if {COUNT} > 1:\n        args.lr = args.lr * args.batch_size * {COUNT} / 256",
    ),
    "outside of branches": (
        "args.lr = args.lr * args.batch_size * world_size / 256",
        f"args.lr = args.lr * args.batch_size * {COUNT} / 256",
    ),
    "a length of data": ("steps = len(data) // (args.batch_size * world_size)", f"(args.batch_size * {COUNT})"),
    "a quotient that is no batch": ("steps = len(data) // world_size", f"steps = len(data) // {COUNT}"),
    "an expression with a condition": (
        "steps = steps * world_size if args.distributed else steps",
        f"steps = steps * {COUNT}",
    ),
    "another one on each side": (
        "steps = 3 * world_size if args.distributed else 4",
        f"steps = 3 * {COUNT} if {COUNT} > 1 else 4",
    ),
    "both branches say the same": (
        "if args.distributed:\n        steps = 4 * world_size\n    else:\n        steps = 4",
        f"steps = 4 * {COUNT}",
    ),
    "asked for in place": (
        "args.lr = args.lr * (dist.get_world_size() if is_distributed() else 1)",
        f"args.lr = args.lr * ({COUNT})",
    ),
    "asked for in a print": (
        "print(f'{dist.get_world_size() if args.distributed else 1} processes')",
        f"accelerator.print(f'{{{COUNT}}} processes')",
    ),
    "a seed for each": (
        "if args.distributed:\n        torch.manual_seed(3 + dist.get_rank())",
        f"if {COUNT} > 1:\n        torch.manual_seed(3 + accelerator.process_index)",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_numbers_ask_the_accelerator(convert_text, name):
    before, after = KEPT[name]
    text = result(convert_text, setup=before)
    assert after in text
    assert "split_batches" not in text
    assert "world_size" not in text.replace("world_size = 1", "")


DIVIDED = {
    "in a branch": "if args.distributed:\n        args.batch_size = int(args.batch_size / world_size)",
    "in place": "if args.distributed:\n        args.batch_size //= world_size",
    "by what is asked for in place": "args.batch_size //= dist.get_world_size() if args.distributed else 1",
    "always": "args.batch_size = args.batch_size // world_size",
    "always, in place": "args.batch_size //= world_size",
}


@pytest.mark.parametrize("name", DIVIDED)
def test_batches_are_divided_by_the_accelerator(convert_text, name):
    text = result(convert_text, setup=DIVIDED[name])
    assert "DataLoaderConfiguration(split_batches=True)" in text
    assert "args.batch_size /" not in text
    assert COUNT not in text


MEANS = {
    "by a function": "if loss > 1:\n    mean = mean_of_all(loss, world_size)",
    "of what a function gives": "if loss > 1:\n    mean = mean_of_all(loss, 1) / world_size",
    "of a number made of it": "if loss > 1:\n    dist.all_reduce(loss)\n    mean = loss.item() / world_size",
}
STAYING = {
    "by a function": ("mean = mean_of_all(loss, world_size)", f"tensor /= {COUNT}"),
    "of what a function gives": ("mean = mean_of_all(loss, 1) / world_size", f"accelerator) / {COUNT}"),
    "of a number made of it": (
        "dist.all_reduce(loss)\nvalue = loss.item()\nmean = value / world_size",
        f"mean = value / {COUNT}",
    ),
}


@pytest.mark.parametrize("name", MEANS)
def test_means_of_what_was_summed_up_are_not_taken_again(convert_text, name):
    lines = "\n".join(" " * 12 + line for line in MEANS[name].splitlines())
    text = result(convert_text, batch=lines)
    used = text if "mean_of_all" in MEANS[name] else text.partition("def main")[2]  # which stays where nothing uses it
    assert COUNT not in used
    assert "all_reduce" not in used


@pytest.mark.parametrize("name", STAYING)
def test_means_that_each_step_shows_are_taken_once(convert_text, name):
    shown, divided = STAYING[name]
    lines = "\n".join(" " * 12 + line for line in f"{shown}\nprint(mean)".splitlines())
    text = result(convert_text, batch=lines)
    assert 'reduction="sum")' in text
    assert divided in text
    assert text.count(COUNT) == 1


WITHOUT = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
data = torch.randn(640, 4)
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    x = data[{start} : {start} + 8]
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total{operation})
{after}
    if rank == 0:
        print(total.item())
"""
SUMS = {
    "a sum": ({"operation": "", "after": "    total /= world_size"}, ("sum", "total /= accelerator.num_processes")),
    "a mean": ({"operation": ", op=dist.ReduceOp.AVG", "after": ""}, ("mean", "")),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_what_each_process_takes_by_its_rank_stay(convert_text, name):
    holes, (reduction, line) = SUMS[name]
    text = convert_text(WITHOUT.format(start="8 * rank", **holes))[1]
    assert f'total = accelerator.reduce(total, reduction="{reduction}")' in text
    assert line in text


def test_sums_of_what_all_processes_have_go(convert_text):
    text = convert_text(WITHOUT.format(start="8 * step", operation="", after="    total /= world_size"))[1]
    assert "reduce" not in text
    assert "num_processes" not in text


def test_a_maximum_of_all_has_no_counterpart(refused_text):
    source = WITHOUT.format(start="8 * rank", operation=", op=dist.ReduceOp.MAX", after="")
    refused_text(source, "MIG113", "dist.all_reduce", ("no counterpart",))


COUNTED = """
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup(place, count):
    os.environ["MASTER_ADDR"] = "localhost"
    dist.init_process_group("nccl", rank=place, world_size=count)


def main(rank, several):
    setup(rank, several)
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, several, rank))
    model = DDP(nn.Linear(4, 1).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.to(rank)), y.to(rank))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    mean = torch.tensor(losses).mean().to(rank)
    dist.all_reduce(mean, op=dist.ReduceOp.SUM)
    mean = mean / several
    print(mean.item())


if __name__ == "__main__":
    world_size = 2
    mp.spawn(main, args=(world_size,), nprocs=world_size)
"""


def test_a_number_of_processes_that_is_written_out_is_known_by_the_group_that_is_told_it(convert_text):
    _, text = convert_text(COUNTED)

    assert "losses = [each for step in zip(*accelerator.gather_for_metrics([losses])) for each in step]" in text
    assert "mean / " not in text
    assert "world_size" not in text
    assert "several" not in text


STARTED = """\
import argparse
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--gpus", type=int, nargs="+", default=[0])
    parser.add_argument("--world-size", type=int, default=1)
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    args.per_machine = len(args.gpus)
    if args.distributed:
        args.world_size = args.per_machine * args.world_size
        mp.spawn(work, nprocs=args.per_machine, args=(args.per_machine, args))
    else:
        work(args.gpus, args.per_machine, args)


def work(gpu, per_machine, args):
    if args.distributed:
        dist.init_process_group("gloo", world_size=args.world_size, rank=gpu)
    model = nn.Linear(4, 1)
    if args.distributed:
        args.batch_size = int(args.batch_size / per_machine)
        model = DDP(model)
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    sampler = DistributedSampler(data) if args.distributed else None
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=sampler is None, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""


SIZE = "args.batch_size"
LOST = "steps //= world_size"
REFUSED = {
    "in a branch inside of it": (f"if args.distributed:\n        if steps > 2:\n            {LOST}", LOST),
    "where one process takes another": (
        "if args.distributed:\n        steps = 3 * world_size\n    else:\n        steps = 5",
        "steps = 3 * world_size",
    ),
    "in a branch among others": (
        f"if steps > 5:\n        steps = 5\n    elif args.distributed:\n        {LOST}",
        LOST,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_number_that_would_be_lost(refused_text, name):
    before, at = REFUSED[name]
    refused_text(filled(setup=before), "MIG113", at, ("goes by the number of processes",))


OTHERWISE = {
    "in a branch": (f"{SIZE} = {SIZE} // steps", f"{SIZE} // steps"),
    "rounded": (f"{SIZE} = int({SIZE} / steps)", f"int({SIZE} / steps)"),
    "in place": (f"{SIZE} //= steps", f"{SIZE} //= steps"),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_batch_that_several_processes_divide_by_another_number(refused_text, name):
    before, at = OTHERWISE[name]
    said = ("not seen by the number of processes",)
    refused_text(filled(setup=f"if args.distributed:\n        {before}"), "MIG113", at, said)


def test_a_batch_that_is_divided_by_how_many_processes_are_started(convert_text):
    """That is the number of processes of a machine, whatever it was made of."""
    _, text = convert_text(STARTED)

    assert "split_batches=True" in text
    assert "args.batch_size" in text
    assert "per_machine" not in text


def test_a_number_of_processes_that_is_handed_over_beside_options(convert_text):
    """`train(gpus, **config)`: what is passed by its place is no option, and goes with its parameter."""
    source = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main(gpus, several, lr):
    if gpus > 1:
        dist.init_process_group("gloo", world_size=gpus)
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    loader = DataLoader(data, batch_size=8)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main(torch.cuda.device_count(), **{"lr": 0.1, "several": 2})
"""
    _, text = convert_text(source)
    assert "def main(several, lr):" in text
    assert 'main(**{"lr": 0.1, "several": 2})' in text


def filled(setup="", batch=""):
    return SOURCE.format(setup=f"    {setup}" if setup else "", batch=batch)


def result(convert_text, **holes):
    return convert_text(filled(**holes))[1]


def test_a_mean_in_a_branch_of_several_processes_stays_there(convert_text):
    lines = "if args.distributed:\n    dist.all_reduce(loss)\n    loss = loss / world_size"
    text = result(convert_text, batch="\n".join(" " * 12 + line for line in lines.splitlines()))

    assert f"if {COUNT} > 1:\n" in text
    assert f"loss = loss / {COUNT}\n" in text
    assert 'accelerator.reduce(loss, reduction="sum")' in text


SPAWNED_BY_OPTION = """\
import argparse
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(model, loader, optimizer, args):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown)
        shown /= args.world_size
        if args.rank == 0:
            print(shown.item())


def run(rank, args):
    args.rank = rank
    args.world_size = args.gpus
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29511", world_size=args.world_size, rank=rank)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 2), torch.randn(32, 1))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=False))
    model = DDP(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer, args)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=1)
    args = parser.parse_args()
    {start}
"""


@pytest.mark.parametrize(
    "start", ["mp.spawn(run, nprocs=args.gpus, args=(args,))", "mp.spawn(run, (args,), args.gpus)"]
)
def test_how_many_an_option_starts_is_the_number_of_processes(convert_text, start):
    text = convert_text(SPAWNED_BY_OPTION.format(start=start))[1]
    assert 'shown = accelerator.reduce(shown, reduction="sum")\n        shown /= accelerator.num_processes\n' in text
    assert "mp.spawn" not in text
