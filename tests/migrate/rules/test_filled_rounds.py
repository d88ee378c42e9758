"""Sums that may count samples twice, where the last batches of N processes are filled up: this is told."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(24, 2), torch.randn(24, 1))
loader = DataLoader(data, batch_size=16)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
size = len(data)
total, seen = 0.0, 0
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += {added}
    seen += len(x)
print({shown})
"""
TOLD = {
    "the data set": ("loss.item() * len(x)", "total / len(data)"),
    "that of the loader": ("loss.item() * len(x)", "total / len(loader.dataset)"),
    "by a name": ("loss.item() * len(x)", "total / size"),
    "hits": ("(y > 0).sum().item()", "100 * total / len(data)"),
}
UNTOLD = {
    "what is counted": ("loss.item() * len(x)", "total / seen"),
    "the batches": ("loss.item()", "total / len(loader)"),
    "nothing": ("loss.item() * len(x)", "total"),
}


@pytest.mark.parametrize("name", [*TOLD, *UNTOLD])
def test_what_is_divided_by_all_samples_may_have_some_twice(convert_text, name):
    added, shown = (TOLD | UNTOLD)[name]
    report, result = convert_text(PROGRAM.format(added=added, shown=shown))

    assert "accelerator.prepare(" in result
    assert any("may count samples twice (total)" in finding.message for finding in report.findings) is (name in TOLD)


def test_they_are_counted_twice_and_the_way_out_counts_them_as_well(convert_text, numbers_printed):
    printed = {
        shown: numbers_printed(convert_text(PROGRAM.format(added="len(x)", shown=shown))[1], 2)
        for shown in ("total / len(data)", "total / seen")
    }

    assert printed == {"total / len(data)": [32 / 24], "total / seen": [1.0]}
