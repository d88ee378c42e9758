"""Devices that tensors are put on before there is an accelerator: every process would take the first GPU."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Runner:
    def __init__(self, device=None):
        {choice}
        {early}

    def train(self):
        loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        model = nn.Linear(2, 1).to(self.device)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


{run}
"""
CHOICE = 'self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
OWN = '"cuda:" + os.environ.get("LOCAL_RANK", "0")'
EARLY = "self.betas = torch.linspace(0, 1, 10).to(self.device)"
RUN = "runner = Runner()\nrunner.train()"
NAMED = {
    "a move": (CHOICE, EARLY, RUN),
    "in one line": (CHOICE, EARLY, "Runner().train()"),
    "where it is made": (CHOICE, "self.betas = torch.ones(3, device=self.device)", RUN),
    "by its name": ('self.device = "cuda"', EARLY, RUN),
    "the first GPU": (CHOICE.replace("cuda", "cuda:0", 1), EARLY, RUN),
    "in a function that is called there": (
        CHOICE,
        "self.prepare()\n\n    def prepare(self):\n        " + EARLY,
        RUN,
    ),
    "a default": (
        'if device is None:\n            device = torch.device("cuda")\n        self.device = device',
        EARLY,
        RUN,
    ),
}


def test_the_word_that_a_user_gives_stays_what_it_is(convert_text):
    told = "device != 'cuda'"
    choice = f'self.device = torch.device("cuda" if torch.cuda.is_available() and {told} else "cpu")'
    _, result = convert_text(SOURCE.format(choice=choice, early=EARLY, run=RUN))

    assert OWN in result
    assert told in result


@pytest.mark.parametrize("name", NAMED)
def test_each_process_names_its_own_gpu(convert_text, name):
    choice, early, run = NAMED[name]
    report, result = convert_text(SOURCE.format(choice=choice, early=early, run=run))

    assert OWN in result
    assert "import os\n" in result
    assert not report.of(Kind.LEFT)


STAYS = {
    "nothing is put there": (CHOICE, "", RUN),
    "it is put there in the training": (CHOICE, "\n    def show(self):\n        " + EARLY, RUN),
    "only the trained model's device": (CHOICE, "self.steps = 3", RUN),
    "on the CPU": (CHOICE, 'self.betas = torch.ones(3).to("cpu")', RUN),
}


@pytest.mark.parametrize("name", STAYS)
def test_a_device_that_is_used_later_is_the_current_one(convert_text, name):
    choice, early, run = STAYS[name]
    _, result = convert_text(SOURCE.format(choice=choice, early=early, run=run))

    assert "LOCAL_RANK" not in result


def test_a_device_that_is_asked_for_by_its_name_is_left(convert_text):
    choice = 'self.device = "cuda"'
    early = EARLY + '\n        if self.device == "cuda":\n            print("a GPU")'
    report, result = convert_text(SOURCE.format(choice=choice, early=early, run=RUN))

    assert "LOCAL_RANK" not in result
    assert [f.code for f in report.of(Kind.LEFT)] == ["MIG101"]


FILES = {
    "settings.py": 'import torch\n\ndevice = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n',
    "scores.py": """
import settings
import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.items = nn.Embedding(count, 4)
        self.graph = torch.eye(count).to(settings.device)

    def score(self, items):
        return (self.graph @ self.items.weight)[items].sum(1)


class Loss:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(self, items):
        loss = (self.model.score(items) - 1).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
    "main.py": """
import scores
import settings
import torch

torch.manual_seed(0)
model = scores.Scores(20).to(settings.device)
loss = scores.Loss(model)
for epoch in range(3):
    loss.step(torch.randint(0, 20, (8,)).to(settings.device))
""",
}


@pytest.fixture
def several(tmp_path, monkeypatch):
    def convert(*named):
        for name, text in FILES.items():
            (tmp_path / name).write_text(text)
        monkeypatch.chdir(tmp_path)
        return run([*named], Options())

    return convert


def test_a_device_that_a_file_of_settings_chooses_is_each_process_s_own(several):
    report = several(".")

    texts = {change.path: change.new.decode() for change in report.changes}
    assert OWN in texts["settings.py"]


def test_a_file_of_settings_that_was_not_named_is_said(several):
    report = several("main.py", "scores.py")

    assert "settings.py" not in {change.path for change in report.changes}
    assert any("settings.py, which was not named, puts tensors" in note.message for note in report.of(Kind.NOTE))


ENGINE = """
import argparse

import torch
from torch import nn, optim


class Engine:
    def __init__(self, device, scale):
        self.scale = scale
        self.model = nn.Linear(2, 1)
        self.model.to(device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y) * self.scale
        loss.backward()
        self.optimizer.step()


def main(args):
    torch.manual_seed(0)
    device = torch.device(args.device)
    {early}
    engine = Engine(device, {scale})
    for epoch in range(2):
        engine.train(torch.ones(8, 2).to(device), torch.ones(8, 1).to(device))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:3")
    main(parser.parse_args())
"""


@pytest.mark.parametrize(("early", "scale"), [("scale = torch.ones(1).to(device)", "scale"), ("", "2")])
def test_a_gpu_that_a_user_names_around_an_object_that_trains_is_the_processs_own(convert_text, early, scale):
    report, result = convert_text(ENGINE.format(early=early, scale=scale))

    own = 'device = torch.device("cuda:" + os.environ.get("LOCAL_RANK", "0") if torch.device(args.device).type'
    assert own + ' == "cuda" else args.device)\n' in result
    assert any("no longer chooses the GPU" in finding.message for finding in report.findings)
    assert "self.model.to(device)" not in result


MODULE = """
import torch
from torch import nn, optim

torch.manual_seed(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
x, y = torch.randn(8, 2), torch.randn(8, 1)
{early}


def train(model, optimizer):
    for epoch in range(3):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer)


main()
"""


def test_a_gpu_chosen_by_its_number_for_tensors_of_the_module_is_named_once(convert_text):
    """It is the process's own for them; that it stays there for others is no second change of the same words."""
    _, result = convert_text(MODULE.format(early="x, y = x.to(device), y.to(device)"))

    assert OWN in result
    assert "accelerator.backward(loss)" in result


def test_a_gpu_chosen_by_its_number_that_only_functions_read_goes_with_its_choice(convert_text):
    _, result = convert_text(MODULE.format(early=""))

    assert "LOCAL_RANK" not in result
    assert "torch.device(" not in result
    assert "accelerator.backward(loss)" in result
