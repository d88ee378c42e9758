"""20,000 programs that nobody would write: every law holds for each of them."""

import pytest
from laws import broken, tried
from programs import chunks, inputs

from migrate.report.model import Kind

pytestmark = pytest.mark.torture
SHOWN = 6  # failures of one portion that are told in full


@pytest.mark.parametrize(("kind", "number", "count"), chunks(), ids=lambda value: str(value).replace(" ", "-"))
def test_every_law_holds(kind, number, count, record, is_late, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = dict.fromkeys(("inputs", "parse", "training", "converted", "broken"), 0)
    failures = []
    for index, program in enumerate(inputs(kind, number, count)):
        if is_late():
            break
        trial = tried(program, tmp_path)
        counts["inputs"] += 1
        counts["parse"] += bool(trial.project.named) and not trial.report.problems
        counts["training"] += bool(trial.report.of(Kind.LOOP))
        counts["converted"] += bool(trial.report.changes)
        if found := broken(trial):
            counts["broken"] += 1
            failures.append(told(tmp_path, index, program, found))
    record("inputs", kind, **counts)
    assert not failures, f"{len(failures)} of {counts['inputs']}:\n" + "\n\n".join(failures[:SHOWN])


def told(folder, index, program, found):
    """A failure in a few lines; its files are kept."""
    kept = folder / f"failed-{index}"
    kept.mkdir()
    for name, content in program.files.items():
        (kept / name).write_bytes(content)
    laws = "\n".join(f"  {law}: {how[-700:]}" for law, how in found[:4])
    return f"{kept} ({program.origin}; {', '.join(program.mutations)})\n{laws}"
