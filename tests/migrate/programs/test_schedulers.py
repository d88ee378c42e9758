"""Which schedulers are prepared (contract E5)."""

import pytest

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
