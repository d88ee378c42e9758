"""Every `.to(device)` and `.cuda()` of a program, with what becomes of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DISTRIBUTED_DATA_PARALLEL
from migrate.analysis.roles import FROM_LOADER, ROWS, Role, origins, roles
from migrate.analysis.syntax import line_of
from migrate.analysis.units import Function, Unit
from migrate.programs.chance.initial import draws_inside, handed
from migrate.programs.device.devices import is_move, names_cpu
from migrate.programs.device.early import needs_device
from migrate.programs.device.handed_over import is_placed_by_object
from migrate.programs.device.lambdas import is_location, is_mapped, mapped
from migrate.programs.device.unprepared import runs_unprepared
from migrate.programs.home.set_up import running_raw
from migrate.programs.program import Program
from migrate.programs.reach.callees import on_all_ways
from migrate.programs.reach.entry_files import is_of_another_script

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.syntax import Tree
    from migrate.programs.along import Place
    from migrate.programs.device.taken_off import TakenOff
    from migrate.programs.prepare.placement import Placement
    from migrate.programs.stages import Stage, Stages


class Fate(Enum):
    """What becomes of a move."""

    MODEL = "the model is placed by prepare"
    BATCH = "the batch comes from a prepared loader"
    CRITERION = "the loss function has no tensors of its own"
    ELSEWHERE = "goes to the accelerator's device"
    UNTOUCHED = "is no part of the training program"


@dataclass(frozen=True, slots=True)
class Move:
    """One call that moves something to the training device."""

    node: ast.Call
    unit: Unit
    fate: Fate

    @property
    def is_dropped(self) -> bool:
        """Whether the call gives way to its receiver."""
        return self.fate in _DROPPED


_DEEPEST = 4  # calls inside calls
_DROPPED = (Fate.MODEL, Fate.BATCH, Fate.CRITERION)


def moves(
    facts: Facts,
    program: Program,
    prepared: set[ast.AST],
    inside: set[Unit],
    placement: Placement,
    off: TakenOff,
) -> list[Move]:
    """The moves in the units of a program; `prepared` is where the prepared loaders were made."""
    raw = running_raw(facts, program)
    found = [Move(call, facts.unit(call), Fate.MODEL) for call in off.dropped]
    for use in facts.calls:
        if not is_move(facts, use.node) or is_location(facts, facts.tree(use.node).parents[use.node]):
            continue
        fate = Fate.UNTOUCHED
        if _runs_in(facts, use.unit) in inside and not is_in_left_branch(facts, use.node):
            fate = _fate(facts, program, prepared, use.node, placement.stages, off)
            if fate is Fate.BATCH and _is_before(facts, use, placement.stages):
                fate = Fate.ELSEWHERE  # the loader is not prepared yet
                if program.start is program.home and use.node.lineno < placement.accelerator.statement.lineno:
                    fate = Fate.UNTOUCHED  # nor is there an accelerator
            if fate is Fate.BATCH and use.unit in raw:
                fate = Fate.ELSEWHERE
        elif is_placed_by_object(facts, program, placement, use):
            mine = origins(facts.receiver(use.node), Role.MODEL)
            stays = _draws_on_device(facts, program, use.node, mine) or _leaves_device(facts, mine, off)
            fate = fate if stays else Fate.MODEL
        if fate is Fate.MODEL and place_of(facts, use.node) in program.along.moves:
            fate = Fate.ELSEWHERE
        if fate in _DROPPED and _is_in_lambda(use.unit) and mapped(facts, use.node) is None:
            fate = Fate.ELSEWHERE  # nothing would be left of it but its parameter
        found.append(Move(use.node, use.unit, fate))
    return found


def place_of(facts: Facts, node: ast.expr) -> Place:
    """Where a node stands."""
    return facts.file(node).path, node.lineno, node.col_offset


def moves_of_models(facts: Facts, found: Iterable[Move]) -> frozenset[Place]:
    """Where models go on being moved by hand."""
    kept = (move.node for move in found if move.fate is Fate.ELSEWHERE)
    return frozenset(place_of(facts, node) for node in kept if Role.MODEL in roles(facts.receiver(node)))


def _is_before(facts: Facts, use: Use, stages: Stages) -> bool:
    """Whether a batch is moved above the place where its loader is prepared."""
    stage = stages.of(origins(facts.receiver(use.node), *ROWS))
    return use.unit is stage.unit and use.node.lineno < stage.spot.statement.lineno


def _runs_in(facts: Facts, unit: Unit) -> Unit:
    """The unit by which code is run: that of a lambda which map() calls where it stands."""
    return unit.parent or unit.module if isinstance(unit, Function) and is_mapped(facts, unit.node) else unit


def _is_in_lambda(unit: Unit) -> bool:
    return isinstance(unit, Function) and isinstance(unit.node, ast.Lambda)


def is_in_left_branch(facts: Facts, node: ast.AST) -> bool:
    """Whether a node stands in a branch that wraps the model in DistributedDataParallel itself: it is left as it is."""
    tree = facts.tree(node)
    for use in facts.calls_to(DISTRIBUTED_DATA_PARALLEL):
        if use.node in tree:
            branch = _nearest_branch(tree, use.node)
            if branch is not None and tree.in_block(node, branch) is not None:
                return True
    return False


def _nearest_branch(tree: Tree, node: ast.AST) -> list[ast.stmt] | None:
    """The body or else part that holds a node, of the innermost `if` around it."""
    below = node
    for above in tree.up(node):
        if isinstance(above, ast.If):
            return next((b for b in (above.body, above.orelse) if any(below is s for s in b)), None)
        below = above
    return None


def _fate(
    facts: Facts,
    program: Program,
    prepared: set[ast.AST],
    node: ast.Call,
    stages: Stages,
    off: TakenOff,
) -> Fate:
    receiver = facts.receiver(node)
    found = roles(receiver)
    if found == {Role.MODEL}:
        mine = origins(receiver, Role.MODEL)
        assert program.home is not None
        stays = _draws_on_device(facts, program, node, mine) or _leaves_device(facts, mine, off)
        stays = stays or needs_device(facts, node, mine, program, stages.of(mine).spot.statement)
        stays = stays or runs_unprepared(facts, program, mine)
        return Fate.MODEL if mine <= program.model_origins and not stays else Fate.ELSEWHERE
    if found == {Role.CRITERION}:
        return Fate.CRITERION if not _holds_tensors(facts, node) else Fate.ELSEWHERE
    if found and found <= ROWS and origins(receiver, *ROWS) <= prepared:
        is_early = _is_early(facts, node, stages.of(origins(receiver, *ROWS)))
        return Fate.ELSEWHERE if is_early else Fate.BATCH
    return Fate.ELSEWHERE


def _is_early(facts: Facts, node: ast.Call, stage: Stage) -> bool:
    """Whether a batch may have been taken from its loader before that was prepared: `x, y = next(iter(loader))`."""
    if facts.unit(node) is not stage.unit or stage.call is not None or any(True for _ in facts.tree(node).loops(node)):
        return False
    read = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return node.lineno <= stage.end or any(
        binding.target in read and binding.statement.lineno <= stage.end
        for binding in facts.bindings_in(stage.unit)
        if roles(binding.values) & FROM_LOADER
    )


def _draws_on_device(facts: Facts, program: Program, node: ast.Call, mine: set[ast.AST]) -> bool:
    """Whether the model's weights are drawn after the move: on the device's own random stream, so it must stay there.

    `Net().to(device)` then `net.apply(init)` draws from the GPU's generator; moved later, other weights would come out.
    """
    return any(
        origins(facts.receiver(use.node), Role.MODEL) & mine
        and not _is_inside_model(facts, use)
        and use.node is not node
        and not _is_above(facts, program, use.node, node)
        and not _applies_no_draw(facts, use.node)
        for use in facts.method_calls("apply", "init_weights", "reset_parameters", "weight_init")
    )


def _is_above(facts: Facts, program: Program, node: ast.Call, move: ast.Call) -> bool:
    """Whether a call of the program is made before a move, whoever makes it."""
    unit = facts.unit(move)

    def is_above(here: ast.AST) -> bool | None:
        if facts.unit(here) is unit:
            return line_of(here) < move.lineno
        return True if is_of_another_script(facts, program, here) else None

    return on_all_ways(facts, node, is_above)


def _applies_no_draw(facts: Facts, call: ast.Call) -> bool:
    """`model.apply(add_hooks)`: whether a call applies functions that are known, and draw no weights."""
    applied = handed(facts, call)
    is_known = bool(applied) and isinstance(call.func, ast.Attribute) and call.func.attr == "apply"
    return is_known and all(isinstance(unit, Function) and not draws_inside(facts, unit, _DEEPEST) for unit in applied)


def _is_inside_model(facts: Facts, use: Use) -> bool:
    """Whether a call stands in a method of a model: its constructor draws before anything is moved."""
    owner = use.unit.owner if isinstance(use.unit, Function) else None
    return owner is not None and Role.MODEL in facts.roles_of_bases(owner)


def _leaves_device(facts: Facts, mine: set[ast.AST], off: TakenOff) -> bool:
    """Whether the program takes the model off the device (to save it, say) and so has to bring it back by hand."""
    taken = [*facts.method_calls("cpu"), *(use for use in facts.method_calls("to") if names_cpu(use.node))]
    for_good = (*off.dropped, *off.unwrapped)
    return any(origins(facts.receiver(use.node), Role.MODEL) & mine for use in taken if use.node not in for_good)


def _holds_tensors(facts: Facts, node: ast.Call) -> bool:
    """Whether the loss function was made with tensors (class weights) that must live on the device."""
    assert isinstance(node.func, ast.Attribute)
    for value in facts.values(node.func.value):
        if not isinstance(value.origin, ast.Call) or value.unit is not None:
            return True
        named = {keyword.arg for keyword in value.origin.keywords}
        if value.origin.args or named & {"weight", "pos_weight", None}:
            return True
    return False
