"""Expressions that make a device, when that is the CPU, and calls that move something there."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import DEVICE_TEXT
from migrate.analysis.known.training import NO_GRAD
from migrate.analysis.roles import Role, only, roles
from migrate.analysis.state import ANY
from migrate.analysis.syntax import arguments, is_docstring, is_main_guard, is_none, reads
from migrate.analysis.units import Function
from migrate.programs.device.makers import is_choice, is_put_together, parts
from migrate.programs.device.tensor_types import casts_to_gpu, condition
from migrate.programs.device.the_cpu import has_other_device, is_cpu, only_cpu
from migrate.programs.values.conditions import asks_for_data, asks_for_turn, denied, flag, negated
from migrate.programs.values.sources import Sources
from migrate.programs.values.users import from_settings, is_told_or_chosen, is_users, may_be_settings, names_device

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values


def names_cpu(node: ast.Call) -> bool:
    """Whether the text "cpu" stands in what a call is passed: `.to("cpu")`, `.to(device="cpu")`."""
    given = arguments(node)
    return any(
        isinstance(inner, ast.Constant) and inner.value == "cpu" for argument in given for inner in ast.walk(argument)
    )


def only_asks(facts: Facts, function: Function) -> bool:
    """Whether a function does nothing but give the best device there is."""
    named: set[str] = set()
    waiting = [statement for statement in reversed(function.body) if not is_docstring(statement)]
    while waiting:
        match waiting.pop():
            case ast.If(test, body, orelse) if flag(facts, test) is None:
                waiting += [*body, *orelse]
            case ast.Assign([ast.Name(name)], value) if _gives_device(facts, value):
                named.add(name)
            case ast.Return(ast.Name(name)) if name in named:
                pass
            case ast.Return(value) if _gives_device(facts, value):
                pass
            case _:
                return False
    read = {name for statement in function.body for name in reads(statement)}
    return all(parameter is function.itself or parameter.arg not in read for parameter in function.positional)


def _gives_device(facts: Facts, value: ast.expr | None) -> bool:
    return value is not None and is_choice(facts, value) and not hides_flag(facts, value)


def hides_flag(facts: Facts, value: ast.expr) -> bool:
    """Whether a device depends on a flag inside of it, which would be lost."""
    return cpu_when(facts, value) is not None and not is_cpu(facts, value)


def cpu_when(facts: Facts, node: ast.expr) -> ast.expr | None:
    """The condition under which a device expression is the CPU; None: never by choice of the program."""
    if is_users(facts, node):
        return by_text(node)
    if parts(node) is not None:
        return cpu_of_branches(facts, list(_branches(node)))
    if isinstance(node, ast.Call) and "torch.device" in facts.called(node) and len(node.args) == 1:
        inner = node.args[0]
        if isinstance(inner, ast.Constant) or parts(inner) is not None:
            return cpu_when(facts, inner)
        values = facts.values(inner)
        is_read = isinstance(inner, (ast.Name, ast.Attribute)) or _is_setting(facts, inner) or may_be_settings(values)
        if is_users(facts, inner) or (is_read and not facts.is_device(values)):
            return by_text(inner)
        if isinstance(inner, ast.Attribute) and only_cpu(facts, inner):  # what a user names, or the CPU
            return by_text(inner)
        return None
    if isinstance(node, ast.Call) and (targets := facts.targets(node)):
        return None if all(only_asks(facts, target) for target in targets) else by_text(node)
    if isinstance(node, ast.Constant) and node.value == "cpu":
        return ast.Constant(True)
    return None


def _branches(node: ast.expr) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    """What an expression may be, each with the test for it; the last has none. `a or b` is `a if a else b`."""
    if isinstance(node, ast.IfExp):
        yield node.test, node.body
        yield from _branches(node.orelse)
        return
    *first, last = parts(node) or [node]
    yield from ((part, part) for part in first)
    yield from _branches(last) if first else [(None, last)]


def cpu_of_branches(facts: Facts, branches: Sequence[tuple[ast.expr | None, ast.expr]]) -> ast.expr | None:
    """`cuda if a else mps if b else cpu` is the CPU when neither flag is set; None: never by choice of the program."""
    flags: list[ast.expr] = []  # any of them leads to another device
    found: list[ast.expr] = []
    for test, value in branches:
        if is_cpu(facts, value):
            rest = None if test is None or _asks_for_none(facts, test) else flag(facts, denied(test))
            chosen = [] if rest is None else [negated(rest)]
            if flags:
                chosen.append(negated(_either(flags)))
            if chosen and (test is None or rest is not None):
                found.append(_both(chosen))
            continue
        rest = None if test is None else flag(facts, test)
        if (named := _named(facts, value)) is not None:
            denials = [negated(_either(flags))] if flags else []
            found.append(_both([*denials, *([] if rest is None else [rest]), named]))
        if test is not None:
            if rest is None and (not flags or "cuda" in ast.unparse(value)):
                break  # what is left is for machines without that device
            if rest is not None:  # further branches that only ask for availability do not keep it off the first device
                flags.append(rest)
    return _either(found) if found else None


def _both(parts: Sequence[ast.expr]) -> ast.expr:
    return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), list(parts))


def _either(parts: Sequence[ast.expr]) -> ast.expr:
    return parts[0] if len(parts) == 1 else ast.BoolOp(ast.Or(), list(parts))


def _asks_for_none(facts: Facts, test: ast.expr) -> bool:
    """Whether a test holds on machines without a GPU only: `"cuda" in name and not torch.cuda.is_available()`."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return False
    return any(flag(facts, denied(part)) is None for part in test.values)


def _named(facts: Facts, value: ast.expr) -> ast.expr | None:
    """The condition under which what a user names is the CPU: `args.device`, `torch.device(args.device)`."""
    if isinstance(value, ast.Call) and "torch.device" in facts.called(value):
        return cpu_when(facts, value)
    is_told = isinstance(value, ast.Attribute) and not facts.names(value)
    is_told |= not isinstance(value, ast.Attribute) and is_users(facts, value, also_names=True)
    return by_text(value) if is_told or _is_setting(facts, value) else None


def by_text(node: ast.expr) -> ast.expr:
    """The condition under which the device that a user names is the CPU."""
    return ast.parse(f"torch.device({ast.unparse(node)}).type == 'cpu'", mode="eval").body


def is_move(facts: Facts, node: ast.AST) -> bool:
    """`x.to(device)`, `x.cuda()`: a call that puts its receiver on the device the program trains on."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if facts.names(node.func.value) or facts.targets(node) or _is_super(facts, node.func.value):
        return False
    if node.func.attr in ("cuda", "xpu") or casts_to_gpu(facts, node):
        return True
    return node.func.attr == "to" and device_argument(facts, node) is not None


def is_to_cpu(facts: Facts, node: ast.Call) -> bool:
    """`x.cpu()`, `x.to("cpu")`."""
    if not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "cpu" or (node.func.attr == "to" and cpu_argument(facts, node) is not None)


def _is_super(facts: Facts, node: ast.expr) -> bool:
    """`super()` in a model's own `to()`, which gives back the model."""
    return isinstance(node, ast.Call) and "builtins.super" in facts.called(node)


def _devices_given(node: ast.Call) -> list[ast.expr]:
    """What `.to(...)` may be given as a device."""
    return [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "device")]


def cpu_argument(facts: Facts, node: ast.Call) -> ast.expr | None:
    """The argument of `.to(...)` that is the CPU."""
    return next((argument for argument in _devices_given(node) if _is_the_cpu(facts, argument)), None)


def _is_the_cpu(facts: Facts, argument: ast.expr) -> bool:
    """Whether an argument means the CPU in a program that has another device, or names it."""
    return is_cpu(facts, argument) or (only_cpu(facts, argument) and has_other_device(facts, argument))


def device_argument(facts: Facts, node: ast.Call) -> ast.expr | None:
    """The argument of `.to(...)` that is a device of the program, not the CPU by name, not another tensor's device."""
    if cpu_argument(facts, node) is not None:
        return None
    for argument in _devices_given(node):
        values = facts.values(argument)
        if names_device(facts, values) or only(values, *_INDICES) or is_users(facts, argument):
            return argument
        if _is_number_option(facts, argument):
            return argument
        if is_word(facts, values):
            return argument
    return None


def is_word(facts: Facts, values: Values) -> bool:
    """Whether a text names a device or is a word of the program's settings, "auto": `to` takes no other texts."""
    is_whole = only(values, Role.TEXT) and not any(ANY in value.name for value in values)
    return is_whole and {facts.is_device(frozenset({value})) for value in values} == {True, False}


def _is_number_option(facts: Facts, node: ast.expr) -> bool:
    """`args.gpu` of `add_argument("--gpu", type=int, default=0)`: no other number is taken by `to` than a GPU's."""
    sources = facts.once(Sources)
    told = sources.given(node).only if isinstance(node, ast.Name) else node
    option = sources.option(told) if told is not None else None
    said = {keyword.arg: keyword.value for keyword in option.keywords} if option is not None else {}
    kind, default = said.get("type"), said.get("default")
    is_there = isinstance(default, ast.Constant) and isinstance(default.value, int)  # None stays where it is
    return is_there and kind is not None and facts.names(kind) == {"builtins.int"}


_INDICES = (Role.NUMBER, Role.RANK, Role.LOCAL_RANK)  # a number is the index of a GPU


def is_unknown_move(facts: Facts, node: ast.Call) -> bool:
    """`x.to(y)` where y is neither a device, nor a dtype, nor another tensor, as far as is known."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "to":
        return False
    given = _devices_given(node)
    if any(_is_setting(facts, argument) or is_put_together(argument) for argument in given):
        return True
    return not is_move(facts, node) and any(_is_unknown(facts, argument) for argument in given)


def _is_setting(
    facts: Facts, node: ast.expr, seen: set[tuple[ast.expr, bool]] | None = None, *, or_none: bool = False
) -> bool:
    """Whether a device may be an item that nobody knows: `config.get("gpu", "cpu")` of a file, or the environment.

    `or_none`: what follows is taken where it is None.
    """
    seen = set() if seen is None else seen
    if (node, or_none) in seen:
        return False
    seen.add((node, or_none))
    if isinstance(node, ast.BoolOp):
        *first, last = node.values
        return any(_is_setting(facts, p, seen, or_none=True) for p in first) or _is_setting(facts, last, seen)
    if isinstance(node, ast.IfExp):
        return _is_setting(facts, node.body, seen) or _is_setting(facts, node.orelse, seen)
    if isinstance(node, (ast.Name, ast.Attribute)):
        given = facts.once(Sources).given(node).expressions
        return any(_is_setting(facts, each, seen, or_none=or_none) for each in given)
    if not _is_got(facts, node) and not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        return False
    if is_users(facts, node):
        return isinstance(node, ast.Call) and not or_none and _may_be_none(node)
    is_open = roles(values := facts.values(node)) <= {Role.UNKNOWN} or may_be_settings(values)
    return is_open and not is_told_or_chosen(facts, values) and not _says_dtype(node)


def _is_got(facts: Facts, node: ast.expr) -> bool:
    """`config.get("device")`, `os.getenv("DEVICE")`: an item of what a person writes."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return False
    return "os.getenv" in facts.called(node) or getattr(node.func, "attr", "") in ("get", "pop")


def _may_be_none(node: ast.Call) -> bool:
    """`config.get("device")`, where there may be none."""
    return len(node.args) < 2 or is_none(node.args[1])


def _is_unknown(facts: Facts, node: ast.expr) -> bool:
    """Whether an argument may be a device: nothing is known of it, or it is a text that may name one."""
    values = facts.values(node)
    if any(v.role is Role.METHOD for v in values) and any(
        v.role is Role.TEXT and v.name.split(":")[0] in DEVICE_TEXT for v in values
    ):
        return True  # a text of the program's, or what the user names
    if from_settings(values):
        return not _says_dtype(node)
    return any(v.role is Role.TEXT and ANY in v.name for v in values) or (not values and not _says_dtype(node))


def _says_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or bool(_DTYPE.search(ast.unparse(node)))


#: A dtype, or the device of a tensor; what asks for GPUs is neither.
_DTYPE = re.compile(r"dtype|\.device|\btorch\.(?!cuda\.|backends\.|device\b|accelerator\.)")


def is_switched(facts: Facts, node: ast.Call) -> bool:
    """Whether callers say if `x.cuda()` is called, some on and others off: `to_tensor(x, cuda=False)`. No user does."""
    test = guard_flag(facts, node) if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" else None
    unit = facts.unit(test) if isinstance(test, ast.Name) else None
    if not isinstance(test, ast.Name) or not isinstance(unit, Function) or test.id not in unit.parameter_names:
        return False
    given = facts.once(Sources).given(test)
    said = {bool(each.value) if isinstance(each, ast.Constant) else None for each in given.expressions}
    return given.complete and said == {True, False}


_PLAIN = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)


def guard_flag(facts: Facts, node: ast.AST) -> ast.expr | None:
    """The condition a device move stands under: `if use_cuda:` or `x.cuda() if use_cuda else x`."""
    return next(guard_flags(facts, node), None)


def guard_flags(facts: Facts, node: ast.AST) -> Iterator[ast.expr | None]:
    """The conditions that a device move stands under, the innermost first; None: a branch that one does not lead to."""
    if isinstance(node, ast.Call) and casts_to_gpu(facts, node):
        yield condition(facts, node.args[0])
        return
    tree = facts.tree(node)
    below = node
    for above in tree.up(node):
        if isinstance(above, ast.IfExp) and below is above.body and not asks_for_data(facts, above.test):
            yield above.test
        elif isinstance(above, ast.If):
            if is_main_guard(above):
                return
            if not asks_for_data(facts, above.test) and not asks_for_turn(above.test):
                is_asked = any(below is statement for statement in above.body)
                yield above.test if is_asked else _asked_otherwise(facts, above, node)
        elif isinstance(above, ast.stmt) and not (isinstance(above, _PLAIN) or _only_moves(facts, above)):
            return
        below = above


def _asked_otherwise(facts: Facts, above: ast.If, move: ast.AST) -> ast.expr | None:
    """What a move below `else` stands under, where the branch above keeps on the CPU what is moved; None: not told.

    `if args.cpu: model.cpu() else: model.cuda()`: other branches leave open what becomes of it there.
    """
    moved = ast.unparse(move.func.value) if isinstance(move, ast.Call) and isinstance(move.func, ast.Attribute) else ""
    kept = (
        ast.unparse(inner.func.value)
        for statement in above.body
        for inner in ast.walk(statement)
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and is_to_cpu(facts, inner)
    )
    return negated(above.test) if moved and moved in kept else None


def _only_moves(facts: Facts, block: ast.stmt) -> bool:
    """`for loss in losses: loss = loss.cuda()`, `with torch.no_grad(): x = x.cuda()`: nothing else is done there."""
    if isinstance(block, ast.With):
        managers = [item.context_expr for item in block.items]
        is_plain = all(isinstance(each, ast.Call) and facts.called(each) & NO_GRAD for each in managers)
        return is_plain and all(isinstance(each, _PLAIN) for each in block.body)
    made = (each.value if isinstance(each, _PLAIN) else None for each in getattr(block, "body", ()))
    return isinstance(block, ast.For) and all(isinstance(each, ast.Call) and is_move(facts, each) for each in made)
