"""Tensors of a batch of which an evaluation only asks how many rows they have: another one says so as well.

    output = model(images)
    output, target = accelerator.gather_for_metrics((output, target))
    losses.update(loss.item(), target.size(0))                             # was images.size(0)

To gather the images for that would send all of them to every process.
"""

from __future__ import annotations

import ast
from itertools import islice
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import VARIABLE
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import rows_of, walk, writes
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree

_DEEPEST = 2  # functions that hand a tensor on to others
#: Methods that give a tensor with the same rows, somewhere else or of another type.
_SAME_ROWS = frozenset("to cuda cpu type float double half long int bool contiguous detach clone".split())


def counted(
    facts: Facts,
    loop: ast.For | ast.AsyncFor,
    before: Sequence[ast.stmt],
    later: Sequence[ast.stmt],
    names: Sequence[str],
    inside: Collection[int],
) -> dict[ast.Name, str]:
    """What reads only the number of rows of a tensor, `later` than the model's call, with another name that has it.

    `names` have rows of the batch there. Those count that the `loop` gives parts of it, or what stands in it `before`
    the call: `images, target = batch`, `target = batch[1]`. `inside` is what the model is given (by `id`).
    """
    found: dict[ast.Name, str] = {}
    whole = _whole_batch(facts, loop)
    given = {node.id for node in _names([loop.target])} | {
        node.id
        for each in before
        if _parts(facts, each, whole)
        for node in _names([each])
        if isinstance(node.ctx, ast.Store)
    }
    left = [name for name in names if name in given]
    for name in tuple(left):
        uses = [node for node in _names(later) if node.id == name and id(node) not in inside]
        others = [other for other in left if other != name and _has_rows(facts, before, later, other, whole)]
        if others and uses and all(is_count(facts.tree(node), node) for node in uses):
            left.remove(name)
            found |= dict.fromkeys(uses, others[0])
    return found


def is_count(tree: Tree, node: ast.Name) -> bool:
    """Whether a name is only asked for its rows: `x.size(0)`, `x.shape[0]`, `len(x)`."""
    return any(ast.unparse(above) in rows_of(node.id) for above in islice(tree.up(node), 2))


def _whole_batch(facts: Facts, loop: ast.For | ast.AsyncFor) -> str:
    """The name of all of a batch: `for batch in loader`, `for i, batch in enumerate(loader)`; empty: it has none."""
    match loop.target, loop.iter:
        case ast.Name(name), _:
            return name
        case ast.Tuple([_, ast.Name(name)]), ast.Call() as call if "builtins.enumerate" in facts.called(call):
            return name
    return ""


def _parts(facts: Facts, statement: ast.AST, batch: str) -> bool:
    """Whether a statement gives names to parts of a batch: `x, y = batch`, `x = batch[0]`, `y = batch["y"].cuda()`."""
    match statement:
        case ast.Assign([ast.Tuple() | ast.List()], ast.Name(name)):
            return name == batch
        case ast.Assign([ast.Name(target)], value):
            return target != batch and _is_part(facts, value, batch)
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
            return batch not in writes(statement) and all(_is_part(facts, value, batch) for value in values)
    return False


def _is_part(facts: Facts, node: ast.expr, batch: str) -> bool:
    match _unmoved(facts, node):
        case ast.Subscript(ast.Name(name), ast.Constant() | ast.UnaryOp()):
            return name == batch
    return False


def _has_rows(facts: Facts, before: Sequence[ast.stmt], later: Sequence[ast.stmt], name: str, whole: str) -> bool:
    """Whether a name is certainly that of a tensor, and goes on standing for what the batch gave it, moved at most."""
    used = (node for node in _names([*before, *later]) if node.id == name and isinstance(node.ctx, ast.Load))
    if not any(_is_used_as_tensor(facts, node) for node in used):
        return False
    if any(node.id == name and not isinstance(node.ctx, ast.Load) for node in _names(later)):
        return False
    binding = [s for s in _flat(before) if any(n.id == name and not isinstance(n.ctx, ast.Load) for n in _names([s]))]
    return all(only_moves(facts, statement, name) or _parts(facts, statement, whole) for statement in binding)


def _flat(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Statements, and those of branches with their tests: `if torch.cuda.is_available(): y = y.cuda()`."""
    for statement in statements:
        if isinstance(statement, ast.If):
            yield statement.test
            yield from _flat([*statement.body, *statement.orelse])
        else:
            yield statement


def _is_used_as_tensor(facts: Facts, node: ast.AST, depth: int = _DEEPEST) -> bool:
    """Whether something is computed with, asked for its size, or given to what takes a tensor: no dictionary, no list.

    That is PyTorch, one of its loss functions, or a function of the project that does so with it.
    """
    parents = facts.tree(node).parents
    above = parents[node]
    while isinstance(above, ast.Attribute) and above.attr in _SAME_ROWS and isinstance(parents[above], ast.Call):
        node = parents[above]  # `target.cuda()`
        above = parents[node]
    if isinstance(above, ast.Attribute):
        return above.attr == "size" and isinstance(parents[above], ast.Call)
    if isinstance(above, (ast.Compare, ast.BinOp)):
        return True
    if not isinstance(above, ast.Call) or node not in above.args:
        return False
    called = facts.values(above.func)
    is_loss = Role.CRITERION in roles(called) and not any(value.unit for value in called)
    if is_loss or any(name.startswith("torch.") for name in facts.called(above)):
        return True
    return depth > 0 and any(_is_used_as_tensor(facts, read, depth - 1) for read in _read_in(facts, above, node))


def _read_in(facts: Facts, call: ast.Call, given: ast.AST) -> Iterator[ast.Name]:
    """Where the project's functions read what a call gives them, by parameters that stay what they are."""
    for unit in facts.targets(call):
        for name in (name for name, argument in received(call, unit).items() if argument is given):
            named = [node for node in _names([unit.node]) if node.id == name]
            yield from named if all(isinstance(node.ctx, ast.Load) for node in named) else ()


def only_moves(facts: Facts, statement: ast.AST, name: str) -> bool:
    """`x = x.to(device)`, `x, y = x.cuda(), y.cuda()`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        given = [v for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, ast.Name) and t.id == name]
        return len(given) == 1 and _moved(facts, given[0]) == name
    return isinstance(target, ast.Name) and _moved(facts, value) == name


def _moved(facts: Facts, node: ast.expr) -> str:
    """The name of what is moved, cast or put into a Variable; empty: it is something else."""
    moved = _unmoved(facts, node)
    return moved.id if isinstance(moved, ast.Name) else ""


def _unmoved(facts: Facts, node: ast.expr) -> ast.expr:
    """What is moved, cast or put into a Variable."""
    while isinstance(node, ast.Call):
        if node.args and facts.called(node) & VARIABLE:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_ROWS:
            node = node.func.value
        else:
            break
    return node


def _names(statements: Sequence[ast.AST]) -> Iterator[ast.Name]:
    return (node for statement in statements for node in walk(statement).of(ast.Name))
