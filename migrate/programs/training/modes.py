"""What is certain about the mode of a program wherever a loop begins: gradients off, models in eval mode.

The code is run on states: what holds on every way to a place. `model.eval()` and `with torch.no_grad()` count wherever
they stand, in the loop's function, in those that call it or in those that were called before.
"""

from __future__ import annotations

import ast
import itertools
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.known.training import SETS_GRADIENTS
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import DEFINITIONS, TRIES, blocks, is_stored, own_nodes, walk
from migrate.analysis.texts import text_of
from migrate.analysis.units import Function
from migrate.programs.reach.callees import leading, reached
from migrate.programs.training.begun import iterators
from migrate.programs.training.gradients_off import is_decorated_without, is_given_false, turns
from migrate.programs.training.made_first import made_first
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.home.naming import Named
    from migrate.programs.program import Program

GRADIENTS_OFF = "gradients are off"
#: Before a name: nothing was made under it yet; what was made under it before is in eval mode.
_UNMADE, _FORMER = "unmade ", "former "


class Mode(Enum):
    """What is certain about the models where a loop begins."""

    EVAL = "all of them are in eval mode, or those that run here are and gradients are off"
    NO_GRADIENTS = "gradients are off"
    UNKNOWN = "nothing"


#: What holds on one way to a place: that gradients are off, and the targets of the models in eval mode.
State = frozenset[str]
#: What holds on each way; empty: no way leads here.
States = frozenset[State]
_NOWHERE: States = frozenset()
_NOTHING: States = frozenset({frozenset()})
_MANY = 32
#: The models that a function is given by its parameters, in one of its calls.
Given = frozenset[tuple[str, frozenset[ast.AST]]]
_NONE: Given = frozenset()


class Modes:
    """The modes of one program's models."""

    def __init__(self, facts: Facts, program: Program) -> None:
        self.facts = facts
        self._models = {_key(named): named.origins for named in program.models}
        self._making: dict[ast.stmt, str] = {s: _key(named) for named in program.models for s in _makers(named)}
        self._first = frozenset(made_first(facts, program))
        self._home = program.home
        self._wanted = self._models.keys() | {_FORMER + key for key in self._models}
        self._is_entered_once = is_entered_once = _is_entered_once(facts, program)
        marks = (_UNMADE, _FORMER) if is_entered_once else (_UNMADE,)
        self._run = self._wanted if is_entered_once else frozenset(self._models)  # in what a home does with its models
        self._start = frozenset(mark + key for key in self._models for mark in marks) | _later(program)
        self._seen: dict[Unit, dict[ast.AST, States]] = {}
        self._effects: dict[tuple[Function, State, Given], States] = {}
        self._changing = facts.once(_changing)
        self._turned_off: frozenset[ast.AST] = frozenset()

    def turn_off(self, loop: ast.AST) -> None:
        """From now on, gradients are taken to be off around a loop."""
        self._turned_off |= {loop}

    def at(self, loop: ast.AST) -> Mode:
        """What holds whenever a loop begins, and where the iterator that it runs over is made before."""
        states = self._before(loop, self.facts.unit(loop))
        makers = (self._before(call, self.facts.unit(call)) for call in iterators(self.facts, loop))
        if any(not self._is_evaluation(state) for ways in makers for state in ways):
            return Mode.UNKNOWN
        if all(self._wanted <= state for state in states):
            return Mode.EVAL
        if loop not in self._turned_off and not all(map(self._is_evaluation, states)):
            return Mode.UNKNOWN
        run = self._run - self._resting(loop)
        return Mode.EVAL if all(run <= state for state in states) else Mode.NO_GRADIENTS

    def _resting(self, loop: ast.AST) -> frozenset[str]:
        """The models that do not run in a loop: a discriminator, while the generator is evaluated."""
        facts = self.facts
        entered = (target for node in ast.walk(loop) if isinstance(node, ast.Call) for target in facts.targets(node))
        nodes = [*ast.walk(loop), *(node for unit in reached(facts, entered) for node in facts.own(unit))]
        named = (facts.values(node) for node in nodes if isinstance(node, (ast.Name, ast.Attribute)))
        here = {origin for values in named for origin in origins(values, Role.MODEL)}
        if not here or not here <= {place for places in self._models.values() for place in places}:
            return frozenset()  # how these stand is not known
        resting = [key for key, places in self._models.items() if not places & here]
        return frozenset(mark + key for key in resting for mark in ("", _FORMER))

    def is_evaluation_at(self, place: ast.AST) -> bool:
        """Whether a pass that began at a place would be one of an evaluation."""
        return all(map(self._is_evaluation, self._before(place, self.facts.unit(place))))

    def may_be_evaluation_at(self, place: ast.AST) -> bool:
        """The same, on some way to the place that is known."""
        return any(map(self._is_evaluation, self._before(place, self.facts.unit(place))))

    def is_without_gradients_at(self, call: ast.Call) -> bool:
        """Whether gradients are off wherever a call is reached."""
        return all(GRADIENTS_OFF in state for state in self._before(call, self.facts.unit(call)))

    def _is_evaluation(self, state: State) -> bool:
        return GRADIENTS_OFF in state or self._wanted <= state

    def _before(self, node: ast.AST, unit: Unit) -> States:
        if unit not in self._seen:
            self._seen[unit] = {}  # a function that leads to itself: nothing is certain
            noted: dict[ast.AST, States] = {}
            for given, states in self._entries(unit):
                entered = frozenset(state | self._start for state in states) if unit is self._home else states
                for place, before in _Run(self, given).of(unit, entered).items():
                    noted[place] = _joined([noted.get(place, _NOWHERE), before])
            self._seen[unit] = noted
        return self._seen[unit].get(node, _NOTHING)

    def made(self, statement: ast.stmt, states: States) -> States:
        """What holds when a statement begins that makes a model: that is in training mode, the one before as it was."""
        key = self._making.get(statement)
        return states if key is None else frozenset(_made(state, key, statement in self._first) for state in states)

    def _entries(self, unit: Unit) -> list[tuple[Given, States]]:
        """For each call that enters a unit, the models that it is given and what holds then."""
        if not isinstance(unit, Function):
            return [(_NONE, _NOTHING)]
        calls = self.facts.callers(unit) if self.facts.callers_known(unit) else ()
        found = [
            (
                self._given(call.node, unit, _NONE) if call.handed is None else _NONE,
                _decorated(self.facts, unit, self._before(call.node, call.caller)),
            )
            for call in calls
        ]
        reached = [each for each in found if each[1]]
        return reached or [(_NONE, _decorated(self.facts, unit, self._unseen()))]

    def _unseen(self) -> States:
        """What holds where nobody is seen to come from: of models made before, what holds at the end of the home."""
        if not self._is_entered_once or (home := self._home) is None or {*map(self.facts.unit, self._making)} - {home}:
            return _NOTHING
        run = _Run(self, _NONE)
        run.of(home, frozenset({self._start}))
        held = frozenset.intersection(*(_joined(run.returned) or _NOTHING))
        return frozenset({frozenset(mark for mark in held if mark.startswith(_FORMER))})

    def _given(self, call: ast.Call, unit: Function, outer: Given) -> Given:
        """The models that a call passes for the parameters of a function that keep them."""
        if any(isinstance(argument, ast.Starred) for argument in call.args) or isinstance(unit.node, ast.Lambda):
            return _NONE
        passed = received(call, unit)
        kept = passed.keys() - {n.id for n in self.facts.own(unit).of(ast.Name) if is_stored(n)}
        found = {name: self._received(passed[name], outer) for name in kept}
        return frozenset((name, models) for name, models in found.items() if models)

    def _received(self, node: ast.expr, given: Given) -> frozenset[ast.AST]:
        """The models that an expression may be where the parameters of its function are given."""
        found = frozenset(origins(self.facts.values(node), Role.MODEL))
        mine = dict(given).get(node.id) if isinstance(node, ast.Name) else None
        return found & mine if mine is not None else found

    def after(self, call: ast.Call, states: States, given: Given) -> States:
        """What holds after a call in a function that is given some models."""
        return _joined(self._after(call, state, given) for state in states)

    def _after(self, call: ast.Call, state: State, given: Given) -> States:
        facts = self.facts
        changed = self._set_gradients(call, state)
        if changed is not None:
            return frozenset({changed})
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("train", "eval"):
            if Role.MODEL in roles(facts.receiver(call)):
                return frozenset({self._set_mode(call, call.func.attr, state, given)})
        entered = [target for target in facts.targets(call) if target in self._changing or target is self._home]
        ways = [self._effect(target, state, self._given(call, target, given)) for target in entered]
        if ways:
            return _joined(ways)
        made = {target for target, places in self._models.items() if call in places}
        return frozenset({state - made - self._handed_out(call)})

    def _set_gradients(self, call: ast.Call, state: State) -> State | None:
        """`torch.set_grad_enabled(False)` as a statement of its own."""
        is_statement = isinstance(self.facts.tree(call).parents[call], ast.Expr)
        if not is_statement or not self.facts.called(call) & SETS_GRADIENTS:
            return None
        return state | {GRADIENTS_OFF} if is_given_false(call) else state - {GRADIENTS_OFF}

    def _set_mode(self, call: ast.Call, method: str, state: State, models: Given) -> State:
        assert isinstance(call.func, ast.Attribute)
        receiver = self._received(call.func.value, models)
        mine = {target for target, places in self._models.items() if receiver & places}
        if method != "eval" and not is_given_false(call):
            return state - (mine or frozenset(self._models))
        return state | {target for target in mine if receiver <= self._models[target]}

    def _handed_out(self, call: ast.Call) -> set[str]:
        """The models that are given to code which nobody reads, and may come back in another mode."""
        facts = self.facts
        if facts.targets(call) or all(name.startswith(("torch.", "builtins.")) for name in facts.called(call)):
            return set()
        given = {o for argument in call.args for o in origins(facts.values(argument), Role.MODEL)}
        return {target for target, places in self._models.items() if places & given}

    def _effect(self, unit: Function, state: State, given: Given) -> States:
        """What holds after a function of the project, called in a state with some models."""
        key = (unit, state, given)
        if key not in self._effects:
            self._effects[key] = _NOTHING
            run = _Run(self, given)
            begun = state | self._start if unit is self._home else state  # `Trainer(args)` makes the models
            run.of(unit, _decorated(self.facts, unit, frozenset({begun})))
            is_decorated = is_decorated_without(self.facts, unit.node)
            after = _joined(run.returned)
            self._effects[key] = _restored(after, state) if is_decorated else after
        return self._effects[key]


class _Run:
    """One run through a function or module, which notes the states before every loop and every call."""

    def __init__(self, modes: Modes, given: Given) -> None:
        self._modes = modes
        self._given = given
        self._noted: dict[ast.AST, States] = {}
        self._leaving: list[tuple[list[States], list[States]]] = []  # break, continue of the loops around
        self.returned: list[States] = []

    def of(self, unit: Unit, states: States) -> dict[ast.AST, States]:
        """The states before the loops and calls of a unit."""
        body = getattr(unit.node if isinstance(unit, Function) else unit.tree, "body", [])
        if isinstance(body, list):
            self.returned.append(self._block(body, states))
        else:
            self.returned.append(self._expressions(body, states))
        return self._noted

    def _block(self, statements: Sequence[ast.stmt], states: States) -> States:
        for statement in statements:
            states = self._statement(statement, states)
        return states

    def _statement(self, statement: ast.stmt, states: States) -> States:
        if isinstance(statement, DEFINITIONS) or not states:
            return states
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            return self._loop(statement, states)
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return self._with(statement, states)
        if isinstance(statement, ast.If):
            after = self._expressions(statement.test, states)
            return _joined([self._block(statement.body, after), self._block(statement.orelse, after)])
        if isinstance(statement, TRIES):
            return self._try(statement, states)
        if inner := list(blocks(statement)):  # match
            return _joined([states, *(self._block(block, states) for block in inner)])
        after = self._expressions(statement, self._modes.made(statement, states))
        if isinstance(statement, (ast.Return, ast.Raise)):
            self.returned += [after] if isinstance(statement, ast.Return) else []
            return _NOWHERE
        if isinstance(statement, (ast.Break, ast.Continue)) and self._leaving:
            self._leaving[-1][isinstance(statement, ast.Continue)].append(after)
            return _NOWHERE
        return after

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While, states: States) -> States:
        """Loops are taken to run at least once: after epochs of training, what the last of them leaves behind holds."""
        header = loop.test if isinstance(loop, ast.While) else loop.iter
        before = self._expressions(header, states)
        while True:
            self._note(loop, before)
            self._leaving.append(([], []))
            again = self._block(loop.body, before)
            left, continued = self._leaving.pop()
            ended = _joined([again, *continued])
            if ended <= before:
                return _joined([self._block(loop.orelse, ended), *left])
            before = _joined([before, ended])

    def _with(self, statement: ast.With | ast.AsyncWith, states: States) -> States:
        ways = []
        for state in states:
            inner = frozenset({state})
            turned = [turns(self._modes.facts, item) for item in statement.items]
            for item, off in zip(statement.items, turned, strict=True):
                inner = self._expressions(item.context_expr, inner)
                if off is not None:
                    inner = frozenset(s | {GRADIENTS_OFF} if off else s - {GRADIENTS_OFF} for s in inner)
            ends = [self.returned, *itertools.chain(*self._leaving)]
            begun = [len(each) for each in ends]
            after = self._block(statement.body, inner)
            if any(off is not None for off in turned):  # so it is behind a return, break or continue in the block
                after = _restored(after, state)
                for end, count in zip(ends, begun, strict=True):
                    end[count:] = [_restored(each, state) for each in end[count:]]
            ways.append(after)
        return _joined(ways)

    def _try(self, statement: ast.Try, states: States) -> States:
        after = self._block(statement.body, states)
        failed = _joined([states, after])
        ways = [self._block(statement.orelse, after), *(self._block(h.body, failed) for h in statement.handlers)]
        return self._block(statement.finalbody, _joined(ways))

    def _expressions(self, node: ast.AST, states: States) -> States:
        """What holds after the calls in an expression, or in a statement without blocks; inner ones run first."""
        for call in reversed([n for n in (node, *own_nodes(node)) if isinstance(n, ast.Call)]):
            self._note(call, states)
            states = self._modes.after(call, states, self._given)
        return states

    def _note(self, node: ast.AST, states: States) -> None:
        self._noted[node] = _joined([self._noted.get(node, _NOWHERE), states])


def _key(named: Named) -> str:
    """A model by its name and, as another one may have that before or after it, its line."""
    return f"{named.target} {named.statements[0].lineno}" if named.statements else named.target


def _makers(named: Named) -> Iterator[ast.Assign | ast.AnnAssign]:
    """The statements that make a model; `model = model.to(device)` goes on with it."""
    for statement in named.statements:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            read = (node for node in walk(statement.value) if isinstance(node, (ast.Name, ast.Attribute)))
            if all(text_of(node) != named.target for node in read):
                yield statement


def _later(program: Program) -> set[str]:
    """The models that are not there at the beginning, as another one: they are not in training mode then."""
    made = [named for named in program.models if named.statements]
    first = min((named.statements[0].lineno for named in made), default=0)
    return {
        _key(named)
        for named in made
        if named.statements[0].lineno > first
        and all(isinstance(statement, (ast.Assign, ast.AnnAssign)) for statement in named.statements)
    }


def _is_entered_once(facts: Facts, program: Program) -> bool:
    """Whether the home meets no models that the accelerator knows from an earlier time."""
    home = program.home
    if home is program.start or not isinstance(home, Function):
        return True
    calls = facts.callers(home)
    return len(calls) == 1 and not any(True for call in calls for _ in facts.tree(call.node).loops(call.node))


def _made(state: State, key: str, is_first: bool) -> State:
    kept = state - {_UNMADE + key}
    if not is_first and _UNMADE + key not in state and key not in state:
        kept -= {_FORMER + key}
    return kept - {key}


def _joined(ways: Iterable[States]) -> States:
    joined: States = _NOWHERE.union(*ways)
    return joined if len(joined) <= _MANY else frozenset({frozenset.intersection(*joined)})


def _restored(states: States, before: State) -> States:
    """The states with gradients as they were."""
    kept = before & {GRADIENTS_OFF}
    return frozenset((state - {GRADIENTS_OFF}) | kept for state in states)


def _decorated(facts: Facts, unit: Function, states: States) -> States:
    return frozenset(s | {GRADIENTS_OFF} for s in states) if is_decorated_without(facts, unit.node) else states


def _changing(facts: Facts) -> set[Unit]:
    """The functions in which, or in what they call, a mode is set, and the modules that call these."""
    found: list[Unit] = []
    for use in facts.calls_anywhere:
        sets_mode = isinstance(use.node.func, ast.Attribute) and use.node.func.attr in ("train", "eval")
        if isinstance(use.unit, Function) and (sets_mode or facts.called(use.node) & SETS_GRADIENTS):
            found.append(use.unit)
    return leading(facts, found)
