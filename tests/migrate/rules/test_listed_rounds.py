"""A loop over what is written out has as many rounds on all processes, and the names written there are the same."""

import pytest

PROGRAM = """
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng()


def rows():
    return [rng.standard_normal((8, 3)) for _ in range(int(rng.integers(3, 9)))]


first, second = rows(), rows()
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for {target} in {rounds}:
        if {test}:
            continue
        x = torch.from_numpy({taken}).float()
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch + 0.0)
"""
HOLES = {"target": "name, part", "rounds": "[('a', first), ('b', second)]", "test": "name == 'b' and not epoch"}
ALIKE = {
    "a list of tuples": {},
    "a tuple": {"rounds": "(('a', first), ('b', second))"},
    "a number": {"target": "number, part", "rounds": "enumerate([first, second])", "test": "number and not epoch"},
    "parts alone": {"target": "part", "rounds": "[first, second]", "test": "epoch > 5"},
}
APART = {
    "as many as were drawn": {"target": "part", "rounds": "[*first, *second]", "taken": "part", "test": "epoch > 5"},
    "what was drawn": {"test": "part[0][0, 0] > 0"},
    "by another name": {"rounds": "[('a', first), (str(second), second)]"},
    "not told apart": {"rounds": "[('a', first), second]"},
}


@pytest.mark.parametrize("name", ALIKE)
def test_all_take_the_rounds_that_are_written(convert_text, name):
    _, result = convert_text(PROGRAM.format(**{"taken": "part[0]"} | HOLES | ALIKE[name]))

    assert "accelerator.backward(loss)" in result


def test_two_processes_take_them_together(convert_text, numbers_printed):
    _, result = convert_text(PROGRAM.format(**{"taken": "part[0]"} | HOLES))

    assert numbers_printed(result, 2) == numbers_printed(result, 1) == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("name", APART)
def test_what_is_drawn_decides(refused_text, name):
    source = PROGRAM.format(**{"taken": "part[0]"} | HOLES | APART[name])
    refused_text(source, "MIG122", "for part in [" if "many" in name else "        if ")
