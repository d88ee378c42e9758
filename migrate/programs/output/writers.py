"""Objects that only write (TensorBoard's, csv's, a project's own): whether the other processes can do without.

They can if all that is done with the object is statements that write, to which only the main process comes. Where the
object is handed on, the others hand on None in its place.
"""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import Tree
from migrate.analysis.units import Class, Function, Module
from migrate.programs.values.asides import done

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.roles import Value, Values
    from migrate.programs.output.voice import Voice


class Form(str, Enum):
    """How a writer is made for one process."""

    GUARDED = "in a statement under the guard"
    OR_NONE = "by the main process, and None by the others"


#: What may be asked of None, too.
_TESTS = (ast.Is, ast.IsNot)


class Writers:
    """The writers that a program makes."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._facts = voice.conversion.facts
        self._forms: dict[ast.Call, Form | None] = {}
        self._open: list[ast.Call] = []  # those that are being asked for, from the outermost on

    def form(self, statement: ast.stmt) -> Form | None:
        """How the writer is made that a statement makes; None: it makes none, or all processes need it."""
        made = made_by(statement)
        if made is None or self._is_out_of_sight(statement):
            return None
        if made not in self._forms:
            self._forms[made] = self._asked_for(made)
        is_named = isinstance(statement, ast.Assign)  # else the list of all processes must be as long
        return self._forms[made] if is_named or self._forms[made] is None else Form.OR_NONE

    def _asked_for(self, made: ast.Call) -> Form | None:
        """The form of a writer that was not asked for yet; what rests on one that has none is asked for again."""
        before = dict(self._forms)
        self._forms[made] = None  # while it is being asked
        self._open.append(made)
        form = self._form(made)
        self._open.pop()
        if form is None:
            self._forms = before
        return form

    def _is_out_of_sight(self, statement: ast.stmt) -> bool:
        """Whether a writer is kept where nobody sees who takes it: `config["writer"] = ...`, of a library's object."""
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        holders = [each.value for each in targets if isinstance(each, (ast.Attribute, ast.Subscript))]
        return not all(any(map(_keeps, self._facts.values(holder))) for holder in holders)

    def _form(self, made: ast.Call) -> Form | None:
        if not self._voice.speaking.is_writer(made) or self._is_handed_on_to(made):
            return None
        form = Form.GUARDED
        for module in self._facts.modules:
            tree = self._facts.tree_of(module)
            for node in tree.nodes:
                if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
                    continue
                if made not in _objects(self._facts.values(node)) or self._is_inside(node):
                    continue
                if self._is_written_to(tree.statement(node), node):
                    continue
                if not self._is_handed_on(tree, node, made):
                    return None
                form = Form.OR_NONE
        return form

    def _is_handed_on_to(self, made: ast.Call) -> bool:
        """Whether a writer is made in a class that looks up what it lacks: without it, that would never end."""
        unit = self._facts.unit(made)
        return isinstance(unit, Function) and unit.owner is not None and bool(unit.owner.lookup("__getattr__"))

    def asked(self, call: ast.Call) -> Iterator[ast.expr]:
        """What a call asks for something: `log.file` and `log` of `log.file.flush()`; not `self` in its own methods."""
        return (node for node in _asked(call) if not self._is_inside(node))

    def is_for_one(self, call: ast.Call) -> bool:
        """`logger.scalar("loss", loss)`, `logger.file.flush()`: only the main process makes what is asked for it."""
        return any(self._is_left_to_one(call, asked) for asked in self.asked(call))

    def is_left(self, made: ast.AST | None) -> bool:
        """Whether only the main process makes an object."""
        if not isinstance(made, ast.Call):
            return False
        return self.form(self._facts.tree(made).statement(made)) is not None

    def _is_left_to_one(self, call: ast.Call, asked: ast.expr, opened: Sequence[ast.Call] = ()) -> bool:
        """Whether all objects that may be asked here are writers, or do nothing but log: no other process misses it."""
        values = self._facts.values(asked)
        others = [value for value in values if value.origin not in opened and not self.is_left(value.origin)]
        return len(others) < len(values) and all(self._does_nothing(call, asked, value) for value in others)

    def _does_nothing(self, call: ast.Call, asked: ast.expr, value: Value) -> bool:
        """Whether what an object does when it is asked for something is seen by nobody else: at most it is said."""
        func = call.func
        if not isinstance(func, ast.Attribute) or func.value is not asked or not isinstance(value.unit, Class):
            return False
        found = [each.unit for each in value.unit.lookup(func.attr)]
        return bool(found) and all(isinstance(unit, Function) and not self._voice.does_more(unit) for unit in found)

    def _is_inside(self, node: ast.expr) -> bool:
        """`self` in the methods of a class of the project."""
        if not isinstance(node, ast.Name):
            return False
        unit = self._facts.unit(node)
        return isinstance(unit, Function) and unit.owner is not None and node.id in {a.arg for a in unit.positional[:1]}

    def _is_written_to(self, statement: ast.stmt, node: ast.expr) -> bool:
        """`writer.add_scalar(...)` as a statement of a function that can see the accelerator, or is called guarded."""
        on_it = [call for call in done(statement) if _is_called_on(call, node)]
        if on_it and (self._voice.is_for_all(statement) or not self._is_whole(statement)):
            return False
        unit = self._facts.unit(statement)
        is_guarded = bool(on_it) and self._voice.can_speak(unit) and self._has_guard(statement, on_it, node)
        return is_guarded or self._is_in_spoken(node)

    def _has_guard(self, statement: ast.stmt, on_it: list[ast.Call], node: ast.expr) -> bool:
        """Whether a statement is for one process whichever of the objects it is that a node may be."""
        return all(self._is_left_to_one(call, node, self._open) for call in on_it) or self._voice.only_outputs(
            statement
        )

    def _is_whole(self, statement: ast.stmt) -> bool:
        """Whether a statement is one call, or only writes: a guard stands around it."""
        is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        return is_call or self._voice.only_outputs(statement)

    def _is_in_spoken(self, node: ast.expr) -> bool:
        """Whether only the main process comes to a node: its function is called under a guard."""
        unit = self._facts.unit(node)
        return isinstance(unit, Function) and self._voice.is_guarded_outside(unit)

    def _is_handed_on(self, tree: Tree, node: ast.expr, made: ast.Call) -> bool:
        """As an argument for a function of the project, or in one, as another name, in a return, or asked for None."""
        given: ast.AST = node
        above = tree.parents[node]
        while isinstance(above, (ast.List, ast.Tuple, ast.keyword)):  # what is taken out of it again is looked at there
            above, given = tree.parents[above], above
        if isinstance(above, ast.Call) and given is not above.func:
            return (
                bool(self._facts.targets(above))
                and not self._facts.called(above)
                and not self._voice.speaking.is_writer(above)
            )
        if isinstance(above, (ast.Assign, ast.Return)):
            return True
        if isinstance(above, ast.Compare):
            return all(isinstance(op, _TESTS) for op in above.ops)
        test = getattr(above, "test", None)
        return isinstance(above, ast.If) and test is node and not self._voice.is_collective(above)


def made_by(statement: ast.stmt) -> ast.Call | None:
    """The call whose result a statement gives a name, or puts into a list: `writers.append(SummaryWriter(folder))`."""
    match statement:
        case ast.Assign(targets=[_], value=ast.Call() as made):
            return made
        case ast.Expr(ast.Call(ast.Attribute(attr="append"), args=[ast.Call() as made], keywords=[])):
            return made
    return None


def _is_called_on(call: ast.Call, node: ast.expr) -> bool:
    """Whether a call asks an object for something: `writer.add_scalar(...)`, `run.config.update(...)`."""
    return any(asked is node for asked in _asked(call))


def _asked(call: ast.Call) -> Iterator[ast.expr]:
    """What a call asks for something, and what that was asked for: `run.config` and `run` of `run.config.update()`."""
    func: ast.expr = call.func
    while isinstance(func, (ast.Attribute, ast.Call)):
        func = func.value if isinstance(func, ast.Attribute) else func.func
        yield func


def _keeps(value: Value) -> bool:
    """Whether what is put into an object is found there again."""
    return value.origin is not None or isinstance(value.unit, (Class, Module))


def _objects(values: Values) -> set[ast.AST]:
    return origins(values, Role.WRITER, Role.INSTANCE)
