"""Loaders that are made anew for each epoch: what they draw when they deal their batches out is no data of theirs."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def crop(batch):
    start = np.random.randint(0, 2)
    return torch.stack([x[start : start + 4] for x, _ in batch]), torch.stack([y for _, y in batch])


def train(rows):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        loader = DataLoader(TensorDataset({rows}, torch.ones(8, 1)), 4, shuffle=True, {dealing})
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


train(torch.ones(8, 6))
"""
DEALT = {
    "a function that puts batches together": "collate_fn=crop",
    "workers": "collate_fn=crop, num_workers=2, worker_init_fn=lambda i: np.random.seed(np.random.randint(9))",
}


@pytest.mark.parametrize("name", DEALT)
def test_what_is_drawn_for_a_batch_may_be_drawn_at_any_time(convert_text, name):
    report, result = convert_text(SOURCE.format(rows="rows", dealing=DEALT[name]))

    assert not report.of(Kind.LEFT)
    assert "loader = accelerator.prepare(loader)" in result


def test_rows_that_are_drawn_for_an_epoch_are_not(convert_text):
    report, _ = convert_text(SOURCE.format(rows="rows[np.random.permutation(8)]", dealing="collate_fn=crop"))

    assert "MIG104" in {finding.code for finding in report.of(Kind.LEFT)}
