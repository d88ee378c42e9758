"""Branches that only told a model in DataParallel from a plain one: no model is wrapped any more."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DATA_PARALLEL, SPLITTING
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import FUNCTIONS, line_of
from migrate.analysis.units import Function
from migrate.programs.device.scattered import split_models
from migrate.programs.processes.branches import Branches, Side
from migrate.programs.processes.junctions import is_elif
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import reached
from migrate.programs.reach.outsiders import is_inside_model, units_of

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops

#: Calls in a test that only ask.
_ASKING = frozenset(
    {"builtins.isinstance", "builtins.hasattr", "builtins.len", "torch.cuda.device_count", "torch.cuda.is_available"}
)


def splitting(facts: Facts, units: Container[Unit], models: Collection[ast.AST]) -> list[ast.Call]:
    """Calls that run one of these models on all GPUs: `data_parallel(model, x)`, or a function of the project's own."""
    found: list[ast.Call] = []
    entered: set[Unit] = set()
    for use in facts.calls:
        given = use.node.args[:1] if use.unit in units and not is_inside_model(facts, use.unit) else []
        if any(origins(facts.values(each), Role.MODEL) & set(models) for each in given):
            targets = facts.targets(use.node)
            splits = [each for each in targets if any(_is_splitting(facts, node) for node in facts.own(each))]
            entered.update(splits)
            if splits or _is_splitting(facts, use.node):
                found.append(use.node)
    return [call for call in found if facts.unit(call) not in entered]


def _is_splitting(facts: Facts, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(facts.called(node) & SPLITTING)


def for_one_device(facts: Facts, wrappers: Collection[ast.Call]) -> Iterator[tuple[ast.If, bool]]:
    """`if device_count() > 1: wrap; else: ...`, with whether its body is the part for one GPU."""
    asked = [(call, branch) for call in wrappers for branch in facts.tree(call).up(call) if isinstance(branch, ast.If)]
    branches = facts.once(Branches) if asked else None
    for call, node in asked:
        assert branches is not None
        is_body = not any(inner is call for statement in node.body for inner in ast.walk(statement))
        sides = {meaning.fails if is_body else meaning.holds for meaning in branches.meanings(node.test)}
        if (
            Side.MANY_DEVICES in sides
            and node.orelse
            and not is_elif(facts.tree(node), node)
            and not _holds_elif(facts, node)
        ):
            yield node, is_body


def alike(facts: Facts, accesses: Collection[ast.Attribute]) -> Iterator[ast.If]:
    """`if several: model.module.state_dict(); else: model.state_dict()`: the same once `.module` is gone.

    So is `if isinstance(model, DataParallel): model = model.module`, without which the name keeps what it has.
    """
    places = {_place(node) for node in accesses}
    told: set[ast.AST] = set()
    for access in accesses:
        for node in facts.tree(access).up(access):
            if not isinstance(node, ast.If) or node in told or is_elif(facts.tree(node), node):
                continue
            told.add(node)
            is_alike = _takes_out(node, access) or (
                bool(node.orelse) and _without(node.body, places) == _without(node.orelse, places)
            )
            if is_alike and _is_asking(facts, node.test):
                yield node


def _takes_out(node: ast.If, access: ast.Attribute) -> bool:
    """`if ...: model = model.module`, and nothing else."""
    return not node.orelse and len(node.body) == 1 and _is_given(node.body[0], access, access.value)


def _is_given(statement: ast.stmt, inner: ast.expr, model: ast.expr) -> bool:
    """`model = model.module`: whether a name is given the model inside of what it holds."""
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and statement.value is inner
        and ast.unparse(statement.targets[0]) == ast.unparse(model)
    )


def taken_out_of_training(facts: Facts, program: Program, inner: ast.expr, model: ast.expr) -> ast.stmt | None:
    """`self.model = self.model.module`, where the program may go on training by this name; it may be wrapped again.

    A parameter of a function that trains nothing is that function's own.
    """
    statement, unit = facts.tree(inner).statement(inner), facts.unit(inner)
    if not _is_given(statement, inner, model):
        return None
    is_parameter = isinstance(unit, Function) and ast.unparse(model) in unit.parameter_names
    if is_parameter and not {loop.unit for loop in program.training} & reached(facts, [unit]):
        return None
    return statement


def alike_values(facts: Facts, accesses: Collection[ast.Attribute]) -> Iterator[tuple[ast.IfExp, ast.expr]]:
    """`model.module if hasattr(model, "module") else model`, each with its side that holds the access."""
    places = {_place(node) for node in accesses}
    told: set[ast.AST] = set()
    for access in accesses:
        for node in facts.tree(access).up(access):
            if isinstance(node, ast.IfExp) and node not in told and _is_asking(facts, node.test):
                told.add(node)
                if _without(node.body, places) == _without(node.orelse, places):
                    yield node, node.body if any(inner is access for inner in ast.walk(node.body)) else node.orelse


def asked_for_module(facts: Facts, node: ast.AST, models: Collection[ast.AST]) -> bool:
    """Whether a node is `getattr(model, "module", model)` of one of these models."""
    return (
        isinstance(node, ast.Call)
        and "builtins.getattr" in facts.called(node)
        and len(node.args) == 3
        and isinstance(node.args[1], ast.Constant)
        and node.args[1].value == "module"
        and ast.unparse(node.args[0]) == ast.unparse(node.args[2])
        and bool(origins(facts.values(node.args[0]), Role.MODEL) & set(models))
    )


def is_bare(facts: Facts, name: ast.expr, models: Collection[ast.AST]) -> bool:
    """Whether a name is given nothing but the model inside: `inner = getattr(model, "module", model)`.

    A name that is given it only under a condition, or that held the model itself before, may be either: to take the
    model out of its wrapper once more does no harm.
    """
    if not isinstance(name, ast.Name):
        return False
    unit = facts.unit(name)
    given = [b.statement for b in facts.bindings_in(unit) if b.target == name.id]
    if isinstance(unit, Function) and name.id in unit.parameter_names:
        if not any(each.lineno < name.lineno and _is_always_run(facts, each, models) for each in given):
            return False
    return bool(given) and all(
        isinstance(statement, ast.Assign) and _gives_inner(facts, statement.value, models) for statement in given
    )


def _is_always_run(facts: Facts, statement: ast.AST, models: Collection[ast.AST]) -> bool:
    """Whether a statement stands in its function under no condition that stays."""
    above = facts.tree(statement).parents[statement]
    accesses = [n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and module_accesses(facts, n, models)]
    if isinstance(above, ast.If) and any(branch is above for branch in alike(facts, accesses)):
        above = facts.tree(above).parents[above]
    return isinstance(above, FUNCTIONS)


def _gives_inner(facts: Facts, node: ast.expr, models: Collection[ast.AST]) -> bool:
    if isinstance(node, ast.IfExp):
        accesses = [side for side in (node.body, node.orelse) if module_accesses(facts, side, models)]
        return any(isinstance(side, ast.Attribute) and any(alike_values(facts, [side])) for side in accesses)
    return module_accesses(facts, node, models) or asked_for_module(facts, node, models)


def module_accesses(facts: Facts, node: ast.AST, models: Collection[ast.AST]) -> bool:
    """Whether a node is `model.module` of one of these models, or of a copy of one."""
    if not isinstance(node, ast.Attribute) or node.attr != "module" or not isinstance(node.ctx, ast.Load):
        return False
    values = facts.values(node.value)
    return bool(origins(values, Role.MODEL) & set(models)) or any(_is_copy(facts, v.origin, models) for v in values)


def _is_copy(facts: Facts, made: ast.AST | None, models: Collection[ast.AST]) -> bool:
    """`copy.deepcopy(model)`, of a copy, too."""
    if not isinstance(made, ast.Call) or "copy.deepcopy" not in facts.called(made) or not made.args:
        return False
    values = facts.values(made.args[0])
    of_copies = (value.origin for value in values if value.origin is not made)
    return bool(origins(values, Role.MODEL) & set(models)) or any(_is_copy(facts, each, models) for each in of_copies)


def opened_elsewhere(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """`model.module` in code that is left as it is and asks for no wrapper: there is none any more."""
    wrapping = [use.node.args[0] for use in facts.calls_to(DATA_PARALLEL) if use.node.args]
    if not wrapping or program.home is None:
        return
    own = units_of(facts, program)
    mine = program.model_origins | split_models(facts, own)
    if not any(origins(facts.values(model), Role.MODEL) & mine for model in wrapping):
        return
    for unit in reached(facts, own):
        for node in facts.own(unit) if unit not in own or not facts.is_editable(unit) else ():
            if module_accesses(facts, node, mine) and not _is_asked_for(facts, node):
                yield _opened(facts, program, node)
                return


def _opened(facts: Facts, program: Program, node: ast.AST) -> Refusal:
    unit = facts.unit(node)
    path = unit.module.path
    what = f"{ast.unparse(node)} in {path}:{line_of(node)} takes the model out of DataParallel, which goes away, and "
    at = program.training[0].node
    if not facts.is_editable(unit):
        return Refusal(at, "MIG904", f"{what}that file was not named", f"name {path} as well", (path,))
    model = ast.unparse(node).rpartition(".")[0]
    way_out = f"ask there what it is: {model}.module if hasattr({model}, 'module') else {model}"
    return Refusal(at, "MIG110", f"{what}other code enters {getattr(unit, 'name', 'it')}(), too", way_out)


def _is_asked_for(facts: Facts, node: ast.AST) -> bool:
    """Whether a test above asks what the model is: `isinstance(model, DataParallel)`, `hasattr(model, "module")`."""
    above = (each.test for each in facts.tree(node).up(node) if isinstance(each, (ast.If, ast.IfExp)))
    asked = (inner for test in above for inner in ast.walk(test) if isinstance(inner, ast.Call))
    return any(facts.called(call) & _ASKING for call in asked)


def _is_asking(facts: Facts, test: ast.expr) -> bool:
    calls = [inner for inner in ast.walk(test) if isinstance(inner, ast.Call)]
    return all(facts.called(call) and facts.called(call) <= _ASKING for call in calls)


def _holds_elif(facts: Facts, node: ast.If) -> bool:
    return any(isinstance(each, ast.If) and is_elif(facts.tree(each), each) for each in node.orelse)


def _place(node: ast.expr) -> tuple[int, int, int | None, int | None]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _without(body: ast.expr | list[ast.stmt], places: Collection[tuple[int, int, int | None, int | None]]) -> list[str]:
    class _Plain(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            is_access = node.attr == "module" and _place(node) in places
            self.generic_visit(node)
            return node.value if is_access else node

    nodes = body if isinstance(body, list) else [body]
    return [ast.dump(_Plain().visit(copy.deepcopy(node))) for node in nodes]
