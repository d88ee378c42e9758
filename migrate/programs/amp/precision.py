"""What becomes of the mixed precision that a program does by hand: its autocast contexts and its gradient scaler.

A scaler that only scales, steps and updates gives way to `Accelerator(mixed_precision="fp16")`. Anything else is kept
as it was written, scaler and all: what DistributedDataParallel averages are scaled gradients, an overflow on one
process becomes one on all of them, and so the scalers of all processes go the same way.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.known import amp
from migrate.analysis.known.training import CLIPPING
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_only_asked
from migrate.programs.amp import apex
from migrate.programs.amp.condition import asked_at, given_to
from migrate.programs.amp.contexts import Contexts
from migrate.programs.amp.handed import is_only_name, is_read_in, parameter_for
from migrate.programs.amp.plain import scaled_call, without_scaling
from migrate.programs.amp.switch import Stays, Switch, read
from migrate.programs.argument import Argument
from migrate.programs.reach.outsiders import units_of
from migrate.programs.values.conditions import MIRRORED, needs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


class Becomes(Enum):
    """What becomes of one use of the scaler."""

    GONE = "the statement goes away"
    BACKWARD = "scaler.scale(loss).backward(): the accelerator scales"
    STEP = "scaler.step(optimizer): the optimizer steps"
    UNSCALED = "scaler.unscale_(optimizer): the accelerator unscales"
    CLIPPED = "scaler.unscale_(optimizer): the clipping that comes next unscales"
    STATE = "scaler.state_dict()"
    LOADED = "scaler.load_state_dict(...)"
    SCALE = "scaler.get_scale()"
    SKIPPED = "a comparison of scales: whether the step was skipped"
    NOT_SKIPPED = "a comparison of scales: whether the step was made"
    ITSELF = "the accelerator's scaler"
    HANDED = "train(model, scaler): the argument goes away"
    TAKEN = "def train(model, scaler): the parameter goes away"


@dataclass(frozen=True, slots=True)
class Mixed:
    """The decisions about a program's mixed precision."""

    arguments: tuple[Argument, ...] = ()  # of the accelerator's constructor
    contexts: tuple[ast.expr, ...] = ()  # that become accelerator.autocast()
    uses: tuple[tuple[ast.AST, Becomes], ...] = ()
    folds: tuple[tuple[ast.If, bool], ...] = ()  # True: the body is kept, False: the else part
    kept: tuple[tuple[ast.AST, str], ...] = ()  # what stays by hand, and why
    outside: tuple[ast.Call, ...] = ()  # calls of the model that autocast comes to, though the original had none there
    told: tuple[tuple[ast.AST, str], ...] = ()  # what a person must know
    was_apex: bool = False  # there is no way to keep it

    def of(self, *wanted: Becomes) -> list[ast.AST]:
        """The uses that become one of these."""
        return [node for node, becomes in self.uses if becomes in wanted]

    def by_hand(self, why: str) -> Mixed:
        """The decision to leave everything as it is."""
        return Mixed(kept=((self.uses[0][0], why),)) if self.uses else self


def decide(facts: Facts, loops: Loops, program: Program, chosen: frozenset[str]) -> Mixed:
    """What becomes of the scaler and the contexts of a program; what cannot be proven stays.

    `chosen` are the names of the devices that its home chooses.
    """
    units = units_of(facts, program)
    if starts := apex.started(facts, units):
        gone = tuple((start, Becomes.GONE) for start in starts)
        told = tuple((starts[0], text) for text in program.said)
        return Mixed((apex.argument(facts, program, starts),), uses=gone, told=told, was_apex=True)
    scalers = [use for use in facts.calls if _makes_scaler(facts, use.node)]
    made = [use for use in scalers if use.unit in units or is_read_in(facts, units, use.node)]
    if not made:
        return Mixed()
    if len(made) > 1:
        return _by_hand(made[0].node, "there are several scalers, which go different ways")
    try:
        return _Reader(facts, loops, program, units, read(facts, made[0].node, made[0].unit), chosen).decided()
    except Stays as stays:
        return _by_hand(made[0].node, f"{stays.why} (line {getattr(stays.node, 'lineno', 0)})")


def _by_hand(node: ast.AST, why: str) -> Mixed:
    return Mixed(kept=((node, why),))


def _makes_scaler(facts: Facts, node: ast.Call) -> bool:
    return any(value.role is Role.SCALER and value.origin is node for value in facts.values(node))


class _Reader:
    """Reads how one scaler is used; what is not understood is an exception."""

    def __init__(
        self,
        facts: Facts,
        loops: Loops,
        program: Program,
        units: set[Unit],
        switch: Switch,
        chosen: frozenset[str],
    ) -> None:
        self._facts = facts
        self._chosen = chosen
        self._loops = loops
        self._program = program
        self._units = units
        self._switch = switch
        self._contexts = Contexts(facts, program, loops, units, switch)
        self._uses: dict[ast.AST, Becomes] = {}
        self._settled: set[int] = set()  # ids of nodes that go away with what is around them
        self._plain: set[int] = set()  # ids of nodes in branches without mixed precision

    def decided(self) -> Mixed:
        if not self._facts.called(self._switch.made) <= amp.CUDA_SCALERS:
            raise Stays(self._switch.made, "it is not PyTorch's scaler for CUDA")
        self._uses.update(dict.fromkeys(self._switch.statements, Becomes.GONE))
        for statement in self._switch.statements:
            self._settle(statement)
        for context in self._contexts.found:
            self._settle(context)
        folds = tuple(self._folds())
        self._plain = {
            id(inner) for node, _ in folds for statement in self._without(node) for inner in ast.walk(statement)
        }
        self._compare_scales()
        for node in self._reads():
            self._read(node)
        self._check_all_scaled()
        self._check_order()
        dropped = {
            id(inner)
            for node, is_body in folds
            for statement in (node.orelse if is_body else node.body)
            for inner in ast.walk(statement)
        }
        outside = tuple(self._contexts.outside(dropped))
        argument = self._argument()
        self._uses.update(dict.fromkeys(self._idle(argument), Becomes.GONE))
        return Mixed((argument,), self._contexts.found, tuple(self._uses.items()), folds, (), outside)

    def _argument(self) -> Argument:
        flag = self._switch.flag
        if flag is None:
            return Argument("mixed_precision", "'fp16'")
        unit, home, start = self._switch.unit, self._program.home, self._program.start
        if unit is not home or (asked := asked_at(self._facts, start, unit, flag, self._chosen)) is None:
            raise Stays(flag, f"{ast.unparse(flag)} is not at hand where the accelerator is made")
        return Argument("mixed_precision", f"'fp16' if {ast.unparse(asked)} else 'no'", frozenset(needs(asked)))

    def _idle(self, argument: Argument) -> Iterator[ast.stmt]:
        """What gave the flag its name, where neither the accelerator nor anything that stays reads that."""
        flag = self._switch.flag
        given = given_to(self._facts, self._switch.unit, flag) if flag is not None else None
        if given is None or (name := ast.unparse(given.targets[0])) in argument.needs:
            return
        gone = self._settled | {id(inner) for made in (given, *self._switch.statements) for inner in ast.walk(made)}
        last = name.rpartition(".")[2]
        nodes = (node for module in self._facts.modules for node in self._facts.tree_of(module).nodes)
        if all(id(node) in gone for node in nodes if last in (getattr(node, "id", ""), getattr(node, "attr", ""))):
            yield given

    def _settle(self, node: ast.AST) -> None:
        self._settled |= {id(inner) for inner in ast.walk(node)}

    # --- branches ---------------------------------------------------------------------------------------------------

    def _folds(self) -> Iterator[tuple[ast.If, bool]]:
        """The tests for mixed precision whose branches come to the same without it: one of them is enough."""
        for unit in self._units:
            for node in self._facts.own(unit):
                if not isinstance(node, ast.If) or self._switch.side(self._facts, node.test) is None:
                    continue
                if not self._is_touched(node):
                    continue
                off = self._without(node)
                on = node.orelse if off is node.body else node.body
                if on and off:
                    self._check_same(node, on, off)
                    self._settle(node.test)
                    yield node, (on if self._has_context(on) else off) is node.body
                elif self._trains(node) or self._has_context(on):
                    raise Stays(node, "what happens without mixed precision is not seen")

    def _without(self, node: ast.If) -> list[ast.stmt]:
        """The branch without mixed precision."""
        return node.orelse if self._switch.side(self._facts, node.test) else node.body

    def _is_touched(self, node: ast.If) -> bool:
        """Whether there is mixed precision in a branch, other than the making of the scaler."""
        made = {id(inner) for statement in self._switch.statements for inner in ast.walk(statement)}
        inside = (i for statement in (*node.body, *node.orelse) for i in ast.walk(statement) if id(i) not in made)
        return any(i in self._contexts.found or self._is_scaler(i) or self._is_backward(i) for i in inside)

    def _check_same(self, node: ast.If, on: list[ast.stmt], off: list[ast.stmt]) -> None:
        above = self._facts.tree(node).parents[node]
        if isinstance(above, ast.If) and above.orelse == [node] and above.col_offset == node.col_offset:
            raise Stays(node, "mixed precision is chosen in an elif")
        found = self._contexts.found
        first, second = (without_scaling(self._facts, block, self._switch.made, found) for block in (on, off))
        if first != second:
            raise Stays(node, "the branches with and without mixed precision differ")

    def _has_context(self, block: list[ast.stmt]) -> bool:
        return any(inner in self._contexts.found for statement in block for inner in ast.walk(statement))

    def _trains(self, node: ast.If) -> bool:
        return any(self._is_backward(i) or self._method(i) == "step" for s in node.body for i in ast.walk(s))

    def _is_backward(self, node: ast.AST) -> bool:
        return any(node is call for loop in self._program.training for call in loop.backwards)

    # --- uses -------------------------------------------------------------------------------------------------------

    def _is_scaler(self, node: ast.AST) -> bool:
        return (
            isinstance(node, (ast.Name, ast.Attribute))
            and isinstance(node.ctx, ast.Load)
            and self._switch.made in origins(self._facts.values(node), Role.SCALER)
        )

    def _method(self, node: ast.AST) -> str | None:
        return scaled_call(self._facts, node, self._switch.made)

    def _reads(self) -> Iterator[ast.expr]:
        """Where the scaler is read, in any file."""
        for module in self._facts.modules:
            for node in self._facts.tree_of(module).nodes:
                if id(node) not in self._settled and self._is_scaler(node):
                    assert isinstance(node, ast.expr)
                    if self._facts.unit(node) not in {*self._units, self._switch.unit}:
                        raise Stays(node, f"it is also used in {module.path}")
                    yield node

    def _read(self, node: ast.expr) -> None:
        """Say what becomes of one use."""
        tree = self._facts.tree(node)
        parent = tree.parents[node]
        call = tree.parents[parent]
        if isinstance(parent, ast.Attribute) and self._facts.unit(node) not in self._units:
            raise Stays(node, "it is also used before the accelerator exists")
        if isinstance(parent, ast.Attribute) and isinstance(call, ast.Call) and call.func is parent:
            self._called(call, parent.attr, tree.statement(node))
        elif self._switch.may_be_none and is_only_asked(tree.parents, node):
            self._uses[node] = Becomes.ITSELF
        elif isinstance(parent, ast.Assign) and is_only_name(self._facts, parent):
            self._uses[parent] = Becomes.GONE  # `self.scaler = scaler`: who reads that is asked as well
        elif (taken := parameter_for(self._facts, self._units, node, self._is_scaler)) is not None:
            self._uses[node] = Becomes.HANDED
            self._uses[taken] = Becomes.TAKEN
        else:
            raise Stays(node, "it is handed on")

    def _called(self, call: ast.Call, method: str, statement: ast.stmt) -> None:
        is_statement = isinstance(statement, ast.Expr) and statement.value is call
        given = len(call.args) + len(call.keywords)
        if method == "scale" and given == len(call.args) == 1:
            self._uses[self._backward_of(call)] = Becomes.BACKWARD
        elif method == "step" and is_statement and given == len(call.args) == 1 and self._steps_optimizer(call):
            self._uses[call] = Becomes.STEP
        elif method == "update" and is_statement and not given:
            self._uses[statement] = Becomes.GONE
        elif method == "unscale_" and is_statement and given == len(call.args) == 1:
            self._uses[call] = Becomes.CLIPPED if self._clips(self._next(statement)) else Becomes.UNSCALED
        elif method in _ASKED and (method != "load_state_dict" or is_statement):
            is_there = self._is_asked_for(call)
            assert isinstance(call.func, ast.Attribute)
            self._uses[call.func.value if is_there else call] = Becomes.ITSELF if is_there else _ASKED[method]
        else:
            raise Stays(call, f"{ast.unparse(call)} has no counterpart")

    def _is_asked_for(self, call: ast.Call) -> bool:
        """Whether code runs only where there is a scaler: `if scaler is not None:`."""
        below: ast.AST = call
        for above in self._facts.tree(call).up(call):
            if isinstance(above, ast.If) and below in above.body and self._switch.side(self._facts, above.test):
                if any(self._is_scaler(inner) for inner in ast.walk(above.test)):
                    return True
            below = above
        return False

    def _backward_of(self, call: ast.Call) -> ast.Call:
        tree = self._facts.tree(call)
        attribute = tree.parents[call]
        backward = tree.parents[attribute]
        if isinstance(attribute, ast.Attribute) and isinstance(backward, ast.Call) and self._is_backward(backward):
            return backward
        raise Stays(call, "the scaled loss is kept")

    def _steps_optimizer(self, call: ast.Call) -> bool:
        mine = {origin for named in self._program.optimizers for origin in named.origins}
        made = origins(self._facts.values(call.args[0]), Role.OPTIMIZER)
        return bool(made) and made <= mine

    def _next(self, statement: ast.stmt) -> ast.stmt | None:
        block = self._facts.tree(statement).block(statement)
        following = block[block.index(statement) + 1 :]
        return following[0] if following else None

    def _clips(self, node: ast.AST | None) -> bool:
        return node is not None and any(
            isinstance(inner, ast.Call) and self._facts.called(inner) & CLIPPING.keys() for inner in ast.walk(node)
        )

    # --- scales -----------------------------------------------------------------------------------------------------

    def _compare_scales(self) -> None:
        """`scale = scaler.get_scale()`, and later `if scale <= scaler.get_scale(): scheduler.step()`."""
        for unit in self._units:
            before = {
                statement.targets[0].id: statement
                for statement in self._facts.own(unit)
                if isinstance(statement, ast.Assign)
                and isinstance(statement.targets[0], ast.Name)
                and self._method(statement.value) == "get_scale"
            }
            compared = [n for n in self._facts.own(unit) if before and isinstance(n, ast.Compare)]
            for node in compared:
                self._compare(node, before)
            names = [n for n in self._facts.own(unit) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
            for name, statement in before.items():
                if any(n.id == name and id(n) not in self._settled for n in names):
                    raise Stays(statement, f"{name} is used otherwise, too")
                self._settle(statement)
                self._uses[statement] = Becomes.GONE

    def _compare(self, node: ast.Compare, before: dict[str, ast.Assign]) -> None:
        left, op, right = node.left, node.ops[0], node.comparators[0]
        if len(node.ops) != 1:
            return
        if self._method(left) == "get_scale":
            left, right, op = right, left, MIRRORED.get(type(op), type(op))()
        if not isinstance(left, ast.Name) or left.id not in before or self._method(right) != "get_scale":
            return
        found = {ast.LtE: Becomes.NOT_SKIPPED, ast.Gt: Becomes.SKIPPED}.get(type(op))
        if found is None:
            raise Stays(node, "the scales are compared in another way than by <=")
        self._uses[node] = found
        self._settle(node)

    def _check_all_scaled(self) -> None:
        """A loss that is not scaled is trained without mixed precision, which nothing else turns off then."""
        if self._switch.flag is not None or self._switch.may_be_none:
            return
        for loop in self._program.training:
            for call in loop.backwards:
                if self._uses.get(call) is not Becomes.BACKWARD:
                    raise Stays(call, "a loss is also trained without the scaler")

    # --- order ------------------------------------------------------------------------------------------------------

    def _check_order(self) -> None:
        """The accelerator updates the scale before the next backward after a step: so must the program."""
        calls = [use.node for use in self._facts.calls if use.unit in self._units and id(use.node) not in self._plain]
        steps = [call for call in calls if self._method(call) == "step"]
        updates = [call for call in calls if self._method(call) == "update"]
        backwards = [call for call in calls if self._method(call) == "scale"]
        unscaled = [call for call in calls if self._method(call) == "unscale_"]
        clipped = [call for call in calls if self._clips(call)]
        if clipped and not unscaled:
            raise Stays(clipped[0], "gradients are clipped while they are scaled")
        for step in steps:
            block = self._block(step)
            at = [u for u in updates if self._block(u) is block and u.lineno > step.lineno]
            if not at:
                raise Stays(step, "the scale is not updated right after the step")
            if any(step.lineno < b.lineno < at[0].lineno for b in backwards):
                raise Stays(step, "a loss is scaled between the step and the update")
            for call in (*clipped, *unscaled):
                tree = self._facts.tree(call)
                if self._facts.unit(call) is self._facts.unit(step) and tree.in_block(call, block) is None:
                    if not any(tree.in_block(call, self._block(other)) for other in steps):
                        raise Stays(call, "gradients are unscaled apart from the step")
        if not steps or len({id(self._facts.unit(call)) for call in (*steps, *updates, *backwards)}) > 1:
            raise Stays(self._switch.made, "it scales, steps and updates in several functions")

    def _block(self, call: ast.Call) -> list[ast.stmt]:
        tree = self._facts.tree(call)
        return tree.block(tree.statement(call))


#: What is asked of a scaler that may not be there.
_ASKED = {"state_dict": Becomes.STATE, "load_state_dict": Becomes.LOADED, "get_scale": Becomes.SCALE}
