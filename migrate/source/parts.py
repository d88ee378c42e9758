"""The parts of a project: files that have to do with each other, by what they import.

Nothing in one part says anything about another, so each is understood and converted by itself: a folder of many
programs takes as long as its programs do, one after the other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from migrate.source.by_name import Named, imported_by_name
from migrate.source.memory import uncollected
from migrate.source.reach import BY_NAME, CONVERTED, TRAINS, import_statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from migrate.source.project import Project, SourceFile

_FROM = re.compile(rb"from\s+(\.*)\s*([\w.]*)\s*import\b(.*)", re.DOTALL)
_COMMENT = re.compile(rb"#[^\n]*")


def parts(project: Project) -> Sequence[Project]:
    """The parts that may hold a training loop, in the order of their first files."""
    if len(project.named) == 1 and may_train(project.named):  # nothing to tell apart
        return (project,)
    with uncollected():  # what is parsed for this is kept
        groups = _connected(project.named, _links(project))
    entries = frozenset(project.entries)
    wanted = [group for group in groups if not entries.isdisjoint(group) and may_train(group)]
    if len(groups) == len(wanted) == 1:
        return (project,)
    everything = frozenset(file.path for file in project.named)
    return [project.hiding(everything - {file.path for file in group}) for group in wanted]


def reached(project: Project) -> Sequence[SourceFile]:
    """The named files, and the project's own modules that they import, directly or not."""
    return tuple(_links(project))


def may_train(group: Iterable[SourceFile]) -> bool:
    """Whether some file says what every training loop, and every converted one, says somewhere."""
    return any(word in file.content for file in group for word in (*TRAINS, CONVERTED, *BY_NAME))


def _links(project: Project) -> Mapping[SourceFile, set[SourceFile]]:
    """For each file those that it imports, and those that import it; unnamed files, too, as far as they are reached."""
    fresh = project.afresh()  # where a module is looked for goes by who asked first
    near: dict[SourceFile, set[SourceFile]] = {}
    waiting = [*reversed(project.named)]
    while waiting:
        file = waiting.pop()
        if file in near:
            continue
        near[file] = set(_imported(fresh, file))
        waiting.extend(other for other in near[file] if other not in near)
    for file, others in list(near.items()):
        for other in others:
            near[other].add(file)
    return near


def _imported(project: Project, file: SourceFile) -> Iterator[SourceFile]:
    """The files of the project that a file imports; all, where it imports by a name of which nothing is known."""
    by_name = imported_by_name(file)
    if by_name is None:
        yield from _inside(project, project.top(file))
        by_name = ()
    for module, level in dict.fromkeys((*imports_of(file.content), *((each.module, each.level) for each in by_name))):
        names = module.split(".")
        for end in range(1, len(names) + 1):  # a package runs before what lies in it
            if (found := project.resolve(".".join(names[:end]), level, file)) is not None:
                yield found
    for each in by_name:
        yield from _below(project, each, file)


def _below(project: Project, named: Named, file: SourceFile) -> Iterator[SourceFile]:
    """What a file may import of a package, by names of which only the start is known."""
    if named.start is None:
        return
    at = named.module, named.level, file
    package = project.resolve(*at) or project.folder(*at)
    if package is None:
        return
    modules = (name for name in project.modules_in(package) if name.startswith(named.start))
    found = (project.resolve(f"{named.module}.{name}".lstrip("."), named.level, file) for name in modules)
    yield from (other for other in found if other is not None)
    for other in _inside(project, package.folder):
        if other.real is not None and other.real.relative_to(package.folder).parts[0].startswith(named.start):
            yield other


def _inside(project: Project, folder: Path) -> Iterator[SourceFile]:
    """The named files that lie in a folder, or in one below it."""
    return (other for other in project.named if other.real is not None and folder in other.real.parents)


def imports_of(content: bytes) -> Iterator[tuple[str, int]]:
    """The dotted names that the import statements of a text may mean, with their levels."""
    for statement in import_statements(content):
        plain = _COMMENT.sub(b"", statement).strip()
        if (match := _FROM.match(plain)) is None:
            yield from ((name, 0) for name in _names(plain.removeprefix(b"import")))
            continue
        dots, module, given = match.groups()
        start = module.decode(errors="replace")
        yield start, len(dots)
        yield from ((f"{start}.{name}" if start else name, len(dots)) for name in _names(given))


def _names(given: bytes) -> Iterator[str]:
    """The names before `as` of `a.b as c, d`, with or without parentheses."""
    for one in given.strip(b" \t\r\n()\\").split(b","):
        if words := one.replace(b"\\", b" ").split():
            yield words[0].decode(errors="replace")


def _connected(
    files: Iterable[SourceFile], near: Mapping[SourceFile, set[SourceFile]]
) -> Sequence[Sequence[SourceFile]]:
    """Groups of the files, in order, each with all that lead to one another, files that were not named among them."""
    groups: list[list[SourceFile]] = []
    seen: set[SourceFile] = set()
    for file in files:
        group: list[SourceFile] = []
        waiting = [file]
        while waiting:
            if (other := waiting.pop()) not in seen:
                seen.add(other)
                group.append(other)
                waiting.extend(near[other])
        if group:
            groups.append(group)
    return groups
