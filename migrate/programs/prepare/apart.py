"""Objects that a program makes only under a condition, and uses only under it: they are prepared there.

`if args.use_optimizer: optimizer = SGD(...)`: one prepare for all would name an optimizer that need not be there. Where
its model is prepared below, it is so below that, under the same condition: its state goes where its parameters are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import blocks, last_line, line_of, writes
from migrate.analysis.units import Function, is_local
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree
    from migrate.analysis.units import Unit
    from migrate.programs.home.naming import Named
    from migrate.programs.program import Program


@dataclass(frozen=True, slots=True)
class Group:
    """Objects that are prepared on their own, after a statement; `test` is what is asked for once more there."""

    after: ast.stmt
    objects: list[Named]
    test: ast.expr | None = None


def apart(facts: Facts, program: Program, prepared: Sequence[Named], prepare: ast.stmt) -> list[Group]:
    """The objects that are prepared on their own, in the order in which that is written."""
    found: dict[_Branches, list[Named]] = {}
    tree = facts.tree(prepare)
    block = tree.block(prepare)
    for named in prepared:
        around = _common([_branches(tree, statement, block) for statement in named.statements])
        asked = (i for i, (made, _) in enumerate(around) if _is_for_some(facts, program, named, made, prepare))
        depth = max(asked, default=None)
        if depth is not None:
            found.setdefault(around[: depth + 1], []).append(named)
    alone = [named for names in found.values() for named in names]
    models = {origin for named in prepared if named not in alone for origin in named.origins}
    groups = []
    for branches, names in found.items():
        trained = set().union(*(facts.models_of.get(o, set()) for named in names for o in named.origins))
        last = _last(tree, branches[-1], names)
        if trained & models or _is_used_between(facts, names, last, prepare):
            groups.append(Group(prepare, names, _test(branches)))
        else:
            groups.append(Group(last, names))
    return groups


#: The `if` statements around something, from the outside in, each with whether that stands in its body.
_Branches = tuple[tuple[ast.If, bool], ...]


def _branches(tree: Tree, statement: ast.stmt, block: list[ast.stmt]) -> _Branches:
    """The `if` statements below the block of prepare in which a statement stands."""
    found = []
    held = tree.in_block(statement, block)
    while isinstance(held, ast.If):
        is_body = tree.in_block(statement, held.body) is not None
        found.append((held, is_body))
        held = tree.in_block(statement, held.body if is_body else held.orelse)
    return tuple(found)


def _common(paths: Sequence[_Branches]) -> _Branches:
    """What all have in common at their beginning."""
    return tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False)))


def _test(branches: _Branches) -> ast.expr:
    """What holds where all of these branches are taken."""
    tests = [made.test if is_body else ast.UnaryOp(ast.Not(), made.test) for made, is_body in branches]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _is_for_some(facts: Facts, program: Program, named: Named, made: ast.If, prepare: ast.stmt) -> bool:
    """Whether some runs are without the object: nothing gives it, and nothing ends them, where the condition fails.

    Where there is another branch, the same condition must guard a place that uses the object, or that branch must be
    seen to go on without a loader, or without an attribute: `self` is an object all the same, that only infers.
    """
    if isinstance(made.test, ast.Constant) or _is_given(facts, named, named.statements[0]):
        return False
    names = {named.target, _holder(named)}
    others = [block for block in blocks(made) if not _holds(block, named.statements[0])]
    if any(names & _named(block, ast.Store) for block in others):
        return False
    is_nowhere_else = not names & _named_around(facts, made, prepare)
    if not made.orelse:
        return is_nowhere_else
    is_needed_later = named.role is Role.LOADER or _is_attribute(facts.unit(made), named)
    if is_nowhere_else and is_needed_later and all(_goes_on(facts, block) for block in others):
        return True
    test = _text(made.test)
    modules = {program.module, *(loop.unit.module for loop in program.training)}
    return any(
        isinstance(node, ast.If)
        and node is not made
        and _text(node.test) == test
        and names & _read_by(facts, [*node.body, *node.orelse])
        for module in modules
        for node in facts.tree_of(module).nodes
    )


def _is_attribute(unit: Unit, named: Named) -> bool:
    """Whether a method gives an object to its own `self`: other methods use it."""
    itself = unit.itself if isinstance(unit, Function) else None
    return itself is not None and named.target.startswith(f"{itself.arg}.")


def _goes_on(facts: Facts, block: list[ast.stmt]) -> bool:
    """Whether what follows a block is run after it: it does not leave, nor end the program."""
    nodes = [node for statement in block for node in ast.walk(statement)]
    calls = (node for node in nodes if isinstance(node, ast.Call))
    may_end = any(facts.called(call) & _ENDS or getattr(call.func, "attr", "") == "error" for call in calls)
    return not may_end and not any(isinstance(node, _LEAVING) for node in nodes)


_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_ENDS = frozenset("sys.exit builtins.exit builtins.quit os._exit".split())  # and `parser.error()`


def _read_by(facts: Facts, block: list[ast.stmt]) -> set[str]:
    """What statements read, and the functions that they call."""
    calls = (node for statement in block for node in ast.walk(statement) if isinstance(node, ast.Call))
    entered = reached(facts, (unit for call in calls for unit in facts.targets(call)))
    inner = (n for unit in entered for n in facts.own(unit) if isinstance(n, ast.Name) and not is_local(unit, n.id))
    return _named(block, ast.Load) | {node.id for node in inner if isinstance(node.ctx, ast.Load)}


def _is_used_between(facts: Facts, names: Sequence[Named], last: ast.stmt, prepare: ast.stmt) -> bool:
    """Whether the objects are asked for something before the others are prepared, as raw as they are by then."""
    targets = {named.target for named in names}
    lines = range((last.end_lineno or last.lineno) + 1, (prepare.end_lineno or prepare.lineno) + 1)
    own = (n for n in facts.own(facts.unit(prepare)) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(node.lineno in lines and isinstance(node.ctx, ast.Load) and ast.unparse(node) in targets for node in own)


def _is_given(facts: Facts, named: Named, statement: ast.stmt) -> bool:
    """Whether a statement only wraps or moves the object: `model = DataParallel(model)`."""
    read = (n for n in ast.walk(statement) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load))
    return any(origins(facts.values(node), named.role) & named.origins for node in read)


def _named_around(facts: Facts, made: ast.If, prepare: ast.stmt) -> set[str]:
    """What the unit of an `if` binds beside it, before prepare: `scheduler = None`."""
    inside = set(ast.walk(made))
    if not any(True for _ in facts.tree(prepare).loops(prepare)):
        inside |= {n for n in facts.own(facts.unit(made)) if line_of(n) > last_line(prepare)}
    own = (n for n in facts.own(facts.unit(made)) if isinstance(n, (ast.Name, ast.Attribute)) and n not in inside)
    return {ast.unparse(n) for n in own if isinstance(n.ctx, ast.Store)}


def _text(test: ast.expr) -> str:
    """A test in few words: `x is True` asks for what `x` asks for."""
    match test:
        case ast.Compare(left, [ast.Is() | ast.Eq()], [ast.Constant(True)]):
            return ast.unparse(left)
    return ast.unparse(test)


def _holder(named: Named) -> str:
    """The name that is made with what it holds: `gan` for `gan.optimizer`; the target itself for all others."""
    root = named.target.partition(".")[0]
    return root if any(root in writes(statement) for statement in named.statements) else named.target


def _named(block: list[ast.stmt], context: type[ast.expr_context]) -> set[str]:
    """The names and attributes that statements read or bind."""
    nodes = (node for statement in block for node in ast.walk(statement))
    return {ast.unparse(n) for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, context)}


def _holds(block: list[ast.stmt], statement: ast.stmt) -> bool:
    return any(inner is statement for each in block for inner in ast.walk(each))


def _last(tree: Tree, branch: tuple[ast.If, bool], names: list[Named]) -> ast.stmt:
    block = branch[0].body if branch[1] else branch[0].orelse
    held = [tree.in_block(statement, block) for named in names for statement in named.statements]
    return max((each for each in held if each is not None), key=lambda each: each.lineno)
