"""Trackers that need no package: a table (csv) or one JSON object a line (jsonl), in `logging_dir/project_name`.

Every row has `step` and `time` (seconds since 1970), unless the values have these names themselves. A row is with the
system when `log` returns, so a killed process loses none. A run that goes on in the same folder appends.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from runtime.errors import ConfigurationError
from runtime.tracking.base import GeneralTracker, in_json, plain


class _Rows(GeneralTracker):
    """What both have in common: a folder, a file that rows are appended to, and config.json beside it."""

    requires_logging_directory = True
    file_name: str

    def __init__(self, run_name: str, logging_dir: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = Path(logging_dir) / run_name / self.file_name
        self._file: IO[str] | None = None

    @property
    def tracker(self) -> Path:
        """The file."""
        return self.path

    def start(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _drop_part_of_a_line(self.path)
        self._file = self.path.open("a", newline="", encoding="utf-8")

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        aside = self.path.with_name(".config.json.part")
        aside.write_text(in_json(plain(values), indent=2) + "\n", encoding="utf-8")
        aside.replace(self.path.with_name("config.json"))

    def log(self, values: dict[str, Any], step: int | None = None, **options: Any) -> None:
        if options:
            raise ConfigurationError(f"log_kwargs for {self.name!r}: it takes none, and got {', '.join(options)}.")
        if self._file is None:
            raise ConfigurationError(f"{self.path} is not open. Log between init_trackers() and end_training().")
        self._append({"step": step, "time": round(time.time(), 3), **plain(values)})
        self._file.flush()

    def _append(self, row: dict[str, Any]) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class JSONLTracker(_Rows):
    """metrics.jsonl: one object a line. What JSON does not know is written as text."""

    name = "jsonl"
    file_name = "metrics.jsonl"

    def _append(self, row: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(in_json(row) + "\n")


class CSVTracker(_Rows):
    """metrics.csv: a column for every key. A key that is new becomes a new last column, empty in earlier rows."""

    name = "csv"
    file_name = "metrics.csv"

    def __init__(self, run_name: str, logging_dir: str | os.PathLike[str]) -> None:
        super().__init__(run_name, logging_dir)
        self._columns: list[str] = []

    def start(self) -> None:
        super().start()
        with self.path.open(newline="", encoding="utf-8") as file:
            self._columns = next(csv.reader(file), [])

    def _append(self, row: dict[str, Any]) -> None:
        new = [key for key in row if key not in self._columns]
        if new:
            self._widen(new)
        assert self._file is not None
        csv.DictWriter(self._file, self._columns, restval="").writerow(row)

    def _widen(self, new: list[str]) -> None:
        """Write the file again with more columns, aside, so that it is whole at every moment."""
        self.finish()
        self._columns = [*self._columns, *new]
        aside = self.path.with_name(f".{self.file_name}.part")
        with (
            self.path.open(newline="", encoding="utf-8") as old,
            aside.open("w", newline="", encoding="utf-8") as file,
            _fields_of_any_size(),
        ):
            writer = csv.DictWriter(file, self._columns, restval="")
            writer.writeheader()
            writer.writerows(csv.DictReader(old))
        aside.replace(self.path)
        self._file = self.path.open("a", newline="", encoding="utf-8")


@contextmanager
def _fields_of_any_size() -> Iterator[None]:
    """What was written is read again: by itself `csv` takes a field of more than 128 KB for a mistake."""
    before = csv.field_size_limit(2**31 - 1)  # the most that it takes on every system
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _drop_part_of_a_line(path: Path) -> None:
    """Cut off what a machine that went down, or a full disk, left of a last line."""
    if not path.exists():
        return
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        os.truncate(path, data.rfind(b"\n") + 1)
