"""Which training loops of a corpus of real programs are found, and what is known of each: the table of docs/corpus.md.

    python bench/corpus.py --tree DIR --loops loops.json --out docs/corpus.md

`loops.json` lists files with a training loop (repository, path, kind, the lines that call backward) and negatives that
must not be flagged; DIR holds the repositories as `<owner>__<name>`. A repository is analysed as `migrate .` in its
folder would see it. The code cells of a notebook that is listed are joined into one module with an empty line between
two cells; lines that are IPython's own (`%`, `!`) and cells under `%%` become `pass`, so that line numbers stay. The
table holds places and findings, no code of the programs.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.analysis import Facts, analyse
from migrate.analysis.units import Function, Unit
from migrate.options import Mode, Options
from migrate.pipeline import convert
from migrate.programs.loops import LoopFact, Loops
from migrate.programs.training.updates import How, Update
from migrate.programs.values.frameworks import Frameworks
from migrate.report.model import Kind, Report
from migrate.source.files import load
from migrate.source.project import Project, SourceFile

Entry = dict[str, Any]
CODE = re.compile(r"MIG\d{3}")
MAGIC = re.compile(r"\s*[%!]\s*\w")
CHECK = Options(mode=Mode.CHECK)


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one backward line."""

    path: str
    line: int
    found: bool
    kind: str = ""
    loops: str = ""
    optimizer: str = ""
    over_loader: str = ""
    outcome: str = ""


@dataclass(slots=True)
class Result:
    """What a repository gave."""

    rows: list[Row] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unparsable: list[tuple[str, str]] = field(default_factory=list)
    flagged: list[str] = field(default_factory=list)  # negatives that were
    negatives: int = 0
    remarks: list[str] = field(default_factory=list)


# --- notebooks ------------------------------------------------------------------------------------------------------


def joined(notebook: str) -> str:
    """The code cells of a notebook as one module."""
    cells = ["".join(cell["source"]) for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    return "\n\n".join(map(_plain, cells))


def _plain(cell: str) -> str:
    try:
        ast.parse(cell)
    except SyntaxError:
        lines = cell.split("\n")
        if lines[0].startswith("%%"):
            return "pass" + "\n" * (len(lines) - 1)
        return "\n".join(_indent(line) + "pass" if MAGIC.match(line) else line for line in lines)
    return cell


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _shared(one: str, other: str) -> int:
    """How many steps two paths have in common: what is said near a loop is rather said of it."""
    both = zip(Path(one).parts, Path(other).parts, strict=False)
    return next((step for step, (mine, yours) in enumerate(both) if mine != yours), len(Path(other).parts))


# --- one repository -------------------------------------------------------------------------------------------------


class Repository:
    """A repository's facts and the questions of the table."""

    def __init__(self, entries: Sequence[Entry], options: Options = CHECK) -> None:
        listed = [Path(entry["path"]) for entry in entries if entry["path"].endswith(".ipynb")]
        books = {path.resolve(): path for path in listed if path.is_file()}
        files = [file for file in load(["."]).files if file.real not in books]
        files += [SourceFile(str(path), joined(path.read_text()).encode(), real=real) for real, path in books.items()]
        self.files = {str(file.real): file for file in files}
        self.facts: Facts = analyse(Project(files))
        self.loops = Loops(self.facts)
        self.report: Report = convert(Project(files), options)
        self.out_of_sight = {use.node for use in self.loops.out_of_sight}

    def file(self, path: str) -> SourceFile | None:
        return self.files.get(str(Path(path).resolve()))

    def rows(self, entry: Entry) -> Iterator[Row]:
        """One row for each line of an entry."""
        for line in entry["backward_lines"]:
            call, backwards = self._backwards(entry["path"], line)
            if call is None:
                yield Row(entry["path"], line, found=False)
            elif not backwards:
                yield Row(entry["path"], line, False, outcome=self._not_a_loss(call))
            else:
                yield self._row(entry["path"], line, call, backwards)

    def _backwards(self, path: str, line: int) -> tuple[ast.Call | None, set[ast.Call]]:
        """The call that a line is listed for, and the backward calls that it is or leads to."""
        file = self.file(path)
        here = [use.node for use in self.facts.calls_anywhere if use.unit.module.file is file]
        here = [call for call in here if call.lineno <= line <= (call.end_lineno or 0)]
        vanilla = {use.node: use.unit for use in self.loops.backwards}
        if call := next((call for call in here if call in vanilla), None):
            return call, {call}
        for call in here:
            entered = set(self.loops.updates.functions(call))
            if found := {backward for backward, unit in vanilla.items() if unit in entered}:
                return call, found
        return next(filter(_is_backward, here), None), set()

    def _not_a_loss(self, call: ast.Call) -> str:
        assert isinstance(call.func, ast.Attribute)
        if self.foreign(call):
            return "of another framework than PyTorch"
        found = {f"{value.role.value} {value.name}" for value in self.facts.receiver(call)}
        return f"called on what is no loss: {', '.join(sorted(found)) or 'unknown'}"

    def foreign(self, call: ast.Call) -> bool:
        """Whether a backward is that of another framework."""
        return isinstance(call.func, ast.Attribute) and Frameworks(self.facts).is_foreign(call.func.value)

    def _row(self, path: str, line: int, call: ast.Call, backwards: set[ast.Call]) -> Row:
        unit = self.facts.unit(call)
        around = set(self.loops.innermost(call, unit))
        loops = [loop for loop in self.loops.training if loop.node in around and backwards & set(loop.backwards)]
        if not loops:
            return self._lonely(path, line, call)
        is_step = isinstance(unit, Function) and not any(True for _ in self.facts.tree(call).loops(call))
        own = self.loops.updates.reached(self._node(unit)) if is_step else ()
        updates = list(own or dict.fromkeys(update for loop in loops for update in self.loops.stepped(loop)))
        places = ", ".join(dict.fromkeys(self._place(loop.node, path) for loop in loops))
        kind = "training" if updates else "gradients only"
        outcome = self._outcome([(self.facts.file(loop.node).path, loop.node.lineno) for loop in loops])
        return Row(path, line, True, kind, places, self._how(updates, path), self._data(loops), outcome)

    def _outcome(self, places: list[tuple[str, int]]) -> str:
        """What the run made of some loops: converted, or left with the first reason."""
        flagged = [found for found in self.report.of(Kind.LOOP) if (found.path, found.line) in places]
        if flagged and all(found.converts for found in flagged):
            return "converts"
        codes = CODE.findall(" ".join(found.message for found in flagged if not found.converts))
        told = [found for found in self.report.of(Kind.LEFT) if found.code in codes]
        near = sorted(told, key=lambda found: (found.code != codes[0], -_shared(found.path, places[0][0])))
        return f"left, {near[0].code}: {near[0].message}" if near else ", ".join(["left", *codes])

    def _data(self, loops: Sequence[LoopFact]) -> str:
        if any(loop.loaders for loop in loops):
            return "loader"
        return "loader, by next()" if any(self.loops.fetched(loop.node) for loop in loops) else "no loader"

    def _lonely(self, path: str, line: int, call: ast.Call) -> Row:
        unit = self.facts.unit(call)
        updates = self.loops.updates.reached(self._node(unit))
        name = f"{getattr(unit, 'name', '')}()".lstrip("()") or "the module"
        if call in self.out_of_sight:
            kind, why = "training step", f"left, MIG907: {name} steps, and no loop that is seen calls it"
        else:
            kind, why = "no loop", f"{name} computes gradients once, outside of a loop"
        return Row(path, line, True, kind, "", self._how(updates, path), "", why)

    def _node(self, unit: Unit) -> ast.AST:
        return unit.node if isinstance(unit, Function) else unit.tree

    def _place(self, node: ast.AST, path: str) -> str:
        file = self.facts.file(node).path
        line = getattr(node, "lineno", 0)
        return str(line) if file == path else f"{file}:{line}"

    def _how(self, updates: Sequence[Update], path: str) -> str:
        """The optimizers with their classes and places, or why there is none."""
        if not updates:
            return "nothing changes the parameters"
        proven = [update for update in updates if update.how is How.OPTIMIZER]
        shown = proven or updates
        named = {origin: update.name for update in shown for origin in update.optimizers}
        if not named:
            return ", ".join(dict.fromkeys(update.how.value for update in shown))
        listed = sorted(
            f"{name or self._class(origin)} ({self._place(origin, path)})" for origin, name in named.items()
        )
        prefix = "" if proven else f"{shown[0].how.value}: "
        return prefix + ", ".join(listed)

    def _class(self, origin: ast.AST) -> str:
        names = {value.name for value in self.facts.values(origin) if value.origin is origin}
        return min(names, default="optimizer").replace("<any>", "(any)")

    def is_flagged(self, path: str) -> bool:
        """Whether `migrate` would speak of a plain training loop in a file."""
        file = self.file(path)
        named = [loop for loop in self.loops.training if self.facts.file(loop.node) is file]
        return bool(named) or any(use.unit.module.file is file for use in self.loops.out_of_sight)


def measure(entries: Sequence[Entry], negatives: Sequence[Entry]) -> Result:
    """What is found in the repository in the current folder."""
    result = Result()
    repository = Repository([*entries, *negatives])
    others = {entry["path"] for entry in negatives}
    for entry in entries:
        file = repository.file(entry["path"])
        if entry["path"] in others:
            result.remarks.append(f"{entry['path']} is listed as a loop and as a negative; it counts as a negative")
        elif not Path(entry["path"]).is_file():
            result.missing.append(entry["path"])
        elif file is not None and file.error is not None:
            result.unparsable.append((entry["path"], file.error.what))
        else:
            result.rows += repository.rows(entry)
    for entry in negatives:
        if Path(entry["path"]).is_file():
            result.negatives += 1
            result.flagged += [entry["path"]] if repository.is_flagged(entry["path"]) else []
        else:
            result.missing.append(entry["path"])
    return result


# --- all of them ----------------------------------------------------------------------------------------------------


def measure_all(tree: Path, listed: dict[str, list[Entry]]) -> dict[str, Result]:
    """Each repository with its result; those that are not in the tree are all missing."""
    results: dict[str, Result] = {}
    before = Path.cwd()
    for name in sorted({entry["repo"] for entries in listed.values() for entry in entries}, key=str.lower):
        entries, negatives = ([e for e in listed[key] if e["repo"] == name] for key in ("loops", "negatives"))
        folder = tree / name.replace("/", "__")
        if folder.is_dir():
            os.chdir(folder)
            results[name] = measure(entries, negatives)
        else:
            results[name] = Result(missing=[entry["path"] for entry in (*entries, *negatives)])
    os.chdir(before)
    return results


def document(results: dict[str, Result]) -> Iterator[str]:
    """The lines of the table."""
    rows = [row for result in results.values() for row in result.rows]
    found = [row for row in rows if row.found]
    flagged = [f"{name} {path}" for name, result in results.items() for path in result.flagged]
    missing = sum(len(result.missing) for result in results.values())
    unparsable = sum(len(result.unparsable) for result in results.values())
    yield "# What is found in real programs"
    yield ""
    yield "Written by `bench/corpus.py`, which says how; do not edit. A row is one call of backward."
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| backward lines in files that are there and parse | {len(rows)} |"
    yield f"| found | {len(found)} ({100 * len(found) / max(len(rows), 1):.1f} %) |"
    yield f"| files that do not parse | {unparsable} |"
    yield f"| files that are not in the tree | {missing} |"
    negatives = sum(result.negatives for result in results.values())
    yield f"| negatives | {negatives} |"
    yield f"| negatives that are flagged | {len(flagged)}{': ' if flagged else ''}{', '.join(flagged)} |"
    yield from _counted("Kind", (row.kind for row in found))
    yield from _counted("What steps", (_step(row) for row in found))
    yield from _counted("Data", (row.over_loader or "not in a loop" for row in found))
    yield from _counted("Outcome", (_code(row) for row in found))
    for name, result in results.items():
        yield from _section(name, result)


def _step(row: Row) -> str:
    known = next((how.value for how in How if row.optimizer.startswith(how.value)), "")
    return known or ("an optimizer" if "(" in row.optimizer else row.optimizer)


def _code(row: Row) -> str:
    return row.outcome.split(":")[0].split(";")[0] if row.outcome.startswith(("left", "converts")) else "not in a loop"


def _counted(title: str, names: Iterator[str]) -> Iterator[str]:
    yield from ("", f"| {title} | lines |", "|---|---|")
    yield from (f"| {name} | {count} |" for name, count in Counter(names).most_common())


def _section(name: str, result: Result) -> Iterator[str]:
    yield from ("", f"## {name}", "")
    if result.rows:
        yield "| file | line | found | kind | loops at | optimizer | data | outcome |"
        yield "|---|---|---|---|---|---|---|---|"
    for row in result.rows:
        cells = (row.path, row.line, "yes" if row.found else "NO", row.kind, row.loops)
        cells = (*cells, row.optimizer, row.over_loader, row.outcome)
        yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
    for path, why in result.unparsable:
        yield f"\nDoes not parse: {path} ({why})"
    for remark in result.remarks:
        yield f"\n{remark}"
    if result.missing:
        yield f"\nNot in the tree: {len(result.missing)} files"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tree", type=Path, required=True, help="the repositories, as <owner>__<name>")
    parser.add_argument("--loops", type=Path, required=True, help="loops.json")
    parser.add_argument("--out", type=Path, required=True, help="where to write the table")
    parser.add_argument("--only", default="", help="only repositories whose name holds this")
    arguments = parser.parse_args()
    listed = json.loads(arguments.loops.read_text())
    if arguments.only:
        listed = {key: [e for e in entries if arguments.only in e["repo"]] for key, entries in listed.items()}
    out = arguments.out.resolve()
    lines = list(document(measure_all(arguments.tree.resolve(), listed)))
    out.write_text("\n".join(lines) + "\n")
    print("\n".join(line for line in lines[:12]))


if __name__ == "__main__":
    main()
