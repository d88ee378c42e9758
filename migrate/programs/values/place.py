"""What a number says of where a process stands: its rank, how many there are, how many GPUs the machine has.

A quantity is followed back through names, parameters, attributes and functions of the project to a library call, an
environment variable that launchers set, or an argument that `init_process_group` and `spawn` take for it. Constants
that a program uses for "there is only one process" (rank 0 or -1, one process) do not stand in the way.
"""

from __future__ import annotations

import ast
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import TABLES, distributed
from migrate.analysis.known.table import Makes
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import argument_at, same
from migrate.analysis.texts import text_of
from migrate.analysis.units import Function
from migrate.programs.values.sources import by_attribute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.values.sources import Sources


class Quantity(str, Enum):
    """What a number counts."""

    RANK = "rank"
    LOCAL_RANK = "rank on this machine"
    WORLD_SIZE = "number of processes"
    DEVICES = "number of GPUs"


_QUANTITIES = {
    Role.RANK: Quantity.RANK,
    Role.LOCAL_RANK: Quantity.LOCAL_RANK,
    Role.WORLD_SIZE: Quantity.WORLD_SIZE,
}
_ROUNDED = ({"builtins.int"}, {"builtins.float"})
DEVICE_COUNTS = frozenset({"torch.cuda.device_count", "torch.accelerator.device_count"})
#: What `torch.distributed.launch` passes to a script.
_OPTIONS = {"local_rank": Quantity.LOCAL_RANK}
#: What an accelerator tells.
_ASKED = {
    "process_index": Quantity.RANK,
    "local_process_index": Quantity.LOCAL_RANK,
    "num_processes": Quantity.WORLD_SIZE,
}
#: What a job of submitit tells.
_OF_JOB = {
    "global_rank": Quantity.RANK,
    "local_rank": Quantity.LOCAL_RANK,
    "num_tasks": Quantity.WORLD_SIZE,
}
_JOINED = {"rank": Quantity.RANK, "world_size": Quantity.WORLD_SIZE}
#: Values that stand for "only one process".
_ALONE = {
    Quantity.RANK: (0, -1),
    Quantity.LOCAL_RANK: (0, -1),
    Quantity.WORLD_SIZE: (1, 0, -1),
    Quantity.DEVICES: (0, 1),
}
DEEPEST = 8


def remainder(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """What is divided by what in `rank % n`, which some write as `rank - n * (rank // n)`."""
    if not isinstance(node, ast.BinOp):
        return None
    if isinstance(node.op, ast.Mod):
        return node.left, node.right
    product = node.right
    if not isinstance(node.op, ast.Sub) or not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
        return None
    for n, whole in ((product.left, product.right), (product.right, product.left)):
        if isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.FloorDiv):
            if same(whole.left, node.left) and same(whole.right, n):
                return node.left, n
    return None


class Places:
    """The quantities of a program."""

    def __init__(self, facts: Facts, sources: Sources) -> None:
        self._facts = facts
        self._sources = sources
        self._seen: dict[tuple[ast.expr, int], tuple[list[Quantity | None], set[object]]] = {}

    def quantity(self, node: ast.expr, depth: int = DEEPEST) -> Quantity | None:
        """What an expression counts; None: it is not known, or it may count several things."""
        found, constants = self._found(node, depth)
        kinds = set(found)
        if len(kinds) != 1 or None in kinds:
            return None
        (kind,) = kinds
        return kind if kind is not None and constants <= set(_ALONE[kind]) else None

    def _found(self, node: ast.expr, depth: int) -> tuple[list[Quantity | None], set[object]]:
        """The quantities an expression may be (None: something else), and the constants."""
        if (node, depth) not in self._seen:
            self._seen[node, depth] = self._look(node, depth)
        return self._seen[node, depth]

    def _look(self, node: ast.expr, depth: int) -> tuple[list[Quantity | None], set[object]]:
        if (value := number(node)) is not None:
            return [], {value}
        if (direct := self._direct(node)) is not None:
            return [direct], set()
        if depth and self._is_own_device(node, depth - 1):
            return [Quantity.LOCAL_RANK], set()
        parts = [] if depth == 0 else list(self._behind(node))
        if not parts:
            return [None], set()
        found: list[Quantity | None] = []
        constants: set[object] = set()
        for part in parts:
            inner, numbers = self._found(part, depth - 1)
            if None in inner:
                return [None], set()
            found += inner
            constants |= numbers
        return found, constants

    def _behind(self, node: ast.expr) -> Iterator[ast.expr]:
        """The expressions that an expression has its value from; none where that is not all of them."""
        if isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.Call) and len(node.args) == 1 and self._facts.called(node) in _ROUNDED:
            yield node.args[0]
        elif self._sources.option(node) is None:
            given = self._sources.given(node)
            if given.complete:
                yield from given.expressions

    def _is_own_device(self, node: ast.expr, depth: int) -> bool:
        """`rank % torch.cuda.device_count()`: the index of the process's GPU, on machines that run one for each."""
        if (parts := remainder(node)) is None:
            return False
        rank, devices = (self.quantity(part, depth) for part in parts)
        return rank in (Quantity.RANK, Quantity.LOCAL_RANK) and devices is Quantity.DEVICES

    def _direct(self, node: ast.expr) -> Quantity | None:
        if isinstance(node, ast.Call):
            kinds = {_made_by(name) for name in self._facts.called(node)}
            if len(kinds) == 1 and None not in kinds:
                return kinds.pop()
        if (variable := self.variable(node)) is not None:
            return _QUANTITIES.get(distributed.ENVIRONMENT.get(variable, Role.UNKNOWN))
        if isinstance(node, ast.Attribute) and node.attr in _ASKED:
            if Role.ACCELERATOR in roles(self._facts.values(node.value)):
                return _ASKED[node.attr]
        if isinstance(node, ast.Attribute) and self.is_of_job(node):
            return _OF_JOB[node.attr]
        if isinstance(node, ast.Attribute) and (option := self._sources.option(node)) is not None:
            if (kind := self._of_options.get(option, _OPTIONS.get(node.attr))) is not None:
                return kind
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        key = (id(self._facts.unit(node)), text_of(node))
        # What a spawned function tells the process group says more than its place in the list of arguments.
        return self._joined.get(key) or self._spawned.get(key)

    def is_of_job(self, node: ast.expr) -> bool:
        """Whether an expression asks a job of submitit for the place of the process."""
        if not isinstance(node, ast.Attribute) or node.attr not in _OF_JOB:
            return False
        made = {value.origin for value in self._facts.values(node.value)}
        return bool(made) and all(
            isinstance(call, ast.Call) and bool(self._facts.called(call) & distributed.JOBS) for call in made
        )

    def variable(self, node: ast.expr) -> str | None:
        """The environment variable that an expression reads."""
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript) and "os.environ" in self._facts.names(node.value):
            key = node.slice
        elif isinstance(node, ast.Call) and self._facts.called(node) & {"os.environ.get", "os.getenv"} and node.args:
            key = node.args[0]
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None

    @cached_property
    def _of_options(self) -> dict[ast.Call, Quantity]:
        """`init_process_group(world_size=args.world_size)`, `nprocs=args.gpus`: options that nothing else gives."""
        assigned = by_attribute(self._facts)
        told = (*((each, Quantity.DEVICES) for _, each in self._started()), *self._told_to_group())
        return {
            option: kind
            for node, kind in told
            if isinstance(node, ast.Attribute) and node.attr not in assigned
            if (option := self._sources.option(node)) is not None
        }

    def _told_to_group(self) -> Iterator[tuple[ast.expr, Quantity]]:
        for use in self._facts.calls_anywhere:
            if self._facts.called(use.node) & distributed.PROCESS_GROUPS:
                for keyword in use.node.keywords:
                    if keyword.arg in _JOINED:
                        yield keyword.value, _JOINED[keyword.arg]

    @cached_property
    def _joined(self) -> dict[tuple[int, str], Quantity]:
        """`init_process_group(rank=x, world_size=y)`: what x and y are in that unit, and where it is given y."""
        found: dict[tuple[int, str], Quantity] = {}
        waiting = [*self._told_to_group()]
        while waiting:
            node, kind = waiting.pop()
            unit = self._facts.unit(node)
            if not isinstance(node, (ast.Name, ast.Attribute)) or (id(unit), ast.unparse(node)) in found:
                continue
            found[id(unit), ast.unparse(node)] = kind
            if kind is Quantity.WORLD_SIZE and isinstance(unit, Function) and isinstance(node, ast.Name):
                if node.id in unit.parameter_names:
                    waiting += [(given, kind) for given in self._sources.argument(unit, node.id).expressions]
        return found

    @cached_property
    def _spawned(self) -> dict[tuple[int, str], Quantity]:
        """The first parameter of a function that is started in several processes, and how many are: `nprocs=n`."""
        found: dict[tuple[int, str], Quantity] = {}
        for use in self._facts.calls_anywhere:
            if self._facts.called(use.node) & distributed.LAUNCHERS:
                started = argument_at(use.node, 0, "fn")
                for value in self._facts.values(started) if started is not None else ():
                    if isinstance(value.unit, Function) and value.unit.positional:
                        found[id(value.unit), value.unit.positional[0].arg] = Quantity.LOCAL_RANK
        for unit, several in self._started():
            found[id(unit), ast.unparse(several)] = Quantity.DEVICES
        return found

    def _started(self) -> Iterator[tuple[Unit, ast.Name | ast.Attribute]]:
        """`spawn(work, nprocs=n)`: how many processes are started, and where that is said."""
        for use in self._facts.calls_anywhere:
            if self._facts.called(use.node) & distributed.LAUNCHERS:
                several = argument_at(use.node, 2, "nprocs")
                if isinstance(several, (ast.Name, ast.Attribute)):
                    yield use.unit, several


def _made_by(name: str) -> Quantity | None:
    """What a library call gives."""
    row = TABLES.row(name)
    role = row.role if isinstance(row, Makes) else None
    return Quantity.DEVICES if name in DEVICE_COUNTS else _QUANTITIES.get(role) if role is not None else None


def number(node: ast.expr) -> object | None:
    """The constant number or text of an expression, -1 included."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand)
        return -inner if isinstance(inner, (int, float)) else None
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, (int, float, str))
        and not isinstance(node.value, bool)
    ):
        text = node.value
        return int(text) if isinstance(text, str) and text.lstrip("-").isdigit() else text
    return None
