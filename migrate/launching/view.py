"""A converted notebook as statements in cells, and which of them several processes must run."""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.syntax import first_line, last_line
from migrate.launching.alone import on_one_process
from migrate.launching.methods import needing
from migrate.launching.names import DEFINITIONS, bound, given, globals_of, mentioned
from migrate.launching.refusal import NotStarted
from migrate.launching.text import INDENT, Text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from migrate.launching.methods import Needing

CLASS = "Accelerator"
SEED = "set_seed"
IMPORTS = (ast.Import, ast.ImportFrom)
_NUMBER = re.compile(r"\bcuda:\d+")
_NUMBERED = re.compile(r"\bcuda:(?!\d)|[\"']cuda[\"'],")  # which is computed: `f"cuda:{gpu}"`, `device("cuda", gpu)`


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
    quiet: frozenset[str] = frozenset()  # functions that ask the accelerator nothing, as the notebook has them
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

    @cached_property
    def seeds(self) -> frozenset[ast.stmt]:
        """What has all processes draw the same, which they do: the runtime's go on from where the notebook stands."""
        if self.package != "runtime":
            return frozenset()
        return frozenset(node for node in self.setup if isinstance(node, ast.If) and SEED in mentioned([node]))

    @cached_property
    def unneeded(self) -> set[str]:
        """The names that nothing but these uses."""
        others = (node for node in self.cells if node not in self.seeds)
        return mentioned(self.seeds) & {SEED, "broadcast_object_list"} - mentioned(others)

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

    @cached_property
    def own_devices(self) -> Mapping[str, list[str]]:
        """Those of them that the notebook's own process can choose as it did before, with the lines that did."""
        found = {name: self.originals.get((self.cells[node], name), []) for name, node in self.devices.items()}
        return {
            name: [_NUMBER.sub("cuda", line) for line in lines]  # it is there where there is one GPU
            for name, lines in found.items()
            if lines and self._has_torch(self.devices[name]) and not _NUMBERED.search("\n".join(lines))
        }

    def _has_torch(self, node: ast.stmt) -> bool:
        above = [each for each in self.cells if isinstance(each, IMPORTS) and first_line(each) < first_line(node)]
        return "torch" in bound(above)

    @cached_property
    def own(self) -> tuple[ast.stmt, ...]:
        """What the notebook's own process runs, in order, apart from definitions."""
        started = {node for region in self.regions for node in region.statements}
        apart = {*started, *self.setup, *self.definitions.values()}
        return tuple(node for node in self.cells if node not in apart and not isinstance(node, IMPORTS))

    def kept_device(self, node: ast.stmt) -> list[str]:
        """The lines of a device as it was chosen before, where the notebook's own process uses it.

        Beside several GPUs, which the processes have, that is the CPU: there the notebook's own objects stay.
        """
        names = sorted(name for name, made in self.devices.items() if made is node)
        asked = [each for each in self.own if self.device_needed.is_asked(each)] if names else []
        if not asked:
            return []
        if names[0] not in self.own_devices or all(map(_only_shows, asked)):
            return self.originals.get((self.cells[node], names[0]), [])
        return [
            *self.own_devices[names[0]],
            "if torch.cuda.device_count() > 1:",
            f'{INDENT}{names[0]} = torch.device("cpu")',
        ]

    @cached_property
    def device_needed(self) -> Needing:
        """What works on the accelerator's device."""
        return needing(self.text.tree, self.definitions, self.uses, self.devices)

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """The names that are imported, each with the package that it comes from."""
        found: dict[str, str] = {}
        for node in self.cells:
            if isinstance(node, IMPORTS):
                of = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
                for alias in node.names:
                    found[(alias.asname or alias.name).partition(".")[0]] = (of or alias.name).partition(".")[0]
        return found

    @cached_property
    def originals(self) -> Mapping[tuple[int, str], list[str]]:
        """The lines that gave a name its value before the conversion, by cell and name, if what they call is there."""
        before = View(self.original, self.mark, self.package, "")
        there = bound(self.cells) | set(dir(builtins))
        choices = {
            node: cell for node, cell in before.cells.items() if isinstance(node, ast.Assign) or _only_assigns(node)
        }
        made: dict[tuple[int, str], list[ast.stmt]] = {}
        for node, cell in choices.items():
            for name in bound([node]):
                made.setdefault((cell, name), []).append(node)
        kept = {ast.dump(node) for node in self.cells}
        gone = [node for node in choices if ast.dump(node) not in kept]
        whole = {key: _with_what_they_read(nodes, gone) for key, nodes in made.items()}
        return {
            key: [line for node in nodes for line in before.text.source(node).split("\n")]
            for key, nodes in whole.items()
            if mentioned(nodes) - bound(nodes) <= there
        }

    @cached_property
    def neighbours(self) -> frozenset[tuple[str, str]]:
        """The lines that followed each other before the conversion."""
        lines = self.original.split("\n")
        return frozenset(itertools.pairwise(lines))

    def is_prepare(self, node: ast.stmt) -> bool:
        """Whether a statement prepares names, which keep them."""
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            return False
        return ast.unparse(node.value.func) == f"{self.accelerator}.prepare"

    @cached_property
    def bound_to_processes(self) -> Needing:
        """What means nothing without the accelerator: itself, its device, functions and methods that use these."""
        own = {self.accelerator, CLASS}
        for node in self.setup:
            if isinstance(node, ast.Assign) and not self.is_prepare(node):
                own |= bound([node]) - self.own_devices.keys()
        quiet = {name: self.uses[name] - {self.accelerator} for name in self.quiet}
        return needing(self.text.tree, self.definitions, {**self.uses, **quiet}, own)

    @cached_property
    def spoken(self) -> Mapping[ast.stmt, list[str]]:
        """Statements that only print or write by way of the accelerator, as lines that do without it."""
        found: dict[ast.stmt, list[str]] = {}
        chosen = {name for name, node in self.devices.items() if (self.cells[node], name) in self.originals}
        for node in self.cells:
            names = mentioned([node]) & self.bound_to_processes.names
            if not names or node in self.setup or node in self.definitions.values():
                continue
            if self.bound_to_processes.calls(node):
                continue
            if names == {self.accelerator} or (names <= {self.accelerator, *chosen} and _only_shows(node)):
                if (lines := on_one_process(self.text, node, self.accelerator, self.modules)) is not None:
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
        return self.bound_to_processes.is_asked(node)

    def after(self, region: Region) -> Sequence[ast.stmt]:
        """The statements below a region."""
        last = first_line(region.statements[-1])
        return [node for node in self.cells if first_line(node) > last]

    def ends_cell(self, region: Region) -> bool:
        """Whether nothing stands below a region in its cell."""
        return all(self.cells[node] != region.cell for node in self.after(region))

    def is_class(self, name: str) -> bool:
        """Whether a name is that of a class of the notebook."""
        return isinstance(self.definitions.get(name), ast.ClassDef)

    def classes(self, names: Collection[str]) -> set[str]:
        """The classes that use one of some names, in a method at least: who has objects of them is not seen."""
        return {name for name in self.uses if self.is_class(name) and self.uses[name] & {*names}}

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


def _only_assigns(node: ast.stmt) -> bool:
    """`if torch.cuda.is_available(): device = ...`, `else: device = ...`."""
    if not isinstance(node, ast.If):
        return False
    within = (*node.body, *node.orelse)
    return all(isinstance(each, ast.Assign) or _sets_device(each) or _only_assigns(each) for each in within)


def _sets_device(node: ast.stmt) -> bool:
    """`torch.cuda.set_device(0)`, which goes with the choice of a device."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).endswith(".set_device")


def _with_what_they_read(nodes: Sequence[ast.stmt], gone: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Some statements with those which the conversion took away, and which gave what they read: `args.device = ...`."""
    found = list(nodes)
    for node in reversed(gone):
        if node not in found and first_line(node) < first_line(found[-1]) and given([node]) & mentioned(found):
            found.append(node)
    return sorted(found, key=first_line)


def _is_made(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == CLASS
