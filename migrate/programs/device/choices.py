"""How a program chooses its device, and what of that choice the accelerator must keep.

`device = torch.device("cuda" if use_cuda else "cpu")` becomes an accelerator that is kept on the CPU when `use_cuda`
is false: the user's flag goes on meaning what it meant. What is only a question of availability is left to the
accelerator.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, only
from migrate.analysis.syntax import is_main_guard, walk
from migrate.analysis.texts import text_of
from migrate.analysis.units import Module
from migrate.programs.device.branches import ABSENT, branches, ways
from migrate.programs.device.devices import by_text, cpu_of_branches, cpu_when, hides_flag
from migrate.programs.device.makers import is_choice
from migrate.programs.device.readings import read_after, read_between, reads
from migrate.programs.device.texts import is_used_as_device
from migrate.programs.device.the_cpu import has_other_device, is_cpu, only_cpu
from migrate.programs.values.conditions import denied, flag, needs, negated
from migrate.programs.values.users import is_users

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


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
    ] = ()  # further statements that give the target its device: `device = "cpu"`, then `if ...`
    above: ast.stmt | None = None  # the `if` in whose branches it is chosen, among other things
    is_clear: bool = True  # False: the target is given devices at several places in a way that is not understood
    is_read_as_text: bool = False  # before `device = torch.device(device)`, which stays
    apart: frozenset[ast.stmt] = frozenset()  # those of the others that may run where `statement` did not

    @property
    def asks_user(self) -> bool:
        """Whether it does not go by what the machine has alone, as far as is known."""
        return self.cpu is not None or not self.is_clear

    def stays(self, other: ast.stmt) -> bool:
        """Whether one of the others is there for those who import the module, if the variable is still read."""
        return isinstance(self.unit, Module) and other.col_offset < self.outermost.col_offset

    @property
    def outermost(self) -> ast.stmt:
        """What stands where the device is chosen, whatever is asked there."""
        return self.above if self.above is not None else self.statement

    def nodes(self) -> Iterator[ast.AST]:
        """All that is written to choose it."""
        return (node for statement in (self.statement, *self.others) for node in walk(statement))


def choices(facts: Facts, unit: Unit) -> list[Choice]:
    """The device choices of a unit in order, one for each variable."""
    return facts.once(_Found).of(unit)


class _Found:
    """The choices of the units that were asked about."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._of: dict[Unit, list[Choice]] = {}

    def of(self, unit: Unit) -> list[Choice]:
        if unit not in self._of:
            self._of[unit] = _choices(self._facts, unit)
        return self._of[unit]


def _choices(facts: Facts, unit: Unit) -> list[Choice]:
    by_target: dict[str, list[Choice]] = {}
    for choice in _statements(facts, unit):
        by_target.setdefault(choice.target, []).append(choice)
    return [
        _alone(facts, group[0]) if len(group) == 1 else _joined(facts, group)
        for group in by_target.values()
        if len(group) > 1 or not _is_host(facts, group[0].statement)
    ]


def _is_host(facts: Facts, statement: ast.stmt) -> bool:
    """Whether `host = torch.device("cpu")` names the CPU beside the device that the file trains on."""
    return isinstance(statement, ast.Assign) and only_cpu(facts, statement.value) and has_other_device(facts, statement)


# --- single statements ----------------------------------------------------------------------------------------------


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
            inside |= {id(inner) for inner in walk(node)}
    return found


def _choice(facts: Facts, unit: Unit, statement: ast.stmt) -> Choice | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = text_of(statement.targets[0])
        if not isinstance(statement.targets[0], (ast.Name, ast.Attribute)):
            return None
        if not is_choice(facts, statement.value) and not is_users(facts, statement.value):
            return None
        if only(facts.values(statement.value), Role.TEXT):
            if not is_used_as_device(facts, statement, target):
                return None
        return _made(statement, target, unit, cpu_when(facts, statement.value))
    if isinstance(statement, ast.If):
        return _branching(facts, unit, statement)
    return None


def _made(statement: ast.stmt, target: str, unit: Unit, cpu: ast.expr | None) -> Choice:
    if cpu is None:
        return Choice(statement, target, unit, None, frozenset())
    return Choice(statement, target, unit, ast.unparse(cpu), frozenset(needs(cpu)))


def _branching(facts: Facts, unit: Unit, statement: ast.If) -> Choice | None:
    """`if flag: device = A else: device = B`, where nothing else happens but setting the current device."""
    targets: set[str] = set()
    tested: list[tuple[ast.expr | None, ast.expr]] = []
    is_nested = keeps = False
    for tests, assigned in ways(facts, statement, ()):
        if assigned is ABSENT:
            keeps = True
            continue
        if not isinstance(assigned, ast.Assign) or len(assigned.targets) != 1:
            return None
        if not is_choice(facts, assigned.value):
            return None
        targets.add(ast.unparse(assigned.targets[0]))
        is_nested |= len(tests) > 1
        test = ast.BoolOp(ast.And(), list(tests)) if len(tests) > 1 else next(iter(tests), None)
        tested.append((test, assigned.value))
    if len(targets) != 1 or tested[-1][0] is not None:
        return None
    cpu, target = cpu_of_branches(facts, tested), targets.pop()
    if (is_nested and cpu is not None) or (keeps and not _is_chosen_above(facts, unit, statement, target)):
        return None
    return _made(statement, target, unit, cpu)


def _is_chosen_above(facts: Facts, unit: Unit, statement: ast.If, target: str) -> bool:
    """Whether a variable that some branch leaves as it was has a device already, in the same block.

    In a cell further down in a notebook, say: it is the best device there is, or that was chosen above.
    """
    block = facts.tree(statement).block(statement)
    above = (each for each in block if each.lineno < statement.lineno)
    found = (_choice(facts, unit, each) for each in above if isinstance(each, (ast.Assign, ast.If)))
    return any(choice is not None and choice.target == target and choice.cpu is None for choice in found)


# --- statements for one variable ------------------------------------------------------------------------------------


def _alone(facts: Facts, choice: Choice) -> Choice:
    """A statement that alone gives a variable its device; under an `if` it gives it another one than it had."""
    parent = facts.tree(choice.statement).parents[choice.statement]
    if not isinstance(choice.statement, ast.Assign) or not isinstance(parent, ast.If) or is_main_guard(parent):
        return choice
    is_told = not choice.target.isidentifier() or choice.target in getattr(choice.unit, "parameters", ())
    if is_told and len(parent.body) == 1 and not parent.orelse:
        said = by_text(choice.statement.targets[0])  # by the user, where it is not chosen here
        if is_cpu(facts, choice.statement.value) and flag(facts, denied(parent.test)) is None:
            return _made(parent, choice.target, choice.unit, said)
        if choice.cpu is None and {*needs(parent.test)} == {*needs(choice.statement.targets[0])}:
            return _made(parent, choice.target, choice.unit, ast.BoolOp(ast.And(), [negated(parent.test), said]))
    return replace(choice, is_clear=choice.cpu is None)


def _joined(facts: Facts, group: list[Choice]) -> Choice:
    """Several statements that come to one choice."""
    for joined in (_again, _made_of_text, _in_branches, _last, _in_blocks):
        if (found := joined(facts, group)) is not None:
            return found
    return replace(group[0], is_clear=False)


def _again(facts: Facts, group: list[Choice]) -> Choice | None:
    """The same choice once more, as cells of a notebook make it, or `device = torch.device(device)`.

    That stays where the text has been read by then (`if device == "cuda": ...`): it is the device of the process.
    """
    first, *rest = group
    block = facts.tree(first.statement).block(first.statement)
    if not all(any(other.statement is s for s in block) for other in rest):
        return None
    wrapped = [other for other in rest if _wraps(facts, other)]
    if any(other.cpu != first.cpu for other in rest if other not in wrapped) or _is_told_anew(facts, first, rest[-1]):
        return None
    if wrapped and any(read_between(facts, first, rest[-1].statement)):
        is_text = isinstance(first.statement, ast.Assign) and only(facts.values(first.statement.value), Role.TEXT)
        return replace(first, is_read_as_text=True) if is_text and len(rest) == 1 else None
    return replace(first, others=tuple(other.statement for other in rest))


def _is_told_anew(facts: Facts, first: Choice, last: Choice) -> bool:
    """Whether a flag that decides about the CPU is set between two choices."""
    return first.cpu is not None and any(
        first.statement.lineno < binding.statement.lineno < last.statement.lineno
        for binding in facts.bindings
        if binding.target in first.needs
    )


def _in_blocks(facts: Facts, group: list[Choice]) -> Choice | None:
    """The same choice in blocks of which one may run without the other: of two loops over folds, of two flags."""
    first, *rest = group
    if any(other.cpu != first.cpu or _wraps(facts, other) for other in rest) or _is_told_anew(facts, first, rest[-1]):
        return None
    if first.cpu is not None and any(_is_under_test(facts, choice) for choice in group):
        return None  # where none of them runs, the device is another one
    tree = facts.tree(first.statement)
    block = tree.block(first.statement)
    others = tuple(other.statement for other in rest)
    apart = frozenset(other for other in others if tree.in_block(other, block) is None)
    return replace(first, others=others, apart=apart)


def _made_of_text(facts: Facts, group: list[Choice]) -> Choice | None:
    """`if not torch.cuda.is_available(): args.device = "cpu"`, and `args.device = torch.device(args.device)` below."""
    first, last = group[0], group[-1].statement
    chosen = _alone(facts, first)
    if len(group) != 2 or not _wraps(facts, group[1]) or chosen is first or not chosen.is_clear:
        return None
    if not any(last is s for s in facts.tree(last).block(chosen.statement)) or any(read_between(facts, chosen, last)):
        return None
    return replace(chosen, others=(last,))


def _wraps(facts: Facts, choice: Choice) -> bool:
    """`device = torch.device(device)`."""
    value = choice.statement.value if isinstance(choice.statement, ast.Assign) else None
    if not isinstance(value, ast.Call) or "torch.device" not in facts.called(value) or len(value.args) != 1:
        return False
    return not value.keywords and ast.unparse(value.args[0]) == choice.target


def _in_branches(facts: Facts, group: list[Choice]) -> Choice | None:
    """One in each branch of an `if`, among other things; or first `device = "cpu"`, another one in some branches."""
    tree = facts.tree(group[0].statement)
    default = None if _is_under_test(facts, group[0]) else group[0]
    inner = group[1:] if default is not None else group
    chain = _chain(facts, inner[0])
    if chain is None or any(not isinstance(choice.statement, ast.Assign) for choice in group):
        return None
    if default is not None and (
        not any(chain is statement for statement in tree.block(default.statement))
        or any(read_between(facts, default, chain))
    ):
        return None
    values = _values(chain, [choice.statement for choice in inner], default.statement if default is not None else None)
    if values is None or any(hides_flag(facts, value) for _, value in values):
        return None
    if any(reads(test, group[0].target) for test, _ in values if test is not None):
        return None
    assigned = {choice.statement for choice in inner}
    is_all = all(len(body) == 1 and body[0] in assigned for _, body in branches(chain))
    made = _made(inner[0].statement, inner[0].target, inner[0].unit, cpu_of_branches(facts, values))
    others = tuple(choice.statement for choice in (*([default] if default is not None else ()), *inner[1:]))
    if is_all:
        return replace(made, statement=chain, others=tuple(s for s in others if s not in assigned))
    return replace(made, others=others, above=chain)


def _is_under_test(facts: Facts, choice: Choice) -> bool:
    parent = facts.tree(choice.statement).parents[choice.statement]
    return isinstance(parent, ast.If) and not is_main_guard(parent)


def _chain(facts: Facts, choice: Choice) -> ast.If | None:
    """The outermost `if` of the `if ... elif ...` that a statement stands in."""
    tree = facts.tree(choice.statement)
    chain = tree.parents[choice.statement]
    while isinstance(above := tree.parents.get(chain), ast.If) and above.orelse == [chain]:
        chain = above
    return chain if isinstance(chain, ast.If) and not is_main_guard(chain) else None


def _values(
    chain: ast.If, assigned: list[ast.stmt], default: ast.stmt | None
) -> list[tuple[ast.expr | None, ast.expr]] | None:
    """What a variable is given under each test; None if that is not certain."""
    values: list[tuple[ast.expr | None, ast.expr]] = []
    left = list(assigned)
    for test, body in branches(chain):
        mine = [s for s in body if any(s is other for other in left)] or ([default] if default is not None else [])
        if len(mine) != 1 or not isinstance(mine[0], ast.Assign):
            return None
        if any(reads(s, ast.unparse(mine[0].targets[0])) for s in body[: _index(body, mine[0])]):
            return None
        left = [s for s in left if s is not mine[0]]
        values.append((test, mine[0].value))
    if values[-1][0] is not None:
        if not isinstance(default, ast.Assign):
            return None
        values.append((None, default.value))
    return None if left else values


def _index(body: list[ast.stmt], statement: ast.stmt) -> int:
    return next((index for index, other in enumerate(body) if other is statement), 0)


def _last(facts: Facts, group: list[Choice]) -> Choice | None:
    """`DEVICE = ...` at the top and another one for the main program: what nobody has read counts for nothing."""
    last = group[-1]
    tree = facts.tree(last.statement)
    for choice in group[:-1]:
        if _is_under_test(facts, choice) or any(read_between(facts, choice, last.statement)):
            return None
        held = tree.in_block(last.statement, tree.block(choice.statement))
        if held is None or not (held is last.statement or is_main_guard(held)):
            return None
        if held is not last.statement and any(read_after(facts, last, held)):
            return None
    return replace(last, others=tuple(choice.statement for choice in group[:-1]))
