"""Objects that would keep the accelerator, and are saved or copied as a whole: `pickle.dump(trainer, file)`.

On several processes the file would hold wrappers, which only a process of a group can load.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Class, Function
from migrate.programs.program import Refusal
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.program import Program

_SAVING = frozenset("pickle.dump pickle.dumps cloudpickle.dump dill.dump joblib.dump torch.save".split())
_LISTING = frozenset("builtins.vars builtins.dict copy.copy copy.deepcopy".split())


def saved_whole(facts: Facts, program: Program) -> Iterator[Refusal]:
    """Where the object of a home that is its `__init__` is saved, in whatever file."""
    yield from _holders_saved(facts, program)
    home = program.home
    owner = home.owner if isinstance(home, Function) and home.sets_up else None
    if owner is None:
        return
    for use in facts.calls_anywhere:
        if facts.called(use.node) & _SAVING and any(_is_one(facts, each, owner) for each in _put_in(facts, use.node)):
            yield Refusal(
                use.node,
                "MIG115",
                f"`{ast.unparse(use.node)}` saves an object of {owner.name} as a whole, with the accelerator that it "
                "would keep and the prepared models",
                "save what it has learnt, the state_dict() of its model, and make the object anew to load that",
            )


def _holders_saved(facts: Facts, program: Program) -> Iterator[Refusal]:
    """The settings, or another object, that prepare gives what is prepared: `args.model`."""
    named = (*program.models, *program.optimizers, *program.loaders)
    holders = {holder for each in named if each.unit is None and "." in each.target for holder in each.holders}
    for use in facts.calls_anywhere if holders else ():
        if facts.called(use.node) & _SAVING and any(_holds(facts, each, holders) for each in _put_in(facts, use.node)):
            yield Refusal(
                use.node,
                "MIG115",
                f"`{ast.unparse(use.node)}` saves as a whole what holds the prepared objects",
                "save what has been learnt, the state_dict() of the model, and the settings without it",
            )


def _put_in(facts: Facts, save: ast.Call) -> Iterator[ast.expr]:
    """What is put into a file as a whole: an object, all that it holds (`vars(self)`), or what literals list."""
    waiting, seen = save.args[:1], set[ast.expr]()
    while waiting:
        node = waiting.pop()
        seen.add(node)
        behind = _inside(facts, node)
        yield from () if behind else (node,)
        waiting += [each for each in behind if each not in seen]


def _inside(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """The objects whose attributes an expression has all of, and what a literal or a copy is made of."""
    match node:
        case ast.Attribute(value=inner, attr="__dict__") | ast.Call(func=ast.Attribute(value=inner, attr="copy")):
            return [inner]
        case ast.Call(args=[inner]) if facts.called(node) & _LISTING:
            return [inner]
        case ast.DictComp(value=ast.Name(), generators=[ast.comprehension(iter=ast.Call(func=items), ifs=[])]):
            return [items.value] if isinstance(items, ast.Attribute) and items.attr == "items" else []
        case ast.Dict(values=values):
            return values
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return elements
        case ast.Name() if not origins(facts.values(node), Role.HOLDER, Role.INSTANCE):
            return list(facts.once(Sources).given(node).expressions)
    return []


def _holds(facts: Facts, node: ast.expr, holders: set[ast.AST]) -> bool:
    """Whether an expression is one of some objects, or has one inside; the state of one is none."""
    values = facts.values(node)
    found = [origins(values, role) | facts.inside(values, role) for role in (Role.HOLDER, Role.INSTANCE)]
    return not holders.isdisjoint(set().union(*found))


def _is_one(facts: Facts, node: ast.expr, owner: Class) -> bool:
    """Whether an expression may be an object of a class, or of one derived from it, that is no model."""
    return any(
        isinstance(value.unit, Class) and value.unit.is_related(owner) and value.role not in (Role.CLASS, Role.MODEL)
        for value in facts.values(node)
    )
