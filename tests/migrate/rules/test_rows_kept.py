"""Rows of samples or classes that outlive a step: `migrate/programs/training/rows_kept.py`."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = torch.zeros(8, 2)

    def forward(self, output, y, index):
        {forward}
        return nn.functional.cross_entropy(output, y) + (self.kept[index] * output).mean()


def main():
    data = TensorDataset(torch.ones(8, 2), torch.ones(8).long(), torch.arange(8))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = Loss()
    kept = torch.zeros(8, 2)
    for epoch in range(2):
        for i, (x, y, index) in enumerate(loader):
            {above}
            output = model(x)
            loss = criterion(output, y, index) + {loss}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {step}


main()
"""
READ = "(kept[index] * output).mean()"
PUT = "kept[index] = 0.5 * kept[index] + output.detach()"
OWN = "self.kept[index] = 0.5 * self.kept[index] + output.detach()"
TOLD = {
    "in the loop": {"loss": READ, "step": PUT},
    "added to": {"loss": READ, "step": "kept[y] += output.detach()"},
    "by a method": {"loss": READ, "step": "kept.index_copy_(0, index, output.detach())"},
    "class by class": {"loss": READ, "step": "for c in range(2): kept[c] += output[y == c].detach().sum(0)"},
    "a class's average": {
        "loss": READ,
        "step": "for c in (0, 1): kept[c] = 0.9 * kept[c] + output[y == c].mean(0).detach()",
    },
    "where there is one": {"loss": READ, "step": "if (y == 1).any(): kept[1] = output[y == 1].detach().mean(0)"},
    "in the forward of a loss": {"forward": OWN},
    "there, by a method": {"forward": "self.kept.index_add_(0, index, output.detach())"},
}
NOT_TOLD = {
    "not read by the loss": {"step": PUT},
    "made anew in each step": {"above": "kept = torch.zeros(8, 2)", "loss": READ, "step": PUT},
    "emptied in each step": {"above": "kept.zero_()", "loss": READ, "step": PUT},
    "set anew": {"loss": READ, "step": "for c in range(2): kept[c] = output[y == c].detach().mean(0)"},
    "by the epoch": {"loss": READ, "step": "kept[epoch] = output.detach().mean(0)"},
    "of the batch itself": {"above": "y[index % 4] = index % 2"},
    "the first rows": {"loss": READ, "step": "kept[:x.size(0)] = output.detach()"},
    "by what the loss does not go": {"forward": "self.count = 0"},
}


def told(convert_text, holes):
    source = PROGRAM.format(**{"forward": "pass", "above": "pass", "loss": "0", "step": "pass", **holes}).lstrip()
    report, result = convert_text(source)
    assert "accelerator.backward(loss)" in result
    notes = [f for f in report.of(Kind.NOTE) if "whose rows each process fills by its own batches only" in f.message]
    return [source.splitlines()[note.line - 1].strip() for note in notes]


@pytest.mark.parametrize("name", TOLD)
def test_rows_of_one_process_s_batches_are_told(convert_text, name):
    holes = TOLD[name]

    assert told(convert_text, holes) == [holes.get("step") or holes["forward"]]


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_does_not_outlive_the_step_is_not(convert_text, name):
    assert not told(convert_text, NOT_TOLD[name])


MODEL = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("keys", torch.zeros(8, 2))
        self.at = 0
        self.seen = {{}}

    def keep(self, features):
        {keep}

    def forward(self, x):
        features = self.layer(x)
        logits = features @ self.keys.t()
        self.keep(features.detach())
        return logits


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8).long()), batch_size=4):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
INSIDE = {
    "a queue": ("self.keys[self.at : self.at + n] = features", True),
    "a queue, by a name": ("self.keys[at:] = features", True),
    "emptied first": ("self.keys.zero_(); self.keys[at:] = features", False),
    "no buffer": ("self.seen[at] = features", False),
    "all of it": ("self.keys[:] = features", False),
    "a moving average": ("self.keys.data.mul_(0.9).add_(features.sum(0), alpha=0.1)", True),
    "one by its name": ("self.keys = 0.9 * self.keys + features.sum(0)", True),
    "counted": ("self.keys += 1", False),
    "another one": ("self.keys = features", False),
    "copied": ("self.keys.copy_(features)", False),
}


@pytest.mark.parametrize("name", INSIDE)
def test_rows_in_a_buffer_of_the_model_are_those_of_the_main_process(convert_text, name):
    keep, is_told = INSIDE[name]
    report, _ = convert_text(MODEL.format(keep=f"at = n = self.at; {keep}").lstrip())

    found = [f.line for f in report.of(Kind.NOTE) if "all go on with that of the main process" in f.message]
    assert bool(found) == is_told


@pytest.mark.parametrize("made", ["Whole(net)", "Whole(layer=net)"])
def test_rows_in_a_buffer_of_a_layer_that_the_model_is_given_are_told(convert_text, made):
    whole = "class Whole(nn.Module):\n    def __init__(self, layer):\n        super().__init__()\n"
    whole += "        self.layer = layer\n\n    def forward(self, x):\n        return self.layer(x)"
    source = MODEL.format(keep="self.keys = 0.9 * self.keys + features.sum(0)").lstrip()
    report, _ = convert_text(source.replace("model = Net()", f"{whole}\n\n\nnet = Net()\nmodel = {made}"))

    found = [f.line for f in report.of(Kind.NOTE) if "all go on with that of the main process" in f.message]
    assert len(found) == 1


OPERATION = """
import torch
from torch import nn
from torch.autograd import Function
from torch.utils.data import DataLoader, TensorDataset


class Average(Function):
    @staticmethod
    def forward(ctx, x, index, memory):
        ctx.save_for_backward(x, index, memory)
        ctx.memory = memory
        return x @ memory.t()

    @staticmethod
    def backward(ctx, grad):
        x, index, memory = ctx.saved_tensors
        {backward}
        return grad @ memory, None, None


class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.rand(8, 2))

    def forward(self, x, index):
        return Average.apply(x, index, {memory})


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.arange(8)), batch_size=4, shuffle=True)
model = nn.Linear(2, 2)
bank = Bank()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, index in loader:
    loss = nn.functional.cross_entropy(bank(model(x), index), index)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FILLS = "memory.index_copy_(0, index, 0.5 * memory[index] + 0.5 * x)"
BACKWARDS = {
    "a memory": (FILLS, "self.memory", True),
    "kept on the context": (f"ctx.{FILLS}", "self.memory", True),
    "by an item": ("memory[index] = x", "self.memory", True),
    "a copy": (FILLS, "self.memory.clone()", False),
    "the gradient": ("grad[index] = 0", "self.memory", False),
    "a row that is written out": ("memory[0] = x.mean(0)", "self.memory", False),
    "nothing": ("pass", "self.memory", False),
}


@pytest.mark.parametrize("name", BACKWARDS)
def test_rows_that_an_operation_of_a_loss_fills_in_its_backward_are_told(convert_text, name):
    backward, memory, is_told = BACKWARDS[name]
    report, result = convert_text(OPERATION.format(backward=backward, memory=memory).lstrip())

    assert "accelerator.backward(loss)" in result
    found = [f.message for f in report.of(Kind.NOTE) if "whose rows each process fills" in f.message]
    said = "the loss is computed from self.memory, whose rows each process fills by its own batches only"
    assert found == ([said] if is_told else [])


DATA = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Weighted(Dataset):
    def __init__(self):
        self.rows, self.weights = torch.rand(8, 2), torch.ones(8)

    def __len__(self):
        return 8

    def __getitem__(self, number):
        return self.rows[number], self.weights[number], number

    def weigh(self, numbers, values):
        self.weights[numbers] = values


data = Weighted()
loader = DataLoader(data, batch_size=4, shuffle=True)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, weight, numbers in loader:
        losses = model(x).pow(2).flatten()
        loss = (losses * weight).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {step}
    {epoch}
"""
IN_DATA = {
    "its attribute": ("data.weights[numbers] = losses.detach()", "data.weights[numbers] ="),
    "by its method": ("data.weigh(numbers, losses.detach())", "self.weights[numbers] ="),
    "through the loader": ("loader.dataset.weights[numbers] += losses.detach()", "loader.dataset.weights[numbers] +="),
}
NOT_IN_DATA = {
    "what all have": ("pass", "data.weights[1] = 0.5 + epoch"),
    "by the epoch": ("data.weights[1] = epoch", "pass"),
}


def _told_of_data(convert_text, step, epoch):
    source = DATA.format(step=step, epoch=epoch).lstrip()
    report, result = convert_text(source)
    assert "accelerator.backward(loss)" in result
    notes = [f for f in report.of(Kind.NOTE) if "whose rows each process fills by its own batches only" in f.message]
    return [source.splitlines()[note.line - 1].strip() for note in notes]


@pytest.mark.parametrize("name", IN_DATA)
def test_what_a_step_puts_into_the_data_is_told(convert_text, name):
    step, at = IN_DATA[name]
    (told_at,) = _told_of_data(convert_text, step, "pass")

    assert told_at.startswith(at)


@pytest.mark.parametrize("name", NOT_IN_DATA)
def test_what_all_put_into_the_data_alike_is_not(convert_text, name):
    assert _told_of_data(convert_text, *NOT_IN_DATA[name]) == []
