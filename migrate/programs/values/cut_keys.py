"""Keys of a file that are cut off where `module.` ended: `state[key[7:]] = value`, whatever they begin with.

A checkpoint that the converted program writes has plain keys, of which that would leave the wrong half.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import COMPREHENSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

_PREFIX = "module."
_ASKS = (ast.If, ast.IfExp, *COMPREHENSIONS)


def cut_keys(facts: Facts) -> Iterator[ast.Subscript]:
    """Where code cuts the keys of what it has loaded, and does not ask how they begin."""
    for unit in facts.units:
        if not facts.is_editable(unit):
            continue
        for node in facts.own(unit).of(ast.Subscript):
            if isinstance(node.value, ast.Name) and _cuts(node.slice) and _is_key(facts, node, node.value.id):
                if not _is_asked(facts, node):
                    yield node


def _cuts(given: ast.expr) -> bool:
    """`[7:]`, `[len("module."):]`."""
    if not isinstance(given, ast.Slice) or given.upper is not None or given.step is not None:
        return False
    lower = given.lower
    if isinstance(lower, ast.Call) and ast.unparse(lower.func) == "len" and len(lower.args) == 1:
        return isinstance(lower.args[0], ast.Constant) and lower.args[0].value == _PREFIX
    return isinstance(lower, ast.Constant) and lower.value == len(_PREFIX)


def _is_key(facts: Facts, node: ast.AST, name: str) -> bool:
    """Whether a name is the key in a loop over what a file has."""
    for above in facts.tree(node).up(node):
        turns = above.generators if isinstance(above, COMPREHENSIONS) else [above] if isinstance(above, ast.For) else []
        for turn in turns:
            keys = turn.target.elts[0] if isinstance(turn.target, ast.Tuple) and turn.target.elts else turn.target
            if isinstance(keys, ast.Name) and keys.id == name:
                return Role.CHECKPOINT in roles(facts.values(_holder(turn.iter)))
    return False


def _holder(over: ast.expr) -> ast.expr:
    """What a loop over keys is about: `state` of `state.items()`, `list(state.keys())` and `state`."""
    while isinstance(over, ast.Call):
        if isinstance(over.func, ast.Attribute) and over.func.attr in ("items", "keys"):
            return over.func.value
        if not over.args:
            break
        over = over.args[0]
    return over


def _is_asked(facts: Facts, node: ast.AST) -> bool:
    """Whether a condition around it looks at how a key begins."""
    for above in facts.tree(node).up(node):
        if not isinstance(above, _ASKS):
            continue
        tests = (
            [test for turn in above.generators for test in turn.ifs]
            if isinstance(above, COMPREHENSIONS)
            else [above.test]
        )
        if any("module" in ast.unparse(test) for test in tests):
            return True
    return False
