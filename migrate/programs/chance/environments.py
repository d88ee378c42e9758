"""Environments that a program plays against, and how each of them can be seeded.

Every environment has a generator of its own, which no seed of a library reaches: `env.reset(seed=s)` seeds it, in older
versions `env.seed(s)`. Which of both it is, shows in what `env.step(a)` gives: five things, or four.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import COMPREHENSIONS, FUNCTIONS, walk
from migrate.analysis.units import Function, Module
from migrate.programs.reach.callees import on_all_ways

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Unit


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment of the program, and the calls that seed it."""

    made: ast.stmt  # the statement that makes it and gives it its name
    seeding: tuple[str, ...]  # `{seed}` stands for the seed


#: What a program may import and still be one whose environments are all made by a call of `make`.
_MADE_BY_NAME = frozenset(
    """gym gymnasium atari_py ale_py nes_py gym_super_mario_bros pybullet_envs minigrid gym_minigrid highway_env
    mujoco_py procgen""".split()
)
_MAKERS = frozenset({"gym.make", "gymnasium.make", "gym_super_mario_bros.make"})
#: What draws from an environment's generators.
_PLAYING = frozenset({"reset", "step", "sample"})
#: What only says what an environment is like.
_DESCRIBING = tuple(f"{library}.{part}" for library in ("gym", "gymnasium") for part in ("spaces.", "Env", "register"))


def plays(facts: Facts, modules: set[Module], uses: list[Use]) -> bool:
    """Whether a program plays with a library of environments, and does not only import it, or with what it is given."""
    if any(is_game(facts, use.node) for use in uses):
        return True
    libraries = _libraries(facts, modules)
    if not libraries <= _MADE_BY_NAME:
        return True
    called = {name for use in uses for name in facts.called(use.node)} if libraries else set()
    played = {name.partition(".")[0] for name in called if not name.startswith(_DESCRIBING)}
    return bool(played & libraries) or (bool(libraries) and _has_own(facts, modules))


def is_game(facts: Facts, call: ast.Call) -> bool:
    """`state, reward, done, info = env.step(action)`: whether a call plays with something of which nothing is known."""
    is_step = isinstance(call.func, ast.Attribute) and call.func.attr == "step"
    if not is_step or facts.targets(call) or not roles(facts.receiver(call)) <= {Role.UNKNOWN}:
        return False
    return next(_shown(facts, call), None) is not None


def _libraries(facts: Facts, modules: Iterable[Module]) -> set[str]:
    return set().union(*map(facts.once(_Libraries).of, modules))


class _Libraries:
    """The libraries of environments that a file imports."""

    def __init__(self, _: Facts) -> None:
        self._known: dict[Module, frozenset[str]] = {}

    def of(self, module: Module) -> frozenset[str]:
        if module not in self._known:
            inside = walk(module.tree)
            names = [alias.name for node in inside.of(ast.Import) for alias in node.names]
            names += [node.module or "" for node in inside.of(ast.ImportFrom) if node.level == 0]
            self._known[module] = frozenset(name.partition(".")[0] for name in names) & known.ENVIRONMENTS
        return self._known[module]


def _chooses(uses: list[Use]) -> bool:
    """Whether a program lets an environment choose actions, which has another generator for that."""
    return any(ast.unparse(use.node.func).endswith("action_space.sample") for use in uses)


# --- seeds that can be given ----------------------------------------------------------------------------------------


def environments(facts: Facts, start: Unit, modules: set[Module], uses: list[Use]) -> tuple[Environment, ...] | None:
    """Every environment of a program, with the calls that seed it; None if one of them cannot be seeded.

    `start` is where the accelerator is made: that runs once.
    """
    if not _libraries(facts, modules) <= _MADE_BY_NAME or _has_own(facts, modules):
        return None
    if any(ast.unparse(use.node.func).endswith("observation_space.sample") for use in uses):
        return None
    is_new = _is_new(facts, modules, uses)
    makers = [use for use in uses if facts.called(use.node) & _MAKERS]
    if is_new is None or not makers:
        return None
    found: dict[ast.stmt, Environment] = {}
    for use in makers:
        for call in _given_up(facts, modules, use.node):
            statement = facts.tree(call).statement(call)
            name = _name(statement, call)
            if name is None or not on_all_ways(facts, call, lambda node: _is_made_once(facts, node, start)):
                return None
            if _is_played_before(facts, start, statement, name):
                return None
            inner = name if call is use.node and _is_bare(statement, call) else f"{name}.unwrapped"
            seeding = [f"{inner}.reset(seed={{seed}})" if is_new else f"{name}.seed({{seed}})"]
            seeding += [f"{name}.action_space.seed({{seed}})"] if _chooses(uses) else []
            found[statement] = Environment(statement, tuple(seeding))
    return tuple(found.values())


def _is_bare(statement: ast.stmt, made: ast.Call) -> bool:
    """Whether a statement names the environment itself, not a wrapper around it, which may not hand the seed on."""
    assert isinstance(statement, ast.Assign)
    value = statement.value
    return (value.value if isinstance(value, ast.Attribute) else value) is made


def _given_up(facts: Facts, modules: set[Module], made: ast.Call, depth: int = 4) -> list[ast.Call]:
    """The calls that give an environment its name: of `make`, or of the function that makes it and returns it."""
    unit = facts.unit(made)
    if not isinstance(unit, Function) or isinstance(unit.node, ast.Lambda) or unit.name == "__init__" or not depth:
        return [made]
    name = _name(facts.tree(made).statement(made), made)
    returned = [node.value for node in facts.own(unit) if isinstance(node, ast.Return) and node.value is not None]
    inside = [inner for value in returned for inner in walk(value)]
    if not any(inner is made or (isinstance(inner, ast.Name) and inner.id == name) for inner in inside):
        return [made]
    calls = [call for call in facts.callers(unit) if call.caller.module in modules and call.handed is None]
    return [each for call in calls for each in _given_up(facts, modules, call.node, depth - 1)] or [made]


def _has_own(facts: Facts, modules: set[Module]) -> bool:
    """Whether a program has environments of its own that draw from the generator that the library gives them."""
    if not any(
        word in module.file.content for module in modules for word in (b"np_random", b"seeding", b"_space.sample")
    ):
        return False
    owners = {unit.owner for unit in facts.functions if unit.module in modules and unit.owner is not None}
    return any(base.endswith((".Env", ".core.Env")) for owner in owners for base in owner.library_bases())


def _name(statement: ast.stmt, made: ast.Call) -> str | None:
    """The name or attribute that a statement gives to the environment made in it, or to what is put around that."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    node: ast.AST = statement.value
    while node is not made:  # `Wrapper(gym.make(...)).unwrapped`
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        else:
            return None
    target = statement.targets[0]
    is_name = isinstance(target, ast.Name) or (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name))
    return ast.unparse(target) if is_name else None


def _is_made_once(facts: Facts, node: ast.AST, start: Unit) -> bool | None:
    """Whether a node runs once for each place that leads to it: several environments need seeds of their own.

    None: where its function is called says so.
    """
    for above in facts.tree(node).up(node):
        if isinstance(above, (ast.For, ast.While, ast.Lambda, *COMPREHENSIONS)):
            return False
        if isinstance(above, FUNCTIONS):
            break
    unit = facts.unit(node)
    if unit is start or isinstance(unit, Module):
        return True
    if unit.parent is not None or not facts.callers_known(unit):
        return False
    return None if facts.callers(unit) else True  # what nobody calls makes none


def _is_played_before(facts: Facts, start: Unit, made: ast.stmt, name: str) -> bool:
    """Whether an environment is played between where it is made and where the object that has the accelerator is."""
    unit = facts.unit(made)
    calls = [call.node for call in facts.callers(start) if call.caller is unit] if isinstance(start, Function) else []
    first = min((call.lineno for call in calls if call.lineno > made.lineno), default=0)
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _PLAYING
        and ast.unparse(node.func.value).partition(".")[0] == name
        and made.lineno < node.lineno < first
        for node in facts.own(unit)
    )


def _is_new(facts: Facts, modules: set[Module], uses: list[Use]) -> bool | None:
    """Whether `reset` takes the seed, as the program uses its environments; None where that does not show."""
    found = {is_new for use in uses for is_new in _shown(facts, use.node)}
    if not found and "gymnasium" in _libraries(facts, modules):
        return True
    return found.pop() if len(found) == 1 else None


def _shown(facts: Facts, call: ast.Call) -> Iterator[bool]:
    """What a call of `step` or `reset` shows of the version that the program is written for."""
    called = call.func
    if not isinstance(called, ast.Attribute) or called.attr not in ("step", "reset"):
        return
    above = next(facts.tree(call).up(call), None)
    if not isinstance(above, ast.Assign) or not isinstance(above.targets[0], ast.Tuple):
        return
    count = len(above.targets[0].elts)
    if called.attr == "step" and count in (4, 5):
        yield count == 5
    elif called.attr == "reset" and count == 2:
        yield True
