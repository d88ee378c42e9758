"""prepare: one call hands loaders, models and optimizers to the accelerator.

    train_loader, model, optimizer = accelerator.prepare(train_loader, model, optimizer)

It stands after the last constructor that it needs and before the first use; a scheduler takes part if it counts the
batches of one process (see MIG118). Evaluation loaders take part if their loops can be shared out (see MIG114).
A loader whose batches the program needs on the CPU first (it augments them in NumPy, joins them with tensors that are
there, pins them) is prepared without moving them, and the program goes on moving them itself:

    loader, model, optimizer = accelerator.prepare(loader, model, optimizer, device_placement=[False, True, True])

A loader that is made in another function than the model, anew for each epoch, say, is prepared there; where it has no
name, prepare stands around its constructor:

    return self.accelerator.prepare(DataLoader(self.data, batch_size=64))

So are loaders of which nobody can say under which key, or at which place of a list, each of them stands:

    loaders = {name: accelerator.prepare(DataLoader(data[name], batch_size=64)) for name in args.splits}

A loader that something keeps before the model is there (an iterator, another name, an object), or whose length is set
against a number of steps by then, is prepared before that. So is a model that an object keeps which is made above the
optimizer, and runs it:

    model = accelerator.prepare(model)
    flow = Flow(model)
    optimizer = Adam(model.parameters())
    loader, optimizer = accelerator.prepare(loader, optimizer)

The folds of a cross-validation and the settings of a search prepare what is theirs in each round. The accelerator keeps
what it has prepared: where nothing else does, it is told to let go of what the round before has left:

    accelerator.free_memory()
    loader, model, optimizer = accelerator.prepare(loader, model, optimizer)

A loop that takes batches one by one, as many as a number says, takes no more than its process has:

    for step in range(steps):   ->   for step in range(min(steps, len(loader))):

Where a length is taken for a training, and the last pass over the loader may have been an evaluation, which has more
steps, it is asked for:

    steps = len(loader)   ->   steps = accelerator.steps_per_epoch(loader)

What is made and used only under a condition is prepared under it, an optimizer below its model. A loader that a
function finds in its module is prepared for all who read it there: `global train_loader` stands at the top of that
function.
Refused: programs that train or evaluate before everything is made.
Safe: on one process the objects come back as they are, the model on the accelerator's device.
"""

from __future__ import annotations

import ast
import textwrap
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_docstring
from migrate.analysis.units import Function
from migrate.programs.evaluation.steps import taken_for_training
from migrate.programs.prepare.apart import Group, apart
from migrate.programs.prepare.by_gpus import Kind, by_gpus
from migrate.programs.prepare.rounds import round_of
from migrate.programs.training.one_by_one import counted
from migrate.rules.layout import WIDTH, assignment, place
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.programs.home.naming import Named
    from migrate.programs.stages import Stage
    from migrate.rules.draft import Draft


@rule("MIG104")
def prepare(conversion: Conversion, draft: Draft) -> None:
    """Insert the call."""
    of_a_round = round_of(conversion.facts, conversion.placement)
    for stage in conversion.placement.stages.each:
        _prepare(conversion, draft, stage, lets_go=stage is of_a_round)
    for stage in conversion.placement.stages.elsewhere:
        if stage.call is None:
            _prepare(conversion, draft, stage)
        else:
            _wrap(conversion, draft, stage, stage.call)
    for length in taken_for_training(conversion):
        draft.rewrite(length.func, f"{conversion.access.name(length)}.steps_per_epoch")
    for number, loaders in counted(conversion):
        shares = "".join(f", len({ast.unparse(loader)})" for loader in loaders)
        draft.wrap(number, f"min({{it}}{shares})")
    _tell_workers(conversion, draft)
    _tell_numbers(conversion, draft)
    for loader in conversion.loaders:
        for need in [conversion.on_host[o] for o in loader.origins if o in conversion.on_host][:1]:
            draft.note(
                need.node,
                f"the batches of {loader.target} stay on the CPU until they are moved: one {need.reason.value}",
            )


def _tell_workers(conversion: Conversion, draft: Draft) -> None:
    """A number of workers that the processes of a machine shared is now that of each."""
    handed = conversion.program.handed
    made = {origin for loader in conversion.loaders for origin in loader.origins}
    calls = sorted((node for node in made if isinstance(node, ast.Call)), key=lambda node: node.lineno)
    if handed is not None and handed.workers and calls:
        draft.note(
            calls[0],
            "each process starts as many workers as this says: it was divided by the GPUs of a machine",
            "where that is too many, divide it by the processes that are started on a machine",
        )


#: What is told of a number that goes by the GPUs of a machine, of which each process has one: what it is, what to do.
_BY_GPUS = {
    Kind.BATCH: (
        "the batch goes by {count}, all GPUs of the machine, and each process has one of them",
        "give it the size of a batch for one GPU",
    ),
    Kind.WORKERS: (
        "each process starts as many workers as this says: their number goes by {count}, all GPUs of the machine",
        "give it the number of workers for one GPU",
    ),
    Kind.RATE: (
        "the learning rate goes by {count}, the GPUs of a machine, however many processes there are",
        "let it go by accelerator.num_processes, or write it out",
    ),
}


def _tell_numbers(conversion: Conversion, draft: Draft) -> None:
    """A batch that was cut up for all GPUs of a machine is now that of each process; so it is with other numbers."""
    for found in by_gpus(conversion):
        why, way_out = _BY_GPUS[found.kind]
        draft.note(found.call, why.format(count=ast.unparse(found.count)), way_out)


def _prepare(conversion: Conversion, draft: Draft, stage: Stage, *, lets_go: bool = False) -> None:
    """Prepare the objects of a stage, and let go before of what the accelerator has prepared in the last round."""
    accelerator = conversion.access.of(stage.unit)
    alone = apart(conversion.facts, conversion.program, stage.objects, stage.spot.statement)
    rest = [named for named in stage.objects if all(named not in group.objects for group in alone)]
    here = [Group(stage.spot.statement, rest)] if rest else []
    above, below = ([g for g in alone if (g.test is None) is is_above] for is_above in (True, False))
    freeing = f"{accelerator}.free_memory()\n" if lets_go and not alone else ""
    for group in (*above, *here, *below):
        draft.after(group.after, freeing + _call(conversion, group, accelerator), spaced=group in here)
    unit = stage.unit
    if isinstance(unit, Function) and (shared := _globals(conversion, unit, stage)):
        assert not isinstance(unit.node, ast.Lambda)
        first = next((s for s in unit.node.body if not is_docstring(s)), unit.node.body[0])
        draft.before(first, f"global {', '.join(shared)}")


def _call(conversion: Conversion, group: Group, accelerator: str) -> str:
    """`model, optimizer = accelerator.prepare(model, optimizer)`, under a condition where there is one."""
    names = _ordered(group.objects)
    targets = [named.target for named in names]
    at = place(conversion.facts.file(group.after), group.after)
    call = assignment(targets, f"{accelerator}.prepare", [*targets, *_placement(conversion, names)], at)
    if group.test is None:
        return call
    return f"if {ast.unparse(group.test)}:\n{textwrap.indent(call, at.unit)}"


def _wrap(conversion: Conversion, draft: Draft, stage: Stage, call: ast.Call) -> None:
    """Put prepare around the constructor of a loader that has no name."""
    function = f"{conversion.access.of(stage.unit)}.prepare"
    statement = conversion.facts.tree(call).statement(call)
    at = place(conversion.facts.file(call), statement)
    is_short = call.lineno != call.end_lineno or (call.end_col_offset or 0) + len(function) + 2 <= WIDTH
    kept = _placement(conversion, stage.objects)
    given = ", ".join(["{it}", *kept])
    draft.wrap(call, f"{function}({given})" if is_short else f"{function}(\n{at.unit}{given}\n)")


def _globals(conversion: Conversion, unit: Unit, stage: Stage) -> list[str]:
    """The names of its module that a function gives other values."""
    declared = {name for node in conversion.facts.own(unit).of(ast.Global) for name in node.names}
    mine = (named for named in stage.objects if named.module is unit.module and named.target.isidentifier())
    return [named.target for named in mine if named.target not in declared]


def _ordered(objects: Sequence[Named]) -> list[Named]:
    """The objects with `model.optimizer` before `model`: a name is assigned after what is reached through it."""
    owners = [each for each in objects if any(other.target.startswith(f"{each.target}.") for other in objects)]
    held = [each for each in objects if any(each.target.startswith(f"{owner.target}.") for owner in owners)]
    before = objects.index(owners[0]) if owners else len(objects)
    first = [each for each in objects[:before] if each not in held]
    return [*first, *held, *(each for each in objects[before:] if each not in held)]


def _placement(conversion: Conversion, names: Sequence[Named]) -> list[str]:
    """The argument that keeps the batches of some loaders on the CPU."""
    kept = [any(origin in conversion.on_host for origin in named.origins) for named in names]
    return [f"device_placement={[not is_kept for is_kept in kept]}"] if any(kept) else []
