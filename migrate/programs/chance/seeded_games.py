"""Whether a program seeds every environment that it plays against.

`env.seed(0)` or `env.reset(seed=0)`, where the environment is made or where it has its name; a vector of environments
seeds those in it. Some libraries take the seed where the environment is made.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, arguments, is_none, line_of
from migrate.analysis.units import Function
from migrate.programs.reach.entry_files import is_of_another_script
from migrate.programs.values.always import holds_by_default, is_always_run
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module, Unit
    from migrate.programs.processes.sameness import Sameness
    from migrate.programs.program import Program

#: What makes environments, and the argument that seeds them there.
MAKERS = {
    "gym.make": "",
    "gymnasium.make": "",
    "gymnasium.make_vec": "",
    "gym_super_mario_bros.make": "",
    "gym.vector.make": "",
    "gymnasium.vector.make": "",
    "envpool.make": "seed",
    "envpool.make_gym": "seed",
    "envpool.make_gymnasium": "seed",
    "procgen.ProcgenEnv": "rand_seed",
    "stable_baselines3.common.env_util.make_vec_env": "seed",
    "stable_baselines3.common.env_util.make_atari_env": "seed",
}
_DEEPEST = 4


def seeds_environments(facts: Facts, sameness: Sameness, program: Program, modules: Iterable[Module]) -> bool:
    """Whether all environments are seeded, in every run, with what all processes know; also where they choose.

    Those that are made once the training is over may differ.
    """
    calls = [node for module in modules for node in facts.tree_of(module).nodes if isinstance(node, ast.Call)]
    seeding = [call for call in calls if _seeds(sameness, call)]
    for space in ("action_space", "observation_space"):
        drawing = (call for call in calls if ast.unparse(call.func).endswith(f"{space}.sample"))
        is_drawn = any(not _is_only_in_others(facts, program, call, {}) for call in drawing)
        if is_drawn and not any(ast.unparse(call.func).endswith(f"{space}.seed") for call in seeding):
            return False
    games = [call for call in seeding if "_space" not in ast.unparse(call.func)]
    makers = [call for call in calls if called_by_name(facts, call) & MAKERS.keys()]
    makers = [call for call in makers if not _is_only_in_others(facts, program, call, {})]
    if not makers:
        return bool(games)
    return all(_is_seeded(facts, sameness, games, program, maker, _DEEPEST) for maker in makers)


def _seeds(sameness: Sameness, call: ast.Call) -> bool:
    """Whether a call seeds an environment with what is the same on all processes."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "reset":
        given = [keyword.value for keyword in call.keywords if keyword.arg == "seed"]
    elif call.func.attr == "seed" and "random" not in ast.unparse(call.func.value):
        given = arguments(call)
    else:
        return False
    return bool(given) and all(map(sameness.same, given)) and not any(map(is_none, given))


def _is_seeded(
    facts: Facts, sameness: Sameness, seeding: list[ast.Call], program: Program, made: ast.Call, depth: int
) -> bool:
    """Whether an environment is seeded where it is made, or where what is made of it has its name."""
    keyword = next((MAKERS[name] for name in called_by_name(facts, made) if MAKERS.get(name)), "")
    given = next((each.value for each in made.keywords if each.arg == keyword), None)
    if given is not None and not is_none(given):
        return sameness.same(given)
    names = _names(facts, made)
    if any(_is_seeding(facts, call, made, names) for call in seeding) or _is_after(facts, program, made, {}):
        return True
    if not depth:
        return False
    places = list(_places(facts, made))
    return bool(places) and all(_is_seeded(facts, sameness, seeding, program, each, depth - 1) for each in places)


def _is_after(facts: Facts, program: Program, node: ast.AST, known: dict[Unit, bool]) -> bool:
    """Whether code is only come to once the training is over."""
    unit = facts.unit(node)
    for loop in program.training:
        if loop.unit is unit:
            outermost = [loop.node, *facts.tree(loop.node).loops(loop.node)][-1]
            return line_of(node) > (outermost.end_lineno or 0)
    if isinstance(unit, Function) and unit not in known:
        known[unit] = False
        calls = [call.node for call in facts.callers(unit) if not is_of_another_script(facts, program, call.node)]
        known[unit] = bool(calls) and all(_is_after(facts, program, call, known) for call in calls)
    return known.get(unit, False)


def _is_only_in_others(facts: Facts, program: Program, node: ast.AST, known: dict[Unit, bool]) -> bool:
    """Whether every way to some code begins in another script, which a file of both imports.

    `known`: what was found of the functions that lead to it.
    """
    if is_of_another_script(facts, program, node):
        return True
    unit = facts.unit(node)
    if not isinstance(unit, Function):
        return False
    while unit.parent is not None and not facts.callers(unit):
        unit = unit.parent  # what a function returns that others call
    if unit not in known:
        known[unit] = True  # what calls itself begins elsewhere
        calls = facts.callers(unit)
        known[unit] = bool(calls) and all(_is_only_in_others(facts, program, call.node, known) for call in calls)
    return known[unit]


def _names(facts: Facts, made: ast.AST) -> set[str]:
    """The names that the statement gives, and those that the same code gives to what is put around it."""
    found = set(_targets(facts.tree(made).statement(made)))
    assigned = [node for node in facts.own(facts.unit(made)) if isinstance(node, ast.Assign)]
    for _ in range(_DEEPEST):
        for node in assigned:
            if isinstance(node.value, ast.Call) and found & set(map(ast.unparse, node.value.args)):
                found |= set(_targets(node))
    return found


def _targets(statement: ast.AST) -> Iterator[str]:
    if isinstance(statement, ast.Assign):
        yield from (ast.unparse(t) for t in statement.targets if isinstance(t, (ast.Name, ast.Attribute)))


def _is_seeding(facts: Facts, call: ast.Call, made: ast.AST, names: set[str]) -> bool:
    """Whether a call seeds what has one of the names, each time that it is made."""
    assert isinstance(call.func, ast.Attribute)
    owner = ast.unparse(call.func.value)
    named = {name for name in names if owner == name or owner.startswith((f"{name}.unwrapped", f"{name}.env"))}
    named |= {name for name in names if "." in name and owner.endswith(name[name.index(".") :])}
    if not named:
        return False
    if facts.unit(call) is facts.unit(made):
        around = set(facts.tree(made).up(made))
        tests = [a for a in facts.tree(call).up(call) if isinstance(a, (ast.If, ast.IfExp)) and a not in around]
        loops = {a for a in around if isinstance(a, (ast.For, ast.While))}
        is_with_it = loops <= set(facts.tree(call).up(call))
        return is_with_it and all(holds_by_default(facts, a.test) for a in tests)
    is_shared = any("." in name for name in named) or not isinstance(facts.unit(made), Function)
    return is_shared and not _is_again(facts, made) and is_always_run(facts, call, in_loops=True)


def _is_again(facts: Facts, made: ast.AST) -> bool:
    """Whether a place makes one after the other."""
    return any(isinstance(above, (ast.For, ast.While)) for above in facts.tree(made).up(made))


def _places(facts: Facts, made: ast.AST) -> Iterator[ast.Call]:
    """Where the function is used that makes an environment and returns it, or returns what makes it."""
    tree = facts.tree(made)
    functions = [above for above in tree.up(made) if isinstance(above, (*FUNCTIONS, ast.Lambda))]
    if functions and isinstance(functions[0], ast.Lambda):  # `DummyVecEnv([lambda: gym.make(name)])`
        yield from [above for above in tree.up(functions[0]) if isinstance(above, ast.Call)][:1]
    elif functions and getattr(functions[0], "name", "") != "__init__":
        for call in _calls(facts):
            units = {getattr(value.unit, "node", None) for value in facts.values(call.func)}
            if units & {functions[0], functions[-1]}:  # `return thunk`
                yield call


def _calls(facts: Facts) -> Iterator[ast.Call]:
    for module in facts.modules:
        yield from (node for node in facts.tree_of(module).nodes if isinstance(node, ast.Call))
