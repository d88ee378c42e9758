"""Whether something is there, `if names is None:`, which may be asked of what was made from itself."""

import pytest

ITEMS = """
import {module}
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Names:
    def __init__(self, names=None):
        if names is None:
            names = list("abc")
        self.names = names


torch.manual_seed(0)
kept = Names()
taken = Names(names={given})
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.arange(32.0).view(16, 2) / 32, torch.ones(16, 1)), batch_size=2, shuffle=True)
for name in taken.names:
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
    print(len(name))
"""
ALIKE = {
    "from another of its class": "kept.names",
    "from another, or nothing": "kept.names if kept is not None else None",
}
APART = {
    "chance decides whether there are any": "None if random.random() < 0.5 else kept.names",
    "the process decides it": "None if os.getpid() % 2 else kept.names",
}


@pytest.mark.parametrize("given", ALIKE.values(), ids=ALIKE)
def test_what_is_made_from_itself_is_asked_once(given, convert_text, numbers_printed):
    _, converted = convert_text(ITEMS.format(module="os", given=given))
    assert numbers_printed(converted, 1) == numbers_printed(converted, 2) == [1, 1, 1]


@pytest.mark.parametrize("given", APART.values(), ids=APART)
def test_what_only_some_processes_have_parts_them(given, refused_text):
    refused_text(ITEMS.format(module=given.split("if ")[1].partition(".")[0], given=given), "MIG122", "in taken.names")
