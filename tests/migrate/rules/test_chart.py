"""The maps of small programs, written out."""

from pathlib import Path

import pytest

from migrate import pipeline
from migrate.options import Mode, Options
from migrate.report.map import Flow, Part

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

data = torch.ones(8, 2)
loader = DataLoader(data, batch_size=2)
a, b = nn.Linear(2, 2), nn.Linear(2, 2)
one = torch.optim.SGD(a.parameters(), lr=0.1)
two = torch.optim.SGD(b.parameters(), lr=0.1)
criterion = nn.MSELoss()
"""


def drawn(text, **options):
    (summary,) = pipeline.run_text(text.encode(), "train.py", Options(report=True, **options)).summaries
    return summary.map


def arrows(frame, found):
    return {(found.things[each.start].name, found.things[each.end].name) for each in frame.arrows}


def by_flow(frame, found, flow):
    return {(found.things[a.start].name, found.things[a.end].name) for a in frame.arrows if a.flow is flow}


def test_without_a_report_nothing_is_drawn():
    (summary,) = pipeline.run_text(
        (HEAD + "for x in loader:\n    a(x).sum().backward()\n    one.step()\n").encode(), "", Options()
    ).summaries
    assert summary.map is None


@pytest.mark.parametrize("mode", list(Mode))
def test_every_mode_draws(mode):
    text = HEAD + "for x in loader:\n    a(x).sum().backward()\n    one.step()\n"
    assert len(drawn(text, mode=mode).frames) == 1


def test_each_loss_goes_to_the_optimizer_of_its_model():
    found = drawn(
        HEAD
        + "for epoch in range(2):\n    for x in loader:\n        first = criterion(a(x), x)\n        first.backward()\n"
        "        one.step()\n        second = criterion(b(x), x)\n        second.backward()\n        two.step()\n"
    )
    (frame,) = found.frames
    assert by_flow(frame, found, Flow.BATCHES) == {("loader", "a"), ("loader", "b")}
    assert by_flow(frame, found, Flow.OUTPUTS) == {("a", "first"), ("b", "second")}
    assert by_flow(frame, found, Flow.GRADIENTS) == {("first", "one"), ("second", "two")}
    assert by_flow(frame, found, Flow.UPDATES) == {("one", "a"), ("two", "b")}
    assert found.rounds == ((frame.around, "for epoch in range(2):"),)
    assert [thing.made for thing in found.things if thing.part is Part.LOSS] == ["criterion", "criterion"]


def test_what_is_detached_gives_no_gradient():
    found = drawn(
        HEAD + "for x in loader:\n    y = a(x)\n    loss = b(y.detach()).sum()\n    loss.backward()\n    two.step()\n"
        "    other = b(y).sum()\n    other.backward()\n    one.step()\n"
    )
    assert by_flow(found.frames[0], found, Flow.OUTPUTS) == {("b", "loss"), ("a", "other"), ("b", "other")}


def test_a_loss_is_followed_into_functions():
    found = drawn(
        HEAD + "def step(x):\n    out = a(x)\n    return criterion(out, x)\n\nfor x in loader:\n    loss = step(x)\n"
        "    loss.backward()\n    one.step()\n"
    )
    assert by_flow(found.frames[0], found, Flow.OUTPUTS) == {("a", "loss")}


def test_evaluation_has_a_frame_of_its_own_and_no_optimizer():
    found = drawn(
        HEAD + "test = DataLoader(data, batch_size=2)\nfor epoch in range(2):\n    for x in loader:\n"
        "        a(x).sum().backward()\n        one.step()\n    with torch.no_grad():\n        for x in test:\n"
        "            print(a(x))\n"
    )
    training, evaluation = found.frames
    assert training.trains
    assert not evaluation.trains
    assert arrows(evaluation, found) == {("test", "a")}
    assert training.around == evaluation.around


def test_a_scheduler_says_how_it_is_stepped():
    found = drawn(
        HEAD + "scheduler = torch.optim.lr_scheduler.StepLR(one, 1)\nfor epoch in range(2):\n    for x in loader:\n"
        "        a(x).sum().backward()\n        one.step()\n    scheduler.step()\n"
    )
    scheduler = next(thing for thing in found.things if thing.part is Part.SCHEDULER)
    assert (scheduler.made, scheduler.detail, scheduler.is_within) == ("StepLR", "stepped per epoch", False)
    assert by_flow(found.frames[0], found, Flow.RATE) == {("scheduler", "one")}


def test_lines_are_those_of_the_original_where_processes_went_first():
    path = FIXTURES / "ddp-helpers/before"
    report = pipeline.run([str(path)], Options(report=True))
    for summary in report.summaries:
        for thing in summary.map.things:
            line = report.sources[thing.place.path].lines[thing.place.line - 1]
            assert thing.name.split(".")[-1] in line, thing
        for frame in summary.map.frames:
            assert report.sources[frame.place.path].lines[frame.place.line - 1].strip() == frame.header


def test_things_stand_where_they_are_named():
    for name in ("gan/before.py", "trainer-class/before.py", "plateau/before.py"):
        report = pipeline.run([str(FIXTURES / name)], Options(report=True))
        for summary in report.summaries:
            for thing in summary.map.things:
                assert thing.name in report.sources[thing.place.path].lines[thing.place.line - 1], thing


def test_a_program_without_a_loader_says_so():
    found = drawn(HEAD + "for i in range(9):\n    a(data).sum().backward()\n    one.step()\n")
    assert [(thing.name, thing.detail) for thing in found.things if thing.part is Part.DATA] == [
        ("made in the loop", "no DataLoader")
    ]


def test_a_program_that_is_left_is_drawn_too():
    report = pipeline.run([str(FIXTURES / "model-parallel/before.py")], Options(report=True))
    (frame,) = report.summaries[0].map.frames
    assert arrows(frame, report.summaries[0].map) == {
        ("loader", "model"),
        ("model", "loss"),
        ("loss", "optimizer"),
        ("optimizer", "model"),
    }
