"""Tensors that are trained and belong to no model: an image, a temperature, weights that are written out.

DistributedDataParallel sees the parameters of a model. Where the data are dealt out, nobody would average the gradients
of other tensors. Where no loader deals anything out and all processes draw alike, they stay alike by themselves.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import argument_at, start_of
from migrate.programs.training.wholes import around
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.programs.program import Program

#: What holds parameters of models, or may.
_SEEN = frozenset({Role.MODEL, Role.PARAMETERS, Role.ITERATOR, Role.CONTAINER})
_HOLDING = frozenset({Role.ITERATOR, Role.CONTAINER})
#: What puts all that it is given into one.
_TOGETHER = frozenset({"itertools.chain", "builtins.list", "builtins.tuple", "builtins.set"})


def strangers(facts: Facts, optimizer: ast.AST) -> list[ast.expr]:
    """What an optimizer trains and is no parameter of a model, as far as is seen, in the expression that gives it."""
    source = facts.source(optimizer)  # a function that makes several has one expression for all
    given = _given(source)
    if given is None:
        return []
    found = list(_among(facts, given))
    is_unknown = _holds_tensor(facts, facts.over(optimizer), 4) or not (
        facts.models_of.get(optimizer) or around(facts, source)
    )
    return found or ([given] if is_unknown else [])


def _given(optimizer: ast.AST) -> ast.expr | None:
    return argument_at(optimizer, 0, "params") if isinstance(optimizer, ast.Call) else None


def is_alone(facts: Facts, optimizer: ast.AST) -> bool:
    """Whether an optimizer trains nothing else; what nothing is known of as a whole may be a model's."""
    given = _given(facts.source(optimizer))
    return given is not None and any(_among(facts, given)) and not facts.models_of.get(optimizer)


def beside_a_model(facts: Facts, optimizers: Iterable[ast.AST]) -> tuple[ast.AST, str, str] | None:
    """An optimizer that only trains a tensor of no model, beside others that train one: the reason and the way out."""
    for origin in sorted(optimizers, key=start_of):
        if is_alone(facts, origin):
            tensor = ast.unparse(strangers(facts, origin)[0])
            why = f"an optimizer trains `{tensor}`, which belongs to no model, where another one trains the model"
            way = f"change `{tensor}` by arithmetic on its gradient, without an optimizer of its own"
            return facts.source(origin), why, way
    return None


def trained_alone(facts: Facts, program: Program) -> list[ast.expr]:
    """What the optimizers of a program train beside models."""
    origins = [origin for named in program.optimizers for origin in named.origins]
    return [stranger for origin in origins for stranger in strangers(facts, origin)]


def _among(facts: Facts, given: ast.expr, depth: int = 4) -> Iterator[ast.expr]:
    """The tensors among the parameters that are written out: in lists, in groups, in sums of lists, behind a name."""
    if isinstance(given, (ast.List, ast.Tuple)):
        for element in given.elts:
            if isinstance(element, (ast.Starred, ast.Dict)):
                yield from _among(facts, element, depth)
            elif not roles(facts.values(element)) & _SEEN and not _is_of_model(facts, element):
                yield element
    elif Role.TENSOR in roles(facts.values(given)) and isinstance(given, (ast.Name, ast.Attribute)):
        if Role.PARAMETERS not in roles(facts.values(given)):
            yield given
    elif depth:
        for part in _parts(facts, given):
            yield from _among(facts, part, depth - 1)


def _parts(facts: Facts, given: ast.expr) -> Sequence[ast.expr]:
    if isinstance(given, ast.Starred):
        return [given.value]
    if isinstance(given, ast.BinOp):
        return [given.left, given.right]
    if isinstance(given, ast.Dict):
        pairs = zip(given.keys, given.values, strict=True)
        return [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "params"]
    if isinstance(given, ast.Call):
        return given.args if facts.called(given) & _TOGETHER else []
    if isinstance(given, (ast.Name, ast.Attribute)):
        known = facts.once(Sources).given(given)
        written = (ast.List, ast.Tuple, ast.BinOp)
        return [each for each in known.expressions if isinstance(each, written)] if known.complete else []
    return []


def _is_of_model(facts: Facts, node: ast.expr, depth: int = 2) -> bool:
    """`net.fc.weight`, or a name for it."""
    inner = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        inner = inner.value
        if origins(facts.values(inner), Role.MODEL):
            return True
    known = facts.once(Sources).given(node).expressions if depth and isinstance(node, ast.Name) else ()
    return any(_is_of_model(facts, expression, depth - 1) for expression in known)


def _holds_tensor(facts: Facts, values: Values, depth: int) -> bool:
    """Whether a tensor is among the values, or lies in their lists and dictionaries, or what runs over such."""
    inner = (v.origin for v in values if depth and v.role in _HOLDING and v.origin is not None)
    held = (values for origin in inner for values in facts.holding(origin).values())
    return any(v.role is Role.TENSOR for v in values) or any(_holds_tensor(facts, each, depth - 1) for each in held)
