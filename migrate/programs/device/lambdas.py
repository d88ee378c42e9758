"""Lambdas that move: `Variable = lambda *a: autograd.Variable(*a).cuda()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import tensors
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import arguments
from migrate.analysis.units import Module
from migrate.programs.device.devices import is_to_cpu, is_unknown_move
from migrate.programs.program import Program, Refusal
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops


def hidden_moves(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """A lambda that moves, and does not see the accelerator, or takes the batches of a loader."""
    for module in {loop.unit.module for loop in program.training}:
        for node in facts.tree_of(module).nodes:
            if isinstance(node, ast.Lambda) and _moves(facts, node) and not _keeps_its_moves(facts, program, node):
                yield Refusal(
                    node,
                    "MIG120",
                    "a lambda moves tensors to the device",
                    "write the moves out where they happen, or make the lambda a function",
                )
                return


def _moves(facts: Facts, node: ast.Lambda) -> bool:
    return any(True for _ in _moved(facts, node))


def _keeps_its_moves(facts: Facts, program: Program, node: ast.Lambda) -> bool:
    """Whether the moves of a lambda go to the accelerator's device where it stands."""
    kept = is_location(facts, node) or is_mapped(facts, node) or _sees_accelerator(facts, program, node)
    return kept or _only_makes_models(facts, program, node)


def _only_makes_models(facts: Facts, program: Program, node: ast.Lambda) -> bool:
    """`lambda: Net().to(device)`: prepare moves what is trained, so nothing of the device is left in it."""
    moved = [facts.values(each) for each in _moved(facts, node)]
    return all(roles(each) == {Role.MODEL} and origins(each, Role.MODEL) <= program.model_origins for each in moved)


def is_location(facts: Facts, node: ast.AST) -> bool:
    """`lambda storage, loc: storage.cuda()` of `torch.load(path, map_location=...)`."""
    if not isinstance(node, ast.Lambda):
        return False
    parents = facts.tree(node).parents
    above = parents[node]
    call = parents[above] if isinstance(above, ast.keyword) and above.arg == "map_location" else above
    is_given = call is not above or (isinstance(call, ast.Call) and call.args[1:2] == [node])
    return is_given and isinstance(call, ast.Call) and bool(facts.called(call) & _LOADS)


_LOADS = frozenset({"torch.load", "torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url"})


def is_mapped(facts: Facts, node: ast.AST) -> bool:
    """`map(lambda x: x.to(device), batch)`: run where it stands, on whatever is mapped."""
    if not isinstance(node, ast.Lambda):
        return False
    call = facts.tree(node).parents[node]
    return isinstance(call, ast.Call) and call.args[:1] == [node] and "builtins.map" in called_by_name(facts, call)


def mapped(facts: Facts, move: ast.Call) -> ast.Call | None:
    """`map(...)` of `x, y = map(lambda t: t.to(device), batch)`: without the move, the batch is all that is left."""
    parents = facts.tree(move).parents
    function, receiver = parents[move], move.func.value if isinstance(move.func, ast.Attribute) else None
    if not isinstance(function, ast.Lambda) or not isinstance(receiver, ast.Name) or not is_mapped(facts, function):
        return None
    call = parents[function]
    statement = parents[call]
    assert isinstance(call, ast.Call)
    is_unpacked = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Tuple, ast.List))
    is_whole = len(call.args) == 2 and [a.arg for a in function.args.args] == [receiver.id]
    return call if is_unpacked and is_whole else None


def _sees_accelerator(facts: Facts, program: Program, node: ast.Lambda) -> bool:
    """Whether a lambda stands at the top level of the module that makes the accelerator, or in its home.

    What it is given is known to come from no prepared loader only where there is none; what it makes itself does not.
    """
    home = program.home
    above = next((a for a in facts.tree(node).up(node) if isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    is_at_home = above is None and isinstance(home, Module) and home is facts.module(node)
    has_loaders = bool(program.training_loaders) or bool(program.evaluation)
    return is_at_home and (not has_loaders or all(_is_made_here(facts, move) for move in _moved(facts, node)))


def _moved(facts: Facts, node: ast.Lambda) -> Iterator[ast.expr]:
    """What the moves of a lambda take: `torch.zeros(n)` of `torch.zeros(n).cuda()`."""
    return (
        inner.value
        for inner in ast.walk(node.body)
        if isinstance(inner, ast.Attribute)
        and inner.attr in tensors.MOVES
        and not _takes_off(facts, inner)
        and "torch.cuda" not in facts.names(inner)  # of which something else is asked: `torch.cuda.synchronize()`
        and not _only_casts(facts, inner)
    )


def _takes_off(facts: Facts, method: ast.Attribute) -> bool:
    """`x.cpu()`, `x.to("cpu")`."""
    call = facts.tree(method).parents[method]
    return method.attr == "cpu" or (isinstance(call, ast.Call) and call.func is method and is_to_cpu(facts, call))


def _only_casts(facts: Facts, method: ast.Attribute) -> bool:
    """`x.to(torch.float32)`, `x.to(y.dtype)`: a method that is called with what is known to be no device."""
    call = facts.tree(method).parents[method]
    if not isinstance(call, ast.Call) or call.func is not method or is_unknown_move(facts, call):
        return False
    given = arguments(call)
    return method.attr == "to" and bool(given) and all(facts.names(each) or _is_dtype(each) for each in given)


def _is_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "dtype"


def _is_made_here(facts: Facts, node: ast.expr) -> bool:
    """Whether a function of PyTorch makes a tensor, and no method of one that is there."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return "torch" in facts.names(node.func.value)
