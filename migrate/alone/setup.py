"""Functions that only find the process its place: `setup(rank, world_size)`, `init_distributed_mode(args)`."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.calls import BARRIERS, GROUPS, is_of_group
from migrate.alone.devices import names_rank
from migrate.analysis.known.devices import SET_DEVICE
from migrate.analysis.syntax import is_docstring, keyword_of
from migrate.analysis.units import Function
from migrate.programs.marker import ACCELERATOR
from migrate.programs.output.muted import overrides_print

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.pen import Pen
    from migrate.alone.world import World

#: Library functions that such a function may call.
_PLAIN = frozenset(
    """builtins.print builtins.int builtins.str builtins.len builtins.min builtins.max builtins.isinstance
    builtins.bool builtins.hasattr builtins.getattr os.environ.get os.getenv
    torch.cuda.device_count torch.cuda.is_available torch.accelerator.current_accelerator torch.accelerator.is_available
    torch.accelerator.device_count torch.distributed.get_default_backend_for_device torch.device datetime.timedelta
    subprocess.getoutput subprocess.check_output warnings.warn sys.exit builtins.exit socket.gethostname os.getpid
    torch.multiprocessing.set_start_method torch.multiprocessing.get_start_method time.sleep builtins.ValueError
    builtins.RuntimeError builtins.NotImplementedError""".split()
)
_METHODS = frozenset("format join split startswith endswith strip replace upper lower info debug warning".split())
_SIMPLE = (ast.Pass, ast.Return, ast.Raise, ast.Assert, ast.Global, ast.Import, ast.ImportFrom)


class Setups:
    """The functions of a project that only set up, or take down, a process group."""

    def __init__(self, world: World) -> None:
        self._world = world

    def is_gone(self, node: ast.stmt) -> bool:
        """Whether a definition is that of such a function, and all of its uses go with it."""
        return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node in self._gone

    def is_call(self, statement: ast.stmt) -> bool:
        """Whether a statement is a call of such a function."""
        value = getattr(statement, "value", None)
        if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(value, ast.Call):
            return False
        targets = self._world.facts.targets(value)
        return bool(targets) and all(target.node in self.idle for target in targets)

    def muting(self, statement: ast.stmt) -> str | None:
        """What of a call stays where the function does: that the other processes do not print."""
        call = getattr(statement, "value", None)
        if not isinstance(call, ast.Call) or not self.is_call(statement) or self._world.beside is None:
            return None
        for target in self._world.facts.targets(call):
            inner = [n for n in self._world.facts.own(target) if isinstance(n, ast.Call)]
            for unit in (unit for made in inner for unit in self._world.facts.targets(made)):
                if overrides_print(unit.node) and unit in self._world.beside.functions and len(unit.positional) == 1:
                    if (name := _beside(call.func, target, unit)) is not None:
                        return f"{name}({ACCELERATOR}.is_main_process)"
        return None

    def rewrite(self, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
        """`print(text, force=True)` was for a print that is muted on the other processes, and is not any more."""
        if not isinstance(node, ast.Call) or "builtins.print" not in self._world.facts.called(node):
            return None
        given = keyword_of(node, "force")
        if given is None or not any(map(overrides_print, self.idle)):
            return None
        pen.remove_argument(node, given)
        return [*node.args, *(each for each in node.keywords if each is not given)]

    @cached_property
    def _gone(self) -> set[ast.AST]:
        return {node for node in self.idle if not self._world.is_left(node)}

    @cached_property
    def idle(self) -> set[ast.AST]:
        """The functions that need not be called any more."""
        functions = [f for f in self._world.facts.functions if isinstance(f.node, ast.FunctionDef)]
        joining = [f for f in functions if f.module in self._world.modules and self._joins(f) and self._only(f)]
        muting = [f for f in functions if f.module in self._world.modules and overrides_print(f.node)]
        return {f.node for f in (*joining, *muting) if self._only_called(f)}

    def _joins(self, unit: Function) -> bool:
        return any(
            isinstance(node, ast.Call) and self._world.facts.called(node) & GROUPS
            for node in self._world.facts.own(unit)
        )

    def _only(self, unit: Function) -> bool:
        return all(self._is_plain(s) for s in unit.body) and all(map(self._is_known_call, self._calls(unit)))

    def _calls(self, unit: Function) -> Iterator[ast.Call]:
        for node in self._world.facts.own(unit):
            if isinstance(node, ast.Call):
                yield node

    def _is_plain(self, statement: ast.stmt) -> bool:
        if is_docstring(statement) or isinstance(statement, _SIMPLE):
            return True
        if isinstance(statement, ast.Expr):
            return isinstance(statement.value, ast.Call)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            value = statement.value
            return all(self._is_of_place(part, value) for target in targets for part in _elements(target))
        if isinstance(statement, ast.If):
            return all(map(self._is_plain, (*statement.body, *statement.orelse)))
        if isinstance(statement, ast.Try):
            handled = [s for handler in statement.handlers for s in handler.body]
            return all(map(self._is_plain, (*statement.body, *handled, *statement.orelse, *statement.finalbody)))
        return False

    def _is_of_place(self, target: ast.expr, value: ast.expr | None) -> bool:
        """A local name, or a variable of the environment or an attribute that says where the process stands."""
        if isinstance(target, ast.Name):
            return True
        if isinstance(target, ast.Subscript):
            is_gpu = ast.unparse(target.slice) == "'CUDA_VISIBLE_DEVICES'"
            is_own_gpu = is_gpu and value is not None and names_rank(self._world, value)
            return (is_of_group(target.slice) or is_own_gpu) and "os.environ" in self._world.facts.names(target.value)
        return isinstance(target, ast.Attribute) and (
            self._world.gives_place(target.attr) or self._world.is_flag(target) or not self._is_read(target)
        )

    def _is_read(self, target: ast.Attribute) -> bool:
        """Whether anything but the function itself, and what goes with it, reads an attribute of this name.

        What is known to be one of another object (`self.rank` of a sampler) is not meant.
        """
        own = self._world.facts.unit(target)
        for module in self._world.facts.modules:
            for node in self._world.facts.tree(module.tree).nodes:
                if isinstance(node, ast.Attribute) and node.attr == target.attr and isinstance(node.ctx, ast.Load):
                    if self._world.facts.unit(node) is not own and not self._are_apart(node.value, target.value):
                        return True
        return False

    def _are_apart(self, one: ast.expr, other: ast.expr) -> bool:
        """Whether two expressions are certain to be different objects."""
        made = [{value.origin for value in self._world.facts.values(each)} for each in (one, other)]
        return all(each and None not in each for each in made) and made[0].isdisjoint(made[1])

    def _is_known_call(self, call: ast.Call) -> bool:
        names = self._world.facts.called(call)
        if names & {"os.environ.setdefault", "os.environ.update"}:
            return all(is_of_group(name) for name in _set_variables(call))
        if names and all(n in _PLAIN or n in SET_DEVICE or n.startswith("torch.distributed") for n in names):
            return True
        if names & (GROUPS | BARRIERS):
            return True
        if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
            return True
        targets = self._world.facts.targets(call)
        return bool(targets) and all(overrides_print(target.node) for target in targets)

    def _only_called(self, unit: Function) -> bool:
        """Whether every use is a statement of its own, or gives names their numbers of the place."""
        if not self._world.facts.callers_known(unit):
            return False
        for call in self._world.facts.callers(unit):
            parent = self._world.facts.tree(call.node).parents[call.node]
            if isinstance(parent, ast.Expr):
                continue
            if not isinstance(parent, ast.Assign) or not all(
                self._is_number(part) for target in parent.targets for part in _elements(target)
            ):
                return False
        return True

    def _is_number(self, target: ast.expr) -> bool:
        """Whether all that reads a name reads a number of the place."""
        if isinstance(target, ast.Attribute):
            return self._world.gives_place(target.attr)
        if not isinstance(target, ast.Name):
            return False
        unit = self._world.facts.unit(target)
        reads = [
            n
            for n in ast.walk(self._world.facts.tree(target).root)
            if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)
            if self._world.facts.unit(n) is unit
        ]
        return all(self._world.quantity(n) is not None or self._world.is_handed(n) for n in reads)


def _beside(func: ast.expr, called: Function, other: Function) -> str | None:
    """How to name a function of the same file as one that is called: `utils.other` for `utils.called`."""
    if called.module is not other.module or other.parent is not None or other.owner is not None:
        return None
    return f"{ast.unparse(func.value)}.{other.name}" if isinstance(func, ast.Attribute) else None


def _set_variables(call: ast.Call) -> list[ast.expr]:
    """The names that `os.environ.setdefault(...)` or `os.environ.update(...)` gives; `**` and others stand for any."""
    given = [ast.Constant(k.arg) if k.arg is not None else k.value for k in call.keywords]
    for first in call.args[:1]:
        given += [key or first for key in first.keys] if isinstance(first, ast.Dict) else [first]
    return given


def _elements(target: ast.expr) -> list[ast.expr]:
    return [e for t in target.elts for e in _elements(t)] if isinstance(target, (ast.Tuple, ast.List)) else [target]
