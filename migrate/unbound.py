"""Names that a text reads where nothing can have bound them: a conversion must not bring any.

    loader = accelerator.prepare(loader)     read above what binds it
    accelerator = Accelerator()

Code is gone through in the order of its lines, which is lenient: what one branch binds is bound for the other, too. The
functions of the file are entered where the module, or one that it has entered, calls them by their names.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from migrate.analysis.nodes import LEAVES, children
from migrate.analysis.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OF_EVERY_MODULE = {*dir(builtins), "__file__", "__builtins__", "__annotations__", "__path__", "__class__"}


def unbound(content: bytes) -> dict[str, int]:
    """The names that are read too early or bound nowhere, each with a line that reads it.

    None are known where a star import may bind any, where Python does not find out which names are whose, or where code
    is too deep to be gone through.
    """
    try:
        return _unbound(content)
    except (SyntaxError, RecursionError):
        return {}


def _unbound(content: bytes) -> dict[str, int]:
    tree = ast.parse(content)
    nodes = walk(tree)
    if any(node.names[0].name == "*" for node in nodes.of(ast.ImportFrom)):
        return {}
    whole = symtable.symtable(content, "result", "exec")  # type: ignore[arg-type] # bytes, too, as ast.parse takes
    symbols = [symbol for scope in _scopes(whole) for symbol in scope.get_symbols()]
    bound = {s.get_name() for s in symbols if s.is_global() and (s.is_assigned() or s.is_imported())}
    nowhere = {s.get_name() for s in symbols if s.is_global() and s.is_referenced()} - bound - _OF_EVERY_MODULE
    found = {node.id: node.lineno for node in nodes.of(ast.Name) if node.id in nowhere}
    for function in (node for node in nodes if isinstance(node, _FUNCTIONS)):
        found |= _early_inside(function)
    return found | _Entering(tree).early(bound)


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _scopes(inner)


class _Kind(Enum):
    READ = auto()
    BOUND = auto()
    CALLED = auto()
    ELSEWHERE = auto()  # declared global or nonlocal


class _Event(NamedTuple):
    kind: _Kind
    name: str
    line: int


def _early_inside(function: ast.stmt) -> dict[str, int]:
    """The names of a function's own that it reads above what binds them."""
    assert isinstance(function, _FUNCTIONS)
    bound = _parameters(function)
    events = _events(function.body)
    own = _own(events)
    early: dict[str, int] = {}
    for event in events:
        if event.kind is _Kind.BOUND:
            bound.add(event.name)
        elif event.kind is _Kind.READ and event.name in own - bound:
            early.setdefault(event.name, event.line)
    return early


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}


def _own(events: Sequence[_Event]) -> set[str]:
    """The names that are a function's own because it binds them."""
    elsewhere = {event.name for event in events if event.kind is _Kind.ELSEWHERE}
    return {event.name for event in events if event.kind is _Kind.BOUND} - elsewhere


class _Entering:
    """Follows a module from line to line, and into its functions where they are called for the first time."""

    def __init__(self, tree: ast.Module) -> None:
        self._body = tree.body
        self._functions = {node.name: node for node in tree.body if isinstance(node, (*_FUNCTIONS, ast.ClassDef))}
        self._bound: set[str] = set()
        self._early: dict[str, int] = {}

    def early(self, names: set[str]) -> dict[str, int]:
        """Which of the names of the module are read before it has bound them."""
        self._follow(_events(self._body), set(), names)
        return self._early

    def _follow(self, events: Sequence[_Event], own: set[str], names: set[str]) -> None:
        """`own` are those of the function whose code it is."""
        for event in events:
            if event.name in own:
                continue
            if event.kind is _Kind.BOUND:
                self._bound.add(event.name)
            elif event.kind is _Kind.READ and event.name in names - self._bound:
                self._early.setdefault(event.name, event.line)
            elif event.kind is _Kind.CALLED and event.name in self._bound:
                for function in _entered(self._functions.pop(event.name, None)):
                    inside = _events(function.body)
                    self._follow(inside, _parameters(function) | _own(inside), names)


def _entered(node: ast.stmt | None) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions that a call enters: of a class its `__init__`."""
    body = node.body if isinstance(node, ast.ClassDef) else []
    if isinstance(node, _FUNCTIONS):
        return [node]
    return [each for each in body if isinstance(each, _FUNCTIONS) and each.name == "__init__"]


def _events(body: Sequence[ast.stmt]) -> list[_Event]:
    order = _Order()
    for statement in body:
        order.visit(statement)
    return order.events


class _Order:
    """What one scope reads, binds and calls, in the order in which it does; nothing of what functions in it do."""

    def __init__(self) -> None:
        self.events: list[_Event] = []
        self._hidden: list[set[str]] = []  # what comprehensions around have for themselves

    def _add(self, kind: _Kind, name: str, node: ast.AST) -> None:
        if not any(name in names for names in self._hidden):
            self.events.append(_Event(kind, name, getattr(node, "lineno", 0)))

    def visit(self, node: ast.AST) -> None:
        """A node and what is in it."""
        way = _WAYS.get(type(node))
        if way is not None:
            way(self, node)
        elif node.__class__ not in LEAVES:
            for child in children(node):
                self.visit(child)

    def each(self, *nodes: ast.AST | Sequence[ast.AST | None] | None) -> None:
        for node in nodes:
            if isinstance(node, ast.AST):
                self.visit(node)
            elif node is not None:
                self.each(*node)

    def name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Del):
            self._add(_Kind.READ if isinstance(node.ctx, ast.Load) else _Kind.BOUND, node.id, node)

    def assign(self, node: ast.Assign) -> None:
        self.each(node.value, node.targets)

    def annotated(self, node: ast.AnnAssign) -> None:
        self.each(node.value)
        if node.value is not None or not isinstance(node.target, ast.Name):
            self.each(node.target)

    def augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._add(_Kind.READ, node.target.id, node)
        self.each(node.value, node.target)

    def named(self, node: ast.NamedExpr) -> None:
        self.each(node.value, node.target)

    def loop(self, node: ast.For | ast.AsyncFor) -> None:
        self.each(node.iter, node.target, node.body, node.orelse)

    def call(self, node: ast.Call) -> None:
        self.each(children(node))
        if isinstance(node.func, ast.Name):
            self._add(_Kind.CALLED, node.func.id, node)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        first, *_ = node.generators
        self.each(first.iter)
        targets = [each.target for each in node.generators]
        self._hidden.append({n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)})
        self.each(*((each.iter, *each.ifs) for each in node.generators[1:]), first.ifs)
        self.each([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self._hidden.pop()

    def defaults(self, node: ast.Lambda) -> None:
        self.each(node.args.defaults, node.args.kw_defaults)

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.each(node.decorator_list, node.args.defaults, node.args.kw_defaults)
        self._add(_Kind.BOUND, node.name, node)

    def scope(self, node: ast.ClassDef) -> None:
        """A class: what it binds for itself is nobody else's."""
        self.each(node.decorator_list, node.bases, [each.value for each in node.keywords])
        inside = _events(node.body)
        own = _own(inside)
        for event in inside:
            if event.name not in own and not any(event.name in names for names in self._hidden):
                self.events.append(event)
        self._add(_Kind.BOUND, node.name, node)

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self._add(_Kind.BOUND, alias.asname or alias.name.partition(".")[0], node)

    def handler(self, node: ast.ExceptHandler) -> None:
        self.each(node.type)
        if node.name is not None:
            self._add(_Kind.BOUND, node.name, node)
        self.each(node.body)

    def pattern(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        self.each(children(node))
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None:
            self._add(_Kind.BOUND, name, node)

    def declared(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            self._add(_Kind.ELSEWHERE, name, node)


_WAYS: dict[type[ast.AST], Callable[[_Order, Any], None]] = {
    ast.Name: _Order.name,
    ast.Assign: _Order.assign,
    ast.AnnAssign: _Order.annotated,
    ast.AugAssign: _Order.augmented,
    ast.NamedExpr: _Order.named,
    ast.For: _Order.loop,
    ast.AsyncFor: _Order.loop,
    ast.Call: _Order.call,
    ast.Lambda: _Order.defaults,
    ast.ListComp: _Order.comprehension,
    ast.SetComp: _Order.comprehension,
    ast.DictComp: _Order.comprehension,
    ast.GeneratorExp: _Order.comprehension,
    ast.FunctionDef: _Order.definition,
    ast.AsyncFunctionDef: _Order.definition,
    ast.ClassDef: _Order.scope,
    ast.Import: _Order.imports,
    ast.ImportFrom: _Order.imports,
    ast.ExceptHandler: _Order.handler,
    ast.MatchAs: _Order.pattern,
    ast.MatchStar: _Order.pattern,
    ast.MatchMapping: _Order.pattern,
    ast.Global: _Order.declared,
    ast.Nonlocal: _Order.declared,
}
