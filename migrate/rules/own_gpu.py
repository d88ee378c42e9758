"""Devices that are used before there is an accelerator, which makes one GPU the current one of its process."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.device.before import Before, before
from migrate.programs.device.choices import Choice, choices
from migrate.rules.chosen_gpus import lost_number

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

_OWN = "'cuda:' + os.environ.get('LOCAL_RANK', '0')"
_FIRST = ("cuda", "cuda:0")
_DEVICE = frozenset({"torch.device"})


def name_own(conversion: Conversion, draft: Draft, staying: Collection[Choice]) -> list[Choice]:
    """Let each process put its tensors on its own GPU, which the launcher tells it; the choices that this was done to.

    `staying` are choices that no accelerator takes the place of.
    """
    found = before(conversion.facts, conversion.program, conversion.placement)
    where = {*found.units, *map(conversion.facts.unit, found.devices)}  # `settings.device` is chosen in another file
    others = (unit for unit in where if unit not in conversion.units and conversion.facts.is_editable(unit))
    known = [*staying, *(choice for unit in others for choice in choices(conversion.facts, unit))]
    done: list[Choice] = []
    for choice in known:
        nodes = [node for each in (choice.statement, *choice.others) for node in ast.walk(each)]
        if choice in done or (found.devices.isdisjoint(nodes) and choice.target not in found.names):
            continue
        if _is_compared(conversion, choice, nodes):
            draft.left(
                choice.statement,
                f"every process puts tensors on the first GPU by {choice.target}, before there is an accelerator",
                "put them there in the function that trains, or below",
            )
        elif _name(draft, nodes):
            done.append(choice)
    _say_unnamed(conversion, draft, found)
    return done


def name_users(conversion: Conversion, draft: Draft, choice: Choice) -> bool:
    """Let each process have its own GPU where a user names one, `torch.device(args.device)`; whether that is asked.

    Code around an object that makes its accelerator has no other device to put its tensors on.
    """
    facts = conversion.facts
    calls = [
        node
        for statement in (choice.statement, *choice.others)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and facts.called(node) & _DEVICE and len(node.args) == 1
    ]
    users = [call for call in calls if isinstance(call.args[0], (ast.Name, ast.Attribute))]
    if choice.unit not in conversion.access.around or not users:
        return False
    for call in users:
        named = ast.unparse(call.args[0])
        is_gpu = f"{ast.unparse(call)}.type == 'cuda'"
        draft.rewrite(call.args[0], draft.quoted(call, f"{_OWN} if {is_gpu} else {named}"))
        draft.add_import(call, "os")
        draft.note(call, *lost_number(conversion, f"a number in {named} (cuda:1)"))
    return True


def _say_unnamed(conversion: Conversion, draft: Draft, found: Before) -> None:
    """A device that a file chooses which is not to be changed."""
    facts, spot = conversion.facts, conversion.placement.accelerator.statement
    firsts = [node for node in found.devices if any(map(_is_first, ast.walk(node)))]
    for path in sorted({str(facts.module(node).path) for node in firsts if not facts.module(node).file.named}):
        what = f"{path}, which was not named, puts tensors on the first GPU for every process before this"
        draft.note(spot, what, f"name {path} as well, or choose 'cuda:' + os.environ['LOCAL_RANK'] there")


def _is_compared(conversion: Conversion, choice: Choice, nodes: Collection[ast.AST]) -> bool:
    """Whether the program asks for the device by its name, which would be another one."""
    compared = (n for n in conversion.facts.tree(choice.statement).nodes if isinstance(n, ast.Compare))
    own = {id(node) for node in nodes}
    inside = (node for each in compared for node in ast.walk(each) if id(node) not in own)
    return any(map(_is_first, inside))


def _is_first(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in _FIRST


def _name(draft: Draft, nodes: Collection[ast.AST]) -> bool:
    """Put the process's own GPU where the first one is named: not where a user's word for it is asked for."""
    others = {id(node.args[0]) for node in nodes if isinstance(node, ast.Call) and len(node.args) > 1}
    others |= {id(inner) for node in nodes if isinstance(node, ast.Compare) for inner in ast.walk(node)}
    first = [n for n in nodes if isinstance(n, ast.Constant) and _is_first(n) and id(n) not in others]
    for node in first:
        draft.rewrite(node, draft.quoted(node, _OWN))
        draft.add_import(node, "os")
    return bool(first)
