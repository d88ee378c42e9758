"""What cells make of a prepared object between where it is prepared and what several processes run.

    loader, model, optimizer = accelerator.prepare(loader, model, optimizer)     # moves into the function
    steps = len(loader)                      is computed again there: each process has its share
    batches = iter(loader)                   would go over all data in each process
    diffusion = Diffusion(model)             would train the model as it was before
    def train(data=loader): ...              the same: a default is found where the function is defined

In the notebook the object is the one that was not prepared. What holds a model without calling it is right: the
prepared one has the same parameters.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import reads
from migrate.launching.names import bound, mentioned, root_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from migrate.launching.view import View

_COUNTING = frozenset("len int float round max min".split())
_ARITHMETIC: tuple[type[ast.AST], ...] = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
_ARITHMETIC += (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.expr_context)
_KNOWN = frozenset({"torch", "copy"})  # what holds a model and calls it, among these, is not trained with


@dataclass(frozen=True, slots=True)
class Prepared:
    """The names that are prepared, and which of them are loaders."""

    names: frozenset[str]
    loaders: frozenset[str]


@dataclass(frozen=True, slots=True)
class Captured:
    """Statements that each process runs again, and the first that cannot be, with the name that it makes."""

    again: tuple[ast.stmt, ...] = ()
    raw: tuple[ast.stmt, str] | None = None


def captured(view: View, between: Sequence[ast.stmt], prepared: Prepared, read: Collection[str]) -> Captured:
    """What of some statements is read later and holds, or counts, what is prepared."""
    again: list[ast.stmt] = []
    counts: set[str] = set()
    for node in between:
        made, shared = bound([node]), reads(node) & (prepared.loaders | counts)
        if shared and isinstance(node, ast.Assign) and _only_counts(node.value):
            counts |= made
            again.append(node)
            continue
        counts -= made
        if (late := sorted(made & {*read})) and (shared or _hands_on(view, node, prepared)):
            return Captured((), (node, late[0]))
    wanted = {*read}.union(*map(reads, again))
    return Captured(tuple(node for node in again if bound([node]) & wanted))


def held(definition: ast.AST, names: Collection[str]) -> str | None:
    """The first of some names whose value a function or a class takes where it is defined: a default, an attribute."""
    return min(_taken(definition) & {*names}, default=None)


def _taken(node: ast.AST) -> set[str]:
    """The names that are read where something is defined, and not where it is called."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
        return mentioned([*defaults, *getattr(node, "decorator_list", ())])
    if isinstance(node, ast.ClassDef):
        return set().union(*map(_taken, node.body), mentioned([*node.decorator_list, *node.bases]))
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        return _taken(node.value)
    return reads(node) if isinstance(node, ast.stmt) else set()


def _only_counts(value: ast.expr) -> bool:
    """`2 * len(loader)`, `int(steps / 3)`, `len(loader.dataset) // loader.batch_size`."""
    calls = (node for node in ast.walk(value) if isinstance(node, ast.Call))
    is_plain = all(isinstance(call.func, ast.Name) and call.func.id in _COUNTING for call in calls)
    return is_plain and all(isinstance(node, _ARITHMETIC) for node in ast.walk(value))


def _hands_on(view: View, node: ast.stmt, prepared: Prepared) -> bool:
    """Whether a prepared object is handed to something that may keep it and call it."""
    harmless = {view.accelerator, *prepared.names}
    for call in (inner for inner in ast.walk(node) if isinstance(inner, ast.Call)):
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        names = {each.id for each in given if isinstance(each, ast.Name)}
        root = root_of(call.func)
        if names & prepared.names and root not in harmless and _may_call(view, root, call.func):
            return True
    return False


def _may_call(view: View, root: str | None, function: ast.expr) -> bool:
    if root is None:
        return True
    if isinstance(cls := view.definitions.get(root), ast.ClassDef):
        return _calls_what_it_holds(cls)
    is_builtin = isinstance(function, ast.Name) and hasattr(builtins, root)
    return root in view.definitions or not (view.modules.get(root) in _KNOWN or is_builtin)


def _calls_what_it_holds(cls: ast.ClassDef) -> bool:
    """Whether methods of a class call something that its object has: `self.model(x)`."""
    own = {node.name for node in cls.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    calls = (node.func for node in ast.walk(cls) if isinstance(node, ast.Call))
    held = (each for each in calls if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name))
    return any(isinstance(each.value, ast.Name) and each.value.id == "self" and each.attr not in own for each in held)
