"""What a program sums up over all processes by itself: of that, no process has a share.

    shown = accelerator.reduce(shown)      shown is of all processes, and so is what is made of it alone
    total += shown.item()                  nothing is joined here after the loop: that would add it up N times
    mean = torch.tensor(running / steps)   where `mean` is summed up next, nobody sees what `running` is

It is followed by names, from statement to statement.
"""

from __future__ import annotations

import ast
from enum import IntEnum
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, roles
from migrate.analysis.syntax import DEFINITIONS, TRIES, reads, same, targets_of, walk, writes
from migrate.analysis.units import Function
from migrate.programs.marker import ACCELERATOR, asks_accelerator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts

_DEEPEST = 3  # functions that hand on what another has summed up


def is_of_all(facts: Facts, node: ast.AST) -> bool:
    """Whether an expression is made of what all processes have summed up, and of nothing of a process's own."""
    return node in facts.once(_OfAll).nodes


def goes_to_all(facts: Facts, node: ast.expr) -> bool:
    """Whether all that is made of an expression where it stands is summed up before anything else reads it."""
    tree, found = facts.tree(node), facts.once(_OfAll)
    statement = tree.statement(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    if any(isinstance(above, ast.Call) and found.is_sum(above) for above in tree.up(node)):
        return True
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return False
    block = tree.block(statement)
    later = block[block.index(statement) + 1 :]
    first = next((each for each in later if target.id in reads(each)), None)
    return isinstance(first, (ast.Assign, ast.Expr)) and any(
        isinstance(n, ast.Call) and found.is_sum(n) and any(target.id in reads(given) for given in n.args)
        for n in walk(first)
    )


class _Kind(IntEnum):
    """What an expression is of, and what becomes of several of them: the greatest."""

    NOTHING = 0
    ALL = 1
    OWN = 2


class _OfAll:
    """What is made of sums over all processes, in the files where the program takes some."""

    def __init__(self, facts: Facts) -> None:
        self.nodes: set[ast.AST] = set()
        self._facts = facts
        self._giving: set[Function] = set()
        mark = f"{ACCELERATOR}.reduce(".encode()
        modules = {module for module in facts.modules if mark in module.file.content}
        units = [unit for unit in facts.functions if unit.module in modules and not isinstance(unit.node, ast.Lambda)]
        for _ in range(_DEEPEST if modules else 0):
            self._giving |= {unit for unit in units if self._gives(unit)}
        callers = {call.caller.module for unit in self._giving for call in facts.callers(unit)}
        for module in modules | callers:
            _Way(self, facts).over(module.tree.body, set())
            for unit in facts.functions:
                if unit.module is module and not isinstance(unit.node, ast.Lambda):
                    _Way(self, facts).over(unit.body, set())

    def is_sum(self, call: ast.Call) -> bool:
        """Whether a call gives what all processes have summed up."""
        if asks_accelerator(call):
            return isinstance(call.func, ast.Attribute) and call.func.attr == "reduce"
        targets = self._facts.targets(call)
        return bool(targets) and self._giving.issuperset(targets)

    def _gives(self, unit: Function) -> bool:
        """Whether a function returns such a sum, but for where there is one process."""
        way = _Way(self, self._facts)
        way.over(unit.body, set())
        return _Kind.ALL in way.returned and _Kind.OWN not in way.returned


class _Way:
    """The statements of some code in their order, with the names that hold what is of all processes."""

    def __init__(self, found: _OfAll, facts: Facts) -> None:
        self.returned: set[_Kind] = set()
        self._found = found
        self._facts = facts

    def over(self, block: Iterable[ast.stmt], names: set[str]) -> set[str]:
        """Go over some statements; the names that are of all below them."""
        for statement in block:
            if not isinstance(statement, DEFINITIONS):
                names = self._after(statement, names)
        return names

    def _after(self, statement: ast.stmt, names: set[str]) -> set[str]:
        if isinstance(statement, ast.If):
            return self._branch(statement, names)
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            kept = names - writes(statement)
            head = statement.test if isinstance(statement, ast.While) else statement.iter
            if self._kind(head, names) is _Kind.OWN:
                return self._apart(statement, names)
            return kept | self.over([*statement.body, *statement.orelse], set(kept))
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return self.over(statement.body, names)
        if isinstance(statement, (*TRIES, ast.Match)):
            return self._apart(statement, names)
        return self._plain(statement, names)

    def _branch(self, statement: ast.If, names: set[str]) -> set[str]:
        if _is_for_one(statement.test):
            return self.over(statement.orelse, names)
        if self._kind(statement.test, names) is _Kind.OWN:
            return self._apart(statement, names)
        sides = [self.over(side, set(names)) for side in (statement.body, statement.orelse)]
        return sides[0] & sides[1]

    def _apart(self, statement: ast.stmt, names: set[str]) -> set[str]:
        """What is of all below a statement in which each process goes its own way."""
        if any(isinstance(node, ast.Return) for node in walk(statement)):
            self.returned.add(_Kind.OWN)
        return names - writes(statement)

    def _plain(self, statement: ast.stmt, names: set[str]) -> set[str]:
        value = getattr(statement, "value", None)
        kind = self._kind(value, names) if isinstance(value, ast.expr) else _Kind.NOTHING
        if isinstance(statement, ast.Return):
            self.returned.add(kind if value is not None else _Kind.OWN)
        elif isinstance(statement, ast.AugAssign):
            return names if kind is not _Kind.OWN else names - _named([statement.target])
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = _named(targets_of(statement))
            self._added(statement, names)
            return names | targets if kind is _Kind.ALL else names - targets
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr.endswith("_"):
            return self._changed(value, value.func, names)
        return names

    def _added(self, statement: ast.Assign | ast.AnnAssign, names: set[str]) -> None:
        """`total = total + shown`: what is of all goes on being so, as with `total += shown`."""
        target, value = targets_of(statement)[0], statement.value
        if isinstance(value, ast.BinOp) and same(target, value.left):
            if self._kind(value.right, names) is _Kind.ALL:
                self._found.nodes |= {target, value, value.left}

    def _changed(self, call: ast.Call, method: ast.Attribute, names: set[str]) -> set[str]:
        """`shown.copy_(accelerator.reduce(shown))`, `shown.div_(n)`."""
        changed, kinds = _named([method.value]), {self._kind(given, names) for given in call.args}
        if method.attr == "copy_":
            return names | changed if kinds == {_Kind.ALL} else names - changed
        return names - changed if _Kind.OWN in kinds else names

    def _kind(self, node: ast.AST, names: set[str]) -> _Kind:
        """What an expression is of; what of it is of all is noted."""
        if (isinstance(node, ast.Call) and self._found.is_sum(node)) or (
            isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in names
        ):
            kind = _Kind.ALL
        else:
            inner = (n for n in ast.iter_child_nodes(node) if isinstance(n, (ast.expr, ast.keyword, ast.comprehension)))
            kind = max((self._kind(n, names) for n in inner), default=_Kind.NOTHING)
            if kind is _Kind.NOTHING and isinstance(node, ast.expr) and roles(self._facts.values(node)) & FROM_LOADER:
                kind = _Kind.OWN
        if kind is _Kind.ALL:
            self._found.nodes.add(node)
        return kind


def _named(targets: Iterable[ast.expr]) -> set[str]:
    """The names and attributes among some targets, and the parts of tuples."""
    parts = (part for to in targets for part in (to.elts if isinstance(to, (ast.Tuple, ast.List)) else [to]))
    return {ast.unparse(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute))}


def _is_for_one(test: ast.expr) -> bool:
    """`if accelerator.num_processes == 1:`."""
    return ast.unparse(test) == f"{ACCELERATOR}.num_processes == 1"
