"""What a program has of apex: where its mixed precision starts, where a loss is scaled, and what has no counterpart."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import is_main_guard
from migrate.programs.program import Refusal
from migrate.programs.values.conditions import flag, negated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.alone.presence import Presence
    from migrate.alone.world import World
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module

AMP = "apex.amp."
#: What keeps parameters, or optimizer states, in float16, by its last name.
_IN_HALF = frozenset(
    """FP16_Optimizer FP16Model network_to_half BN_convert_float convert_network convert_module prep_param_lists
    model_grads_to_master_grads master_params_to_model_params tofp16""".split()
)
_KNOWN = frozenset("initialize scale_loss master_params state_dict load_state_dict".split())
_PARAMETERS = (
    "models", "optimizers", "enabled", "opt_level", "cast_model_type", "patch_torch_functions", "keep_batchnorm_fp32",
    "master_weights", "loss_scale", "cast_model_outputs", "num_losses", "verbosity", "min_loss_scale", "max_loss_scale",
)  # fmt: skip
_IDLE = frozenset("models optimizers enabled opt_level num_losses verbosity min_loss_scale max_loss_scale".split())
_LOST = frozenset({"loss_scale", "keep_batchnorm_fp32"})  # only apex knows them
_HALF_LEVELS = frozenset({"O2", "O3"})
#: What may be done with a gradient whether it is scaled or not.
_LINEAR = frozenset("zero_ detach_ div_ mul_ clone".split())
_FARTHEST = 4  # names that a flag is followed through
_FULL = "take the .half() calls and what converts to float16 out"


@dataclass(frozen=True, slots=True)
class Start:
    """One call of `amp.initialize`."""

    call: ast.Call
    given: dict[str, ast.expr]  # by the names of the parameters; "" where that is not plain
    tests: tuple[ast.expr, ...]  # that hold where it is called

    @property
    def level(self) -> ast.expr:
        """The opt_level."""
        return self.given.get("opt_level", ast.Constant("O1"))

    @property
    def precision(self) -> str | None:
        """What `mixed_precision` is given, as Python source; None where it is always full."""
        tests, level = list(self.tests), self.level
        if isinstance(level, ast.Constant) and level.value == "O0":
            return None
        if not isinstance(level, ast.Constant):
            if not tests:
                return f"'no' if {ast.unparse(level)} == 'O0' else 'fp16'"
            asked = ast.Compare(level, [ast.NotEq()], [ast.Constant("O0")])
            if ast.unparse(asked) not in map(ast.unparse, tests):
                tests.append(asked)
        if not tests:
            return "'fp16'"
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return f"'fp16' if {ast.unparse(test)} else 'no'"

    @property
    def lost(self) -> list[str]:
        """The settings that only apex knows, as they are written."""
        found = {name: value for name, value in self.given.items() if name in _LOST and not _is_default(value)}
        return [f"{name}={ast.unparse(value)}" for name, value in found.items()]


class Apex:
    """The uses of apex in some modules."""

    def __init__(self, world: World, modules: Sequence[Module], dead: Collection[int], presence: Presence) -> None:
        self.facts = world.facts
        self._sources = world.sources
        self.modules = modules
        self.presence = presence
        self._dead = dead  # ids of nodes that go away for another reason

    @cached_property
    def calls(self) -> list[tuple[ast.Call, str]]:
        """The calls of what apex has, with their dotted names."""
        found = []
        for module in self.modules:
            for node in self.facts.tree(module.tree).nodes:
                if isinstance(node, ast.Call) and id(node) not in self._dead:
                    names = sorted(name for name in self.facts.called(node) if name.startswith("apex."))
                    found += [(node, names[0])] if names else []
        return found

    def of(self, name: str) -> list[ast.Call]:
        """The calls of one function of apex.amp."""
        return [call for call, called in self.calls if called == AMP + name]

    @property
    def is_used(self) -> bool:
        """Whether there is anything that changes."""
        return any(_is_changed(name) for _, name in self.calls)

    @cached_property
    def starts(self) -> tuple[Start, ...]:
        """The calls that turn mixed precision on."""
        found = []
        for call in self.of("initialize"):
            given = {name: self._earliest(value) for name, value in _given(call).items()}
            found.append(Start(call, given, tuple(map(self._earliest, self._tests(call)))))
        return tuple(found)

    def _earliest(self, node: ast.expr) -> ast.expr:
        """The `args.fp16`, or the parameter, that a name was given once and for all: it is there before the name."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return node  # perhaps put together here
        found: ast.expr = node
        unit = self.facts.unit(node)
        for _ in range(_FARTHEST):
            if not isinstance(found, (ast.Name, ast.Attribute)) or self._sources.option(found) is not None:
                break
            is_parameter = isinstance(found, ast.Name) and found.id in getattr(unit, "parameter_names", ())
            given = self._sources.given(found).only
            if is_parameter or given is None:
                break
            found = self.presence.rest(given) or found
        is_parameter = isinstance(found, ast.Name) and found.id in getattr(unit, "parameter_names", ())
        is_there = is_parameter and not any(b.target == ast.unparse(found) for b in self.facts.bindings_in(unit))
        return found if is_there or self._sources.option(found) is not None else node

    @cached_property
    def scalings(self) -> dict[ast.With, ast.Call]:
        """The `with amp.scale_loss(...) as scaled_loss:`."""
        found = {}
        for call in self.of("scale_loss"):
            tree = self.facts.tree(call)
            item = tree.parents[call]
            above = tree.parents[item]
            if isinstance(item, ast.withitem) and isinstance(above, ast.With) and len(above.items) == 1:
                if isinstance(item.optional_vars, ast.Name):
                    found[above] = call
        return found

    def _tests(self, call: ast.Call) -> Iterator[ast.expr]:
        """The conditions under which mixed precision is on; those that hold for all of the training say nothing."""
        enabled = _given(call).get("enabled")
        if enabled is not None and not isinstance(enabled, ast.Constant):
            yield enabled
        below: ast.AST = call
        found: list[ast.expr] = []
        for above in self.facts.tree(call).up(call):
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                break
            if isinstance(above, ast.If) and not is_main_guard(above) and not self._trains(above):
                test = above.test if below in above.body else negated(above.test)
                rest = self.presence.rest(test)
                rest = flag(self.facts, rest) if rest is not None else None
                found += [rest] if rest is not None else []
            below = above
        yield from reversed(found)

    def _trains(self, node: ast.If) -> bool:
        return any(inner in self.scalings for inner in ast.walk(node) if isinstance(inner, ast.With))

    # --- what has no counterpart ------------------------------------------------------------------------------------

    def obstacles(self) -> Iterator[Refusal]:
        """Why the precision cannot be handed to the accelerator."""
        for call, name in self.calls:
            last = name.rpartition(".")[2]
            if last in _IN_HALF:
                why = f"{last} keeps the parameters in float16, and so are what steps and averages do with them"
                out = f"{_FULL}, step with the plain optimizer, and start the converted script"
                yield Refusal(call, "MIG106", why, f"{out} with --mixed_precision fp16")
            elif name.startswith(AMP) and last not in _KNOWN:
                yield _refused(call, f"the accelerator knows nothing like amp.{last}")
        for start in self.starts:
            yield from self._settings(start)
        if len({start.precision for start in self.starts}) > 1:
            yield _refused(self.starts[1].call, "amp.initialize is called with different settings")
        yield from self._scalings()
        yield from self._handed_on()
        if self.starts:
            yield from self._scalers()

    def _settings(self, start: Start) -> Iterator[Refusal]:
        level = start.level
        if high := sorted(value for value in self._constants(level, 4) if value in _HALF_LEVELS):
            why = f"opt_level {high[0]} keeps the parameters in float16, which the accelerator does not"
            out = 'use opt_level="O1", see that it trains as well, and run migrate again'
            yield Refusal(start.call, "MIG106", why, out)
        others = [n for n, v in start.given.items() if n not in _IDLE | _LOST and not _is_default(v)]
        if others:
            named = ", ".join(filter(None, others)) or "**"
            yield _refused(start.call, f"amp.initialize has settings of its own ({named})")

    def _constants(self, node: ast.expr, depth: int) -> Iterator[str]:
        """The values that a level may have: written out, or the default of an option."""
        if isinstance(node, ast.Constant):
            yield str(node.value)
        elif depth:
            option = self._sources.option(node)
            defaults = [k.value for k in option.keywords if k.arg == "default"] if option is not None else []
            for given in (*defaults, *self._sources.given(node).expressions):
                yield from self._constants(given, depth - 1)

    def _scalings(self) -> Iterator[Refusal]:
        for call in self.of("scale_loss"):
            tree = self.facts.tree(call)
            node = next((n for n in tree.up(call) if isinstance(n, ast.With) and n in self.scalings), None)
            if node is None or self.scalings[node] is not call:
                yield _refused(call, "amp.scale_loss is used in another way than `with amp.scale_loss(...) as name:`")
                continue
            name = alias(node)
            mine = {n for other in self.scalings if alias(other) == name for n in ast.walk(other)}
            for read in ast.walk(tree.function(node)):
                if isinstance(read, ast.Name) and read.id == name and read not in mine:
                    yield _refused(read, f"{name} is used outside of its `with`, too")
                    break

    def _scalers(self) -> Iterator[Refusal]:
        for use in self.facts.calls_anywhere:
            if use.unit.module in self.modules and Role.SCALER in roles(self.facts.values(use.node)):
                yield _refused(use.node, "the program uses PyTorch's scaler, too")
                return

    def _handed_on(self) -> Iterator[Refusal]:
        """What of apex.amp is used in another way than by a call: a decorator, the module itself as an argument."""
        for module in self.modules:
            tree = self.facts.tree(module.tree)
            for node in tree.nodes:
                is_read = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
                if (
                    not is_read
                    or id(node) in self._dead
                    or isinstance(tree.parents[node], (ast.Attribute, ast.Compare))
                ):
                    continue
                assert isinstance(node, ast.expr)
                parent = tree.parents[node]
                is_called = isinstance(parent, ast.Call) and parent.func is node
                if not is_called and any(f"{name}.".startswith(AMP) for name in self.facts.names(node)):
                    yield _refused(node, f"{ast.unparse(node)} is handed on")

    @cached_property
    def reads_gradients(self) -> bool:
        """Whether gradients are read by hand: the accelerator takes their scale off at the step, apex did it before."""
        for module in self.modules:
            tree = self.facts.tree(module.tree)
            for node in tree.nodes:
                if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
                    if id(node) not in self._dead and not _is_linear(tree.parents, node):
                        return True
        return False


def alias(node: ast.With) -> str:
    """The `scaled_loss` of `with amp.scale_loss(loss, optimizer) as scaled_loss:`."""
    name = node.items[0].optional_vars
    assert isinstance(name, ast.Name)
    return name.id


def is_used(facts: Facts, modules: Collection[Module]) -> bool:
    """Whether modules use what of apex changes."""
    calls = (use.node for use in facts.calls_anywhere if use.unit.module in modules)
    names = (name for call in calls for name in facts.called(call) if name.startswith("apex."))
    return any(map(_is_changed, names))


def _is_changed(name: str) -> bool:
    return name.startswith(AMP) or name.rpartition(".")[2] in _IN_HALF


def _given(call: ast.Call) -> dict[str, ast.expr]:
    found = dict(zip(_PARAMETERS, call.args, strict=False))
    found |= {keyword.arg or "": keyword.value for keyword in call.keywords}
    if any(isinstance(value, ast.Starred) for value in call.args):
        found[""] = call.args[0]
    return found


def _is_default(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, "dynamic")


def _is_linear(parents: dict[ast.AST, ast.AST], node: ast.AST) -> bool:
    """`p.grad is not None`, `p.grad.data.div_(2)`: the same with and without a scale."""
    parent = parents[node]
    if isinstance(parent, ast.Attribute):
        if parent.attr == "data":
            return _is_linear(parents, parent)
        return parent.attr in _LINEAR
    if isinstance(parent, ast.Compare):
        return all(isinstance(other, ast.Constant) and other.value is None for other in parent.comparators)
    return isinstance(parent, (ast.If, ast.UnaryOp, ast.BoolOp))


def _refused(node: ast.AST, why: str) -> Refusal:
    out = "take it out, so that apex only does what amp.initialize and amp.scale_loss do, then run migrate again"
    return Refusal(node, "MIG106", why, out)
