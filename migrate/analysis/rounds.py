"""Loops and comprehensions over keys that are written out: each round makes objects of its own.

`{k: DataLoader(data[k]) for k in ["train", "val"]}` is `{"train": DataLoader(data["train"]), "val": ...}`, and so is a
loop that puts one object after the other into a dictionary. Such code is run once for each key, with the key as the
value of its name; what a round makes is told by a twin of the node in the source, as with copies of functions.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from migrate.analysis.calls import role_of
from migrate.analysis.containers import under
from migrate.analysis.factories import APART
from migrate.analysis.keys import keys_of, paired_keys, pairs_in, texts_in
from migrate.analysis.known.table import Gives, Makes
from migrate.analysis.roles import NUMBER, Role, Value, Values
from migrate.analysis.state import ELEMENT, KEYS, MAPPING, MIXED, Frame, Round, State
from migrate.analysis.syntax import FUNCTIONS, walk
from migrate.analysis.units import Class, Function, Unit
from migrate.analysis.unpacking import at, length_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Evaluate = Callable[[State, ast.expr, Frame], Values]

_MOST = 8  # keys; what has more of them is no dictionary of loaders
#: What the body of a loop that fills a dictionary is made of.
_FILLS = (ast.Assign, ast.AnnAssign, ast.If, ast.Expr, ast.Pass, ast.Continue, ast.Raise, ast.Assert)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one round begins with: its key, and the values of its names."""

    round: Round
    keys: dict[str, str]  # the name of the key
    given: tuple[tuple[ast.Name, Values], ...]

    @property
    def key(self) -> str:
        """The key of the round."""
        return self.round.key


def of_comprehension(state: State, node: ast.DictComp, frame: Frame, evaluate: Evaluate) -> list[Turn] | None:
    """The rounds of a comprehension that makes a dictionary of objects; None: they cannot be told apart."""
    first = node.generators[0]
    names = _names(first.target)
    if len(node.generators) > 1 or first.is_async or not names or not isinstance(node.key, ast.Name):
        return None
    if node.key.id != names[0].id or not _is_given_once(node, names) or not _makes(state, node.value, frame, evaluate):
        return None
    return _turns(state, node, first.iter, names, frame, evaluate)


def of_list(state: State, node: ast.ListComp | ast.GeneratorExp, frame: Frame, evaluate: Evaluate) -> list[Turn] | None:
    """The rounds of a comprehension that makes a list of objects, `[Net() for _ in range(3)]`; None: not told apart.

    They are told apart by their positions, where it goes over a range that is written out, or over a list of which the
    positions are known. So are models that are only handed on: `first, second = [net.to(device) for net in (a, b)]`.
    """
    first = node.generators[0]
    is_plain = len(node.generators) == 1 and not first.is_async and not first.ifs
    if not is_plain or not isinstance(first.target, ast.Name) or not _is_given_once(node, [first.target]):
        return None
    makes = isinstance(node, ast.ListComp) and _makes(state, node.elt, frame, evaluate)
    if any(isinstance(part, ast.NamedExpr) for part in walk(node)) or not (
        makes or _hands_on(node.elt, first.target.id)
    ):
        return None
    source = evaluate(state, first.iter, frame)
    given = _in_range(first.iter) or _at_positions(state, first.iter, source)
    if not makes and not (given and all(value.role is Role.MODEL for held in given for value in held)):
        return None
    if not given or len(given) > _MOST:
        return None if given or source or state.settled else []  # it may still become known
    name = first.target
    keys = [{name.id: str(n)} if isinstance(first.iter, ast.Call) else {} for n in range(len(given))]
    rounds = [_round(state, node, str(n), frame) for n in range(len(given))]
    return [Turn(each, key, ((name, held),)) for each, key, held in zip(rounds, keys, given, strict=True)]


def _hands_on(node: ast.expr, name: str) -> bool:
    """`net`, `net.to(device).eval()`, `nn.DataParallel(net)`: what a name holds, what a method gives, or a wrapper."""
    while isinstance(node, ast.Call):
        node = node.args[0] if node.args and not _is_method_of(node, name) else getattr(node.func, "value", node.func)
    return isinstance(node, ast.Name) and node.id == name


def _is_method_of(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Attribute) and any(
        isinstance(part, ast.Name) and part.id == name for part in walk(node.func)
    )


def _in_range(over: ast.expr) -> list[Values]:
    """What `range(3)` gives, one after the other."""
    match over:
        case ast.Call(func=ast.Name("range"), args=[ast.Constant(int(count))], keywords=[]):
            return [NUMBER] * count
    return []


def _at_positions(state: State, over: ast.expr, source: Values) -> list[Values]:
    """What a list or tuple holds at each of its positions; none where these are not known."""
    if len(source) != 1 or isinstance(over, ast.Call):
        return []
    (value,) = source
    if value.role is not Role.CONTAINER or value.name == MAPPING or value.origin is None:
        return []
    held = state.held(value.origin)
    made = state.originals.get(value.origin, value.origin)
    count = length_of(state, value)
    if count is None and isinstance(made, ast.ListComp) and not {ELEMENT, MIXED} & held.keys():
        count = len([key for key in held if key.isdigit()])
    return [at(state, value.origin, str(n)) for n in range(count or 0)]


def of_loop(state: State, loop: ast.For, frame: Frame, evaluate: Evaluate) -> list[Turn] | None:
    """The rounds of a loop that fills a dictionary: `for k in ["train", "val"]: loaders[k] = DataLoader(data[k])`."""
    names = _names(loop.target)
    if not names or not _fills(loop, names[0].id) or not _is_given_once(loop, names):
        return None
    made = (part.value for part in walk(loop) if isinstance(part, (ast.Assign, ast.AnnAssign)))
    if not any(value is not None and _makes(state, value, frame, evaluate) for value in made):
        return None
    return _turns(state, loop, loop.iter, names, frame, evaluate)


def keep_keys(state: State, node: ast.DictComp, made: ast.AST, frame: Frame, evaluate: Evaluate) -> list[str]:
    """The keys of a dictionary that has those of another one, or of a list; it is remembered where these are written.

    There are none where they are not known.
    """
    first = node.generators[0]
    names = _names(first.target)
    if len(node.generators) > 1 or first.ifs or not names or not isinstance(node.key, ast.Name):
        return []
    base, _ = _base(first.iter)
    held = _held(state, base, evaluate(state, base, frame), frame) if node.key.id == names[0].id else None
    if held is None or (len(names) == 1 and pairs_in(held)):
        return []
    state.store(made, KEYS, frozenset({Value(Role.CONTAINER, held)}))
    return paired_keys(held) or keys_of(state, held)


def decided(test: ast.expr, keys: Mapping[str, str]) -> bool | None:
    """What a test of the key comes to in a round: `split == "train"`, `k in ("val", "test")`; `keys` by their names."""
    match test:
        case ast.Compare(left=ast.Name(name), ops=[operator], comparators=[other]) if name in keys:
            texts = texts_in(other.elts if isinstance(other, (ast.List, ast.Tuple, ast.Set)) else [other])
            if not texts or isinstance(operator, (ast.Eq, ast.NotEq)) is not isinstance(other, ast.Constant):
                return None
            if isinstance(operator, (ast.Eq, ast.In)):
                return keys[name] in texts
            return keys[name] not in texts if isinstance(operator, (ast.NotEq, ast.NotIn)) else None
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = decided(operand, keys)
            return None if inner is None else not inner
    return None


def _turns(
    state: State, node: ast.DictComp | ast.For, over: ast.expr, names: list[ast.Name], frame: Frame, evaluate: Evaluate
) -> list[Turn] | None:
    if pairs := pairs_in(over):
        rounds = ((_round(state, node, key, frame), key, item) for key, item in pairs)
        found = [
            Turn(each, {names[0].id: key}, ((names[0], _text(key)), (names[1], evaluate(state, item, frame))))
            for each, key, item in (rounds if len(names) > 1 and len(pairs) <= _MOST else ())
        ]
        return found or None
    base, has_items = _base(over)
    source = evaluate(state, base, frame)
    if not source and not state.settled:
        return []  # the keys may still become known
    held = _held(state, base, source, frame)
    keys = keys_of(state, held) if held is not None else []
    if not keys or len(keys) > _MOST or has_items is not (len(names) > 1):
        return None
    turns = []
    for key in keys:
        given = [(names[0], _text(key))]
        given += [(name, under(state, Value(Role.CONTAINER, held, MAPPING), ast.Constant(key))) for name in names[1:]]
        turns.append(Turn(_round(state, node, key, frame), {names[0].id: key}, tuple(given)))
    return turns


def _text(key: str) -> Values:
    return frozenset({Value(Role.TEXT, name=key)})


def _round(state: State, node: ast.expr | ast.For, key: str, frame: Frame) -> Round:
    where = (node, key, frame.round or frame.unit)
    if where not in state.rounds:
        state.rounds[where] = Round(node, key, frame.unit, frame.round)
    return state.rounds[where]


def _names(target: ast.expr) -> list[ast.Name]:
    """The name of the key, and that of the item beside it."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [part for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) <= 2 else []


def _is_given_once(node: ast.expr | ast.For, names: list[ast.Name]) -> bool:
    """Whether the name of the key is the key wherever it stands inside."""
    name = names[0].id
    stored = [part for part in walk(node) if isinstance(part, ast.Name) and part.id == name]
    return [part for part in stored if not isinstance(part.ctx, ast.Load)] == [names[0]]


def _fills(loop: ast.For, key: str) -> bool:
    """Whether a loop does nothing else than to make objects and to put them under its key."""
    inner = [part for statement in loop.body for part in walk(statement)]
    if loop.orelse or any(isinstance(part, (*FUNCTIONS, ast.NamedExpr, ast.Await, ast.Yield)) for part in inner):
        return False
    if any(isinstance(part, ast.stmt) and not isinstance(part, _FILLS) for part in inner):
        return False
    if any(isinstance(part, ast.Attribute) and part.attr in _TRAINS for part in inner):
        return False
    targets = (target for part in inner if isinstance(part, ast.Assign) for target in part.targets)
    return any(
        isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name) and target.slice.id == key
        for target in targets
    )


_TRAINS = frozenset({"backward", "step"})


def _makes(state: State, node: ast.expr, frame: Frame, evaluate: Evaluate) -> bool:
    """Whether an expression calls what makes objects that are told apart, or a function of the project."""
    if isinstance(frame.unit, Function) and frame.unit.builds_model:
        return False  # layers, of which a model has many
    called = (part.func for part in walk(node) if isinstance(part, ast.Call))
    plain = (func for func in called if all(isinstance(part, (ast.Name, ast.Attribute)) for part in walk(func)))
    return any(_is_maker(state, value) for func in plain for value in evaluate(state, func, frame))


def _is_maker(state: State, value: Value) -> bool:
    if value.role is Role.KNOWN:
        row = state.known.row(value.name)
        given = row.elements if isinstance(row, Gives) else (row.role,) if isinstance(row, Makes) else ()
        return any(isinstance(role, Role) and role in APART for role in given)
    if isinstance(value.unit, Class):
        return value.role is Role.CLASS and role_of(state, value.unit) in APART
    return isinstance(value.unit, Function)


# --- where keys are written out---------------------------------------------------------------------------------------


def _base(over: ast.expr) -> tuple[ast.expr, bool]:
    """What is gone through, and whether with its items: the dictionary of `data.items()` and `data.keys()`."""
    match over:
        case ast.Call(func=ast.Attribute(value=base, attr="items" | "keys" as name), args=[], keywords=[]):
            return base, name == "items"
    return over, False


def _held(state: State, over: ast.expr, source: Values, frame: Frame) -> ast.AST | None:
    """The list or dictionary that has the keys which are gone through; None: they are not written out."""
    if isinstance(over, (ast.List, ast.Tuple)) or pairs_in(over):
        return over
    if len(source) != 1:
        return None
    (value,) = source
    if value.role is not Role.CONTAINER or value.origin is None:
        return None
    if value.name == MAPPING:
        return value.origin
    written = _once(frame.unit, over.id) if isinstance(over, ast.Name) else None
    is_it = written is not None and state.originals.get(value.origin, value.origin) is written
    return written if is_it and not {ELEMENT, MIXED} & state.held(value.origin).keys() else None


def _once(unit: Unit, name: str) -> ast.List | ast.Tuple | None:
    """The list that a name is given in the one place which gives it something; None: there is no such place."""
    found = _stored(unit.module.tree).get(name, [])
    around: list[ast.AST | None] = [None]
    above = unit if isinstance(unit, Function) else None
    while above is not None:
        around.append(above.node)
        above = above.original.parent
    value, where = found[0] if len(found) == 1 else (None, None)
    return value if isinstance(value, (ast.List, ast.Tuple)) and where in around else None


@lru_cache(maxsize=64)
def _stored(tree: ast.Module) -> dict[str, list[tuple[ast.expr | None, ast.AST | None]]]:
    """Where each name of a module is given something: what it is given, if that is written, and the function."""
    found: dict[str, list[tuple[ast.expr | None, ast.AST | None]]] = {}
    waiting: list[tuple[ast.AST, ast.AST | None]] = [(tree, None)]
    while waiting:
        node, where = waiting.pop()
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append((node.value, where))
            waiting.append((node.value, where))
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, []).append((None, where))
        name = node.arg if isinstance(node, ast.arg) else getattr(node, "asname", None) or getattr(node, "name", None)
        if isinstance(name, str) and not isinstance(node, ast.keyword):
            found.setdefault(name.partition(".")[0], []).append((None, where))
        inner = node if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else where
        waiting += [(child, inner) for child in ast.iter_child_nodes(node)]
    return found
