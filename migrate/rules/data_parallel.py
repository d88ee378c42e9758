"""data-parallel: DataParallel is replaced by what prepare does.

    model = nn.DataParallel(model)      ->   (gone)
    model.module.state_dict()           ->   accelerator.unwrap_model(model).state_dict()
    getattr(model, "module", model)     ->   accelerator.unwrap_model(model)

Of `if torch.cuda.device_count() > 1:` the part for one GPU stays, and one of two branches that differ by `.module`. So
it does where the other part runs copies of the model on all GPUs (`torch.nn.parallel.replicate`); anywhere else that is
refused.
A function that only changes the DataParallel it is handed (`patch_replication_callback(model)`) is no longer called.
What `if isinstance(model, nn.DataParallel): model = model.module` took out of its wrapper is taken out in any case.
Where the program may go on training by this name, it keeps its wrapper, and the model inside is asked what it is asked.
Launch one process for each GPU instead: `runtime launch --num_processes 8 train.py`.
Left alone, with the reason: DistributedDataParallel and process groups in a branch of their own, DataParallel over
another dimension than the first.
Safe: on one device DataParallel calls the model as it is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL, LAUNCHERS, PROCESS_GROUPS
from migrate.analysis.roles import Role, origins
from migrate.programs.device.scattered import split_models
from migrate.programs.output.patched import patches
from migrate.programs.output.wrapped import (
    alike,
    alike_values,
    asked_for_module,
    for_one_device,
    module_accesses,
    splitting,
    taken_out_of_training,
)
from migrate.programs.reach.above import units_above
from migrate.programs.reach.unused import Unused
from migrate.rules.imports import drop_unused
from migrate.rules.placing import drop, wrappers
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts, Use
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

#: What a program does in a branch of its own to distribute itself: the code and the words of the finding.
_DISTRIBUTING = {
    **dict.fromkeys(DISTRIBUTED_DATA_PARALLEL, ("MIG110", "DistributedDataParallel stays in this branch")),
    **dict.fromkeys(PROCESS_GROUPS, ("MIG111", "the program joins a process group itself in this branch")),
    **dict.fromkeys(LAUNCHERS, ("MIG111", "the program starts its own processes in this branch")),
}
_PATCHED = "this changed DataParallel, and goes with it: layers that share statistics over its GPUs compute their own"
_WAY_OUT = "do not take this branch in the converted program: `runtime launch` starts the processes"


@rule("MIG110")
def data_parallel(conversion: Conversion, draft: Draft) -> None:
    """Take DataParallel off the trained models and say what is left of other wrappers."""
    wrapped = wrappers(conversion)
    drop(conversion, draft, wrapped)
    for call in wrapped:
        if _says_again(conversion.facts, call):
            draft.remove(conversion.facts.tree(call).statement(call))
    split = splitting(conversion.facts, conversion.units, conversion.program.model_origins)
    for node, is_body in for_one_device(conversion.facts, [*wrapped, *split]):
        draft.fold(node, keep="body" if is_body else "orelse")
    patching = list(patches(conversion.facts, conversion.program.model_origins))
    for call in patching:
        draft.remove(conversion.facts.tree(call).statement(call))
        draft.note(call, _PATCHED)
    drop_unused(conversion, draft, [call.func for call in (*wrapped, *split, *patching)])
    for call in wrapped:
        if len(call.args) > 1 or call.keywords:
            draft.note(call, "the device list of DataParallel is gone: runtime launch --gpu_ids chooses the GPUs")
    above = units_above(conversion.facts, conversion.units)
    for use in conversion.facts.calls:
        is_near = use.unit.module is conversion.program.module or use.unit in above
        if use.node not in wrapped and is_near:
            _leave(conversion, draft, use)
    _module_access(conversion, draft)


def _says_again(facts: Facts, call: ast.Call) -> bool:
    """`net = DataParallel(model)` behind `net = model`, as long as neither has been given anything else."""
    tree = facts.tree(call)
    statement = tree.statement(call)
    is_plain = isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1
    if not is_plain or not isinstance(statement, ast.Assign) or not call.args:
        return False
    target, model = ast.unparse(statement.targets[0]), ast.unparse(call.args[0])
    before = [
        binding
        for binding in facts.bindings_in(facts.unit(call))
        if binding.target in (target, model) and binding.statement.lineno < statement.lineno
    ]
    last = max(before, key=lambda binding: binding.statement.lineno, default=None)
    value = getattr(last.statement, "value", None) if last is not None else None
    return (
        last is not None
        and last.target == target != model
        and isinstance(value, (ast.Name, ast.Attribute))
        and ast.unparse(value) == model
        and tree.in_block(statement, tree.block(last.statement)) is not None
    )


def _leave(conversion: Conversion, draft: Draft, use: Use) -> None:
    """Say that a wrapper or a process group of the program's own stays."""
    names = conversion.facts.called(use.node)
    if names & DATA_PARALLEL and use.unit in conversion.units:
        draft.left(
            use.node,
            "DataParallel splits another dimension than the first, or its arguments are not known",
            "take DataParallel out, or convert the program by hand",
        )
    for name in sorted(names & _DISTRIBUTING.keys()) if not conversion.facts.once(Unused).holds(use.node) else ():
        code, what = _DISTRIBUTING[name]
        draft.left(use.node, what, _WAY_OUT, code)


def _module_access(conversion: Conversion, draft: Draft) -> None:
    """`model.module` was the model inside DataParallel: of the models that are trained, or lose their wrapper."""
    facts = conversion.facts
    models = conversion.program.model_origins | split_models(facts, conversion.units)
    accesses = [
        node
        for module in conversion.modules
        for node in facts.tree(module.tree).nodes
        if isinstance(node, ast.Attribute)
        and module_accesses(facts, node, models)
        and facts.unit(node) in conversion.units
    ]
    kept = {node for node in accesses if _keeps_wrapper(conversion, draft, node, node.value)}
    for node in accesses:
        if node not in kept:
            _ask_inside(conversion, draft, node, node.value)
    for choice, side in alike_values(facts, accesses):
        if not (isinstance(side, ast.Attribute) and _keeps_wrapper(conversion, draft, choice, side.value)):
            draft.join(choice, "", {"side": side})
    for use in conversion.uses:
        if asked_for_module(facts, use.node, models):
            if not _keeps_wrapper(conversion, draft, use.node, use.node.args[0]):
                _ask_inside(conversion, draft, use.node, use.node.args[0])
    for branch in alike(facts, accesses):
        inside = [a for a in accesses for s in branch.body if a in ast.walk(s)]
        needed = [a for a in inside if a not in kept and _is_prepared(conversion, a, a.value)]
        if not branch.orelse and not needed:
            draft.remove(branch)  # `model = model`
        else:
            draft.fold(branch, keep="body" if inside else "orelse")


def _keeps_wrapper(conversion: Conversion, draft: Draft, inner: ast.expr, model: ast.expr) -> bool:
    """Whether a name that is given the model inside of what it holds is one to train by: it goes on holding that."""
    statement = taken_out_of_training(conversion.facts, conversion.program, inner, model)
    if statement is not None:
        draft.remove(statement)
    return statement is not None


def _ask_inside(conversion: Conversion, draft: Draft, node: ast.expr, model: ast.expr) -> None:
    """Replace an expression by the model inside, which before prepare is the model."""
    text = ast.unparse(model)
    if _is_prepared(conversion, node, model):
        text = f"{conversion.access.name(node)}.unwrap_model({text})"
    draft.rewrite(node, text)


def _is_prepared(conversion: Conversion, node: ast.AST, model: ast.expr) -> bool:
    mine = origins(conversion.facts.values(model), Role.MODEL) & conversion.program.model_origins
    return bool(mine) and conversion.is_prepared_at(node, mine)  # a copy is none of those
