"""Where a new import goes: where isort would put it, as far as the file's own order lets that be seen."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    Wanted = tuple[str, str | None]  # module and name; no name for `import module`
    _Run = list[ast.Import | ast.ImportFrom]  # that stand together


class Section(IntEnum):
    """The parts of an import list, in order."""

    FUTURE = 0
    STANDARD = 1
    THIRD_PARTY = 2
    LOCAL = 3


@dataclass(frozen=True, slots=True)
class Placed:
    """A new import statement, before or after another statement."""

    code: str
    anchor: ast.stmt
    before: bool
    spaced: bool
    serves: tuple[Wanted, ...]
    is_first: bool = False  # of the imports that stand together: a comment above them heads all (`# Imports`)


@dataclass(frozen=True, slots=True)
class Joined:
    """A name that an existing `from` import takes."""

    name: str
    anchor: ast.stmt
    serves: tuple[Wanted, ...]


def place(
    tree: ast.Module, wanted: Iterable[Wanted], local: Collection[str], used: int | None = None
) -> list[Placed | Joined]:
    """Where the imports go that are not there yet; in alphabetical order, names of one module in one statement.

    `local` has the names of the project's own modules. What is wanted is Python's own, or counts as third party. The
    imports go among those down to the line `used`, where one of them is needed.
    """
    found: list[Placed | Joined] = []
    by_module: dict[str, set[str]] = {}
    zone = _zone(tree, used)
    above = [stmt for stmt in tree.body if used is None or stmt.lineno <= used]  # cells of a notebook import anywhere
    for module, name in sorted(set(wanted), key=lambda want: (want[0].lower(), want[1] or "")):
        if _is_there(above, module, name):
            continue
        if name is None:
            found.append(_new(tree, zone, local, f"import {module}", module, is_from=False, serves=((module, None),)))
        elif home := _home(zone, module):
            found.append(Joined(name, home, ((module, name),)))
        else:
            by_module.setdefault(module, set()).add(name)
    for module, names in by_module.items():
        code = f"from {module} import {', '.join(sorted(names))}"
        serves = tuple((module, name) for name in sorted(names))
        found.append(_new(tree, zone, local, code, module, is_from=True, serves=serves))
    return found


def _zone(tree: ast.Module, used: int | None) -> list[ast.stmt]:
    """The statements at the top of the file, up to the last import before the first use, definition or loop."""
    last = 0
    for number, stmt in enumerate(tree.body):
        if used is not None and stmt.lineno > used:
            break
        if isinstance(stmt, (ast.Import, ast.ImportFrom)):
            last = number + 1
        elif not _is_among_imports(stmt):
            break
    return tree.body[:last]


def _is_among_imports(stmt: ast.stmt) -> bool:
    """Whether imports commonly go on after such a statement: `os.environ[...] = ...`, `try: import ...`."""
    if isinstance(stmt, (ast.Try, ast.If)):
        return any(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in ast.walk(stmt)) and not _is_main(stmt)
    return isinstance(stmt, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom))


def _is_main(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.If) and any(
        isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(stmt.test)
    )


def _is_there(statements: list[ast.stmt], module: str, name: str | None) -> bool:
    for stmt in statements:
        if isinstance(stmt, ast.Import) and name is None:
            if any(alias.name == module and alias.asname in (None, module) for alias in stmt.names):
                return True
        if isinstance(stmt, ast.ImportFrom) and stmt.module == module and not stmt.level:
            if any(alias.name == name and alias.asname in (None, name) for alias in stmt.names):
                return True
    return False


def _home(zone: list[ast.stmt], module: str) -> ast.ImportFrom | None:
    """A `from` import of the module that can take one more name."""
    for stmt in zone:
        if isinstance(stmt, ast.ImportFrom) and stmt.module == module and not stmt.level and stmt.names[0].name != "*":
            return stmt
    return None


# ------------------------------------------------------------------ a statement of its own


def _new(
    tree: ast.Module,
    zone: list[ast.stmt],
    local: Collection[str],
    code: str,
    module: str,
    *,
    is_from: bool,
    serves: tuple[Wanted, ...],
) -> Placed:
    runs = list(_runs(zone))
    mine = Section.STANDARD if module.partition(".")[0] in sys.stdlib_module_names else Section.THIRD_PARTY
    own = [[stmt for stmt in run if _section(stmt, local) is mine] for run in runs]
    if any(own):
        run, peers = _among([*zip(runs, own, strict=True)])
        anchor, before = _in_run(zone, peers, module, is_from=is_from)
        is_first = before and anchor is run[0]
        return Placed(code, anchor, before=before, spaced=False, serves=serves, is_first=is_first)
    earlier = [stmt for run in runs for stmt in run if _section(stmt, local) < mine]
    later = [stmt for run in runs for stmt in run if _section(stmt, local) > mine]
    if earlier:
        return Placed(code, _line_end(zone, earlier[-1]), before=False, spaced=True, serves=serves)
    if later:
        return Placed(code, _line_start(zone, later[0]), before=True, spaced=True, serves=serves)
    has_docstring = ast.get_docstring(tree, clean=False) is not None
    return Placed(code, tree.body[0], before=not has_docstring, spaced=True, serves=serves)


def _among(runs: list[tuple[_Run, _Run]]) -> tuple[_Run, _Run]:
    """The last run with several peers, else the last with one: a comment above a single import is about that one."""
    peopled = [pair for pair in runs if pair[1]]
    return next((pair for pair in reversed(peopled) if len(pair[1]) > 1), peopled[-1])


def _runs(zone: list[ast.stmt]) -> Iterator[list[ast.Import | ast.ImportFrom]]:
    """The import statements that stand together, without blank lines or other statements between them."""
    run: list[ast.Import | ast.ImportFrom] = []
    end = 0
    for stmt in zone:
        if run and (not isinstance(stmt, (ast.Import, ast.ImportFrom)) or stmt.lineno > end + 1):
            yield run
            run = []
        if isinstance(stmt, (ast.Import, ast.ImportFrom)):
            run.append(stmt)
        end = stmt.end_lineno or stmt.lineno
    if run:
        yield run


def _in_run(
    zone: list[ast.stmt], peers: list[ast.Import | ast.ImportFrom], module: str, *, is_from: bool
) -> tuple[ast.stmt, bool]:
    """The statement that the new one stands next to among its peers of a run, and whether before it."""
    mixed = _is_sorted([_key(stmt) for stmt in peers]) and not _is_sorted([_style(stmt) for stmt in peers])
    if not mixed:  # plain imports first, or no order that could be kept: among those of the same style
        same = [stmt for stmt in peers if isinstance(stmt, ast.ImportFrom) is is_from]
        if not same and not is_from:
            return _line_start(zone, peers[0]), True
        peers = same or peers
        greater = [stmt for stmt in same if _key(stmt) > module.lower()]
    else:
        greater = [stmt for stmt in peers if _key(stmt) > module.lower()]
    return (_line_start(zone, greater[0]), True) if greater else (_line_end(zone, peers[-1]), False)


def _section(stmt: ast.Import | ast.ImportFrom, local: Collection[str]) -> Section:
    if isinstance(stmt, ast.ImportFrom) and stmt.level:
        return Section.LOCAL
    top = _module(stmt).partition(".")[0]
    if top == "__future__":
        return Section.FUTURE
    if top in sys.stdlib_module_names:
        return Section.STANDARD
    return Section.LOCAL if top in local else Section.THIRD_PARTY


def _module(stmt: ast.Import | ast.ImportFrom) -> str:
    return stmt.module or "" if isinstance(stmt, ast.ImportFrom) else stmt.names[0].name


def _key(stmt: ast.Import | ast.ImportFrom) -> str:
    return _module(stmt).lower()


def _style(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.ImportFrom)


def _is_sorted(keys: list[str] | list[bool]) -> bool:
    return sorted(keys) == keys


def _line_start(stmts: Iterable[ast.stmt], stmt: ast.stmt) -> ast.stmt:
    """The first statement on the line where this one begins: `import a; a.use(1); import b` stays one line."""
    return next(other for other in stmts if (other.end_lineno or other.lineno) >= stmt.lineno)


def _line_end(stmts: Iterable[ast.stmt], stmt: ast.stmt) -> ast.stmt:
    """The last statement on the line where this one ends."""
    return [other for other in stmts if other.lineno <= (stmt.end_lineno or stmt.lineno)][-1]
