"""What an import binds: modules of the project and their members, followed; names of libraries, as they are called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.exports import is_exported, may_bind
from migrate.analysis.roles import NOTHING, Role, Value, Values, texts
from migrate.analysis.state import ANY
from migrate.analysis.units import Class, Function, Module, module_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.arguments import Arguments
    from migrate.analysis.state import Frame, State
    from migrate.source.project import SourceFile

#: What converted programs import; their tables say what there is to know.
_TARGETS = frozenset({"runtime", "accelerate"})
STAR = "*"  # the name under which a module keeps the libraries of which it imports everything
WIDEST = 64  # a package with more modules than this is not looked through for one of unknown name


# --- statements -----------------------------------------------------------------------------------------------------


def import_modules(state: State, statement: ast.Import, frame: Frame) -> None:
    """`import a.b`, `import a.b as c`."""
    for alias in statement.names:
        full = module_named(state, alias.name, 0, frame)
        if alias.asname is not None:
            _bind(state, alias.asname, full or _library(alias.name), frame)
            continue
        top = alias.name.split(".")[0]
        own = module_named(state, top, 0, frame) or (_folder(state, top, 0, frame) if full else NOTHING)
        _bind(state, top, own or _library(top), frame)


def import_names(state: State, statement: ast.ImportFrom, frame: Frame) -> None:
    """`from a import b`, `from . import b as c`, `from a import *`."""
    name, level = statement.module or "", statement.level
    # The accelerator is a library's, also where that library's source lies beside the program.
    is_target = not level and name in _TARGETS and any(alias.name == "Accelerator" for alias in statement.names)
    found = NOTHING if is_target else module_named(state, name, level, frame)
    source = next((value.unit for value in found if isinstance(value.unit, Module)), None)
    for alias in statement.names:
        if alias.name == STAR:
            _import_everything(state, source, statement, frame)
        else:
            values = _imported(state, source, statement, alias.name, frame, is_target=is_target)
            _bind(state, alias.asname or alias.name, values, frame)


def _imported(
    state: State, source: Module | None, statement: ast.ImportFrom, name: str, frame: Frame, *, is_target: bool
) -> Values:
    if source is not None and source is module_of(frame.unit):
        return submodule(state, source, name) or member(state, source, name)  # a package imports a part of itself
    dotted = f"{statement.module}.{name}" if statement.module else name
    if source is not None:
        found = member(state, source, name)
        # A file of the same name as a library, which has not what is imported: it is not the one that is meant.
        return found if found or statement.level or _may_have(source, name) else _library(dotted)
    if not is_target and (found := module_named(state, dotted, statement.level, frame)):
        return found  # a file of a folder without `__init__.py`
    return _library("." * statement.level + dotted)


def _may_have(module: Module, name: str) -> bool:
    """Whether the text of a file may bind a name."""
    return any(may_bind(module, each) for each in (name, STAR, "__getattr__"))


def _import_everything(state: State, source: Module | None, statement: ast.ImportFrom, frame: Frame) -> None:
    if source is not None:
        for name, values in exported(state, source).items():
            _bind(state, name, values, frame)
    elif statement.module and not statement.level:
        _bind(state, STAR, frame.names.get(STAR, NOTHING) | _library(statement.module), frame)


def _bind(state: State, name: str, values: Values, frame: Frame) -> None:
    if name in frame.shared:
        state.elsewhere(frame.shared[name], name, values)
        return
    frame.names[name] = values or frame.names.get(name, NOTHING)
    if not isinstance(frame.unit, Module) or (frame.statement, name) not in frame.unit.rebound:
        state.name(frame.unit, name, values)


def _library(name: str) -> Values:
    return frozenset({Value(Role.KNOWN, name=name)})


# --- modules --------------------------------------------------------------------------------------------------------


def module_named(state: State, name: str, level: int, frame: Frame) -> Values:
    """The project's module of that name as seen from a file; nothing for a library. Its packages are entered, too."""
    file = module_of(frame.unit).file
    parts = name.split(".")
    for length in range(1, len(parts)):
        _entered(state, state.project.resolve(".".join(parts[:length]), level, file), module_of(frame.unit))
    return _value(state, state.project.resolve(name, level, file), name, module_of(frame.unit))


def _folder(state: State, name: str, level: int, frame: Frame) -> Values:
    """A folder without `__init__.py`, as the package it is."""
    module = module_of(frame.unit)
    return _value(state, state.project.folder(name, level, module.file), name, module)


def _value(state: State, file: SourceFile | None, name: str, importer: Module) -> Values:
    found = _entered(state, file, importer)
    return frozenset({Value(Role.MODULE, found.tree, name, found)}) if found is not None else NOTHING


def _entered(state: State, file: SourceFile | None, importer: Module) -> Module | None:
    """The module of a file, run as far as it can be run now: importing it runs it."""
    found = state.module(file) if file is not None else None
    if found is not None:
        importer.imports.add(found)
        state.agenda.demand(found)
    return found


def member(state: State, module: Module, name: str) -> Values:
    """`module.name`: what its top level binds, else a file of the package."""
    found = state.look(module, name)
    if found:
        return found
    # A name that the text binds is not known yet; the file of the same name is another thing.
    return NOTHING if may_bind(module, name) else submodule(state, module, name)


def submodule(state: State, module: Module, name: str) -> Values:
    """`package.name` where name is a file of the package, or a folder in it."""
    if not module.is_package:
        return NOTHING
    project, file = state.project, module.file
    return _value(state, project.resolve(name, 1, file) or project.folder(name, 1, file), name, module)


def exported(state: State, module: Module) -> dict[str, Values]:
    """What `from module import *` gives."""
    names = state.names_of(module)
    return {name: values for name, values in names.items() if is_exported(module.tree, name) or name == STAR}


def anything(state: State, module: Module, frame: Frame) -> Values:
    """`getattr(module, name)` for a name that is not known: any class of another module, or any function.

    Of the own module that would be any function of the program, and say more than is known; but a package that looks
    into `globals()` chooses among what it imports from its files.
    """
    is_own = module is module_of(frame.unit)
    if is_own and not module.is_package:
        return NOTHING
    public = [values for name, values in state.names_of(module).items() if is_exported(module.tree, name)]
    made = [v for values in public for v in values if v.role in (Role.CLASS, Role.FUNCTION)]
    if is_own:
        made = [v for v in made if isinstance(v.unit, (Class, Function)) and v.unit.module is not module]
    return frozenset([v for v in made if v.role is Role.CLASS] or made)


# --- by names that are computed -------------------------------------------------------------------------------------


def imported_by_name(state: State, arguments: Arguments, frame: Frame) -> Values:
    """`importlib.import_module(name)`: the module, or every one of the package where the name is not known.

    Of a name without a package: every one of the folders that the program has added to `sys.path`.
    """
    found: Values = NOTHING
    for text in texts(arguments.at(0, "name")) or [ANY]:
        before, computed, after = text.partition(ANY)
        package, level = _package(arguments, text)
        name = f"{package}{before.lstrip('.')}"
        if not computed:
            found |= module_named(state, name, level, frame) or (NOTHING if level else _library(name))
        for each in _matching(state, name, after, level, frame) if computed else ():
            found |= module_named(state, each, level, frame)
    return found


def _package(arguments: Arguments, text: str) -> tuple[str, int]:
    """What the dots before a name stand for: the package that is passed by its name, or levels of the own one."""
    dots = len(text) - len(text.lstrip("."))
    packages = texts(arguments.at(1, "package"))
    return (f"{packages[0]}.", 0) if dots == 1 and len(packages) == 1 else ("", dots)


def _matching(state: State, before: str, after: str, level: int, frame: Frame) -> Iterator[str]:
    """The names of a package's modules that begin and end so; of its packages' where a part in between is unknown."""
    package, _, start = before.rpartition(".")
    file, project = module_of(frame.unit).file, state.project
    between, computed, rest = after.partition(ANY)
    if not package and not level:
        listed = () if computed else project.modules_added(file)
    elif (folder := project.resolve(package, level, file) or project.folder(package, level, file)) is None:
        return
    else:
        listed = project.packages_in(folder) if computed and between.startswith(".") else project.modules_in(folder)
    names = [f"{package}.{name}" if package else name for name in listed if name.startswith(start)]
    if computed:
        for name in names if between.startswith(".") else ():
            yield from _matching(state, f"{name}{between}", rest, level, frame)
    elif len(names) <= WIDEST:
        yield from (name for name in names if name.endswith(after))
