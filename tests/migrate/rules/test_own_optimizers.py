"""Optimizers that set their own rate by the steps they have taken: `migrate/programs/schedule/own_optimizers.py`."""

import pytest

from migrate.report.model import Kind

CLASS = """
class Warm(Optimizer):
    def __init__(self, params, lr, warmup=0.1, t_total=-1, betas=(0.9, 0.999)):
        super().__init__(params, dict(lr=lr, warmup=warmup, t_total=t_total, betas=betas))

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                {rate}
                p.data.add_(p.grad, alpha=-lr)
                state["step"] += 1
"""
PROGRAM = """
import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset
{own}

epochs = 3
loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = {made}
step = 0
for epoch in range(epochs):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        step += 1
        {end}
"""
RATE = 'lr = group["lr"] * (1 - state["step"] / group["t_total"])'
LIBRARY = "from pytorch_pretrained_bert.optimization import BertAdam as Warm"
TOTALS = ["epochs * len(loader)", "100", "epochs * int(8 / 4)"]


def _program(rate=RATE, made="Warm(model.parameters(), 0.1, t_total=100)", own=None, end="pass"):
    return PROGRAM.format(own=own or CLASS.format(rate=rate), made=made, end=end)


@pytest.mark.parametrize("total", TOTALS)
@pytest.mark.parametrize("own", [None, LIBRARY], ids=["own", "of a library"])
def test_a_share_of_a_number_of_steps_is_told(refused_text, own, total):
    source = _program(made=f"Warm(model.parameters(), lr=0.1, warmup=0.1, t_total={total})", own=own)

    refused_text(source, "MIG118", "optimizer = Warm(", [f"how many of `{total}` steps it has taken"])


@pytest.mark.parametrize(
    "rate",
    [
        'lr = group["lr"] * min(1.0, float(state["step"]) / max(1, group["t_total"]))',
        'lr = state["step"] * group["lr"] / group["t_total"]',
    ],
)
def test_so_is_one_that_is_written_in_another_way(refused_text, rate):
    refused_text(_program(rate), "MIG118", "optimizer = Warm(", ["how many of `100` steps"])


@pytest.mark.parametrize(
    ("rate", "made"),
    [
        (RATE, "Warm(model.parameters(), 0.1)"),
        (RATE, "Warm(model.parameters(), 0.1, t_total=-1)"),
        ('lr = group["lr"] / (1 - group["betas"][0] ** (state["step"] + 1))', "Warm(model.parameters(), 0.1, 5, 100)"),
        ('lr = group["lr"] * (0.9 ** state["step"]) / group["t_total"]', "Warm(model.parameters(), 0.1, 5, 100)"),
    ],
    ids=["left out", "switched off", "a correction", "a power"],
)
def test_what_has_no_such_number_converts(convert_text, rate, made):
    report, _ = convert_text(_program(rate, made))

    assert not report.of(Kind.LEFT)


def test_where_the_training_ends_after_a_number_of_steps_it_goes_by_them_and_is_told(convert_text):
    report, _ = convert_text(_program(end="if step > 100: break"))

    assert any("`100` goes by the steps after which the training ends" in n.message for n in report.of(Kind.NOTE))


WRITING = """
class Warm(torch.optim.Adam):
    def __init__(self, params, lr, total):
        super().__init__(params, lr=lr)
        self.base, self.total, self.steps = lr, total, 0

    def step(self, closure=None):
        self.steps += 1
        for group in self.param_groups:
            group["lr"] = self.base * (1 - self.steps / self.total)
        super().step()
"""


def test_one_that_writes_its_rate_into_its_groups_has_its_count_multiplied(convert_text):
    _, result = convert_text(_program(own=WRITING, made="Warm(model.parameters(), 0.1, 100)"))

    assert "(1 - self.steps * accelerator.num_processes / self.total)" in result
