"""What code of a training loop puts something of its batches into: attributes, items, containers.

    self.losses.append(loss.item())
    log["loss"] += loss.item()
    counts.index_add_(0, y, ones)       and other changes of a tensor where it stands
    loss = compute(output, y, log)      a function of the project that does so with what it is given

After the loop, each process finds there what came of its share of the data.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import arguments, rounds
from migrate.programs.shares.in_place import put_in_place
from migrate.programs.values.accumulators import holds_own, is_own
from migrate.programs.values.aliases import rows_of
from migrate.programs.values.assigned import assigned
from migrate.programs.values.kept import FILLING, filled, is_place, place_of, root_of
from migrate.programs.values.made_of import made_of
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.programs.loops import LoopFact

_DEEPEST = 2  # calls between the code and what fills a container


def own_places(
    facts: Facts,
    loop: LoopFact,
    root: ast.AST,
    whole: frozenset[ast.AST] = frozenset(),
    depth: int = _DEEPEST,
) -> set[str]:
    """Attributes and items that get something of a loop's batches in code of it, as they are written: `self.losses`.

    Of an item whose key is not written out, and of what a name is filled with, it is what holds them.
    """
    found: set[str] = set()
    for node in (node for node in rounds(root) if node not in whole):
        if isinstance(node, ast.Call) and depth > 0:
            found |= _filled_by(facts, loop, node, depth - 1)
        for target, value in _put(facts, node):
            if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
                if holds_own_parts(facts, loop, value) or _is_found_by_own(facts, loop, target):
                    found |= place_of(target) | rows_of(facts, target)
    return found


def is_filling(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a call may put what it is given into its object: `losses.append(loss)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLING


def _put(facts: Facts, node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """What a statement or a call puts something into, with what it puts there."""
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets if not isinstance(target, ast.Name)]
    if isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Name):
        return [(node.target, node.value)]
    if is_filling(node) and not facts.targets(node) and _may_be_filled(facts, filled(node)):
        return [(filled(node), argument) for argument in arguments(node)]
    if isinstance(node, ast.Call) and (changed := put_in_place(facts, node)):
        return changed
    if isinstance(node, ast.Call) and Role.METHOD in roles(facts.values(node.func)) and isinstance(node.func, ast.Name):
        return [(method.value, argument) for method in _methods(facts, node.func) for argument in arguments(node)]
    return []


def _methods(facts: Facts, name: ast.Name) -> Iterator[ast.Attribute]:
    """`put = losses.append`: the methods that fill something and that a name is given."""
    for given in assigned(facts, name):
        if isinstance(given, ast.Attribute) and given.attr in FILLING:
            yield given


def _filled_by(facts: Facts, loop: LoopFact, call: ast.Call, depth: int) -> set[str]:
    """The arguments of a call whose items the functions of the project that it enters fill."""
    found: set[str] = set()
    for unit in facts.targets(call):
        handed = {name: given for name, given in received(call, unit).items() if _may_hold(facts, given)}
        if handed:
            places = ((root_of(each), each) for each in own_places(facts, loop, unit.node, depth=depth))
            found |= {f"{ast.unparse(handed[root])}{each[len(root) :]}" for root, each in places if root in handed}
    return found


def _may_hold(facts: Facts, node: ast.expr) -> bool:
    """Whether an argument is a container that has a name, as far as is known."""
    return is_place(node) and roles(facts.values(node)) <= {Role.CONTAINER, Role.UNKNOWN}


def _may_be_filled(facts: Facts, node: ast.expr) -> bool:
    """Whether a method puts something into an object: an attribute, an item, or a container that has a name."""
    return not isinstance(node, ast.Name) or Role.CONTAINER in roles(facts.values(node))


def holds_own_parts(facts: Facts, loop: LoopFact, value: ast.expr) -> bool:
    """Whether a value is of the process's own batches, or a row, a text or an object that is made of such."""
    return any(is_own(facts, loop, part) or _is_put_together(facts, loop, part) for part in made_of(facts, value))


def _is_put_together(facts: Facts, loop: LoopFact, node: ast.expr) -> bool:
    """`detached(losses)`: whether a function of the project gives a row or a dictionary with something of the batches.

    A batch that it moves or cuts is none of these: whoever keeps that keeps rows.
    """
    is_entering = isinstance(node, ast.Call) and bool(facts.targets(node))
    return is_entering and _holds_computed(facts, loop, facts.values(node), _DEEPEST)


def _holds_computed(facts: Facts, loop: LoopFact, values: Values, depth: int) -> bool:
    inner = (v.origin for v in values if depth and v.role is Role.CONTAINER and v.origin is not None)
    held = (each for origin in inner for each in facts.holding(origin).values())
    return any(
        any(value.role in _COMPUTED and value.origin in loop.loaders for value in each)
        or _holds_computed(facts, loop, each, depth - 1)
        for each in held
    )


_COMPUTED = frozenset({Role.SAMPLES, Role.STATISTIC})


def _is_found_by_own(facts: Facts, loop: LoopFact, target: ast.expr) -> bool:
    """`matrix[label, guess] += 1`: whether a place among others is found by the process's own batches."""
    return isinstance(target, ast.Subscript) and holds_own(facts, loop, target.slice)
