"""Programs put together from common ways of writing each part, and of where a trainer makes its parts: converted they
say what they said (E1) and, on two processes, evaluate exactly (E3), with one voice (E4), at the same rates (E5), and
train as one process does where the global batch is the same (E2).
"""

import random
import re
from pathlib import Path

import idioms
import pairs
import pytest
import tasks
import trainers
from asked import MADE, SEED
from executions import Stage

from migrate.options import Options
from migrate.pipeline import run

pytestmark = pytest.mark.torture
PORTIONS = 4
FROZEN = ["--lr", "0"]
TOLD = {
    idioms: "common ways of each part",
    pairs: "two models that train each other, or one by the other",
    tasks: "other tasks, settings and ways to go over data",
    trainers: "where a trainer makes its parts",
}
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
CLOSE = 2e-3
#: Where the rates, or how long it goes on, depend on what half as many steps come to.
BY_STEPS = frozenset({"rate by corners", "rate by loss", "stops by loss"})


@pytest.mark.parametrize("portion", range(PORTIONS))
@pytest.mark.parametrize("kind", TOLD, ids=[kind.__name__ for kind in TOLD])
def test_the_contracts_hold(kind, portion, record, is_late, tmp_path):
    held(TOLD[kind], kind.made, portion, performed, record, is_late, tmp_path)


def held(kind, made, portion, performed, record, is_late, folder):
    """Make a portion of the programs of a kind, look at each as `performed` does, and find nothing wrong."""
    chance = random.Random(f"{SEED} {kind} {portion}")  # noqa: S311 (a choice, not a secret)
    counts = dict.fromkeys(("programs", "refused", "hold", "fail"), 0)
    failures = []
    (folder / "stage").mkdir()
    with Stage(folder / "stage", processes=2) as stage:
        for number in range(MADE // PORTIONS):
            if is_late():
                break
            program = made(chance)
            converted, told = performed(program, folder / str(number), stage)
            counts["programs"] += 1
            counts["fail" if told else "hold" if converted else "refused"] += 1
            if told:
                failures.append(f"{folder / str(number)} ({program.ways}): {told}")
    record("made", kind, **counts)
    assert not failures, "\n\n".join(failures)


def performed(program, folder, stage):
    """Whether a program was converted, and what is wrong with it then."""
    report = converted_into(program, folder)
    if not report.changes:
        return False, ""
    before, after = (folder / version / idioms.PROGRAM for version in ("before", "after"))
    told = alone(before, after, stage)
    if not program.tags & {"reads again"}:
        if not has_been_told(report, "is made for the length of a loader"):
            told = told or together(program, before, after, stage)
        if not program.tags & {"sum of losses", "mean of some"}:
            told = told or split(before, after, stage, compared(report))
    if not program.tags & {"spread"}:
        told = told or elsewhere(before, after, stage)
    if program.tags >= {"resumes", "keeps all"}:
        told = told or resumed(program, before, after, stage)
    return True, told


def converted_into(program, folder):
    """What is said of a program, which is written to `before`, and converted to `after`."""
    for name, text in program.files.items():
        for version in ("before", "after"):
            (folder / version).mkdir(parents=True, exist_ok=True)
            (folder / version / name).write_text(text)
    report = run([str(folder / "before" / name) for name in program.files if name.endswith(".py")], Options())
    for change in report.changes:
        (folder / "after" / Path(change.path).name).write_bytes(change.new)
    return report


def has_been_told(report, *words):
    return any(all(word in finding.message for word in words) for finding in report.findings)


def compared(report):
    """The lines that two processes must print as one does: those of the training not where it is said why not."""
    is_told = any(has_been_told(report, verb, "one process's share") for verb in ("show", "is of"))
    return ["val"] if is_told else ["train", "val"]


def alone(before, after, stage):
    """What differs on one process."""
    return unlike(*(stage.run(script, [], launched=False) for script in (before, after)))


def unlike(first, second):
    """What differs between how a program and the converted one ended on one process."""
    if first.status:
        return f"the original fails:\n{first.errors[-900:]}"
    if (second.status, second.said) != (0, first.said):
        return f"E1:\n{first.output}\n{second.output}\n{second.errors[-900:]}"
    return ""


def elsewhere(before, after, stage):
    """What differs between a program on the first GPU and the converted one on the second, which are pretended."""
    for arguments in ([], ["--no-cuda"]):
        first, second = stage.on_gpu(0, before, arguments), stage.on_gpu(1, after, arguments)
        if first.status and arguments:
            continue  # it moves things to the GPU by another test than this
        if first.status:
            return f"the original fails on a GPU:\n{first.errors[-900:]}"
        if (second.status, second.output) != (0, first.output):
            return f"on the second GPU {arguments}:\n{first.output}\n{second.output}\n{second.errors[-900:]}"
    return ""


def resumed(program, before, after, stage):
    """What differs between a program that goes on from what it has left, and the converted one."""
    stage.run(before, [], launched=False)
    from_original = ["--epochs", "5", "--resume", str(stage.left("last.pt"))]
    first, second = (stage.run(script, from_original, launched=False) for script in (before, after))
    if (second.status, second.said) != (0, first.said):
        return f"E1, resumed:\n{first.output}\n{second.output}\n{second.errors[-900:]}"
    if program.tags & {"reads again", *BY_STEPS}:
        return ""
    stage.together(after, [])
    main, other = stage.together(after, ["--epochs", "5", "--resume", str(stage.left("last.pt"))])
    if main.status or other.status or other.output or lines(main, "lr")[:1] != lines(first, "lr")[:1]:
        return f"resumed on two processes:\n{main.output}\n{other.output}\n{main.errors[-900:]}\n{other.errors[-900:]}"
    return ""


def together(program, before, after, stage):
    """What differs on two processes: of a frozen program what it evaluates, of a training one the rates."""
    frozen, training = (stage.run(before, arguments, launched=False) for arguments in (FROZEN, []))
    both = (stage.together(after, FROZEN), stage.together(after, []))
    for main, other in both:
        if main.status or other.status:
            return f"on two processes:\n{main.errors[-900:]}\n{other.errors[-900:]}"
        if other.output or other.files:
            return f"E4:\n{other.output}\n{other.files}"
    is_fixed = not program.tags >= {"folds", "draws"}  # of the next fold's weights
    if (
        is_fixed
        and not program.tags & {"never frozen", "by batches"}
        and lines(both[0][0], "val") != lines(frozen, "val")
    ):
        return f"E3:\n{frozen.output}\n{both[0][0].output}"
    if program.tags.isdisjoint(BY_STEPS):
        if lines(both[1][0], "lr") != lines(training, "lr"):
            return f"E5:\n{training.output}\n{both[1][0].output}"
    return ""


def split(before, after, stage, kinds):
    """What differs on two processes that share each batch out: nothing but the order in which numbers are added up."""
    training = stage.run(before, [], launched=False)
    shared = after.with_name("split.py")
    shared.write_text(after.read_text().replace("= Accelerator(", "= Accelerator(split_batches=True, "))
    main, other = stage.together(shared, [])
    if main.status or other.status:
        return f"on two processes that share batches:\n{main.errors[-900:]}\n{other.errors[-900:]}"
    return f"E2:\n{training.output}\n{main.output}" if differing(training, main, kinds) else ""


def differing(first, second, kinds):
    """The first kind of lines of which two runs tell other numbers than those of another order of adding up."""
    for kind in kinds:
        told, now = ([[*map(float, NUMBER.findall(line))] for line in lines(ran, kind)] for ran in (first, second))
        if told != [pytest.approx(numbers, rel=CLOSE, abs=CLOSE) for numbers in now]:
            return kind
    return None


def lines(ran, kind):
    return [line for line in ran.output.splitlines() if line.split()[:1] == [kind]]
