"""What a program makes once and keeps in a file: `if os.path.exists(path): load it, else make it and save it`, or
`try: load it, except FileNotFoundError: make it and save it`; or fetches: `if not os.path.exists(path):
urlretrieve(url, path)`.

A process that comes late finds the file while another one writes it. So the main process goes first: it makes what is
not there, and the others find it done. What is made with random numbers all make, or they would no longer draw alike:
all have looked for the file before one writes it. What is made for each sample is left as it is: not all processes
come to it as often.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.known.output import FETCHES, OPENS, PATHS, READERS, UNPACKS
from migrate.analysis.syntax import argument_at, arguments, is_docstring, walk
from migrate.analysis.units import Function
from migrate.programs.chance.calls import is_draw
from migrate.programs.chance.splits import EACH
from migrate.programs.conversion import reaches_model
from migrate.programs.output.asked_before import stops
from migrate.programs.output.downloads import has_turns
from migrate.programs.output.filled import holds, parts_of
from migrate.programs.output.filled_anew import made_and_filled
from migrate.programs.output.folders import said
from migrate.programs.output.heard import speech
from migrate.programs.output.voice import Voice
from migrate.programs.reach.callees import reached, uses_reached
from migrate.programs.values.outputs import Outputs
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion

    Run = tuple[ast.stmt, ...]

_IS_FILE = frozenset({"os.path.exists", "os.path.isfile", "pathlib.Path.exists", "pathlib.Path.is_file"})
_IS_FILE_METHODS = frozenset({"exists", "is_file"})
_LISTING = frozenset({"glob.glob", "glob.iglob", "os.listdir", "os.scandir", "os.walk"})
_LISTING_METHODS = frozenset({"glob", "rglob", "iterdir"})
_READS = READERS | OPENS
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Caches:
    """Neighbouring statements that the main process runs first, and all that stands in what they lead to."""

    runs: tuple[Run, ...]
    inside: frozenset[ast.AST]
    asked: tuple[ast.stmt, ...] = ()  # these write what all make, once all have looked for it
    late: tuple[ast.stmt, ...] = ()  # these do so where nothing can hold the main process back


@dataclass(frozen=True, slots=True)
class _Kept:
    """Statements that load what a file holds, or make and save it."""

    run: Run
    writes: ast.stmt | None = None  # what saves it
    is_loaded: bool = True  # there, and not below


def caches(conversion: Conversion) -> Caches:
    """What a program keeps in files, where all processes can come to it one after the other, or ask for it together."""
    found = list(_kept(conversion))
    if not found:
        return Caches((), frozenset())
    speech(conversion)  # which functions are handed the accelerator is settled there
    turns = _Turns(conversion)
    runs: dict[Run, None] = {}
    inside: set[ast.AST] = set()
    asked: dict[ast.stmt, None] = {}
    late: dict[ast.stmt, None] = {}
    for kept, unit in found:
        if kept.is_loaded and (spots := turns.at(kept.run, unit, _DEEPEST)):
            runs.update(dict.fromkeys(spots))
            inside.update(node for statement in kept.run for node in ast.walk(statement))
        elif kept.writes is not None and turns.is_drawn(kept.run):
            (asked if turns.can_ask(kept.writes, unit) else late)[kept.writes] = None
    return Caches(tuple(runs), frozenset(inside), tuple(asked), tuple(late))


def _kept(conversion: Conversion) -> Iterator[tuple[_Kept, Unit]]:
    """What a program makes once and keeps, or fetches."""
    facts = conversion.facts
    each = reached(facts, (unit for unit in facts.functions if unit.name in EACH))
    units = {*conversion.units, *(use.unit for use in uses_reached(facts, conversion.speaking_uses))} - each
    for unit in facts.units:
        own = facts.own(unit) if unit in units and facts.is_editable(unit) else ()
        asking = (node for node in own if isinstance(node, (ast.If, ast.Try)))
        found = (_run(conversion, n) if isinstance(n, ast.If) else _tried(conversion, n) for n in asking)
        yield from ((kept, unit) for kept in found if kept is not None)


def _tried(conversion: Conversion, node: ast.Try) -> _Kept | None:
    """`try: x = load(path)` with `except FileNotFoundError:` that makes and saves it."""
    paths = _read(conversion, node.body) if node.handlers else set()
    if not paths or _writer(conversion, node.body, paths) is not None:
        return None
    writers = (_writer(conversion, handler.body, paths) for handler in node.handlers)
    writes = next((found for found in writers if found is not None), None)
    return _Kept((node,), writes) if writes is not None else None


def _read(conversion: Conversion, block: Sequence[ast.stmt]) -> set[str]:
    """The files that statements read, or that they hand to functions of the project which read."""
    facts, found = conversion.facts, set[str]()
    for call in _calls(block):
        inner = (n for unit in reached(facts, facts.targets(call)) for n in facts.own(unit) if isinstance(n, ast.Call))
        if facts.called(call) & _READS:
            path = argument_at(call, 0, *PATHS)
            found |= {ast.unparse(path)} if path is not None else set()
        elif any(facts.called(each) & _READS for each in inner):
            found |= {ast.unparse(given) for given in arguments(call)}
    return found


def _run(conversion: Conversion, branch: ast.If) -> _Kept | None:
    """The branch, with what follows it where that makes and saves what is not there."""
    asked, is_there = _asked(conversion, branch.test)
    if asked is None:
        return None
    there, missing = (branch.body, branch.orelse) if is_there else (branch.orelse, branch.body)
    if any(stops(conversion.facts, node) for statement in there for node in ast.walk(statement)):
        return None  # all must have asked before it is made
    paths = _made_of(conversion, branch, ast.unparse(asked))
    if _fetches(conversion, missing, paths, asked):
        return _Kept((branch,))
    if not _names(there, paths) and there:
        return None
    if missing:
        writes = _writer(conversion, missing, paths)
        return _Kept((branch,), writes, is_loaded=bool(there)) if writes is not None else None
    block = conversion.facts.tree(branch).block(branch)
    rest = block[block.index(branch) + 1 :]
    if not isinstance(there[-1], ast.Return):
        return None
    making = (
        n
        for n, statement in enumerate(rest)
        if _writes(conversion, statement, paths) or _brings(conversion, _calls([statement]))
    )
    last = next(making, None)
    return _Kept((branch, *rest[: last + 1]), rest[last]) if last is not None else None


def _fetches(conversion: Conversion, missing: Sequence[ast.stmt], paths: Collection[str], asked: ast.expr) -> bool:
    """Whether statements fetch or unpack a file, themselves or in a function that is handed its path."""
    facts, calls = conversion.facts, _calls(missing)
    handed = (unit for call in calls if _names(arguments(call), paths) for unit in facts.targets(call))
    inner = (n for unit in reached(facts, handed) for n in facts.own(unit) if isinstance(n, ast.Call))
    is_meant = _names(missing, paths) or any(_unpacks_here(call) or _names_folder(facts, call, asked) for call in calls)
    return is_meant and _brings(conversion, [*calls, *inner])


def _names_folder(facts: Facts, call: ast.Call, asked: ast.expr) -> bool:
    """`os.makedirs(root)`, where `os.path.join(root, "images")` is asked for."""
    wanted = parts_of(facts, asked)
    return any(holds(parts_of(facts, given), wanted) for given in arguments(call))


def _unpacks_here(call: ast.Call) -> bool:
    """`archive.extractall()`: into the current folder, which nothing names."""
    given = {"extractall": 0, "unpack_archive": 1}.get(getattr(call.func, "attr", ""), -1)
    return len([*arguments(call)]) == given


def _brings(conversion: Conversion, calls: Iterable[ast.Call]) -> bool:
    """Whether calls bring something from the network, or unpack it: `archive.extractall(folder)`."""
    facts = conversion.facts
    return any(
        facts.called(call) & FETCHES or (isinstance(call.func, ast.Attribute) and call.func.attr in UNPACKS)
        for call in calls
    )


def _calls(block: Iterable[ast.stmt]) -> list[ast.Call]:
    return [node for statement in block for node in ast.walk(statement) if isinstance(node, ast.Call)]


def _asked(conversion: Conversion, test: ast.expr) -> tuple[ast.expr | None, bool]:
    """The path that a test asks for, and whether the body runs only if it is there, or only then does not."""
    asked_for, is_so = said(test)
    if isinstance(test, ast.BoolOp):
        wanted = isinstance(test.op, ast.And)
        asked = (_asked(conversion, value) for value in test.values)
        return next(((path, is_there) for path, is_there in asked if path and is_there is wanted), (None, wanted))
    return _path_of(conversion, asked_for), is_so


def _path_of(conversion: Conversion, node: ast.expr) -> ast.expr | None:
    """The path in `os.path.exists(path)`, `path.is_file()`."""
    if not isinstance(node, ast.Call):
        return None
    if conversion.facts.called(node) & _IS_FILE and node.args:
        return node.args[0]
    if targets := conversion.facts.targets(node):
        return node.args[0] if node.args and all(_asks(conversion, each) for each in targets) else None
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _IS_FILE_METHODS:
        return None
    return node.func.value


def _asks(conversion: Conversion, unit: Function) -> bool:
    """`def is_there(path): return os.path.exists(path)`."""
    own = [statement for statement in unit.body if not is_docstring(statement)]
    asked = own[0].value if len(own) == 1 and isinstance(own[0], ast.Return) else None
    if not isinstance(asked, ast.Call) or conversion.facts.targets(asked):
        return False
    path = _path_of(conversion, asked)
    return path is not None and ast.unparse(path) in unit.parameter_names[:1]


def _made_of(conversion: Conversion, branch: ast.If, path: str) -> set[str]:
    """The path, and names above that hold one which begins with it: `rows = folder + "rows.pt"`."""
    found = {path}
    for binding in conversion.facts.bindings_in(conversion.facts.unit(branch)):
        made = binding.statement
        if isinstance(made, ast.Assign) and made.lineno < branch.lineno and binding.target.isidentifier():
            if _names([made.value], found):
                found.add(binding.target)
    return found


def _names(parts: Sequence[ast.AST], paths: Collection[str]) -> bool:
    return any(ast.unparse(n) in paths for part in parts for n in walk(part).of(ast.expr))


def _writer(conversion: Conversion, block: Sequence[ast.stmt], paths: Collection[str]) -> ast.stmt | None:
    """The statement that writes the file."""
    return next((statement for statement in block if _writes(conversion, statement, paths)), None)


def _writes(conversion: Conversion, statement: ast.stmt, paths: Collection[str]) -> bool:
    """Whether a statement writes the file, or hands its path to a function of the project that writes."""
    facts, outputs = conversion.facts, conversion.facts.once(Outputs)
    for call in _calls([statement]):
        if not _names(arguments(call), paths):
            continue
        inner = (n for unit in reached(facts, facts.targets(call)) for n in facts.own(unit))
        if any(isinstance(n, ast.Call) and (outputs.writes(n) or outputs.opens(n)) for n in (call, *inner)):
            return True
    return False


class _Turns:
    """Where all processes come one after the other."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        self._voice = Voice(conversion)

    def at(self, run: Run, unit: Unit, depth: int) -> list[Run]:
        """The statements to take turns at: these, or those that call their function; empty: not everywhere."""
        conversion = self._conversion
        if any(_draws(conversion, statement) for statement in run) or not self._is_alike(run):
            return []
        if conversion.access.has(unit) and not _is_of_data(conversion, unit):
            return [run] if conversion.has_accelerator_at(run[0]) else []
        if not isinstance(unit, Function) or depth == 0:
            return []
        calls = [call for call in conversion.facts.callers(unit) if call.caller in conversion.units]
        above = [self.at((conversion.facts.tree(c.node).statement(c.node),), c.caller, depth - 1) for c in calls]
        if above and all(above):
            return [spot for spots in above for spot in spots]
        can_reach = unit.owner is None and conversion.access.can_reach(run[0])
        return [run] if can_reach else []

    def is_drawn(self, run: Run) -> bool:
        """Whether what is kept is made with random numbers, which all processes draw."""
        return any(_draws(self._conversion, statement) for statement in run) and self._is_alike(run)

    def can_ask(self, writes: ast.stmt, unit: Unit) -> bool:
        """Whether all processes can wait for one another above a statement."""
        conversion = self._conversion
        if _is_of_data(conversion, unit) or not conversion.has_accelerator_at(writes):
            return False
        return conversion.access.has(unit) or conversion.access.can_reach(writes)

    def _is_alike(self, run: Run) -> bool:
        """Whether all processes come to statements as often, and do nothing together in them."""
        conversion, first = self._conversion, run[0]
        if any(reaches_model(conversion, statement) for statement in run):
            return False
        if not isinstance(first, (ast.If, ast.Try, ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)):
            return False
        return self._is_of_all(first) and self._is_called_by_all(conversion.facts.unit(first), set())

    def _is_called_by_all(self, unit: Unit, seen: set[Unit]) -> bool:
        """Whether all processes come to every call on the way to a unit."""
        facts = self._conversion.facts
        if unit in seen:
            return True
        seen.add(unit)
        return all(
            self._is_of_all(facts.tree(call.node).statement(call.node)) and self._is_called_by_all(call.caller, seen)
            for call in (facts.callers(unit) if isinstance(unit, Function) else ())
            if call.caller in self._conversion.units
        )

    def _is_of_all(self, statement: ast.stmt) -> bool:
        """Whether all processes come to a statement of a function, as often, and not one after the other already."""
        if self._voice.is_of_one(statement) or has_turns(self._conversion, [statement]):
            return False
        return all(map(self._is_entered_by_all, _around(self._conversion, statement)))

    def _is_entered_by_all(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.If) and made_and_filled(self._conversion.facts, statement) is not None:
            return True  # all have asked before one makes the folder
        if isinstance(statement, ast.If):
            calls = [n for n in ast.walk(statement.test) if isinstance(n, ast.Call)]
            return not any(_path_of(self._conversion, call) for call in calls)
        return not isinstance(statement, ast.For) or not _lists_files(self._conversion, statement.iter)


def _is_of_data(conversion: Conversion, unit: Unit) -> bool:
    """Whether a unit is a method of an object that loaders send to their workers."""
    return isinstance(unit, Function) and unit.owner is not None and bool(unit.owner.lookup("__getitem__"))


def _around(conversion: Conversion, statement: ast.stmt) -> Iterable[ast.stmt]:
    """The statements that one stands in, within its function."""
    for above in conversion.facts.tree(statement).up(statement):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(above, ast.stmt):
            yield above


def _lists_files(conversion: Conversion, node: ast.expr) -> bool:
    """Whether an expression goes by which files there are: a process that comes late finds more of them."""
    facts = conversion.facts
    behind = facts.once(Sources).behind([node])
    for call in (n for part in behind for n in ast.walk(part) if isinstance(n, ast.Call)):
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _LISTING_METHODS
        if facts.called(call) & _LISTING or (is_method and not facts.targets(call)):
            return True
    return False


def _draws(conversion: Conversion, node: ast.AST) -> bool:
    facts = conversion.facts
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    units = reached(facts, (target for call in calls for target in facts.targets(call)))
    inner = (n for unit in units for n in facts.own(unit) if isinstance(n, ast.Call))
    return any(is_draw(facts, call) for call in (*calls, *inner))
