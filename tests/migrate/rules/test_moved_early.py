"""What is moved to a GPU before the accelerator gives each process its own."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

{early}
def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 3), torch.zeros(8).long()), batch_size=4)
    model = nn.Linear(3, 3).cuda()
    {late}
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()

{early_again}
if __name__ == "__main__":
    main()
"""
WEIGHTED = "criterion = nn.CrossEntropyLoss(weight=torch.ones(3).cuda())\n"
EMPTY = {"early": "", "late": "pass", "early_again": ""}
REFUSED = {
    "a tensor": {"early": WEIGHTED},
    "a tensor, by its text": {"early": WEIGHTED.replace(".cuda()", '.to("cuda:0")')},
    "under a condition": {
        "early": "weights = torch.ones(3)\nif torch.cuda.is_available():\n    weights = weights.cuda()\n"
        "criterion = nn.CrossEntropyLoss(weight=weights)\n"
    },
    "below the function": {"early_again": WEIGHTED},
    "a number of the user": {
        "early": "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--cuda', type=int)\nargs = parser.parse_args()\n"
        + WEIGHTED.replace(".cuda()", ".to(args.cuda)")
    },
    "a model that is not trained": {"early": "net = nn.Linear(3, 3).cuda()\ncriterion = nn.CrossEntropyLoss()\n"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_moved_before_there_is_an_accelerator(refused_text, name):
    refused_text(SOURCE.format(**{**EMPTY, **REFUSED[name]}), "MIG101", "cuda", ["before there is an accelerator"])


CONVERTED = {
    "a loss function without tensors": {"early": "criterion = nn.CrossEntropyLoss().cuda()\n"},
    "in the function": {"late": WEIGHTED.strip()},
}


@pytest.mark.parametrize("name", CONVERTED)
def test_moved_where_there_is_one(convert_text, name):
    report, text = convert_text(SOURCE.format(**{**EMPTY, **CONVERTED[name]}))

    assert not report.of(Kind.LEFT)
    assert "accelerator.backward(loss)" in text
    assert "ones(3).cuda()" not in text


COPIED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{imported}

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.ones(8, 3), torch.zeros(8, 3)), batch_size=4)
model = nn.Linear(3, 3)
model.to(device)
{used}
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
STAYS = {
    "an average of the model": ("from timm.utils import ModelEma", "average = ModelEma(model, decay=0.9)"),
    "an average of its parameters": (
        "from torch_ema import ExponentialMovingAverage",
        "average = ExponentialMovingAverage(model.parameters(), decay=0.9)",
    ),
    "a library that may run it": ("from somewhere import inspect", "inspect(model)"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_copies_or_runs_a_model_has_it_on_its_device(convert_text, name):
    imported, used = STAYS[name]
    _, text = convert_text(COPIED.format(imported=imported, used=used))

    assert f"model.to(device)\n{used}\n" in text
    assert "accelerator.backward(loss)" in text


@pytest.mark.parametrize("used", ["wandb.watch(model)", "print(model)", "seen = weakref.ref(model)"])
def test_what_only_looks_at_a_model_does_not(convert_text, used):
    _, text = convert_text(COPIED.format(imported="import wandb\nimport weakref", used=used))

    assert "model.to(" not in text


IN_WHAT_IS_CALLED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.mask = torch.ones(4){mask}

    def forward(self, x):
        return self.layer(x * self.mask.to(x.device))


class Solver:
    def __init__(self):
        self.loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
        self.build()
        self.device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

    def build(self):
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        if torch.cuda.is_available():
            self.model.cuda()

    def train(self):
        for x, y in self.loader:
            loss = nn.functional.mse_loss(self.model(x.to(self.device)), y.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print(loss.item())


Solver().train()
"""


@pytest.mark.parametrize("mask", [".cuda()", '.to("cuda")', '.to(torch.device("cuda"))'])
def test_the_accelerator_is_there_before_what_a_function_keeps_on_a_gpu(convert_text, mask):
    _, result = convert_text(IN_WHAT_IS_CALLED.format(mask=mask))
    assert result.index("self.accelerator = Accelerator()") < result.index("self.loader = DataLoader")


@pytest.mark.parametrize("mask", ["", ".double()"])
def test_it_takes_the_place_of_the_device_where_nothing_is_put_there_early(convert_text, mask):
    _, result = convert_text(IN_WHAT_IS_CALLED.format(mask=mask))
    assert "self.build()\n        self.accelerator = Accelerator()" in result


IN_A_DEFINITION = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def weights_of(rows, device):
    return torch.ones(len(rows), 1).to(device)


def train(model, loader, optimizer, device):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = (weights_of(x, device) * (model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
device = torch.device("cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train(model, loader, optimizer, device)
"""


def test_a_definition_above_the_device_enters_nothing(convert_text):
    _, result = convert_text(IN_A_DEFINITION)
    assert "batch_size=4)\naccelerator = Accelerator(cpu=True)" in result
