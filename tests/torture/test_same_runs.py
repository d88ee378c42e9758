"""Mutated programs that run: converted they say and write what they said and wrote before (E1), or they are refused."""

import random
from pathlib import Path

import pytest
from asked import RUNS, SEED
from cases import cases
from executions import Stage
from mutations import GENTLE, mutated
from programs import LONGEST

from migrate.options import Options, Target
from migrate.pipeline import run

pytestmark = pytest.mark.torture
PORTIONS = 8
TRIES = 12  # mutated programs for each that is compared, at most


def candidates():
    """The shorter runnable cases, the refused ones too: a mutation may take away what was in the way."""
    for case in cases():
        names = [file.name for file in case.before]
        short = sum(file.read_bytes().count(b"\n") for file in case.before) <= LONGEST
        if case.table["runnable"] and short and all(name.endswith(".py") for name in names):
            yield case


@pytest.mark.parametrize("portion", range(PORTIONS))
def test_e1_or_refused(portion, record, is_late, tmp_path):
    chance = random.Random(f"{SEED} runs {portion}")  # noqa: S311 (a choice, not a secret)
    some, wanted = list(candidates()), RUNS // PORTIONS
    counts = dict.fromkeys(("programs", "refused", "does not run", "by chance", "same", "differs"), 0)
    failures = []
    stage_folder = tmp_path / "stage"
    stage_folder.mkdir()
    with Stage(stage_folder) as stage:
        for number in range(wanted * TRIES):
            if counts["same"] + counts["differs"] >= wanted or is_late():
                break
            case = chance.choice(some)
            folder = tmp_path / str(number)
            outcome, told = compared(case, chance, folder, stage)
            counts["programs"] += 1
            counts[outcome] += 1
            if told:
                failures.append(f"{folder} ({case.name}): {told}")
    record("runs", "mutated runnable fixtures", **counts)
    assert not failures, "\n\n".join(failures)


def compared(case, chance, folder, stage):
    """What became of one mutated program, and what is wrong with it."""
    before, after = folder / "before", folder / "after"
    chosen = chance.choice([file.name for file in case.before])
    names = []
    for version in (before, after):
        version.mkdir(parents=True)
    for file in case.before:
        content = file.read_bytes()
        if file.name == chosen:
            content, names = mutated(content, chance, GENTLE, most=2)
        (before / file.name).write_bytes(content)
    report = run([str(before / file.name) for file in case.before], options(case))
    if not report.changes:
        return "refused", ""
    new = {Path(change.path).name: change.new for change in report.changes}
    for file in case.before:
        (after / file.name).write_bytes(new.get(file.name, (before / file.name).read_bytes()))
    return ran(case, before, after, stage, names)


def options(case):
    return Options(target=Target(case.table.get("target", "runtime")))


def ran(case, before, after, stage, names):
    """Both versions, run."""
    script = case.script("before").name
    arguments, launched = list(case.table.get("arguments", ())), case.table.get("launched", False)
    first = stage.run(before / script, arguments, launched=launched)
    if first.status:
        return "does not run", ""
    second = stage.run(after / script, arguments, launched=False)
    if (second.status, second.said) == (0, first.said):
        return "same", ""
    if stage.run(before / script, arguments, launched=launched).said != first.said:
        return "by chance", ""
    told = f"{second.output[-600:]}\n{second.errors[-900:]}"
    return "differs", f"{names}\nbefore:\n{first.output[-600:]}\nafter ({second.status}):\n{told}"
