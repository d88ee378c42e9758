"""What turns a program's mixed precision on: always, or a flag; and what a test asks of it.

Always for `scaler = GradScaler()`; `args.amp` for `GradScaler(enabled=args.amp)`, for `GradScaler() if args.amp else
None`, and for a scaler that is made under `if args.amp:`. In the last two cases it may be None.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_main_guard, is_none, same

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


class Stays(Exception):
    """Why the program's own mixed precision is kept as it is."""

    def __init__(self, node: ast.AST, why: str) -> None:
        super().__init__(why)
        self.node = node
        self.why = why


@dataclass(frozen=True, slots=True)
class Switch:
    """How the scaler is made: the statements, and the flag that turns it on (None: always)."""

    made: ast.Call  # where the scaler is made
    unit: Unit
    statements: tuple[ast.stmt, ...]  # those that make it, or give its name a None
    flag: ast.expr | None
    may_be_none: bool

    def side(self, facts: Facts, test: ast.expr) -> bool | None:
        """Whether a test holds where mixed precision is on (True) or off (False); None: it asks for something else."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.side(facts, test.operand)
            return None if inner is None else not inner
        if self.flag is not None and same(test, self.flag):
            return True
        if isinstance(test, ast.Call) and self._is_scaler(facts, _receiver(test, "is_enabled")):
            return True
        if not self.may_be_none:
            return None
        if isinstance(test, ast.Compare) and self._is_scaler(facts, test.left) and is_none(test.comparators[0]):
            found = {ast.Is: False, ast.Eq: False, ast.IsNot: True, ast.NotEq: True}
            return found.get(type(test.ops[0])) if len(test.ops) == 1 else None
        return True if self._is_scaler(facts, test) else None

    def _is_scaler(self, facts: Facts, node: ast.expr | None) -> bool:
        return node is not None and self.made in origins(facts.values(node), Role.SCALER)


def read(facts: Facts, call: ast.Call, unit: Unit) -> Switch:
    """How a scaler is made.

    Raises:
        Stays: in a way that is not understood.
    """
    tree = facts.tree(call)
    statement = tree.statement(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise Stays(call, "the scaler is not simply given a name")
    target = ast.unparse(statement.targets[0])
    flags = [flag for flag in (_chosen(statement.value, call), _enabled(call)) if flag is not None]
    above = tree.parents[statement]
    is_under_test = isinstance(above, ast.If) and not is_main_guard(above)
    is_alone = isinstance(statement.value, ast.Call)
    if isinstance(above, ast.If) and is_under_test and any(statement is inner for inner in above.body) and is_alone:
        flags.append(above.test)
    if len({ast.unparse(flag) for flag in flags}) > 1:
        raise Stays(call, "several flags decide about the scaler")
    others = [b for b in facts.bindings if b.target == target and b.statement is not statement and b.unit is unit]
    for other in others:
        value = getattr(other.statement, "value", None)
        if not isinstance(other.statement, ast.Assign) or not is_none(value) or len(other.statement.targets) != 1:
            raise Stays(other.statement, f"{target} is also something else")
    may_be_none = not is_alone or is_under_test or bool(others)
    statements = (*(other.statement for other in others), statement)
    return Switch(call, unit, statements, flags[0] if flags else None, may_be_none)


def _chosen(value: ast.expr, call: ast.Call) -> ast.expr | None:
    """`args.amp` of `GradScaler() if args.amp else None`."""
    if value is call:
        return None
    if isinstance(value, ast.IfExp) and value.body is call and is_none(value.orelse):
        return value.test
    raise Stays(call, "the scaler is chosen in a way that is not understood")


def _enabled(call: ast.Call) -> ast.expr | None:
    """`args.amp` of `GradScaler(enabled=args.amp)`."""
    given = list(call.args)
    if given and isinstance(given[0], ast.Constant) and given[0].value == "cuda":
        given = given[1:]
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    device = options.pop("device", None)
    flag = options.pop("enabled", None)
    if given or options or not (device is None or (isinstance(device, ast.Constant) and device.value == "cuda")):
        raise Stays(call, "the scaler is made with settings of its own")
    if isinstance(flag, ast.Constant):
        if flag.value is not True:
            raise Stays(call, "the scaler is turned off")
        return None
    return flag


def _receiver(call: ast.Call, method: str) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == method else None
