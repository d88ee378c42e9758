"""Loss curves as SVG: every run of one kind in one chart, with axes, a legend, and the differences as text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from migrate.report.html.markup import EMPTY, Markup, join, tag, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WIDTH, HEIGHT = 760, 300  # of the drawing
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 14, 46  # of it, around the chart
MOST_LINES = 8  # that can be told apart
TICKS = 5


class Curve(Protocol):
    """A run as numbers (`migrate.verify.model.Curve`)."""

    @property
    def name(self) -> str: ...
    @property
    def processes(self) -> int: ...
    @property
    def is_frozen(self) -> bool: ...
    @property
    def splits(self) -> bool: ...
    @property
    def losses(self) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Scale:
    """From numbers to places of the drawing."""

    low: float
    high: float
    steps: int

    def x(self, step: int) -> float:
        """Of a step, 0-based."""
        return LEFT + (WIDTH - LEFT - RIGHT) * step / max(self.steps - 1, 1)

    def y(self, value: float) -> float:
        """Of a loss."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[float]:
        """Round numbers on the axis of losses."""
        step = _round((self.high - self.low) / TICKS)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]

    @property
    def step_ticks(self) -> list[int]:
        """Steps that are named, 0-based."""
        by = max(int(_round(max(self.steps - 1, 1) / TICKS)), 1)
        return list(range(0, self.steps, by))


def _round(size: float) -> float:
    """1, 2 or 5 times a power of ten, not below a size."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= size * (1 - 1e-9))


def scale(curves: Sequence[Curve]) -> Scale | None:
    """One for all curves; None where no loss is a number."""
    values = [value for curve in curves for value in curve.losses if math.isfinite(value)]
    if not values:
        return None
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return Scale(low - room, high + room, max(len(curve.losses) for curve in curves))


def losses(curves: Sequence[Curve]) -> Markup:
    """The charts: of the runs as they are, and of those whose steps were undone."""
    groups = (
        ("Loss of each backward call", [curve for curve in curves if not curve.is_frozen]),
        ("Loss of each backward call, with the parameters kept as they were", [c for c in curves if c.is_frozen]),
    )
    return join(_figure(title, part) for title, group in groups for part in _parts(group))


def _parts(curves: Sequence[Curve]) -> Iterator[Sequence[Curve]]:
    """As many as one chart can hold; each begins with the first run, with which the others are compared."""
    most = MOST_LINES - 1
    for at in range(0, max(len(curves) - 1, 1), most) if curves else ():
        yield [curves[0], *curves[at + 1 : at + 1 + most]]


def _figure(title: str, curves: Sequence[Curve]) -> Markup:
    plan = scale(curves)
    if plan is None:
        return tag("p", text(f"{title}: no run computed a loss that is a number."), class_="quiet")
    said = [text_of(curves[0], other) for other in curves[1:]]
    picture = tag(
        "svg",
        *_axes(plan),
        *(_line(plan, curve, number) for number, curve in enumerate(curves)),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{title}: {'; '.join(said) or curves[0].name}",
    )
    return tag(
        "figure",
        tag("figcaption", text(title)),
        picture,
        tag("ul", *(_key(curve, number) for number, curve in enumerate(curves)), class_="legend"),
        tag("ul", *(tag("li", text(each)) for each in said), class_="differences") if said else EMPTY,
        _table(curves),
        class_="curves",
    )


def text_of(one: Curve, other: Curve) -> str:
    """How far two runs are apart, in words."""
    pairs = list(zip(one.losses, other.losses, strict=False))
    names = f"{other.name} against {one.name}"
    if not pairs:
        return f"{names}: no step that both took"
    apart = [_apart(mine, theirs) for mine, theirs in pairs]
    steps = f"{len(pairs)} of {max(len(one.losses), len(other.losses))} losses compared"
    if not any(apart):
        return f"{names}: exactly the same ({steps})"
    largest = max(apart)
    at = apart.index(largest)
    size = "one of them is no number" if math.isinf(largest) else f"{largest:.3g}"
    where = f"at loss {at + 1} ({pairs[at][0]:g} and {pairs[at][1]:g}; {steps})"
    return f"{names}: the largest difference is {size}, {where}{_because(one, other)}"


def _because(one: Curve, other: Curve) -> str:
    """Why losses may differ though nothing is wrong."""
    if other.processes == one.processes or other.splits:
        return ""
    return f"; where the data are shared out, a step of {other.processes} processes sees {other.processes} batches"


def _apart(one: float, other: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    return abs(one - other) if math.isfinite(one) and math.isfinite(other) else math.inf


def _axes(plan: Scale) -> Iterator[Markup]:
    bottom = HEIGHT - BOTTOM
    for value in plan.ticks:
        y = plan.y(value)
        yield tag("line", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y, class_="grid")
        yield tag("text", text(f"{value:.6g}"), x=LEFT - 8, y=y + 4, class_="tick end")
    for step in plan.step_ticks:
        yield tag("line", x1=plan.x(step), y1=bottom, x2=plan.x(step), y2=bottom + 5, class_="axis")
        yield tag("text", text(str(step + 1)), x=plan.x(step), y=bottom + 20, class_="tick middle")
    yield tag("path", d=f"M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}", class_="axis")
    yield tag("text", text("backward call"), x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 8, class_="label middle")
    middle = (TOP + bottom) / 2
    yield tag("text", text("loss"), x=14, y=middle, transform=f"rotate(-90 14 {middle:g})", class_="label middle")


def _line(plan: Scale, curve: Curve, number: int) -> Markup:
    """A curve, broken where a loss is no number; a mark at each point where there are few."""
    way: list[str] = []
    is_down = False
    for step, value in enumerate(curve.losses):
        if math.isfinite(value):
            way.append(f"{'L' if is_down else 'M'}{plan.x(step):.2f} {plan.y(value):.2f}")
        is_down = math.isfinite(value)
    dots = [
        tag("circle", cx=round(plan.x(step), 2), cy=round(plan.y(value), 2), r=2.5 + number % 3)
        for step, value in enumerate(curve.losses)
        if math.isfinite(value) and len(curve.losses) <= 60
    ]
    return tag("g", tag("title", text(_name(curve))), tag("path", d="".join(way)), *dots, class_=f"curve c{number}")


def _name(curve: Curve) -> str:
    processes = f" ({curve.processes} processes)" if curve.processes > 1 else ""
    return f"{curve.name}{processes}"


def _key(curve: Curve, number: int) -> Markup:
    sample = tag("svg", tag("path", d="M0 6H28"), viewBox="0 0 28 12", width=28, height=12, aria_hidden="true")
    return tag("li", tag("span", sample, class_=f"curve c{number}"), text(_name(curve)))


def _table(curves: Sequence[Curve]) -> Markup:
    """The numbers themselves."""
    head = tag("tr", tag("th", text("loss")), *(tag("th", text(_name(curve))) for curve in curves))
    rows = (
        tag("tr", tag("th", text(str(step + 1))), *(tag("td", text(_at(curve, step))) for curve in curves))
        for step in range(max(len(curve.losses) for curve in curves))
    )
    return tag(
        "details",
        tag("summary", text("The numbers")),
        tag("table", tag("thead", head), tag("tbody", *rows), class_="numbers"),
    )


def _at(curve: Curve, step: int) -> str:
    return repr(float(curve.losses[step])) if step < len(curve.losses) else "-"
