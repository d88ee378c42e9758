"""Which files may have to do with several processes: by the words in them, before anything is asked about them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module

#: A file without any of these does not call `torch.autograd.backward`.
BACKWARDS = (b"autograd.backward", b"import backward")
#: A file without these has no scaler that takes whole steps, nor does it call one.
SCALERS = (b"NativeScaler", b"scaler")
_JOINS = b"all_reduce"
#: A file without any of these knows nothing of several processes, and nothing in it has to change.
_WORDS = (
    b"distributed",
    b"rank",
    b"world_size",
    b"Parallel",
    b"gpu",
    b"spawn",
    b".module",
    b"is_main",
    b"is_master",
    b"apex",
    *BACKWARDS,
)


def groups(facts: Facts) -> list[tuple[Module, ...]]:
    """The editable modules that may know of several processes, those together that import each other.

    Scripts that share nothing but a file without such words (their data, say) stand or fall by themselves.
    """
    scalers = SCALERS if any(SCALERS[0] in module.file.content for module in facts.editable) else ()
    words = (*_WORDS, *scalers, *_joining(facts.editable))
    left = [module for module in facts.editable if any(word in module.file.content for word in words)]
    found: list[tuple[Module, ...]] = []
    while left:
        group = {left.pop(0)}
        while joined := near_to(facts, group).intersection(left):
            group |= joined
            left = [m for m in left if m not in joined]
        found.append(tuple(m for m in facts.editable if m in group))
    return found


def near_to(facts: Facts, group: set[Module]) -> frozenset[Module]:
    """The files that one of a group leads to, or that lead to one of it."""
    return facts.reach.back(group).union(*(facts.imported(module) for module in group))


def _joining(modules: Iterable[Module]) -> Iterator[bytes]:
    """The names of methods that may sum up what their object holds: a file that calls one has to do with it."""
    for module in modules:
        if _JOINS in module.file.content:
            for node in walk(module.tree):
                if isinstance(node, ast.FunctionDef) and _JOINS in module.text(node) and _is_method(node):
                    yield node.name.encode()


def _is_method(node: ast.FunctionDef) -> bool:
    return [argument.arg for argument in node.args.args] == ["self"]
