"""Checkpoints that the program wrote of its wrapped model: the keys begin with `module.`, and must go on loading."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.world import WRAPPERS
from migrate.analysis.syntax import argument_at, walk
from migrate.analysis.units import Class, Function, Module
from migrate.edits.quotes import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.pen import Pen
    from migrate.alone.world import World
    from migrate.analysis.units import Unit

_STRIP = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present({state}, 'module.')"
_PLAIN = "{key.removeprefix('module.'): value for key, value in {it}.items()}"


def strip(world: World, pen: Pen) -> None:
    """Take the prefixes off what is loaded behind `model = DDP(model)`: above it, or in it where it has no name."""
    for state in _states(world):
        content = world.facts.file(state).content
        if _has_name(state):
            line = quoted(_STRIP.format(state=ast.unparse(state)), content)
            pen.before(world.facts.tree(state).statement(state), line)
        else:
            pen.rewrite(state, quoted(_PLAIN, content), it=state)
            if isinstance(load := _root(state), ast.Call) and argument_at(load, 1, "map_location") is None:
                pen.add_keyword(load, "map_location", "'cpu'")  # nobody would see below where this goes to


def _has_name(state: ast.expr) -> bool:
    """Whether the same is had again by its text: `ck["model"]`, not `torch.load(path)["model"]`."""
    return isinstance(_root(state), ast.Name)


def _root(node: ast.expr) -> ast.expr:
    """What an expression begins with: `torch.load(path)` of `torch.load(path)["model"]`."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node


def _states(world: World) -> Iterator[ast.expr]:
    """What is loaded into a model behind `model = DDP(model)`.

    So is that of a function that is handed the model, also as one of several: `for name, each in models.items()`.
    """
    facts = world.facts
    wrapped = {
        (facts.unit(use.node), ast.unparse(target), statement)
        for use in facts.calls_anywhere
        if use.unit.module in world.modules and facts.called(use.node) & WRAPPERS
        if isinstance(statement := facts.tree(use.node).statement(use.node), ast.Assign)
        for target in statement.targets
    }

    kept = {place for _, _, made in wrapped for target in made.targets for place in _places(world, target)}

    def is_behind(unit: Unit, node: ast.expr) -> bool:
        text = ast.unparse(node)
        mine = [made for where, name, made in wrapped if (where, name) == (unit, text)]
        if mine:
            return any(made.lineno < node.lineno for made in mine)
        return not kept.isdisjoint(_places(world, node)) and not _has_layer(world)

    for use in facts.method_calls("load_state_dict") if wrapped else ():
        state = argument_at(use.node, 0, "state_dict")
        if not isinstance(use.node.func, ast.Attribute) or id(use.node) in world.dead or state is None:
            continue
        model = use.node.func.value
        is_handed = any(is_behind(unit, given) for unit, given in _handed(world, use.unit, model))
        is_plain = _has_name(state) or _is_file(world, _root(state))
        if (is_behind(use.unit, model) or is_handed) and is_plain and "torch" in use.unit.module.names:
            if use.unit.module in world.modules and not _is_second_try(world, use.node):
                yield state


def _places(world: World, node: ast.expr) -> set[tuple[Class, str]]:
    """The attribute that an expression is, with the classes of its object: what one method wraps, another one loads."""
    if not isinstance(node, ast.Attribute):
        return set()
    return {(value.unit, node.attr) for value in world.facts.values(node.value) if isinstance(value.unit, Class)}


def _has_layer(world: World) -> bool:
    """Whether a model may have a layer of that name, whose keys begin so before it is wrapped, too."""
    return any(target.attr == "module" for target, _ in world.assigned_attributes())


def _is_file(world: World, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and "torch.load" in world.facts.called(node)


def _handed(world: World, unit: Unit, model: ast.expr) -> Iterator[tuple[Unit, ast.expr]]:
    """What callers pass to a function for a name in it, which is a parameter or runs over `**models`."""
    if not isinstance(unit, Function) or not isinstance(model, ast.Name):
        return
    named = [p.arg for p in unit.positional]
    is_one_of_all = unit.others is not None and _runs_over(unit, model.id, unit.others.arg)
    for call in world.facts.callers(unit):
        if call.handed is not None:
            continue
        given = {k.arg: k.value for k in call.node.keywords if k.arg is not None}
        given |= dict(zip(named, call.node.args, strict=False)) if unit.owner is None else {}
        if model.id in named and model.id in given:
            yield call.caller, given[model.id]
        elif _is_around(call.caller, unit) and not _binds(unit, model.id):
            yield call.caller, ast.copy_location(ast.Name(model.id, ast.Load()), call.node)  # the name around it
        elif is_one_of_all:
            yield from ((call.caller, value) for name, value in given.items() if name not in unit.parameter_names)


def _is_around(outer: Unit, unit: Function) -> bool:
    """Whether a function stands in a unit."""
    root = outer.tree if isinstance(outer, Module) else outer.node
    return any(node is unit.node for node in walk(root))


def _binds(unit: Function, name: str) -> bool:
    stored = (n for n in ast.walk(unit.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return name in unit.parameter_names or any(n.id == name for n in stored)


def _runs_over(unit: Function, name: str, items: str) -> bool:
    """`for key, name in items.items()`."""
    return any(
        isinstance(node, ast.For)
        and isinstance(node.iter, ast.Call)
        and ast.unparse(node.iter.func) in (f"{items}.items", f"{items}.values")
        and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.target))
        for node in ast.walk(unit.node)
    )


def _is_second_try(world: World, load: ast.Call) -> bool:
    """Whether the same is loaded once more, where that failed."""
    tree = world.facts.tree(load)
    for above in tree.up(load):
        if isinstance(above, ast.Try) and not any(load in ast.walk(statement) for statement in above.body):
            first = [n for statement in above.body for n in ast.walk(statement) if isinstance(n, ast.Call) and n.args]
            if load.args and any(ast.unparse(n.args[0]) == ast.unparse(load.args[0]) for n in first):
                return True
    return False
