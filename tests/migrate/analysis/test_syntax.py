"""The walk that keeps what it has found is the one of `ast`, of copies, too."""

import ast
import copy
from pathlib import Path

import pytest

from migrate.analysis.syntax import is_main_guard, jumps, walk

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


GUARDS = {
    'if __name__ == "__main__": pass': True,
    'if "__main__" == __name__: pass': True,
    'if __name__ != "__main__": pass': False,
    'if __name__ == "worker": pass': False,
    'if __name__ == "__main__" == x: pass': False,
    "if x: pass": False,
}


@pytest.mark.parametrize("source", GUARDS)
def test_what_a_file_does_where_it_is_started(source):
    assert is_main_guard(ast.parse(source).body[0]) is GUARDS[source]


JUMPS = {
    "a break of its own": ("for a in b:\n    break", []),
    "the else of a loop leaves the one around it": ("for a in b:\n    break\nelse:\n    break", [4]),
    "a return in a loop": ("while a:\n    if b:\n        return\n    continue", [3]),
    "a function of its own": ("def f():\n    return", []),
}


@pytest.mark.parametrize("name", JUMPS)
def test_what_leaves_a_block(name):
    source, lines = JUMPS[name]
    assert [jump.lineno for jump in jumps(ast.parse(source).body)] == lines
