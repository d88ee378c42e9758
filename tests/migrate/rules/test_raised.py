"""Exceptions by which a program leaves its training and goes on: all processes raise them, or none does (MIG122)."""

import pytest

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Left(Exception):
    pass

class Near(Left):
    pass

class Watch:
    def __init__(self, limit):
        self.limit = limit
    def look(self, loss):
        if loss < self.limit:
            raise Near

def check(loss):
    if loss < 0.05:
        raise Near("near enough")

torch.manual_seed(0)
watch = Watch(0.05)
x = torch.rand(64, 3)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size={size}, shuffle=True)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 0
try:
    for epoch in range(9):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            {look}
except {handled}:
    print(-1)
print(steps, *(round(each, 4) for each in model.weight.flatten().tolist()))
"""
INLINE = "if loss.item() < 0.05:\n                raise {}"
LEAVING = {
    "in the step": (INLINE.format("Near"), "Near"),
    "by its base": (INLINE.format("Near()"), "Left"),
    "with all that fails": (INLINE.format("Near"), "Exception"),
    "by a library's name": (INLINE.format("StopIteration"), "(KeyboardInterrupt, StopIteration)"),
    "in a function": ("check(loss.item())", "Near as near"),
    "in a method": ("watch.look(loss.item())", "Left"),
    "in a function that few come to": ("if x.sum() > 9:\n                check(loss.item())", "Near"),
}


@pytest.mark.parametrize("name", LEAVING)
def test_all_leave_or_none_does(convert_text, numbers_printed, name):
    look, handled = LEAVING[name]
    _, result = convert_text(SOURCE.format(size=8, look=look, handled=handled))
    left, steps, *weights = numbers_printed(SOURCE.format(size=16, look=look, handled=handled), 1)

    assert 'reduction="mean") < ' in result
    assert left == -1
    assert numbers_printed(result, 2)[:5] == pytest.approx([left, steps, *weights], abs=2e-4)


ENDING = {
    "handled by nobody": (INLINE.format("Near"), "KeyError"),
    "a failure": (INLINE.format("ValueError"), "Exception"),
    "raised again": (INLINE.format("Near"), "Near:\n    raise\nexcept KeyError"),
}


@pytest.mark.parametrize("name", ENDING)
def test_what_ends_the_program_is_no_decision(convert_text, name):
    look, handled = ENDING[name]
    _, result = convert_text(SOURCE.format(size=8, look=look, handled=handled))

    assert "accelerator.prepare(" in result
    assert "if loss.item() < 0.05:" in result


ALONE = {
    "by one of its rows": ("for row in (model(x) - y).abs():\n                if row.item() > 9: raise Near", "if row"),
    "for each of its rows": ("for row in x:\n                check(row.sum().item())", "if loss < 0.05"),
    "for some of its rows": ("for row in x[x.sum(1) > 2]:\n                check(loss.item())", "if loss < 0.05"),
    "in a method for some": ("for row in x[x.sum(1) > 2]:\n                watch.look(loss.item())", "if loss < self"),
}


@pytest.mark.parametrize("name", ALONE)
def test_what_they_cannot_agree_on_is_refused(refused_text, name):
    look, at = ALONE[name]
    refused_text(SOURCE.format(size=8, look=look, handled="Near"), "MIG122", at, ("not all of them come here",))


def test_so_is_a_number_of_rounds_that_goes_by_what_the_batch_holds(convert_text):
    source = SOURCE.format(
        size=8, look="for _ in range(int(x.sum())):\n                check(loss.item())", handled="Near"
    )
    report, result = convert_text(source)

    assert result == source.lstrip()
    assert any("`range(int(x.sum()))` depends on the process's own batch" in each.message for each in report.findings)
