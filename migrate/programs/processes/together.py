"""What all processes must enter together: collectives, and calls of prepared objects.

A prepared model sends gradients and buffers, a prepared loader takes a step on every process, an optimizer that steps
on one process alone leaves the models apart. The model inside of the wrapper may run anywhere.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import accelerators, distributed
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import FUNCTIONS, line_of, own_nodes
from migrate.programs.values.sources import Sources
from migrate.programs.values.takes import asked, begun, taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Function

_STEPS_BACK = 4  # from a name to what it was given, and so on


@dataclass(frozen=True, slots=True)
class Joint:
    """Something that all processes must enter: where, what it is, and whether it is nothing but a barrier."""

    node: ast.AST
    what: str
    is_barrier: bool = False


class Together:
    """Questions about what code makes all processes meet."""

    def __init__(self, facts: Facts, sources: Sources) -> None:
        self._facts = facts
        self._sources = sources
        self._of: dict[tuple[Function, bool], Joint | None] = {}

    def inside(self, nodes: Iterable[ast.AST], *, is_early: bool = False) -> Iterator[Joint]:
        """What is entered when these statements or expressions run, through the functions that they call, too.

        `is_early`: they run before anything is prepared, so only collectives are.
        """
        for root in nodes:
            for node in [] if isinstance(root, (*FUNCTIONS, ast.ClassDef)) else _inside(root):
                if (joint := self._joint(node, is_early)) is not None:
                    yield joint
                elif isinstance(node, ast.Call):
                    yield from self._called(node, is_early or self._is_before(node))

    def _called(self, call: ast.Call, is_early: bool) -> Iterator[Joint]:
        for unit in self._facts.targets(call):
            if (joint := self._in_function(unit, is_early)) is not None:
                line = line_of(joint.node)
                yield Joint(call, f"{ast.unparse(call.func)}(), which comes to {joint.what} in line {line}")
                return

    def _in_function(self, unit: Function, is_early: bool) -> Joint | None:
        key = unit, is_early
        if key not in self._of:
            self._of[key] = None  # while it is being looked into
            self._of[key] = next(self.inside(unit.body, is_early=is_early), None)
        return self._of[key]

    def _joint(self, node: ast.AST, is_early: bool) -> Joint | None:
        if isinstance(node, ast.Call) and (named := self._collective(node)) is not None:
            return named
        if is_early:
            return None
        if isinstance(node, (ast.For, ast.AsyncFor)):
            if self._facts.loaders(self._facts.values(node.iter)) & self._prepared:
                return Joint(node, f"the loop over {ast.unparse(node.iter)}")
        elif isinstance(node, ast.Call):
            if self._is_prepared(self._facts.values(node.func), Role.MODEL, node.func, node):
                return Joint(node, f"the prepared {ast.unparse(node.func)}()")
            if self._takes(node) and not self._is_before(node):
                return Joint(node, f"{ast.unparse(node)} of a prepared loader")
            if isinstance(node.func, ast.Attribute) and node.func.attr == "step":
                if self._is_prepared(self._facts.receiver(node), Role.OPTIMIZER, node.func.value, node):
                    return Joint(node, f"{ast.unparse(node.func)}()")
        return None

    def _takes(self, node: ast.Call) -> bool:
        """Whether a call takes a batch of a prepared loader, or begins a pass: the inner one of next(iter(loader))."""
        is_inner = not isinstance(asked(self._facts, node), ast.Call)
        loaders = taken(self._facts, node) | begun(self._facts, node) if is_inner else set()
        return bool(loaders & self._prepared)

    def _collective(self, node: ast.Call) -> Joint | None:
        """`accelerator.gather()`, `torch.distributed.all_reduce()`, `metric.compute()` of torchmetrics."""
        written = f"{ast.unparse(node.func)}()"
        if names := self._facts.called(node) & (distributed.COLLECTIVES | accelerators.COLLECTIVE_FUNCTIONS):
            return Joint(node, written, is_barrier=all(name.endswith("barrier") for name in names))
        if not isinstance(node.func, ast.Attribute):
            return None
        receiver = self._facts.receiver(node)
        if Role.ACCELERATOR in roles(receiver) and node.func.attr in accelerators.COLLECTIVES:
            return Joint(node, written, is_barrier=node.func.attr in accelerators.BARRIERS)
        if node.func.attr == "compute" and any(
            value.role is Role.METRIC and value.name.startswith(("torchmetrics.", "ignite.")) for value in receiver
        ):
            return Joint(node, written)
        return None

    def _is_prepared(self, values: Values, role: Role, written: ast.expr, node: ast.Call) -> bool:
        mine = origins(values, role)
        if not mine or not mine <= self._prepared or self._is_inner(written, _STEPS_BACK):
            return False
        return not self._is_before(node)

    def _is_before(self, node: ast.Call) -> bool:
        """Whether a call stands above one of prepare, in the same function."""
        preparing = (call for call in self._preparing if self._facts.unit(call) is self._facts.unit(node))
        return any(node.lineno < call.lineno for call in preparing)

    def _is_inner(self, node: ast.expr, depth: int) -> bool:
        """Whether an expression may be the model inside of the wrapper, or a copy."""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "unwrap_model":
                return True
            if "copy.deepcopy" in self._facts.called(node):
                return True
        if isinstance(node, ast.Attribute) and node.attr == "module":
            return True
        return depth > 0 and any(self._is_inner(given, depth - 1) for given in self._sources.given(node).expressions)

    @cached_property
    def _preparing(self) -> list[ast.Call]:
        """The calls of prepare."""
        return [
            use.node
            for use in self._facts.calls_anywhere
            if isinstance(use.node.func, ast.Attribute)
            and use.node.func.attr in accelerators.PREPARES
            and Role.ACCELERATOR in roles(self._facts.receiver(use.node))
        ]

    @cached_property
    def _prepared(self) -> set[ast.AST]:
        """Where the objects were made that an accelerator prepares."""
        given = (self._facts.values(argument) for call in self._preparing for argument in call.args)
        return {origin for values in given for origin in origins(values, Role.MODEL, Role.LOADER, Role.OPTIMIZER)}


def _inside(root: ast.AST) -> Iterator[ast.AST]:
    """A node and what stands in it, without the bodies of functions."""
    yield root
    yield from own_nodes(root)
