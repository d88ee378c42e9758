"""What a model goes on with from batch to batch: `migrate/programs/values/states_kept.py`."""

import pytest

from migrate.report.model import Kind

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 8, batch_first=True)
        self.head = nn.Linear(8, 1)
        self.state = None
        self.seen = 0

    def reset(self, size=8):
        self.state = (torch.zeros(1, size, 8), torch.zeros(1, size, 8))

    def forward(self, x):
        {forward}
        return self.head(out[:, -1])


def evaluate(net, loader):
    net.eval()
    net.state = None
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            {evaluation}
            total += nn.functional.mse_loss(net(x), y, reduction="sum").item()
    print(total)


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 5, 4), torch.randn(32, 1))
    loader, val_loader = DataLoader(data, batch_size=8), DataLoader(data, batch_size=8)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        net.train()
        net.state = None
        for x, y in loader:
            {step}
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
        evaluate(net, val_loader)


main()
"""
DETACHED = "out, state = self.cell(x, self.state)\n        self.state = tuple(part.detach() for part in state)"
KEPT = {
    "kept below": DETACHED,
    "kept at once": "out, self.state = self.cell(x, self.state and tuple(s.detach() for s in self.state))",
    "made where there is none": f"if self.state is None:\n            self.reset(len(x))\n        {DETACHED}",
    "in a method": (
        "out = self.run(x)\n        return self.head(out[:, -1])\n\n    def run(self, x):\n"
        "        out, self.state = self.cell(x, self.state and tuple(s.detach() for s in self.state))\n"
        "        return out\n\n    def other(self, out):"
    ),
}
ANEW = {
    "set anew in the call": f"self.reset(len(x))\n        {DETACHED}",
    "set for a method": (
        "self.state = x.mean()\n        return self.run(x)\n\n    def run(self, x):\n"
        "        out, _ = self.cell(x + self.state)\n        return self.head(out[:, -1])\n\n    def other(self, out):"
    ),
    "not read": "out, state = self.cell(x)\n        self.state = state",
    "read below": "out, self.state = self.cell(x)\n        out = out + self.state[0].mean()",
    "moved to where the batch is": "self.state = self.state.to(x.device, x.dtype)\n        out = x + self.state.mean()",
    "moved there by a name": (
        "where = x.device\n        self.state = self.state.to(where)\n        out = x + self.state.mean()"
    ),
    "put where the batch is": "self.state = self.state.type_as(x)\n        out = x + self.state.mean()",
    "a count": f"{DETACHED.splitlines()[0].replace('self.state', 'None')}\n        self.seen = self.seen + 1",
    "made to fit": (
        "if self.state is None or self.state.size(0) != len(x):\n            self.state = torch.zeros_like(x)\n"
        "        out, _ = self.cell(x + self.state)"
    ),
}
IN_ROUND = {"by an attribute": "net.state = None", "by a method": "net.reset()"}


def program(forward, evaluation="pass", step="pass"):
    return PROGRAM.format(forward=forward, evaluation=evaluation, step=step)


def in_full(report):
    return [f for f in report.of(Kind.NOTE) if "carries self.state from batch to batch" in f.message]


def of_training(report):
    return [f for f in report.of(Kind.NOTE) if "the loss is computed from self.state" in f.message]


@pytest.mark.parametrize("name", KEPT)
def test_an_evaluation_with_what_the_last_batch_left_is_run_in_full_and_the_training_told(convert_text, name):
    report, result = convert_text(program(KEPT[name]))

    assert len(in_full(report)) == 1
    assert len(of_training(report)) == 1
    assert "gather" not in result


@pytest.mark.parametrize("name", ANEW)
def test_what_each_call_sets_anew_is_shared_out(convert_text, name):
    report, result = convert_text(program(ANEW[name]))

    assert not in_full(report)
    assert not of_training(report)
    assert "gather_for_metrics" in result


@pytest.mark.parametrize("name", IN_ROUND)
def test_so_is_what_each_round_sets_anew(convert_text, name):
    report, result = convert_text(program(KEPT["kept below"], evaluation=IN_ROUND[name], step=IN_ROUND[name]))

    assert not in_full(report)
    assert not of_training(report)
    assert "gather_for_metrics" in result


def test_what_is_kept_in_training_alone_is_no_matter_of_an_evaluation(convert_text):
    forward = "out, state = self.cell(x, self.state)\n        if self.training:\n            self.state = state"
    report, _ = convert_text(program(forward))

    assert not in_full(report)
    assert len(of_training(report)) == 1


def test_the_evaluation_is_that_of_one_process(convert_text, numbers_printed):
    source = program(KEPT["made where there is none"])
    _, result = convert_text(source)
    untrained = result.replace("        optimizer.step()", "        optimizer.zero_grad()")
    assert untrained != result

    assert numbers_printed(untrained, 2) == numbers_printed(untrained, 1)
