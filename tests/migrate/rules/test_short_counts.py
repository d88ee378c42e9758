"""A sum that is divided after the loop by the number of its last batch, one less than there were."""

import pytest

SUMS = {"start": "total = 0.0", "step": "total += loss.item()"}
SHORT = {"over": "enumerate(loader)", "epoch": "print(total / i)"}
WHOLE = {
    "all of them": {**SHORT, "epoch": "print(total / (i + 1))"},
    "counted from one": {**SHORT, "over": "enumerate(loader, 1)"},
    "counted from a name": {**SHORT, "over": "enumerate(loader, start=1)"},
    "another number": {**SHORT, "epoch": "i = 4\nprint(total / i)"},
    "something else": {**SHORT, "epoch": "print(total / len(loader), 8 / i)"},
}


@pytest.fixture
def told(convert_text, programs):
    def run(holes):
        report, after = convert_text(programs({"target": "i, (x, y)", **SUMS, **holes})[0])
        assert after is not None
        return [finding for finding in report.findings if "one less" in finding.message]

    return run


def test_the_number_of_the_last_batch_is_told(told):
    (finding,) = told(SHORT)

    assert "total / i divides" in finding.message
    assert finding.hint == "divide by i + 1"


@pytest.mark.parametrize("name", WHOLE)
def test_how_many_there_were_is_not(told, name):
    assert not told(WHOLE[name])
