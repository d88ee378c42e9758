"""Flags that keep a program on the CPU, `if args.cpu: model.cpu() else: model.cuda()`: they go on doing so."""

import pytest

PROGRAM = """\
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--cpu", action="store_true")


def main():
    global args
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1)
    {model}
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer)


def train(model, loader, optimizer):
    for x, y in loader:
        if {asked}:
            x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


main()
"""
MOVED = """\
if args.cpu:
        {kept}
    else:
        model = model.cuda()"""
KEPT = ["model = model.cpu()", 'model.to("cpu")', 'model = model.to(torch.device("cpu"))']


@pytest.mark.parametrize("kept", KEPT)
def test_a_branch_that_keeps_the_model_on_the_cpu_says_what_the_other_one_goes_by(convert_text, kept):
    _, result = convert_text(PROGRAM.format(model=MOVED.format(kept=kept), asked="not args.cpu"))

    assert "accelerator = Accelerator(cpu=args.cpu)\n" in result


@pytest.mark.parametrize("asked", ["args.cpu == False", "args.cpu is False", "args.cpu != True", "not args.cpu"])
def test_a_flag_that_is_compared_with_false_is_the_same_flag(convert_text, asked):
    _, result = convert_text(PROGRAM.format(model=MOVED.format(kept=KEPT[0]), asked=asked))

    assert "accelerator = Accelerator(cpu=args.cpu)\n" in result


def test_a_branch_that_keeps_something_else_on_the_cpu_says_nothing(convert_text):
    made = 'torch.ones(1).to("cpu")'
    _, result = convert_text(PROGRAM.format(model=MOVED.format(kept=f"start = {made}"), asked="not args.cpu"))

    assert "accelerator = Accelerator()\n" in result


HANDED = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Mover:
    def __init__(self, flags):
        self.flags = flags

    def put(self, model):
        stays = self.flags[0]
        if stays:
            model.cpu()
        else:
            model.cuda()


def main(mover):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    mover.put(model)
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


main(Mover([True]))
"""


def test_a_flag_without_a_name_where_the_accelerator_is_made_is_refused(refused_text):
    refused_text(HANDED, "MIG101", "if stays:", ["not stays decides about the GPU here", "stays is not known"])
