"""The whole product on one script: convert it, run it before and after, compare the losses. `make demo` runs this.

    python docs/demo.py fixtures/classifier/before.py [-- arguments for the run on two processes]

The script prints lines such as `epoch 1 loss 1.6802` and `epoch 1 accuracy 0.7467 loss 0.7342`. Exit status 0 if the
converted script prints what the original prints: to the last digit on one process, within `CLOSE` on two.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r"^epoch (\d+) (?:accuracy (\S+) )?loss (\S+)$", re.MULTILINE)
LAUNCH = ["runtime", "launch", "--cpu"]
CLOSE = 0.005  # two processes add gradients in another order, and training amplifies the last bit of a float


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a script: what it printed, digit by digit."""

    name: str
    losses: dict[tuple[int, str], str]
    """(epoch, "train" or "test") -> loss."""

    @classmethod
    def of(cls, name: str, output: str) -> Run:
        found = LINE.findall(output)
        return cls(name, {(int(epoch), "test" if accuracy else "train"): loss for epoch, accuracy, loss in found})

    def distance(self, other: Run) -> float:
        """The largest difference to another run; infinite if they did not print the same lines."""
        if self.losses.keys() != other.losses.keys():
            return float("inf")
        return max(abs(float(loss) - float(other.losses[key])) for key, loss in self.losses.items())


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
    if done.returncode != 0 or not run.losses:
        print(done.stdout, flush=True)
        sys.exit(f"demo: {' '.join(command)} ended with status {done.returncode} and printed {len(run.losses)} losses")
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
    """A row for each loss that was printed."""
    lines = [f"{'epoch':>5}  {'loss':5}" + "".join(f"{run.name:>14}" for run in runs)]
    for epoch, kind in runs[0].losses:
        values = "".join(f"{run.losses.get((epoch, kind), '-'):>14}" for run in runs)
        lines.append(f"{epoch:>5}  {kind:5}{values}")
    return "\n".join(lines)


def verdict(original: Run, one: Run, two: Run) -> int:
    """Print what the table means; 1 if the conversion changed the training."""
    identical, close = original.losses == one.losses, original.distance(two) <= CLOSE
    print(f"\n1 process:   all {len(original.losses)} losses identical to the original: {'yes' if identical else 'NO'}")
    print(
        f"2 processes: largest difference {original.distance(two):.4f}: {'the same training' if close else 'DIFFERENT'}"
    )
    print("             (half of each batch on each process; the test set is counted whole, each sample once)")
    return 0 if identical and close else 1


def title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n{text}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
