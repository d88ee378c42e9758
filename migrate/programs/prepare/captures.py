"""Objects that are kept somewhere before they are prepared, and taken from there afterwards: those are the raw ones.

`evaluator = Evaluator(model, loader)`, `cfg.loader = loader`, `def run(loader=loader)`: prepare gives its names other
objects, and what holds the old ones goes on with them. The same is true of what runs over a loader, also under its
name (`loader = cycle(loader)`), and of a model that contains the prepared one.
An object that only calls methods of its model's class (`self.policy.act(x)`) may go on with the raw one: the prepared
one would be unwrapped for that.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.construction import is_constructor
from migrate.analysis.known.training import THROUGH_WRAPPER
from migrate.analysis.roles import Role, Values, origins, roles
from migrate.analysis.syntax import FUNCTIONS, arguments, defaults_of, line_of
from migrate.analysis.texts import text_of
from migrate.analysis.units import Class, Function, Module, is_local
from migrate.programs.home.aliases import trained_by
from migrate.programs.prepare.bound_before import bound_before, bound_outside
from migrate.programs.prepare.filled_below import is_filled_below
from migrate.programs.prepare.irregular import averages_after_backward
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import reached
from migrate.programs.training.gradients_off import without_gradients
from migrate.programs.training.wholes import what_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import Loops
    from migrate.programs.stages import Stage, Stages

_KEPT = (Role.LOADER, Role.MODEL)
#: Attributes that give the same object again.
_SELF = frozenset({"module"})
#: What goes through the wrapper to the same parameters.
_OF_PARAMETERS = frozenset({"parameters", "zero_grad"})
#: What hands out what a container holds.
_HANDING = frozenset(
    f"builtins.{name}" for name in "zip enumerate list tuple iter next reversed sorted map filter dict set".split()
)


#: What Python asks an object for that something runs over.
_ASKED = ("__iter__", "__next__", "__getitem__", "__len__")


def kept(
    facts: Facts,
    loops: Loops,
    program: Program,
    prepared: Sequence[Named],
    units: Collection[Unit],
    stages: Stages,
) -> Iterator[Refusal]:
    """What holds a loader or a model that is prepared later, and is asked for it then.

    The methods of a raw model are right where their gradients are shared or alike. `model_without_ddp = model` is one
    of a program that wraps its model itself, as long as it does.
    """
    assert program.home is not None
    if program.unready:
        return
    names = {ast.unparse(ast.parse(named.target, mode="eval")) for named in prepared}  # with the quotes of `unparse`
    items: dict[str, set[ast.AST]] = {}
    for named in prepared:
        for name in {named.target, named.target.partition("[")[0]}:
            items.setdefault(name, set()).update(named.origins)
    names |= items.keys()
    holders = {origin: named.holders for named in prepared if named.role in _KEPT for origin in named.origins}
    for stage in stages.each:
        mine, end = holders.keys() & stage.origins, stage.end
        found = _in_objects(facts, loops, program, mine, names, units, end, holders)
        found = found or _in_names(facts, program, mine, names, units, stage, items, holders)
        found = found or bound_before(facts, program.home, mine, names, end, _is_run)
        given = {origin for origin in mine if not facts.singles.is_made_in(program.home, origin)}
        found = found or (bound_outside(facts, program.home, given, _is_run) if given else None)
        if found is not None:
            yield Refusal(
                found,
                "MIG104",
                "a model or a loader is kept here before it is prepared, and taken from here afterwards",
                "make this after all models, optimizers and loaders are made",
            )
            return


def _in_objects(
    facts: Facts,
    loops: Loops,
    program: Program,
    mine: set[ast.AST],
    names: set[str],
    units: Collection[Unit],
    end: int,
    holders: Mapping[ast.AST, Collection[ast.AST]],
) -> ast.AST | None:
    assert program.home is not None
    for node in facts.own(program.home):
        if getattr(node, "lineno", end + 1) > end:
            continue
        kept = {origin for origin in mine if node not in holders[origin]}  # what it holds itself, prepare gives it
        if not (held := _holds(facts, node, kept, names)):
            continue
        readers = {*units, *_run_over(facts, node)}
        taken = (each for unit in readers for each in _taken(facts, unit, held, names, program, end))
        asked = (_is_asked(facts, each) and _is_right_raw(facts, loops, program) for each in taken)
        if isinstance(node, FUNCTIONS) or not all(asked):
            return node
    return None


def _holds(facts: Facts, node: ast.AST, mine: set[ast.AST], names: set[str]) -> set[ast.AST]:
    """The prepared objects that a node puts somewhere else than under their names."""
    given: list[ast.expr] = []
    if isinstance(node, FUNCTIONS):
        given = defaults_of(node)
    elif isinstance(node, ast.Call):
        made = {value.origin for value in facts.values(node) if value.role in (Role.INSTANCE, Role.HOLDER)}
        given = arguments(node) if made else []
        looked_at = {
            o for each in given for o in origins(facts.values(each), Role.MODEL) if not _is_held(facts, o, made)
        }
        mine = mine - looked_at
    elif isinstance(node, ast.Assign):
        is_over = _runs_over(facts, facts.values(node.value))
        others = [t for t in node.targets if is_over or not (text_of(t) in names or _is_by_key(facts, t, mine, names))]
        is_new = any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in others)
        is_from = (
            isinstance(node.value, (ast.Attribute, ast.Subscript)) and getattr(node.value, "attr", "") not in _SELF
        )
        given = [node.value] if is_new or is_from else []
    held = (facts.values(each) for each in given)
    return {origin for values in held for origin in (origins(values, *_KEPT) | facts.loaders(values)) & mine}


def _is_by_key(facts: Facts, target: ast.expr, mine: set[ast.AST], names: set[str]) -> bool:
    """`loaders[k] = DataLoader(data[k])`, once for each key: whether these are the names of what is put there."""
    statement = facts.tree(target).statement(target)
    if not isinstance(target, ast.Subscript) or not isinstance(statement, ast.Assign):
        return False
    made = (origins(facts.values(statement.value), *_KEPT) | facts.loaders(facts.values(statement.value))) & mine
    around = list(facts.tree(statement).up(statement))
    keys = ([key for loop, key in facts.singles.turns(origin).items() if loop in around] for origin in made)
    owner = ast.unparse(target.value)
    return all(any(f"{owner}[{key!r}]" in names for key in each) for each in keys)


def _is_held(facts: Facts, origin: ast.AST, objects: Collection[ast.AST | None]) -> bool:
    """Whether one of some objects, or what these hold, holds something: it may have been passed to look at it only."""
    found, waiting = {origin}, [origin]
    while waiting:
        above = {holder for holder, _ in facts.singles.holders(waiting.pop())} - found
        found |= above
        waiting += above
    return not found.isdisjoint(objects)


def _run_over(facts: Facts, node: ast.AST) -> set[Unit]:
    """What runs where `for x in turns`, `next(turns)` or `len(turns)` ask an object: no call names these methods."""
    made = facts.values(node) if isinstance(node, ast.Call) else ()
    classes = [value.unit for value in made if value.role is Role.INSTANCE and isinstance(value.unit, Class)]
    asked = [value.unit for each in classes for name in _ASKED for value in each.lookup(name)]
    return reached(facts, (unit for unit in asked if isinstance(unit, Function)))


def _taken(
    facts: Facts, unit: Unit, held: set[ast.AST], names: set[str], program: Program, end: int
) -> Iterator[ast.expr]:
    """Where a unit reads one of the objects from an attribute or a container, once they are prepared."""
    for node in facts.own(unit):
        if (
            isinstance(node, (ast.Attribute, ast.Subscript))
            and isinstance(node.ctx, ast.Load)
            and not (isinstance(node, ast.Attribute) and node.attr in _SELF)
            and (unit is not program.home or (node.lineno > end and ast.unparse(node) not in names))
            and not (_is_given_prepared(facts, program.home, node, names) and not _is_wrapped(facts, node, held))
            and bool((origins(facts.values(node), *_KEPT) | facts.loaders(facts.values(node))) & held)
        ):
            yield node


def _is_given_prepared(facts: Facts, home: Unit | None, node: ast.expr, names: set[str]) -> bool:
    """Whether an attribute is read of the object that the home sets up, to which prepare gives it."""
    if not isinstance(node, ast.Attribute) or not is_constructor(home) or f"self.{node.attr}" not in names:
        return False
    owners = facts.values(node.value)
    return bool(owners) and home.itself is not None and owners <= home.parameters.get(home.itself.arg, frozenset())


def _is_wrapped(facts: Facts, node: ast.expr, held: set[ast.AST]) -> bool:
    """Whether an expression may be something that goes over a loader which is held, as `iter(loader)` does."""
    return any(value.origin not in held and facts.loaders(frozenset({value})) & held for value in facts.values(node))


def _is_right_raw(facts: Facts, loops: Loops, program: Program) -> bool:
    """Whether gradients are shared, or alike, that methods of a raw model make."""
    return not program.training_loaders or any(averages_after_backward(facts, loops, program))


def _is_asked(facts: Facts, node: ast.expr) -> bool:
    """Whether a model is only asked for its parameters, or for what its class has: the model inside the wrapper is."""
    above = facts.tree(node).parents[node]
    if not isinstance(above, ast.Attribute) or not isinstance(above.ctx, ast.Load):
        return False
    is_inside = above.attr in _OF_PARAMETERS or above.attr not in (*THROUGH_WRAPPER, *_SELF)
    return is_inside and roles(facts.values(node)) == {Role.MODEL}


def _in_names(
    facts: Facts,
    program: Program,
    mine: set[ast.AST],
    names: set[str],
    units: Collection[Unit],
    stage: Stage,
    items: Mapping[str, Collection[ast.AST]],
    holders: Mapping[ast.AST, Collection[ast.AST]],
) -> ast.AST | None:
    """The statement that gives a prepared object, or what holds it, another name that is read later.

    `items` are the objects that are prepared under a name, or as what a container of that name holds.
    """
    assert program.home is not None
    end = stage.end
    readers = units if isinstance(program.home, Module) else [program.home]
    for binding in facts.bindings_in(program.home):
        if binding.statement.lineno > end or not binding.target.isidentifier():
            continue
        if isinstance(binding.statement, (*FUNCTIONS, ast.ClassDef, ast.For, ast.AsyncFor)):
            continue
        others = mine.difference(_prepared_as(facts, binding, names, items))
        loaders = (facts.loaders(binding.values) | facts.inside(binding.values, Role.LOADER)) & others
        loaders -= {each for each in loaders if _goes_over_its_own(facts, binding.values, each, holders[each])}
        models = origins(binding.values, Role.MODEL) & others
        if models and (led := trained_by(facts, program.home, models)) and led <= names:
            models = set()  # by this name it is only looked at, saved, or run where no gradients flow
        if not is_filled_below(facts, binding, units, stage):
            models |= facts.inside(binding.values, Role.MODEL) & others
        for unit in _reading(readers, binding.target, program.home) if loaders or models else ():
            for node in facts.own(unit):
                is_late = unit is not program.home or line_of(node) > end
                if not is_late or not isinstance(node, ast.Name) or node.id != binding.target:
                    continue
                if unit is program.home and _is_given_anew(facts, node, stage):
                    continue
                if isinstance(node.ctx, ast.Load) and (loaders or _is_run(facts, node)):
                    return binding.statement
    return None


def _goes_over_its_own(facts: Facts, values: Values, loader: ast.AST, holders: Collection[ast.AST]) -> bool:
    """Whether objects of the project go over a loader that prepare gives them: `feed.loader`, in each `for x in feed`.

    What runs over it since they were made, `self.batches = iter(self.loader)`, goes on with the raw one.
    """
    objects = [value.origin for value in values if value.role is Role.INSTANCE and value.origin]
    held = (each for one in objects for each in facts.holding(one).values())
    over = [value for each in held for value in each if loader in facts.loaders(frozenset({value}))]
    is_given = len(objects) == len(values) and all(each in holders for each in objects)
    return is_given and all(value.role is Role.LOADER for value in over)


def _prepared_as(
    facts: Facts, binding: Binding, names: set[str], items: Mapping[str, Collection[ast.AST]]
) -> Collection[ast.AST]:
    """The objects that are prepared under the name of a binding, or in the container that it is given."""
    is_prepared = binding.target in names and not _runs_over(facts, binding.values)
    return items.get(binding.target, ()) if is_prepared else ()


def _reading(readers: Collection[Unit], name: str, home: Unit) -> Iterator[Unit]:
    """The units that mean the home's name by it, and have none of their own."""
    return (unit for unit in readers if unit is home or not is_local(unit, name))


def _runs_over(facts: Facts, values: Values) -> bool:
    """`loader = tqdm(loader)`: whether a name is given what runs over a loader, and no loader any more."""
    return Role.LOADER not in roles(values) and bool(facts.loaders(values))


def _is_given_anew(facts: Facts, name: ast.Name, stage: Stage) -> bool:
    """Whether a name has been given something else between prepare and a place, whatever happens."""
    prepare = stage.spot.statement
    tree = facts.tree(prepare)
    block = tree.block(prepare)
    return any(
        binding.target == name.id
        and stage.end < binding.statement.lineno
        and (binding.statement.end_lineno or 0) < name.lineno
        and tree.block(binding.statement) is block
        for binding in facts.bindings_in(facts.unit(prepare))
    )


def _is_run(facts: Facts, name: ast.Name) -> bool:
    """Whether a model is called, taken out of something, or given to a function of the project."""
    parent = facts.tree(name).parents[name]
    if isinstance(parent, ast.keyword):
        parent = facts.tree(name).parents[parent]
    if isinstance(parent, ast.Call):
        return parent.func is name or bool(facts.targets(parent)) or bool(facts.called(parent) & _HANDING)
    if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)) and parent.iter is name:
        return not _only_asks(facts, parent)
    return isinstance(parent, ast.Subscript)


def _only_asks(facts: Facts, loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether a loop over models only asks each for its parameters: `for net in nets: net.zero_grad()`."""
    if not isinstance(loop.target, ast.Name):
        return False
    tree, name = facts.tree(loop), loop.target.id
    code = ast.walk(tree.parents[loop]) if isinstance(loop, ast.comprehension) else facts.own(facts.unit(loop))
    reads = (node for node in code if isinstance(node, ast.Name) and node.id == name and node is not loop.target)
    above = [tree.parents[read] for read in reads]
    return all(isinstance(each, ast.Attribute) and each.attr in _OF_PARAMETERS for each in above)


def called_around(facts: Facts, program: Program, units: Collection[Unit]) -> Iterator[Refusal]:
    """A model that is not prepared is called, and contains the one that is: that is not called itself.

    Where no gradients flow, there are none to share: a sampler around the model that another one trains.
    """
    mine = program.model_origins
    seen: dict[ast.AST, bool] = {}
    for use in facts.calls:
        if use.unit not in units:
            continue
        values: Values = facts.values(what_runs(use.node))
        for origin in origins(values, Role.MODEL) - mine:
            if origin not in seen:
                seen[origin] = bool((facts.parts([origin]) | _given(facts, origin)) & mine)
            if seen[origin] and not without_gradients(facts, use.node):
                yield Refusal(
                    use.node,
                    "MIG119",
                    "the model that is called here contains the one that the optimizer trains: processes would not "
                    "share gradients",
                    "give the optimizer the parameters of the model that is called",
                )
                return


def _given(facts: Facts, origin: ast.AST) -> set[ast.AST]:
    """The models that a library's model is made of: `nn.Sequential(body, head)`."""
    source = facts.source(origin)
    args = source.args if isinstance(source, ast.Call) else ()
    return {inner for arg in args for inner in origins(facts.values(arg), Role.MODEL)}
