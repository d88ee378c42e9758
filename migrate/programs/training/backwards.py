"""What `backward` is given beside the loss: a gradient that fits each process's part of a batch, or one that does not.

`loss.backward(one)` starts from one number. `loss.backward(torch.ones_like(loss))` has the shape of the loss, whatever
part of a batch that is of. A tensor of a fixed size would fit the whole batch alone.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import is_none
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

#: The parameters of `Tensor.backward`, in order.
PARAMETERS = ("gradient", "retain_graph", "create_graph", "inputs")
_FILLED = frozenset({"torch.tensor", "torch.as_tensor"})
_TYPED = frozenset(f"torch.{kind}" for kind in ("FloatTensor", "cuda.FloatTensor", "Tensor", "DoubleTensor"))
_SIZED = frozenset({"torch.ones", "torch.zeros", "torch.full", "torch.rand", "torch.randn"})
_LIKE = frozenset({f"{name}_like" for name in _SIZED})
_WRAPPED = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})
_KEEPING = frozenset("to cuda cpu float double half clone detach neg mul mul_ type requires_grad_ contiguous".split())
_COMPUTED = frozenset({Role.TENSOR, Role.BATCH, Role.SAMPLES, Role.STATISTIC})
_DEEPEST = 8


def arguments(call: ast.Call) -> dict[str, ast.expr] | None:
    """What a `backward` call is given, by parameter, without what is None; None: that is not seen."""
    if any(isinstance(given, ast.Starred) for given in call.args) or any(k.arg is None for k in call.keywords):
        return None
    if len(call.args) > len(PARAMETERS):
        return None
    given = dict(zip(PARAMETERS, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    return {name: value for name, value in given.items() if not is_none(value)}


def unfit(facts: Facts, call: ast.Call) -> tuple[str, str] | None:
    """Why a `backward` call cannot be given to the accelerator, and the way out; None: it can."""
    given = arguments(call)
    if given is None:
        return "what backward is given is not seen", "write its arguments out"
    if "inputs" in given:
        return "backward(inputs=...) has no counterpart", "freeze the other parameters, and call loss.backward()"
    gradient = given.get("gradient")
    loss = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if gradient is None or _Gradients(facts, loss).fits(gradient, _DEEPEST, frozenset()):
        return None
    why = f"each process has a part of the batch, and `{ast.unparse(gradient)}` may have the size of all of it"
    return why, "reduce to a scalar loss first, e.g. (loss * gradient).sum().backward()"


def of_several(facts: Facts, call: ast.Call, name: str) -> tuple[str, str]:
    """Why `torch.autograd.backward` stays where it was not written as a loss's own before, and the way out."""
    if name != "torch.autograd.backward":
        return f"{name} has no counterpart", "add the losses up and call .backward() on the sum"
    for use in facts.method_calls("reinforce"):
        if use.unit.module is facts.module(call) and not roles(facts.receiver(use.node)) - _COMPUTED:
            what = f"{ast.unparse(use.node)} (line {use.node.lineno})"
            out = "compute a loss: -distribution.log_prob(action) * reward, with torch.distributions"
            return f"{what} is of the stochastic functions, which PyTorch has no more since 0.4", out
    if len(call.args) > 1 or any(k.arg in ("grad_tensors", "grad_variables") for k in call.keywords):
        why = f"{name} starts from gradients that are not seen to be ones"
        return why, "multiply each loss by its own, add them up, and call .backward() on the sum"
    why = f"{name} is given what is not seen to be one tensor or a list of them"
    return why, "add the losses up and call .backward() on the sum"


def sums(facts: Facts, call: ast.Call) -> bool:
    """Whether the gradient has the shape of the loss, which may have a value for each sample."""
    gradient = (arguments(call) or {}).get("gradient")
    return gradient is not None and not _Gradients(facts, "").fits(gradient, _DEEPEST, frozenset())


class _Gradients:
    """The gradients of one loss."""

    def __init__(self, facts: Facts, loss: str) -> None:
        self._facts = facts
        self._sources = facts.once(Sources)
        self._loss = loss

    def fits(self, node: ast.expr, depth: int, seen: frozenset[ast.expr]) -> bool:
        if _is_number(node):
            return True
        if depth == 0:
            return False
        if isinstance(node, ast.UnaryOp):
            return self.fits(node.operand, depth, seen)
        if isinstance(node, ast.IfExp):
            return self.fits(node.body, depth, seen) and self.fits(node.orelse, depth, seen)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            return self.fits(node.left, depth, seen) and self.fits(node.right, depth, seen)
        if isinstance(node, ast.Call):
            return self._made(node, depth, seen)
        given = self._sources.given(node)
        return (
            given.complete
            and not self._is_resized(node)
            and all(part in seen or self.fits(part, depth - 1, seen | {part}) for part in given.expressions)
        )

    def _is_resized(self, node: ast.expr) -> bool:
        return any(
            isinstance(n, ast.Attribute) and n.attr.startswith("resize") and ast.unparse(n.value) == ast.unparse(node)
            for n in self._facts.tree(node).nodes
        )

    def _made(self, node: ast.Call, depth: int, seen: frozenset[ast.expr]) -> bool:
        names = self._facts.called(node)
        if names and names <= _FILLED | _TYPED:
            return len(node.args) == 1 and _is_one_element(node.args[0], is_size=bool(names & _TYPED))
        if names and names <= _SIZED:
            return self._is_size(node.args[:1] if "torch.full" in names else node.args)
        if names and names <= _LIKE:
            return len(node.args) >= 1 and ast.unparse(node.args[0]) == self._loss
        if names and names <= _WRAPPED:
            return len(node.args) == 1 and self.fits(node.args[0], depth, seen)
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr not in _KEEPING or self._facts.targets(node):
            return False
        return self.fits(func.value, depth, seen)

    def _is_size(self, given: list[ast.expr]) -> bool:
        """`1`, `(1,)`, `loss.size()`, `*loss.shape`."""
        if len(given) != 1:
            return False
        size = given[0].value if isinstance(given[0], ast.Starred) else given[0]
        if ast.unparse(size) in (f"{self._loss}.size()", f"{self._loss}.shape"):
            return True
        parts = size.elts if isinstance(size, (ast.Tuple, ast.List)) else [size]
        return all(isinstance(part, ast.Constant) and part.value == 1 for part in parts)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _is_one_element(node: ast.expr, *, is_size: bool) -> bool:
    """`1.0`, `[1]`, `[[-1.0]]`; with `is_size`, a number says how many elements there are."""
    if is_size and not isinstance(node, (ast.List, ast.Tuple)):
        return isinstance(node, ast.Constant) and node.value == 1
    while isinstance(node, (ast.List, ast.Tuple)):
        if len(node.elts) != 1:
            return False
        node = node.elts[0]
    return _is_number(node)
