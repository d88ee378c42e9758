"""What is saved, and what becomes of what is loaded."""

import ast

import pytest

from migrate.analysis.roles import Role
from migrate.programs.checkpoints import Checkpoints, Content

HEAD = """
import torch
from torch import nn, optim
net = nn.Linear(1, 1)
wrapped = nn.DataParallel(net)
opt = optim.SGD(net.parameters(), lr=0.1)
sched = optim.lr_scheduler.StepLR(opt, 1)
"""

SAVED = {
    "a state": ("torch.save(net.state_dict(), 'x')", [(None, Content.MODEL_STATE, False)]),
    "a state through a wrapper": ("torch.save(wrapped.module.state_dict(), 'x')", [(None, Content.MODEL_STATE, True)]),
    "a model": ("torch.save(net, 'x')", [(None, Content.MODEL, False)]),
    "parts": (
        "torch.save({'epoch': 3, 'model': net.state_dict(), 'opt': opt.state_dict(), 's': sched.state_dict()}, 'x')",
        [
            ("epoch", Content.VALUE, False),
            ("model", Content.MODEL_STATE, False),
            ("opt", Content.OPTIMIZER_STATE, False),
            ("s", Content.SCHEDULER_STATE, False),
        ],
    ),
    "parts by a name": (
        "state = {'model': net.state_dict()}\nstate['note'] = 'good'\ntorch.save(state, 'x')",
        [("model", Content.MODEL_STATE, False), ("note", Content.VALUE, False)],
    ),
    "parts that a caller hands over": (
        "def save(state):\n    torch.save(state, 'x')\nsave({'opt': opt.state_dict()})",
        [("opt", Content.OPTIMIZER_STATE, False)],
    ),
    "either": (
        "torch.save(wrapped.module.state_dict() if many else net.state_dict(), 'x')",
        [(None, Content.MODEL_STATE, True), (None, Content.MODEL_STATE, False)],
    ),
    "what nobody knows": ("torch.save(something, 'x')", [(None, Content.OTHER, False)]),
}


@pytest.mark.parametrize("name", SAVED)
def test_saved(analysed, name):
    source, expected = SAVED[name]
    facts, _ = analysed(HEAD + source)
    (saved,) = Checkpoints(facts).saved

    assert [(part.key, part.content, part.through_module) for part in saved.parts] == expected


def test_loaded_parts_and_who_takes_them(analysed):
    source = """checkpoint = torch.load('x', map_location='cpu')
net.load_state_dict(checkpoint['model'], strict=False)
state = checkpoint['opt']
opt.load_state_dict(state)
start = checkpoint['epoch']
"""
    facts, _ = analysed(HEAD + source)
    (loaded,) = Checkpoints(facts).loaded

    assert ast.unparse(loaded.map_location) == "'cpu'"
    assert loaded.keys == {"model", "opt", "epoch"}
    assert [(r.key, set(r.roles), r.strict) for r in loaded.restored] == [
        ("model", {Role.MODEL}, False),
        ("opt", {Role.OPTIMIZER}, True),
    ]


def test_loaded_at_once(analysed):
    facts, _ = analysed(HEAD + "wrapped.module.load_state_dict(torch.load('x'))")
    (loaded,) = Checkpoints(facts).loaded
    (restored,) = loaded.restored

    assert loaded.map_location is None
    assert (restored.key, restored.through_module, restored.strict) == (None, True, True)
