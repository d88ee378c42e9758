"""Programs that put everything on the CPU by name stay there, whatever the machine has."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(loader, {parameter}):
    {choice}
    net = nn.Linear(4, 1).to({device})
    optimizer = torch.optim.Adam(net.parameters())
    offset = torch.zeros(1).to({device})
    for x, y in {data}:
        x, y = x.to({device}), y.to({device})
        loss = nn.functional.mse_loss(net(x) + offset, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
{call}
"""
PLAIN = {"parameter": 'device=torch.device("cpu")', "choice": "", "device": "device", "data": "loader"}
SAID = "the program names no device but the CPU, so it stays there"
ALONE = {
    "a default that nobody changes": {"call": "train(loader)"},
    "a text": {"call": "train(loader)", "parameter": 'device="cpu"'},
    "handed by the caller": {"call": 'train(loader, torch.device("cpu"))', "parameter": "device"},
    "without a loader": {"call": "train(loader)", "data": "[(torch.ones(4, 4), torch.ones(4, 1))]"},
}
OTHERS = {
    "another caller": {"call": 'train(loader, "cuda:0" if torch.cuda.is_available() else "cpu")'},
    "what a user names": {"call": "import fire\n\nfire.Fire(train)", "parameter": 'device="cpu"'},
    "a word for a GPU": {"call": "train(loader)", "choice": 'assert device != "cuda"'},
}


@pytest.mark.parametrize("name", ALONE)
def test_the_program_stays_on_the_cpu(convert_text, name):
    report, result = convert_text(SOURCE.format(**{**PLAIN, **ALONE[name]}))

    assert "Accelerator(cpu=True)" in result
    assert SAID in [note.message for note in report.of(Kind.NOTE)]


@pytest.mark.parametrize("name", OTHERS)
def test_where_others_have_a_say_nothing_is_taken_for_the_cpu(convert_text, name):
    report, result = convert_text(SOURCE.format(**{**PLAIN, **OTHERS[name]}))

    assert "cpu=True" not in result
    assert SAID not in [note.message for note in report.of(Kind.NOTE)]


NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, device=torch.device("cpu"), width=4):
        super().__init__()
        self.device = device
        self.layer = nn.Linear(width, 1)
        self.to(self.device)

    def forward(self, x):
        return torch.zeros(x.size(0), 1).to(self.device) + self.layer(x)
"""
SCRIPT = """
import torch
from net import Net
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(64, {width}), torch.randn(64, 1)
net = {made}
optimizer = torch.optim.Adam(net.parameters())
for step in range(10):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x.to(net.device)), y.to(net.device))
    loss.backward()
    optimizer.step()
"""


def test_what_one_script_passes_is_not_the_default_of_another(tmp_path, monkeypatch):
    made = 'Net(torch.device("cuda" if torch.cuda.is_available() else "cpu"))'
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "large.py").write_text(SCRIPT.format(width=4, made=made))
    (tmp_path / "small.py").write_text(SCRIPT.format(width=8, made="Net(width=8)"))
    monkeypatch.chdir(tmp_path)

    texts = {change.path: change.new.decode() for change in run(["."], Options()).changes}

    assert "Accelerator(cpu=True)" in texts["small.py"]
    assert "Accelerator()" in texts["large.py"]


BESIDE = """
import torch
from torch import nn, optim


def take(number):
    return torch.device(f"cuda:{number}")

{more}
torch.manual_seed(0)
rows = torch.ones(8, 4)
net = nn.Linear(4, 1)
optimizer = optim.Adam(net.parameters())
for step in range(9):
    loss = net(rows).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("more", "stays"), [("", True), ("torch.zeros(1, device=take(0))\n", False)])
def test_a_device_in_a_function_that_nobody_names(convert_text, more, stays):
    _, result = convert_text(BESIDE.format(number="{number}", more=more).lstrip("\n"))

    assert ("Accelerator(cpu=True)" in result) is stays


LATER = """
import torch
import unknown
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 4), torch.ones(8, 1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = unknown.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)


loader = DataLoader(data, batch_size=4)
model = Net()
optimizer = optim.Adam(model.parameters())
for x, y in loader:
    loss = nn.functional.mse_loss(model(x.view(-1, 4)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(data, batch_size=4)
model = Net().to(device)
optimizer = optim.Adam(model.parameters())
for x, y in loader:
    loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_layer_that_is_not_known_does_not_keep_batches_from_the_model(convert_text):
    _, result = convert_text(LATER.lstrip("\n"))

    assert result.count("loader, model, optimizer = accelerator.prepare(loader, model, optimizer)") == 2
