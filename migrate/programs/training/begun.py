"""Where passes over loaders begin: where their iterators are made, which may be long before the loop.

`batches = iter(loader)`, and then `model.eval()` before `for batch in batches`: the runtime takes that for a pass of
the training.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import line_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

#: What asks for the iterator of what it is given at once; a progress bar does so when a loop runs over it.
_AT_ONCE = frozenset(f"builtins.{name}" for name in "iter enumerate reversed zip map filter".split()) | {
    "itertools.islice",
    "itertools.cycle",
}


def iterators(facts: Facts, loop: ast.AST) -> Iterator[ast.Call]:
    """The calls that make the iterators which a loop takes batches from, other than in the loop itself."""
    inside = set(walk(loop))
    made = {
        origin: None
        for node in walk(loop)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        for origin in sorted(origins(facts.values(node), Role.ITERATOR), key=line_of)
    }
    for origin in made:
        if isinstance(origin, ast.Call) and origin not in inside and facts.called(origin) & _AT_ONCE:
            yield origin
