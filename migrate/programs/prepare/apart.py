"""Objects that a program makes only under a condition, and uses only under it: they are prepared there.

`if args.use_optimizer: optimizer = SGD(...)`: one prepare for all would name an optimizer that need not be there. Where
its model is prepared below, it is so below that, under the same condition: its state goes where its parameters are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import blocks, reads, writes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree
    from migrate.programs.home.naming import Named
    from migrate.programs.program import Program


@dataclass(frozen=True, slots=True)
class Group:
    """Objects that are prepared on their own, after a statement; `test` is what is asked for once more there."""

    after: ast.stmt
    objects: list[Named]
    test: ast.expr | None = None


def apart(facts: Facts, program: Program, prepared: Sequence[Named], prepare: ast.stmt) -> list[Group]:
    """The objects that are prepared on their own, in the order in which that is written."""
    found: dict[tuple[ast.If, bool], list[Named]] = {}
    tree = facts.tree(prepare)
    block = tree.block(prepare)
    for named in prepared:
        branches = {_branch(tree, statement, block) for statement in named.statements}
        branch = branches.pop() if len(branches) == 1 else None
        if branch is not None and _is_asked_again(facts, program, named, branch[0]):
            found.setdefault(branch, []).append(named)
    alone = [named for names in found.values() for named in names]
    models = {origin for named in prepared if named not in alone for origin in named.origins}
    groups = []
    for branch, names in found.items():
        trained = set().union(*(facts.models_of.get(o, set()) for named in names for o in named.origins))
        if branch[1] and trained & models:
            groups.append(Group(prepare, names, branch[0].test))
        else:
            groups.append(Group(_last(tree, branch, names), names))
    return groups


def _branch(tree: Tree, statement: ast.stmt, block: list[ast.stmt]) -> tuple[ast.If, bool] | None:
    """The outermost `if` below the block of prepare in which a statement stands, and whether in its body."""
    held = tree.in_block(statement, block)
    if not isinstance(held, ast.If):
        return None
    return held, tree.in_block(statement, held.body) is not None


def _is_asked_again(facts: Facts, program: Program, named: Named, made: ast.If) -> bool:
    """Whether the same condition guards a place that uses the object, and nothing gives it on the other way."""
    names = {named.target, _holder(named)}
    if any(names & _written(block) for block in blocks(made) if not _holds(block, named.statements[0])):
        return False
    test = ast.unparse(made.test)
    modules = {program.module, *(loop.unit.module for loop in program.training)}
    return any(
        isinstance(node, ast.If)
        and node is not made
        and ast.unparse(node.test) == test
        and any(names & reads(inner) for inner in (*node.body, *node.orelse))
        for module in modules
        for node in facts.tree_of(module).nodes
    )


def _holder(named: Named) -> str:
    """The name that is made with what it holds: `gan` for `gan.optimizer`; the target itself for all others."""
    root = named.target.partition(".")[0]
    return root if any(root in writes(statement) for statement in named.statements) else named.target


def _written(block: list[ast.stmt]) -> set[str]:
    return set().union(*(writes(statement) for statement in block)) if block else set()


def _holds(block: list[ast.stmt], statement: ast.stmt) -> bool:
    return any(inner is statement for each in block for inner in ast.walk(each))


def _last(tree: Tree, branch: tuple[ast.If, bool], names: list[Named]) -> ast.stmt:
    block = branch[0].body if branch[1] else branch[0].orelse
    held = [tree.in_block(statement, block) for named in names for statement in named.statements]
    return max((each for each in held if each is not None), key=lambda each: each.lineno)
