"""The branches in which a program chooses its device."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.devices import SET_DEVICE
from migrate.analysis.syntax import FUNCTIONS, binds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree

#: What stands for an `else` that is not there.
ABSENT = ast.Pass()


def ways(
    facts: Facts, statement: ast.If, tests: tuple[ast.expr, ...], whole: ast.If | None = None
) -> Iterator[tuple[tuple[ast.expr, ...], ast.stmt | None]]:
    """The tests that lead to each branch, of an `if` inside of one, too, and what it assigns; None: that and more.

    ABSENT: an `if` inside of one has no `else`, so nothing is assigned there.
    What only the tests inside of `whole`, the outermost `if`, go by is no more: `major, minor = map(int, ...)`.
    """
    whole = whole or statement
    for test, body in branches(statement):
        asked = tests if test is None else (*tests, test)
        assigned = [s for s in body if not sets_device(facts, s) and not _serves(facts, s, whole)]
        if len(assigned) == 1 and isinstance(assigned[0], ast.If):
            yield from ways(facts, assigned[0], asked, whole)
            if not _is_whole(assigned[0]):
                yield asked, ABSENT
        else:
            yield asked, assigned[0] if len(assigned) == 1 else None


def _is_whole(statement: ast.If) -> bool:
    """Whether one of the branches is always taken."""
    return [test for test, _ in branches(statement)][-1] is None


def branches(statement: ast.If) -> Iterator[tuple[ast.expr | None, list[ast.stmt]]]:
    """The branches of `if ... elif ... else`, each with its test; None: that of the `else`."""
    yield statement.test, statement.body
    if len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
        yield from branches(statement.orelse[0])
    elif statement.orelse:
        yield None, statement.orelse


def sets_device(facts: Facts, statement: ast.stmt) -> bool:
    """`torch.cuda.set_device(i)`, also under a condition."""
    if isinstance(statement, ast.If):
        return all(sets_device(facts, inner) for inner in statement.body + statement.orelse)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return bool(facts.called(statement.value) & SET_DEVICE)
    return False


#: What a version is taken apart and compared with.
_PLAIN = frozenset(f"builtins.{name}" for name in "float int len list map str tuple".split()) | frozenset(
    {"packaging.version.parse", "packaging.version.Version"}
)
_OF_TEXTS = frozenset("split rsplit partition rpartition strip startswith endswith replace".split())


def _serves(facts: Facts, statement: ast.stmt, whole: ast.If) -> bool:
    """Whether a statement only computes, from the version of a library, what is asked inside of an `if`."""
    if not isinstance(statement, ast.Assign) or "__version__" not in ast.unparse(statement.value):
        return False
    if not all(_is_plain(facts, node) for node in ast.walk(statement.value) if isinstance(node, ast.Call)):
        return False
    targets = [node for target in statement.targets for node in ast.walk(target) if not isinstance(node, _AROUND)]
    return all(isinstance(node, ast.Name) and not _is_read_beside(facts, node.id, whole) for node in targets)


_AROUND = (ast.Tuple, ast.List, ast.Starred, ast.expr_context)


def _is_plain(facts: Facts, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_TEXTS:
        return not facts.targets(call)
    return bool(called := facts.called(call)) and called <= _PLAIN


def _is_read_beside(facts: Facts, name: str, whole: ast.If) -> bool:
    """Whether a name is read outside of an `if`, where nothing in the same block has just given it something else."""
    tree, inside = facts.tree(whole), {id(node) for node in ast.walk(whole)}
    for node in tree.nodes:
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            if id(node) not in inside and not _is_given_there(tree, node):
                return True
    return False


def _is_given_there(tree: Tree, node: ast.Name) -> bool:
    inner: ast.AST = tree.statement(node)
    while isinstance(inner, ast.stmt):
        block = tree.block(inner)
        above = block[: next(index for index, each in enumerate(block) if each is inner)]
        if any(isinstance(each, ast.Assign) and node.id in binds(each) for each in above):
            return True
        inner = tree.parents[inner]
        if isinstance(inner, FUNCTIONS):
            return False
    return False
