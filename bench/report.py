"""Run the benchmarks that need nothing but installed packages, and write what they printed: docs/performance.md.

    python bench/report.py [--out docs/performance.md] [--images docs/images] [NAMES ...]      or: make bench

Each section has the command that made it. Tables whose last column is a ratio to raw also become a plot. Of a script of
the list that is not there, or fails, the section says so. With NAMES only these run, and the sections of others stay;
those that need a GPU run where there is one.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 1200
PACKAGES = ("torch", "accelerate", "lightning", "safetensors", "numpy")
TWO = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


@dataclass(frozen=True, slots=True)
class Run:
    """One command: its name, the title of its section, the script, and what stands before and after it."""

    name: str
    title: str
    script: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    needs_gpu: bool = False

    @property
    def arguments(self) -> list[str]:
        return [*self.before, f"bench/{self.script}", *self.after]


RUNS = (
    Run("step", "A training step on one process", "step_overhead.py"),
    Run("step-gpu", "A training step on a GPU", "step_overhead.py", after=("--gpu", "--rounds", "40"), needs_gpu=True),
    Run("step-two", "A training step on two processes", "step_overhead.py", before=TWO, after=("--rounds", "100")),
    Run("start", "Importing and constructing", "start.py", after=("--rounds", "5")),
    Run("data", "Data", "data.py"),
    Run("collectives", "Collectives", "collectives.py", before=TWO),
    Run("checkpoints", "Checkpoints", "checkpoints.py"),
    Run("memory", "Memory", "memory.py"),
    Run("gpu", "Memory, copies and saves on a GPU", "on_gpu.py", after=("--rounds", "3"), needs_gpu=True),
    Run("launch", "Launching", "launch_start.py"),
    Run("analysis", "Understanding a project", "analysis_speed.py", after=("--rounds", "3", "--sizes", "250", "1000")),
    Run("codemod", "Converting", "codemod_speed.py", after=("--rounds", "3")),
    Run("hook", "A check as a command", "hook_speed.py", after=("--synthetic", "250")),
)

INTRODUCTION = """# Performance

Made by `make bench`: every section has the command that printed it. What the rows and columns mean is in
[bench/README.md](../bench/README.md). A figure depends on the machine; what counts is the ratio to the base (the raw
program, the parser of the language), which was measured in the same run, in turns.
"""
ROW = re.compile(r"^(?P<name>\S.*?) {2,}(?P<numbers>[\d., ]*?)(?P<ratio>\d+\.\d+)$")
NOISE = re.compile(r"^(\[|W\d{4} |Using |You are using |[GTH]PU available|-{10,}|All distributed|Starting with)")


def gpu() -> str:
    """The name of the first GPU, as a further part of what the machine is."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    if shutil.which(command[0]) is None:
        return ""
    return f", {subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]}"


def machine() -> str:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    day = datetime.now(tz=timezone.utc).date().isoformat()
    cores = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}{gpu()}"
    where = f"{platform.system()} {platform.machine()}, {cores}, Python {platform.python_version()}"
    return f"{day}; {where}; {', '.join(found)}"


def printed(run: Run) -> str:
    """What the command prints, or why there is nothing."""
    if not (ROOT / "bench" / run.script).exists():
        return f"bench/{run.script} is not there yet."
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, *run.arguments],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that the processes that it starts can be ended with it
    )
    try:
        output, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"It did not end within {LIMIT_S} s."
    if process.returncode:
        return f"It failed: {(errors.strip().splitlines() or ['no message'])[-1]}"
    lines = [line.rstrip() for line in output.splitlines() if not NOISE.match(line)]
    return "\n".join(lines).strip()


def tables(text: str) -> dict[str, dict[str, float]]:
    """Title → row → ratio, of tables whose header ends in "ratio to raw"."""
    found: dict[str, dict[str, float]] = {}
    title = None
    for line in text.splitlines():
        if line.endswith("ratio to raw"):
            title = re.split(r" {2,}", line)[0]
            found[title] = {}
        elif title is not None and (row := ROW.match(line)):
            found[title][row["name"]] = float(row["ratio"])
        else:
            title = None
    return {title: rows for title, rows in found.items() if len(rows) > 1}


def plot(found: dict[str, dict[str, float]]) -> str:
    """The tables as bars, an SVG; 1 is what the raw program costs."""
    longest = max(ratio for rows in found.values() for ratio in rows.values())
    scale, y, parts = 400 / max(longest, 1.2), 10, []
    for title, rows in found.items():
        y += 18
        parts.append(f'<text x="10" y="{y}" font-weight="bold">{escape(title)}</text>')
        for name, ratio in rows.items():
            y += 20
            colour = {"raw": "#999999", "runtime": "#2a7f4f"}.get(name, "#c9a227")
            parts.append(f'<text x="110" y="{y}" text-anchor="end">{escape(name)}</text>')
            parts.append(f'<rect x="120" y="{y - 11}" width="{ratio * scale:.1f}" height="14" fill="{colour}"/>')
            parts.append(f'<text x="{125 + ratio * scale:.1f}" y="{y}">{ratio:.2f}</text>')
        y += 14
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="600" height="{y}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def section(run: Run, images: Path, out: Path) -> str:
    print(f"{run.title}: python {' '.join(run.arguments)}", flush=True)
    text = printed(run)
    print(text, flush=True)
    lines = [
        f"## {run.title}",
        "",
        f"    python {' '.join(run.arguments)}",
        "",
        f"{machine()}.",
        "",
        "```text",
        text,
        "```",
    ]
    if found := tables(text):
        images.mkdir(parents=True, exist_ok=True)
        (images / f"{run.name}.svg").write_text(plot(found), encoding="utf-8")
        place = os.path.relpath(images / f"{run.name}.svg", out.parent)
        lines += ["", f"![Ratio to raw: {run.title.lower()}]({place})"]
    return "\n".join([*lines, ""])


def earlier(out: Path) -> dict[str, str]:
    """Title → section, of the page that is there."""
    text = out.read_text(encoding="utf-8") if out.exists() else ""
    parts = re.split(r"(?m)^(?=## )", text)[1:]
    return {part.splitlines()[0][3:]: part for part in parts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "performance.md")
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("names", nargs="*", metavar="NAMES", help=", ".join(run.name for run in RUNS))
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {run.name for run in RUNS}
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: not known. Known: {', '.join(run.name for run in RUNS)}")
    sections = earlier(arguments.out)
    has_gpu = bool(gpu())
    for run in RUNS:
        if run.name in arguments.names or (not arguments.names and (has_gpu or not run.needs_gpu)):
            sections[run.title] = section(run, arguments.images, arguments.out)
    page = "\n".join([INTRODUCTION, *(sections[run.title].rstrip() + "\n" for run in RUNS if run.title in sections)])
    arguments.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
