"""The cases of `fixtures/`, as `fixtures/README.md` describes them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from migrate.source.project import source_file

ENDS = (".py", ".ipynb")
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
KEYS = {
    "why", "runnable", "processes", "arguments", "frozen", "halved", "evaluation", "schedule", "target",
    "launched", "together", "distributed", "roles", "left", "note", "fault",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One folder of `fixtures/`."""

    folder: Path
    table: dict[str, Any]  # case.toml

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def before(self) -> list[Path]:
        """The files that are named to `migrate`, in order of their names."""
        return _files(self.folder, "before")

    @property
    def after(self) -> list[Path]:
        """The expected files, in the same order; empty for a case that must not change."""
        return _files(self.folder, "after")

    @property
    def left(self) -> list[dict[str, Any]]:
        """What must be left to a person, and nothing else."""
        return list(self.table.get("left", ()))

    @property
    def faults(self) -> list[dict[str, Any]]:
        """The mistakes that are found in code that uses an accelerator already, and nothing else."""
        return list(self.table.get("fault", ()))

    @property
    def is_noop(self) -> bool:
        """Nothing to convert, and nothing to say."""
        return not self.after and not self.left and not self.faults

    def script(self, version: str) -> Path:
        """What is run: the only file, or the one called `train.py`."""
        files = _files(self.folder, version)
        return files[0] if len(files) == 1 else next(file for file in files if file.name == "train.py")


def cases() -> list[Case]:
    """Every case, in order of their names."""
    return [
        Case(path.parent, tomllib.loads(path.read_text(encoding="utf-8")))
        for path in sorted(FIXTURES.glob("*/case.toml"))
    ]


def _files(folder: Path, version: str) -> list[Path]:
    single = next((path for path in (folder / f"{version}{end}" for end in ENDS) if path.exists()), None)
    return [single] if single else sorted(path for path in (folder / version).glob("*") if path.suffix in ENDS)


def python_of(file: Path) -> bytes:
    """What Python reads of a file: of a notebook its cells, as one module."""
    return source_file(str(file), file.read_bytes()).content
