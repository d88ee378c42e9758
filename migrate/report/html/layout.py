"""Where the parts of a map lie: one column for each kind of object, one lane for each loop, frames around lanes.

An object that meets in two loops is drawn in both: lanes are read one by one, from the left to the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from migrate.report.map import Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from migrate.report.map import Frame, Map, Place

BOX, HEIGHT = 164, 46  # of a thing, in units of the drawing
GAP, ROOM = 58, 14  # between columns, between rows
HEAD, PAD = 30, 14  # a frame's title, and what stays free inside of it
TRACK = 9  # between two ways back
LETTER = 7.25  # the width of a letter of a title, which are all as wide


@dataclass(frozen=True, slots=True)
class Box:
    """A thing in a lane."""

    thing: int
    x: float
    y: float

    @property
    def middle(self) -> float:
        """Half its height, from the top of the drawing."""
        return self.y + HEIGHT / 2


@dataclass(frozen=True, slots=True)
class Lane:
    """A loop: its rectangle and the things in it."""

    frame: Frame
    x: float
    y: float
    width: float
    height: float
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """A loop around lanes."""

    place: Place
    header: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole drawing."""

    width: float
    height: float
    columns: tuple[tuple[Part, float], ...]  # each with its left side
    lanes: tuple[Lane, ...]
    rounds: tuple[Round, ...]


def title(frame: Frame, home: str) -> str:
    """What stands at the top of a lane."""
    where = f" in {frame.where}" if frame.where else ""
    return f"{'trains' if frame.trains else 'evaluates'}{where}: {frame.header} · {near(frame.place, home)}"


def near(place: Place, home: str) -> str:
    """A line of the program's first file by its number alone."""
    file = place.path.replace("\\", "/").rpartition("/")[2]
    cell = f"cell {place.cell}:" if place.cell is not None else ""
    if place.path != home:
        return f"{file}:{cell}{place.line}"
    return f"{cell}{place.line}" if cell else f"line {place.line}"


def layout(drawn: Map, home: str) -> Layout:
    """The places of everything in a map; `home` is the file whose map it is."""
    used = [part for part in Part if any(drawn.things[n].part is part for f in drawn.frames for n in f.things)]
    left = 2 * PAD
    columns = {part: left + number * (BOX + GAP) for number, part in enumerate(used)}
    width = left + len(used) * (BOX + GAP) - GAP + 2 * PAD
    headers = dict(drawn.rounds)
    lanes: list[Lane] = []
    rounds: list[Round] = []
    y = float(HEAD)
    for around, frames in groupby(_grouped(drawn.frames), key=lambda frame: frame.around):
        top = y
        y += HEAD if around is not None else 0
        for frame in frames:
            lane = _lane(drawn, frame, columns, y, home)
            lanes.append(lane)
            y = lane.y + lane.height + PAD
        if around is not None:
            rounds.append(Round(around, headers.get(around, ""), 2, top, width - 4, y - top))
            y += PAD
    return Layout(width, y, tuple(columns.items()), tuple(lanes), tuple(rounds))


def _grouped(frames: Sequence[Frame]) -> list[Frame]:
    """Frames with the same loop around them one after the other, otherwise in their order."""
    first: dict[Place | None, int] = {}
    for number, frame in enumerate(frames):
        first.setdefault(frame.around, number)
    return sorted(frames, key=lambda frame: first[frame.around])


def _lane(drawn: Map, frame: Frame, columns: Mapping[Part, float], top: float, home: str) -> Lane:
    by_part = {part: [n for n in frame.things if drawn.things[n].part is part] for part in columns}
    rows = max(map(len, by_part.values()), default=1)
    inner = rows * (HEIGHT + ROOM) - ROOM
    boxes: list[Box] = []
    for part, numbers in by_part.items():
        own = len(numbers) * (HEIGHT + ROOM) - ROOM
        first = top + HEAD + (inner - own) / 2
        boxes += [Box(n, columns[part], first + row * (HEIGHT + ROOM)) for row, n in enumerate(numbers)]
    outside = Part.SCHEDULER if frame.around is not None and _steps_outside(drawn, frame) else None
    inside = [x for part, x in columns.items() if part is not outside and by_part[part]]
    most = max((x for part, x in columns.items() if part is not outside), default=2 * PAD) + BOX + PAD
    wanted = PAD + max(max(inside, default=2 * PAD) + BOX, PAD + len(title(frame, home)) * LETTER + PAD)
    right = min(most, wanted)
    ways = len({(arrow.start, arrow.end) for arrow in frame.back})
    return Lane(frame, PAD, top, right - PAD, HEAD + inner + PAD + ways * TRACK, tuple(boxes))


def _steps_outside(drawn: Map, frame: Frame) -> bool:
    """Whether the schedulers of a loop are all stepped by the loop around it."""
    paces = {drawn.things[n].is_within for n in frame.things if drawn.things[n].part is Part.SCHEDULER}
    return paces == {False}
