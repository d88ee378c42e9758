"""Is the result what was promised? Asked of every edited file before anything is written.

Independent of how edits are made: it reads the two texts and the plan, not libcst's tree.
"""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from collections import Counter
from typing import TYPE_CHECKING

from migrate.analysis.syntax import first_line, last_line
from migrate.edits.comments import are_kept, comments
from migrate.edits.edit import AddAlias, Fold, Insert, Remove, Replace, Unwrap, Wrap
from migrate.source.address import blocks
from migrate.unbound import unbound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.edits.edit import Edit
    from migrate.edits.editable import EditableFile
    from migrate.edits.plan import Plan

LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|$)")
WHOLE = (Remove, Replace, Fold, Unwrap)


def check(before: bytes, after: bytes, file: EditableFile, plan: Plan) -> list[str]:
    """What is wrong with `after`; empty if nothing is.

    It must compile; every comment must be there or be quoted as lost, and only edited places lose any; every line
    that no edit touches must be there, byte for byte and in order (in another depth, where the statements around it
    changed).
    """
    if wrong := _not_compiled(after):
        try:
            ast.parse(after)
        except (SyntaxError, ValueError) as error:
            return [f"the result does not parse: {error}"]
        if not _not_compiled(before):
            return [f"the result does not compile: {wrong}"]
    edits = plan.edits(file.path)
    touched = _Touched(file, edits, plan)
    failures = [*_comments(before, after, plan.lost_comments.get(file.path, ()), touched)]
    failures.extend(_lines(before, after, touched))
    return failures


def names(before: bytes, after: bytes) -> list[str]:
    """What `after` would end with a NameError for, and the file as it was would not; empty if nothing."""
    missing = unbound(after)
    known = unbound(before) if missing else {}
    return [
        f"line {line} of the result reads {name}, which nothing has bound by then"
        for name, line in missing.items()
        if name not in known
    ]


def _not_compiled(content: bytes) -> str:
    """Why Python would not run a text that parses: an argument that is repeated, a `return` outside of a function."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(content, "result", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return str(error)
    return ""


def _comments(before: bytes, after: bytes, quoted: tuple[str, ...], touched: _Touched) -> Iterator[str]:
    if are_kept(before, after):
        return
    try:
        were, there = comments(before), comments(after)
    except (SyntaxError, tokenize.TokenError) as error:
        yield f"the comments cannot be read: {error}"
        return
    missing = Counter(comment.text for comment in were) - Counter(comment.text for comment in there)
    reported = Counter(line.partition(" ")[2] for line in quoted)
    edited = Counter(comment.text for comment in were if comment.line in touched.lines)
    for text in missing - reported:
        yield f"a comment is gone and not reported: {text}"
    for text in missing - edited:
        yield f"a comment is gone where no edit is: {text}"


def _lines(before: bytes, after: bytes, touched: _Touched) -> Iterator[str]:
    """The first untouched line that is not in the result, after all those before it."""
    rest = iter([line for line in _split(after) if line.strip()])
    for number, line in enumerate(_split(before), 1):
        if number in touched.lines or not line.strip():
            continue
        moves = number in touched.moved or line.lstrip().startswith(b"#")
        if not any(_is_same(line, other, moves=moves) for other in rest):
            yield f"line {number} is not in the result as it was: {line.decode(errors='replace').strip()}"
            return


def _split(source: bytes) -> list[bytes]:
    return LINES.findall(source)


def _is_same(line: bytes, other: bytes, *, moves: bool) -> bool:
    """Whether one line is the other; the last line of a file may get a newline, or lose it to one behind it."""
    if moves:
        line, other = line.lstrip(b" \t"), other.lstrip(b" \t")
    return line == other or (line.rstrip(b"\r\n") == other.rstrip(b"\r\n") and (_is_open(line) or _is_open(other)))


def _is_open(line: bytes) -> bool:
    return not line.endswith((b"\r", b"\n"))


class _Touched:
    """The lines that edits may change (`lines`) and those that may only be indented otherwise (`moved`)."""

    def __init__(self, file: EditableFile, edits: tuple[Edit, ...], plan: Plan) -> None:
        self._file = file
        settled = plan.settled(file)
        self._statements = settled.statements
        self.lines: set[int] = set()
        self.moved: set[int] = set()
        for address, operations in settled.nodes.items():
            if any(isinstance(operation, AddAlias) for operation in operations):  # asked for by the file, not there
                self.lines.update(_header(file.index.statements[address.stmt]))
        for edit in edits:
            if edit.address.stmt >= 0:
                self._add(edit)
        for number, changes in self._statements.items():
            if changes.is_cleaned or isinstance(changes.whole, WHOLE):
                self._add_emptied(self._file.index.statements[number])
            if changes.is_cleaned:  # with each `pass` in it; its comments are looked for all the same
                stmt = self._file.index.statements[number]
                self.lines.update(range(first_line(stmt), last_line(stmt) + 1))

    def _add(self, edit: Edit) -> None:
        stmt = self._file.index.statements[edit.address.stmt]
        operation = edit.operation
        if isinstance(operation, (Insert, Wrap)):
            last = self._file.index.statements[operation.last] if isinstance(operation, Wrap) else stmt
            self._add_shared(stmt)
            self._add_shared(last)
            if isinstance(operation, Wrap):
                self.moved.update(range(first_line(stmt), last_line(last) + 1))
        elif isinstance(operation, (Fold, Unwrap)):
            self.lines.update(_header(stmt))
            self._add_shared(stmt)
            kept = stmt.body if isinstance(operation, Unwrap) else getattr(stmt, operation.keep.value)  # type: ignore[attr-defined]
            span = set(range(first_line(stmt), last_line(stmt) + 1))
            inside = set(range(first_line(kept[0]), last_line(kept[-1]) + 1)) if kept else set()
            self.moved.update(inside)
            self.lines.update(span - inside)
            if kept and isinstance(stmt, ast.If) and kept is stmt.orelse and _is_elif(kept[0], stmt):
                self.lines.add(kept[0].lineno)  # `elif` becomes `if`
        elif isinstance(operation, (Remove, Replace)):
            self.lines.update(range(first_line(stmt), last_line(stmt) + 1))
            self.lines.update(self._behind(stmt))
        else:
            self.lines.update(_header(stmt))

    def _behind(self, stmt: ast.stmt) -> Iterator[int]:
        """The comments at the end of a block's last statement, which are deeper than the block's own and go with it."""
        if not any(blocks(stmt)):
            return
        for number, line in enumerate(_split(self._file.content)[last_line(stmt) :], last_line(stmt) + 1):
            text = line.lstrip()
            if text.strip():
                if not text.startswith(b"#") or len(line) - len(text) <= stmt.col_offset:
                    return
                yield number

    def _add_shared(self, stmt: ast.stmt) -> None:
        """A statement that does not have its lines for itself: they are taken apart when something comes beside it."""
        parent = self._file.index.parent(stmt)
        for other in self._file.index.block(stmt):
            if other is not stmt and (first_line(other) <= last_line(stmt) and last_line(other) >= first_line(stmt)):
                self.lines.update(range(first_line(stmt), last_line(stmt) + 1))
        if parent is not None and first_line(stmt) in _header(parent):
            self.lines.update(range(first_line(stmt), last_line(stmt) + 1))
        if _is_elif(stmt, parent):
            self.lines.add(stmt.lineno)
            self.moved.update(range(first_line(stmt), last_line(stmt) + 1))

    def _add_emptied(self, stmt: ast.stmt) -> None:
        """What is cleaned up around a statement that goes away: the headers of blocks that it may leave empty."""
        parent = self._file.index.parent(stmt)
        while parent is not None and all(map(self._may_be_gone, self._file.index.block(stmt))):
            self.lines.update(_frame(parent))
            stmt, parent = parent, self._file.index.parent(parent)

    def _may_be_gone(self, stmt: ast.stmt) -> bool:
        address = self._file.index.find(stmt)
        changes = self._statements.get(address.stmt) if address else None
        return isinstance(stmt, ast.Pass) or (
            changes is not None and (changes.is_cleaned or isinstance(changes.whole, WHOLE))
        )


def _is_elif(stmt: ast.stmt, parent: ast.stmt | None) -> bool:
    """Whether it may be an `elif`: `ast` has the same for an `if` alone in an else part."""
    return isinstance(parent, ast.If) and parent.orelse == [stmt] and isinstance(stmt, ast.If)


def _frame(stmt: ast.stmt) -> set[int]:
    """All lines of a statement that are not lines of statements inside, but for those that share one."""
    span = set(range(first_line(stmt), last_line(stmt) + 1))
    inner = [range(first_line(child), last_line(child) + 1) for block in blocks(stmt) for child in block]
    return span - {line for lines in inner for line in lines} | _header(stmt)


def _header(stmt: ast.stmt) -> set[int]:
    """The lines of a statement itself: all of a simple one, down to the first statement inside of another."""
    first = next((block[0] for block in blocks(stmt)), None)
    if first is None:
        return set(range(first_line(stmt), last_line(stmt) + 1))
    if first_line(first) == last_line(stmt):
        return {first_line(first)} | set(range(first_line(stmt), first_line(first)))
    return set(range(first_line(stmt), max(first_line(first), first_line(stmt) + 1)))
