"""Training loops that may begin in eval mode: `migrate/programs/evaluation/left_in_eval.py`."""

import pytest

from migrate.options import Target

PROGRAM = """
import os
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
size = int(os.environ.get("BATCH", "8"))
x, y = torch.randn(64, 4), torch.arange(64) % 2
device = "cuda" if torch.cuda.is_available() else "cpu"
loader = DataLoader(TensorDataset(x[:48], y[:48]), batch_size=size, shuffle=True)
held = DataLoader(TensorDataset(x[48:], y[48:]), batch_size=size)
model = nn.Linear(4, 2).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
scheduler = optim.lr_scheduler.StepLR(optimizer, 6, gamma=0.5)


def validate():
    model.eval()
    right = 0
    with torch.no_grad():
        for a, b in held:
            right += (model(a.to(device)).argmax(1) == b.to(device)).sum().item()
    {validated}
    return right


def step(a, b):
    {stepping}
    loss = nn.functional.cross_entropy(model(a.to(device)), b.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()


for epoch in range(3):
    {epoch}
    for a, b in {over}:
        step(a, b)
    right = validate()
    print(scheduler.get_last_lr()[0], right)
"""
FILLINGS = {"validated": "pass", "stepping": "pass", "epoch": "pass", "over": "loader"}
SAYING = "accelerator.training_batches(loader)"
STEPPING = pytest.mark.parametrize("holes", [{}, {"stepping": "model.train()"}], ids=["never again", "in each step"])


def program(**holes):
    return PROGRAM.format(**{**FILLINGS, **holes})


@STEPPING
def test_a_training_after_an_evaluation_says_that_it_is_one(convert_text, holes):
    _, result = convert_text(program(**holes))

    assert f"for a, b in {SAYING}:" in result


NOT_LEFT = {
    "at the top of each epoch": {"epoch": "model.train()"},
    "at the end of the evaluation": {"validated": "model.train()"},
}


@pytest.mark.parametrize("name", NOT_LEFT)
def test_others_stay_as_they_are(convert_text, name):
    _, result = convert_text(program(**NOT_LEFT[name]))

    assert "training_batches" not in result
    assert "accelerator.backward(loss)" in result


def test_accelerate_knows_no_such_passes(convert_text):
    _, result = convert_text(program(), target=Target.ACCELERATE)

    assert "training_batches" not in result
    assert "accelerator.backward(loss)" in result


@STEPPING
def test_processes_train_as_one_with_batches_of_the_world_size(convert_text, numbers_printed, monkeypatch, holes):
    source = program(**holes).replace("scheduler.step()", "pass")
    _, result = convert_text(source)
    expected = numbers_printed(source, 1)
    monkeypatch.setenv("BATCH", "4")

    assert numbers_printed(result, 2) == pytest.approx(expected)


@STEPPING
def test_the_schedule_runs_in_samples_in_every_epoch(convert_text, numbers_printed, holes):
    source = program(**holes)
    _, result = convert_text(source)

    assert numbers_printed(result, 2)[::2] == pytest.approx(numbers_printed(source, 1)[::2])


def test_a_length_in_its_header_is_that_of_a_training(convert_text):
    counted = "for i, (a, b) in enumerate(loader, start=epoch * len(loader)):"
    _, result = convert_text(PROGRAM.format(**FILLINGS).replace("for a, b in loader:", counted))

    over = "enumerate(accelerator.training_batches(loader), start=epoch * accelerator.steps_per_epoch(loader))"
    assert f"for i, (a, b) in {over}:" in result
