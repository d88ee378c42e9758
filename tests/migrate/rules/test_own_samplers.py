"""Samplers of the project's own that take every n-th index from the r-th on: prepare deals out what they give."""

import pytest

from migrate.options import Target

PROGRAM = '''
import argparse
import itertools
import math
import os

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, Sampler, TensorDataset


class Repeated(Sampler):
    """Every sample three times."""

    def __init__(self, dataset, num_replicas=None, rank=None, repeats=3):
        if num_replicas is None:
            num_replicas = dist.get_world_size()
        if rank is None:
            rank = dist.get_rank()
        if rank >= num_replicas:
            raise ValueError(f"there is no process {rank}")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.repeats = repeats
        self.epoch = 0
        self.num_samples = int(math.ceil(len(self.dataset) * self.repeats / self.num_replicas))
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self):
        generator = torch.Generator()
        generator.manual_seed(self.epoch)
        indices = torch.randperm(len(self.dataset), generator=generator)
        indices = torch.repeat_interleave(indices, self.repeats).tolist()
        indices += indices[: self.total_size - len(indices)]
        indices = indices[self.rank : self.total_size : self.num_replicas]
        return iter(indices)

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        self.epoch = epoch


class Weighted(DistributedSampler):
    def __iter__(self):
        generator = torch.Generator()
        generator.manual_seed(self.epoch)
        indices = torch.multinomial(torch.ones(self.total_size), self.total_size, generator=generator).tolist()
        return itertools.islice(indices, self.rank, None, self.num_replicas)


def init(args):
    if "RANK" in os.environ:
        args.rank = int(os.environ["RANK"])
        args.world_size = int(os.environ["WORLD_SIZE"])
    else:
        args.distributed = False
        return
    args.distributed = True
    dist.init_process_group("gloo", rank=args.rank, world_size=args.world_size)


def main(args):
    init(args)
    data = TensorDataset(torch.randn(24, 2), torch.randn(24, 1))
    if args.distributed:
        count, rank = dist.get_world_size(), dist.get_rank()
        if args.repeated:
            sampler = Repeated(data, num_replicas=count, rank=rank)
        else:
            sampler = DistributedSampler(data, num_replicas=count, rank=rank)
    else:
        sampler = RandomSampler(data)
    loader = DataLoader(data, sampler=sampler, batch_size=4)
    model = nn.Linear(2, 1)
    if args.distributed:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        if args.distributed:
            loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeated", action="store_true")
    main(parser.parse_args())
'''
_BRANCH = PROGRAM[PROGRAM.index("    if args.distributed:\n        count") : PROGRAM.index("    loader = DataLoader")]


def _only(name: str) -> str:
    """The program without the other class."""
    first, second, rest = (PROGRAM.index(word) for word in ("class Repeated", "class Weighted", "def init"))
    return PROGRAM[:second] + PROGRAM[rest:] if name == "Repeated" else PROGRAM[:first] + PROGRAM[second:]


def _always(sampler: str) -> str:
    """The program with one sampler on any number of processes."""
    made = f"    count, rank = dist.get_world_size(), dist.get_rank()\n    sampler = {sampler}\n"
    return (
        _only(sampler.partition("(")[0])
        .replace(_BRANCH, made)
        .replace(
            "        if args.distributed:\n            loader.sampler.set_epoch", "        loader.sampler.set_epoch"
        )
        .replace("            loader.sampler", "        loader.sampler")
    )


def test_a_sampler_of_several_processes_gives_the_whole_order_there(convert_text):
    _, result = convert_text(PROGRAM)

    assert (
        """\
    if accelerator.num_processes > 1:
        if args.repeated:
            sampler = Repeated(data, num_replicas=1, rank=0)
        else:
            sampler = DistributedSampler(data, num_replicas=1, rank=0)
    else:
        sampler = RandomSampler(data)
"""
        in result
    )
    assert "        if accelerator.num_processes > 1:\n            sampler.set_epoch(epoch)\n" in result
    before, after = (text[text.index("class Repeated") : text.index("class Weighted")] for text in (PROGRAM, result))
    assert after == before


def test_what_finds_the_process_its_place_goes_though_the_sampler_has_a_rank_too(convert_text):
    alone = "    else:\n        args.distributed = False\n"
    said = alone.replace("else:\n", "else:\n        print('Not using distributed mode')\n")
    _, result = convert_text(PROGRAM.replace(alone, said))

    assert "accelerator.num_processes > 1" in result
    assert "init(" not in result.replace("__init__(", "")
    assert "distributed mode" not in result


MADE = {
    "keywords": ("Repeated(data, num_replicas=count, rank=rank)", "Repeated(data, num_replicas=1, rank=0)"),
    "positions": ("Repeated(data, count, rank, 2)", "Repeated(data, 1, 0, 2)"),
    "what the class asks itself": ("Repeated(data, repeats=2)", "Repeated(data, repeats=2, num_replicas=1, rank=0)"),
    "derived": ("Weighted(data, count, rank)", "Weighted(data, 1, 0)"),
    "derived, without a number": ("Weighted(data)", "Weighted(data, num_replicas=1, rank=0)"),
}


@pytest.mark.parametrize("name", MADE)
def test_a_sampler_of_any_number_of_processes(convert_text, name):
    before, after = MADE[name]
    _, result = convert_text(_always(before))

    assert f"    sampler = {after}\n" in result
    assert "        sampler.set_epoch(epoch)\n" in result


INDICES = "indices = indices[self.rank : self.total_size : self.num_replicas]"
WRONG = {
    "blocks": (INDICES, "indices = indices[self.rank * self.num_samples : (self.rank + 1) * self.num_samples]"),
    "an order of its own on each process": ("manual_seed(self.epoch)", "manual_seed(self.epoch + self.rank)"),
    "a step of something else": (INDICES, "indices = indices[self.rank : self.total_size : self.num_replicas + 1]"),
    "as many on any number of processes": (
        "self.num_samples = int(math.ceil(len(self.dataset) * self.repeats / self.num_replicas))",
        "self.num_samples = 1000",
    ),
    "as many, if wanted": (
        "        self.total_size =",
        "        if repeats > 3:\n            self.num_samples = 1000\n        self.total_size =",
    ),
    "a length that is no share": ("return self.num_samples", "return len(self.dataset)"),
    "no share at all": (INDICES, "indices = indices[: self.num_samples]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_class_that_deals_otherwise_is_refused(convert_text, name):
    old, new = WRONG[name]
    assert old in PROGRAM
    report, result = convert_text(PROGRAM.replace(old, new, 1))

    assert "Accelerator" not in result
    assert "shares its data out over the processes by hand" in str(report.findings)


ASKED = {
    "its length": (
        "    model = nn.Linear",
        "    print(len(sampler))\n    model = nn.Linear",
        "asked for something else",
    ),
    "its length, by the loader": (
        "    model = nn.Linear",
        "    print(len(loader.sampler))\n    model = nn.Linear",
        "asked for something else",
    ),
    "a share": (
        "    model = nn.Linear",
        "    print(sampler.num_samples)\n    model = nn.Linear",
        "asked for something",
    ),
    "a branch that does more": (
        "        if args.repeated:",
        "        args.lr = 1\n        if args.repeated:",
        "more than",
    ),
    "a test of more": (
        "    if args.distributed:\n        count",
        "    if args.distributed and args.repeated:\n        count",
        "more",
    ),
    "another way to the end": (
        _BRANCH,
        "    if not args.distributed:\n        return\n    sampler = Repeated(data)\n",
        "only several processes come here",
    ),
    "an expression": (
        _BRANCH,
        "    sampler = Repeated(data) if args.distributed else RandomSampler(data)\n",
        "only several processes come here",
    ),
    "a loader that others tell": ("    model = nn.Linear", "    sampler = None\n    model = nn.Linear", "has no name"),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_sampler_that_is_asked_for_its_share_is_refused(convert_text, name):
    old, new, why = ASKED[name]
    assert old in PROGRAM
    report, result = convert_text(PROGRAM.replace(old, new, 1))

    assert "Accelerator" not in result
    assert why in str(report.findings)


def test_a_branch_that_the_program_has_switched_on_is_no_question(convert_text):
    _, result = convert_text(PROGRAM.replace("    if args.distributed:\n        count", "    if True:\n        count"))

    assert "    if args.repeated:\n        sampler = Repeated(data, num_replicas=1, rank=0)\n" in result
    assert "num_processes == 1" not in result
    assert "RandomSampler(data)" not in result
    assert "        if accelerator.num_processes > 1:\n            sampler.set_epoch(epoch)\n" in result


def test_the_branch_of_one_process_comes_first(convert_text):
    first = "    if not args.distributed:\n        sampler = RandomSampler(data)\n    else:\n"
    made = _BRANCH.partition("\n")[2].partition("    else:\n        sampler = Random")[0]
    _, result = convert_text(PROGRAM.replace(_BRANCH, first + made))

    assert "    if accelerator.num_processes == 1:\n        sampler = RandomSampler(data)\n    else:\n" in result


def test_a_trainer_tells_the_sampler_that_it_holds(convert_text):
    source = PROGRAM.replace(
        "def init(", "class Clock:\n    def __init__(self, sampler):\n        self.sampler = sampler\n\n\ndef init("
    )
    source = source.replace(
        "    model = nn.Linear(2, 1)\n", "    model = nn.Linear(2, 1)\n    clock = Clock(sampler)\n"
    )
    _, result = convert_text(source.replace("loader.sampler.set_epoch", "clock.sampler.set_epoch"))

    assert "        if accelerator.num_processes > 1:\n            clock.sampler.set_epoch(epoch)\n" in result


BUCKETS = '''
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Buckets(DistributedSampler):
    """Batches of samples of like length, as many for each process."""

    def __init__(self, dataset, batch_size, num_replicas=None, rank=None, shuffle=True):
        super().__init__(dataset, num_replicas=num_replicas, rank=rank, shuffle=shuffle)
        self.batch_size = batch_size
        self.buckets = [list(range(20)), list(range(20, 50))]
        self.counts = []
        for bucket in self.buckets:
            of_all = self.num_replicas * self.batch_size
            wanting = (of_all - (len(bucket) % of_all)) % of_all
            self.counts.append(len(bucket) + wanting)
        self.total_size = sum(self.counts)
        self.num_samples = self.total_size // self.num_replicas

    def __iter__(self):
        generator = torch.Generator()
        generator.manual_seed(self.epoch)
        batches = []
        for bucket, count in zip(self.buckets, self.counts):
            ids = torch.randperm(len(bucket), generator=generator).tolist()
            ids = ids + ids[: count - len(bucket)]
            ids = ids[self.rank :: self.num_replicas]
            for first in range(0, len(ids), self.batch_size):
                batches.append([bucket[i] for i in ids[first : first + self.batch_size]])
        return iter([batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()])

    def __len__(self):
        return self.num_samples // self.batch_size


def run(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(50, 4), torch.randn(50, 1))
    loader = DataLoader(data, batch_sampler=Buckets(data, 4, num_replicas=world, rank=rank))
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        loader.batch_sampler.set_epoch(epoch)
        seen = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            seen += len(x)
        if rank == 0:
            print(len(loader), seen)


if __name__ == "__main__":
    mp.spawn(run, nprocs=2, args=(2,))
'''.lstrip("\n")


def test_buckets_that_are_filled_up_to_whole_steps_are_those_of_one_process(convert_text, numbers_printed):
    _, result = convert_text(BUCKETS)

    assert "Buckets(data, 4, num_replicas=1, rank=0)" in result
    assert "        loader.batch_sampler.set_epoch(epoch)\n" in result
    assert numbers_printed(result, 1) == [13, 52, 13, 52]
    assert [numbers_printed(result, 2)[i] for i in (0, 2)] == [7, 7]


@pytest.mark.parametrize(
    "counted",
    ["of_all = self.num_replicas * self.batch_size + 1", "of_all = self.num_replicas * 2\n            print(of_all)"],
)
def test_other_numbers_that_go_by_the_processes_are_refused(refused_text, counted):
    text = BUCKETS.replace("of_all = self.num_replicas * self.batch_size", counted)
    refused_text(text, "MIG113", "Buckets(data, 4")


def test_with_accelerate_such_a_sampler_is_not_asked_by_its_loader(convert_text):
    report, result = convert_text(BUCKETS, target=Target.ACCELERATE)
    assert result == BUCKETS
    (finding,) = (f for f in report.findings if f.code == "MIG104")
    assert "has no set_epoch() of the program's" in finding.message

    made = "Buckets(data, 4, num_replicas=world, rank=rank)"
    named = BUCKETS.replace(made, "sampler").replace("    loader = ", f"    sampler = {made}\n    loader = ")
    _, result = convert_text(named.replace("loader.batch_sampler", "sampler"), target=Target.ACCELERATE)
    assert "        sampler.set_epoch(epoch)\n" in result


PIECES = (
    "        offset = self.num_samples * self.rank\n        indices = indices[offset : offset + self.num_samples]\n"
)


def in_pieces(pieces=PIECES):
    strided = "        indices = indices[self.rank : self.total_size : self.num_replicas]\n"
    return _always("Repeated(data, num_replicas=count, rank=rank)").replace(strided, pieces)


@pytest.mark.parametrize(
    "pieces",
    [
        PIECES,
        PIECES.replace("self.num_samples * self.rank", "self.rank * self.num_samples"),
        "        own = self.num_samples\n        indices = indices[self.rank * self.num_samples :][:own]\n",
    ],
    ids=["as in maskrcnn-benchmark", "turned", "two slices"],
)
def test_an_order_that_is_dealt_out_in_pieces_is_that_of_one_process(convert_text, pieces):
    _, result = convert_text(in_pieces(pieces))

    assert "Repeated(data, num_replicas=1, rank=0)" in result
    assert pieces in result


@pytest.mark.parametrize(
    "pieces",
    [
        PIECES.replace("* self.rank", "* self.rank + 1"),
        PIECES.replace("offset + self.num_samples]", "offset + 8]"),
        PIECES.replace("self.num_samples * self.rank", "8 * self.rank"),
        PIECES + "        print(offset)\n",
    ],
    ids=["one later", "of another size", "of eight", "shown"],
)
def test_other_pieces_are_refused(convert_text, pieces):
    report, result = convert_text(in_pieces(pieces))

    assert result == in_pieces(pieces).lstrip("\n")
    assert "shares its data out over the processes by hand" in "".join(f.message for f in report.findings)
