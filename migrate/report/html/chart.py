"""The map of a program as SVG. Every box and every frame is a link to its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.report.counted import counted
from migrate.report.html.layout import BOX, HEIGHT, LETTER, PAD, TRACK, Layout, layout, near, title
from migrate.report.html.markup import Markup, join, tag, text
from migrate.report.map import Flow, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.report.html.layout import Box, Lane, Round
    from migrate.report.map import Arrow, Map, Place, Thing

LONGEST, LONGEST_BELOW = 19, 24  # characters that have room: of the name, and of the line below it
TITLES = {
    Part.DATA: "Data",
    Part.MODEL: "Models",
    Part.LOSS: "Losses",
    Part.OPTIMIZER: "Optimizers",
    Part.SCHEDULER: "Schedulers",
}


def chart(drawn: Map, name: str, link: Callable[[Place], str]) -> Markup:
    """The drawing, and the same in words. `link` gives the address of a line, `name` is the file whose map it is."""
    if not drawn.frames:
        return tag("p", text("No loop of this program is in sight, so there is nothing to draw."), class_="quiet")
    plan = layout(drawn, name)
    titles = (tag("text", text(TITLES[part]), x=x + BOX / 2, y=16, class_="column") for part, x in plan.columns)
    picture = tag(
        "svg",
        *titles,
        *(_round(each, name, link) for each in plan.rounds),
        *(_lane(drawn, lane, name, link) for lane in plan.lanes),
        viewBox=f"0 0 {plan.width:g} {plan.height:g}",
        width=plan.width,
        height=plan.height,
        role="group",
        aria_label=f"Map of {name}",
    )
    scroller = tag("div", picture, class_="map", tabindex=0, role="region", aria_label=f"Map of {name}, scrollable")
    return join((scroller, _legend(drawn), _words(drawn, plan, name, link)))


def _round(each: Round, home: str, link: Callable[[Place], str]) -> Markup:
    return tag(
        "g",
        tag("rect", x=each.x, y=each.y, width=each.width, height=each.height, rx=10),
        _title(f"{each.header} · {near(each.place, home)}", each.place, each, link),
        class_="round",
    )


def _title(words: str, place: Place, frame: Lane | Round, link: Callable[[Place], str]) -> Markup:
    most = int((frame.width - 2 * PAD) / LETTER)
    shown = tag("text", text(_cut(words, most)), x=frame.x + PAD, y=frame.y + 20, class_="title")
    return tag("a", tag("title", text(words)), shown, href=link(place))


def _lane(drawn: Map, lane: Lane, home: str, link: Callable[[Place], str]) -> Markup:
    frame = lane.frame
    by_thing = {box.thing: box for box in lane.boxes}
    ahead = [_arrow(drawn, arrow, by_thing) for arrow in frame.arrows if arrow.flow is not Flow.UPDATES]
    back = [_back(lane, by_thing[a.start], by_thing[a.end], number) for number, a in enumerate(frame.back)]
    return tag(
        "g",
        tag("rect", x=lane.x, y=lane.y, width=lane.width, height=lane.height, rx=8, class_="lane"),
        _title(title(frame, home), frame.place, lane, link),
        *back,
        *ahead,
        *(_box(drawn.things[box.thing], box, home, link) for box in lane.boxes),
        class_="trains" if frame.trains else "evaluates",
    )


def _box(thing: Thing, box: Box, home: str, link: Callable[[Place], str]) -> Markup:
    below = " · ".join(filter(None, (thing.made, thing.detail, f"line {thing.place.line}")))
    place = near(thing.place, home)
    short = _cut(thing.detail.removeprefix("stepped ") or thing.made, max(LONGEST_BELOW - len(place) - 3, 8))
    shown = _cut(f"{short} · {place}" if short else place, LONGEST_BELOW + 2)
    return tag(
        "a",
        tag("title", text(f"{thing.part.value}: {thing.name} · {below} · {thing.place.path}")),
        tag("rect", x=box.x, y=box.y, width=BOX, height=HEIGHT, rx=6, class_="box"),
        tag("rect", x=box.x, y=box.y, width=5, height=HEIGHT, rx=2.5, class_="edge"),
        tag("text", text(_cut(thing.name, LONGEST)), x=box.x + 14, y=box.y + 20, class_="name"),
        tag("text", text(shown), x=box.x + 14, y=box.y + 36, class_="below"),
        href=link(thing.place),
        class_=f"thing {thing.part.value}",
    )


def _arrow(drawn: Map, arrow: Arrow, boxes: dict[int, Box]) -> Markup:
    start, end = boxes[arrow.start], boxes[arrow.end]
    to_left = end.x < start.x
    x, tip = (start.x, end.x + BOX + 2) if to_left else (start.x + BOX, end.x - 2)
    bend = (tip - x) / 2
    way = f"M{x:g} {start.middle:g}C{x + bend:g} {start.middle:g} {tip - bend:g} {end.middle:g} {tip:g} {end.middle:g}"
    what = f"{drawn.things[arrow.start].name} gives {arrow.flow.value} to {drawn.things[arrow.end].name}"
    return tag("g", tag("title", text(what)), _line(way), _head(tip, end.middle, to_left), class_="arrow")


def _back(lane: Lane, start: Box, end: Box, number: int) -> Markup:
    """From an optimizer, below everything, to a model that it updates."""
    low = lane.y + lane.height - PAD / 2 - number * TRACK
    out, into = start.x - 12 - number * 5, end.x + BOX + 12 + number * 5
    first, last = start.y + HEIGHT - 10, end.y + HEIGHT - 10
    tip = end.x + BOX + 2
    way = f"M{start.x:g} {first:g}H{out:g}V{low:g}H{into:g}V{last:g}H{tip:g}"
    return tag("g", tag("title", text("updates")), _line(way), _head(tip, last, True), class_="back")


def _line(way: str) -> Markup:
    return tag("path", d=way, class_="way")


def _head(x: float, y: float, to_left: bool) -> Markup:
    back = 7 if to_left else -7
    return tag("path", d=f"M{x:g} {y:g}l{back} -4v8z", class_="head")


def _legend(drawn: Map) -> Markup:
    has_back = any(frame.back for frame in drawn.frames)
    told = "Solid arrows: batches, outputs, gradients, learning rates."
    told += " Dashed: what the optimizer updates." if has_back else ""
    return tag("p", text(f"{told} A box or the title of a frame leads to its line."), class_="quiet")


def _words(drawn: Map, plan: Layout, home: str, link: Callable[[Place], str]) -> Markup:
    """The map for those who do not see it."""
    return tag(
        "details",
        tag("summary", text(f"The same in words ({counted(len(plan.lanes), 'loop')})")),
        *(part for lane in plan.lanes for part in _told(drawn, lane, home, link)),
        class_="words",
    )


def _told(drawn: Map, lane: Lane, home: str, link: Callable[[Place], str]) -> Iterator[Markup]:
    frame = lane.frame
    verb = "Training" if frame.trains else "Evaluation"
    place = tag("a", text(near(frame.place, home)), href=link(frame.place))
    yield tag("p", text(f"{verb} in the loop at "), place, text(":"))
    said = [
        (drawn.things[arrow.start], f" gives {arrow.flow.value} to ", drawn.things[arrow.end])
        if arrow.flow is not Flow.UPDATES
        else (drawn.things[arrow.start], " updates ", drawn.things[arrow.end])
        for arrow in frame.arrows
    ]
    yield tag("ul", *(tag("li", _code(one, link), text(verb), _code(other, link)) for one, verb, other in said))


def _code(thing: Thing, link: Callable[[Place], str]) -> Markup:
    return tag("a", tag("code", text(thing.name)), href=link(thing.place))


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
