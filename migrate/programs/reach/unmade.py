"""Classes of which nothing that was read makes an object, beside others that the program runs.

    engine = GMFEngine(config)
    # engine = MLPEngine(config)           # of the same base, which trains either

What their methods make is none of the program's objects: it is no reason to leave what runs.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

#: What makes an object of a class that is named by a text.
_BY_NAME = frozenset({"hydra.utils.instantiate", "hydra.utils.call", "mmcv.utils.build_from_cfg"})


def made(facts: Facts, origins: Collection[ast.AST]) -> set[ast.AST]:
    """The objects that the program makes, as far as is read; all of them where that is none."""
    unmade = facts.once(_Unmade)
    return {origin for origin in origins if not unmade.holds(facts.unit(origin))} or set(origins)


def is_unmade(facts: Facts, cls: Class) -> bool:
    """Whether nothing that was read makes an object of a class, or hands the class on."""
    return facts.once(_Unmade).is_unmade(cls)


class _Unmade:
    """The units that belong to such classes."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[Class, bool] = {}

    def holds(self, unit: Unit) -> bool:
        """Whether a unit is a method of a class of which nothing makes an object, or stands in one."""
        while isinstance(unit, Function):
            if unit.owner is not None:
                return unit.has_object and self.is_unmade(unit.owner)
            if unit.parent is None:
                return False
            unit = unit.parent
        return False

    def is_unmade(self, cls: Class) -> bool:
        """Whether it is one of these classes."""
        if cls not in self._known:
            self._known[cls] = not cls.instances and not self._may_be_made(cls)
        return self._known[cls]

    def _may_be_made(self, cls: Class) -> bool:
        """Whether a class is handed on, exported, registered or named by a text: what gets it may make an object."""
        constructors = [value.unit for value in cls.names.get("__init__", ()) if isinstance(value.unit, Function)]
        known = [self._facts.signatures.of(unit) for unit in constructors]
        if not known or any(each.values or each.exported for each in known):
            return True
        return bool(cls.node.decorator_list) or self._makes_by_name or cls.name in self._texts

    @cached_property
    def _makes_by_name(self) -> bool:
        """Whether the program makes objects of classes that its settings name."""
        return any(True for _ in self._facts.calls_to(_BY_NAME))

    @cached_property
    def _texts(self) -> frozenset[str]:
        """The last words of all texts: "trainers.Solver"."""
        nodes = (node for module in self._facts.modules for node in self._facts.tree_of(module).nodes)
        texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
        return frozenset(text.rpartition(".")[2] for text in texts)
