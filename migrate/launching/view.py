"""A converted notebook as statements in cells, and which of them several processes must run."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.syntax import first_line, last_line
from migrate.launching.alone import on_one_process
from migrate.launching.names import DEFINITIONS, bound, globals_of, mentioned, reached
from migrate.launching.refusal import NotStarted
from migrate.launching.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLASS = "Accelerator"
IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class Region:
    """The statements of one cell that several processes run."""

    cell: int
    statements: tuple[ast.stmt, ...]


@dataclass(eq=False)
class View:
    """The module that a converted notebook makes; `mark` begins the statements that part its cells."""

    content: str
    mark: str
    package: str  # which the accelerator comes from
    original: str  # the module before the conversion
    text: Text = field(init=False)

    def __post_init__(self) -> None:
        self.text = Text(self.content)

    @cached_property
    def cells(self) -> Mapping[ast.stmt, int]:
        """The number of the cell of each statement, in order; the borders are left out."""
        found: dict[ast.stmt, int] = {}
        cell = 0
        for node in self.text.tree.body:
            value = node.value if isinstance(node, ast.Expr) else None
            if isinstance(value, ast.Constant) and str(value.value).startswith(f"{self.mark} "):
                cell = int(str(value.value).rpartition(" ")[2])
            else:
                found[node] = cell
        return found

    @cached_property
    def definitions(self) -> Mapping[str, ast.stmt]:
        """The functions and classes of the module, by name."""
        found: dict[str, ast.stmt] = {node.name: node for node in self.cells if isinstance(node, DEFINITIONS)}
        lambdas = [node for node in self.cells if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)]
        return {**found, **{name: node for node in lambdas for name in bound([node])}}

    @cached_property
    def uses(self) -> Mapping[str, set[str]]:
        """The names of the module that each of them uses."""
        return globals_of(self.definitions)

    @cached_property
    def maker(self) -> ast.Assign | None:
        """The statement that makes the accelerator, where that is at module level.

        Raises:
            NotStarted: there are several.
        """
        found = [node for node in self.cells if isinstance(node, ast.Assign) and _is_made(node.value)]
        if len(found) > 1:
            what = f"cell {self.cells[found[0]]} and cell {self.cells[found[1]]} make an accelerator each"
            raise NotStarted(
                what, "Start the training of one of them in a notebook of its own.", cell=self.cells[found[1]]
            )
        return found[0] if found else None

    @cached_property
    def accelerator(self) -> str:
        """The name of the accelerator; empty where only functions have one."""
        return ast.unparse(self.maker.targets[0]) if self.maker is not None else ""

    @cached_property
    def setup(self) -> tuple[ast.stmt, ...]:
        """The statements that each process needs before anything else, in order: the accelerator, what it prepares."""
        return tuple(node for node in self.cells if node is self.maker or (self.accelerator and self._is_setup(node)))

    def _is_setup(self, node: ast.stmt) -> bool:
        name = self.accelerator
        if isinstance(node, ast.If) and not node.orelse:
            return ast.unparse(node.test) in {f"not {name}.is_main_process", f"{name}.num_processes > 1"}
        return self.is_prepare(node) or self._is_device(node)

    def _is_device(self, node: ast.stmt) -> bool:
        """`device = accelerator.device`."""
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Attribute):
            value = value.value
        return value is not None and ast.unparse(value) == f"{self.accelerator}.device"

    @cached_property
    def devices(self) -> Mapping[str, ast.stmt]:
        """The names of the accelerator's device, each with the statement that gives it."""
        return {name: node for node in self.setup if self._is_device(node) for name in bound([node])}

    def kept_device(self, node: ast.stmt) -> list[str]:
        """The lines of a device as it was chosen before, where the notebook's own process only shows it."""
        names = [name for name, made in self.devices.items() if made is node]
        shown = {name for other in self.spoken for name in mentioned([other]) if name in names}
        return self.originals.get((self.cells[node], min(shown)), []) if shown else []

    @cached_property
    def originals(self) -> Mapping[tuple[int, str], list[str]]:
        """The lines that gave a name its value before the conversion, by cell and name."""
        before = View(self.original, self.mark, self.package, "")
        found: dict[tuple[int, str], list[str]] = {}
        for node, cell in before.cells.items():
            if isinstance(node, ast.Assign):
                found.update({(cell, name): before.text.source(node).split("\n") for name in bound([node])})
        return found

    def is_prepare(self, node: ast.stmt) -> bool:
        """Whether a statement prepares names, which keep them."""
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            return False
        return ast.unparse(node.value.func) == f"{self.accelerator}.prepare"

    @cached_property
    def bound_to_processes(self) -> set[str]:
        """The names that mean nothing without the accelerator: itself, its device, functions that use these."""
        own = {self.accelerator, CLASS} - {""}
        for node in self.setup:
            if isinstance(node, ast.Assign) and not self.is_prepare(node):
                own |= bound([node])
        return own | {name for name in self.definitions if reached([name], self.uses) & own}

    @cached_property
    def spoken(self) -> Mapping[ast.stmt, list[str]]:
        """Statements that only print or write by way of the accelerator, as lines that do without it."""
        found: dict[ast.stmt, list[str]] = {}
        imported = bound(node for node in self.cells if isinstance(node, IMPORTS))
        for node in self.cells:
            names = mentioned([node]) & self.bound_to_processes
            if not names or node in self.setup or node in self.definitions.values():
                continue
            if names == {self.accelerator} or (names <= {self.accelerator, *self.devices} and _only_shows(node)):
                if (lines := on_one_process(self.text, node, self.accelerator, imported)) is not None:
                    found[node] = lines
        return found

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """What is started, cell by cell: from the first statement that needs several processes to the last.

        Raises:
            NotStarted: a cell has such statements, and cannot be started.
        """
        every = list(self.cells)
        found = []
        for cell in dict.fromkeys(self.cells.values()):
            here = [node for node in every if self.cells[node] == cell]
            ours = [number for number, node in enumerate(here) if self._is_essential(node)]
            if ours:
                found.append(Region(cell, tuple(here[ours[0] : ours[-1] + 1])))
        return tuple(found)

    def _is_essential(self, node: ast.stmt) -> bool:
        if isinstance(node, IMPORTS) or node in self.definitions.values() or node in self.setup or node in self.spoken:
            return False
        return bool(mentioned([node]) & self.bound_to_processes)

    def after(self, region: Region) -> Sequence[ast.stmt]:
        """The statements below a region."""
        last = first_line(region.statements[-1])
        return [node for node in self.cells if first_line(node) > last]

    def shares_a_line(self, node: ast.stmt) -> bool:
        """Whether another statement stands on the first or the last line of one."""
        ends = {first_line(node), last_line(node)}
        return any(other is not node and ends & {first_line(other), last_line(other)} for other in self.text.tree.body)


def _only_shows(node: ast.stmt) -> bool:
    """`print("Device:", device)`, and `device` alone, which a notebook shows."""
    if not isinstance(node, ast.Expr):
        return False
    value = node.value
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] == "print" and not any(
            isinstance(inner, ast.Call) for argument in value.args for inner in ast.walk(argument)
        )
    return isinstance(value, ast.Name)


def _is_made(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == CLASS
