"""A schedule of one phase of a training that has several, each with an end of its own (contract E5)."""

import pytest

from migrate.report.model import Kind

PHASES = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.rand(64, 2)), batch_size={size}, shuffle=True)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{made}
batches = iter(loader)
for step in range({steps}):
    try:
        (x,) = next(batches)
    except StopIteration:
        batches = iter(loader)
        (x,) = next(batches)
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    {first}
print(optimizer.param_groups[0]["lr"])
for (x,) in loader:
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    {second}
print(optimizer.param_groups[0]["lr"], round(model.weight.sum().item(), 5))
"""
MADE = "schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=12)"
STEP = "schedule.step()"
BY_HAND = 'optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / 24)'


def _notes(report):
    return [finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG118"]


def test_a_schedule_of_a_number_of_steps_goes_by_those_beside_a_phase_of_epochs(convert_text):
    report, result = convert_text(PHASES.format(size=8, made=MADE, steps=12, first=STEP, second="pass"))

    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in result
    assert [each for each in _notes(report) if "the steps after which the training ends" in each]


def test_a_schedule_of_the_epochs_beside_a_phase_of_steps_is_prepared(convert_text):
    report, result = convert_text(PHASES.format(size=8, made=MADE, steps=12, first="pass", second=STEP))

    assert "accelerator.prepare(\n    loader, model, optimizer, schedule\n)" in result
    assert [each for each in _notes(report) if "prepared, so that N processes" in each]


def test_a_rate_that_a_phase_of_steps_sets_itself_goes_by_them(convert_text):
    report, result = convert_text(PHASES.format(size=8, made="", steps=12, first=BY_HAND, second="pass"))

    assert BY_HAND in result
    assert [each for each in _notes(report) if "goes by the steps" in each]


def test_a_schedule_of_both_phases_is_prepared(convert_text):
    """One of them has N times as few steps: it goes by the samples."""
    _, result = convert_text(PHASES.format(size=8, made=MADE, steps=12, first=STEP, second=STEP))

    assert "accelerator.prepare(\n    loader, model, optimizer, schedule\n)" in result


def test_a_rate_of_the_epochs_that_waits_for_a_batch_is_refused_beside_a_phase_of_steps(refused_text):
    second = 'optimizer.param_groups[0]["lr"] *= 0.99'
    refused_text(PHASES.format(size=8, made="", steps=12, first="pass", second=second), "MIG118", second, ["at every"])


@pytest.mark.parametrize(("first", "made"), [(STEP, MADE), (BY_HAND, "")])
def test_the_rates_are_those_of_one_process(convert_text, numbers_printed, first, made):
    alone = PHASES.format(size=8, made=made, steps=12, first=first, second="pass")
    _, halves = convert_text(PHASES.format(size=4, made=made, steps=12, first=first, second="pass"))

    assert numbers_printed(alone, 1) == pytest.approx(numbers_printed(halves, 2), abs=1e-4)
