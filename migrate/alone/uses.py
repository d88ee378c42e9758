"""Who uses what in the text of some files: names by function, attributes and functions by their name alone."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from migrate.alone.command_line import option, options
from migrate.alone.foreign import Foreign
from migrate.alone.homonyms import homonyms, is_home
from migrate.alone.scopes import scopes
from migrate.analysis.syntax import Tree, own_nodes, walk
from migrate.analysis.texts import text_of
from migrate.programs.marker import is_marked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from migrate.alone.foreign import Written
    from migrate.alone.homonyms import Homonyms

_Def: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
HANDED = ""  # the path of what no file holds yet: what the accelerator's arguments will read


class Uses:
    """The uses in some trees, by path.

    A call is one of the function of that name, but for those that call something else (`alone/foreign.py`). Where
    several files have a function of one name, each has a name of its own here (`alone/homonyms.py`).
    """

    def __init__(
        self,
        trees: Mapping[str, ast.Module],
        others: Mapping[str, ast.Module],
        foreign: frozenset[Written] = frozenset(),
        known: Uses | None = None,
    ) -> None:
        self.trees = trees  # that may be edited
        self._names: dict[str, dict[str, int]] = {}
        self._reads: dict[ast.AST, dict[str, list[ast.Name]]] = {}
        self._assigned: dict[ast.AST, dict[str, list[ast.expr | None]]] = {}
        self._scopes: dict[str, dict[str, ast.AST]] = {}
        made: Mapping[ast.Module, Tree] = known.made if known is not None else {}
        self._trees = {path: made.get(root) or Tree(root) for path, root in {**others, **trees}.items()}
        self.made: dict[ast.Module, Tree] = {tree.root: tree for tree in self._trees.values()}
        self._handed = {n.id for n in walk(others[HANDED]) if isinstance(n, ast.Name)} if HANDED in others else set()
        self._foreign = Foreign(foreign, self._trees)
        self.homonyms: Homonyms = homonyms(self._trees) if known is None else known.homonyms

    def editable(self) -> Iterator[ast.AST]:
        """Every node of the files that may be edited."""
        for path in self.trees:
            yield from self._trees[path].nodes

    def nodes(self) -> Iterator[tuple[str, ast.AST]]:
        """Every node, with the path of its file."""
        for path, tree in self._trees.items():
            for node in tree.nodes:
                yield path, node

    def scopes(self) -> Iterator[tuple[str, str, ast.AST]]:
        """Every scope of the files that may be edited: its path, its name, its tree."""
        return iter(self._all_scopes)

    @cached_property
    def _all_scopes(self) -> tuple[tuple[str, str, ast.AST], ...]:
        return tuple((path, scope, tree) for path, root in self.trees.items() for scope, tree in scopes(root))

    # --- names ------------------------------------------------------------------------------------------------------

    def names(self, path: str) -> dict[str, int]:
        """How often each name is read in a file."""
        if path not in self._names:
            found: dict[str, int] = dict.fromkeys(self._handed, 1)
            for node in self._trees[path].nodes if path in self._trees else ():
                if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del)):
                    found[node.id] = found.get(node.id, 0) + 1
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                    found[node.value] = found.get(node.value, 0) + int(self._is_exported(path, node))
            self._names[path] = found
        return self._names[path]

    def _is_exported(self, path: str, node: ast.Constant) -> bool:
        """Whether a text stands in a list or tuple, as in `__all__`."""
        return isinstance(self.parent(path, node), (ast.List, ast.Tuple))

    def has_text(self, path: str, dotted: str) -> bool:
        """Whether `a.b.c` is read in a file."""
        return any(isinstance(n, ast.Attribute) and text_of(n) == dotted for n in self._trees[path].nodes)

    def reads(self, tree: ast.AST, name: str) -> list[ast.Name]:
        """The reads of a name in a function or module, and in what it holds."""
        if tree not in self._reads:
            found = self._reads[tree] = defaultdict(list)
            for node in walk(tree):
                if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del)):
                    found[node.id].append(node)
        return self._reads[tree].get(name, [])

    def is_read(self, tree: ast.AST, name: str) -> bool:
        """Whether a function or module reads a name, or the accelerator's arguments will."""
        return name in self._handed or bool(self.reads(tree, name))

    def was_read(self, path: str, scope: str, name: str) -> bool:
        """Whether a scope of this name reads a name."""
        tree = self._scope(path, scope)
        return tree is not None and bool(self.reads(tree, name))

    def had_other(self, path: str, scope: str, name: str) -> bool:
        """Whether a scope gives a name anything but None."""
        tree = self._scope(path, scope)
        values = self.assigned(tree).get(name, []) if tree is not None else []
        return any(not (isinstance(v, ast.Constant) and v.value is None) for v in values)

    def was_unwrapped(self, path: str, scope: str, name: str) -> bool:
        """Whether a scope gives a name something's `.module`."""
        tree = self._scope(path, scope)
        values = self.assigned(tree).get(name, []) if tree is not None else []
        return any(isinstance(n, ast.Attribute) and n.attr == "module" for v in values if v for n in walk(v))

    def orphans(self, before: Uses) -> Iterator[tuple[str, ast.AST, str, ast.Name]]:
        """Reads of names that their scope no longer gives a value: path, scope, its name, the read."""
        for path, scope, tree in self.scopes():
            old = before._scope(path, scope)
            gone = before.assigned(old).keys() - self._given(tree) if old is not None else frozenset()
            yield from ((path, tree, scope, n) for name in sorted(gone) for n in self.reads(tree, name))

    def _given(self, tree: ast.AST) -> set[str]:
        """The names that a scope gives a value in any way."""
        named = {a.arg for a in walk(tree.args).of(ast.arg)} if isinstance(tree, _DEFS) else set()
        return named.union(*(_bound(node) for node in own_nodes(tree).of(ast.stmt)))

    def read_of(self, path: str, scope: str, name: str, told: str) -> ast.Name | None:
        """The read of a name in a scope of this name that stands in what is told, else the first."""
        tree = self._scope(path, scope)
        reads = self.reads(tree, name) if tree is not None else []
        return next((n for n in reads if self.around(path, n) == told), next(iter(reads), None))

    def around(self, path: str, node: ast.AST) -> str:
        """The source of what a node stands in."""
        return ast.unparse(above) if (above := self.parent(path, node)) is not None else ""

    def _scope(self, path: str, scope: str) -> ast.AST | None:
        if path in self.trees and path not in self._scopes:
            self._scopes[path] = dict(reversed(list(scopes(self.trees[path]))))  # the first of a name stands
        return self._scopes[path].get(scope) if path in self.trees else None

    def assigned(self, tree: ast.AST) -> dict[str, list[ast.expr | None]]:
        """What a scope's own statements give its names; None: in another way than by a plain assignment."""
        if tree not in self._assigned:
            self._assigned[tree] = self._assigned_in(tree)
        return self._assigned[tree]

    def _assigned_in(self, tree: ast.AST) -> dict[str, list[ast.expr | None]]:
        found: dict[str, list[ast.expr | None]] = {}
        shared: set[str] = set()
        nodes = own_nodes(tree)
        for node in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found.setdefault(node.targets[0].id, []).append(node.value)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                shared.update(node.names)
        plain = {id(node.targets[0]) for node in nodes.of(ast.Assign)}
        for node in nodes.of(ast.Name):
            if isinstance(node.ctx, ast.Store) and id(node) not in plain:
                found.setdefault(node.id, []).append(None)
        return {name: values for name, values in found.items() if name not in shared}

    def statements(self, tree: ast.AST, name: str) -> list[ast.Assign | ast.AugAssign]:
        """The plain assignments to a name in a scope, and those that go on with it (`n += 1`)."""
        return [n for n in own_nodes(tree) if isinstance(n, (ast.Assign, ast.AugAssign)) and _only_target(n) == name]

    def changes_after(self, tree: ast.AST, name: str, statement: ast.stmt) -> bool:
        """Whether a name is given something else below a statement."""
        return any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n.lineno > statement.lineno
            for n in walk(tree)
        )

    def is_mentioned(self, name: str, besides: str) -> bool:
        """Whether another file imports a name, or reads it as an attribute; an option of that name is another thing."""
        is_option = name in self._options
        for path, tree in self._trees.items():
            if path == besides:
                continue
            for node in tree.nodes:
                if isinstance(node, ast.ImportFrom) and any(a.name in (name, "*") for a in node.names):
                    if is_home(node.module, besides):
                        return True
                if isinstance(node, ast.Attribute) and node.attr == name and not is_marked(node.value):
                    if not is_option or self._may_be_module(path, node.value):
                        return True
        return False

    def _may_be_module(self, path: str, node: ast.expr) -> bool:
        imported = (n for n in self._trees[path].nodes if isinstance(n, (ast.Import, ast.ImportFrom)))
        return not isinstance(node, ast.Name) or any(node.id in _bound(statement) for statement in imported)

    @cached_property
    def _options(self) -> frozenset[str]:
        return options(node for _, node in self.nodes())

    def origins(self, module: str | None, name: str) -> list[ast.stmt]:
        """The statements that give a name, in the files that an import of this module may be from."""
        return [
            statement
            for path, tree in self._trees.items()
            if is_home(module, path)
            for statement in tree.nodes
            if isinstance(statement, ast.stmt) and name in _bound(statement)
        ]

    # --- attributes -------------------------------------------------------------------------------------------------

    @cached_property
    def attributes(self) -> frozenset[str]:
        """Attributes that are read."""
        return frozenset(
            n.attr
            for _, n in self.nodes()
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and not is_marked(n.value)
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """Texts that could name an attribute, but for the names of options."""
        return frozenset(
            n.value
            for path, n in self.nodes()
            if isinstance(n, ast.Constant)
            and isinstance(n.value, str)
            and n.value.isidentifier()
            and not self._is_option(path, n)
        )

    def _is_option(self, path: str, node: ast.Constant) -> bool:
        parent = self.parent(path, node)
        if isinstance(parent, ast.keyword) and parent.arg in ("dest", "help", "metavar", "action", "default"):
            return True
        return parent is not None and option(parent) is not None

    # --- functions --------------------------------------------------------------------------------------------------

    def functions(self) -> Iterator[tuple[str, _Def]]:
        """The functions and methods whose name is that of one only; a constructor has its class's."""
        for name, nodes in self._functions.items():
            if len(nodes) == 1 and nodes[0] in self._own:
                yield name, nodes[0]

    @cached_property
    def _own(self) -> frozenset[ast.AST]:
        return frozenset(node for node in self.editable() if isinstance(node, _DEFS))

    def function(self, name: str) -> _Def | None:
        """The function of a name that only one has."""
        nodes = self._functions.get(name, [])
        return nodes[0] if len(nodes) == 1 else None

    @cached_property
    def _functions(self) -> dict[str, list[_Def]]:
        found: dict[str, list[_Def]] = {}
        for path, node in self.nodes():
            if isinstance(node, _DEFS):
                parent = self.parent(path, node)
                name = parent.name if node.name == "__init__" and isinstance(parent, ast.ClassDef) else node.name
                found.setdefault(self._whose(path, name), []).append(node)
        return found

    def definitions(self) -> Iterator[tuple[str, _Def]]:
        """Every function and method that may be edited, by name."""
        for name, nodes in self._functions.items():
            yield from ((name, node) for node in nodes if node in self._own)

    def has_like(self, name: str, node: _Def) -> bool:
        """Whether a function of this name and body is here."""
        return any(ast.dump(mine) == ast.dump(node) for mine in self._functions.get(name, []))

    def is_other(self, name: str, node: _Def) -> bool:
        """Whether the function of this name has another body here."""
        mine = self.function(name)
        return mine is not None and ast.dump(mine) != ast.dump(node)

    def calls(self, name: str) -> list[ast.Call]:
        """The calls of what has this name."""
        return self._calls.get(name, [])

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {}
        for path, node in self.nodes():
            if isinstance(node, ast.Call) and not self._foreign.is_called(path, node.func):
                found.setdefault(self._called(path, node), []).append(node)
        return found

    def mentions(self, name: str) -> int:
        """How often a name is read, imported or spelled out, in any file."""
        return self._mentions[name]

    @cached_property
    def _mentions(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for path, node in self.nodes():
            if isinstance(node, ast.Name):
                found[self._whose(path, node.id)] += 1
            elif isinstance(node, ast.Attribute):
                found[node.attr] += not is_marked(node.value)
            elif isinstance(node, ast.ImportFrom):
                named = {name for a in node.names for name in (a.name, a.asname) if name is not None}
                found.update(self._whose(path, name) for name in named)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[self._whose(path, node.value)] += self._is_exported(path, node)
        return found

    def calls_of(self, name: str) -> list[ast.Call] | None:
        """The calls of a function; None if it is used in another way, or where nothing may be edited."""
        calls = self.calls(name)
        return None if name in self._handed_on or any(not self._is_own(call) for call in calls) else calls

    @cached_property
    def _handed_on(self) -> frozenset[str]:
        """The names and attributes that are more than called."""
        called = {id(node.func) for _, node in self.nodes() if isinstance(node, ast.Call)}
        return frozenset(
            self._whose(path, node.id) if isinstance(node, ast.Name) else node.attr
            for path, node in self.nodes()
            if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in called
        )

    def _is_own(self, call: ast.Call) -> bool:
        return call in self._own_calls

    @cached_property
    def _own_calls(self) -> frozenset[ast.Call]:
        return frozenset(node for node in self.editable() if isinstance(node, ast.Call))

    def statement_of(self, call: ast.Call) -> ast.stmt | None:
        """The statement that a call is, or that holds it."""
        for path, node in self.nodes():
            if node is call:
                parent = self.parent(path, node)
                return parent if isinstance(parent, ast.stmt) else None
        return None

    def _called(self, path: str, call: ast.Call) -> str:
        if isinstance(call.func, ast.Attribute):
            return call.func.attr
        return self._whose(path, call.func.id) if isinstance(call.func, ast.Name) else ""

    def _whose(self, path: str, name: str) -> str:
        """The name that a function is known by here, of what a file calls so."""
        return self.homonyms.get((path, name), name)

    def parent(self, path: str, node: ast.AST) -> ast.AST | None:
        """What a node stands in."""
        return self._trees[path].parents.get(node)


def _only_target(statement: ast.Assign | ast.AugAssign) -> str | None:
    """The name that a statement gives a value, and nothing else."""
    target, *others = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return target.id if isinstance(target, ast.Name) and not others else None


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement gives something."""
    if isinstance(statement, (*_DEFS, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    return {n.id for n in walk(statement).of(ast.Name) if isinstance(n.ctx, ast.Store)}
