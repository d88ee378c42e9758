"""What a program that is not seen whole is told: no reason that another file may have done away with."""

from pathlib import Path

import pytest

from migrate.options import Options
from migrate.pipeline import run

STEP = """\
import math
import sys

import torch
from torch import nn


def train_one_epoch(model: nn.Module, loader, optimizer: torch.optim.Optimizer, rates, steps):
    for step, (x, y) in enumerate(loader.log_every(10)):
        if step >= steps:
            break
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        loss = nn.functional.cross_entropy(model(x), y)
        if not math.isfinite(loss.item()):
            sys.exit(1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
MAIN = """

{seed}
model = nn.Linear(2, 2)
train_one_epoch(model, {loader}, torch.optim.SGD(model.parameters(), lr=0.1), [0.1] * 9, 9)
"""


def codes(report):
    return {finding.code for finding in report.findings if finding.kind.name == "LEFT"}


def test_a_function_that_nobody_is_seen_to_call_is_told_that_alone(convert_text):
    report, text = convert_text(STEP)
    assert text == STEP
    assert codes(report) == {"MIG907"}


@pytest.mark.parametrize("loader", ["unknown.loader()", "sys.modules['data'].loader()"])
def test_one_that_is_called_with_data_that_nobody_knows_is_told_what_may_part_processes(loader, convert_text):
    source = STEP + MAIN.format(seed="", loader=loader)
    source = source.replace("import torch\n", "import torch\nimport unknown\n", 1)
    report, text = convert_text(source)
    assert text == source
    assert "MIG122" in codes(report)


FIT = """\
import numpy as np
from torch import nn


def fit(model, x, y, optimizer):
    for row in np.random.permutation(len(x)):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[row]), y[row])
        if loss.item() > 9:
            break
        loss.backward()
        optimizer.step()
"""
RUN = """\
import numpy as np
import torch
from torch import nn

from fit import fit

{seeds}
x, y = torch.randn(32, 2), torch.randn(32, 1)
model = nn.Linear(2, 1)
for rate in (0.1, 0.01):
    fit(model, x, y, torch.optim.SGD(model.parameters(), lr=rate))
"""


@pytest.mark.parametrize("is_seeded", [True, False])
def test_a_program_without_a_home_is_seeded_by_the_file_that_it_is_entered_from(is_seeded):
    Path("fit.py").write_text(FIT, encoding="utf-8")
    seeds = "np.random.seed(0)\ntorch.manual_seed(0)" if is_seeded else ""
    Path("main.py").write_text(RUN.format(seeds=seeds), encoding="utf-8")
    report = run(["main.py", "fit.py"], Options())
    assert codes(report) == ({"MIG901"} if is_seeded else {"MIG901", "MIG122"})
