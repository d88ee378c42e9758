"""From the command to the first finished all_reduce on two CPU processes: `runtime launch` beside torchrun and others.

    python bench/launch_start.py [rounds]

The variants take turns in a shuffled order, so that other load on the machine meets all; ratios are taken within a
round, and the median is shown. `accelerate launch` takes part where it is installed. `floor` is a launcher without
torch, checks, restarts or reports, whose processes import torch: what starting costs without a fork.
One process is compared with plain `python script.py`, which is its floor.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from turns import in_turns, ratio

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 120

REDUCE = """
import json, os, time
marks = {"script": time.time()}
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
marks["joined"] = time.time()
ones = torch.ones(1)
dist.all_reduce(ones)
assert int(ones) == 2
marks["reduced"] = time.time()
if dist.get_rank() == 0:
    with open(os.environ["BENCH_MARKS"], "w") as file:
        json.dump(marks, file)
dist.destroy_process_group()
"""
SINGLE = """
import json, os, time
marks = {"script": time.time()}
import torch
marks["reduced"] = time.time()
with open(os.environ["BENCH_MARKS"], "w") as file:
    json.dump(marks, file)
"""
FLOOR = """
import os, socket, subprocess, sys
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
workers = [subprocess.Popen([sys.executable, sys.argv[1]], env={**common, "RANK": str(rank)}) for rank in range(2)]
sys.exit(max(worker.wait() for worker in workers))
"""

# Accelerate starts several processes on a CPU only where it is told that they have GPUs, which the script then ignores.
ACCELERATE = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0"]
NOT_FORKED = "runtime, not forked"

TWO = {
    "torchrun": ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "reduce.py"],
    "runtime launch": ["-m", "runtime", "launch", "--cpu", "-n", "2", "reduce.py"],
    NOT_FORKED: ["-m", "runtime", "launch", "--cpu", "-n", "2", "reduce.py"],
    **({"accelerate launch": [*ACCELERATE, "reduce.py"]} if importlib.util.find_spec("accelerate") else {}),
    "floor": ["floor.py", "reduce.py"],
}
ONE = {
    "python": ["single.py"],
    "runtime launch -n 1": ["-m", "runtime", "launch", "--cpu", "-n", "1", "single.py"],
}


def measure(folder: Path, arguments: list[str], fork: str) -> dict[str, float]:
    """Seconds from the command to the script's first line, to the reduced tensor, and to the exit."""
    marks = folder / "marks.json"
    marks.unlink(missing_ok=True)
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "BENCH_MARKS": str(marks), "RUNTIME_LAUNCH_FORK": fork}
    environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    started = time.time()
    subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environ,
        check=True,
        timeout=LIMIT_S,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ended = time.time()
    found = json.loads(marks.read_text())
    return {
        "to script": found["script"] - started,
        "to all_reduce": found["reduced"] - started,
        "to exit": ended - started,
    }


def compare(folder: Path, variants: dict[str, list[str]], rounds: int) -> None:
    """Print a row per variant; the first one is what the ratios refer to. One round warms the file cache."""
    starts = {name: partial(measure, folder, how, str(int(name != NOT_FORKED))) for name, how in variants.items()}
    results = in_turns(starts, rounds)
    base = results[next(iter(variants))]
    columns = list(base[0])
    print(f"{'':24}" + "".join(f"{column + ' s':>16}{'ratio':>7}" for column in columns))
    for name, rows in results.items():
        cells = []
        for column in columns:
            own = ratio([row[column] for row in rows], [row[column] for row in base])
            cells.append(f"{statistics.median(row[column] for row in rows):>16.2f}{own:>7.2f}")
        print(f"{name:24}" + "".join(cells))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (("reduce.py", REDUCE), ("single.py", SINGLE), ("floor.py", FLOOR)):
            (folder / file).write_text(text)
        print(f"{rounds} rounds, medians, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        for variants in (TWO, ONE):
            compare(folder, variants, rounds)
            print()


if __name__ == "__main__":
    main()
