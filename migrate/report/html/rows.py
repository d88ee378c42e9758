"""A file as rows: what stays, what changes and why, and which rows are folded away."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from migrate.report.html.align import pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from migrate.report.model import Edit

CONTEXT = 3  # lines that are shown around what changes
NEAR = 1  # and around a line that something points at
LEAST = 3  # rows that are worth folding away
ENDS = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Lines:
    """A text's lines as Python counts them, and how each ends."""

    texts: tuple[str, ...]
    ends: tuple[str, ...]

    @property
    def usual_end(self) -> str:
        """How most lines end."""
        return max(("\n", "\r\n", "\r"), key=self.ends.count)


def lines_of(content: bytes) -> Lines:
    """The lines of a file; bytes that its encoding does not have are shown as what stands for them."""
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
    except SyntaxError:
        encoding = "utf-8"
    decoded = content.decode(encoding, "surrogateescape" if encoding.startswith("utf-8") else "replace")
    texts, ends = ENDS.split(decoded), ENDS.findall(decoded)
    if not texts[-1]:
        texts.pop()
    return Lines(tuple(texts), (*ends, "")[: len(texts)])


@dataclass(frozen=True, slots=True)
class Row:
    """A line of each side, 0-based; None where a side has none."""

    old: int | None
    new: int | None


@dataclass(frozen=True, slots=True)
class Run:
    """Rows that belong together. `codes` are those of the rules that changed them."""

    rows: tuple[Row, ...]
    changes: bool = False
    codes: tuple[str, ...] = ()
    folded: bool = False


@dataclass(slots=True)
class _Block:
    old: range
    new: range
    codes: list[str] = field(default_factory=list)


def runs(old: Lines, new: Lines, edits: Sequence[Edit], pointed: Iterable[int]) -> list[Run]:
    """The rows of a file, from the top down. `pointed` are lines of the old text (1-based) that are never folded."""
    before = list(zip(old.texts, old.ends, strict=True))
    after = list(zip(new.texts, new.ends, strict=True))
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    blocks = [_Block(range(i, m), range(j, n)) for kind, i, m, j, n in codes if kind != "equal"]
    _explain(blocks, new, edits)
    shown = {number + d for line in pointed for number in [line - 1] for d in range(-NEAR, NEAR + 1)}
    for block in blocks:
        shown.update(range(block.old.start - CONTEXT, block.old.stop + CONTEXT))
    made: list[Run] = []
    explained = iter(blocks)
    for kind, i, m, j, _ in codes:
        if kind == "equal":
            made += _folded([Row(i + d, j + d) for d in range(m - i)], shown)
        else:
            block = next(explained)
            made.append(Run(_paired(block, old, new), changes=True, codes=tuple(dict.fromkeys(block.codes))))
    return made


def _paired(block: _Block, old: Lines, new: Lines) -> tuple[Row, ...]:
    found = pairs([old.texts[n] for n in block.old], [new.texts[n] for n in block.new])
    first, second = block.old.start, block.new.start
    return tuple(Row(None if i is None else first + i, None if j is None else second + j) for i, j in found)


def _folded(rows: Sequence[Row], shown: set[int]) -> list[Run]:
    """Unchanged rows, with those that nobody needs at first in runs of their own."""
    made: list[list[Row]] = []
    states: list[bool] = []
    for row in rows:
        is_shown = row.old in shown
        if not made or states[-1] != is_shown:
            made.append([])
            states.append(is_shown)
        made[-1].append(row)
    return [
        Run(tuple(part), folded=not is_shown and len(part) >= LEAST)
        for part, is_shown in zip(made, states, strict=True)
    ]


def _explain(blocks: Sequence[_Block], new: Lines, edits: Iterable[Edit]) -> None:
    """Give each block the codes of the edits that made it; what no edit names follows from those that are nearest."""
    for edit in edits:
        for block in _of(edit, blocks, new):
            block.codes.append(edit.code)
    named = [block for block in blocks if block.codes]
    for block in blocks:
        if not block.codes and named:
            nearest = min(named, key=lambda other: abs(other.old.start - block.old.start))
            block.codes += nearest.codes


def _of(edit: Edit, blocks: Sequence[_Block], new: Lines) -> list[_Block]:
    """The blocks that an edit made: the nearest one that has its text, or all that touch its lines."""
    lines = [line.strip() for line in edit.text.splitlines() if line.strip()]
    if lines:
        holding = [b for b in blocks if any(new.texts[n].strip().startswith(lines[0]) for n in b.new)]
        if not holding and (words := lines[0].split()):  # one more name of an import, or a call over several lines
            holding = [b for b in blocks if any(words[-1] in new.texts[n] for n in b.new)]
        return sorted(holding, key=lambda block: _distance(block, edit))[:1]
    return [block for block in blocks if _distance(block, edit) == 0]


def _distance(block: _Block, edit: Edit) -> int:
    """How many lines lie between an edit and a block of the old text."""
    first, last = block.old.start + 1, max(block.old.stop, block.old.start)
    return (
        max(first - edit.end_line, edit.line - last, 0)
        if block.old
        else max(last - edit.end_line, edit.line - first, 0)
    )
