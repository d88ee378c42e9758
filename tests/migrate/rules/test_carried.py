"""What a step leaves for the loss of the next one: each process goes on with what its own batches left."""

import pytest

from migrate.report.model import Kind

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(2, 2)

    def forward(self, x, state):
        state = self.cell(x, state)
        return state, state


def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8).long()), batch_size=4)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    center, state, before, scale = torch.zeros(2), torch.zeros(4, 2), torch.zeros(4, 2), 1.0
    for epoch in range(2):
        for i, (x, y) in enumerate(loader):
            {above}
            output, new = model(x, state)
            loss = criterion({of}, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {step}


main()
"""
TOLD = {
    "a mean that moves": ("output - center", "center = 0.9 * center + 0.1 * output.detach().mean(0)"),
    "one that moves in place": ("output - center", "center.mul_(0.9).add_(output.detach().mean(0), alpha=0.1)"),
    "a state": ("output", "state = new.detach()"),
    "the batch before": ("output + before", "before = x"),
}
NOT_TOLD = {
    "made anew in each step": {"above": "state = torch.zeros(len(x), 2)", "step": "state = new.detach()"},
    "taken from the batch": {"above": "x = x.float()"},
    "not read by the loss": {"step": "before = output.detach()"},
    "only shown": {"above": "print(before.sum())", "step": "before = output.detach()"},
    "of no batch": {"of": "output - center", "step": "center = 0.9 * center"},
    "by the epoch": {"of": "output * scale", "step": "scale = scale * 0.99"},
    "a number of which the mean is taken": {"of": "output * scale", "step": "scale = 0.9 * scale + 0.1 * loss.item()"},
}


def notes(convert_text, **holes):
    source = PROGRAM.format(**{"above": "pass", "of": "output", "step": "pass", **holes})
    report, result = convert_text(source)
    assert "accelerator.backward(loss)" in result
    said = [note for note in report.of(Kind.NOTE) if "carries on from its own batches only" in note.message]
    return [source.splitlines()[note.line - 1].strip() for note in said]


@pytest.mark.parametrize("name", TOLD)
def test_what_a_process_carries_on_of_its_own_batches_is_told(convert_text, name):
    of, step = TOLD[name]

    assert notes(convert_text, of=of, step=step) == [step]


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_all_have_alike_or_no_loss_goes_by_is_not(convert_text, name):
    assert not notes(convert_text, **NOT_TOLD[name])


OF_A_LOSS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Centered(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, output):
        loss = (output - self.center).pow(2).mean()
        self.follow(output)
        return loss

    @torch.no_grad()
    def follow(self, output):
        mean = output.sum(0) / len(output)
        {kept}


loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = Centered()
for (x,) in loader:
    loss = criterion(model(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BUFFER = 'self.register_buffer("center", torch.zeros(2))'
PLAIN = "self.center = torch.zeros(2)"
MOVES = "self.center = 0.9 * self.center + 0.1 * mean"


@pytest.mark.parametrize(
    ("made", "kept", "is_said"),
    [
        (BUFFER, MOVES, True),
        (PLAIN, MOVES, True),
        (BUFFER, "self.center.mul_(0.9).add_(mean, alpha=0.1)", True),
        (BUFFER, "self.center = 0.9 * self.center", False),
        (BUFFER, "print(mean)", False),
    ],
)
def test_what_a_loss_keeps_in_a_buffer_is_each_process_s_own(convert_text, made, kept, is_said):
    """Nothing gives the others what the main process has of it, as they get the buffers of a model."""
    report, _ = convert_text(OF_A_LOSS.format(made=made, kept=kept))

    assert report.changes
    told = [
        finding for finding in report.of(Kind.NOTE) if "self.center, which each process carries on" in finding.message
    ]
    assert len(told) == is_said
