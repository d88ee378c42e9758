"""Tests of which one side joins a group of processes, and both say so by a flag.

    if args.launcher == "none":
        args.distributed = False
    else:
        args.distributed = True
        init_dist(args.launcher)

Where there is one process the side holds that says so, whatever else the program is asked for.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import distributed
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module


def sides(facts: Facts, modules: tuple[Module, ...]) -> dict[str, bool]:
    """What such tests, as they are written, say where there is one process."""
    found: dict[str, bool] = {}
    for module in modules:
        for node in facts.tree(module.tree).nodes:
            if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and node.orelse:
                if isinstance(node.test.left, ast.Attribute) and (alone := _alone(facts, node)) is not None:
                    found[ast.unparse(node.test)] = alone
    return found


def _alone(facts: Facts, node: ast.If) -> bool | None:
    """Whether the body of a branch is that of one process; None: that is not said."""
    flags, others = dict(_flags(node.body)), dict(_flags(node.orelse))
    said = {flags[name] for name in flags.keys() & others.keys() if flags[name] is not others[name]}
    if len(said) != 1:
        return None
    several = said.pop()
    joining, other = (node.body, node.orelse) if several else (node.orelse, node.body)
    return not several if _joins(facts, joining) and not _joins(facts, other) else None


def _flags(block: list[ast.stmt]) -> Iterator[tuple[str, bool]]:
    for statement in block:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            if isinstance(statement.value.value, bool):
                yield from ((ast.unparse(target), statement.value.value) for target in statement.targets)


def _joins(facts: Facts, block: list[ast.stmt]) -> bool:
    calls = [node for statement in block for node in ast.walk(statement) if isinstance(node, ast.Call)]
    entered = reached(facts, (unit for call in calls for unit in facts.targets(call)))
    calls += [node for unit in entered for node in facts.own(unit) if isinstance(node, ast.Call)]
    return any(facts.called(call) & distributed.PROCESS_GROUPS for call in calls)
