"""Names, the order of independent lines and the place of functions change neither what is found nor what converts."""

import ast
from collections import Counter

import metamorphoses
import pytest
from cases import cases

from migrate.options import Options, Target
from migrate.pipeline import run
from migrate.report.model import Kind

pytestmark = pytest.mark.torture
PORTIONS = 6
SHOWN = 8


def exactly(report):
    """What is said of which line."""
    return Counter((f.code, f.kind.value, f.line, f.converts) for f in report.findings)


def roughly(report):
    """Which training loops there are and what becomes of them, and the reasons why."""
    loops = Counter(("loop", loop.converts) for loop in report.of(Kind.LOOP))
    return loops, {finding.code for finding in report.of(Kind.LEFT)}


#: Name → the metamorphosis, what must be the same.
TABLE = {
    "every variable renamed": (metamorphoses.renamed, exactly),
    "independent statements reordered": (metamorphoses.reordered, roughly),
    "functions moved to another file": (metamorphoses.moved_to_another_file, roughly),
    "the step split off as a function": (metamorphoses.split_off, roughly),
}


def programs():
    for case in cases():
        if all(file.suffix == ".py" for file in case.before):
            yield case


def report_of(files, folder, case):
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    options = Options(target=Target(case.table.get("target", "runtime")))
    return run([str(folder / name) for name in sorted(files)], options)


@pytest.mark.parametrize("portion", range(PORTIONS))
@pytest.mark.parametrize("name", TABLE)
def test_what_means_nothing_changes_nothing(name, portion, record, is_late, tmp_path):
    change, view = TABLE[name]
    counts = dict.fromkeys(("programs", "same", "differs"), 0)
    failures = []
    for case in list(programs())[portion::PORTIONS]:
        before = metamorphoses.plain({file.name: file.read_bytes() for file in case.before})
        after = change(before)
        if after is None or is_late():
            continue
        for content in after.values():
            ast.parse(content)
        one = view(report_of(before, tmp_path / case.name / "before", case))
        other = view(report_of(after, tmp_path / case.name / "after", case))
        counts["programs"] += 1
        counts["same" if one == other else "differs"] += 1
        if one != other:
            failures.append(f"{tmp_path / case.name}:\n  {one}\n  {other}")
    record("metamorphic", name, **counts)
    assert not failures, "\n".join(failures[:SHOWN])
