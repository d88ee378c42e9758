"""What a program says and writes, and whether a statement does nothing else (contract E4)."""

from __future__ import annotations

import ast
import itertools
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import FUNCTIONS, own_nodes, writes
from migrate.analysis.units import Class, Function
from migrate.programs.conversion import Conversion, reaches_model
from migrate.programs.marker import is_marked
from migrate.programs.metrics.evaluation import is_draw
from migrate.programs.output.writers import Form, Writers
from migrate.programs.processes.branches import Branches, Side
from migrate.programs.values.fetches import is_download, own_class
from migrate.programs.values.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_MUTATORS = frozenset(
    """append extend insert pop remove clear update setdefault step zero_grad load_state_dict train eval add sort
    put send seed manual_seed accumulate summarize""".split()
)
_SETTING = frozenset(f"builtins.{name}" for name in "setattr delattr exec eval".split())


class Voice:
    """Questions about the output of one program's code."""

    def __init__(self, conversion: Conversion) -> None:
        self.conversion = conversion
        self._facts: Facts = conversion.facts
        self.outputs = conversion.facts.once(Outputs)
        self.writers = Writers(self)
        self._only: dict[Function, bool] = {}
        self._classes: dict[Class, bool] = {}
        self._fronts: dict[Class, bool] = {}

    def is_print(self, statement: ast.stmt) -> bool:
        """`print(...)` as a statement, by that name."""
        return (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and isinstance(statement.value.func, ast.Name)
            and self._facts.called(statement.value) == {output.PRINT}
            and not self.outputs.writes(statement.value)
        )

    def is_save(self, statement: ast.stmt) -> bool:
        """`torch.save(object, path)` as a statement, without options."""
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return False
        call = statement.value
        if self.outputs.is_in_memory(call):
            return False
        if output.SAVE not in self._facts.called(call) or any(isinstance(a, ast.Starred) for a in call.args):
            return False
        return len(call.args) == 2 and not call.keywords

    def only_outputs(self, statement: ast.stmt) -> bool:
        """Whether a statement does nothing but write, at least once in a way that needs a guard of its own."""
        return self._outputs(statement) and self._needs_guard(statement)

    def is_collective(self, statement: ast.AST) -> bool:
        """Whether every process must enter a statement: it runs a model, a loader or training."""
        return reaches_model(self.conversion, statement)

    def is_of_one(self, statement: ast.stmt) -> bool:
        """Whether only the main process comes to a statement: its function, or a block around it, only writes."""
        unit = self._facts.unit(statement)
        if self.is_written_elsewhere(unit):
            return True
        if not self.conversion.has_accelerator_at(statement) or not self.can_speak(unit):
            return False
        above = (node for node in self._facts.tree(statement).up(statement) if isinstance(node, ast.stmt))
        around = itertools.takewhile(lambda node: not isinstance(node, (*FUNCTIONS, ast.ClassDef)), above)
        return any(self.only_outputs(s) and not self.is_collective(s) for s in (statement, *around))

    def _outputs(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Expr):
            return isinstance(statement.value, ast.Call) and (
                self.is_print(statement) or self._is_writing(statement.value)
            )
        if isinstance(statement, ast.If):
            return self._body_outputs(statement.body) and (not statement.orelse or self._body_outputs(statement.orelse))
        if isinstance(statement, (ast.For, ast.While)):
            return not statement.orelse and self._body_outputs(statement.body)
        if isinstance(statement, ast.With):
            opens = any(self.outputs.opens(item.context_expr) for item in statement.items)
            return opens and self._body_outputs(statement.body)
        if isinstance(statement, ast.Try):
            handled = [inner for handler in statement.handlers for inner in handler.body]
            rest = [*statement.orelse, *statement.finalbody]
            return self._body_outputs(statement.body) and all(
                isinstance(s, ast.Pass) or self._outputs(s) for s in handled + rest
            )
        return self.writers.form(statement) is Form.GUARDED

    def _body_outputs(self, body: Sequence[ast.stmt]) -> bool:
        """A block that writes; names it sets on the way must not be read elsewhere."""
        set_before: set[str] = set()
        does_write = False
        for position, statement in enumerate(body):
            if self._outputs(statement):
                does_write = True
                continue
            names = writes(statement)
            if not self.is_private(statement, body[position + int(not names <= set_before) :]):
                return False
            set_before |= names
        return does_write

    def is_private(self, statement: ast.stmt, readers: Sequence[ast.stmt]) -> bool:
        """Whether a statement only sets names that nobody but these others reads, and changes nothing else."""
        if not isinstance(statement, ast.Assign):
            return False
        if not all(isinstance(t, (ast.Name, ast.Tuple)) for t in statement.targets) or self._has_effects(statement):
            return False
        names = writes(statement)
        function = self._facts.tree(statement).function(statement)
        inside = {id(node) for reader in readers for node in ast.walk(reader)}
        return not any(
            (isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load) and id(n) not in inside)
            or (isinstance(n, (ast.Global, ast.Nonlocal)) and names & set(n.names))
            for n in ast.walk(function)
        )

    def _has_effects(self, statement: ast.Assign) -> bool:
        """Whether what is computed moves the random stream on, or changes something that others see."""
        return any(
            isinstance(node, ast.Call)
            and (is_draw(self._facts, node) or any(self._changes(t, frozenset()) for t in self._facts.targets(node)))
            for node in ast.walk(statement.value)
        )

    def _needs_guard(self, statement: ast.stmt) -> bool:
        """Whether there is more in it than prints and plain saves, which have forms of their own."""
        if isinstance(statement, ast.Expr):
            into_file = isinstance(statement.value, ast.Call) and self.outputs.is_to_file(statement.value)
            return not into_file and not self.is_print(statement) and not self.is_save(statement)
        inner = [s for s in ast.walk(statement) if isinstance(s, ast.stmt) and s is not statement]
        return isinstance(statement, (ast.Assign, ast.With)) or any(
            isinstance(s, (ast.Expr, ast.With)) and self._needs_guard(s) for s in inner
        )

    def _is_writing(self, call: ast.Call) -> bool:
        if self.outputs.writes(call):
            return True
        names, targets = self._facts.called(call), self._facts.targets(call)
        if not targets or not names <= {output.PRINT}:
            return not targets and output.PRINT in names
        return all(self.is_guarded_outside(target) for target in targets) or self._is_of_writer(call)

    def _is_of_writer(self, call: ast.Call) -> bool:
        """`logger.scalar("loss", loss)`, where only the main process makes this object of the project's logger."""
        receiver = self._facts.receiver(call)
        return bool(receiver) and all(self._is_guarded(value.origin) for value in receiver)

    def is_guarded_outside(self, unit: Function) -> bool:
        """Whether the calls of a function are guarded and it is left as it is: it only speaks, for nobody's use."""
        return (
            self.only_speaks(unit)
            and self._is_called(unit)
            and all(
                call.handed is None
                and isinstance(self._facts.tree(call.node).parents[call.node], ast.Expr)
                and not (
                    isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "__init__"
                )  # sets up `self`
                for call in self._facts.callers(unit)
            )
        )

    def _is_called(self, unit: Function) -> bool:
        """Whether somebody is seen to call a function: not a method of the object that holds the accelerator, else."""
        return bool(self._facts.callers(unit)) or not self.conversion.access.has(unit)

    def is_written_elsewhere(self, unit: Unit) -> bool:
        """Whether only the main process comes to a function, which can stay as it is."""
        if not isinstance(unit, Function):
            return False
        if self.is_guarded_outside(unit):
            return True
        return unit.owner is not None and (self._is_made_by_one(unit.owner) or unit.owner in self.in_turns)

    @cached_property
    def in_turns(self) -> set[Class]:
        """The project's data sets that download themselves: processes make them one after the other."""
        facts = self._facts
        made = (use.node for use in facts.calls if is_download(facts, use.node))
        return {cls for call in made for cls in own_class(facts, call)}

    def _is_made_by_one(self, cls: Class) -> bool:
        """Whether only the main process makes objects of a class of the project."""
        return bool(cls.instances) and all(self._is_guarded(value.origin) for value in cls.instances)

    def _is_guarded(self, made: ast.AST | None) -> bool:
        """Whether only the main process makes a writer."""
        return isinstance(made, ast.Call) and self.writers.form(self._facts.tree(made).statement(made)) is not None

    def can_speak(self, unit: Unit) -> bool:
        """Whether the accelerator is at hand in a unit, or can be brought there."""
        access = self.conversion.access
        before = dict(access.parameters)
        reached = access.has(unit) or (isinstance(unit, Function) and access.can_reach(unit.body[0]))
        access.parameters = before
        return reached

    # --- functions --------------------------------------------------------------------------------------------------

    def speaks(self, unit: Function, seen: frozenset[int] = frozenset()) -> bool:
        """Whether a function, or one that it calls, writes anything."""
        for node in own_nodes(unit.node):
            if not isinstance(node, ast.Call):
                continue
            if output.PRINT in self._facts.called(node) or self.outputs.writes(node):
                return True
            for target in self._facts.targets(node):
                if id(target) not in seen and self.speaks(target, seen | {id(unit)}):
                    return True
        return False

    def speaks_unasked(self, unit: Function) -> bool:
        """Whether a function writes anything where it does not ask which process this is."""
        calls = [node for node in own_nodes(unit.node) if isinstance(node, ast.Call)]
        return any(self._says(call) and not self._is_asked(call) for call in calls)

    def _says(self, call: ast.Call) -> bool:
        is_output = output.PRINT in self._facts.called(call) or self.outputs.writes(call)
        return is_output or any(self.speaks(target) for target in self._facts.targets(call))

    def _is_asked(self, call: ast.Call) -> bool:
        """Whether a call stands in a branch on the main process."""
        return any(
            isinstance(above, ast.If)
            and any(call in ast.walk(statement) for statement in above.body)
            and any(meaning.holds is Side.MAIN for meaning in self._branches.meanings(above.test))
            for above in self._facts.tree(call).up(call)
        )

    @cached_property
    def _branches(self) -> Branches:
        return self._facts.once(Branches)

    def speaks_besides(self, unit: Function, calls: Sequence[ast.Call]) -> bool:
        """Whether a function writes something else than these calls do."""
        return any(
            isinstance(node, ast.Call)
            and node not in calls
            and (output.PRINT in self._facts.called(node) or self.outputs.writes(node))
            for node in own_nodes(unit.node)
        )

    def only_speaks(self, unit: Function) -> bool:
        """Whether a function writes and changes nothing that anyone else sees."""
        if unit not in self._only:
            self._only[unit] = False  # while it is being asked: recursion proves nothing
            self._only[unit] = (
                not is_marked(unit.node)  # it asks for itself who speaks
                and self.speaks(unit)
                and not self._changes(unit, frozenset(), own=unit.owner is not None and self._counts_alone(unit.owner))
                and not self.is_collective(unit.node)
            )
        return self._only[unit]

    def _counts_alone(self, cls: Class) -> bool:
        """Whether a class stands before a writer, and only for that keeps what its methods change of it."""
        if cls not in self._fronts:
            methods = (value.unit for name in cls.names for value in cls.lookup(name) if name != "__init__")
            speaking = [unit for unit in methods if isinstance(unit, Function) and self.speaks(unit)]
            fronts = self.outputs.fronts
            self._fronts[cls] = fronts.writer(cls) is not None and fronts.counts_alone(cls, speaking)
        return self._fronts[cls]

    def is_front(self, made: ast.Call) -> bool:
        """Whether a call makes an object that hands on to a writer."""
        classes = {value.unit for value in self._facts.values(made) if value.origin is made}
        return any(isinstance(cls, Class) and self.outputs.fronts.writer(cls) is not None for cls in classes)

    def only_writes(self, cls: Class) -> bool:
        """Whether the objects of a class are there to write: a method does, and none changes anything else."""
        if cls not in self._classes:
            self._classes[cls] = False  # while it is being asked
            units = [
                member.unit for name in cls.names for member in cls.lookup(name) if isinstance(member.unit, Function)
            ]
            made = [unit for unit in units if unit.name == "__init__"]
            self._classes[cls] = (
                bool(made)
                and cls.library_bases() <= {"builtins.object"}
                and any(self.outputs_in(unit) for unit in units)
                and not any(self._changes(unit, frozenset(), own=True) for unit in units)
                and not any(self.is_collective(unit.node) for unit in units)
                and not any(_gives(unit) and not self.outputs.fronts.hands_on(unit) for unit in units)
            )
        return self._classes[cls]

    def outputs_in(self, unit: Function) -> bool:
        """Whether a function itself writes files."""
        return any(isinstance(node, ast.Call) and self.outputs.writes(node) for node in own_nodes(unit.node))

    def _changes(self, unit: Function, seen: frozenset[int], *, own: bool = False) -> bool:
        """Whether a function changes an object that it did not make itself; with `own`, other than its own."""
        fresh = {
            target.id
            for node in own_nodes(unit.node)
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.Dict, ast.ListComp, ast.DictComp))
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if unit.owner is not None and (own or unit.name == "__init__"):
            fresh |= {parameter.arg for parameter in unit.positional[:1]}  # what it sets up is being made
        shared = {name for n in own_nodes(unit.node) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        for node in own_nodes(unit.node):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                if _root(node) not in fresh:
                    return True
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                if node.id in shared:
                    return True
            elif isinstance(node, ast.Call):
                if self._is_mutator(node, fresh) or is_draw(self._facts, node):
                    return True  # a drawn number moves the random stream on
                for target in self._facts.targets(node):
                    inner = own and target.owner is unit.owner
                    if id(target) not in seen and self._changes(target, seen | {id(unit)}, own=inner):
                        return True
        return False

    def _is_mutator(self, node: ast.Call, fresh: set[str]) -> bool:
        func = node.func
        if self._facts.called(node) & _SETTING:
            return not node.args or _root(node.args[0]) not in fresh
        if not isinstance(func, ast.Attribute) or self._facts.names(func.value) or self._facts.targets(node):
            return False
        if _root(func.value) in fresh:
            return False
        return func.attr in _MUTATORS or (func.attr.endswith("_") and not func.attr.startswith("_"))


def _root(node: ast.expr) -> str | None:
    """The name that an attribute or item belongs to."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _gives(unit: Function) -> bool:
    """Whether a function gives something back."""
    return any(isinstance(node, (ast.Return, ast.Yield)) and node.value is not None for node in own_nodes(unit.node))
