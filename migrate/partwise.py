"""The results of a project's parts, put together: those of an earlier run, and those that have to be made.

Parts have nothing to do with each other (`source/parts.py`), so each result can be kept for itself, and several
processes can make them. Neither changes what is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from migrate import workers
from migrate.errors import SourceError
from migrate.report.model import Report
from migrate.source.parts import may_train

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from migrate.cache import Cache, Notes
    from migrate.options import Options
    from migrate.source.project import Project

FEW = 50  # files: so many that do not train are read again sooner than it is known that they need not be


@dataclass(frozen=True, slots=True)
class Work:
    """How a project is divided, what is to be done with each part, and before that where other processes do it."""

    parts: Callable[[Project], Sequence[Project]]
    convert: Callable[[Project, Callable[[str], None]], Report]
    ready: Callable[[], object]


class Progress(Protocol):
    """Is told what a run does, how much of it is done, and how much there is to do; 0: nobody knows."""

    def __call__(self, phase: str, done: int, total: int) -> None: ...


def silently(phase: str, done: int = 0, total: int = 0) -> None:
    """Tells nobody."""


def results(
    project: Project, options: Options, progress: Progress, work: Work
) -> tuple[Sequence[Report], tuple[SourceError, ...]]:
    """What is found in each part, in order; and why named files do not parse, wherever they are."""
    cache = _cache(project, options) if len(project.named) >= FEW or may_train(project.named) else None
    if cache and (known := cache.found_in_all(project)) is not None:
        *made, last = known
        return made, tuple(error for error in last.problems if isinstance(error, SourceError))
    parts = [part.noting() for part in work.parts(project)]
    cache = cache or (_cache(project, options) if parts else None)
    made, notes = _made(project, parts, options, cache, progress, work)
    errors = _errors(project, parts, made, cache)
    if cache:
        cache.keep_all(project, parts, [*made, Report(problems=errors)], notes)
    return made, errors


def _cache(project: Project, options: Options) -> Cache | None:
    """The results of earlier runs; None where nobody wants them."""
    if not options.cache:
        return None
    from migrate.cache import Cache, folder_for  # looking for results takes as long as reading a few files

    return Cache(folder_for((file.folder for file in project.named), options.cache_dir), options)


def _made(
    project: Project, parts: Sequence[Project], options: Options, cache: Cache | None, progress: Progress, work: Work
) -> tuple[list[Report], list[Notes]]:
    """What was found in each part, in order, and what it rests on; by several processes, where that is faster."""
    known = {number: found for number, part in enumerate(parts) if cache and (found := cache.found(part)) is not None}
    waiting = [number for number in range(len(parts)) if number not in known]
    sizes = [sum(len(file.content) for file in parts[number].named) for number in waiting]
    processes = workers.count(sizes, options.jobs)

    def one(place: int) -> tuple[Report, Notes]:
        part = parts[waiting[place]]
        say = partial(progress, done=len(known), total=len(parts)) if processes < 2 else silently
        say("analysing", done=len(known), total=len(parts))
        report = work.convert(part, say)
        return report, cache.notes(part) if cache else ()

    if processes > 1:
        work.ready()
    for place, (report, notes) in workers.results(one, sizes, processes):
        known[waiting[place]] = report, notes
        if cache and len(parts[waiting[place]].named) < len(project.named):  # else it is kept with all
            cache.keep(parts[waiting[place]], report, notes)
        progress("analysing", len(known), len(parts))
    return [known[number][0] for number in range(len(parts))], [known[number][1] for number in range(len(parts))]


def _errors(
    project: Project, parts: Sequence[Project], made: Sequence[Report], cache: Cache | None
) -> tuple[SourceError, ...]:
    """Why files do not parse, in their order; of those that are in a part, that was seen there."""
    known = {error.path: error for report in made for error in report.problems if isinstance(error, SourceError)}
    looked_at = {file.path for part in parts for file in part.named}
    rest = [file for file in project.candidates if file.path not in looked_at]
    wrong = [file for file in rest if not (cache and cache.parses(file)) and file.error]
    if cache:
        cache.close(wrong)
    known.update((file.path, file.error) for file in wrong if file.error)
    return tuple(known[file.path] for file in project.candidates if file.path in known)
