"""How a program chooses its device, and what of that choice the accelerator must keep.

`device = torch.device("cuda" if use_cuda else "cpu")` becomes an accelerator that is kept on the CPU when `use_cuda`
is false: the user's flag goes on meaning what it meant. What is only a question of availability is left to the
accelerator.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.known.devices import SET_DEVICE
from migrate.analysis.roles import Role, only, roles
from migrate.analysis.state import ANY
from migrate.analysis.syntax import is_docstring, is_main_guard
from migrate.programs.conditions import denied, flag, needs, negated
from migrate.programs.tensor_types import casts_to_gpu, condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function, Unit


@dataclass(frozen=True, slots=True)
class Choice:
    """A statement that gives `target` the device to train on; `cpu` is the condition under which that is the CPU."""

    statement: ast.stmt
    target: str
    unit: Unit
    cpu: str | None  # Python source; None: the best device there is
    needs: frozenset[str]  # names and attributes that `cpu` reads
    others: tuple[
        ast.stmt, ...
    ] = ()  # statements that gave the target a device before: `device = "cpu"`, then `if ...`
    is_clear: bool = True  # False: the target is given devices at several places in a way that is not understood


def choices(facts: Facts, unit: Unit) -> list[Choice]:
    """The device choices of a unit in order, one for each variable."""
    by_target: dict[str, list[Choice]] = {}
    for choice in _statements(facts, unit):
        by_target.setdefault(choice.target, []).append(choice)
    return [
        _alone(facts, group[0]) if len(group) == 1 else _overridden(facts, group)
        for group in by_target.values()
        if len(group) > 1 or not _is_host(facts, group[0].statement)
    ]


def _is_host(facts: Facts, statement: ast.stmt) -> bool:
    """Whether `host = torch.device("cpu")` names the CPU beside the device that the file trains on."""
    return (
        isinstance(statement, ast.Assign) and only_cpu(facts, statement.value) and _has_other_device(facts, statement)
    )


def _has_other_device(facts: Facts, node: ast.AST) -> bool:
    module = facts.unit(node).module
    return any(
        isinstance(binding.statement, ast.Assign)
        and facts.is_device(facts.values(binding.statement.value))
        and not only_cpu(facts, binding.statement.value)
        for binding in facts.bindings
        if binding.unit.module is module
    )


def names_cpu(node: ast.Call) -> bool:
    """Whether the text "cpu" stands in what a call is passed: `.to("cpu")`, `.to(device="cpu")`."""
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    return any(
        isinstance(inner, ast.Constant) and inner.value == "cpu" for argument in given for inner in ast.walk(argument)
    )


def only_cpu(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression is the CPU and can be no other device."""
    values = facts.values(node)
    return bool(values) and all(
        value.name == "cpu"
        if value.role is Role.TEXT
        else isinstance(value.origin, ast.expr) and _is_cpu(facts, value.origin)
        for value in values
    )


def _alone(facts: Facts, choice: Choice) -> Choice:
    """A statement that alone gives a variable its device; under an `if` it gives it another one than it had."""
    parent = facts.tree(choice.statement).parents[choice.statement]
    if not isinstance(choice.statement, ast.Assign) or not isinstance(parent, ast.If) or is_main_guard(parent):
        return choice
    if not choice.target.isidentifier() and _is_cpu(facts, choice.statement.value):
        if len(parent.body) == 1 and not parent.orelse and flag(facts, denied(parent.test)) is None:
            cpu = by_text(choice.statement.targets[0])
            return _made(parent, choice.target, choice.unit, cpu)  # else it is what the user says
    return replace(choice, is_clear=choice.cpu is None)


def _overridden(facts: Facts, group: list[Choice]) -> Choice:
    """`device = "cpu"` and then `if flag: device = "cuda"`, perhaps with an `elif`: one choice with conditions."""
    first, second = group[:2]
    tree = facts.tree(first.statement)
    chain = tree.parents[second.statement]
    if not isinstance(first.statement, ast.Assign) or isinstance(tree.parents[first.statement], ast.If):
        return replace(first, is_clear=False)
    if not isinstance(chain, ast.If) or is_main_guard(chain):
        return replace(first, is_clear=False)
    values: list[tuple[ast.expr | None, ast.expr]] = []
    for (test, _), choice in zip(_branches(chain), group[1:], strict=False):
        if not isinstance(choice.statement, ast.Assign) or test is None:
            return replace(first, is_clear=False)
        values.append((test, choice.statement.value))
    values.append((None, first.statement.value))
    if len(values) != len(group) or any(_hides_flag(facts, value) for _, value in values):
        return replace(first, is_clear=False)
    bodies = [body for _, body in _branches(chain)]
    if len(bodies) > 1 and any(len(body) > 1 for body in bodies):
        return replace(first, is_clear=False)
    whole = chain if len(bodies[0]) == 1 else second.statement
    made = _made(whole, first.target, first.unit, _cpu_of_branches(facts, values))
    return replace(made, others=(first.statement,))


def _hides_flag(facts: Facts, value: ast.expr) -> bool:
    """Whether a device depends on a flag inside of it, which would be lost."""
    return _cpu_when(facts, value) is not None and not _is_cpu(facts, value)


def _statements(facts: Facts, unit: Unit) -> list[Choice]:
    """The statements of a unit that choose a device, outermost ones, in order."""
    found: list[Choice] = []
    inside: set[int] = set()
    for node in facts.own(unit):
        if not isinstance(node, ast.stmt) or id(node) in inside:
            continue
        choice = _choice(facts, unit, node)
        if choice is not None:
            found.append(choice)
            inside |= {id(inner) for inner in ast.walk(node)}
    return found


def _choice(facts: Facts, unit: Unit, statement: ast.stmt) -> Choice | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = ast.unparse(statement.targets[0])
        if not isinstance(statement.targets[0], (ast.Name, ast.Attribute)) or not is_choice(facts, statement.value):
            return None
        if only(facts.values(statement.value), Role.TEXT) and not _puts_something(facts, statement, target):
            return None
        return _made(statement, target, unit, _cpu_when(facts, statement.value))
    if isinstance(statement, ast.If):
        return _branching(facts, unit, statement)
    return None


def _puts_something(facts: Facts, statement: ast.stmt, target: str) -> bool:
    """Whether a text is used as a device: `x.to(it)`, `device=it`, `torch.device(it)`, or handed to a function."""
    name = target.rpartition(".")[2]
    tree = facts.tree(statement)
    for node in tree.nodes:
        if not isinstance(node, (ast.Name, ast.Attribute)) or ast.unparse(node).rpartition(".")[2] != name:
            continue
        parent = tree.parents.get(node)
        if isinstance(parent, ast.keyword) and parent.arg in ("device", "map_location"):
            return True
        if isinstance(parent, ast.Call) and node in parent.args:
            moves = isinstance(parent.func, ast.Attribute) and parent.func.attr == "to"
            if moves or "torch.device" in facts.called(parent) or facts.targets(parent):
                return True
    return False


def _branching(facts: Facts, unit: Unit, statement: ast.If) -> Choice | None:
    """`if flag: device = A else: device = B`, where nothing else happens but setting the current device."""
    branches = list(_branches(statement))
    targets: set[str] = set()
    tested: list[tuple[ast.expr | None, ast.expr]] = []
    for test, body in branches:
        assigned = [s for s in body if not _sets_device(facts, s)]
        if len(assigned) != 1 or not isinstance(assigned[0], ast.Assign) or len(assigned[0].targets) != 1:
            return None
        if not is_choice(facts, assigned[0].value):
            return None
        targets.add(ast.unparse(assigned[0].targets[0]))
        tested.append((test, assigned[0].value))
    if len(targets) != 1 or tested[-1][0] is not None:
        return None
    return _made(statement, targets.pop(), unit, _cpu_of_branches(facts, tested))


def _branches(statement: ast.If) -> Iterator[tuple[ast.expr | None, list[ast.stmt]]]:
    yield statement.test, statement.body
    if len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
        yield from _branches(statement.orelse[0])
    elif statement.orelse:
        yield None, statement.orelse


def _sets_device(facts: Facts, statement: ast.stmt) -> bool:
    """`torch.cuda.set_device(i)`, also under a condition."""
    if isinstance(statement, ast.If):
        return all(_sets_device(facts, inner) for inner in statement.body + statement.orelse)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return bool(facts.called(statement.value) & SET_DEVICE)
    return False


def is_choice(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression makes a device, as against handing one on."""
    if not facts.is_device(facts.values(node)):
        return False
    if isinstance(node, ast.IfExp):
        return is_choice(facts, node.body) and is_choice(facts, node.orelse)
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        if targets := facts.targets(node):
            return all(_makes_device(facts, target) for target in targets)
        return bool(facts.called(node))
    return bool(isinstance(node, ast.JoinedStr))


def only_asks(facts: Facts, function: Function) -> bool:
    """Whether a function does nothing but give the best device there is."""
    waiting = [statement for statement in function.body if not is_docstring(statement)]
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.If) and flag(facts, statement.test) is None:
            waiting += [*statement.body, *statement.orelse]
        elif not isinstance(statement, ast.Return) or not _gives_device(facts, statement.value):
            return False
    return not function.positional


def _gives_device(facts: Facts, value: ast.expr | None) -> bool:
    return value is not None and is_choice(facts, value) and not _hides_flag(facts, value)


def _makes_device(facts: Facts, function: Function) -> bool:
    """Whether a function makes the device that it gives, is handed none and does nothing else, such as printing."""
    handed = any(facts.is_device(function.parameters.get(name, frozenset())) for name in function.parameter_names)
    nodes = list(ast.walk(function.node))
    speaks = any(isinstance(node, ast.Expr) and not is_docstring(node) for node in nodes)
    made = (node for node in nodes if isinstance(node, (ast.Call, ast.Constant)) and is_choice(facts, node))
    return not handed and not speaks and any(not isinstance(n, ast.Call) or not facts.targets(n) for n in made)


def _made(statement: ast.stmt, target: str, unit: Unit, cpu: ast.expr | None) -> Choice:
    if cpu is None:
        return Choice(statement, target, unit, None, frozenset())
    return Choice(statement, target, unit, ast.unparse(cpu), frozenset(needs(cpu)))


def _cpu_when(facts: Facts, node: ast.expr) -> ast.expr | None:
    """The condition under which a device expression is the CPU; None: never by choice of the program."""
    if isinstance(node, ast.IfExp):
        return _cpu_of_branches(facts, [(node.test, node.body), *_else_branches(node.orelse)])
    if isinstance(node, ast.Call) and "torch.device" in facts.called(node) and len(node.args) == 1:
        inner = node.args[0]
        if isinstance(inner, (ast.Constant, ast.IfExp)):
            return _cpu_when(facts, inner)
        if isinstance(inner, (ast.Name, ast.Attribute)) and not facts.is_device(facts.values(inner)):
            return by_text(inner)
        return None
    if isinstance(node, ast.Call) and (targets := facts.targets(node)):
        return None if all(only_asks(facts, target) for target in targets) else by_text(node)
    if isinstance(node, ast.Constant) and node.value == "cpu":
        return ast.Constant(True)
    return None


def _else_branches(node: ast.expr) -> list[tuple[ast.expr | None, ast.expr]]:
    if isinstance(node, ast.IfExp):
        return [(node.test, node.body), *_else_branches(node.orelse)]
    return [(None, node)]


def _cpu_of_branches(facts: Facts, branches: list[tuple[ast.expr | None, ast.expr]]) -> ast.expr | None:
    """`cuda if a else mps if b else cpu` is the CPU when neither flag is set."""
    flags: list[ast.expr] = []
    if len(branches) == 2 and (asked := _asked(facts, branches)) is not None:
        return by_text(asked)
    for test, value in branches:
        is_cpu = _is_cpu(facts, value)
        if test is None:
            if not is_cpu or not flags:
                return None
            return negated(flags[0] if len(flags) == 1 else ast.BoolOp(ast.Or(), flags))
        if is_cpu:  # cpu if flag else cuda
            rest = flag(facts, denied(test))
            return negated(rest) if rest is not None and len(branches) == 2 and not flags else None
        rest = flag(facts, test)
        if rest is None and not flags:
            return None
        if rest is not None:  # further branches that only ask for availability do not keep it off the first device
            flags.append(rest)
    return None


def _asked(facts: Facts, branches: list[tuple[ast.expr | None, ast.expr]]) -> ast.expr | None:
    """`args.device` of `args.device if torch.cuda.is_available() else "cpu"`."""
    (test, value), (_, other) = branches
    is_user = isinstance(value, ast.Attribute) and not facts.names(value)
    is_asked = is_user and test is not None and flag(facts, test) is None
    return value if is_asked and _is_cpu(facts, other) else None


def by_text(node: ast.expr) -> ast.expr:
    """The condition under which the device that a user names is the CPU."""
    return ast.parse(f"torch.device({ast.unparse(node)}).type == 'cpu'", mode="eval").body


def _is_cpu(facts: Facts, node: ast.expr) -> bool:
    """`"cpu"`, `torch.device("cpu")`."""
    if isinstance(node, ast.Call) and node.args and "torch.device" in facts.called(node):
        return _is_cpu(facts, node.args[0])
    return isinstance(node, ast.Constant) and node.value == "cpu"


def is_move(facts: Facts, node: ast.AST) -> bool:
    """`x.to(device)`, `x.cuda()`: a call that puts its receiver on the device the program trains on."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if facts.names(node.func.value) or facts.targets(node):
        return False
    if node.func.attr in ("cuda", "xpu") or casts_to_gpu(facts, node):
        return True
    return node.func.attr == "to" and device_argument(facts, node) is not None


def device_argument(facts: Facts, node: ast.Call) -> ast.expr | None:
    """The argument of `.to(...)` that is a device of the program, not the CPU by name, not another tensor's device."""
    given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "device")]
    for argument in given:
        if _is_cpu(facts, argument) or (only_cpu(facts, argument) and _has_other_device(facts, argument)):
            return None
        values = facts.values(argument)
        if facts.is_device(values) or only(values, *_INDICES) or is_users(facts, argument):
            return argument
    return None


def is_users(facts: Facts, node: ast.expr) -> bool:
    """`args.device`, which only the user knows."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "device"
        and Role.HOLDER in roles(facts.values(node.value))
        and not facts.is_device(facts.values(node))
    )


_INDICES = (Role.NUMBER, Role.RANK, Role.LOCAL_RANK)  # a number is the index of a GPU


def is_unknown_move(facts: Facts, node: ast.Call) -> bool:
    """`x.to(y)` where y is neither a device, nor a dtype, nor another tensor, as far as is known."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "to" or is_move(facts, node):
        return False
    given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "device")]
    return any(_is_unknown(facts, argument) for argument in given)


def _is_unknown(facts: Facts, node: ast.expr) -> bool:
    """Whether an argument may be a device: nothing is known of it, or it is a text such as `f"cuda:{rank}"`."""
    values = facts.values(node)
    return any(v.role is Role.TEXT and ANY in v.name for v in values) or (not values and not _says_dtype(node))


def _says_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or any(word in ast.unparse(node) for word in ("dtype", "torch.", ".device"))


def guard_flag(facts: Facts, node: ast.AST) -> ast.expr | None:
    """The condition a device move stands under: `if use_cuda:` or `x.cuda() if use_cuda else x`."""
    if isinstance(node, ast.Call) and casts_to_gpu(facts, node):
        return condition(facts, node.args[0])
    tree = facts.tree(node)
    below = node
    for above in tree.up(node):
        if isinstance(above, ast.IfExp) and below is above.body:
            return above.test
        if isinstance(above, ast.If):
            if is_main_guard(above):
                return None
            return above.test if any(below is statement for statement in above.body) else None
        if isinstance(above, ast.stmt) and not isinstance(above, (ast.Assign, ast.Expr, ast.AnnAssign)):
            return None
        below = above
    return None
