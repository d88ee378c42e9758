r"""What IPython reads and Python does not, in the lines of a cell: masked before it is understood, and put back.

    %matplotlib inline         ->   "__mark_3"                      a statement without meaning
    files = !ls data           ->   files = __mark_4__()            something that is not known
    %time train(model)         ->   with __mark_5__: train(model)   Python that runs once
    %timeit train(model)       ->   __mark_6__(train, model)        Python that runs in its own way

The lines stay as many as they were. A line counts only where a statement may begin: `%` goes on with an expression in
`print("%d"\n % x)`, and a cell that Python reads has no magics at all.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Run their line, or their cell, once and where it stands: what it binds is there afterwards.
_ONCE = frozenset({"time", "capture", "prun", "memit"})
#: Run Python by their own rules: its names are used, and what comes of that is not known.
_OWN_WAY = frozenset({"timeit", "lprun", "mprun", "run", "debug", "pdb", "pinfo"})
#: Commands that IPython takes without a `%`.
_AUTOMATIC = r"(?:pip3?|conda|mamba|cd|ls|cat|mkdir|rm|rmdir|cp|mv|pwd|ll|man|less|more)\b(?![ \t]*[=(.\[,])"

LINE_END = re.compile(r"\r\n|\r|\n")
_CELL = re.compile(r"%%(?P<name>\w[\w.]*)")
_MAGIC = re.compile(rf"(?P<escape>[%!?]|[,;/](?=\w))|{_AUTOMATIC}|[%\w.*]+\?\??[ \t]*$")
_NAMED = re.compile(r"%[ \t]*(?P<name>\w[\w.]*)[ \t]*(?P<rest>.*)", re.DOTALL)
_GIVEN = re.compile(r"(?P<target>[A-Za-z_][\w.,\[\]'\" \t]*=[ \t]*)(?P<magic>(?:!|%(?=[A-Za-z_])).*)")
_NAME = re.compile(r"(?<![\w.'\"-])[A-Za-z_]\w*(?!['\"=])")
_TOKEN = re.compile(
    r"""\#.* | [bBrRuUfF]{0,2}(?P<quote>\"{3}|'{3}|"|') | [()\[\]{}]""",
    re.VERBOSE,
)


class Unreadable(Exception):
    """A cell is no Python, whatever IPython does with it."""

    def __init__(self, error: SyntaxError) -> None:
        super().__init__(error.msg)
        self.line = error.lineno or 1
        self.why = error.msg


@dataclass(frozen=True, slots=True)
class Mask:
    """A piece of a line that stands for another: what is in the module, and what is in the notebook."""

    inside: str
    outside: str
    closes: bool  # nothing may follow it on its line


@dataclass(frozen=True, slots=True)
class Python:
    """A cell as Python reads it; None for one that is kept out, since it is something else."""

    text: str | None
    masks: tuple[Mask, ...] = ()
    head: Mask | None = None  # the `%%` line, which must stay the first


def python(source: str, mark: str) -> Python:
    """A cell's Python, in as many lines; `mark` begins the names that nothing else has.

    Raises:
        Unreadable: it is none.
    """
    if _parses(source) is None:
        return Python(source)
    lines = LINE_END.split(source)
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    cell = _CELL.match(lines[first])
    if cell and cell["name"] not in _ONCE:
        names = _names("\n".join(lines[first:])[cell.end() :]) if cell["name"] in _OWN_WAY else ""
        return Python(f"{mark}_{first}__({names})" if names else None)
    masks = list(_masks(source, lines, mark, first if cell else -1))
    text = source
    for at, mask in reversed(masks):
        text = text[:at] + mask.inside + text[at + len(mask.outside) :]
    if (error := _parses(text)) is not None:
        raise Unreadable(error)
    found = tuple(mask for _, mask in masks)
    return Python(text, found, found[0] if cell else None)


def restored(text: str, cell: Python) -> str | None:
    """The cell's new text with what IPython reads in it; None where that is no longer in its place."""
    if cell.head is not None:
        lines = text.split("\n")
        at = next((number for number, line in enumerate(lines) if line == cell.head.inside), None)
        if at is None:
            return None
        head = lines.pop(at)
        first = next((number for number, line in enumerate(lines[:at]) if line.strip()), at)
        text = "\n".join([*lines[:first], head, *lines[first:]])
    for mask in cell.masks:
        pattern = re.escape(mask.inside) + (r"(?=[ \t]*(?:\r|\n|\Z))" if mask.closes else "")
        found = list(re.finditer(pattern, text))
        if len(found) != 1 or text.count(mask.inside) != 1:
            return None
        text = text[: found[0].start()] + mask.outside + text[found[0].end() :]
    return text


def _parses(source: str) -> SyntaxError | None:
    """Why Python does not read a text; None if it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error))
    return None


# --- which lines ----------------------------------------------------------------------------------------------------


def _masks(source: str, lines: list[str], mark: str, head: int) -> Iterator[tuple[int, Mask]]:
    """What is to be masked, with its place in the source, in order."""
    ends = [match.end() for match in LINE_END.finditer(source)]
    starts = [0, *ends]
    state = _State()
    joined = False  # the line goes on with a magic
    for number, line in enumerate(lines):
        body = line.lstrip(" \t")
        at = starts[number] + len(line) - len(body)
        name = f"{mark}_{number}"
        if number == head:
            yield at, Mask(f'"{name}"', body, closes=True)
        elif joined or (state.begins and body and _is_magic(body)):
            goes_on = body.rstrip().endswith("\\")
            yield at, _masked(body, name, alone=not joined and not goes_on, goes_on=goes_on)
            joined = goes_on
        elif state.begins and (given := _GIVEN.fullmatch(body)):
            yield at + given.start("magic"), Mask(f"{name}__()", given["magic"], closes=True)
        else:
            state.read(line)


def _is_magic(body: str) -> bool:
    match = _MAGIC.match(body)
    return match is not None and (match["escape"] is not None or _parses(body) is not None)


def _masked(body: str, name: str, *, alone: bool, goes_on: bool) -> Mask:
    magic = _NAMED.fullmatch(body)
    if alone and magic and magic["name"] in _ONCE and magic["rest"] and _parses(magic["rest"]) is None:
        return Mask(f"with {name}__: ", body[: magic.start("rest")], closes=False)
    if alone and magic and magic["name"] in _OWN_WAY:
        return Mask(f"{name}__({_names(magic['rest'])})", body, closes=True)
    return Mask(f'"{name}" \\' if goes_on else f'"{name}"', body, closes=True)


def _names(text: str) -> str:
    """The names in a line that may be Python's, as arguments."""
    found = dict.fromkeys(name for name in _NAME.findall(text) if not _parses(name))
    return ", ".join(found)


class _State:
    """Where a statement may begin, line by line."""

    def __init__(self) -> None:
        self._quote = ""  # of a string that goes on
        self._depth = 0
        self._joins = False

    @property
    def begins(self) -> bool:
        """Whether the next line begins a statement."""
        return not (self._quote or self._depth or self._joins)

    def read(self, line: str) -> None:
        """Go past a line of Python."""
        at = 0
        self._joins = False
        while at < len(line):
            if self._quote:
                at = self._past_string(line, at)
                continue
            match = _TOKEN.search(line, at)
            if match is None:
                break
            at = match.end()
            if match["quote"]:
                self._quote = match["quote"]
            elif match[0].startswith("#"):
                return
            else:
                self._depth = max(self._depth + (1 if match[0] in "([{" else -1), 0)
        self._joins = line.endswith("\\")
        if len(self._quote) == 1 and not self._joins:
            self._quote = ""

    def _past_string(self, line: str, at: int) -> int:
        """Behind the end of the string, or of the line."""
        while at < len(line):
            if line.startswith(self._quote, at):
                at += len(self._quote)
                self._quote = ""
                return at
            at += 2 if line[at] == "\\" else 1
        return len(line)
