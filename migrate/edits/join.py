"""The libcst half of the join: a walk that knows each node's `Address`, and does not enter what holds no edit."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, cast

import libcst as cst

from migrate.source.address import Address, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

CST_KINDS: dict[type[cst.CSTNode], Kind] = {
    cst.Name: Kind.NAME,
    cst.Attribute: Kind.ATTRIBUTE,
    cst.Call: Kind.CALL,
    cst.Subscript: Kind.SUBSCRIPT,
    cst.Comparison: Kind.COMPARE,
    cst.BinaryOperation: Kind.BINARY,
    cst.UnaryOperation: Kind.UNARY,
    cst.BooleanOperation: Kind.BOOLEAN,
    cst.IfExp: Kind.CONDITIONAL,
    cst.Tuple: Kind.TUPLE,
    cst.List: Kind.LIST,
    cst.Set: Kind.SET,
    cst.Dict: Kind.DICT,
    cst.ListComp: Kind.LIST_COMPREHENSION,
    cst.SetComp: Kind.SET_COMPREHENSION,
    cst.DictComp: Kind.DICT_COMPREHENSION,
    cst.GeneratorExp: Kind.GENERATOR,
    cst.Lambda: Kind.LAMBDA,
    cst.Await: Kind.AWAIT,
    cst.Yield: Kind.YIELD,
    cst.NamedExpr: Kind.WALRUS,
    cst.Param: Kind.PARAMETER,
    cst.Integer: Kind.LITERAL,
    cst.Float: Kind.LITERAL,
    cst.Imaginary: Kind.LITERAL,
    cst.Ellipsis: Kind.LITERAL,
    cst.SimpleString: Kind.LITERAL,
    cst.FormattedString: Kind.LITERAL,
    cst.ConcatenatedString: Kind.LITERAL,
}
if hasattr(cst, "TemplatedString"):  # Python 3.14
    CST_KINDS[cst.TemplatedString] = Kind.LITERAL

# libcst has a Name (or a dotted Attribute) where `ast` has a plain string, or nothing: these are not expressions.
PLAIN: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Attribute: ("attr",),
    cst.Arg: ("keyword",),
    cst.Param: ("name",),
    cst.FunctionDef: ("name",),
    cst.ClassDef: ("name",),
    cst.NameItem: ("name",),
    cst.ExceptHandler: ("name",),
    cst.ExceptStarHandler: ("name",),
    cst.MatchAs: ("name",),
    cst.MatchStar: ("name",),
    cst.MatchMapping: ("rest",),
    cst.MatchKeywordElement: ("key",),
    cst.MatchSingleton: ("value",),
    cst.TypeVar: ("name",),
    cst.TypeVarTuple: ("name",),
    cst.ParamSpec: ("name",),
    cst.ConcatenatedString: ("left", "right"),
}
CONSTANTS = frozenset({"None", "True", "False"})  # Name in libcst, Constant in `ast`
CLOSED = (cst.Import, cst.ImportFrom)  # nothing inside is an expression
STATEMENT = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
#: No expression stands inside of these. Entered, each would be built and checked anew, and they are most of a tree.
BARE = (
    cst.Name,
    cst.BaseNumber,
    cst.SimpleString,
    cst.BaseParenthesizableWhitespace,
    cst.TrailingWhitespace,
    cst.EmptyLine,
    cst.LeftParen,
    cst.RightParen,
    cst.LeftSquareBracket,
    cst.RightSquareBracket,
    cst.Comma,
    cst.Dot,
    cst.AssignEqual,
    cst.BaseBinaryOp,
    cst.BaseUnaryOp,
    cst.BaseBooleanOp,
    cst.BaseCompOp,
)


@cache
def _is_statement(kind: type[cst.CSTNode]) -> bool:
    """Whether nodes of a type are statements; libcst's types are abstract base classes, which are slow to ask."""
    return issubclass(kind, STATEMENT)


@cache
def _is_bare(kind: type[cst.CSTNode]) -> bool:
    return issubclass(kind, BARE)


class Join(cst.CSTTransformer):
    """A walk that calls `met(node, address)` for every node that has one.

    `end` is `Index.end`; a statement is entered only if `busy` holds its number or that of a statement inside it.
    """

    def __init__(self, end: Sequence[int], busy: Collection[int]) -> None:
        super().__init__()
        self._end = end
        self._before = [0]  # [n]: how many busy statements come before statement n
        for number in range(len(end)):
            self._before.append(self._before[-1] + (number in busy))
        self.next = 0  # number of the statement that is met next
        self._open: list[tuple[cst.CSTNode, int, Counter[Kind]]] = []
        self._plain: set[int] = set()  # ids of nodes that are not counted; the tree keeps them alive

    def met(self, node: cst.CSTNode, address: Address) -> None:
        """Called before the node's children are visited."""

    def idle(self, first: int, past: int) -> bool:
        """Whether no statement from `first` up to before `past` is busy."""
        return self._before[past] == self._before[first]

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Numbers the node; False for what need not be entered."""
        kind = type(node)
        if kind is cst.SimpleStatementLine:
            past = self.next + len(cast("cst.SimpleStatementLine", node).body)
            if self.idle(self.next, past):
                self.next = past
                return False
            return True
        if _is_statement(kind):
            return self._enter(node)
        if self._open:
            self._count(node)
        return not _is_bare(kind)

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        """Nothing: `CSTTransformer` looks for a method for each attribute of each node."""

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        """Nothing, likewise."""

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        """The node as it is now."""
        if self._open and self._open[-1][0] is original_node:
            self._open.pop()
        return updated_node

    def _enter(self, node: cst.CSTNode) -> bool:
        number = self.next
        if self.idle(number, self._end[number]):
            self.next = self._end[number]
            return False
        self.next = number + 1
        self._open.append((node, number, Counter()))
        self._set_apart(node)
        self.met(node, Address(number))
        return not isinstance(node, CLOSED)

    def _count(self, node: cst.CSTNode) -> None:
        self._set_apart(node)
        kind = _kind(node)
        if kind is None or id(node) in self._plain:
            return
        _, number, count = self._open[-1]
        self.met(node, Address(number, kind, count[kind]))
        count[kind] += 1

    def _set_apart(self, node: cst.CSTNode) -> None:
        for name in PLAIN.get(type(node), ()):
            value = getattr(node, name)
            self._plain.add(id(value.name if isinstance(value, cst.AsName) else value))
        inside = APART.get(type(node))
        apart = inside(node) if inside else None
        if apart is not None:
            self._plain.add(id(apart))


def _kind(node: cst.CSTNode) -> Kind | None:
    if type(node) is cst.Name and node.value in CONSTANTS:
        return Kind.LITERAL
    return CST_KINDS.get(type(node))


def _same_operation(node: cst.BooleanOperation) -> cst.CSTNode | None:
    """The first half of `a and b and c`, which is one node in `ast`, two here."""
    left = node.left
    if isinstance(left, cst.BooleanOperation) and not left.lpar and type(left.operator) is type(node.operator):
        return left
    return None


def _targets(node: cst.Del) -> cst.CSTNode | None:
    """The targets of `del a, b`: two in `ast`, a tuple here."""
    return node.target if isinstance(node.target, cst.Tuple) and not node.target.lpar else None


def _tuple_inside(node: cst.Subscript) -> cst.CSTNode | None:
    """The tuple of `a[(1, 2)]`: `ast` has the same for `a[1, 2]`, where libcst has none."""
    if len(node.slice) != 1:
        return None
    only = node.slice[0]
    if isinstance(only.comma, cst.Comma) or not isinstance(only.slice, cst.Index):
        return None
    value = only.slice.value
    return value if isinstance(value, cst.Tuple) and not only.slice.star else None


#: What inside a node is not counted beside it.
APART: dict[type[cst.CSTNode], Callable[..., cst.CSTNode | None]] = {
    cst.BooleanOperation: _same_operation,
    cst.Subscript: _tuple_inside,
    cst.Del: _targets,
}


# ------------------------------------------------------------------ are they the same?

EMPTY = cst.Module([])
NAMES = {"Delete": "Del"}  # what libcst calls otherwise; "Async..." is a property there
CONTEXT = re.compile(r"ctx=(Store|Del)\(\)")


def is_same(node: cst.CSTNode, twin: ast.AST) -> bool:
    """Whether two nodes at one address are the same piece of source: the check behind every edit.

    A statement that holds others is compared by its kind and name only.
    """
    if isinstance(twin, ast.arg):
        return isinstance(node, cst.Param) and name_of(node.name) == twin.arg
    if isinstance(twin, ast.expr):
        return _says(f"({_newlines_free(EMPTY.code_for_node(node))}\n)", twin)
    called = type(twin).__name__.removeprefix("Async")
    if type(node).__name__ != NAMES.get(called, called):
        return False
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        return bool(name_of(node.name) == getattr(twin, "name", None))
    return not isinstance(node, cst.BaseSmallStatement) or _says(EMPTY.code_for_node(node), twin)


def name_of(name: cst.Name) -> str:
    """A name as Python reads it: the micro sign and the Greek letter are one."""
    return name.value if name.value.isascii() else unicodedata.normalize("NFKC", name.value)


def _newlines_free(code: str) -> str:
    return code.replace("\r\n", "\n")


def _says(code: str, twin: ast.AST) -> bool:
    try:
        (stmt,) = ast.parse(code).body
    except (SyntaxError, ValueError):
        return False
    read = stmt.value if isinstance(twin, ast.expr) and isinstance(stmt, ast.Expr) else stmt
    return dumped(read) == dumped(twin)


def dumped(node: ast.AST) -> str:
    """The tree as text, without positions and without the difference between reading and writing a name."""
    return CONTEXT.sub("ctx=Load()", ast.dump(node))
