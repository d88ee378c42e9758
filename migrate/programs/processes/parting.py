"""Where processes part: the tests, loops and calls by which one of them comes to a place, and another does not."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from migrate.analysis.known import callers, distributed
from migrate.analysis.known import same as known
from migrate.analysis.roles import Role
from migrate.analysis.syntax import COMPREHENSIONS, FUNCTIONS, LOOPS, TRIES, line_of, own_nodes, walk
from migrate.analysis.units import Class, Function
from migrate.programs.values.in_rounds import is_listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.processes.sameness import Sameness

    _Ask = Callable[[ast.expr], bool]
    Loop = ast.For | ast.AsyncFor | ast.While


def parting(
    facts: Facts, sameness: Sameness, node: ast.AST, *, deep: bool = True, seen: set[Unit] | None = None
) -> Iterator[ast.AST]:
    """What decides whether a node runs, and how often; `deep`: in all, not for one call of its function."""
    unit = facts.unit(node)
    yield from _around(facts, sameness, node, None)
    if sameness.drawing and seen is None:
        yield from _where_failed(facts, sameness, node)
    loops = {above for above in facts.tree(node).up(node) if isinstance(above, (ast.For, ast.While))}
    line = line_of(node)
    for inner in facts.once(_Returns)[unit]:
        if inner.lineno < line and loops.isdisjoint(facts.tree(inner).up(inner)):
            yield from _around(facts, sameness, inner, None)
    seen = set() if seen is None else seen
    if deep and isinstance(unit, Function) and unit not in seen:
        seen.add(unit)
        for call in sameness.calls(unit):
            if call.handed is not None and call.handed.by in AT_ANY_TIME:
                sameness.answers.meet(call.node)
                yield call.node
            yield from parting(facts, sameness, call.node, seen=seen)


class _Returns(dict["Unit", tuple[ast.Return, ...]]):
    """The places by which units are left: asked for with each of their nodes."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, unit: Unit) -> tuple[ast.Return, ...]:
        self[unit] = tuple(self._facts.own(unit).of(ast.Return))
        return self[unit]


#: What calls a function in its own time. What starts the processes of the training itself is no clock.
AT_ANY_TIME = (callers.BESIDE - callers.IN_ORDER - distributed.LAUNCHERS) | {"threading.Timer", "signal.signal"}


def _around(facts: Facts, sameness: Sameness, node: ast.AST, stop: ast.AST | None) -> Iterator[ast.AST]:
    """What decides whether a node runs, in its function and up to a loop around it."""
    below = node
    for above in facts.tree(node).up(node):
        if above is stop or isinstance(above, (*FUNCTIONS, ast.Module)):
            return
        if isinstance(above, (ast.If, ast.IfExp)) and below is not above.test:
            if not _is_decided_alike(facts, sameness, above.test):
                yield above
        elif isinstance(above, ast.While):
            if not _is_decided_alike(facts, sameness, above.test) or any(asked_files(facts, above.test)):
                yield above
            yield from _leaving(facts, sameness, above)
        elif isinstance(above, (ast.For, ast.AsyncFor)) and below is not above.iter:
            if not is_listed(facts, above.iter) and not sameness.even(above.iter):
                yield above
            yield from _leaving(facts, sameness, above)
        elif any(not all(map(ask, parts)) for ask, parts in _asked(sameness, above, below)):
            yield above
        elif isinstance(above, ast.ExceptHandler):
            yield from () if sameness.trusting or is_shared_trouble(above) else (above,)
        below = above


def _where_failed(facts: Facts, sameness: Sameness, node: ast.AST) -> Iterator[ast.AST]:
    """The handlers in a loop that a node stands in: `failed = True`."""
    for above in facts.tree(node).up(node):
        if isinstance(above, FUNCTIONS):
            return
        if isinstance(above, ast.ExceptHandler) and any(True for _ in facts.tree(above).loops(above)):
            if not is_shared_trouble(above, known.SHARED_IN_STEPS) and not _is_of_key(facts, sameness, above):
                sameness.answers.meet(above)
                yield above


def _is_of_key(facts: Facts, sameness: Sameness, handler: ast.ExceptHandler) -> bool:
    """Whether what fails is the look-up of a key that all have, or none has: `log[self.metric] <= self.best`.

    The same keys are there where the container holds as many items on all processes.
    """
    attempt = facts.tree(handler).parents[handler]
    if not isinstance(attempt, TRIES) or not is_shared_trouble(handler, ("KeyError",)):
        return False
    nodes = [node for statement in attempt.body for node in ast.walk(statement)]
    if any(isinstance(node, (ast.Call, *LOOPS)) for node in nodes):
        return False
    asked = (node for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load))
    return all(sameness.same(node.slice) and sameness.even(node.value) for node in asked)


def _asked(sameness: Sameness, above: ast.AST, below: ast.AST) -> Iterator[tuple[_Ask, list[ast.expr]]]:
    """What must come out the same for a part of an expression, or for a case, to be run: each with how it is asked."""
    if isinstance(above, ast.BoolOp):
        yield sameness.same, list(itertools.takewhile(lambda value: value is not below, above.values))
    elif isinstance(above, ast.Match) and below is not above.subject:
        yield sameness.same, [above.subject]
    elif isinstance(above, COMPREHENSIONS) and not isinstance(below, ast.comprehension):
        yield sameness.even, [each.iter for each in above.generators]
        yield sameness.same, [test for each in above.generators for test in each.ifs]


def _is_decided_alike(facts: Facts, sameness: Sameness, test: ast.expr) -> bool:
    """Whether a test comes out the same: also by what objects of the project say of themselves."""
    if not sameness.same(test):
        return False
    units = {v.unit for n in walk(test) for v in facts.values(n) if v.role is Role.INSTANCE}
    members = [m.unit for unit in units if isinstance(unit, Class) for name in _TRUTH for m in unit.lookup(name)]
    return all(sameness.gives_same(member) for member in members if isinstance(member, Function))


_TRUTH = ("__bool__", "__len__")


def _leaving(facts: Facts, sameness: Sameness, loop: Loop) -> Iterator[ast.AST]:
    """What decides whether a loop is left before its end, or a round of it."""
    for inner in facts.once(_Exits).of(loop):
        yield from _around(facts, sameness, inner, loop)
        yield from _stopped_by_file(facts, inner, loop)


class _Exits:
    """The places by which loops are left, or a round of them."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[Loop, tuple[ast.AST, ...]] = {}

    def of(self, loop: Loop) -> tuple[ast.AST, ...]:
        """Those of one loop: `break`, `continue`, `return`, `sys.exit()`."""
        if loop not in self._known:
            self._known[loop] = tuple(inner for inner in own_nodes(loop) if self._leaves(inner, loop))
        return self._known[loop]

    def _leaves(self, inner: ast.AST, loop: Loop) -> bool:
        if isinstance(inner, (ast.Break, ast.Continue)):
            return next(self._facts.tree(loop).loops(inner), None) is loop
        if isinstance(inner, ast.Call):
            return bool(self._facts.called(inner) & known.EXITS)
        return isinstance(inner, ast.Return)


def _stopped_by_file(facts: Facts, inner: ast.AST, loop: ast.AST) -> Iterator[ast.AST]:
    """`if os.path.exists("stop"): break`: it may appear when one process has asked, and another not yet."""
    for above in facts.tree(inner).up(inner) if isinstance(inner, ast.Break) else ():
        if above is loop:
            return
        if isinstance(above, ast.If) and any(asked_files(facts, above.test)):
            yield above


def asked_files(facts: Facts, test: ast.expr) -> Iterator[ast.Call]:
    """The calls of a test that ask whether there is a file."""
    for call in walk(test).of(ast.Call):
        if facts.called(call) & known.PRESENCE or ast.unparse(call.func).endswith((".exists", ".is_file")):
            yield call


def is_shared_trouble(handler: ast.ExceptHandler, shared: Collection[str] = known.SHARED_TROUBLE) -> bool:
    """Whether a handler is for what all processes meet together."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(kind is not None and ast.unparse(kind).rpartition(".")[2] in shared for kind in kinds)
