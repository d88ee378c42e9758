"""What a training's models keep while they run, beside what they give, and what somebody reads of it.

    layer.register_forward_hook(lambda layer, given, output: means.append(output.mean().item()))
    ...
    print(sum(means) / len(means))

So it is with attributes that a `forward` adds to, or sets: each process has those of its own batches. What a step
itself uses and empties, or sets anew, for a loss of its own batch, is no such thing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_stored, rounds, walk
from migrate.analysis.units import Function
from migrate.programs.reach.forwards import forwards_inside, with_own_methods
from migrate.programs.values.hooks import BACKWARD, FORWARD, fills, hooked, kept_by, read_of
from migrate.programs.values.kept import root_of
from migrate.programs.values.readers import Loaded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.values.hooks import Filling


def kept_inside(
    facts: Facts, loops: Loops, loop: LoopFact, models: Collection[ast.AST]
) -> Iterator[tuple[ast.AST, str]]:
    """Where such things are put away, and into which places, as they are called there."""
    units = [unit.node for unit in loops.updates.functions(loop.node)]
    step = [node for root in (loop.node, *units) for node in rounds(root)]
    inside = {*step, *(node for each in loops.evaluation for node in rounds(each.node))}
    calls = [n for n in step if isinstance(n, ast.Call) and origins(facts.values(n.func), Role.MODEL) & {*models}]
    forwards = {unit for call in calls for unit in forwards_inside(facts, call)}
    found = [(each, list(_read_of_hook(facts, each))) for each in hooked(facts, [loop.node], *FORWARD, *BACKWARD)]
    for forward in sorted(forwards, key=lambda unit: (facts.file(unit.node).path, unit.node.lineno)):
        found += [(each, list(read_of(facts, unit, each))) for each, unit in kept_by(facts, forward)]
    for filling, read in found:
        is_over = filling.grows and not _is_emptied(step, filling.place)
        if is_over and read and _is_emptied_below(facts, loop, filling.place, read):
            continue
        later = (node for node in read if node not in inside and not _is_in_forward(facts, node))
        if (is_over and (read or _is_handed(facts, filling))) or any(later):
            yield filling.node, filling.place


def _read_of_hook(facts: Facts, filling: Filling) -> Iterator[ast.expr]:
    """Where code reads what a hook fills, but for the hook itself."""
    own, place = facts.unit(filling.node), filling.place.partition("[")[0]
    loaded, last = facts.once(Loaded), place.rpartition(".")[2]
    hook = set(walk(own.node if isinstance(own, Function) else facts.tree(filling.node).statement(filling.node)))
    for node in loaded.attributes.get(last, ()) if "." in place else loaded.names.get(last, ()):
        is_meant = "." in place or facts.unit(node).module is own.module
        if is_meant and node not in hook and not is_stored(node) and not fills(facts, node):
            yield node


def _is_in_forward(facts: Facts, node: ast.AST) -> bool:
    """Whether a model reads something while it runs, where a hook of its layers has just put it."""
    unit = facts.unit(node)
    forwards = unit.owner.lookup("forward") if isinstance(unit, Function) and unit.owner is not None else ()
    return any(isinstance(each.unit, Function) and unit in with_own_methods(facts, each.unit) for each in forwards)


def _is_handed(facts: Facts, filling: Filling) -> bool:
    """Whether what makes a hook is handed what it fills: `make_hook(means)`, which others have another name for."""
    unit = facts.unit(filling.node)
    above = unit.parent if isinstance(unit, Function) else None
    return above is not None and root_of(filling.place) in above.parameter_names


def _is_emptied_below(facts: Facts, loop: LoopFact, place: str, read: Collection[ast.expr]) -> bool:
    """Whether a place is emptied right below a training loop, and read behind that alone, in the block of the loop.

    What an evaluation fills it with there is no share of the training data.
    """
    tree = facts.tree(loop.node)
    block = tree.block(loop.node)
    below = block[block.index(loop.node) + 1 :]
    emptying = next((each for each in below if _is_emptied([*walk(each)], place)), None)
    if emptying is None or not isinstance(emptying, (ast.Assign, ast.Expr)):
        return False
    behind = below[below.index(emptying) :]
    return all(facts.unit(each) is loop.unit and tree.in_block(each, behind) is not None for each in read)


def _is_emptied(step: Collection[ast.AST], place: str) -> bool:
    """Whether each step empties a place, or gives it something else: `features.clear()`, `features = []`."""
    last = place.partition("[")[0].rpartition(".")[2]
    for node in (each for each in step if isinstance(each, (ast.Name, ast.Attribute))):
        given = node.value if isinstance(node, ast.Attribute) and node.attr == "clear" else node
        if (given is not node or is_stored(node)) and isinstance(given, (ast.Name, ast.Attribute)):
            if (given.id if isinstance(given, ast.Name) else given.attr) == last:
                return True
    return False
