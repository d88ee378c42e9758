"""Steps of which each process takes as many as its own batch says: `for row in x[y > 0]: model(row).backward()`.

How large a batch is, is the same for all of them; how many of its rows are chosen, or how many labels it has, is not.
So it is with batches that a step goes on taking until one is right: `while y.sum() < 4: x, y = next(batches)`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.syntax import COMPREHENSIONS, FUNCTIONS, arguments, reads, walk, writes
from migrate.programs.processes.junctions import iterated
from migrate.programs.program import Refusal
from migrate.programs.values.content import depends_on_batch, goes_by_values
from migrate.programs.values.fillings import Fillings
from migrate.programs.values.masks import is_mask
from migrate.programs.values.sources import Sources
from migrate.programs.values.takes import taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program

_DEEPEST = 5  # names between a loop and what it runs over
_CHOOSING = frozenset("unique unique_consecutive nonzero masked_select argwhere".split())
_SETS = frozenset({"builtins.set", "builtins.frozenset", "builtins.filter", "collections.Counter"})
_COUNTING = frozenset(f"builtins.{name}" for name in "range len int min max zip".split()) | {"math.ceil", "math.floor"}


def uneven_steps(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Loops inside of a step that take steps, as many as the process's own batch says."""
    told: set[ast.AST] = set()
    for loop in program.training:
        for node in _stepping(facts, loops, loop) if loop.loaders else ():
            for over in iterated(node):
                if node not in told and (loops.trains(node) or loops.updates.reached(node)):
                    if _is_uneven(facts, loop, over, _DEEPEST):
                        told.add(node)
                        why = f"each process takes as many steps here as `{ast.unparse(over)}` has for its own batch"
                        way = "add the losses up in the loop, and call backward and step once, after it"
                        yield Refusal(
                            node, "MIG122", f"{why}: the others would wait for those that one of them has more", way
                        )


def uneven_takes(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Loops inside of a step that take batches, as many as what these hold says."""
    for loop in program.training:
        for node in walk(loop.node) if loop.loaders else ():
            if not isinstance(node, ast.While) or node is loop.node or not _takes(facts, loop, node):
                continue
            ends = [node.test, *(test for each in node.body for test in _tests_of_ends(each))]
            for test in (test for test in ends if _goes_by_values(facts, loop, test)):
                yield Refusal(
                    node,
                    "MIG122",
                    f"each process takes batches here until one of its own is as `{ast.unparse(test)}` says: it would "
                    "begin other passes than the others, or be out of data before them",
                    "let a sampler choose the rows of each batch, or take a batch as it is",
                )
                return


def _takes(facts: Facts, loop: LoopFact, node: ast.AST) -> bool:
    """Whether code takes batches of a training one by one."""
    return any(isinstance(inner, ast.Call) and taken(facts, inner) & loop.loaders for inner in walk(node))


def _goes_by_values(facts: Facts, loop: LoopFact, test: ast.expr) -> bool:
    """Whether a test depends on what a batch holds: also on how many different labels it has."""
    calls = (node for node in walk(test) if isinstance(node, ast.Call))
    return goes_by_values(facts, loop, test) or any(_is_uneven_call(facts, loop, call, _DEEPEST) for call in calls)


def _tests_of_ends(statement: ast.stmt) -> Iterator[ast.expr]:
    """What decides in a loop whether its round is over, or the loop itself."""
    if isinstance(statement, ast.If):
        inside = [*statement.body, *statement.orelse]
        if any(isinstance(each, (ast.Break, ast.Continue)) for each in inside):
            yield statement.test
        for each in inside:
            yield from _tests_of_ends(each)


def _stepping(facts: Facts, loops: Loops, loop: LoopFact) -> Iterator[ast.AST]:
    """The code of a step: the loop that takes the batches, and the loops of a function that it calls for each."""
    taking = loops.taking(loop.node)
    yield from walk(taking)
    if facts.unit(taking) is not loop.unit:
        *_, outermost = (loop.node, *facts.tree(loop.node).loops(loop.node))
        yield from walk(outermost)


def _is_uneven(facts: Facts, loop: LoopFact, node: ast.expr, depth: int) -> bool:
    """Whether how many items there are goes by what a batch holds."""
    if not depth:
        return False
    if isinstance(node, ast.Name):
        given = facts.once(Sources).given(node).expressions
        return any(_is_uneven(facts, loop, each, depth - 1) for each in given) or _is_filled(facts, loop, node, depth)
    if isinstance(node, ast.BinOp):
        return any(_is_uneven(facts, loop, each, depth) for each in (node.left, node.right))
    if isinstance(node, ast.Subscript):
        return _is_mask(facts, loop, node.slice, depth) or _is_uneven(facts, loop, node.value, depth - 1)
    if isinstance(node, ast.Call):
        return _is_uneven_call(facts, loop, node, depth)
    if isinstance(node, (ast.SetComp, ast.DictComp)) and depends_on_batch(facts, loop, node):
        return True
    if isinstance(node, COMPREHENSIONS):
        tests = [test for generator in node.generators for test in generator.ifs]
        over = [generator.iter for generator in node.generators]
        return any(_goes_by_batch(facts, loop, test) for test in tests) or any(
            _is_uneven(facts, loop, each, depth - 1) for each in over
        )
    return False


def _goes_by_batch(facts: Facts, loop: LoopFact, test: ast.expr) -> bool:
    """Whether a test is about what a batch holds, or about one of many things that a function makes of a batch."""
    if depends_on_batch(facts, loop, test):
        return True
    if isinstance(test, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops):
        return False
    over = [each for above in facts.tree(test).up(test) for each in _gone_through(above, reads(test))]
    return any(_is_made_of_batch(facts, loop, each, _DEEPEST) for each in over)


def _gone_through(node: ast.AST, names: set[str]) -> Iterator[ast.expr]:
    """What a loop or a comprehension takes some names from, one by one."""
    loops = [node] if isinstance(node, (ast.For, ast.AsyncFor)) else getattr(node, "generators", ())
    yield from (each.iter for each in loops if not names.isdisjoint(writes(each.target)))


def _is_made_of_batch(facts: Facts, loop: LoopFact, node: ast.expr, depth: int) -> bool:
    """Whether something is what a function of the project makes of a batch: `rollout(model, batch)`."""
    if isinstance(node, ast.Call) and facts.targets(node):
        return any(depends_on_batch(facts, loop, each) for each in arguments(node))
    given = facts.once(Sources).given(node).expressions if isinstance(node, ast.Name) and depth else ()
    return any(_is_made_of_batch(facts, loop, each, depth - 1) for each in given)


def _is_uneven_call(facts: Facts, loop: LoopFact, node: ast.Call, depth: int) -> bool:
    names, is_own = facts.called(node), depends_on_batch(facts, loop, node)
    if names & (known.UNEVEN | _SETS):
        return is_own
    if isinstance(node.func, ast.Attribute) and not facts.targets(node):
        if node.func.attr in _CHOOSING:
            return is_own
        if not names:  # `labels.tolist()`, `groups.items()`
            return _is_uneven(facts, loop, node.func.value, depth - 1)
    given = node.args if names & (known.PASSING | _COUNTING) else facts.once(Sources).given(node).expressions
    return any(_is_uneven(facts, loop, each, depth - 1) for each in given)


def _is_mask(facts: Facts, loop: LoopFact, index: ast.expr, depth: int) -> bool:
    """Whether an index chooses any number of items, by what a batch holds."""
    if is_mask(index):
        return depends_on_batch(facts, loop, index)
    given = facts.once(Sources).given(index).expressions if isinstance(index, ast.Name) and depth else ()
    return any(_is_mask(facts, loop, each, depth - 1) for each in given)


def _is_filled(facts: Facts, loop: LoopFact, node: ast.Name, depth: int) -> bool:
    """Whether a container is given some items only where a batch says so, or under what the batch holds."""
    fillings = facts.once(Fillings)
    keys: list[ast.expr] = []
    for filling in fillings.of(node):
        if _is_put_unevenly(facts, loop, filling, depth):
            return True
        targets = filling.targets if isinstance(filling, ast.Assign) else []
        keys += [to.slice for to in targets if isinstance(to, ast.Subscript)]
    keys += [key for key, makes in fillings.keys(node) if makes or _makes_items(facts, node)]
    return any(depends_on_batch(facts, loop, key) for key in keys)


def _makes_items(facts: Facts, node: ast.Name) -> bool:
    """Whether a container makes what it is asked for: `defaultdict(list)`."""
    given = facts.once(Sources).given(node).expressions
    return any(isinstance(each, ast.Call) and "collections.defaultdict" in facts.called(each) for each in given)


def _is_put_unevenly(facts: Facts, loop: LoopFact, filling: ast.AST, depth: int) -> bool:
    """Whether the batch says how often a place is come to that puts something into a container."""
    gone_through: set[str] = set()  # by the loops inside
    for above in facts.tree(filling).up(filling):
        if above is loop.node or isinstance(above, FUNCTIONS):
            return False
        if isinstance(above, ast.If) and _goes_by_batch(facts, loop, above.test):
            return True
        if isinstance(above, (ast.For, ast.AsyncFor)):
            # of groups all members of which are gone through, it counts how many these are
            is_group = not gone_through.isdisjoint(writes(above.target))
            is_uneven = _are_uneven_groups if is_group else _is_uneven
            if is_uneven(facts, loop, above.iter, depth - 1):
                return True
            gone_through |= reads(above.iter)
    return False


def _are_uneven_groups(facts: Facts, loop: LoopFact, groups: ast.expr, depth: int) -> bool:
    """Whether it goes by the batch how many members some groups have together."""
    names = [inner for inner in walk(groups) if isinstance(inner, ast.Name)] if depth > 0 else []
    return any(
        _is_put_unevenly(facts, loop, filling, depth)
        for name in names
        for filling in facts.once(Fillings).of_items(name)
    )
