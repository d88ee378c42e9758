"""What is printed out of the accelerator's reach: the first process says it, which the environment tells.

Configurations that are shown before there is an accelerator, what models and data sets say while they are made, and
what the training gives back: `print(train(config))` is `result = train(config)` for all, and the rest for the first.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import TYPE_CHECKING

from migrate.analysis.syntax import gives_up, is_main_guard, walk
from migrate.analysis.units import Function
from migrate.programs.chance.calls import draws
from migrate.programs.output.computed import Computed, computed
from migrate.programs.output.guards import is_asked
from migrate.programs.output.muted import only_prints as only_prints_in
from migrate.programs.output.voice import Voice
from migrate.programs.processes.junctions import is_elif
from migrate.programs.reach.callees import reached
from migrate.programs.values.logs import tells_progress

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Sequence

    from migrate.programs.conversion import Conversion

#: The first process, as the launcher tells it; a script that nobody launches is one.
IS_FIRST = "os.environ.get('RANK', '0') == '0'"


def asks_rank(code: str) -> bool:
    """Whether new code asks that: it is right in every script that runs it, converted or not."""
    return IS_FIRST in code.replace('"', "'")


def only_prints(conversion: Conversion, branch: ast.If) -> bool:
    """Whether a branch on the main process does nothing but print, for which it needs no accelerator."""
    return ByRank(conversion, Voice(conversion)).runs(branch.body) == [branch.body]


class ByRank:
    """The statements that do nothing but print or log, in places that the accelerator does not come to."""

    def __init__(self, conversion: Conversion, voice: Voice, nowhere: Container[ast.AST] = ()) -> None:
        self._conversion = conversion
        self._facts = conversion.facts
        self._voice = voice
        self._nowhere = nowhere  # what writes into the null device on the other processes
        self.computed: list[Computed] = []  # by all, before what is printed of it

    def said_in(self, unit: Function) -> Iterator[ast.stmt]:
        """The statements of a function that print or log themselves, and do not ask which process this is."""
        for node in self._facts.own(unit):
            if isinstance(node, ast.Call) and self._is_printed(node) and not self._voice.is_asked(node):
                yield self._facts.tree(node).statement(node)

    def runs(self, statements: Iterable[ast.stmt]) -> list[list[ast.stmt]]:
        """Those of the statements that only print, with what stands around them and only prints; neighbours together.

        The cells of a notebook are left out: they run in one process, whose environment names no rank.
        """
        facts = self._facts
        scripts = [each for each in statements if facts.file(each).notebook is None and self._prints(each)]
        found = dict.fromkeys(self._whole(each) for each in scripts if not self._is_last_word(each))
        above = {each: made for each in found if (made := self._computed(each)) is not None}
        self.computed += above.values()
        runs: list[list[ast.stmt]] = []
        for block in {id(block): block for block in (facts.tree(each).block(each) for each in found)}.values():
            at = [position for position, statement in enumerate(block) if statement in found]
            apart = (i for i, (one, next_) in enumerate(pairwise(at), 1) if next_ > one + 1 or block[next_] in above)
            ends = [0, *apart, len(at)]
            runs += [[block[position] for position in at[first:last]] for first, last in pairwise(ends)]
        return runs

    def last_words(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        """What is printed before a process ends with an error, which may be its own: each says it."""
        return [each for each in statements if self._is_last_word(each) and self._prints(each)]

    def _is_last_word(self, statement: ast.stmt) -> bool:
        return gives_up(self._facts.tree(statement).block(statement))

    def _whole(self, statement: ast.stmt) -> ast.stmt:
        """A loop or a branch around a statement that does no more than it; an `elif` begins none of its own."""
        tree = self._facts.tree(statement)
        above = tree.parents[statement]
        if not isinstance(above, (ast.For, ast.While, ast.If)) or is_main_guard(above) or is_asked(above):
            return statement
        if not self._prints(above) or (isinstance(above, ast.If) and is_elif(tree, above)):
            return statement
        return self._whole(above)

    def _prints(self, statement: ast.stmt) -> bool:
        """Whether a statement does nothing but print or log, but for what all compute above it."""
        voice, said = self._voice, statement.value if isinstance(statement, ast.Expr) else None
        is_logged = isinstance(said, ast.Call) and tells_progress(self._facts, said)
        if self._computed(statement) is not None:
            return True
        if not (is_logged or voice.is_output(statement)) or voice.is_collective(statement):
            return False
        return self._is_quiet(walk(statement))

    def _computed(self, statement: ast.stmt) -> Computed | None:
        """What all processes must compute of what a statement prints."""
        said = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(said, ast.Call) or not self._is_printed(said):
            return None
        made = computed(self._conversion, statement)
        if made is None:
            return None
        inside = {said, *walk(made.call)}
        return made if self._is_quiet(node for node in walk(statement) if node not in inside) else None

    def _is_quiet(self, nodes: Iterable[ast.AST]) -> bool:
        """Whether calls among some nodes write nothing but what is printed, and do no more."""
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        return all(map(self._is_printed, filter(self._voice.is_heard, calls))) and not any(map(self._does_more, calls))

    def _is_printed(self, call: ast.Call) -> bool:
        return self._voice.is_plain_print(call) or tells_progress(self._facts, call)

    def _does_more(self, call: ast.Call) -> bool:
        """Whether a call draws, changes what others see, or writes more than what is printed."""
        effects, targets = self._voice.effects, self._facts.targets(call)
        if draws(self._facts, call) or effects.moves(call) or effects.sets(call):
            return True
        return any(
            self._voice.speaking.speaks(unit)
            and not only_prints_in(self._conversion, self._voice, unit, nowhere=self._nowhere)
            for unit in targets
        )


def told_below(
    conversion: Conversion, voice: Voice, units: Sequence[Function], told: Collection[ast.AST]
) -> set[Function]:
    """What some functions lead to and that says no more than is told, or guarded, where it says it."""
    found: set[Function] = set()
    below = [unit for unit in reached(conversion.facts, units) if isinstance(unit, Function) and unit not in units]
    while more := {
        unit
        for unit in below
        if unit not in found and not voice.speaks_unasked(unit, besides={*units, *found}, covered=told)
    }:
        found |= more
    return found
