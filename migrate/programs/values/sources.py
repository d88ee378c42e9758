"""What a name or attribute was given, one step back: by assignment, by the callers, by a return, by the command line.

`complete` says whether nothing else can have given it a value, as far as the program is seen. Walking back from an
expression is for the caller to do: each question has its own ends.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis import binders
from migrate.analysis.known.training import GIVES_ITSELF
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_stored, targets_of, walk
from migrate.analysis.texts import text_of
from migrate.analysis.units import Class, Function, Module
from migrate.programs.values.imported import Imported
from migrate.programs.values.items import items_given
from migrate.programs.values.stars import hidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Call, Unit


@dataclass(frozen=True, slots=True)
class Given:
    """The expressions that something was given, and whether these are all."""

    expressions: tuple[ast.expr, ...]
    complete: bool

    @property
    def only(self) -> ast.expr | None:
        """The one expression that it was given; None: there may be others, or none."""
        return self.expressions[0] if self.complete and len(self.expressions) == 1 else None


UNKNOWN = Given((), complete=False)


class Sources:
    """What names, attributes and calls of the project were given."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._told: dict[ast.expr, Given] = {}
        self._imported_by: dict[Module, dict[str, list[tuple[ast.alias, ast.ImportFrom]]]] = {}

    def given(self, node: ast.expr) -> Given:
        """What a name, an attribute, or a call of a function of the project has as its value."""
        if node not in self._told:
            self._told[node] = self._given(node)
        return self._told[node]

    def _given(self, node: ast.expr) -> Given:
        if isinstance(node, ast.Name):
            return self._name(node.id, self._facts.unit(node))
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return UNKNOWN

    def _name(self, name: str, unit: Unit) -> Given:
        if (unit.module, name) in self._shared and not self._is_own(name, unit):
            return self._of_shared(name, unit.module)
        bindings = self._names.get((id(unit), name), [])
        is_parameter = isinstance(unit, Function) and name in unit.parameter_names
        if not bindings and not is_parameter:
            if isinstance(unit, Function):
                return self._name(name, unit.parent or unit.module)
            return self._imported(name, unit)
        given = self._assigned((binding, name) for binding in bindings)
        if is_parameter:
            assert isinstance(unit, Function)
            given = _joined(given, self.argument(unit, name))
        return given

    @cached_property
    def _names(self) -> dict[tuple[int, str], list[Binding]]:
        found: dict[tuple[int, str], list[Binding]] = {}
        for binding in self._facts.bindings:
            found.setdefault((id(binding.unit), binding.target), []).append(binding)
        return found

    def _of_shared(self, name: str, module: Module) -> Given:
        """A name that a function declares `global`: whatever any of them, or the module, gives it."""
        units = (u for u in self._facts.units if u.module is module and self._declares(u, name))
        bindings = [b for unit in (module, *units) for b in self._names.get((id(unit), name), ())]
        given = self._assigned((binding, name) for binding in bindings)
        return Given(given.expressions, self._shared[module, name] and given.complete)

    def _is_own(self, name: str, unit: Unit) -> bool:
        """Whether a function has a parameter, or a name of its own, that is called as a `global` of others."""
        if not isinstance(unit, Function) or not self._shared[unit.module, name] or self._declares(unit, name):
            return False
        return name in unit.parameter_names or (id(unit), name) in self._names

    def _declares(self, unit: Unit, name: str) -> bool:
        return any(isinstance(n, ast.Global) and name in n.names for n in self._facts.own(unit))

    @cached_property
    def _shared(self) -> dict[tuple[Module, str], bool]:
        """The names that are declared `global` (True) or `nonlocal` (False: not followed)."""
        found: dict[tuple[Module, str], bool] = {}
        for module in self._facts.modules:
            if b"global " in module.file.content or b"nonlocal " in module.file.content:
                for node in walk(module.tree):
                    if isinstance(node, (ast.Global, ast.Nonlocal)):
                        for name in node.names:
                            is_global = isinstance(node, ast.Global) and found.get((module, name), True)
                            found[module, name] = is_global
        return found

    def _imported(self, name: str, module: Module) -> Given:
        """A name of another file of the project."""
        for alias, node in self._imports(module).get(name, ()):
            file = self._facts.project.resolve(node.module or "", node.level, module.file)
            source = next((m for m in self._facts.modules if file is not None and m.file is file), None)
            return self._name(alias.name, source) if source is not None and source is not module else UNKNOWN
        return UNKNOWN

    def _imports(self, module: Module) -> dict[str, list[tuple[ast.alias, ast.ImportFrom]]]:
        """The names that a file imports, each with its statement."""
        if module not in self._imported_by:
            found: dict[str, list[tuple[ast.alias, ast.ImportFrom]]] = {}
            for node in walk(module.tree):
                for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                    assert isinstance(node, ast.ImportFrom)
                    found.setdefault(alias.asname or alias.name, []).append((alias, node))
            self._imported_by[module] = found
        return self._imported_by[module]

    def argument(self, unit: Function, name: str) -> Given:
        """What the callers give to a parameter, its default included."""
        calls = self._facts.callers(unit)
        found = [passed(call, unit, name) for call in calls]
        by_default = default(unit, name)
        given = tuple(e for e in (*found, by_default) if e is not None)
        is_complete = self._facts.callers_known(unit) and all(e is not None or by_default is not None for e in found)
        return Given(given, is_complete)

    def _attribute(self, node: ast.Attribute) -> Given:
        """What the same attribute of the same object is given anywhere; an option of the command line: its default."""
        owners = origins(self._facts.values(node.value), *Role)
        mine = []
        for binding in self._facts.once(by_attribute).get(node.attr, ()):
            target = _target(binding.statement, node.attr)
            if target is not None and owners & origins(self._facts.values(target.value), *Role):
                mine.append(binding)
        given = self._assigned((binding, binding.target) for binding in mine)
        return Given(given.expressions, bool(mine) and given.complete)

    def _assigned(self, bindings: Iterable[tuple[Binding, str]]) -> Given:
        """What statements assign to their targets; incomplete where that is not one expression."""
        found = [part for binding, target in bindings for part in _assigned(self._facts, binding.statement, target)]
        return Given(tuple(part for part in found if part is not None), None not in found)

    def _call(self, node: ast.Call) -> Given:
        targets = self._facts.targets(node)
        values = self._facts.values(node.func)
        found = [value for unit in targets for value in self._returned(unit)]
        is_complete = bool(targets) and len(targets) == len(values) and all(value is not None for value in found)
        return Given(tuple(value for value in found if value is not None), is_complete)

    def _returned(self, unit: Function) -> Iterator[ast.expr | None]:
        if isinstance(unit.node, ast.Lambda):
            yield unit.node.body
            return
        yield from (node.value for node in self._facts.own(unit).of(ast.Return))

    def behind(self, given: Iterable[ast.expr]) -> list[ast.AST]:
        """Expressions, all that their names and items were given, and the functions of the project that they name."""
        found: dict[ast.AST, None] = {}
        waiting: list[ast.AST] = list(given)
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            found[node] = None
            nodes = list(walk(node))
            options = {id(inner.value) for inner in nodes if isinstance(inner, ast.Attribute) and self.option(inner)}
            for inner in nodes:
                if id(inner) in options:  # one option is not made of what all options were made of
                    continue
                if isinstance(inner, (ast.Name, ast.Attribute, ast.Call)) and not is_stored(inner):
                    waiting += self.given(inner).expressions
                elif isinstance(inner, ast.Subscript):
                    waiting += items_given(self._facts, inner)
                if isinstance(inner, (ast.Name, ast.Attribute)):
                    units = (value.unit for value in self._facts.values(inner))
                    waiting += [unit.node for unit in units if isinstance(unit, Function)]
        return list(found)

    def fields(self, node: ast.Attribute) -> list[ast.expr]:
        """The defaults of an option that a class describes."""
        made = [v.origin for v in self._facts.values(node.value) if v.role is Role.HOLDER]
        return list(_fields(self._facts, (call for call in made if isinstance(call, ast.Call)), node.attr))

    # --- the command line -------------------------------------------------------------------------------------------

    def option(self, node: ast.expr) -> ast.Call | None:
        """The `add_argument` call that makes an attribute of the parsed arguments.

        Scripts that stand together have options of the same name: that of the file comes first, then that of files
        which it imports or which import it.
        """
        if not isinstance(node, ast.Attribute) or Role.HOLDER not in {v.role for v in self._facts.values(node.value)}:
            return None
        found = self._options.get(node.attr, [])
        module = self._facts.module(node)
        mine = [call for call in found if self._facts.module(call) is module]
        near = [call for call in found if self._facts.are_near(module, self._facts.module(call))]
        return next((calls[-1] for calls in (mine, near, found) if calls), None)

    @cached_property
    def _options(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {}
        for use in self._facts.calls_anywhere:
            func = use.node.func
            if isinstance(func, ast.Attribute) and func.attr == "add_argument":
                name = option_name(use.node)
                if name is not None:
                    found.setdefault(name, []).append(use.node)
        return found


def given_by_class(facts: Facts, unit: Unit, name: str) -> Iterator[Binding]:
    """Where the methods of a method's class give an attribute a value: `self.mse = nn.MSELoss()`."""
    if isinstance(unit, Function) and unit.owner is not None:
        for binding in facts.once(by_attribute).get(name, ()):
            if isinstance(binding.unit, Function) and binding.unit.owner is unit.owner:
                yield binding


def by_attribute(facts: Facts) -> Mapping[str, Sequence[Binding]]:
    """The statements that give an attribute a value, by its name."""
    found: dict[str, list[Binding]] = {}
    for binding in facts.bindings:
        _, dot, attribute = binding.target.rpartition(".")
        if dot:
            found.setdefault(attribute, []).append(binding)
    return found


def _joined(one: Given, other: Given) -> Given:
    return Given((*one.expressions, *other.expressions), one.complete and other.complete)


def _assigned(facts: Facts, statement: ast.stmt, target: str) -> list[ast.expr | None]:
    """What a statement may assign to its target; None in it: what is not one expression."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        if any(text_of(each) == target for each in targets_of(statement)):
            return [statement.value]
        value, parts = statement.value, [part for part, _ in parts_given(facts, statement, target)]
        is_seen = not isinstance(value, ast.Call) or len(facts.targets(value)) == len(facts.values(value.func))
        return [None if part is value or not is_seen else part for part in parts]
    return [None]


def _target(statement: ast.stmt, attribute: str) -> ast.Attribute | None:
    nodes: Iterable[ast.AST] = walk(statement)
    return next(
        (n for n in nodes if isinstance(n, ast.Attribute) and n.attr == attribute and isinstance(n.ctx, ast.Store)),
        None,
    )


def passed(call: Call, unit: Function, name: str) -> ast.expr | None:
    """The argument of one call for a parameter; None if it is not passed, or not in plain sight."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [parameter.arg for parameter in unit.positional]
    position = names.index(name) - call.bound if name in names else -1
    if not 0 <= position < len(call.args) or any(isinstance(each, ast.Starred) for each in call.args[: position + 1]):
        return None
    return call.args[position]


def may_pass(call: Call, unit: Function, name: str) -> list[ast.expr]:
    """What a parameter may get by one call: its argument; else what stands behind a star, and its default."""
    for rest in (unit.node.args.vararg, unit.node.args.kwarg):
        if rest is not None and rest.arg == name:
            return binders.given(call, unit, rest)
    argument, by_default = passed(call, unit, name), default(unit, name)
    if argument is not None:
        return [argument]
    return hidden(call.node) + ([] if by_default is None else [by_default])


def received(call: ast.Call, unit: Function) -> dict[str, ast.expr]:
    """What the parameters of a function get by a call, as it is written; not the object of a method.

    What stands behind a star may be for each parameter that is left.
    """
    known = unit.calls.get(call)
    is_bound = known.bound if known is not None else unit.itself is not None
    names = [parameter.arg for parameter in unit.positional][int(is_bound) :]
    found: dict[str, ast.expr] = {}
    for position, given in enumerate(call.args):
        if isinstance(given, ast.Starred):
            found.update(dict.fromkeys(names[position:], given))
        elif position < len(names):
            found[names[position]] = given
    return found | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}


def default(unit: Function, name: str) -> ast.expr | None:
    """The default of a parameter."""
    arguments = unit.node.args
    pairs = [*zip(reversed(unit.positional), reversed(arguments.defaults), strict=False)]
    pairs += [(p, d) for p, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return next((value for parameter, value in pairs if parameter.arg == name), None)


def called_by_name(facts: Facts, node: ast.Call) -> frozenset[str]:
    """The library functions that are called; in code that only Python calls (`__len__`), as they are written."""
    if facts.values(node.func):
        return facts.called(node)
    root, dot, rest = ast.unparse(node.func).partition(".")
    if not dot and hasattr(builtins, root):
        return frozenset({f"builtins.{root}"})
    if "(" in rest:  # a method of what a call gave: `torch.where(a, b, c).sum()`
        return frozenset()
    imported = facts.once(Imported)[facts.tree(node)]
    return frozenset(f"{name}{dot}{rest}" for name in imported.get(root, ()))


def _fields(facts: Facts, calls: Iterable[ast.Call], name: str) -> Iterator[ast.expr]:
    """The defaults of an option in the classes that calls are given: `tyro.cli(Args)`."""
    classes = [v.unit for call in calls for argument in call.args for v in facts.values(argument)]
    bodies = [part for cls in classes if isinstance(cls, Class) for each in cls.mro() for part in each.node.body]
    for part in bodies:
        if isinstance(part, (ast.AnnAssign, ast.Assign)) and name in map(ast.unparse, targets_of(part)):
            yield part.value or ast.Constant(0)


def given_by(statement: ast.Assign | ast.AnnAssign | ast.AugAssign, target: str) -> ast.expr | None:
    """What a statement gives to one of its targets; where it cannot be told apart, all that it gives."""
    value = statement.value
    for each in statement.targets if isinstance(statement, ast.Assign) else ():
        if isinstance(each, ast.Tuple) and isinstance(value, ast.Tuple) and len(each.elts) == len(value.elts):
            for element, part in zip(each.elts, value.elts, strict=True):
                if ast.unparse(element) == target:
                    return part
    return value


def parts_given(
    facts: Facts, statement: ast.Assign | ast.AnnAssign | ast.AugAssign, target: str
) -> list[tuple[ast.expr, ast.AST]]:
    """What a statement may give to one of its targets, and the statement that says so.

    `model, start = load(path)` gives `start` what stands there behind each `return` of a function of the project.
    """
    part = given_by(statement, target)
    for each in statement.targets if isinstance(statement, ast.Assign) else ():
        if isinstance(each, ast.Tuple) and isinstance(part, ast.Call):
            names = [ast.unparse(element) for element in each.elts]
            returned = [
                node for unit in facts.targets(part) for node in facts.own(unit) if isinstance(node, ast.Return)
            ]
            values = [node.value for node in returned]
            told = [v for v in values if isinstance(v, ast.Tuple) and len(v.elts) == len(names)]
            is_told = bool(told) and len(told) == len(returned) and names.count(target) == 1
            if is_told and not any(isinstance(inner, ast.Starred) for v in told for inner in v.elts):
                return [(v.elts[names.index(target)], node) for v, node in zip(told, returned, strict=True)]
    return [] if part is None else [(part, statement)]


def option_name(call: ast.Call) -> str | None:
    for keyword in call.keywords:
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    long = next((text for text in texts if text.startswith("--")), texts[0] if texts else None)
    return long.lstrip("-").replace("-", "_") if long else None


def before_modes(node: ast.expr) -> ast.expr:
    """`model` of `model.eval()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GIVES_ITSELF:
        node = node.func.value
    return node
