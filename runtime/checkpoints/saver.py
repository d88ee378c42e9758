"""A save from its beginning to its end.

    leaders make the folder aside                           told to all: its path, or why not
    every process writes its parts into it, to the disk     told to all: the files, or what went wrong
    leaders write the manifest and give the folder its name told to all: done, or why not

So either all processes know the checkpoint to be whole, or all of them raise the same error, and nothing that was there
before has been touched. A leader is rank 0, or one process of each machine.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from runtime.checkpoints.aside import Aside
from runtime.checkpoints.crew import Crew, failures
from runtime.checkpoints.digest import digests
from runtime.checkpoints.layout import MANIFEST
from runtime.checkpoints.manifest import FileRecord, Manifest
from runtime.checkpoints.sink import Sink, to_disk
from runtime.checkpoints.snapshot import Part, Staging
from runtime.errors import SaveError


@dataclass(frozen=True, slots=True)
class Content:
    """What one process puts into a checkpoint."""

    parts: list[Part]
    facts: dict[str, Any]  # of the manifest


@dataclass(frozen=True, slots=True)
class _Begun:
    """A save whose folder is there, on one process."""

    target: Path
    aside: Aside | None  # None: not a leader
    folder: Path
    content: Content | None  # None: there was an error
    error: Exception | None
    then: Callable[[], None]


class Saver:
    """Saves one checkpoint after the other; an error of a save behind the training is raised by the next call."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._staging = Staging()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._tells_at_exit = False

    def save(
        self,
        target: Path,
        build: Callable[[Path], Content],
        then: Callable[[], None],
        *,
        is_new: bool = False,
        behind: bool = False,
    ) -> None:
        """Write a checkpoint.

        Args:
            build: is given the folder aside, and gives the content; it may write files of its own there.
            then: what the leaders do when the checkpoint is there.
            is_new: a checkpoint of that name must not be there.
            behind: return when the content has been copied; the rest is done in a thread, and an error is raised by
                the next `wait`.

        Raises:
            SaveError: on all processes, when it failed on any.
        """
        self.wait()
        self._crew.meet()
        aside, folder = self._begin(target, is_new)
        content, error = None, None
        try:
            content = build(folder)
            if behind:
                content = Content(self._staging.copied(content.parts), content.facts)
        except Exception as problem:  # noqa: BLE001  the other processes are waiting and must hear of it
            error = problem
        begun = _Begun(target, aside, folder, content, error, then)
        if not behind:
            self._finish(begun)
            return
        self._tell_at_exit()
        self._thread = threading.Thread(target=self._finish_behind, args=(begun,), name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Return when no save is under way.

        Raises:
            SaveError: the last one behind the training has failed.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _begin(self, target: Path, is_new: bool) -> tuple[Aside | None, Path]:
        aside, error = None, None
        try:
            aside = Aside(target, is_new=is_new) if self._crew.is_leader else None
        except OSError as problem:
            error = problem
        told = self._crew.tell(aside and str(aside.folder), error)
        if failures(told):
            if aside is not None:
                aside.abandon()
            raise _failed(target, failures(told), error)
        folder = next(item.value for item in self._crew.ours(told) if item.value is not None)
        return aside, Path(folder)

    def _finish_behind(self, begun: _Begun) -> None:
        try:
            self._finish(begun)
        except BaseException as error:  # noqa: BLE001  raised by the next wait
            self._error = error

    def _finish(self, begun: _Begun) -> None:
        try:
            self._write_all(begun)
        finally:
            if begun.aside is not None:
                begun.aside.abandon()  # nothing is left of it when it was published

    def _write_all(self, begun: _Begun) -> None:
        records: dict[str, FileRecord] = {}
        folder, content, error = begun.folder, begun.content, begun.error
        try:
            if content is not None:
                records = _written(content, folder)
        except Exception as problem:  # noqa: BLE001  as above
            error = problem
        told = self._crew.tell(records, error)
        if failures(told):
            raise _failed(begun.target, failures(told), error)
        try:
            if begun.aside is not None and content is not None:
                known = {name: record for item in self._crew.ours(told) for name, record in item.value.items()}
                _complete(folder, known, content.facts)
                begun.aside.publish()
                begun.then()
        except Exception as problem:  # noqa: BLE001  as above
            error = problem
        told = self._crew.tell(None, error)
        if failures(told):
            raise _failed(begun.target, failures(told), error)

    def _tell_at_exit(self) -> None:
        """At the end of the program, print the error of a last save that nobody waited for."""
        if not self._tells_at_exit:
            self._tells_at_exit = True
            owner = os.getpid()
            atexit.register(lambda: self._at_exit() if os.getpid() == owner else None)

    def _at_exit(self) -> None:
        if self._error is not None:
            sys.stderr.write(f"runtime: {self._error}\n")


def _failed(target: Path, reasons: list[str], cause: BaseException | None) -> SaveError:
    error = SaveError(
        f"checkpoint {target} was not saved: {'; '.join(reasons)}. What was there before is as it was: free space or "
        "mend what is named, and save again."
    )
    error.__cause__ = cause
    return error


def _written(content: Content, folder: Path) -> dict[str, FileRecord]:
    """Write the parts, each going to the disk while the next is written.

    Raises:
        SaveError: the folder that another process has made cannot be seen here.
    """
    if not folder.is_dir():
        raise SaveError(
            f"{folder} is not there on this machine. Use a file system that all machines share, or "
            "ProjectConfiguration(save_on_each_node=True)."
        )
    with ThreadPoolExecutor(2) as behind:
        records, flushes = {}, []
        for part in content.parts:
            for path in part.into(folder):
                flushes.append(behind.submit(to_disk, path))
                records[path.relative_to(folder).as_posix()] = behind.submit(_record, path)
        for flush in flushes:
            flush.result()
        return {name: record.result() for name, record in records.items()}


def _record(path: Path) -> FileRecord:
    """What a file is."""
    return FileRecord(path.stat().st_size, digests(path))


def _complete(folder: Path, known: dict[str, FileRecord], facts: dict[str, Any]) -> None:
    """Add the files that hooks wrote to the known ones, and write the manifest."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in known:
            to_disk(path)
            known[name] = _record(path)
    manifest = Manifest(files=dict(sorted(known.items())), torch=torch.__version__, **facts)
    with Sink(folder / MANIFEST) as sink:
        sink.write(manifest.text().encode())
    to_disk(folder / MANIFEST)
