"""Names that every process makes up by itself, by the clock or at random, and that all of them must agree on.

A folder with the time in its name has two names on two processes. That matters where all of them use it: to read what
the main process has written there, or to make the folder. So has one that is numbered by how many there are already,
`f"run_{len(os.listdir(out))}"`, once one of the processes has made its own, and one that is looked for until there is
no such folder (`while os.path.exists(path): ...`), or that is another where there is (`if os.path.exists(path): ...`).
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from migrate.analysis.entrances import entered_from
from migrate.analysis.known import output
from migrate.analysis.syntax import argument_at, binds, walk
from migrate.programs.reach.callees import uses_reached
from migrate.programs.reach.entry_files import is_guarded_beside
from migrate.programs.values.outputs import Outputs
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion

_Looking: TypeAlias = "tuple[ast.While | ast.If, list[str]]"
_DEEPEST = 5


@dataclass(slots=True)
class Told:
    """The expressions that the main process' value takes the place of, and uses of names that cannot be told alike."""

    told: list[ast.expr] = field(default_factory=list)
    apart: list[ast.Call] = field(default_factory=list)
    found: dict[ast.While | ast.If, list[str]] = field(default_factory=dict)  # what looks for names, with these


def told_names(conversion: Conversion, covered: set[int]) -> Told:
    """What must be told by the main process; `covered` is what only that one comes to."""
    facts, start = conversion.facts, conversion.program.start
    names = _Names(facts)
    found = Told()
    begins = entered_from(facts, start) if start is not None else frozenset()
    folders = _Folders(facts, names, (use.node for use in uses_reached(facts, conversion.uses)))
    for use in uses_reached(facts, conversion.uses):
        if id(use.node) in covered:
            continue
        path = _shared_path(facts, use.node)
        chosen = [*folders.chosen(path)] if path is not None else []
        within = {inner for choice, _ in chosen for inner in walk(choice)}  # told below it, where all come
        made = folders.numbered(path, use.node) if path is not None else ()
        shared = (call for call in dict.fromkeys(made) if id(call) not in covered and call not in within)
        mine = [call for call in shared if not is_guarded_beside(facts, begins, call)]  # else another script's
        wholes = [_told_at(conversion, call) for call in mine]
        looked: list[_Looking] = [*(names.looked_for(path, _DEEPEST) if path is not None else ()), *chosen]
        looking = {each: given for each, given in looked if id(each) not in covered}
        if None in wholes or not all(_has_accelerator(conversion, loop) for loop in looking):
            found.apart.append(use.node)
        else:
            found.told += [whole for whole in wholes if whole is not None and whole not in found.told]
            found.found |= looking
    return found


def _told_at(conversion: Conversion, made: ast.Call) -> ast.expr | None:
    """What the name is given where it is made up, if there is an accelerator to tell it."""
    statement = conversion.facts.tree(made).statement(made)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    return statement.value if _has_accelerator(conversion, statement) else None


def _has_accelerator(conversion: Conversion, statement: ast.stmt) -> bool:
    """Whether there is an accelerator where a statement runs."""
    return conversion.has_accelerator_at(statement) and conversion.access.has(conversion.facts.unit(statement))


def is_made_up(facts: Facts, path: ast.expr) -> bool:
    """Whether every process makes up a path by itself."""
    return next(_Names(facts).made_up(path, _DEEPEST), None) is not None


def is_opened_by_all(conversion: Conversion, path: ast.expr) -> bool:
    """Whether every process opens a file under a path that is made up, in code that has no accelerator to ask."""
    facts, names = conversion.facts, _Names(conversion.facts)
    made = set(names.made_up(path, _DEEPEST))
    return any(
        (opened := _opened(facts, use.node)) is not None
        and not conversion.access.can_reach(use.node)
        and not made.isdisjoint(names.made_up(opened, _DEEPEST))
        for use in uses_reached(facts, conversion.uses)
    )


def _opened(facts: Facts, call: ast.Call) -> ast.expr | None:
    """The path of a file that a call opens, to write into it or to log."""
    outputs = facts.once(Outputs)
    opened = call.args[0] if outputs.opens(call) and call.args else None
    return opened or outputs.log_file(call)


def _shared_path(facts: Facts, call: ast.Call) -> ast.expr | None:
    """The path of a file or folder that every process uses: to read, to enter, or to make it if it is not there."""
    names = facts.called(call)
    is_read = bool(names & (output.OPENS | output.OPENS_ARRAYS)) and not facts.once(Outputs).opens(call)
    is_shared = is_read or bool(names & (output.READERS | output.FOLDERS))
    return argument_at(call, 0, "name", *output.PATHS) if is_shared else None


class _Folders:
    """The names of folders that a program makes: who looks what is there may find what another process has made."""

    def __init__(self, facts: Facts, names: _Names, calls: Iterable[ast.Call]) -> None:
        self._facts = facts
        self._names = names
        made = [call for call in calls if facts.called(call) & output.FOLDERS]
        paths = [path for call in made if (path := argument_at(call, 0, "name", *output.PATHS)) is not None]
        self._counts = {count for path in paths for count in names.made_up(path, _DEEPEST, by_number=True)}
        self._choices = {choice for path in paths for choice, _ in names.chosen(path, _DEEPEST)}

    def numbered(self, path: ast.expr, use: ast.Call) -> Iterator[ast.Call]:
        """What makes a path up; of what counts the files there, that by which a folder is named."""
        is_folder = bool(self._facts.called(use) & output.FOLDERS)
        plain = set() if is_folder else set(self._names.made_up(path, _DEEPEST))
        for call in self._names.made_up(path, _DEEPEST, by_number=True):
            if is_folder or call in plain or call in self._counts:
                yield call

    def chosen(self, path: ast.expr) -> Iterator[tuple[ast.If, list[str]]]:
        """The branches below which a path is read that go by what is there, and by which a folder is named."""
        for choice, name in self._names.chosen(path, _DEEPEST):
            if choice in self._choices and name.lineno > (choice.end_lineno or choice.lineno):
                yield choice, [name.id]


class _Names:
    """Where the parts of a name come from."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sources = facts.once(Sources)

    def made_up(self, node: ast.expr, depth: int, *, by_number: bool = False) -> Iterator[ast.Call]:
        """The calls that give an expression another value on each process; `by_number`: of what is there, too."""
        for inner in walk(node):
            if isinstance(inner, ast.Call):
                if self._facts.called(inner) & output.MADE_UP or (by_number and self._counts_files(inner)):
                    yield inner
        for given in self._given(node) if depth else ():
            yield from self.made_up(given, depth - 1, by_number=by_number)

    def looked_for(self, node: ast.expr, depth: int) -> Iterator[tuple[ast.While, list[str]]]:
        """The loops that go on to another name while there is such a file or folder, with the names that they give."""
        for inner in walk(node).of(ast.Name):
            unit = self._facts.unit(inner)
            for loop in self._facts.own(unit).of(ast.While):
                if inner.id in binds(loop) & self._asked(loop) and loop.lineno < inner.lineno:
                    yield loop, sorted(binds(loop))
        for given in self._given(node) if depth else ():
            yield from self.looked_for(given, depth - 1)

    def chosen(self, node: ast.expr, depth: int) -> Iterator[tuple[ast.If, ast.Name]]:
        """The branches that give a name by whether there is some file or folder, with where the name is read."""
        for inner in walk(node).of(ast.Name):
            for branch in self._facts.own(self._facts.unit(inner)).of(ast.If):
                if inner.id in binds(branch) and any(map(self._is_there, walk(branch.test).of(ast.Call))):
                    yield branch, inner
        for given in self._given(node) if depth else ():
            yield from self.chosen(given, depth - 1)

    def _asked(self, loop: ast.While) -> set[str]:
        """The names in the path of which the test of a loop asks whether it is there."""
        calls = [call for call in walk(loop.test).of(ast.Call) if self._is_there(call)]
        return {name.id for call in calls for name in walk(call).of(ast.Name)}

    def _is_there(self, call: ast.Call) -> bool:
        """`os.path.exists(path)`, `path.exists()`."""
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr in output.EXISTS_ITSELF
        return bool(self._facts.called(call) & output.EXISTS) or (is_method and not call.args)

    def _given(self, node: ast.expr) -> Iterator[ast.expr]:
        """What the parts of an expression are given."""
        for inner in walk(node):
            is_read = isinstance(getattr(inner, "ctx", ast.Load()), ast.Load)
            if isinstance(inner, (ast.Name, ast.Attribute, ast.Call)) and is_read:
                for given in (*self._sources.given(inner).expressions, *self._defaults(inner)):
                    if given is not node:
                        yield given

    def _counts_files(self, call: ast.Call) -> bool:
        """`len(os.listdir(path))`, `len(runs)`; not what picks some of the files by that: their names stay."""
        if "builtins.len" not in self._facts.called(call) or self._is_filter(call):
            return False
        named = [part for node in call.args for part in (node, *self._sources.given(node).expressions)]
        inside = (inner for part in named for inner in ast.walk(part) if isinstance(inner, ast.Call))
        return any(self._facts.called(inner) & output.LISTING for inner in inside)

    def _is_filter(self, call: ast.Call) -> bool:
        """Whether a call stands in the condition of a comprehension: `[f for f in folders if len(os.listdir(f))]`."""
        above = (call, *self._facts.tree(call).up(call))
        return any(isinstance(up, ast.comprehension) and node in up.ifs for node, up in itertools.pairwise(above))

    def _defaults(self, node: ast.expr) -> list[ast.expr]:
        """What an option of the command line is where a user does not give it."""
        option = self._sources.option(node)
        return [keyword.value for keyword in option.keywords if keyword.arg == "default"] if option is not None else []
