"""What is found out about a program is kept until something else is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from migrate.programs.home.access import Parameter
from migrate.programs.kept import Kept
from migrate.programs.output import heard
from migrate.programs.program import Program


@dataclass(eq=False, slots=True)
class Thing(Kept):
    SAID: ClassVar[frozenset[str]] = frozenset({"notes"})
    parts: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def counting():
    asked = []

    def total(more, thing):
        asked.append(thing)
        return sum(thing.parts) + more

    return total, asked


def test_it_is_made_once_for_what_is_given():
    total, asked = counting()
    thing = Thing((1, 2))
    assert [thing.once(total, 1), thing.once(total, 1), thing.once(total, 2)] == [4, 4, 5]
    assert len(asked) == 2


def test_it_is_made_again_when_something_else_is_known():
    total, asked = counting()
    thing = Thing((1, 2))
    thing.once(total, 0)
    thing.parts = (1, 2)
    assert thing.once(total, 0) == 3
    assert len(asked) == 1
    thing.parts = (5,)
    assert thing.once(total, 0) == 5


def test_what_is_only_said_changes_nothing():
    total, asked = counting()
    thing = Thing((1, 2))
    thing.once(total, 0)
    thing.notes = ("said",)
    thing.once(total, 0)
    assert len(asked) == 1


def test_a_program_changes_with_its_evaluations_and_not_with_its_refusals():
    program = Program(())
    asked = []
    program.once(asked.append)
    program.refusals += ["one"]
    program.once(asked.append)
    assert len(asked) == 1
    program.evaluation = ("another",)
    program.once(asked.append)
    assert len(asked) == 2


def test_what_a_program_says_is_looked_for_again_only_if_somebody_is_handed_the_accelerator(decide):
    _, conversion = decide(SAYS)
    said = heard.speech(conversion)
    assert heard.speech(conversion) is said
    said_in = next(unit for unit in conversion.facts.functions if unit.name == "say")
    assert conversion.access.can_have(said_in)
    assert not conversion.access.handed  # a function of the home's file reads the accelerator as it is
    conversion.access.parameters[said_in] = Parameter(said_in, None)
    again = heard.speech(conversion)
    assert again is not said
    assert heard.speech(conversion) is again


SAYS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def say(epoch):
    print("epoch", epoch)


torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), batch_size=4)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    say(epoch)
torch.save(model.state_dict(), "model.pt")
"""
