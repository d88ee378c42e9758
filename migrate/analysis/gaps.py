"""Why nothing is known of an expression: the places where the way back to a value ends.

The walk is that of `evidence`, without a value to hold on to: from what is unknown to what it was given, until a call
that no table knows, a parameter that no call fills, or something that nothing sets.
"""

from __future__ import annotations

import ast
import sys
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from migrate.analysis.binders import Binders, arguments, default, given, returned
from migrate.analysis.evidence import MOST, called, short
from migrate.analysis.known.table import Gives, Passes
from migrate.analysis.roles import Role, only
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from migrate.analysis.facts import Facts


class Cause(Enum):
    """Why the analysis knows no more."""

    NO_ROW = "no row"  # a library function that no table knows
    UNFILLED = "unfilled"  # a parameter that no call fills
    UNSEEN = "unseen"  # comes from a file that was not read
    UNSET = "unset"  # nothing gives it a value
    NOT_RUN = "not run"  # in a function that nothing of interest calls
    CONSTANT = "constant"  # known, and of no use: None, a piece of text
    PYTHON = "python"  # comes from Python's own library, which makes nothing that is looked for
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Gap:
    """A place at which the way back to a value ends; `source` is the expression whose value is not known."""

    node: ast.AST
    cause: Cause
    what: str
    source: str = ""


class Gaps:
    """Why parts of a program are not understood."""

    def __init__(self, facts: Facts, binders: Binders | None = None) -> None:
        self._facts = facts
        self._binders = binders or Binders(facts)

    def why(self, node: ast.AST) -> tuple[Gap, ...]:
        """The reasons for which nothing is known of an expression, the nearest first; empty where something is."""
        if (idle := self._not_run(node)) is not None:
            return (idle,)
        found: dict[Gap, None] = {}
        seen = {node}
        waiting = deque([node])
        while waiting and len(seen) < MOST:
            for each in self._behind(waiting.popleft()):
                if isinstance(each, Gap):
                    found[each] = None
                elif each not in seen and not self.is_understood(each):
                    seen.add(each)
                    waiting.append(each)
        return tuple(found)

    def is_understood(self, node: ast.AST) -> bool:
        """Whether it is known what an expression may be, in each case."""
        values = self._facts.values(node)
        known_all = all(value.role is not Role.UNKNOWN for value in values)
        return bool(values) and known_all and not all(self._is_unset(value.receiver) for value in values)

    def _is_unset(self, receiver: object) -> bool:
        """The attribute of an object that nothing is known of."""
        return getattr(receiver, "role", None) in (Role.UNKNOWN, Role.HOLDER, Role.INSTANCE)

    def _not_run(self, node: ast.AST) -> Gap | None:
        unit = self._facts.unit(node)
        if not isinstance(unit, Function) or self._facts.was_run(unit):
            return None
        what = f"nothing that has to do with training was seen to call {called(unit)}, so it was not looked into"
        return Gap(unit.node, Cause.NOT_RUN, what)

    # --- one step back ----------------------------------------------------------------------------------------------

    def _behind(self, node: ast.AST) -> Iterable[ast.AST | Gap]:
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return self._stored(node)
        kind = self._KINDS.get(type(node))
        if kind is not None:
            return kind(self, node)
        return self._parts(node) if isinstance(node, ast.expr) else ()  # a definition is known

    def _name(self, node: ast.Name) -> Iterator[ast.AST | Gap]:
        binders = next(self._binders.visible(node, node.id), None)
        if binders is None:
            what = f"nothing in the files that were read gives `{node.id}` a value"
            yield Gap(node, Cause.UNSET, what, node.id)
        yield from binders or ()

    def _stored(self, node: ast.AST) -> Iterator[ast.AST | Gap]:
        tree = self._facts.tree(node)
        places, above, below = [], tree.parents[node], node
        while isinstance(above, (ast.Tuple, ast.List, ast.Starred)):
            places.append(above.elts.index(below) if isinstance(above, (ast.Tuple, ast.List)) else 0)  # type: ignore[arg-type]
            above, below = tree.parents[above], above
        for field in ("value", "iter", "context_expr"):
            if isinstance(source := getattr(above, field, None), ast.expr):
                if field == "value":
                    source = _part(source, places[::-1])
                if self.is_understood(source):
                    what = f"`{short(source)}` is known, and what `{short(node)}` gets of it is not"
                    name = f"{short(source.func)}()" if isinstance(source, ast.Call) else short(source)
                    yield Gap(source, Cause.OTHER, what, name)
                yield source

    def _parameter(self, node: ast.arg) -> Iterator[ast.AST | Gap]:
        unit = self._binders.function(node)
        if unit is None:
            return
        sources = [source for call in self._binders.callers(unit) for source in given(call, unit, node)]
        if (otherwise := default(unit, node)) is not None:
            sources.append(otherwise)
        makers = sorted({call.handed.by for call in unit.calls.values() if call.handed is not None})
        if not sources and (by := makers or self._entered_by(unit)):
            what = (
                f"it is the parameter `{node.arg}` of {called(unit)}, which {by[0]}() calls with something of its own"
            )
            yield Gap(node, Cause.OTHER, what, node.arg)
        elif not sources:
            why = "no call of it was seen" if not unit.calls else "no call that was seen fills it"
            yield Gap(node, Cause.UNFILLED, f"it is the parameter `{node.arg}` of {called(unit)}, and {why}", node.arg)
        yield from sources

    def _entered_by(self, unit: Function) -> list[str]:
        """The libraries that call a function since it is decorated with what they give."""
        listed = getattr(unit.node, "decorator_list", ())
        return [name for decorator in listed for name in sorted(self._facts.entries(decorator))]

    def _import(self, node: ast.alias) -> Iterator[ast.AST | Gap]:
        module, name = self._binders.imported(node)
        if module is not None:
            yield from self._binders.exported(module, name)
            return
        statement = self._facts.tree(node).parents[node]
        source = getattr(statement, "module", None) or node.name
        yield Gap(statement, Cause.UNSEEN, f"`{node.name}` is imported from `{source}`, which was not read", node.name)

    def _attribute(self, node: ast.Attribute) -> Iterator[ast.AST | Gap]:
        owners = self._facts.values(node.value)
        sources = [*self._binders.stores(node.attr, owners), *self._binders.members(node.attr, owners)]
        if not sources and only(owners, Role.HOLDER):
            what = f"`{short(node)}` is set by the command line or a configuration, and its value is not followed"
            yield Gap(node, Cause.PYTHON, what, short(node))
        elif not sources and self.is_understood(node.value):
            what = f"nothing in the files that were read sets `{short(node)}`"
            yield Gap(node, Cause.UNSET, what, short(node))
        elif not sources:
            yield node.value
        yield from sources

    def _call(self, node: ast.Call) -> Iterator[ast.AST | Gap]:
        name = short(node.func)
        targets = self._facts.targets(node)
        for unit in targets:
            expressions = [expression for expression, _ in returned(unit)]
            if not expressions:
                yield Gap(node, Cause.OTHER, f"{called(unit)} returns nothing", name)
            yield from expressions
        for library in sorted(self._facts.called(node)):
            yield from self._library(node, library)
        if targets or self._facts.called(node):
            return
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if owner is not None and self.is_understood(owner):
            roles = sorted({value.role.value for value in self._facts.values(owner)})
            what = f"what `.{node.func.attr}()` of a {' or '.join(roles)} gives is not known"  # type: ignore[attr-defined]
            yield Gap(node, Cause.OTHER, what, name)
        elif any(isinstance(value.unit, Class) for value in self._facts.values(node.func)):
            yield Gap(node, Cause.OTHER, f"what calling `{name}` gives is not known", name)
        else:
            yield node.func

    def _library(self, node: ast.Call, name: str) -> Iterator[ast.AST | Gap]:
        row = self._facts.row(name)
        if isinstance(row, (Passes, Gives)):
            yield from arguments(node)
        elif name.split(".", maxsplit=1)[0] in sys.stdlib_module_names or name.startswith("builtins."):
            what = f"{name.removeprefix('builtins.')}() of Python gives nothing that migrate looks for"
            yield Gap(node, Cause.PYTHON, what, name)
        elif row is None:
            what = f"what {name}() gives is not known: it is a library function without a row in the tables"
            yield Gap(node, Cause.NO_ROW, what, name)
        else:
            yield Gap(node, Cause.OTHER, f"what {name}() gives is of no role that migrate looks for", name)

    def _constant(self, node: ast.Constant) -> Iterator[ast.AST | Gap]:
        yield Gap(node, Cause.CONSTANT, f"it is {short(node)}", short(node))

    def _parts(self, node: ast.AST) -> Iterator[ast.AST | Gap]:
        for child in ast.iter_child_nodes(node):
            part = child.value if isinstance(child, ast.keyword) else child
            if isinstance(part, ast.expr) and part is not getattr(node, "test", None):
                yield part

    _KINDS: ClassVar[dict[type[ast.AST], Callable[..., Iterable[ast.AST | Gap]]]] = {
        ast.Name: _name,
        ast.arg: _parameter,
        ast.alias: _import,
        ast.Attribute: _attribute,
        ast.Call: _call,
        ast.Constant: _constant,
    }


def _part(source: ast.expr, places: list[int]) -> ast.expr:
    """The part of a tuple as written that is unpacked at these places; the whole where it is not written out."""
    for place in places:
        if not isinstance(source, (ast.Tuple, ast.List)) or any(isinstance(e, ast.Starred) for e in source.elts):
            break
        if place >= len(source.elts):
            break
        source = source.elts[place]
    return source
