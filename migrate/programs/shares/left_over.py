"""What is one process's own after a training loop, and what a program decides by it.

Each process trains on its share of the batches. The last `loss`, a list of outputs: of these every process has others.
To print them is harmless; to stop, to save or to set a learning rate by them lets the processes part ways.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import arguments, rounds, targets_of, walk
from migrate.analysis.units import Function
from migrate.programs.shares.averages import Averages, Averaging
from migrate.programs.shares.feeding import fed, fed_by
from migrate.programs.shares.joins import apart
from migrate.programs.shares.own_places import holds_own_parts, is_filling, own_places
from migrate.programs.shares.own_sums import joined_below
from migrate.programs.shares.read_after import ReadAfter
from migrate.programs.shares.read_elsewhere import read_by_other_names, read_elsewhere
from migrate.programs.shares.trail import Trail
from migrate.programs.training.phases import evaluating
from migrate.programs.values.accumulators import holds_own, is_own, last_binding, statements_after
from migrate.programs.values.aliases import aliases, is_made_for
from migrate.programs.values.assigned import paired
from migrate.programs.values.below import below
from migrate.programs.values.kept import filled, place_of, root_of, written
from migrate.programs.values.lists import appended

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.shares.ground import Decision, Ground
    from migrate.programs.shares.joins import Join
    from migrate.programs.values.accumulators import Accumulator

_NOTHING = Averages()
_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_DEEPEST = 4  # calls between a training loop and what it leaves in attributes


def left_over(
    facts: Facts,
    loop: LoopFact,
    accumulated: Collection[Accumulator],
    joined: Collection[Join],
    averaged: Averages,
) -> dict[str, list[str]]:
    """What is not joined, holds something of the process's own batches, and is read after the loop; by which names."""
    read = ReadAfter()
    read.over(statements_after(facts, loop.node), set())
    own = _own_names(facts, loop, accumulated, joined)
    own |= _own_counts(facts, loop) - {each.name for each in accumulated if each.joined is not None}
    own -= averaged.names
    own -= joined_below(facts, loop, own)
    names = {name: [name, *sorted(aliases(facts, loop.node, {name}))] for name in sorted(own)}
    names |= {name: [name] for name in sorted(aliases(facts, loop.node, _had_before(facts, loop, accumulated)))}
    found: dict[str, list[str]] = {}
    for name, called in names.items():
        met = [each for each in called if read.has(each) or any(read_elsewhere(facts, loop, each))]
        if met := met or sorted({*read_by_other_names(facts, loop, {name})}):
            found[name] = met
    return found


def decisions(
    ground: Ground,
    loop: LoopFact,
    accumulated: Collection[Accumulator],
    joined: Collection[Join],
    averaged: Averages = _NOTHING,
) -> Iterator[Decision]:
    """What is decided by one process's own values after the loop, in whatever code they come to."""
    facts = ground.facts
    averaged |= _joined_of_entered(facts, loop, accumulated)
    own = _own_names(facts, loop, accumulated, joined) - averaged.names
    own |= aliases(facts, loop.node, own | _had_before(facts, loop, accumulated))
    whole = joined_below(facts, loop, own)
    yield from Trail(ground, loop.unit, own - whole).after(loop.node)
    of_steps = own | _of_batches(facts, loop)
    if flags := _flags(ground, loop, of_steps) - averaged.names:
        yield from Trail(ground, loop.unit, flags).after(loop.node)
    yield from _in_step(ground, loop, of_steps, averaged)
    for name in apart(facts, loop, joined).keys() - averaged.names - whole:
        yield from _fed_from_outside(ground, loop, name)
    for unit in _entered(ground, loop, loop.node, averaged):
        yield from Trail(ground, unit, _left_behind(ground, loop, unit, averaged)).elsewhere()


def _joined_of_entered(facts: Facts, loop: LoopFact, accumulated: Collection[Accumulator]) -> Averages:
    """What functions that the loop enters add up, and what is joined after the loop."""
    joined = {each.name for each in accumulated if each.joined is not None and not _is_read_early(each)}
    entered = below(facts, loop.node)
    return Averages(
        places=frozenset((each.unit.node, name) for each in entered for name in joined if each.shares(name))
    )


def _flags(ground: Ground, loop: LoopFact, own: set[str]) -> set[str]:
    """What is given a value on a condition that one process's batch meets: `if loss < 0.1: self.done = True`."""
    others = {text for target in _given_others(ground.facts, loop) for text in written(target)} - own
    trail = Trail(ground, loop.unit, set(own), in_step=True)
    if others:
        list(trail.over(loop.node.body))
    return trail.own & others


def _given_others(facts: Facts, loop: LoopFact) -> Iterator[ast.expr]:
    """What the loop gives something else than what it has of the batches."""
    for node in rounds(loop.node):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            pairs = (pair for to in targets_of(node) for pair in paired(to, node.value))
            yield from (target for target, value in pairs if not holds_own(facts, loop, value))


def _in_step(ground: Ground, loop: LoopFact, own: set[str], averaged: Averages = _NOTHING) -> Iterator[Decision]:
    """Where a step leaves the loop or sets a rate by what was kept; not by the batch itself, which is agreed on."""
    trail = Trail(ground, loop.unit, set(own), in_step=True)
    for decision in list(trail.over(loop.node.body)):
        if decision.test is None or decision.name in averaged.names or isinstance(decision.node, ast.Match):
            continue
        if not holds_own(ground.facts, loop, decision.test):
            yield decision


def _of_batches(facts: Facts, loop: LoopFact) -> set[str]:
    return set(_own_texts(facts, loop, rounds(loop.node)))


def _own_texts(facts: Facts, loop: LoopFact, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names and attributes among some nodes that hold something of the batches, as they are written."""
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and is_own(facts, loop, node):
            yield ast.unparse(node)


def _fed_from_outside(ground: Ground, loop: LoopFact, name: str) -> Iterator[Decision]:
    """By an object that others hold, too: what the methods that the loop feeds it with leave in it."""
    root, unit = root_of(name), loop.unit
    if not isinstance(unit, Function) or any(
        isinstance(node, ast.Name) and node.id == root and isinstance(node.ctx, ast.Store)
        for node in ground.facts.own(unit)
    ):
        return
    for call in fed_by(ground.facts, loop)[name]:
        for method in ground.facts.targets(call):
            yield from Trail(ground, method, _left_behind(ground, loop, method, _NOTHING)).elsewhere()


def averages(
    ground: Ground, loop: LoopFact, accumulated: Collection[Accumulator], joined: Collection[Join]
) -> Averages:
    """What of a process's own decides, and can be joined so that it does not differ any more; where something does."""
    found = _joined_of_entered(ground.facts, loop, accumulated)
    averaging = Averaging(ground, loop)
    fed_apart = apart(ground.facts, loop, joined)
    own = _own_names(ground.facts, loop, accumulated, joined)
    for name in sorted(own - joined_below(ground.facts, loop, own)):  # what is joined once is not averaged, too
        ground.left.clear()
        names = {name, *aliases(ground.facts, loop.node, {name})}
        is_asked = any(True for _ in Trail(ground, loop.unit, names).after(loop.node))
        is_asked = is_asked or (name in fed_apart and any(True for _ in _in_step(ground, loop, {name})))
        if is_asked or (name in fed_apart and any(True for _ in _fed_from_outside(ground, loop, name))):
            found |= averaging.name(name) or _NOTHING
    feeding = _feeding(ground.facts, loop)
    for call in [n for n in rounds(loop.node) if isinstance(n, ast.Call) and n not in feeding | found.calls]:
        if decisive := _decisive(ground, loop, call, found):
            given = averaging.call(call)
            if given is not None and not _decisive(ground, loop, call, found | given):
                found |= given
                continue
            for unit, name in decisive:
                found |= averaging.place(unit, name) or _NOTHING
    return found


def _decisive(ground: Ground, loop: LoopFact, call: ast.Call, averaged: Averages) -> list[tuple[Function, str]]:
    """What of a process's own a call leaves somewhere by which something is decided."""
    found: list[tuple[Function, str]] = []
    for unit in _entered(ground, loop, call, averaged):
        for name in sorted(_left_behind(ground, loop, unit, averaged)):
            ground.left.clear()
            if any(True for _ in Trail(ground, unit, {name}).elsewhere()):
                found.append((unit, name))
    return found


def _feeding(facts: Facts, loop: LoopFact) -> set[ast.Call]:
    """The calls whose objects are followed by their names."""
    return {call for calls in fed_by(facts, loop).values() for call in calls}


def _held(facts: Facts, loop: LoopFact, unit: Function, averaged: Averages) -> set[str]:
    """What a function leaves in attributes and globals, and in what it sets by that."""
    held = own_places(facts, loop, unit.node) | fed(facts, loop, unit.node).keys()
    return {name for name in held if (unit.node, name) not in averaged.places}


def _left_behind(ground: Ground, loop: LoopFact, unit: Function, averaged: Averages) -> set[str]:
    """The same, with what it sets where such a value, or one that it is given, decides: `self.stop = True`."""
    held = _held(ground.facts, loop, unit, averaged)
    own = held.union(_own_texts(ground.facts, loop, ground.facts.own(unit)))
    trail = Trail(ground, unit, {*own})
    for _ in trail.over(unit.body):
        pass
    done = own.union(name for node, name in averaged.places if node is unit.node)
    return held | {name for name in trail.own if "." in name} - done


def _entered(ground: Ground, loop: LoopFact, node: ast.AST, averaged: Averages) -> set[Function]:
    """The functions of the project that code comes to; not by calls whose objects are followed by their names."""
    facts = ground.facts
    feeding = _feeding(facts, loop)
    found: set[Function] = set()
    level: set[ast.AST] = {node}
    for _ in range(_DEEPEST):
        calls = [n for code in level for n in walk(code).of(ast.Call)]
        entering = [call for call in calls if call not in feeding and _hands_on(ground, loop, call, averaged)]
        new = {target for call in entering for target in facts.targets(call)} - found
        found |= new
        level = {target.node for target in new}
    return found


def _hands_on(ground: Ground, loop: LoopFact, call: ast.Call, averaged: Averages) -> bool:
    """Whether what a call enters has something of the batches: from the call, or from elsewhere."""
    targets = ground.facts.targets(call)
    given = arguments(call)
    parts = [inner for each in given for inner in walk(each).of(ast.expr)]
    if targets and call not in averaged.calls and any(is_own(ground.facts, loop, part) for part in parts):
        return True
    return bool(targets) and (
        ground.reaches_model(call) or any(_finds(ground.facts, loop, target, _DEEPEST) for target in targets)
    )


def _finds(facts: Facts, loop: LoopFact, unit: Function, depth: int) -> bool:
    """Whether a function takes something of the batches from elsewhere than its callers, and what it fills itself."""
    nodes = list(facts.own(unit))
    local = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | set(
        unit.parameter_names
    )
    kept = {_base(n) for n in nodes if isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store)}
    kept |= {_base(filled(node)) for node in nodes if is_filling(node)}
    for node in nodes:
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id not in local):
            if is_own(facts, loop, node) and _base(node) not in kept:
                return True
    return depth > 0 and any(
        _finds(facts, loop, target, depth - 1)
        for node in nodes
        if isinstance(node, ast.Call)
        for target in facts.targets(node)
        if target is not unit
    )


def _own_names(
    facts: Facts, loop: LoopFact, accumulated: Collection[Accumulator], joined: Collection[Join]
) -> set[str]:
    kept: set[str] = set()
    whole = evaluating(facts, loop)  # there each process sees all batches
    for node in rounds(loop.node):
        if node in whole:
            continue
        if isinstance(node, ast.Assign):
            is_made_of = holds_own_parts(facts, loop, node.value)
            for target in node.targets:
                names = {n.id for n in walk(target).of(ast.Name) if is_own(facts, loop, n)}
                kept |= {target.id} if is_made_of and isinstance(target, ast.Name) else names
        elif isinstance(node, (ast.AugAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name):
            if holds_own(facts, loop, node.value):
                kept.add(node.target.id)
    shared = {name: [v for v in added if v not in whole] for name, added in appended(facts, loop).items()}
    kept |= {name for name, added in shared.items() if any(holds_own_parts(facts, loop, v) for v in added)}
    kept |= own_places(facts, loop, loop.node, whole) | apart(facts, loop, joined).keys()
    for each in below(facts, loop.node):
        own = own_places(facts, loop, each.unit.node, whole)
        kept |= {name for name in own | aliases(facts, each.unit.node, own) if each.shares(name)}
    joined_names = {accumulator.name for accumulator in accumulated if not _is_read_early(accumulator)}
    return {name for name in kept - joined_names if name.partition("[")[0] not in joined_names}


def _had_before(facts: Facts, loop: LoopFact, accumulated: Collection[Accumulator]) -> set[str]:
    """The lists and dictionaries of which joined ones are made, where others had the old ones before the loop."""
    joined = (each.name for each in accumulated if each.joined is not None and each.name.isidentifier())
    return {name for name in joined if _is_had_before(facts, loop, name)}


def _is_had_before(facts: Facts, loop: LoopFact, name: str) -> bool:
    """`history.append(losses)` before the loop; `losses = history["train"]`."""
    last = last_binding(facts, loop, name)
    if last is None or not is_made_for(last):
        return last is not None
    read = (n for n in facts.own(loop.unit) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load))
    return any(last.statement.lineno < node.lineno < loop.node.lineno for node in read)


def _own_counts(facts: Facts, loop: LoopFact) -> set[str]:
    """What is counted where the process's own batches say so: `if guess == label: right += 1`."""
    whole = evaluating(facts, loop)
    added = (node for node in rounds(loop.node) if isinstance(node, ast.AugAssign) and node not in whole)
    return {place for node in added if _is_met_by_some(facts, loop, node) for place in place_of(node.target)}


def _is_met_by_some(facts: Facts, loop: LoopFact, node: ast.AST) -> bool:
    """Whether code in a loop goes by the process's own batches; not by a test to leave the step, on which all agree."""
    for above in facts.tree(node).up(node):
        if above is loop.node:
            return False
        asked = above.test if isinstance(above, ast.If) else above.iter if isinstance(above, ast.For) else None
        if asked is not None and holds_own(facts, loop, asked):  # a statement stands in no test
            return not any(isinstance(inner, _LEAVING) for inner in walk(above))
    return False


def _base(node: ast.expr) -> str:
    """What an item is one of, as it is written."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node)


def _is_read_early(accumulator: Accumulator) -> bool:
    """Whether it goes on growing over an outer loop, and is read there before the shares are joined."""
    within = {id(node) for node in walk(accumulator.loop.node)}
    return any(
        isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node) == accumulator.name
        for node in walk(accumulator.after)
        if id(node) not in within
    )
