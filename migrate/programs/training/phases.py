"""Loops that train and evaluate by turns: `for phase in ["train", "val"]`, `def run(loader, train=True)`.

A loop is mixed if each backward that it reaches stands under a test that does not always hold, and the test asks for a
flag: a name or attribute that the loop itself, and what it computes, do not change. For the flag it is told which of
its values make the loop train, and which do not, as far as they are seen.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from migrate.analysis.syntax import FUNCTIONS, walk, writes
from migrate.analysis.units import Function
from migrate.programs.training.flag_tests import Other, implied, subjects, truth
from migrate.programs.training.pairs import dealt
from migrate.programs.values.sources import Given, Sources, may_pass, passed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop
    from migrate.analysis.units import Call, Unit
    from migrate.programs.loops import LoopFact


class Phase(str, Enum):
    """What a loop with a backward does."""

    TRAINING = "training"
    MIXED = "training or evaluation"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Flag:
    """What a loop trains by: the test, what it asks for, and the values that make it hold or fail."""

    test: ast.expr
    subject: ast.expr
    holds_means_training: bool
    trains: tuple[object, ...]
    evaluates: tuple[object, ...]
    complete: bool  # no other values are possible

    @property
    def asks(self) -> tuple[str, bool]:
        """The test as it is written, and whether it must hold."""
        return ast.unparse(self.test), self.holds_means_training


@dataclass(frozen=True, slots=True)
class PhaseFact:
    """The phase of a loop, and the flag of a mixed one."""

    phase: Phase
    flag: Flag | None = None


@dataclass(frozen=True, slots=True)
class _Ways:
    """What the ways from a place up to a loop ask, all of them together."""

    first: tuple[Flag, ...]  # the flags on one of them
    common: frozenset[tuple[str, bool]]  # what each of them asks
    asked: frozenset[tuple[str, bool]]  # what any of them asks
    is_one_free: bool  # one of them has no flag on it

    @staticmethod
    def along(flags: Iterable[Flag]) -> _Ways:
        """One way with these flags."""
        first = tuple(flags)
        asked = frozenset(flag.asks for flag in first)
        return _Ways(first, asked, asked, not first)

    def below(self, flags: Iterable[Flag]) -> _Ways:
        """The same ways, and these flags below them."""
        way = _Ways.along(flags)
        is_one_free = way.is_one_free and self.is_one_free
        return _Ways((*way.first, *self.first), way.common | self.common, way.asked | self.asked, is_one_free)


def _all(ways: Iterable[_Ways | None]) -> _Ways | None:
    """Some ways and others; None: there are none."""
    there = [each for each in ways if each is not None]
    if not there:
        return None
    common = frozenset.intersection(*(each.common for each in there))
    asked = frozenset.union(*(each.asked for each in there))
    return _Ways(there[0].first, common, asked, any(each.is_one_free for each in there))


class _Reached:
    """The functions that loops come to, through the functions in between."""

    def __init__(self, facts: Facts) -> None:
        self._called: dict[Unit, list[Function]] = {}  # by who calls them
        self._begun: dict[Loop, list[Function]] = {}  # by the loops around their calls
        self._by: dict[Loop, set[Unit]] = {}
        for unit in facts.functions:
            for call in facts.callers(unit):
                self._called.setdefault(call.caller, []).append(unit)
                for loop in facts.tree(call.node).loops(call.node):
                    self._begun.setdefault(loop, []).append(unit)

    def by(self, loop: Loop) -> set[Unit]:
        """Those that one loop comes to."""
        if loop not in self._by:
            found = self._by[loop] = set()
            waiting = list(self._begun.get(loop, ()))
            while waiting:
                unit = waiting.pop()
                if unit not in found:
                    found.add(unit)
                    waiting += self._called.get(unit, ())
        return self._by[loop]


class Phases:
    """The phases of training loops."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sources = facts.once(Sources)
        self._constants: dict[tuple[ast.expr, int], list[object]] = {}

    def of(self, loop: LoopFact) -> PhaseFact:
        """What one loop does."""
        known: dict[ast.AST, _Ways | None] = {}
        units = ((call, self._facts.unit(call)) for call in loop.backwards)
        ways = _all(self._ways(loop.node, call, unit, frozenset(), known) for call, unit in units)
        if ways is None:
            return PhaseFact(Phase.UNKNOWN)
        if ways.is_one_free:
            return PhaseFact(Phase.TRAINING)
        common = [flag for flag in ways.first if flag.asks in ways.common]
        flag = next((flag for flag in common if flag.evaluates or (flag.trains and not flag.complete)), None)
        if flag is not None:
            return PhaseFact(Phase.MIXED, flag)
        if unknown := next((flag for flag in common if not flag.complete), None):
            return PhaseFact(Phase.UNKNOWN, unknown)
        is_either = any((text, not holds) in ways.asked for text, holds in ways.asked)
        return PhaseFact(Phase.TRAINING if common or is_either else Phase.UNKNOWN)

    def _ways(
        self, loop: Loop, node: ast.AST, unit: Unit, seen: frozenset[Unit], known: dict[ast.AST, _Ways | None]
    ) -> _Ways | None:
        """The flags on the ways from a backward up to the loop, through the functions in between; None: there are none.

        `known`: those from the calls that were looked at. How many ways there are doubles with each pair of functions.
        """
        if node not in known:
            known[node] = self._looked_at(loop, node, unit, seen, known)
        return known[node]

    def _looked_at(
        self, loop: Loop, node: ast.AST, unit: Unit, seen: frozenset[Unit], known: dict[ast.AST, _Ways | None]
    ) -> _Ways | None:
        here: list[Flag] = []
        below = node
        for above in self._facts.tree(node).up(node):
            if above is loop:
                return _Ways.along(here)
            if isinstance(above, FUNCTIONS):
                break
            if isinstance(above, (ast.If, ast.IfExp)) and below is not above.test:
                for test, holds in implied(above.test, holds=_is_in_body(above, below)):
                    flag = self._asked(loop, test, in_body=holds)
                    here += [flag] if flag is not None else []
            below = above
        if not isinstance(unit, Function) or unit in seen:
            return None
        found: list[_Ways | None] = []
        reached = self._facts.once(_Reached).by(loop)
        for call in self._facts.callers(unit):
            if call.caller in reached or loop in self._facts.tree(call.node).loops(call.node):
                asked = [*(self._told(loop, flag, call, unit) for flag in here), *self._chosen(loop, call.node, unit)]
                ways = self._ways(loop, call.node, call.caller, seen | {unit}, known)
                found.append(ways and ways.below(asked))
        return _all(found)

    def _told(self, loop: Loop, flag: Flag, call: Call, unit: Function) -> Flag:
        """A flag by what one call gives it, where it is a parameter of the function that this enters."""
        subject = flag.subject
        if not isinstance(subject, ast.Name) or self._facts.unit(subject) is not unit:
            return flag
        if subject.id not in unit.parameter_names or subject.id in writes(unit.node):
            return flag
        given = may_pass(call, unit, subject.id)
        told = [self.constants(each) for each in given]
        if told and all(told):
            return self._answered(flag, [value for values in told for value in values], complete=True)
        if flag.test is subject and len(given) == 1 and isinstance(given[0], ast.Compare):  # `phase == "train"`
            return self._asked(loop, given[0], in_body=flag.holds_means_training) or flag
        return flag

    def _answered(self, flag: Flag, values: list[object], *, complete: bool) -> Flag:
        """A flag with the values that make the loop train, and those that do not; as it was, if that is not known."""
        held = [truth(self.meant(flag.test), flag.subject, value) for value in values]
        if None in held:
            return flag
        pairs = list(zip(values, held, strict=True))
        trains = tuple(value for value, holds in pairs if holds is flag.holds_means_training)
        evaluates = tuple(value for value, holds in pairs if holds is not flag.holds_means_training)
        return replace(flag, trains=trains, evaluates=evaluates, complete=complete)

    def _chosen(self, loop: Loop, call: ast.Call, unit: Function) -> list[Flag]:
        """The flags by which a name got the function that is called by it: `step = self.train_step if train else ...`.

        There are none where it gets the function in several places.
        """
        given = self._sources.given(call.func) if isinstance(call.func, ast.Name) else None
        parts = [way for expression in given.expressions for way in ways(self._facts, expression)] if given else []
        leading = [way for way in parts if any(value.unit is unit for value in self._facts.values(way.part))]
        if given is None or not given.complete or len(leading) != 1 or (way := leading[0]).test is None:
            return []
        asked = (self._asked(loop, test, in_body=holds) for test, holds in implied(way.test, holds=way.is_in_body))
        return [flag for flag in asked if flag is not None]

    def _asked(self, loop: Loop, test: ast.expr, *, in_body: bool) -> Flag | None:
        """The flag of a test; None if the test asks for something that the loop itself makes."""
        meant = self.meant(test)
        asked = list(subjects(meant))
        if len(asked) != 1:
            return None
        (subject,) = asked
        if {n.id for n in ast.walk(subject) if isinstance(n, ast.Name)} & writes(loop):
            return self._begun_with(loop, Flag(test, subject, in_body, (), (), complete=False))
        values, complete = self._values(subject)
        return self._answered(Flag(test, subject, in_body, (), (), complete=False), values, complete=complete)

    def _begun_with(self, loop: Loop, flag: Flag) -> Flag | None:
        """A flag that steps of the loop set, by what it has before the first of them; None where that lets it train."""
        subject, unit = flag.subject, self._facts.unit(flag.subject)
        plain = [each for each in loop.body if isinstance(each, ast.Assign)]
        if not isinstance(subject, ast.Name) or any(subject.id in writes(each) for each in plain):
            return None  # each step sets it first
        named = (each.statement for each in self._facts.bindings_in(unit) if each.target == subject.id)
        given = [each.value for each in named if isinstance(each, ast.Assign) and each.lineno < loop.lineno]
        if isinstance(unit, Function) and subject.id in unit.parameter_names:
            given += [each for call in self._facts.callers(unit) for each in may_pass(call, unit, subject.id)]
        begun = self._answered(flag, [value for each in given for value in self.constants(each)], complete=False)
        if begun.evaluates or flag.test is not subject:
            return begun if begun.trains and begun.evaluates else None
        compared = (self._asked(loop, each, in_body=flag.holds_means_training) for each in given if _compares(each))
        return next((each for each in compared if each is not None and each.evaluates), None)

    def meant(self, test: ast.expr) -> ast.expr:
        """The comparison that a flag stands for: `is_train` for `split == "train"`."""
        for _ in range(4):
            given = self._sources.given(test).only if isinstance(test, (ast.Name, ast.Attribute)) else None
            if not isinstance(given, (ast.Name, ast.Attribute, ast.Compare, ast.UnaryOp)):
                break
            test = given
        return test

    def _values(self, subject: ast.expr) -> tuple[list[object], bool]:
        """The constants that a flag is given, and whether these are all."""
        around = self._turns(subject) or self._without_default(subject)
        given = around if around is not None else self._sources.given(subject)
        found: list[object] = []
        complete = given.complete and self._sources.option(subject) is None
        for expression in given.expressions:
            constants = self.constants(expression)
            complete = complete and bool(constants)
            found += constants
        return list(dict.fromkeys(found)), complete

    def _without_default(self, subject: ast.expr) -> Given | None:
        """What the calls pass to a parameter, where all of them are seen, pass something, and it is known what."""
        unit = self._facts.unit(subject)
        if not isinstance(subject, ast.Name) or not isinstance(unit, Function) or subject.id in writes(unit.node):
            return None
        if subject.id not in unit.parameter_names or not self._facts.callers_known(unit):
            return None
        given = [passed(call, unit, subject.id) for call in self._facts.callers(unit)]
        told = [each for each in given if each is not None and self.constants(each)]
        return Given(tuple(told), complete=True) if told and len(told) == len(given) else None

    def _turns(self, subject: ast.expr) -> Given | None:
        """The elements of `for phase in ["train", "val"]`, or of `for phase, loader in pairs`."""
        if not isinstance(subject, ast.Name):
            return None
        if rounds := dealt(self._facts, subject):
            return Given(tuple(each[subject.id] for each in rounds), complete=True)
        for loop in self._facts.tree(subject).loops(subject):
            if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and loop.target.id == subject.id:
                if isinstance(loop.iter, (ast.List, ast.Tuple)):
                    return Given(tuple(loop.iter.elts), complete=True)
                return Given((), complete=False)
        return None

    def constants(self, node: ast.expr, depth: int = 4) -> list[object]:
        """The values that an expression may have: constants, or some object; empty: not known."""
        if (node, depth) not in self._constants:
            self._constants[node, depth] = self._found(node, depth)
        return self._constants[node, depth]

    def _found(self, node: ast.expr, depth: int) -> list[object]:
        if isinstance(node, ast.Constant):
            return [node.value]
        if isinstance(node, ast.Call) and any(value.origin is node for value in self._facts.values(node)):
            return [Other.OBJECT]  # made right here
        if isinstance(node, ast.IfExp):
            parts = [self.constants(part, depth) for part in (node.body, node.orelse)]
        else:
            is_named = depth and isinstance(node, (ast.Name, ast.Attribute))
            given = (self._turns(node) or self._sources.given(node)) if is_named else None
            if given is None or not given.complete:
                return []
            parts = [self.constants(expression, depth - 1) for expression in given.expressions]
        return [value for part in parts for value in part] if all(parts) else []


class Way(NamedTuple):
    """A part of an expression that it may give, the test for that, and whether that must hold."""

    part: ast.expr
    test: ast.expr | None
    is_in_body: bool


def ways(facts: Facts, node: ast.expr) -> Iterator[Way]:
    """What an expression may give, by its own test or by that around its statement."""
    if isinstance(node, ast.IfExp):
        yield from (Way(node.body, node.test, is_in_body=True), Way(node.orelse, node.test, is_in_body=False))
        return
    statement = facts.tree(node).statement(node)
    above = facts.tree(node).parents[statement]
    if isinstance(above, ast.If):
        yield Way(node, above.test, statement in above.body)
    else:
        yield Way(node, None, is_in_body=True)


def evaluating(facts: Facts, loop: LoopFact) -> frozenset[ast.AST]:
    """What of a loop that trains and evaluates by turns runs only where it evaluates: `if phase == "val":`."""
    fact = Phases(facts).of(loop)
    if fact.phase is not Phase.MIXED or fact.flag is None or not fact.flag.complete:
        return frozenset()
    asked = [node for node in walk(loop.node) if isinstance(node, ast.If)]
    blocks = (block for node in asked for block in _not_trained(fact.flag, node))
    return frozenset(node for block in blocks for statement in block for node in walk(statement))


def _not_trained(flag: Flag, branch: ast.If) -> Iterator[list[ast.stmt]]:
    """The sides of a branch that are not taken for any value by which the loop trains."""
    text = ast.unparse(flag.subject)
    subject = next((n for n in ast.walk(branch.test) if isinstance(n, ast.expr) and ast.unparse(n) == text), None)
    held = {truth(branch.test, subject, value) for value in flag.trains} if subject is not None else set()
    if held == {False}:
        yield branch.body
    elif held == {True}:
        yield branch.orelse


def _compares(given: ast.expr) -> bool:
    return isinstance(given, (ast.Compare, ast.UnaryOp))


def _is_in_body(branch: ast.If | ast.IfExp, part: ast.AST) -> bool:
    """Whether a part of a branch runs where its test holds."""
    return part is branch.body if isinstance(branch, ast.IfExp) else any(part is each for each in branch.body)
