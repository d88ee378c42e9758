"""The device that a user names, `args.device`, by whatever name it goes when things are moved there."""

from pathlib import Path

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

PROGRAM = """
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

_device = None


def get_device():
    return _device


def set_device(device):
    global _device
    _device = device


def train(model, optimizer, loader{parameter}):
    {chosen}
    for x, y in loader:
        loss = ((model(x.to({given})) - y.to({given})) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("{option}", default="cuda")
    args = parser.parse_args()
    {setup}
    model = nn.Linear(4, 3).to({device})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 3)), batch_size=4)
    train(model, optimizer, loader{argument})


if __name__ == "__main__":
    main()
"""
PLAIN = {"parameter": "", "argument": "", "chosen": "pass", "setup": "pass", "option": "--device"}

WAYS = {
    "a variable": {
        "setup": "device = args.device",
        "device": "device",
        "parameter": ", device",
        "argument": ", device",
    },
    "handed straight": {"device": "args.device", "parameter": ", device", "argument": ", args.device"},
    "an item": {
        "setup": 'config = {"on": args.device}',
        "device": 'config["on"]',
        "parameter": ", config",
        "argument": ", config",
        "given": 'config["on"]',
    },
    "a variable of the file": {
        "setup": "set_device(args.device)",
        "device": "get_device()",
        "chosen": "device = get_device()",
    },
}


@pytest.mark.parametrize("name", WAYS)
def test_it_goes_on_deciding_and_gives_way(convert_text, name):
    report, result = convert_text(PROGRAM.format(**{**PLAIN, "given": "device", **WAYS[name]}))

    assert 'Accelerator(cpu=torch.device(args.device).type == "cpu")' in result or (
        'Accelerator(cpu=torch.device(config["on"]).type == "cpu")' in result
    )
    assert ".to(" not in result
    assert any("a number in " in finding.message for finding in report.findings)


def test_a_text_that_is_compared_stays_one(convert_text):
    compared = 'device = args.device\n    if device == "cuda":\n        torch.backends.cudnn.benchmark = True'
    ways = {**PLAIN, **WAYS["a variable"], "given": "device", "setup": compared}
    _, result = convert_text(PROGRAM.format(**ways))

    assert 'if accelerator.device.type == "cuda":' in result


def test_what_may_be_one_under_another_name_is_refused(convert_text):
    ways = {**PLAIN, "option": "--gpu", "setup": "gpu = args.gpu", "device": "gpu", "parameter": ", gpu"}
    report, result = convert_text(PROGRAM.format(**{**ways, "argument": ", gpu", "given": "gpu"}))

    assert "Accelerator" not in result
    assert any("x.to(gpu) moves to is not known" in finding.message for finding in report.findings)


RETURNED = """
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def read():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if {asked}torch.cuda.is_available() else "cpu")
    {given}


if __name__ == "__main__":
    {taken}
    weights = torch.ones(4).to(device)
    model = nn.Linear(4, 3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 3)), batch_size=4):
        loss = ((model(weights * x.to(device)) - y.to(device)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
RETURNS = {"alone": ("return device", "device = read()"), "beside": ("return args, device", "args, device = read()")}


@pytest.mark.parametrize("name", RETURNS)
def test_a_flag_of_the_function_that_returns_it_goes_on_deciding(convert_text, name):
    given, taken = RETURNS[name]
    report, result = convert_text(RETURNED.format(asked="not args.no_cuda and ", given=given, taken=taken))

    assert 'accelerator = Accelerator(cpu=torch.device(device).type == "cpu")' in result
    assert result.index(taken) < result.index("accelerator = ")
    assert not any("MPS" in finding.message for finding in report.findings)


@pytest.mark.parametrize("name", RETURNS)
def test_one_that_goes_by_what_there_is_needs_no_flag(convert_text, name):
    given, taken = RETURNS[name]
    _, result = convert_text(RETURNED.format(asked="", given=given, taken=taken))

    assert "accelerator = Accelerator()" in result


KEPT = """
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, args):
        self.device = args.device
        self.model = nn.Linear(4, 3).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 3)), batch_size=4)

    def train(self):
        weights = torch.ones(4, device=self.device)
        for x, y in self.loader:
            loss = ((self.model(weights * x.to(self.device)) - y.to(self.device)) ** 2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    Trainer(parser.parse_args()).train()
"""


def test_an_object_that_still_asks_for_it_has_it_of_the_accelerator(convert_text):
    _, result = convert_text(KEPT)

    assert 'self.accelerator = Accelerator(cpu=torch.device(args.device).type == "cpu")' in result
    assert "self.device = self.accelerator.device" in result


PLACE = """
import argparse

import torch

from agent import Agent

parser = argparse.ArgumentParser()
parser.add_argument("--on", default="cuda")
options = parser.parse_args()
options.on = torch.device(options.on)
torch.manual_seed(0)
Agent(**vars(options)).train()
"""
AGENT = """
import torch
from torch import nn


class Agent:
    def __init__(self, **settings):
        self.__dict__.update(settings)
        self.model = nn.Linear(4, 1){moved}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for _ in range(10):
            loss = self.model(torch.randn(8, 4){moved}).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("moved", "made"),
    [(".to(self.on)", "Accelerator(cpu=torch.device(settings['on']).type == 'cpu')"), ("", "Accelerator(cpu=True)")],
)
def test_a_file_that_moves_its_tensors_goes_by_its_device_whatever_it_calls_it(moved, made):
    Path("main.py").write_text(PLACE)
    Path("agent.py").write_text(AGENT.format(moved=moved))
    results = {change.path: change.new.decode() for change in run(["main.py", "agent.py"], Options()).changes}

    assert f"self.accelerator = {made}" in results["agent.py"]


SET = "self.__dict__.update(settings)"


@pytest.mark.parametrize("kept", [f"{SET}; self.on = torch.device('cuda')", "self.on = settings.pop('on')"])
def test_settings_tell_the_device_only_where_the_object_keeps_them_whole(kept):
    Path("main.py").write_text(PLACE)
    Path("agent.py").write_text(AGENT.format(moved=".to(self.on)").replace(SET, kept))
    results = {change.path: change.new.decode() for change in run(["main.py", "agent.py"], Options()).changes}

    assert "settings['on']" not in results.get("agent.py", "")


TWO_FLAGS = """
import argparse

import numpy as np
import torch
from torch import nn


class Net(nn.Linear):
    def trainer(self, optimizer):
        def step(rows, use_cuda):
            x = torch.from_numpy(rows).float()
            x = x.cuda() if use_cuda else x
            loss = self(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step


parser = argparse.ArgumentParser()
parser.add_argument("--use-cuda", action="store_true")
args = parser.parse_args()
model = Net(4, 1)
if args.use_cuda:
    model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = model.trainer(optimizer)
for _ in range(10):
    step(np.ones((8, 4)), args.use_cuda)
"""


def test_a_flag_decides_beside_parameters_that_cannot_be_followed(convert_text):
    _, result = convert_text(TWO_FLAGS)

    assert "Accelerator(cpu=not args.use_cuda" in result


MERGED = """
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from yacs.config import CfgNode

defaults = CfgNode()
defaults.device = "cuda"


def load_config():
    parser = argparse.ArgumentParser()
    parser.add_argument("options", nargs=argparse.REMAINDER)
    config = defaults.clone()
    config.merge_from_list(parser.parse_args().options)
    if not torch.cuda.is_available():
        config.device = "cpu"
    return config


def main():
    config = load_config()
    device = {device}
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()


main()
"""


@pytest.mark.parametrize("device", ["config.device", "torch.device(config.device)"])
def test_settings_that_a_user_s_are_merged_into_keep_theirs(convert_text, device):
    _, result = convert_text(MERGED.format(device=device))

    assert 'accelerator = Accelerator(cpu=torch.device(config.device).type == "cpu")' in result
    assert 'defaults.device = "cuda"' in result
    assert ".to(" not in result


BEST = """
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--gpu", default=None, type=int)
args = parser.parse_args()
torch.manual_seed(0)
best = 0.0
model = nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4):
    x, y = {batch}
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if args.gpu is not None:
        best = {number}
torch.save(best, "best.pt")
"""


def test_a_number_of_a_batch_may_lie_on_any_gpu(convert_text):
    number = "loss.detach().to(args.gpu)"
    _, result = convert_text(BEST.format(batch="x.cuda(), y.cuda()", number=number))

    assert number in result
    assert "accelerator.backward(loss)" in result


def test_a_batch_on_a_gpu_that_need_not_be_named_is_refused(convert_text):
    """Without one, `x.to(None)` leaves it on the CPU."""
    report, result = convert_text(BEST.format(batch="x.to(args.gpu), y.to(args.gpu)", number="loss.detach()"))

    assert "Accelerator" not in result
    assert any("moves to is not known" in finding.message for finding in report.findings)


@pytest.mark.parametrize("said", ["args.gpu", "gpu"])
def test_a_number_that_the_user_gives_is_that_of_a_gpu(convert_text, said):
    text = BEST.replace("default=None", "default=0").replace("best = 0.0", "gpu = args.gpu\nbest = 0.0")
    report, result = convert_text(text.format(batch=f"x.to({said}), y.to({said})", number="loss.item()"))

    assert ".to(" not in result
    assert "accelerator.backward(loss)" in result
    assert not report.of(Kind.LEFT)
