"""What is remembered of what was read is made anew when that grows, and its readers are run again if it is another."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable

import pytest

from migrate.analysis import agenda
from migrate.analysis.agenda import RUNS, Agenda
from migrate.analysis.units import Function, Module, Unit
from migrate.source.project import source_file

_MODULE = Module(source_file("a.py", b""), ast.parse(""))


def _unit(name: str) -> Function:
    [node] = ast.parse(f"def {name}(): pass").body
    assert isinstance(node, ast.FunctionDef)
    return Function(node, _MODULE, None, None)


class _World:
    """Numbers under names, of which units read sums that are remembered."""

    def __init__(self, bodies: dict[Unit, Callable[[_World], None]], runs: int = RUNS) -> None:
        self.numbers: dict[str, int] = {}
        self.made: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self.agenda = Agenda(self._run, runs)
        self._bodies: dict[Unit, Callable[[_World], None]] = {}
        for unit, body in bodies.items():
            self.meet(unit, body)

    def meet(self, unit: Unit, body: Callable[[_World], None]) -> None:
        self._bodies[unit] = body
        self.agenda.add(unit)

    def _run(self, unit: Unit) -> None:
        assert isinstance(unit, Function)
        self.runs[unit.name] += 1
        self._bodies[unit](self)

    def put(self, name: str, number: int) -> None:
        if self.numbers.get(name) != number:
            self.numbers[name] = number
            self.agenda.news(name)

    def number(self, name: str) -> int:
        self.agenda.read(name)
        return self.numbers.get(name, 0)

    def total(self, key: str, *names: str) -> int:
        def made() -> int:
            self.made[key] += 1
            return sum(self.number(name) for name in names)

        return self.agenda.remembered(key, made)

    def doubled(self) -> int:
        return self.agenda.remembered("doubled", lambda: 2 * self.total("total", "a", "b"))


def test_it_is_made_once_for_all_that_ask() -> None:
    seen: list[int] = []
    units = [_unit("first"), _unit("second")]
    world = _World(dict.fromkeys(units, lambda world: seen.append(world.total("total", "a", "b"))))
    world.put("a", 3)

    world.agenda.run_all()

    assert seen == [3, 3]
    assert world.made == {"total": 1}


def test_what_it_was_made_of_runs_its_readers_again() -> None:
    seen: list[int] = []
    world = _World(
        {
            _unit("reader"): lambda world: seen.append(world.total("total", "a", "b")),
            _unit("writer"): lambda world: world.put("b", 5),
            _unit("other"): lambda world: world.put("c", 7),
        }
    )
    world.put("a", 3)

    world.agenda.run_all()

    assert seen == [3, 8]
    assert world.made == {"total": 2}
    assert world.runs == {"reader": 2, "writer": 1, "other": 1}


def test_one_may_be_made_of_another() -> None:
    seen: list[int] = []
    world = _World(
        {
            _unit("reader"): lambda world: seen.append(world.doubled()),
            _unit("writer"): lambda world: world.put("b", 5),
        }
    )

    world.agenda.run_all()

    assert seen == [0, 10]
    assert world.made == {"total": 2}


def test_a_unit_that_writes_what_it_remembered_before_is_run_again() -> None:
    seen: list[int] = []

    def body(world: _World) -> None:
        seen.append(world.total("total", "a"))
        world.put("a", 4)

    world = _World({_unit("both"): body})

    world.agenda.run_all()

    assert seen == [0, 4]


def test_a_unit_for_which_it_is_fresh_is_not() -> None:
    def body(world: _World) -> None:
        world.total("total", "a")
        world.numbers["a"] = 4
        world.agenda.news("a", lambda unit: unit is both)

    both = _unit("both")
    world = _World({both: body})

    world.agenda.run_all()

    assert world.runs == {"both": 1}
    assert world.agenda.surprises[both] == 1


def test_readers_of_what_comes_out_the_same_are_not_run_again() -> None:
    seen: list[int] = []

    def shifted(world: _World) -> None:
        world.numbers["a"], world.numbers["b"] = 1, 2
        world.agenda.news("a")
        world.agenda.news("b")

    world = _World({_unit("reader"): lambda world: seen.append(world.doubled()), _unit("writer"): shifted})
    world.put("a", 3)

    world.agenda.run_all()

    assert seen == [6]
    assert world.made == {"total": 2}
    assert world.runs == {"reader": 1, "writer": 1}


def test_it_is_made_anew_once_for_all_that_was_put_since() -> None:
    seen: list[int] = []

    def body(world: _World) -> None:
        for number in range(1, 9):
            world.put("a", number)

    world = _World({_unit("reader"): lambda world: seen.append(world.total("total", "a")), _unit("writer"): body})

    world.agenda.run_all()

    assert seen == [0, 8]
    assert world.made == {"total": 2}


def test_a_unit_for_which_it_was_fresh_is_run_again_when_another_puts_more() -> None:
    seen: list[int] = []

    def body(world: _World) -> None:
        seen.append(world.total("total", "a", "b"))
        world.numbers["a"] = 4
        world.agenda.news("a", lambda unit: unit is both)

    both = _unit("both")
    world = _World({both: body, _unit("writer"): lambda world: world.put("b", 5)})

    world.agenda.run_all()

    assert seen == [0, 9]
    assert world.runs == {"both": 2, "writer": 1}


def test_what_awaits_a_run_is_made_anew_after_it() -> None:
    seen: list[bool] = []
    waiting = _unit("waiting")

    def body(world: _World) -> None:
        seen.append(world.agenda.remembered("waits", lambda: world.agenda.awaits(waiting)))

    world = _World({_unit("reader"): body, waiting: lambda _: None})

    world.agenda.run_all()

    assert seen == [True, False]
    assert world.runs == {"reader": 2, "waiting": 1}


def _growing(world: _World) -> None:
    """Reads what it adds to."""
    world.put("a", world.number("a") + 1)


def test_what_would_be_run_for_ever_is_cut_short_and_what_was_not_run_yet_is_run() -> None:
    late, growing = _unit("late"), _unit("growing")

    def body(world: _World) -> None:
        _growing(world)
        if world.runs["growing"] == 7:
            world.meet(late, _growing)

    world = _World({growing: body}, runs=7)

    world.agenda.run_all()

    assert list(world.agenda.cut_short) == [growing]
    assert world.runs == {"growing": 7, "late": 1}


def test_many_that_run_each_other_are_cut_short_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agenda, "FEW", 20)
    units = [_unit(f"unit{number}") for number in range(10)]
    world = _World(dict.fromkeys(units, _growing))

    world.agenda.run_all()

    assert len(world.agenda.cut_short) == 1
    assert sum(world.runs.values()) == agenda.ON_AVERAGE * len(units)
    assert min(world.runs.values()) >= 1
