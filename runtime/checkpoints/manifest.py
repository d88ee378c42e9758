"""`manifest.json`: every file of a checkpoint with its size and digests, and what the run was.

It is written last. A folder without it is a checkpoint that was never finished, or one of another library. It has a
digest of its own, so damage to itself is found as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from runtime.checkpoints.digest import all_digests, segments
from runtime.checkpoints.layout import MANIFEST
from runtime.errors import LoadError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a file must be."""

    size: int  # bytes
    digests: tuple[str, ...]  # see runtime.checkpoints.digest

    def differences(self, seen: tuple[str, ...]) -> list[int]:
        """The segments that are not what they were."""
        count = max(len(self.digests), len(seen))
        return [index for index in range(count) if self.digests[index : index + 1] != seen[index : index + 1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a checkpoint holds, and the run that it is of."""

    files: Mapping[str, FileRecord]  # by the path in the folder, with slashes
    processes: int
    iteration: int | None = None  # of an automatic name
    data: list[Any] = field(default_factory=list)  # the position of every prepared loader
    torch: str = ""
    format: int = FORMAT

    def text(self) -> str:
        """As it is written."""
        content = asdict(self)
        return json.dumps({**content, "digest": _own_digest(content)}, indent=1)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a checkpoint.

        Raises:
            LoadError: it is missing, damaged, or of a later version.
        """
        path = folder / MANIFEST
        try:
            content = json.loads(path.read_bytes())
            _check(content, content.pop("digest"))
            files = {name: FileRecord(row["size"], tuple(row["digests"])) for name, row in content["files"].items()}
            return cls(**{**content, "files": files})
        except FileNotFoundError:
            raise LoadError(f"checkpoint {folder} has no {MANIFEST}: it was not finished.") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise LoadError(f"checkpoint {folder}: {MANIFEST} cannot be used: {error}.") from error


def damage(name: str, record: FileRecord, segment: int) -> str:
    """In words, that a segment is not what it was."""
    places = segments(record.size)
    start = segment * places.step
    return f"{name} is damaged between bytes {start} and {min(record.size, start + places.step)}"


def problems(
    folder: Path, manifest: Manifest, left_out: Callable[[str], bool], share: int = 0, shares: int = 1
) -> list[str]:
    """What is wrong with the files of a checkpoint, a line each; empty if all is well.

    Args:
        left_out: files of which only the size is looked at, by name.
        share: this process's part of the segments that are read, of `shares`.
    """
    found: list[str] = []
    places: list[tuple[Path, int]] = []
    for name, record in manifest.files.items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        if size != record.size:
            found.append(f"{name} is missing" if size is None else f"{name} has {size} bytes instead of {record.size}")
            continue
        if not left_out(name):
            places += [(path, start) for start in segments(size)]
    if found:
        return found
    for path, start, seen in all_digests(places[share::shares]):
        name = path.relative_to(folder).as_posix()
        record = manifest.files[name]
        index = segments(record.size).index(start)
        if index >= len(record.digests) or record.digests[index] != seen:
            found.append(damage(name, record, index))
    return found


def _check(content: Mapping[str, Any], told: str) -> None:
    if told != _own_digest(content):
        raise ValueError("it does not have the digest that it gives")
    if content["format"] > FORMAT:
        raise ValueError(f"it is of format {content['format']}, and this version reads up to {FORMAT}: update it")


def _own_digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
