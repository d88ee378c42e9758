"""Classes on top of PyTorch's embeddings that look rows up by themselves, with what they have of their base.

    class Positions(nn.Embedding):
        def forward(self, x):
            return F.embedding(x, self.weight, self.padding_idx, self.max_norm, ...)

`self.max_norm` is what the constructor of the base was told: None, where nobody says anything of it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import argument_at
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

LIMIT = "max_norm"
#: Where the base is told it.
_BASES = {"torch.nn.Embedding": 3, "torch.nn.EmbeddingBag": 2}


def limits_of_base(facts: Facts, given: ast.expr) -> list[ast.expr] | None:
    """What the base of an object may have been told, of which `self.max_norm` is handed on; None: nobody knows."""
    if not isinstance(given, ast.Attribute) or given.attr != LIMIT:
        return None
    classes = [value.unit for value in facts.values(given.value)]
    found: list[ast.expr] = []
    for cls in classes:
        told = limits_told(facts, cls) if isinstance(cls, Class) else None
        if told is None:
            return None
        found += told
    return found if classes else None


def tables(facts: Facts) -> list[Class]:
    """The classes of the project that derive from an embedding and have methods."""
    owners = dict.fromkeys(unit.owner for unit in facts.functions if unit.owner is not None)
    return [cls for cls in owners if not cls.library_bases().isdisjoint(_BASES)]


def limits_told(facts: Facts, cls: Class) -> list[ast.expr] | None:
    """What the embedding that a class derives from may be told; None: nobody knows."""
    positions = [place for name, place in _BASES.items() if name in cls.library_bases()]
    if len(positions) != 1 or cls.is_open or _is_set_elsewhere(facts):
        return None
    makers = list(_making(facts, cls))
    inner = [init for each in cls.mro() if isinstance(init := _constructor(facts, each), Function)]
    calls = [*((call, positions[0] + _is_bare(call)) for init in inner for call in _handing_on(facts, init))]
    calls += [(call, positions[0] if not inner else len(call.args)) for call in makers]
    if not all(_is_plain(facts, call, is_maker=call in makers) for call, _ in calls):
        return None
    return [limit for call, place in calls if (limit := argument_at(call, place, LIMIT)) is not None]


def _is_set_elsewhere(facts: Facts) -> bool:
    """Whether something sets it: `table.max_norm = 1.0`."""
    nodes = (
        node for module in facts.modules for node in facts.tree_of(module).nodes if isinstance(node, ast.Attribute)
    )
    return any(node.attr == LIMIT and isinstance(node.ctx, ast.Store) for node in nodes)


def _constructor(facts: Facts, cls: Class) -> Function | None:
    nodes = (node for node in cls.node.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    return next((unit for node in nodes if (unit := facts.function(node)) is not None), None)


def _making(facts: Facts, cls: Class) -> Iterator[ast.Call]:
    """The calls that make an object of a class, or of one that derives from it."""
    for use in facts.calls_anywhere:
        made = (value.unit for value in facts.values(use.node.func) if value.role is Role.CLASS)
        if any(isinstance(unit, Class) and cls in unit.mro() for unit in made):
            yield use.node


def _handing_on(facts: Facts, init: Function) -> Iterator[ast.Call]:
    """`super().__init__(...)`, `nn.Embedding.__init__(self, ...)`."""
    for node in facts.own(init):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__":
            yield node


def _is_bare(call: ast.Call) -> bool:
    """Whether a constructor is called on its class: the object is its first argument."""
    return not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call))


def _is_plain(facts: Facts, call: ast.Call, *, is_maker: bool) -> bool:
    """Whether a call passes what is written there, or hands on what the constructor around it was passed."""
    unit = facts.unit(call)
    around = unit.node.args if isinstance(unit, Function) and not is_maker else None
    rest = around.vararg.arg if around is not None and around.vararg is not None else ""
    others = around.kwarg.arg if around is not None and around.kwarg is not None else ""
    stars = [each.value for each in call.args if isinstance(each, ast.Starred)]
    mappings = [each.value for each in call.keywords if each.arg is None]
    if is_maker and _spills(facts, call):
        return False
    return all(ast.unparse(each) == rest for each in stars) and all(ast.unparse(each) == others for each in mappings)


def _spills(facts: Facts, call: ast.Call) -> bool:
    """Whether a constructor with `*args` is given more than its parameters take."""
    inits = (unit for unit in facts.targets(call) if unit.node.args.vararg is not None)
    return any(len(call.args) > len(unit.positional) - 1 for unit in inits)
