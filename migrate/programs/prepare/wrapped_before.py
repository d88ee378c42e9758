"""DataParallel around a trained model in code that leads to its home: prepare is to meet the model inside.

`model = nn.DataParallel(model)` in `run()`, and `Trainer(model, ...)` whose `__init__` has all objects by name.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DATA_PARALLEL
from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program


def wrapped_before(facts: Facts, program: Program, units: Collection[Unit]) -> list[ast.Call]:
    """The calls whose statement gives a name back to the same model, where nothing asks for what is inside."""
    found = [use for use in facts.calls_to(DATA_PARALLEL) if use.unit not in units and facts.is_editable(use.unit)]
    if not found or program.home is None:
        return []
    leading = set(_leading(facts, program.home))
    return [
        use.node
        for use in found
        if use.unit in leading
        and origins(facts.values(use.node), Role.MODEL) & program.model_origins
        and _keeps_its_name(facts, use.node)
        and not _is_opened(facts, use.unit)
    ]


def _leading(facts: Facts, home: Unit) -> Iterator[Unit]:
    """The units that call a home, and those that call these."""
    waiting, seen = [home], {home}
    while waiting:
        unit = waiting.pop()
        for call in facts.callers(unit) if isinstance(unit, Function) else ():
            if call.caller not in seen:
                seen.add(call.caller)
                waiting.append(call.caller)
                yield call.caller


def _keeps_its_name(facts: Facts, call: ast.Call) -> bool:
    """`model = nn.DataParallel(model, device_ids)`."""
    statement = facts.tree(call).parents[call]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not call.args:
        return False
    is_plain = not any(keyword.arg in ("dim", None) for keyword in call.keywords)
    return is_plain and ast.unparse(statement.targets[0]) == ast.unparse(call.args[0])


def _is_opened(facts: Facts, unit: Unit) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "module" for node in facts.own(unit))
