"""What is refused, with the reason and the way out: a table of checks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from migrate.analysis.facts import Facts
from migrate.analysis.known import distributed
from migrate.analysis.known.training import AUTOGRAD_BACKWARD
from migrate.analysis.roles import ROWS, Role, origins, roles
from migrate.analysis.units import Class, Module
from migrate.programs.device.defaults import hidden_defaults
from migrate.programs.device.devices import is_unknown_move
from migrate.programs.device.lambdas import hidden_moves
from migrate.programs.device.spread import devices_in_turn, foreign_devices, several_devices
from migrate.programs.device.tensor_types import hidden_types
from migrate.programs.evaluation.metric_objects import twice_joined
from migrate.programs.home.access import NAME
from migrate.programs.loops import Loops, is_scaling
from migrate.programs.output.patched import OF_WRAPPER, is_patching
from migrate.programs.output.wrapped import for_one_device, opened_elsewhere, splitting
from migrate.programs.processes.agreement import parting_ways
from migrate.programs.processes.failing import failing
from migrate.programs.processes.films import recorded
from migrate.programs.processes.gaps import gaps
from migrate.programs.processes.own_rates import set_by_chance
from migrate.programs.processes.replicas import (
    dealt_out_before,
    differs,
    drawn_apart,
    loose_tensors,
    other_sources,
    parting_replicas,
    raw_models,
    set_apart,
)
from migrate.programs.processes.scaled_rows import scaled_rows
from migrate.programs.processes.uneven import uneven_steps, uneven_takes
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.above import units_above
from migrate.programs.reach.outsiders import units_of
from migrate.programs.reach.starters import is_option, started, watched
from migrate.programs.reach.unnamed import files, listed, unnamed, way_out
from migrate.programs.reach.unparsed import unparsed
from migrate.programs.reach.unused import Unused
from migrate.programs.shares.ground import Ground
from migrate.programs.shares.left_over import decisions
from migrate.programs.training import backwards
from migrate.programs.training.at_times import at_times_no_loader
from migrate.programs.training.closures import closures
from migrate.programs.training.numerics import numerics
from migrate.programs.training.set_gradients import set_gradients
from migrate.programs.training.turns import phases_in_turns

Check = Callable[[Facts, Loops, Program], Iterable[Refusal]]


def limits(facts: Facts, loops: Loops, program: Program) -> list[Refusal]:
    """Every reason for which a program is left as it is; none: it can be converted."""
    return [refusal for check in CHECKS for refusal in check(facts, loops, program)]


def _incomplete(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    for path in facts.cut_short:
        yield Refusal(
            program.training[0].node,
            "MIG905",
            f"the analysis of {path} stopped at its bound before it was done",
            "name fewer files at a time, or report the program to us",
        )


def _broken(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Where our analysis failed, what the program does is not known."""
    modules = {loop.unit.module for loop in program.training} | {program.module}
    reached = set().union(*(facts.imported(module) for module in modules)) if facts.broken else set()
    for path in sorted({module.path for module in reached} & facts.broken.keys()):
        yield Refusal(
            program.training[0].node,
            "MIG999",
            f"our analysis of {path} failed, so what the program does is not known",
            "report it with the file; --traceback shows where it happened",
        )


def _already_accelerated(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    for module in {loop.unit.module for loop in program.training}:
        for node in facts.tree(module.tree).nodes:
            if isinstance(node, ast.Call) and Role.ACCELERATOR in roles(facts.values(node)):
                yield Refusal(
                    node,
                    "MIG906",
                    "the file already makes an accelerator, and this loop does not use it",
                    "write accelerator.backward(loss) in this loop by hand",
                )
                return


def _names_taken(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """The program's own `accelerator` or `Accelerator`, which is another thing."""
    if any(_already_accelerated(facts, loops, program)):
        return  # it is the thing
    for module in {loop.unit.module for loop in program.training}:
        for node in facts.tree(module.tree).nodes:
            name = _behind_star(node, module) or bound(node)
            if name in (NAME, "Accelerator"):
                yield Refusal(
                    node,
                    "MIG100",
                    f"the name {name} is already taken here, for something else",
                    f"give it another name, and the accelerator can be called {name}",
                )
                return


def bound(node: ast.AST) -> str | None:
    """The name that a node gives to something."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.ImportFrom) and node.module not in ("runtime", "accelerate"):
        return next((n for alias in node.names if (n := alias.asname or alias.name) in (NAME, "Accelerator")), None)
    return None


def _behind_star(node: ast.AST, module: Module) -> str | None:
    """One of the two names, where `from data import *` brings it from another file of the project."""
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        return next((name for name in (NAME, "Accelerator") if name in module.names), None)
    return None


def _out_of_hand(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Backward calls in files that were only read."""
    far = [call for loop in program.training for call in loop.backwards if not facts.file(call).named]
    if far and not any(refusal.unnamed for refusal in program.refusals):  # one refusal lists them all
        paths = files(facts, loops, program.training, program.home)
        missing = unnamed(facts, paths)
        why = f"backward is called in {facts.file(far[0]).path}:{far[0].lineno}: the program needs {listed(missing)}"
        yield Refusal(program.training[0].node, "MIG904", why, way_out(paths, missing), missing)


def _backward_forms(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    for loop in program.training:
        for call in loop.backwards:
            if autograd := facts.called(call) & AUTOGRAD_BACKWARD:
                yield Refusal(call, "MIG105", *backwards.of_several(facts, call, min(autograd)))
            elif is_scaling(facts, call) and program.unready:
                pass  # as far as anybody knows, it would be written out once that is mended
            elif is_scaling(facts, call):
                yield Refusal(
                    call,
                    "MIG106",
                    "a scaler of a library computes the gradients and steps here",
                    "write loss.backward() and optimizer.step(), and start it with --mixed_precision fp16",
                )
            elif (unfit := backwards.unfit(facts, call)) is not None:
                yield Refusal(call, "MIG105", *unfit)


#: Always-on use of these means that the program distributes itself.
_DISTRIBUTED = {
    name: (code, why)
    for names, code, why in (
        (distributed.PROCESS_GROUPS, "MIG111", "the program joins a process group of its own"),
        (distributed.LAUNCHERS, "MIG111", "the program starts its own processes"),
        (distributed.RPC, "MIG111", "the program uses RPC"),
        (distributed.DISTRIBUTED_DATA_PARALLEL, "MIG110", "the program wraps its model in DistributedDataParallel"),
        (distributed.SHARDING, "MIG110", "the program shards its model with FSDP"),
        (distributed.PIPELINES, "MIG110", "the program is pipeline parallel"),
        (distributed.TENSOR_PARALLEL, "MIG110", "the program is tensor parallel"),
        (distributed.DEEPSPEED, "MIG110", "DeepSpeed runs the loop"),
    )
    for name in names
} | {name: ("MIG110", f"{library} joins the processes") for name, library in distributed.LIBRARIES.items()}


def _distributed(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """A program that always distributes itself; one that does so only behind a flag keeps that branch.

    What comes to it may do so in a file of its own: `train.py` joins a group, and a trainer beside it has the loop.
    """
    if program.unready:
        return
    units = [*(loop.unit for loop in program.training), *(u for u in (program.home, program.start) if u is not None)]
    modules = dict.fromkeys(unit.module for unit in units)
    above = (node for unit in units_above(facts, units) if unit.module not in modules for node in facts.own(unit))
    for node in (*(node for module in modules for node in facts.tree(module.tree).nodes), *above):
        if not isinstance(node, ast.Call):
            continue
        for name in facts.called(node) & _DISTRIBUTED.keys():
            if not is_option(facts, node) and not facts.once(Unused).holds(node):
                code, why = _DISTRIBUTED[name]
                yield Refusal(
                    node, code, why, "take it out so that the program runs on one device, then run migrate again"
                )


def _lone_decisions(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """`scheduler.step(loss)`, `if loss < best: save` after the batches: every process has another loss."""
    ground = Ground(facts, loops)
    told: set[ast.AST] = set()
    decides = any(loops.decides(loop) for loop in program.training)  # what joins takes from these, and adds none
    for loop in program.training:
        known = loops.accumulated(loop), loops.joined(loop), loops.averaged(loop)
        for decision in decisions(ground, loop, *known) if decides else ():
            if decision.node in told:
                continue
            told.add(decision.node)
            yield Refusal(
                decision.node,
                "MIG122",
                f"{decision.what} here goes by {decision.name}, which differs between processes: they would part ways",
                _BY_ROWS if Role.LOADER in roles(facts.values(decision.node)) else _BY_NUMBERS,
            )
        for balance in loops.balances(loop, draws=not loop.loaders and differs(facts, loops, program)):
            if balance.edits is None:
                what, way_out = _BALANCES[balance.of_batch]
                yield Refusal(
                    balance.at, "MIG122", f"{balance.name} weighs the loss and {what}: each has its own", way_out
                )


_BY_NUMBERS = "go by a number of the whole epoch: add up loss.item() in the loop and divide by len(loader) after it"
_BY_ROWS = "go over all of the data, unshuffled and in eval mode, after the epoch: every process has its numbers then"
#: Why a number that weighs the loss cannot be the same on all processes, by whether it is made of a whole batch.
_BALANCES = {
    False: ("goes by what only some processes come to", "give it its value in every step, or under no condition"),
    True: ("is set by a batch of one process", "make it of a number, `x.item()`, of which the mean can be taken"),
}


def _needed_wrappers(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Code that needs the DataParallel around a trained model, which goes away."""
    wrapped = (use for use in facts.calls_to(distributed.DATA_PARALLEL) if use.node.args)
    if not any(origins(facts.values(use.node.args[0]), Role.MODEL) & program.model_origins for use in wrapped):
        return
    for unit in units_of(facts, program):
        for node in facts.own(unit) if not is_patching(facts, unit) else ():
            asked = _asked_of_wrapper(facts, node)
            if asked is not None and origins(facts.values(asked), Role.MODEL) & program.model_origins:
                why = f"`{ast.unparse(node)}` needs the model in DataParallel, which goes away"
                yield Refusal(node, "MIG110", why, "take this out, with DataParallel, and run migrate again")


def _split_by_hand(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """A model that runs on all GPUs, in every process, wherever that is not the part for several GPUs of an `if`."""
    if program.home is None:
        return
    for call in splitting(facts, units_of(facts, program), program.model_origins):
        if not any(for_one_device(facts, [call])):
            why = "the program splits its batches over the GPUs itself here: each process would take all of them"
            yield Refusal(call, "MIG110", why, "call the model itself: `runtime launch` starts a process for each GPU")


def _asked_of_wrapper(facts: Facts, node: ast.AST) -> ast.expr | None:
    """The model of `model.device_ids`, or of `isinstance(model, DataParallel)` where that must hold."""
    if isinstance(node, ast.Attribute) and node.attr in OF_WRAPPER:
        classes = (value.unit for value in facts.values(node.value))
        is_own = any(isinstance(cls, Class) and (cls.sets(node.attr) or cls.lookup(node.attr)) for cls in classes)
        return None if is_own else node.value
    if isinstance(node, ast.Call) and len(node.args) == 2 and "builtins.isinstance" in facts.called(node):
        above = facts.tree(node).parents[node]
        names = facts.names(node.args[1])
        is_asserted = isinstance(above, ast.Assert) and bool(names) and names <= distributed.DATA_PARALLEL
        return node.args[0] if is_asserted else None
    return None


def _unknown_moves(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """`x.to(self.gpu)` where nobody knows what that is."""
    if program.home is None:
        return
    units = units_of(facts, program)
    for use in facts.method_calls("to"):
        receiver = facts.receiver(use.node)
        mine = origins(receiver, Role.MODEL) & program.model_origins
        batches = origins(receiver, *ROWS) & program.training_loaders  # a number of them may lie anywhere
        if use.unit in units and (mine or batches) and is_unknown_move(facts, use.node):
            yield Refusal(
                use.node,
                "MIG103",
                f"what {ast.unparse(use.node)} moves to is not known",
                "move to a torch.device that is made in the named files",
            )


CHECKS: tuple[Check, ...] = (
    _incomplete,
    _broken,
    unparsed,
    _already_accelerated,
    twice_joined,
    _names_taken,
    _out_of_hand,
    _backward_forms,
    set_gradients,
    numerics,
    _distributed,
    started,
    watched,
    several_devices,
    foreign_devices,
    devices_in_turn,
    hidden_defaults,
    hidden_types,
    hidden_moves,
    parting_ways,
    uneven_steps,
    uneven_takes,
    failing,
    gaps,
    _lone_decisions,
    loose_tensors,
    at_times_no_loader,
    other_sources,
    parting_replicas,
    drawn_apart,
    dealt_out_before,
    raw_models,
    set_apart,
    scaled_rows,
    set_by_chance,
    recorded,
    phases_in_turns,
    closures,
    _unknown_moves,
    _needed_wrappers,
    opened_elsewhere,
    _split_by_hand,
)
