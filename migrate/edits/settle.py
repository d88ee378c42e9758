"""From the edits that were planned for a file to the ones that are made: conflicts, what is swallowed, what vanishes.

Pure `ast` and data, so a run that only checks needs nothing else.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.edits.edit import (
    AddAlias,
    AddImport,
    Branch,
    Conflict,
    DropAlias,
    Edit,
    Fold,
    Insert,
    Operation,
    Remove,
    Replace,
    Rewrite,
    Unwrap,
    Whole,
    Wrap,
)
from migrate.edits.imports import Joined, place
from migrate.source.address import Address, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from migrate.source.address import Index

PURE = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Set)
FRAMEWORK = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


@dataclass(slots=True)
class StatementEdits:
    """What happens to one statement, apart from what happens to expressions in it."""

    whole: Whole | None = None
    before: list[Insert] = field(default_factory=list)
    after: list[Insert] = field(default_factory=list)
    is_cleaned: bool = False  # goes because nothing is left in it


@dataclass(frozen=True, slots=True)
class Settled:
    """What is to be done to a file."""

    made: tuple[Edit, ...] = ()  # in the order of planning
    conflicts: tuple[Conflict, ...] = ()
    nodes: Mapping[Address, tuple[Operation, ...]] = field(default_factory=dict)  # what happens at one node
    captures: frozenset[Address] = frozenset()  # expressions that templates take
    statements: Mapping[int, StatementEdits] = field(default_factory=dict)  # by number
    wraps: Mapping[int, tuple[Wrap, ...]] = field(default_factory=dict)  # by number of the first statement

    @property
    def busy(self) -> frozenset[int]:
        """Numbers of the statements that must be entered."""
        places = (address.stmt for address in (*self.nodes, *self.captures))
        ends = (wrap.last for wraps in self.wraps.values() for wrap in wraps)
        return frozenset((*places, *self.statements, *self.wraps, *ends))


def settle(index: Index, edits: Sequence[Edit], pure: Collection[str | ast.Call], local: Collection[str]) -> Settled:
    """Decide what is made. `local` has names of modules that are the project's own."""
    kept, agreed, conflicts = _without_conflicts(edits, index)
    dropped = _whole_imports(kept, index)
    swallowed = _swallowed(kept, dropped, index)
    remaining = [edit for edit in kept if edit not in swallowed]
    imports = _imports([edit for edit in remaining if isinstance(edit.operation, AddImport)], index, local)
    present = {edit for edit, operations in imports.items() if not operations}
    made = tuple(edit for edit in edits if edit in remaining or edit in agreed if edit not in present)
    placed = [pair for pairs in imports.values() for pair in pairs]  # first: what stands beside one may need its name
    placed += [(e.address, e.operation) for e in remaining if not isinstance(e.operation, AddImport)]
    statements = _statements(placed, dropped)
    _clean(statements, index, pure)
    nodes, wraps = _nodes(placed, dropped), _wraps(placed)
    return Settled(made, tuple(conflicts), nodes, _captures(placed), statements, wraps)


# ------------------------------------------------------------------ conflicts


def _without_conflicts(edits: Iterable[Edit], index: Index) -> tuple[list[Edit], set[Edit], list[Conflict]]:
    """The edits that get their place, those that say the same as one of these, and those that do not get it."""
    taken: dict[object, Edit] = {}
    wraps: list[Edit] = []
    kept: list[Edit] = []
    agreed: set[Edit] = set()
    conflicts: list[Conflict] = []
    for edit in edits:
        if isinstance(edit.operation, Wrap):
            other = next((wrap for wrap in wraps if _cross(wrap, edit, index)), None)
        else:
            slot = edit.operation.slot
            if slot is None:  # there is room for several: of other programs, for what they do not say alike
                other = taken.setdefault((edit.address, edit.operation), edit)
                other = None if other.group == edit.group else other
            else:
                other = taken.setdefault((edit.address, slot), edit)
        if other is None or other is edit:
            kept.append(edit)
            wraps.extend([edit] if isinstance(edit.operation, Wrap) else [])
        elif other.operation == edit.operation:
            agreed.add(edit)
        else:
            conflicts.append(Conflict(other, edit))
    return kept, agreed, conflicts


def _cross(one: Edit, other: Edit, index: Index) -> bool:
    """Whether two wraps overlap without one being inside the other; also whether they are the same."""
    (a, b), (c, d) = _span(one, index), _span(other, index)
    if (a, b) == (c, d):
        return one.operation == other.operation
    return a < c < b < d or c < a < d < b


def _span(edit: Edit, index: Index) -> tuple[int, int]:
    last = edit.operation.last if isinstance(edit.operation, Wrap) else edit.address.stmt
    return edit.address.stmt, index.end[last]


# ------------------------------------------------------------------ what goes away


def _whole_imports(edits: list[Edit], index: Index) -> set[int]:
    """Numbers of the import statements that lose all their names."""
    lost: dict[int, set[int]] = {}
    for edit in edits:
        if isinstance(edit.operation, DropAlias):
            lost.setdefault(edit.address.stmt, set()).add(edit.operation.index)
    names = {number: getattr(index.statements[number], "names", ()) for number in lost}
    return {number for number, indexes in lost.items() if len(indexes) == len(names[number])}


def _swallowed(edits: list[Edit], dropped: set[int], index: Index) -> set[Edit]:
    """The edits inside of what is removed, and of what a fold or unwrap does not keep."""
    inside: list[range] = []
    headers: set[int] = set(dropped)
    for edit in edits:
        number, operation = edit.address.stmt, edit.operation
        if isinstance(operation, Remove):
            inside.append(range(number + 1, index.end[number]))
        elif isinstance(operation, Fold):
            inside.append(_folded_away(index, number, operation.keep))
        if isinstance(operation, (Remove, Fold, Unwrap)):
            headers.add(number)
    return {
        edit
        for edit in edits
        if any(edit.address.stmt in part for part in inside)
        or (edit.address.stmt in headers and _is_within(edit, dropped))
    }


def _is_within(edit: Edit, dropped: set[int]) -> bool:
    """Whether an edit of a statement that goes away goes with it: expressions do, neighbours do not."""
    if isinstance(edit.operation, DropAlias):
        return edit.address.stmt not in dropped
    return not isinstance(edit.operation, (Whole, Insert, Wrap))


def _folded_away(index: Index, number: int, keep: Branch) -> range:
    """The numbers of the statements in the branch that a fold does not keep."""
    block = getattr(index.statements[number], "orelse" if keep is Branch.BODY else "body", [])
    return range(index.number(block[0]), index.end[index.number(block[-1])]) if block else range(0)


def _clean(statements: dict[int, StatementEdits], index: Index, pure: Collection[str | ast.Call]) -> None:
    """Mark each `if` and `with` with nothing left in it. Inner ones have higher numbers, so they are seen first."""
    around = {outer for number in statements for outer in index.around(number)}
    for number in sorted(around, reverse=True):
        stmt = index.statements[number]
        edits = statements.get(number)
        if not isinstance(stmt, (ast.If, ast.With)) or (edits and edits.whole) or not _has_no_effect(stmt, pure):
            continue
        block = [*stmt.body, *getattr(stmt, "orelse", ())]
        if _is_void(block, statements, index) and any(_is_gone(child, statements, index) for child in block):
            statements.setdefault(number, StatementEdits()).is_cleaned = True


def _has_no_effect(stmt: ast.If | ast.With, pure: Collection[str | ast.Call]) -> bool:
    """Whether a statement does nothing beside what stands in it."""
    if isinstance(stmt, ast.If):
        return is_pure(stmt.test, pure)
    calls = [item.context_expr for item in stmt.items if isinstance(item.context_expr, ast.Call)]
    is_bare = len(calls) == len(stmt.items) and all(item.optional_vars is None for item in stmt.items)
    return is_bare and all(is_pure(call, pure) for call in calls)  # what stands under a name may do anything


def _is_void(block: list[ast.stmt], statements: Mapping[int, StatementEdits], index: Index) -> bool:
    """Whether nothing but `pass` is left of a block, and nothing new comes."""
    return all(
        (isinstance(stmt, ast.Pass) or _is_gone(stmt, statements, index)) and not _has_inserts(stmt, statements, index)
        for stmt in block
    )


def _has_inserts(stmt: ast.stmt, statements: Mapping[int, StatementEdits], index: Index) -> bool:
    edits = statements.get(index.number(stmt))
    return edits is not None and bool(edits.before or edits.after)


def _is_gone(stmt: ast.stmt, statements: Mapping[int, StatementEdits], index: Index) -> bool:
    edits = statements.get(index.number(stmt))
    if not edits:
        return False
    if isinstance(edits.whole, (Fold, Unwrap)):
        block = getattr(stmt, edits.whole.keep.value if isinstance(edits.whole, Fold) else "body", [])
        return all(_is_gone(inner, statements, index) and not _has_inserts(inner, statements, index) for inner in block)
    return edits.is_cleaned or isinstance(edits.whole, Remove)


def is_pure(test: ast.expr, pure: Collection[str | ast.Call]) -> bool:
    """Whether leaving a test out changes nothing else."""
    waiting: list[ast.AST] = [test]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            if node not in pure and ast.unparse(node.func) not in pure:
                return False
            waiting.extend(node.args)
            waiting.extend(keyword.value for keyword in node.keywords)
        elif isinstance(node, PURE) or _is_item(node):
            waiting.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, FRAMEWORK))
        else:
            return False
    return True


def _is_item(node: ast.AST) -> bool:
    """`config["no_cuda"]`: an item by its key is read like an attribute."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


# ------------------------------------------------------------------ sorted by place


def _imports(edits: list[Edit], index: Index, local: Collection[str]) -> dict[Edit, list[tuple[Address, Operation]]]:
    """What each new import becomes; an empty list for one that is there already."""
    wanted = [(edit.operation.module, edit.operation.name) for edit in edits if isinstance(edit.operation, AddImport)]
    operations: dict[Edit, list[tuple[Address, Operation]]] = {edit: [] for edit in edits}
    needed = [e.operation.used for e in edits if isinstance(e.operation, AddImport) and e.operation.used is not None]
    for placement in place(index.tree, wanted, local, min(needed, default=None)):
        address = Address(index.number(placement.anchor))
        new: Operation
        if isinstance(placement, Joined):
            new = AddAlias(placement.name)
        else:
            new = Insert(placement.code, before=placement.before, spaced=placement.spaced, is_headed=placement.is_first)
        served = [edit for edit, want in zip(edits, wanted, strict=True) if want in placement.serves]
        operations[served[0]].append((address, new))
        for edit in served[1:]:
            operations[edit].append((address, _Shared()))
    return operations


class _Shared(Operation):
    """Carried out by another edit."""


def _statements(placed: Iterable[tuple[Address, Operation]], dropped: Iterable[int]) -> dict[int, StatementEdits]:
    found: dict[int, StatementEdits] = {number: StatementEdits(Remove()) for number in dropped}
    for address, operation in placed:
        if isinstance(operation, Whole):
            found.setdefault(address.stmt, StatementEdits()).whole = operation
        elif isinstance(operation, Insert):
            edits = found.setdefault(address.stmt, StatementEdits())
            side = edits.before if operation.before else edits.after
            side.append(operation)
            side.sort(key=lambda insert: insert.late)
    return found


def _nodes(
    placed: Iterable[tuple[Address, Operation]], dropped: Collection[int]
) -> dict[Address, tuple[Operation, ...]]:
    found: dict[Address, tuple[Operation, ...]] = {}
    for address, operation in placed:
        if isinstance(operation, (Whole, Insert, Wrap, _Shared)):
            continue
        if not (isinstance(operation, DropAlias) and address.stmt in dropped):
            found[address] = (*found.get(address, ()), operation)
    return found


def _captures(placed: Iterable[tuple[Address, Operation]]) -> frozenset[Address]:
    parts = (part for _, o in placed if isinstance(o, (Rewrite, Replace, Insert)) for _, part in o.parts)
    return frozenset(part for part in parts if isinstance(part, Address) and part.kind is not Kind.STATEMENT)


def _wraps(placed: Iterable[tuple[Address, Operation]]) -> dict[int, tuple[Wrap, ...]]:
    found: dict[int, tuple[Wrap, ...]] = {}
    for address, operation in placed:
        if isinstance(operation, Wrap):
            found[address.stmt] = (*found.get(address.stmt, ()), operation)
    return found
