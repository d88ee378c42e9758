"""Where a process would go its own way by its own batch, and how all of them decide together instead.

`if torch.isnan(loss): continue`: one process goes on alone, and the others wait for it in backward for ever. All skip
the step if one of them would, and train only if all of them would: `if accelerator.gather(torch.isnan(loss)).any():`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import FUNCTIONS, walk
from migrate.programs.program import Refusal
from migrate.programs.training.in_step import made_from
from migrate.programs.values.numbers import is_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program

_LEAVING = (ast.Break, ast.Continue, ast.Return)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A condition on which all processes have to agree; it holds if it holds for one of them, or for all."""

    test: ast.expr
    for_one: bool
    is_tensor: bool  # else it is a Python value

    @property
    def word(self) -> str:
        """`any` or `all`."""
        return "any" if self.for_one else "all"


def agreements(facts: Facts, loops: Loops, program: Program) -> list[Agreement]:
    """The conditions on which the processes must agree, where they can."""
    found = _decisions(facts, loops, program)
    return [
        Agreement(node.test, for_one, _is_tensor(facts, node.test)) for node, for_one in found if for_one is not None
    ]


def parting_ways(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Conditions on which they cannot agree: they are not asked by all processes, or both sides matter."""
    for node, for_one in _decisions(facts, loops, program):
        if for_one is None:
            yield Refusal(
                node,
                "MIG122",
                f"what follows from `{ast.unparse(node.test)}` depends on the process's own batch: processes would "
                "part ways, and not all of them come here",
                "ask for the condition at the top of the loop over the batches, in an `if` of its own",
            )


def depends_on_batch(facts: Facts, loop: LoopFact, node: ast.AST) -> bool:
    """Whether an expression is made from what a process's own batches hold."""
    return made_from(facts, loop.loaders, node)


def _decisions(facts: Facts, loops: Loops, program: Program) -> list[tuple[ast.If, bool | None]]:
    """The tests by which a process would part, each with whether one process is enough; None: they cannot agree."""
    found: dict[ast.If, bool | None] = {}
    for loop in program.training:
        units = [unit.node for unit in loops.updates.functions(loop.node) if loops.trains(unit.node)]
        for root in (loop.node, *units):
            for node in walk(root):
                if isinstance(node, ast.If) and node not in found and depends_on_batch(facts, loop, node.test):
                    sides = [_parts(facts, loops, loop, block) for block in (node.body, node.orelse)]
                    if any(sides):
                        found[node] = _for_one(facts, loops, loop, node, sides)
    return list(found.items())


def _parts(facts: Facts, loops: Loops, loop: LoopFact, block: list[ast.stmt]) -> str:
    """Whether a branch leaves the step ("leaves"), or takes it ("trains")."""
    for statement in block:
        if loops.trains(statement) or loops.updates.reached(statement):
            return "trains"
    return "leaves" if any(_leaves(facts, loops, inner) for s in block for inner in _inside(s)) else ""


def _inside(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement with all that is in it, without the functions that it defines."""
    if isinstance(statement, FUNCTIONS):
        return
    yield statement
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield from _inside(child)
        elif isinstance(child, ast.ExceptHandler):
            for inner in child.body:
                yield from _inside(inner)


def _leaves(facts: Facts, loops: Loops, node: ast.AST) -> bool:
    """Whether a statement leaves what all processes do together, and not only a loop in between."""
    if isinstance(node, ast.Return) or not isinstance(node, _LEAVING):
        return isinstance(node, ast.Return)
    left = next(facts.tree(node).loops(node), None)
    return left is not None and loops.trains(left)


def _for_one(facts: Facts, loops: Loops, loop: LoopFact, node: ast.If, sides: list[str]) -> bool | None:
    if not _is_common(facts, loops, loop, node) or sides[0] == sides[1] == "trains":
        return None
    if "trains" in sides:
        return sides[1] == "trains"
    if sides[0] == sides[1]:
        return None
    return sides[0] == "leaves"


def _is_common(facts: Facts, loops: Loops, loop: LoopFact, node: ast.If) -> bool:
    """Whether all processes come to a test in each step."""
    for above in facts.tree(node).up(node):
        if above is loop.node or isinstance(above, FUNCTIONS):
            return True
        if isinstance(above, (ast.If, ast.While)) and depends_on_batch(facts, loop, above.test):
            return False
        if isinstance(above, ast.For) and depends_on_batch(facts, loop, above.iter):
            return False
        if isinstance(above, ast.ExceptHandler):
            return False
    return True


def _is_tensor(facts: Facts, test: ast.expr) -> bool:
    """Whether a test is a tensor, which one collective call gathers; else it is asked for its truth."""
    if not isinstance(test, ast.Call) or is_number(facts, test) is True:
        return False
    if isinstance(test.func, ast.Attribute) and test.func.attr in ("any", "all") and not test.args:
        return isinstance(test.func.value, ast.Call) and _is_tensor(facts, test.func.value)
    is_torch = any(name.startswith("torch.") for name in facts.called(test))
    return is_torch and bool(roles(facts.values(test)) & (FROM_LOADER | {Role.TENSOR}))
