"""How a program finds out whether apex is installed: it need not be any more.

try:
    from apex import amp
    has_apex = True
except ImportError:
    has_apex = False
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.ways import joined
from migrate.analysis.syntax import writes
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.alone.pen import Pen
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module

#: What `from apex.fp16_utils import *` gives.
STARRED = """BN_convert_float network_to_half prep_param_lists model_grads_to_master_grads tofp16 to_python_float
    master_params_to_model_params clip_grad_norm convert_module convert_network FP16Model FP16_Optimizer LossScaler
    DynamicLossScaler""".split()
_ASKING = (ast.BoolOp, ast.UnaryOp, ast.Compare)


class Presence:
    """The questions for apex in some modules, all of which are answered."""

    def __init__(self, facts: Facts, modules: Sequence[Module]) -> None:
        self._facts = facts
        self._modules = modules

    @cached_property
    def _flags(self) -> dict[Module, set[str]]:
        """The names that are true where apex can be imported."""
        found = {}
        for module in self._modules:
            tries = [n for n in self._facts.tree(module.tree).nodes if isinstance(n, ast.Try) and imports_apex(n)]
            found[module] = {name for node in tries for name in _flags(node)}
        return found

    def truth(self, test: ast.expr) -> bool | None:
        """What a test for apex comes to; None: it asks for something else."""
        if isinstance(test, ast.Name):
            return True if test.id in self._flags.get(self._facts.unit(test).module, ()) else None
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.Compare) and self._is_apex(test.left) and len(test.ops) == 1:
            other = test.comparators[0]
            if isinstance(other, ast.Constant) and other.value is None:
                return {ast.Is: False, ast.Eq: False, ast.IsNot: True, ast.NotEq: True}.get(type(test.ops[0]))
        if isinstance(test, ast.BoolOp):
            return joined(test, self.truth)
        return None

    def rest(self, test: ast.expr) -> ast.expr | None:
        """What a test asks for beside apex; None: nothing."""
        if self.truth(test) is not None:
            return None
        if not isinstance(test, ast.BoolOp):
            return test
        rest = [value for value in test.values if self.truth(value) is None]
        return rest[0] if len(rest) == 1 else ast.BoolOp(test.op, rest)

    def _is_apex(self, node: ast.expr) -> bool:
        return any(name == "apex" or name.startswith("apex.") for name in self._facts.names(node))

    def questions(self) -> Iterator[ast.expr]:
        """The whole boolean expressions in which it is asked for."""
        seen: set[int] = set()
        for module in self._modules:
            tree = self._facts.tree(module.tree)
            for node in tree.nodes:
                is_read = isinstance(node, (ast.Name, ast.Compare)) and not isinstance(
                    getattr(node, "ctx", None), ast.Store
                )
                if not is_read or not isinstance(node, ast.expr) or self.truth(node) is None:
                    continue
                whole: ast.expr = node
                while isinstance(parent := tree.parents[whole], _ASKING):
                    whole = parent
                if id(whole) not in seen:
                    seen.add(id(whole))
                    yield whole

    def obstacles(self) -> Iterator[Refusal]:
        """Questions that cannot be taken out of what is asked with them."""
        for whole in self.questions():
            if self.truth(whole) is None and not isinstance(whole, ast.BoolOp):
                yield Refusal(whole, "MIG106", "what is asked for with apex is not understood", "ask for apex alone")

    def answer(self, pen: Pen) -> Iterator[ast.stmt]:
        """Answer every question; the statements that go away are given back."""
        for whole in self.questions():
            tree = self._facts.tree(whole)
            parent, truth = tree.parents[whole], self.truth(whole)
            if truth is None:
                assert isinstance(whole, ast.BoolOp)
                rest = [value for value in whole.values if self.truth(value) is None]
                word = " and " if isinstance(whole.op, ast.And) else " or "
                parts = {f"part{number}": value for number, value in enumerate(rest)}
                pen.rewrite(whole, word.join(f"{{{name}}}" for name in parts), **parts)
            elif isinstance(parent, ast.If) and parent.test is whole:
                kept, lost = (parent.body, parent.orelse) if truth else (parent.orelse, parent.body)
                if kept:
                    pen.fold(parent, "body" if truth else "orelse")
                else:
                    pen.remove(parent)
                yield from lost
            elif isinstance(parent, ast.Assert) and truth:
                pen.remove(parent)
                yield parent
            else:
                pen.rewrite(whole, str(truth))


def imports_apex(node: ast.Try) -> bool:
    """Whether a `try` is there to import apex."""
    return any(map(is_import, node.body)) and all(is_import(s) or _constant(s) for s in node.body)


def bound(node: ast.Try) -> Iterator[str]:
    """The names that such a `try` gives."""
    for statement in (*node.body, *node.orelse, *(s for handler in node.handlers for s in handler.body)):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                yield from STARRED if alias.name == "*" else [(alias.asname or alias.name).partition(".")[0]]
        yield from writes(statement)


def is_known_star(statement: ast.stmt) -> bool:
    """`from apex.fp16_utils import *`."""
    return isinstance(statement, ast.ImportFrom) and (statement.module, statement.names[0].name) == (
        "apex.fp16_utils",
        "*",
    )


def is_import(statement: ast.stmt) -> bool:
    """`import apex`, `from apex import amp`."""
    if isinstance(statement, ast.ImportFrom):
        return (statement.module or "").split(".")[0] == "apex"
    return isinstance(statement, ast.Import) and all(a.name.split(".")[0] == "apex" for a in statement.names)


def _constant(statement: ast.stmt) -> tuple[str, object] | None:
    """The name that is given a constant, and that."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.Constant):
        target = statement.targets[0]
        return (target.id, statement.value.value) if isinstance(target, ast.Name) else None
    return None


def _flags(node: ast.Try) -> Iterator[str]:
    there = {c[0] for s in (*node.body, *node.orelse) if (c := _constant(s)) is not None and c[1] is True}
    missing = {c[0] for h in node.handlers for s in h.body if (c := _constant(s)) is not None and c[1] is False}
    yield from there & missing
