"""Where passes over loaders begin: where their iterators are made, which may be long before the loop.

`batches = iter(loader)`, and then `model.eval()` before `for batch in batches`: the runtime takes that for a pass of
the training. So it is where all batches are put into a list first, `steps = list(enumerate(loader))`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import line_of, walk
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts

#: What asks for the iterator of what it is given at once; a progress bar does so when a loop runs over it.
_AT_ONCE = frozenset(f"builtins.{name}" for name in "iter enumerate reversed zip map filter".split()) | {
    "itertools.islice",
    "itertools.cycle",
}
#: What takes all batches at once.
WHOLE = frozenset(f"builtins.{name}" for name in "list tuple set sorted".split())
_DEEPEST = 4


def iterators(facts: Facts, loop: ast.AST) -> Iterator[ast.Call]:
    """The calls that make the iterators which a loop takes batches from, other than in the loop itself."""
    return _made_outside(facts, list(walk(loop)))


def iterators_below(facts: Facts, loop: ast.AST) -> Iterator[ast.Call]:
    """The same, also of what the functions take that the loop calls: `next(batches)` of a global variable."""
    entered = (target for node in walk(loop).of(ast.Call) for target in facts.targets(node))
    return _made_outside(facts, [*walk(loop), *(node for unit in reached(facts, entered) for node in facts.own(unit))])


def _made_outside(facts: Facts, nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    inside = set(nodes)
    made = {
        origin: None
        for node in nodes
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        for origin in sorted(origins(facts.values(node), Role.ITERATOR, Role.CONTAINER), key=line_of)
    }
    for origin in made:
        if isinstance(origin, ast.Call) and origin not in inside and _begins(facts, origin):
            yield origin


def _begins(facts: Facts, call: ast.Call) -> bool:
    """Whether a call begins a pass over what it is given, or takes all of one: `list(loader)`."""
    names = facts.called(call)
    return bool(names & _AT_ONCE) or (bool(names & WHOLE) and _goes_over(facts, call, _DEEPEST))


def _goes_over(facts: Facts, call: ast.Call, depth: int) -> bool:
    """Whether an iterator, or a list, is one over a loader: `enumerate(loader)`, `tqdm(enumerate(loader))`."""
    values = frozenset(value for argument in call.args for value in facts.values(argument))
    if any(value.role is Role.LOADER for value in values):
        return True
    calls = (origin for origin in origins(values, Role.ITERATOR) if isinstance(origin, ast.Call))
    return depth > 0 and any(_goes_over(facts, each, depth - 1) for each in calls)
