"""What a program says and writes, and whether a statement does nothing else (contract E4)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import own_nodes, writes
from migrate.programs.conversion import Conversion, reaches_model
from migrate.programs.evaluation import is_draw
from migrate.programs.marker import is_marked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function

_MUTATORS = frozenset(
    """append extend insert pop remove clear update setdefault step zero_grad load_state_dict train eval add sort
    put send seed manual_seed""".split()
)


class Voice:
    """Questions about the output of one program's code."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        self._facts: Facts = conversion.facts
        self._only: dict[Function, bool] = {}

    def is_print(self, statement: ast.stmt) -> bool:
        """`print(...)` as a statement."""
        return self._is_call_of(statement, {output.PRINT})

    def is_save(self, statement: ast.stmt) -> bool:
        """`torch.save(object, path)` as a statement, without options."""
        if not self._is_call_of(statement, {output.SAVE}):
            return False
        call = statement.value  # type: ignore[attr-defined]
        return len(call.args) == 2 and not call.keywords and not any(isinstance(a, ast.Starred) for a in call.args)

    def _is_call_of(self, statement: ast.stmt, names: set[str]) -> bool:
        return (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and bool(self._facts.called(statement.value) & names)
        )

    def only_outputs(self, statement: ast.stmt) -> bool:
        """Whether a statement does nothing but write, at least once in a way that needs a guard of its own."""
        return self._outputs(statement) and self._needs_guard(statement)

    def is_collective(self, statement: ast.AST) -> bool:
        """Whether every process must enter a statement: it runs a model, a loader or training."""
        return reaches_model(self._conversion, statement)

    def _outputs(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Expr):
            return isinstance(statement.value, ast.Call) and (
                self.is_print(statement) or self._is_writing(statement.value)
            )
        if isinstance(statement, ast.If):
            return self._all_output(statement.body) and (not statement.orelse or self._all_output(statement.orelse))
        if isinstance(statement, (ast.For, ast.While)):
            return not statement.orelse and self._body_outputs(statement)
        if isinstance(statement, ast.With):
            return any(self.opens_for_writing(item.context_expr) for item in statement.items)
        if isinstance(statement, ast.Try):
            handled = [inner for handler in statement.handlers for inner in handler.body]
            rest = [*statement.orelse, *statement.finalbody]
            return self._all_output(statement.body) and all(
                isinstance(s, ast.Pass) or self._outputs(s) for s in handled + rest
            )
        if isinstance(statement, ast.Assign):
            return self._makes_writer(statement)
        return False

    def _all_output(self, body: list[ast.stmt]) -> bool:
        return all(self._outputs(statement) for statement in body)

    def _body_outputs(self, loop: ast.For | ast.While) -> bool:
        """A loop that writes; names it sets on the way must not be read elsewhere."""
        if not all(self._outputs(s) or (isinstance(s, ast.Assign) and self._is_private(s, loop)) for s in loop.body):
            return False
        return any(self._outputs(statement) for statement in loop.body)

    def _is_private(self, statement: ast.Assign, loop: ast.AST) -> bool:
        if not all(isinstance(t, (ast.Name, ast.Tuple)) for t in statement.targets):
            return False
        names = writes(statement)
        tree = self._facts.tree(loop)
        inside = {id(node) for node in ast.walk(loop)}
        return not any(
            isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load) and id(n) not in inside
            for n in ast.walk(tree.function(loop))
        )

    def _needs_guard(self, statement: ast.stmt) -> bool:
        """Whether there is more in it than prints and plain saves, which have forms of their own."""
        if isinstance(statement, ast.Expr):
            return not self.is_print(statement) and not self.is_save(statement)
        inner = [s for s in ast.walk(statement) if isinstance(s, ast.stmt) and s is not statement]
        return isinstance(statement, (ast.Assign, ast.With)) or any(
            isinstance(s, (ast.Expr, ast.With)) and self._needs_guard(s) for s in inner
        )

    def _is_writing(self, call: ast.Call) -> bool:
        names = self._facts.called(call)
        if any(k.arg == "exist_ok" and isinstance(k.value, ast.Constant) and k.value.value for k in call.keywords):
            return False  # any number of processes may do it, and all of them may need the folder
        if names & output.WRITES or any(name.startswith(output.WRITING_PREFIXES) for name in names):
            return True
        if Role.WRITER in roles(self._facts.receiver(call)):
            return True
        targets = self._facts.targets(call)
        return bool(targets) and not names and all(self.is_guarded_outside(target) for target in targets)

    def is_guarded_outside(self, unit: Function) -> bool:
        """Whether the calls of a function are guarded and it is left as it is: it only speaks, for nobody's use."""
        return self.only_speaks(unit) and all(
            call.handed is None
            and isinstance(self._facts.tree(call.node).parents[call.node], ast.Expr)
            and not (isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "__init__")  # sets up `self`
            for call in self._facts.callers(unit)
        )

    def opens_for_writing(self, node: ast.expr) -> bool:
        """`open(path, "w")`."""
        if not isinstance(node, ast.Call) or output.OPEN not in self._facts.called(node):
            return False
        given = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
        return any(isinstance(m, ast.Constant) and set(str(m.value)) & output.WRITE_MODES for m in given)

    def _makes_writer(self, statement: ast.Assign) -> bool:
        """A writer that only writes: nobody misses it on the other processes."""
        if len(statement.targets) != 1 or not isinstance(statement.value, ast.Call):
            return False
        made = origins(self._facts.values(statement.value), Role.WRITER)
        if statement.value not in made:
            return False
        for module in self._facts.modules:
            tree = self._facts.tree(module.tree)
            for node in tree.nodes:
                if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
                    continue
                if origins(self._facts.values(node), Role.WRITER) & made and not self._is_written_to(
                    tree.statement(node), node
                ):
                    return False
        return True

    def _is_written_to(self, statement: ast.stmt, node: ast.expr) -> bool:
        """`writer.add_scalar(...)` as a statement of a function that can see the accelerator."""
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return False
        func = statement.value.func
        on_it = isinstance(func, ast.Attribute) and func.value is node
        return on_it and self._conversion.access.has(self._facts.unit(statement)) and not self.is_collective(statement)

    # --- functions --------------------------------------------------------------------------------------------------

    def speaks(self, unit: Function, seen: frozenset[int] = frozenset()) -> bool:
        """Whether a function, or one that it calls, writes anything."""
        for node in own_nodes(unit.node):
            if not isinstance(node, ast.Call):
                continue
            names = self._facts.called(node)
            if output.PRINT in names or names & output.WRITES or Role.WRITER in roles(self._facts.receiver(node)):
                return True
            if any(name.startswith(output.WRITING_PREFIXES) for name in names):
                return True
            for target in self._facts.targets(node):
                if id(target) not in seen and self.speaks(target, seen | {id(unit)}):
                    return True
        return False

    def only_speaks(self, unit: Function) -> bool:
        """Whether a function writes and changes nothing that anyone else sees."""
        if unit not in self._only:
            self._only[unit] = False  # while it is being asked: recursion proves nothing
            self._only[unit] = (
                not is_marked(unit.node)  # it asks for itself who speaks
                and self.speaks(unit)
                and not self._changes(unit, frozenset())
                and not self.is_collective(unit.node)
            )
        return self._only[unit]

    def _changes(self, unit: Function, seen: frozenset[int]) -> bool:
        """Whether a function changes an object that it did not make itself."""
        fresh = {
            target.id
            for node in own_nodes(unit.node)
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.Dict, ast.ListComp, ast.DictComp))
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if unit.owner is not None and unit.name == "__init__":
            fresh |= {parameter.arg for parameter in unit.positional[:1]}  # what it sets up is being made
        for node in own_nodes(unit.node):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                if not (isinstance(node.value, ast.Name) and node.value.id in fresh):
                    return True
            elif isinstance(node, ast.Call):
                if self._is_mutator(node, fresh) or is_draw(self._facts, node):
                    return True  # a drawn number moves the random stream on
                for target in self._facts.targets(node):
                    if id(target) not in seen and self._changes(target, seen | {id(unit)}):
                        return True
        return False

    def _is_mutator(self, node: ast.Call, fresh: set[str]) -> bool:
        func = node.func
        if not isinstance(func, ast.Attribute) or self._facts.names(func.value) or self._facts.targets(node):
            return False
        if isinstance(func.value, ast.Name) and func.value.id in fresh:
            return False
        return func.attr in _MUTATORS or (func.attr.endswith("_") and not func.attr.startswith("_"))

    # --- loops ------------------------------------------------------------------------------------------------------

    def bars(self) -> Iterator[ast.Call]:
        """Progress bars that a loop runs over."""
        iterated: set[ast.AST] = set()
        for module in self._conversion.modules:
            for node in self._facts.tree(module.tree).nodes:
                if isinstance(node, (ast.For, ast.AsyncFor)):
                    iterated |= self._run_over(node.iter, 3)
        for use in self._conversion.uses:
            if use.node in iterated and self._facts.called(use.node) & (output_bars()):
                if not any(keyword.arg in ("disable", None) for keyword in use.node.keywords):
                    yield use.node

    def _run_over(self, node: ast.expr, depth: int) -> set[ast.AST]:
        found = origins(self._facts.values(node), Role.ITERATOR) | {node}
        if depth:
            for origin in list(found):
                for inner in origins(self._facts.over(origin), Role.ITERATOR):
                    found.add(inner)
        return found


def output_bars() -> frozenset[str]:
    """The names of progress bars."""
    from migrate.analysis.known.progress import BARS, RANGE_BARS

    return BARS | RANGE_BARS
