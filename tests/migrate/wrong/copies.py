"""A copy of the repository in which a mistake is made, and what a test says of it there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from table import BrokenRule

ROOT = Path(__file__).resolve().parents[3]
NEEDED = ("migrate", "runtime", "tests", "fixtures", "docs", "pyproject.toml")
LIMIT_S = 300
NO_TEST = {4, 5}  # pytest's status for a test that is not there, and for none that was collected


@dataclass(frozen=True, slots=True)
class Answer:
    """How pytest ended."""

    status: int
    output: str


class Copy:
    """The repository, for mistakes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in NEEDED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)

    def broken(self, entry: BrokenRule) -> Answer:
        """What its test says of a mistake; without it, it passes."""
        kept = self.run([entry.test])
        assert kept.status == 0, f"without the mistake: {kept.output}"
        path = self.folder / entry.file
        text = path.read_text(encoding="utf-8")
        path.write_text(entry.in_place_of(text), encoding="utf-8")
        try:
            return self.run([entry.test])
        finally:
            path.write_text(text, encoding="utf-8")

    def run(self, tests: Sequence[str]) -> Answer:
        """What pytest says of tests."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        variables = {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "long or not long", *tests],
            cwd=self.folder,
            env=kept | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode not in NO_TEST, done.stdout
        return Answer(done.returncode, done.stdout)
