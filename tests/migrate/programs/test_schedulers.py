"""Which schedulers are prepared (contract E5)."""

import pytest

from migrate.options import Options
from migrate.pipeline import run_text
from migrate.programs.program import programs
from migrate.programs.schedule.schedulers import Horizon, Pace, schedules

PROGRAM = """
import torch
from torch import nn, optim
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR, StepLR
from torch.utils.data import DataLoader
loader = DataLoader(data)
{before}
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
{after}
for epoch in range(3):
    for x, y in loader:
        net(x).sum().backward()
        opt.step()
        {batch}
    {epoch}
"""

EITHER = """
if name == "plateau":
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
else:
    sched = StepLR(opt, 1)
"""
CASES = {
    "per epoch": ({"after": "sched = StepLR(opt, 1)", "epoch": "sched.step()"}, []),
    "per batch, horizon measured after prepare": (
        {"after": "steps = 3 * len(loader)\nsched = OneCycleLR(opt, 0.1, steps)", "batch": "sched.step()"},
        [],
    ),
    "per batch, horizon measured before": (
        {"before": "steps = 3 * len(loader)", "after": "sched = OneCycleLR(opt, 0.1, steps)", "batch": "sched.step()"},
        ["sched"],
    ),
    "per batch, fixed horizon": ({"after": "sched = OneCycleLR(opt, 0.1, 100)", "batch": "sched.step()"}, ["sched"]),
    "on a metric": (
        {"after": "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)", "epoch": "sched.step(loss)"},
        [],
    ),
    "per epoch, or on a metric": (
        {"after": EITHER, "epoch": "sched.step(loss) if name == 'plateau' else sched.step()"},
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_prepared(decide, name):
    parts, expected = CASES[name]
    _, conversion = decide(PROGRAM.format(**{"before": "", "after": "", "batch": "pass", "epoch": "pass"} | parts))

    assert [named.target for named in conversion.prepared_schedulers] == expected


PACES = {
    "per epoch": (Pace.EPOCH, Horizon.EPOCHS, 0),
    "per batch, horizon measured after prepare": (Pace.BATCH, Horizon.LOADER, 1),
    "per batch, horizon measured before": (Pace.BATCH, Horizon.LOADER, 1),
    "per batch, fixed horizon": (Pace.BATCH, Horizon.ABSOLUTE, 0),
    "on a metric": (Pace.METRIC, Horizon.EPOCHS, 0),
}


@pytest.mark.parametrize("name", PACES)
def test_pace_and_horizon(analysed, name):
    parts, _ = CASES[name]
    empty = {"before": "", "after": "", "batch": "pass", "epoch": "pass"}
    facts, loops = analysed(PROGRAM.format(**empty | parts))
    (program,) = programs(facts, loops)
    (schedule,) = schedules(facts, loops, program)

    assert (schedule.pace, schedule.horizon, len(schedule.measured)) == PACES[name]
    assert len(schedule.steps) == 1


WARMED = """
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def warm(optimizer, num_warmup_steps, num_training_steps):
    rate = lambda step: min(step / max(1, num_warmup_steps), 1 - step / num_training_steps)
    return optim.lr_scheduler.LambdaLR(optimizer, rate)


parser = argparse.ArgumentParser()
parser.add_argument("--warmup", type=int, default=4)
args = parser.parse_args()
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(16, 2), torch.ones(16, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
total = 3 * len(loader)
scheduler = {made}
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        scheduler.step()
"""
IN_STEPS = "from transformers import get_linear_schedule_with_warmup\n"


@pytest.mark.parametrize(
    ("made", "is_prepared"),
    [
        ("warm(optimizer, 4, total)", True),
        ("warm(optimizer, args.warmup, total)", True),
        ("warm(optimizer, num_warmup_steps=args.warmup, num_training_steps=total)", True),
        ("get_linear_schedule_with_warmup(optimizer, args.warmup, total)", True),
        ("get_linear_schedule_with_warmup(optimizer, num_warmup_steps=0, num_training_steps=total)", False),
        ("warm(optimizer, 0, total)", False),
        ("warm(optimizer, int(0.1 * total), total)", False),
        ("optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total)", False),
    ],
)
def test_a_schedule_with_a_number_of_steps_beside_a_length_is_made_above_prepare(decide, made, is_prepared):
    _, conversion = decide(IN_STEPS * made.startswith("get_") + WARMED.format(made=made))

    assert [named.target for named in conversion.prepared_schedulers] == ["scheduler"] * is_prepared


def test_where_the_training_may_end_after_a_number_of_steps_it_is_told(convert_steps):
    told = "scheduler is given args.warmup steps beside a length: on N processes each of them takes N batches"

    assert [told in finding.message for finding in convert_steps if finding.code == "MIG118"] == [True]


@pytest.fixture
def convert_steps():
    """What is said of a training that ends after --most steps, or after its epochs."""
    source = WARMED.format(made="warm(optimizer, args.warmup, total)")
    source = source.replace(
        "total = 3 * len(loader)", "total = args.most if args.most > 0 else 3 * len(loader)\nstep = 0"
    )
    source = source.replace("args = ", 'parser.add_argument("--most", type=int, default=-1)\nargs = ')
    source += "        step += 1\n        if args.most > 0 and step > args.most:\n            break\n"
    return run_text(source.encode(), "program.py", Options()).findings
