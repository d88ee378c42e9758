"""Names that code reads and binds, in the order in which it does: what is needed before it, and what after it.

Only names of the module count. A function's body is read where something mentions the function.
"""

from __future__ import annotations

import ast
import symtable
from typing import TYPE_CHECKING

from migrate.analysis.syntax import TRIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMING = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of the module that code binds, or deletes, where it stands."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, DEFINITIONS):
            found.add(node.name)
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, _COMPREHENSIONS):
            found |= {inner.target.id for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)}
        else:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.add(node.id)
            if isinstance(node, _NAMING) and node.name:
                found.add(node.name)
            if isinstance(node, ast.MatchMapping) and node.rest:
                found.add(node.rest)
            found |= bound(ast.iter_child_nodes(node))
    return found


def mentioned(nodes: Iterable[ast.AST]) -> set[str]:
    """Every name that code reads, anywhere in it."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        name for node in nodes for n in ast.walk(node) if isinstance(n, ast.Global) for name in n.names
    }


def globals_of(definitions: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """The names of the module that each function or class of it uses."""
    found: dict[str, set[str]] = {}
    for name, node in definitions.items():
        table = symtable.symtable(ast.unparse(node), name, "exec")
        found[name] = {symbol for inner in table.get_children() for symbol in _globals(inner)}
        found[name] |= mentioned(getattr(node, "decorator_list", ()))
    return found


def _globals(table: symtable.SymbolTable) -> set[str]:
    names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    if isinstance(table, symtable.Class):  # what its body reads is looked up in the module, too
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    return names.union(*map(_globals, table.get_children()))


def reached(names: Iterable[str], uses: Mapping[str, set[str]]) -> set[str]:
    """Some names with all that the functions among them use, and those in turn."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += uses.get(name, ())
    return found


def constants(cells: Iterable[ast.stmt], body: Iterable[ast.stmt]) -> set[str]:
    """Names that cells only ever give numbers and texts, and that a body of code leaves as they are."""
    given_to: dict[str, list[ast.AST | None]] = {}
    for node in cells:
        value = node.value if isinstance(node, ast.Assign) else None
        for name in bound([node]):
            given_to.setdefault(name, []).append(value)
    plain = {name for name, values in given_to.items() if all(_is_plain(value) for value in values)}
    return plain - bound(body)


def _is_plain(node: ast.AST | None) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_plain, node.elts))
    if isinstance(node, (ast.UnaryOp, ast.BinOp)):
        return all(_is_plain(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
    return isinstance(node, ast.Constant)


# --- what must be there before --------------------------------------------------------------------------------------


def needed(statements: Sequence[ast.stmt], uses: Mapping[str, set[str]]) -> set[str]:
    """The names whose value from before some statements is read in them, as far as order says."""
    found, _ = _block(statements, set(), uses)
    return found


def _block(body: Sequence[ast.stmt], known: set[str], uses: Mapping[str, set[str]]) -> tuple[set[str], set[str]]:
    """The names that a block reads before it binds them, and those that it binds for sure."""
    found: set[str] = set()
    known = set(known)
    for statement in body:
        read, made = _statement(statement, known, uses)
        found |= read
        known |= made
    return found, known


def _statement(node: ast.stmt, known: set[str], uses: Mapping[str, set[str]]) -> tuple[set[str], set[str]]:
    def read(*parts: ast.AST | None) -> set[str]:
        nodes = (n for part in parts if part for n in ast.walk(part))
        names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        return reached(names, uses) - known

    if isinstance(node, DEFINITIONS):
        return read(*node.decorator_list), {node.name}
    if isinstance(node, (ast.For, ast.AsyncFor)):
        given = bound([node.target])
        inside, made = _block(node.body, known | given, uses)
        return read(node.iter) | inside | _block(node.orelse, known, uses)[0], given | made
    if isinstance(node, (ast.With, ast.AsyncWith)):
        inside, made = _block(node.body, known | bound(node.items), uses)
        return read(*(item.context_expr for item in node.items)) | inside, bound(node.items) | made
    if isinstance(node, ast.If):
        (one, first), (two, second) = (_block(part, known, uses) for part in (node.body, node.orelse))
        return read(node.test) | one | two, first & second
    if isinstance(node, ast.While):
        return read(node.test) | _block(node.body, known, uses)[0] | _block(node.orelse, known, uses)[0], set()
    if isinstance(node, ast.Match):
        return read(node.subject).union(*(_arm(case, known, uses) for case in node.cases)), set()
    if isinstance(node, TRIES):
        parts = [*node.handlers, *node.body, *node.orelse, *node.finalbody]
        return read(*parts), set()
    if isinstance(node, ast.AugAssign):
        return read(node.value, node.target) | (bound([node.target]) - known), set()
    if isinstance(node, ast.Delete):
        return bound([node]) - known | read(node), set()
    return read(node), bound([node])


def _arm(case: ast.match_case, known: set[str], uses: Mapping[str, set[str]]) -> set[str]:
    """The same of what is done where something matches: its pattern and its guard read names, too."""
    values = [node for node in ast.walk(case.pattern) if isinstance(node, ast.expr)]
    tests = [ast.Expr(node) for node in (*values, case.guard) if node is not None]
    found, _ = _block([*tests, *case.body], known | bound([case.pattern]), uses)
    return found


# --- what may be another afterwards ---------------------------------------------------------------------------------


def given(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that code binds, and those of what it sets something in: `a` of `a.b = 1` and of `a[0] = 1`."""
    places = [inner for node in nodes for inner in ast.walk(node) if isinstance(inner, (ast.Attribute, ast.Subscript))]
    roots = {root_of(place) for place in places if not isinstance(place.ctx, ast.Load)}
    return bound(nodes) | {name for name in roots if name is not None}


def touched(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that code gives something, and those of what it may change: handed to calls, asked to do something."""
    found = given(nodes)
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Call):
            parts: list[ast.AST] = [*node.args, *(keyword.value for keyword in node.keywords)]
            if isinstance(node.func, ast.Attribute):
                parts.append(node.func.value)
            if isinstance(node.func, ast.Name) and node.func.id in _HARMLESS:
                continue
            found |= {name for part in parts if (name := root_of(part)) is not None}
    return found


_HARMLESS = frozenset(
    "print range len enumerate zip float int str sum min max abs round sorted isinstance type".split()
)


def root_of(node: ast.AST) -> str | None:
    """The name that an attribute or an element is asked of: `a` of `a.b[0]`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
