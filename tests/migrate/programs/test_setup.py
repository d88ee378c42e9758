"""The arguments of the constructor: where the accelerator goes when they need names, and how they are written."""

import pytest

from migrate.options import Options
from migrate.pipeline import run_text
from migrate.programs.prepare import setup
from migrate.programs.prepare.setup import Argument, written

PROGRAM = """\
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
{above}
device = torch.device("cuda")
{below}
net = nn.Linear(1, 1).to(device)
opt = optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(data)
{late}
for x, y in loader:
    loss = (net(x.to(device)) - y.to(device)).sum()
    loss.backward()
    opt.step()
"""
SETTING = "steps = int(input())"
STEPS = Argument("gradient_accumulation_steps", "steps", frozenset({"steps"}))


@pytest.fixture
def asks(monkeypatch):
    def ask(*arguments):
        monkeypatch.setattr(setup, "DECIDERS", (lambda facts, loops, program: arguments,))

    return ask


def converted(**holes):
    text = PROGRAM.format(**{"above": "", "below": "", "late": "", **holes})
    report = run_text(text.encode(), "program.py", Options())
    return report.changes[0].new.decode() if report.changes else None, report


def test_the_accelerator_takes_the_place_of_the_device_where_its_names_are_known(asks):
    asks(STEPS)
    text, _ = converted(above=SETTING)

    assert f"{SETTING}\naccelerator = Accelerator(gradient_accumulation_steps=steps)\n" in text
    assert "device = " not in text


def test_the_device_is_chosen_later_where_its_names_come_later(asks):
    asks(STEPS)
    text, _ = converted(below=SETTING, late="z = torch.ones(1, device=device)\nz = z.to(device) + z.to(device)")

    made = "accelerator = Accelerator(gradient_accumulation_steps=steps)\ndevice = accelerator.device\n"
    assert f"{SETTING}\n{made}" in text
    assert text.count("device = ") == 1


def test_a_device_that_is_read_before_is_refused(asks):
    asks(STEPS)
    text, report = converted(below=f"print(device)\n{SETTING}")

    assert text is None
    assert any("device is read here, before steps" in finding.message for finding in report.findings)


def test_a_device_that_is_looked_at_among_the_imports_is_chosen_there():
    text, _ = converted(below="device\nimport math")

    assert "accelerator = Accelerator()\ndevice = accelerator.device\ndevice\nimport math\n" in text
    assert text.index("from runtime import Accelerator") < text.index("accelerator = ")


def test_a_device_that_is_looked_at_above_the_gpus_that_can_be_seen_is_refused():
    text, report = converted(below='device\nos.environ["CUDA_VISIBLE_DEVICES"] = "1"\nimport math')

    assert text is None
    assert any("device is read here, before CUDA_VISIBLE_DEVICES" in finding.message for finding in report.findings)


def test_a_name_that_comes_after_the_models_is_refused(asks):
    asks(STEPS)
    text, report = converted(late=SETTING)

    assert text is None
    assert any(finding.code == "MIG100" and "steps" in finding.message for finding in report.findings)


def test_handlers_are_gathered_in_one_list_and_imported(asks):
    ddp = Argument("kwargs_handlers", "A(x=1)", imports=("A",))
    asks(ddp, Argument("kwargs_handlers", "B()", imports=("B",)), ddp, Argument("split_batches", "True"))
    text, _ = converted()

    assert "from runtime import A, Accelerator, B\n" in text
    assert "accelerator = Accelerator(split_batches=True, kwargs_handlers=[A(x=1), B()])" in text


def test_the_first_argument_of_a_name_counts(asks):
    asks(Argument("split_batches", "True"), Argument("split_batches", "False"))

    assert "Accelerator(split_batches=True)" in converted()[0]


def test_no_arguments_are_written_as_nothing():
    assert written([]) == ""
