"""One short paragraph about each program: what was understood and what is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis.units import Function, Unit
from migrate.report.model import Summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion
    from migrate.programs.program import Named, Program


def told(facts: Facts, program: Program, conversion: Conversion | None) -> Summary:
    """The paragraph, and the files that stand or fall together."""
    parts = [
        _listed("models", program.models),
        _listed("optimizers", program.optimizers),
        _listed("loaders", program.loaders),
        _listed("schedulers", program.schedulers),
        f"training loops at {_lines(loop.node.lineno for loop in program.training)}",
    ]
    if program.evaluation:
        parts.append(f"evaluation loops at {_lines(loop.node.lineno for loop in program.evaluation)}")
    where = f" in {_name(program.home)}" if program.home is not None else ""
    files = {program.module.path}
    if conversion is not None:
        files |= {unit.module.path for unit in conversion.units}
    done = "" if conversion is not None else " Left as it is."
    return Summary(
        program.module.path, f"Training program{where}: {'; '.join(p for p in parts if p)}.{done}", tuple(sorted(files))
    )


def _listed(word: str, named: Iterable[Named]) -> str:
    names = [f"`{n.target}` (line {n.statements[0].lineno})" for n in named]
    return f"{word[:-1] if len(names) == 1 else word} {', '.join(names)}" if names else ""


def _lines(numbers: Iterable[int]) -> str:
    listed = sorted(set(numbers))
    return f"line{'s' if len(listed) > 1 else ''} {', '.join(map(str, listed))}"


def _name(unit: Unit) -> str:
    if not isinstance(unit, Function):
        return "the module"
    return f"{unit.owner.node.name}.{unit.name}()" if unit.owner is not None else f"{unit.name}()"
