"""What an expression is where one process runs the program.

There the number of processes is one, and what asks for several does not hold. Which process this is stays a question:
it becomes one to the accelerator, for which `ACCELERATOR` stands until it has a name.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.given import asks_for_none, numbering
from migrate.alone.missing import Attributes
from migrate.alone.quantities import RANKS, SIZES, Quantities
from migrate.alone.questions import Questions
from migrate.alone.sides import sides
from migrate.alone.ways import certain, ends, joined
from migrate.analysis.known import distributed
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_docstring, is_none, walk
from migrate.analysis.texts import text_of
from migrate.analysis.units import Function
from migrate.programs.marker import ACCELERATOR
from migrate.programs.processes.branches import Branches, Side
from migrate.programs.reach.unused import Unused
from migrate.programs.values.place import Places, Quantity, number
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.alone.bystanders import Bystanders
    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Module

#: What a test for a process asks the accelerator.
_PROCESS = {
    Side.MAIN: f"{ACCELERATOR}.is_main_process",
    Side.OTHERS: f"not {ACCELERATOR}.is_main_process",
    Side.LOCAL_MAIN: f"{ACCELERATOR}.is_local_main_process",
    Side.LOCAL_OTHERS: f"not {ACCELERATOR}.is_local_main_process",
}
#: What a number of the place is of the accelerator.
VALUES = {
    Quantity.RANK: f"{ACCELERATOR}.process_index",
    Quantity.LOCAL_RANK: f"{ACCELERATOR}.local_process_index",
    Quantity.WORLD_SIZE: f"{ACCELERATOR}.num_processes",
}
_STARTING = distributed.PROCESS_GROUPS | distributed.LAUNCHERS
WRAPPERS = distributed.DISTRIBUTED_DATA_PARALLEL


class World:
    """The answers for one project."""

    def __init__(self, facts: Facts, modules: tuple[Module, ...], beside: Bystanders | None = None) -> None:
        self.facts = facts
        self.modules = modules
        self.beside = beside
        self.sources = facts.once(Sources)
        self._branches = facts.once(Branches)
        self.places = Places(facts, self.sources)
        self._quantities = Quantities(facts, modules, self.places, self.sources)
        self._asked_of: list[Function] = []
        self._answers: dict[Function, bool | None] = {}  # to the questions inside of one question
        self._flags: dict[str, bool] = {}
        self._attributes = Attributes(self)
        self._sides = sides(facts, modules)
        self.kept: set[ast.expr] = set()  # tests of branches that stay, whatever they ask
        self._learn_flags()
        self.questions = Questions(self)

    def is_left(self, node: ast.AST) -> bool:
        """Whether code stays: nothing uses it, or scripts beside the programs run it in processes of their own."""
        if self.facts.once(Unused).holds(node):
            return True
        return self.beside is not None and self.beside.holds(self.facts, node)

    def keep(self, tests: set[ast.expr]) -> None:
        """Leave branches open, since what is in them is done on several processes."""
        self.kept |= tests
        self.__dict__.pop("dead", None)

    # --- tests ------------------------------------------------------------------------------------------------------

    def truth(self, test: ast.expr) -> bool | None:
        """What a test says where there is one process; None: it may say either."""
        if test in self.kept:
            return None
        if isinstance(test, ast.Constant) and isinstance(test.value, bool):
            return test.value
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            return joined(test, self.truth)
        if self._starts(test) or self._attributes.is_missing(test):
            return False
        if isinstance(test, ast.Attribute) and test.attr in self._flags and not self.facts.names(test):
            return self._flags[test.attr]
        if isinstance(test, ast.Compare) and ast.unparse(test) in self._sides:
            return self._sides[ast.unparse(test)]
        for meaning in self._branches.meanings(test):
            if meaning.holds is Side.SEVERAL or meaning.fails is Side.ONE:
                return False
            if meaning.holds is Side.ONE or meaning.fails is Side.SEVERAL:
                return True
        if isinstance(test, ast.Call):
            return self._answer(test)
        return self._compared(test)

    def truth_alone(self, test: ast.expr) -> bool | None:
        """The same, also of a test whose branch stays."""
        kept, self.kept = self.kept, set()
        truth = self.truth(test)
        self.kept = kept
        return truth

    def _answer(self, call: ast.Call) -> bool | None:
        """What a function of the project says, such as `is_dist_avail_and_initialized()`."""
        targets = self.facts.targets(call)
        if len(targets) != 1 or isinstance(targets[0].node, ast.Lambda) or targets[0] in self._asked_of:
            return None
        if not self._asked_of:
            self._answers.clear()  # more is known now
        if targets[0] not in self._answers:
            self._asked_of.append(targets[0])
            said, ends = self._said(targets[0].node.body)
            self._asked_of.pop()
            self._answers[targets[0]] = said.pop() if len(said) == 1 and ends else None
        return self._answers[targets[0]]

    def _said(self, block: list[ast.stmt]) -> tuple[set[bool | None], bool]:
        """What a block may return, None for something else than one of both; whether it always returns."""
        said: set[bool | None] = set()
        for statement in block:
            if isinstance(statement, ast.Return):
                said.add(self.truth(statement.value) if statement.value is not None else None)
                return said, True
            if isinstance(statement, ast.If):
                truth = self.truth(statement.test)
                bodies = ((True, statement.body), (False, statement.orelse))
                ways = [self._said(body) for way, body in bodies if truth is None or truth is way]
                said.update(*(inner for inner, _ in ways))
                if all(ends for _, ends in ways):
                    return said, True
            elif not isinstance(statement, ast.Pass) and not is_docstring(statement):
                said.add(None)
        return said, False

    def _compared(self, test: ast.expr) -> bool | None:
        """`world_size == 4`: decided by the number itself."""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return None
        value = number(test.comparators[0])
        kind = self.quantity(test.left)
        if kind in RANKS and asks_for_none(test):
            return None if numbering(self, test) else isinstance(test.ops[0], ast.Is) is self._is_optional(test.left)
        if kind is not Quantity.WORLD_SIZE or not isinstance(value, int):
            return None
        answers = {ast.Eq: value == 1, ast.NotEq: value != 1, ast.Lt: value > 1, ast.LtE: value >= 1}
        answers |= {ast.Gt: value < 1, ast.GtE: value <= 1}
        return answers.get(type(test.ops[0]))

    def _is_optional(self, node: ast.expr, depth: int = 4) -> bool:
        """Whether a rank is an option of the command line, too: left out where there is one process."""
        option = self.sources.option(node)
        if option is not None:
            return not any(k.arg == "default" and not is_none(k.value) for k in option.keywords)
        return depth > 0 and any(self._is_optional(e, depth - 1) for e in self.sources.given(node).expressions)

    def process(self, test: ast.expr) -> str | None:
        """The question to the accelerator that a test for a process is."""
        if isinstance(test, (ast.BoolOp, ast.Constant)):
            return None
        if isinstance(test, (ast.Name, ast.Attribute)) and self.quantity(test) in RANKS:
            return None  # a number, unless it is asked for its truth
        found = [m for m in self._branches.meanings(test) if m.holds in _PROCESS and m.fails in _PROCESS]
        if len(found) == 1 and found[0].holds is not None:
            return self._asked(found[0].holds)
        return self._compared_attribute(test)

    def _compared_attribute(self, test: ast.expr) -> str | None:
        """`args.rank == 0`, where only `quantity` below knows what that is."""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or number(test.comparators[0]) != 0:
            return None
        kind = self.quantity(test.left)
        if kind is None or kind not in RANKS or not isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.Gt)):
            return None
        return self.first(kind) if isinstance(test.ops[0], ast.Eq) else f"not {self.first(kind)}"

    def first(self, kind: Quantity) -> str:
        """What to ask the accelerator instead of whether a rank is 0."""
        return self._asked(Side.MAIN if kind is Quantity.RANK else Side.LOCAL_MAIN)

    def _asked(self, side: Side) -> str:
        text = _PROCESS[side]
        return text.replace("is_local_main", "is_main") if self.is_one_machine else text

    def value(self, kind: Quantity) -> str:
        """What to ask the accelerator for a number."""
        return VALUES[Quantity.RANK if self.is_one_machine and kind in RANKS else kind]

    @cached_property
    def is_one_machine(self) -> bool:
        """Whether the program starts its processes itself, and each joins with the rank that it was started with."""
        calls = [use.node for use in self.facts.calls_anywhere if use.unit.module in self.modules]
        if not any(self.facts.called(call) & distributed.LAUNCHERS for call in calls):
            return False
        joined = [call for call in calls if self.facts.called(call) & distributed.PROCESS_GROUPS]
        ranks = [k.value for call in joined for k in call.keywords if k.arg == "rank"]
        return bool(ranks) and all(isinstance(rank, ast.Name) for rank in ranks)

    @cached_property
    def _starting(self) -> frozenset[str]:
        """The tests under which, and only under which, the program starts processes or joins a group."""
        found: set[str] = set()
        for use in self.facts.calls_anywhere:
            if self.facts.called(use.node) & _STARTING:
                found.update(self._asked_above(use.node))
                entering = [*self._entering(use)]
                asked = [{*self._asked_above(call)} for call in entering]
                found.update(*asked if all(asked) else ())
        found |= {ast.unparse(branch.test) for branch in self._joining_otherwise()}
        return frozenset(found)

    @cached_property
    def _starting_flags(self) -> dict[str, list[ast.Attribute]]:
        """Where such tests are read that are attributes, by their name."""
        found: dict[str, list[ast.Attribute]] = {}
        for module in self.modules:
            for node in self.facts.tree(module.tree).nodes:
                if isinstance(node, ast.Attribute) and text_of(node) in self._starting:
                    found.setdefault(node.attr, []).append(node)
        return found

    def _asked_above(self, node: ast.AST) -> Iterator[str]:
        """The tests about several processes in whose branches something stands."""
        for above in self.facts.tree(node).up(node):
            if isinstance(above, ast.If) and any(node in ast.walk(s) for s in above.body):
                if isinstance(above.test, (ast.Attribute, ast.Compare)) and self._is_about_place(above.test):
                    yield ast.unparse(above.test)

    def _entering(self, use: Use) -> Iterator[ast.Call]:
        """The calls of a function that joins whenever it is called: `if args.distributed: groups.join(args)`."""
        facts, unit = self.facts, use.unit
        if not isinstance(unit, Function) or not facts.callers_known(unit):
            return
        around = facts.tree(use.node).statement(use.node)
        if any(around is statement for statement in getattr(unit.node, "body", ())):
            yield from (call.node for call in facts.callers(unit))

    def _joining_otherwise(self) -> Iterator[ast.If]:
        """`if args.on_cluster: args.rank = int(os.environ["..._RANK"])`, else as a launcher says."""
        for module in self.modules:
            for node in self.facts.tree(module.tree).nodes:
                if not isinstance(node, ast.If) or not isinstance(node.test, ast.Attribute) or len(node.orelse) != 1:
                    continue
                other = node.orelse[0]
                meanings = self._branches.meanings(other.test) if isinstance(other, ast.If) else ()
                read = (self.places.variable(n) for s in node.body for n in ast.walk(s) if isinstance(n, ast.expr))
                if any(m.holds is Side.SEVERAL for m in meanings):
                    if any(distributed.ENVIRONMENT.get(name) is Role.RANK for name in read if name is not None):
                        yield node

    def _is_about_place(self, test: ast.expr) -> bool:
        """`args.distributed`, `h.num_gpus > 1`; not `__name__ == "__main__"`, not what another flag asks."""
        if isinstance(test, ast.Attribute):
            return True
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Gt):
            return False
        return isinstance(test.left, ast.Attribute) and number(test.comparators[0]) == 1

    def _starts(self, test: ast.expr) -> bool:
        if not isinstance(test, (ast.Attribute, ast.Compare)):
            return False
        return text_of(test) in self._starting or (isinstance(test, ast.Attribute) and self._is_same_flag(test))

    def _is_same_flag(self, test: ast.Attribute) -> bool:
        """`self.args.distributed` beside `args.distributed`: the attribute of one object."""
        given = self.facts.values(test.value) if test.attr in self._starting_flags else frozenset()
        return any(given & self.facts.values(flag.value) for flag in self._starting_flags.get(test.attr, ()))

    def _learn_flags(self) -> None:
        """`args.distributed = False` where there is one process, and True only where there are several."""
        for _ in range(3):
            self.__dict__.pop("dead", None)
            given: dict[str, set[str]] = {}
            gone: set[str] = set()
            for target, value in self.assigned_attributes():
                if id(target) in self.dead:
                    gone.add(target.attr)
                else:
                    given.setdefault(target.attr, set()).add(ast.unparse(value) if value is not None else "")
            flags = {a: v == {"True"} for a, v in given.items() if a in gone and v in ({"True"}, {"False"})}
            if flags == self._flags:
                return
            self._flags = flags

    # --- numbers ----------------------------------------------------------------------------------------------------

    def quantity(self, node: ast.expr) -> Quantity | None:
        """Which number of the place an expression is: a rank, or how many processes there are."""
        return self._quantities.of(node)

    def is_given_by_launcher(self, node: ast.expr) -> bool:
        """Whether an expression is read from the environment, or from the group, as a number of the place."""
        return self.places.quantity(node) is not None

    def is_size(self, node: ast.expr) -> bool:
        """Whether an expression is the number of processes, or of the GPUs that each get one."""
        return self.quantity(node) in SIZES

    def gives_place(self, attribute: str) -> bool:
        """Whether attributes of this name hold a number of the place."""
        return attribute in self._quantities.of_attributes

    def assigned_attributes(self) -> Iterator[tuple[ast.Attribute, ast.expr | None]]:
        """Every attribute that is given something, and what, where that is one expression."""
        return self._quantities.assigned_attributes()

    def is_flag(self, target: ast.Attribute) -> bool:
        """Whether an attribute says whether there are several processes."""
        for module in self.modules:
            for node in self.facts.tree(module.tree).nodes:
                if isinstance(node, ast.Attribute) and node.attr == target.attr and isinstance(node.ctx, ast.Load):
                    if not self.facts.names(node) and self.truth_alone(node) is None:
                        return False
        return True

    def is_handed(self, node: ast.expr) -> bool:
        """Whether a name is only handed to a function, whose parameter says more."""
        return isinstance(self.facts.tree(node).parents[node], (ast.Call, ast.keyword))

    # --- code that goes away ----------------------------------------------------------------------------------------

    @cached_property
    def dead(self) -> set[int]:
        """The nodes, by identity, of what never runs where there is one process."""
        found = {id(inner) for unused in self.facts.once(Unused).nodes for inner in walk(unused)}
        for module in self.modules:
            for node in self.facts.tree(module.tree).nodes:
                lost: Iterable[ast.AST] = ()
                if isinstance(node, ast.If) and (kept := certain(self, node)) is not None:
                    lost = [*(node.orelse if kept is node.body else node.body), *self._skipped(node, kept)]
                elif isinstance(node, ast.IfExp) and (truth := self.truth(node.test)) is not None:
                    lost = [node.orelse if truth else node.body]
                found.update(id(inner) for part in lost for inner in walk(part))
        return self._with_only_called(found) if found else found

    def _with_only_called(self, dead: set[int]) -> set[int]:
        """That, with functions that only such code calls: `create_sampler()` under `if args.distributed:`."""
        functions = (unit for unit in self.facts.functions if unit.module in self.modules and unit.owner is None)
        called = {unit: calls for unit in functions if (calls := self.facts.callers(unit))}
        found = set(dead)
        while lost := [
            unit
            for unit, calls in called.items()
            if all(id(call.node) in found for call in calls) and self.facts.callers_known(unit)
        ]:
            for unit in lost:
                del called[unit]
                found.update(map(id, ast.walk(unit.node)))
        return found

    def _skipped(self, node: ast.If, kept: list[ast.stmt]) -> list[ast.stmt]:
        """What comes after a decided branch that leaves; an `elif` leaves for the whole."""
        if not ends(self, kept):
            return []
        tree = self.facts.tree(node)
        block = tree.block(node)
        above = tree.parents[node]
        while isinstance(above, ast.If) and above.orelse == [node] and certain(self, above) == [node]:
            node, block, above = above, tree.block(above), tree.parents[above]
        return block[block.index(node) + 1 :]

    # --- models -----------------------------------------------------------------------------------------------------

    @cached_property
    def _wrapped(self) -> set[ast.AST]:
        """Where the models were made that the program wraps for several processes."""
        found: set[ast.AST] = set()
        for use in self.facts.calls_anywhere:
            if self.facts.called(use.node) & WRAPPERS:
                found |= origins(self.facts.values(use.node), Role.MODEL)
        return found

    def is_wrapped(self, node: ast.expr) -> bool:
        """Whether a model is one of those."""
        return bool(origins(self.facts.values(node), Role.MODEL) & self._wrapped)
