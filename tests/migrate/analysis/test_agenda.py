"""What is remembered of what was read is made anew when that grows, and its readers are run again."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable

from migrate.analysis.agenda import Agenda
from migrate.analysis.units import Function, Module, Unit
from migrate.source.project import source_file

_MODULE = Module(source_file("a.py", b""), ast.parse(""))


def _unit(name: str) -> Function:
    [node] = ast.parse(f"def {name}(): pass").body
    assert isinstance(node, ast.FunctionDef)
    return Function(node, _MODULE, None, None)


class _World:
    """Numbers under names, of which units read sums that are remembered."""

    def __init__(self, bodies: dict[Unit, Callable[[_World], None]]) -> None:
        self.numbers: dict[str, int] = {}
        self.made: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self.agenda = Agenda(self._run)
        self._bodies = bodies
        for unit in bodies:
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
