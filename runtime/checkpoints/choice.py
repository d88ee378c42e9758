"""Which checkpoint is loaded: the one that was named, or the newest good one of a folder."""

from __future__ import annotations

import struct
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import digits
from typing import Any

from runtime.checkpoints.aside import recover
from runtime.checkpoints.contents import Reading, read
from runtime.checkpoints.crew import Crew
from runtime.checkpoints.formats import safetensors_header
from runtime.checkpoints.layout import MANIFEST, automatic_number, is_checkpoint, is_whole_state
from runtime.checkpoints.manifest import Manifest, problems
from runtime.errors import LoadError


@dataclass(frozen=True, slots=True)
class Choice:
    """A checkpoint whose files are what they were when it was written."""

    folder: Path
    manifest: Manifest | None  # None: another library's, which cannot be checked
    items: dict[str, Any]  # what this process loads, by the names of the files


def choose(place: Path, crew: Crew, reading: Reading) -> Choice:
    """The checkpoint at `place`, or the newest good one in it.

    Each process reads what it loads; they share the work of checking the rest.

    Raises:
        LoadError: it is damaged, on all processes, or there is none.
    """
    crew.meet()
    candidates, is_folder_of_them = _candidates(place, crew)
    passed_over: list[str] = []
    for folder in candidates:
        manifest, items, wrong = _checked(folder, crew, reading)
        if not wrong:
            _tell(folder, manifest, passed_over, crew)
            return Choice(folder, manifest, items)
        if not is_folder_of_them:
            raise LoadError(f"checkpoint {folder} cannot be loaded: {'; '.join(wrong)}. {_way_out(folder)}")
        passed_over.append(f"{folder} ({'; '.join(wrong)})")
    if passed_over:
        raise LoadError(f"no checkpoint in {place} can be loaded: {', '.join(passed_over)}. Load an older copy.")
    raise LoadError(f"{place} is no checkpoint, and holds none. Pass the folder that save_state() gave back.")


def newest_first(parent: Path) -> list[Path]:
    """The checkpoints in a folder: by their numbers where they are named alike, else by the time of their end."""
    found = [path for path in parent.iterdir() if not path.name.startswith(".") and path.is_dir()]
    found = [path for path in found if is_checkpoint(path)]
    stems = {path.name.rstrip(digits) for path in found}
    if len(stems) == 1 and all(path.name not in stems for path in found):
        (stem,) = stems
        return sorted(found, key=lambda path: int(path.name[len(stem) :]), reverse=True)
    return sorted(found, key=_time_of, reverse=True)


def next_number(parent: Path) -> int:
    """One more than the largest number of an automatic name of the folders here; 0 without one."""
    if not parent.is_dir():
        return 0
    numbers = [automatic_number(path.name) for path in parent.iterdir() if path.is_dir()]
    return max((number + 1 for number in numbers if number is not None), default=0)


def _candidates(place: Path, crew: Crew) -> tuple[list[Path], bool]:
    """What may be loaded, as the leaders see it, and whether `place` is a folder of checkpoints."""
    seen: tuple[list[str], bool] = ([], False)
    error = None
    try:
        if crew.is_leader:
            for folder in (place, *(place.iterdir() if place.is_dir() and not is_checkpoint(place) else ())):
                recover(folder)
            seen = ([""], False) if is_checkpoint(place) else ([p.name for p in newest_first(place)], True)
    except OSError as problem:
        error = problem
    told = crew.tell(seen, error)
    first = told[0]
    if first.error is not None:
        raise LoadError(
            f"{place} cannot be searched for checkpoints: {first.error}. Check the path; or nothing was saved yet."
        ) from error
    names, is_folder_of_them = first.value  # all machines try the same ones
    return [place / name for name in names], is_folder_of_them


def _checked(folder: Path, crew: Crew, reading: Reading) -> tuple[Manifest | None, dict[str, Any], list[str]]:
    """The manifest, what this process loads, and what is wrong, found by all processes together."""
    manifest, found = None, []
    items: dict[str, Any] = {}
    try:
        manifest = Manifest.read(folder) if (folder / MANIFEST).exists() else None
        if manifest is not None:
            found = problems(folder, manifest, is_whole_state, crew.share, crew.shares)
        elif crew.is_leader:
            found = list(_incomplete(folder))
        if not found:
            items, found = read(folder, manifest, reading)
    except (LoadError, OSError) as error:
        found = [str(error)]
    told = crew.tell(found)
    return manifest, items, list(dict.fromkeys(line for item in told for line in item.value))


def _incomplete(folder: Path) -> Iterator[str]:
    """Files without a manifest whose end is missing."""
    for path in sorted(folder.iterdir()):
        if path.suffix in (".bin", ".pt", ".pkl") and path.is_file() and not zipfile.is_zipfile(path):
            yield f"{path.name} is not whole"
        if path.suffix == ".safetensors" and not _is_whole(path):
            yield f"{path.name} is not whole"


def _is_whole(path: Path) -> bool:
    try:
        base, header = safetensors_header(path)
        ends = [row["data_offsets"][1] for name, row in header.items() if name != "__metadata__"]
        return bool(path.stat().st_size == base + max(ends, default=0))
    except (ValueError, struct.error, KeyError, TypeError, AttributeError):
        return False


def _time_of(folder: Path) -> float:
    manifest = folder / MANIFEST
    return (manifest if manifest.exists() else folder).stat().st_mtime


def _way_out(folder: Path) -> str:
    others = [path for path in newest_first(folder.parent) if path != folder] if folder.parent.is_dir() else []
    if not others:
        return "Load another checkpoint, or a copy of this one."
    return f"Load another one, such as {others[0]}, or pass {folder.parent} for the newest good one."


def _tell(folder: Path, manifest: Manifest | None, passed_over: list[str], crew: Crew) -> None:
    if crew.world.rank != 0:
        return
    if passed_over:
        warnings.warn(f"loading {folder}: newer checkpoints are damaged: {', '.join(passed_over)}.", stacklevel=4)
    if manifest is None:
        warnings.warn(
            f"loading {folder}: it has no {MANIFEST}, so damage to its files would not be noticed.", stacklevel=4
        )
