"""Every statement of a program that writes something, sorted by what one process speaking for all makes of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.known.progress import FIXED_BARS
from migrate.analysis.syntax import FUNCTIONS, arguments, blocks, walk
from migrate.analysis.units import Class, Function, Module
from migrate.programs.output.by_rank import ByRank, told_below
from migrate.programs.output.computed import Computed, computed
from migrate.programs.output.folders import if_missing, may_be_there, only_folder, path_of
from migrate.programs.output.giving import giving
from migrate.programs.output.guards import is_asked, keeps
from migrate.programs.output.kept_open import kept_open, only_opens
from migrate.programs.output.logged import logged_above
from migrate.programs.output.muted import is_muted, only_prints
from migrate.programs.output.run_by_libraries import run_by_libraries
from migrate.programs.output.surroundings import Outside, is_command, surroundings, unnamed_speakers
from migrate.programs.output.voice import Voice
from migrate.programs.output.writers import Form, made_by
from migrate.programs.processes.films import put_around, told_files
from migrate.programs.reach.implied import implied
from migrate.programs.values.asides import done
from migrate.programs.values.logs import logs
from migrate.programs.values.names import is_made_up, is_opened_by_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from migrate.programs.conversion import Conversion


@dataclass(slots=True)
class Speech:
    """The output of one program."""

    prints: list[ast.Call] = field(default_factory=list)
    early: list[ast.stmt] = field(default_factory=list)  # written before the accelerator exists
    needed: list[ast.stmt] = field(default_factory=list)  # writers that all processes need
    saves: list[ast.Call] = field(default_factory=list)  # torch.save(object, path) by itself
    guarded: list[list[ast.stmt]] = field(default_factory=list)  # neighbours that do nothing but write
    computed: list[Computed] = field(default_factory=list)  # by all, before what is guarded writes it
    mixed: list[ast.stmt] = field(default_factory=list)  # write, and run what all processes must enter
    diverted: list[ast.expr] = field(default_factory=list)  # paths of files: the others open the null device
    inside: list[ast.Call] = field(default_factory=list)  # what expressions write that do more
    opened: list[ast.Call] = field(default_factory=list)  # files that stay open for writing, and cannot be diverted
    optional: list[ast.Call] = field(default_factory=list)  # writers that are None on the others
    switched: list[ast.Call] = field(default_factory=list)  # runs of services, switched off on the others
    switched_early: list[ast.Call] = field(default_factory=list)  # the same, out of the accelerator's reach
    inputs: list[ast.Call] = field(default_factory=list)  # questions to the user
    summaries: list[ast.Call] = field(default_factory=list)  # of models, which the library runs and prints
    contexts: list[ast.expr] = field(default_factory=list)  # `with mlflow.start_run():` around what all must enter
    folders: list[ast.Call] = field(default_factory=list)  # made out of reach, if they are not there
    outside: list[Outside] = field(default_factory=list)  # what the code around the program writes
    unreached: list[Function] = field(default_factory=list)  # functions that write out of the accelerator's reach
    unnamed: tuple[str, ...] = ()  # files that speak and were not named
    told: list[ast.expr] = field(default_factory=list)  # files of environments that tell what they write, too
    nowhere: list[ast.expr] = field(default_factory=list)  # paths of files that objects keep open, out of its reach
    by_rank: list[list[ast.stmt]] = field(default_factory=list)  # neighbours that only print, out of its reach
    films: list[ast.stmt] = field(default_factory=list)  # put around environments out of the accelerator's reach
    bars: list[ast.Call] = field(default_factory=list)
    shown: list[ast.Call] = field(default_factory=list)  # bars out of the accelerator's reach
    given: list[ast.Call] = field(default_factory=list)  # move a file, and give the path that all go on with
    drawn: list[ast.Call] = field(default_factory=list)  # bars that cannot be switched off, moved by hand
    fixed: list[ast.Call] = field(default_factory=list)  # such bars that a loop runs over
    logs: list[ast.Call] = field(default_factory=list)  # through the standard library's logging
    commands: list[ast.Call] = field(default_factory=list)  # that every process has the system run

    @property
    def edits(self) -> int:
        """How many places need the accelerator."""
        single = len(self.prints) + len(self.saves) + len(self.diverted) + len(self.optional) + len(self.contexts)
        return single + len(self.guarded)

    def is_computed(self, statement: ast.stmt) -> bool:
        """Whether all processes make a call of a statement, above it."""
        return any(each.statement is statement for each in self.computed)

    @property
    def covered(self) -> set[int]:
        """The nodes that only the main process comes to (by `id`)."""
        by_all = {id(node) for each in self.computed for node in walk(each.call)}
        return {id(node) for run in self.guarded for statement in run for node in walk(statement)} - by_all


def listen(conversion: Conversion) -> Speech:
    """What the units of a program write. Functions that only write are left; their calls are among the guarded."""
    said = Speech()
    voice = Voice(conversion)
    for unit in conversion.speaking_units:
        if isinstance(unit, Module):
            _listen(conversion, voice, said, unit.tree.body)
        else:
            _listen_inside(conversion, voice, said, unit)
    silent = is_muted(conversion)
    unnamed = implied(conversion.facts, {*conversion.units, *conversion.access.around})  # no call has a guard
    for unit in {*conversion.program.outsiders, *_beside(conversion), *unnamed, *run_by_libraries(conversion)}:
        said.folders += may_be_there(conversion.facts, unit) if conversion.facts.is_editable(unit) else []
        is_guarded = voice.is_of_ones_object(unit) or (unit not in unnamed and voice.is_guarded_outside(unit))
        if voice.speaks_unasked(unit) and not is_guarded:
            if not silent or not only_prints(conversion, voice, unit):
                said.unreached.append(unit)
    said.unreached = [unit for unit in said.unreached if voice.speaks_unasked(unit, besides=said.unreached)]
    said.unnamed = unnamed_speakers(conversion, voice)
    for around in surroundings(conversion, voice):
        said.folders += around.folders
        said.outside += [around] if around.written else []
    for statement in put_around(conversion.facts, conversion.program):
        if conversion.access.can_reach(statement):
            said.guarded.append([statement])
        else:
            said.films.append(statement)
    said.told = told_files(conversion.facts, conversion.program)
    said.logs += [use.node for use in conversion.speaking_uses if logs(conversion.facts, use.node)]
    said.early += logged_above(conversion)
    _find_single(conversion, voice, said)
    _find_prints(conversion, voice, said)
    _find_written(conversion, voice, said)
    _find_given(conversion, voice, said)
    _find_bars(conversion, voice, said)
    _find_commands(conversion, voice, said)
    _tell_apart(conversion, voice, said)
    return said


def _tell_apart(conversion: Conversion, voice: Voice, said: Speech) -> None:
    """What is only printed out of the accelerator's reach is for the process of the first rank; the rest is left."""
    outside = [statement for around in said.outside for statement in around.written]
    unreached = said.unreached
    opened = kept_open(conversion.facts, voice, [*unreached, *(around.unit for around in said.outside)])
    said.nowhere, by_rank = opened.paths, ByRank(conversion, voice, opened.nodes)
    alone = [*said.early, *outside, *(each for unit in unreached for each in by_rank.said_in(unit))]
    said.by_rank = by_rank.runs(alone)
    said.computed += by_rank.computed
    seen = [*by_rank.last_words(alone), *(statement for run in said.by_rank for statement in run)]
    covered = opened.nodes.union(*map(walk, seen))
    covered |= {each for each in outside if only_opens(conversion.facts, voice, each, covered)}
    said.early = [statement for statement in said.early if statement not in covered]
    said.outside = [left for around in said.outside if (left := around.without(covered)).written]
    told = covered | {node for around in said.outside for each in around.written for node in walk(each)}
    besides = {*unreached, *told_below(conversion, voice, unreached, told)}
    said.unreached = [unit for unit in unreached if voice.speaks_unasked(unit, besides=besides, covered=told)]


def _beside(conversion: Conversion) -> set[Function]:
    """The functions that the code around an object calls, and that do not see it."""
    near = conversion.access.around
    calls = (use.node for use in conversion.facts.calls if use.unit in near)
    found = {unit for call in calls for unit in conversion.facts.targets(call) if unit not in conversion.units}
    return {unit for unit in found - near.keys() if conversion.facts.is_editable(unit)}


def _find_single(conversion: Conversion, voice: Voice, said: Speech) -> None:
    """Calls that have forms of their own wherever they stand."""
    for use in conversion.speaking_uses:
        if output.INPUT in conversion.facts.called(use.node):
            is_of_one = voice.is_left_to_one(use.node) or voice.is_written_elsewhere(use.unit)
            said.inputs += [] if is_of_one else [use.node]
        elif output.SUMMARIES & conversion.facts.called(use.node):
            statement = conversion.facts.tree(use.node).statement(use.node)
            said.summaries += [use.node] if isinstance(statement, ast.Expr) and not voice.is_of_one(statement) else []
        elif voice.outputs.services.starts(use.node):
            if _is_reached(conversion, use.node):
                said.switched.append(use.node)
            elif not voice.is_left_to_one(use.node) and not voice.is_written_elsewhere(use.unit):
                said.switched_early.append(use.node)
        elif (path := voice.outputs.log_file(use.node)) is not None and not voice.own.is_own(use.node):
            if voice.is_left_to_one(use.node):
                continue
            if _is_reached(conversion, use.node):
                said.diverted.append(path)
            elif voice.outputs.empties_log(use.node):
                said.early.append(conversion.facts.tree(use.node).statement(use.node))


def _is_reached(conversion: Conversion, node: ast.expr) -> bool:
    """Whether the accelerator can be had at a node; a function that needs it for that is given it."""
    there = conversion.has_accelerator_at(conversion.facts.tree(node).statement(node))
    return there and conversion.access.can_reach(node)


def _find_bars(conversion: Conversion, voice: Voice, said: Speech) -> None:
    """Bars, under a loop or moved by hand. One that is asked how far it is goes on counting on every process.

    A bar over a range, moved by hand, that is all the program shows, is let be: the change is not worth a line.
    """
    covered = said.covered
    is_quiet = not said.edits and not said.logs
    for use in conversion.speaking_uses:
        if conversion.facts.called(use.node) & output.DRAWN_BARS and id(use.node) not in covered:
            said.drawn.append(use.node)
        if conversion.facts.called(use.node) & FIXED_BARS.keys() and not voice.is_left_to_one(use.node):
            said.fixed.append(use.node)
        if not voice.outputs.is_bar(use.node) or id(use.node) in covered or voice.is_left_to_one(use.node):
            continue
        is_left = use.node in voice.outputs.counted or (is_quiet and voice.outputs.is_counter(use.node))
        if not is_left and _is_reached(conversion, use.node):
            said.bars.append(use.node)
        else:
            said.shown.append(use.node)


def _find_commands(conversion: Conversion, voice: Voice, said: Speech) -> None:
    """Other programs that are run for what they do: nobody asks what they print."""
    covered = said.covered
    left = {
        unit for unit in {*conversion.program.outsiders, *_beside(conversion)} if conversion.facts.is_editable(unit)
    }
    beside = {unit for unit in left if not voice.is_guarded_outside(unit) and not voice.is_of_ones_object(unit)}
    for use in [*conversion.speaking_uses, *(use for use in conversion.facts.calls if use.unit in beside)]:
        if not is_command(conversion.facts, use.node) or id(use.node) in covered:
            continue
        if not voice.is_written_elsewhere(use.unit) and not voice.is_left_to_one(use.node):
            said.commands.append(use.node)


def _find_prints(conversion: Conversion, voice: Voice, said: Speech) -> None:
    """Prints inside of other expressions: `[print(x) for x in rows]`."""
    covered = said.covered
    for use in conversion.speaking_uses:
        if conversion.facts.called(use.node) != {output.PRINT} or id(use.node) in covered:
            continue
        tree = conversion.facts.tree(use.node)
        statement = tree.statement(use.node)
        if isinstance(tree.parents[use.node], ast.Expr) or voice.is_written_elsewhere(use.unit):
            continue
        if _is_reached(conversion, use.node):
            said.prints.append(use.node)
        elif statement not in said.early:
            said.early.append(statement)


def _find_written(conversion: Conversion, voice: Voice, said: Speech) -> None:
    """What is written inside of other expressions, and no guard stands around: `epoch and torch.save(state, path)`."""
    covered = said.covered | {id(call) for call in said.saves}
    for use in conversion.speaking_uses:
        statement = conversion.facts.tree(use.node).statement(use.node)
        is_save = voice.is_plain_save(use.node)
        is_done = use.node in done(statement) or voice.outputs.hands_on(use.node)
        is_made = is_done and voice.outputs.writes(use.node) and voice.needs_guard(use.node)
        is_alone = isinstance(statement, ast.Expr) and statement.value is use.node
        if is_alone or id(use.node) in covered or not (is_save or is_made):
            continue
        is_of_one = voice.is_left_to_one(use.node) or voice.is_written_elsewhere(use.unit)
        if not is_of_one and statement not in said.mixed and _is_reached(conversion, use.node):
            (said.saves if is_save else said.inside).append(use.node)


def _find_given(conversion: Conversion, voice: Voice, said: Speech) -> None:
    """What is done to files inside of other statements, which need the path that comes of it."""
    for call in giving(conversion, voice, said.covered):
        if _is_reached(conversion, call):
            said.given.append(call)
        elif (statement := conversion.facts.tree(call).statement(call)) not in said.early:
            said.early.append(statement)


def _listen_inside(conversion: Conversion, voice: Voice, said: Speech, unit: Function) -> None:
    """Look at a function's own statements: it has the accelerator, or does more than speak and can be given it."""
    if isinstance(unit.node, ast.Lambda) or voice.is_written_elsewhere(unit):
        return
    access = conversion.access
    if access.has(unit):
        _listen(conversion, voice, said, unit.body)
    elif not voice.speaking.speaks(unit):
        said.folders += may_be_there(conversion.facts, unit)
    else:
        before, edits = dict(access.parameters), said.edits
        if not access.can_have(unit):
            folders = may_be_there(conversion.facts, unit)
            said.folders += folders
            if voice.speaks_unasked(unit) and (not folders or voice.speaks_besides(unit, folders)):
                said.unreached.append(unit)
            return
        _listen(conversion, voice, said, unit.body)
        if said.edits == edits:  # only what it calls speaks: it needs no accelerator
            access.parameters = before


def _listen(conversion: Conversion, voice: Voice, said: Speech, body: Sequence[ast.stmt]) -> None:
    """Sort the statements of a block, and of the blocks in it; neighbours that only write stay together."""
    run: list[ast.stmt] = []
    for position, statement in enumerate(body):
        writes = not is_asked(statement) and (voice.only_outputs(statement) or voice.is_save(statement))
        folder = _folder(conversion, statement) if writes else None
        is_one = writes and folder is None and conversion.has_accelerator_at(statement)
        if is_one and not voice.is_collective(statement):
            run.append(statement)
            continue
        _close(voice, said, run, body[: position - len(run)])
        if is_one and (lifted := computed(conversion, statement)) is not None:
            said.computed.append(lifted)
            run.append(statement)
        elif folder is not None:
            said.folders.append(folder)
        elif isinstance(statement, ast.If) and keeps(conversion, statement):
            _listen(conversion, voice, said, statement.orelse)
        elif not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            _sort(conversion, voice, said, statement, writes=writes)
    _close(voice, said, run, body[: len(body) - len(run)])


def _folder(conversion: Conversion, statement: ast.stmt) -> ast.Call | None:
    """What makes a folder that may be there; one that all would give another name is for one, who alone opens files."""
    facts = conversion.facts
    made = only_folder(facts, statement)
    above = next(iter(facts.tree(statement).up(statement)), None)
    if made is None and above is not None and isinstance(statement, ast.Expr):  # beside what all do: os.chmod(path)
        beside = if_missing(facts, above)
        made = beside if beside is statement.value else None
    if made is None or not is_made_up(facts, path_of(made)):
        return made
    return made if is_opened_by_all(conversion, path_of(made)) else None


def _sort(conversion: Conversion, voice: Voice, said: Speech, statement: ast.stmt, *, writes: bool) -> None:
    """A statement that all processes come to."""
    if writes and not voice.is_collective(statement):
        folder = if_missing(conversion.facts, statement)
        if folder is not None:
            said.folders.append(folder)
        else:
            said.early.append(statement)
    elif isinstance(statement, ast.With) and _is_diverted(conversion, voice, said, statement):
        pass
    elif writes and not isinstance(statement, (ast.If, ast.For, ast.While)):  # of these, what is inside tells
        said.mixed.append(statement)
    elif voice.is_print(statement):
        _hear(conversion, said, statement)
    elif (made := made_by(statement)) is not None:
        _look_at(conversion, voice, said, statement, made)
    for inner in blocks(statement) if not writes or voice.is_collective(statement) else ():
        _listen(conversion, voice, said, inner)


def _hear(conversion: Conversion, said: Speech, statement: ast.stmt) -> None:
    if conversion.has_accelerator_at(statement):
        said.prints.append(statement.value)  # type: ignore[attr-defined]
    else:
        said.early.append(statement)


def _look_at(conversion: Conversion, voice: Voice, said: Speech, statement: ast.stmt, made: ast.Call) -> None:
    """`log = open(path, "w")`, `writer = SummaryWriter()`, `writers.append(SummaryWriter())`."""
    if voice.own.is_own(made):
        return
    is_there = conversion.has_accelerator_at(statement)
    calls = (each for each in (made, *arguments(made)) if isinstance(each, ast.Call))
    if opened := [call for call in calls if voice.outputs.opens(call)]:
        for call in opened:  # also of csv.writer(open(path, "w"))
            if is_there and (path := voice.outputs.diverted(call)) is not None:
                said.diverted.append(path)
            else:
                said.opened.append(call)
    elif voice.writers.form(statement) is Form.OR_NONE and is_there:
        said.optional.append(made)
    elif (voice.speaking.is_writer(made) or voice.is_front(made)) and not _is_converted(conversion, made):
        (said.needed if is_there else said.early).append(statement)


def _is_converted(conversion: Conversion, made: ast.Call) -> bool:
    """Whether what makes a writer is a class of the project, each of whose methods is given the accelerator."""
    classes = {value.unit for value in conversion.facts.values(made) if isinstance(value.unit, Class)}
    methods = {m.unit for cls in classes for name in cls.names for m in cls.lookup(name)}
    return bool(classes) and all(isinstance(unit, Function) and unit in conversion.units for unit in methods)


def _is_diverted(conversion: Conversion, voice: Voice, said: Speech, statement: ast.With) -> bool:
    """`with open(path, "w") as file:` around more than writing; `with mlflow.start_run():` around the training."""
    found = False
    is_there = conversion.has_accelerator_at(statement)
    for item in statement.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or not is_there or voice.own.is_own(call):
            continue
        if (path := voice.outputs.diverted(call)) is not None:
            said.diverted.append(path)
            found = True
        elif voice.outputs.writes(call) and item.optional_vars is None:
            said.contexts.append(call)
            found = True
    return found


def _close(voice: Voice, said: Speech, run: list[ast.stmt], before: Iterable[ast.stmt]) -> None:
    """End a run of neighbours; the figures that only they use are made under the same guard."""
    if run and not said.is_computed(run[0]) and all(voice.is_save(statement) for statement in run):
        said.saves += [statement.value for statement in run]  # type: ignore[attr-defined]
    elif not all(map(voice.outputs.flushes, run)):
        whole = list(run)
        for statement in reversed(list(before)) if not said.is_computed(run[0]) else ():
            if not voice.outputs.makes_figure(statement) or not voice.is_private(statement, whole):
                break
            whole.insert(0, statement)
        said.guarded.append(whole)
    run.clear()
