"""What a function is given and prepares in a branch, and uses below it: there it may be the raw one.

    def run(net, path):
        if not os.path.isfile(path):
            optimizer = SGD(net.parameters(), lr=0.1)     `net` is prepared here, with the optimizer
            ...
        print(evaluate(net))

Where the branch is not taken, the model has not come to its device, and a loader gives each process all rows.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import arguments, is_main_guard
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree
    from migrate.programs.stages import Stage, Stages

_USED = (Role.MODEL, Role.LOADER)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def prepared_at_times(facts: Facts, program: Program, stages: Stages) -> Iterator[Refusal]:
    """The first use of such an object below the branch."""
    for stage in stages.each:
        given = {named.target for named in stage.objects if named.is_given and named.role in _USED}
        if stage.unit is program.home and stage.call is None and given:
            yield from _below(facts, stage, given)


def _below(facts: Facts, stage: Stage, given: set[str]) -> Iterator[Refusal]:
    for branch in _branches(facts.tree(stage.spot.statement), stage.spot.statement):
        for node in facts.own(stage.unit):
            if isinstance(node, ast.expr) and node.lineno > (branch.end_lineno or 0) and _is_used(facts, node, given):
                where = f"by `{ast.unparse(branch.test)}` (line {branch.lineno})"
                why = f"{ast.unparse(node)} is used here, and is only prepared at times, {where}"
                yield Refusal(node, "MIG104", why, "make the optimizer and the loader above that test")
                return


def _branches(tree: Tree, place: ast.stmt) -> Iterator[ast.If]:
    """The tests around a statement past which a program may come without it."""
    below: ast.AST = place
    for above in tree.up(place):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(above, ast.If) and not is_main_guard(above):
            if not _leaves(above.orelse if below in above.body else above.body):
                yield above
        below = above


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _LEAVING)


def _is_used(facts: Facts, node: ast.expr, given: set[str]) -> bool:
    """Whether one of some objects is called, gone over, or handed to a function of the project."""
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or ast.unparse(node) not in given:
        return False
    above = facts.tree(node).parents[node]
    if isinstance(above, ast.keyword):
        above = facts.tree(node).parents[above]
    if isinstance(above, ast.Call):
        return above.func is node or (node in arguments(above) and bool(facts.targets(above)))
    return isinstance(above, (ast.For, ast.AsyncFor, ast.comprehension)) and above.iter is node
