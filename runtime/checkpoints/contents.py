"""The files that a process loads from a checkpoint: read once, to where they stay, and checked on the way.

Nothing of it is applied before all processes have found all files good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.checkpoints.digest import CheckedFile, digests, digests_of
from runtime.checkpoints.formats import mapped, read_object, read_safetensors
from runtime.checkpoints.layout import has_parameters, is_whole_state, random_states
from runtime.checkpoints.manifest import FileRecord, Manifest, damage
from runtime.errors import LoadError


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How files are read."""

    rank: int
    location: Any = "cpu"  # where the tensors of parameters and of optimizers go
    options: Mapping[str, Any] = field(default_factory=dict)  # of torch.load


def read(folder: Path, manifest: Manifest | None, reading: Reading) -> tuple[dict[str, Any], list[str]]:
    """What this process loads, by the names of the files; and what is wrong with them, a line each."""
    items: dict[str, Any] = {}
    wrong: list[str] = []
    for name in _names(folder, manifest, reading.rank):
        record = None if manifest is None else manifest.files[name]
        try:
            items[name], seen = _read_one(folder / name, reading)
        except LoadError as error:
            seen = digests(folder / name)
            wrong += _damage(name, record, seen) or [str(error)]
        else:
            wrong += _damage(name, record, seen)
    return items, wrong


def _damage(name: str, record: FileRecord | None, seen: tuple[str, ...]) -> list[str]:
    return [] if record is None else [damage(name, record, index) for index in record.differences(seen)]


def _names(folder: Path, manifest: Manifest | None, rank: int) -> list[str]:
    there = sorted(path.name for path in folder.iterdir()) if manifest is None else list(manifest.files)
    own = random_states(rank) if random_states(rank) in there else random_states(0)
    return [name for name in there if is_whole_state(name) or name == own]


def _read_one(path: Path, reading: Reading) -> tuple[Any, tuple[str, ...]]:
    """A file's content and its digests."""
    if path.suffix == ".safetensors":
        content = mapped(path)
        seen = digests_of(content)
        return read_safetensors(path, content), seen
    location = reading.location if has_parameters(path.name) else "cpu"
    options = {} if path.name.startswith("random_states") else dict(reading.options)
    if options.get("mmap"):  # the script's wish; then there is nothing to read into
        return read_object(path, location, **options), digests(path)
    file = CheckedFile(path)
    try:
        return read_object(path, location, file=file, **options), file.digests()
    finally:
        file.close()
