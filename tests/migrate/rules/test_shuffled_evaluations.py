"""Evaluations that every process runs in full over a loader that shuffles: one order for all."""

import pytest

PROGRAM = """\
import random
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

{seed}


class Points(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.ones(2) * {value}, torch.ones(1)


data = TensorDataset(torch.ones(20, 2), torch.ones(20, 1))
loader, tests = DataLoader(data, batch_size=4), DataLoader(data, batch_size=8, {order})
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = 0.0
for epoch in range(5):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
    model.eval()
    error = 0.0
    with torch.no_grad():
        for x, y in tests:
            {look}
            error += (model(x) - y).abs().mean().item()
    if error / len(tests) > best:
        break
    best = error / len(tests)
"""
IN_FULL = "print(x)"  # before the model's result is there
SEEDED = "set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])"
DRAWN = {
    "told to shuffle": "shuffle=True",
    "without the last batch": "drop_last=True, shuffle=True",
    "a sampler": "sampler=RandomSampler(data)",
}
ALIKE = {
    "in order": ("shuffle=False", "", IN_FULL),
    "seeded by the program": ("shuffle=True", "torch.manual_seed(1)", IN_FULL),
    "a generator of its own": ("shuffle=True, generator=torch.Generator().manual_seed(1)", "", IN_FULL),
    "shared out, in the order of the main process": ("shuffle=True", "", "pass"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_all_take_one_seed(convert_text, name):
    _, result = convert_text(PROGRAM.format(order=DRAWN[name], seed="", look=IN_FULL, value=1))

    assert f"if accelerator.num_processes > 1:\n    {SEEDED}\n" in result


OWN = "data = TensorDataset(torch.ones(20, 2), torch.ones(20, 1))"


@pytest.mark.parametrize(
    ("seed", "value", "is_seeded"),
    [
        ("torch.manual_seed(1)", "random.random()", True),
        ("torch.manual_seed(1)", "index", False),
        ("torch.manual_seed(1)", "torch.rand(1)", False),
        ("random.seed(1)", "random.random()", False),
    ],
)
def test_a_data_set_that_draws_for_each_sample(convert_text, seed, value, is_seeded):
    source = PROGRAM.replace(OWN, "data = Points()").format(order="shuffle=False", seed=seed, look="pass", value=value)
    _, result = convert_text(source)

    assert "accelerator.prepare(" in result
    assert ("broadcast_object_list" in result) == is_seeded


@pytest.mark.parametrize("name", ALIKE)
def test_where_the_order_is_alike_nothing_is_seeded(convert_text, name):
    order, seed, look = ALIKE[name]
    _, result = convert_text(PROGRAM.format(order=order, seed=seed, look=look, value=1))

    assert "accelerator.prepare(" in result
    assert SEEDED not in result
