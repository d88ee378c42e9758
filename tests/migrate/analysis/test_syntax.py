"""The walk that keeps what it has found is the one of `ast`, of copies, too."""

import ast
import copy
from pathlib import Path

import pytest

from migrate.analysis.syntax import walk

ROOT = Path(__file__).parents[3]
SHARED = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


def placed(node):
    return [each for each in ast.walk(node) if not isinstance(each, SHARED)]


@pytest.mark.parametrize("path", sorted((ROOT / "migrate" / "analysis").glob("*.py")), ids=lambda path: path.name)
def test_walk_gives_what_ast_does(path):
    tree = ast.parse(path.read_bytes())

    for node in [tree, *tree.body, tree]:
        assert list(walk(node)) == placed(node)


PATTERNS = """
match a:
    case {"k": b, **c} | D(e, f=1) | [*g]: pass
try: pass
except E as e: h.i(*j, **k)
"""


def test_walk_of_what_holds_names_as_texts():
    tree = ast.parse(PATTERNS)

    assert list(walk(tree)) == placed(tree)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_that_becomes_something_else_is_walked_anew(copied):
    call = ast.parse("f(a)", mode="eval").body
    assert walk(call)[1:] == (call.func, call.args[0])

    other = copied(call)
    other.args = []

    assert list(walk(other)) == [other, other.func]
    assert walk(call)[1:] == (call.func, call.args[0])
