"""Functions that keep a model or a loader: bound by `partial`, or closures of functions called above prepare."""

import pytest

SOURCE = """
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))


{above}


def main():
    model = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {first}
    loader = DataLoader(data, batch_size={size})
    {then}
    model.train()
    for epoch in range(2):
        for batch in {over}:
            {step}
    print(sum(p.sum().item() for p in model.parameters()))


main()
"""
STEP = """
def train_step(model, optimizer, batch{more}):
    x, y = batch
    x, y = x.to(device), y.to(device)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOSS = """
def loss_of(model, batch):
    x, y = batch
    return nn.functional.mse_loss(model(x.to(device)), y.to(device))
"""
TRAIN = "optimizer.zero_grad()\n            {loss}.backward()\n            optimizer.step()"
HOLES = {"above": "", "first": "", "then": "", "over": "loader", "step": "step(batch)"}
BOUND = "step = partial(train_step, model, optimizer)"
MADE = """
def make(model):
    def loss_of(batch):
        return nn.functional.mse_loss(model(batch[0].to(device)), batch[1].to(device))

    return loss_of
"""
TASK = """
class Task:
    def __init__(self, model):
        self.loss_of = lambda batch: nn.functional.mse_loss(model(batch[0]), batch[1])
"""
PASSES = """
def passes(loader):
    def batches():
        yield from loader

    return batches
"""
KEPT = {
    "bound below": {"above": STEP.format(more=""), "then": BOUND},
    "bound above the loader": {"above": STEP.format(more=""), "first": BOUND},
    "bound in a list": {
        "above": STEP.format(more=""),
        "first": "steps = [partial(train_step, model, optimizer)]",
        "step": "steps[0](batch)",
    },
    "bound with what has a default": {
        "above": STEP.format(more=", clip=None"),
        "first": "step = partial(train_step, model, optimizer, clip=1.0)",
    },
    "only the loss is bound": {
        "above": LOSS,
        "first": "bound = partial(loss_of, model)",
        "step": TRAIN.format(loss="bound(batch)"),
    },
    "a closure": {"above": MADE, "first": "bound = make(model)", "step": TRAIN.format(loss="bound(batch)")},
    "a lambda of an object": {
        "above": TASK,
        "first": "task = Task(model)",
        "step": TRAIN.format(loss="task.loss_of(batch)"),
    },
    "a closure over the loader": {
        "above": PASSES + LOSS,
        "then": "batches = passes(loader)\n    more = nn.Linear(1, 1)\n"
        "    optimizer = torch.optim.SGD([*model.parameters(), *more.parameters()], lr=0.1)",
        "over": "batches()",
        "step": TRAIN.format(loss="loss_of(model, batch)"),
    },
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_is_prepared(convert_text, numbers_printed, name):
    """What was kept above prepare was the raw model, of which each process trained one of its own."""
    whole, half = (SOURCE.format(**{**HOLES, **KEPT[name]}, size=size) for size in (8, 4))
    before = numbers_printed(whole, 1)
    _, alone = convert_text(whole)
    _, shared = convert_text(half)

    assert "prepare(" in alone
    assert "unwrap_model(model))" not in alone
    assert numbers_printed(alone, 1) == before
    assert numbers_printed(shared, 2) == pytest.approx(before, rel=1e-4)


REFUSED = {
    "called with more than it needs": (
        {"above": STEP.format(more=", clip=None"), "then": BOUND, "step": "step(batch, 1.0)"},
        "MIG904",
        "partial(train_step",
        "called with more",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(refused_text, name):
    holes, code, at, mention = REFUSED[name]

    refused_text(SOURCE.format(**{**HOLES, **holes}, size=4), code, at, (mention,))


TRAINER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.loss_of = lambda batch: nn.functional.mse_loss({name}(batch[0]), batch[1])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        for batch in self.loader:
            loss = self.loss_of(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


Trainer(nn.Linear(4, 1), DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)).fit()
"""


def test_another_name_than_that_which_is_prepared_is_refused(convert_text, refused_text):
    refused_text(TRAINER.format(name="model"), "MIG104", "self.loss_of = lambda", ("kept here",))

    _, result = convert_text(TRAINER.format(name="self.model"))
    assert "self.accelerator.backward(loss)" in result


HANDED = """
import torch
from functools import partial
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loss_of(model, batch):
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def make(model):
    return lambda batch: loss_of(model, batch)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)

    def fit(self, bound):
        for batch in self.loader:
            loss = bound(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def main():
    model = nn.Linear(4, 1)
    trainer = Trainer(model)
    bound = {bound}
    trainer.fit(bound)


main()
"""


@pytest.mark.parametrize("bound", ["partial(loss_of, model)", "make(model)", "lambda batch: loss_of(model, batch)"])
def test_what_the_one_who_hands_the_model_over_keeps_is_refused(convert_text, refused_text, bound):
    refused_text(HANDED.format(bound=bound), "MIG104", "    bound = ", ("kept here",))

    _, result = convert_text(HANDED.format(bound=bound.replace("model", "trainer.model").replace("_trainer.", "_")))
    assert "self.accelerator.backward(loss)" in result
