"""What a model's forward goes by that is in the batch: experts to which no row is sent.

    rows = torch.where(chosen == i)[0]
    if rows.numel() > 0:
        out[rows] = expert(x[rows])

Which experts are left out is another matter on each process.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import arguments, writes
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_STEPS_BACK = 4  # from a size to what chose the rows
_ASKING = frozenset("any all item".split())
_REDUCING = frozenset("mean sum max min norm std var".split())  # to one number, where no dimension is named
_SIZES = frozenset("numel nelement size".split())
_CHOOSING = frozenset("nonzero where argwhere masked_select unique".split())


def asks_batch(facts: Facts, test: ast.expr) -> bool:
    """Whether a test in a model is about what a tensor holds, or about how many rows were chosen by that."""
    is_chosen = facts.once(_Rows).are_chosen
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and not facts.targets(node):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            if name in _ASKING and isinstance(node.func, ast.Attribute):
                return True
            if name in _REDUCING and isinstance(node.func, ast.Attribute) and not arguments(node):
                return True
            if (name in _SIZES or name == "len") and any(map(is_chosen, _of(node))):
                return True
        elif isinstance(node, ast.Attribute) and node.attr == "shape" and is_chosen(node.value):
            return True
    return False


def _of(call: ast.Call) -> list[ast.expr]:
    """What a function or a method is about."""
    return [*arguments(call), *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]


class _Rows:
    """Whether how many rows something has goes by what a tensor holds: `torch.where(mask)[0]`, `x[mask]`."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[tuple[ast.expr, int], bool] = {}
        self._given: dict[Unit, dict[str, list[ast.expr]]] = {}

    def are_chosen(self, node: ast.expr, depth: int = _STEPS_BACK) -> bool:
        """The answer for an expression, as far back as there are steps left."""
        if not depth:
            return False
        if (known := self._known.get((node, depth))) is None:
            known = self._known[node, depth] = self._are_chosen(node, depth)
        return known

    def _are_chosen(self, node: ast.expr, depth: int) -> bool:
        match node:
            case ast.Name():
                return any(self.are_chosen(given, depth - 1) for given in self._given_to(node))
            case ast.IfExp():
                return self.are_chosen(node.body, depth) or self.are_chosen(node.orelse, depth)
            case ast.Subscript():
                return self._is_mask(node.slice) or self.are_chosen(node.value, depth)
            case ast.Call():
                return self._comes_of_choice(node, depth)
        return False

    def _comes_of_choice(self, call: ast.Call, depth: int) -> bool:
        names = {name.rpartition(".")[2] for name in called_by_name(self._facts, call)}
        if isinstance(call.func, ast.Attribute):
            names.add(call.func.attr)
        if "where" in names and len(call.args) > 1:  # chooses one of two for each place
            return False
        return bool(names & _CHOOSING) or any(self.are_chosen(each, depth) for each in _of(call))

    def _is_mask(self, index: ast.expr) -> bool:
        given = self._given_to(index) if isinstance(index, ast.Name) else [index]
        return any(isinstance(each, ast.Compare) for each in given)

    def _given_to(self, name: ast.Name) -> list[ast.expr]:
        """What a name is given in its function, alone or as one of several."""
        unit = self._facts.unit(name)
        if unit not in self._given:
            given = self._given[unit] = {}
            for node in self._facts.own(unit).of(ast.Assign):
                for written in {each for target in node.targets for each in writes(target)}:
                    given.setdefault(written, []).append(node.value)
        return self._given[unit].get(name.id, [])
