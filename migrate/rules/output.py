"""output: one process speaks.

    print(...)                         ->   accelerator.print(...)
    (where none is at hand)            ->   if os.environ.get("RANK", "0") == "0":
                                                print(...)
    writer.add_scalar(...)             ->   if accelerator.is_main_process:
                                                writer.add_scalar(...)
    for x, y in tqdm(loader):          ->   for x, y in tqdm(loader, disable=not accelerator.is_local_main_process):
    logging.info(...)                  ->   (as it was, after: if not accelerator.is_main_process:
                                                                   logging.disable(logging.INFO))

Files, directories, figures and writers are left to the main process; so are the project's own functions that do nothing
but write, and the objects of its classes that do. A writer that is handed on is None on the others, a file that stays
open is the null device there: `open(path if accelerator.is_main_process else os.devnull, "w")`. A folder that is made
if it is not there gets `exist_ok=True`, so that nothing can come between asking and making; where the program leaves if
it is there already, all processes have asked before one makes it. What runs the model or a loop over a loader is
computed by all processes first: `save_image(net(z), path)` is `result = net(z)` and, on the main process, the rest.
Data sets that download themselves (`download=True`) are made `with accelerator.main_process_first():`, and so is what a
program makes once and keeps in a file (`if os.path.exists(path):` load it, else make it and save it). A folder with
the time in its name that all processes use has the main process' name: `broadcast_object_list([name])[0]`. So has a
file that is moved or copied, if the program goes on with its path (`best = shutil.copy(last, folder)`). A wandb run
that the program asks for something (`wandb.config`), or that files write to which were not named, is switched off on
the others by `mode="disabled"`. Games are recorded (`env = RecordVideo(env, folder)`) by the main process, told by RANK
where other programs call the function; the monitor of Stable Baselines, which tells the program how an episode went,
has no file on the others.
What is printed before the accelerator exists, or where it does not come to (a model that says how large it is, the code
around a trainer that makes its own), is printed by the first process, which the launcher's RANK tells.
Left alone, and said: files that are written there, what runs several models and writes, or does so under a condition of
its own (`[save(net(x)) for x in rows]`), bars that are asked how far they are, one that is moved by hand where it is
all that the program shows, and other programs that are run (`os.system`).
Safe: on one process that process is the main process.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from migrate.analysis.known.progress import SHOWN_BY
from migrate.analysis.roles import Role
from migrate.analysis.syntax import blocks, walk
from migrate.analysis.units import Class, Function, Module
from migrate.programs.output.asked_before import asked_before
from migrate.programs.output.by_rank import IS_FIRST
from migrate.programs.output.caches import caches
from migrate.programs.output.downloads import downloads
from migrate.programs.output.guards import in_kept
from migrate.programs.output.heard import speech
from migrate.programs.output.in_forwards import speaking_forwards
from migrate.programs.output.waits import waits
from migrate.programs.reach.unnamed import listed, way_out
from migrate.programs.values.logs import logs
from migrate.programs.values.names import told_names
from migrate.rules.imports import drop_unused
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.programs.output.speech import Speech
    from migrate.programs.output.surroundings import Outside
    from migrate.rules.draft import Draft

_BY_HAND = f"put the statements that do so, and nothing that runs a model, under `if {IS_FIRST}:` there"
_EVERY_BAR = "every process shows this progress bar"
_ON_ONE = "leave it out, or put it under `if accelerator.is_main_process:` where nothing is drawn at random afterwards"


@rule("MIG117", optional=True)
def output(conversion: Conversion, draft: Draft) -> None:
    """Give every statement of output to one process."""
    said = speech(conversion)
    for call in said.prints:
        draft.rewrite(call.func, f"{conversion.access.name(call)}.print")
    for run in _apart(conversion, said.guarded):
        _guard(conversion, draft, run)
    for each in said.computed:
        draft.lift(each.call, each.name, above=each.statement)
    _ask_rank(draft, said)
    for path in said.diverted:
        _divert(conversion, draft, path)
    for call in said.switched:
        _switch_off(draft, call, f"{conversion.access.name(call)}.is_main_process")
    for call in said.optional:
        draft.wrap(call, f"{{it}} if {conversion.access.name(call)}.is_main_process else None")
    for context in said.contexts:
        draft.wrap(context, f"{{it}} if {conversion.access.name(context)}.is_main_process else nullcontext()")
        draft.add_import(context, "contextlib", "nullcontext")
    _make(conversion, draft, said)
    for bar in said.bars:
        _hide(conversion, draft, bar)
    if said.logs:
        _silence(conversion, draft)
    _download(conversion, draft)
    _agree(conversion, draft, said)
    _report(conversion, draft, said)


def _ask_rank(draft: Draft, said: Speech) -> None:
    """Without the accelerator: it does not come to code, or an environment may be made in a process of its own."""
    for run in (*said.by_rank, *([statement] for statement in said.films)):
        _guard_alone(draft, run, draft.quoted(run[0], IS_FIRST))
        draft.add_import(run[0], "os")
    for call in said.switched_early:
        _switch_off(draft, call, draft.quoted(call, IS_FIRST))
        draft.add_import(call, "os")
    for path in said.told:
        draft.wrap(path, f"{{it}} if {draft.quoted(path, IS_FIRST)} else None")
        draft.add_import(path, "os")
    for path in said.nowhere:
        draft.wrap(path, f"{{it}} if {draft.quoted(path, IS_FIRST)} else os.devnull")
        draft.add_import(path, "os")


def _divert(conversion: Conversion, draft: Draft, path: ast.expr) -> None:
    """Let the others open the null device: `open(path, "w")`, `path.open("w")`."""
    here = f"{{it}} if {conversion.access.name(path)}.is_main_process else"
    if isinstance(conversion.facts.tree(path).parents[path], ast.Attribute):
        draft.wrap(path, f"({here} pathlib.Path(os.devnull))")
        draft.add_import(path, "pathlib")
    else:
        draft.wrap(path, f"{here} os.devnull")
    draft.add_import(path, "os")


def _hide(conversion: Conversion, draft: Draft, bar: ast.Call) -> None:
    """Show a bar on the first process of each machine, and there only where the user's flag allows it."""
    here = f"{conversion.access.name(bar)}.is_local_main_process"
    shown_by = next((SHOWN_BY[name] for name in conversion.facts.called(bar) if name in SHOWN_BY), None)
    switch, value, joined = (shown_by, here, "and") if shown_by else ("disable", f"not {here}", "or")
    flag = next((keyword.value for keyword in bar.keywords if keyword.arg == switch), None)
    if flag is None:
        draft.add_keyword(bar, switch, value)
    elif isinstance(flag, ast.Constant):  # which only says what is so anyway
        draft.rewrite(flag, value)
    else:
        draft.wrap(flag, f"{{it}} {joined} {value}")


def _agree(conversion: Conversion, draft: Draft, said: Speech) -> None:
    """Names with the time in them are those of the main process, where all processes use them."""
    found = told_names(conversion, said.covered | in_kept(conversion))
    for value in found.told:
        draft.wrap(value, "broadcast_object_list([{it}])[0]")
        draft.add_import(value, conversion.home_of("broadcast_object_list"), "broadcast_object_list")
    for loop, names in found.found.items():
        given = ", ".join(names)
        draft.after(loop, f"{given} = broadcast_object_list([{given}])" + ("[0]" if len(names) == 1 else ""))
        draft.add_import(loop, conversion.home_of("broadcast_object_list"), "broadcast_object_list")
    for call in said.given:
        here = f"{conversion.access.name(call)}.is_main_process"
        draft.wrap(call, f"broadcast_object_list([{{it}} if {here} else None])[0]")
        draft.add_import(call, conversion.home_of("broadcast_object_list"), "broadcast_object_list")
    for call in found.apart:
        draft.left(
            call,
            "every process makes up a name of its own for this, by the clock, at random or by what is there",
            "let the main process tell it: name = broadcast_object_list([name])[0], once the accelerator is made",
        )


def _download(conversion: Conversion, draft: Draft) -> None:
    """The main process downloads, and makes what is kept in files, first; the others find it done."""
    found = downloads(conversion)
    for run in found.in_turns:
        draft.wrap_block(run, f"with {conversion.access.name(run[0])}.main_process_first()")
    done = {id(inner) for run in found.in_turns for statement in run for inner in ast.walk(statement)}
    cached = conversion.once(caches)
    for kept in cached.runs:
        if not any(id(inner) in done for statement in kept for inner in ast.walk(statement)):
            draft.wrap_block(kept, f"with {conversion.access.name(kept[0])}.main_process_first()")
    for statement in cached.late:
        draft.note(statement, "a process that is late finds this file half written", "make it on one process first")
    for call in found.at_once:
        draft.note(call, "every process downloads this at the same time", "download it once before the first run")


#: What is worth knowing, by what of the speech it is about: why, and what to do.
_NOTES = (
    ("needed", "every process makes this writer: the program asks it for something, or who takes it is not seen", ""),
    ("commands", "every process runs this command", "put it under `if accelerator.is_main_process:`, and wait below"),
    ("summaries", "every process prints this summary, for which the model is run", _ON_ONE),
    ("shown", _EVERY_BAR, "give it disable=not accelerator.is_local_main_process"),
    ("drawn", _EVERY_BAR, "make it, and what is called on it, under is_main_process"),
    ("fixed", _EVERY_BAR, "take tqdm, which can be switched off: disable=not accelerator.is_local_main_process"),
)
#: The same of what is left to a person.
_LEFT = (
    (
        "inputs",
        "every process asks the user this",
        "ask on the main process, and hand the answer on: broadcast_object_list([answer])[0]",
    ),
    (
        "opened",
        "every process opens this file and writes into it",
        "let the others write nowhere: open(path if accelerator.is_main_process else os.devnull, ...)",
    ),
    (
        "inside",
        "every process writes this, in an expression that does more",
        "write in a statement of its own; then run migrate again",
    ),
    (
        "mixed",
        "this writes, and it runs the model, which all processes must do together",
        "compute first, under a name, and write in a statement of its own; then run migrate again",
    ),
)


def _report(conversion: Conversion, draft: Draft, said: Speech) -> None:
    """What is left to a person, and what is worth knowing."""
    for tell, table in ((draft.note, _NOTES), (draft.left, _LEFT)):
        for part, why, hint in table:
            for node in getattr(said, part):
                tell(node, why, hint)
    _tell_early(conversion, draft, said)
    if said.unnamed:
        what = f"every process prints or writes what is said in {listed(said.unnamed)}"
        named = [module.path for module in conversion.modules]
        draft.note(conversion.placement.accelerator.statement, what, way_out(named, said.unnamed))
    kept = conversion.once(caches).inside  # by one process after the other
    for around in said.outside:
        if left := [statement for statement in around.written if statement not in kept]:
            _tell(draft, replace(around, written=left))
    for unit in said.unreached:
        if unit in conversion.access.early:
            why = f"every process prints or writes what {unit.name}() does: it runs before the accelerator is made"
            draft.note(unit.node, why, f"call {unit.name}() behind it, or on the main process alone")
        else:
            draft.note(unit.node, f"every process prints or writes what {unit.name}() does", _BY_HAND)
    for unit in speaking_forwards(conversion):
        owner = f"{unit.owner.node.name}." if isinstance(unit.owner, Class) else ""
        what = f"every process prints or writes what {owner}{unit.name}() does, of its own batches"
        draft.note(unit.node, what, _BY_HAND)


def _tell_early(conversion: Conversion, draft: Draft, said: Speech) -> None:
    """One note for all that a function, or a file, prints too early, and one for all that it writes."""
    early: dict[tuple[Unit, str], list[ast.stmt]] = {}
    for statement in said.early:
        does = "prints" if isinstance(statement, ast.Expr) and "print(" in ast.unparse(statement) else "writes"
        early.setdefault((conversion.facts.unit(statement), does), []).append(statement)
    for (_, does), (first, *others) in early.items():
        draft.note(first, f"every process {does} this{_also(first, others)}: it runs before the accelerator exists")


def _also(first: ast.stmt, others: Iterable[ast.stmt]) -> str:
    """`, and what is in lines 4 and 6`."""
    lines = sorted({statement.lineno for statement in others} - {first.lineno})
    return f", and what is in {_numbered(lines)}" if lines else ""


def _tell(draft: Draft, around: Outside) -> None:
    """One note for each function, or file, that every process runs and that has no accelerator."""
    first, *others = around.written
    place = "the top level of this file" if isinstance(around.unit, Module) else f"{around.unit.name}()"
    does = "prints" if around.only_prints else "writes"
    draft.note(
        first,
        f"every process {does} this{_also(first, others)}: {place} runs without the accelerator",
        ""
        if around.only_prints
        else f"where it does harm: if {IS_FIRST}:, or accelerator.main_process_first() around what calls it",
    )


def _numbered(lines: list[int]) -> str:
    """`line 3`, `lines 3, 4 and 6`."""
    texts = [str(line) for line in lines]
    return f"line {texts[0]}" if len(texts) == 1 else f"lines {', '.join(texts[:-1])} and {texts[-1]}"


def _switch_off(draft: Draft, call: ast.Call, test: str) -> None:
    """`wandb.init(mode=...)`: the run of the other processes answers, and sends nothing."""
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), None)
    off = draft.quoted(call, "'disabled'")
    if given is not None:
        draft.wrap(given, f"{{it}} if {test} else {off}")
    else:
        draft.add_keyword(call, "mode", f"None if {test} else {off}")


def _make(conversion: Conversion, draft: Draft, said: Speech) -> None:
    """Folders that may be there already are made by all; the others when all know that there is none."""
    for call in said.folders:
        _make_any_time(draft, call)
    bare = [call.func for call in said.folders if isinstance(call.func, ast.Name)]
    drop_unused(conversion, draft, [func for func in bare if _MKDIR in conversion.facts.names(func)])
    for statement in dict.fromkeys(_asked_together(conversion)):
        draft.before(statement, f"{conversion.access.name(statement)}.wait_for_everyone()")


def _asked_together(conversion: Conversion) -> Iterator[ast.stmt]:
    """What all have asked for before it is made, where they do not come one after the other anyway."""
    kept = conversion.once(caches)
    yield from (statement for statement in asked_before(conversion) if statement not in kept.inside)
    yield from kept.asked


_MKDIR = "os.mkdir"


def _make_any_time(draft: Draft, call: ast.Call) -> None:
    """`os.makedirs(path, exist_ok=True)`: nothing can come between asking and making."""
    if isinstance(call.func, ast.Attribute) and call.args:
        draft.rewrite(call.func, f"{ast.unparse(call.func.value)}.makedirs")
    elif _MKDIR in draft.facts.called(call) and isinstance(call.func, ast.Name):  # which has no such option
        draft.rewrite(call.func, "os.makedirs")
        draft.add_import(call, "os")
    draft.add_keyword(call, "exist_ok", "True")


def _silence(conversion: Conversion, draft: Draft) -> None:
    """One voice for the standard library's logging: the other processes only report trouble."""
    home, spot = conversion.program.start, conversion.placement.accelerator
    assert home is not None
    if _is_logging_taken(home):
        draft.add_import(spot.statement, "logging", "INFO")
        draft.add_import(spot.statement, "logging", "disable")
        silence = "disable(INFO)"
    else:
        draft.add_import(spot.statement, "logging")
        silence = "logging.disable(logging.INFO)"
    code = f"if not {conversion.access.of(home)}.is_main_process:\n    {silence}"
    if spot.where == "before":
        draft.before(spot.statement, code, spaced=spot.spaced, late=True)
    else:
        draft.after(spot.statement, code, spaced=spot.spaced, late=True)
    if warnings := sorted(_warnings(conversion), key=lambda statement: (statement.lineno, statement.col_offset)):
        first, *others = warnings
        what = f"every process gives this warning{_also(first, others)}, as trouble may be one process's own"
        draft.note(first, what, "where one is enough, say it under `if accelerator.is_main_process:`")


def _is_logging_taken(home: Unit) -> bool:
    """Whether `logging` means something else there: `logging = make_log(path)`, `from utils import logging`."""
    if isinstance(home, Function) and "logging" in home.names:
        return True
    module = home.module if isinstance(home, Function) else home
    known = (value.role is Role.KNOWN and value.name == "logging" for value in module.names.get("logging", ()))
    return not all(known)


def _warnings(conversion: Conversion) -> Iterator[ast.stmt]:
    """The warnings that a program logs in the file of its accelerator."""
    facts, start = conversion.facts, conversion.program.start
    here = [use for use in conversion.uses if start is not None and use.unit.module is start.module]
    for use in here:
        name = use.node.func.attr if isinstance(use.node.func, ast.Attribute) else ""
        if name in ("warning", "warn") and logs(facts, use.node):
            yield facts.tree(use.node).statement(use.node)


def _apart(conversion: Conversion, runs: Sequence[list[ast.stmt]]) -> Iterator[list[ast.stmt]]:
    """Neighbours under one guard, up to the statement above which all processes wait: it is under the next one."""
    waited = {*waits(conversion), *_asked_together(conversion)} if any(len(run) > 1 for run in runs) else set()
    for run in runs:
        begins = [0, *(at for at, statement in enumerate(run) if at and statement in waited), len(run)]
        yield from (run[first:last] for first, last in pairwise(begins))


def _guard(conversion: Conversion, draft: Draft, run: list[ast.stmt]) -> None:
    """Put neighbours under a guard; a single `if` gets one condition more, which is the smaller change.

    Where all processes agree on a condition, it stays outside: they come to it together, and to what it leads to by
    themselves.
    """
    agreed = {agreement.test for agreement in conversion.agreements}
    for is_asked, part in groupby(
        run, lambda statement: any(blocks(statement)) and not agreed.isdisjoint(walk(statement))
    ):
        if is_asked:
            for block in [block for statement in part for block in blocks(statement)]:
                _guard(conversion, draft, block)
        else:
            run = list(part)
            _guard_alone(draft, run, f"{conversion.access.name(run[0])}.is_main_process")


def _guard_alone(draft: Draft, run: list[ast.stmt], test: str) -> None:
    if len(run) > 1 or not isinstance(run[0], ast.If) or run[0].orelse:
        draft.guard(run, test)
    else:
        draft.wrap(run[0].test, f"{{it}} and {test}")
