"""Blocks of statements after their edits: what goes, what comes, what is wrapped, and the lines between.

A block is laid out once, when everything inside its statements is done: a list of `Item`s, one for each statement that
was there, becomes a list of statements and the comments at the block's end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, cast

import libcst as cst

from migrate.edits.edit import Branch, Fold, Insert, Remove, Replace, Special, Unwrap, Wrap
from migrate.edits.layout import Gap, Layout, Mark, New
from migrate.edits.pages import is_blank

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from migrate.edits.build import Builder, Statement
    from migrate.edits.settle import StatementEdits

    Lines = tuple[cst.EmptyLine, ...]


LAYOUT: Layout[cst.EmptyLine, Any] = Layout(is_blank, lambda: cst.EmptyLine(indent=False))
PLACEHOLDER = "HOLE_{name}_"


@dataclass(slots=True)
class Item:
    """What became of one statement of a block, or of several that share a line."""

    number: int  # of the first
    past: int  # one more than the number of the last, with everything inside
    lead: Lines  # blank lines and comments above
    nodes: list[Statement]  # empty: gone
    tail: Lines = ()  # comments that stay behind when the block they were in goes
    before: list[Insert] = field(default_factory=list)
    after: list[Insert] = field(default_factory=list)
    is_new: bool = False  # replaced: what stands there is not one statement of the file


@dataclass(slots=True)
class Blocks:
    """Lays out blocks by what was settled."""

    builder: Builder
    edits: Mapping[int, StatementEdits]
    wraps: Mapping[int, tuple[Wrap, ...]]
    ends: set[int]  # numbers of the last statements of wraps
    filled: Callable[[Replace | Insert], str]  # the code of new statements, with their expressions filled in

    # -------------------------------------------------------------- items

    def has_work(self, numbers: Sequence[int]) -> bool:
        """Whether anything happens to these statements as such."""
        return any(n in self.edits or n in self.wraps for n in numbers)

    def items(self, stmt: Statement, numbers: Sequence[int], past: int) -> list[Item]:
        """What becomes of a line of small statements, or of a compound one."""
        if not isinstance(stmt, cst.SimpleStatementLine):
            return [self._item(stmt, numbers[0], past)]
        if len(numbers) == 1:
            return [self._item(stmt, numbers[0], past)]
        if not self._needs_lines(numbers):
            return [self._shortened(stmt, numbers, past)]
        return [self._item(_alone(stmt, n, len(numbers)), number, number + 1) for n, number in enumerate(numbers)]

    def _needs_lines(self, numbers: Sequence[int]) -> bool:
        """Whether statements that share a line need lines of their own: for all but removals and what is around."""
        for number in numbers:
            edits = self.edits.get(number)
            if number in self.wraps or number in self.ends:
                return True
            if edits and (isinstance(edits.whole, (Replace, Fold, Unwrap)) or edits.is_cleaned):
                return True
            if edits and ((edits.before and number != numbers[0]) or (edits.after and number != numbers[-1])):
                return True
        return False

    def _shortened(self, line: cst.SimpleStatementLine, numbers: Sequence[int], past: int) -> Item:
        kept = [small for small, n in zip(line.body, numbers, strict=True) if not self._is_removed(n)]
        first, last = self.edits.get(numbers[0]), self.edits.get(numbers[-1])
        nodes: list[Statement] = [line.with_changes(body=_joined(kept, line.body), leading_lines=())] if kept else []
        before = list(first.before) if first else []
        return Item(numbers[0], past, tuple(line.leading_lines), nodes, (), before, list(last.after) if last else [])

    def _is_removed(self, number: int) -> bool:
        edits = self.edits.get(number)
        return edits is not None and isinstance(edits.whole, Remove)

    def _item(self, stmt: Statement, number: int, past: int) -> Item:
        bare = stmt.with_changes(leading_lines=())
        item = Item(number, past, tuple(stmt.leading_lines), [bare])
        edits = self.edits.get(number)
        if edits is None:
            return item
        item.before, item.after = list(edits.before), list(edits.after)
        if edits.is_cleaned:
            item.nodes, item.tail = [], _left_over(stmt)
        elif isinstance(edits.whole, Remove):
            item.nodes = []
        elif isinstance(edits.whole, Replace):
            item.nodes, item.is_new = self._replacement(edits.whole, bare), True
        elif isinstance(edits.whole, Unwrap):
            self._open(item, cast("cst.With", stmt).body)
        elif isinstance(edits.whole, Fold):
            self._fold(item, cast("cst.If", stmt), edits.whole.keep)
        return item

    def _fold(self, item: Item, stmt: cst.If, keep: Branch) -> None:
        orelse = stmt.orelse
        if keep is Branch.BODY:
            self._open(item, stmt.body)
        elif isinstance(orelse, cst.If):
            item.lead = (*item.lead, *orelse.leading_lines)
            item.nodes = [orelse.with_changes(leading_lines=())]
        elif orelse is None:
            item.nodes = []
        else:
            item.lead = (*item.lead, *orelse.leading_lines)
            self._open(item, orelse.body)

    def _open(self, item: Item, suite: cst.BaseSuite) -> None:
        """The statements of a block, in the place of the statement that held them."""
        nodes, item.tail = statements_of(suite)
        if nodes:
            first = _trimmed(nodes[0].leading_lines) if isinstance(suite, cst.IndentedBlock) else ()
            item.lead = (*item.lead, *first)
            nodes[0] = nodes[0].with_changes(leading_lines=())
        item.nodes = nodes

    def _replacement(self, operation: Replace, old: Statement) -> list[Statement]:
        nodes = self.builder.statements(self.filled(operation))
        specials = {name: part for name, part in operation.parts if isinstance(part, Special)}
        if specials:
            inside = {PLACEHOLDER.format(name=name): _inside(part, old) for name, part in specials.items()}
            module = cst.Module(nodes).visit(_Splice(inside))
            nodes = list(module.body)
        if isinstance(old, cst.SimpleStatementLine) and not specials:
            heir = next((n for n, new in enumerate(nodes) if _gives_the_same(new, old)), 0)
            nodes[heir] = _with_comment(nodes[heir], old.trailing_whitespace)
        return nodes

    # -------------------------------------------------------------- layout

    def lay_out(
        self,
        items: list[Item],
        footer: Lines,
        *,
        is_top: bool = False,
        has_header: bool = False,
        indent: str | None = None,
    ) -> tuple[list[Statement], Lines]:
        """The statements of the block and the lines behind the last one."""
        items = self._wrapped(items, indent)
        out: list[Statement] = []
        tokens: list[Any] = []
        previous: Item | None = None
        for item in items:
            lead = list(item.lead)
            while lead and lead[0].comment is None:
                tokens.append(lead.pop(0))
            is_heading = previous is None or len(lead) < len(item.lead)  # else the comments are of this statement
            below = [insert for insert in item.before if insert.is_headed and is_heading]
            tokens += [self._new(insert) for insert in item.before if insert not in below]
            tokens += lead
            tokens += map(self._new, below)
            if not item.nodes:
                tokens += [Mark.GONE, *item.tail, *map(self._new, item.after)]
                continue
            gap: Gap[cst.EmptyLine, Any] = Gap(
                tokens,
                is_first=previous is None and not has_header,
                after_definition=is_top and _is_definition(previous),
                before_definition=is_top and _is_definition(item),
            )
            lines = _put(LAYOUT.arrange(gap), out)
            first = item.nodes[0]
            out.append(first.with_changes(leading_lines=(*lines, *first.leading_lines)))
            out.extend(item.nodes[1:])
            tokens = [*item.tail, *map(self._new, item.after)]
            previous = item
        gap = Gap(
            [*tokens, *footer],
            is_first=previous is None and not has_header,
            is_last=True,
            after_definition=is_top and _is_definition(previous),
        )
        return out, tuple(_put(LAYOUT.arrange(gap), out))

    def _new(self, insert: Insert) -> New[Statement]:
        return New(tuple(self.builder.statements(self.filled(insert))), insert.before, insert.spaced)

    def _wrapped(self, items: list[Item], indent: str | None) -> list[Item]:
        wraps = [(item.number, wrap) for item in items for wrap in self.wraps.get(item.number, ())]
        wraps.sort(key=lambda pair: (pair[0], -pair[1].last))  # stable: of two equals the first planned is outside
        return self._nested(items, wraps, indent)

    def _nested(self, items: list[Item], wraps: list[tuple[int, Wrap]], indent: str | None) -> list[Item]:
        out: list[Item] = []
        rest = list(items)
        wraps = list(wraps)
        while wraps:
            start, wrap = wraps.pop(0)
            last, inside = wrap.last, []
            while wraps and (wraps[0][0] <= last or self._continues(wrap, last, wraps[0], rest)):
                if wraps[0][0] > last:
                    last = wraps.pop(0)[1].last
                else:
                    inside.append(wraps.pop(0))
            while rest and rest[0].number < start:
                out.append(rest.pop(0))
            inner: list[Item] = []
            while rest and rest[0].number <= last:
                inner.append(rest.pop(0))
            out.extend(self._block(inner, inside, wrap.header, indent))
        return [*out, *rest]

    def _continues(self, wrap: Wrap, last: int, following: tuple[int, Wrap], items: list[Item]) -> bool:
        """Whether the next wrap is the same and nothing stands between."""
        start, other = following
        if not (wrap.merges and other.merges and wrap.header == other.header):
            return False
        between = [item for item in items if last <= item.number <= start]
        return not any(
            (item.after and item.number < start)
            or (item.before and item.number > last)
            or (item.nodes and last < item.number < start)
            for item in between
        )

    def _block(self, inner: list[Item], wraps: list[tuple[int, Wrap]], header: str, indent: str | None) -> list[Item]:
        """One item that holds the others; what is inserted around them stays around it."""
        if not inner:
            return []
        before, after = inner[0].before, inner[-1].after
        inner[0] = replace(inner[0], before=[])
        inner[-1] = replace(inner[-1], after=[])
        if not any(item.nodes or item.before or item.after for item in inner):
            inner[0].before, inner[-1].after = before, after
            return inner
        arranged = _Inner(self.builder, {}, {}, set(), self.filled)
        body, footer = arranged.lay_out(self._nested(inner, wraps, indent), (), indent=indent)
        lead = tuple(body[0].leading_lines)
        body = [body[0].with_changes(leading_lines=()), *map(_moved_in, body[1:])]
        body = [self.builder.deeper(stmt, indent) for stmt in body]
        (node,) = self.builder.statements(f"{header}:\n    pass")
        header_end = cast("cst.IndentedBlock", cast("cst.If", node).body).header
        suite = cst.IndentedBlock(body, footer=footer, indent=indent, header=header_end)
        return [Item(inner[0].number, inner[-1].past, lead, [node.with_changes(body=suite)], (), before, after)]


class _Inner(Blocks):
    """Lays out what is inside a wrap: its own wraps are done already."""

    def _wrapped(self, items: list[Item], indent: str | None) -> list[Item]:
        return items


# ------------------------------------------------------------------ pieces of blocks


def _alone(line: cst.SimpleStatementLine, place: int, count: int) -> cst.SimpleStatementLine:
    """One of the statements of a line, on a line of its own."""
    small = line.body[place].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    lead = line.leading_lines if place == 0 else ()
    trailing = line.trailing_whitespace if place == count - 1 else cst.TrailingWhitespace()
    return line.with_changes(body=[small], leading_lines=lead, trailing_whitespace=trailing)


def _joined(
    kept: Sequence[cst.BaseSmallStatement], old: Sequence[cst.BaseSmallStatement]
) -> list[cst.BaseSmallStatement]:
    """Statements of one line after some went: the last has the semicolon that the last had."""
    if not kept or kept[-1] is old[-1]:
        return list(kept)
    return [*kept[:-1], kept[-1].with_changes(semicolon=old[-1].semicolon)]


def shortened(suite: cst.SimpleStatementSuite, is_removed: Sequence[bool]) -> cst.SimpleStatementSuite:
    """`if x: a(); b()` without some of its statements."""
    kept = [small for small, gone in zip(suite.body, is_removed, strict=True) if not gone]
    return suite.with_changes(body=_joined(kept, suite.body))


def statements_of(suite: cst.BaseSuite) -> tuple[list[Statement], Lines]:
    """The statements of a block, each on its own line, and the comments at its end."""
    if isinstance(suite, cst.IndentedBlock):
        return list(cast("Sequence[Statement]", suite.body)), tuple(suite.footer)
    line = as_line(cast("cst.SimpleStatementSuite", suite))
    return ([line] if line.body else []), ()


def as_line(suite: cst.SimpleStatementSuite) -> cst.SimpleStatementLine:
    """The statements behind a colon, as a line of their own."""
    return cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)


def _inside(part: Special, old: Statement) -> list[Statement]:
    if part is Special.ITSELF:
        return [old]
    if part is Special.BODY:
        nodes, _ = statements_of(cast("cst.If", old).body)
    else:
        orelse = getattr(old, "orelse", None)
        nodes = [orelse] if isinstance(orelse, cst.If) else statements_of(orelse.body)[0] if orelse else []
    return nodes or [cst.SimpleStatementLine([cst.Pass()])]


class _Splice(cst.CSTTransformer):
    """Puts statements where a line holds nothing but a placeholder."""

    def __init__(self, inside: Mapping[str, list[Statement]]) -> None:
        super().__init__()
        self._inside = inside

    def leave_SimpleStatementLine(  # noqa: N802
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        only = updated_node.body[0] if len(updated_node.body) == 1 else None
        name = only.value.value if isinstance(only, cst.Expr) and isinstance(only.value, cst.Name) else ""
        if name not in self._inside:
            return updated_node
        first, *rest = self._inside[name]
        lines = (*updated_node.leading_lines, *first.leading_lines)
        return cst.FlattenSentinel([first.with_changes(leading_lines=lines), *rest])


def _gives_the_same(new: Statement, old: cst.SimpleStatementLine) -> bool:
    """Whether a statement gives the name a value that the old one did: what was said of that is said of this."""
    line, given = (stmt.body[0] if isinstance(stmt, cst.SimpleStatementLine) else None for stmt in (new, old))
    if not isinstance(line, cst.Assign) or not isinstance(given, cst.Assign):
        return False
    return line.targets[0].target.deep_equals(given.targets[0].target)


def _with_comment(stmt: Statement, trailing: cst.TrailingWhitespace) -> Statement:
    """The statement with what stood behind the one it replaces."""
    if isinstance(stmt, cst.SimpleStatementLine):
        return stmt.with_changes(trailing_whitespace=trailing)
    body = getattr(stmt, "body", None)
    return stmt.with_deep_changes(body, header=trailing) if isinstance(body, cst.IndentedBlock) else stmt


def _left_over(stmt: Statement) -> Lines:
    """The comments in blocks of a statement with nothing left in it."""
    found: list[cst.EmptyLine] = []
    part: Any = stmt
    while part is not None:
        if part is not stmt:
            found += [line for line in part.leading_lines if line.comment]
        found += comments_of(part.body)
        part = getattr(part, "orelse", None)
    return tuple(found)


def comments_of(suite: cst.BaseSuite) -> Lines:
    """The comments of an emptied block."""
    if isinstance(suite, cst.IndentedBlock):
        return (*as_lines(suite.header), *(line for line in suite.footer if line.comment))
    return as_lines(cast("cst.SimpleStatementSuite", suite).trailing_whitespace)


def as_lines(trailing: cst.TrailingWhitespace) -> Lines:
    """A comment behind something, as a line."""
    return (cst.EmptyLine(comment=trailing.comment),) if trailing.comment else ()


def _trimmed(lines: Sequence[cst.EmptyLine]) -> Lines:
    return tuple(dropwhile(lambda line: line.comment is None, lines))


def _put(arranged: Sequence[Any], out: list[Statement]) -> list[cst.EmptyLine]:
    """Add the new statements with the lines above them; the lines that remain belong to what follows."""
    lines: list[cst.EmptyLine] = []
    for token in arranged:
        if isinstance(token, New):
            first, *rest = token.statements
            out.append(first.with_changes(leading_lines=(*lines, *first.leading_lines)))
            out.extend(rest)
            lines = []
        else:
            lines.append(token)
    return lines


def _moved_in(stmt: Statement) -> Statement:
    """The statement for a deeper block: blank lines above it stay empty."""
    lines = [line if line.comment else line.with_changes(indent=False) for line in stmt.leading_lines]
    return stmt.with_changes(leading_lines=lines)


def _is_definition(item: Item | None) -> bool:
    return item is not None and isinstance(item.nodes[0], (cst.FunctionDef, cst.ClassDef))
