"""Places that make several objects, of which prepare would name one, or objects of several kinds."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import line_of
from migrate.analysis.units import Class
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.home.naming import Named
    from migrate.programs.prepare.placement import Placement


def several(facts: Facts, program: Program, loaders: tuple[Named, ...], placement: Placement) -> Iterator[Refusal]:
    """Objects that the analysis cannot tell apart: one of them would be prepared, and all taken for prepared."""
    assert program.home is not None
    for named in (*loaders, *program.models, *program.optimizers, *program.schedulers):
        for origin in sorted(named.origins, key=line_of):
            again = facts.singles.again(origin, *_maker(facts, program, placement, named, origin))
            if again is not None:
                source = facts.source(origin)
                file, line = facts.file(again), line_of(again)
                where = f"line {line}" if file is facts.file(source) else f"{file.path}:{line}"
                yield Refusal(
                    source,
                    "MIG104",
                    f"several objects are made here ({where} makes further ones), and only "
                    f"{named.target} would be prepared",
                    "make each of them by a call of its own, and give each a name",
                )
                break


def given_together(facts: Facts, program: Program, loaders: tuple[Named, ...]) -> Iterator[Refusal]:
    """Names that one statement gives several objects, of which it is not known which gets which.

    `first, second = map(lambda net: net.to(device), (first, second))`: one would be taken for both of them.
    """
    for named in (*loaders, *program.models, *program.optimizers, *program.schedulers):
        for statement in named.statements if len(named.origins) > 1 else ():
            unpacking = (b for b in facts.bindings if b.statement is statement and _is_unpacked(statement, b.target))
            held = {b.target: origins(b.values, named.role) & named.origins for b in unpacking}
            alike = sorted(target for target, mine in held.items() if len(mine) > 1)
            if len(alike) > 1:
                why = f"{' and '.join(alike)} get their objects here, and it is not seen which of them gets which"
                yield Refusal(statement, "MIG104", why, "give each of them its object by a statement of its own")
                return


def _is_unpacked(statement: ast.stmt, target: str) -> bool:
    """Whether a statement gives a target a part of what it has: `a, b = both`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    several = (each for each in targets if isinstance(each, (ast.Tuple, ast.List)))
    return any(ast.unparse(part) == target for each in several for part in each.elts)


def something_else(facts: Facts, program: Program) -> Iterator[Refusal]:
    """Names under which there is a model in one turn of a loop, and an object of another kind in the next."""
    for named in program.models:
        mine = (b for b in facts.bindings if b.target == named.target and b.statement in named.statements)
        for binding in mine:
            others = [v.unit for v in binding.values if v.role is Role.INSTANCE and isinstance(v.unit, Class)]
            if others:
                other = min(f"{cls.name} ({cls.module.path})" for cls in others)
                why = f"{named.target} is at times a {other}, which is no model: prepare would be handed that"
                yield Refusal(binding.statement, "MIG104", why, "give each a name of its own")
                return


def _inside(facts: Facts, placement: Placement, origin: ast.AST) -> ast.stmt:
    """Where an object is prepared, or what a scheduler steps."""
    return placement.stages.of({origin} | origins(facts.over(origin), Role.OPTIMIZER)).spot.statement


def _maker(facts: Facts, program: Program, placement: Placement, named: Named, origin: ast.AST) -> tuple[Unit, ast.AST]:
    """The unit of which one run makes one object, with a place in it: the home, or what hands it the object."""
    assert program.home is not None
    if named.unit is not None:
        return named.unit, named.call or named.statements[-1]
    if program.start is None or program.entry is None or facts.singles.is_made_in(program.home, origin):
        return program.home, _inside(facts, placement, origin)
    return program.start, program.entry
