"""The names under which the objects of a program can be reached in a unit: what prepare can be written with.

Names and attributes that the unit binds come first. Where these do not do, there are its parameters, what the objects
that it knows hold (`data.train_loader`, `loaders["train"]`, `self.model` in a method that did not set it), and names of
modules: those that are imported, and those that a function finds in its own.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.construction import is_constructor
from migrate.analysis.roles import Role, Value, Values, origins
from migrate.analysis.state import ELEMENT, MAPPING, MIXED
from migrate.analysis.syntax import line_of, walk
from migrate.analysis.units import Class, Function, Module, Unit, locals_of
from migrate.programs.home.aliases import is_any_of_a_list, is_aside, other_names
from migrate.programs.home.certain import is_asked, is_attribute_there, is_item_there, is_name_there
from migrate.programs.home.holders import alike, is_alone
from migrate.programs.home.made_with import made_with, stays_itself
from migrate.programs.reach.callees import leading
from migrate.programs.values.handing_back import is_handed_back
from migrate.programs.values.new_lists import is_new_list
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding


_DEEPEST = 3  # methods that hand a parameter on, one to the other


@dataclass(frozen=True, slots=True)
class Named:
    """An object of the program under the name it has at home."""

    target: str  # "model", "self.model", "data.train_loader"
    role: Role
    origins: frozenset[ast.AST]
    statements: tuple[ast.stmt, ...]  # those that bind it, in order; none: it was made before the unit is entered
    module: Module | None = None  # of which it is a name: prepare gives it another value for all who read it there
    holders: frozenset[ast.AST] = frozenset()  # the objects of which it is an attribute
    filled: tuple[ast.stmt, ...] = ()  # those of the unit that put it under a name that the unit does not bind
    unit: Unit | None = None  # where it is prepared, if not at home
    call: ast.Call | None = None  # that makes it without a name: prepare stands around it
    is_back: bool = False  # its statements only give it the name that it had: `self.model, start = load(self.model)`

    @property
    def is_given(self) -> bool:
        """Whether it was made before the home is entered."""
        return not self.statements or self.is_back

    @property
    def is_made(self) -> bool:
        """Whether statements of the home make it."""
        return bool((self.statements and not self.is_back) or self.filled)

    def place(self, facts: Facts) -> ast.AST:
        """Where it gets its name, or where it was made."""
        return self.statements[-1] if self.statements else facts.source(min(self.origins, key=line_of))


def bound(facts: Facts, unit: Unit, role: Role, wanted: set[ast.AST] | None) -> tuple[Named, ...]:
    """The names that a unit binds to objects of a role; of two names for one object the first, or that which is run."""
    by_target: dict[str, list[tuple[Binding, set[ast.AST]]]] = {}
    for binding, found in facts.once(_Bound)[unit, role]:
        if mine := found if wanted is None else found & wanted:
            by_target.setdefault(binding.target, []).append((binding, mine))
    if role is Role.MODEL:
        by_target = {target: each for target, each in by_target.items() if not is_aside(facts, unit, each)}
    named: list[Named] = []
    seen: set[ast.AST] = set()
    first = other_names(facts, unit, by_target) if role is Role.MODEL and len(by_target) > 1 else ()
    for target, bindings in sorted(by_target.items(), key=lambda item: item[0] not in first):
        mine = set().union(*(found for _, found in bindings))
        if not mine <= seen:
            seen |= mine
            statements = tuple(binding.statement for binding, _ in bindings)
            is_back = all(is_handed_back(facts, statement, target) for statement in statements)
            named.append(Named(target, role, frozenset(mine), statements, is_back=is_back))
    return tuple(named)


class _Bound(dict[tuple["Unit", Role], tuple[tuple["Binding", set["ast.AST"]], ...]]):
    """The bindings of a unit that name objects of a role, with where these were made: asked for each program."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, key: tuple[Unit, Role]) -> tuple[tuple[Binding, set[ast.AST]], ...]:
        unit, role = key
        self[key] = tuple(
            (binding, found)
            for binding in self._facts.bindings_in(unit)
            if (found := origins(binding.values, role))
            and not isinstance(binding.statement, (ast.For, ast.AsyncFor))
            and binding.statement is _whole(self._facts, binding.statement)  # else it is that of one round
            and not stays_itself(binding.statement, binding.target)
            and _is_reachable(binding.target, unit)
            and not is_any_of_a_list(self._facts, binding.statement, found)
        )
        return self[key]


def reachable(
    facts: Facts, unit: Unit, role: Role, wanted: set[ast.AST] | None, by_key: frozenset[ast.AST] = frozenset()
) -> tuple[Named, ...]:
    """The names of `bound`, and for other objects those through parameters and through what the unit's objects hold.

    `by_key` are loaders that have to be prepared where a dictionary holds them.
    """
    named = [each for each in bound(facts, unit, role, wanted) if not each.origins & by_key]
    seen = {origin for each in named for origin in each.origins}
    for other in facts.once(_Further).of(unit, role):
        mine = other.origins if wanted is None else other.origins & wanted
        if mine and not mine & seen:
            seen |= mine
            named.append(replace(other, origins=frozenset(mine), filled=_filled(facts, unit, mine)))
    return tuple(named)


def _filled(facts: Facts, unit: Unit, made: Iterable[ast.AST]) -> tuple[ast.stmt, ...]:
    """The statements of a unit that make objects, or call what does so."""
    sources = {facts.source(origin) for origin in made}
    makers = leading(facts, map(facts.unit, sources))
    found = (
        node
        for node in facts.own(unit)
        if node in sources or (isinstance(node, ast.Call) and any(target in makers for target in facts.targets(node)))
    )
    return tuple(dict.fromkeys(_whole(facts, facts.tree(node).statement(node)) for node in found))


def _whole(facts: Facts, statement: ast.stmt) -> ast.stmt:
    """A statement, or the loop around it that makes several objects, one for each of its keys."""
    around = (above for above in facts.tree(statement).up(statement) if isinstance(above, ast.stmt))
    return next((above for above in around if above in facts.singles.by_key), statement)


def _further(facts: Facts, unit: Unit, role: Role) -> Iterator[Named]:
    """The names of objects that a unit does not bind itself; no parameter that it only keeps for its other methods."""
    handed, held = [*_parameters(unit, role)], [*_attributes(facts, unit, role)]
    own = [each for each in held if each.target.startswith("self.")] if handed else []
    kept = {o for each in handed if own and _is_only_kept(facts, unit, each.target) for o in each.origins}
    own = [each for each in own if each.origins <= kept]
    yield from own
    yield from handed
    yield from (each for each in held if each not in own)
    yield from _items(facts, unit, role)
    if role is Role.LOADER:
        yield from _of_modules(facts, unit, role)


class _Further:
    """What `_further` finds: every unit is asked for each program, and what it can name does not go by the program."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: dict[tuple[Unit, Role], tuple[Named, ...]] = {}

    def of(self, unit: Unit, role: Role) -> tuple[Named, ...]:
        """The names of objects that a unit does not bind itself."""
        if (unit, role) not in self._found:
            self._found[unit, role] = tuple(_further(self._facts, unit, role))
        return self._found[unit, role]


def covers(named: tuple[Named, ...], wanted: set[ast.AST]) -> bool:
    """Whether all of the objects have a name."""
    return wanted <= {origin for name in named for origin in name.origins}


def _is_reachable(target: str, unit: Unit) -> bool:
    """A plain name, or an attribute of the object that an `__init__` sets up; `_ = model.to(device)` names nothing."""
    if target.isidentifier():
        return target != "_"
    owner, _, attribute = target.partition(".")
    return isinstance(unit, Function) and isinstance(unit.owner, Class) and owner == "self" and attribute.isidentifier()


def _parameters(unit: Unit, role: Role) -> Iterator[Named]:
    """What a function is handed; not the object of a method, whose `self` would be another than all others have."""
    if not isinstance(unit, Function) or isinstance(unit.node, ast.Lambda):
        return
    for parameter in (*unit.positional, *unit.node.args.kwonlyargs):
        if parameter is not unit.itself and (found := origins(unit.parameters.get(parameter.arg, frozenset()), role)):
            yield Named(parameter.arg, role, frozenset(found), ())


def _is_only_kept(facts: Facts, unit: Unit, parameter: str, depth: int = _DEEPEST) -> bool:
    """Whether a method hands a parameter to methods of its object that keep it, and asks it for parts, and no more.

    `def fit(self, model): self.set_model(model); self.optimizer = SGD(model.parameters()); self.train()`
    """
    if not isinstance(unit, Function) or unit.itself is None or depth == 0:
        return False
    tree = facts.tree(unit.node)
    read = [n for n in walk(unit.node).of(ast.Name) if n.id == parameter and isinstance(n.ctx, ast.Load)]
    return all(_is_kept_by(facts, unit, tree.parents[node], node, depth) for node in read) and not any(
        loop for node in read for loop in tree.loops(node)
    )


def _is_kept_by(facts: Facts, unit: Function, above: ast.AST, node: ast.Name, depth: int) -> bool:
    """`model.parameters()`, `self.model = model`, `self.set_model(model)`."""
    if isinstance(above, ast.Assign):
        return all(isinstance(target, ast.Attribute) for target in above.targets)
    if not isinstance(above, ast.Call):
        return isinstance(above, ast.Attribute)
    of = above.func.value if isinstance(above.func, ast.Attribute) else None
    if unit.itself is None or not isinstance(of, ast.Name) or of.id != unit.itself.arg:
        return False
    methods = facts.targets(above)
    handed = [(each, name) for each in methods for name, given in received(above, each).items() if given is node]
    return bool(handed) and all(_is_only_kept(facts, each, name, depth - 1) for each, name in handed)


def holding(facts: Facts, values: Values, *kinds: Role) -> set[ast.AST]:
    """Where the objects of some roles were made that values are or hold: in lists and dictionaries, as attributes."""
    found = origins(values, *kinds)
    for kind in kinds:
        found |= facts.inside(values, kind)
    for value in values:
        if value.role is Role.INSTANCE and value.origin is not None:
            for held in facts.holding(value.origin).values():
                found |= origins(held, *kinds)
    return found


def _attributes(facts: Facts, unit: Unit, role: Role) -> Iterator[Named]:
    """What is held by objects that have a name in the unit, and is held by nothing else."""
    for owner, values, statements, module in _owners(facts, unit):
        if module is not None and role is not Role.LOADER:
            continue
        holding = [
            facts.holding(value.origin) if value.role in _holders(role) and value.origin is not None else {}
            for value in values
        ]
        keys = [key for key in holding[0] if key.isidentifier()] if holding else []
        holders = frozenset(value.origin for value in values if value.origin is not None)
        for key in keys:
            several = [origins(held.get(key, frozenset()), role) for held in holding]
            found = set().union(*several)
            known = alike(facts, found, key, holders) if role is Role.MODEL else holders
            if not all(several) or not is_alone(facts, unit, found, known, key):
                continue
            if role is Role.LOADER and any(_is_begun(facts, held, found) for held in holding):
                continue
            if is_attribute_there(facts, key, role, found) or is_asked(facts, unit, owner, key):
                made = made_with(facts, unit, key) if _sets_up(unit, owner) else statements
                if made is not None:
                    yield Named(f"{owner}.{key}", role, frozenset(found), made, module, holders)


def _sets_up(unit: Unit, owner: str) -> bool:
    """Whether a name is that of the object which an `__init__` sets up."""
    return is_constructor(unit) and owner == "self"


def _holders(role: Role) -> tuple[Role, ...]:
    """What is asked for objects of a role: a model is prepared with the models that it is made of."""
    return (Role.INSTANCE, Role.HOLDER) if role is Role.MODEL else (Role.INSTANCE, Role.HOLDER, Role.MODEL)


def _items(facts: Facts, unit: Unit, role: Role) -> Iterator[Named]:
    """What a dictionary or a list holds: `loaders["train"]`, `loaders[0]`."""
    for owner, values, statements, module in _owners(facts, unit):
        found = facts.inside(values, role, 1)
        if len(values) != 1 or not found:
            continue
        (value,) = values
        assert value.origin is not None
        held = {key: origins(inner, role) for key, inner in facts.holding(value.origin).items()}
        for key, mine in held.items():
            item = _item(facts, value, key)
            if not mine or item is None or held.get(ELEMENT) or not is_alone(facts, unit, mine, [value.origin], key):
                continue
            if is_item_there(facts, value.origin, key, role, mine):
                yield Named(f"{owner}[{item}]", role, frozenset(mine), statements, module)


def _item(facts: Facts, container: Value, key: str) -> str | None:
    """How an item of a container is asked for by its key; None: it is not known, or cannot be given another value."""
    assert container.origin is not None
    source = facts.source(container.origin)
    if container.name == MAPPING:
        return _quoted(facts, source, key) if not key.isdigit() and key.isprintable() and "\\" not in key else None
    is_in_order = is_new_list(facts, source) and not facts.held(container.origin, MIXED)
    return key if is_in_order and key.isdigit() else None


def _quoted(facts: Facts, node: ast.AST, key: str) -> str:
    content = facts.file(facts.source(node)).content
    quote = '"' if content.count(b'"') > content.count(b"'") else "'"
    return f"{quote}{key}{quote}" if quote not in key else repr(key)


def _is_begun(facts: Facts, held: Mapping[str, Values], loaders: set[ast.AST]) -> bool:
    """Whether an object holds an iterator over one of its loaders, the raw one: `self.batches = iter(self.loader)`."""
    kept = (value for values in held.values() for value in values if value.role is Role.ITERATOR)
    return any(value.origin is not None and origins(facts.over(value.origin), Role.LOADER) & loaders for value in kept)


def _of_modules(facts: Facts, unit: Unit, role: Role) -> Iterator[Named]:
    """The names that a module imports or a function finds in its module, and those of modules that it knows."""
    module = unit.module
    own = {binding.target for binding in facts.bindings_in(unit)} | locals_of(unit)
    for name, values in module.names.items():
        for value in values:
            if isinstance(value.unit, Module) and value.role is Role.MODULE and value.unit is not module:
                for inner, held in value.unit.names.items():
                    found = origins(held, role)
                    if found and is_name_there(facts, inner, role, found):
                        yield Named(f"{name}.{inner}", role, frozenset(found), (), value.unit)
        if name not in own:
            found = origins(values, role)
            if found and is_name_there(facts, name, role, found):
                yield Named(name, role, frozenset(found), (), module)


def _owners(facts: Facts, unit: Unit) -> Iterator[tuple[str, Values, tuple[ast.stmt, ...], Module | None]]:
    """The names of objects: those that the unit binds or is given, and in a method its own object and what that holds.

    With each the module of which it is a name, for those that a function finds in its module.
    """
    by_target: dict[str, list[Binding]] = {}
    for binding in facts.bindings_in(unit):
        if _is_reachable(binding.target, unit) and not isinstance(binding.statement, (ast.For, ast.AsyncFor)):
            by_target.setdefault(binding.target, []).append(binding)
    for target, bindings in by_target.items():
        values: Values = frozenset().union(*(binding.values for binding in bindings))
        yield target, values, tuple(binding.statement for binding in bindings), None
    if not isinstance(unit, Function) or isinstance(unit.node, ast.Lambda):
        return
    own = unit.itself.arg if unit.itself is not None else None
    for parameter in (*unit.positional, *unit.node.args.kwonlyargs):
        if parameter.arg != own:
            yield parameter.arg, unit.parameters.get(parameter.arg, frozenset()), (), None
    if own is not None:
        yield "self", unit.parameters.get(own, frozenset()), (), None
    known = locals_of(unit)
    for name, values in unit.module.names.items():
        if name not in known:
            yield name, values, (), unit.module
