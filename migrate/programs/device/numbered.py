"""GPUs that a program chooses by their number: the accelerator takes the one that the launcher gives."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.devices import IN_DEVICE, SET_DEVICE
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import FUNCTIONS, arguments, defaults_of, walk
from migrate.analysis.units import Function
from migrate.programs.device.choices import choices
from migrate.programs.device.devices import is_move
from migrate.programs.device.the_cpu import is_cpu
from migrate.programs.values.sources import Sources
from migrate.programs.values.users import is_of_command, is_users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Unit

VISIBLE = "CUDA_VISIBLE_DEVICES"
_FIRST = (0, None, -1, "", "0")  # what stands for the first GPU, or for none
RANKS = {Role.RANK, Role.LOCAL_RANK}


def numbered(facts: Facts, uses: Iterable[Use], units: Iterable[Unit]) -> dict[str, ast.expr]:
    """What chooses a GPU in the calls of a program, and in its choices of a device, in words → the first place."""
    found: dict[str, ast.expr] = {}
    for node in _chosen(facts, uses, units):
        for number in _numbers(facts, node):
            found.setdefault(ast.unparse(number), number)
    return {_in_words(facts, node): node for node in found.values()}


def _in_words(facts: Facts, node: ast.expr) -> str:
    parent = facts.tree(node).parents[node]
    is_only = isinstance(parent, ast.Call) and "torch.device" in facts.called(parent) and len(parent.args) == 1
    is_name = (is_only or is_users(facts, node, also_names=True)) and not isinstance(node, ast.Constant)
    return f"a number in {ast.unparse(node)} (cuda:1)" if is_name else ast.unparse(node)


def sets_visible(node: ast.stmt) -> bool:
    """`os.environ["CUDA_VISIBLE_DEVICES"] = "0"`."""
    return isinstance(node, (ast.Assign, ast.Expr)) and any(
        isinstance(inner, ast.Constant) and inner.value == VISIBLE for inner in walk(node)
    )


def below_visible(facts: Facts, block: list[ast.stmt], first: int, comes_first: Callable[[ast.stmt], bool]) -> int:
    """The first position for the accelerator, which only finds the GPUs that are visible when it is made.

    It stays where it is if there is something above the choice that the accelerator must be there for.
    """
    for index in range(len(block) - 1, first - 1, -1):
        if makes_visible(facts, block[index]):
            return first if any(map(comes_first, block[first : index + 1])) else index + 1
    return first


def makes_visible(facts: Facts, statement: ast.stmt) -> bool:
    """Whether a statement chooses the GPUs that can be seen when it runs, or calls a function to do so."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    call = statement.value if isinstance(statement, ast.Expr) else None
    called = facts.targets(call) if isinstance(call, ast.Call) else ()
    inside = (inner for target in called for inner in facts.own(target).of(ast.stmt))
    return any(map(sets_visible, _statements(statement))) or any(map(sets_visible, inside))


def _statements(node: ast.AST) -> Sequence[ast.stmt]:
    return walk(node).of(ast.stmt)


class Visible:
    """The statements that choose the GPUs for all that follows, file by file."""

    def __init__(self, facts: Facts) -> None:
        self.statements = {
            module: [n for n in facts.tree_of(module).nodes if isinstance(n, ast.stmt) and sets_visible(n)]
            for module in facts.modules
            if VISIBLE.encode() in module.file.content
        }


def _chosen(facts: Facts, uses: Iterable[Use], units: Iterable[Unit]) -> Iterator[ast.expr]:
    """The expressions that say which device is meant."""
    for use in uses:
        call, names = use.node, facts.called(use.node)
        given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
        is_cast = isinstance(call.func, ast.Attribute) and call.func.attr == "type"
        if names & (SET_DEVICE | IN_DEVICE) or (is_move(facts, call) and not is_cast):
            yield from given
        elif "torch.device" in names:
            yield from arguments(call)
    for unit in units:
        for choice in choices(facts, unit):
            for statement in (choice.statement, *choice.others):
                yield from numbered_texts(statement)
        yield from _handed(facts, unit)


def _handed(facts: Facts, unit: Unit) -> Iterator[ast.expr]:
    """The texts that the parameters of a function are given by its callers, or have by default."""
    if not isinstance(unit, Function):
        return
    given = defaults_of(unit.node)
    given += [argument for call in facts.callers(unit) for argument in arguments(call.node)]
    for each in given:
        if isinstance(each, ast.Constant):
            yield from numbered_texts(each)


def numbered_texts(node: ast.AST) -> Iterator[ast.expr]:
    """The outermost texts in a node that name a GPU by its number."""
    if isinstance(node, ast.expr) and _text(node) is not None:
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from numbered_texts(child)


def _numbers(facts: Facts, node: ast.expr) -> Iterator[ast.expr]:
    """The numbers in what says which device is meant, but for those that are a process's own, or the first."""
    if isinstance(node, ast.IfExp):
        yield from (*_numbers(facts, node.body), *_numbers(facts, node.orelse))
    elif (parts := _text(node)) is not None:
        yield from (part for part in parts if _is_chosen(facts, part))
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, int) and _is_chosen(facts, node):
            yield node
    elif not isinstance(node, ast.Call):
        is_number = not facts.is_device(facts.values(node)) and _is_chosen(facts, node)
        yield from [node] if is_number or is_of_command(facts, node) else []


def _text(node: ast.expr) -> list[ast.expr] | None:
    """What is put into a text such as `f"cuda:{x}"`, `"cuda:%d" % x`, `"cuda:{}".format(x)`; the text `"cuda:1"`."""
    if isinstance(node, ast.JoinedStr) and _begins(node.values[:1]):
        return [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add)) and _begins([node.left]):
        return [node.right]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return list(node.args) if _begins([node.func.value]) else None
    return [node] if _begins([node]) else None


def _begins(nodes: list[ast.expr]) -> bool:
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith("cuda:") for n in nodes)


def _is_chosen(facts: Facts, node: ast.expr) -> bool:
    """Whether a number is a choice of the program or its user: no rank, and not the first GPU whatever is said."""
    if isinstance(node, ast.Constant):
        return node.value not in (*_FIRST, "cuda:0", "cuda", "cpu")
    if is_cpu(facts, node) or any(_is_own(facts, inner) for inner in walk(node)):
        return False
    option = facts.once(Sources).option(node)
    if option is not None and any(k.arg in ("choices", "action") for k in option.keywords):
        return False  # one of some words, a flag
    given = facts.once(Sources).given(node)
    is_fixed = (
        given.complete and bool(given.expressions) and all(isinstance(e, ast.Constant) for e in given.expressions)
    )
    return not is_fixed or any(_is_chosen(facts, expression) for expression in given.expressions)


def _is_own(facts: Facts, node: ast.AST) -> bool:
    """Whether a number is that of the process, or the GPU that is the current one anyway."""
    if isinstance(node, ast.Call) and "torch.cuda.current_device" in facts.called(node):
        return True
    return isinstance(node, ast.expr) and bool(roles(facts.values(node)) & RANKS)
