"""A number that is divided by what a process counts of its own batches in one place, and read otherwise in another."""

import pytest

from migrate.report.model import Kind

COUNTED = {
    "start": "right, seen = 0, 0",
    "step": "right += (output.argmax(1) == y).sum().item()\nseen += 4",
}
BOTH = {
    "the length of the data": "print(right / seen, right / len(data))",
    "as it is": "print(right / seen, right)",
    "in a text": 'print("{}/{} {:.2f}".format(right, len(data), right / seen))',
    "in an f-string": 'accuracy = right / seen\nprint(f"{right} of {len(data)}: {accuracy}")',
    "percent": 'print("%d %.2f" % (right, right / seen))',
}
ONE = {
    "by the count alone": "print(right / seen)",
    "by the count and a number": "print(100 * right / seen, right / 4 / seen, right / (4 * seen))",
    "by the data alone": 'print("{}/{}".format(right, len(data)), right / len(data))',
    "a mean from there on": "right = right / seen\nprint(right, right / len(data))",
    "handed to a function": "print(right / seen)\nshow(right, seen)",
}


@pytest.mark.parametrize("name", BOTH)
def test_a_reading_that_the_mean_makes_too_small_is_told(convert_text, programs, remark, name):
    source = programs({**COUNTED, "epoch": BOTH[name]})[0]
    report, _ = convert_text(source)

    at = BOTH[name].splitlines()[-1]
    remark(report, source, "MIG114", at, ["right is joined as a mean", "N times too small"], Kind.NOTE)


@pytest.mark.parametrize("name", ONE)
def test_readings_of_one_kind_are_not(convert_text, programs, name):
    setup = "def show(right, seen):\n    print(right / seen)"
    report, _ = convert_text(programs({**COUNTED, "setup": setup, "epoch": ONE[name]})[0])

    assert not [finding for finding in report.findings if "joined as a mean" in finding.message]


@pytest.mark.parametrize("name", BOTH)
def test_it_is_joined_by_what_keeps_a_whole_number_on_one_process(convert_text, programs, name):
    """A count that is joined as a mean was 101.0 there instead of 101."""
    source = programs({**COUNTED, "epoch": BOTH[name]})[0]
    _, result = convert_text(source)

    assert 'right = accelerator.reduce(right, reduction="mean")' in result


def test_the_way_out_leads_out(convert_text, programs):
    by_samples = {"step": COUNTED["step"].replace("seen += 4", "seen += len(y)")}
    report, result = convert_text(programs({**COUNTED, **by_samples, "epoch": BOTH["as it is"]})[0])

    assert "num_processes" not in result
    assert not [finding for finding in report.findings if "joined as a mean" in finding.message]


@pytest.mark.parametrize("part", ["loss.item() / len(loader)", "1 / len(loader) * loss.item()"])
def test_what_adds_up_to_a_mean_is_read_as_it_is(convert_text, programs, part):
    """`total += loss.item() / len(loader)`: the mean of the shares is the whole, wherever it is shown."""
    source = programs({"start": "total = 0.0", "step": f"total += {part}", "epoch": "print(f'{total:.4f}')"})[0]
    report, result = convert_text(source)

    assert 'total = accelerator.reduce(total, reduction="mean")' in result or "/ accelerator.num_processes" in result
    assert not [finding for finding in report.findings if "joined as a mean" in finding.message]


def test_what_adds_up_to_a_mean_in_one_place_alone_is_told(convert_text, programs):
    both = "total += loss.item() / len(loader)\ntotal += loss.item()"
    source = programs({"start": "total = 0.0", "step": both, "epoch": "print(f'{total:.4f}')"})[0]
    report, _ = convert_text(source)

    assert [finding for finding in report.findings if "joined as a mean" in finding.message]
