"""What holds an object and what an object holds, in objects that hold each other."""

import ast
import itertools
from types import SimpleNamespace

from migrate.analysis.facts import Facts
from migrate.analysis.roles import Role, Value
from migrate.analysis.unpacking import keeping


class Counted(dict):
    """A dictionary that says what it was asked for."""

    def __init__(self, *given):
        super().__init__(*given)
        self.asked = []

    def get(self, key, default=None):
        self.asked.append(key)
        return super().get(key, default)


def test_each_of_objects_that_hold_each_other_is_looked_at_once():
    """Along each way there would be some sixty thousand places to look at, for each object that is asked about."""
    nodes = [ast.Pass() for _ in range(40)]
    owned_by = Counted({node: {other for other in nodes if other is not node} for node in nodes})

    assert keeping(owned_by, nodes[0]) == set(nodes)
    assert len(owned_by.asked) == len(nodes)


def test_what_is_held_far_inside_is_not_kept():
    row = [ast.Pass() for _ in range(6)]
    owned_by = {held: {owner} for held, owner in itertools.pairwise(row)}

    assert keeping(owned_by, row[0]) == set(row[:4])


def test_each_of_models_that_are_parts_of_each_other_is_looked_at_once():
    nodes = [ast.Pass() for _ in range(40)]
    asked = []

    def held(owner):
        asked.append(owner)
        return {str(at): frozenset({Value(Role.MODEL, node)}) for at, node in enumerate(nodes) if node is not owner}

    facts = SimpleNamespace(_state=SimpleNamespace(held=held))

    assert Facts.parts(facts, [nodes[0]]) == set(nodes)
    assert len(asked) <= len(nodes) + 1


def test_parts_of_parts_are_parts():
    row = [ast.Pass() for _ in range(9)]
    inside = {outer: {"part": frozenset({Value(Role.MODEL, inner)})} for outer, inner in itertools.pairwise(row)}
    facts = SimpleNamespace(_state=SimpleNamespace(held=lambda owner: inside.get(owner, {})))

    assert Facts.parts(facts, row[:1]) == set(row[1:7])
