"""Objects of the project that make a loader and go over it: `for x, y in feed`."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Feed:
    def __init__(self, data, size):
        self.loader = DataLoader(data, batch_size=size, shuffle=True)
        {kept}

    def __iter__(self):
        {over}
            yield x, y

    def __len__(self):
        return len(self.loader)


torch.manual_seed(0)
rows = torch.rand(32, 2)
feed = Feed(TensorDataset(rows, rows.sum(1, keepdim=True)), {size})
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    total = 0.0
    for x, y in feed:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total / len(feed))
"""
ANEW = {"kept": "self.size = size", "over": "for x, y in self.loader:"}
BEGUN = {"kept": "self.batches = iter(self.loader)", "over": "for x, y in self.batches:"}


def test_the_loader_that_an_object_goes_over_anew_is_given_to_it(convert_text, numbers_printed):
    _, result = convert_text(PROGRAM.format(size=4, **ANEW))

    assert "feed.loader, model, optimizer = accelerator.prepare(feed.loader, model, optimizer)" in result
    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(PROGRAM.format(size=8, **ANEW), 1), abs=1e-5)


def test_what_an_object_has_begun_to_go_over_is_not(convert_text):
    _, result = convert_text(PROGRAM.format(size=4, **BEGUN))

    assert "feed.loader" not in result


def test_a_place_that_goes_over_the_loader_by_itself_is_not(convert_text):
    begun = PROGRAM.format(size=4, kept="self.loader = iter(self.loader)", over="for x, y in self.loader:")

    assert "feed.loader" not in convert_text(begun)[1]
