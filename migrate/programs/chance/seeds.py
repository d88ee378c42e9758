"""What a program draws without having seeded it: there, each process gets something of its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.entrances import entered_from
from migrate.analysis.known import callers, output
from migrate.analysis.known import same as known
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import arguments, is_none, own_nodes
from migrate.analysis.units import Class, Function, Module, module_of
from migrate.programs.chance.environments import plays
from migrate.programs.chance.hub import draws_from_numpy, is_seeded_by_system
from migrate.programs.chance.seeded_games import seeds_environments
from migrate.programs.marker import NUMBERS, marks
from migrate.programs.reach.callees import reached
from migrate.programs.values.always import is_always_run
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.processes.sameness import Sameness
    from migrate.programs.program import Program

ENVIRONMENT = "the environment"
GENERATOR = "a random generator of its own"
NUMBER = "the number of the process"
OWN_SEED = "a seed that a clock or the system gives"
BESIDE = "what processes or threads of the program's own draw"


def unseeded(facts: Facts, loops: Loops, program: Program, sameness: Sameness, clocks: Sameness) -> list[str]:
    """The sources of chance that a program uses and does not seed, or not always, or not alike on all processes.

    `clocks` tells what is another on each process even if all is seeded.
    """
    modules, mains = modules_of(facts, program), _mains(facts, program)
    uses = [use for use in facts.calls_anywhere if use.unit.module in modules]
    drawing = (use for use in uses if not _has_own_seed(facts, clocks, use.node))
    drawn = {library for use in drawing for library in _drawn(facts, use)} | {"torch"}
    missing = [library for library in sorted(drawn) if not any(_seeds(facts, loops, sameness, uses, library, mains))]
    own = [use.node for use in uses if seeds_itself(facts, clocks, use.node)]
    streams = {call for call in own if is_stream(facts, call)}
    missing += [GENERATOR] if streams else []
    missing += [OWN_SEED] if streams.symmetric_difference(own) else []
    missing += [BESIDE] if any(_draw_beside(facts, modules)) else []
    if plays(facts, modules, uses) and not seeds_environments(facts, sameness, program, modules):
        missing.append(ENVIRONMENT)
    if any(_goes_by_number(facts, module) for module in modules):
        missing.append(NUMBER)
    return missing


def is_stream(facts: Facts, call: ast.Call) -> bool:
    """Whether a call makes a stream, or shuffles one, that takes its seed from the system."""
    return bool(facts.called(call) & known.STREAMS and not is_given(call)) or is_seeded_by_system(facts, call)


def is_too_late(facts: Facts, program: Program, call: ast.Call, library: str) -> bool:
    """Whether something is drawn above the only places that seed its library, in the function that holds them."""
    wanted, modules = known.SEEDS.get(library, frozenset()) | known.SEEDS_ALL, modules_of(facts, program)
    seeding = [u for u in facts.calls_anywhere if u.unit.module in modules and facts.called(u.node) & wanted]
    if len({use.unit for use in seeding}) != 1:
        return False
    drawn = list(_places(facts, call, seeding[0].unit))
    return bool(drawn) and min(node.lineno for node in drawn) < min(use.node.lineno for use in seeding)


def is_seeded_above(facts: Facts, call: ast.Call, library: str) -> bool:
    """`random.seed(1234)` stands above a draw, and nothing is called in between: all draw alike there.

    The number must be written out: then it does not matter what came before, and where the function is called.
    """
    wanted = known.SEEDS.get(library, frozenset()) | known.SEEDS_ALL
    tree = facts.tree(call)
    statement = tree.statement(call)
    block = tree.block(statement)
    for above in reversed(block[: next(index for index, each in enumerate(block) if each is statement)]):
        calls = [node for node in ast.walk(above) if isinstance(node, ast.Call)]
        if isinstance(above, ast.Expr) and above.value in calls and facts.called(calls[0]) & wanted:
            return is_given(calls[0]) and all(isinstance(each, ast.Constant) for each in calls[0].args)
        if calls or not isinstance(above, (ast.Assign, ast.AnnAssign, ast.Expr)):
            return False
    return False


def _places(facts: Facts, call: ast.Call, unit: Unit, depth: int = 4) -> Iterator[ast.Call]:
    """The calls of a unit that lead to a call, or that call itself."""
    own = facts.unit(call)
    if own is unit:
        yield call
    elif isinstance(own, Function) and depth:
        for caller in facts.callers(own):
            yield from _places(facts, caller.node, unit, depth - 1)


def seeds_itself(facts: Facts, clocks: Sameness, call: ast.Call) -> bool:
    """Whether a call seeds a library or a generator with what is another thing on each process."""
    names = facts.called(call)
    seeds = known.STREAMS | known.SEEDS_ALL.union(*known.SEEDS.values())
    is_method = not names and isinstance(call.func, ast.Attribute) and call.func.attr in ("seed", "manual_seed")
    if not (is_method or names & seeds):
        return bool(names & known.RESEEDING) or is_seeded_by_system(facts, call)
    given = arguments(call)
    if not is_given(call) or not all(map(clocks.same, given)) or not clocks.alike(call, deep=True):
        return True
    is_plain = names.isdisjoint(known.SEEDS["torch"]) and not _is_under_test(facts, call)
    return is_plain and _may_be_none(facts.once(Sources), given[0])


def _has_own_seed(facts: Facts, clocks: Sameness, call: ast.Call) -> bool:
    """`KFold(5, shuffle=True, random_state=42)` draws from no stream of its library, and alike on all processes."""
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "random_state"), None)
    if given is None or not any(name.startswith("sklearn.") for name in facts.called(call)):
        return False
    values = facts.values(given)
    is_number = isinstance(given, ast.Constant) or (bool(values) and roles(values) <= {Role.NUMBER, Role.KNOWN})
    return is_number and not _may_be_none(facts.once(Sources), given) and clocks.same(given)


def is_given(call: ast.Call) -> bool:
    """Whether a call that seeds is given a seed."""
    return not all(map(is_none, arguments(call)))


def _is_under_test(facts: Facts, call: ast.AST, depth: int = 3) -> bool:
    """Whether a call is made under a condition, itself or wherever its function is called."""
    if any(isinstance(above, (ast.If, ast.IfExp)) for above in facts.tree(call).up(call)):
        return True
    unit = facts.unit(call)
    callers = facts.callers(unit) if isinstance(unit, Function) and depth else []
    return bool(callers) and all(_is_under_test(facts, caller.node, depth - 1) for caller in callers)


def _may_be_none(sources: Sources, node: ast.expr, depth: int = 4) -> bool:
    """Whether a seed is an option without a default, or what a function is given if nobody says more."""
    if isinstance(node, ast.Constant):
        return node.value is None
    option = sources.option(node)
    if option is not None and not sources.given(node).expressions:
        words = {keyword.arg: keyword.value for keyword in option.keywords}
        is_asked_for = "required" in words or "action" in words or not ast.unparse(option.args[0])[1:].startswith("-")
        return not is_asked_for and _may_be_none(sources, words.get("default", ast.Constant(None)))
    if isinstance(node, ast.Attribute) and not sources.given(node).expressions:
        return any(_may_be_none(sources, each) for each in sources.fields(node))
    given = sources.given(node).expressions if depth and isinstance(node, (ast.Name, ast.Attribute)) else ()
    return any(_may_be_none(sources, each, depth - 1) for each in given)


def _draw_beside(facts: Facts, modules: set[Module]) -> Iterator[Use]:
    """What functions draw that run in processes or threads of the program's own."""
    for unit in facts.functions:
        handed = [call.handed for call in facts.callers(unit) if call.caller.module in modules]
        if any(each is not None and each.by in callers.BESIDE for each in handed):
            reach = reached(facts, [unit])
            yield from (use for use in facts.calls_anywhere if use.unit in reach and _draws(facts, use))


def _draws(facts: Facts, use: Use) -> bool:
    libraries = ("random", "numpy")
    names = facts.called(use.node)
    return any(known.draws(name) or any(known.draws_from(each, name) for each in libraries) for name in names)


def _goes_by_number(facts: Facts, module: Module) -> bool:
    """Whether a program that distributed itself computes with the number of the process, other than to print it."""
    tree = facts.tree_of(module)
    return any(
        not any(isinstance(above, ast.Call) and output.PRINT in facts.called(above) for above in tree.up(mark))
        for mark in marks(module.tree)
        if isinstance(asked := tree.parents[mark], ast.Attribute) and asked.attr in NUMBERS
    )


def modules_of(facts: Facts, program: Program) -> set[Module]:
    """The files that a program runs: those that it begins in, or is entered from, and what they import."""
    mains = _mains(facts, program)
    return mains.union(*map(facts.imported, mains), (loop.unit.module for loop in program.training))


def _mains(facts: Facts, program: Program) -> set[Module]:
    """The files that a program begins in, or is entered from; its training, where it has no home."""
    if program.start is None:
        return {program.module}.union(*(entered_from(facts, loop.unit) for loop in program.training))
    return {program.module, module_of(program.start), *entered_from(facts, program.start)}


def forward_draws(facts: Facts, program: Program) -> bool:
    """Whether a model that is trained may draw when it is called, in eval mode, too: what its file holds says so."""
    values = (v for origin in program.model_origins for v in facts.values(origin))
    texts = (value.unit.module.file.content for value in values if isinstance(value.unit, Class))
    return any(
        word in text for text in texts for word in (b"torch.rand", b"randn", b"bernoulli", b"sample(", b"normal_(")
    )


def samples_rows(facts: Facts, call: ast.Call) -> bool:
    """`frame.sample(frac=1)`: pandas draws from NumPy's stream, unless it is given a state of its own."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "sample" or facts.called(call):
        return False
    given = {keyword.arg for keyword in call.keywords}
    made = (value.origin for value in facts.receiver(call))
    is_frame = any(isinstance(o, ast.Call) and any(n.startswith("pandas.") for n in facts.called(o)) for o in made)
    return given.isdisjoint({"random_state", None}) and (is_frame or not given.isdisjoint({"frac", "n"}))


def _drawn(facts: Facts, use: Use) -> Iterator[str]:
    names = facts.called(use.node) - known.STREAMS
    if samples_rows(facts, use.node) or draws_from_numpy(facts, use.node):
        yield "numpy"
    for library in known.DRAWN:
        if any(known.draws_from(library, name) and name not in known.SEEDS[library] for name in names):
            yield library


def _seeds(
    facts: Facts, loops: Loops, sameness: Sameness, uses: list[Use], library: str, mains: set[Module]
) -> Iterator[Use]:
    """The calls that seed a library in every run, with what all processes know, before anything is drawn from it."""
    for use in uses:
        if not facts.called(use.node) & (known.SEEDS[library] | known.SEEDS_ALL):
            continue
        given = arguments(use.node)
        if given and all(map(sameness.same, given)) and is_always_run(facts, use.node, mains=mains):
            if not _draws_before(facts, loops, use, library):
                yield use


def _draws_before(facts: Facts, loops: Loops, use: Use, library: str) -> bool:
    """Whether something is drawn in the same function before the seed is set there."""
    if library == "torch":
        return False  # what is made before is given the main process's weights by prepare
    for node in own_nodes(use.unit.tree if isinstance(use.unit, Module) else use.unit.node):
        if not isinstance(node, ast.Call) or node.lineno >= use.node.lineno:
            continue
        inner = [n for unit in loops.updates.functions(node) for n in own_nodes(unit.node) if isinstance(n, ast.Call)]
        for call in (node, *inner):
            names = facts.called(call) - known.SEEDS[library]
            if any(known.draws_from(library, name) for name in names):
                return True
    return False
