"""Devices that a user names and a model keeps: `self.device = args.device` of a model that is handed the settings.

    parser.add_argument("--device", default="cuda:0")
    accelerator = Accelerator(cpu=torch.device(args.device).type == "cpu")
    args.device = accelerator.device.type                               # "cuda": the GPU of the process
    model = Net(args)

What the model puts there would be on the GPU with that number, in every process, and its weights are elsewhere. Code
that has the accelerator asks it; the setting is for what has none.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.programs.argument import CPU
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.values.sources import Sources
from migrate.programs.values.users import from_settings
from migrate.rules.handed_devices import gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion


def named_lines(conversion: Conversion) -> list[str]:
    """The statements below the accelerator that let the settings name the device of the process."""
    start = conversion.program.start
    if start is None:
        return []
    conditions = [each for each in conversion.placement.arguments if each.name == CPU]
    needed = {name for each in conditions for name in each.needs if _is_compared(each.expression, name)}
    device = f"{conversion.access.of(start)}.device.type"
    return [f"{name} = {device}" for name in sorted(needed) if _is_read_elsewhere(conversion, start, name)]


def _is_compared(condition: str, name: str) -> bool:
    """Whether a condition looks at what device a setting names; `not args.cuda` asks a flag, which names none.

    Nor does a word of the program's own: `args.mode != "gpu"`.
    """
    tree = ast.parse(condition, mode="eval")
    if any(_is_own_word(node, name) for node in ast.walk(tree)):
        return False
    asked = {id(inner) for node in ast.walk(tree) for inner in _asked_for_truth(node)}
    return any(ast.unparse(node) == name and id(node) not in asked for node in ast.walk(tree.body))


def _is_own_word(node: ast.AST, name: str) -> bool:
    """Whether a setting is compared with a text that is no device's name."""
    if not isinstance(node, ast.Compare) or name not in map(ast.unparse, sides := [node.left, *node.comparators]):
        return False
    words = [side.value for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, str)]
    return any(word.partition(":")[0] not in _DEVICES for word in words)


#: What names of devices begin with.
_DEVICES = frozenset("cpu cuda mps xpu hpu npu xla tpu meta".split())


def _asked_for_truth(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    return node.values if isinstance(node, ast.BoolOp) else [node.body] if isinstance(node, ast.Expression) else []


def _is_read_elsewhere(conversion: Conversion, start: Unit, name: str) -> bool:
    """Whether an option of the command line is read where there is no accelerator, by what the program runs."""
    facts = conversion.facts
    asked = next((node for node in _read(conversion, start) if ast.unparse(node) == name), None)
    if asked is None or not from_settings(facts.values(asked)) or facts.once(Sources).option(asked) is None:
        return False
    left_out = gone(conversion)
    return any(
        node.attr == asked.attr and facts.values(node) == facts.values(asked) and id(node) not in left_out
        for unit in facts.functions
        if unit is not start and (is_inside_model(facts, unit) or not conversion.access.has(unit))
        for node in _read(conversion, unit)
    )


def _read(conversion: Conversion, unit: Unit) -> Iterator[ast.Attribute]:
    """Where a unit asks settings for something: what was handed on of them has another name, or another object."""
    for node in conversion.facts.own(unit):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if Role.HOLDER in roles(conversion.facts.values(node.value)):
                yield node
