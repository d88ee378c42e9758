"""Mixed precision by apex goes away; what it was told of precision is kept for the accelerator.

    if args.fp16:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")

leaves an assignment to `PRECISION`, which `programs/amp/apex.py` reads. A loss is no longer scaled, and of two branches
that only differ by that, one stays.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from migrate.alone.apex import AMP, alias
from migrate.alone.presence import imports_apex, is_import
from migrate.analysis.known.training import CLIPPING
from migrate.analysis.roles import Role, origins
from migrate.programs.marker import ACCELERATOR, PRECISION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.alone.apex import Apex, Start
    from migrate.alone.pen import Pen
    from migrate.analysis.facts import Facts
    from migrate.programs.program import Refusal

_CLIPPED = "__clipped__"  # stands for what is clipped, which is written in another way with apex and without


class Half:
    """The edits that take apex out of some modules."""

    def __init__(self, apex: Apex) -> None:
        self._facts: Facts = apex.facts
        self._apex = apex
        self._presence = apex.presence
        self._clipped_inside = False
        self.gone: set[int] = set()  # ids of the nodes that are gone, or are done with

    def run(self, pen: Pen) -> None:
        """Plan them."""
        if not self._apex.is_used:
            return
        for start in self._apex.starts:
            self._start(pen, start)
        self._lose(self._presence.answer(pen))
        for module in self._apex.modules:
            for node in self._facts.tree(module.tree).nodes:
                if isinstance(node, ast.If) and id(node) not in self.gone:
                    self._fold(pen, node)
        for with_, call in self._apex.scalings.items():
            if id(with_) not in self.gone:
                self._dissolve(pen, with_, call)
        for call in self._apex.of("master_params"):
            if id(call) not in self.gone:
                pen.rewrite(call, self._parameters(call))
        for call, name in self._apex.calls:
            if name.endswith(".to_python_float") and len(call.args) == 1 and id(call) not in self.gone:
                is_plain = isinstance(call.args[0], (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
                pen.rewrite(call, "{it}.item()" if is_plain else "({it}).item()", it=call.args[0])
        self._states(pen)

    def obstacles(self) -> Iterator[Refusal]:
        """Why that is not possible."""
        if self._apex.is_used:
            yield from self._apex.obstacles()
            yield from self._presence.obstacles()

    @property
    def said(self) -> tuple[str, ...]:
        """What a person must know of it."""
        lost = dict.fromkeys(text for start in self._apex.starts for text in start.lost)
        found = ["PyTorch's autocast takes the place of apex: on a GPU, a few operations round otherwise"]
        if any(not isinstance(start.level, ast.Constant) for start in self._apex.starts):
            found.append('opt_level "O2" and "O3" keep the parameters in float32 now, as "O1" does')
        if lost:
            found.append(
                f"{', '.join(lost)} has no counterpart, and options only for it are gone: the scale is dynamic"
            )
        if self._clipped_inside:
            found.append("gradients that were clipped while they were scaled are unscaled first")
        return tuple(found)

    def _lose(self, statements: Iterable[ast.AST]) -> None:
        self.gone |= {id(inner) for statement in statements for inner in ast.walk(statement)}

    # --- the start --------------------------------------------------------------------------------------------------

    def _start(self, pen: Pen, start: Start) -> None:
        tree = self._facts.tree(start.call)
        statement = tree.statement(start.call)
        told = f"{PRECISION} = {start.precision}" if start.precision is not None else ""
        rest = _without(statement, start)
        goes, above = statement, tree.parents[statement]
        while not rest and isinstance(above, ast.If) and self._only_starts(above, goes):
            goes, above = above, tree.parents[above]
        self._lose([goes])
        if goes is not statement or (not rest and not isinstance(above, ast.If)):
            pen.replace(goes, told) if told else pen.remove(goes)
            return
        if rest:
            pen.replace(statement, rest)
        else:
            pen.remove(statement)
        if told:
            pen.before(self._first(statement), told)

    def _first(self, statement: ast.stmt) -> ast.stmt:
        """The statement around one before which all of the conditions are still open."""
        tree = self._facts.tree(statement)
        while isinstance(above := tree.parents[statement], ast.If):
            statement = above
        return statement

    def _only_starts(self, node: ast.If, goes: ast.stmt) -> bool:
        above = self._facts.tree(node).parents[node]
        is_elif = isinstance(above, ast.If) and above.orelse == [node]
        others = [s for s in node.body if s is not goes]
        return (
            not is_elif
            and not node.orelse
            and all(is_import(s) or (isinstance(s, ast.Try) and imports_apex(s)) for s in others)
        )

    # --- branches ---------------------------------------------------------------------------------------------------

    def _fold(self, pen: Pen, node: ast.If) -> None:
        """Keep the branch without apex, if the other comes to the same."""
        if not node.orelse:
            return
        with_apex = [self._uses(node.body), self._uses(node.orelse)]
        if with_apex[0] is with_apex[1] or self._plain(node.body) != self._plain(node.orelse):
            return
        lost, kept = (node.orelse, node.body) if with_apex[1] else (node.body, node.orelse)
        self._note_clipping(lost)
        self._unscale(pen, kept, self._optimizers(lost))
        pen.fold(node, "body" if with_apex[1] else "orelse")
        self._lose(lost)

    def _uses(self, block: list[ast.stmt]) -> bool:
        names = (self._facts.called(n) for s in block for n in ast.walk(s) if isinstance(n, ast.Call))
        return any(name.startswith(AMP) for found in names for name in found)

    def _plain(self, block: list[ast.stmt]) -> list[str]:
        root = ast.Module(list(block), [])
        copied = copy.deepcopy(root)
        marks = {id(new): old for old, new in zip(ast.walk(root), ast.walk(copied), strict=True)}
        return [ast.dump(statement) for statement in _Plain(self._facts, self._apex, marks).visit(copied).body]

    # --- losses -----------------------------------------------------------------------------------------------------

    def _dissolve(self, pen: Pen, node: ast.With, call: ast.Call) -> None:
        """`with amp.scale_loss(loss, optimizer) as scaled_loss:` gives way to its body."""
        self._note_clipping([node])
        loss = _loss(call)
        text = ast.unparse(loss)
        for statement in node.body:
            for read in ast.walk(statement):
                if isinstance(read, ast.Name) and read.id == alias(node):
                    pen.rewrite(read, text if isinstance(loss, (ast.Name, ast.Attribute, ast.Call)) else f"({text})")
        self._unscale(pen, node.body, self._optimizers([node]))
        pen.unwrap(node)

    def _optimizers(self, block: Sequence[ast.stmt]) -> str:
        """The optimizers whose gradients a block scales, as they are written."""
        for node in (n for s in block for n in ast.walk(s) if isinstance(n, ast.With) and n in self._apex.scalings):
            call = self._apex.scalings[node]
            given = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "optimizers")]
            if given:
                return ast.unparse(given[0])
        return ""

    def _unscale(self, pen: Pen, block: Sequence[ast.stmt], optimizers: str) -> None:
        """Where gradients are read, take their scale off right after the backward, as apex did."""
        if not self._apex.reads_gradients or not optimizers:
            return
        for statement in (n for s in block for n in ast.walk(s) if isinstance(n, ast.Expr)):
            call = statement.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
                pen.after(statement, f"{ACCELERATOR}.unscale_gradients({optimizers})")

    def _note_clipping(self, block: Sequence[ast.stmt]) -> None:
        inside = (
            n
            for s in block
            for w in ast.walk(s)
            if isinstance(w, ast.With) and w in self._apex.scalings
            for n in ast.walk(w)
        )
        if any(isinstance(n, ast.Call) and self._facts.called(n) & CLIPPING.keys() for n in inside):
            self._clipped_inside = True

    def _parameters(self, call: ast.Call) -> str:
        """What `amp.master_params(optimizer)` gives where the parameters themselves are trained."""
        optimizer = call.args[0] if call.args else call.keywords[0].value
        for made in origins(self._facts.values(optimizer), Role.OPTIMIZER):
            over = made.args[0] if isinstance(made, ast.Call) and made.args else None
            if not isinstance(over, ast.Call) or not isinstance(over.func, ast.Attribute):
                continue
            if over.func.attr == "parameters" and not over.args:
                model = origins(self._facts.values(over.func.value), Role.MODEL)
                if model and (name := next(self._names(call, model), None)):
                    return f"{name}.parameters()"
        return f'(p for group in {ast.unparse(optimizer)}.param_groups for p in group["params"])'

    def _names(self, node: ast.AST, model: set[ast.AST]) -> Iterator[str]:
        """What a model is called where a node stands: by the name that is called there, if there is one."""
        function = self._facts.tree(node).function(node)
        called = [n.func for n in ast.walk(function) if isinstance(n, ast.Call)]
        for found in (*called, *ast.walk(function)):
            if isinstance(found, (ast.Name, ast.Attribute)) and isinstance(found.ctx, ast.Load):
                name = ast.unparse(found)
                if name.replace(".", "").isidentifier() and origins(self._facts.values(found), Role.MODEL) == model:
                    yield name

    # --- checkpoints ------------------------------------------------------------------------------------------------

    def _states(self, pen: Pen) -> None:
        """The state of the scaler; one that apex has saved says nothing to the accelerator's."""
        scaler = f"{ACCELERATOR}.scaler"
        for call in self._apex.of("state_dict"):
            pen.rewrite(call, f"{scaler}.state_dict() if {scaler} else {{}}")
        for call in self._apex.of("load_state_dict"):
            statement = self._facts.tree(call).statement(call)
            state = call.args[0] if call.args else call.keywords[0].value
            code = f'if {scaler} and "scale" in {{state}}:\n    {scaler}.load_state_dict({{state}})'
            pen.replace(statement, code, state=state)
            self._lose([statement])


class _Plain(ast.NodeTransformer):
    """Statements as they would be written without apex, for comparison."""

    def __init__(self, facts: Facts, apex: Apex, marks: dict[int, ast.AST]) -> None:
        self._facts = facts
        self._apex = apex
        self._marks = marks
        self._losses: dict[str, ast.expr] = {}

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        original = self._marks.get(id(node))
        if not isinstance(original, ast.With) or original not in self._apex.scalings:
            self.generic_visit(node)
            return node
        self._losses[alias(original)] = _loss(self._apex.scalings[original])
        self.generic_visit(node)
        return node.body

    def visit_Name(self, node: ast.Name) -> ast.AST:
        loss = self._losses.get(node.id)
        return copy.deepcopy(loss) if loss is not None and isinstance(node.ctx, ast.Load) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        original = self._marks.get(id(node))
        self.generic_visit(node)
        called = self._facts.called(original) if isinstance(original, ast.Call) else set()
        if called & CLIPPING.keys() and node.args:
            node.args[0] = ast.Name(_CLIPPED, ast.Load())
        is_all = isinstance(node.func, ast.Attribute) and node.func.attr == "parameters" and not node.args
        return ast.Name(_CLIPPED, ast.Load()) if is_all or f"{AMP}master_params" in called else node


def _loss(call: ast.Call) -> ast.expr:
    return call.args[0] if call.args else next(k.value for k in call.keywords if k.arg == "loss")


def _without(statement: ast.stmt, start: Start) -> str:
    """What is left of the statement of a start; nothing where names keep what they have."""
    given = [start.given[name] for name in ("models", "optimizers") if name in start.given]
    value = ", ".join(ast.unparse(part) for part in given)
    if isinstance(statement, ast.Return):
        return f"return {value}"
    if not isinstance(statement, ast.Assign):
        return ""
    target = statement.targets[0]
    if _flat([target]) == _flat(given):
        return ""
    return f"{ast.unparse(target).strip('()')} = {value}"


def _flat(nodes: Sequence[ast.expr]) -> list[str]:
    found: list[str] = []
    for node in nodes:
        found += _flat(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [ast.unparse(node)]
    return found
