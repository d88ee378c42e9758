"""Models that lie in a container of PyTorch's own: `nn.Sequential(net, head)`, and `trained = nn.ModuleList([net])`.

An optimizer that is given the container trains what lies in it, and that is what runs.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts

#: Those that nobody can call.
_WITHOUT_FORWARD = frozenset(
    {"torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.ParameterList", "torch.nn.ParameterDict"}
)
_CONTAINERS = _WITHOUT_FORWARD | {"torch.nn.Sequential"}
#: Methods that put something into one.
_PUTTING = ("append", "extend", "insert", "add_module", "register_module", "update")


def contents(facts: Facts, container: ast.AST) -> set[ast.AST]:
    """Where the models were made that a container was made of, or was given later; empty for any other model."""
    if not _is_made_by(facts, container, _CONTAINERS):
        return set()
    assert isinstance(container, ast.Call)
    putting = (use.node for use in facts.method_calls(*_PUTTING))
    calls = (container, *(call for call in putting if container in origins(facts.receiver(call), Role.MODEL)))
    given = [facts.values(each) for call in calls for each in arguments(call)]
    return set().union(*(origins(values, Role.MODEL) | facts.inside(values, Role.MODEL) for values in given))


def without_forward(facts: Facts, models: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """Those of some models that have no forward of their own: what lies in them is run."""
    for model in models:
        if isinstance(model, ast.Call) and _is_made_by(facts, model, _WITHOUT_FORWARD):
            yield model


def _is_made_by(facts: Facts, model: ast.AST, names: frozenset[str]) -> bool:
    return isinstance(model, ast.Call) and not names.isdisjoint(facts.called(model))
