"""Learning rates that go by what a process has for itself: its batch, what it has drawn, its clock."""

import pytest

MEAN = "accelerator.reduce(loss.item(), reduction='mean') < 0.1"
OWN = "loss.item() < 0.1"
SET = "\nfor group in optimizer.param_groups:\n    group['lr'] = {}"
SET_RATE = "def set_rate(optimizer, rate):\n    for group in optimizer.param_groups:\n        group['lr'] = rate"
CHOSEN = "if {}:\n    rate = 0.01\nelse:\n    rate = 0.1"
STATEMENTS = {
    "under the test": ("", "if {}:\n    for group in optimizer.param_groups:\n        group['lr'] = 0.01"),
    "chosen above": ("", CHOSEN + SET.format("rate")),
    "chosen above, with more": ("", f"{CHOSEN}\nlower = rate / 2{SET.format('lower')}"),
    "lowered": ("rate = 0.1", "if {}:\n    rate *= 0.5" + SET.format("rate")),
    "handed to a function": (SET_RATE, CHOSEN + "\nset_rate(optimizer, rate)"),
    "in a function": (SET_RATE, "if {}:\n    set_rate(optimizer, 0.01)"),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_rate_that_a_loss_chooses_is_chosen_by_the_mean(changed, name):
    setup, step = STATEMENTS[name]
    changed(setup=setup, step=(step.replace("{}", OWN, 1), step.replace("{}", MEAN, 1)))


def test_a_rate_that_a_draw_chooses(changed):
    step, coin = CHOSEN + SET.format("rate"), "random.random() < 0.1"
    drawn = f"accelerator.gather_for_metrics([{coin}])[0]"
    changed(imports="import random", step=(step.replace("{}", coin, 1), step.replace("{}", drawn, 1)))


def test_a_name_that_no_rate_goes_by(unchanged):
    unchanged(made="rate = last = 0.1", step=CHOSEN.format(OWN).replace("rate", "last") + SET.format("rate"))


DRAWN = {
    "in a step": ({"step": SET.format("random.random()").strip()}, "group["),
    "under a name": ({"made": "rate = random.random()", "step": SET.format("rate").strip()}, "group["),
}
MADE = "rate = 10 ** random.uniform(-4, -1)"
SEED = "random.seed(0)\ntorch.manual_seed(0)"


@pytest.mark.parametrize("name", DRAWN)
def test_a_rate_that_is_drawn(refused, name):
    holes, at = DRAWN[name]
    finding = refused("MIG122", at, ["may differ between processes"], imports="import random", **holes)

    assert "random.seed(0)" in finding.hint


def with_rate(programs, setup, imports="import random"):
    return programs({"imports": imports, "setup": setup})[0].replace("lr=0.1", "lr=rate")


def test_an_optimizer_with_a_rate_that_is_drawn(refused_text, convert_text, programs):
    refused_text(with_rate(programs, MADE), "MIG122", "lr=rate", ["what the processes train with is set by rate"])

    assert convert_text(with_rate(programs, f"{SEED}\n{MADE}"))[0].changes


def test_an_optimizer_with_a_rate_by_the_clock(refused_text, programs):
    source = with_rate(programs, "rate = time.time() % 1", "import time")
    refused_text(source, "MIG122", "lr=rate", ["which a clock or the system gives"])


GIVEN = {
    "read from a text": "datetime.strptime('2020-01-01', '%Y-%m-%d').year / 20200",
    "a length of time": "timedelta(hours=1).seconds / 36000",
    "both": "(datetime.fromisoformat('2020-01-01') + timedelta(days=1)).day / 20",
}


@pytest.mark.parametrize("name", GIVEN)
def test_an_optimizer_with_a_rate_by_a_time_that_is_given(convert_text, programs, name):
    source = with_rate(programs, f"rate = {GIVEN[name]}", "from datetime import datetime, timedelta")

    assert convert_text(source)[0].changes


def test_an_optimizer_with_a_rate_by_a_time_that_is_given_and_the_clock(refused_text, programs):
    setup = "rate = datetime.now().timestamp() - datetime.strptime('2020-01-01', '%Y-%m-%d').timestamp()"
    source = with_rate(programs, setup, "from datetime import datetime")
    refused_text(source, "MIG122", "lr=rate", ["which a clock or the system gives"])


def test_an_optimizer_with_a_rate_of_an_option(convert_text, programs):
    setup = 'options = argparse.ArgumentParser()\noptions.add_argument("--rate")\nrate = options.parse_args().rate'

    assert convert_text(with_rate(programs, setup, "import argparse"))[0].changes


HELD = {
    "an item beside a clock": 'held = {"rate": 0.1, "at": time.time()}',
    "a clock that is put beside it": 'held = {"rate": 0.1}\nheld["at"] = time.time()',
}


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("read", ['held["rate"]', 'held.get("rate")'])
def test_an_optimizer_with_a_rate_that_is_held_beside_a_clock(convert_text, programs, name, read):
    source = with_rate(programs, HELD[name], "import time").replace("lr=rate", f"lr={read}")

    assert convert_text(source)[0].changes


def test_an_optimizer_with_an_item_that_is_drawn(refused_text, programs):
    source = with_rate(programs, 'held = {"rate": random.random()}').replace("lr=rate", 'lr=held["rate"]')
    refused_text(source, "MIG122", "lr=held", ["what the processes train with is set by held"])


def test_a_loop_that_runs_as_often_as_an_item_beside_a_clock_says(unchanged):
    unchanged(
        imports="import time",
        setup='held = {"rounds": 3, "at": time.time()}',
        step='for _ in range(held["rounds"]):\n    optimizer.step()',
    )
