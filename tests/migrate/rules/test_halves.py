"""Models of which a part is made on another device than the rest: prepare would move all of it to one."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn, optim


class Encoder(nn.Module):
    def __init__(self, device, other):
        super().__init__()
        self.other = other
        self.layer = nn.Linear(4, 4).to(device)
        self.scale = nn.Parameter(torch.tensor([10.0])).to({other})

    def forward(self, x):
        return self.layer(x)

    def loss(self, rows):
        return (rows * self.scale).pow(2).mean()


def train():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loss_device = torch.device("cpu")
    torch.manual_seed(0)
    model = Encoder(device, loss_device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        rows = model(torch.ones(8, 4).to(device)).to({rows})
        optimizer.zero_grad()
        model.loss(rows).backward()
        optimizer.step()


train()
"""


def test_a_part_that_is_kept_on_the_cpu_is_refused(convert_text):
    report, _ = convert_text(SOURCE.format(other="other", rows="loss_device"))

    (left,) = [f for f in report.of(Kind.LEFT) if f.code == "MIG110"]
    assert "spreads over several devices itself (device, other)" in left.message


def test_one_that_goes_where_the_rest_goes_is_not(convert_text):
    report, result = convert_text(SOURCE.format(other="device", rows="device"))

    assert not report.of(Kind.LEFT)
    assert "model, optimizer = accelerator.prepare(model, optimizer)" in result


MADE_OF_ITSELF = """
import torch
from torch import nn, optim


class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

    def place(self):
        if type(self.device) is str:
            self.device = torch.device(self.device)
        self.to(self.device)


torch.manual_seed(0)
model = Net("cuda")
model.place()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.ones(8, 4).to(model.device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_device_that_is_made_of_itself_is_one_device(convert_text):
    report, result = convert_text(MADE_OF_ITSELF)

    assert not report.of(Kind.LEFT)
    assert "model, optimizer = accelerator.prepare(model, optimizer)" in result


ASKS = """
import torch
from torch import nn, optim


class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.mask = torch.ones(4, device=device)

    def _device(self):
        return next(self.parameters()).device

    def forward(self, x):
        {asked}
        return self.layer(x) * self.mask + torch.zeros(4, device={named})


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = Net(device).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.ones(8, 4).to(device)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("asked", "named"),
    [("pass", "self._device()"), ("here = x.device", "here"), ("here = self.layer.weight.device", "here")],
)
def test_a_model_that_asks_where_it_lies_names_no_other_device(convert_text, asked, named):
    report, result = convert_text(ASKS.format(asked=asked, named=named))

    assert not report.of(Kind.LEFT)
    assert "model, optimizer = accelerator.prepare(model, optimizer)" in result
