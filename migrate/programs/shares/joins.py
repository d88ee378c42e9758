"""Meters of the project that a training loop feeds, and what joins the shares of all processes after it.

`losses.update(loss.item(), n)` … `print(losses.avg)`: what such a class adds up can be added up over the processes,
too, and what it computes from its sums can be computed again. Where that is not so, the object stays one process's own:
it is told in the report, and nothing may be decided by it (`left_over.py`).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.syntax import arguments, reads, same, walk
from migrate.analysis.units import Function
from migrate.programs.shares.feeding import GROWING, classes, fed_by, receiver
from migrate.programs.shares.meter_lists import lists_of_means
from migrate.programs.shares.meters import SETTING_IN_PLACE, emptied, meter_of
from migrate.programs.values.additions import added_in_place
from migrate.programs.values.asides import done
from migrate.programs.values.content import asks_for_size
from migrate.programs.values.of_all import is_of_all

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.shares.meters import Meter


@dataclass(frozen=True, slots=True)
class Join:
    """A meter that is joined after a loop: its sums over all processes, then what is computed from them."""

    target: str  # as it is written: "losses", "self.losses"
    after: ast.stmt
    sums: tuple[str, ...]
    derived: tuple[tuple[str, str], ...]  # the attribute, and its expression with `{it}` for the meter
    shown_inside: bool  # it is also read while the loop runs
    of_arrays: bool = False  # whether the sums begin as arrays of NumPy
    lists: tuple[str, ...] = ()  # of the means of batches, which are made one number by number

    def below(self, way: str) -> Join:
        """The same of what an object holds: `metric.confusion.matrix` of `metric`."""
        sums = tuple(f"{way[1:]}.{name}" for name in self.sums)
        derived = tuple((f"{way[1:]}.{name}", code.replace("{it}", f"{{it}}{way}")) for name, code in self.derived)
        return replace(self, sums=sums, derived=derived)


def joins(facts: Facts, loop: LoopFact) -> Iterator[Join]:
    """The meters that can be joined after a training loop and are read there."""
    for target, calls in fed_by(facts, loop).items():
        if not all(_is_fed_whole(facts, loop, call, target, calls) for call in calls):
            continue
        found = {meter_of(cls) for call in calls for cls in classes(facts, call)}
        meter = found.pop() if len(found) == 1 else None
        anchor = _set_up_before(facts, loop, target, meter) if meter is not None else None
        if meter is None or anchor is None:
            continue
        way, inner = meter.innermost()
        sums, lists = _summed(inner), tuple(lists_of_means(facts, loop, meter, calls) if inner is meter else ())
        if sums is None or not meter.sums <= {*sums, *lists}:
            continue
        derived = _derived(inner, frozenset(sums))
        reading = [n for n in _reading(facts, loop, target) if not _feeds(facts, n, meter)]
        inside = [n for n in reading if _is_within(facts, n, anchor)]
        is_read_early = any(not _is_within(facts, n, loop.node) for n in inside)
        if any(isinstance(n, ast.Name) and not _is(n, target) for n in inside):
            continue  # who goes over all items may reset them
        if derived is not None and _is_read_after(facts, reading, anchor, target) and not is_read_early:
            if not any(_resets(facts, n, meter) for n in inside):
                is_asked = any(call not in done(facts.tree(call).statement(call)) for call in calls)
                begins = _begin_as_arrays(facts, inner)
                is_shown = (bool(inside) or is_asked) and any(_is_given_share(facts, call) for call in calls)
                made = Join(target, anchor, sums, derived, is_shown, begins, lists)
                yield made.below(way) if way else made


def apart(facts: Facts, loop: LoopFact, joined: Collection[Join]) -> dict[str, ast.Call]:
    """The objects that a training loop feeds and that stay one process's own, with the first call that feeds each."""
    targets = {join.target for join in joined}
    return {target: calls[0] for target, calls in fed_by(facts, loop).items() if target not in targets}


def _is_given_share(facts: Facts, call: ast.Call) -> bool:
    """Whether a meter is fed with something else than what all processes have summed up, and how large a batch is."""
    return any(not is_of_all(facts, given) and not asks_for_size(facts, given) for given in arguments(call))


def apart_shown(facts: Facts, loop: LoopFact, joined: Collection[Join]) -> list[str]:
    """Those of them that show a process's share while the loop runs."""
    fed = fed_by(facts, loop)
    return [name for name in apart(facts, loop, joined) if any(_is_given_share(facts, call) for call in fed[name])]


def _is_fed_whole(facts: Facts, loop: LoopFact, call: ast.Call, target: str, calls: Collection[ast.Call]) -> bool:
    """Whether a call feeds a meter itself: under its name, or that of a parameter of which nothing else is asked."""
    unit, of = facts.unit(call), receiver(facts, call)
    if unit is loop.unit or not isinstance(of, ast.Name) or not isinstance(unit, Function):
        return _is(of, target)
    if of.id not in unit.parameter_names:
        return _is(of, target)
    mine = {receiver(facts, each) for each in calls}
    return all(n in mine for n in facts.own(unit) if isinstance(n, ast.Name) and n.id == of.id)


def _set_up_before(facts: Facts, loop: LoopFact, target: str, meter: Meter) -> ast.stmt | None:
    """The statement around the loop before which, in the same block, the meter is made or reset."""
    tree = facts.tree(loop.node)
    inner: ast.stmt = loop.node
    while True:
        block = tree.block(inner)
        before = block[: next(i for i, statement in enumerate(block) if statement is inner)]
        if any(_sets_up(statement, target, meter) for statement in before):
            return inner
        parent = tree.parents[inner]
        if not isinstance(parent, ast.stmt) or isinstance(parent, (ast.FunctionDef, ast.ClassDef)):
            return None
        inner = parent


def _sets_up(statement: ast.stmt, target: str, meter: Meter) -> bool:
    if isinstance(statement, ast.Assign):
        is_set = any(ast.unparse(node) == target for to in statement.targets for node in walk(to))
        return is_set or _makes_item(statement, target)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        return isinstance(function, ast.Attribute) and function.attr in meter.resets and _is(function.value, target)
    return False


def _makes_item(statement: ast.Assign, target: str) -> bool:
    """`meters = {"loss": Meter()}`, for `meters["loss"]`."""
    item, made = _item(target), statement.value
    if (
        item is None
        or not isinstance(made, ast.Dict)
        or not any(_is(to, ast.unparse(item.value)) for to in statement.targets)
    ):
        return False
    pairs = zip(made.keys, made.values, strict=True)
    return any(key is not None and same(key, item.slice) and isinstance(value, ast.Call) for key, value in pairs)


def _item(target: str) -> ast.Subscript | None:
    """The item of a dictionary that has a name, under a key that is written out."""
    node = ast.parse(target, mode="eval").body
    is_item = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
    return node if is_item and isinstance(node, ast.Subscript) else None


def _is(node: ast.expr, target: str) -> bool:
    return ast.unparse(node) == target


def _reading(facts: Facts, loop: LoopFact, target: str) -> Iterator[ast.expr]:
    """Where the meter is read: in its function; an attribute of the object itself in the whole class.

    An item is read, too, where its dictionary is, other than for an item.
    """
    unit, item = loop.unit, _item(target)
    is_attribute = item is None and "." in target
    roots: list[ast.AST] = list(facts.own(unit))
    if is_attribute and isinstance(unit, Function) and unit.owner is not None:
        roots = list(walk(unit.owner.node))
    kind = ast.Subscript if item is not None else ast.Attribute if is_attribute else ast.Name
    for node in roots:
        if isinstance(node, kind) and isinstance(node.ctx, ast.Load) and _is(node, target):
            yield node
        elif item is not None and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            above = facts.tree(node).parents[node]
            if same(node, item.value) and not (isinstance(above, ast.Subscript) and above.value is node):
                yield node


def _is_read_after(facts: Facts, reading: list[ast.expr], anchor: ast.stmt, target: str) -> bool:
    """Whether a meter is read after the loop, itself or through what was made of it before: `Progress([losses])`."""
    end = anchor.end_lineno or 0
    unit = facts.unit(anchor)
    if any(facts.unit(node) is not unit or node.lineno > end for node in reading):
        return True
    made = [facts.tree(node).statement(node) for node in reading if node.lineno < anchor.lineno]
    others = {to.id for s in made if isinstance(s, ast.Assign) for to in s.targets if isinstance(to, ast.Name)}
    later = (n for n in facts.own(unit) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return any(node.id in others and node.lineno > end for node in later)


def _feeds(facts: Facts, node: ast.expr, meter: Meter) -> bool:
    return _called(facts, node) in meter.feeds


def _resets(facts: Facts, node: ast.expr, meter: Meter) -> bool:
    return _called(facts, node) in meter.resets


def _called(facts: Facts, node: ast.expr) -> str:
    """The method that is called on a node, or by calling it; empty: none."""
    parents = facts.tree(node).parents
    above = parents[node]
    if isinstance(above, ast.Call) and above.func is node:
        return "__call__"
    call = parents[above]
    is_method = isinstance(above, ast.Attribute) and isinstance(call, ast.Call) and call.func is above
    return above.attr if is_method and isinstance(above, ast.Attribute) else ""


def _is_within(facts: Facts, node: ast.AST, around: ast.AST) -> bool:
    return any(above is around for above in facts.tree(node).up(node))


# --- what a class adds up -------------------------------------------------------------------------------------------


def _summed(meter: Meter) -> tuple[str, ...] | None:
    """The attributes that add up, in the order of the code; None if one of them grows otherwise than a list does."""
    found: dict[str, bool] = {}
    for name in sorted(meter.feeds):
        unit = _method(meter, name)
        own = unit.positional[0].arg
        for node in walk(unit.node):
            grown = _added(node)
            if grown is not None:
                found[grown] = True  # `self.steps += 1`, too
            elif _grows_otherwise(node, meter.sums) or emptied(node, own) in meter.sums:
                return None
    return tuple(found)


def _begin_as_arrays(facts: Facts, meter: Meter) -> bool:
    """`self.matrix = np.zeros((n, n))`."""
    begun = [name for name in ("__init__", *sorted(meter.resets)) if name in meter.cls.names]
    given = [node for name in begun for node in walk(_method(meter, name).node) if isinstance(node, ast.Assign)]
    mine = [
        node.value for node in given if any(isinstance(t, ast.Attribute) and t.attr in meter.sums for t in node.targets)
    ]
    calls = (node for node in mine if isinstance(node, ast.Call))
    return any(name.startswith("numpy.") for call in calls for name in facts.called(call))


def _method(meter: Meter, name: str) -> Function:
    unit = next(value.unit for value in meter.cls.names[name] if isinstance(value.unit, Function))
    assert isinstance(unit, Function)
    return unit


def _added(node: ast.AST) -> str | None:
    """`self.sum += x`, `self.sum = self.sum + x`, `self.sum.add_(x)`."""
    if isinstance(node, ast.Expr):
        grown = [target for target, _ in added_in_place(node.value) if isinstance(target, ast.Attribute)]
        return grown[0].attr if grown else None
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Attribute):
        return node.target.attr
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
        if isinstance(node.targets[0], ast.Attribute) and same(node.targets[0], node.value.left):
            return node.targets[0].attr
    return None


def _grows_otherwise(node: ast.AST, sums: frozenset[str]) -> bool:
    """Whether an attribute is given something, or grows, other than by a sum and by `append`."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Attribute) and target.attr in sums for target in node.targets)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Attribute) and node.target.attr in sums
    growing = GROWING - {"append"} | set(SETTING_IN_PLACE)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in growing:
        return isinstance(node.func.value, ast.Attribute) and node.func.value.attr in sums
    return False


def _derived(meter: Meter, sums: frozenset[str]) -> tuple[tuple[str, str], ...] | None:
    """What is computed from the sums, with its expression; None if something cannot be computed again.

    The last value that was given stays what it was.
    """
    found: dict[str, str] = {}
    for name in sorted(meter.feeds):
        unit = _method(meter, name)
        own = unit.positional[0].arg
        given = {p.arg for p in (*unit.positional[1:], *unit.node.args.kwonlyargs)}
        for node in walk(unit.node):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute):
                continue
            if target.attr not in meter.derived - sums or reads(node.value) <= given:
                continue
            used = {n.attr for n in walk(node.value) if isinstance(n, ast.Attribute)}
            if reads(node.value) != {own} or not used <= sums or target.attr in found:
                return None
            found[target.attr] = _with_hole(node.value, own)
    return tuple(found.items())


def _with_hole(expression: ast.expr, own: str) -> str:
    copy = ast.parse(ast.unparse(expression), mode="eval").body
    for node in walk(copy):
        if isinstance(node, ast.Name) and node.id == own:
            node.id = "__it__"
    return ast.unparse(copy).replace("{", "{{").replace("}", "}}").replace("__it__", "{it}")
