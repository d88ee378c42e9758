"""Losses that get their name inside of an expression: `(loss := criterion(model(x), y)).backward()`."""

from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        (loss := nn.functional.mse_loss(model(x), y)).backward()
        optimizer.step()
    {below}
"""


def test_what_each_process_has_is_told(convert_text, remark):
    source = SOURCE.format(below="print(loss.item())").lstrip("\n")
    report, _ = convert_text(source)

    remark(report, source, "MIG114", "for x, y in", ("loss, read after this loop",), Kind.NOTE)


def test_processes_do_not_leave_the_training_by_it(refused_text):
    """One process left the training, and the others waited for it."""
    refused_text(SOURCE.format(below="if loss.item() < 0.1:\n        break"), "MIG122", "if loss.item()", ("loss",))


def test_what_is_the_same_on_all_is_no_matter(convert_text):
    report, result = convert_text(SOURCE.format(below="if (last := epoch) == 1:\n        break"))

    assert "accelerator.backward(loss := " in result
    assert not [each for each in report.findings if each.code in ("MIG114", "MIG122")]
