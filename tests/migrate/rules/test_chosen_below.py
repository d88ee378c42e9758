"""A flag that decides about the device in the training function, for an accelerator that is made above it."""

import pytest

PROGRAM = """
import argparse
import os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main(opt):
    device = torch.device({asked} if torch.cuda.is_available() else "cpu")
    model = nn.Linear(4, 3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.ones(32, 4), torch.ones(32, 3))
    for x, y in DataLoader(data, batch_size=4):
        loss = ((model(x.to(device)) - y.to(device)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    print(args)
    os.makedirs("out", exist_ok=True)
    main({given})
"""


@pytest.mark.parametrize("given", ["args", "opt=args"])
def test_it_goes_on_deciding_by_its_name_above(convert_text, given):
    _, result = convert_text(PROGRAM.format(asked="opt.device", given=given))

    assert 'accelerator = Accelerator(cpu=torch.device(args.device).type == "cpu")' in result
    assert result.index("parse_args()") < result.index("Accelerator(cpu=")


def test_it_is_told_where_it_has_no_name_above(convert_text):
    report, result = convert_text(PROGRAM.format(asked="opt.device", given="parser.parse_args()"))

    assert "Accelerator()" in result
    assert any("also where torch.device(opt.device).type == 'cpu'" in finding.message for finding in report.findings)


def test_what_is_there_alone_decides_without_a_word(convert_text):
    report, result = convert_text(PROGRAM.format(asked='"cuda"', given="args"))

    assert "Accelerator()" in result
    assert not any(finding.code == "MIG101" for finding in report.findings)


TRAINER = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_device(cpu):
    return torch.device("cpu" if cpu or not torch.cuda.is_available() else "cuda")


class Trainer:
    def __init__(self, opt):
        self.device = {chosen}
        self.model = nn.Linear(4, 3).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x, y):
        loss = ((self.model(x.to(self.device)) - y.to(self.device)) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 3)), batch_size=4)
    trainer = Trainer({given})
    for x, y in loader:
        trainer.step(x, y)
"""


def test_a_flag_that_an_object_hands_on_goes_on_deciding(convert_text):
    _, result = convert_text(TRAINER.format(chosen="get_device(opt.cpu)", given="args"))

    assert 'accelerator = Accelerator(cpu=torch.device(get_device(args.cpu)).type == "cpu")' in result
    assert result.index("parse_args()") < result.index("Accelerator(cpu=")


def test_a_flag_that_an_object_gets_by_another_way_is_told(convert_text):
    report, result = convert_text(TRAINER.format(chosen="get_device(opt.cpu)", given="parser.parse_args()"))

    assert "Accelerator()" in result
    assert any("also where torch.device(get_device(opt.cpu))" in finding.message for finding in report.findings)


def test_an_object_that_asks_only_what_is_there_loses_nothing(convert_text):
    chosen = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    report, result = convert_text(TRAINER.format(chosen=chosen, given="args"))

    assert "Accelerator()" in result
    assert not any("also where" in finding.message for finding in report.findings)


BUILT = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Base:
    def __init__(self, options):
        {kept}
        self.device = self.choose()
        self.model = nn.Linear(4, 3).to(self.device)

    def choose(self):
        if self.args.use_gpu:
            device = torch.device("cuda")
            print("on the GPU")
        else:
            device = torch.device("cpu")
        return device


class Trainer(Base):
    def train(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for x, y in DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 3)), batch_size=4):
            loss = ((self.model(x.to(self.device)) - y.to(self.device)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--use-gpu", action="store_true")
    Trainer(parser.parse_args()).train()
"""


def test_a_flag_that_an_object_holds_goes_on_deciding_where_it_is_made(convert_text):
    _, result = convert_text(BUILT.format(kept="self.args = options"))

    assert "self.accelerator = Accelerator(cpu=not self.args.use_gpu)" in result
    assert result.index("self.args = options") < result.index("Accelerator(cpu=") < result.index("self.choose()")


def test_a_flag_that_something_else_puts_into_the_object_is_asked_by_the_device(convert_text):
    _, result = convert_text(BUILT.format(kept="vars(self).update(args=options)"))

    asked = 'self.accelerator = Accelerator(cpu=torch.device(self.device).type == "cpu")'
    assert result.index("self.device = self.choose()") < result.index(asked) < result.index("self.model = ")


SOLVER = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, args):
        self.args = args
        self.build({handed})

    def build(self{parameter}):
        {flag}
        self.device = torch.device({asked})
        self.model = nn.Linear(4, 3).to(self.device)
        self.loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 3)), batch_size=4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for x, y in self.loader:
            loss = ((self.model(x.to(self.device)) - y.to(self.device)) ** 2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        print(loss.device.type)


parser = argparse.ArgumentParser()
parser.add_argument("--no-cuda", action="store_true")
Solver(parser.parse_args()).train()
"""
THERE = "torch.cuda.is_available()"
#: What is handed down, the parameter, how the flag is kept, what the device goes by, and what the accelerator is asked.
KEPT = {
    "a variable": ("args", "args", f"gpu = not args.no_cuda and {THERE}", "gpu", "args.no_cuda"),
    "an attribute": ("args", "args", f"self.gpu = not args.no_cuda and {THERE}", "self.gpu", "args.no_cuda"),
    "a setting": ("args", "args", f"args.gpu = not args.no_cuda and {THERE}", "args.gpu", "args.no_cuda"),
    "a setting of its own": (
        "", "", f"self.args.gpu = not self.args.no_cuda and {THERE}", "self.args.gpu", "self.args.no_cuda",
    ),
    "another name": ("self.args", "o", f"o.gpu = not o.no_cuda and {THERE}", "o.gpu", "self.args.no_cuda"),
    "two names": ("args", "args", f"no = args.no_cuda\n        gpu = not no and {THERE}", "gpu", "args.no_cuda"),
    "the flag for the CPU": ("args", "args", f"cpu = args.no_cuda or not {THERE}", "not cpu", "args.no_cuda"),
    "one that is beside others": (
        "args", "args", f"gpu = {THERE}", "gpu and not args.no_cuda", "args.no_cuda",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_is_made_of_a_flag_below_is_asked_by_the_flag_above(convert_text, on_pretended_gpu, name):
    handed, parameter, flag, gpu, asked = KEPT[name]
    parameter = f", {parameter}" if parameter else ""
    _, result = convert_text(
        SOLVER.format(handed=handed, parameter=parameter, flag=flag, asked=f'"cuda" if {gpu} else "cpu"')
    )

    assert f"Accelerator(cpu={asked})" in result
    assert on_pretended_gpu(result) == "cuda\n"
    assert on_pretended_gpu(result, "--no-cuda") == "cpu\n"


@pytest.mark.parametrize(
    "flag",
    [
        "gpu = not args.no_cuda\n        if len(args.__dict__) > 3:\n            gpu = False",
        "gpu = not parser.parse_args().no_cuda",
        "for gpu in (args.no_cuda, not args.no_cuda):\n            pass",
    ],
    ids=["given twice", "asked by a call", "of a loop"],
)
def test_a_flag_that_is_not_told_above_is_no_condition(convert_text, on_pretended_gpu, flag):
    report, result = convert_text(
        SOLVER.format(handed="args", parameter=", args", flag=flag, asked=f'"cuda" if gpu and {THERE} else "cpu"')
    )

    assert "Accelerator()" in result
    assert any("also where not gpu" in finding.message for finding in report.findings)
    assert on_pretended_gpu(result) == "cuda\n"
