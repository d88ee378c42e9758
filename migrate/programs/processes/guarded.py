"""What all processes must enter, and only some come to: it waits for the others for ever (contract E4).

Some come alone into a branch on the place of a process, past a `return`, `continue` or `break` that only others take,
into a function that an accelerator calls on one process, and one after the other into `main_process_first()`. Every
program that uses an accelerator is asked: what was there, and what a conversion made.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.known import accelerators
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import jumps
from migrate.programs.processes.branches import OPPOSITE, Branches, Side
from migrate.programs.processes.together import Joint, Together
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree

_LONE = {
    Side.MAIN: "only the main process",
    Side.OTHERS: "every process but the main one",
    Side.LOCAL_MAIN: "only the first process of each machine",
    Side.LOCAL_OTHERS: "every process but the first of each machine",
}
_ON_ONE = {
    "on_main_process": Side.MAIN,
    "on_local_main_process": Side.LOCAL_MAIN,
}


@dataclass(frozen=True, slots=True)
class Guarded:
    """Something that all must enter and not all come to: where, and what keeps which of them away."""

    joint: Joint
    why: str
    side: Side | None = None
    guard: ast.AST | None = None


def guarded(facts: Facts) -> list[Guarded]:
    """Everything of that kind in the named files; nothing in programs without an accelerator."""
    if not any(Role.ACCELERATOR in roles(facts.values(use.node)) for use in facts.calls_anywhere):
        return []
    check = _Check(facts)
    found: dict[ast.AST, Guarded] = {}
    for module in facts.editable:
        tree = facts.tree_of(module)
        for node in tree.nodes:
            for one in check.at(node, tree):
                if not _is_replaced(node, tree):
                    found.setdefault(one.joint.node, one)
    return _without_paired(facts, list(found.values()))


def _is_replaced(node: ast.AST, tree: Tree) -> bool:
    """Whether a node is in a function of which another one takes the name before anything reads it."""
    for above in (node, *tree.up(node)):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)) and not above.decorator_list:
            block = tree.block(above)
            for below in block[block.index(above) + 1 :]:
                if isinstance(below, type(above)) and below.name == above.name and not below.decorator_list:
                    return True
                if any(getattr(inner, "id", getattr(inner, "attr", None)) == above.name for inner in ast.walk(below)):
                    break
    return False


def _without_paired(facts: Facts, found: list[Guarded]) -> list[Guarded]:
    """Barriers that one side passes early and the other late, in branches side by side, meet."""
    passed: dict[int, Counter[Side]] = {}
    for one in found:
        if one.joint.is_barrier and one.side is not None and isinstance(one.guard, ast.If):
            passed.setdefault(_block_of(facts, one.guard), Counter())[one.side] += 1
    return [
        one
        for one in found
        if not (one.joint.is_barrier and one.side is not None and isinstance(one.guard, ast.If))
        or (counts := passed[_block_of(facts, one.guard)])[one.side] != counts[OPPOSITE[one.side]]
    ]


def _block_of(facts: Facts, statement: ast.If) -> int:
    return id(facts.tree(statement).block(statement))


class _Check:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._branches = facts.once(Branches)
        self._together = Together(facts, facts.once(Sources))

    def at(self, node: ast.AST, tree: Tree) -> Iterator[Guarded]:
        """What stands in a place that a node keeps processes away from."""
        if isinstance(node, ast.If):
            yield from self._of_if(node, tree)
        elif isinstance(node, ast.While):
            yield from self._alone(node.body, self._side(node.test, holds=True), node)
        elif isinstance(node, ast.IfExp):
            yield from self._sides(node, [node.body], [node.orelse])
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for position, test in enumerate(node.values[:-1]):
                yield from self._alone(node.values[position + 1 :], self._side(test, holds=True), node)
        elif isinstance(node, ast.With):
            yield from self._in_turns(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            side = next((s for decorator in node.decorator_list if (s := self._runs_on(decorator)) is not None), None)
            yield from self._alone(node.body, side, node)

    def _side(self, test: ast.expr, *, holds: bool) -> Side | None:
        """Which processes come to a side of a test, where that is only some."""
        meanings = self._branches.meanings(test)
        return next((s for m in meanings if (s := m.holds if holds else m.fails) in _LONE), None)

    def _of_if(self, node: ast.If, tree: Tree) -> Iterator[Guarded]:
        yield from self._sides(node, node.body, node.orelse)
        for body, other, holds in ((node.body, node.orelse, True), (node.orelse, node.body, False)):
            side = self._side(node.test, holds=holds)
            if side is None:
                continue
            for jump in jumps(body):
                if not any(isinstance(last, type(jump)) for last in other[-1:]):
                    yield from self._left(jump, node, side, tree)

    def _sides(self, node: ast.If | ast.IfExp, body: Sequence[ast.AST], orelse: Sequence[ast.AST]) -> Iterator[Guarded]:
        """Both sides of a test; where each comes to the same things, they meet."""
        holds = list(self._alone(body, self._side(node.test, holds=True), node))
        fails = list(self._alone(orelse, self._side(node.test, holds=False), node))
        if Counter(one.joint.what for one in holds) != Counter(one.joint.what for one in fails):
            yield from (*holds, *fails)

    def _alone(self, nodes: Iterable[ast.AST], side: Side | None, guard: ast.AST) -> Iterator[Guarded]:
        if side is None:
            return
        for joint in self._together.inside(nodes):
            yield Guarded(joint, f"{_LONE[side]} comes here (line {getattr(guard, 'lineno', 0)})", side, guard)

    def _left(self, jump: ast.stmt, branch: ast.If, side: Side, tree: Tree) -> Iterator[Guarded]:
        """What comes after a jump that only some take."""
        word = type(jump).__name__.lower()
        own = set(ast.walk(branch))  # who comes to what is in there is asked of its sides
        for joint in self._together.inside(tree.missed(branch, jump)):
            if joint.node not in own:
                yield Guarded(joint, f"{_LONE[side]} leaves by the `{word}` in line {jump.lineno}")
                return

    def _in_turns(self, node: ast.With) -> Iterator[Guarded]:
        """`with accelerator.main_process_first():` lets the others in when the main process is through."""
        for item in node.items:
            call = item.context_expr
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in accelerators.IN_TURNS
                and Role.ACCELERATOR in roles(self._facts.receiver(call))
            ):
                for joint in self._together.inside(node.body):
                    yield Guarded(joint, f"processes come here one after the other (line {node.lineno})")

    def _runs_on(self, decorator: ast.expr) -> Side | None:
        """`@accelerator.on_main_process`."""
        if isinstance(decorator, ast.Attribute) and decorator.attr in _ON_ONE:
            if Role.ACCELERATOR in roles(self._facts.values(decorator.value)):
                return _ON_ONE[decorator.attr]
        return None
