"""Changes of a program that mean nothing: other names, another order of independent lines, functions elsewhere.

Programs are compared as `ast.unparse` writes them, so that lines are the same before and after where nothing moves.
"""

from __future__ import annotations

import ast
import builtins
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MODULE = "moved_away"


def plain(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same programs without comments and layout."""
    return {name: _text(ast.parse(content)) for name, content in files.items()}


def _text(tree: ast.Module) -> bytes:
    return (ast.unparse(ast.fix_missing_locations(tree)) + "\n").encode()


# --------------------------------------------------------------------------------------------- names


def renamed(files: dict[str, bytes]) -> dict[str, bytes] | None:
    """Every variable, parameter, function and class has another name, in all files."""
    trees = {name: ast.parse(content) for name, content in files.items()}
    own = set().union(*(_bound(tree) for tree in trees.values()))
    kept = set().union(*(_fixed(tree) for tree in trees.values()))
    table = {name: f"n{number}_" for number, name in enumerate(sorted(own - kept))}
    return {name: _text(_Renaming(table).visit(tree)) for name, tree in trees.items()} if table else None


def _bound(tree: ast.Module) -> set[str]:
    """What the program itself gives names to; methods and attributes are not told apart from those of libraries."""
    methods = {id(f) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for f in node.body}
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    found |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    found |= {n.name for n in ast.walk(tree) if isinstance(n, (*FUNCTIONS, ast.ClassDef)) and id(n) not in methods}
    return found | {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}


def _fixed(tree: ast.Module) -> set[str]:
    """What has a meaning outside: imported names, keywords, attributes, words in strings that are looked up."""
    found = {"self", "cls", *dir(builtins)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, "module", "") or ""
            for alias in node.names:
                found |= {alias.name.partition(".")[0], alias.asname or "", *module.split(".")}
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(re.findall(r"\w+", node.value))
        elif isinstance(node, ast.ClassDef):  # fields, and methods that libraries call with keywords
            found |= {n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
            found |= {
                t.id for n in node.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
            }
    return found


class _Renaming(ast.NodeTransformer):
    def __init__(self, table: dict[str, str]) -> None:
        self._table = table

    def _name(self, name: str) -> str:
        return self._table.get(name, name)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._name(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._name(node.arg)
        return self.generic_visit(node)

    def _named(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler) -> ast.AST:
        node.name = self._name(node.name) if node.name else None
        return self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_ExceptHandler = _named  # noqa: N815 (of `ast`)

    def _listed(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        node.names = [self._name(name) for name in node.names]
        return node

    visit_Global = visit_Nonlocal = _listed  # noqa: N815 (likewise)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return node


# --------------------------------------------------------------------------------------------- order


def reordered(files: dict[str, bytes]) -> dict[str, bytes] | None:
    """Neighbours that have nothing to do with each other change places: imports, constants, definitions."""
    trees = {name: ast.parse(content) for name, content in files.items()}
    swaps = sum(_swap(block) for tree in trees.values() for block in _blocks(tree))
    return {name: _text(tree) for name, tree in trees.items()} if swaps else None


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _swap(block: list[ast.stmt]) -> int:
    swaps, number = 0, 0
    while number + 1 < len(block):
        if _are_independent(block[number], block[number + 1]):
            block[number : number + 2] = block[number + 1], block[number]
            swaps, number = swaps + 1, number + 1
        number += 1
    return swaps


def _are_independent(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether neither runs code or reads what the other gives: plain imports, constants, definitions."""
    if not (_is_quiet(one) and _is_quiet(other)):
        return False
    writes, others = _written(one), _written(other)
    reads, read = _read(one), _read(other)
    return not (writes & others or writes & read or others & reads)


def _is_quiet(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module != "__future__" and all(alias.name != "*" for alias in node.names)
    if isinstance(node, ast.Import):
        return all("." not in alias.name for alias in node.names)
    if isinstance(node, FUNCTIONS):
        return not node.decorator_list
    if isinstance(node, ast.Assign):
        return all(isinstance(t, ast.Name) for t in node.targets) and _is_constant(node.value)
    return False


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, (ast.Constant, ast.Name)) or (isinstance(node, ast.UnaryOp) and _is_constant(node.operand))


def _written(node: ast.stmt) -> set[str]:
    if isinstance(node, FUNCTIONS):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name for alias in node.names}
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}


def _read(node: ast.stmt) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}


# --------------------------------------------------------------------------------------------- places


def moved_to_another_file(files: dict[str, bytes]) -> dict[str, bytes] | None:
    """Functions and classes at module level that use nothing of it but its imports lie in a module beside it."""
    if len(files) != 1:
        return None
    ((name, content),) = files.items()
    tree = ast.parse(content)
    imports = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    chosen = _movable(tree, imports)
    if not chosen or _has_future(imports):
        return None
    beside = ast.Module([*imports, *chosen], type_ignores=[])
    names = [ast.alias(node.name) for node in chosen]  # type: ignore[attr-defined]
    rest = [node for node in tree.body if node not in chosen]
    place = max(rest.index(node) for node in imports) + 1 if imports else 0
    rest.insert(place, ast.ImportFrom(MODULE, names, 0))
    return {name: _text(ast.Module(rest, type_ignores=[])), f"{MODULE}.py": _text(beside)}


def _has_future(imports: Iterable[ast.stmt]) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in imports)


def _movable(tree: ast.Module, imports: list[ast.stmt]) -> list[ast.stmt]:
    """The definitions that use imports, builtins and each other only."""
    there = set().union({"__name__"}, dir(builtins), *(_written(node) for node in imports))
    chosen = [node for node in tree.body if isinstance(node, (*FUNCTIONS, ast.ClassDef))]
    rebound = {
        n.id
        for s in tree.body
        if s not in chosen
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }
    chosen = [
        node
        for node in chosen
        if node.name not in rebound and not any(isinstance(i, ast.Global) for i in ast.walk(node))
    ]
    while True:
        known = there | {node.name for node in chosen}
        kept = [node for node in chosen if _free(node) <= known]
        if len(kept) == len(chosen):
            return kept
        chosen = kept


def _free(node: ast.stmt) -> set[str]:
    """Names that a definition reads and does not give itself."""
    own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    own |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    own |= {n.name for n in ast.walk(node) if isinstance(n, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler)) and n.name}
    return _read(node) - own


def split_off(files: dict[str, bytes]) -> dict[str, bytes] | None:
    """The body of each loop over a loader that gives nothing to what follows is a function of its own."""
    if len(files) != 1:
        return None
    ((name, content),) = files.items()
    tree = ast.parse(content)
    module_names = (
        set().union(*map(_written, tree.body))
        | set(dir(builtins))
        | _bound(ast.Module([n for n in tree.body if isinstance(n, ast.ClassDef)], type_ignores=[]))
    )
    made = []
    for function in [node for node in tree.body if isinstance(node, FUNCTIONS)] or [tree]:
        methods = {id(inner) for n in ast.walk(function) if isinstance(n, ast.ClassDef) for inner in ast.walk(n)}
        for loop in [n for n in ast.walk(function) if isinstance(n, ast.For) and id(n) not in methods]:
            if new := _split(function, loop, module_names, len(made)):
                made.append(new)
    if not made or (isinstance(tree.body[0], ast.ImportFrom) and tree.body[0].module == "__future__"):
        return None
    last = max((n for n, node in enumerate(tree.body) if isinstance(node, (ast.Import, ast.ImportFrom))), default=-1)
    classes = max((n for n, node in enumerate(tree.body) if isinstance(node, (ast.ClassDef, *FUNCTIONS))), default=-1)
    place = max(last, classes) + 1
    tree.body[place:place] = made
    return {name: _text(tree)}


STAYS = (
    ast.For,  # of loops in each other the innermost
    ast.Break,
    ast.Continue,
    ast.Return,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Delete,
    ast.NamedExpr,
    *FUNCTIONS,
    ast.Import,
    ast.ImportFrom,
)


def _split(function: ast.AST, loop: ast.For, module_names: set[str], number: int) -> ast.FunctionDef | None:
    """The function that the body becomes; the loop then calls it."""
    body = ast.Module(loop.body, type_ignores=[])
    inside = {id(node) for node in ast.walk(body)}
    if not any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(body)):
        return None
    if any(isinstance(node, STAYS) for node in ast.walk(body)):
        return None
    given = {n.id for n in ast.walk(body) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) and given & set(n.names) for n in ast.walk(function)):
        return None
    outside = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and id(n) not in inside}
    targets = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    uses = [
        n for n in ast.walk(function) if isinstance(n, ast.Name) and id(n) not in inside and n.id in given - targets
    ]
    if uses or (given & targets & (outside - targets)) or any(_is_read_early(body, name) for name in given - targets):
        return None
    own = outside if isinstance(function, FUNCTIONS) else set()  # these hide what the module calls so
    own |= {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} if own else set()
    reads = sorted(_read(body) - (given - targets) - (module_names - _stored(function, own)))
    arguments = ast.arguments([], [ast.arg(name) for name in reads], None, [], [], None, [])
    new = ast.FunctionDef(f"one_step_{number}", arguments, loop.body, [], None, type_params=[])
    call = ast.Call(ast.Name(new.name, ast.Load()), [ast.Name(name, ast.Load()) for name in reads], [])
    loop.body = [ast.Expr(call)]
    return ast.fix_missing_locations(new)


def _stored(function: ast.AST, own: set[str]) -> set[str]:
    """The names that are the function's own."""
    bound = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return own & (bound | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)})


def _is_read_early(body: ast.Module, name: str) -> bool:
    """Whether a name is read before it is given: then it comes from the step before."""
    places = [
        (n.lineno, not isinstance(n.ctx, ast.Load)) for n in ast.walk(body) if isinstance(n, ast.Name) and n.id == name
    ]
    return not min(places)[1] or any(
        isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id == name for n in ast.walk(body)
    )
