"""When a program's accelerator stays on the CPU: by a flag of the user, or by the device that the user names."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.units import Function, Unit, module_of
from migrate.programs.argument import CPU, Argument
from migrate.programs.device.asked_at_home import asked_at_home
from migrate.programs.device.choices import Choice, choices
from migrate.programs.device.chosen_below import cpu_below
from migrate.programs.device.defaults import cpu_without_default
from migrate.programs.device.devices import by_text, device_argument, guard_flag, guard_flags, is_move, is_switched
from migrate.programs.program import Program, Refusal
from migrate.programs.stages import NoPlace
from migrate.programs.values.conditions import as_handed, first_named, flag, needs, negated, one_flag
from migrate.programs.values.switches import turned_on_by
from migrate.programs.values.users import is_told_or_chosen, is_users, told_in

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from migrate.analysis.facts import Facts


def cpu_of(facts: Facts, program: Program, units: Container[Unit], choice: Choice | None) -> Argument | None:
    """`cpu=condition`: from the device choice, else from what the moves go by; None: no user has a say.

    Raises:
        NoPlace: a user has a say in the device, and it cannot be asked where the accelerator is made.
    """
    choice = _deciding(facts, program, choice)
    default = cpu_without_default(facts, program)
    if default is not None and (choice is None or (choice.is_clear and choice.cpu is None)):
        return _cpu(default)
    if choice is not None:
        if not choice.is_clear:
            raise NoPlace(
                Refusal(
                    choice.statement,
                    "MIG101",
                    f"{choice.target} is given a device at several places",
                    f"choose it in one statement: {choice.target} = torch.device(A if condition else B)",
                )
            )
        if choice.cpu is not None:
            return Argument(CPU, choice.cpu, choice.needs)
        moved = (use.node for use in facts.calls if use.unit in units)
        if (asked := _asked_by_all(facts, program, moved)) is not None:
            _check_named(facts, program, asked)
            return Argument(CPU, ast.unparse(negated(asked)), frozenset(needs(asked)))
        return asked_at_home(facts, program, units, choice)
    if (told := cpu_below(facts, program, units)) is not None:
        return Argument(CPU, *told)
    return asked_at_home(facts, program, units) or _by_moves(
        facts, program, (use.node for use in facts.calls if use.unit in units)
    )


def _cpu(condition: ast.expr) -> Argument:
    named = (name for name in needs(condition) if name.partition(".")[0] != "torch")
    return Argument(CPU, ast.unparse(condition), frozenset(named))


def _by_moves(facts: Facts, program: Program, calls: Iterable[ast.Call]) -> Argument | None:
    """By the device that a user names when things are moved, or by the one flag that guards the moves.

    Of several it is the one that also asks whether there is a GPU, `args.cuda`, beside `if args.resume: model.cuda()`,
    or the one that all moves stand under, `if args.cuda:` around `if args.teacher: teacher.cuda()`, or that those of
    the trained models and of batches go by.
    """
    assert program.start is not None
    guards: dict[str, ast.expr] = {}
    followed: dict[str, ast.expr] = {}
    trained: dict[str, ast.expr] = {}
    around: list[dict[str, ast.expr]] = []  # what each move stands under
    for call in calls:
        if not is_move(facts, call) or is_switched(facts, call):
            continue
        given = device_argument(facts, call)
        is_told = given is not None and is_users(facts, given, also_names=True)
        if given is not None and not is_told and is_told_or_chosen(facts, facts.values(given)):
            if _is_chosen_beside(facts, given):
                return None  # which is told there
            raise NoPlace(_chosen_elsewhere(given))
        if given is not None and is_told:
            _check_named(facts, program, named := told_in(facts, program.start, given))
            return Argument(CPU, ast.unparse(by_text(named)), frozenset(needs(named)))
        test = guard_flag(facts, call)
        rest = flag(facts, turned_on_by(facts, as_handed(facts, test))) if test is not None else None
        if test is None and origins(facts.receiver(call), Role.MODEL, Role.BATCH):
            return None  # moved whatever the flags say
        if rest is not None:
            guards[ast.unparse(rest)] = rest
            around.append(_around(facts, call))
            if _is_trained(facts, program, call):
                trained[ast.unparse(rest)] = rest
            unit = facts.unit(call)
            if not (isinstance(unit, Function) and ast.unparse(rest) in unit.parameter_names):
                followed[ast.unparse(rest)] = rest
    about_gpu = [test for test in guards.values() if Role.AVAILABLE in roles(facts.values(test))]
    above_all = [test for text, test in around[0].items() if all(text in each for each in around)] if around else []
    chosen = (guards.values(), followed.values(), about_gpu, above_all, trained.values())
    flag_of_all = next((one for tests in chosen if (one := one_flag(facts, tests))), None)
    if flag_of_all is None:
        return None
    _check_named(facts, program, flag_of_all)
    node = negated(flag_of_all)
    return Argument(CPU, ast.unparse(node), frozenset(needs(node)))


def _asked_by_all(facts: Facts, program: Program, calls: Iterable[ast.Call]) -> ast.expr | None:
    """The flag that every move to a GPU goes by: `if use_gpu: model.to(device)`; None: something is moved without it.

    A branch that also makes the models, or what trains them, asks for something else: `if args.train:`.
    """
    found: list[dict[str, ast.expr]] = []
    is_trained = False
    for call in calls:
        if is_move(facts, call) and not is_switched(facts, call):
            found.append(_around(facts, call))
            is_trained |= _is_trained(facts, program, call)
    made = [origin for each in (*program.models, *program.optimizers) for origin in each.origins]
    elsewhere = {text for origin in made for text in _around(facts, origin)}
    asked = {text: test for text, test in found[0].items() if all(text in each for each in found)} if found else {}
    one = one_flag(facts, [test for text, test in asked.items() if text not in elsewhere])
    return one if is_trained else None


def _is_trained(facts: Facts, program: Program, move: ast.Call) -> bool:
    """Whether a trained model or a batch is moved."""
    moved = facts.receiver(move)
    return bool(origins(moved, Role.MODEL) & program.model_origins or origins(moved, Role.BATCH))


def _around(facts: Facts, move: ast.AST) -> dict[str, ast.expr]:
    """What the flags that a move stands under come down to, by its text."""
    tests = [test for test in guard_flags(facts, move) if test is not None]
    flags = [flag(facts, turned_on_by(facts, as_handed(facts, test))) for test in tests]
    return {ast.unparse(each): each for each in (first_named(facts, f) for f in flags if f is not None)}


def _module_choice(facts: Facts, program: Program) -> Choice | None:
    """The device that is chosen at module level for a program whose home is a function, or under the main guard."""
    assert program.start is not None
    return next(iter(choices(facts, module_of(program.start))), None)


def _deciding(facts: Facts, program: Program, choice: Choice | None) -> Choice | None:
    """The choice that says whether the CPU is asked for: not one that only gives a GPU its number."""
    chosen = _module_choice(facts, program)
    if choice is None or choice.cpu is not None or chosen is None or chosen.target != choice.target:
        return choice or chosen
    parent = facts.tree(choice.statement).parents[choice.statement]
    is_number = isinstance(parent, ast.If) and choice.target in ast.unparse(parent.test)
    return chosen if is_number else choice


def _is_chosen_beside(facts: Facts, device: ast.expr) -> bool:
    """Whether a variable is given the device in its function, in one way."""
    here = choices(facts, facts.unit(device))
    return any(choice.target == ast.unparse(device) and choice.is_clear for choice in here)


def _chosen_elsewhere(given: ast.expr) -> Refusal:
    why = f"{ast.unparse(given)} is what a user names, or a device that the program chooses: where is not seen"
    return Refusal(given, "MIG103", why, "choose a device once, above the models, in one statement")


def _check_named(facts: Facts, program: Program, test: ast.expr) -> None:
    """What decides about the GPU has a name where the accelerator is made."""
    start = program.start
    assert start is not None
    known = {binding.target for unit in (start, start.module) for binding in facts.bindings_in(unit)}
    above: Unit | None = start
    while isinstance(above, Function):
        known |= {*above.parameter_names} | {binding.target for binding in facts.bindings_in(above)}
        above = above.parent
    for name in sorted({name.partition(".")[0] for name in needs(test)} - known - {*start.module.names}):
        if not hasattr(builtins, name):
            written = next(inner for inner in ast.walk(test) if hasattr(inner, "lineno"))  # `not x` may be made of `x`
            raise NoPlace(
                Refusal(
                    written,
                    "MIG101",
                    f"{ast.unparse(test)} decides about the GPU here, and {name} is not known where the accelerator "
                    "is made",
                    "choose a device once, above the models: device = torch.device('cuda' if use_cuda else 'cpu')",
                )
            )
