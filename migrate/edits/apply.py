"""Carry a plan out in one file: bytes in, bytes out, in one walk over its libcst tree.

Expressions are rewritten on the way up, so an edit gets its node as already rewritten inside. What happens to
statements is done once for each block, when everything inside is done (`migrate.edits.blocks`). Statements without
edits are not entered; names stand for them (`migrate.edits.abridged`). Nothing comes out unless libcst gives back what
it gets byte for byte and every edit met the node it was planned for.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import libcst as cst

from migrate.edits.abridged import Abridged, abridged
from migrate.edits.blocks import PLACEHOLDER, Blocks, Item, as_line, comments_of, shortened
from migrate.edits.build import Builder, Piece, add_alias, assemble, drop_aliases, edit_call, text_piece
from migrate.edits.comments import lost
from migrate.edits.edit import (
    AddAlias,
    DropAlias,
    Insert,
    Lift,
    Operation,
    Remove,
    RemoveParameter,
    Replace,
    Rewrite,
    Special,
)
from migrate.edits.ends import usual_newline
from migrate.edits.join import Join, is_same
from migrate.edits.lossless import NotLossless, read
from migrate.edits.parameters import edit_parameters
from migrate.edits.tightness import rooms
from migrate.edits.touching import see_parentheses
from migrate.errors import EditError
from migrate.source.address import Address, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from migrate.edits.editable import EditableFile
    from migrate.edits.plan import Plan
    from migrate.edits.settle import Settled
    from migrate.source.address import Index

T = TypeVar("T")
SUITES = frozenset({cst.IndentedBlock, cst.SimpleStatementSuite})
STACK_BYTES = 512 * 2**20  # address space, not memory: pages are taken as they are used
FRAMES = 120_000  # Python frames for the deepest trees: some forty a level


class LostEdit(EditError):
    """An edit did not meet the node that it was planned for."""


class TooDeep(EditError):
    """The file nests deeper than this machine's stack allows."""

    is_our_bug = False


@dataclass(frozen=True, slots=True)
class Applied:
    """A file after its edits."""

    content: bytes
    lost_comments: tuple[str, ...] = ()  # "12: # text": comments that went with what they described


def apply(file: EditableFile, plan: Plan) -> Applied:
    """The file's content with the plan carried out; `plan.lost_comments` gets what could not be kept.

    Raises:
        NotLossless: libcst cannot reproduce the file.
        LostEdit: an edit did not find its node. The join is wrong, which is a bug of ours.
        TooDeep: the file nests too deep.
    """
    settled = plan.settled(file)
    if not settled.made:
        return Applied(file.content)
    known = plan.applied.get(file.path)
    if known is not None and known[0] is file and known[1] is settled:  # it was looked at before it is made
        return cast("Applied", known[2])
    try:
        content = _edited(file, settled)
    except RecursionError:
        content = _on_big_stack(lambda: _edited(file, settled), file.path)
    comments = tuple(map(str, lost(file.content, content)))
    plan.lost_comments[file.path] = comments
    applied = Applied(content, comments)
    plan.applied[file.path] = file, settled, applied
    return applied


def _on_big_stack(work: Callable[[], T], path: str) -> T:
    """The work's result, from a thread with room for deep recursion."""
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # noqa: BLE001 (raised again in the thread that asked)
            failure.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
    try:
        sys.setrecursionlimit(max(limit, FRAMES))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if failure and isinstance(failure[0], RecursionError):
        raise TooDeep("the file nests too deep to be edited", "Split its deepest expressions.", path=path)
    if failure:
        raise failure[0]
    return result[0]


def _edited(file: EditableFile, settled: Settled) -> bytes:
    see_parentheses()
    text = abridged(file, settled)
    try:
        module, blank = read(text.text, file)
    except NotLossless:
        if not text.kept:
            raise
        text = Abridged(file.content)  # the lines that are told are those of the file
        module, blank = read(text.text, file)
    try:
        edited = _Apply(file, settled, module, is_cautious=False).run()
    except cst.CSTValidationError:  # a keyword would touch the word behind it: `if(x):`
        edited = _Apply(file, settled, module, is_cautious=True).run()
    return text.restored(edited) + blank


class _Apply(Join):
    """The one transformer."""

    def __init__(self, file: EditableFile, settled: Settled, module: cst.Module, *, is_cautious: bool) -> None:
        super().__init__(file.index.end, settled.busy)
        self._path = file.path
        self._index: Index = file.index
        self._settled = settled
        self._module = module
        newline = usual_newline(file.content, module.default_newline)
        self._builder = Builder(module, newline, is_cautious)
        ends = {wrap.last for wraps in settled.wraps.values() for wrap in wraps}
        self._blocks = Blocks(self._builder, settled.statements, settled.wraps, ends, self._filled)
        self._todo: dict[int, Address] = {}  # by id of the original node: where something is to be done or taken
        self._first: dict[int, int] = {}  # by id of a block: number of its first statement
        self._captured: dict[Address, Piece] = {}
        self._rooms: dict[int, int] = {}
        self._numbers: dict[int, int] = {}  # by id of an `if`
        self._left = {*settled.nodes, *settled.captures, *map(Address, settled.statements)}
        self._left |= {Address(wrap.last) for wraps in settled.wraps.values() for wrap in wraps}
        self._left |= set(map(Address, settled.wraps))

    def run(self) -> bytes:
        """The edited file.

        Raises:
            LostEdit: see there.
        """
        self._first[id(self._module)] = 0
        edited = self._module.visit(self)
        if self._left:
            address = min(self._left, key=lambda place: place.stmt)
            raise self._lost(address, "was not found")
        return edited.bytes

    # -------------------------------------------------------------- on the way down

    def met(self, node: cst.CSTNode, address: Address) -> None:
        """Remember what is to be done here, and that this is the right node."""
        if type(node) is cst.If:
            self._numbers[id(node)] = address.stmt
        if address in self._left:
            if not is_same(node, self._index.node_at(address)):
                raise self._lost(address, "is something else in the other tree")
            self._left.discard(address)
            self._todo[id(node)] = address

    def on_visit(self, node: cst.CSTNode) -> bool:
        """As `Join`, and notes what the way up needs."""
        if type(node) in SUITES:
            self._first[id(node)] = self.next
        enters = super().on_visit(node)
        if enters:
            self._rooms.update(rooms(node))
        return enters

    # -------------------------------------------------------------- on the way up

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        """The node after its edits."""
        super().on_leave(original_node, updated_node)
        lay_out = self._lay_out.get(type(original_node))
        if lay_out:
            updated_node = lay_out(self, original_node, updated_node)
        address = self._todo.get(id(original_node))
        if address is None:
            return updated_node
        for operations in _by_kind(self._settled.nodes.get(address, ())):
            if isinstance(operations[0], Lift):
                self._captured[address] = self._builder.piece(cast("cst.BaseExpression", updated_node))
            updated_node = self._done(operations, original_node, updated_node)
        if address in self._settled.captures and address not in self._captured:
            self._captured[address] = self._builder.piece(cast("cst.BaseExpression", updated_node))
        return updated_node

    def _done(self, operations: list[Operation], original: cst.CSTNode, node: Any) -> cst.CSTNode:
        first = operations[0]
        if isinstance(first, Rewrite):
            new = self._builder.expression(first.template, self._pieces(first, node))
            old = cast("cst.BaseExpression", original)
            return self._builder.seat(new, old, room=self._rooms.get(id(original)))
        if isinstance(first, DropAlias):
            return drop_aliases(node, cast("list[DropAlias]", operations))
        if isinstance(node, cst.Call):
            return edit_call(node, operations)
        # Others find their place by names, also by that of a parameter that goes.
        for operation in sorted(operations, key=lambda each: isinstance(each, RemoveParameter)):
            if isinstance(operation, AddAlias):
                node = add_alias(node, operation)
            else:
                node = edit_parameters(node, original, operation)
        return cast("cst.CSTNode", node)

    def _pieces(self, operation: Rewrite | Replace, node: cst.CSTNode | None) -> dict[str, Piece]:
        return {name: self._piece(part, node) for name, part in operation.parts}

    def _piece(self, part: str | Address | Special, node: cst.CSTNode | None) -> Piece:
        if isinstance(part, str):
            return text_piece(part)
        if isinstance(part, Address):
            return self._captured[part]
        if part is Special.ARGUMENTS:
            return self._builder.arguments(cast("cst.Call", node))
        return self._builder.piece(cast("cst.BaseExpression", node))

    def _filled(self, operation: Replace | Insert) -> str:
        """The code of new statements; where those of the file go, there are placeholders."""
        if not operation.parts:
            return operation.code
        pieces = {
            name: Piece((PLACEHOLDER.format(name=name),)) if isinstance(part, Special) else self._piece(part, None)
            for name, part in operation.parts
        }
        return assemble(operation.code, pieces, mode="exec")

    # -------------------------------------------------------------- blocks

    def _numbered(self, body: Sequence[Any], number: int) -> list[tuple[list[int], int]]:
        """The numbers of the statements of each line of a block, and what follows the line's last statement."""
        found = []
        for stmt in body:
            count = len(stmt.body) if isinstance(stmt, cst.SimpleStatementLine) else 1
            numbers = list(range(number, number + count))
            number = self._index.end[numbers[-1]]
            found.append((numbers, number))
        return found

    def _items(self, original: Sequence[Any], updated: Sequence[Any], number: int) -> list[Item] | None:
        """What becomes of the statements of a block; None if nothing happens to them as such."""
        numbered = self._numbered(original, number)
        if not any(self._blocks.has_work(numbers) for numbers, _ in numbered):
            return None
        pairs = zip(updated, numbered, strict=True)
        return [item for stmt, (numbers, past) in pairs for item in self._blocks.items(stmt, numbers, past)]

    def _module_done(self, original: cst.Module, updated: cst.Module) -> cst.Module:
        items = self._items(original.body, updated.body, self._first[id(original)])
        if items is None:
            return updated
        header, items[0].lead = _split_header(updated.header)
        has_header = any(line.comment for line in header)
        body, footer = self._blocks.lay_out(items, tuple(updated.footer), is_top=True, has_header=has_header)
        return updated.with_changes(header=header, body=body, footer=footer)

    def _block_done(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock:
        items = self._items(original.body, updated.body, self._first[id(original)])
        if items is None:
            return updated
        body, footer = self._blocks.lay_out(items, tuple(updated.footer), indent=updated.indent)
        return updated.with_changes(body=body, footer=footer)

    def _suite_done(self, original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite) -> cst.BaseSuite:
        number = self._first[id(original)]
        numbers = range(number, number + len(original.body))
        if not self._blocks.has_work(numbers):
            return updated
        edits = [self._settled.statements.get(n) for n in numbers]
        if not any(n in self._blocks.wraps for n in numbers) and all(
            edit is None or (isinstance(edit.whole, Remove) and not edit.before and not edit.after) for edit in edits
        ):
            return shortened(updated, [edit is not None for edit in edits])
        items = self._blocks.items(as_line(updated), list(numbers), number + len(numbers))
        body, footer = self._blocks.lay_out(items, ())
        return cst.IndentedBlock(body, footer=footer)

    def _if_done(self, original: cst.If, updated: cst.If) -> cst.If:
        if isinstance(original.orelse, cst.If):
            updated = self._chain_done(original.orelse, updated)
        return cast("cst.If", self._without_else(original, updated))

    def _chain_done(self, original: cst.If, updated: cst.If) -> cst.If:
        """An `elif` is the only statement of an else part that is not written down."""
        number = self._numbers.get(id(original))
        if number is None or not self._blocks.has_work([number]):
            return updated
        items = self._blocks.items(cast("cst.If", updated.orelse), [number], self._index.end[number])
        body, footer = self._blocks.lay_out(items, ())
        if not body:
            left = [line for line in footer if line.comment]
            return cast("cst.If", _with_footer(updated.with_changes(orelse=None), left))
        only = body[0]
        if len(body) == 1 and isinstance(only, cst.If) and not items[0].is_new and number not in self._blocks.wraps:
            return updated.with_changes(orelse=only)
        return updated.with_changes(orelse=cst.Else(cst.IndentedBlock(body, footer=footer)))

    def _without_else(self, original: Any, updated: Any) -> Any:
        """The statement without an else part in which nothing is left; its comments go to the block before."""
        orelse = updated.orelse
        if not isinstance(orelse, cst.Else) or orelse.body.body or not original.orelse.body.body:
            return updated
        left = [*(line for line in orelse.leading_lines if line.comment), *comments_of(orelse.body)]
        return _with_footer(updated.with_changes(orelse=None), left)

    def _lost(self, address: Address, what: str) -> LostEdit:
        known = 0 <= address.stmt < len(self._index.statements)
        line = self._index.statements[address.stmt].lineno if known else 1
        called = f"{address.kind.value} {address.nth + 1}" if address.kind is not Kind.STATEMENT else "the statement"
        return LostEdit(f"an edit of {called} {what}", "Convert the place by hand.", path=self._path, line=line)

    _lay_out: ClassVar[dict[type[cst.CSTNode], Callable[..., Any]]] = {
        cst.Module: _module_done,
        cst.IndentedBlock: _block_done,
        cst.SimpleStatementSuite: _suite_done,
        cst.If: _if_done,
        cst.For: _without_else,
        cst.While: _without_else,
        cst.Try: _without_else,
        cst.TryStar: _without_else,
    }


def _by_kind(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Operations on one node, in the order they are made: what happens inside a node comes before its rewriting."""
    inside = [operation for operation in operations if not isinstance(operation, (Rewrite, DropAlias))]
    dropped: list[Operation] = [operation for operation in operations if isinstance(operation, DropAlias)]
    rewritten: list[list[Operation]] = [[operation] for operation in operations if isinstance(operation, Rewrite)]
    return [group for group in (dropped, inside, *rewritten) if group]


def _split_header(header: Sequence[cst.EmptyLine]) -> tuple[tuple[cst.EmptyLine, ...], tuple[cst.EmptyLine, ...]]:
    """The lines at the top of a file, and those that belong to its first statement."""
    lines = tuple(header)
    ends = [n + 1 for n, line in enumerate(lines) if line.comment is None]
    cut = ends[-1] if ends else len(lines)
    if not any(line.comment for line in lines[:cut]):  # the only comment is the file's own
        return (lines, ()) if any(line.comment for line in lines) else ((), lines)
    while cut and lines[cut - 1].comment is None:  # the blank lines above belong to the gap
        cut -= 1
    return lines[:cut], lines[cut:]


def _with_footer(stmt: Any, left: Sequence[cst.EmptyLine]) -> Any:
    """The statement with comments at the end of its last block but the else part."""
    if not left:
        return stmt
    if getattr(stmt, "handlers", ()):
        *others, last = stmt.handlers
        return stmt.with_changes(handlers=[*others, _with_footer(last, left)])
    body = stmt.body
    if not isinstance(body, cst.IndentedBlock):
        line = as_line(body)
        body = cst.IndentedBlock([line] if line.body else [], header=cst.TrailingWhitespace())
    return stmt.with_changes(body=body.with_changes(footer=(*body.footer, *left)))
