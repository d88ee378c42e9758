"""Layers that set their parameters by the first batch they see, in a program for one process or for several."""

import pytest

from migrate.report.model import Kind

PROGRAM = """\
import argparse
import os
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--distributed", action="store_true", default=False)
parser.add_argument("--local_rank", type=int)
parser.add_argument("--bits", type=int, default=1)


def fetch(args, first=False):
    scale = lambda rows: rows / 2**args.bits
    data = TensorDataset(scale(torch.ones(48, 3)), torch.ones(48, 1))
    sampler = None
    if args.distributed and not first:
        sampler = torch.utils.data.distributed.DistributedSampler(data)
    return DataLoader(data, batch_size=16 if first else 8, shuffle=(sampler is None), sampler=sampler)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 3))
        self.register_buffer("mean", torch.zeros(1, 3))
        self.register_buffer("initialized", torch.tensor(0).byte())

    def start(self, rows):
        found = rows.mean(0, keepdim=True)
        {set}

    def forward(self, x):
        if not self.initialized:
            self.start(x)
            self.initialized += 1
        return x - self.bias


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.head = nn.Linear(3, 1)

    def forward(self, x):
        return self.head(self.norm(x))


@torch.no_grad()
def first_run(model, args):
    loader = fetch(args, first=True)
    model(next(iter(loader))[0].to(args.device))


if __name__ == "__main__":
    args = parser.parse_args()
    if args.distributed:
        torch.cuda.set_device(args.local_rank)
        args.device = torch.device("cuda:{}".format(args.local_rank))
        torch.distributed.init_process_group(backend="nccl", init_method="env://")
    else:
        if torch.cuda.is_available(): args.local_rank = 0
        args.device = torch.device("cuda:{}".format(args.local_rank) if args.local_rank is not None else "cpu")
    {seed}
    loader = fetch(args)
    model = Net().to(args.device)
    model = nn.DataParallel(model)
    if args.distributed:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    state = torch.load("start.pt")
    model.load_state_dict(state)
    {first}
    for epoch in range(3):
        for x, y in loader:
            loss = (model(x.to(args.device)) - y.to(args.device)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if False:
            print("switched off")
"""
FILLINGS = {"set": "self.bias.data.copy_(found)", "first": "first_run(model, args)", "seed": "pass"}
SEED = "set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])"


@pytest.fixture
def convert(convert_text):
    def run(**holes):
        text = PROGRAM
        for name, filling in {**FILLINGS, **holes}.items():
            text = text.replace("{" + name + "}", filling)
        return text, *convert_text(text)

    return run


def left(report):
    return [(finding.code, finding.message) for finding in report.of(Kind.LEFT)]


def test_all_processes_set_the_same_by_a_batch_of_a_loader_of_its_own(convert):
    _, report, result = convert()

    assert left(report) == []
    assert SEED in result
    assert "    loader, model, optimizer = accelerator.prepare(loader, model, optimizer)\n" in result
    assert "    loader = fetch(args, first=True)\n" in result


def test_a_program_that_is_seeded_needs_no_other_seed(convert):
    _, report, result = convert(seed="torch.manual_seed(1)")

    assert left(report) == []
    assert SEED not in result


@pytest.mark.parametrize("change", ["self.mean.copy_(found)", "self.bias.data.clamp_(-1, 1)"])
def test_what_is_no_parameter_or_goes_by_no_batch_needs_no_seed(convert, change):
    _, report, result = convert(set=change, first="pass")

    assert left(report) == []
    assert SEED not in result


@pytest.mark.parametrize("change", ["self.bias.data.copy_(found)", "self.bias.data = found.mean(1)"])
def test_what_each_process_would_set_by_its_own_share_is_refused(convert, change):
    text, report, result = convert(set=change, first="pass", seed="torch.manual_seed(1)")

    assert result == text
    assert [code for code, _ in left(report)] == ["MIG122"]
    assert "sets a parameter by the batch that the model sees" in left(report)[0][1]


def test_a_rank_that_one_process_gives_itself_does_not_choose_the_cpu(convert):
    _, _, result = convert()

    assert "    accelerator = Accelerator()\n" in result


def test_what_the_program_has_switched_off_stays(convert):
    _, _, result = convert()

    assert "        if False:\n            accelerator.print(" in result


def test_the_prefix_of_two_wrappers_is_taken_off_once(convert):
    _, _, result = convert()

    assert result.count('consume_prefix_in_state_dict_if_present(state, "module.")') == 1


PLAIN = "class Plain(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {made}\n\n"
#: Who makes the layer beside the model that is trained, which does not; and whether the program may come to it.
OTHERS = {
    "nobody": ("", False),
    "a class that nobody makes": (PLAIN.format(made="self.norm = Norm().cuda()"), False),
    "a class that derives from it, and that nobody makes": ("class Own(Norm):\n    pass\n\n", False),
    "classes that name each other": (
        PLAIN.format(made="self.norm = Norm(Other).cuda()") + "class Other(Norm):\n    kind = Plain\n\n",
        False,
    ),
    "a class that the program names": (PLAIN.format(made="self.norm = Norm().cuda()") + "KINDS = [Plain]\n", True),
    "a name in a table": ('KIND = "Norm"\n', True),
    "a name that is put together": ("def kind(name):\n    return globals()[name]()\n\n", True),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_layer_that_the_program_does_not_make(refused_or_not, name):
    other, may_be_made = OTHERS[name]

    assert bool(refused_or_not(other)) is may_be_made


@pytest.fixture
def refused_or_not(convert_text):
    def run(other):
        text = PROGRAM.replace("self.norm = Norm()", "self.norm = nn.BatchNorm1d(3)")
        text = text.replace("@torch.no_grad()", other + "@torch.no_grad()")
        text = text.replace("        self.bias = nn", "        self.cuda()\n        self.bias = nn")
        for name, filling in {**FILLINGS, "first": "pass", "seed": "torch.manual_seed(1)"}.items():
            text = text.replace("{" + name + "}", filling)
        return left(convert_text(text)[0])

    return run
