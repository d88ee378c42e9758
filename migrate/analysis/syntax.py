"""Where things stand in a syntax tree: parents, blocks, names that statements read and write. No meaning."""

from __future__ import annotations

import ast
from itertools import chain, count
from typing import TYPE_CHECKING, TypeAlias

from migrate.analysis.nodes import LEAVES, Nodes, children

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Loop: TypeAlias = "ast.For | ast.AsyncFor | ast.While"
Assignment: TypeAlias = "ast.Assign | ast.AnnAssign | ast.AugAssign"
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: Statements with handlers: `except*` makes another one of them, from Python 3.11 on.
TRIES: tuple[type[ast.Try], ...] = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))
#: Statements that give a name to code of its own.
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*DEFINITIONS, ast.Lambda)  # what has names of its own
_JUMPS = (ast.Return, ast.Break, ast.Continue)
_BLOCKS = ("body", "orelse", "finalbody")


def walk(node: ast.AST) -> Nodes:
    """The nodes of `ast.walk` that have a place, in its order.

    Decisions ask for the same nodes of the same trees over and over, and trees do not change: so they are kept.
    """
    kept: Nodes | None = vars(node).get("_walked")
    if not kept or kept[0] is not node:
        found = [node]
        for each in found:  # which grows
            if each.__class__ not in LEAVES:
                found += children(each)
        kept = vars(node)["_walked"] = Nodes(found)
    return kept


class Tree:
    """One parsed file with the way up from every node."""

    def __init__(self, root: ast.Module) -> None:
        self.root = root
        self.parents: dict[ast.AST, ast.AST] = {}
        nodes: list[ast.AST] = []
        waiting: list[ast.AST] = [root]
        while waiting:
            node = waiting.pop()
            nodes.append(node)
            if node.__class__ in LEAVES:
                continue
            below = children(node)
            for child in below:
                self.parents[child] = node
            below.reverse()
            waiting += below
        self.nodes = Nodes(nodes)  # source order

    def __contains__(self, node: ast.AST) -> bool:
        return node is self.root or node in self.parents

    def up(self, node: ast.AST) -> Iterator[ast.AST]:
        """The ancestors, nearest first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement an expression belongs to; a statement itself."""
        if isinstance(node, ast.stmt):
            return node
        return next(above for above in self.up(node) if isinstance(above, ast.stmt))

    def loops(self, node: ast.AST) -> Iterator[Loop]:
        """The loops of the same function around a node, innermost first."""
        below = node
        for above in self.up(node):
            if isinstance(above, (*FUNCTIONS, ast.ClassDef)):
                return
            if isinstance(above, LOOPS) and below not in above.orelse:
                if not (isinstance(above, (ast.For, ast.AsyncFor)) and below is above.iter):
                    yield above
            below = above

    def is_later(self, place: ast.AST, node: ast.AST) -> bool:
        """Whether a place of the same function is run after a node, and the node not again after it."""
        if self.statement(place) is self.statement(node) or place.lineno <= node.end_lineno:  # type: ignore[attr-defined]
            return False
        if any(isinstance(above, ast.GeneratorExp) for above in self.up(node)):
            return False  # it runs when it is asked for an item
        return set(self.loops(place)).isdisjoint(self.loops(node))

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that holds the statement."""
        parent = self.parents[statement]
        for body in blocks(parent):
            if any(statement is other for other in body):
                return body
        raise AssertionError(f"line {statement.lineno}: a statement that is in no block")

    def in_block(self, node: ast.AST, block: Sequence[ast.stmt]) -> ast.stmt | None:
        """The statement of the block that is or holds the node."""
        members = {id(statement): statement for statement in block}
        if id(node) in members:
            return members[id(node)]
        return next((members[id(above)] for above in self.up(node) if id(above) in members), None)

    def common_block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The innermost block that holds every statement, directly or deeper."""
        inner: ast.stmt = statements[0]
        while True:
            block = self.block(inner)
            if all(self.in_block(statement, block) is not None for statement in statements):
                return block
            above = self.parents[inner]
            inner = above if isinstance(above, ast.stmt) else self.statement(above)

    def missed(self, statement: ast.stmt, jump: ast.stmt) -> list[ast.stmt]:
        """What whoever takes a jump in a statement does not come to any more: what is below, and the next rounds."""
        found: list[ast.stmt] = []
        inner = statement
        while True:
            block = self.block(inner)
            found += block[block.index(inner) + 1 :]
            above = next(node for node in self.up(inner) if isinstance(node, (ast.stmt, ast.Module)))
            if isinstance(above, (ast.Module, ast.ClassDef, *FUNCTIONS)):
                return found
            if isinstance(above, LOOPS) and inner in above.body:
                found += above.body if not isinstance(jump, ast.Continue) else []
                if not isinstance(jump, ast.Return):
                    return found
            inner = above

    def function(self, node: ast.AST) -> ast.AST:
        """The function definition around a node, or the module."""
        return next((above for above in self.up(node) if isinstance(above, FUNCTIONS)), self.root)


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statement lists of a compound statement."""
    for name in _BLOCKS:
        body = getattr(node, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body
    for handler in getattr(node, "handlers", ()):
        yield handler.body
    for case in getattr(node, "cases", ()):
        yield case.body


def jumps(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The jumps out of a block: none that only leaves a loop in it, or a function that is defined there."""
    for statement in body:
        if isinstance(statement, _JUMPS):
            yield statement
        elif not isinstance(statement, _SCOPES):
            for inner in blocks(statement):
                is_round = isinstance(statement, LOOPS) and inner is statement.body  # what its `else` leaves is outside
                yield from (jump for jump in jumps(inner) if isinstance(jump, ast.Return) or not is_round)


def loads(scope: ast.AST, name: str) -> Iterator[ast.Name]:
    """Where some code reads a name."""
    return (n for n in walk(scope) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load))


def runs_after(statement: ast.AST) -> list[ast.stmt]:
    """The `else` of a loop that nothing breaks off: it runs when the loop is over, as if it stood below it."""
    if not isinstance(statement, LOOPS) or not statement.orelse:
        return []
    return [] if any(isinstance(jump, ast.Break) for jump in jumps(statement.body)) else statement.orelse


def rounds(loop: ast.AST) -> Nodes:
    """The nodes of a loop without what runs when it is over."""
    rest = {node for statement in runs_after(loop) for node in walk(statement)}
    return Nodes(node for node in walk(loop) if node not in rest) if rest else walk(loop)


def gives_up(block: list[ast.stmt]) -> bool:
    """Whether a block only ends the program."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.Raise):
        return True
    if isinstance(last, ast.If):
        return gives_up(last.body) and gives_up(last.orelse)
    return (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and ast.unparse(last.value.func) in ("sys.exit", "exit", "quit", "os._exit")
    )


def own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """What a statement evaluates itself, outside of the blocks in it; nothing of definitions."""
    if not isinstance(statement, _SCOPES):
        inside = {id(inner) for block in blocks(statement) for inner in block}
        skipped = (ast.ExceptHandler, ast.match_case)
        yield from (n for n in children(statement) if id(n) not in inside and not isinstance(n, skipped))


def reads(node: ast.AST) -> set[str]:
    """Names that are read in a node, nested functions included."""
    return {n.id for n in walk(node).of(ast.Name) if isinstance(n.ctx, ast.Load)} | {
        n.target.id for n in walk(node).of(ast.AugAssign) if isinstance(n.target, ast.Name)
    }


def writes(node: ast.AST) -> set[str]:
    """Names that are bound in a node."""
    return {n.id for n in walk(node).of(ast.Name) if isinstance(n.ctx, ast.Store)}


def binds(node: ast.AST) -> set[str]:
    """Names that are bound in a node for what follows it: not those that a comprehension has for itself."""
    loops = (inner.target for inner in walk(node).of(ast.comprehension))
    own = {id(name) for target in loops for name in walk(target)}
    found = (inner for inner in walk(node).of(ast.Name) if isinstance(inner.ctx, ast.Store))
    return {name.id for name in found if id(name) not in own}


def own_names(node: ast.AST) -> set[ast.AST]:
    """The names in an expression that a lambda or a comprehension in it has for itself."""
    found: set[ast.AST] = set()
    for inner in walk(node):
        if isinstance(inner, ast.Lambda):
            bound, inside = {arg.arg for arg in walk(inner.args).of(ast.arg)}, {*walk(inner.body)}
        elif isinstance(inner, COMPREHENSIONS):
            bound = set().union(*(writes(generator.target) for generator in inner.generators))
            inside = {*walk(inner)}.difference(walk(inner.generators[0].iter))  # which is read outside of it
        else:
            continue
        found |= {name for name in inside if isinstance(name, ast.Name) and name.id in bound}
    return found


def statements(root: ast.AST) -> Iterator[ast.AST]:
    """A statement or module and the statements in it, in functions and classes, too; in no order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(statement for block in blocks(node) for statement in block)


def set_attributes(root: ast.stmt) -> Iterator[str]:
    """The attributes that statements in a function or class set, on whatever object."""
    for node in statements(root):
        for target in (*getattr(node, "targets", ()), getattr(node, "target", None), *getattr(node, "items", ())):
            if isinstance(target, (ast.expr, ast.withitem)):
                yield from (n.attr for n in walk(target).of(ast.Attribute) if is_stored(n))


def is_stored(node: ast.expr) -> bool:
    """Whether a name, attribute or item is given a value where it stands."""
    return isinstance(getattr(node, "ctx", None), ast.Store)


def own_nodes(root: ast.AST) -> Nodes:
    """The nodes of a function or module without those of functions and classes defined in it; kept, as by `walk`."""
    kept: tuple[ast.AST, Nodes] | None = vars(root).get("_own")
    if kept is not None and kept[0] is root and kept[1]:
        return kept[1]
    found: list[ast.AST] = []
    waiting = children(root)
    waiting.reverse()
    while waiting:
        node = waiting.pop()
        found.append(node)
        if node.__class__ not in LEAVES and not isinstance(node, _SCOPES):
            below = children(node)
            below.reverse()
            waiting += below
    vars(root)["_own"] = root, (own := Nodes(found))
    return own


def defaults_of(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.expr]:
    """The defaults of a function's parameters, which are computed where it is defined."""
    given = function.args
    return [*given.defaults, *(default for default in given.kw_defaults if default is not None)]


def root_name(node: ast.expr) -> str | None:
    """`self` of `self.layers[0]`; None where what an attribute or item belongs to has no name."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def rows_of(tensor: str) -> tuple[str, ...]:
    """How a program asks for the number of rows of a tensor."""
    return f"{tensor}.size(0)", f"{tensor}.shape[0]", f"len({tensor})"


def unused_name(tree: Tree, *names: str) -> str:
    """The first of some names that a file does not use; where it uses all, the first with a number."""
    taken = {node.id for node in tree.nodes if isinstance(node, ast.Name)}
    numbered = (f"{names[0]}_{number}" for number in count(2))
    return next(name for name in chain(names, numbered) if name not in taken)


def line_of(node: ast.AST) -> int:
    """The number of the line in which a node begins; 0 for a whole file."""
    return getattr(node, "lineno", 0)


def start_of(node: ast.AST) -> tuple[int, int]:
    """Line and column of a node: what stands before another in the text has the smaller ones."""
    return line_of(node), getattr(node, "col_offset", 0)


def first_line(statement: ast.stmt) -> int:
    """The number of the first line of a statement, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(statement: ast.stmt) -> int:
    """The number of its last line."""
    return statement.end_lineno or statement.lineno


def is_main_guard(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`, either way round."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare) or len(node.test.ops) != 1:
        return False
    sides = (node.test.left, node.test.comparators[0])
    return (
        isinstance(node.test.ops[0], ast.Eq)
        and any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
        and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    )


def is_docstring(statement: ast.stmt) -> bool:
    """A statement that is only a text."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def is_none(node: ast.expr | None) -> bool:
    """Whether None is written there."""
    return isinstance(node, ast.Constant) and node.value is None


def is_only_asked(parents: Mapping[ast.AST, ast.AST], node: ast.expr) -> bool:
    """Whether an expression is read for its truth alone, or for whether it is None."""
    parent = parents.get(node)
    while isinstance(parent, ast.BoolOp):
        node, parent = parent, parents.get(parent)
    if isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return parent.test is node
    if isinstance(parent, ast.Compare):
        return parent.left is node and all(map(is_none, parent.comparators))
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)


def arguments(call: ast.Call) -> list[ast.expr]:
    """All that a call is given, by position and by name; stars as they are written."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def argument_at(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """What a call is given at a position, or else by one of these names."""
    if position < len(call.args):
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg in names), None)


def keyword_of(call: ast.Call, name: str) -> ast.keyword | None:
    """What a call gives under a keyword, with the keyword; None: nothing, unless by `**`."""
    return next((each for each in call.keywords if each.arg == name), None)


def targets_of(statement: Assignment) -> list[ast.expr]:
    """What an assignment gives a value."""
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def same(one: ast.AST, other: ast.AST) -> bool:
    """Whether two expressions read the same."""
    return ast.unparse(one) == ast.unparse(other)
