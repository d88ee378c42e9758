"""What a function holds of further arguments, `*held`, has a place in the source, told apart for its calls or not."""

import pytest

from migrate.analysis import analyse
from migrate.source.project import Project, SourceFile

BUILT = """
import torch
from torch import nn

def build(kind, *held, **options):
    return kind(*held, **options)

model = build(nn.Linear, 3, 1)
optimizer = build(torch.optim.SGD, model.parameters(), lr=0.1)
scheduler = build(torch.optim.lr_scheduler.StepLR, optimizer, step_size=2)
"""


@pytest.mark.parametrize("held", ["held", "options"])
def test_it_stands_where_the_function_does(tmp_path, held):
    facts = analyse(Project([SourceFile("train.py", BUILT.encode(), real=tmp_path / "train.py")]))
    (unit,) = (unit for unit in facts.functions if unit.name == "build")
    arg = {"held": unit.rest, "options": unit.others}[held]

    twins = facts.twins(arg)
    assert len(twins) > 1
    assert all(facts.tree(each) is facts.tree(unit.node) for each in twins)


@pytest.mark.parametrize("lines", [1, 100])
def test_a_long_function_is_not_told_apart_for_each_of_hundreds_of_calls(lines):
    """Each copy runs again when something that it reads has grown: what that costs goes with lines times copies."""
    body = "\n".join(f"    width = {number}" for number in range(lines))
    made = f"from torch import nn\n\ndef build(width):\n{body}\n    return nn.Linear(width, 1)\n\n"
    calls = "\n".join(f"model_{number} = build({number})" for number in range(200))
    facts = analyse(Project([SourceFile("train.py", (made + calls).encode())]))
    (unit,) = (unit for unit in facts.functions if unit.name == "build" and unit.of is None)

    assert unit.copies == {1: 96, 100: 40}[lines]
