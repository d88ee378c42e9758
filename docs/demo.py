"""The whole product on one script: convert it, run it before and after, compare the losses. `make demo` runs this.

    python docs/demo.py fixtures/classifier/before.py [folder to work in]

Exit status 0 if the converted script on one process prints the losses of the original to the last digit.
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

LOSS = re.compile(r"epoch\s+(\d+)\s+step\s+(\d+)\s+loss\s+(\S+)")
SHOWN_ROWS = 24


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a script: what it printed."""

    name: str
    output: str

    @property
    def losses(self) -> dict[tuple[int, int], str]:
        """(epoch, step) -> the loss as printed."""
        return {(int(epoch), int(step)): loss for epoch, step, loss in LOSS.findall(self.output)}


def main() -> int:
    if len(sys.argv) not in {2, 3} or not Path(sys.argv[1]).is_file():
        print(f"usage: python docs/demo.py SCRIPT [FOLDER]; SCRIPT is a training script, got {sys.argv[1:]}")
        return 2
    folder = Path(sys.argv[2] if len(sys.argv) == 3 else tempfile.mkdtemp(prefix="migrate-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("original.py", "train.py"):
        shutil.copyfile(sys.argv[1], folder / name)
    title(f"1. A script in plain PyTorch, copied to {folder}")
    convert(folder)
    title("4. The same training three times")
    runs = [
        train(folder, "original", ["original.py"], "python original.py"),
        train(folder, "1 process", LAUNCH + ["-n", "1", "train.py"], "runtime launch --cpu -n 1 train.py"),
        train(folder, "2 processes", LAUNCH + ["-n", "2", "train.py"], "runtime launch --cpu -n 2 train.py"),
    ]
    title("5. The losses side by side")
    print(table(runs))
    return verdict(*runs)


LAUNCH = ["-m", "runtime", "launch", "--cpu"]


def convert(folder: Path) -> None:
    """Preview and conversion, as a user would call them; ends the demo if the tool fails (status 2)."""
    title("2. migrate train.py            shows the diff, and what was understood")
    preview = python(folder, ["-m", "migrate", "train.py"])
    title("3. migrate train.py --write    converts")
    written = python(folder, ["-m", "migrate", "train.py", "--write"])
    if 2 in {preview.returncode, written.returncode}:
        sys.exit("demo: migrate failed, see above")


def train(folder: Path, name: str, arguments: list[str], shown: str) -> Run:
    """Run a script to its end; ends the demo if it fails or prints no losses."""
    print(f"$ {shown}", flush=True)
    done = python(folder, arguments, capture=True)
    run = Run(name, done.stdout)
    if done.returncode != 0 or not run.losses:
        print(done.stdout, flush=True)
        sys.exit(f"demo: {shown} ended with status {done.returncode} and printed {len(run.losses)} losses")
    return run


def python(folder: Path, arguments: list[str], *, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """One thread a process: how sums are split over threads must not depend on the machine."""
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    stdout = subprocess.PIPE if capture else None
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environ, stdout=stdout, text=True, check=False
    )


def table(runs: list[Run]) -> str:
    """The losses of every run in a row per step; of a long training, evenly spaced rows."""
    steps = sorted({step for run in runs for step in run.losses})
    stride = -(-len(steps) // SHOWN_ROWS)
    chosen = [step for index, step in enumerate(steps) if index % stride == 0 or index == len(steps) - 1]
    lines = [f"{'epoch':>5} {'step':>5}" + "".join(f"{run.name:>14}" for run in runs)]
    for epoch, step in chosen:
        values = (run.losses.get((epoch, step), "-") for run in runs)
        lines.append(f"{epoch:>5} {step:>5}" + "".join(f"{value:>14}" for value in values))
    return "\n".join(lines)


def verdict(original: Run, one: Run, two: Run) -> int:
    """Print what the table means; 1 if the conversion changed the training."""
    identical = original.losses == one.losses
    shared = sorted(original.losses.keys() & two.losses.keys())
    print(f"\n1 process:   identical to the original in all {len(original.losses)} losses: {'yes' if identical else 'NO'}")
    if shared:
        gap = max(abs(float(original.losses[step]) - float(two.losses[step])) for step in shared)
        print(f"2 processes: {len(shared)} losses at the same steps, as means of the global batch differ by {gap:.1e} at most")
    else:
        print("2 processes: prints at other steps than the original, so there is nothing to compare line by line")
    return 0 if identical else 1


def title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n{text}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
