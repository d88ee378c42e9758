"""Which classes of the project a program may make objects of: a file holds more of them than each script uses.

A class is out of reach if its name stands nowhere in the program's files but in itself and in classes that are out of
reach, too. Where a name is put together, or a model is of an unknown kind, every class may be meant.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.units import Class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.programs.program import Program

#: What gives the things of a module by a name that may be put together.
_BY_NAME = frozenset({"globals", "locals", "vars"})


class Built:
    """The classes of some files that one program may use."""

    def __init__(self, facts: Facts, program: Program, modules: Iterable[Module]) -> None:
        self._facts = facts
        nodes = [node for module in modules for node in facts.tree_of(module).nodes]
        values = [v for o in program.model_origins if isinstance(o, ast.expr) for v in facts.values(o)]
        models = [value for value in values if value.role is Role.MODEL]
        self._used = {value.unit.node for value in models if isinstance(value.unit, Class)}
        self._is_open = any(v.unit is None and not v.name for v in models) or any(map(self._looks_up, nodes))
        self._mentions: dict[str, list[ast.AST]] = {}
        for node in nodes:
            if name := _mentioned(node):
                self._mentions.setdefault(name, []).append(node)

    def has(self, cls: ast.ClassDef) -> bool:
        """Whether the program may make an object of a class, or of one that derives from it."""
        return self._is_open or self._may_use(cls, frozenset())

    def _may_use(self, cls: ast.ClassDef, asked: frozenset[ast.AST]) -> bool:
        if cls in self._used or cls.decorator_list:
            return True
        around = (self._around(node) for node in self._mentions.get(cls.name, ()))
        asked |= {cls}
        return any(other is None or (other not in asked and self._may_use(other, asked)) for other in around)

    def _around(self, node: ast.AST) -> ast.ClassDef | None:
        """The class in whose text a node stands."""
        above = [each for each in self._facts.tree(node).up(node) if isinstance(each, ast.ClassDef)]
        return above[-1] if above else None

    def _looks_up(self, node: ast.AST) -> bool:
        """`getattr(layers, kind)`, `layers.__dict__[kind]`, `globals()[kind]`, of which nothing is known."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            is_written = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
            return not is_written and not self._facts.values(node)
        if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Constant):
            return False
        whole = node.value
        by_name = isinstance(whole, ast.Call) and isinstance(whole.func, ast.Name) and whole.func.id in _BY_NAME
        is_table = by_name or (isinstance(whole, ast.Attribute) and whole.attr == "__dict__")
        return is_table and not self._facts.values(node)


def _mentioned(node: ast.AST) -> str:
    """The name that a node may mean a class by."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def layers_of(facts: Facts, program: Program, modules: Iterable[Module], found: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Of some places in classes, those in classes that the program may make."""
    built: Built | None = None
    for node in found:
        built = built or Built(facts, program, modules)
        cls = next((each for each in facts.tree(node).up(node) if isinstance(each, ast.ClassDef)), None)
        if cls is None or built.has(cls):
            yield node
