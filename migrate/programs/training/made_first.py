"""Models that are made anew before anything can have been prepared: the accelerator never meets the one before.

model = Net()
if args.pruned:
    model = Net(torch.load(args.pruned)["cfg"])
optimizer = SGD(model.parameters(), lr=0.1)
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import line_of
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.home.naming import Named
    from migrate.programs.program import Program


def made_first(facts: Facts, program: Program) -> Iterator[ast.stmt]:
    """The statements that make a model under a name, where all of them stand above the optimizers and any loop."""
    below = [statement for named in program.optimizers for statement in named.statements[:1]]
    if len(below) < len(program.optimizers) or not below or any(facts.unit(s) is not program.home for s in below):
        return
    first = min(statement.lineno for statement in below)
    for named in program.models:
        if all(statement.lineno < first for statement in named.statements) and _is_unused(facts, program, named):
            yield from named.statements


def _is_unused(facts: Facts, program: Program, named: Named) -> bool:
    """Whether no loop of the program runs from the first of the statements that make a model to the last."""
    assert program.home is not None
    loops = (*program.training, *program.evaluation)
    statements = range(named.statements[0].lineno, named.statements[-1].lineno + 1) if named.statements else ()
    between = [node for node in facts.own(program.home) if line_of(node) in statements]
    calls = [node for node in between if isinstance(node, ast.Call)]
    entered = reached(facts, [target for call in calls for target in facts.targets(call)])
    around = any(True for statement in named.statements for _ in facts.tree(statement).loops(statement))
    return not around and not any(loop.unit in entered or loop.node in between for loop in loops)
