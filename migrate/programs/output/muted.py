"""Programs in which `print` is silent on all processes but one: `mute_others(accelerator.is_main_process)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import own_nodes
from migrate.programs.marker import is_main

if TYPE_CHECKING:
    from collections.abc import Container

    from migrate.analysis.units import Function
    from migrate.programs.conversion import Conversion
    from migrate.programs.output.voice import Voice


def overrides_print(node: ast.AST) -> bool:
    """`builtins.print = ...` in a function: it lets print be silent on the other processes."""
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(inner, ast.Assign)
        and len(inner.targets) == 1
        and isinstance(inner.targets[0], ast.Attribute)
        and inner.targets[0].attr == "print"
        for inner in node.body
    )


def is_muted(conversion: Conversion) -> bool:
    """Whether the program starts with that, under no condition."""
    start = conversion.program.start
    assert start is not None
    for use in conversion.uses:
        tree = conversion.facts.tree(use.node)
        is_plain = isinstance(tree.parents[use.node], ast.Expr) and len(use.node.args) == 1
        if use.unit is start and is_plain and is_main(use.node.args[0]):
            at_once = tree.parents[tree.statement(use.node)] in (getattr(start, "node", None), tree.root)
            if at_once and any(overrides_print(unit.node) for unit in conversion.facts.targets(use.node)):
                return True
    return False


def only_prints(
    conversion: Conversion,
    voice: Voice,
    unit: Function,
    seen: set[Function] | None = None,
    nowhere: Container[ast.AST] = (),
) -> bool:
    """Whether a function writes nothing but what it prints, and what goes `nowhere` on the other processes."""
    facts, seen = conversion.facts, set() if seen is None else seen
    seen.add(unit)
    for node in own_nodes(unit.node):
        if isinstance(node, ast.Call):
            if voice.outputs.writes(node) and node not in nowhere:
                return False
            inner = (target for target in facts.targets(node) if target not in seen)
            if not all(only_prints(conversion, voice, target, seen, nowhere) for target in inner):
                return False
    return True
