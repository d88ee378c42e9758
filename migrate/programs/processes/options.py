"""Options of the command line, and of what a call makes of keywords: whether all processes have the same."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.roles import Role
from migrate.programs.values.sources import Sources, called_by_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from migrate.analysis.facts import Facts


def is_same_option(facts: Facts, node: ast.Attribute, same: Callable[[ast.expr], bool]) -> bool:
    """Whether an attribute of parsed arguments, or of what a call makes of keywords, is the same."""
    sources = facts.once(Sources)
    option = sources.option(node)
    if option is not None and not all(same(k.value) for k in option.keywords if k.arg == "default"):
        return False
    made = [v.origin for v in facts.values(node.value) if v.role is Role.HOLDER]
    given = [k.value for call in made if isinstance(call, ast.Call) for k in call.keywords if k.arg == node.attr]
    return all(map(same, given)) and all(_is_default(facts, field) for field in sources.fields(node))


def _is_default(facts: Facts, field: ast.expr) -> bool:
    """Whether an option of a class has a default that is the same."""
    calls = [call for call in ast.walk(field) if isinstance(call, ast.Call)]
    names = {name for call in calls for name in called_by_name(facts, call)}
    return not any(known.is_own(name) or name.startswith("random.") or known.draws(name) for name in names)
