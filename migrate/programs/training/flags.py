"""Loops that a flag makes train or evaluate: `run(train_loader, True)`, `run(test_loader, False)`.

Where what the loop calls is handed over with the loader, `run(test_loader, test_step)`, and is called without gradients
if it is to evaluate, whether gradients are on is the flag.

The loaders that are trained on are prepared. The others stay whole, so that every process evaluates everything and what
is added up then is that of all samples; what training adds up is joined where the flag says training.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.reach.callees import reached
from migrate.programs.training.flag_tests import truth
from migrate.programs.training.gradients_off import turned_on, without_gradients
from migrate.programs.training.pairs import by_key, dealt, items_by
from migrate.programs.training.phases import Flag, Phase, Phases, ways
from migrate.programs.values.sources import Sources, default, passed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Call
    from migrate.programs.loops import LoopFact


GRADIENTS = "torch.is_grad_enabled()"


@dataclass(frozen=True, slots=True)
class Flagged:
    """A loop over loaders of which some are trained on, as a flag says that its function sees."""

    loop: LoopFact
    evaluated: frozenset[ast.AST]  # where the loaders were made that stay whole
    trains: str  # the test that holds where it trains, as it is written

    @property
    def trained_on(self) -> str:
        """How the loader is named that is trained on."""
        return "what it trains on"


def flagged(facts: Facts, training: Iterable[LoopFact]) -> tuple[Flagged, ...]:
    """The loops by turns among the training loops; not those that evaluate on what any of them trains on."""
    training = list(training)
    found = [made for loop in training if (made := _Loop(facts, loop).flagged()) is not None]
    trained = {origin for loop in training if loop not in [made.loop for made in found] for origin in loop.loaders}
    trained |= {origin for made in found for origin in made.loop.loaders - made.evaluated}
    return tuple(made for made in found if not made.evaluated & trained)


class _Loop:
    """The question for one loop."""

    def __init__(self, facts: Facts, loop: LoopFact) -> None:
        self._facts = facts
        self._loop = loop
        self._phases = Phases(facts)
        self._sources = facts.once(Sources)

    def flagged(self) -> Flagged | None:
        found = self._phases.of(self._loop)
        flag = found.flag
        if len(self._loop.loaders) < 2 or not isinstance(self._loop.node, ast.For):
            return None
        made = self._by_flag(flag) if flag is not None and found.phase is Phase.MIXED and flag.complete else None
        if made is not None or found.phase is Phase.UNKNOWN:
            return made
        evaluated = self._without_gradients(all_train=found.phase is Phase.TRAINING)
        return Flagged(self._loop, frozenset(evaluated), GRADIENTS) if evaluated else None

    def _by_flag(self, flag: Flag) -> Flagged | None:
        subject = self._itself(flag) or self._seen_by_loop(flag.subject)
        test = self._test(flag, subject) if subject is not None else None
        if subject is None or test is None:
            return None
        evaluated = self._passed(flag, subject) or self._chosen(flag, subject) or self._dealt(flag, subject)
        return Flagged(self._loop, frozenset(evaluated), test) if evaluated else None

    def _itself(self, flag: Flag) -> ast.Name | None:
        """The name by which the loop's function asks for a flag, where its only caller has another one for it."""
        test = flag.test
        is_own = isinstance(test, ast.Name) and self._facts.unit(test) is self._loop.unit
        is_handed = self._facts.unit(flag.subject) is not self._loop.unit and self._phases.meant(test) is flag.subject
        return test if isinstance(test, ast.Name) and is_own and is_handed else None

    def _test(self, flag: Flag, subject: ast.Name) -> str | None:
        """The test that holds where the loop trains, as its function writes it."""
        test, meant = flag.test, self._phases.meant(flag.test)
        if self._facts.unit(test) is not self._loop.unit:
            if meant is not flag.subject and self._facts.unit(meant) is not self._loop.unit:
                return None
            test = subject if meant is flag.subject else meant
        text = ast.unparse(test)
        if flag.holds_means_training:
            return text
        return f"not {text}" if isinstance(test, (ast.Name, ast.Attribute)) else f"not ({text})"

    def _seen_by_loop(self, subject: ast.expr) -> ast.Name | None:
        """The name in the loop's function that a flag is, also where that hands it on."""
        for _ in range(4):
            unit = self._facts.unit(subject)
            if not isinstance(subject, ast.Name) or unit is self._loop.unit:
                return subject if isinstance(subject, ast.Name) else None
            if not isinstance(unit, Function) or subject.id not in unit.parameter_names:
                return None
            inside = set(ast.walk(self._loop.node))
            calls = [call for call in self._facts.callers(unit) if call.node in inside]
            given = [passed(call, unit, subject.id) for call in calls]
            if len({ast.unparse(each) if each is not None else "" for each in given}) != 1 or given[0] is None:
                return None
            subject = given[0]
        return None

    def _without_gradients(self, *, all_train: bool) -> set[ast.AST]:
        """The loaders that are evaluated on, where that is by calls without gradients.

        Those with gradients train: all of them, or else it must be one, without which the loop would train nowhere.
        """
        if turned_on(self._facts, reached(self._facts, [self._loop.unit])):
            return set()
        sides = [(made, not without_gradients(self._facts, call.node)) for call, made in self._handing_loaders()]
        if not all_train and sum(has_gradients for _, has_gradients in sides) != 1:
            return set()
        return self._apart(sides, trains=True)

    def _handing_loaders(self) -> list[tuple[Call, set[ast.AST]]]:
        """The calls that hand the loop's function what the loop runs over; none if they are not all seen."""
        unit, loader = self._loop.unit, self._iterated()
        if not isinstance(unit, Function) or loader is None or not self._facts.callers_known(unit):
            return []
        if loader.id not in unit.parameter_names:
            return []
        given = [(call, passed(call, unit, loader.id)) for call in self._facts.callers(unit)]
        loaders = self._facts.loaders
        return [(call, loaders(self._facts.values(each)) if each is not None else set()) for call, each in given]

    def _passed(self, flag: Flag, subject: ast.Name) -> set[ast.AST]:
        """The loaders that are evaluated on, by what callers pass: `run(test_loader, train=False)`."""
        unit = self._loop.unit
        if not isinstance(unit, Function) or subject.id not in unit.parameter_names:
            return set()
        sides: list[tuple[set[ast.AST], bool | None]] = []
        for call, made in self._handing_loaders():
            told = passed(call, unit, subject.id) or default(unit, subject.id)
            rounds = self._dealt_to(call, told) if isinstance(told, ast.Name) else []
            sides += [
                (self._facts.loaders(self._facts.values(each)), self._told(flag, flags)) for each, flags in rounds
            ]
            if not rounds:
                sides.append((made, self._told(flag, told) if told is not None else None))
        return self._apart(sides, trains=flag.holds_means_training)

    def _dealt_to(self, call: Call, told: ast.Name) -> list[tuple[ast.expr, ast.expr]]:
        """The loader and the flag that a call hands over in each round of a loop around it, which deals them out."""
        unit, loader = self._loop.unit, self._iterated()
        assert isinstance(unit, Function)
        assert loader is not None  # `_handing_loaders` has found it
        given = passed(call, unit, loader.id)
        if isinstance(given, ast.Subscript):
            return [(value, key) for key, value in items_by(self._facts, given, told)]
        if not isinstance(given, ast.Name):
            return []
        rounds = dealt(self._facts, given) or by_key(self._facts, given, told)
        return [(each[given.id], each[told.id]) for each in rounds] if all(told.id in each for each in rounds) else []

    def _chosen(self, flag: Flag, subject: ast.Name) -> set[ast.AST]:
        """The same, where the loop's function chooses: `loader = train_loader if train else test_loader`."""
        sides: list[tuple[set[ast.AST], bool | None]] = []
        for expression in self._choices():
            for part, test, in_body in ways(self._facts, expression):
                holds = self._holds(test, flag, subject)
                made = self._facts.loaders(self._facts.values(part))
                sides.append((made, holds if holds is None else holds is in_body))
        return self._apart(sides, trains=flag.holds_means_training)

    def _choices(self) -> tuple[ast.expr, ...]:
        """What the loop may run over, as it is written: there, or where what it runs over gets its name."""
        assert isinstance(self._loop.node, ast.For)
        inline = (node for node in ast.walk(self._loop.node.iter) if isinstance(node, ast.IfExp))
        if (chosen := next(filter(self._holds_loaders, inline), None)) is not None:
            return (chosen,)
        loader = self._iterated()
        given = self._sources.given(loader) if loader is not None else None
        return given.expressions if given is not None and given.complete else ()

    def _dealt(self, flag: Flag, subject: ast.Name) -> set[ast.AST]:
        """The same, where a loop around it deals both out: `for phase, loader in [...]`, `loader = loaders[phase]`."""
        loader = self._iterated()
        if loader is None:
            return set()
        rounds = dealt(self._facts, loader) or by_key(self._facts, loader, subject)
        if any(subject.id not in each for each in rounds):
            return set()
        loaders = [self._facts.loaders(self._facts.values(each[loader.id])) for each in rounds]
        told = [self._told(flag, each[subject.id]) for each in rounds]
        return self._apart(list(zip(loaders, told, strict=True)), trains=flag.holds_means_training)

    def _told(self, flag: Flag, given: ast.expr) -> bool | None:
        """Whether the test of a flag holds for what its subject is given; None: it may, and may not."""
        meant = self._phases.meant(flag.test)
        holds = {truth(meant, flag.subject, value) for value in self._phases.constants(given)}
        return holds.pop() if len(holds) == 1 else None

    def _holds(self, test: ast.expr | None, flag: Flag, subject: ast.Name) -> bool | None:
        """Whether a test is that of the flag (True), or its opposite."""
        if test is None:
            return None
        same = {ast.unparse(flag.test)} if self._facts.unit(flag.test) is self._loop.unit else {subject.id}
        meant = self._phases.meant(flag.test)
        same |= {ast.unparse(meant)} if self._facts.unit(meant) is self._loop.unit else set()
        if ast.unparse(test) in same:
            return True
        if f"not {ast.unparse(test)}" in same:  # the flag's own test is `not evaluates`
            return False
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._holds(test.operand, flag, subject)
            return None if inner is None else not inner
        return _by_values(test, flag, subject)

    def _iterated(self) -> ast.Name | None:
        """The name of what the loop runs over, also where that is in `bar = tqdm(enumerate(loader))`."""
        assert isinstance(self._loop.node, ast.For)
        found, expression = None, self._loop.node.iter
        for _ in range(4):
            name = self._with_loaders(expression)
            if name is None:
                break
            found, given = name, self._sources.given(name).only
            if not isinstance(given, ast.Call):
                break
            expression = given
        return found

    def _with_loaders(self, expression: ast.expr) -> ast.Name | None:
        names = (node for node in ast.walk(expression) if isinstance(node, ast.Name))
        return next(filter(self._holds_loaders, names), None)

    def _holds_loaders(self, node: ast.expr) -> bool:
        """Whether an expression is any of the loaders of the loop."""
        return self._facts.loaders(self._facts.values(node)) >= self._loop.loaders

    def _apart(self, sides: Sequence[tuple[set[ast.AST], bool | None]], *, trains: bool) -> set[ast.AST]:
        """What is evaluated on; none if it is trained on, too, or something is left open."""
        if any(not made or holds is None for made, holds in sides):
            return set()
        trained = set().union(*(made for made, holds in sides if holds is trains))
        evaluated = set().union(*(made for made, holds in sides if holds is not trains))
        is_apart = bool(trained) and not trained & evaluated and trained | evaluated == self._loop.loaders
        return evaluated if is_apart else set()


def _by_values(test: ast.expr, flag: Flag, subject: ast.Name) -> bool | None:
    """The same of another test of what a flag asks for, `phase == "val"`, by all the values that it has."""
    if not isinstance(test, ast.Compare) or ast.unparse(test.left) != subject.id:
        return None
    held = [(truth(test, test.left, value), flag.holds_means_training) for value in flag.trains]
    held += [(truth(test, test.left, value), not flag.holds_means_training) for value in flag.evaluates]
    alike = {None if holds is None else holds is as_flag for holds, as_flag in held}
    return alike.pop() if len(alike) == 1 else None
