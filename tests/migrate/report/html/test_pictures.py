"""Maps and curves: everything has its place, nothing lies on something else, numbers are what they were."""

import math
import re
from itertools import combinations

import pytest

from migrate.report.html import page
from migrate.report.html.curves import MOST_LINES, losses, scale, text_of
from migrate.report.html.layout import BOX, HEIGHT, layout
from migrate.report.html.style import DARK, LIGHT, READ, SEEN, style
from migrate.report.html.verification import verification


def brightness(colour):
    """Relative luminance, as WCAG 2 has it."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    bright, dark = sorted((brightness(one), brightness(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_enough(colours):
    low = {pair: contrast(*(colours[name] for name in pair)) for pair in READ}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
    low = {pair: contrast(*(colours[name] for name in pair)) for pair in SEEN}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 3} == {}


def test_contrast_is_that_of_the_standard():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_every_colour_of_the_sheet_is_in_both_tables():
    used = set(re.findall(r"var\(--([\w-]+)\)", style())) - {"mono", "sans"}
    assert used <= LIGHT.keys()
    assert LIGHT.keys() == DARK.keys()
    assert LIGHT.keys() <= used


def maps(reports):
    return [(s.path, s.map) for report in reports.values() for s in report.summaries]


def test_boxes_lie_in_their_lane_and_not_on_each_other(reports):
    for path, drawn in maps(reports):
        plan = layout(drawn, path)
        assert len(plan.lanes) == len(drawn.frames) > 0
        for lane in plan.lanes:
            assert {box.thing for box in lane.boxes} == set(lane.frame.things)
            for box in lane.boxes:
                assert 0 <= box.x <= plan.width - BOX
                assert lane.y < box.y
                assert box.y + HEIGHT < lane.y + lane.height
            for one, other in combinations(lane.boxes, 2):
                assert abs(one.x - other.x) >= BOX or abs(one.y - other.y) >= HEIGHT
        for one, other in combinations(plan.lanes, 2):
            assert one.y + one.height <= other.y or other.y + other.height <= one.y
        assert all(lane.y + lane.height <= plan.height for lane in plan.lanes)


def test_loops_around_lanes_hold_them(reports):
    for path, drawn in maps(reports):
        plan = layout(drawn, path)
        for lane in plan.lanes:
            if lane.frame.around is not None:
                around = next(each for each in plan.rounds if each.place == lane.frame.around)
                assert around.y < lane.y
                assert lane.y + lane.height <= around.y + around.height


def test_a_scheduler_that_steps_per_epoch_stands_outside_of_the_loop_over_batches(reports):
    summary = reports["plateau/before.py"].summaries[0]
    plan = layout(summary.map, summary.path)
    lane = next(lane for lane in plan.lanes if lane.frame.trains)
    outside = [summary.map.things[box.thing].name for box in lane.boxes if box.x > lane.x + lane.width]
    assert outside == ["scheduler"]


# --- curves ---------------------------------------------------------------------------------------------------------


def test_differences_are_told(curve):
    one = curve("original", [1.0, 0.5, 0.25])
    assert "exactly the same" in text_of(one, curve("converted", [1.0, 0.5, 0.25]))
    told = text_of(one, curve("converted", [1.0, 0.75, 0.25, 0.1]))
    assert "0.25, at loss 2 (0.5 and 0.75; 3 of 4 losses compared)" in told
    assert "no number" in text_of(one, curve("converted", [1.0, math.nan]))
    assert "the same" in text_of(curve("a", [math.nan]), curve("b", [math.nan]))
    assert "no step" in text_of(one, curve("converted", []))
    assert "2 batches" not in told
    assert "a step of 2 processes sees 2 batches" in text_of(one, curve("converted on 2", [1.0, 0.75], processes=2))


def test_curves_lie_in_the_drawing(curve):
    every = [curve("original", [3.0, 1.0, 2.0]), curve("converted", [3.0, 1.5, -2.0])]
    plan = scale(every)
    places = [plan.y(value) for each in every for value in each.losses]
    assert max(places) < 300
    assert min(places) > 0
    assert plan.y(3.0) < plan.y(-2.0)
    assert plan.ticks == sorted(plan.ticks)
    assert 3 <= len(plan.ticks) <= 8


@pytest.mark.parametrize("values", [[0.0], [5.0, 5.0], [1e-30, 2e-30], [1e30, -1e30], list(range(1000))])
def test_scales_of_any_size(values, curve):
    plan = scale([curve("original", values)])
    assert plan.high > plan.low
    assert len(plan.ticks) < 20
    assert len(plan.step_ticks) <= 7


def test_a_loss_that_is_no_number_breaks_the_curve(curve):
    html = str(losses([curve("original", [1.0, math.nan, 2.0, 3.0, math.inf])]))
    way = re.search(r'<path d="(M[^"]*)">', html[html.index('class="curve c0"') - 2000 :])
    assert "nan" not in re.sub(r"<td>.*?</td>", "", html)
    assert way
    assert html.count("<circle") == 3
    assert "no run computed a loss" in str(losses([curve("original", [math.nan])]))


def test_charts_name_each_run_and_tell_frozen_ones_apart(curve):
    html = str(
        losses(
            [
                curve("original", [2.0, 1.0]),
                curve("converted", [2.0, 1.0]),
                curve("converted on 2", [2.0, 1.0], processes=2),
                curve("original, frozen", [2.0, 2.0], frozen=True),
            ]
        )
    )
    assert html.count("<figure") == 2
    assert "converted on 2 (2 processes)" in html
    assert html.count("exactly the same") == 2 * 2  # in words, and for those who do not see the drawing


def test_more_runs_than_a_chart_holds_have_charts_of_their_own(curve):
    every = [curve(f"run {number}!", [1.0, number]) for number in range(2 * MOST_LINES)]
    html = str(losses(every))
    assert html.count("<figure") == 3
    assert f"c{MOST_LINES}" not in html
    assert all(f"{one.name} against run 0!" in html for one in every[1:])


def test_verdicts_are_told(curve, verified):
    html = str(verification(verified(curve("original", [1.0]), outcome="fail", text="loss at step 3 differs")))
    assert "E1" in html
    assert "same on one process" in html
    assert '<span class="badge bad">fail</span>' in html
    assert html.count("loss at step 3 differs") == 4


def test_the_section_is_only_there_where_something_was_verified(reports, about, curve, verified):
    report = reports["gan/before.py"]
    assert 'id="verification"' not in page(report, about)
    assert 'id="verification"' in page(report, about, [verified(curve("original", [1.0]))])
