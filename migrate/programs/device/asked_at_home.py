"""A device that is chosen by a flag somewhere, for an accelerator that is made where it has a name by then.

    config = make_config(args)              # which has put torch.device("cpu" if args.cpu else "cuda") there
    model.to(config["device"])

Of whatever kind the place is in which it is kept: what a move of the trained model is told can be asked for the CPU.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.programs.argument import CPU, Argument
from migrate.programs.device.choices import choices
from migrate.programs.device.devices import by_text, device_argument, hides_flag, is_choice, is_cpu, is_move
from migrate.programs.values.conditions import needs

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program


def asked_at_home(facts: Facts, program: Program, units: Container[Unit]) -> Argument | None:
    """The condition for the CPU by what the function of the accelerator calls the device of a model or a batch."""
    assert program.start is not None
    for given in _told(facts, program, units):
        if not _is_flagged(facts, facts.values(given)):
            continue
        named = _at_home(facts, program.start, given)
        if named is not None:
            return Argument(CPU, ast.unparse(by_text(named)), frozenset(needs(named)), below=_made(facts, given))
    return None


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
    texts = frozenset(value for value in values if value.role is Role.TEXT)
    made = [value.origin for value in values if value.role is Role.DEVICE and isinstance(value.origin, ast.expr)]
    return any(_asks_flag(facts, origin) for origin in made) or _text_asks_flag(facts, texts)


def _is_other(facts: Facts, origin: ast.AST | None, name: str) -> bool:
    """Whether it is another device than the CPU."""
    return name != "cpu" and not (isinstance(origin, ast.expr) and is_cpu(facts, origin))


def _asks_flag(facts: Facts, origin: ast.expr) -> bool:
    """Whether a device is made by the say of a flag; the CPU by its name is, where no choice is known to give it."""
    for choice in choices(facts, facts.unit(origin)):
        if any(node is origin for node in choice.nodes()):
            return choice.cpu is not None or not choice.is_clear
    return hides_flag(facts, origin) or is_cpu(facts, origin)


def _text_asks_flag(facts: Facts, texts: Values) -> bool:
    """Whether texts are a device by the say of a flag: one of them is the CPU, and some expression chooses by one.

    `"cuda" if torch.cuda.is_available() else "cpu"` asks for what there is, and is no such thing.
    """
    if not any(value.name == "cpu" for value in texts):
        return False
    chosen = [
        node
        for module in facts.modules
        for node in facts.tree_of(module).nodes
        if isinstance(node, (ast.IfExp, ast.BoolOp)) and facts.values(node) == texts and is_choice(facts, node)
    ]
    return not chosen or any(hides_flag(facts, node) for node in chosen)


def _at_home(facts: Facts, start: Unit, given: ast.expr) -> ast.expr | None:
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
    names = (b.target for b in facts.bindings_in(start) if b.target.isidentifier() and b.values & holders)
    return next((_of(given, name) for name in names), None)


def _of(given: ast.Attribute | ast.Subscript, name: str) -> ast.expr:
    if isinstance(given, ast.Attribute):
        return ast.Attribute(ast.Name(name), given.attr)
    return ast.Subscript(ast.Name(name), given.slice)


def _made(facts: Facts, given: ast.expr) -> frozenset[ast.AST]:
    """Where a device is made, and where a text is given to something of that name."""
    values = facts.values(given)
    texts = frozenset(value for value in values if value.role is Role.TEXT)
    stored = {node for node in _stored(facts, _last_part(given)) if facts.values(node) <= texts} if texts else set()
    return frozenset({*(value.origin for value in values if value.origin is not None), *stored})


def _stored(facts: Facts, name: str) -> Iterator[ast.expr]:
    """What variables and attributes of a name are given, and the arguments of that name."""
    for binding in facts.bindings:
        if isinstance(binding.statement, ast.Assign) and _last(binding.target) == name:
            yield binding.statement.value
    for use in facts.calls:
        yield from (keyword.value for keyword in use.node.keywords if keyword.arg == name)
        match use.node:
            case ast.Call(func=ast.Name("setattr"), args=[_, ast.Constant(value), given]) if value == name:
                yield given


def _last_part(node: ast.expr) -> str:
    return _last(ast.unparse(node))


def _last(name: str) -> str:
    return name.rpartition(".")[2]
