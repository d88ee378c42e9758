"""metrics: numbers that are printed, logged or decided by are those of the whole data set, on every process.

An evaluation loop is shared out where that is proven safe; right after the model's call every process gets the whole
batch back, so all that follows is as on one process:

    output = model(data)
                               ->   output, target = accelerator.gather_for_metrics((output, target))

A result that is used at once gets a name first: `correct += (model(x).argmax(1) == y).sum()`.

An evaluation loop that looks at the batch in other ways is run in full by every process: right, not faster; the report
says why. What a training loop adds up or collects and reads afterwards is joined after the loop:

    total_loss += loss.item()     ->   total_loss = sum(accelerator.gather_for_metrics([total_loss]))
    losses.append(loss.item())    ->   losses = accelerator.gather_for_metrics(losses)

Left alone: numbers that a training loop shows while it runs (progress bars) are those of one process's share; and where
the processes cannot share the training data evenly, the samples that fill up the last batch count twice in such sums.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.programs.accumulators import Accumulator, Joined
from migrate.programs.shares import left_over
from migrate.rules.layout import assignment, place
from migrate.rules.placing import dropped, without
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.programs.evaluation import Shared
    from migrate.programs.loops import LoopFact
    from migrate.rules.draft import Draft


@rule("MIG114", "metrics")
def metrics(conversion: Conversion, draft: Draft) -> None:
    """Gather in evaluation loops, join after training loops."""
    for shared in conversion.shared:
        _gather(conversion, draft, shared)
    for whole in conversion.in_full:
        draft.note(whole.loop.node, f"every process runs this evaluation in full: {whole.why}")
    for loop in conversion.program.training:
        if loop.loaders & conversion.loader_origins:
            found = conversion.loops.accumulated(loop)
            shown = [accumulator.name for accumulator in found if accumulator.read_inside]
            shown += _meters(conversion, loop)
            if shown:
                verb = "shows" if len(shown) == 1 else "show"
                draft.note(loop.node, f"while this loop runs, {_and(shown)} {verb} one process's share of the data")
            for name in left_over(conversion.facts, loop, found):
                draft.note(loop.node, f"{name}, read after this loop, is of one process's share of the data")
            for accumulator in found:
                _join(conversion, draft, accumulator)


def _gather(conversion: Conversion, draft: Draft, shared: Shared) -> None:
    accelerator = conversion.access.name(shared.after)
    names = list(shared.names)
    at = place(conversion.facts.file(shared.after), shared.after)
    code = assignment(names, f"{accelerator}.gather_for_metrics", names, at, as_tuple=True)
    if shared.unnamed is None:
        draft.after(shared.after, code)
        return
    draft.before(shared.after, f"{names[0]} = {ast.unparse(without(shared.unnamed, dropped(conversion)))}\n{code}")
    draft.rewrite(shared.unnamed, names[0])


def _join(conversion: Conversion, draft: Draft, accumulator: Accumulator) -> None:
    name, loop = accumulator.name, accumulator.loop.node
    if accumulator.joined is None:
        return
    if accumulator.is_number is None:
        draft.left(
            loop,
            f"{name} is added up from this process's batches only, and whether it is a number or a tensor is not known",
            f"join it after the loop: {name} = accelerator.reduce({name}), if it is a tensor",
        )
        return
    draft.after(accumulator.after, _joining(accumulator, conversion.access.name(loop)))


def _meters(conversion: Conversion, loop: LoopFact) -> list[str]:
    """Objects of the project, such as an AverageMeter, that a training loop feeds with its batches."""
    facts = conversion.facts
    found = []
    for node in ast.walk(loop.node):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            fed = any(roles(facts.values(argument)) & FROM_LOADER for argument in node.args)
            if fed and node.func.value.id != "self" and Role.INSTANCE in roles(facts.values(node.func.value)):
                found.append(node.func.value.id)
    return list(dict.fromkeys(found))


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _joining(accumulator: Accumulator, accelerator: str) -> str:
    name = accumulator.name
    if not accumulator.is_number:
        assert accumulator.joined is not None
        return f'{name} = {accelerator}.reduce({name}, reduction="{accumulator.joined.value}")'
    if accumulator.joined is Joined.LIST:
        return f"{name} = {accelerator}.gather_for_metrics({name})"
    share = f" / {accelerator}.num_processes" if accumulator.joined is Joined.MEAN else ""
    return f"{name} = sum({accelerator}.gather_for_metrics([{name}])){share}"
