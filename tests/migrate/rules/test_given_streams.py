"""What is drawn from a stream of its own is as alike on all processes as that stream is seeded."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
stream = torch.Generator().manual_seed(0)
rows = torch.randn(16, 4GIVEN)


def main():
    model = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = copied(model)
    for epoch in range(3):
        losses = [step(model, optimizer, row.to(device)) for row in rows.split(4)]
        best.load_state_dict(model.state_dict())
    print(losses)


def copied(model):
    other = nn.Linear(4, 1)
    other.load_state_dict(model.state_dict())
    return other


def step(model, optimizer, row):
    optimizer.zero_grad()
    loss = model(row).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


main()
"""


@pytest.mark.parametrize(("given", "refused"), [(", generator=stream", False), (", generator=None", True), ("", True)])
def test_data_that_are_drawn_before_there_is_an_accelerator(convert_text, given, refused):
    report, result = convert_text(PROGRAM.replace("GIVEN", given))

    assert ("before there is an accelerator to agree on a seed with" in str(report.findings)) is refused
    assert ("accelerator.backward(loss)" in result) is not refused
