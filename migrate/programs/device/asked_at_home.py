"""A device that is chosen by a flag somewhere, for an accelerator that is made where it has a name by then.

    config = make_config(args)              # which has put torch.device("cpu" if args.cpu else "cuda") there
    model.to(config["device"])

Of whatever kind the place is in which it is kept: what a move of the trained model is told can be asked for the CPU.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_main_guard, walk
from migrate.analysis.units import Function
from migrate.programs.argument import CPU, Argument
from migrate.programs.device.choices import Choice, choices
from migrate.programs.device.chosen_below import is_of
from migrate.programs.device.devices import (
    by_text,
    cpu_when,
    device_argument,
    hides_flag,
    is_move,
    only_asks,
)
from migrate.programs.device.makers import is_choice
from migrate.programs.device.the_cpu import is_cpu
from migrate.programs.device.told_above import cpu_above
from migrate.programs.values.conditions import needs, same_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value, Values
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program


def asked_at_home(
    facts: Facts, program: Program, units: Container[Unit], choice: Choice | None = None
) -> Argument | None:
    """The condition for the CPU by what the function of the accelerator calls the device of a model or a batch.

    `choice` is one that goes by what the machine has: it says all of its variable, if it is always made.
    """
    assert program.start is not None
    flagged: dict[Values, bool] = {}  # most moves are told one device
    for given in _told(facts, program, units):
        values = facts.values(given)
        if choice is not None and _is_settled(facts, choice, given):
            continue
        if values not in flagged:
            flagged[values] = _is_flagged(facts, values)
        named = _at_home(facts, program, program.start, given) if flagged[values] else None
        if named is not None:
            return Argument(CPU, ast.unparse(by_text(named)), frozenset(needs(named)), below=_made(facts, given))
    asked = (values for values, is_flagged in flagged.items() if is_flagged)
    return next((told for values in asked if (told := _in_words(facts, program.start, values)) is not None), None)


def _in_words(facts: Facts, start: Unit, values: Values) -> Argument | None:
    """The condition for the CPU in the words of the function above, where that has no name for the device."""
    texts, made = _texts(values), _made_devices(values)
    for node in (*made, *_choosing(facts, texts)):
        condition = cpu_when(facts, node)
        if condition is not None and (told := cpu_above(facts, start, condition, walk(node))) is not None:
            return Argument(CPU, *told)
    return None


def _is_settled(facts: Facts, choice: Choice, given: ast.expr) -> bool:
    """Whether a device is that of a choice that is always made."""
    if not (same_name(given, choice.target) or is_of(facts, facts.values(given), choice)):
        return False
    above = facts.tree(choice.statement).parents[choice.statement]
    return not isinstance(choice.statement, ast.Assign) or not isinstance(above, ast.If) or is_main_guard(above)


def _told(facts: Facts, program: Program, units: Container[Unit]) -> Iterator[ast.expr]:
    """The devices that moves of trained models and of batches are told."""
    for use in facts.calls:
        if use.unit in units and is_move(facts, use.node) and (given := device_argument(facts, use.node)) is not None:
            moved = facts.receiver(use.node)
            if origins(moved, Role.MODEL) & program.model_origins or origins(moved, Role.BATCH):
                yield given


def _is_flagged(facts: Facts, values: Values) -> bool:
    """Whether a device is the CPU in some runs, and not by what the machine has alone."""
    if not facts.is_device(values) or not any(_is_other(facts, value.origin, value.name) for value in values):
        return False
    return any(_asks_flag(facts, origin) for origin in _made_devices(values)) or _text_asks_flag(facts, _texts(values))


def _texts(values: Values) -> Values:
    return frozenset(value for value in values if value.role is Role.TEXT)


def _made_devices(values: Values) -> list[ast.expr]:
    return [value.origin for value in values if value.role is Role.DEVICE and isinstance(value.origin, ast.expr)]


def _is_other(facts: Facts, origin: ast.AST | None, name: str) -> bool:
    """Whether it is another device than the CPU."""
    return name != "cpu" and not (isinstance(origin, ast.expr) and is_cpu(facts, origin))


def _asks_flag(facts: Facts, origin: ast.expr) -> bool:
    """Whether a device is made by the say of a flag; the CPU by its name is, where no choice is known to give it."""
    unit = facts.unit(origin)
    if isinstance(unit, Function) and only_asks(facts, unit):
        return False
    for choice in choices(facts, unit):
        if any(node is origin for node in choice.nodes()):
            return choice.asks_user
    return hides_flag(facts, origin) or is_cpu(facts, origin)


def _text_asks_flag(facts: Facts, texts: Values) -> bool:
    """Whether texts are a device by the say of a flag: one of them is the CPU, and some expression chooses by one.

    `"cuda" if torch.cuda.is_available() else "cpu"` asks for what there is, and is no such thing.
    """
    if not any(value.name == "cpu" for value in texts):
        return False
    chosen = _choosing(facts, texts)
    return not chosen or any(hides_flag(facts, node) for node in chosen)


def _choosing(facts: Facts, texts: Values) -> list[ast.expr]:
    """The expressions that choose one of several texts."""
    return [
        node
        for module in (facts.modules if texts else ())
        for kind in (ast.IfExp, ast.BoolOp)
        for node in facts.tree_of(module).nodes.of(kind)
        if facts.values(node) == texts and is_choice(facts, node)
    ]


def _at_home(facts: Facts, program: Program, start: Unit, given: ast.expr) -> ast.expr | None:
    """What a unit calls a device: as it is told there, by another expression, or as what an object holds there."""
    if facts.unit(given) is start:
        return given
    values = facts.values(given)
    for node in facts.own(start):
        is_read = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
        if is_read and isinstance(node, ast.expr) and facts.values(node) == values:
            return node
    if not isinstance(given, (ast.Attribute, ast.Subscript)):
        return None
    holders = facts.values(given.value)
    if any(_holds_model(facts, program, holder) for holder in holders):
        return None  # which is made by then: the accelerator would come too late
    names = (b.target for b in facts.bindings_in(start) if b.target.isidentifier() and b.values & holders)
    return next((_of(given, name) for name in names), None)


def _holds_model(facts: Facts, program: Program, holder: Value) -> bool:
    """Whether an object has a trained model."""
    held = facts.holding(holder.origin).values() if holder.role is Role.INSTANCE and holder.origin is not None else ()
    return any(origins(values, Role.MODEL) & program.model_origins for values in held)


def _of(given: ast.Attribute | ast.Subscript, name: str) -> ast.expr:
    if isinstance(given, ast.Attribute):
        return ast.Attribute(ast.Name(name), given.attr)
    return ast.Subscript(ast.Name(name), given.slice)


def _made(facts: Facts, given: ast.expr) -> frozenset[ast.AST]:
    """Where a device is made, and where a text is given to something of that name."""
    values = facts.values(given)
    texts = _texts(values)
    stored = {node for node in _stored(facts, given) if facts.values(node) <= texts} if texts else set()
    return frozenset({*(value.origin for value in values if value.origin is not None), *stored})


def _stored(facts: Facts, given: ast.expr) -> Iterator[ast.expr]:
    """What a variable is given, an attribute of the same object, or the argument of its name that makes the object."""
    name = _last_part(given)
    holders = facts.values(given.value) if isinstance(given, (ast.Attribute, ast.Subscript)) else None
    for statement in (binding.statement for binding in facts.bindings):
        if isinstance(statement, ast.Assign):
            targets = (target for target in statement.targets if _last_part(target) == name)
            if any(_are_same(facts, target, holders) for target in targets):
                yield statement.value
    for use in facts.calls if holders else ():
        if holders and not holders.isdisjoint(facts.values(use.node)):
            yield from (keyword.value for keyword in use.node.keywords if keyword.arg == name)
        match use.node:
            case ast.Call(func=ast.Name("setattr"), args=[_, ast.Constant(value), stored]) if value == name:
                yield stored


def _are_same(facts: Facts, target: ast.expr, holders: Values | None) -> bool:
    """Whether what is set is a variable, as what is asked, or stands in one of the same objects."""
    if not isinstance(target, (ast.Attribute, ast.Subscript)):
        return holders is None
    return holders is not None and not holders.isdisjoint(facts.values(target.value))


def _last_part(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2].rpartition("[")[2]
