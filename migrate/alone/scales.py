"""Numbers that go by how many processes there are: a learning rate, micro-steps, the length of a schedule, a seed.

On N processes the converted program must count as the original did on N, so they stay, and ask the accelerator. Only
what the accelerator does itself goes: dividing the size of the batches, and taking the mean of what was summed up.
"""

from __future__ import annotations

import ast
from functools import cached_property
from textwrap import indent
from typing import TYPE_CHECKING

from migrate.alone.calls import GATHERS, SAME, TO_ONE
from migrate.alone.other_shares import other_shares
from migrate.alone.quantities import RANKS
from migrate.alone.told import alike, told
from migrate.alone.ways import gone
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import argument_at, walk
from migrate.analysis.units import Function
from migrate.programs.marker import ACCELERATOR
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.sums import Sums
    from migrate.alone.world import World

LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
BATCHED = frozenset({"torch.utils.data.BatchSampler", "torch.utils.data.sampler.BatchSampler"})
_SIZE, _WORKERS = ("batch_size", 1), ("num_workers", 5)
#: What of a loader the accelerator shares out, or each process has for itself: keyword and position.
_SHARED = {**dict.fromkeys(LOADERS, (_SIZE, _WORKERS)), **dict.fromkeys(BATCHED, (_SIZE,))}
_SEVERAL = f"{ACCELERATOR}.num_processes > 1"
_ARITHMETIC = (ast.Mult, ast.Div, ast.FloorDiv, ast.Add)
_DEEPEST = 6


class Scales:
    """What becomes of these numbers in the modules of a project."""

    def __init__(self, world: World, sums: Sums) -> None:
        self._world = world
        self._sums = sums

    # --- divisions --------------------------------------------------------------------------------------------------

    def goes(self, quotient: ast.expr, divided: ast.expr) -> bool:
        """Whether a division by the number of processes goes away: of a batch, or of what all have summed up."""
        return quotient in self.shared or self.is_reduced(divided)

    @cached_property
    def shared(self) -> set[ast.expr]:
        """The expressions that batch sizes, and numbers of workers, are made of."""
        return self._made_of((_SIZE, _WORKERS))

    @cached_property
    def batch_sizes(self) -> set[ast.expr]:
        """The expressions that the sizes of batches are made of."""
        return self._made_of((_SIZE,))

    @cached_property
    def workers(self) -> set[ast.expr]:
        """The expressions that numbers of workers are made of."""
        return self._made_of((_WORKERS,))

    def _made_of(self, asked: tuple[tuple[str, int], ...]) -> set[ast.expr]:
        found: set[ast.expr] = set()
        for use in self._world.facts.calls_anywhere:
            for name in self._world.facts.called(use.node) & _SHARED.keys():
                for keyword, position in _SHARED[name] if use.unit.module in self._world.modules else ():
                    if (keyword, position) in asked:
                        for given in self._arguments(use.node, keyword, position):
                            self._follow(given, found, _DEEPEST)
        return found

    def _arguments(self, call: ast.Call, name: str, position: int) -> list[ast.expr]:
        """What a call is given for a parameter, also by `**options` of a dictionary that is written out."""
        if (given := argument_at(call, position, name)) is not None:
            return [given]
        spread = [k.value for k in call.keywords if k.arg is None]
        made = [e for value in spread for e in (value, *self._world.sources.given(value).expressions)]
        return [item for each in made for item in _items(each, name)]

    def _follow(self, node: ast.expr | None, found: set[ast.expr], depth: int) -> None:
        if node is None or depth == 0 or node in found:
            return
        found.add(node)
        if isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, ast.BinOp):
            parts = [node.left]
        else:
            parts = list(self._world.sources.given(node).expressions)
            if isinstance(node, ast.Call) and self._world.facts.called(node) & {"builtins.int", "builtins.max"}:
                parts += node.args
        if isinstance(node, ast.Attribute):
            parts += [
                v for target, v in self._world.assigned_attributes() if target.attr == node.attr and v is not None
            ]
        for part in parts:
            self._follow(part, found, depth if isinstance(node, ast.BinOp) else depth - 1)

    def is_reduced(self, node: ast.expr, depth: int = 3) -> bool:
        """Whether a value is what all processes have summed up or gathered, and no longer do."""
        if self._sums.stay:
            return False
        inner = [n for n in walk(node) if isinstance(n, ast.expr)]
        if any(isinstance(n, ast.Call) and self._reduces(n) for n in inner):
            return True
        unit = self._world.facts.tree(node).function(node)
        if self._sums.is_summed(node, unit):
            return False
        if self._texts(node) & self._reduced_in(unit):
            return True
        names = [n for n in inner if isinstance(n, ast.Name)] if depth else []
        return any(
            self.is_reduced(part, depth - 1)
            for name in names
            for part in self._world.sources.given(name).expressions
            if part is not node
        )

    def divides_sum(self, divisor: ast.expr) -> bool:
        """Whether a number divides what processes go on summing up."""
        tree = self._world.facts.tree(divisor)
        match tree.parents.get(divisor):
            case (
                ast.BinOp(op=ast.Div(), left=divided, right=by) | ast.AugAssign(op=ast.Div(), target=divided, value=by)
            ):
                return by is divisor and self._sums.is_summed(divided, tree.function(divisor))
        return False

    def _reduces(self, call: ast.Call) -> bool:
        return any(target in self._reducing for target in self._world.facts.targets(call))

    @cached_property
    def _reducing(self) -> set[Function]:
        """The functions in which, or in what they call, processes talk."""
        waiting = [
            use.unit
            for use in self._world.facts.calls_anywhere
            if isinstance(use.unit, Function) and self._talks(use.node)
        ]
        found: set[Function] = set()
        while waiting:
            unit = waiting.pop()
            returns = any(isinstance(n, ast.Return) and n.value is not None for n in self._world.facts.own(unit))
            if unit not in found and returns:
                found.add(unit)
                waiting += [c.caller for c in self._world.facts.callers(unit) if isinstance(c.caller, Function)]
        return found

    def _reduced_in(self, unit: ast.AST) -> set[str]:
        found: set[str] = set()
        for node in walk(unit):  # a name in a function of its own is another one
            if isinstance(node, ast.Call) and self._talks(node) and self._world.facts.tree(node).function(node) is unit:
                for given in (*node.args[:2], *(k.value for k in node.keywords)):
                    found |= self._texts(given.body if isinstance(given, ast.IfExp) else given)
        return found

    def _talks(self, call: ast.Call) -> bool:
        """Whether processes tell each other something here, and do so no longer."""
        return bool(self._world.facts.called(call) & (SAME | GATHERS | TO_ONE)) and not self._sums.stays(call)

    def _texts(self, node: ast.AST) -> set[str]:
        """The names and attributes in an expression; not `self` or `args`, which hold other things, too."""
        facts = self._world.facts
        return {
            ast.unparse(n)
            for n in walk(node)
            if isinstance(n, (ast.Name, ast.Attribute)) and Role.HOLDER not in roles(facts.values(n))
        } - {"self"}

    # --- branches that go away --------------------------------------------------------------------------------------

    def kept(self, branch: ast.If) -> list[str]:
        """What of a branch on several processes stays, as the accelerator is asked for it."""
        return [self._text(statement) for statement in self._staying(branch)]

    def instead(self, statement: ast.stmt) -> ast.expr | None:
        """What a statement of the branch that stays gives, where the other said the same with a number in it."""
        tree = self._world.facts.tree(statement)
        above = tree.parents[statement]
        if not isinstance(statement, ast.Assign) or not isinstance(above, ast.If):
            return None
        for other in gone(self._world, above):
            if isinstance(other, ast.Assign) and _target(other) == _target(statement) and self._counts(other):
                if alike(self._world, other.value, statement.value):
                    return other.value
        return None

    def chosen(self, node: ast.IfExp) -> str | None:
        """What `a * n if distributed else a` becomes; None: one of both is enough."""
        truth = self._world.truth(node.test)
        if truth is None:
            return None
        lost, stays = (node.orelse, node.body) if truth else (node.body, node.orelse)
        if not self._is_number(lost) or lost in self.shared or self.is_reduced(lost):
            return None
        if self._world.quantity(node) is not None or alike(self._world, lost, stays) is None:
            return None
        if alike(self._world, lost, stays):
            return told(self._world, lost)
        return f"{told(self._world, lost)} if {_SEVERAL} else {ast.unparse(stays)}"

    def obstacles(self) -> Iterator[Refusal]:
        """Numbers that would be lost with their branch, where nothing short would keep them."""
        for module in self._world.modules:
            for node in self._world.facts.tree(module.tree).nodes:
                if isinstance(node, ast.If) and id(node) not in self._world.dead:
                    yield from self._unkept(node)
        yield from other_shares(self._world, self.batch_sizes)

    def _unkept(self, branch: ast.If) -> Iterator[Refusal]:
        lost = gone(self._world, branch)
        stays = set(self._staying(branch))
        is_elif = _is_elif(self._world, branch)
        for statement in (inner for outer in lost for inner in walk(outer)):
            if not isinstance(statement, ast.stmt) or not self._counts(statement):
                continue
            if statement in stays and not is_elif:
                continue
            if self._has_its_like(statement, branch) or isinstance(statement, ast.Assert):
                continue
            yield _refused(statement)

    def _has_its_like(self, statement: ast.stmt, branch: ast.If) -> bool:
        other = branch.orelse if statement in branch.body else branch.body
        return any(_target(s) == _target(statement) and self.instead(s) is not None for s in other)

    def _staying(self, branch: ast.If) -> list[ast.stmt]:
        lost = gone(self._world, branch)
        other = branch.orelse if lost and lost[0] in branch.body else branch.body
        given = {_target(inner) for statement in other for inner in walk(statement)} - {""}
        found = [s for s in lost if self._counts(s) and not isinstance(s, ast.Return) and _target(s) not in given]
        names = {_target(s) for s in found}
        asserted = [
            s
            for s in lost
            if isinstance(s, ast.Assert)
            and any(self._world.is_size(n) for n in walk(s.test) if isinstance(n, ast.expr))
            and any(ast.unparse(n) in names for n in walk(s.test) if isinstance(n, (ast.Name, ast.Attribute)))
        ]
        return [s for s in lost if s in found or s in asserted]

    def _text(self, statement: ast.stmt) -> str:
        text = told(self._world, statement, comments=True)
        if isinstance(statement, ast.Assert) or _is_same_alone(self._world, statement):
            return text
        return f"if {_SEVERAL}:\n" + indent(text, "    ")

    def _counts(self, statement: ast.stmt) -> bool:
        """Whether a statement gives something that lives on a value that goes by the number of processes."""
        if isinstance(statement, ast.Return):
            return self._is_answer(statement)
        if isinstance(statement, ast.Expr):
            return self._seeds(statement.value)
        if not isinstance(statement, (ast.Assign, ast.AugAssign)) or not (target := _target(statement)):
            return False
        if isinstance(statement, ast.AugAssign):
            is_number = isinstance(statement.op, _ARITHMETIC) and self._is_place(statement.value)
            node: ast.expr = statement.target
        else:
            is_number, node = self._is_number(statement.value), statement.targets[0]
        if not is_number or not self._lives(node, target):
            return False
        value = statement.value
        if isinstance(statement, ast.AugAssign):
            return not self.is_shared(target) and not self.is_reduced(node)
        return value not in self.shared and not self.is_shared(target) and not self.is_reduced(value)

    def _is_answer(self, statement: ast.Return) -> bool:
        unit = self._world.facts.unit(statement)
        if statement.value is None or unit in self._reducing or not self._is_number(statement.value):
            return False
        return self._world.quantity(statement.value) is None

    def _seeds(self, node: ast.expr) -> bool:
        """`torch.manual_seed(seed + rank)`."""
        if not isinstance(node, ast.Call) or "seed" not in ast.unparse(node.func).rpartition(".")[2]:
            return False
        return any(self._is_number(given) for given in node.args)

    def _is_number(self, node: ast.expr) -> bool:
        """Whether an expression is computed from a number of the place."""
        if self._world.quantity(node) is not None:
            return False
        return any(
            isinstance(n, ast.BinOp)
            and isinstance(n.op, _ARITHMETIC)
            and (self._is_place(n.left) or self._is_place(n.right))
            for n in walk(node)
        )

    def _is_place(self, node: ast.expr) -> bool:
        return any(
            self._world.is_size(n) or self._world.quantity(n) in RANKS
            for n in ([node, *node.args] if isinstance(node, ast.Call) else [node])
        )

    def is_shared(self, target: str) -> bool:
        """Whether the size of a batch, or a number of workers, has this name."""
        return any(ast.unparse(n) == target for n in self.shared if isinstance(n, (ast.Name, ast.Attribute)))

    def _lives(self, node: ast.expr, target: str) -> bool:
        """Whether what stays reads a name or attribute, and not as a number of the place."""
        world = self._world
        if isinstance(node, ast.Attribute):
            roots = [module.tree for module in world.modules]
            return not world.gives_place(node.attr) and any(
                isinstance(n, ast.Attribute) and n.attr == node.attr and isinstance(n.ctx, ast.Load)
                for root in roots
                for n in world.facts.tree(root).nodes
                if id(n) not in world.dead
            )
        function = world.facts.tree(node).function(node)
        reads = [
            n
            for n in walk(function)
            if isinstance(n, ast.Name) and n.id == target and isinstance(n.ctx, ast.Load) and id(n) not in world.dead
        ]
        return any(world.quantity(n) is None for n in reads)


def _is_elif(world: World, branch: ast.If) -> bool:
    above = world.facts.tree(branch).parents[branch]
    return isinstance(above, ast.If) and above.orelse == [branch]


def _is_same_alone(world: World, statement: ast.stmt) -> bool:
    """Whether a statement changes nothing where there is one process."""
    if isinstance(statement, ast.AugAssign):
        if isinstance(statement.op, (ast.Mult, ast.FloorDiv)):
            return world.is_size(statement.value)
        return isinstance(statement.op, ast.Add) and world.quantity(statement.value) in RANKS
    if isinstance(statement, ast.Assign):
        return bool(alike(world, statement.value, statement.targets[0]))
    return False


def _target(statement: ast.AST) -> str:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        node = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        node = statement.target
    else:
        return ""
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _items(node: ast.expr, key: str) -> list[ast.expr]:
    """What `dict(key=x)`, or `{"key": x}`, holds under a key."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict":
        return [keyword.value for keyword in node.keywords if keyword.arg == key]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [value for asked, value in pairs if isinstance(asked, ast.Constant) and asked.value == key]
    return []


def _refused(statement: ast.stmt) -> Refusal:
    said = _target(statement) or ast.unparse(statement)
    why = f"{said} goes by the number of processes, in a branch that goes away"
    return Refusal(statement, "MIG113", why, "compute it outside of the branch, as it is for one process, too")
