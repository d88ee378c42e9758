"""What the first pass left without a use goes away, round by round: names, attributes, parameters, functions, imports.

Only what the original did use is looked at: what was never used is the user's own affair.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.command_line import option
from migrate.alone.elements import elements
from migrate.alone.leftovers import prints, tails
from migrate.alone.listed import listed_until
from migrate.alone.nothing import answered
from migrate.alone.pairs import unpacked
from migrate.alone.presence import STARRED, bound, imports_apex, is_known_star
from migrate.alone.pure import is_pure, stripped
from migrate.alone.uses import Uses
from migrate.analysis.syntax import same, walk
from migrate.programs.marker import ACCELERATOR, is_marked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from migrate.alone.pen import Pen

_OURS = ("torch.distributed", "torch.multiprocessing", "torch.nn.parallel", "torch.utils.data.distributed", "apex")
_PASSIVE = ("parameters", "named_parameters", "buffers", "named_buffers", "values", "items", "keys")


class Clearing:
    """One round over the files of a program."""

    def __init__(self, before: Uses, now: Uses, pen: Pen) -> None:
        self._before = before
        self._now = now
        self._pen = pen

    def run(self) -> None:
        """Plan what goes away in this round."""
        given = self._before, self._now, self._pen
        steps: tuple[Callable[[], bool], ...] = (
            self._dead_ends,
            lambda: tails(*given),
            self._same,
            self._answers,
            lambda: answered(*given),
            lambda: elements(*given),
            self._aliases,
            self._names,
            lambda: prints(*given),
            self._attributes,
            self._parameters,
            self._empty,
            self._functions,
            self._tries,
            self._exports,
            self._imports,
        )
        for step in steps:
            if step():
                return  # what comes next is seen on the result

    # --- blocks -----------------------------------------------------------------------------------------------------

    def _dead_ends(self) -> bool:
        """Loops, and questions to the accelerator, in which nothing is left."""
        found = False
        for node in self._now.editable():
            if isinstance(node, ast.If) and _asks(node.test) and not stripped([*node.body, *node.orelse]):
                self._pen.remove(node)
                found = True
            if isinstance(node, ast.For) and all(isinstance(s, ast.Pass) for s in node.body) and not node.orelse:
                call = node.iter
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _PASSIVE:
                    self._pen.remove(node)
                    found = True
        return found

    def _same(self) -> bool:
        """`args.batch_size = args.batch_size`, where it was divided."""
        given = (node for node in self._now.editable() if isinstance(node, ast.Assign) and len(node.targets) == 1)
        named = (node for node in given if isinstance(node.value, (ast.Name, ast.Attribute)))
        found = [node for node in named if same(node.targets[0], node.value)]
        if found:  # as hardly ever: then what was there before is looked for
            before = {ast.unparse(node) for node in self._before.editable() if isinstance(node, ast.Assign)}
            found = [node for node in found if ast.unparse(node) not in before]
        for node in found:
            self._pen.remove(node)
        return bool(found)

    # --- functions that say one thing -------------------------------------------------------------------------------

    def _answers(self) -> bool:
        """`def is_main_process(): return accelerator.is_main_process`, `def reduced(x): return x`: written out."""
        found = False
        for name, node in self._now.functions():
            calls = self._now.calls_of(name) if not node.decorator_list else None
            if not calls:
                continue
            body = stripped(node.body)
            parameters = [p.arg for p in (*node.args.posonlyargs, *node.args.args)]
            answer = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
            asks = answer if answer is not None and _asks(answer) else None
            gives_back = asks is None and bool(parameters) and _gives_back(body, parameters[0])
            if not (asks or gives_back) or not self._before.is_other(name, node):
                continue
            for call in calls:
                if asks is not None:
                    self._pen.rewrite(call, ast.unparse(asks))
                    found = True
                elif call.args and not isinstance(call.args[0], ast.Starred):
                    self._pen.rewrite(call, "{it}", it=call.args[0])
                    found = True
        return found

    # --- names ------------------------------------------------------------------------------------------------------

    def _aliases(self) -> bool:
        """`model_without_ddp = model`, once that was another object: one name is enough."""
        found = False
        for path, scope, tree in self._now.scopes():
            for name, values in self._now.assigned(tree).items():
                given = [value for value in values if isinstance(value, ast.Name)]
                other = given[0] if len({v.id for v in given}) == 1 and len(given) == len(values) else None
                if other is None or other.id == name:
                    continue
                if not self._before.was_unwrapped(path, scope, name):
                    continue
                statements = self._now.statements(tree, name)
                if self._now.changes_after(tree, other.id, statements[0]):
                    continue
                for read in self._now.reads(tree, name):
                    self._pen.rewrite(read, other.id)
                for statement in statements:
                    self._pen.remove(statement)
                found = True
        return found

    def _names(self) -> bool:
        found = False
        for path, scope, tree in self._now.scopes():
            listed = listed_until(tree) if isinstance(tree, ast.Module) else 0
            for name in self._now.assigned(tree):
                if self._now.is_read(tree, name):
                    continue
                was_read = self._before.was_read(path, scope, name)
                if isinstance(tree, ast.Module) and self._now.is_mentioned(name, besides=path):
                    continue
                statements = self._now.statements(tree, name)
                gone = [
                    one
                    for one in statements
                    if is_pure(one.value) and ((was_read and one.lineno > listed) or is_marked(one.value))
                ]
                if len(gone) < len(statements) and any(isinstance(one, ast.AugAssign) for one in statements):
                    continue  # `n += 1` goes on with what is there
                for statement in gone:
                    self._pen.remove(statement)
                    found = True
        return unpacked(self._before, self._now, self._pen) or found

    def _attributes(self) -> bool:
        """`self.gpu_id = ...`, and options of the command line, that nothing reads any more."""
        gone = self._before.attributes - self._now.attributes - self._now.words
        found = False
        for node in self._now.editable():
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
                are_gone = all(isinstance(t, ast.Attribute) and t.attr in gone for t in targets)
                if are_gone and is_pure(node.value):
                    self._pen.remove(node)
                    found = True
            elif isinstance(node, ast.Expr) and (name := option(node.value)) is not None and name in gone:
                self._pen.remove(node)
                found = True
        return found

    # --- parameters and functions -----------------------------------------------------------------------------------

    def _parameters(self) -> bool:
        for name, node in self._now.functions():
            old = self._before.function(name)
            calls = self._now.calls_of(name)
            if old is None or calls is None or node.decorator_list:
                continue
            parameters = [*node.args.posonlyargs, *node.args.args]
            for position, parameter in enumerate(parameters):
                is_own = parameter.arg in ("self", "cls") and position == 0
                if is_own or self._now.is_read(node, parameter.arg) or not self._before.reads(old, parameter.arg):
                    continue
                if parameter.arg in self._now.assigned(node):
                    continue
                shift = 1 if parameters[0].arg in ("self", "cls") else 0
                given = [_given(call, parameter.arg, position - shift) for call in calls]
                if any(one is False for one in given):
                    continue
                self._pen.remove_parameter(node, parameter)
                for call, one in zip(calls, given, strict=True):
                    if isinstance(one, (ast.expr, ast.keyword)):
                        self._pen.remove_argument(call, one)
                return True
        return False

    def _empty(self) -> bool:
        """Functions in which nothing is left, and their calls."""
        for name, node in self._now.functions():
            if stripped(node.body) or not self._before.is_other(name, node):
                continue
            calls = self._now.calls_of(name)
            if calls is None:
                continue
            statements = [self._now.statement_of(call) for call in calls]
            if all(isinstance(s, ast.Expr) for s in statements):
                for statement in statements:
                    assert statement is not None
                    self._pen.remove(statement)
                self._pen.remove(node)
                return True
        return False

    def _functions(self) -> bool:
        """Functions that nothing calls any more."""
        found = False
        for name, node in self._now.functions():
            if self._now.mentions(name) or not self._before.calls(name) or name.startswith("__"):
                continue
            self._pen.remove(node)
            found = True
        return found

    def _tries(self) -> bool:
        """`try: from apex import amp`, and what says that it is missing."""
        found = False
        for path, root in self._now.trees.items():
            read = self._now.names(path)
            for node in walk(root):
                if not isinstance(node, ast.Try) or not imports_apex(node):
                    continue
                if not any(read.get(name) or self._now.is_mentioned(name, besides=path) for name in bound(node)):
                    self._pen.remove(node)
                    found = True
        return found

    def _exports(self) -> bool:
        """Names that a package hands on from a file that has them no longer."""
        found = False
        for path, root in self._now.trees.items():
            for node in (n for n in walk(root).of(ast.ImportFrom) if path.endswith("__init__.py")):
                for alias in node.names:
                    if self._is_lost(path, node.module, alias):
                        self._pen.drop_import(node, alias.asname or alias.name)
                        found = True
        return found

    def _is_lost(self, path: str, module: str | None, alias: ast.alias) -> bool:
        """Whether a name is gone, or asks for what only the accelerator knows and nobody imports it any more."""
        before, now = (uses.origins(module, alias.name) for uses in (self._before, self._now))
        if not before or not now:
            return bool(before)
        bound = alias.asname or alias.name
        is_ours = all(isinstance(node, ast.Import) for node in now) and any(
            a.name.startswith(_OURS) for node in now if isinstance(node, ast.Import) for a in node.names
        )
        return (is_ours or any(map(is_marked, now))) and not self._now.is_mentioned(bound, besides=path)

    def _imports(self) -> bool:
        found = False
        for path, root in self._now.trees.items():
            for node in walk(root):
                if not isinstance(node, (ast.Import, ast.ImportFrom)) or path.endswith("__init__.py"):
                    continue
                if self._is_idle_star(path, node):
                    self._pen.remove(node)
                    found = True
                    continue
                for alias in node.names:
                    bound = alias.asname or alias.name
                    if self._is_unused(path, node, alias) and not self._now.is_mentioned(bound, besides=path):
                        self._pen.drop_import(node, alias.asname or alias.name)
                        found = True
        return found

    def _is_idle_star(self, path: str, node: ast.Import | ast.ImportFrom) -> bool:
        """`from apex.fp16_utils import *`, of which nothing is read."""
        read = self._now.names(path)
        return is_known_star(node) and not any(read.get(n) or self._now.is_mentioned(n, path) for n in STARRED)

    def _is_unused(self, path: str, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
        bound = alias.asname or alias.name
        if bound == "*" or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            return False
        whole = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        is_ours = whole.startswith(_OURS)
        if "." in bound and isinstance(node, ast.Import):
            return is_ours and not self._now.has_text(path, bound)
        if self._now.names(path).get(bound):
            return False
        return is_ours or bool(self._before.names(path).get(bound))


def _asks(node: ast.expr) -> bool:
    """Whether an expression is a question to the accelerator, and nothing else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _asks(node.operand)
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == ACCELERATOR


def _gives_back(body: Sequence[ast.stmt], parameter: str) -> bool:
    """`return x`, or `y = x.clone(); return y`."""
    last = body[-1] if body else None
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        return False
    if len(body) == 1:
        return last.value.id == parameter
    first = body[0]
    return (
        len(body) == 2
        and isinstance(first, ast.Assign)
        and ast.unparse(first.targets[0]) == last.value.id
        and ast.unparse(first.value) in (f"{parameter}.clone()", f"{parameter}.detach().clone()", f"{parameter}")
    )


def _given(call: ast.Call, name: str, position: int) -> ast.expr | ast.keyword | bool:
    """What a call passes for a parameter; True: nothing, False: that is not seen."""
    keyword = next((k for k in call.keywords if k.arg == name), None)
    if keyword is not None:
        return keyword if is_pure(keyword.value) else False
    before = call.args[: position + 1]
    if len(before) > position and not any(isinstance(a, ast.Starred) for a in before):
        return before[position] if is_pure(before[position]) else False  # `**options` cannot give it once more
    return not any(isinstance(a, ast.Starred) for a in call.args) and all(k.arg is not None for k in call.keywords)
