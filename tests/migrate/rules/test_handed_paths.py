"""A file that the main process writes, and whose path is then handed to a library that nothing is known of."""

import pytest

PROGRAM = """
import json
import os

import scorer
import torch
from scorer.truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def write(rows, path):
    with open(path, "w") as f:
        f.write(json.dumps(rows))


def evaluate(model, truth, rows, folder):
    path = os.path.join(folder, "found.json")
    {written}
    {read}
    return score


truth = Truth("truth.json")
rows = torch.randn(40, 4)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(rows), batch_size=8, shuffle=True)
for epoch in range(2):
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    print(evaluate(model, truth, [1.0, 2.0], "out"))
"""
HOLES = {
    "written": 'with open(path, "w") as f:\n        json.dump(rows, f)',
    "read": "score = truth.load(path)",
}
WAITED = {
    "by a method": {},
    "by a function": {"read": "score = scorer.score('truth.json', path)"},
    "by name": {"read": "score = scorer.Score(found=path, truth='truth.json')"},
    "written by a function": {"written": "write(rows, path)"},
    "written by a function, by its name": {
        "written": "write(rows, 'out/found.json')",
        "read": "score = truth.load('out/found.json')",
    },
    "written by a function, handed on": {
        "written": "there = path\n    write(rows, there)",
        "read": "score = truth.load(there)",
    },
    "below something else": {"read": "rows = sorted(rows)\n    score = scorer.score(rows, path)"},
}
UNWAITED = {
    "another path": {"read": "score = truth.load(folder)"},
    "another path, written by a function": {
        "written": "write(rows, 'out/found.json')",
        "read": "score = truth.load('out/truth.json')",
    },
    "a name that ends alike": {
        "written": "write(rows, 'out/found.json')",
        "read": "score = truth.load('.json')",
    },
    "to Python": {"read": "score = os.path.basename(path)"},
    "to what says something": {"read": "score = 1\n    print(path)"},
}


@pytest.mark.parametrize("name", WAITED)
def test_all_wait_for_what_it_may_read(convert_text, name):
    _, text = convert_text(PROGRAM.format(**{**HOLES, **WAITED[name]}))
    lines = [line.strip() for line in text.splitlines()]
    wait = lines.index("accelerator.wait_for_everyone()")
    assert "if accelerator.is_main_process:" in lines[:wait]
    assert lines[wait + 1] in {line.strip() for line in {**HOLES, **WAITED[name]}["read"].splitlines()}
    assert any(word in lines[wait + 1] for word in ("path", "truth.json", "found.json", "there"))


@pytest.mark.parametrize("name", UNWAITED)
def test_nobody_waits_for_what_is_not_handed_over(convert_text, name):
    _, text = convert_text(PROGRAM.format(**{**HOLES, **UNWAITED[name]}))
    assert "if accelerator.is_main_process:" in text
    assert "wait_for_everyone" not in text
