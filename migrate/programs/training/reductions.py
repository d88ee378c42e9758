"""Losses that are folded by hand otherwise than by a plain mean over the batch: their gradients weigh otherwise."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, only, roles
from migrate.analysis.syntax import argument_at
from migrate.analysis.texts import text_of
from migrate.analysis.units import Class, Function
from migrate.programs.training.products import folds_rows, is_product
from migrate.programs.training.row_by_row import grown_by_rows, sums_rows
from migrate.programs.values.assigned import assigned
from migrate.programs.values.batch_size import counts_rows, is_size
from migrate.programs.values.masks import is_mask
from migrate.programs.values.scalars import unscaled
from migrate.programs.values.settled import is_left_out
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value
    from migrate.programs.loops import LoopFact


def making(forward: Function) -> Iterator[Function]:
    """What makes the losses that a forward calls: the `__init__` of its class."""
    for member in forward.owner.lookup("__init__") if forward.owner is not None else ():
        if isinstance(member.unit, Function):
            yield member.unit


def is_loss(name: str) -> bool:
    """Whether a loss of PyTorch has this name."""
    return name.startswith("torch.nn.") and name.endswith(("Loss", "loss", "cross_entropy", "entropy_with_logits"))


def is_constant(node: ast.expr | None, value: object) -> bool:
    """Whether an argument is given, as this constant."""
    return isinstance(node, ast.Constant) and node.value == value


def folded_by_hand(facts: Facts, loop: LoopFact) -> Iterator[tuple[ast.expr, str]]:
    """Where a loss is summed over the batch, or is a mean over some of it: `(x * mask).sum() / mask.sum()`.

    And where it is divided by the samples more often than it is summed over them: `error.sum() / len(x) ** 2`.
    """
    seen: set[ast.AST] = set()
    told: set[str] = set()
    for call in loop.backwards if loop.loaders else ():
        if isinstance(call.func, ast.Attribute):
            for node in _parts(facts, call.func.value, _DEEPEST, seen):
                why = _AGAIN if _divides_again(facts, node) else OF_A_PART
                added = grown_by_rows(facts, node)
                why = SUM if added or _is_sum(facts, node) or _is_times_batch(facts, node) else why
                if why is SUM or why not in told:
                    told.add(why)
                    yield (added or [node])[0], why


SUM = "this loss is a sum: N processes average their gradients, which divides it by N"
OF_A_PART = "this loss is a mean over a part of the batch: that of N processes' batches is not the mean of their means"
_AGAIN = (
    "this loss is divided by the number of samples more than once: each of N processes has fewer of them, and divides "
    "by fewer"
)
_DEEPEST = 5  # names and functions between a sum and the loss
NEAR = 3  # names between a sum and what divides it


def _parts(facts: Facts, node: ast.expr, depth: int, seen: set[ast.AST]) -> Iterator[ast.expr]:
    """The sums, divisions by one and means of a choice that a loss is made of."""
    if depth < 0 or node in seen:
        return
    seen.add(node)
    is_folded = _is_sum(facts, node) or _is_mean_of_chosen(facts, node) or _is_times_batch(facts, node)
    if is_folded or _divides_again(facts, node):
        yield node
    elif (by := _divided_in_place(facts, node)) and sums(facts, node, NEAR):
        yield from (each for each in by if sums(facts, each, NEAR))
    elif grown_by_rows(facts, node):
        yield node
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and sums(facts, node.left, NEAR):
        is_product = isinstance(node.right, ast.BinOp) and is_size(facts, node.right)
        if sums(facts, node.right, NEAR) and not (is_product and how_often(facts, node.right)):
            yield node
        elif isinstance(node.right, ast.Constant):  # whatever the batch has: `loss.sum() / 1000`
            yield from _parts(facts, node.left, depth, seen)
    else:
        is_near = isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Tuple))
        for inner in _made_of(facts, node):
            yield from _parts(facts, inner, depth if is_near else depth - 1, seen)


def _made_of(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """What a loss is computed from: the sides of a sum, what a name was given, what a function returns."""
    if isinstance(node, ast.BinOp):
        return [node.left] if isinstance(node.op, ast.Div) else [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Tuple):
        return node.elts
    if isinstance(node, ast.Name):
        return _given(facts, node)
    if not isinstance(node, ast.Call):
        return []
    if (loss := unscaled(facts, node)) is not node:
        return [loss]
    if isinstance(node.func, ast.Attribute) and node.func.attr in _FOLDED and not facts.targets(node):
        return [node.func.value]
    units = [*facts.targets(node), *_losses(facts, node)]
    returned = (n for unit in units for n in facts.own(unit) if isinstance(n, ast.Return))
    return [each.value for each in returned if each.value is not None and not is_left_out(facts, each)]


def _divided_in_place(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """What a name is divided by where it stands, `loss /= mask.sum()`, and is no size of the batch or constant."""
    if not isinstance(node, ast.Name):
        return []
    found = (n for n in facts.own(facts.unit(node)).of(ast.AugAssign) if isinstance(n.op, ast.Div))
    by = [n.value for n in found if isinstance(n.target, ast.Name) and n.target.id == node.id]
    return [each for each in by if is_size(facts, each) or sums(facts, each, NEAR)]


def _losses(facts: Facts, call: ast.Call) -> Iterator[Function]:
    """The `forward` of the project's own loss, or model, that a call runs."""
    for value in facts.values(call.func) or _kept_losses(facts, call.func):
        for member in value.unit.lookup("forward") if isinstance(value.unit, Class) else ():
            if isinstance(member.unit, Function):
                yield member.unit


def _kept_losses(facts: Facts, node: ast.expr) -> Iterator[Value]:
    """What the constructor of a loss keeps in an attribute: a loss may be made of others, and nothing has run it."""
    unit = facts.unit(node)
    if not (isinstance(unit, Function) and isinstance(node, ast.Attribute)) or text_of(node) != f"self.{node.attr}":
        return
    for maker in making(unit):
        for statement in facts.own(maker).of(ast.Assign):
            if any(text_of(target) == f"self.{node.attr}" for target in statement.targets):
                yield from facts.values(statement.value)


def _given(facts: Facts, name: ast.Name) -> list[ast.expr]:
    """What a name is given in its function, as far as that is seen; of a tuple of a loss all that it gives."""
    if found := [value for value in assigned(facts, name) if value is not None]:
        return found
    unit = facts.unit(name)
    given = (n for n in facts.own(unit) if isinstance(n, ast.Assign))
    return [
        n.value
        for n in given
        if any(isinstance(m, ast.Name) and m.id == name.id for to in n.targets for m in ast.walk(to))
    ]


def _is_unseen(facts: Facts, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an expression is made of what a `forward` is given that nothing has run, so that it has no value."""
    unit = facts.unit(node)
    if not isinstance(unit, Function) or unit.name != "forward" or facts.bindings_in(unit):
        return False
    names = {n.id: n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id not in seen}
    return any(
        name in unit.parameter_names[1:] or any(_is_unseen(facts, e, seen | {*names}) for e in _given(facts, at))
        for name, at in names.items()
    )


def sums(facts: Facts, node: ast.expr, depth: int) -> bool:
    """Whether an expression is a sum over the batch, by itself or by the name that it has."""
    if isinstance(node, ast.Name) and depth > 0:
        given = _given(facts, node)
        is_sum = bool(given) and all(sums(facts, value, depth - 1) for value in given)
        return is_sum or bool(grown_by_rows(facts, node))
    if isinstance(node, ast.BinOp):
        is_sum = is_product(facts, node) or _is_times_batch(facts, node)
        return is_sum or any(sums(facts, side, depth) for side in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return sums(facts, node.operand, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING:
        return sums(facts, node.func.value, depth)
    return _is_sum(facts, node) or _is_summed_loss(facts, node) or counts_chosen(facts, node)


def counts_chosen(facts: Facts, node: ast.expr) -> bool:
    """`len(x[mask])`, `torch.nonzero(mask).size(0)`: how many of the batch a mask leaves, as its sum says, too."""
    match node:
        case ast.Call(func=ast.Attribute(value=sized, attr="size"), args=[ast.Constant(value=0)]):
            pass
        case ast.Call(args=[sized]) if "builtins.len" in called_by_name(facts, node):
            pass
        case ast.Subscript(value=ast.Attribute(value=sized, attr="shape"), slice=ast.Constant(value=0)):
            pass
        case _:
            return False
    return _is_chosen(facts, sized, _DEEPEST)


def _is_times_batch(facts: Facts, node: ast.expr) -> bool:
    """`loss * len(x)`: a mean becomes the sum over the batch."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    return any(counts_rows(facts, side) for side in (node.left, node.right))


def _divides_again(facts: Facts, node: ast.expr) -> bool:
    """`error.sum() / len(x) ** 2`, `criterion(output, y) / len(x)`: the fewer samples, the larger it is."""
    often, inner = 0.0, node
    while isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
        often, inner = often + how_often(facts, inner.right), inner.left
    if not often:
        return False
    return often > 1 if sums(facts, inner, NEAR) else _is_mean(facts, inner, NEAR)


def how_often(facts: Facts, node: ast.expr) -> float:
    """How often a product has the number of samples for a factor."""
    if counts_rows(facts, node):
        return 1
    match node:
        case ast.BinOp(of, ast.Pow(), ast.Constant(int() | float() as power)):
            return power * how_often(facts, of)
        case ast.BinOp(left, ast.Mult(), right):
            return how_often(facts, left) + how_often(facts, right)
    return 0


def _is_mean(facts: Facts, node: ast.expr, depth: int) -> bool:
    """Whether an expression is a mean over the whole batch, by itself or by the name that it has."""
    if isinstance(node, ast.Name) and depth > 0:
        given = _given(facts, node)
        return bool(given) and all(_is_mean(facts, value, depth - 1) for value in given)
    if not isinstance(node, ast.Call) or not only(facts.values(node), Role.STATISTIC) or facts.targets(node):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "mean":
        return len(node.args) == int("torch.mean" in called_by_name(facts, node)) and not node.keywords
    return any(map(is_loss, facts.called(node))) and not node.keywords


def _is_mean_of_chosen(facts: Facts, node: ast.expr) -> bool:
    """`criterion(out[mask], y[mask])`, `torch.masked_select(error, mask).mean()`."""
    if not isinstance(node, ast.Call):
        return False
    is_mean = isinstance(node.func, ast.Attribute) and node.func.attr == "mean"
    computes = any(map(is_loss, facts.called(node))) or Role.CRITERION in roles(facts.values(node.func))
    if computes and any(keyword.arg == "reduction" for keyword in node.keywords):
        return False  # told by what it is called with
    of = [*node.args, *([node.func.value] if is_mean and isinstance(node.func, ast.Attribute) else ())]
    return (is_mean or computes) and any(_is_chosen(facts, each, _DEEPEST) for each in of)


def _is_chosen(facts: Facts, node: ast.expr, depth: int) -> bool:
    """Whether an expression is what a mask leaves of a batch: how much that is goes by the batch."""
    if isinstance(node, ast.Name) and depth:
        return any(_is_chosen(facts, value, depth - 1) for value in _given(facts, node))
    if isinstance(node, ast.Subscript):
        return _is_mask(facts, node.slice) and _is_of_batch(facts, node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in ("masked_select", "nonzero"):
        return _is_of_batch(facts, node)
    return not facts.called(node) and not facts.targets(node) and _is_chosen(facts, node.func.value, depth)


def _is_of_batch(facts: Facts, node: ast.expr) -> bool:
    return bool(roles(facts.values(node)) & FROM_LOADER) or _is_unseen(facts, node)


def _is_mask(facts: Facts, node: ast.expr) -> bool:
    """Whether an index is a mask, a name of one, or has one beside other indexes: `x[mask, :]`."""
    if isinstance(node, ast.Tuple):
        return any(_is_mask(facts, each) for each in node.elts)
    if isinstance(node, ast.Name):
        return any(map(is_mask, _given(facts, node)))
    return is_mask(node)


_KEEPING = frozenset("clamp clamp_min float detach item to max".split())


def _is_sum(facts: Facts, node: ast.expr) -> bool:
    """`x.sum()`, `torch.sum(x)` of something of a batch, and products that come to the same."""
    if is_product(facts, node) or sums_rows(facts, node):
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _SUMS:
        return False
    summed = node.args[0] if node.args else node.func.value
    is_of_batch = (
        bool(roles(facts.values(node)) & FROM_LOADER) or _is_unseen(facts, summed) or _has_field(facts, summed)
    )
    is_whole = _folds_all(facts, node) or folds_rows(facts, node)
    return is_whole and is_of_batch and not _is_of_losses(facts, summed) and not _is_mean_of_rows(facts, summed, NEAR)


#: Leave a sum over the samples one: of what it has for each feature, or of one number.
_FOLDED = frozenset("mean squeeze".split())
_SUMS = frozenset({"sum", "nansum"})


def _folds_all(facts: Facts, call: ast.Call) -> bool:
    is_function = not called_by_name(facts, call).isdisjoint(f"torch.{name}" for name in _SUMS)
    return len(call.args) == int(is_function) and not call.keywords


def _is_mean_of_rows(facts: Facts, node: ast.expr, depth: int) -> bool:
    """`error.mean(0)`, `p * torch.log(p / output.mean(dim=0))`: what is summed of it are the features, not the rows."""
    if isinstance(node, ast.Name) and depth > 0:
        given = _given(facts, node)
        return bool(given) and all(_is_mean_of_rows(facts, value, depth - 1) for value in given)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        sides = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        of_batch = [side for side in sides if _is_of_batch(facts, side)]
        return bool(of_batch) and all(_is_mean_of_rows(facts, side, depth) for side in of_batch)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or facts.targets(node):
        return False
    is_function = int(any(name.startswith("torch.") for name in called_by_name(facts, node)))
    if node.func.attr in _OF_EACH:
        return _is_mean_of_rows(facts, node.args[0] if is_function and node.args else node.func.value, depth)
    dim = argument_at(node, is_function, "dim", "axis")
    return node.func.attr == "mean" and isinstance(dim, ast.Constant) and dim.value == 0


#: Compute each number of a tensor by itself.
_OF_EACH = frozenset("log log1p log2 exp sqrt square abs pow clamp clamp_min sigmoid tanh relu".split())


def _has_field(facts: Facts, node: ast.expr) -> bool:
    """Whether a part of an expression is a field of a batch that is an object: `batch.mask`, also by another name."""
    called = {id(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)}
    parts = (n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and id(n) not in called)
    fields = (v.receiver for part in parts for v in facts.values(part) if v.role is Role.METHOD)
    return any(holder is not None and holder.role in FROM_LOADER for holder in fields)


def _is_summed_loss(facts: Facts, node: ast.expr) -> bool:
    """`F.smooth_l1_loss(out, y, reduction="sum")` in a `forward`; elsewhere it is told by itself."""
    if not isinstance(node, ast.Call) or not any(map(is_loss, called_by_name(facts, node))):
        return False
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    return (is_constant(given.get("reduction"), "sum") or is_constant(given.get("size_average"), False)) and _is_unseen(
        facts, node
    )


def _is_of_losses(facts: Facts, node: ast.expr) -> bool:
    """`torch.stack([criterion(out, y) for out in outputs])`: several losses side by side, each of the whole batch."""
    if not isinstance(node, ast.Call) or "torch.stack" not in facts.called(node) or not node.args:
        return False
    listed = node.args[0]
    parts = [listed.elt] if isinstance(listed, ast.ListComp) else getattr(listed, "elts", [])
    return bool(parts) and all(only(facts.values(part), Role.STATISTIC) and not _is_sum(facts, part) for part in parts)
