"""What importing and constructing costs: whole processes, in turns, against `import torch` and what is needed with it.

    python bench/start.py [--rounds N]

Times are CPU time of the process (user and system), which other load changes less than wall time; both are shown. The
ratio is to the first row of a table within a round, its median over the rounds. Bytecode is cached, as it is where a
package is installed; the first round writes it, and is not counted.
"""

from __future__ import annotations

import argparse
import importlib.util
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

PARTS = """
import torch, torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader
"""
STEP = """
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.AdamW(model.parameters())
{prepare}
loss = model(torch.zeros(1, 2)).sum()
{backward}
optimizer.step()
"""
ENGINES = {
    "runtime": ("from runtime import Accelerator\nengine = Accelerator(cpu=True)", "prepare"),
    "accelerate": ("from accelerate import Accelerator\nengine = Accelerator(cpu=True)", "prepare"),
    "lightning": ("from lightning.fabric import Fabric\nengine = Fabric(accelerator='cpu', devices=1)", "setup"),
}
NAMES = {"lightning": "fabric"}


def cases() -> dict[str, dict[str, str]]:
    """Title of a table → name of a row → program. The first row is the base."""
    found = {name: how for name, how in ENGINES.items() if name == "runtime" or importlib.util.find_spec(name)}
    construct = {"raw": PARTS}
    step = {"raw": PARTS + STEP.format(prepare="", backward="loss.backward()")}
    for name, (start, prepare) in found.items():
        label = NAMES.get(name, name)
        construct[label] = start
        inside = STEP.format(
            prepare=f"model, optimizer = engine.{prepare}(model, optimizer)", backward="engine.backward(loss)"
        )
        step[label] = f"import torch\n{start}\n{inside}"
    return {
        "import and construct (raw: import torch and its parts)": construct,
        "the same and a first step with AdamW": step,
        "import runtime (raw: python)": {"raw": "pass", "runtime": "import runtime"},
    }


def measure(program: str, environ: dict[str, str]) -> tuple[float, float]:
    """CPU and wall seconds of a process that runs `program`."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environ, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, program
    return usage.ru_utime + usage.ru_stime, wall


def compare(title: str, programs: dict[str, str], rounds: int, environ: dict[str, str]) -> None:
    starts = {name: partial(measure, program, environ) for name, program in programs.items()}
    times = in_turns(starts, rounds)
    print(f"\n{title:58s} {'wall ms':>9s} {'CPU ms':>9s} {'more ms':>9s} {'ratio to raw':>13s}")
    base = [cpu for cpu, _ in times["raw"]]
    for name, own in times.items():
        cpu = [seconds for seconds, _ in own]
        more = statistics.median(a - b for a, b in zip(cpu, base, strict=True))
        wall = statistics.median(seconds for _, seconds in own)
        figures = f"{wall * 1e3:9.0f} {statistics.median(cpu) * 1e3:9.0f} {more * 1e3:9.1f} {ratio(cpu, base):13.3f}"
        print(f"{name:58s} {figures}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as cache:
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environ |= {"PYTHONPYCACHEPREFIX": cache, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "1"}
        environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        for title, programs in cases().items():
            compare(title, programs, rounds, environ)


if __name__ == "__main__":
    main()
