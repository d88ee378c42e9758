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
