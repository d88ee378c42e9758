"""A condition that is written below, in the words of a function above.

    def __init__(self, args):                       self.accelerator = Accelerator(cpu=args.no_cuda)
        self.build(args)

    def build(self, args):
        use_cuda = not args.no_cuda and torch.cuda.is_available()
        self.device = torch.device("cuda" if use_cuda else "cpu")

What has no value yet above is told by what it is given below; what is handed down, as it is called above.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from migrate.analysis.units import Function
from migrate.programs.reach.above import units_above
from migrate.programs.values.conditions import bindings_of, denied, flag, negated
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit

_DEEPEST = 4  # calls that hand a name down, names that stand for one
#: What gives the same above as below, and may be asked twice.
_ALIKE = re.compile(r"torch\.(cuda|backends|device|version)\b|builtins\.(?!input\b)|os\.")
_NAMED = (ast.Name, ast.Attribute)


class _Untold(Exception):
    """Something cannot be told above."""


def in_words_above(
    facts: Facts, start: Unit, condition: ast.expr, nodes: Iterable[ast.AST], *, gpu: bool | None = None
) -> ast.expr | None:
    """A condition of names that stand in `nodes`, for the function above; None: not all of it can be told there.

    `gpu` is whether it asks for a GPU where it is true, or else for the CPU; None: for neither.
    """
    above = frozenset({start, start.module, *units_above(facts, [start])})
    written = {ast.unparse(n): n for n in nodes if isinstance(n, _NAMED) and isinstance(n.ctx, ast.Load)}
    try:
        return _Words(facts, start, above).of(_as_written(condition, written), gpu=gpu, depth=_DEEPEST)
    except _Untold:
        return None


def _as_written(node: ast.expr, written: dict[str, ast.Name | ast.Attribute]) -> ast.expr:
    """A condition whose names are those of the program, of which something is known."""
    if isinstance(node, _NAMED) and (found := written.get(ast.unparse(node))) is not None:
        return found
    return _changed(node, lambda inner: _as_written(inner, written))


def _changed(node: ast.expr, change: Callable[[ast.expr], ast.expr]) -> ast.expr:
    """An expression with other parts, which stands nowhere."""

    def part(value: Any) -> Any:
        if isinstance(value, list):
            return [part(each) for each in value]
        return change(value) if isinstance(value, ast.expr) else value

    return type(node)(**{name: part(value) for name, value in ast.iter_fields(node)})


@dataclass(frozen=True, slots=True)
class _Words:
    """What things below are in the words of the function above."""

    facts: Facts
    start: Unit
    above: Container[Unit]

    def of(self, node: ast.expr, *, gpu: bool | None, depth: int) -> ast.expr:
        """The same above. `gpu`: whether it asks for a GPU where it is true, or else for the CPU; None: for neither."""
        match node:
            case ast.UnaryOp(ast.Not(), inner):
                return negated(self.of(inner, gpu=None if gpu is None else not gpu, depth=depth))
            case ast.BoolOp(op, values):
                return ast.BoolOp(op, [self.of(each, gpu=gpu, depth=depth) for each in values])
            case ast.Name() | ast.Attribute() if hasattr(node, "lineno"):  # the program's own
                return self._named(node, gpu, depth)
            case ast.Call() if hasattr(node, "lineno") and not self._is_alike(node):
                raise _Untold
        return _changed(node, lambda inner: self.of(inner, gpu=None, depth=depth))

    def _named(self, node: ast.Name | ast.Attribute, gpu: bool | None, depth: int) -> ast.expr:
        if self.facts.names(node) or self.facts.unit(node) is self.start:
            return node
        if not depth:
            raise _Untold
        if (given := self._given_below(node)) is not None:
            return self._meant(given, gpu, depth)
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
            if self._is_own_object(node.value) and not self._is_set_above(node):
                raise _Untold
            return ast.Attribute(self.of(node.value, gpu=None, depth=depth), node.attr, ast.Load())
        if isinstance(node, ast.Name):
            return self._called(node, depth)
        raise _Untold

    def _is_alike(self, call: ast.Call) -> bool:
        names = self.facts.called(call)
        return bool(names) and all(map(_ALIKE.match, names))

    def _meant(self, given: ast.expr, gpu: bool | None, depth: int) -> ast.expr:
        """What something below is given, without what asks for what the machine has."""
        if gpu is None:
            return self.of(given, gpu=gpu, depth=depth - 1)
        rest = flag(self.facts, given if gpu else denied(given))
        if rest is None:
            return ast.Constant(gpu)
        return self.of(rest if gpu else negated(rest), gpu=gpu, depth=depth - 1)

    def _given_below(self, node: ast.Name | ast.Attribute) -> ast.expr | None:
        """What a name or attribute is given below, in one place; None: it has its value above.

        Raises:
            _Untold: it is given several values, or none that is written there.
        """
        found = [binding for binding in bindings_of(self.facts, node) if self._is_of(binding, node)]
        if all(binding.unit in self.above for binding in found):
            return None
        given = found[0].statement
        if len(found) > 1 or not isinstance(given, ast.Assign) or len(given.targets) > 1:
            raise _Untold
        if not isinstance(given.targets[0], (ast.Name, ast.Attribute)):
            raise _Untold
        return given.value

    def _is_of(self, binding: Binding, node: ast.Name | ast.Attribute) -> bool:
        """Whether what is bound under the same text is the same: of one function, or of the same object."""
        if isinstance(node, ast.Name):
            return binding.unit is self.facts.unit(node)
        targets = binding.statement.targets if isinstance(binding.statement, ast.Assign) else []
        owners = (each.value for each in targets if isinstance(each, ast.Attribute) and each.attr == node.attr)
        mine = self.facts.values(node.value)
        return not targets or any(mine & self.facts.values(owner) for owner in owners)

    def _is_own_object(self, node: ast.expr) -> bool:
        unit = self.facts.unit(node)
        itself = unit.itself if isinstance(unit, Function) else None
        return isinstance(node, ast.Name) and itself is not None and node.id == itself.arg

    def _is_set_above(self, node: ast.Attribute) -> bool:
        """Whether the method above sets an attribute of the object by itself: `self.args = args`."""
        start = self.start
        if not isinstance(start, Function) or start.itself is None:
            return False
        return any(b.target == f"{start.itself.arg}.{node.attr}" for b in self.facts.bindings_in(start))

    def _called(self, node: ast.Name, depth: int) -> ast.expr:
        """What the function above calls what is handed down: itself, an argument, or a name of the file."""
        unit, start = self.facts.unit(node), self.start
        if self._is_own_object(node):
            return self._itself(unit)
        if not isinstance(unit, Function) or node.id not in unit.parameter_names:
            if unit.module is start.module and node.id in unit.module.names:
                return node
            raise _Untold
        given = self.facts.once(Sources).given(node)
        if not given.complete or len({ast.unparse(each) for each in given.expressions}) != 1:
            raise _Untold
        return self.of(given.expressions[0], gpu=None, depth=depth - 1)

    def _itself(self, unit: Unit) -> ast.expr:
        """The object in a method above whose class, or one derived from it, has both."""
        owner, start = getattr(unit, "owner", None), self.start
        if owner is None or not isinstance(start, Function) or start.itself is None or start.owner not in owner.mro():
            raise _Untold
        return ast.Name(start.itself.arg, ast.Load())
