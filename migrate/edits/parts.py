"""What fills the holes of a template.

`plan.rewrite(call, "accelerator.backward({loss})", loss=RECEIVER)`: a part is Python source text, an `ast` expression
inside the rewritten one, or a `Selector` such as `RECEIVER` that finds it. What is taken from the source is taken *as
already rewritten inside*, so edits nest.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, cast

from migrate.edits.edit import Special

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from migrate.edits.edit import Parts
    from migrate.source.address import Address, Index


@dataclass(frozen=True, slots=True)
class Selector:
    """How to get from a node to a part of it. `then` goes on from there."""

    name: str
    pick: Callable[[ast.AST], ast.AST | Special]

    def then(self, following: Selector) -> Selector:
        """The part of the part: `RECEIVER.then(argument(0))` is `loss` in `scaler.scale(loss).backward()`."""
        return Selector(f"{self.name}, then {following.name}", lambda node: following.pick(_node(self.pick(node))))

    def of(self, node: ast.AST) -> ast.AST | Special:
        """The part of this node.

        Raises:
            ValueError: it has none.
        """
        try:
            return self.pick(node)
        except (AttributeError, IndexError, LookupError, TypeError) as error:
            raise ValueError(f"{_shown(node)} has no {self.name}. Check what it is before planning.") from error


def _node(part: ast.AST | Special) -> ast.AST:
    if isinstance(part, Special):
        raise TypeError("nothing can follow a part that is not one node")
    return part


def _field(name: str, *path: str) -> Selector:
    def pick(node: ast.AST) -> ast.AST:
        for step in path:
            node = getattr(node, step)
        return node

    return Selector(name, pick)


def _right(node: ast.AST) -> ast.AST:
    return node.comparators[0] if isinstance(node, ast.Compare) else cast("ast.BinOp", node).right


def _branch(special: Special, field: str) -> Callable[[ast.AST], ast.AST | Special]:
    def pick(node: ast.AST) -> ast.AST | Special:
        inside = getattr(node, field)
        return special if isinstance(inside, list) else cast("ast.AST", inside)

    return pick


def _arguments(node: ast.AST) -> Special:
    cast("ast.Call", node).args  # noqa: B018 (an AttributeError is what says that it is no call)
    return Special.ARGUMENTS


ITSELF = Selector("itself", lambda _: Special.ITSELF)
FUNCTION = _field("function", "func")  # `a.f` of a.f(x)
RECEIVER = _field("receiver", "func", "value")  # `a` of a.f(x)
VALUE = _field("value", "value")  # `a` of a.b, a[i], x = a, return a, await a
LEFT = _field("left side", "left")  # `a` of a + b, a == b
RIGHT = Selector("right side", _right)  # `b` of a + b, a == b
TEST = _field("test", "test")  # `t` of x if t else y, if t: ..., while t: ...
BODY = Selector("body", _branch(Special.BODY, "body"))  # `x` of x if t else y; the statements of a body
ORELSE = Selector("else part", _branch(Special.ORELSE, "orelse"))  # likewise
ARGUMENTS = Selector("arguments", _arguments)  # all of a call, as written


def argument(which: int | str) -> Selector:
    """The value of a call's argument: the n-th positional one, or the one given by a keyword."""

    def pick(node: ast.AST) -> ast.AST:
        call = cast("ast.Call", node)
        if isinstance(which, str):
            return {keyword.arg: keyword.value for keyword in call.keywords}[which]
        found = call.args[which]
        if any(isinstance(before, ast.Starred) for before in call.args[: which + 1]):
            raise LookupError(which)
        return found

    return Selector(f"argument {which!r}", pick)


Part = str | Selector | ast.expr


def resolve(template: str, parts: Mapping[str, Part], node: ast.AST, index: Index) -> Parts:
    """What fills the holes, as data.

    Raises:
        ValueError: the template has no such hole, or a part is not inside the node.
    """
    return tuple((name, _resolve(template, name, part, node, index)) for name, part in parts.items())


def _resolve(template: str, name: str, part: Part, node: ast.AST, index: Index) -> str | Address | Special:
    if f"{{{name}}}" not in template:
        raise ValueError(f"{template!r} has no hole {{{name}}}.")
    if isinstance(part, str):
        return part
    found = part.of(node) if isinstance(part, Selector) else part
    if isinstance(found, Special):
        return found
    if not any(found is inner for inner in ast.walk(node)):
        raise ValueError(f"{{{name}}} of {template!r} is to be {_shown(found)}, which is not inside {_shown(node)}.")
    if found is node:
        return Special.ITSELF
    address = index.find(found)
    if address is None:
        raise ValueError(f"{{{name}}} of {template!r}: {_shown(found)} cannot be taken by itself.")
    return address


def fill(template: str, texts: Mapping[str, str]) -> str:
    """The template with text in its holes. Braces that hold no name of `texts` are left alone."""
    if not texts:
        return template
    holes = re.compile(r"\{(" + "|".join(map(re.escape, texts)) + r")\}")
    return holes.sub(lambda hole: texts[hole[1]], template)


def check_expression(template: str, names: Collection[str] = ()) -> None:
    """Does nothing if the template is one expression.

    Raises:
        ValueError: it is not.
    """
    _check(f"({fill(template, dict.fromkeys(names, 'x'))}\n)", template, "an expression")


def check_statements(code: str, names: Collection[str] = ()) -> None:
    """Does nothing if the code is statements.

    Raises:
        ValueError: it is not, or there are none.
    """
    _check(fill(dedent(code), dict.fromkeys(names, "x")), code, "statements")
    if not code.strip():
        raise ValueError("there are no statements to put there. Use remove() to take some away.")


def _check(text: str, shown: str, called: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{shown!r} is not {called}: {error.msg}.") from error


def _shown(node: ast.AST) -> str:
    try:
        text = ast.unparse(node).partition("\n")[0]
    except (AttributeError, RecursionError):
        return type(node).__name__
    return f"`{text}`" if len(text) < 60 else f"`{text[:57]}...`"
