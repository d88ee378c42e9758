"""The same converted scripts on the runtime and on Accelerate: the same losses, rates, steps and parameters."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("record.py")
SCRIPTS = (
    "accumulation", "classifier", "clipping", "dict-batches", "gan", "head-only", "hidden-state", "plateau",
    "schedule-after-prepare", "schedule-before-prepare", "teacher", "two-losses",
)  # fmt: skip
TOLERANCE = {"no": 1e-5, "bf16": 1e-2}  # relative: sums in another order, and their like in eight bits
DIFFERENT = {  # script, processes, split_batches (None: both) → why; docs/runtime/compatibility.md has them, too
    ("accumulation", 2, True): "the last, smaller batch is cut; there it is filled up with samples of the first",
    ("hidden-state", 2, True): "a batch of 15 is cut for 2 processes; there it is refused",
    ("plateau", 2, False): "evaluation goes by the batches of one process, so the mean of batch means is that of one",
    ("two-losses", 2, None): "find_unused_parameters allows a second backward; there it is an error",
}


def recorded(library, processes, folder):
    """What every rank computed in every run, by script and setting."""
    out = folder / library
    scripts = [str(ROOT / "fixtures" / name / "after.py") for name in SCRIPTS]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    launch = torchrun if processes > 1 else []
    done = subprocess.run(
        [sys.executable, *launch, str(RECORD), library, str(out), *scripts],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(Path(f"{out}.{rank}").read_text()) for rank in range(processes)]


@pytest.mark.skipif(find_spec("accelerate") is None, reason="accelerate is not installed")
@pytest.mark.parametrize("processes", [1, 2])
def test_both_libraries_compute_the_same(processes, tmp_path):
    ours, theirs = (recorded(library, processes, tmp_path) for library in ("runtime", "accelerate"))
    compared, parts = 0, []
    for rank in range(processes):
        for mine, other in zip(ours[rank], theirs[rank], strict=True):
            setting = mine["setting"]
            name = Path(mine["script"]).parent.name
            if {(name, processes, setting["split_batches"]), (name, processes, None)} & DIFFERENT.keys():
                continue
            compared += len(mine["losses"])
            tolerance = TOLERANCE[setting["mixed_precision"]]
            parts += [
                f"{name} {setting} rank {rank}: {kind}"
                for kind in ("losses", "rates", "parameters")
                if not are_close(mine[kind], other[kind], tolerance)
            ]
            assert (mine["error"], other["error"]) == ("", ""), (name, setting)
    assert not parts
    assert compared > 1000


def are_close(mine, other, tolerance):
    if len(mine) != len(other):
        return False
    pairs = zip(mine, other, strict=True)
    return all(
        math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) or (math.isnan(a) and math.isnan(b)) for a, b in pairs
    )
