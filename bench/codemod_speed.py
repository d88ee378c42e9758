"""What `migrate` costs a file, next to the least that any tool of its kind must do.

    python bench/codemod_speed.py                     the fixtures, each a project of its own
    python bench/codemod_speed.py --rounds 9 ~/src    the scripts under ~/src, where they are

`--check` is compared with `ast.parse` of the same files, and what `--write` does to the files that change with a
libcst round trip, `libcst.parse_module(x).code`, of the same files. Every variant runs on a file in turn, in a shuffled
order, so that other load on the machine meets all; times are CPU time of this process, files are named one by one.
bench/README.md says what the figures mean.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import libcst

from migrate import pipeline
from migrate.engine import ENGINE, Conversion
from migrate.options import Mode, Options
from migrate.report.model import Report
from migrate.source.project import Project, SourceFile

ROOT = Path(__file__).resolve().parent.parent
CHECK, WRITE = Options(mode=Mode.CHECK), Options(mode=Mode.WRITE)
Work = Callable[[], object]

PARSE, FIND = "ast.parse", "--check"
ROUND_TRIP, APPLY, WHOLE = "libcst.parse_module(x).code", "--write: the edits alone", "--write: everything in memory"
CHECKED = "--check of the same files"
SHOWN = "--write after --diff"


@dataclass(frozen=True, slots=True)
class Subject:
    """A file with what is measured on it."""

    path: Path
    lines: int
    is_edited: bool
    variants: dict[str, Work]


def scripts(folders: Sequence[Path]) -> Iterator[Path]:
    """The scripts under the folders that Python can parse."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
            if not any(part.startswith(".") for part in path.relative_to(folder).parts):
                yield path


def applying(file: SourceFile, conversion: Conversion) -> Work:
    """The edits of a finished plan."""
    plan = conversion.plan
    assert plan is not None

    def work() -> object:
        plan.applied.clear()  # each time anew
        return ENGINE.apply(file, conversion)

    return work


def shown(path: Path, folder: Path) -> Work:
    """`--write` of what `--diff` has shown before, but for saving it; the folder keeps that."""
    options = replace(WRITE, cache=True, cache_dir=str(folder))
    pipeline.run([str(path)], replace(options, mode=Mode.DIFF))

    def plan(*_: object) -> Conversion:
        raise AssertionError(f"{path} is planned again")

    def accept(report: Report) -> Report:
        assert report.changes
        return replace(report, changes=())

    return lambda: pipeline.run([str(path)], options, replace(ENGINE, plan=plan), accept=accept)


def subject(path: Path, folder: Path) -> Subject | None:
    """None for a file that cannot be parsed, or that migrate drops for a reason of its own."""
    content = path.read_bytes()
    try:
        ast.parse(content)
        report = pipeline.run_text(content, str(path), WRITE)
    except (SyntaxError, ValueError):
        return None
    if report.problems or any(finding.code in {"MIG998", "MIG999"} for finding in report.findings):
        return None
    variants: dict[str, Work] = {
        PARSE: lambda: ast.parse(content),
        FIND: lambda: pipeline.run_text(content, str(path), CHECK),
    }
    if report.changes:
        file = SourceFile(str(path), content, real=path)
        conversion = ENGINE.plan(Project([file]), WRITE)
        variants |= {
            ROUND_TRIP: lambda: libcst.parse_module(content).code,
            APPLY: applying(file, conversion),
            WHOLE: lambda: pipeline.run_text(content, str(path), WRITE),
            SHOWN: shown(path, folder),
        }
    return Subject(path, content.count(b"\n") + 1, bool(report.changes), variants)


def fixtures(folder: Path) -> list[Path]:
    """The scripts to be converted, copied with the modules beside them, as programs that stand alone."""
    for case in sorted((ROOT / "fixtures").iterdir()):
        if (case / "case.toml").exists():
            own = folder / case.name
            shutil.copytree(case, own, ignore=shutil.ignore_patterns("after*", "*.toml", "__pycache__"))
            (own / "pyproject.toml").touch()
    return list(scripts([folder]))


def seconds(work: Work) -> float:
    """CPU time of one run; what earlier runs left behind is collected before the clock starts."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def measured(subjects: Sequence[Subject], rounds: int) -> dict[str, list[list[float]]]:
    """Variant -> a list for each round -> seconds for each file that has the variant."""
    shuffled = random.Random(0)  # noqa: S311 - the same order in every run of the benchmark
    found: dict[str, list[list[float]]] = {}
    for _ in range(rounds):
        own: dict[str, list[float]] = {}
        for one in subjects:
            names = list(one.variants)
            shuffled.shuffle(names)
            for name in names:
                own.setdefault(name, []).append(seconds(one.variants[name]))
        for name, values in own.items():
            found.setdefault(name, []).append(values)
    return found


def show(title: str, subjects: Sequence[Subject], found: dict[str, list[list[float]]], names: Sequence[str]) -> None:
    """Milliseconds a file and the ratio to the first variant: of the sums in a round, and of single files."""
    base = found[names[0]]
    lines = statistics.fmean(one.lines for one in subjects)
    print(f"\n{title}: {len(subjects)} files, {lines:.0f} lines a file")
    print(f"{'':32}{'ms a file':>10}{'ratio':>8}{'median file':>13}{'worst file':>12}")
    for name in names:
        own = found[name]
        ratio = statistics.median(sum(a) / sum(b) for a, b in zip(own, base, strict=True))
        single = [
            statistics.median(a[i] for a in own) / statistics.median(b[i] for b in base) for i in range(len(subjects))
        ]
        per_file = statistics.median(sum(values) for values in own) / len(subjects) * 1e3
        print(f"{name:32}{per_file:10.2f}{ratio:8.2f}{statistics.median(single):13.2f}{max(single):12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="instead of the fixtures")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder).resolve()
        paths = list(scripts([f.resolve() for f in asked.folders])) if asked.folders else fixtures(own / "fixtures")
        report(paths, asked.rounds, own / "kept")


def report(paths: Sequence[Path], rounds: int, kept: Path) -> None:
    found = [subject(path, kept) for path in paths]
    subjects = [one for one in found if one is not None]
    gc.collect()
    gc.freeze()  # what is loaded by now is no matter of any variant
    times = measured(subjects, rounds)
    print(f"{rounds} rounds, CPU time, medians; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if len(found) > len(subjects):
        print(f"{len(found) - len(subjects)} files are left out: they cannot be parsed or edited")
    show("all files", subjects, times, [PARSE, FIND])
    edited = [one for one in subjects if one.is_edited]
    if edited:
        check = {CHECKED: [[t for t, one in zip(r, subjects, strict=True) if one.is_edited] for r in times[FIND]]}
        show("files that change", edited, times | check, [ROUND_TRIP, APPLY, CHECKED, WHOLE, SHOWN])


if __name__ == "__main__":
    main()
