"""Classes that are made of fields: dataclasses, named tuples."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import NOTHING, Role, Value, Values
from migrate.analysis.state import Frame, State
from migrate.analysis.units import Class

if TYPE_CHECKING:
    from collections.abc import Callable

    from migrate.analysis.arguments import Arguments

#: Decorators that write an `__init__` from the fields.
_DECORATORS = frozenset(
    """dataclasses.dataclass attr.s attr.attrs attr.dataclass attr.define attr.frozen attrs.define attrs.frozen
    pydantic.dataclasses.dataclass""".split()
)
_TUPLE = "typing.NamedTuple"
_BASES = frozenset({_TUPLE, "pydantic.BaseModel", "tap.Tap"})
#: Functions that say what a field holds; their default is that of the field.
FIELDS = ("dataclasses.field", "attr.ib", "attr.field", "attrs.field", "pydantic.Field")


def is_tuple(cls: Class) -> bool:
    """Whether objects of the class are tuples with names."""
    return _TUPLE in cls.library_bases() or any(_is_declared(base) for base in cls.bases)


def _is_declared(base: Value) -> bool:
    """Whether a class is what `namedtuple` gave."""
    return base.role is Role.CLASS and base.unit is None


def fields_of(state: State, cls: Class) -> list[str] | None:
    """The fields of a class in the order of its constructor; None if it is not made of fields."""
    for base in cls.bases:
        if _is_declared(base):
            return declared(base.origin)
    if not (cls.library_bases() & _BASES or _is_decorated(state, cls)):
        return None
    return [name for name, field in _declared_in(state, cls).items() if _is_passed(field)]


def _declared_in(state: State, cls: Class) -> dict[str, ast.AnnAssign]:
    """The fields of a class and those above it, in the order in which they were first seen."""
    found: dict[str, ast.AnnAssign] = {}
    for each in reversed(cls.mro()):
        if each is cls or each.library_bases() & _BASES or _is_decorated(state, each):
            for member in each.node.body:
                if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                    found[member.target.id] = member
    return found


def initial(state: State, cls: Class, arguments: Arguments) -> list[tuple[Values, ast.expr | None]]:
    """What `__post_init__` is handed: the fields that are no more than that, each as it was passed."""
    found: list[tuple[Values, ast.expr | None]] = []
    named = {keyword.arg: keyword.value for keyword in arguments.node.keywords}
    fields = _declared_in(state, cls)
    for position, name in enumerate(fields_of(state, cls) or []):
        if name in fields and any(_last(node) == "InitVar" for node in ast.walk(fields[name].annotation)):
            written = dict(enumerate(arguments.node.args)).get(position, named.get(name))
            found.append((arguments.at(position, name) or arguments.others, written))
    return found


def _is_passed(field: ast.AnnAssign) -> bool:
    """Whether the constructor takes a field: no variable of the class, and not `field(init=False)`."""
    if any(_last(node) in ("ClassVar", "KW_ONLY") for node in ast.walk(field.annotation)):
        return False
    keywords = field.value.keywords if isinstance(field.value, ast.Call) else ()
    return not any(k.arg == "init" and isinstance(k.value, ast.Constant) and not k.value.value for k in keywords)


def _last(node: ast.AST) -> str:
    """The last name of a dotted one, or of one that is quoted."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.split("[")[0].split(".")[-1]
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _is_decorated(state: State, cls: Class) -> bool:
    for decorator in cls.node.decorator_list:
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        if any(value.name in _DECORATORS for value in state.values.get(name, NOTHING)):
            return True
    return False


def construct(state: State, fields: list[str], arguments: Arguments, *, ordered: bool) -> None:
    """Fill the object that a call makes."""
    node = arguments.site
    for position, field in enumerate(fields):
        values = arguments.at(position, field) or arguments.others
        state.store(node, field, values)
        if ordered:
            state.store(node, str(position), values)


def declared(node: ast.AST | None) -> list[str]:
    """The fields that a call of `namedtuple` names."""
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return []
    listed = node.args[1]
    if isinstance(listed, ast.Constant) and isinstance(listed.value, str):
        return listed.value.replace(",", " ").split()
    names = [e.elts[0] if isinstance(e, ast.Tuple) and e.elts else e for e in getattr(listed, "elts", ())]
    return [str(name.value) for name in names if isinstance(name, ast.Constant)]


def _namedtuple(state: State, arguments: Arguments, frame: Frame) -> Values:
    return frozenset({Value(Role.CLASS, arguments.node, "namedtuple")})


def _field(state: State, arguments: Arguments, frame: Frame) -> Values:
    return arguments.named.get("default", NOTHING)


SPECIAL: dict[str, Callable[[State, Arguments, Frame], Values]] = {
    "collections.namedtuple": _namedtuple,
    "typing.NamedTuple": _namedtuple,
    **dict.fromkeys(FIELDS, _field),
}
