"""Calls that give way to what they are called on, and statements that say nothing without them.

`x = x.to(device)` without the move is `x = x`, which nobody would write; `model.to(device)` is `model`. Such statements
go away with the calls.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DATA_PARALLEL
from migrate.analysis.known.tensors import VARIABLE
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import same, walk
from migrate.programs.device.devices import cpu_argument, device_argument
from migrate.programs.device.lambdas import mapped
from migrate.programs.device.moves import Fate, Move
from migrate.programs.device.tensor_types import cast, casts_to_gpu
from migrate.programs.prepare.wrapped_before import wrapped_before
from migrate.programs.values.new_lists import is_list_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


#: Methods that give what they are called on, elsewhere.
_MOVING = frozenset({"to", "cuda", "xpu", "cpu", "type"})
_ROWS = (ast.Tuple, ast.List)


def drop(conversion: Conversion, draft: Draft, calls: Iterable[ast.Call]) -> None:
    """Let the calls give way, and their statements where nothing is left of them."""
    gone = dropped(conversion)
    for statement, mine in _by_statement(conversion, calls).items():
        if (loop := _putting_back(conversion, statement, gone)) is not None:
            draft.remove(loop)
            continue
        if isinstance(statement, ast.Assign) and _makes_list(conversion, statement) and says_nothing(statement, gone):
            draft.rewrite(statement.value, f"list({ast.unparse(without(statement.value, gone))})")
            continue
        if says_nothing(statement, gone) or _is_thrown_away(conversion, statement, gone):
            draft.remove(statement)
            continue
        if (rest := _identity(statement, gone)) is not None:
            assert isinstance(statement, ast.Assign)
            draft.rewrite(statement.value, rest)
            continue
        for call in mine:
            if (whole := mapped(conversion.facts, call)) is not None and call in gone:
                _unmap(draft, statement, whole)
            else:
                _give_way(conversion, draft, call)
        _fold_choices(draft, statement, gone)
        _thin_out(draft, statement, gone)


def _unmap(draft: Draft, statement: ast.stmt, whole: ast.Call) -> None:
    """`x, y = map(lambda t: t.to(device), batch)` is `x, y = batch`, and of `(x, y)` nothing is left."""
    given = whole.args[1]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(given, _ROWS) and [_elements(each) for each in targets] == [_elements(given)]:
        draft.remove(statement)
    else:
        draft.unwrap_call(whole, 1)


def _elements(row: ast.expr) -> list[str]:
    return [ast.unparse(element) for element in row.elts] if isinstance(row, _ROWS) else []


def _thin_out(draft: Draft, statement: ast.stmt, gone: set[ast.Call]) -> None:
    """`x, y = x, y.float()` is `y = y.float()`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
        return
    pairs = list(zip(target.elts, value.elts, strict=True))
    kept = [(one, other) for one, other in pairs if ast.unparse(one) != ast.unparse(without(other, gone))]
    if 0 < len(kept) < len(pairs) and all(isinstance(element, (ast.Name, ast.Attribute)) for element in target.elts):
        draft.join(target, ", ", {f"part{number}": one for number, (one, _) in enumerate(kept)})
        draft.join(value, ", ", {f"part{number}": other for number, (_, other) in enumerate(kept)})


def dropped(conversion: Conversion) -> set[ast.Call]:
    """Every call of the program that gives way to what it is called on, whichever rule does it."""
    return conversion.once(_dropped)


def _dropped(conversion: Conversion) -> set[ast.Call]:
    return {
        *(move.node for move in conversion.moves if move.is_dropped and not _kept_arguments(conversion, move.node)),
        *wrappers(conversion),
        *variables(conversion),
    }


def dropped_arguments(conversion: Conversion) -> set[int]:
    """The expressions that go away with the moves and wrappers: devices, device lists, options (by `id`)."""
    kept = {
        id(argument)
        for move in conversion.moves
        if move.is_dropped
        for argument in _kept_arguments(conversion, move.node)
    }
    calls = {*dropped(conversion), *(move.node for move in conversion.moves if move.is_dropped)}
    given = (argument for call in calls for argument in (*call.args, *call.keywords) if id(argument) not in kept)
    unwrapped = {id(call.args[0]) for call in (*wrappers(conversion), *variables(conversion))}
    return {id(inner) for argument in given if id(argument) not in unwrapped for inner in walk(argument)}


def wrappers(conversion: Conversion) -> list[ast.Call]:
    """DataParallel around a model of the program, trained or not."""
    mine = [
        use.node
        for use in conversion.facts.calls_to(DATA_PARALLEL)
        if use.unit in conversion.units
        and len(use.node.args) >= 1
        and not any(keyword.arg in ("dim", None) for keyword in use.node.keywords)
    ]
    return mine + wrapped_before(conversion.facts, conversion.program, conversion.units)


def variables(conversion: Conversion) -> list[ast.Call]:
    """`Variable(x)` around a batch of a prepared loader: since PyTorch 0.4 it is `x`."""
    facts = conversion.facts
    return [
        use.node
        for use in facts.calls_to(VARIABLE)
        if use.unit in conversion.units
        and len(use.node.args) == 1
        and not use.node.keywords
        and origins(facts.values(use.node.args[0]), Role.BATCH, Role.SAMPLES) & conversion.loader_origins
    ]


def _by_statement(conversion: Conversion, calls: Iterable[ast.Call]) -> dict[ast.stmt, list[ast.Call]]:
    found: dict[ast.stmt, list[ast.Call]] = {}
    for call in calls:
        found.setdefault(conversion.facts.tree(call).statement(call), []).append(call)
    return found


def _give_way(conversion: Conversion, draft: Draft, call: ast.Call) -> None:
    """The call, or of a move with a dtype only its device."""
    names = conversion.facts.called(call)
    if names & DATA_PARALLEL or names & VARIABLE:
        draft.unwrap_call(call)
        return
    if (method := cast_of(conversion, call)) is not None:
        draft.wrap_receiver(call, f"{{it}}.{method}()")
        return
    kept = _kept_arguments(conversion, call)
    if not kept:
        draft.drop_method(call)
        return
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    for argument in given:
        if argument not in kept:
            draft.remove_argument(call, argument)


def _kept_arguments(conversion: Conversion, call: ast.Call) -> list[ast.expr | ast.keyword]:
    """What a move does besides moving: the dtype of `x.to(device, torch.float32)`."""
    if cast_of(conversion, call) is not None:
        return [*call.args]
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to":
        return []
    device = device_argument(conversion.facts, call) or cpu_argument(conversion.facts, call)
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return [argument for argument in given if not _is_device_or_option(argument, device)]


def cast_of(conversion: Conversion, call: ast.Call) -> str | None:
    """The method that does what `.type(Tensor)` does besides moving: "float"; None if the call is no such cast.

    A model or a loss function is made of floats.
    """
    if not casts_to_gpu(conversion.facts, call):
        return None
    method = cast(conversion.facts, call.args[0])
    is_made_so = roles(conversion.facts.receiver(call)) & {Role.MODEL, Role.CRITERION} and method == "float"
    return None if is_made_so else method


def _is_device_or_option(given: ast.expr | ast.keyword, device: ast.expr | None) -> bool:
    if isinstance(given, ast.keyword):
        return given.arg in ("device", "non_blocking", "copy")
    return given is device or isinstance(given, ast.Constant)


# --- what is left of a statement ------------------------------------------------------------------------------------


_OF_LISTS = frozenset("append extend insert pop remove sort reverse clear copy".split())


def says_nothing(statement: ast.stmt, gone: set[ast.Call]) -> bool:
    """Whether a statement without the calls assigns names to themselves, or computes nothing."""
    if isinstance(statement, ast.Expr):
        return isinstance(without(statement.value, gone), (ast.Name, ast.Attribute))
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return same(statement.targets[0], without(statement.value, gone))
    return False


def _makes_list(conversion: Conversion, statement: ast.Assign) -> bool:
    """`images = [image.to(device) for image in images]`, where the list is changed below: a tuple cannot be."""
    name, made = statement.targets[0], statement.value
    is_list = isinstance(made, ast.ListComp) or is_list_call(conversion.facts, made)
    if not isinstance(name, ast.Name) or not is_list:
        return False
    tree = conversion.facts.tree(statement)
    named = (n for n in walk(tree.function(statement)).of(ast.Name) if n.id == name.id)
    above = ((node, tree.parents[node]) for node in named if node.lineno > statement.lineno)
    return any(
        (isinstance(parent, ast.Subscript) and parent.value is node and not isinstance(parent.ctx, ast.Load))
        or (isinstance(parent, ast.Attribute) and parent.attr in _OF_LISTS)
        or isinstance(parent, (ast.AugAssign, ast.BinOp))
        for node, parent in above
    )


def _is_thrown_away(conversion: Conversion, statement: ast.stmt, gone: set[ast.Call]) -> bool:
    """`_ = model.to(device)`, where nothing reads that."""
    if not isinstance(statement, ast.Assign) or ast.unparse(statement.targets[0]) != "_" or len(statement.targets) > 1:
        return False
    named = (node for node in conversion.facts.tree(statement).nodes if isinstance(node, ast.Name) and node.id == "_")
    is_read = any(isinstance(node.ctx, ast.Load) for node in named)
    return not is_read and isinstance(without(statement.value, gone), (ast.Name, ast.Attribute))


def _putting_back(conversion: Conversion, statement: ast.stmt, gone: set[ast.Call]) -> ast.For | None:
    """`for k, v in batch.items(): batch[k] = v.to(device)`: the loop, where all it does without the calls is that."""
    tree = conversion.facts.tree(statement)
    loop = tree.parents[statement]
    if not isinstance(loop, ast.For) or loop.orelse or len(loop.body) > 1 or not isinstance(statement, ast.Assign):
        return None
    own = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    behind = (node for node in ast.walk(tree.function(loop)) if isinstance(node, ast.Name) and node.id in own)
    if any(node.lineno > (loop.end_lineno or 0) for node in behind):
        return None
    batch, _, asked = ast.unparse(loop.iter).rpartition(".")
    key, _, item = ast.unparse(loop.target).strip("()").partition(", ")
    put = ast.unparse(statement.targets[0]), ast.unparse(without(statement.value, gone))
    if asked == "items()":
        return loop if item and put == (f"{batch}[{key}]", item) else None
    batch = batch if asked == "keys()" else ast.unparse(loop.iter)
    return loop if not item and put == (f"{batch}[{key}]",) * 2 else None


def _identity(statement: ast.stmt, gone: set[ast.Call]) -> str | None:
    """`a, b = [t.to(device) for t in batch]` is `a, b = batch`: what a comprehension that only moved gives way to."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        return None
    if not isinstance(statement.value, (ast.ListComp, ast.GeneratorExp, ast.Call)):
        return None
    rest = without(statement.value, gone)
    is_name = isinstance(rest, (ast.Name, ast.Attribute)) and not isinstance(statement.value, ast.Attribute)
    is_whole = not (isinstance(statement.value, ast.Call) and statement.value in gone)
    return ast.unparse(rest) if is_name and is_whole else None


def without(node: ast.expr, gone: set[ast.Call]) -> ast.expr:
    """A copy of an expression in which the calls have given way and what became an identity is simplified."""
    places = {(call.lineno, call.col_offset, call.end_lineno, call.end_col_offset) for call in gone}
    result = _Without(lambda call: (call.lineno, call.col_offset, call.end_lineno, call.end_col_offset) in places)
    made = result.visit(copy.deepcopy(node))
    assert isinstance(made, ast.expr)
    return made


class _Without(ast.NodeTransformer):
    def __init__(self, is_gone: Callable[[ast.Call], bool]) -> None:
        self._is_gone = is_gone

    def visit_Call(self, node: ast.Call) -> ast.AST:
        gone = self._is_gone(node)
        self.generic_visit(node)
        if gone:
            is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _MOVING
            return node.func.value if is_method and isinstance(node.func, ast.Attribute) else node.args[0]
        if isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list", "dict") and len(node.args) == 1:
            inner = node.args[0]
            if isinstance(inner, (ast.Name, ast.Attribute)) and not node.keywords:
                return inner  # tuple(t for t in batch) is batch, as far as unpacking it goes
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return node.body if ast.unparse(node.body) == ast.unparse(node.orelse) else node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._identity(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._identity(node)

    def _identity(self, node: ast.ListComp | ast.GeneratorExp) -> ast.AST:
        self.generic_visit(node)
        one = node.generators[0]
        is_same = len(node.generators) == 1 and not one.ifs and ast.unparse(node.elt) == ast.unparse(one.target)
        return one.iter if is_same else node

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        self.generic_visit(node)
        one = node.generators[0]
        pair = ast.unparse(ast.Tuple([node.key, node.value], ast.Load()))
        items = one.iter
        if len(node.generators) == 1 and not one.ifs and pair.strip("()") == ast.unparse(one.target).strip("()"):
            if isinstance(items, ast.Call) and isinstance(items.func, ast.Attribute) and items.func.attr == "items":
                return items.func.value
        return node


def _fold_choices(draft: Draft, statement: ast.stmt, gone: set[ast.Call]) -> None:
    """`x.cuda() if cuda else x` is `x`, wherever in the statement it stands."""
    for node in ast.walk(statement):
        if isinstance(node, ast.IfExp) and any(inner in gone for inner in ast.walk(node.body)):
            if ast.unparse(without(node, gone)) == ast.unparse(node.orelse):
                draft.rewrite(node, ast.unparse(node.orelse))


def kept_moves(conversion: Conversion) -> list[Move]:
    """Moves that stay, to the accelerator's device."""
    return [move for move in conversion.moves if move.fate is Fate.ELSEWHERE]
