"""model-attributes: what is asked of a prepared model itself is asked of the model inside.

    model.state_dict()             ->   accelerator.unwrap_model(model).state_dict()
    model.decode(z)                ->   accelerator.unwrap_model(model).decode(z)
    model[0].weight                ->   accelerator.unwrap_model(model)[0].weight
    for layer in model:            ->   for layer in accelerator.unwrap_model(model):
    print(model)                   ->   accelerator.print(accelerator.unwrap_model(model))
    writer.add_graph(model, x)     ->   writer.add_graph(accelerator.unwrap_model(model), x)
    torch.save({"net": model}, path)   ->   accelerator.save({"net": accelerator.unwrap_model(model)}, path)
    torch.save(model.cpu(), path)  ->   accelerator.save(accelerator.unwrap_model(model).cpu(), path)
    model = model.cpu()            ->   model = accelerator.unwrap_model(model).cpu()

On several processes the prepared model is a wrapper without these attributes. Left as they are: calls, train(), eval(),
zero_grad(), parameters(), which mean the same on both, if the model's class has none of its own, and torch.compile(),
of which the result is trained.
Where a trained model is taken to the CPU and run there, its name stands for the model inside from there on.
A loss that such a method or layer computes goes around the wrapper's forward: the program asks for
find_unused_parameters, with which the runtime averages gradients after each backward, whatever took part in it.
A model that a function gives back to code without the accelerator is given back unwrapped. Code that stays as it is
(files that were not named, functions that other programs use) is given the model itself if it asks, saves or copies it;
if it also computes a loss with it, the program is refused.
Refused: losses of methods and layers with Accelerate, where these gradients would not be shared.
Safe: on one process unwrap_model gives the same object.
"""

from __future__ import annotations

import ast
from itertools import islice
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import COMPILING, DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL, SYNCHRONIZING
from migrate.analysis.known.training import FLUENT, THROUGH_WRAPPER
from migrate.analysis.partials import PARTIAL
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import arguments, walk
from migrate.analysis.units import Function, Module
from migrate.programs.home.made_with import stays_itself
from migrate.programs.output.lent import lent, stays
from migrate.programs.output.patched import OF_WRAPPER, is_patching
from migrate.programs.output.wrapped import asked_for_module, is_bare
from migrate.programs.prepare.bypass import around_forward
from migrate.programs.reach.forwards import entered_with_forward
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.reach.self_training import is_itself, steps
from migrate.programs.values.checkpoints import saved
from migrate.programs.values.logs import logs
from migrate.rules.placing import dropped
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

#: What a name may be that holds a trained model at other times: of these, unwrapping gives the same back.
_MAY_BE = frozenset({Role.MODEL, Role.TENSOR, Role.UNKNOWN, Role.CHECKPOINT})


#: Methods of the wrapper that call those of the model inside.
_CALLING_INSIDE = frozenset({"forward", "train"})
_STATES = frozenset({"state_dict", "load_state_dict"})
_OF_CONTAINERS = frozenset().union(*map(dir, (dict, list, tuple, set)))


@rule("MIG119")
def model_attributes(conversion: Conversion, draft: Draft) -> None:
    """Unwrap the model for its own attributes and for other people's functions."""
    for node in _attributes(conversion):
        accelerator = conversion.access.name(node)
        draft.wrap(node.value, f"{accelerator}.unwrap_model({{it}})")
    kinds = (_handed_out, _gone_through, _written_out, _looked_into, _built_in, _saved, _among_others, _given_back)
    found = [given for kind in kinds for given in kind(conversion)]
    for given in dict.fromkeys(found):
        draft.wrap(given, f"{conversion.access.name(given)}.unwrap_model({{it}})")
    for taken in conversion.taken_off.unwrapped:
        _name_anew(conversion, draft, taken)
    for call in islice(around_forward(conversion.facts, conversion.loops, conversion.program), 1):
        why = "this trains around the model's forward: the runtime averages after backward, Accelerate does not"
        draft.note(call, why)


def _name_anew(conversion: Conversion, draft: Draft, call: ast.Call) -> None:
    """Let the name of a model that is taken to the CPU stand for the one inside from there on."""
    assert isinstance(call.func, ast.Attribute)
    statement = conversion.facts.tree(call).statement(call)
    name, unwrap = ast.unparse(call.func.value), f"{conversion.access.name(call)}.unwrap_model"
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
        draft.wrap(call.func.value, f"{unwrap}({{it}})")
    else:
        draft.before(statement, f"{name} = {unwrap}({name})")


def _attributes(conversion: Conversion) -> Iterator[ast.Attribute | ast.Subscript]:
    facts = conversion.facts
    gone = {id(inner) for call in dropped(conversion) for inner in walk(call.func)}
    for module in {unit.module: None for unit in conversion.speaking_units}:
        for node in facts.tree(module.tree).nodes:
            if isinstance(node, ast.Subscript) and roles(facts.values(node.value)) == {Role.MODEL}:
                if _is_prepared_model(conversion, node.value):
                    yield node
            if not isinstance(node, ast.Attribute) or node.attr == "module" or id(node) in gone:
                continue
            if node.attr in OF_WRAPPER and is_patching(facts, facts.unit(node)):
                continue  # its calls go away, and it stays what it was
            if node.attr in THROUGH_WRAPPER and not (_is_own_step(facts, node) or _is_overridden(facts, node)):
                continue
            owner = _moved(facts, node.value) if node.attr in _STATES else node.value
            if _is_prepared_model(conversion, owner, node.attr) and not _gives_itself(facts, node):
                yield node


def _moved(facts: Facts, node: ast.expr, methods: frozenset[str] = THROUGH_WRAPPER) -> ast.expr:
    """The model that is moved, or set to a mode, in an expression: `model` of `model.cpu()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not facts.targets(node):
        if node.func.attr not in methods:
            break
        node = node.func.value
    return node


def _gives_itself(facts: Facts, node: ast.Attribute) -> bool:
    """`net = net.apply(f)`: the name is to go on standing for the wrapper."""
    tree = facts.tree(node)
    return stays_itself(tree.statement(node), ast.unparse(node.value)) and not _is_overridden(facts, node)


def _is_own_step(facts: Facts, node: ast.Attribute) -> bool:
    """Whether a model's own `train(loader)` is called, which stands in the place of the library's."""
    call = facts.tree(node).parents[node]
    if not isinstance(call, ast.Call) or call.func is not node or node.attr == "forward":
        return False
    return any(target in steps(facts) for target in facts.targets(call))


def _is_overridden(facts: Facts, node: ast.Attribute) -> bool:
    """Whether a model's class has a `parameters()` of its own, say, that the wrapper's would not call."""
    call = facts.tree(node).parents[node]
    if node.attr in _CALLING_INSIDE or not isinstance(call, ast.Call) or call.func is not node:
        return False
    return any(target.owner is not None and target.name == node.attr for target in facts.targets(call))


def _is_prepared_model(conversion: Conversion, node: ast.expr, asked: str = "") -> bool:
    """Whether a node is one; what a container has no attribute for is `asked` of the model that it may be else."""
    facts = conversion.facts
    is_given_back = isinstance(node, ast.Call) and _gives_back(facts, node)
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and not is_given_back:
        return False
    if not _is_inside(conversion, node):
        return False
    if isinstance(node, ast.Subscript) and Role.MODEL in roles(facts.values(node.value)):
        return False  # a layer of it
    if isinstance(node, ast.Attribute) and node.attr == "module":
        return False  # the inside of a DataParallel: MIG110 unwraps it
    if is_itself(facts, node):
        return False
    values = facts.values(node)
    mine = origins(values, Role.MODEL) & conversion.program.model_origins
    may_be = _MAY_BE | {Role.CONTAINER} if asked and asked not in _OF_CONTAINERS else _MAY_BE
    if not mine or not roles(values) <= may_be or not conversion.is_prepared_at(node, mine):
        return False
    return not is_bare(facts, node, conversion.program.model_origins)


def _gives_back(facts: Facts, call: ast.Call) -> bool:
    """Whether a function of the project gives what it has, or was given: `de_parallel(model).state_dict()`."""
    units = facts.targets(call)
    returned = (node.value for unit in units for node in facts.own(unit) if isinstance(node, ast.Return))
    is_bare = all(isinstance(value, ast.Attribute) and value.attr == "module" for value in returned)
    return bool(units) and not is_bare and not any(unit.sets_up for unit in units)


def _is_inside(conversion: Conversion, node: ast.AST) -> bool:
    unit = conversion.facts.unit(node)
    return unit in conversion.units or unit in conversion.access.around or _is_global(conversion, node, unit)


def _is_global(conversion: Conversion, node: ast.AST, unit: Unit) -> bool:
    """Whether a method of a model reads the module's model: `model.head(x)` where `self.head(x)` was meant."""
    start = conversion.program.start
    if not isinstance(node, ast.Name) or not isinstance(start, Module) or unit.module is not start:
        return False
    is_own = (
        isinstance(unit, Function) and is_inside_model(conversion.facts, unit) and node.id not in unit.parameter_names
    )
    own = {binding.target for binding in conversion.facts.bindings_in(unit)}
    return is_own and node.id not in own and any(b.target == node.id for b in conversion.facts.bindings_in(start))


def _given_back(conversion: Conversion) -> Iterator[ast.expr]:
    """`return net` to code that has no accelerator, or goes on with what it has given as it was before prepare.

    What that goes on with, or saves, is the model itself.
    """
    facts, program = conversion.facts, conversion.program
    calls = facts.callers(program.home) if isinstance(program.home, Function) else ()
    callers = {call.caller.original for call in calls if _is_kept(facts, call.node)}
    is_outside = not callers <= {*conversion.units, *conversion.access.around}
    if not is_outside and program.start not in callers:
        return
    for node in facts.own(program.home) if program.home is not None else ():
        if isinstance(node, ast.Return) and node.value is not None:
            for each in node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]:
                is_given = bool(origins(facts.values(each), Role.MODEL) & program.given)
                if (is_outside or is_given) and _is_prepared_model(conversion, each):
                    yield each


def _is_kept(facts: Facts, call: ast.Call) -> bool:
    """Whether something is done with what a call gives."""
    statement = facts.tree(call).statement(call)
    return not (isinstance(statement, ast.Expr) and statement.value is call)


def _handed_out(conversion: Conversion) -> Iterator[ast.expr]:
    """Trained models given to library functions after prepare."""
    facts = conversion.facts
    keep = DATA_PARALLEL | DISTRIBUTED_DATA_PARALLEL | SYNCHRONIZING | COMPILING
    for use in conversion.speaking_uses:
        if facts.targets(use.node) or use.node in dropped(conversion):
            continue
        names = facts.called(use.node)
        if names & keep or any(value.role is Role.CLASS for value in facts.values(use.node.func)):
            continue
        if PARTIAL in names and not _binds_of_library(facts, use.node):
            continue  # the function is one of the program's: it is handed the model when it is called
        if not names and Role.WRITER not in roles(facts.receiver(use.node)) and not logs(facts, use.node):
            continue
        if asked_for_module(facts, use.node, conversion.program.model_origins) or _asks_for_wrapper(facts, use.node):
            continue
        for argument in (_moved(facts, each, FLUENT) for each in use.node.args):
            if _is_prepared_model(conversion, argument):
                yield argument


def _binds_of_library(facts: Facts, call: ast.Call) -> bool:
    """`partial(torch.save, model)`."""
    return bool(call.args) and roles(facts.values(call.args[0])) == {Role.KNOWN}


def _gone_through(conversion: Conversion) -> Iterator[ast.expr]:
    """Trained models whose layers are taken one after the other: `for layer in net:`, `[*net]`."""
    for unit in conversion.speaking_units:
        for node in conversion.facts.own(unit):
            over = node.iter if isinstance(node, (ast.For, ast.comprehension)) else None
            if isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load):
                over = node.value
            if over is not None and _is_prepared_model(conversion, over):
                yield over


def _written_out(conversion: Conversion) -> Iterator[ast.expr]:
    """Trained models in an f-string, which would show the wrapper."""
    for unit in conversion.speaking_units:
        for node in conversion.facts.own(unit):
            if isinstance(node, ast.FormattedValue) and _is_prepared_model(conversion, node.value):
                yield node.value


def _built_in(conversion: Conversion) -> Iterator[ast.expr]:
    """Trained models that become a part of another model, which is prepared and trained in its turn."""
    facts = conversion.facts
    for use in conversion.uses:
        made = origins(facts.values(use.node), Role.MODEL) & conversion.program.model_origins
        if use.node in made and any(value.role is Role.CLASS for value in facts.values(use.node.func)):
            for given in arguments(use.node):
                if _is_prepared_model(conversion, given):
                    yield given


def _saved(conversion: Conversion) -> Iterator[ast.expr]:
    """Trained models that are saved as they are, in a dictionary: `torch.save({"net": net}, path)`."""
    items = (_moved(conversion.facts, item, FLUENT) for item in saved(conversion.facts))
    return (item for item in items if _is_prepared_model(conversion, item))


def _asks_for_wrapper(facts: Facts, call: ast.Call) -> bool:
    """`isinstance(model, nn.DataParallel)`: no prepared model is one, and each is an `nn.Module`."""
    if "builtins.isinstance" not in facts.called(call) or len(call.args) != 2:
        return False
    names = facts.names(call.args[1])
    return bool(names) and names <= DATA_PARALLEL | {"torch.nn.Module"}


def _looked_into(conversion: Conversion) -> Iterator[ast.expr]:
    """Trained models given to functions that stay as they are, which ask the model itself for something, or save it."""
    facts, program = conversion.facts, conversion.program
    edited = conversion.units | conversion.access.around.keys()
    for use in conversion.speaking_uses:
        if not any(stays(program, edited, unit) for unit in entered_with_forward(facts, use.node)):
            continue
        for given in _each_given(use.node):
            if not _is_prepared_model(conversion, given):
                continue
            if lent(facts, program, edited, use.node, given).asked is not None:
                yield given


def _each_given(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call, and what those hold that are written out as a list, a tuple or a dictionary."""
    waiting = arguments(call)
    while waiting:
        given = waiting.pop(0)
        yield given
        if isinstance(given, (ast.List, ast.Tuple)):
            waiting += given.elts
        elif isinstance(given, ast.Dict):
            waiting += given.values


def _among_others(conversion: Conversion) -> Iterator[ast.expr]:
    """Trained models that a function takes by `**objects`, and asks for something one after the other."""
    for use in conversion.speaking_uses:
        for unit in conversion.facts.targets(use.node):
            if unit.others is None or not any(map(_asks, _each_of(unit, unit.others.arg))):
                continue
            for keyword in use.node.keywords:
                if keyword.arg is not None and keyword.arg not in unit.parameter_names:
                    if _is_prepared_model(conversion, keyword.value):
                        yield keyword.value


def _each_of(unit: Function, objects: str) -> Iterator[ast.Attribute]:
    """The attributes that are read of `each` in `for name, each in objects.items()`."""
    for node in ast.walk(unit.node):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            if ast.unparse(node.iter.func) in (f"{objects}.items", f"{objects}.values"):
                names = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
                inside = (n for statement in node.body for n in ast.walk(statement) if isinstance(n, ast.Attribute))
                yield from (n for n in inside if isinstance(n.value, ast.Name) and n.value.id in names)


def _asks(node: ast.Attribute) -> bool:
    return node.attr not in THROUGH_WRAPPER
