"""`eval("models." + name + ".get_net")`: what a text names, as far as it is written out.

Of a part that is not known, any name of the module is meant, as `getattr()` has it; where more follows, `.get_net`,
any module of the package that has such a name. Of a text of which nothing is known, `eval(args.model).Net()`, any
module that the file imports and that has it.
"""

from __future__ import annotations

import ast
from itertools import zip_longest
from typing import TYPE_CHECKING

from migrate.analysis import imports, members
from migrate.analysis.roles import NOTHING, Role, Value, Values, texts
from migrate.analysis.state import ANY
from migrate.analysis.units import Module, module_of

if TYPE_CHECKING:
    from migrate.analysis.arguments import Arguments
    from migrate.analysis.state import Frame, State


def evaluated(state: State, arguments: Arguments, frame: Frame) -> Values:
    """What a call of `eval` may give, in names that the file has; nothing: it is not known."""
    found = NOTHING
    for text in texts(arguments.at(0, "source")) or [ANY]:
        first, *rest = text.split(".")
        if not all(name == ANY or name.isidentifier() for name in (first, *rest)):
            continue
        if first == ANY:
            values = _modules_here(state, frame) if rest or _is_asked(frame, arguments.node) else NOTHING
        else:
            values = frame.names.get(first) or members.lookup(state, first, frame)
        for name, after in zip_longest(rest, rest[1:]):
            values = NOTHING.union(*(_named(state, value, name, after, frame) for value in values))
        found |= values
    return found


def _is_asked(frame: Frame, call: ast.AST) -> bool:
    """Whether what is evaluated is only asked for one of its names: `eval(args.model).Net`."""
    return any(isinstance(n, ast.Attribute) and n.value is call for n in ast.walk(_around(frame)))


def _around(frame: Frame) -> ast.AST:
    return frame.unit.tree if isinstance(frame.unit, Module) else frame.unit.node


def _modules_here(state: State, frame: Frame) -> Values:
    """The modules of the project that a file imports under a name."""
    named = state.names_of(module_of(frame.unit)).values()
    return frozenset(v for values in named for v in values if v.role is Role.MODULE and isinstance(v.unit, Module))


def _named(state: State, value: Value, name: str, after: str | None, frame: Frame) -> Values:
    if name != ANY:
        return members.attribute(state, value, name)
    if not isinstance(value.unit, Module):
        return members.known_attribute(value, ANY) if value.role is Role.KNOWN else NOTHING
    inner = _parts(state, value.unit) if after is not None else NOTHING
    return inner or imports.anything(state, value.unit, frame)


def _parts(state: State, package: Module) -> Values:
    """The modules of a package that this imports itself: of others nobody has a name there."""
    names = state.names_of(package)  # of what it imports, some may not be known yet
    bound = {value for values in names.values() for value in values if value.role is Role.MODULE}
    inside = [m for m in package.imports if m is not package and package.file.folder in m.file.folder.parents]
    inside += [m for m in package.imports if m is not package and m.file.folder == package.file.folder]
    found = {Value(Role.MODULE, m.tree, m.file.folder.name, m) for m in inside}
    return frozenset(value for value in bound | found if value.unit is not package) if package.is_package else NOTHING
