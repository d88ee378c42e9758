"""Where loaders are prepared that are made in another unit than the model and the optimizer."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import FUNCTIONS, line_of
from migrate.analysis.units import Function, Module, Unit
from migrate.programs.home.around import around
from migrate.programs.home.first_looks import DATA, is_first_look, reads_global
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import on_all_ways
from migrate.programs.reach.outsiders import units_of
from migrate.programs.training.gradients_off import without_gradients
from migrate.programs.values.takes import taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.evaluation.verdicts import InFull
    from migrate.programs.home.around import Holder
    from migrate.programs.home.naming import Named


class Unplaced(Exception):
    """A loader cannot be prepared before it is used."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


def placed(facts: Facts, program: Program, prepared: Iterable[Named]) -> list[tuple[ast.stmt, list[Named]]]:
    """The statements after which loaders are prepared, with these: those of one block together, if nothing is between.

    Raises:
        Unplaced: one is read before there is an accelerator to prepare it.
    """
    units = units_of(facts, program)
    holders = around(facts, program, units)
    found: list[tuple[ast.stmt, list[Named]]] = []
    for named in prepared:
        assert named.unit is not None
        last = _last(facts, named, None if named.unit in units else _holder(facts, holders, named))
        if named.call is None and (read := _read(facts, named, last)) is not None:
            raise Unplaced(_too_early(read, named))
        if found and named.call is None and (joined := _joined(facts, found[-1], (last, named))) is not None:
            found[-1] = joined
        else:
            found.append((last, [named]))
    return found


def _holder(facts: Facts, holders: dict[Unit, Holder], named: Named) -> Holder:
    holder = holders.get(named.unit) if named.unit is not None else None
    if holder is None or (named.call is not None and not holder.is_there(facts, named.call)):
        raise Unplaced(
            Refusal(
                named.statements[-1],
                "MIG901",
                f"{named.target} is made where the accelerator, which the model and the optimizer are prepared with, "
                "has no name",
                "make the model, the optimizer and the loader in one function, or in one __init__",
            )
        )
    return holder


def _last(facts: Facts, named: Named, holder: Holder | None) -> ast.stmt:
    """The statement after which a loader is there, and what holds the accelerator."""
    tree = facts.tree(named.statements[0])
    block = tree.common_block(named.statements)
    at = max(i for i, held in enumerate(block) if any(tree.in_block(s, [held]) for s in named.statements))
    if holder is not None and block[at].lineno < holder.line:
        if block is not holder.block:
            raise Unplaced(_too_early(block[at], named))
        at = max(i for i, held in enumerate(block) if held.lineno <= holder.line)
    return block[at]


def _joined(
    facts: Facts, group: tuple[ast.stmt, list[Named]], other: tuple[ast.stmt, Named]
) -> tuple[ast.stmt, list[Named]] | None:
    """A group with one more loader, where all can be prepared by one call; None: they cannot."""
    first, names = group
    last, named = other
    if names[0].unit is not named.unit or names[0].call is not None:
        return None
    tree = facts.tree(first)
    block = tree.block(first)
    below = max(first, last, key=line_of)
    if tree.block(last) is not block or any(_read(facts, each, below) for each in (*names, named)):
        return None
    return below, [*names, named]


def _read(facts: Facts, named: Named, last: ast.stmt) -> ast.AST | None:
    """What reads a loader between the statement that makes it and the one after which it is prepared."""
    assert named.unit is not None
    made = max(s.end_lineno or s.lineno for s in named.statements)
    tree = facts.tree(last)
    for node in facts.own(named.unit):
        if not made < line_of(node) <= (last.end_lineno or last.lineno):
            continue
        if isinstance(named.unit, Module) and isinstance(node, ast.Call) and reads_global(facts, node, named):
            return node
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            parent = tree.parents[node]
            if ast.unparse(node) == named.target and getattr(parent, "attr", "") not in DATA:
                return node
        if isinstance(node, FUNCTIONS):
            return node
    return None


def evaluated_beside(
    facts: Facts, program: Program, prepared: Iterable[Named], in_full: Sequence[InFull], handed_out: set[ast.AST]
) -> Iterator[Refusal]:
    """What is made for training and for an evaluation in one place, where that needs all batches in each process."""
    for named in (named for named in prepared if named.unit is not None):
        found: list[ast.AST] = [each.loop.node for each in in_full if each.loop.loaders & named.origins]
        uses = (use.node for use in facts.calls if taken(facts, use.node) & named.origins)
        uses = (node for node in uses if not is_first_look(facts, program, node, set(named.origins)))
        found += [node for node in uses if not _is_yielded(facts, node) and not _trains_on(facts, program, node)]
        if named.origins & handed_out:
            found.append(named.statements[-1])
        for node in found[:1]:
            yield Refusal(node, "MIG114", *_why_beside(facts, program, named))


def _why_beside(facts: Facts, program: Program, named: Named) -> tuple[str, str]:
    """The reason, and the way out."""
    what, line = named.target, named.statements[-1].lineno
    if named.origins <= program.training_loaders and not facts.singles.runs_again(named.statements[-1]):
        why = f"{what} is trained on, and of what is taken here some goes where nothing is trained, as far as is seen"
        among = "the batches of several loaders may be taken in one place"
        return f"{why}: {among}", "run over each loader itself, `for batch in loader:`, in a function of its own"
    why = f"what is taken here from {what} is not trained on, and the loader is made in one place (line {line})"
    return f"{why} with one that is: both would be prepared", "make a DataLoader of its own for the evaluation"


def _is_yielded(facts: Facts, node: ast.AST) -> bool:
    """Whether a generator takes a batch and hands it on: who takes that from the generator is looked at instead."""
    unit = facts.unit(node)
    return isinstance(unit, Function) and any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in facts.own(unit))


def _trains_on(facts: Facts, program: Program, node: ast.AST) -> bool:
    """Whether a node runs in training loops of the program alone, with gradients."""
    looping = {loop.node for loop in program.training}

    def trains(here: ast.AST) -> bool | None:
        if without_gradients(facts, here):
            return False
        if any(loop in looping for loop in facts.tree(here).loops(here)):
            return True
        return False if _only_runs_model(facts, facts.unit(here).original) else None

    return on_all_ways(facts, node, trains)


def _only_runs_model(facts: Facts, unit: Unit) -> bool:
    """Whether a function runs a model, and trains none by itself: an evaluation, as far as is seen."""
    if isinstance(unit, Module):
        return False
    calls = [node.func for node in facts.own(unit) if isinstance(node, ast.Call)]
    is_run = any(Role.MODEL in roles(facts.values(each)) for each in calls)
    return is_run and not any(isinstance(each, ast.Attribute) and each.attr == "backward" for each in calls)


def _too_early(node: ast.AST, named: Named) -> Refusal:
    return Refusal(
        node,
        "MIG104",
        f"{named.target} is used here before there is an accelerator to prepare it with",
        f"make the model and the optimizer before {named.target}",
    )
