"""Numbers that go by how many GPUs the machine has: each process has one of them, however many processes there are."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.nodes import children
from migrate.analysis.syntax import walk
from migrate.programs.values.place import DEVICE_COUNTS, number
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion


class Kind(Enum):
    """What a number is for, as the constructor has it: the keyword, and its place among the arguments."""

    BATCH = ("batch_size", 1)
    WORKERS = ("num_workers", 5)
    RATE = ("lr", 1)


@dataclass(frozen=True, slots=True)
class ByGpus:
    """A constructor that is given such a number, and the call that counts the GPUs."""

    kind: Kind
    call: ast.Call
    count: ast.Call


def by_gpus(conversion: Conversion) -> Iterator[ByGpus]:
    """The first of each kind that a loader or optimizer of a program is given."""
    optimizers = {origin for named in conversion.program.optimizers for origin in named.origins}
    made = {Kind.BATCH: conversion.loader_origins, Kind.WORKERS: conversion.loader_origins, Kind.RATE: optimizers}
    for kind, origins in made.items():
        calls = sorted((node for node in origins if isinstance(node, ast.Call)), key=lambda node: node.lineno)
        found = (ByGpus(kind, call, count) for call in calls for count in _counts(conversion.facts, _given(call, kind)))
        yield from itertools.islice(found, 1)


def _given(call: ast.Call, kind: Kind) -> list[ast.expr]:
    keyword, position = kind.value
    of_groups = walk(call).of(ast.Dict) if kind is Kind.RATE else ()
    items = ((key, value) for group in of_groups for key, value in zip(group.keys, group.values, strict=True))
    return [
        *call.args[position : position + 1],
        *(given.value for given in call.keywords if given.arg == keyword),
        *(value for key, value in items if isinstance(key, ast.Constant) and key.value == keyword),
    ]


def _counts(facts: Facts, given: list[ast.expr]) -> Iterator[ast.Call]:
    """The calls that count GPUs, of those that numbers come from."""
    sources = facts.once(Sources)
    waiting: list[ast.AST] = list(given)
    seen: set[ast.AST] = set()
    while waiting:
        node = waiting.pop()
        if node in seen or _asks_for_any(node):
            continue
        seen.add(node)
        if isinstance(node, ast.Call) and facts.called(node) & DEVICE_COUNTS:
            yield node
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
            waiting += [*sources.given(node).expressions, *_changed_by(facts, node)]
        waiting += children(node)


def _changed_by(facts: Facts, node: ast.expr) -> Iterator[ast.expr]:
    """What a name is changed by where it stands: `batch_size *= gpus`."""
    for unit in dict.fromkeys((facts.unit(node), facts.module(node))):
        for binding in facts.bindings_in(unit):
            if isinstance(binding.statement, ast.AugAssign) and binding.target == ast.unparse(node):
                yield binding.statement.value


def _asks_for_any(node: ast.AST) -> bool:
    """`gpus > 0`: whether there is a GPU."""
    return isinstance(node, ast.Compare) and any(number(side) == 0 for side in (node.left, *node.comparators))
