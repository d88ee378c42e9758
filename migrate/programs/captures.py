"""Objects that are kept somewhere before they are prepared, and taken from there afterwards: those are the raw ones.

`evaluator = Evaluator(model, loader)`, `cfg.loader = loader`, `def run(loader=loader)`: prepare gives its names other
objects, and what holds the old ones goes on with them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import FUNCTIONS
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.program import Named

_KEPT = (Role.LOADER, Role.MODEL)
#: Attributes that give the same object again.
_SELF = frozenset({"module"})


def kept_raw(
    facts: Facts, program: Program, prepared: Iterable[Named], units: Iterable[Unit], prepare: ast.stmt
) -> Iterator[Refusal]:
    """What holds a loader or a model that is prepared later, and is asked for it then."""
    assert program.home is not None
    names = {named.target for named in prepared}
    mine = {origin for named in prepared if named.role in _KEPT for origin in named.origins}
    end = prepare.end_lineno or prepare.lineno
    for node in facts.own(program.home):
        if getattr(node, "lineno", end + 1) > end or not (held := _holds(facts, node, mine, names)):
            continue
        if isinstance(node, FUNCTIONS) or any(_takes(facts, unit, held, names, program, end) for unit in units):
            yield Refusal(
                node,
                "MIG104",
                "a model or a loader is kept here before it is prepared, and taken from here afterwards",
                "make this after all models, optimizers and loaders are made",
            )
            return


def _holds(facts: Facts, node: ast.AST, mine: set[ast.AST], names: set[str]) -> set[ast.AST]:
    """The prepared objects that a node puts somewhere else than under their names."""
    given: list[ast.expr] = []
    if isinstance(node, FUNCTIONS):
        given = [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
    elif isinstance(node, ast.Call) and any(value.role is Role.INSTANCE for value in facts.values(node)):
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.Assign):
        others = [target for target in node.targets if ast.unparse(target) not in names]
        is_new = any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in others)
        given = [node.value] if is_new else []
    return {origin for each in given for origin in origins(facts.values(each), *_KEPT) & mine}


def _takes(
    facts: Facts, unit: Unit, held: set[ast.AST], names: set[str], program: Program, end: int
) -> bool:
    """Whether a unit reads one of the objects from an attribute or a container, once they are prepared."""
    return any(
        isinstance(node, (ast.Attribute, ast.Subscript))
        and isinstance(node.ctx, ast.Load)
        and not (isinstance(node, ast.Attribute) and node.attr in _SELF)
        and (unit is not program.home or (node.lineno > end and ast.unparse(node) not in names))
        and bool(origins(facts.values(node), *_KEPT) & held)
        for node in facts.own(unit)
    )
