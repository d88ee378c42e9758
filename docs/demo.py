"""The whole product on one script: convert it, run it before and after, compare the losses. `make demo` runs this.

    python docs/demo.py fixtures/classifier/before.py [-- arguments for the run on two processes]

The script prints lines such as `epoch 1 step 10 loss 2.3021` and `epoch 1 accuracy 0.9450 loss 0.1893`. Exit status 0
if the converted script on one process prints what the original prints, to the last digit.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r"^epoch (\d+) (?:step (\d+)|accuracy (\S+)) loss (\S+)$", re.MULTILINE)
LAUNCH = ["runtime", "launch", "--cpu"]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a script: what it printed, digit by digit."""

    name: str
    steps: dict[tuple[int, int], str]
    """(epoch, step) -> training loss."""
    tests: dict[int, tuple[str, str]]
    """epoch -> accuracy and loss on the test set."""

    @classmethod
    def of(cls, name: str, output: str) -> Run:
        found = LINE.findall(output)
        return cls(
            name,
            {(int(epoch), int(step)): loss for epoch, step, _, loss in found if step},
            {int(epoch): (accuracy, loss) for epoch, _, accuracy, loss in found if accuracy},
        )

    @property
    def mean(self) -> float:
        return statistics.fmean(map(float, self.steps.values()))


def main() -> int:
    script = sys.argv[1] if len(sys.argv) > 1 else ""
    for_two = sys.argv[3:]
    if not Path(script).is_file() or sys.argv[2:3] not in ([], ["--"]):
        print(f"demo: no such file: {script!r}; usage: python docs/demo.py SCRIPT [-- ARGUMENTS FOR TWO PROCESSES]")
        return 2
    with tempfile.TemporaryDirectory(prefix="migrate-demo-") as name:
        folder = Path(name)
        for copy in ("original.py", "train.py"):
            shutil.copyfile(script, folder / copy)
        print(f"A script in plain PyTorch: {script}, copied to {folder / 'train.py'}")
        convert(folder)
        title("The same training three times")
        original = train(folder, "original", ["python", "original.py"])
        one = train(folder, "1 process", [*LAUNCH, "-n", "1", "train.py"])
        two = train(folder, "2 processes", [*LAUNCH, "-n", "2", "train.py", *for_two])
    title("The losses side by side")
    print(table([original, one, two]))
    return verdict(original, one, two)


def convert(folder: Path) -> None:
    """Preview and conversion, as a user would call them; ends the demo if the tool fails (status 2)."""
    statuses = []
    for options in ([], ["--write"]):
        title(f"$ {' '.join(['migrate', 'train.py', *options])}")
        statuses.append(start(folder, ["migrate", "train.py", *options]).returncode)
    if 2 in statuses:
        sys.exit("demo: migrate failed, see above")


def train(folder: Path, name: str, command: list[str]) -> Run:
    """Run a script to its end; ends the demo if it fails or prints no losses."""
    print("$", *command, flush=True)
    done = start(folder, command, capture=True)
    run = Run.of(name, done.stdout)
    if done.returncode != 0 or not run.steps:
        print(done.stdout, flush=True)
        sys.exit(f"demo: {' '.join(command)} ended with status {done.returncode} and printed {len(run.steps)} losses")
    return run


def start(folder: Path, command: list[str], *, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """One thread a process: how sums are split over threads must not depend on the machine."""
    program, *arguments = command
    module = [] if program == "python" else ["-m", program]
    return subprocess.run(
        [sys.executable, *module, *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE if capture else None,
        text=True,
        check=False,
    )


def table(runs: list[Run]) -> str:
    """A row for each step that was printed, and one for the test set after each epoch."""
    lines = [f"{'epoch':>5} {'step':>5}" + "".join(f"{run.name:>18}" for run in runs)]
    for epoch in sorted({epoch for run in runs for epoch, _ in run.steps}):
        steps = sorted({step for run in runs for own, step in run.steps if own == epoch})
        lines.extend(row(str(epoch), str(step), [run.steps.get((epoch, step), "-") for run in runs]) for step in steps)
        tests = [run.tests.get(epoch) for run in runs]
        if any(tests):
            lines.append(row(str(epoch), "test", [f"{test[1]} ({test[0]})" if test else "-" for test in tests]))
    return "\n".join(lines)


def row(epoch: str, step: str, values: list[str]) -> str:
    return f"{epoch:>5} {step:>5}" + "".join(f"{value:>18}" for value in values)


def verdict(original: Run, one: Run, two: Run) -> int:
    """Print what the table means; 1 if the conversion changed the training on one process."""
    identical = (original.steps, original.tests) == (one.steps, one.tests)
    count = len(original.steps) + len(original.tests)
    print(f"\n1 process:   all {count} lines identical to the original: {'yes' if identical else 'NO'}")
    print(f"2 processes: mean training loss {two.mean:.4f}, original {original.mean:.4f}")
    print("             (process 0 prints the loss of its own share of each batch).")
    print("             The test set is counted whole, each sample once.")
    return 0 if identical else 1


def title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n{text}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
