"""Exceptions that a program raises to leave a training, and that it handles itself: a way out as any `break` is.

    def check(loss):                             try:
        if loss > 100:                               for x, y in loader: ... check(loss.item())
            raise Diverged                       except Diverged: print("stopped")

What nobody handles by its name ends the program, on all of its processes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, LOOPS, TRIES, gives_up, jumps
from migrate.analysis.units import Class, Function
from migrate.programs.reach.callees import upwards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops

#: What comes by itself, whatever a program raises.
BROAD = frozenset({"", "Exception", "BaseException", "RuntimeError", "OutOfMemoryError"})


def is_handled(facts: Facts, loops: Loops, node: ast.Raise | ast.Assert) -> bool:
    """Whether an exception only leaves a step, or a training by a handler that names it and goes on."""
    if any(_attempts(facts, node, lambda above: isinstance(above, LOOPS) and loops.trains(above))):
        return True
    return _is_named(facts, node, _raised(facts, node))


def _is_named(facts: Facts, node: ast.AST, names: set[str]) -> bool:
    """Whether a handler around a node, or around a call that leads to it, has one of these names and goes on."""
    return any(_is_near(facts, each, names) for each in upwards(facts, node))


def _is_near(facts: Facts, node: ast.AST, names: set[str]) -> bool:
    """Whether one in the node's function does so."""
    handlers = (each for attempt in _attempts(facts, node) for each in attempt.handlers)
    return any(names & kinds_of(handler) and goes_on(handler) for handler in handlers)


def _attempts(facts: Facts, node: ast.AST, ends: Callable[[ast.AST], bool] | None = None) -> Iterator[ast.Try]:
    """The `try` statements with handlers around a node in its function, up to where something ends the look."""
    below = node
    for above in facts.tree(node).up(node):
        if isinstance(above, FUNCTIONS) or (ends is not None and ends(above)):
            return
        if isinstance(above, TRIES) and above.handlers and below in above.body:
            yield above
        below = above


class Raising(dict[Function, bool]):
    """Whether functions raise something that their callers handle by its name: each is looked at once."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, unit: Function) -> bool:
        self[unit] = any(map(self._is_out, self._facts.own(unit).of(ast.Raise)))
        return self[unit]

    def _is_out(self, node: ast.Raise) -> bool:
        names = _raised(self._facts, node)
        return not _is_near(self._facts, node, names) and _is_named(self._facts, node, names)


def goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether a handler does anything but end the program."""
    return any(jumps(handler.body)) or not gives_up(handler.body)


def kinds_of(handler: ast.ExceptHandler) -> set[str]:
    """The names of what a handler handles; an empty one for everything."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {name_of(kind) for kind in kinds}


def name_of(kind: ast.expr | None) -> str:
    """The last name of an exception's class."""
    return ast.unparse(kind).rpartition(".")[2] if kind is not None else ""


def _raised(facts: Facts, node: ast.Raise | ast.Assert) -> set[str]:
    """What a handler may call it that means this exception: its class, or a base of it."""
    if isinstance(node, ast.Assert):
        return {"AssertionError"}
    made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if made is None:
        return set()
    classes = [each for value in facts.values(made) if isinstance(value.unit, Class) for each in value.unit.mro()]
    if classes:  # nothing but the program raises these, so whatever handles them has been written for that
        bases = {base.rpartition(".")[2] for each in classes for base in each.library_bases()}
        return {name_of(made), *(each.node.name for each in classes), *bases} | BROAD
    return {name_of(made)} - BROAD
