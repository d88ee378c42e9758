"""What a name of a line is, and why migrate thinks so: the answer to `--explain-role FILE:LINE:NAME`."""

from __future__ import annotations

import ast
import builtins
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.evidence import Evidence, Link
from migrate.analysis.gaps import Cause, Gaps
from migrate.analysis.roles import NOTHING, Certainty, Role, Value, Values
from migrate.analysis.widening import ANYTHING
from migrate.errors import UsageError
from migrate.report.names import guessed
from migrate.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.source.project import SourceFile

NEAREST = 3  # lines that are proposed where the name is not on the line
MOST_NAMES = 12  # names of a line that are listed
MOST_GAPS = 4  # reasons that are told for one unknown value
INDENT = "    "

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SURE = {
    Certainty.PROVEN: "certain",
    Certainty.LIKELY: "likely: no call that makes it was seen",
    Certainty.GUESSED: "a guess, on which nothing is edited",
}
_TABLES = 'Say in pyproject.toml what it makes (docs/tables.md): [tool.migrate.known.makes] "{source}" = "model"'
_MORE_FILES = "Name the files that call or define it as well: migrate --explain-role {question} MORE_FILES"
_WAYS_OUT = {
    Cause.NO_ROW: _TABLES,
    Cause.UNFILLED: _MORE_FILES,
    Cause.UNSEEN: _MORE_FILES,
    Cause.UNSET: _MORE_FILES,
    Cause.NOT_RUN: _MORE_FILES,
}
#: What values are called that are computed from what stands at their origin.
_COMPUTED = {
    Role.BATCH: "a batch of the dataloader",
    Role.SAMPLES: "computed from a batch, one row a sample, of the dataloader",
    Role.STATISTIC: "computed from a batch, its rows folded away, of the dataloader",
    Role.PARAMETERS: "the parameters of the model",
    Role.STATE: "the state dict of the object",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A name of a line, as it stands in the tree."""

    node: ast.AST
    line: int
    text: str

    @property
    def is_name(self) -> bool:
        """Whether it is worth proposing: what the program itself calls so."""
        return not isinstance(self.node, ast.Call) and not hasattr(builtins, self.text)

    @property
    def how(self) -> str:
        """What happens to the name here."""
        if isinstance(self.node, ast.arg):
            return "a parameter here"
        if isinstance(self.node, ast.alias):
            return "imported here"
        if isinstance(self.node, _NAMED):
            return "defined here"
        return "bound here" if isinstance(getattr(self.node, "ctx", None), ast.Store) else "read here"


def explained(facts: Facts, file: SourceFile, line: int, name: str) -> str:
    """Every value that the name may have on that line of the file, each with its chain of evidence.

    Raises:
        UsageError: there is no such line, or the name is not on it.
    """
    told: dict[Values, str] = {}
    for place in _places(file, line, name):
        values = _values(facts, place.node)
        if values not in told:
            told[values] = _Telling(facts, file).of(place, values)
    parts = list(told.values())
    if facts.cut_short:
        files = ", ".join(facts.cut_short)
        parts.append(f"The analysis of {files} stopped at its bound (MIG905): this may not be all.\n")
    return "\n".join(parts)


# --- finding the name -----------------------------------------------------------------------------------------------


def _places(file: SourceFile, line: int, name: str) -> list[Place]:
    """Where the name stands on the line: reads before bindings."""
    count = len(file.lines)
    if not 1 <= line <= count:
        raise UsageError(f"{file.path} has {count:,} lines, and line {line:,} is asked for", "Name one of its lines.")
    wanted = _normal(name)
    every = list(_every(file.tree))
    found = [place for place in every if place.text == wanted and place.line == line]
    if found:
        return sorted(found, key=lambda place: place.how != "read here")
    raise UsageError(f"{file.path}:{line} does not hold `{name}`", _instead(every, line, wanted))


def _instead(every: Sequence[Place], line: int, wanted: str) -> str:
    """What could be meant: names of the line, and lines of the name."""
    here = list(dict.fromkeys(place.text for place in every if place.line == line and place.is_name))
    listed = ", ".join(f"`{text}`" for text in here[:MOST_NAMES])
    near = sorted({place.line for place in every if place.text == wanted}, key=lambda other: (abs(other - line), other))
    on_it = f"On that line: {listed}." if here else "There is no name on that line."
    elsewhere = f"`{wanted}` is at {_lines(near[:NEAREST])}." if near else f"No line of the file holds `{wanted}`."
    return f"{on_it} {elsewhere}"


def _normal(name: str) -> str:
    """The name as `ast` writes it, so that blanks and quotes do not matter."""
    try:
        return ast.unparse(ast.parse(name.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        way_out = 'Give a name or an expression of the line: model, self.model, loaders["train"].'
        raise UsageError(f"`{name}` is not a Python expression", way_out) from None


def _every(tree: ast.AST) -> Iterator[Place]:
    """Every name, attribute, item, call, parameter, import and definition of a file."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            text = ast.unparse(node)
            for line in {node.lineno, node.end_lineno or node.lineno}:
                yield Place(node, line, text)
        elif isinstance(node, ast.arg):
            yield Place(node, node.lineno, node.arg)
        elif isinstance(node, ast.alias):
            yield Place(node, node.lineno, node.asname or node.name)
        elif isinstance(node, _NAMED):
            yield Place(node, node.lineno, node.name)


def _values(facts: Facts, node: ast.AST) -> Values:
    """What stands at a name, also where it is no expression."""
    if isinstance(node, ast.arg):
        found = [unit.parameters for unit in facts.functions if node in ast.walk(unit.node.args)]
        return found[0].get(node.arg, NOTHING) if found else NOTHING
    if isinstance(node, ast.alias):
        return facts.unit(node).names.get(node.asname or node.name.split(".")[0], NOTHING)
    if isinstance(node, _NAMED):
        return frozenset({Value(Role.CLASS if isinstance(node, ast.ClassDef) else Role.FUNCTION, node, node.name)})
    return facts.values(node)


# --- telling --------------------------------------------------------------------------------------------------------


class _Telling:
    """The words for the values of one place."""

    def __init__(self, facts: Facts, file: SourceFile) -> None:
        self._facts = facts
        self._file = file
        self._evidence = Evidence(facts)
        self._gaps = Gaps(facts)

    def of(self, place: Place, values: Values) -> str:
        """The answer for one place."""
        head = f"{self._file.path}:{place.line}: `{place.text}`"
        useful = sorted(values, key=self._order)
        if not useful:
            return f"{head} is not known\n{self._chain(place, ())}{self._missing(place)}"
        if len(useful) == 1:
            (value,) = useful
            return f"{head} is {self.described(value)}\n{self._story(place, value)}"
        lines = [f"{head} may be any of {len(useful)}, which differ in {self._difference(useful)}\n"]
        for number, value in enumerate(useful, 1):
            lines.append(f"\n{number}. {self.described(value)}\n{self._story(place, value)}")
        return "".join(lines)

    def _story(self, place: Place, value: Value) -> str:
        told = self._chain(place, self._evidence.chain(place.node, value))
        return told + self._missing(place) if value.role is Role.UNKNOWN or _is_unset(value) else told

    def _order(self, value: Value) -> tuple[bool, str, str, int]:
        path, line = self._at(value.origin)
        return value.role is Role.UNKNOWN, value.role.value, path, line

    def _difference(self, values: Sequence[Value]) -> str:
        """How several values of one name differ, in a few words."""
        said = []
        if len({value.role for value in values}) > 1:
            said.append("what they are for")
        if len({value.name for value in values}) > 1:
            said.append("what made them")
        if len({value.origin for value in values}) > 1:
            said.append("where they were made")
        return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said) or "how they got here"

    def described(self, value: Value) -> str:
        """A value in words: what it is for, what made it, where, and how sure that is."""
        path, line = self._at(value.origin)
        made = f"made at {path}:{line}" if path else ""
        sure = _SURE[value.certainty]
        if value.role in _COMPUTED:
            return f"{_COMPUTED[value.role]} {made} ({sure})"
        if value.role is Role.METHOD and value.receiver is not None:
            what = f"`.{value.name}` of {self.described(value.receiver)}"
            return f"{what}; what it holds is not known" if _is_unset(value) else f"the method {what}"
        if value == ANYTHING:
            return "more things than are followed"
        if value.role is Role.UNKNOWN:
            by = f", given by {value.name}()" if value.name else ""
            return f"an object that is not known{by}{f', {made}' if made else ''}"
        if value.role in (Role.FUNCTION, Role.CLASS):
            return f"the {value.role.value} {value.name}, defined at {path}:{line}"
        if value.role in (Role.KNOWN, Role.MODULE):
            return f"the {value.role.value} {value.name}"
        if value.role is Role.TEXT:
            return f"the text {value.name!r}"
        word = value.role.value
        name = f" ({value.name})" if value.name else ""
        return f"{_article(word)}{name}{f', {made}' if made else ''} ({sure})"

    def _chain(self, place: Place, links: Sequence[Link]) -> str:
        """The links, newest first, each with its source line where that is another than the one before."""
        lines = []
        last = None
        told = [(link.node, link.what) for link in links]
        if not told or place.how == "read here" or self._at(told[0][0])[1] != place.line:
            told.insert(0, (place.node, place.how))
        for node, what in told:
            path, line = self._at(node)
            lines.append(f"{INDENT}{path}:{line}: {one_line(what)}\n")
            if (path, line) != last:
                lines.append(f"{INDENT * 2}{self._source(node, line)}\n")
            last = (path, line)
        return "".join(lines)

    def _missing(self, place: Place) -> str:
        """What stands in the way of knowing more, and the ways out."""
        gaps = self._gaps.why(place.node)[:MOST_GAPS]
        lines = [f"{INDENT}What was seen:\n"] if gaps else [f"{INDENT}Nothing more was seen.\n"]
        for gap in gaps:
            path, line = self._at(gap.node)
            lines.append(f"{INDENT}{path}:{line}: {one_line(gap.what)}\n{INDENT * 2}{self._source(gap.node, line)}\n")
        if any(gap.cause is Cause.UNFILLED for gap in gaps) and (guess := guessed(place.text)) is not None:
            sure = _SURE[Certainty.GUESSED]
            lines.append(f"{INDENT}By its name it may be {_article(guess.value)} ({sure}); nothing proves it.\n")
        question = shlex.quote(f"{self._file.path}:{place.line}:{place.text}")
        ways_out = (_WAYS_OUT[g.cause].format(question=question, source=g.source) for g in gaps if g.cause in _WAYS_OUT)
        lines += [f"{INDENT}{way_out}\n" for way_out in dict.fromkeys(ways_out)]
        return "".join(lines)

    def _at(self, node: ast.AST | None) -> tuple[str, int]:
        if node is None:
            return "", 0
        line = getattr(node, "lineno", 1)
        return self._facts.file(node).path, line

    def _source(self, node: ast.AST, line: int) -> str:
        lines = self._facts.file(node).lines
        text = one_line(lines[line - 1].strip()) if line <= len(lines) else ""
        return text if len(text) <= 100 else f"{text[:99]}…"


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeio' else 'a'} {word}"


def _is_unset(value: Value) -> bool:
    """The attribute of an object of which nobody has seen it set."""
    holder = value.receiver.role if value.receiver is not None and value.unit is None else None
    return holder in (Role.HOLDER, Role.INSTANCE, Role.UNKNOWN)


def _lines(numbers: Sequence[int]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


__all__ = ["explained"]
