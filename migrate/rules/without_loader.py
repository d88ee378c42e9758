"""without-loader: a loop that makes its batches itself, or plays against an environment, is not shared out.

    for step in range(steps):
        x, y = get_batch("train")
        loss = model(x, y)

Model and optimizer are prepared, tensors go to the accelerator's device, and all processes take the same steps. With
every source of chance seeded each of them does the same as one process would; without, each draws data of its own and
the gradients are averaged, which is a batch N times as large. Evaluation runs in full on every process. A program that
names no device, or only the CPU, stays there: nothing says which of its tensors would have to move.
So it is with a loader whose batches are zipped with rows that the program deals out, or meet rows that are picked by
the number of the batch (`weights[i * size:(i + 1) * size]`): it stays whole.
Several models of a class that makes its own optimizer stay as they are there, since nobody has a name for each of them:
only their optimizers are prepared, and all processes must draw the same.
A data set whose `__getitem__` draws a sample whatever number it is asked for, or reads the next one of a file, is told,
too: the numbers are shared out, and with one seed all processes draw the same, as they read the same.
A loader that is gone through in an expression (`[step(x, y) for x, y in loader]`) is none that is shared out, either.
What to do: put the data into a torch.utils.data.DataLoader and loop over it, and every process gets its share.
Refused: data sources of libraries that go to a GPU by themselves; and, without a seed, decisions by what one process
has seen, since processes would part ways (MIG122).
Safe: on one process nothing changes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import arguments
from migrate.analysis.units import Class
from migrate.programs.chance.unnumbered import drawn_beside_number, taken_beside_number
from migrate.programs.device.cpu_alone import names_cpu_alone
from migrate.programs.processes.replicas import ON_CPU, differs, without_loader
from migrate.programs.reach.uncalled import called, nobody_gives
from migrate.programs.training.in_expressions import trained_in
from migrate.programs.values.sources import Sources
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
    from migrate.programs.conversion import Conversion
    from migrate.programs.loops import LoopFact
    from migrate.rules.draft import Draft


_NO_LOADER = (
    "the batches come from no DataLoader, so they are not shared out",
    "to share them out, put the data into a torch.utils.data.DataLoader and loop over it",
)
_IN_EXPRESSION = (
    "a loader is gone through in this expression, which is no loop that is shared out",
    "write it as a `for` statement over the loader",
)


@rule("MIG903", optional=True)
def loops_without_loader(conversion: Conversion, draft: Draft) -> None:
    """Say once what that means on several processes."""
    _drawn_beside_numbers(conversion, draft)
    loops = without_loader(conversion.program)
    if not loops:
        return
    for loop in (loop for loop in loops if loop.whole):
        draft.note(
            loop.node,
            "every process runs over whole batches, which is no faster on several: they meet rows that each has whole",
            "let one data set give both, and they are shared out",
        )
    if bare := [loop for loop in loops if not loop.whole]:
        own = differs(conversion.facts, conversion.loops, conversion.program)
        data = "each process trains on what it draws itself" if own else "every process trains on the same data"
        place, why, way_out = _not_shared(conversion, bare[0])
        draft.note(place, f"{data}: {why}", way_out)
    if conversion.program.raw:
        draft.note(
            loops[0].node,
            "models that make their own optimizers are not prepared: all processes train the same ones",
            "make each model and its optimizer under names of their own, and their gradients are averaged",
        )
    if conversion.placement.cpu == ON_CPU and not names_cpu_alone(conversion.facts, conversion.program):
        draft.note(
            conversion.placement.accelerator.statement,
            "the program names no device, so it stays on the CPU",
            "move its tensors to accelerator.device and take cpu=True out",
        )


def _drawn_beside_numbers(conversion: Conversion, draft: Draft) -> None:
    """Data sets of a training that give a sample whatever number they are asked for: the numbers alone are dealt."""
    facts = conversion.facts
    sets = {v.unit for loader in conversion.program.training_loaders for v in facts.over(loader)}
    for find, what, way_out in _BESIDE:
        found = {find(facts, cls) for cls in sets if isinstance(cls, Class)}
        for unit in sorted((unit for unit in found if unit is not None), key=lambda unit: unit.node.lineno):
            number = unit.positional[1].arg
            draft.note(unit.node, f"{what}: {unit.name}() does not go by `{number}`", way_out)


_BESIDE: tuple[tuple[Callable[[Facts, Class], Function | None], str, str], ...] = (
    (
        drawn_beside_number,
        "where the program is seeded, every process draws the same samples",
        "set_seed(seed, device_specific=True) once the accelerator is made, or draw by that number",
    ),
    (
        taken_beside_number,
        "every process takes the same samples, one after the other",
        "keep what there is in a list, and give what is at that number",
    ),
)


def _not_shared(conversion: Conversion, loop: LoopFact) -> tuple[ast.AST, str, str]:
    """Where and why the batches of a training loop are not shared out, and the way out."""
    inside = trained_in(conversion.facts, conversion.loops, loop)
    if inside is not None:
        return inside, *_IN_EXPRESSION
    if (name := nobody_gives(conversion.facts, loop)) is not None:
        unit = called(loop.unit)
        why = f"nothing that was read calls {unit}, so what `{name}` is, is not known"
        return loop.node, why, f"name the file that calls {unit}, too, or take {unit} out"
    if (call := _around_loader(conversion.facts, loop)) is not None:
        why = (
            f"nothing is known of what {ast.unparse(call.func)}() makes of the loader, whose batches are not shared out"
        )
        return call, why, "loop over the loader itself"
    if (call := _handed_on(conversion.facts, loop)) is not None:
        why = f"{ast.unparse(call.func)}() goes through a loader and hands its batches on, which are not shared out"
        return call, why, "loop over the loader itself"
    return loop.node, *_NO_LOADER


def _around_loader(facts: Facts, loop: LoopFact) -> ast.Call | None:
    """The call that a loop runs over and that is handed a loader, of which nothing more is known."""
    for call in _run_over(facts, loop):
        if not facts.targets(call) and any(Role.LOADER in roles(facts.values(given)) for given in arguments(call)):
            return call
    return None


def _handed_on(facts: Facts, loop: LoopFact) -> ast.Call | None:
    """The call that a loop runs over, of a generator that yields in a loop over a loader."""
    for call in _run_over(facts, loop):
        for unit in facts.targets(call):
            for node in facts.own(unit).of(ast.For):
                is_loader = any(Role.LOADER in roles(facts.values(part)) for part in _expressions(node.iter))
                if is_loader and any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for inner in ast.walk(node)):
                    return call
    return None


def _run_over(facts: Facts, loop: LoopFact) -> Iterator[ast.Call]:
    """The calls in what a loop runs over, and in what gave the names there their values."""
    if isinstance(loop.node, ast.While):
        return
    sources, named = facts.once(Sources), [n for n in ast.walk(loop.node.iter) if isinstance(n, ast.Name)]
    for each in (loop.node.iter, *(given for name in named for given in sources.given(name).expressions)):
        yield from (node for node in ast.walk(each) if isinstance(node, ast.Call))


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    return (each for each in ast.walk(node) if isinstance(each, ast.expr))
