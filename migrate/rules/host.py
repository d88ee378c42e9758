"""to-the-host: what goes to NumPy comes to the CPU first.

    points.numpy()                       ->   points.cpu().numpy()
    accuracy_score(labels, predicted)    ->   accuracy_score(labels.cpu(), predicted.cpu())

So does what is drawn on a figure, `axes[0].imshow(images[0])`.

Batches of a prepared loader, and what a model makes of them, are on the accelerator's device; a program that never left
the CPU did not need to say so. What is taken of a loader before it is prepared is on the CPU, and stays as it is.
Safe: on the CPU `cpu()` gives the same tensor.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import HOST_PREFIXES
from migrate.analysis.roles import FROM_LOADER, ROWS, Role, Value, roles
from migrate.analysis.syntax import arguments, last_line
from migrate.analysis.units import Class, Function
from migrate.programs.device.raw_batches import RawBatches
from migrate.programs.device.the_cpu import only_cpu
from migrate.programs.device.tour import shown
from migrate.programs.processes.replicas import ON_CPU
from migrate.programs.values.fillings import Fillings
from migrate.programs.values.outputs import Outputs
from migrate.programs.values.sources import Sources
from migrate.programs.values.takes import taken
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

_TENSORS = ROWS | {Role.TENSOR}
_TO_HOST = frozenset({"cpu", "numpy"})


@rule("MIG121")
def to_the_host(conversion: Conversion, draft: Draft) -> None:
    """Add `.cpu()` where tensors of the program meet NumPy and its friends."""
    facts = conversion.facts
    if conversion.placement.cpu == ON_CPU:
        return
    raw = RawBatches(conversion)
    for use in conversion.uses:
        func = use.node.func
        if (
            isinstance(func, ast.Attribute)
            and func.attr == "numpy"
            and _is_on_device(conversion, func.value, FROM_LOADER)
            and not raw.holds(func.value)
        ):
            draft.wrap(func.value, "{it}.cpu()")
        elif _is_on_the_host(facts, use.node):
            for given in arguments(use.node):
                if not isinstance(given, ast.Starred) and _is_on_device(conversion, given, ROWS):
                    if not _is_tensor(conversion.facts, given) or raw.holds(given):
                        continue  # NumPy takes lists of tensors, too
                    draft.wrap(given, "{it}.cpu()")


def _is_on_the_host(facts: Facts, call: ast.Call) -> bool:
    """Whether a call is one of NumPy or its friends, also on a figure: `axes[0].imshow(...)`."""
    names = facts.called(call)
    if any(name.startswith(HOST_PREFIXES) for name in names):
        return True
    return not names and isinstance(call.func, ast.Attribute) and facts.once(Outputs).is_figure(call.func.value)


def _is_on_device(conversion: Conversion, node: ast.expr, computed: frozenset[Role]) -> bool:
    """Whether an expression is a tensor that a prepared loader or a trained model puts on the device."""
    values = shown(conversion.facts, node)
    if not values or not roles(values) <= {*computed, Role.TENSOR}:
        return False
    if any(isinstance(n, ast.Attribute) and n.attr in _TO_HOST for n in ast.walk(node)):
        return False
    if _comes_from_host(conversion.facts, node):
        return False
    return any(_is_placed(conversion, value) for value in values)


def _comes_from_host(facts: Facts, node: ast.expr) -> bool:
    """Whether what a name was given above may be on the CPU already: `scores = model(x).cpu().numpy()`."""
    seen: set[ast.expr] = set()
    waiting: list[ast.expr] = [node]
    while waiting:
        inner = waiting.pop()
        while isinstance(inner, (ast.Attribute, ast.Subscript, ast.Call)):
            if isinstance(inner, ast.Attribute) and inner.attr in _TO_HOST:
                return True
            if isinstance(inner, ast.Call) and any(only_cpu(facts, argument) for argument in inner.args):
                return True  # x.to("cpu")
            if isinstance(inner, ast.Call) and any(name.startswith("torch.") for name in facts.called(inner)):
                waiting += arguments(inner)  # torch.cat(parts)
            inner = inner.func if isinstance(inner, ast.Call) else inner.value
        if isinstance(inner, ast.BinOp):  # one part on the CPU, and all of it is
            waiting += [inner.left, inner.right]
        elif isinstance(inner, ast.UnaryOp):
            waiting.append(inner.operand)
        elif isinstance(inner, ast.IfExp):  # x.cpu().numpy() if use_gpu else x.numpy()
            waiting += [inner.body, inner.orelse]
        elif isinstance(inner, (ast.List, ast.Tuple)):
            waiting += inner.elts
        elif isinstance(inner, ast.Name) and inner not in seen:
            seen.add(inner)
            waiting += [*_given_above(facts, inner), *_put_into(facts, inner)]
    return False


def _given_above(facts: Facts, name: ast.Name) -> Iterator[ast.expr]:
    """What a name may have at a place, from there up to a statement that gives it something in any case."""
    tree, unit = facts.tree(name), facts.unit(name)
    blocks = [tree.block(above) for above in (name, *tree.up(name)) if isinstance(above, ast.stmt)]
    above = [b for b in facts.bindings_in(unit) if b.target == name.id and _is_given_by(b.statement) < name.lineno]
    for binding in sorted(above, key=lambda each: each.statement.lineno, reverse=True):
        if isinstance(binding.statement, ast.Assign):
            yield binding.statement.value
        if isinstance(binding.statement, ast.For):
            yield _gone_through(facts, binding.statement, name.id)
        if any(tree.block(binding.statement) is block for block in blocks):
            return
    if isinstance(unit, Function) and name.id in unit.parameter_names:
        yield from facts.once(Sources).argument(unit, name.id).expressions


def _is_given_by(statement: ast.stmt) -> int:
    """The line below which a statement has given its names what it gives: of a loop, those of its body."""
    return statement.iter.end_lineno or 0 if isinstance(statement, ast.For) else last_line(statement)


def _gone_through(facts: Facts, loop: ast.For, name: str) -> ast.expr:
    """What a loop takes a name from: `rows` of `for i, row in enumerate(rows)`, `b` of `for x, y in zip(a, b)`."""
    over, target = loop.iter, loop.target
    if isinstance(over, ast.Call) and over.args and isinstance(target, ast.Tuple):
        if "builtins.enumerate" in facts.called(over):
            return over.args[0]
        if "builtins.zip" in facts.called(over):
            parts = zip(target.elts, over.args, strict=False)
            return next((given for part, given in parts if isinstance(part, ast.Name) and part.id == name), over)
    return over


def _put_into(facts: Facts, name: ast.Name) -> Iterator[ast.expr]:
    """What a list is filled with: `parts.append(x.cpu())`."""
    for filling in facts.once(Fillings).of(name):
        if isinstance(filling, ast.Call) and isinstance(filling.func, ast.Attribute) and filling.func.attr == "append":
            yield from filling.args


def _is_tensor(facts: Facts, node: ast.expr) -> bool:
    """Whether nothing that an expression goes back to may have made something else of the rows of a tensor."""
    seen: set[ast.expr] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.BinOp):  # both sums of `sum(losses) / sum(counts)` may be plain numbers
            waiting += [part.left, part.right]
        elif isinstance(part, ast.UnaryOp):
            waiting.append(part.operand)
        elif isinstance(part, ast.Subscript):
            waiting.append(part.value)
        elif isinstance(part, ast.Name) and part not in seen:
            seen.add(part)
            waiting += _given_above(facts, part)
        elif isinstance(part, ast.Call) and not _gives_a_tensor(facts, part):
            return False
    return True


def _gives_a_tensor(facts: Facts, call: ast.Call) -> bool:
    """A function of torch, a method of a tensor, a model, or a loader; a library's or the project's may give a list."""
    if taken(facts, call) or any(name.startswith("torch.") for name in facts.called(call)):
        return True
    if Role.MODEL in roles(facts.values(call.func)):
        return not _counts(facts, call)
    return isinstance(call.func, ast.Attribute) and roles(facts.values(call.func.value)) <= _TENSORS


def _counts(facts: Facts, call: ast.Call) -> bool:
    """Whether a model takes numbers out of its tensors, which it may give back: `return loss, mask.sum().item()`."""
    classes = (value.unit for value in facts.values(call.func) if isinstance(value.unit, Class))
    forwards = (member.unit for cls in classes for member in cls.lookup("forward"))
    nodes = (node for unit in forwards if isinstance(unit, Function) for node in facts.own(unit))
    return any(isinstance(node, ast.Attribute) and node.attr in ("item", "tolist") for node in nodes)


def _is_placed(conversion: Conversion, value: Value) -> bool:
    if value.role is Role.BATCH:
        return value.origin in conversion.placed_origins
    if value.role in (Role.SAMPLES, Role.STATISTIC):
        return value.origin not in conversion.on_host  # else the program says itself what comes to the CPU
    made = value.origin
    return isinstance(made, ast.Call) and Role.MODEL in roles(conversion.facts.values(made.func))
