"""rank-guards: what a process asked of its own rank, it asks the accelerator.

    if dist.get_rank() == 0:               ->   if accelerator.is_main_process:
    torch.manual_seed(seed + rank)         ->   torch.manual_seed(seed + accelerator.process_index)
    lr = args.lr * world_size              ->   lr = args.lr * accelerator.num_processes
    dist.barrier()                         ->   accelerator.wait_for_everyone()
    dist.all_reduce(center)                ->   center = self.accelerator.reduce(center, reduction="sum")
    dist.broadcast(stop, src=0)            ->   broadcast(stop)

In every spelling: `rank in (-1, 0)`, `not args.local_rank`, `is_main_process()`, LOCAL_RANK from the environment. Where
the branch runs what all processes must enter, a prepared model or loader, it is dissolved: all come, and what is
written in it is written once. What a model or loss sums up over the processes in each step of its training stays; it is
handed the accelerator when it is made. Before the accelerator exists prints, seeds, what only keeps the rank
(`args.rank = dist.get_rank()`) and branches that nobody waits for go by the launcher's RANK (MIG117), and barriers go.
Safe: on one process that process is the main process.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_none
from migrate.programs.chance.seeding import only_seeds
from migrate.programs.home.access import OutOfReach
from migrate.programs.home.asking import asked_by, asking
from migrate.programs.marker import TOLD, is_barrier, is_main, marks
from migrate.programs.output.by_rank import only_prints
from migrate.programs.output.guards import (
    choices,
    dissolved,
    guards,
    has_accelerator,
    is_joint,
    is_made_before,
    is_one_call,
    leaves,
    stands_in,
)
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG113")
def rank_guards(conversion: Conversion, draft: Draft) -> None:
    """Give each question to the accelerator, where it can be asked there."""
    gone: set[int] = set()
    for guard in guards(conversion):
        if guard in dissolved(conversion):
            gone |= _dissolve(conversion, draft, guard)
        elif leaves(conversion, guard):
            raise _refused(guard, "some processes leave here, and miss what all of them must enter")
    for choice in choices(conversion):
        gone |= _choose(draft, choice)
    mine = {*conversion.units, *conversion.access.around, *asked_by(conversion.facts, conversion.units)}
    for module in asking(conversion.facts).modules:
        for mark in list(marks(module.tree)):
            if id(mark) not in gone and conversion.facts.unit(mark) in mine:
                _mark(conversion, draft, mark)


def _dissolve(conversion: Conversion, draft: Draft, node: ast.If) -> set[int]:
    """Let all processes into a branch; the marks that go."""
    if not is_main(node.test) or not (stands_in(node) or is_one_call(node)):
        raise _refused(node, "processes part ways here, and all of them must do what is in this branch")
    rest = [v for v in node.test.values if not is_main(v)] if isinstance(node.test, ast.BoolOp) else []
    if rest:
        draft.join(node.test, " and ", {f"part{number}": value for number, value in enumerate(rest)})
    else:
        draft.fold(node, keep="body")
    is_told = conversion.facts.unit(node) in conversion.access.around  # of each print, by `output`
    if not (
        has_accelerator(conversion, node) or is_joint(conversion, node) or is_told or only_prints(conversion, node)
    ):
        draft.note(node, "every process does this: it runs before the accelerator exists")
    return {id(mark) for mark in marks(node.test) if not any(mark in ast.walk(value) for value in rest)}


def _choose(draft: Draft, choice: ast.IfExp) -> set[int]:
    """Let all processes have what the main process alone was given; the marks that go."""
    if not isinstance(choice.test, ast.Attribute) or not is_none(choice.orelse):
        raise _refused(choice, "processes part ways here, and all of them need what this gives the main process")
    draft.rewrite(choice, "{it}", it=choice.body)
    return set(map(id, marks(choice.test)))


def _mark(conversion: Conversion, draft: Draft, mark: ast.Name) -> None:
    statement, asked = conversion.facts.tree(mark).statement(mark), conversion.facts.tree(mark).parents[mark]
    if isinstance(asked, ast.Attribute) and asked.attr in TOLD and is_made_before(conversion, mark):
        draft.rewrite(asked, asked.attr)
        draft.add_import(asked, conversion.home_of(asked.attr), asked.attr)
    elif has_accelerator(conversion, mark):
        draft.rewrite(mark, conversion.access.name(mark))
    elif is_barrier(statement):
        draft.remove(statement)
    elif isinstance(asked, ast.Attribute) and asked.attr in _VARIABLES and _is_right_early(conversion, statement):
        draft.rewrite(asked, draft.quoted(asked, _VARIABLES[asked.attr]))
        draft.add_import(asked, "os")
    else:
        conversion.access.name(mark)  # says why it cannot be reached, if that is so
        raise _refused(statement, "this asks which process it is, before the accelerator exists")


def _is_right_early(conversion: Conversion, statement: ast.stmt) -> bool:
    """Whether the launcher may be asked instead: a statement keeps the answer, seeds by it, or nobody waits there."""
    if isinstance(statement, ast.If):
        return not any(_waiting_early(conversion))
    return isinstance(statement, ast.Assign) or only_seeds(conversion.facts, statement)


def _waiting_early(conversion: Conversion) -> Iterator[ast.stmt]:
    """The waits before the accelerator exists, which go: nobody would wait for what one process does above them."""
    for module in asking(conversion.facts).modules:
        for mark in marks(module.tree):
            if is_barrier(statement := conversion.facts.tree(mark).statement(mark)):
                if not has_accelerator(conversion, mark):
                    yield statement


#: What the launcher says of a process before it has an accelerator.
_VARIABLES = {
    "process_index": "int(os.environ.get('RANK', '0'))",
    "local_process_index": "int(os.environ.get('LOCAL_RANK', '0'))",
    "num_processes": "int(os.environ.get('WORLD_SIZE', '1'))",
    "is_main_process": "os.environ.get('RANK', '0') == '0'",
}


def _refused(node: ast.AST, why: str) -> OutOfReach:
    return OutOfReach(node, why, "move it below what makes the model, the optimizer and the loaders", code="MIG113")
