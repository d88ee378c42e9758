"""Where the accelerator and prepare go, and what the accelerator keeps of the program's own choice of device."""

import ast

import pytest

PROGRAM = """
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

args = argparse.ArgumentParser().parse_args()
{choice}
net = nn.Linear(1, 1).to(device)
opt = optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(data)
for x, y in loader:
    loss = (net(x.to(device)) - y.to(device)).sum()
    loss.backward()
    opt.step()
"""

CPU = {
    'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")': None,
    'device = "cuda" if torch.cuda.is_available() else "cpu"': None,
    'device = torch.device("cuda")': None,
    'device = torch.device("cuda" if args.gpu else "cpu")': "not args.gpu",
    'device = torch.device("cuda" if torch.cuda.is_available() and not args.no_cuda else "cpu")': "args.no_cuda",
    'device = torch.device("cpu" if args.cpu else "cuda")': "args.cpu",
    'device = torch.device("cpu")': "True",
    "device = torch.device(args.device)": "torch.device(args.device).type == 'cpu'",
    'if args.gpu and torch.cuda.is_available():\n    device = "cuda"\nelse:\n    device = "cpu"': "not args.gpu",
    'if args.cpu or not torch.cuda.is_available():\n    device = "cpu"\nelse:\n    device = "cuda"': "args.cpu",
    'use = torch.cuda.is_available()\ndevice = torch.device("cuda" if use else "cpu")': None,
    'use = args.gpu and torch.cuda.is_available()\ndevice = torch.device("cuda" if use else "cpu")': "not use",
    'device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"': None,
}


@pytest.mark.parametrize("choice", CPU)
def test_the_flag_of_a_device_choice_goes_on_deciding(decide, choice):
    _, conversion = decide(PROGRAM.format(choice=choice))

    assert conversion.placement.cpu == CPU[choice]


def test_prepare_follows_the_last_constructor(decide):
    _, conversion = decide(PROGRAM.format(choice='device = torch.device("cuda")'))

    stage = conversion.placement.stages.first
    assert stage.end == 11
    assert [named.target for named in stage.objects] == ["loader", "net", "opt"]


@pytest.mark.parametrize(
    "between",
    ['__author__ = "me"', 'sys.path.append("..")', 'os.environ["CUDA_VISIBLE_DEVICES"] = "1"', '"""text"""\nX = 3'],
)
def test_the_accelerator_stands_below_all_imports(decide, between):
    text = PROGRAM.format(choice="").replace("import argparse\n", f"import argparse, os, sys\n{between}\n")
    _, conversion = decide(text.replace("device", '"cuda"'))

    spot = conversion.placement.accelerator
    assert spot.where in {"before", "instead"}
    assert spot.statement.lineno == text.split("\n").index("args = argparse.ArgumentParser().parse_args()") + 1


NARROWED = """
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", action="store_true")
    return parser.parse_args()

class Trainer:
    def __init__(self, net, opt, device):
        self.net, self.opt, self.device = net, opt, device

    def train(self, loader):
        for x, y in loader:
            loss = (self.net(x.to(self.device)) - y.to(self.device)).sum()
            loss.backward()
            self.opt.step()

def main():
    args = options()
    args.cuda = args.cuda and torch.cuda.is_available()
    device = torch.device("cuda" if args.cuda else "cpu")
    loader = DataLoader(data)
    net = nn.Linear(1, 1).to(device)
    opt = optim.SGD(net.parameters(), lr=0.1)
    Trainer(net, opt, device).train(loader)

main()
"""


def test_a_flag_that_is_narrowed_by_what_there_is_goes_on_deciding(decide):
    """What a flag is told of itself is no end of asking: the function's options are one object with what is set."""
    _, conversion = decide(NARROWED)

    assert conversion.placement.cpu == "not args.cuda"


OPTIONS = "args = argparse.ArgumentParser().parse_args()"
RESUMED = """
import argparse
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

{above}
net = nn.Linear(1, 1).to(args.device)
opt = optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(data)
if len(sys.argv) > 1:
    args = torch.load("last.pt")["args"]
for x, y in loader:
    loss = (net(x.to(args.device)) - y.to(args.device)).sum()
    loss.backward()
    opt.step()
"""


def test_options_that_a_run_goes_on_with_do_not_hold_the_accelerator_back(decide):
    _, conversion = decide(RESUMED.format(above=OPTIONS))

    assert conversion.placement.cpu == "torch.device(args.device).type == 'cpu'"
    assert conversion.placement.accelerator.statement.lineno == 9  # above the model


def test_options_that_are_only_there_at_times_by_then_do(decide):
    program, conversion = decide(RESUMED.format(above=f"if len(sys.argv) > 2:\n    {OPTIONS}"))

    assert conversion is None
    assert [refusal.why for refusal in program.refusals] == [
        "the accelerator needs args, which gets its value after the models are made"
    ]


LISTED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

loaders = [0] * 3
for i in range(3):
    loaders[i] = DataLoader(data, batch_size=4)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(1, 1).to(device)
opt = optim.SGD(net.parameters(), lr=0.1)
for k in range(3):
    for x, y in loaders[k]:
        loss = (net(x.to(device)) - y.to(device)).sum()
        loss.backward()
        opt.step()
"""


def test_the_accelerator_stands_above_loaders_that_are_prepared_where_they_are_made(decide):
    """The device is chosen below them."""
    _, conversion = decide(LISTED)

    spot = conversion.placement.accelerator
    assert (spot.where, ast.unparse(spot.statement)) == ("before", "loaders = [0] * 3")
