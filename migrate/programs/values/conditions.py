"""Conditions that devices are chosen under: what only asks for availability, and what the user decides."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, ROWS, Role, only, roles
from migrate.analysis.syntax import is_none
from migrate.analysis.texts import text_of
from migrate.analysis.units import Function
from migrate.programs.values.place import DEVICE_COUNTS
from migrate.programs.values.sources import Sources, may_pass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding


def needs(node: ast.expr) -> Iterator[str]:
    """The names an expression reads, and the attributes of names: `args`, `args.cuda`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield ast.unparse(inner)


def flag(facts: Facts, test: ast.expr, within: frozenset[str] = frozenset()) -> ast.expr | None:
    """A condition without what only asks for availability; None if nothing else is left.

    `within` names what is being asked about already: `args.cuda = args.cuda and torch.cuda.is_available()`.
    """
    if isinstance(test, ast.Call) and (only(facts.values(test), Role.AVAILABLE) or _asks_torch(facts, test)):
        return None
    if _counts_gpus(facts, test):
        return None
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        parts = [rest for value in test.values if (rest := flag(facts, value, within)) is not None]
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)
    if isinstance(test, ast.BinOp) and isinstance(test.op, ast.BitAnd):  # `torch.cuda.is_available() & args.cuda`
        sides = [rest for value in (test.left, test.right) if (rest := flag(facts, value, within)) is not None]
        return test if len(sides) == 2 else next(iter(sides), None)
    if isinstance(test, ast.BoolOp):
        rests = [flag(facts, value, within) for value in test.values]
        return None if None in rests else test
    if isinstance(test, ast.IfExp) and _is_yes_or_no(test):  # `"cuda" if torch.cuda.is_available() else ""`
        return flag(facts, test.test, within)
    if isinstance(test, ast.Attribute) and any(map(_IS_AVAILABLE.fullmatch, facts.names(test))):
        return None  # `if torch.cuda.is_available:`, which is always so
    if isinstance(test, (ast.Name, ast.Attribute)):
        return None if _only_availability(facts, test, within) else test
    return test


_IS_AVAILABLE = re.compile(r"torch\.[\w.]+\.is_available")


def _counts_gpus(facts: Facts, test: ast.expr) -> bool:
    """`torch.cuda.device_count() > 1`, `if n_gpu:`: how many GPUs the machine has, on which no user decides."""
    count = test.left if isinstance(test, ast.Compare) and isinstance(test.comparators[-1], ast.Constant) else test
    counted = facts.values(count)
    return only(counted, Role.NUMBER) and all(
        isinstance(value.origin, ast.Call) and bool(facts.called(value.origin) & DEVICE_COUNTS) for value in counted
    )


def as_handed(facts: Facts, test: ast.expr) -> ast.expr:
    """The flag itself, for a parameter to which all callers hand one flag."""
    for _ in range(_DEEPEST):
        unit = facts.unit(test) if isinstance(test, ast.Name) else None
        if not isinstance(test, ast.Name) or not isinstance(unit, Function) or test.id not in unit.parameter_names:
            break
        given = [each for call in facts.callers(unit) for each in may_pass(call, unit, test.id)]
        if not facts.callers_known(unit) or len({ast.unparse(each) for each in given}) != 1:
            break
        test = given[0]
    return test


def first_named(facts: Facts, test: ast.expr) -> ast.expr:
    """The flag that a name stands for: `args.cuda` of `cuda = args.cuda`, where nothing else gives it a value."""
    for _ in range(_DEEPEST):
        found = bindings_of(facts, test) if isinstance(test, (ast.Name, ast.Attribute)) else []
        given = found[0].statement if len(found) == 1 else None
        if not isinstance(given, ast.Assign) or not isinstance(given.value, (ast.Name, ast.Attribute)):
            break
        test = given.value
    return test


def one_flag(facts: Facts, tests: Collection[ast.expr]) -> ast.expr | None:
    """The flag that all of some flags come down to: `use_cuda = args.cuda`, and both are asked."""
    found = list(tests)
    if len(found) > 1:
        named = [first_named(facts, _plain(test)) for test in found]
        found = list({ast.unparse(one): one for one in weakest(named)}.values())
    return found[0] if len(found) == 1 else None


def _plain(test: ast.expr) -> ast.expr:
    """`args.cpu == False` as `not args.cpu`, which other places of the program say."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], _SAME | _OTHER):
        return test
    said = test.comparators[0].value if isinstance(test.comparators[0], ast.Constant) else None
    if not isinstance(said, bool):
        return test
    return test.left if said is isinstance(test.ops[0], _SAME) else negated(test.left)


_SAME = ast.Eq | ast.Is
_OTHER = ast.NotEq | ast.IsNot


def weakest(tests: Sequence[ast.expr]) -> list[ast.expr]:
    """Of `gpus == 1`, `gpus > 1` and `gpus > 0`, which ask for one number, that which holds where any does, or all."""
    told = [_numbers(test) for test in tests]
    if len({number for number, _ in told}) != 1 or None in {number for number, _ in told}:
        return list(tests)
    every = frozenset().union(*(where for _, where in told))
    return next(([test] for test, (_, where) in zip(tests, told, strict=True) if where == every), list(tests))


def _numbers(test: ast.expr) -> tuple[str | None, frozenset[int]]:
    """The number that a test asks for, and for which numbers up to those of a large machine it holds."""
    if isinstance(test, (ast.Name, ast.Attribute)):
        return ast.unparse(test), frozenset(_COUNTS) - {0}
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _COMPARED:
        other = test.comparators[0]
        if isinstance(other, ast.Constant) and isinstance(other.value, int):
            holds, limit = _COMPARED[type(test.ops[0])], other.value
            return ast.unparse(test.left), frozenset(count for count in _COUNTS if holds(count, limit))
    return None, frozenset()


_COUNTS = range(65)
_COMPARED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_DEEPEST = 4  # calls that hand a flag on, names that stand for one


def asks_for_data(facts: Facts, test: ast.expr) -> bool:
    """`target is not None`, `x.is_sparse`, `torch.is_tensor(x)`: what there is to move, nothing of the device."""
    if _asks_kind(facts, test):
        return True
    if not isinstance(test, ast.BoolOp) and any(
        isinstance(node, ast.expr) and roles(facts.values(node)) & FROM_LOADER for node in ast.walk(test)
    ):
        return True
    return (
        isinstance(test, ast.Compare) and is_none(test.comparators[0]) and bool(roles(facts.values(test.left)) & _DATA)
    )


def _asks_kind(facts: Facts, test: ast.expr) -> bool:
    """`isinstance(x, Image)`, or a name of such an answer about data or a model alone: `self.is_image`."""
    if not isinstance(test, (ast.Name, ast.Attribute)):
        return isinstance(test, ast.Call) and bool(facts.called(test) & _KINDS)
    given = facts.once(Sources).given(test)
    asked = [e.args[0] for e in given.expressions if isinstance(e, ast.Call) and e.args and facts.called(e) & _KINDS]
    are_all = given.complete and len(asked) == len(given.expressions)
    return are_all and bool(asked) and all(roles(facts.values(each)) & _DATA for each in asked)


def asks_for_turn(test: ast.expr) -> bool:
    """`if step % 100 == 0:`, which is about the time and not about the device."""
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in ast.walk(test))


_KINDS = frozenset({"torch.is_tensor", "builtins.isinstance"})
_DATA = ROWS | {Role.TENSOR, Role.STATISTIC, Role.MODEL, Role.CRITERION}


def _is_yes_or_no(node: ast.IfExp) -> bool:
    values = [bool(each.value) for each in (node.body, node.orelse) if isinstance(each, ast.Constant)]
    return values == [True, False]


def _asks_torch(facts: Facts, test: ast.Call) -> bool:
    """`hasattr(torch.backends, "mps")`."""
    return (
        "builtins.hasattr" in facts.called(test)
        and bool(test.args)
        and any(name.startswith("torch") for name in facts.names(test.args[0]))
    )


def _only_availability(facts: Facts, name: ast.expr, within: frozenset[str]) -> bool:
    """Whether a flag was set to nothing but the answer of is_available(), or is handed that by all callers."""
    text = ast.unparse(name)
    if text in within:
        return False  # what it was before has a say in what it is
    assigned = [b.statement.value for b in bindings_of(facts, name) if isinstance(b.statement, ast.Assign)]
    if not assigned and (handed := as_handed(facts, name)) is not name:
        return flag(facts, handed, within | {text}) is None
    asks = Role.AVAILABLE in roles(facts.values(name)) or all(isinstance(value, ast.IfExp) for value in assigned)
    others = [value for value in assigned if not same_name(value, text)]
    return bool(assigned) and asks and all(flag(facts, value, within | {text}) is None for value in others)


def bindings_of(facts: Facts, name: ast.expr) -> list[Binding]:
    """What gives a name or attribute its value: in its own file, where there is such a thing."""
    text, module = text_of(name), facts.unit(name).module
    found = [binding for binding in facts.bindings if binding.target == text]
    own = [binding for binding in found if binding.unit.module is module]
    return own if own and text.isidentifier() else found


def same_name(node: ast.expr, text: str) -> bool:
    """Whether an expression is just that name."""
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == text


#: What a comparison is with its sides exchanged; the others stay what they are.
MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


def denied(node: ast.expr) -> ast.expr:
    """The opposite of a condition, with `or` turned into `and` so that its parts can be told apart."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return ast.BoolOp(ast.And(), [negated(value) for value in node.values])
    return negated(node)


def negated(node: ast.expr) -> ast.expr:
    """`not node`, without a double negation."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.Constant):
        return ast.Constant(not node.value)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPPOSITES:
        return ast.Compare(node.left, [_OPPOSITES[type(node.ops[0])]()], node.comparators)
    return ast.UnaryOp(ast.Not(), node)


_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
