"""What a program says and writes, and whether a statement does nothing else (contract E4)."""

from __future__ import annotations

import ast
import itertools
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import FUNCTIONS, TRIES, walk, writes
from migrate.analysis.units import Class, Function
from migrate.programs.conversion import Conversion
from migrate.programs.marker import is_marked
from migrate.programs.output.computed import computed, needs_all
from migrate.programs.output.effects import Effects, tells_name
from migrate.programs.output.figures import Figures
from migrate.programs.output.guards import is_left_to_main
from migrate.programs.output.own_files import OwnFiles
from migrate.programs.output.speaking import Speaking
from migrate.programs.output.writers import Form, Writers
from migrate.programs.processes.branches import Branches, Side
from migrate.programs.reach.callees import called_alike
from migrate.programs.values.asides import asked, done
from migrate.programs.values.fetches import is_download, own_class
from migrate.programs.values.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Call, Unit


class Voice:
    """Questions about the output of one program's code."""

    def __init__(self, conversion: Conversion) -> None:
        self.conversion = conversion
        self._facts: Facts = conversion.facts
        self.outputs = conversion.facts.once(Outputs)
        self.writers = Writers(self)
        self.speaking = conversion.once(Speaking)
        self.effects = self._facts.once(Effects)
        self._figures = Figures(self)
        self.own = self._facts.once(OwnFiles)
        self._guarded: dict[Function, bool] = {}

    def is_print(self, statement: ast.stmt) -> bool:
        """`print(...)` as a statement, by that name."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        return isinstance(call, ast.Call) and self.is_plain_print(call)

    def is_plain_print(self, call: ast.Call) -> bool:
        """`print(...)`, by that name, to the console."""
        return (
            isinstance(call.func, ast.Name)
            and self._facts.called(call) == {output.PRINT}
            and not self.outputs.writes(call)
            and not self.own.is_own(call)
        )

    def is_save(self, statement: ast.stmt) -> bool:
        """`torch.save(object, path)` as a statement, without options."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        return isinstance(call, ast.Call) and self.is_plain_save(call)

    def is_plain_save(self, call: ast.Call) -> bool:
        """The same, wherever it stands."""
        if self.outputs.is_in_memory(call) or self.own.is_own(call):
            return False
        if output.SAVE not in self._facts.called(call) or any(isinstance(a, ast.Starred) for a in call.args):
            return False
        return len(call.args) == 2 and not call.keywords

    def only_outputs(self, statement: ast.stmt) -> bool:
        """Whether a statement does nothing but write, at least once in a way that needs a guard of its own."""
        return self.is_output(statement) and self._needs_guard(statement)

    def is_collective(self, statement: ast.AST) -> bool:
        """Whether every process must enter a statement: it runs a model, a loader or training, or draws as all do."""
        return needs_all(self.conversion, statement)

    def is_for_all(self, statement: ast.stmt) -> bool:
        """Whether every process must enter a statement as it stands: what it runs cannot be computed above it."""
        return self.is_collective(statement) and computed(self.conversion, statement) is None

    def is_of_one(self, statement: ast.stmt) -> bool:
        """Whether only the main process comes to a statement: what is around it only writes, or is its branch."""
        unit = self._facts.unit(statement)
        if self.is_written_elsewhere(unit) or self.is_left_to_one(statement):
            return True
        if not self.conversion.has_accelerator_at(statement) or not self.can_speak(unit):
            return False
        above = (node for node in self._facts.tree(statement).up(statement) if isinstance(node, ast.stmt))
        around = itertools.takewhile(lambda node: not isinstance(node, (*FUNCTIONS, ast.ClassDef)), above)
        return any(self.only_outputs(s) and not self.is_for_all(s) for s in (statement, *around))

    def is_output(self, statement: ast.stmt) -> bool:
        """Whether a statement does nothing but write."""
        if isinstance(statement, ast.Expr):
            calls = done(statement)
            does_write = bool(calls) and all(self.is_plain_print(call) or self._is_writing(call) for call in calls)
            return does_write and not any(map(self._does_more, asked(statement)))
        if isinstance(statement, ast.If):
            return self._body_outputs(statement.body) and (not statement.orelse or self._body_outputs(statement.orelse))
        if isinstance(statement, (ast.For, ast.While)):
            return not statement.orelse and self._body_outputs(statement.body)
        if isinstance(statement, ast.With):
            opened = [item.context_expr for item in statement.items if self.outputs.opens(item.context_expr)]
            is_own = any(isinstance(call, ast.Call) and self.own.is_own(call) for call in opened)
            return bool(opened) and not is_own and self._body_outputs(statement.body)
        if isinstance(statement, TRIES):
            handled = [inner for handler in statement.handlers for inner in handler.body]
            rest = [*statement.orelse, *statement.finalbody]
            return self._body_outputs(statement.body) and all(
                isinstance(s, ast.Pass) or self.is_output(s) for s in handled + rest
            )
        return self.outputs.fills(statement) or self.writers.form(statement) is Form.GUARDED

    def _body_outputs(self, body: Sequence[ast.stmt]) -> bool:
        """A block that writes; names it sets on the way must not be read elsewhere."""
        set_before: set[str] = set()
        does_write = False
        for position, statement in enumerate(body):
            if self.is_output(statement):
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
        if not all(isinstance(t, (ast.Name, ast.Tuple)) for t in statement.targets):
            return False
        if self.effects.moves(statement.value):
            return False
        names = writes(statement)
        function = self._facts.tree(statement).function(statement)
        inside = {id(node) for reader in readers for node in walk(reader)}
        read = (n for n in walk(function).of(ast.Name) if n.id in names and isinstance(n.ctx, ast.Load))
        shared = {name for n in walk(function).of(ast.Global) for name in n.names}
        shared |= {name for n in walk(function).of(ast.Nonlocal) for name in n.names}
        return not names & shared and all(id(n) in inside for n in read)

    def does_more(self, unit: Function) -> bool:
        """Whether a function does something that other processes must do, too, or would see."""
        return self.effects.changes(unit) or needs_all(self.conversion, unit.node)

    def _does_more(self, node: ast.expr) -> bool:
        """Whether what an expression asks for on its way does something that all processes must do."""
        is_loader = bool(self._facts.loaders(self._facts.values(node)))
        return is_loader or is_marked(node) or self.effects.moves(node) or self.effects.sets(node)

    def _needs_guard(self, statement: ast.stmt) -> bool:
        """Whether there is more in it than prints and plain saves, which have forms of their own."""
        if isinstance(statement, ast.Expr):
            return any(map(self.needs_guard, done(statement)))
        inner = [s for s in walk(statement) if isinstance(s, ast.stmt) and s is not statement]
        makes = isinstance(statement, (ast.Assign, ast.With)) and not self.outputs.fills(statement)
        return makes or any(isinstance(s, (ast.Expr, ast.With)) and self._needs_guard(s) for s in inner)

    def needs_guard(self, call: ast.Call) -> bool:
        """Whether a call that writes has no form of its own for one process."""
        into_file = self.outputs.is_to_file(call) and not self._opens_itself(call) and not self.writers.is_for_one(call)
        return not into_file and not self.is_plain_print(call) and not self.is_plain_save(call)

    def _opens_itself(self, call: ast.Call) -> bool:
        """`open(path, "w").write(text)`."""
        return isinstance(call.func, ast.Attribute) and self.outputs.opens(call.func.value)

    def _is_writing(self, call: ast.Call) -> bool:
        if self.own.is_own(call):
            return False
        if self.outputs.writes(call):
            return not self._figures.closes_for_all(call)
        names, targets = self._facts.called(call), self._facts.targets(call)
        if targets and names <= {output.PRINT} and all(map(self.is_guarded_outside, targets)):
            return not self.own.is_handed_temporary(call)
        return (not targets and output.PRINT in names) or self.writers.is_for_one(call)

    def is_guarded_outside(self, unit: Function) -> bool:
        """Whether the calls of a function are guarded and it is left as it is: it only speaks, for nobody's use."""
        if unit not in self._guarded:
            group = called_alike(self._facts, unit)
            self._guarded |= dict.fromkeys(group, False)  # while it is being asked
            self._guarded |= dict.fromkeys(group, all(map(self._may_be_guarded, group)))
        return self._guarded[unit] and self._is_called(unit)

    def _may_be_guarded(self, unit: Function) -> bool:
        calls = self._facts.callers(unit)
        is_open = any(self._is_chosen(call.node, unit) for call in calls) or self._chooses(unit)
        is_for_one = self.speaking.only_speaks(unit) and not tells_name(self._facts, unit)
        return is_for_one and not is_open and all(map(self._is_guarded_call, calls))

    def _is_chosen(self, call: ast.Call, unit: Function) -> bool:
        """Whether a function that can ask for itself is called by another name, `callback(trainer)`.

        What else is called there, today or later, may be for all processes: no guard stands around it.
        """
        func = call.func
        is_other = isinstance(func, ast.Subscript) or (isinstance(func, ast.Name) and func.id != unit.name)
        return is_other and unit in self._facts.targets(call) and self.can_speak(unit)

    def _chooses(self, unit: Function) -> bool:
        """Whether a function calls others in that way."""
        calls = self._facts.own(unit).of(ast.Call)
        return any(self._is_chosen(call, target) for call in calls for target in self._facts.targets(call))

    def _is_guarded_call(self, call: Call) -> bool:
        """Whether a call is a statement, that can be guarded, or stands in a function whose calls are guarded."""
        func = call.node.func
        if call.handed is not None or (isinstance(func, ast.Attribute) and func.attr == "__init__"):  # sets up `self`
            return False
        if isinstance(self._facts.tree(call.node).parents[call.node], ast.Expr):
            return True
        return isinstance(call.caller, Function) and self.is_guarded_outside(call.caller)

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
        made = [value.origin for value in cls.instances]
        return bool(made) and all(self.writers.is_left(origin) or self.is_left_to_one(origin) for origin in made)

    def is_of_ones_object(self, unit: Function) -> bool:
        """Whether a function is a method of objects that, in this program, only the main process makes."""
        instances = unit.owner.instances if unit.owner is not None else ()
        made = [value.origin for value in instances if value.origin is not None]
        mine = [node for node in made if self._facts.unit(node) in self.conversion.units]
        return bool(mine) and all(self.writers.is_left(each) or self.is_left_to_one(each) for each in mine)

    def is_left_to_one(self, made: ast.AST | None) -> bool:
        """Whether something stands in a branch on the main process that stays."""
        return made is not None and is_left_to_main(self.conversion, made)

    def can_speak(self, unit: Unit) -> bool:
        """Whether the accelerator is at hand in a unit, or can be brought there; a lambda has no statement for it."""
        if isinstance(unit, Function) and isinstance(unit.node, ast.Lambda):
            return False
        access = self.conversion.access
        before = dict(access.parameters)
        reached = access.has(unit) or (isinstance(unit, Function) and access.can_have(unit))
        access.parameters = before
        return reached

    # --- functions --------------------------------------------------------------------------------------------------

    def is_heard(self, call: ast.Call) -> bool:
        """Whether a call itself prints, writes, makes what does, shows a bar, or asks the user."""
        outputs = self.outputs
        is_shown = outputs.is_bar(call) or outputs.empties_log(call) or output.INPUT in self._facts.called(call)
        return is_shown or self.speaking.is_spoken(call)

    def speaks_unasked(self, unit: Function, besides: Collection[Unit] = (), covered: Collection[ast.AST] = ()) -> bool:
        """Whether a function writes anything where it does not ask which process this is; `besides` what some do."""
        folders = self.speaking.folders(unit)
        own = (node for node in self._facts.own(unit) if isinstance(node, ast.Call) and node not in folders)
        calls = [node for node in own if node not in covered]
        return any(self._says(call, besides) and not self.is_asked(call) for call in calls)

    def _says(self, call: ast.Call, besides: Collection[Unit] = ()) -> bool:
        called = (target for target in self._facts.targets(call) if target not in besides)
        return self.speaking.is_spoken(call) or any(map(self.speaking.speaks, called))

    def is_asked(self, call: ast.Call) -> bool:
        """Whether a call stands in a branch on the main process."""
        return any(
            isinstance(above, ast.If)
            and any(call in walk(statement) for statement in above.body)
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
            for node in self._facts.own(unit)
        )

    def is_front(self, made: ast.Call) -> bool:
        """Whether a call makes an object that hands on to a writer."""
        classes = {value.unit for value in self._facts.values(made) if value.origin is made}
        return any(isinstance(cls, Class) and self.outputs.fronts.writer(cls) is not None for cls in classes)
