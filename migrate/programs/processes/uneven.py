"""Steps of which each process takes as many as its own batch says: `for row in x[y > 0]: model(row).backward()`.

How large a batch is, is the same for all of them; how many of its rows are chosen, or how many labels it has, is not.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.syntax import COMPREHENSIONS, FUNCTIONS, walk
from migrate.programs.processes.junctions import iterated
from migrate.programs.program import Refusal
from migrate.programs.values.content import depends_on_batch
from migrate.programs.values.fillings import Fillings
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program

_DEEPEST = 5  # names between a loop and what it runs over
_CHOOSING = frozenset("unique unique_consecutive nonzero masked_select argwhere".split())
_SETS = frozenset({"builtins.set", "builtins.frozenset", "builtins.filter", "collections.Counter"})


def uneven_steps(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Loops inside of a step that take steps, as many as the process's own batch says."""
    told: set[ast.AST] = set()
    for loop in program.training:
        for node in walk(loops.taking(loop.node)) if loop.loaders else ():
            for over in iterated(node):
                if node not in told and (loops.trains(node) or loops.updates.reached(node)):
                    if _is_uneven(facts, loop, over, _DEEPEST):
                        told.add(node)
                        why = f"each process takes as many steps here as `{ast.unparse(over)}` has for its own batch"
                        way = "add the losses up in the loop, and call backward and step once, after it"
                        yield Refusal(
                            node, "MIG122", f"{why}: the others would wait for those that one of them has more", way
                        )


def _is_uneven(facts: Facts, loop: LoopFact, node: ast.expr, depth: int) -> bool:
    """Whether how many items there are goes by what a batch holds."""
    if not depth:
        return False
    if isinstance(node, ast.Name):
        given = facts.once(Sources).given(node).expressions
        return any(_is_uneven(facts, loop, each, depth - 1) for each in given) or _is_filled(facts, loop, node)
    if isinstance(node, ast.Subscript):
        return _is_mask(facts, loop, node.slice, depth) or _is_uneven(facts, loop, node.value, depth - 1)
    if isinstance(node, ast.Call):
        return _is_uneven_call(facts, loop, node, depth)
    if isinstance(node, (ast.SetComp, ast.DictComp)) and depends_on_batch(facts, loop, node):
        return True
    if isinstance(node, COMPREHENSIONS):
        tests = [test for generator in node.generators for test in generator.ifs]
        over = [generator.iter for generator in node.generators]
        return any(depends_on_batch(facts, loop, test) for test in tests) or any(
            _is_uneven(facts, loop, each, depth - 1) for each in over
        )
    return False


def _is_uneven_call(facts: Facts, loop: LoopFact, node: ast.Call, depth: int) -> bool:
    names, is_own = facts.called(node), depends_on_batch(facts, loop, node)
    if names & (known.UNEVEN | _SETS):
        return is_own
    if isinstance(node.func, ast.Attribute) and not facts.targets(node):
        if node.func.attr in _CHOOSING:
            return is_own
        if not names:  # `labels.tolist()`, `groups.items()`
            return _is_uneven(facts, loop, node.func.value, depth - 1)
    is_passing = bool(names & known.PASSING) or "builtins.zip" in names
    return is_passing and any(_is_uneven(facts, loop, each, depth - 1) for each in node.args)


def _is_mask(facts: Facts, loop: LoopFact, index: ast.expr, depth: int) -> bool:
    """Whether an index chooses any number of items, by what a batch holds."""
    is_logic = isinstance(getattr(index, "op", None), (ast.Invert, ast.BitAnd, ast.BitOr))
    is_made = isinstance(index, ast.Call) and isinstance(index.func, ast.Attribute) and index.func.attr in known.MASKS
    if isinstance(index, ast.Compare) or is_logic or is_made:
        return depends_on_batch(facts, loop, index)
    given = facts.once(Sources).given(index).expressions if isinstance(index, ast.Name) and depth else ()
    return any(_is_mask(facts, loop, each, depth - 1) for each in given)


def _is_filled(facts: Facts, loop: LoopFact, node: ast.Name) -> bool:
    """Whether a container is given some items only where a batch says so, or under what the batch holds."""
    for filling in facts.once(Fillings).of(node):
        for above in facts.tree(filling).up(filling):
            if above is loop.node or isinstance(above, FUNCTIONS):
                break
            if isinstance(above, ast.If) and depends_on_batch(facts, loop, above.test):
                return True
        targets = filling.targets if isinstance(filling, ast.Assign) else []
        keys = [to.slice for to in targets if isinstance(to, ast.Subscript)]
        if isinstance(filling, ast.Call) and getattr(filling.func, "attr", "") == "setdefault":
            keys = filling.args[:1]
        if any(depends_on_batch(facts, loop, key) for key in keys):
            return True
    return False
