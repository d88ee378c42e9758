"""A training program as a picture: its objects, the loops that they meet in, and what flows between them.

Places are lines of the files as they were read. Rules fill it, renderers draw it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Part(str, Enum):
    """What an object of a program is, in the order in which values flow."""

    DATA = "data"
    MODEL = "model"
    LOSS = "loss"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"


class Flow(str, Enum):
    """What goes from one object to another."""

    BATCHES = "batches"
    OUTPUTS = "outputs"
    GRADIENTS = "gradients"
    RATE = "the learning rate"
    UPDATES = "updates"


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file."""

    path: str  # as in SourceFile.path
    line: int  # 1-based; of a notebook in its cell
    cell: int | None = None  # of a notebook, 1-based

    def __str__(self) -> str:
        """As findings name their loop: `train.py:31`, `train.ipynb:cell 3:12`."""
        return f"{self.path}:{self.line}" if self.cell is None else f"{self.path}:cell {self.cell}:{self.line}"


@dataclass(frozen=True, slots=True)
class Thing:
    """An object of the program, or a loss that it computes."""

    part: Part
    name: str  # as the program calls it: "self.model"
    made: str  # what made it, in a word: "Adam"; empty where that says nothing
    place: Place  # where it gets its name
    detail: str = ""  # "stepped per epoch"
    is_within: bool = True  # of a scheduler: it is stepped inside of the loop over batches


@dataclass(frozen=True, slots=True)
class Arrow:
    """Something goes from one thing to another; both are indices in `Map.things`."""

    start: int
    end: int
    flow: Flow


@dataclass(frozen=True, slots=True)
class Frame:
    """A loop with what meets in it. `things` are indices in `Map.things`."""

    trains: bool  # else it evaluates
    place: Place
    where: str  # the function that it stands in; empty at module level
    header: str  # its first line: "for x, y in train_loader:"
    around: Place | None  # the loop around it, which runs it again and again
    things: tuple[int, ...]
    arrows: tuple[Arrow, ...]

    @property
    def back(self) -> tuple[Arrow, ...]:
        """From the optimizers to what they update."""
        return tuple(arrow for arrow in self.arrows if arrow.flow is Flow.UPDATES)


@dataclass(frozen=True, slots=True)
class Map:
    """One program."""

    things: tuple[Thing, ...]
    frames: tuple[Frame, ...]
    rounds: tuple[tuple[Place, str], ...] = ()  # the loops around frames, each with its first line

    def moved(self, at: Callable[[Place], Place]) -> Map:
        """The same with other places."""
        around = {frame.around: None if frame.around is None else at(frame.around) for frame in self.frames}
        return Map(
            tuple(replace(thing, place=at(thing.place)) for thing in self.things),
            tuple(replace(frame, place=at(frame.place), around=around[frame.around]) for frame in self.frames),
            tuple((at(place), header) for place, header in self.rounds),
        )
