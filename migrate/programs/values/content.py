"""Whether an expression goes by what the batches of one process hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.roles import FROM_LOADER, Role, origins, roles
from migrate.analysis.syntax import arguments, walk
from migrate.programs.values.fillings import Fillings
from migrate.programs.values.new_lists import is_empty_list
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

#: What may give something of a batch: a name, `self.loss`, `loss.item()`, `sums["loss"]`.
_READ = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_FORMS = frozenset("dim ndim dtype ndimension is_floating_point requires_grad keys".split())
_ASKING_FOR_FORM = frozenset(f"builtins.{name}" for name in ("isinstance", "type", "hasattr", "callable"))


def made_from(facts: Facts, loaders: Collection[ast.AST], node: ast.AST) -> bool:
    """Whether an expression is made from what a process's own batches hold, of loaders that were made there."""
    return any(
        not loaders_of.isdisjoint(loaders)
        for inner in walk(node)
        if isinstance(inner, _READ) and (loaders_of := origins(facts.values(inner), *FROM_LOADER))
    )


def depends_on_batch(facts: Facts, loop: LoopFact, node: ast.AST) -> bool:
    """Whether an expression is made from what a process's own batches hold."""
    if not made_from(facts, loop.loaders, node):
        return False
    counts = [inner for inner in walk(node) if _counts_steps(facts, loop, inner)]
    counted = {inner for count in counts for inner in ast.walk(count)}
    return any(
        made_from(facts, loop.loaders, inner)
        for inner in walk(node)
        if isinstance(inner, _READ) and counted.isdisjoint(ast.walk(inner))
    )


def goes_by_content(facts: Facts, loop: LoopFact, node: ast.AST) -> bool:
    """Whether a test depends on what the batches of one process hold, and not on how batches are built."""
    if _asks_for_form(facts, node) or _counts_steps(facts, loop, node):
        return False
    if isinstance(node, _READ) and depends_on_batch(facts, loop, node):
        return True
    return any(goes_by_content(facts, loop, inner) for inner in ast.iter_child_nodes(node))


def goes_by_values(facts: Facts, loop: LoopFact, node: ast.AST, seen: set[ast.AST] | None = None) -> bool:
    """Whether a number depends on what the batches of one process hold, and not on how large they are.

    What was looked at on one way is not looked at on another: between names that are given from each other in many
    branches there are more ways than can be gone.
    """
    seen = set() if seen is None else seen
    if node in seen or _asks_for_form(facts, node) or asks_for_size(facts, node):
        return False
    given = facts.once(Sources).given(node).expressions if isinstance(node, ast.Name) else ()
    if given and Role.BATCH not in roles(facts.values(node)):
        seen.add(node)
        return any(goes_by_values(facts, loop, each, seen) for each in given)
    if isinstance(node, (ast.Name, ast.Attribute)) or _is_kept(facts, node):
        return depends_on_batch(facts, loop, node)
    seen.add(node)
    return any(goes_by_values(facts, loop, inner, seen) for inner in ast.iter_child_nodes(node))


def _is_kept(facts: Facts, node: ast.AST) -> bool:
    """Whether an expression is an item of a list, tuple or dictionary that keeps something: `sums[0]`."""
    return isinstance(node, ast.Subscript) and Role.CONTAINER in roles(facts.values(node.value))


def asks_for_size(facts: Facts, node: ast.AST) -> bool:
    """`len(batch)`, `x.size(1)`, `x.shape[1]`."""
    if isinstance(node, ast.Call):
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in known.SIZES
        return is_method or "builtins.len" in facts.called(node)
    return isinstance(node, ast.Attribute) and node.attr in known.SIZE_ATTRIBUTES


def _asks_for_form(facts: Facts, node: ast.AST) -> bool:
    """`isinstance(batch, dict)`, `mask is not None`, `"mask" in batch`, `x.dim()`: the same for all batches."""
    if isinstance(node, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops)
    if isinstance(node, ast.Call):
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _FORMS
        return is_method or bool(facts.called(node) & _ASKING_FOR_FORM)
    return isinstance(node, ast.Attribute) and node.attr in _FORMS


def _counts_steps(facts: Facts, loop: LoopFact, node: ast.AST) -> bool:
    """`len(losses)` of a list to which each step of a training loop appends one, and which nothing else changes."""
    if not isinstance(node, ast.Call) or facts.called(node) != {"builtins.len"}:
        return False
    name = node.args[0] if node.args else None
    if not isinstance(name, ast.Name) or facts.unit(name) is not loop.unit:
        return False
    fillings = list(facts.once(Fillings).of(name))
    begun = facts.once(Sources).given(name).expressions
    return (
        bool(fillings)
        and bool(begun)
        and all(is_empty_list(facts, each) for each in begun)
        and all(_is_of_each_step(facts, loop, each) for each in fillings)
        and not any(_is_handed_on(facts, each, name.id) for each in facts.own(loop.unit))
    )


def _is_of_each_step(facts: Facts, loop: LoopFact, filling: ast.AST) -> bool:
    """`losses.append(x)` that stands in the loop itself, under no condition."""
    tree = facts.tree(filling)
    is_append = (
        isinstance(filling, ast.Call) and isinstance(filling.func, ast.Attribute) and filling.func.attr == "append"
    )
    return is_append and tree.parents.get(tree.statement(filling)) is loop.node


def _is_handed_on(facts: Facts, node: ast.AST, name: str) -> bool:
    """Whether a function of the project gets a list, which it may change, or another name does."""
    if isinstance(node, ast.Call):
        return bool(facts.targets(node)) and any(isinstance(a, ast.Name) and a.id == name for a in arguments(node))
    is_alias = isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name
    return is_alias or (isinstance(node, ast.Delete) and name in {n.id for n in walk(node) if isinstance(n, ast.Name)})
