"""batch-moves: batches of a prepared loader arrive on the device.

    x, y = x.to(device), y.to(device)                       ->   (gone)
    batch = {k: v.to(device) for k, v in batch.items()}     ->   (gone)
    x = Variable(x.cuda())                                  ->   (gone)
    noise = torch.randn(n, 8).cuda()                        ->   noise = torch.randn(n, 8).to(accelerator.device)

Dropped only where the value provably comes from a prepared loader; every other tensor goes to the accelerator's device.
In a program that never chose a device, tensors made inside its loops are made on the accelerator's device; if its
model, its loss or its batches meet others, which are on the CPU, it goes on running there: Accelerator(cpu=True).
What only DataParallel brought to the GPU, since no prepared loader does, is moved where the model is given it:
`model(x)` is `model(x.to(accelerator.device))`, and `send_to_device(batch, accelerator.device)` what may be no tensor.
What only the `forward` of a model comes to has no accelerator: `mask.cuda()` goes to where the model's weights are.
Kept: the moves of batches that the program needs on the CPU first (see MIG104), and `x.cuda()` in a function that
cannot be given the accelerator, since not all of its callers are seen: it goes to the current GPU, and that is told.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, only
from migrate.analysis.syntax import line_of
from migrate.analysis.units import Function, Module
from migrate.programs.device.choices import choices
from migrate.programs.device.devices import device_argument
from migrate.programs.device.makers import is_choice
from migrate.programs.device.moves import Fate, Move
from migrate.programs.device.scattered import unmoved
from migrate.programs.device.tour import FACTORIES, follows
from migrate.programs.processes.replicas import ON_CPU
from migrate.programs.reach.callees import reached
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.values.conditions import flag
from migrate.programs.values.users import is_users
from migrate.rules.device_choice import is_redirected
from migrate.rules.imports import drop_unused
from migrate.rules.own_devices import follow_weights
from migrate.rules.placing import cast_of, drop, kept_moves, variables
from migrate.rules.rule import rule
from migrate.rules.settings_devices import origins_followed

if TYPE_CHECKING:
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG103")
def batch_moves(conversion: Conversion, draft: Draft) -> None:
    """Drop the moves of batches, redirect the others."""
    drop(conversion, draft, [*(m.node for m in conversion.moves if m.fate is Fate.BATCH), *variables(conversion)])
    drop_unused(conversion, draft, [call.func for call in variables(conversion)])
    for move in kept_moves(conversion):
        if not (_stays_in_helper(conversion, move.node) or _stays_for_callers(conversion, draft, move.node)):
            _redirect(conversion, draft, move)
    _other_names(conversion, draft)
    _scattered(conversion, draft)
    follow_weights(conversion, draft)
    if conversion.on_cpu:
        _stays(conversion, draft)
    elif conversion.placement.cpu != ON_CPU and not _moves(conversion):
        _factories(conversion, draft)


def _scattered(conversion: Conversion, draft: Draft) -> None:
    """What DataParallel brought to the GPU, where nothing else does.

    A function of several programs has no accelerator, but it has the model, which is where prepare has put it.
    """
    for each in unmoved(conversion):
        if each.shared is not None:
            device = f"next({ast.unparse(each.shared)}.parameters()).device"
        else:
            device = f"{conversion.access.name(each.node)}.device"
        if each.is_tensor:
            draft.wrap(each.node, f"{{it}}.to({device})")
        else:
            draft.wrap(each.node, f"send_to_device({{it}}, {device})")
            draft.add_import(each.node, conversion.home_of("send_to_device"), "send_to_device")


def _stays_in_helper(conversion: Conversion, call: ast.Call) -> bool:
    """`x.cuda()` in a function that models call, too: where nobody can hand on the accelerator, it goes to the GPU that
    is the current one, which is the process's own, as it does in the models themselves.
    """
    unit = conversion.facts.unit(call)
    is_models = _is_current_gpu(call) and _is_called_by_models(conversion, unit, set())
    return is_models and not conversion.access.can_reach(call)


def _stays_for_callers(conversion: Conversion, draft: Draft, call: ast.Call) -> bool:
    """The same in a function whose parameters cannot change, since not all of its callers are seen; and told."""
    unit = conversion.facts.unit(call)
    is_kept = isinstance(unit, Function) and conversion.access.is_kept_as_it_is(unit)
    if not (_is_current_gpu(call) and is_kept):
        return False
    assert isinstance(unit, Function)
    obstacle = conversion.facts.signatures.of(unit).obstacles[0]
    draft.note(
        call,
        f"{unit.name}() goes on moving to the current GPU, which is the process's own, and to no other device: it "
        f"cannot be given the accelerator, since {obstacle.why}",
        f"{obstacle.way_out}, or give {unit.name}() a device as a parameter",
    )
    return True


def _is_current_gpu(call: ast.Call) -> bool:
    """Whether `x.cuda()` names no GPU."""
    assert isinstance(call.func, ast.Attribute)
    return call.func.attr == "cuda" and not call.args and all(k.arg == "non_blocking" for k in call.keywords)


def _is_called_by_models(conversion: Conversion, unit: Unit, seen: set[Unit]) -> bool:
    """Whether methods of models, or functions that these call, call a function."""
    if unit in seen or not isinstance(unit, Function):
        return False
    seen.add(unit)
    callers = {call.caller for call in conversion.facts.callers(unit)}
    return any(is_inside_model(conversion.facts, c) or _is_called_by_models(conversion, c, seen) for c in callers)


def _stays(conversion: Conversion, draft: Draft) -> None:
    lines = sorted({line_of(node) for node in conversion.on_cpu})
    also = f" (also in lines {', '.join(map(str, lines[1:]))})" if len(lines) > 1 else ""
    draft.note(
        conversion.on_cpu[0],
        f"tensors on the CPU meet the model or its batches here{also}, so the program stays on the CPU",
        "move them with .to(accelerator.device), and take cpu=True out",
    )


def _redirect(conversion: Conversion, draft: Draft, move: Move) -> None:
    """Send a move to the accelerator's device; one that names a variable is taken care of with the variable."""
    call = move.node
    assert isinstance(call.func, ast.Attribute)
    if (choice := _choice_of_place(conversion, call)) is not None:
        draft.rewrite(choice, f"{ast.unparse(choice.orelse)}.to({conversion.access.name(call)}.device)")
        return
    if call.func.attr != "to":
        accelerator = conversion.access.name(call)
        options = "".join(f", {ast.unparse(k)}" for k in call.keywords if k.arg == "non_blocking")
        method = cast_of(conversion, call)
        draft.wrap_receiver(call, f"{{it}}{f'.{method}()' if method else ''}.to({accelerator}.device{options})")
        return
    device = device_argument(conversion.facts, call)
    if device is None:
        return
    is_named = is_choice(conversion.facts, device) or is_users(conversion.facts, device)
    if is_named or _is_number(conversion, device) or _is_chosen_unseen(conversion, device):
        draft.rewrite(device, f"{conversion.access.name(call)}.device")


def _is_number(conversion: Conversion, device: ast.expr) -> bool:
    """`x.to(0)`, `x.to(args.gpu)` with `args.gpu = 0`: the number of one GPU, which is that of one process alone."""
    return only(conversion.facts.values(device), Role.NUMBER) and conversion.access.can_reach(device)


def _is_chosen_unseen(conversion: Conversion, device: ast.expr) -> bool:
    """`self.device`, chosen among other things in a way that no rule redirects: `self.device = self._get_device()`."""
    facts = conversion.facts
    made = [value.origin for value in facts.values(device) if value.role is Role.DEVICE]
    if not made or not isinstance(device, ast.Attribute) or None in made:
        return False
    chosen = {
        id(inner)
        for unit in (*conversion.ordered_units, *conversion.modules)
        for choice in choices(facts, unit)
        if isinstance(unit, Module) or unit is conversion.program.start or is_redirected(conversion, choice)
        for statement in (choice.statement, *choice.others)
        for inner in ast.walk(statement)
    }
    chosen |= conversion.once(origins_followed)
    return not any(id(origin) in chosen for origin in made) and conversion.access.can_reach(device)


def _other_names(conversion: Conversion, draft: Draft) -> None:
    """`device = config.device`, where an object has chosen it that no rule redirects: its name is the accelerator's."""
    for unit in conversion.ordered_units:
        for binding in conversion.facts.bindings_in(unit):
            given = binding.statement
            if not isinstance(given, ast.Assign) or not binding.target.isidentifier() or len(given.targets) != 1:
                continue
            if conversion.has_accelerator_at(given) and _is_chosen_unseen(conversion, given.value):
                draft.rewrite(given.value, f"{conversion.access.name(given)}.device")


def _choice_of_place(conversion: Conversion, call: ast.Call) -> ast.IfExp | None:
    """`x.cuda() if use_cuda else x`, where the flag asks for nothing but a GPU: wherever the accelerator is."""
    facts = conversion.facts
    above = facts.tree(call).parents[call]
    assert isinstance(call.func, ast.Attribute)
    if not isinstance(above, ast.IfExp) or above.body is not call or flag(facts, above.test) is not None:
        return None
    plain = not call.args and not call.keywords and ast.unparse(call.func.value) == ast.unparse(above.orelse)
    return above if plain else None


def _moves(conversion: Conversion) -> bool:
    """Whether the program moves something by hand, be it in a function that it shares with other scripts."""
    entered = reached(conversion.facts, conversion.units)
    moving = {move.unit for move in conversion.moves if move.node not in conversion.taken_off.dropped}
    return any(unit in conversion.units or not is_inside_model(conversion.facts, unit) for unit in moving & entered)


def _factories(conversion: Conversion, draft: Draft) -> None:
    """Tensors made in the loops of a program without any device: they meet batches that now are on one."""
    facts = conversion.facts
    for use in conversion.uses:
        if follows(facts, conversion.loops, conversion.program, use.node, use.unit):
            if facts.called(use.node) & FACTORIES:
                draft.add_keyword(use.node, "device", f"{conversion.access.name(use.node)}.device")
            else:
                draft.wrap(use.node, f"{{it}}.to({conversion.access.name(use.node)}.device)")
