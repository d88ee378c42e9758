"""Data that a program makes up: what it draws at random, once in a run, and hands out by its loaders.

Found by walking back from the calls that make the loaders, by names, attributes, returns and what fills a container.
So are data that come from a pass over a loader which shuffles and is not dealt out: features of all pictures, in an
order of each process's own.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.roles import FROM_LOADER, Role, origins, roles
from migrate.analysis.syntax import arguments
from migrate.analysis.texts import text_of
from migrate.analysis.units import Class
from migrate.programs.chance.seeds import GENERATOR, is_given, samples_rows
from migrate.programs.reach.callees import reached
from migrate.programs.values.fillings import Fillings
from migrate.programs.values.sources import Sources, parts_given

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.chance.draws import Draws

#: What no data come from: they are asked for their sizes, or run.
_ENDS = frozenset({Role.MODEL, Role.OPTIMIZER, Role.SCHEDULER, Role.CRITERION, Role.LOADER, Role.BATCH, Role.SAMPLES})

#: By these a call is given a stream or a seed of its own.
_SEEDED = frozenset({"generator", "random_state", "seed", "rng", None})
#: What gives random values, by the library from whose stream they are drawn.
_DRAWING = {
    "torch": ("torch.rand", "torch.normal", "torch.bernoulli", "torch.multinomial", "torch.poisson"),
    "numpy": ("numpy.random.", "sklearn.datasets.make_"),
    "random": ("random.",),
}
_SIGNS = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)  # one object stands in many places


def made_up_data(facts: Facts, draws: Draws, each: Collection[Unit], dealt: Collection[ast.AST]) -> dict[ast.Call, str]:
    """The calls that draw what loaders hand out, with the library whose seed decides.

    `each`: the functions that run for every sample, where each process may draw its own; `dealt`: the loaders of which
    all processes know the order.
    """
    loaders = {use.node for use in draws.uses if _makes(facts, use.node, Role.LOADER)}
    shuffling = {call for call in loaders if shuffles(facts, call)}
    if not shuffling and not any(_library(facts, draws, use.node) for use in draws.uses if use.unit not in each):
        return {}
    walk = _Walk(facts, draws, each)
    found = walk.found(loaders)
    passed = {loader for loader in walk.passed if facts.source(loader) in shuffling and loader not in dealt}
    return found | dict.fromkeys(_passes(facts, draws, passed), "torch")


def shuffles(facts: Facts, loader: ast.Call) -> bool:
    """Whether a loader takes its samples in an order that it draws from the stream of all."""
    given = {keyword.arg: keyword.value for keyword in loader.keywords}
    if "generator" in given:
        return False
    samplers = [v for name in ("sampler", "batch_sampler") if name in given for v in facts.values(given[name])]
    samplers += [inner for value in samplers if value.origin is not None for inner in facts.over(value.origin)]
    if any(isinstance(v.origin, ast.Call) and _draws_order(facts, v.origin) for v in samplers):
        return True
    shuffle = given.get("shuffle", loader.args[2] if len(loader.args) > 2 else None)
    return shuffle is not None and not (isinstance(shuffle, ast.Constant) and not shuffle.value)


def _draws_order(facts: Facts, sampler: ast.Call) -> bool:
    is_drawing = any(name.endswith("RandomSampler") for name in facts.called(sampler))
    return is_drawing and not any(keyword.arg == "generator" for keyword in sampler.keywords)


def _passes(facts: Facts, draws: Draws, loaders: set[ast.AST]) -> Iterator[ast.Call]:
    """The first call in each pass over some loaders."""
    seen: set[ast.AST] = set()
    for use in draws.uses if loaders else ():
        loop = next(facts.tree(use.node).loops(use.node), None)
        if isinstance(loop, ast.For) and loop not in seen and facts.loaders(facts.values(loop.iter)) & loaders:
            seen.add(loop)
            yield use.node


def _makes(facts: Facts, call: ast.Call, *wanted: Role) -> bool:
    return call in origins(facts.values(call), *wanted)


def _library(facts: Facts, draws: Draws, call: ast.Call) -> str | None:
    """The library from whose stream a call draws, or that it makes a stream that nobody seeds."""
    names = facts.called(call)
    if names & known.STREAMS:
        return None if is_given(call) else GENERATOR
    if any(keyword.arg in _SEEDED for keyword in call.keywords) or not draws.draws(call):
        return None
    if not names:  # a method: `x.normal_()`, `frame.sample(frac=1)`
        return "numpy" if samples_rows(facts, call) else "torch"
    found = (library for library, drawing in _DRAWING.items() if any(name.startswith(drawing) for name in names))
    return next(found, None)


class _Walk:
    """One walk back from what the loaders are made of."""

    def __init__(self, facts: Facts, draws: Draws, each: Collection[Unit]) -> None:
        self._facts = facts
        self._draws = draws
        self._each = each
        self._sources = facts.once(Sources)
        self._fillings = facts.once(Fillings)
        self.passed: set[ast.AST] = set()  # the loaders from whose batches the data come

    def found(self, loaders: set[ast.Call]) -> dict[ast.Call, str]:
        """The calls that draw behind the arguments of some calls."""
        waiting: list[ast.AST] = [part for call in loaders for part in arguments(call)]
        seen: set[ast.AST] = set()
        found: dict[ast.Call, str] = {}
        while waiting:
            node = waiting.pop()
            if node in seen or self._facts.unit(node) in self._each:
                continue
            seen.add(node)
            if isinstance(node, ast.Call) and (library := _library(self._facts, self._draws, node)):
                found[node] = library
            waiting += self._behind(node)
        return found

    def _behind(self, node: ast.AST) -> Iterator[ast.AST]:
        """What comes into an expression, one step back."""
        if isinstance(node, ast.expr) and roles(self._facts.values(node)) & _ENDS:
            self.passed |= origins(self._facts.values(node), *FROM_LOADER)
            return
        yield from (part for part in ast.iter_child_nodes(node) if not isinstance(part, _SIGNS))
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield from self._named(node)
        elif isinstance(node, ast.Call):
            yield from self._sources.given(node).expressions
            yield from self._made(node)

    def _named(self, node: ast.Name | ast.Attribute) -> Iterator[ast.AST]:
        yield from self._sources.given(node).expressions
        yield from self._fillings.of(node)
        target = text_of(node)
        for binding in self._facts.bindings_in(self._facts.unit(node)):
            if binding.target == target and isinstance(binding.statement, (ast.Assign, ast.AugAssign)):
                yield from (part for part, _ in parts_given(self._facts, binding.statement, binding.target))

    def _made(self, call: ast.Call) -> Iterator[ast.AST]:
        """All that a data set of the project does when it is made, and when a program tells it to draw anew."""
        units = (value.unit for value in self._facts.values(call) if value.origin is call)
        classes = [unit for unit in units if isinstance(unit, Class)]
        makers = [maker for cls in classes for maker in cls.constructors()]
        methods = (unit for unit in self._facts.functions if unit.owner in classes and unit not in self._each)
        makers += [unit for unit in methods if self._facts.callers(unit)]
        for unit in reached(self._facts, makers):
            yield from self._facts.own(unit).of(ast.Call)
