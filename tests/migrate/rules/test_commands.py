"""Options of click, fire and typer: `@click.option("--device")` gives a parameter what `args.device` would be."""

import pytest

BODY = """\
    torch.manual_seed(0)
    {choice}
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    for epoch in range(epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


"""
PROGRAM = (
    """\
import click
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


@click.command()
{option}
@click.option("--epochs", type=int, default=2)
def main(device, epochs):
"""
    + BODY
    + "main()\n"
)
OPTIONS = [
    '@click.option("--device", default="cuda")',
    '@click.option("-d", "--device", default="cuda", help="where to train")',
    '@click.option("--on", "device", default="cuda")',
    '@click.argument("device")',
]
CHOICES = ["print(device)", 'if not torch.cuda.is_available():\n        device = "cpu"']


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("option", OPTIONS)
def test_a_device_that_an_option_names_goes_on_deciding(convert_text, option, choice):
    _, result = convert_text(PROGRAM.format(option=option, choice=choice))

    assert 'Accelerator(cpu=torch.device(device).type == "cpu")' in result
    assert ".to(device)" not in result


def test_a_parameter_that_no_option_names_is_not_known(refused_text):
    source = PROGRAM.format(option='@click.option("--gpu", "gpu")', choice="print(device)")
    source = source.replace("x, y = x.to(device), y.to(device)", "pass")

    refused_text(source, "MIG103", "model = nn.Linear(2, 1).to(device)", ["moves to is not known"])


HANDED = """\
import click
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, device="cuda"):
        self.model = model
        self.device = device

    def train(self, loader):
        model = self.model.to(self.device)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x.to(self.device)), y.to(self.device)).backward()
            optimizer.step()


@click.command()
@click.option("--device", default="cuda")
def main(device):
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    Trainer(nn.Linear(2, 1), device).train(loader)


main()
"""


def test_an_option_is_not_taken_for_the_default_of_what_it_is_handed_to(refused_text):
    refused_text(HANDED, "MIG103", "model = self.model.to(self.device)", ["self.device is what a user names"])


CALLED = (
    """\
{imports}
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

{decorator}
def main(device: str = "cuda", epochs: int = 2):
"""
    + BODY
    + "{started}\n"
)
STARTED = {
    "fire": {"imports": "import fire", "decorator": "", "started": "fire.Fire(main)"},
    "typer": {"imports": "import typer", "decorator": "", "started": "typer.run(main)"},
    "a command of typer": {
        "imports": "import typer\n\napp = typer.Typer()",
        "decorator": "@app.command()",
        "started": "app()",
    },
}
MADE = ["print(epochs)", 'device = torch.device(device if torch.cuda.is_available() else "cpu")']


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("name", STARTED)
def test_what_the_command_line_fills_is_not_taken_for_its_default(convert_text, name, made):
    report, result = convert_text(CALLED.format(choice=made, **STARTED[name]))

    assert 'Accelerator(cpu=torch.device(device).type == "cpu")' in result
    assert any("no longer chooses the GPU" in finding.message for finding in report.findings)


def test_the_default_of_a_function_that_the_program_calls_is_what_it_says(convert_text):
    plain = {"imports": "import os", "decorator": "", "started": "main()"}
    _, result = convert_text(CALLED.format(choice="print(epochs)", **plain))

    assert "accelerator = Accelerator()\n" in result
