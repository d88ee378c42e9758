"""Objects of the project that a training loop feeds with its results: `losses.update(loss)`, `metric(output, y)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import is_in_place
from migrate.analysis.roles import Role
from migrate.analysis.syntax import COMPREHENSIONS, arguments, reads, rounds, targets_of, walk
from migrate.analysis.texts import text_of
from migrate.analysis.units import Class
from migrate.programs.shares.meters import meter_of
from migrate.programs.shares.own_places import holds_own_parts
from migrate.programs.values.asides import done
from migrate.programs.values.below import below
from migrate.programs.values.kept import is_place, place_of
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
    from migrate.programs.loops import LoopFact

GROWING = frozenset({"append", "extend", "add", "update"})
_DEEPEST = 2  # methods of one object between the one that is called and the one that keeps something


def fed(facts: Facts, loop: LoopFact, root: ast.AST) -> dict[str, list[ast.Call]]:
    """The objects of the project that keep what code of a loop gives them of its batches, as they are written in it.

    Of `meters[key]`, and of `for meter in meters:`, only `meters` is known.
    """
    found: dict[str, list[ast.Call]] = {}
    for node in walk(root):
        if not isinstance(node, ast.Call) or not _is_feeding(facts, loop, node):
            continue
        if any(holds_own_parts(facts, loop, given) for given in arguments(node)):
            found.setdefault(_place(facts, receiver(facts, node)), []).append(node)
    return found


class _Fed:
    """What was found of each loop: it is asked for at each call of one."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.by: dict[ast.AST, dict[str, list[ast.Call]]] = {}


def fed_by(facts: Facts, loop: LoopFact) -> dict[str, list[ast.Call]]:
    """The same for a loop with the functions that it calls, as far as it has a name for the objects.

    These are places that both have, `self.losses`, and what the loop hands over: `step(x, y, losses)`.
    """
    known = facts.once(_Fed).by
    if loop.node not in known:
        known[loop.node] = _fed_by(facts, loop)
    return known[loop.node]


def _fed_by(facts: Facts, loop: LoopFact) -> dict[str, list[ast.Call]]:
    found = {place: [*calls] for place, calls in fed(facts, loop, loop.node).items()}
    for each in below(facts, loop.node):
        for place, calls in fed(facts, loop, each.unit.node).items():
            if each.shares(place):
                found.setdefault(place, []).extend(calls)
    for call in rounds(loop.node).of(ast.Call):
        for unit in facts.targets(call):
            given = {name: value for name, value in received(call, unit).items() if is_place(value)}
            for place, calls in fed(facts, loop, unit.node).items() if given else ():
                if place in given:
                    found.setdefault(ast.unparse(given[place]), []).extend(calls)
    return {place: list(dict.fromkeys(calls)) for place, calls in found.items()}


def receiver(facts: Facts, call: ast.Call) -> ast.expr:
    """The object whose method is called, or that is called itself."""
    is_called = any(value.role is Role.INSTANCE for value in facts.values(call.func))
    return call.func.value if isinstance(call.func, ast.Attribute) and not is_called else call.func


def classes(facts: Facts, call: ast.Call) -> Iterator[Class]:
    """The classes of the project that such an object may be of."""
    for value in facts.values(receiver(facts, call)):
        if value.role is Role.INSTANCE and isinstance(value.unit, Class):
            yield value.unit


def _is_feeding(facts: Facts, loop: LoopFact, call: ast.Call) -> bool:
    of = receiver(facts, call)
    is_named = isinstance(of, (ast.Name, ast.Attribute, ast.Subscript)) and text_of(of) != "self"
    if not is_named or not any(classes(facts, call)):
        return False
    counts = not _is_always(facts, loop, call)
    if not any(_changes(facts, method, counts=counts) for method in facts.targets(call)):
        return False
    return of is not call.func or _is_fed_by_call(facts, loop, call)


def _is_fed_by_call(facts: Facts, loop: LoopFact, call: ast.Call) -> bool:
    """`metric(output, y)`: what is called for its result, or to train, may keep something else, such as its steps."""
    if {facts.unit(backward) for backward in loop.backwards} & set(facts.targets(call)):
        return False
    is_done = call in done(facts.tree(call).statement(call))
    return is_done or all(meter_of(cls) is not None for cls in classes(facts, call))


def _place(facts: Facts, node: ast.expr) -> str:
    """The name of an object, or of what a loop or comprehension around takes it from."""
    if isinstance(node, ast.Name) and (over := _over(facts, node, node.id)) is not None:
        node = _holder(over.iter, over.target, node.id) or node
    return min(place_of(node), default=ast.unparse(node))


def _over(facts: Facts, node: ast.AST, name: str) -> ast.For | ast.comprehension | None:
    """The innermost loop around a node, or part of a comprehension, that sets a name."""
    for above in facts.tree(node).up(node):
        parts = [above] if isinstance(above, ast.For) else getattr(above, "generators", [])
        for part in parts:
            if any(isinstance(inner, ast.Name) and inner.id == name for inner in walk(part.target)):
                return part
    return None


def _holder(over: ast.expr, target: ast.expr, name: str) -> ast.expr | None:
    """What holds what a loop goes through under a name: `metrics`, `meters.values()`, `zip(names, metrics)`."""
    if isinstance(over, (ast.Name, ast.Attribute, ast.Subscript)):
        return over
    if not isinstance(over, ast.Call):
        return None
    if isinstance(over.func, ast.Attribute):
        return over.func.value if over.func.attr in ("values", "items") else None
    at = len(over.args) - 1
    if isinstance(target, ast.Tuple) and len(target.elts) == len(over.args):  # of `zip`
        at = next((i for i, each in enumerate(target.elts) if isinstance(each, ast.Name) and each.id == name), at)
    return over.args[at] if over.args and isinstance(over.args[at], (ast.Name, ast.Attribute)) else None


def _is_always(facts: Facts, loop: LoopFact, call: ast.Call) -> bool:
    """Whether each step of a loop comes to a call, and once."""
    for above in facts.tree(call).up(call):
        if above is loop.node:
            return True
        if not isinstance(above, (ast.expr, ast.With, ast.Assign, ast.AugAssign, ast.Expr)):
            return False
        if isinstance(above, (ast.IfExp, ast.BoolOp, ast.Lambda, *COMPREHENSIONS)):
            return False
    return False


def _changes(facts: Facts, method: Function, depth: int = _DEEPEST, *, counts: bool) -> bool:
    """Whether a method changes its object, or what that holds: itself, or by another that it hands something on to.

    `counts`: whether the processes may come to it at other times, so that its steps, `self.steps += 1`, are their own.
    """
    own = method.positional[0].arg if method.positional else ""
    counts = counts or any(isinstance(node, ast.Return) and node not in method.body for node in walk(method.node))
    for node in walk(method.node):
        kept: list[ast.expr] = []
        is_always = not counts and isinstance(node, (ast.expr, ast.stmt)) and _statement(facts, node) in method.body
        if is_always and isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            kept = targets_of(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _root(node.func.value) == own and depth and _hands_on(method, node):
                if any(_changes(facts, inner, depth - 1, counts=not is_always) for inner in facts.targets(node)):
                    return True
            is_growing = _puts(node.func.attr) and (node.args or node.keywords)
            kept = [node.func.value] if is_growing else []
        if any(own in reads(target) and not isinstance(target, ast.Name) for target in kept):
            return True
    return False


def _puts(method: str) -> bool:
    """Whether a method puts what it is given into its object: into a container, or a tensor where it stands."""
    return method in GROWING or (is_in_place(method) and method != "requires_grad_")


def _statement(facts: Facts, node: ast.AST) -> ast.stmt:
    return node if isinstance(node, ast.stmt) else facts.tree(node).statement(node)


def _root(node: ast.expr) -> str:
    """The object whose method is called, or that holds the one whose is: `self.add(x)`, `self.matrix.add(x)`."""
    return ast.unparse(node.value if isinstance(node, ast.Attribute) else node)


def _hands_on(method: Function, call: ast.Call) -> bool:
    """Whether a call is given what its method was: `self.add(loss)`."""
    given = {name for argument in arguments(call) for name in reads(argument)}
    return bool(given & {each.arg for each in method.positional[1:]})
