"""Which schedulers are prepared (contract E5)."""

import pytest

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
}


@pytest.mark.parametrize("name", CASES)
def test_prepared(decide, name):
    parts, expected = CASES[name]
    _, conversion = decide(PROGRAM.format(**{"before": "", "after": "", "batch": "pass", "epoch": "pass"} | parts))

    assert [named.target for named in conversion.prepared_schedulers] == expected
