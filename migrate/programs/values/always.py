"""Whether code runs in every run of a program."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_main_guard
from migrate.analysis.units import Module
from migrate.programs.reach.callees import upwards
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Container

    from migrate.analysis.facts import Facts


def is_always_run(
    facts: Facts, node: ast.AST, *, in_loops: bool = False, mains: Container[Module] | None = None
) -> bool:
    """Whether a call is made in every run: at the top level, or in functions that are called there.

    `in_loops`: also in loops, which are taken to run at least once. `mains`: the files that may be started; what others
    do under their main guard, to try themselves out, is done in no run of these.
    """

    def passes(here: ast.AST) -> bool:
        for above in facts.tree(here).up(here):
            if isinstance(above, (ast.If, ast.IfExp)) and not holds_by_default(facts, above.test):
                return False
            if mains is not None and is_main_guard(above) and facts.module(here) not in mains:
                return False
            if isinstance(above, ast.ExceptHandler) or (isinstance(above, (ast.For, ast.While)) and not in_loops):
                return False
        return True

    ways = upwards(facts, node, passes)
    return any(isinstance(facts.unit(each), Module) and passes(each) for each in ways)


def holds_by_default(facts: Facts, test: ast.expr) -> bool:
    """`if args.seed is not None` with a default, the main guard."""
    if "__name__" in ast.unparse(test):
        return True
    asked = test
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        if isinstance(test.ops[0], (ast.IsNot, ast.Gt, ast.GtE, ast.NotEq)):
            asked = test.left
    option = facts.once(Sources).option(asked)
    default = next((k.value for k in option.keywords if k.arg == "default"), None) if option is not None else None
    return isinstance(default, ast.Constant) and isinstance(default.value, int) and default.value > 0
