"""The autocast contexts of a program, and whether its model is called inside of them."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import amp
from migrate.analysis.known.training import NO_GRAD
from migrate.analysis.roles import Role, origins
from migrate.programs.amp.switch import Stays, Switch
from migrate.programs.reach.callees import on_all_ways

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

_FLOAT16 = frozenset({"torch.float16", "torch.half"})


class Contexts:
    """The contexts that are on whenever a scaler is."""

    def __init__(self, facts: Facts, program: Program, loops: Loops, units: set[Unit], switch: Switch) -> None:
        self._facts = facts
        self._program = program
        self._loops = loops
        self._units = units
        self._switch = switch

    @cached_property
    def found(self) -> tuple[ast.expr, ...]:
        """The expressions that make the contexts of `with` statements.

        Raises:
            Stays: one is used in another way, or computes in another precision than the scaler is for.
        """
        uses = [use for use in self._facts.calls if self._facts.called(use.node) & amp.AUTOCAST]
        return tuple(made for use in uses if use.unit in self._units and (made := self._made(use.node)) is not None)

    def _made(self, call: ast.Call) -> ast.expr | None:
        """The expression that is the context of a `with`; None where autocast is turned off, or stays on a method."""
        tree = self._facts.tree(call)
        parent = tree.parents[call]
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        if any(value.name not in amp.AUTOCAST for value in self._facts.values(call.func)):
            raise Stays(call, "this context may be another one than autocast")
        given = _arguments(self._facts, call)
        flag = given.get("enabled")
        if isinstance(flag, ast.Constant) and flag.value is False:
            return None
        self._check_kind(call, given)
        if isinstance(parent, ast.IfExp) and flag is None and self._is_choice(parent, call):
            return parent
        if not isinstance(parent, ast.withitem):
            raise Stays(call, "an autocast context is not made where it is entered")
        is_plain = flag is None or (isinstance(flag, ast.Constant) and flag.value is True)
        if not (self._is_among_on(call) if is_plain else self._is_on(flag)):
            raise Stays(call, "autocast is not on where the scaler is, and off where it is not")
        return call

    def _is_choice(self, node: ast.IfExp, call: ast.Call) -> bool:
        """`with autocast() if args.amp else nullcontext():`."""
        is_nothing = isinstance(node.orelse, ast.Call) and self._facts.called(node.orelse) & amp.NO_CONTEXTS
        is_entered = isinstance(self._facts.tree(node).parents[node], ast.withitem)
        return bool(is_nothing) and is_entered and node.body is call and self._is_on(node.test)

    def _check_kind(self, call: ast.Call, given: dict[str, ast.expr]) -> None:
        device, dtype = given.get("device_type"), given.get("dtype")
        if "cache_enabled" in given or "" in given:
            raise Stays(call, "autocast has settings of its own")
        if device is not None and {(v.role, v.name) for v in self._facts.values(device)} != {(Role.TEXT, "cuda")}:
            raise Stays(call, "autocast computes in low precision on the CPU, too")
        if dtype is not None and not (self._facts.names(dtype) and self._facts.names(dtype) <= _FLOAT16):
            raise Stays(call, "autocast computes in another precision than float16")

    def _is_on(self, test: ast.expr | None) -> bool:
        return test is not None and self._switch.side(self._facts, test) is True

    def _is_among_on(self, call: ast.Call) -> bool:
        """Whether code only runs where the scaler is on."""
        if self._switch.flag is None and not self._switch.may_be_none:
            return True
        below: ast.AST = call
        for above in self._facts.tree(call).up(call):
            if isinstance(above, ast.If):
                side = self._switch.side(self._facts, above.test)
                if (side is True and below in above.body) or (side is False and below in above.orelse):
                    return True
            below = above
        return False

    # --- the model --------------------------------------------------------------------------------------------------

    def outside(self, dropped: Collection[int]) -> Iterator[ast.Call]:
        """The calls of the model without autocast that train nothing.

        Raises:
            Stays: the model is also trained outside of autocast.
        """
        for use in self._facts.calls:
            if use.unit not in self._units or id(use.node) in dropped or not self._calls_model(use):
                continue
            if on_all_ways(self._facts, use.node, self._is_inside):
                continue
            if self._trains(use):
                raise Stays(use.node, "the model is also trained outside of autocast")
            yield use.node

    def _calls_model(self, use: Use) -> bool:
        return bool(origins(self._facts.values(use.node.func), Role.MODEL) & self._program.model_origins)

    def _is_inside(self, node: ast.AST) -> bool | None:
        """Whether code runs inside of a context that its function enters; None: its callers say."""
        for above in self._facts.tree(node).up(node):
            if isinstance(above, (ast.With, ast.AsyncWith)):
                entered = [item.context_expr for item in above.items]
                if any(context in self.found for context in entered):
                    return True
                if any(isinstance(c, ast.Call) and self._facts.called(c) & amp.AUTOCAST for c in entered):
                    return False
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
        return None

    def _trains(self, use: Use) -> bool:
        """Whether gradients of a call may be used."""
        if on_all_ways(self._facts, use.node, self._is_without_gradients):
            return False
        return any(
            any(inner is use.node for inner in ast.walk(loop.node))
            or use.unit in self._loops.updates.functions(loop.node)
            for loop in self._program.training
        )

    def _is_without_gradients(self, node: ast.AST) -> bool | None:
        """Whether code computes no gradients for its function, or evaluates; None: its callers say."""
        for above in self._facts.tree(node).up(node):
            if isinstance(above, ast.With) and any(
                isinstance(item.context_expr, ast.Call) and self._facts.called(item.context_expr) & NO_GRAD
                for item in above.items
            ):
                return True
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
                called = [d.func if isinstance(d, ast.Call) else d for d in above.decorator_list]
                if any(self._facts.names(decorator) & NO_GRAD for decorator in called):
                    return True
                break
        if any(any(inner is node for inner in ast.walk(loop.node)) for loop in self._program.evaluation):
            return True
        return None


#: The parameters of autocast, without those that its old forms leave out.
_GENERAL = ("device_type", "dtype", "enabled", "cache_enabled")
_OLD = ("enabled", "dtype", "cache_enabled")


def _arguments(facts: Facts, call: ast.Call) -> dict[str, ast.expr]:
    """What autocast is given by the names of its parameters; what is not plain by the empty name."""
    is_old = any(".cuda." in name or ".cpu." in name for name in facts.called(call))
    names = _OLD if is_old else _GENERAL
    found = dict(zip(names, call.args, strict=False))
    found.update({keyword.arg or "": keyword.value for keyword in call.keywords})
    if any(isinstance(value, ast.Starred) for value in call.args):
        found[""] = call.args[0]
    if any(".cpu." in name for name in facts.called(call)):
        found["device_type"] = ast.Constant("cpu")
    return found
