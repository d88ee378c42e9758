"""What is said of GPUs that a program chooses: one process has one, and that is the launcher's to choose."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_main_guard
from migrate.analysis.units import Function
from migrate.programs.argument import CPU
from migrate.programs.device.choices import choices
from migrate.programs.device.chosen_below import choice_below, is_of, is_one_of
from migrate.programs.device.cpu_alone import names_cpu_alone
from migrate.programs.device.devices import device_argument, is_word
from migrate.programs.device.handed_down import settings_above
from migrate.programs.device.numbered import VISIBLE, Visible, numbered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.units import Module
    from migrate.programs.conversion import Conversion
    from migrate.programs.device.choices import Choice
    from migrate.rules.draft import Draft


_OTHERS = ("mps", "xpu", "accelerator")


def say_chosen(conversion: Conversion, draft: Draft) -> None:
    """Say of each choice of a GPU how to make it now, and where there is none."""
    launch = _launch(conversion)
    above = (choice.unit for choice in settings_above(conversion.facts, conversion.program.start))
    units = dict.fromkeys((*conversion.ordered_units, *above))
    for text, node in numbered(conversion.facts, conversion.uses, units).items():
        if not is_word(conversion.facts, conversion.facts.values(node)):  # of which more is told
            draft.note(node, *lost_number(conversion, text))
    for statement in _visible(conversion):
        inside = conversion.facts.unit(statement) in conversion.units and conversion.has_accelerator_at(statement)
        if inside and not _is_in_time(conversion, statement):
            what = "the GPUs are chosen here, which is too late: the accelerator has taken its own"
            draft.note(statement, what, f"choose them by the launcher, {launch}, or set {VISIBLE} for the program")
        else:
            draft.note(statement, "the GPUs are chosen here: several processes need one each")
    if names_cpu_alone(conversion.facts, conversion.program):
        what = "the program names no device but the CPU, so it stays there"
        way_out = "move its tensors to accelerator.device and take cpu=True out"
        draft.note(conversion.placement.accelerator.statement, what, way_out)


def _is_in_time(conversion: Conversion, statement: ast.stmt) -> bool:
    """Whether the function that chooses the GPUs is called above the accelerator."""
    unit, spot = conversion.facts.unit(statement), conversion.placement.accelerator
    first = spot.statement.lineno + (spot.where == "after")
    calls = conversion.facts.callers(unit) if isinstance(unit, Function) else ()
    return any(call.caller is conversion.program.start and call.node.lineno < first for call in calls)


def lost_number(conversion: Conversion, text: str) -> tuple[str, str]:
    """What is said of a number that chose the GPU, and the way out."""
    what = f"{text} no longer chooses the GPU: the accelerator takes the first, or that of the process"
    return what, f"choose it by the launcher, {_launch(conversion)}, or set {VISIBLE}=1 for the program"


def _launch(conversion: Conversion) -> str:
    return f"`{conversion.package} launch --gpu_ids 1`"


def say_lost(conversion: Conversion, draft: Draft) -> None:
    """Say of a flag that decides below the accelerator, or in an object, that nothing asks it any more."""
    if any(argument.name == CPU for argument in conversion.placement.arguments):
        return
    below = choice_below(conversion.facts, conversion.program)
    for choice in [below] if below is not None else list(_of_objects(conversion))[:1]:
        what = f"{choice.target} is the accelerator's where the program trains, also where {choice.cpu}"
        draft.note(choice.statement, what, f"choose the device by the launcher: `{conversion.package} launch --cpu`")


def say_version(conversion: Conversion, draft: Draft, choice: Choice) -> None:
    """Say of a choice that goes by the version of PyTorch, MPS from 2.9 on, that this has no say any more."""
    if isinstance(choice.statement, ast.If) and "__version__" in ast.unparse(choice.statement):
        what = "a version no longer decides about the device here: the accelerator takes what there is"
        draft.note(choice.statement, what, f"where it must not: `{conversion.package} launch --cpu`")


def say_settings(conversion: Conversion, draft: Draft) -> None:
    """Say of a text that may be a device or a word of the program's settings, "auto", that moves go by it no more."""
    given = (device_argument(conversion.facts, move.node) for move in conversion.moves if move.unit in conversion.units)
    words: dict[str, ast.expr] = {}
    for each in given:
        if each is not None and is_word(conversion.facts, conversion.facts.values(each)):
            words.setdefault(ast.unparse(each), each)
    launch = f"`{conversion.package} launch --cpu`, or --gpu_ids 1"
    for text, node in words.items():
        what = f"{text} no longer chooses the device where the program trains: the accelerator does"
        draft.note(node, what, f"choose it by the launcher: {launch}")


def _of_objects(conversion: Conversion) -> Iterator[Choice]:
    """`self.device = torch.device(args.device)` of an object that has no accelerator, where moves go by that device."""
    facts = conversion.facts
    given = (device_argument(facts, move.node) for move in conversion.moves if move.unit in conversion.units)
    made = {id(value.origin) for each in given if each is not None for value in facts.values(each)}
    for unit in facts.functions:
        for choice in choices(facts, unit) if unit.owner is not None and unit is not conversion.program.start else ():
            if choice.cpu is not None and any(is_one_of(facts, node, made) for node in ast.walk(choice.statement)):
                yield choice


def say_kept(conversion: Conversion, draft: Draft, staying: Iterable[Choice]) -> None:
    """Say where files go on choosing between a GPU and the CPU by themselves, which is not all the accelerator does."""
    kept: dict[Module, Choice] = {}
    for choice in (choice for choice in staying if not _decides(conversion, choice)):
        text = ast.unparse(choice.statement)
        if "cuda" in text and not any(kind in text for kind in _OTHERS):
            kept.setdefault(choice.unit.module, choice)
    for choice in list(kept.values())[:1]:
        more = len(kept) - 1
        also = f", and so in {more} more file{'s' if more > 1 else ''}" if more else ""
        what = f"{choice.target} stays the GPU or the CPU here{also}, also where the accelerator takes MPS"
        way_out = f"use accelerator.device here; or on MPS start it with `{conversion.package} launch --cpu`"
        draft.note(choice.statement, what, way_out)


def _decides(conversion: Conversion, choice: Choice) -> bool:
    """Whether the accelerator takes the CPU wherever a choice does: `Accelerator(cpu=device.type == "cpu")`."""
    start = conversion.program.start
    assert start is not None
    arguments = [each for each in conversion.placement.arguments if each.name == CPU]
    if any(not each.below.isdisjoint(choice.nodes()) for each in arguments):
        return True
    asked = {name for each in arguments for name in each.needs}
    named = [b.values for b in conversion.facts.bindings_in(start) if b.target in asked]
    handed = (
        [values for name, values in start.parameters.items() if name in asked] if isinstance(start, Function) else []
    )
    return any(is_of(conversion.facts, values, choice) for values in (*named, *handed))


def _visible(conversion: Conversion) -> Iterator[ast.stmt]:
    """`os.environ["CUDA_VISIBLE_DEVICES"] = "0"`: the first in each file that the program runs."""
    facts = conversion.facts
    modules = {*conversion.modules}.union(*map(facts.imported, conversion.modules))
    for module, statements in facts.once(Visible).statements.items():
        for statement in statements if module in modules else ():
            own = module in conversion.modules
            if own or not any(map(is_main_guard, facts.tree(statement).up(statement))):
                yield statement
                break
