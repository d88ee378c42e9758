"""metrics: numbers that are printed, logged or decided by are those of the whole data set, on every process.

An evaluation loop is shared out where that is proven safe; right after the model's call every process gets the whole
batch back, so all that follows is as on one process:

    output = model(data)
                               ->   output, target = accelerator.gather_for_metrics((output, target))

A result that is used at once gets a name first: `correct += (model(x).argmax(1) == y).sum()`. Inputs that are asked
only how many they are, `images.size(0)`, are not gathered for that: another tensor of the batch says so,
`target.size(0)`.

An evaluation loop that looks at the batch in other ways is run in full by every process: right, not faster; the report
says why. Where its loader is also trained on, and so prepared, every process gets the whole batch first; where nothing
tells it from training (no eval mode, gradients on), it goes under `torch.no_grad()`. What a training loop adds up or
collects and reads afterwards is joined after the loop:

    total_loss += loss.item()     ->   total_loss = sum(accelerator.gather_for_metrics([total_loss]))
    losses.append(loss.item())    ->   losses = accelerator.gather_for_metrics(losses)
    sums[name] += loss.item()     ->   sums = accelerator.reduce(sums)

One with an entry of each step has them in the order of the steps, where something goes by it (`plt.plot(losses)`):

    losses = [each for step in zip(*accelerator.gather_for_metrics([losses])) for each in step]

A list whose sum is divided by how many batches one process has seen, `sum(losses) / len(loader)`, has the means over
the processes instead, entry by entry; so has one that goes on over all epochs, and one that code goes through with what
numbers the steps of one process, `zip(steps, losses)`:

    history.append(loss.item())   ->   history[:] = accelerator.reduce(history, reduction="mean")

So is what its last steps leave, the last loss or a moving average of it, of which the mean says the same:

    print(loss.item())            ->   loss = accelerator.reduce(loss, reduction="mean")

So is a meter of the project, with what its class computes from its sums:

    meter.update(loss.item())     ->   meter.sum, meter.count = accelerator.reduce((meter.sum, meter.count))

So are the statistics of batch normalization that `update_bn(loader, averaged_model)` takes anew.

A length that an evaluation needs of a loader which is trained on is asked for, since `len` is that of the last pass:

    batches = min(limit, len(loader))   ->   batches = min(limit, accelerator.steps_per_evaluation(loader))

So is one that is taken elsewhere, before anything is evaluated; where a training reads it, too, the evaluation asks:

    print(total / batches)              ->   print(total / accelerator.steps_per_evaluation(loader))

Batches that cannot be gathered, such as graphs, are given to every process as they are:

    for data in loader:                 ->   for data in accelerator.whole_batches(loader):

A training that may begin where an evaluation has left its model in eval mode would be taken for one:

    for x, y in train_loader:           ->   for x, y in accelerator.training_batches(train_loader):

A loop that trains and evaluates by turns, `for x, y in loaders[phase]`, or in a function that is told,
`run(train_loader, True)`, is run in full where it evaluates; what it adds up is joined where it has trained.

Left alone: numbers that a training loop shows while it runs (progress bars) are those of one process's share; and where
the processes cannot share the training data evenly, the samples that fill up the last batch count twice in such sums.
Rows of samples or classes that the loss of a later step reads (`targets[index] = output.detach()`) stay each process's
own, and those that a model keeps in a buffer are the main one's, which a note says.
"""

from __future__ import annotations

import ast
from copy import deepcopy
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.programs.evaluation.asked import asked
from migrate.programs.evaluation.unnamed import unnamed_evaluations
from migrate.programs.prepare.chosen_layers import forwards
from migrate.programs.shares.bars import bars_of_samples
from migrate.programs.shares.bent import bent
from migrate.programs.shares.counted_samples import goes_by_samples
from migrate.programs.shares.joins import apart_shown
from migrate.programs.shares.kept_by_models import kept_by_models
from migrate.programs.shares.last_numbers import last_numbers
from migrate.programs.shares.left_over import left_over
from migrate.programs.shares.running import running
from migrate.programs.shares.short_counts import short_counts
from migrate.programs.shares.yielded import yielded
from migrate.programs.training.batch_statistics import BatchStatistics
from migrate.programs.training.called_losses import unlike_means, weighed_inside
from migrate.programs.training.carried import carried, carried_inside
from migrate.programs.training.compared_inside import compared_inside
from migrate.programs.training.comparisons import Comparisons
from migrate.programs.training.flags import GRADIENTS, Flagged
from migrate.programs.training.queues import queues
from migrate.programs.training.reductions import folded_by_hand
from migrate.programs.training.rows_kept import rows_kept
from migrate.programs.training.sample_rows import SampleRows
from migrate.programs.values.accumulators import Accumulator
from migrate.programs.values.lists import shown as shown_lists
from migrate.programs.values.readers import Loaded
from migrate.rules.averaging import average_over
from migrate.rules.dividing import say_divided
from migrate.rules.joining import joining, meters_joined
from migrate.rules.kept import say_kept, say_kept_inside
from migrate.rules.layout import assignment, place
from migrate.rules.rule import rule
from migrate.rules.statistics import join_statistics
from migrate.rules.training_passes import say_training

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion
    from migrate.programs.evaluation.verdicts import Shared
    from migrate.programs.loops import LoopFact
    from migrate.programs.shares.averages import Average
    from migrate.programs.shares.joins import Join
    from migrate.programs.training.turning import Turning
    from migrate.rules.draft import Draft


_OF_OWN_ROWS = (
    "this loss compares the rows of a batch with each other: each process compares those of its own batches only"
)
_OF_OWN_STATISTIC = (
    "this loss goes on with a statistic of the batch, `{}`: each process takes that of its own rows, and the mean over "
    "processes is not what one would have computed of all"
)
_BENT = "which is no mean over the samples: each process takes it of its own part of a batch"
_CARRIED = "a mean over the batch can be that of all: accelerator.reduce(value, reduction='mean')"


@rule("MIG114")
def metrics(conversion: Conversion, draft: Draft) -> None:
    """Gather in evaluation loops, join after training loops."""
    for shared in conversion.shared:
        _gather(conversion, draft, shared)
    for whole in conversion.in_full:
        draft.note(whole.loop.node, f"every process runs this evaluation in full: {whole.why}")
    _ask_for_lengths(conversion, draft)
    for loop in unnamed_evaluations(conversion):
        draft.note(loop.node, "every process runs this evaluation in full: its loader is made apart from the training")
    _say_losses(conversion, draft)
    join_statistics(conversion, draft)
    if conversion.package == "runtime":
        say_training(conversion, draft)
    for loop in conversion.program.training:
        for part, why in folded_by_hand(conversion.facts, loop):
            draft.note(part, why)
        if loop.loaders & conversion.loader_origins:
            _join_shares(conversion, draft, loop)


def _say_other_rows(conversion: Conversion, draft: Draft, loop: LoopFact) -> None:
    """Say where a loss is computed from other rows than its own: of the batch, or of what earlier batches left."""
    facts, averaged = conversion.facts, conversion.loops.averaged(loop)
    samples = SampleRows(facts, loop, conversion.program.model_origins)
    for part in Comparisons(facts, samples).each():
        draft.note(part, _OF_OWN_ROWS)
    for part in BatchStatistics(facts, samples).each():
        draft.note(part, _OF_OWN_STATISTIC.format(ast.unparse(part)))
    queued = list(queues(facts, loop, conversion.program.model_origins))
    for statement in queued:
        queue = ast.unparse(statement.targets[0])
        draft.note(statement, f"the loss compares with {queue}, which each process fills from its own batches only")
    filled = list(rows_kept(facts, loop, conversion.program.model_origins))
    for filling, rows in filled:
        what = f"the loss is computed from {rows}, whose rows each process fills by its own batches only"
        draft.note(filling, what, "put in what all have: gather the index and what is put there above it")
    told = {filling for filling, _ in filled}
    inside = (each for each in carried_inside(facts, loop, conversion.program.model_origins) if each[0] not in told)
    for last, name in dict.fromkeys((*carried(facts, loop), *inside)):
        if name not in averaged.names and last not in queued:
            what = f"the loss is computed from {name}, which each process carries on from its own batches only"
            draft.note(last, what, _CARRIED)


def _join_shares(conversion: Conversion, draft: Draft, loop: LoopFact) -> None:
    """What a training loop adds up or collects is of all processes after it; say what is not."""
    facts, loops = conversion.facts, conversion.loops
    _say_other_rows(conversion, draft, loop)
    averaged, joined = loops.averaged(loop), loops.joined(loop)
    found = tuple(each for each in loops.accumulated(loop) if each.name not in averaged.names)
    shown = [accumulator.name for accumulator in found if accumulator.read_inside]
    shown += [join.target for join in joined if join.shown_inside]
    shown += [name for name in apart_shown(facts, loop, joined) if name not in averaged.names]
    joined, turn = tuple(join for join in joined if join.sums or join.lists), _turn(conversion, loop)
    left = left_over(facts, loop, found, loops.joined(loop), averaged)
    last = [] if turn is not None else _join_last(conversion, draft, loop, [*left])
    shown += [number.name for number in last if number.shown_inside]
    told = {*shown, *left, *averaged.names}
    shown += [name for name in shown_lists(facts, loop) if name not in told]
    shown += [name for name in running(facts, loop) if name not in {*told, *shown, *(each.name for each in found)}]
    shown += dict.fromkeys(bars_of_samples(facts, loop))
    by_models = [*kept_by_models(facts, loop)]
    shown += [kept.name for kept in by_models if not kept.is_read_after]
    for divided in short_counts(facts, loop, {*told, *(each.name for each in found)}):
        what = f"{ast.unparse(divided)} divides by one less than the batches of a process, which N share out"
        draft.note(divided, what, f"divide by {ast.unparse(divided.right)} + 1")
    say_divided(conversion, draft, loop, found)
    say_kept_inside(conversion, draft, loop)
    for test in goes_by_samples(facts, loops, loop):
        what = f"{ast.unparse(test)} goes by the samples of one process: all of N have seen N times as many by then"
        draft.note(test, what, "count those of all: multiply by accelerator.num_processes where they are counted")
    if shown:
        verb = "shows" if len(shown) == 1 else "show"
        draft.note(loop.node, f"while this loop runs, {_and(shown)} {verb} one process's share of the data")
    whole = {number.name for number in last}
    read = [name for each, names in left.items() if each not in whole for name in names]
    for name in dict.fromkeys([*read, *(kept.name for kept in by_models if kept.is_read_after)]):
        draft.note(loop.node, f"{name}, read after this loop, is of one process's share of the data")
    for given in yielded(facts, loop):
        draft.note(given, f"{ast.unparse(given)}, which is yielded here, is of one process's share of the data")
    if turn is not None:
        _join_where_training(conversion, draft, turn, found, joined)
        return
    joined_names = [*(each.name for each in found if each.joined is not None), *whole]
    for name, computed in bent(facts, loop, joined_names):
        draft.note(computed, f"{name} averages {ast.unparse(computed)}, {_BENT}")
    for accumulator in found:
        _join(conversion, draft, accumulator)
    for after in dict.fromkeys(join.after for join in joined):
        _join_meters(conversion, draft, after, [join for join in joined if join.after is after])


def _join_last(conversion: Conversion, draft: Draft, loop: LoopFact, names: list[str]) -> list[Average]:
    """Join the numbers that the last steps have left, where one asks for them after the loop; which these are."""
    is_step = conversion.loops.taking(loop.node) is not loop.node  # of one batch: that costs what it did
    if is_step or not conversion.access.can_reach(loop.node):
        return []
    found = list(last_numbers(conversion.facts, loop, names))
    for number in found:
        average_over(conversion, draft, number)
    return found


def _say_losses(conversion: Conversion, draft: Draft) -> None:
    """Losses that are no mean, where the processes share batches out: elsewhere each has a whole one."""
    facts, program = conversion.facts, conversion.program
    whole = {loop.node for loop in program.evaluation} - {loop.node for loop in program.training}
    if any(loop.loaders & conversion.loader_origins for loop in program.training):
        for loss, why in unlike_means(facts, conversion.units):
            if any(whole.isdisjoint(facts.tree(place).loops(place)) for place in _computed(facts, loss)):
                draft.note(loss, why)
        training = {loop.node for loop in program.training}
        steps = [use.node for use in conversion.uses if not training.isdisjoint(facts.tree(use.node).loops(use.node))]
        run = dict.fromkeys(forward for call in steps for forward in forwards(facts, call))
        trained = [c for c in steps if origins(facts.values(c.func), Role.MODEL) & program.model_origins]
        for loss, why in islice(weighed_inside(facts, run), 1):
            draft.note(loss, why)
        for part in compared_inside(facts, dict.fromkeys(f for call in trained for f in forwards(facts, call))):
            draft.note(part, _OF_OWN_ROWS)
        say_kept(conversion, draft, trained)


def _computed(facts: Facts, loss: ast.Call) -> list[ast.Call]:
    """Where a loss is computed: of a criterion that is made for that, its calls; nowhere if its name is never read."""
    made = [use.node for use in facts.calls if loss in origins(facts.values(use.node.func), Role.CRITERION)]
    given = facts.tree(loss).statement(loss)
    is_read = not isinstance(given, ast.Assign) or any(map(facts.once(Loaded).reads, given.targets))
    return made or ([loss] if is_read else [])


def _gather(conversion: Conversion, draft: Draft, shared: Shared) -> None:
    accelerator = conversion.access.name(shared.after)
    names = shared.names
    waiting = {id(node) for statement in shared.late for node in ast.walk(statement)}
    for node, other in shared.counted.items():
        if id(node) not in waiting:
            draft.rewrite(node, other)
    for statement in shared.late:
        draft.remove(statement)
    _take_below(conversion, draft, shared)
    at = place(conversion.facts.file(shared.after), shared.after)
    gather = f"{accelerator}.gather_for_metrics"
    if shared.without_gradients:
        draft.add_import(shared.loop.node, "torch")
        draft.wrap_block([shared.loop.node], "with torch.no_grad()")
        draft.note(shared.loop.node, "gradients are off in this evaluation: so the accelerator knows it for one")
    lines = [assignment(names, gather, names, at, as_tuple=True)] if names else []
    lines += [assignment([name], gather, [name], at) for name in shared.lists]
    code = "\n".join(lines + [draft.quoted(shared.after, _renamed(each, shared.counted)) for each in shared.late])
    for loader in shared.whole:
        draft.wrap(loader, f"{accelerator}.whole_batches({{it}})")
    if shared.before:
        if lines:
            draft.before(shared.after, code)
        draft.note(shared.loop.node, f"every process computes every batch of this evaluation: {shared.before}")
        return
    if shared.unnamed is None:
        for statement in (shared.after, *shared.also):
            draft.after(statement, code)
        return
    draft.lift(shared.unnamed, names[0], above=shared.after)
    draft.before(shared.after, code)


def _renamed(statement: ast.stmt, names: Mapping[ast.Name, str]) -> str:
    """The code of a statement with other names at some places."""
    copies: dict[int, ast.Name] = {}
    copied = deepcopy(statement, copies)
    for node, other in names.items():
        if id(node) in copies:
            copies[id(node)].id = other
    return ast.unparse(copied)


def _take_below(conversion: Conversion, draft: Draft, shared: Shared) -> None:
    """Lengths of the loader are taken when the pass is over, or asked for: above it `len` is that of a training."""
    for statement in shared.measured:
        tree = conversion.facts.tree(statement)
        if (around := tree.in_block(shared.loop.node, tree.block(statement))) is not None:
            draft.remove(statement)
            draft.after(around, f"{_bare(statement.targets[0])} = {_bare(statement.value)}")
    for call in shared.asked:
        draft.rewrite(call.func, f"{conversion.access.name(call)}.steps_per_evaluation")


def _ask_for_lengths(conversion: Conversion, draft: Draft) -> None:
    """Lengths that evaluations need and that are taken elsewhere are asked for there, or by each evaluation."""
    lengths = asked(conversion)
    for call in lengths.taken:
        draft.rewrite(call.func, f"{conversion.access.name(call)}.steps_per_evaluation")
    for node, call in lengths.read.items():
        loader = ast.unparse(call.args[0])
        draft.rewrite(node, f"{conversion.access.name(node)}.steps_per_evaluation({loader})")


def _bare(value: ast.expr) -> str:
    """A tuple without its parentheses, as people write one that is taken apart."""
    return ", ".join(map(ast.unparse, value.elts)) if isinstance(value, ast.Tuple) else ast.unparse(value)


def _join(conversion: Conversion, draft: Draft, accumulator: Accumulator) -> None:
    name, loop = accumulator.name, accumulator.loop.node
    if accumulator.joined is None:
        return
    if accumulator.is_number is None and not (accumulator.is_numeric and conversion.package == "runtime"):
        draft.left(
            loop,
            f"{name} is added up from this process's batches only, and whether it is a number or a tensor is not known",
            f"join it after the loop: {name} = accelerator.reduce({name}), if it is a tensor",
        )
        return
    draft.after(accumulator.after, "\n".join(joining(conversion, draft, accumulator)))


def _join_where_training(
    conversion: Conversion,
    draft: Draft,
    turn: Turning | Flagged,
    found: tuple[Accumulator, ...],
    joined: Collection[Join],
) -> None:
    """In a loop by turns the shares are joined where it has trained; evaluated is everything on each process."""
    loop = turn.loop.node
    draft.note(loop, f"every process runs this loop in full where it evaluates: only {turn.trained_on} is shared out")
    if turn.trains == GRADIENTS and (found or joined):
        draft.add_import(loop, "torch")
    for after in dict.fromkeys([*(each.after for each in found), *(join.after for join in joined)]):
        here = (each for each in found if each.joined is not None and each.after is after)
        lines = [line for each in here for line in joining(conversion, draft, each)]
        lines += meters_joined(conversion, after, [join for join in joined if join.after is after])
        later = next((b for a, b in pairwise(conversion.facts.tree(loop).block(after)) if a is after), None)
        if lines and isinstance(later, ast.If) and ast.unparse(later.test) == turn.trains:
            draft.before(later.body[0], "\n".join(lines))
        elif lines:
            unit = place(conversion.facts.file(loop), loop).unit
            draft.after(after, "\n".join([f"if {draft.quoted(loop, turn.trains)}:", *(unit + x for x in lines)]))


def _turn(conversion: Conversion, loop: LoopFact) -> Turning | Flagged | None:
    program = conversion.program
    dealt = next((each for each in program.turnings if each.loop is loop), None)
    return dealt or next((each for each in program.flagged if each.loop is loop), None)


def _join_meters(conversion: Conversion, draft: Draft, after: ast.stmt, joined: list[Join]) -> None:
    draft.after(after, draft.quoted(after, "\n".join(meters_joined(conversion, after, joined))))


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
