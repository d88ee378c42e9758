"""What a check costs as a command, from start to end, next to other tools on the same files.

    python bench/hook_speed.py                              ordinary files, and one with a training loop
    python bench/hook_speed.py --rounds 9 ~/src/*           the files, and these folders
    python bench/hook_speed.py --synthetic 20000            and a tree of so many files, in which one in ten trains
    python bench/hook_speed.py --peers /tmp/peers/bin       other tools are in an environment of their own

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

from analysis_speed import write_project
from turns import in_turns, ratio

ROOT = Path(__file__).resolve().parent.parent
START, FLOOR, OURS, AGAIN = "python -c pass", "floor", "migrate --check", "migrate --check, again"
SCRIPT = "import sys\nfrom migrate.cli import main\nsys.exit(main())\n"  # what a hook starts
FLOOR_CODE = """
import ast, pathlib, sys
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        content = file.read_bytes() if file.is_file() else b""
        if b"backward" in content:
            try:
                ast.parse(content)
            except (SyntaxError, ValueError):
                pass
"""
ORDINARY = '"""A file as there are many."""\n\nimport os\n\n' + "\n\n".join(
    f"def part_{number}(folder):\n    return [name for name in os.listdir(folder) if name.endswith('.{number}')]\n"
    for number in range(12)
)
SETTINGS = """\
[tool.migrate]
target = "accelerate"
ignore = ["MIG117", "prepare"]
exclude = ["legacy/*"]
per-file-ignores = { "examples/*" = ["MIG001"] }
"""
PEERS = (
    ("ruff", ["check", "--no-cache", "--isolated"]),
    ("torchfix", ["--select=ALL"]),
    ("django-upgrade", ["--check"]),
)


def commands(path: Path, kept: str, peers: str) -> Mapping[str, list[str]]:
    """The command line of every tool that is there; `kept` is a folder for results."""
    python, name = sys.executable, str(path)
    every = {
        START: [python, "-c", "pass"],
        FLOOR: [python, "-c", FLOOR_CODE, name],
        OURS: [python, "-c", SCRIPT, "--check", name, "--no-cache"],
        AGAIN: [python, "-c", SCRIPT, "--check", name, "--cache-dir", kept],
        "libcst.tool, no-op": [python, "-m", "libcst.tool", "codemod", "-j1", "-u", "noop.NOOPCommand", name],
    }
    for tool, options in PEERS:
        if (found := shutil.which(tool, path=f"{peers}{os.pathsep}{os.environ['PATH']}")) is not None:
            files = [str(file) for file in sorted(path.rglob("*.py")) if file.is_file()] if path.is_dir() else [name]
            every[tool] = [found, *options, *(files if tool == "django-upgrade" else [name])]
    return every


def cpu_ms(command: Sequence[str], folder: str) -> Callable[[], float]:
    """A run of a command; what it gives is its CPU time."""

    def work() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    return work


def table(name: str, path: Path, rounds: int, peers: str, without: Sequence[str] = ()) -> str:
    """A row for each tool: CPU time, beyond Python's own start, and that as a ratio to the floor's."""
    with tempfile.TemporaryDirectory() as kept:
        runs = {tool: cpu_ms(line, kept) for tool, line in commands(path, kept, peers).items() if tool not in without}
        found = in_turns(runs, rounds)
    beyond = {tool: [max(a - b, 0.1) for a, b in zip(t, found[START], strict=True)] for tool, t in found.items()}
    rows = [
        f"| {tool} | {statistics.median(times):,.0f} | {min(times):,.0f} | {ratio(beyond[tool], beyond[FLOOR]):,.2f} |"
        for tool, times in found.items()
    ]
    head = [f"{name}:", "", "| command | CPU ms, median | least | beyond start, x floor |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--synthetic", type=int, default=0, metavar="FILES")
    parser.add_argument("--peers", default=str(Path(sys.executable).parent), metavar="BIN")
    parser.add_argument("--without", nargs="*", default=[], metavar="ROW", help="rows that are left out")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    print(f"{given.rounds} rounds; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(folder, "compiled")
        ordinary = Path(folder) / "ordinary.py"
        ordinary.write_text(ORDINARY, encoding="utf-8")
        told = Path(folder) / "told" / "ordinary.py"
        told.parent.mkdir()
        told.write_text(ORDINARY, encoding="utf-8")
        told.with_name("pyproject.toml").write_text(SETTINGS, encoding="utf-8")
        subjects = [("one ordinary file", ordinary), ("one ordinary file, of a project with settings", told)]
        subjects += [("one file with a training loop", ROOT / "fixtures/classifier/before.py")]
        subjects += [(f"{p.name}, {sum(1 for _ in p.rglob('*.py')):,} files", p.resolve()) for p in given.folders]
        if given.synthetic:
            tree = Path(folder) / "synthetic"
            write_project(tree, given.synthetic)
            subjects.append((f"a synthetic tree of {given.synthetic:,} files", tree))
        for name, path in subjects:
            print(table(name, path, given.rounds, given.peers, given.without), flush=True)


if __name__ == "__main__":
    main()
