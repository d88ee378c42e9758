"""Functions of the project that are handed to a library, which calls them: `spawn(main, args=(n, args))`.

The rows of `known/callers.py` say which argument is the function and what it is called with. Such a call is one of the
function's calls like any other; `Handed` says what is written of its arguments.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.arguments import Arguments
from migrate.analysis.entry import invoke
from migrate.analysis.iteration import iterate, iterator
from migrate.analysis.known.table import Each, Items, What
from migrate.analysis.roles import NOTHING, NUMBER, Role, Value, Values
from migrate.analysis.spreading import spread, spread_mapping
from migrate.analysis.state import ELEMENT, OVER, Frame, State
from migrate.analysis.units import Class, Function, Handed
from migrate.analysis.unpacking import inside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from migrate.analysis.known.table import Argument, Calls, Enters, Part

    Call = Callable[[State, Values, Arguments, Frame], Values]

#: What a library can call; a class that it is given makes objects, which nobody sees.
_CALLED = frozenset({Role.FUNCTION, Role.METHOD, Role.PARTIAL, Role.INSTANCE, Role.MODEL})
_LATER = "<later>"  # the key and the name of what an object will have some time
_HAVING = frozenset({"result", "get"})


def rows_of(state: State, callee: Value) -> tuple[Calls, ...]:
    """What calling something calls of what it is handed."""
    is_other = callee.role is Role.METHOD and callee.name not in state.known.calling_methods
    return () if is_other else state.known.calls.get(dotted(callee), ())


def dotted(callee: Value) -> str:
    """The name under which the tables know a function or method of a library; empty: none."""
    if callee.role is Role.KNOWN:
        return callee.name
    owner = callee.receiver
    if callee.role is not Role.METHOD or owner is None or callee.unit is not None:
        return ""
    if owner.role is Role.UNKNOWN:
        return f"{owner.name}().{callee.name}" if owner.name else ""
    return f"<{owner.role.value}>.{callee.name}"


def hand_over(
    state: State, rows: Sequence[Calls], callee: Value, arguments: Arguments, frame: Frame, call: Call
) -> Values | None:
    """Let the library call what it is handed; what comes back, None where the rows do not say."""
    given: Values | None = None
    for row in rows:
        functions = _functions(state, arguments.at(*row.function))
        if functions:
            made = call(state, functions, _passed(state, row, _written(callee), arguments), frame)
            given = _given(state, row, arguments, made) if row.gives is not None else given
    return given


def _written(callee: Value) -> str:
    """How a report names it."""
    name = dotted(callee)
    return name if name[:1] != "<" else f".{callee.name}"


def entries(state: State, decorator: ast.expr) -> dict[str, Enters]:
    """The library functions that call what is decorated so, with what their rows say."""
    made_by = decorator.func if isinstance(decorator, ast.Call) else decorator
    names = {dotted(value): _written(value) for value in state.values.get(made_by, NOTHING)}
    return {written: state.known.entries[name] for name, written in names.items() if name in state.known.entries}


def waited_for(state: State, callee: Value) -> Values | None:
    """`future.result()`: what the function gave; None: it is no such call."""
    if callee.name not in _HAVING or callee.receiver is None or callee.receiver.name != _LATER:
        return None
    assert callee.receiver.origin is not None
    return state.load(callee.receiver.origin, _LATER)


def _functions(state: State, values: Values) -> Values:
    """What can be called among the values, and in the lists and dictionaries among them."""
    found = inside(state, values, depth=1)
    return frozenset(value for value in found if value.role in _CALLED and _has_body(value))


def _has_body(value: Value) -> bool:
    """Whether calling it runs something: no method that a library defines."""
    return value.role not in (Role.METHOD, Role.FUNCTION) or isinstance(value.unit, Function)


def _given(state: State, row: Calls, arguments: Arguments, made: Values) -> Values:
    if row.gives is What.EACH:
        return iterator(state, arguments.node, made, NOTHING)
    if row.gives is What.LATER:
        state.store(arguments.site, _LATER, made)
        return frozenset({Value(Role.UNKNOWN, arguments.site, _LATER)})
    return made


# --- what is passed ---------------------------------------------------------------------------------------------------


def _passed(state: State, row: Calls, name: str, arguments: Arguments) -> Arguments:
    """The arguments of the call that the library makes."""
    source = _Source(arguments)
    inner = passing(state, row.passes, arguments)
    args: list[ast.expr | None] = [source.at(part) if isinstance(part, tuple) else None for part in row.passes]
    keywords: list[ast.keyword] = []
    if row.over is not None:
        inner.positional += [iterate(state, values) for values in arguments.positional[row.over :]]
        args += [None] * len(arguments.positional[row.over :])
    if row.after is not None:
        behind = arguments.after(row.after)
        inner.positional += behind.positional
        inner.rest, inner.others, inner.loose = behind.rest, behind.others, behind.loose
        inner.named.update({key: values for key, values in behind.named.items() if key != row.function[1]})
        args += source.args[row.after :]
        keywords += [keyword for keyword in source.keywords if keyword.arg != row.function[1]]
    if row.rest is not None and arguments.has(*row.rest):
        spread(state, arguments.at(*row.rest), inner)
        args += _elements(source.at(row.rest))
    if row.keywords is not None and arguments.has(*row.keywords):
        inner.others |= spread_mapping(state, arguments.at(*row.keywords), inner.named)
        keywords += _items(source.at(row.keywords))
    inner.handed = Handed(name, source.at(row.function), tuple(args), tuple(keywords), row.often)
    return inner


def passing(state: State, parts: Sequence[Part], arguments: Arguments) -> Arguments:
    """The arguments that a library passes of its own, or out of what it is given."""
    return Arguments(arguments.node, [_part(state, part, arguments) for part in parts])


def _part(state: State, part: Part, arguments: Arguments) -> Values:
    if part is None:
        return NOTHING
    if isinstance(part, Role):
        return NUMBER if part is Role.NUMBER else frozenset({Value(part, arguments.site)})
    if isinstance(part, Each):
        return iterate(state, arguments.at(*part.argument))
    if isinstance(part, Items):
        return _list_of_items(state, arguments.at(*part.argument), arguments.node.func)
    return arguments.at(*part)


def _list_of_items(state: State, owners: Values, made: ast.expr) -> Values:
    """A list of what data sets of the project give under an index."""
    for owner in owners:
        given = invoke(state, owner, "__getitem__", NUMBER)
        if given is not None:
            state.store(made, ELEMENT, given[0])
    return frozenset({Value(Role.CONTAINER, made)})


def index(state: State, datasets: Values, depth: int = 3) -> None:
    """A loader asks its data set for items by number, and one that wraps another asks that one.

    What comes back is a batch in any case, so that the method is only run if there is something to see.
    """
    for value in datasets:
        members = state.member(value.unit, "__getitem__") if isinstance(value.unit, Class) else NOTHING
        for unit in (member.unit for member in members):
            if isinstance(unit, Function) and len(unit.positional) > 1:
                for parameter, values in zip(unit.positional, (frozenset({value}), NUMBER), strict=False):
                    state.join_parameter(unit, parameter.arg, values)
                if unit.matters:
                    state.enter(unit)
        if value.role is Role.DATASET and value.unit is None and value.origin is not None and depth:
            index(state, state.load(value.origin, OVER), depth - 1)


class _Source:
    """What is written of the arguments of a call, which may itself be one that a library makes."""

    def __init__(self, arguments: Arguments) -> None:
        node, handed = arguments.node, arguments.handed
        self.args: Sequence[ast.expr | None] = node.args if handed is None else handed.args
        self.keywords: Sequence[ast.keyword] = node.keywords if handed is None else handed.keywords

    def at(self, argument: Argument) -> ast.expr | None:
        """The expression at a position or under its keyword."""
        position, name = argument
        for keyword in self.keywords:
            if keyword.arg == name:
                return keyword.value
        before = self.args[: position + 1]
        if len(before) <= position or any(isinstance(each, ast.Starred) for each in before):
            return None
        return before[position]


def _elements(node: ast.expr | None) -> list[ast.expr | None]:
    """The elements of a tuple that is written out; else that they are not."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return list(node.elts)
    return [] if node is None else [ast.Starred(node, ast.Load())]


def _items(node: ast.expr | None) -> list[ast.keyword]:
    """The items of a dictionary that is written out, as keywords."""
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        pairs = zip(node.keys, node.values, strict=True)
        return [ast.keyword(str(key.value), value) for key, value in pairs if isinstance(key, ast.Constant)]
    return [] if node is None else [ast.keyword(None, node)]
