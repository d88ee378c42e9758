"""Files that one process writes and several do not."""

import pytest

from migrate.verify.compare.voice import one_voice
from migrate.verify.model import Outcome
from migrate.verify.records import End, Record
from migrate.verify.run import Run


def run(*files):
    record = Record("/copy", end=End("ended"))
    return Run("a run", (record,), dict.fromkeys(files, "digest"), "", 1.0)


@pytest.mark.parametrize(
    ("alone", "several", "repeated", "outcome"),
    [
        ("model.pt", "model.pt", "model.pt", Outcome.PASS),
        ("model.pt", "other.pt", "model.pt", Outcome.FAIL),
        ("runs/12-31/log", "runs/12-45/log", "", Outcome.PASS),  # the time is in its name
        ("runs/12-31/log", "model.pt", "", Outcome.FAIL),
        ("net-1ce18265/3.pt", "net-e58d16d1/3.pt", "", Outcome.PASS),  # a part of a uuid is in its name
        ("net-1ce18265/3.pt", "net-e58d16d1/best.pt", "", Outcome.FAIL),
        ("decade/3.pt", "facade/3.pt", "", Outcome.FAIL),
        ("epoch1.pt", "epoch0.pt", "epoch1.pt", Outcome.FAIL),
    ],
)
def test_a_file_that_is_missing(alone, several, repeated, outcome):
    assert one_voice(run(alone), run(several), run(several), {repeated}).outcome is outcome
