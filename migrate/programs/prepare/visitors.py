"""Files that enter the functions of a training script with objects of their own: `test.py` imports `train` from there.

They make no program that is converted. Where all of such a file stays on the CPU, it goes on as it is with an
accelerator of its own, which it hands to the functions that now want one: on one process, in full precision, that one
does what the functions did before.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.units import Function, Module
from migrate.programs.device.the_cpu import only_cpu
from migrate.programs.reach.outsiders import units_from

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.sites import Site
    from migrate.analysis.units import Unit

#: A word by which a file would choose another device than the CPU.
_ELSEWHERE = re.compile(rb"cuda|mps|xpu|accelerat|\.device\((?!['\"]cpu['\"]\))")


@dataclass(frozen=True, slots=True)
class Visitor:
    """Such a file, and the facts in which it and the scripts are there together."""

    module: Module
    facts: Facts
    entered: frozenset[ast.AST]  # the functions of other files that it leads to

    def sites(self, function: ast.AST) -> list[Site]:
        """Its calls of a function."""
        unit = self._unit(function)
        sites = self.facts.signatures.of(unit).sites if unit is not None else ()
        return [site for site in sites if site.call.caller.module is self.module]

    def obstacle(self, function: ast.AST) -> tuple[str, str] | None:
        """Why a function that it enters cannot have another parameter, and the way out."""
        unit = self._unit(function)
        found = self.facts.signatures.of(unit).obstacles if unit is not None else ()
        return next(((obstacle.why, obstacle.way_out) for obstacle in found), None)

    def spot(self) -> ast.stmt:
        """The last of its imports that are there for all of it."""
        return [statement for statement in self.module.tree.body if isinstance(statement, _IMPORTS)][-1]

    def _unit(self, function: ast.AST) -> Function | None:
        return next((unit for unit in self.facts.functions if unit.node is function), None)


_IMPORTS = (ast.Import, ast.ImportFrom)


def may_visit(facts: Facts, module: Module) -> bool:
    """Whether a file that nothing imports runs on the CPU alone, and enters nothing while its imports go on."""
    if not module.file.named or any(module in other.imports for other in facts.modules if other is not module):
        return False
    imports = [statement.lineno for statement in module.tree.body if isinstance(statement, _IMPORTS)]
    entered = [node.lineno for node in facts.own(module) if isinstance(node, ast.Call) and facts.targets(node)]
    if not imports or _ELSEWHERE.search(module.file.content) or min(entered, default=1 << 30) < max(imports):
        return False
    return all(_takes_what_is_handed(facts, unit) for unit in _entered(facts, module))


def visitor(facts: Facts, module: Module) -> Visitor:
    """A file that visits others."""
    units = _entered(facts, module)
    functions = (unit for unit in units if isinstance(unit, Function) and unit.module is not module)
    return Visitor(module, facts, frozenset(unit.node for unit in functions))


def _entered(facts: Facts, module: Module) -> set[Unit]:
    """The units of a file, and those that they lead to."""
    return units_from(facts, module, *(unit for unit in facts.functions if unit.module is module))


def _takes_what_is_handed(facts: Facts, unit: Unit) -> bool:
    """Whether a unit names no device but the CPU, and those that it is handed."""
    handed = unit.parameter_names if isinstance(unit, Function) else ()
    for node in facts.own(unit):
        if isinstance(node, ast.Attribute) and node.attr in ("cuda", "xpu", "mps"):
            return False
        if isinstance(node, (ast.Name, ast.Attribute)) and facts.is_device(facts.values(node)):
            if not only_cpu(facts, node) and _root(node) not in handed:
                return False
    return True


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
