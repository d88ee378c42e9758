"""What holds an object, in objects that hold each other."""

import ast
import itertools

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
