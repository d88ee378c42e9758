"""Classes of the project that add numbers up, such as an AverageMeter.

A class is a meter if each of its methods does one of three things: it grows attributes by what it is given (feeds),
sets them to constants (resets), or only reads them. One method of another kind, and the class is something else.
So is one that makes such an object, and hands on to it what it is given: `self.confusion.add(predicted, target)`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import is_in_place
from migrate.analysis.syntax import reads, walk, writes
from migrate.analysis.units import Class, Function
from migrate.programs.values.assigned import paired

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Meter:
    """A class: the attributes that grow, those computed from them, and what its methods are for."""

    cls: Class
    sums: frozenset[str]
    derived: frozenset[str]  # computed from the sums, or the last value itself
    feeds: frozenset[str]
    resets: frozenset[str]
    inner: tuple[str, Meter] | None = None  # the attribute that holds the one that it hands all on to

    def innermost(self) -> tuple[str, Meter]:
        """The meter that adds up, and the way to it from here: `.confusion`; empty for itself."""
        if self.inner is None:
            return "", self
        way, meter = self.inner[1].innermost()
        return f".{self.inner[0]}{way}", meter


@dataclass(slots=True)
class _Method:
    """What a method does to its object: attribute → the expressions it is grown by, or given."""

    parameters: set[str]
    grown: dict[str, list[ast.expr]] = field(default_factory=dict)
    given: dict[str, list[ast.expr]] = field(default_factory=dict)
    is_odd: bool = False  # it changes something else


def meter_of(cls: Class) -> Meter | None:
    """What a class is as a meter; None if it is something else."""
    others = (each for each in cls.mro() if each is not cls)
    if cls.library_bases() - {"builtins.object"} or not all(map(_is_empty, others)):
        return None
    units = {n: v.unit for n, values in cls.names.items() for v in values if isinstance(v.unit, Function)}
    methods = {name: _method(unit) for name, unit in units.items()}
    if any(method.is_odd for method in methods.values()):
        return None
    sums = {a for n, m in methods.items() if n != "__init__" for a, by in m.grown.items() if _read(by) & m.parameters}
    feeds = {name for name, method in methods.items() if method.grown.keys() & sums and name != "__init__"}
    resets = {n for n, m in methods.items() if n not in feeds and m.given.keys() & sums and _is_constant(m, sums)}
    rest = methods.keys() - feeds - resets - {"__init__"}
    if (handing := _handing_on(cls, units)) is not None:
        later = [method for name, method in methods.items() if name != "__init__"]
        grown = {name for method in later for name in method.grown}  # `self.counts.add(x)` looks like that, too
        is_all = grown <= {handing.innermost()[0].split(".")[1]} and not any(method.given for method in later)
        return handing if is_all else None
    begins = [
        value for method in methods.values() for name in method.given.keys() & sums for value in method.given[name]
    ]
    if any(map(_is_above_zero, begins)):  # several processes would begin with as many times that
        return None
    if not sums or any(methods[name].given.keys() & sums or methods[name].grown for name in rest):
        return None
    derived = {a for n, m in methods.items() if n in feeds for a in m.given} - sums
    return Meter(cls, frozenset(sums), frozenset(derived), frozenset(feeds), frozenset(resets - {"__init__"}))


def _is_above_zero(value: ast.expr) -> bool:
    """`self.count = 1`, `self.matrix = np.ones((n, n))`; what only keeps from dividing by zero counts as zero."""
    if isinstance(value, ast.Call):
        return getattr(value.func, "attr", getattr(value.func, "id", "")) in _ABOVE_ZERO
    number = value.value if isinstance(value, ast.Constant) else None
    return isinstance(number, (int, float)) and number > _SMALL


_ABOVE_ZERO = frozenset("ones ones_like full full_like eye identity".split())
_SMALL = 1e-4


def _is_empty(cls: Class) -> bool:
    """Whether the methods of a base only say what there is to be: `def reset(self): raise NotImplementedError`."""
    units = [value.unit for values in cls.names.values() for value in values]
    bodies = [unit.body for unit in units if isinstance(unit, Function)]
    return all(isinstance(each, (ast.Pass, ast.Raise, ast.Expr)) and not _calls(each) for b in bodies for each in b)


def _calls(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant)


def _handing_on(cls: Class, units: dict[str, Function]) -> Meter | None:
    """What a class is as a meter that hands all on to the one that it makes; None if it does not."""
    made = list(_made_meters(cls, units["__init__"])) if "__init__" in units else []
    if len(made) != 1:
        return None
    (name, inner), feeds, resets = made[0], set[str](), set[str]()
    for method, unit in units.items():
        asked = set(_asked_of(unit, name))
        if method != "__init__" and asked & (inner.feeds | inner.resets):
            (feeds if asked <= inner.feeds else resets).add(method)
            if not (asked <= inner.feeds or asked <= inner.resets):
                return None
    return Meter(cls, inner.sums, inner.derived, frozenset(feeds), frozenset(resets), (name, inner)) if feeds else None


def _made_meters(cls: Class, begins: Function) -> Iterator[tuple[str, Meter]]:
    """The attributes that are given a meter of a class of the project when an object is made."""
    for node in ast.walk(begins.node):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            units = [value.unit for value in cls.module.names.get(node.value.func.id, ())]
            found = [meter_of(unit) for unit in units if isinstance(unit, Class) and unit is not cls]
            name = _own(node.targets[0], begins.positional[0].arg)
            if name is not None and len(units) == len(found) == 1 and found[0] is not None:
                yield name, found[0]


def _asked_of(unit: Function, name: str) -> Iterator[str]:
    """The methods that a method calls of what an attribute holds."""
    own = unit.positional[0].arg if unit.positional else ""
    for node in ast.walk(unit.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _own(node.func.value, own) == name:
            yield node.func.attr


def _method(unit: Function) -> _Method:
    parameters = {p.arg for p in (*unit.positional[1:], *unit.node.args.kwonlyargs)}
    own = unit.positional[0].arg if unit.positional else ""
    method = _Method(parameters)
    for node in walk(unit.node):
        if isinstance(node, ast.AugAssign) and (name := _own(node.target, own)):
            method.grown.setdefault(name, []).append(node.value)
        elif isinstance(node, ast.Assign):
            for target, value in ((each, value) for to in node.targets for each, value in paired(to, node.value)):
                _assigned(method, target, value, own)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            _assigned(method, node.target, node.value, own)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWING:
            if name := _own(node.func.value, own):
                method.grown.setdefault(name, []).extend(node.args)
        elif (name := emptied(node, own)) is not None:
            method.given.setdefault(name, []).append(ast.Constant(0))
        elif isinstance(node, ast.Call) and (name := _changed(node, own)) is not None:
            _set_in_place(method, node, name)
        elif isinstance(node, (ast.For, ast.While, ast.With, ast.Global)) and method.parameters:
            method.is_odd = method.is_odd or not _is_over_rows(node)
    method.parameters |= _made_of(unit, parameters)
    return method


def _changed(node: ast.Call, own: str) -> str | None:
    """The attribute that holds the tensor which a method changes where it stands: `self.total.add_(loss)`."""
    of = node.func if isinstance(node.func, ast.Attribute) else None
    return _own(of.value, own) if of is not None and is_in_place(of.attr) else None


def _set_in_place(method: _Method, node: ast.Call, name: str) -> None:
    """Whether a tensor is added to, or takes what the method is given; all else is something else than adding up."""
    does = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if does in _ADDING_IN_PLACE and node.args:
        method.grown.setdefault(name, []).append(node.args[-1])
    elif does in SETTING_IN_PLACE and node.args and reads(node.args[0]) <= method.parameters:
        method.given.setdefault(name, []).append(node.args[0])
    else:
        method.is_odd = True


_ADDING_IN_PLACE = ("add_", "index_add_", "scatter_add_")  # what is added comes last
SETTING_IN_PLACE = ("copy_", "fill_")


def emptied(node: ast.AST, own: str) -> str | None:
    """The attribute that holds what is set to zero where it stands: `self.matrix.fill(0)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    is_zero = all(isinstance(argument, ast.Constant) and argument.value == 0 for argument in node.args)
    return _own(node.func.value, own) if node.func.attr in _EMPTYING and is_zero else None


_EMPTYING = frozenset({"fill", "fill_", "zero_"})


def _is_over_rows(node: ast.AST) -> bool:
    """`for t, p in zip(targets, preds): self.matrix += histogram(t, p)`: once for each row."""
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call) or ast.unparse(node.iter.func) != "zip":
        return False
    return all(isinstance(statement, (ast.Assign, ast.AugAssign)) for statement in node.body)


def _made_of(unit: Function, parameters: set[str]) -> set[str]:
    """The names of a method that come of what it is given: `label = n * target + pred`."""
    binding = [node for node in walk(unit.node) if isinstance(node, (ast.Assign, ast.For))]
    found: set[str] = set()
    while more := {n for b in binding if _source(b) & (parameters | found) for n in _bound(b)} - found:
        found |= more
    return found


def _source(node: ast.Assign | ast.For) -> set[str]:
    return reads(node.iter if isinstance(node, ast.For) else node.value)


def _bound(node: ast.Assign | ast.For) -> set[str]:
    return set().union(*map(writes, node.targets if isinstance(node, ast.Assign) else [node.target]))


_GROWING = frozenset({"append", "extend", "add"})


def _assigned(method: _Method, target: ast.expr, value: ast.expr, own: str) -> None:
    name = _own(target, own)
    if name is None:
        method.is_odd = method.is_odd or not (isinstance(target, ast.Name) or _is_zero_of_local(target, value, own))
    elif any(_own(inner, own) == name for inner in ast.walk(value)):  # self.sum = self.sum + x
        method.grown.setdefault(name, []).append(value)
    else:
        method.given.setdefault(name, []).append(value)


def _is_zero_of_local(target: ast.expr, value: ast.expr, own: str) -> bool:
    """`matrix[:, ignored] = 0`: of the sums of all processes that is what it is of one's."""
    of = target.value if isinstance(target, ast.Subscript) else None
    return isinstance(of, ast.Name) and of.id != own and isinstance(value, ast.Constant) and value.value == 0


def _own(node: ast.AST, own: str) -> str | None:
    """The name of an attribute of the object itself."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own
    return node.attr if is_own and isinstance(node, ast.Attribute) else None


def _read(expressions: list[ast.expr]) -> set[str]:
    return set().union(*map(reads, expressions))


def _is_constant(method: _Method, sums: set[str]) -> bool:
    """Whether a method gives the sums nothing that it was given."""
    values = [value for name in method.given.keys() & sums for value in method.given[name]]
    return all(not reads(value) & method.parameters for value in values)
