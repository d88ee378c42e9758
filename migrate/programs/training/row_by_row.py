"""Losses that are summed over the rows of a batch one by one, by the program itself.

sum(criterion(o, t) for o, t in zip(output, y))        torch.stack([...]).sum()        sum(error.pow(2))
for i in range(x.size(0)): loss += criterion(output[i], y[i])

What is gone through must certainly be a tensor: of a list, such as a model with several heads gives, each part has
all rows.
"""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, ROWS, Role, only, roles
from migrate.analysis.syntax import FUNCTIONS
from migrate.analysis.units import Class, Function
from migrate.programs.values.assigned import assigned
from migrate.programs.values.fillings import Fillings
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value

#: Methods and functions that give a tensor with the rows of a tensor.
_BY_ELEMENT = frozenset(
    "abs add clamp clone contiguous cpu cuda detach div double exp flatten float log log_softmax mul neg pow relu "
    "reshape sigmoid softmax sqrt square squeeze sub tanh to unsqueeze view".split()
)
_BESIDE = frozenset({"torch.stack", "torch.cat", "torch.hstack", "torch.vstack"})
_LISTS = (ast.GeneratorExp, ast.ListComp)
_CONTAINERS = (ast.Tuple, ast.List, ast.Dict, ast.Set, *_LISTS, ast.DictComp, ast.SetComp)
_IN_ROWS = ("torch.utils.data.TensorDataset", "torchvision.datasets.")
_DEEPEST = 4  # names, and models inside of models


def sums_rows(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression adds up what it has for each row of a batch."""
    if not isinstance(node, ast.Call):
        return False
    if "builtins.sum" in facts.called(node) and node.args:
        return _is_of_rows(facts, node.args[0]) or _is_tensor(facts, node.args[0], _DEEPEST)
    is_sum = isinstance(node.func, ast.Attribute) and node.func.attr == "sum"
    summed = node.args[0] if node.args and "torch.sum" in facts.called(node) else getattr(node.func, "value", None)
    is_beside = is_sum and isinstance(summed, ast.Call) and bool(facts.called(summed) & _BESIDE)
    return is_beside and isinstance(summed, ast.Call) and any(_is_of_rows(facts, each) for each in summed.args[:1])


def grown_by_rows(facts: Facts, name: ast.expr) -> list[ast.expr]:
    """What is added to a name in a loop over the rows of a batch, unless the name is divided as well."""
    if not isinstance(name, ast.Name):
        return []
    bound = [b.statement for b in facts.bindings_in(facts.unit(name)) if b.target == name.id]
    if any(_divides(statement, name.id) for statement in bound):
        return []
    grown = [added for statement in bound for added in _added(statement, name.id)]
    return [added for added in grown if facts.values(added) and _is_in_loop_over_rows(facts, added)]


def _added(statement: ast.stmt, name: str) -> Iterator[ast.expr]:
    match statement:
        case ast.AugAssign(op=ast.Add(), value=added):
            yield added
        case ast.Assign(value=ast.BinOp(ast.Name(id), ast.Add(), added)) if id == name:
            yield added


def _divides(statement: ast.stmt, name: str) -> bool:
    """`loss /= len(x)`, `loss = loss / size`; a number that is written out does not go by the rows."""
    match statement:
        case ast.AugAssign(op=ast.Div(), value=by):
            return not isinstance(by, ast.Constant)
        case ast.Assign(value=ast.BinOp(ast.Name(id), ast.Div(), by)):
            return id == name and not isinstance(by, ast.Constant)
    return False


def _is_of_rows(facts: Facts, held: ast.expr) -> bool:
    """Whether a list, also one that has a name, holds something for each row."""
    if isinstance(held, _LISTS):
        values = facts.values(held.elt)
        return only(values, *FROM_LOADER) and _goes_over_rows(facts, held.generators[0].iter)
    if not isinstance(held, ast.Name):
        return False
    given = [value for value in assigned(facts, held) if value is not None]
    if any(_is_of_rows(facts, value) for value in given if isinstance(value, _LISTS)):
        return True
    puts = (each for each in facts.once(Fillings).of(held) if isinstance(each, ast.Call))
    added = [argument for each in puts if getattr(each.func, "attr", "") == "append" for argument in each.args]
    return any(only(facts.values(each), *FROM_LOADER) and _is_in_loop_over_rows(facts, each) for each in added)


def _is_in_loop_over_rows(facts: Facts, node: ast.expr) -> bool:
    above = takewhile(lambda each: not isinstance(each, FUNCTIONS), facts.tree(node).up(node))
    return any(isinstance(each, ast.For) and _goes_over_rows(facts, each.iter) for each in above)


def _goes_over_rows(facts: Facts, over: ast.expr) -> bool:
    """`output`, `zip(output, y)`, `enumerate(output)`, `range(len(output))`: what takes a row of a batch each time."""
    names = facts.called(over) if isinstance(over, ast.Call) else frozenset()
    if isinstance(over, ast.Call) and "builtins.zip" in names:
        is_list = any(_is_list(facts, each, _DEEPEST) for each in over.args)
        return not is_list and any(_is_tensor(facts, each, _DEEPEST) for each in over.args)
    if isinstance(over, ast.Call) and "builtins.enumerate" in names and over.args:
        return _goes_over_rows(facts, over.args[0])
    if isinstance(over, ast.Call) and "builtins.range" in names and over.args:
        return _counts_rows(facts, over.args[-1] if len(over.args) < 2 else over.args[1], _DEEPEST)
    return _is_tensor(facts, over, _DEEPEST)


def _counts_rows(facts: Facts, number: ast.expr, depth: int) -> bool:
    match number:
        case ast.Call(func=ast.Attribute(value=sized, attr="size"), args=[ast.Constant(value=0)]):
            return only(facts.values(sized), *ROWS)
        case ast.Subscript(value=ast.Attribute(value=sized, attr="shape"), slice=ast.Constant(value=0)):
            return only(facts.values(sized), *ROWS)
        case ast.Call(args=[sized]) if "builtins.len" in facts.called(number):
            return _is_tensor(facts, sized, _DEEPEST)
        case ast.Name() if depth:
            given = list(assigned(facts, number))
            return bool(given) and all(each is not None and _counts_rows(facts, each, depth - 1) for each in given)
    return False


def _is_tensor(facts: Facts, node: ast.expr, depth: int) -> bool:
    """Whether something certainly is one tensor with a row for each sample."""
    values = facts.values(node)
    if not depth or not only(values, *ROWS):
        return False
    if isinstance(node, ast.Name):
        given = list(assigned(facts, node))
        if None not in given and given:
            return all(each is not None and _is_tensor(facts, each, depth - 1) for each in given)
        return only(values, Role.BATCH) and all(_is_collated(facts, value) for value in values)
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.Add) or _is_tensor(facts, node.left, depth)
    if isinstance(node, ast.UnaryOp):
        return _is_tensor(facts, node.operand, depth)
    return isinstance(node, ast.Call) and _gives_tensor(facts, node, depth)


def _is_collated(facts: Facts, batch: Value) -> bool:
    """Whether a part of a batch is a tensor, by the data that its loader goes over."""
    data = facts.over(batch.origin) if batch.origin is not None else ()
    return bool(data) and all(each.name.startswith(_IN_ROWS) for each in data)


def _gives_tensor(facts: Facts, call: ast.Call, depth: int) -> bool:
    if models := [value for value in facts.values(call.func) if value.role in (Role.MODEL, Role.PARAMETERS)]:
        return all(_computes_tensor(facts, value, depth) for value in models)
    return not facts.targets(call) and _is_by_element(facts, call)


def _is_by_element(facts: Facts, call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    is_library = any(each.startswith("torch.nn.functional.") for each in called_by_name(facts, call))
    return name in _BY_ELEMENT or is_library


def _computes_tensor(facts: Facts, model: Value, depth: int) -> bool:
    """Whether a model gives one tensor: a layer of PyTorch, or a class whose `forward` is seen to."""
    if not isinstance(model.unit, Class):
        return model.name.startswith("torch.nn.")
    forwards = [each.unit for each in model.unit.lookup("forward") if isinstance(each.unit, Function)]
    returned = [n.value for unit in forwards for n in facts.own(unit).of(ast.Return)]
    return bool(returned) and all(
        each is not None and _is_returned_tensor(facts, model, each, depth - 1) for each in returned
    )


def _is_returned_tensor(facts: Facts, model: Value, node: ast.expr, depth: int) -> bool:
    """The same for what a `forward` returns, which nothing may have run."""
    if not depth:
        return False
    if isinstance(node, ast.Name):
        given = list(_given(facts, node))
        last = max(given, key=lambda each: each.lineno, default=None)
        return last is not None and _is_returned_tensor(facts, model, last, depth - 1)
    if isinstance(node, ast.BinOp):
        return not any(isinstance(side, _CONTAINERS) for side in (node.left, node.right))
    if not isinstance(node, ast.Call):
        return False
    if _is_by_element(facts, node):
        return True
    layers = facts.values(node.func)
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and model.origin is not None:
        layers = layers or facts.held(model.origin, node.func.attr)
    return bool(layers) and all(_computes_tensor(facts, each, depth) for each in layers)


def _given(facts: Facts, name: ast.Name) -> Iterator[ast.expr]:
    """What a name is given in a function, whether it was run or not."""
    for node in facts.own(facts.unit(name)).of(ast.Assign):
        if any(isinstance(to, ast.Name) and to.id == name.id for to in node.targets):
            yield node.value


def _is_list(facts: Facts, node: ast.expr, depth: int) -> bool:
    """Whether something is a list, or comes from a model of which it is not seen that it gives one tensor."""
    if isinstance(node, _CONTAINERS) or only(facts.values(node), Role.CONTAINER):
        return True
    if isinstance(node, ast.Name) and depth:
        return any(each is not None and _is_list(facts, each, depth - 1) for each in assigned(facts, node))
    is_model = isinstance(node, ast.Call) and bool({Role.MODEL, Role.PARAMETERS} & roles(facts.values(node.func)))
    return is_model and not _is_tensor(facts, node, _DEEPEST)
