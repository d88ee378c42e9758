"""agreement: what one process would decide by its own batch, all processes decide together.

    if torch.isnan(loss):   ->   if accelerator.gather(torch.isnan(loss)).any():
    if not math.isfinite(loss.item()):   ->   if any(accelerator.gather_for_metrics([not math.isfinite(loss.item())])):

A process that leaves a step alone (`continue`, `break`, `return`), or takes it alone, lets the others wait in backward
for ever. All leave it as soon as one of them would; all take it only if each of them would (`.all()`). So it is in an
expression (`optimizer.step() if loss < 9 else None`), and where a clock or a signal decides: `if time.time() - start >
60: break`. Of what is drawn all take what the main process has drawn:

    if random.random() < 0.1:   ->   if accelerator.gather_for_metrics([random.random() < 0.1])[0]:

Where a number is compared, and in what else they must do alike in a step (change what is trained, set a rate, step a
scheduler, evaluate, keep the weights), it is the mean, which is what one process would have asked for:

    if loss.item() < 0.1:   ->   if accelerator.reduce(loss.item(), reduction="mean") < 0.1:

Closures of an optimizer that decides by the loss (LBFGS) return the mean over the processes:

    return loss   ->   return accelerator.reduce(loss.detach(), reduction="mean")

What is decided after the batches goes by a number of all processes. What the last step left is joined after the loop
(`best = min(best, loss.item())`: by the least); what goes on growing is given the mean:

    losses.append(loss.item())   ->   losses.append(accelerator.reduce(loss.item(), reduction="mean"))

So it is where such a number stops the training, saves, steps a scheduler or sets a rate, and nowhere else.
A training that is begun again where it has failed, or goes on with the next epoch, does so once all have failed: what
handles that begins with `accelerator.wait_for_everyone()`.

Refused: a decision that not all processes come to, or that goes by what has no mean: outputs, the last batch's hits;
as many steps as the batch says (`for _ in range(int(loss)):`, `for row in x[mask]:`); a step that is left where
something has failed in it (`except RuntimeError: continue`): the others are in it by then.
Safe: on one process the condition, the loss and the numbers are what they were.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.same import PYTHON_NUMBERS
from migrate.programs.home.access import OutOfReach
from migrate.programs.processes.failing import begun_again
from migrate.programs.processes.replicas import differs, without_loader
from migrate.programs.shares.averages import Average, Joint
from migrate.rules.averaging import average_over
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG122")
def agreement(conversion: Conversion, draft: Draft) -> None:
    """Rewrite the conditions, and what closures return."""
    for each in conversion.agreements:
        accelerator = conversion.access.name(each.test)
        for number in each.means:
            average_over(conversion, draft, Average(number.node, "", Joint.MEAN, number.is_tensor))
        if each.means:
            continue
        if each.of_main:
            value = "bool({it})" if each.is_truth and not _is_bool(conversion, each.test) else "{it}"
            draft.wrap(each.test, f"{accelerator}.gather_for_metrics([{value}])[0]")
        elif each.is_tensor:
            draft.wrap(each.test, f"{accelerator}.gather({{it}}).{each.word}()")
        else:
            value = "{it}" if _is_bool(conversion, each.test) else "bool({it})"
            draft.wrap(each.test, f"{each.word}({accelerator}.gather_for_metrics([{value}]))")
    for loop in conversion.program.training:
        for average in conversion.loops.averaged(loop).edits:
            average_over(conversion, draft, average)
    for average in _of_draws(conversion):
        average_over(conversion, draft, average)
    for handler in begun_again(conversion.facts, conversion.loops, conversion.program):
        _wait_for_all(conversion, draft, handler)
    for loss in conversion.returned_losses:
        accelerator = conversion.access.name(loss)
        draft.wrap(loss, draft.quoted(loss, f"{accelerator}.reduce({{it}}.detach(), reduction='mean')"))


def _wait_for_all(conversion: Conversion, draft: Draft, handler: ast.ExceptHandler) -> None:
    """A training begins again once all processes have failed."""
    first = handler.body[0]
    if not conversion.access.can_reach(first) or not conversion.has_accelerator_at(first):
        why = "training goes on here where one process alone may have failed, and nothing there lets all wait"
        raise OutOfReach(handler, why, "let the exception end the program (`raise`)", code="MIG122")
    if first.lineno == handler.lineno:
        why = "training goes on here where one process alone may have failed, and all must wait for each other first"
        raise OutOfReach(handler, why, "put what the handler does on lines of its own", code="MIG122")
    draft.before(first, f"{conversion.access.name(first)}.wait_for_everyone()")
    draft.note(handler, "training goes on here once all processes have failed: one that fails alone waits in vain")


def _of_draws(conversion: Conversion) -> Iterator[Average]:
    """What is joined of numbers that weigh a loss, where each process draws its batches itself."""
    if differs(conversion.facts, conversion.loops, conversion.program):
        for loop in without_loader(conversion.program):
            for balance in conversion.loops.balances(loop, draws=True):
                yield from balance.edits or ()


_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


def _is_bool(conversion: Conversion, test: ast.expr) -> bool:
    """Whether a test is True or False as it is written, and neither a tensor nor another value with a truth."""
    match test:
        case ast.BoolOp(_, values):
            return all(_is_bool(conversion, value) for value in values)
        case ast.Compare(left, operators, comparators):
            is_identity = all(isinstance(operator, _IDENTITY) for operator in operators)
            return is_identity or any(_is_number(conversion, side) for side in (left, *comparators))
        case ast.Call():
            return "builtins.bool" in conversion.facts.called(test)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _is_number(conversion: Conversion, node: ast.expr) -> bool:
    """`loss.item()`, `random.random()`: a number of Python."""
    if not isinstance(node, ast.Call):
        return False
    is_item = isinstance(node.func, ast.Attribute) and node.func.attr == "item"
    return is_item or bool(conversion.facts.called(node) & PYTHON_NUMBERS)
