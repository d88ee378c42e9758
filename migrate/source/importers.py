"""What files that a run does not read take from the named ones.

`migrate train.py common.py` reads `train.py` and what it imports. That `test.py` beside them imports `common`, too, is
seen only by looking for it: what it takes must go on being what it is.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.source.project import Project, SourceFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_MOST = 2000  # files that are looked at; in a larger tree the rest is not


#: `from a.b import c, d`, `import a.b as c, d`: where from, and what, as far as the line goes.
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import\b)([^\n#]*)", re.MULTILINE)


def importers(
    project: Project, wanted: Iterable[SourceFile], read: Iterable[SourceFile]
) -> Mapping[SourceFile, Mapping[str, str]]:
    """For each wanted file the names that files of the project which were not read take from it, with the place."""
    found: dict[SourceFile, dict[str, str]] = {file: {} for file in wanted if file.real is not None}
    if not found:
        return {}
    stems = {_stem(file) for file in found}
    words = set(map(os.fsencode, stems))
    for path in _unread(project, found, {*(str(file.real) for file in read), *map(str, project.hidden)}):
        if not project.says(path, words):
            continue  # nor is it in an import, which takes longer to see
        other = project.beside(path)
        if other.imported.isdisjoint(words):
            continue
        if _leads_to(project, other, stems, found) and not other.error:
            for file, name, line in _taken(project, other, stems):
                if file in found:
                    found[file].setdefault(name, f"{project.shown(Path(path))}:{other.told(line)}")
    return found


def _leads_to(project: Project, other: SourceFile, stems: set[str], wanted: Collection[SourceFile]) -> bool:
    """Whether a file, by the look of its lines, imports one of the wanted: that is known without parsing it."""
    for match in _IMPORT.finditer(other.content):
        module, rest = (part.decode("utf8", "replace") if part else "" for part in match.groups())
        name = module.lstrip(".")
        given = re.findall(r"[\w.]+", rest)
        names = [f"{name}.{word}" if name else word for word in given] if module else given
        for whole in (name, *names):
            if whole.rpartition(".")[2] in stems:
                if project.resolve(whole, len(module) - len(name), other) in wanted:
                    return True
    return False


def _stem(file: SourceFile) -> str:
    """The name that an import ends in."""
    assert file.real is not None
    return file.folder.name if file.real.name == "__init__.py" else file.real.stem


def _unread(project: Project, files: Iterable[SourceFile], read: set[str]) -> Iterator[str]:
    """The Python files and notebooks of the project that were not read."""
    tops = {project.top(file) for file in files}
    seen = 0
    for top in sorted(top for top in tops if not any(other in top.parents for other in tops)):
        for path in project.disk.sources(str(top)):
            if path in read or os.path.basename(path) == "__init__.py":  # that hands on, and calls nothing
                continue
            seen += 1
            if seen > _MOST:
                return
            yield path


def _taken(project: Project, other: SourceFile, stems: set[str]) -> Iterator[tuple[SourceFile, str, int]]:
    """The files and their names that a file imports, with the line."""
    for node in ast.walk(other.tree):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.rpartition(".")[2] in stems and (file := project.resolve(module, node.level, other)):
                yield from ((file, alias.name, node.lineno) for alias in node.names)
            for alias in node.names:
                whole = f"{module}.{alias.name}" if module else alias.name
                if alias.name in stems and (file := project.resolve(whole, node.level, other)):
                    yield from _attributes(other, file, alias.asname or alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.rpartition(".")[2] in stems and (file := project.resolve(alias.name, 0, other)):
                    yield from _attributes(other, file, alias.asname or alias.name)


def _attributes(other: SourceFile, file: SourceFile, module: str) -> Iterator[tuple[SourceFile, str, int]]:
    """What is read of a module under the name it has."""
    for node in ast.walk(other.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == module:
            yield file, node.attr, node.lineno
