"""Types that hide a device: `Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.roles import ROWS, Role, roles
from migrate.analysis.syntax import arguments, walk
from migrate.analysis.units import Function
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.outsiders import units_of
from migrate.programs.values.conditions import bindings_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops

_TYPE = re.compile(r"torch\.(cuda\.)?(\w*)Tensor")
#: What casts to a type: `x.long()`.
_CASTS = {
    "": "float",
    **{name: name.lower() for name in ("Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Char", "Bool")},
    "BFloat16": "bfloat16",
}
_ISINSTANCE = 2  # arguments
_WAY_OUT = "make tensors with torch.tensor(..., device=...) and cast with .float() or .to(dtype)"


def types_of(facts: Facts, node: ast.expr) -> list[re.Match[str]]:
    """The tensor types that an expression may be, by name or as a text."""
    names = {v.name for v in facts.values(node) if v.role in (Role.KNOWN, Role.TEXT)}
    return [found for name in sorted(names) if (found := _TYPE.fullmatch(name))]


def is_gpu_type(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression may be a type of tensors on the GPU, chosen by the program and not by where a tensor is."""
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
        return False
    if not any(found[1] for found in types_of(facts, node)):
        return False
    above = facts.tree(node).parents.get(node)
    if isinstance(above, ast.Call) and facts.called(above) == {"torch.set_default_tensor_type"}:
        return False
    test = above.test if isinstance(above, ast.IfExp) else condition(facts, node)
    return test is None or not any(isinstance(n, ast.Attribute) and n.attr == "is_cuda" for n in walk(test))


def cast(facts: Facts, node: ast.expr) -> str | None:
    """The method that casts to a tensor type, on the device where the tensor is; None if there are several, or none."""
    found = {_CASTS.get(each[2]) for each in types_of(facts, node)}
    return found.pop() if len(found) == 1 else None


def asks_for_cpu(facts: Facts, call: ast.Call) -> bool:
    """`isinstance(x, torch.LongTensor)`: no tensor on another device is one."""
    if "builtins.isinstance" not in facts.called(call) or len(call.args) != _ISINSTANCE:
        return False
    kinds = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else call.args[1:]
    return any(found[2] and not found[1] for kind in kinds for found in types_of(facts, kind))


def casts_to_gpu(facts: Facts, call: ast.Call) -> bool:
    """`x.type(torch.cuda.FloatTensor)`, under whatever name."""
    return _is_cast(call) and is_gpu_type(facts, call.args[0])


def casts_to_cpu(facts: Facts, call: ast.Call) -> bool:
    """`x.type(torch.LongTensor)`, which also brings x to the CPU."""
    types = types_of(facts, call.args[0]) if _is_cast(call) else []
    return bool(types) and not any(found[1] for found in types)


def _is_cast(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "type" and len(call.args) == 1


def condition(facts: Facts, node: ast.expr) -> ast.expr | None:
    """The test under which a name is a type of the GPU; None: always, or it is not known."""
    for binding in bindings_of(facts, node):
        if not isinstance(binding.statement, ast.Assign):
            continue
        value = binding.statement.value
        if isinstance(value, ast.IfExp):
            return value.test
        above = facts.tree(binding.statement).parents[binding.statement]
        if isinstance(above, ast.If) and any(found[1] for found in types_of(facts, value)):
            return above.test
    return None


# --- where they stand -----------------------------------------------------------------------------------------------


def reads(facts: Facts, program: Program) -> tuple[ast.expr, ...]:
    """Every place in the program's modules that reads a type of the GPU."""
    return program.once(_reads, facts)


def _reads(facts: Facts, program: Program) -> tuple[ast.expr, ...]:
    modules = {loop.unit.module for loop in program.training} | {program.module}
    nodes = (node for module in modules for node in facts.tree_of(module).nodes if _is_read(node))
    return tuple(node for node in nodes if isinstance(node, ast.expr) and is_gpu_type(facts, node))


def _is_read(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and "torch.cuda." in node.value
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)


def is_making(facts: Facts, node: ast.expr) -> bool:
    """`Tensor(2, 3)`: whether a read is a call of the type."""
    parent = facts.tree(node).parents[node]
    return isinstance(parent, ast.Call) and parent.func is node


def definition(facts: Facts, node: ast.expr) -> ast.Assign | None:
    """The statement that gives the type, which is read here, a name."""
    tree = facts.tree(node)
    above = tree.parents[node]
    while isinstance(above, ast.IfExp):
        node, above = above, tree.parents[above]
    is_named = isinstance(above, ast.Assign) and len(above.targets) == 1 and above.value is node
    return above if is_named and isinstance(above, ast.Assign) else None


def only_defines(branch: ast.If, definitions: Container[ast.stmt]) -> bool:
    """Whether `if cuda: ... else: ...` gives the same names types of the GPU, or of the CPU, and does nothing else."""
    names = [ast.unparse(s.targets[0]) for s in branch.body if isinstance(s, ast.Assign) and s in definitions]
    others = [ast.unparse(s.targets[0]) for s in branch.orelse if isinstance(s, ast.Assign)]
    return len(names) == len(branch.body) and names == others and len(others) == len(branch.orelse)


def is_passed(facts: Facts, node: ast.expr) -> bool:
    """Whether a type is handed to a function of the project."""
    tree = facts.tree(node)
    parent = tree.parents[node]
    call = tree.parents[parent] if isinstance(parent, ast.keyword) else parent
    return isinstance(call, ast.Call) and call.func is not node and bool(facts.targets(call))


def hidden_types(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Uses of a type of the GPU that say neither what is made nor what is cast."""
    units = units_of(facts, program) if program.home is not None else set()
    for node in reads(facts, program):
        parent = facts.tree(node).parents[node]
        if definition(facts, node) is not None or is_passed(facts, node) or stays(facts, node, units):
            continue
        is_known = _is_made_of_numbers(facts, program, node)
        if isinstance(parent, ast.Call) and facts.unit(node) in units:
            given = arguments(parent)
            made_of_rows = any(roles(facts.values(each)) & ROWS for each in given)
            is_known = (parent.func is node and not made_of_rows) or (
                casts_to_gpu(facts, parent) and cast(facts, node) is not None
            )
        if not is_known:
            yield Refusal(node, "MIG120", f"{ast.unparse(node)} hides the device in a tensor type here", _WAY_OUT)
            return


def stays(facts: Facts, node: ast.expr, units: Container[Unit]) -> bool:
    """`torch.cuda.FloatTensor(n)` in a model, where there is a GPU: the current one is the process's own."""
    if not isinstance(node, ast.Attribute) or not is_making(facts, node) or facts.unit(node) in units:
        return False
    for above in facts.tree(node).up(node):
        if isinstance(above, ast.If) and ast.unparse(above.test) == "torch.cuda.is_available()":
            return any(inner is node for statement in above.body for inner in ast.walk(statement))
    return False


def kept_from_gpu(facts: Facts, program: Program, cpu: str | None) -> Iterator[Refusal]:
    """What stays on a GPU wherever there is one, in a program that may be kept on the CPU."""
    units = units_of(facts, program)
    found = [node for node in reads(facts, program) if stays(facts, node, units)] if cpu is not None else []
    for node in found[:1]:
        yield Refusal(node, "MIG120", f"{ast.unparse(node)} hides the device in a tensor type here", _WAY_OUT)


def _is_made_of_numbers(facts: Facts, program: Program, node: ast.expr) -> bool:
    """`Tensor(np.random.normal(...))` in a function that only a model calls, beside a program at module level."""
    call, unit = facts.tree(node).parents[node], facts.unit(node)
    if not is_making(facts, node) or not isinstance(call, ast.Call) or call.keywords or unit is program.start:
        return False
    is_beside = isinstance(unit, Function) and unit.owner is None and unit.parent is None
    made = [ast.unparse(given.func) for given in call.args if isinstance(given, ast.Call)]
    is_plain = len(made) == len(call.args) and all(text.startswith(("np.", "numpy.")) for text in made)
    return is_beside and is_plain and bool(made) and unit.module is program.start


def on_cpu(node: ast.expr) -> str:
    """The source of the same type on the CPU."""
    if isinstance(node, ast.IfExp):
        body, orelse = on_cpu(node.body), on_cpu(node.orelse)
        same = _plain(body) == _plain(orelse)
        return orelse if same else f"{body} if {ast.unparse(node.test)} else {orelse}"
    return ast.unparse(node).replace("torch.cuda.", "torch.")


def _plain(text: str) -> str:
    return text.replace("torch.Tensor", "torch.FloatTensor")
