"""What the recorder wrote down, read back. The events are those of `recorder/`; a record is one process of a run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ASIDE = re.compile(r"^\.(.*)\.\d+\.part$")  # how runtime names what it is still writing


@dataclass(frozen=True, slots=True)
class Loss:
    """A backward call."""

    step: int  # optimizer steps taken before it
    value: float
    exact: str  # every bit of it
    place: str  # "train.py:31"


@dataclass(frozen=True, slots=True)
class Step:
    """An optimizer step."""

    optimizer: int  # in the order of their first steps
    kind: str
    number: int  # 1-based, of this optimizer
    gradient: tuple[float, float] | None  # its norm, and its length along a fixed direction
    parameters: int  # checksum of all bits, after the step
    size: float  # their norm
    rates: tuple[float, ...]  # with which it was taken, one for each group
    seconds: float  # since the end of the step before
    devices: tuple[str, ...]
    types: tuple[str, ...]
    draws: bool  # random numbers were drawn between the batch and a backward
    place: str  # of the last backward before it
    passes: int  # the pass whose batch came last; -1: none
    batch: int  # the number of that batch in its pass; -1: none


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the script got it."""

    passes: int
    number: int  # 0-based, in its pass
    rows: int
    sums: tuple[int, ...]  # a checksum for each sample; empty if it holds no tensors
    indices: tuple[int, ...]  # of its samples; empty where workers fetch them
    width: int = 0  # bytes of a sample
    draws: bool = False  # the data set drew random numbers for it


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was printed, logged, or handed to a writer."""

    text: str
    stream: str
    is_bar: bool
    passes: int  # the pass whose batch came last; -1: none
    place: str


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was opened to be written, or changed in another way."""

    path: str  # below the copy
    how: str
    place: str
    library: str  # the package that wrote it for itself, or nothing


@dataclass(frozen=True, slots=True)
class Saved:
    """A call of `torch.save`."""

    path: str  # below the copy
    content: Any
    unwrapped: bool = False  # its keys are shown without the prefix of the wrapper around the model
    digest: str = ""  # of the file as it was then; empty if it was not closed yet


@dataclass(frozen=True, slots=True)
class Loaded:
    """A try to load what another run has saved."""

    path: str
    other: int  # index in Order.checkpoints
    error: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A write outside of the copy, or a program that was to be started."""

    path: str
    place: str
    is_program: bool


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended: "ended", "steps", "time", "exit", "exception"; "killed" if it could not say."""

    how: str = "killed"
    status: int = 0
    message: str = ""
    place: str = ""
    memory_bytes: int = 0
    still_s: float = 0.0  # for how long nothing had happened

    @property
    def is_cut(self) -> bool:
        """Whether its time was over: what it would have done next is not known."""
        return self.how == "time"


@dataclass(slots=True)
class Record:
    """All events of a process, in order."""

    root: str
    gpus: int = 0
    has_kernel_fence: bool = False
    losses: list[Loss] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    training: list[Loss | Step] = field(default_factory=list)  # both, as they came
    batches: list[Batch] = field(default_factory=list)
    trained: list[int] = field(default_factory=list)  # passes in which backward was called
    lines: list[Line] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    loaded: list[Loaded] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    unsteady: set[str] = field(default_factory=set)  # layers that go by the batch
    end: End = field(default_factory=End)
    group: int = 1  # processes that it has joined
    follows_metric: bool = False  # a plateau scheduler was stepped
    _rates: dict[int, tuple[tuple[float, ...], float]] = field(default_factory=dict)
    _renamed: dict[str, str] = field(default_factory=dict)

    def trains_in(self) -> Iterator[list[Batch]]:
        """The batches of each pass that was trained on."""
        for number in self.trained:
            yield [batch for batch in self.batches if batch.passes == number]

    def is_after_evaluation(self, line: Line) -> bool:
        """Whether the batches that came last were not trained on."""
        return line.passes >= 0 and line.passes not in self.trained

    def trained_before(self, line: Line) -> int:
        """How many passes that were trained on had begun before the pass in or after which a line was said."""
        return sum(number < line.passes for number in self.trained)

    def is_amid_training(self, line: Line) -> bool:
        """Whether a pass that was trained on went on after the one in or after which a line was said."""
        last = max((i for i, batch in enumerate(self.batches) if batch.passes == line.passes), default=0)
        trained = {number for number in self.trained if number < line.passes}
        return any(batch.passes in trained for batch in self.batches[last + 1 :])

    def below(self, path: str) -> str:
        """A path as seen from the copy; empty for one outside."""
        return os.path.relpath(path, self.root) if path.startswith(self.root + os.sep) else ""

    def saves(self) -> dict[str, list[Any]]:
        """What was saved under each name, one after the other."""
        found: dict[str, list[Any]] = {}
        for saved in self.saved:
            if path := self._name(saved.path):
                found.setdefault(path, []).append(saved.content)
        return found

    def _name(self, path: str) -> str:
        path = self._renamed.get(path, path)
        folder, name = os.path.split(path)
        return self.below(os.path.join(folder, ASIDE.sub(r"\1", name)))


def read(path: Path, root: str) -> Record:
    """The record of one process; a last line that was cut off is left out."""
    record = Record(root)
    if not path.exists():
        return record
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        EVENTS[event.pop("event")](record, event)
    return record


def _loss(record: Record, event: dict[str, Any]) -> None:
    loss = Loss(event["step"], float(event["value"]), event["exact"], event["place"])
    record.losses.append(loss)
    record.training.append(loss)
    if record.batches and record.batches[-1].passes not in record.trained:
        record.trained.append(record.batches[-1].passes)


def _rate(record: Record, event: dict[str, Any]) -> None:
    record._rates[event["optimizer"]] = (tuple(map(float, event["rates"])), event["seconds"])  # noqa: SLF001 - one file


def _step(record: Record, event: dict[str, Any]) -> None:
    rates, seconds = record._rates[event["optimizer"]]  # noqa: SLF001
    gradient = event["gradient"]
    step = Step(
        optimizer=event["optimizer"],
        kind=event["kind"],
        number=event["number"],
        gradient=None if gradient is None else (float(gradient[0]), float(gradient[1])),
        parameters=event["parameters"],
        size=float(event["size"]),
        rates=rates,
        seconds=seconds,
        devices=tuple(event["devices"]),
        types=tuple(event["types"]),
        draws=event["draws"],
        place=record.losses[-1].place if record.losses else "",
        passes=record.batches[-1].passes if record.batches else -1,
        batch=record.batches[-1].number if record.batches else -1,
    )
    record.steps.append(step)
    record.training.append(step)


def _batch(record: Record, event: dict[str, Any]) -> None:
    sums, indices = tuple(event["sums"]), tuple(event["indices"])
    batch = Batch(event["passes"], event["number"], event["rows"], sums, indices, event["width"], event["draws"])
    record.batches.append(batch)


def _line(record: Record, event: dict[str, Any]) -> None:
    line = Line(event["text"], event["stream"], event["bar"], event["passes"], event["place"])
    record.lines.append(line)


def _file(record: Record, event: dict[str, Any]) -> None:
    if path := record.below(event["path"]):
        record.written.append(Written(path, event["how"], event["place"], event["library"]))


def _saved(record: Record, event: dict[str, Any]) -> None:
    record.saved.append(Saved(event["path"], event["content"], event["unwrapped"], event["digest"]))


def _renamed(record: Record, event: dict[str, Any]) -> None:
    record._renamed[event["old"]] = event["new"]  # noqa: SLF001


def _loaded(record: Record, event: dict[str, Any]) -> None:
    record.loaded.append(Loaded(record.below(event["path"]), event["other"], event["error"]))


def _refused(record: Record, event: dict[str, Any]) -> None:
    record.refused.append(Refused(event["path"], event["place"], event["program"]))


def _unsteady(record: Record, event: dict[str, Any]) -> None:
    record.unsteady.add(event["layer"])


def _start(record: Record, event: dict[str, Any]) -> None:
    record.gpus = event["gpus"]


def _joined(record: Record, event: dict[str, Any]) -> None:
    record.group = event["size"]


def _plateau(record: Record, event: dict[str, Any]) -> None:
    record.follows_metric = True


def _fence(record: Record, event: dict[str, Any]) -> None:
    record.has_kernel_fence = event["kernel"]


def _end(record: Record, event: dict[str, Any]) -> None:
    place, memory, still_s = event["place"], event["memory"], event["still"]
    record.end = End(event["how"], event["status"], event["message"], place, memory, still_s)


EVENTS: dict[str, Callable[[Record, dict[str, Any]], None]] = {
    "start": _start,
    "fence": _fence,
    "loss": _loss,
    "rate": _rate,
    "step": _step,
    "batch": _batch,
    "line": _line,
    "file": _file,
    "saved": _saved,
    "renamed": _renamed,
    "loaded": _loaded,
    "refused": _refused,
    "unsteady": _unsteady,
    "plateau": _plateau,
    "joined": _joined,
    "end": _end,
}
