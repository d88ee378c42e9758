"""The data of the next epoch must not go by what one process has seen: each would deal out a data set of its own."""

import pytest

CHOOSING = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, WeightedRandomSampler
torch.manual_seed(0)
X = torch.randn(96, 4)
Y = (X[:, 0] > 0).long()

class Numbered(Dataset):
    def __len__(self):
        return len(X)
    def __getitem__(self, i):
        return X[i], Y[i], i

data = Numbered()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
weights = torch.ones(96)
chosen = list(range(96))
for epoch in range(3):
    loader = {loader}
    {begun}
    for x, y, rows in loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {step}
    {then}
    print(epoch, len(chosen))
"""
CHOSEN = "DataLoader(Subset(data, chosen), batch_size={size}, shuffle=True)"
WEIGHED = "DataLoader(data, batch_size={size}, sampler=WeightedRandomSampler(weights, 96))"
EACH = 'F.cross_entropy(out.detach(), y, reduction="none")'
OWN = {
    "a set": (CHOSEN, "hard = set()", "hard.update(rows[out.argmax(1) != y].tolist())", "chosen = [0, 1, *hard]"),
    "a dictionary": (
        CHOSEN,
        "hard = {}",
        f"hard.update(zip(rows.tolist(), {EACH}.tolist()))",
        "chosen = sorted(hard, key=hard.get)[-32:]",
    ),
    "weights of rows": (WEIGHED, "pass", f"weights[rows] = {EACH}", "pass"),
    "rows of a tensor": (CHOSEN, "pass", f"weights[rows] = {EACH}", "chosen = weights.argsort()[:32].tolist()"),
}


@pytest.mark.parametrize("name", OWN)
def test_a_loader_over_what_a_process_has_chosen_is_refused(refused_text, name):
    loader, begun, step, then = OWN[name]
    made = loader.format(size=8)
    source = CHOOSING.format(loader=made, begun=begun, step=step, then=then)
    refused_text(source, "MIG122", f"loader = {made}", ["DataLoader() here goes by", "part ways"])


def test_the_way_out_leads_out(convert_text, numbers_printed):
    """What is asked of the model after the epoch is the same on all processes."""
    then = (
        "with torch.no_grad():\n"
        "        weights = torch.cat([F.cross_entropy(model(x), y, reduction='none')\n"
        "                             for x, y, _ in DataLoader(data, batch_size=32)])\n"
        "    chosen = weights.argsort()[-48:].tolist()"
    )
    parts = {"begun": "pass", "step": "pass", "then": then}
    alone = CHOOSING.format(loader=CHOSEN.format(size=8), **parts) + "print(model.weight.sum().item())\n"
    halves = CHOOSING.format(loader=CHOSEN.format(size=4), **parts) + "print(model.weight.sum().item())\n"
    report, converted = convert_text(halves)

    assert report.changes
    assert numbers_printed(converted, 2) == pytest.approx(numbers_printed(alone, 1), abs=1e-4)


def test_a_list_is_joined_and_chosen_from(convert_text, numbers_printed):
    parts = {
        "begun": "hard = []",
        "step": "hard.extend(rows[out.argmax(1) != y].tolist())",
        "then": "chosen = [*range(16), *sorted(hard)]",
    }
    _, converted = convert_text(CHOOSING.format(loader=CHOSEN.format(size=8), **parts))
    printed = numbers_printed(converted, 2)

    assert "hard = accelerator.gather_for_metrics(hard)" in converted
    assert printed[::2] == [0, 1, 2]
