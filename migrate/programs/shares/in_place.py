"""What a call puts into a tensor, an array or a list where it stands.

counts.index_add_(0, labels, ones)          center.mul_(0.9).add_(rows.mean(0))
np.add.at(matrix, (labels, guesses), 1)     np.add(total, rows, out=total)
heapq.heappush(hardest, (loss.item(), index))
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import is_in_place
from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import arguments
from migrate.programs.values.kept import is_place

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

#: What is changed so in a step and is no sum of anything: the batch itself, what is trained.
_OTHERS = FROM_LOADER | {Role.PARAMETERS, Role.MODEL, Role.OPTIMIZER}
_INTO_FIRST = frozenset(
    "heapq.heappush heapq.heappushpop heapq.heapreplace bisect.insort bisect.insort_left bisect.insort_right".split()
)


def put_in_place(facts: Facts, call: ast.Call) -> list[tuple[ast.expr, ast.expr]]:
    """The places that a call changes, each with what it is given to put there."""
    given = arguments(call)
    target = next((keyword.value for keyword in call.keywords if keyword.arg == "out"), None)
    if target is None and given and any(map(_is_into_first, facts.called(call))):
        target = given[0]
    if target is None:
        target = _changed(call)
    if target is None or facts.targets(call) or not is_place(target) or roles(facts.values(target)) & _OTHERS:
        return []
    return [(target, each) for each in given if each is not target]


def _is_into_first(name: str) -> bool:
    """Whether a function puts the rest of what it is given into the first."""
    return name in _INTO_FIRST or (name.startswith("numpy.") and name.endswith(".at"))


def _changed(call: ast.Call) -> ast.expr | None:
    """What a method with a trailing underscore is called on, through others of that kind."""
    if not isinstance(call.func, ast.Attribute) or not is_in_place(call.func.attr):
        return None
    of = call.func.value
    return _changed(of) if isinstance(of, ast.Call) else of
