"""Losses over batches that are objects: `batch.mask` is of the batch as `batch["mask"]` is."""

import pytest

PROGRAM = """
    from dataclasses import dataclass

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    @dataclass
    class Batch:
        rows: torch.Tensor
        y: torch.Tensor
        mask: torch.Tensor

        def to(self, device):
            return Batch(self.rows.to(device), self.y.to(device), self.mask.to(device))


    def collate(samples):
        return Batch(*map(torch.stack, zip(*samples)))


    def error(output, y, mask):
        return {loss}


    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(*torch.ones(3, 8, 2)), batch_size=4, collate_fn=collate)
    for batch in loader:
        batch = batch.to(device)
        loss = error(model(batch.rows), batch.y, batch.mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TOLD = {
    "a masked mean": ("((output - y) ** 2 * mask).sum() / mask.sum().clamp(min=1)", "a part of the batch"),
    "a sum": ("((output - y) ** 2).sum()", "is a sum"),
}
EVEN = {
    "a mean": "((output - y) ** 2).mean()",
    "a sum of columns": "((output - y) ** 2).sum(1).mean()",
    "a sum of something else": "((output - y) ** 2).mean() * torch.ones(3).sum()",
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_no_plain_mean_over_their_fields_is_told(convert_text, name):
    loss, says = TOLD[name]
    report, _ = convert_text(PROGRAM.format(loss=loss))

    assert any(says in finding.message for finding in report.findings if finding.code == "MIG114")


@pytest.mark.parametrize("name", EVEN)
def test_a_mean_over_them_is_not(convert_text, name):
    report, _ = convert_text(PROGRAM.format(loss=EVEN[name]))

    assert not [finding for finding in report.findings if finding.code == "MIG114"]
