"""Where a tensor is, and why a batch may have to stay on the CPU."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.programs.device.devices import is_move
from migrate.programs.reach.forwards import is_own_object
from migrate.programs.reach.outsiders import is_inside_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function


class Where(Enum):
    """Where a value is; of two places that a name may have, the later one here counts."""

    NOWHERE = 0  # no tensor
    UNKNOWN = 1
    NUMPY = 2  # made of a batch, by NumPy and its like
    RAW = 3  # of a batch, as the loader gave it
    HOST = 4  # a tensor on the CPU
    DEVICE = 5


class Reason(Enum):
    """Why a batch has to be on the CPU."""

    MIXED = "is put together with a tensor on the CPU"
    PINNED = "is pinned, which it can only be on the CPU"
    NUMPY = "goes through NumPy on its way to the device"
    DRAWN = "draws from the random numbers of the CPU"
    COMPUTED = "is computed with on the CPU"
    ASKED = "is asked for a type that tensors have on the CPU"
    UNSEEN = "is given to code that may want it on the CPU"


@dataclass(frozen=True, slots=True)
class Need:
    """A place at which a batch must still be on the CPU."""

    node: ast.expr
    reason: Reason


@dataclass(frozen=True, slots=True)
class Handed:
    """What a model that stands in DataParallel is given."""

    node: ast.expr
    place: Where
    loaders: frozenset[ast.AST]  # of the loop
    model: ast.expr


def joined(places: Iterable[Where]) -> Where:
    """The place of a value that may be at any of these."""
    return max(places, key=lambda place: place.value, default=Where.NOWHERE)


def of_self(names: Mapping[str, Where]) -> dict[str, Where]:
    """What is known of the attributes of the object whose method is run."""
    return {name: place for name, place in names.items() if name.startswith("self.")}


def passed(call: ast.Call, target: Function, places: Sequence[Where]) -> Mapping[str, Where]:
    """The places of what a call gives to the parameters of a function."""
    names = [parameter.arg for parameter in target.positional]
    if target.itself is not None:
        names = names[1:]
    found: dict[str, Where] = {}
    for position, place in enumerate(places[: len(call.args)]):
        if isinstance(call.args[position], ast.Starred):
            found.update(dict.fromkeys(names[position:], place))
        elif position < len(names):
            found[names[position]] = place
        elif target.node.args.vararg is not None:
            found[target.node.args.vararg.arg] = place
    for keyword, place in zip(call.keywords, places[len(call.args) :], strict=True):
        if keyword.arg is not None:
            found[keyword.arg] = place
    return found


def elements(given: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """What is given, of lists and tuples that are written out their elements."""
    for each in given:
        if isinstance(each, (ast.List, ast.Tuple)):
            yield from elements(each.elts)
        else:
            yield each


def names_device(call: ast.Call) -> bool:
    """Whether a call says on which device it makes its tensor."""
    return any(keyword.arg in ("device", None) for keyword in call.keywords)


def is_own_model(facts: Facts, inside: Sequence[Function], node: ast.expr) -> bool:
    """`self` of `self.fc(x)` in a model's forward: its layers, also those that are not known, are on the device.

    In `__init__`, which registers buffers, nothing is there yet.
    """
    is_run = bool(inside) and inside[-1].name != "__init__" and is_inside_model(facts, inside[-1])
    return is_run and is_own_object(inside[-1], node)


_NO_TENSORS = frozenset(Role) - {*FROM_LOADER, Role.TENSOR, Role.INSTANCE, Role.CONTAINER, Role.HOLDER, Role.UNKNOWN}


def outside(facts: Facts, node: ast.expr) -> Where:
    """Where a name or attribute is that the code at hand gives no value."""
    values = facts.values(node)
    if not values:
        return Where.UNKNOWN
    found = roles(values)
    if found <= _NO_TENSORS:
        return Where.NOWHERE
    if Role.TENSOR in found:
        made = [v.origin for v in values if v.role is Role.TENSOR]
        return Where.HOST if all(_is_made_on_host(facts, o, node) for o in made) else Where.DEVICE
    return Where.DEVICE if found & FROM_LOADER else Where.UNKNOWN


def _is_made_on_host(facts: Facts, origin: ast.AST | None, read: ast.expr) -> bool:
    """Whether a tensor was made without a device, is not moved where it is made, and nowhere by its name."""
    if not isinstance(origin, ast.Call) or names_device(origin):
        return False
    if any(name.startswith("torch.cuda.") for name in facts.called(origin)):
        return False
    tree = facts.tree(origin)
    above: ast.AST = origin
    for above in tree.up(origin):
        if is_move(facts, above):
            return False
        if isinstance(above, ast.stmt):
            break
    text = ast.unparse(read)
    return not any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == text
        and is_move(facts, node)
        for node in facts.tree(read).nodes
    )


def unpacked(
    facts: Facts, target: ast.Tuple | ast.List, place: Where, value: ast.expr, where: Callable[[ast.expr], Where]
) -> Iterator[tuple[ast.expr, Where, ast.expr]]:
    """Each name that a value is unpacked into, its place, and what it is a part of; a number is no tensor.

    Args:
        where: gives the place of what an iterable gives.
    """
    if isinstance(value, ast.Call) and len(value.args) == len(target.elts) and "builtins.zip" in facts.called(value):
        yield from ((element, where(each), each) for element, each in zip(target.elts, value.args, strict=True))
        return
    over = _counted(facts, value)
    for position, element in enumerate(target.elts):
        is_number = (position == 0 and over is not None) or roles(facts.values(element)) == {Role.NUMBER}
        yield element, Where.NOWHERE if is_number else place, over or value


def _counted(facts: Facts, value: ast.expr) -> ast.expr | None:
    """What `enumerate(loader)`, `batch.items()` go through: the first of each pair that they give is no tensor."""
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute) and value.func.attr == "items":
        return value.func.value
    return value.args[0] if value.args and "builtins.enumerate" in facts.called(value) else None
