"""device-choice: the accelerator decides where the program runs.

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")   ->   (gone, or device = accelerator.device)
    if device == "cuda":                                                    ->   if accelerator.device.type == "cuda":
    if device == torch.device("cuda"):                                      ->   if device.type == "cuda":
    torch.ones(3, device="cuda")            ->   torch.ones(3, device=accelerator.device)
    torch.cuda.set_device(0)                                                ->   (gone)

A `device` variable goes away with its last use; where other tensors still need it, it is the accelerator's device. A
flag such as --no-cuda goes on deciding: it becomes Accelerator(cpu=...). So does a device that a user may name, where
the program chooses one only if none is named: `args.device or ("cuda" if ... else "cpu")`. In a function that keeps a
device of its own "cuda:0" becomes "cuda", the GPU of the process; so it does where a parameter has it by default, in
the methods of models, and in a file of settings, for whatever reads it besides moves. Where tensors are put on it
before there is an accelerator, it is the GPU that LOCAL_RANK names. `with torch.cuda.device(0):` gives way to its
block. Several statements that come to one choice (the same again, one in each branch of an `if`, a default and then
another one) are one, which stands above the `if`. A GPU that is chosen by its number is said: the launcher chooses
now, `runtime launch --gpu_ids 1 train.py`.
A program that moves things, and only to the CPU, stays there, which is said: Accelerator(cpu=True).
Safe: with the same flags the same kind of device is chosen.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.analysis.known.devices import IN_DEVICE, SET_DEVICE
from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Module
from migrate.programs.device.choices import Choice, choices
from migrate.programs.device.devices import is_move
from migrate.programs.device.makers import is_put_together
from migrate.programs.device.moves import is_in_left_branch
from migrate.programs.device.numbered import numbered_texts
from migrate.programs.values.conditions import same_name
from migrate.programs.values.users import from_user, is_told_or_chosen
from migrate.rules.chosen_gpus import say_chosen, say_kept, say_lost, say_settings, say_version
from migrate.rules.compared_devices import ask_for_kind
from migrate.rules.first_gpu import follow_in_defaults, follow_in_models, follow_kept, is_asked_by_name, is_first_gpu
from migrate.rules.fixed_devices import name_fixed
from migrate.rules.handed_devices import (
    INLINED,
    gone,
    is_text,
    overruled,
    redirect_handed,
    redirect_parameters,
    scope,
    sees,
)
from migrate.rules.idle import drop_idle_flags, idle_functions
from migrate.rules.own_gpu import name_own, name_users
from migrate.rules.placing import kept_moves
from migrate.rules.rule import rule
from migrate.rules.settings_devices import follow_settings, settings, settings_left

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG101")
def device_choice(conversion: Conversion, draft: Draft) -> None:
    """Remove or redirect device variables, parameters and set_device calls."""
    inside: set[int] = set()
    staying: list[Choice] = []
    idle: dict[Unit, ast.FunctionDef] = {}
    for unit in conversion.ordered_units:
        for choice in choices(conversion.facts, unit):
            is_home = unit is conversion.program.start
            if _is_there(conversion, choice) if is_home else is_redirected(conversion, choice):
                _settle(conversion, draft, choice)
                idle.update(idle_functions(conversion, choice))
                _overwritten(conversion, draft, choice)
                _settle_others(conversion, draft, choice)
                if not _is_text(conversion, choice):
                    ask_for_kind(conversion, draft, choice)
                say_version(conversion, draft, choice)
                inside |= {id(node) for node in ast.walk(choice.statement)}
            else:
                staying.append(choice)
    for unit in (*conversion.program.outsiders, *conversion.access.around):
        staying += choices(conversion.facts, unit) if conversion.facts.is_editable(unit) else ()
    for function in idle.values():
        draft.remove(function)
    staying = [choice for choice in staying if choice.unit not in idle]
    named = name_own(conversion, draft, staying)
    for choice in staying:
        if choice not in named and not name_users(conversion, draft, choice):
            _follow_current(conversion, draft, choice)
    _follow_fields(conversion, draft)
    follow_in_models(conversion, draft)
    follow_in_defaults(conversion, draft)
    follow_kept(conversion, draft, named)
    staying += _redirect_globals(conversion, draft, named)
    kept = _settings(conversion, draft, named)
    handed_down = settings(conversion)
    others = [choice for choice in staying if choice not in handed_down]
    say_kept(conversion, draft, [*(choice for choice in others if any(_unmoved(conversion, choice))), *kept])
    _follow_imported(conversion, draft)
    name_fixed(conversion, draft)
    redirect_parameters(conversion, draft)
    redirect_handed(conversion, draft)
    drop_idle_flags(conversion, draft)
    say_chosen(conversion, draft)
    say_lost(conversion, draft)
    say_settings(conversion, draft)
    _current(conversion, draft, inside)


def _current(conversion: Conversion, draft: Draft, inside: set[int]) -> None:
    """What makes one GPU the current one: for good, and for a block."""
    for use in conversion.facts.calls_to(SET_DEVICE | IN_DEVICE):
        if use.unit not in conversion.units or id(use.node) in inside or is_in_left_branch(conversion.facts, use.node):
            continue
        statement = conversion.facts.tree(use.node).statement(use.node)
        if isinstance(statement, ast.With):
            _leave_context(draft, statement, use.node)
        elif isinstance(statement, ast.Expr):
            draft.remove(statement)


def _leave_context(draft: Draft, statement: ast.With, call: ast.Call) -> None:
    """`with torch.cuda.device(args.gpu):`, which would be the same GPU for every process."""
    if len(statement.items) == 1 and statement.items[0].optional_vars is None:
        draft.unwrap(statement)
    else:
        draft.note(call, "one GPU is made the current one of every process here", "take it out of the `with`")


def _overwritten(conversion: Conversion, draft: Draft, choice: Choice) -> None:
    """`device = "cuda"` and then `exec(open("config.py").read())`, which may give another one."""
    for node in conversion.facts.own(choice.unit):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "exec":
            if node.lineno > choice.statement.lineno:
                what = f"exec() in line {node.lineno} may set {choice.target}: the model stays on the accelerator's"
                draft.note(choice.statement, what, "choose the device by the launcher: `runtime launch --cpu`")


def _follow_current(conversion: Conversion, draft: Draft, choice: Choice) -> None:
    """A device that stays the function's own: the first GPU, or that of an option, becomes the process's."""
    if any(is_first_gpu(node) for node in conversion.facts.own(choice.unit) if node not in _own_reads(choice)):
        return  # it is compared with its name
    if is_asked_by_name(conversion, choice.unit.module):
        return
    for statement in (choice.statement, *choice.others):
        for node in numbered_texts(statement):
            if is_first_gpu(node) or is_put_together(node):
                draft.rewrite(node, draft.quoted(node, "'cuda'"))


def _follow_imported(conversion: Conversion, draft: Draft) -> None:
    """A device that a file of settings chooses: where more than moves reads it, it is the process's GPU, too."""
    own = conversion.modules
    led_to = set().union(*map(conversion.facts.imported, own))
    for module in conversion.facts.modules:
        if module in own or module not in led_to:
            continue
        for choice in choices(conversion.facts, module):
            read = [n for n in _remaining(conversion, choice) if conversion.facts.unit(n) in conversion.units]
            if not read:
                continue
            if module in conversion.facts.editable:
                _follow_current(conversion, draft, choice)
            elif any(is_first_gpu(node) for node in ast.walk(choice.statement)):
                why = f"{module.path}, which was not named, chooses the first GPU for every process"
                draft.note(read[0], why, f"name {module.path} as well, or choose 'cuda' there")


def _follow_fields(conversion: Conversion, draft: Draft) -> None:
    """The device that a class keeps for its objects, `device: torch.device = torch.device("cuda:0" if ...)`."""
    for module in conversion.modules:
        for cls in conversion.facts.tree_of(module).nodes.of(ast.ClassDef):
            for field in (s for s in cls.body if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None):
                assert field.value is not None
                if conversion.facts.is_device(conversion.facts.values(field.value)):
                    for node in filter(is_first_gpu, ast.walk(field.value)):
                        assert isinstance(node, ast.Constant)
                        draft.rewrite(node, draft.quoted(node, "'cuda'"))


def _is_there(conversion: Conversion, choice: Choice) -> bool:
    """Whether there is an accelerator where a device is chosen, or the choice gives way to it."""
    placement = conversion.placement
    if placement.takes_choice and placement.choice is not None and choice.statement is placement.choice.statement:
        return True
    return conversion.has_accelerator_at(choice.outermost) or device_line(conversion, choice) is None


def _redirect_globals(conversion: Conversion, draft: Draft, named: Collection[Choice]) -> Iterator[Choice]:
    """A device chosen at module level, for a program whose home is a function: its functions read the accelerator's.

    Those that stay are given back. The `named` ones are the process's own GPU by now, for what the module puts there.
    """
    for module in conversion.modules:
        if module in conversion.units:
            continue
        for choice in choices(conversion.facts, module):
            if not all(map(conversion.access.can_reach, inside := _reading_global(conversion, choice)[0])):
                yield choice
                continue
            for node in inside:
                draft.rewrite(node, f"{conversion.access.name(node)}.device")
            if _is_needless(conversion, choice):
                for statement in (choice.statement, *choice.others):
                    draft.remove(statement)
            else:  # models read it, too
                if choice not in named:
                    _follow_current(conversion, draft, choice)
                yield choice


def _reading_global(conversion: Conversion, choice: Choice) -> tuple[list[ast.expr], list[ast.expr]]:
    """What reads a device of a module: in functions of the program, and elsewhere."""
    left = [node for node in _remaining(conversion, choice) if node not in _own_reads(choice)]
    inside = [node for node in left if conversion.facts.unit(node) in conversion.units]
    return inside, [node for node in left if node not in inside]


def _is_needless(conversion: Conversion, choice: Choice) -> bool:
    """Whether nothing reads a device of a module any more, whose functions have the accelerator's."""
    if choice.unit not in set(conversion.modules) - {*conversion.units} or _is_asked(conversion, choice):
        return False
    inside, others = _reading_global(conversion, choice)
    return not others and all(map(conversion.access.can_reach, inside))


def _settings(conversion: Conversion, draft: Draft, named: Collection[Choice]) -> list[Choice]:
    """A device that is handed down among the settings; those that something but the accelerator's functions reads."""
    left = [choice for choice in settings_left(conversion) if not _is_needless(conversion, choice)]
    follow_settings(conversion, draft)
    for choice in left:
        if choice not in named and conversion.facts.is_editable(choice.unit):
            _follow_current(conversion, draft, choice)
    return left


def _is_asked(conversion: Conversion, choice: Choice) -> bool:
    """Whether the accelerator asks for what is chosen: `cpu=torch.device(config.device).type == "cpu"`."""
    needed = {name for argument in conversion.placement.arguments for name in argument.needs}
    if choice.target.isidentifier():
        return choice.target in needed
    return choice.target.rpartition(".")[2] in {name.rpartition(".")[2] for name in needed if "." in name}


def _unmoved(conversion: Conversion, choice: Choice) -> Iterator[bool]:
    """For each read that is left of a device, whether it is no move that goes to the accelerator's now."""
    tree = {id(inner) for move in kept_moves(conversion) for inner in ast.walk(move.node)}
    unread = overruled(conversion)
    for node in _remaining(conversion, choice):
        if id(node) not in unread:
            yield id(node) not in tree or not conversion.access.can_reach(node)


def _own_reads(choice: Choice) -> set[ast.AST]:
    return set(ast.walk(choice.statement))


def device_line(conversion: Conversion, choice: Choice) -> str | None:
    """The statement that a device choice becomes; None if its variable is not needed any more."""
    left = list(_remaining(conversion, choice))
    if not left or _can_inline(conversion, choice, left):
        return None
    accelerator = conversion.access.of(choice.unit)
    return f"{choice.target} = {accelerator}.device{'.type' if _is_text(conversion, choice) else ''}"


def _settle(conversion: Conversion, draft: Draft, choice: Choice) -> None:
    line = device_line(conversion, choice)
    left = list(_remaining(conversion, choice))
    if line is None:
        for node in left:
            draft.rewrite(node, f"{conversion.access.name(node)}.device.type")
    placement = conversion.placement
    if placement.takes_choice and placement.choice is not None and choice.statement is placement.choice.statement:
        if placement.accelerator.where != "instead":  # else the accelerator takes its place
            draft.remove(choice.statement)
        return
    if line is not None and choice.above is None:
        draft.replace(choice.statement, line)
        return
    if line is not None and choice.above is not None:
        draft.before(choice.above, line)
    draft.remove(choice.statement)


def _settle_others(conversion: Conversion, draft: Draft, choice: Choice) -> None:
    line = device_line(conversion, choice)
    for other in choice.others:
        if line is not None and other in choice.apart:
            draft.replace(other, line)
        elif line is None or not choice.stays(other):
            draft.remove(other)


def is_redirected(conversion: Conversion, choice: Choice) -> bool:
    """Whether a choice away from home gives way: something is put on that device, and the accelerator is at hand.

    Elsewhere "cuda" and the current accelerator go on meaning the process's own device, which the accelerator has set.
    """
    facts = conversion.facts
    if not conversion.access.has(choice.unit):
        return False
    return any(
        isinstance(parent := facts.tree(node).parents[node], (ast.Call, ast.keyword))
        and (isinstance(parent, ast.keyword) or is_move(facts, parent))
        for node in _reads(conversion, choice)
    )


def _remaining(conversion: Conversion, choice: Choice) -> Iterator[ast.expr]:
    """The reads of a device variable that are left when the moves are dropped and the parameters replaced."""
    left_out = gone(conversion)
    for node in _reads(conversion, choice):
        if id(node) not in left_out:
            yield node


def _reads(conversion: Conversion, choice: Choice) -> Iterator[ast.expr]:
    """Where the variable of a choice is read: in its unit and what sees its names; of an attribute, everywhere."""
    facts = conversion.facts
    is_name = choice.target.isidentifier()
    home_tree, last = facts.tree(choice.statement), choice.target.rpartition(".")[2]
    own = {id(node) for node in choice.nodes()}
    mine = own | {id(value.origin) for node in choice.nodes() for value in _given(facts, node)}
    for module in facts.modules:
        tree = facts.tree(module.tree)
        if is_name and tree is not home_tree and not _is_imported(conversion, module, choice):
            continue
        for name in tree.nodes.of(ast.Name) if is_name else ():
            if name.id == choice.target and id(name) not in own and isinstance(name.ctx, ast.Load):
                if sees(scope(facts, name), choice.unit, choice.target):
                    yield name
        for node in tree.nodes.of(ast.Attribute) if not is_name else ():
            if node.attr != last or id(node) in own or not isinstance(node.ctx, ast.Load):
                continue
            if _may_be_held(facts, choice, node):
                values = facts.values(node)
                made = {id(value.origin) for value in values if value.origin is not None}
                is_told = from_user(values) or is_told_or_chosen(facts, values)
                if not values or is_told or (facts.is_device(values) and (not made or made & mine)):
                    yield node


def _given(facts: Facts, node: ast.AST) -> Values:
    """What a statement gives its variable, which a function that it calls may make: `self.device = get_device()`."""
    return facts.values(node.value) if isinstance(node, ast.Assign) else frozenset()


def _may_be_held(facts: Facts, choice: Choice, node: ast.Attribute) -> bool:
    """Whether an attribute may be one of the object that holds the choice."""
    if facts.names(node.value):
        return False
    owner = next(
        (n.value for n in ast.walk(choice.statement) if isinstance(n, ast.Attribute) and same_name(n, choice.target)),
        None,
    )
    mine = origins(facts.values(owner), Role.INSTANCE) if owner is not None else set()
    theirs = origins(facts.values(node.value), Role.INSTANCE)
    return not mine or not theirs or bool(mine & theirs)


def _is_imported(conversion: Conversion, module: Module, choice: Choice, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a module imports the variable from the module that makes the choice, or from one that imports it."""
    if not isinstance(choice.unit, Module) or id(module) in seen:
        return False
    sources = {
        (node.module or "").rpartition(".")[2]
        for node in conversion.facts.tree(module.tree).nodes.of(ast.ImportFrom)
        if any(alias.name in (choice.target, "*") for alias in node.names)
    }
    if not sources:
        return False
    return Path(choice.unit.path).stem in sources or any(
        Path(other.path).stem in sources and _is_imported(conversion, other, choice, seen | {id(module)})
        for other in conversion.facts.modules
    )


def _is_text(conversion: Conversion, choice: Choice) -> bool:
    """Whether the variable held a text, "cuda", which the program may compare or print as such."""
    if choice.is_read_as_text:
        return True
    return is_text(conversion.facts, list(_reads(conversion, choice)))


def _can_inline(conversion: Conversion, choice: Choice, left: list[ast.expr]) -> bool:
    """`if device == "cuda"`: the comparison can ask the accelerator itself."""
    return (
        len(left) <= INLINED
        and _is_text(conversion, choice)
        and all(isinstance(conversion.facts.tree(node).parents[node], ast.Compare) for node in left)
        and all(conversion.access.can_reach(node) for node in left)
    )
