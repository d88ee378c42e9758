"""Where a statement or an expression stands, said so that `ast` and libcst mean the same place.

Both trees list the same statements in the same order, so "the n-th statement of the file" is a place in both; inside a
statement "the k-th call" (attribute, name, ...) is. Ordinals, not positions: bytes against characters, byte order
marks, tabs and the odd positions that Python before 3.12 gives inside f-strings never come up. The join by position is
slower, and the test's oracle for this one.

The other half of the join, which counts the same things in libcst's tree, is `migrate.edits.join`.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import Counter
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Kind(Enum):
    """What is counted separately inside a statement."""

    STATEMENT = "statement"
    NAME = "name"
    ATTRIBUTE = "attribute"
    CALL = "call"
    SUBSCRIPT = "subscript"
    COMPARE = "comparison"
    BINARY = "binary operation"
    UNARY = "unary operation"
    BOOLEAN = "boolean operation"
    CONDITIONAL = "conditional expression"
    LITERAL = "literal"
    TUPLE = "tuple"
    LIST = "list"
    SET = "set"
    DICT = "dict"
    LIST_COMPREHENSION = "list comprehension"
    SET_COMPREHENSION = "set comprehension"
    DICT_COMPREHENSION = "dict comprehension"
    GENERATOR = "generator expression"
    LAMBDA = "lambda"
    AWAIT = "await"
    YIELD = "yield"
    WALRUS = "assignment expression"
    PARAMETER = "parameter"

    __hash__ = object.__hash__  # each is one object; the hash of `Enum` is a call for each node that is counted


KINDS: dict[type[ast.AST], Kind] = {
    ast.Name: Kind.NAME,
    ast.Attribute: Kind.ATTRIBUTE,
    ast.Call: Kind.CALL,
    ast.Subscript: Kind.SUBSCRIPT,
    ast.Compare: Kind.COMPARE,
    ast.BinOp: Kind.BINARY,
    ast.UnaryOp: Kind.UNARY,
    ast.BoolOp: Kind.BOOLEAN,
    ast.IfExp: Kind.CONDITIONAL,
    ast.Constant: Kind.LITERAL,
    ast.JoinedStr: Kind.LITERAL,
    ast.Tuple: Kind.TUPLE,
    ast.List: Kind.LIST,
    ast.Set: Kind.SET,
    ast.Dict: Kind.DICT,
    ast.ListComp: Kind.LIST_COMPREHENSION,
    ast.SetComp: Kind.SET_COMPREHENSION,
    ast.DictComp: Kind.DICT_COMPREHENSION,
    ast.GeneratorExp: Kind.GENERATOR,
    ast.Lambda: Kind.LAMBDA,
    ast.Await: Kind.AWAIT,
    ast.Yield: Kind.YIELD,
    ast.YieldFrom: Kind.YIELD,
    ast.NamedExpr: Kind.WALRUS,
    ast.arg: Kind.PARAMETER,
}
if hasattr(ast, "TemplateStr"):  # Python 3.14
    KINDS[ast.TemplateStr] = Kind.LITERAL


class Address(NamedTuple):
    """A node's place in a file, the same in `ast` and in libcst."""

    stmt: int  # n-th statement of the file, in source order
    kind: Kind = Kind.STATEMENT
    nth: int = 0  # n-th of its kind among what belongs to the statement itself, not to a statement inside it


class Index:
    """The address of every statement and expression of a tree, and how the statements nest.

    Statements are numbered at once, the expressions of one when it is asked for one of them: few are ever edited.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.statements: list[ast.stmt] = []  # by number
        self.end: list[int] = []  # end[n]: one past the last statement inside statement n
        self._number: dict[ast.AST, int] = {}
        self._parent: list[int] = []  # number of the statement around; -1 at the top
        self._block: list[list[ast.stmt]] = []  # the statement and its siblings
        self._addresses: dict[ast.AST, Address] = {}  # of expressions, as far as they were asked for
        self._inside: dict[int, list[ast.AST]] = {}  # by number of the statement: its expressions that have an address
        self._count(tree)

    def __contains__(self, node: ast.AST) -> bool:
        """Whether the node is a statement of this tree, or an expression that has an address."""
        return self.find(node) is not None

    def find(self, node: ast.AST) -> Address | None:
        """The node's address; None for what has none, and for nodes of other trees."""
        if isinstance(node, ast.stmt):
            return Address(self._number[node]) if node in self._number else None
        if type(node) not in KINDS:
            return None
        if node not in self._addresses:
            self._look_for(cast("ast.expr", node))
        return self._addresses.get(node)

    def number(self, stmt: ast.stmt) -> int:
        """Which statement of the file it is, counted from 0.

        Raises:
            KeyError: it stands in another tree.
        """
        return self._number[stmt]

    def around(self, number: int) -> Iterator[int]:
        """The numbers of the statements around one, from the inside to the outside."""
        while (number := self._parent[number]) >= 0:
            yield number

    def is_inside_string(self, node: ast.AST) -> bool:
        """Whether the expression stands inside an f-string, where quotes and backslashes are not free."""
        address = self.find(node)
        around = filter(_is_formatted, self._expressions(address.stmt)) if address is not None else ()
        return any(inner is node for string in around if string is not node for inner in ast.walk(string))

    def node_at(self, address: Address) -> ast.AST:
        """The statement or expression at an address of this tree.

        Raises:
            KeyError: there is none.
        """
        if address.kind is Kind.STATEMENT:
            return self.statements[address.stmt]
        found = (node for node in self._expressions(address.stmt) if self._addresses[node] == address)
        if (node := next(found, None)) is None:
            raise KeyError(address)
        return node

    def block(self, stmt: ast.stmt) -> list[ast.stmt]:
        """The statement and its siblings: one body, `else` part, ... of the statement around, or the file's body."""
        return self._block[self._number[stmt]]

    def parent(self, stmt: ast.stmt) -> ast.stmt | None:
        """The statement around this one; None at the top of the file."""
        around = self._parent[self._number[stmt]]
        return None if around < 0 else self.statements[around]

    def _count(self, tree: ast.Module) -> None:
        # An explicit stack: each `elif` is one level deeper, and chains of a thousand exist.
        waiting: list[tuple[ast.stmt, list[ast.stmt], int] | int] = []
        waiting.extend((stmt, tree.body, -1) for stmt in reversed(tree.body))
        while waiting:
            item = waiting.pop()
            if isinstance(item, int):  # every statement inside number `item` has been counted
                self.end[item] = len(self.statements)
                continue
            stmt, block, around = item
            number = self._number[stmt] = len(self.statements)
            self.statements.append(stmt)
            self.end.append(number + 1)
            self._parent.append(around)
            self._block.append(block)
            inner = [(child, part, number) for part in blocks(stmt) for child in part]
            if inner:
                waiting.append(number)
                waiting.extend(reversed(inner))

    def _look_for(self, node: ast.expr) -> None:
        """Number the expressions of the statement in which a node seems to stand; where it does not, those of all."""
        nearest = bisect_right(self._starts, (node.lineno, node.col_offset)) - 1
        for number in (nearest, *range(len(self.statements))) if nearest >= 0 else range(len(self.statements)):
            self._expressions(number)
            if node in self._addresses:
                return

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        return [(stmt.lineno, stmt.col_offset) for stmt in self.statements]

    def _expressions(self, number: int) -> list[ast.AST]:
        """What has an address in a statement itself."""
        if number not in self._inside:
            count: Counter[Kind] = Counter()
            found = self._inside[number] = []
            for node in _own(self.statements[number]):
                if kind := KINDS.get(type(node)):
                    self._addresses[node] = Address(number, kind, count[kind])
                    count[kind] += 1
                    found.append(node)
        return self._inside[number]


def blocks(stmt: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements inside a statement or module, in source order; empty ones are left out."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        part = getattr(stmt, name, None)
        if not part:
            continue
        if name in ("handlers", "cases"):
            yield from (inner.body for inner in part)
        else:
            yield part


# ------------------------------------------------------------------ expressions in source order

# What has no expressions inside.
BARE = (ast.stmt, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


def _own(stmt: ast.stmt) -> Iterator[ast.AST]:
    """What belongs to the statement itself, parents before children, in source order."""
    waiting = _children(stmt)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(_children(node)))


def _children(node: ast.AST) -> list[ast.AST]:
    order = IN_ORDER.get(type(node))
    found = order(node) if order else _fields(node)
    return [child for child in found if child is not None and not isinstance(child, BARE)]


def _fields(node: ast.AST) -> list[ast.AST | None]:
    found: list[ast.AST | None] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found.extend(item for item in value if isinstance(item, ast.AST))
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _call(node: ast.Call) -> list[ast.AST | None]:
    """Arguments as written: `f(a=1, *b)` is allowed."""
    arguments: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    if node.keywords and any(isinstance(argument, ast.Starred) for argument in node.args):
        arguments.sort(key=lambda argument: (argument.lineno, argument.col_offset))
    return [node.func, *arguments]


def arguments_of(call: ast.Call) -> list[ast.expr | ast.keyword]:
    """A call's positional, starred and keyword arguments as they are written."""
    return [node for node in _call(call)[1:] if isinstance(node, (ast.expr, ast.keyword))]


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST | None]:
    return [*node.decorator_list, *getattr(node, "type_params", ()), node.args, node.returns]


def _class(node: ast.ClassDef) -> list[ast.AST | None]:
    return [*node.decorator_list, *getattr(node, "type_params", ()), *node.bases, *node.keywords]


def _arguments(node: ast.arguments) -> list[ast.AST | None]:
    """Each parameter is followed by its default."""
    plain = [*node.posonlyargs, *node.args]
    defaults = [None] * (len(plain) - len(node.defaults)) + list(node.defaults)
    found: list[ast.AST | None] = [item for pair in zip(plain, defaults, strict=True) for item in pair]
    found.append(node.vararg)
    found.extend(item for pair in zip(node.kwonlyargs, node.kw_defaults, strict=True) for item in pair)
    found.append(node.kwarg)
    return found


def _dict(node: ast.Dict) -> list[ast.AST | None]:
    return [item for pair in zip(node.keys, node.values, strict=True) for item in pair]


def _mapping(node: ast.MatchMapping) -> list[ast.AST | None]:
    return [item for pair in zip(node.keys, node.patterns, strict=True) for item in pair]


def _conditional(node: ast.IfExp) -> list[ast.AST | None]:
    return [node.body, node.test, node.orelse]


def _subscript(node: ast.Subscript) -> list[ast.AST | None]:
    """`a[1, 2]` has a tuple here and none in libcst, so the tuple itself is not counted."""
    inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [node.value, *inside]


def _is_formatted(node: ast.AST) -> bool:
    return type(node).__name__ in ("JoinedStr", "TemplateStr")


def _formatted(node: ast.AST) -> list[ast.AST | None]:
    """The text between the braces is not a literal of its own, and neither is a format."""
    return [value for value in getattr(node, "values", ()) if not isinstance(value, ast.Constant)]


def _replacement(node: ast.AST) -> list[ast.AST | None]:
    form = getattr(node, "format_spec", None)
    return [getattr(node, "value", None), *(_formatted(form) if form else ())]


IN_ORDER: dict[type[ast.AST], Callable[..., list[ast.AST | None]]] = {
    ast.Call: _call,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.arguments: _arguments,
    ast.Dict: _dict,
    ast.MatchMapping: _mapping,
    ast.IfExp: _conditional,
    ast.Subscript: _subscript,
    ast.JoinedStr: _formatted,
    ast.FormattedValue: _replacement,
}
for _name, _order in (("TemplateStr", _formatted), ("Interpolation", _replacement)):  # Python 3.14
    if hasattr(ast, _name):
        IN_ORDER[getattr(ast, _name)] = _order
