"""What becomes of real programs: how many convert, why the others are left, and whether the results hold.

    python bench/coverage.py --tree DIR --corpus DIR --out docs/coverage.md [--programs]

`--corpus` holds `loops.json` (files with training loops, and the lines that call backward) and, for `--programs`, a
list of programs that run on a CPU with the script that records their losses; `--tree` holds the repositories as
`<owner>__<name>`. None of it is part of this repository, and no code of it is written down. Each repository is
converted in memory as `migrate --write .` in its folder would, notebooks as scripts (see `corpus.py`).
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import runs
from corpus import CODE, Entry, Repository, Row
from verified import section

from migrate.options import Mode, Options
from migrate.pipeline import convert
from migrate.report.model import Report
from migrate.source.project import Project, SourceFile

WRITE = Options(mode=Mode.WRITE)


@dataclass(slots=True)
class Coverage:
    """What one repository gave."""

    rows: list[Row] = field(default_factory=list)
    changed: int = 0  # files
    faults: list[str] = field(default_factory=list)  # what must never be: a result that does not parse, a lost comment

    @property
    def trained(self) -> list[Row]:
        """The lines that count: loops in which an optimizer steps."""
        return [row for row in self.rows if row.found and row.kind == "training" and "(" in row.optimizer]

    @property
    def converted(self) -> list[Row]:
        return [row for row in self.trained if row.outcome == "converts"]


def covered(entries: Sequence[Entry]) -> Coverage:
    """The repository in the current folder."""
    repository = Repository(entries, WRITE)
    rows = [
        row
        for entry in entries
        if (file := repository.file(entry["path"])) is not None and file.error is None
        for row in repository.rows(entry)
    ]
    files = list(repository.files.values())
    report = repository.report
    coverage = Coverage(rows, len(report.changes))
    coverage.faults = [*_faults(report, files), *_second_run(report, files)]
    return coverage


def _faults(report: Report, files: Sequence[SourceFile]) -> Iterator[str]:
    yield from (f"{f.path}: {f.code} {f.message}" for f in report.findings if f.code == "MIG999")
    for change in report.changes:
        try:
            ast.parse(change.new)
        except SyntaxError as error:
            yield f"{change.path}: does not parse ({error})"
            continue
        lost = Counter(comments(change.old)) - Counter(comments(change.new))
        for told in change.lost_comments:
            lost.subtract([told.partition(": ")[2].strip()])
        yield from (f"{change.path}: lost comment {text}" for text, count in lost.items() if count > 0)


def _second_run(report: Report, files: Sequence[SourceFile]) -> Iterator[str]:
    """What a second run would change; it must be nothing."""
    project = Project(list(files)).replaced({change.path: change.new for change in report.changes})
    changed = {change.path for change in report.changes}
    for change in convert(project, WRITE).changes:
        if change.path in changed:
            yield f"{change.path}: a second run changes it again"


def comments(content: bytes) -> list[str]:
    """The comments of a file, in order."""
    tokens = tokenize.tokenize(io.BytesIO(content).readline)
    return [token.string.strip() for token in tokens if token.type == tokenize.COMMENT]


# --- the document ---------------------------------------------------------------------------------------------------


def document(found: dict[str, Coverage], results: Sequence[runs.Result], verified: Path | None = None) -> Iterator[str]:
    """The lines of docs/coverage.md."""
    trained = [row for coverage in found.values() for row in coverage.trained]
    converted = [row for coverage in found.values() for row in coverage.converted]
    faults = [f"{name}: {fault}" for name, coverage in found.items() for fault in coverage.faults]
    yield "# What becomes of real programs"
    yield ""
    yield "Written by `bench/coverage.py`, which says how; do not edit. A line is one call of backward in a loop in"
    yield "which an optimizer steps, in a file that is there and parses."
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| lines | {len(trained)} |"
    yield f"| converted | {len(converted)} ({100 * len(converted) / max(len(trained), 1):.1f} %) |"
    yield f"| left, each with a reason | {len(trained) - len(converted)} |"
    yield f"| files changed | {sum(coverage.changed for coverage in found.values())} |"
    yield f"| changed files that do not parse, lose a comment, or change again in a second run | {len(faults)} |"
    yield from (f"\n* {fault}" for fault in faults)
    yield from ("", "## Why lines are left", "", "| code | lines |", "|---|---|")
    left = Counter(_code(row) for row in trained if row.outcome != "converts")
    yield from (f"| {code} | {count} |" for code, count in left.most_common())
    yield from ("", "## Repository by repository", "")
    yield from ("| repository | lines | converted | left |", "|---|---|---|---|")
    for name, coverage in found.items():
        codes = Counter(_code(row) for row in coverage.trained if row.outcome != "converts")
        told = ", ".join(f"{code} ({count})" for code, count in codes.most_common())
        yield f"| {name} | {len(coverage.trained)} | {len(coverage.converted)} | {told} |"
    yield from ("", "## What is left, line by line", "", "| place | why |", "|---|---|")
    for name, coverage in found.items():
        for row in coverage.trained:
            if row.outcome != "converts":
                why = row.outcome.removeprefix("left, ").replace("|", "\\|")
                yield f"| {name} `{row.path}` {row.line} | {why} |"
    if results:
        yield from ("", *runs.table(results))
    if verified:
        yield from ("", *section(verified).splitlines())


def _code(row: Row) -> str:
    match = CODE.search(row.outcome)
    return match.group() if match else "no reason"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tree", type=Path, required=True, help="the repositories, as <owner>__<name>")
    parser.add_argument("--corpus", type=Path, required=True, help="loops.json, runnable.json and record.py")
    parser.add_argument("--out", type=Path, required=True, help="where to write the document")
    parser.add_argument("--only", default="", help="only repositories whose name holds this")
    parser.add_argument("--programs", action="store_true", help="run the programs that can be run, too")
    parser.add_argument("--verified", type=Path, help="the JSON that bench/verified.py has left")
    arguments = parser.parse_args()
    out, tree, corpus = (path.resolve() for path in (arguments.out, arguments.tree, arguments.corpus))
    loops = [e for e in json.loads((corpus / "loops.json").read_text())["loops"] if arguments.only in e["repo"]]
    found: dict[str, Coverage] = {}
    for name in sorted({entry["repo"] for entry in loops}, key=str.lower):
        folder = tree / name.replace("/", "__")
        if folder.is_dir():
            os.chdir(folder)
            found[name] = covered([entry for entry in loops if entry["repo"] == name])
            print(f"{name}: {len(found[name].converted)} of {len(found[name].trained)}", flush=True)
    results = runs.measure(tree, corpus, arguments.only) if arguments.programs else []
    out.write_text("\n".join(document(found, results, arguments.verified and arguments.verified.resolve())) + "\n")


if __name__ == "__main__":
    main()
