"""Objects that some runs are without, in a branch or in a branch of that: `migrate/programs/prepare/apart.py`."""

import pytest

NESTED = """
import sys

import torch
from torch import nn, optim

first, second = "first" in sys.argv, "second" in sys.argv
torch.manual_seed(0)
net = nn.Linear(2, 1)
optimizer = optim.SGD(net.parameters(), lr=0.1)
if first:
    print("one more")
    if second:
        other = nn.Linear(2, 1)
        another = optim.SGD(other.parameters(), lr=0.1)
    print("that is all")
x = torch.ones(4, 2)
for _ in range(3):
    loss = net(x).pow(2).mean()
    if first and second:
        another.zero_grad()
        loss = loss + other(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if first and second:
        another.step()
"""


def test_what_is_made_in_a_branch_of_a_branch_is_prepared_in_the_inner_one(convert_text):
    _, result = convert_text(NESTED)
    assert "lr=0.1)\n        other, another = accelerator.prepare(other, another)\n    accelerator.print(" in result


LEARNER = """
import sys

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Learner:
    def __init__(self, infers=False):
        self.model = nn.Linear(4, 2)
        {branches}

    def train(self):
        for (x,) in self.loader:
            loss = self.model(x).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def infer(self, x):
        return self.model(x).argmax(1)


torch.manual_seed(0)
if "infer" in sys.argv:
    Learner(infers=True).infer(torch.ones(1, 4))
else:
    Learner().train()
"""
MADE = """
            self.loader = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=4)
            self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)"""
BRANCHES = {
    "alone": f"if not infers:{MADE}",
    "before another": f"if not infers:{MADE}\n        else:\n            self.threshold = 0.5",
    "behind another": f"if infers:\n            self.threshold = 0.5\n        else:{MADE}",
}


@pytest.mark.parametrize("name", BRANCHES)
def test_an_object_that_only_infers_needs_no_optimizer(convert_text, name):
    _, result = convert_text(LEARNER.format(branches=BRANCHES[name]))
    model = "self.model = self.accelerator.prepare(self.model)"
    rest = "if not infers: self.loader, self.optimizer = self.accelerator.prepare("
    assert f"{model} {rest}" in " ".join(result.split())


@pytest.mark.parametrize("name", ["before another", "behind another"])
@pytest.mark.parametrize("end", ["raise NotImplementedError", "self.optimizer = optim.Adam(self.model.parameters())"])
def test_where_the_other_branch_ends_or_makes_one_it_is_prepared_with_the_model(convert_text, name, end):
    _, result = convert_text(LEARNER.format(branches=BRANCHES[name].replace("self.threshold = 0.5", end)))
    assert "self.model, self.optimizer = self.accelerator.prepare(" in " ".join(result.split())
