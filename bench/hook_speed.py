"""What a check costs as a command, from start to end, next to other tools on the same files.

    python bench/hook_speed.py                        one ordinary file, and one with a training loop
    python bench/hook_speed.py --rounds 9 ~/src/*     the files, and these folders

CPU time of the process and of those that it starts, in milliseconds. The floor is an interpreter that parses, with
`ast`, the files that hold the word `backward`. Tools that are not installed are left out. bench/README.md says what the
figures mean.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from turns import in_turns

ROOT = Path(__file__).resolve().parent.parent
START, FLOOR, OURS = "python -c pass", "floor", "migrate --check"
FLOOR_CODE = """
import ast, pathlib, sys
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        content = file.read_bytes()
        if b"backward" in content:
            try:
                ast.parse(content)
            except SyntaxError:
                pass
"""
ORDINARY = '"""A file as there are many."""\n\nimport os\n\n' + "\n\n".join(
    f"def part_{number}(folder):\n    return [name for name in os.listdir(folder) if name.endswith('.{number}')]\n"
    for number in range(12)
)


def commands(path: Path) -> Mapping[str, list[str]]:
    """The command line of every tool that is there."""
    python, name = sys.executable, str(path)
    every = {
        START: [python, "-c", "pass"],
        FLOOR: [python, "-c", FLOOR_CODE, name],
        OURS: [python, "-m", "migrate", "--check", name],
        "libcst.tool, no-op": [python, "-m", "libcst.tool", "codemod", "-j1", "-u", "noop.NOOPCommand", name],
    }
    for tool, options in (
        ("ruff", ["check", "--no-cache", "--isolated"]),
        ("torchfix", ["--select=ALL"]),
        ("django-upgrade", ["--check"]),
    ):
        if (found := shutil.which(tool, path=f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}")) is not None:
            files = [str(file) for file in sorted(path.rglob("*.py"))] if path.is_dir() else [name]
            every[tool] = [found, *options, *(files if tool == "django-upgrade" else [name])]
    return every


def cpu_ms(command: Sequence[str]) -> Callable[[], float]:
    """A run of a command; what it gives is its CPU time."""

    def work() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    return work


def table(name: str, path: Path, rounds: int) -> str:
    """A row for each tool: the median, and how many times the floor that is."""
    found = in_turns({tool: cpu_ms(command) for tool, command in commands(path).items()}, rounds)
    floor = statistics.median(found[FLOOR])
    rows = [
        f"| {tool} | {statistics.median(times):,.0f} | {min(times):,.0f} | {statistics.median(times) / floor:.2f} |"
        for tool, times in found.items()
    ]
    head = [f"{name}:", "", "| command | CPU ms, median | least | x floor |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        ordinary = Path(folder) / "ordinary.py"
        ordinary.write_text(ORDINARY, encoding="utf-8")
        print(table("one ordinary file", ordinary, given.rounds))
        print(table("one file with a training loop", ROOT / "fixtures/classifier/before.py", given.rounds))
    for path in given.folders:
        print(table(f"{path.name}, {sum(1 for _ in path.rglob('*.py'))} files", path.resolve(), given.rounds))


if __name__ == "__main__":
    main()
