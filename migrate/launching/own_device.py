"""What the notebook's own process does on a device, and which of it the processes have on theirs.

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")   # stays; beside several GPUs it is the CPU
    x = x.to(device)                                                        # stays
    plot(model(x))                                                          # stays

    def training():
        accelerator = Accelerator()
        x = x.to(accelerator.device)

The last line is for what a cell above has moved, and the function reads.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import reads
from migrate.launching.names import bound, mentioned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.launching.methods import Needing

_GRADIENTS = frozenset({"requires_grad", "requires_grad_"})
#: Methods that give the module itself, or a tensor where theirs is.
_KEEPING = frozenset(
    "to float double half long int bool type view reshape squeeze unsqueeze flatten transpose permute t contiguous "
    "clone detach train eval apply".split()
)


@dataclass(frozen=True, slots=True)
class Brought:
    """What statements have done on a device that is read later."""

    names: tuple[str, ...] = ()  # of tensors and modules that they have moved
    again: tuple[ast.stmt, ...] = ()  # what asks the device alone: `use_amp = device.type == "cuda"`
    other: ast.stmt | None = None  # the first that puts something else there, of which nothing is known


def brought(above: Sequence[ast.stmt], devices: Collection[str], read: Collection[str], needing: Needing) -> Brought:
    """What of some statements each process does for itself; `needing`: what works on a device."""
    found: dict[str, None] = {}
    again: list[ast.stmt] = []
    there: set[str] = set()  # what is on the device, or made of it
    for node in above:
        made = bound([node])
        for name in made:
            found.pop(name, None)
        moved = {*_moved(node, devices, there)}
        if moved and not any(_has_gradients(each, moved) for each in above):
            found.update(dict.fromkeys(name for name in sorted(moved) if name in read))
            there |= moved
        elif _only_asks(node, devices):
            again += [node] if made & {*read} else []
        elif needing.is_asked(node) or reads(node) & there:
            if (made | _filled(node, there | {*devices})) & {*read}:
                return Brought(other=node)
            there |= made
        else:
            there -= made
    return Brought((*found,), (*again,))


def _only_asks(node: ast.stmt, devices: Collection[str]) -> bool:
    """`amp = device.type == "cuda"`, `amp = str(device).startswith("cuda")`."""
    if not isinstance(node, ast.Assign) or not reads(node.value) <= {*devices, "str"}:
        return False
    calls = [each.func for each in ast.walk(node.value) if isinstance(each, ast.Call)]
    asked = (each.attr if isinstance(each, ast.Attribute) else ast.unparse(each) for each in calls)
    is_about = isinstance(node.value, (ast.Compare, ast.Call)) and bool(reads(node.value) & {*devices})
    return is_about and all(name in ("str", "startswith") for name in asked)


def _moved(node: ast.stmt, devices: Collection[str], there: Collection[str]) -> Iterator[str]:
    """`x = x.to(device)`, `x, y = x.to(device), y.to(device)`, `x = torch.ones(3, device=device)`, `net.to(device)`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and _is_there(node.value, devices)
        ):
            yield function.value.id
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        are_there = all(_is_there(each, devices) or _is_module(each, there) for _, each in pairs)
        if are_there and all(isinstance(to, ast.Name) for to, _ in pairs):
            yield from (to.id for to, _ in pairs if isinstance(to, ast.Name))


def _is_there(value: ast.expr, devices: Collection[str]) -> bool:
    """Whether a tensor or a module is moved to a device, or made on it, by a call or the first of a chain of them."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        named = [keyword.value for keyword in value.keywords if keyword.arg == "device"]
        is_made = bool(named) and ast.unparse(value.func).startswith("torch.")
        given = [*named, *value.args] if value.func.attr == "to" else named if is_made else []
        if any(isinstance(each, ast.Name) and each.id in devices for each in given):
            return True
        if value.func.attr not in _KEEPING:
            return False
        value = value.func.value
    return False


def _is_module(value: ast.expr, there: Collection[str]) -> bool:
    """`nn.CrossEntropyLoss(weight=weight)`, of a weight that is there."""
    if not isinstance(value, ast.Call) or not mentioned([*value.args, *value.keywords]) & {*there}:
        return False
    path, _, name = ast.unparse(value.func).rpartition(".")
    return path in ("nn", "torch.nn") and name[:1].isupper()


def _filled(node: ast.stmt, there: Collection[str]) -> set[str]:
    """The names of what is given something of that: `cache.append(x)`, `cache[key] = x`."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr != "to":
            if mentioned([*inner.args, *inner.keywords]) & {*there}:
                found |= mentioned([inner.func.value])
        elif isinstance(inner, (ast.Attribute, ast.Subscript)) and not isinstance(inner.ctx, ast.Load):
            found |= mentioned([inner.value])
    return found


def _has_gradients(node: ast.stmt, names: Collection[str]) -> bool:
    """Whether gradients come to one of some tensors: moved once more, it would be another one."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr in _GRADIENTS and mentioned([inner]) & {*names}:
            return True
        if isinstance(inner, ast.keyword) and inner.arg in _GRADIENTS and bound([node]) & {*names}:
            return True
    return False
