"""Programs that fail: a converted one may do so, too, as the original does."""

import pytest

from migrate.verify.records import End, Record
from migrate.verify.run import Run

WRONG = "RuntimeError: a tensor is at version 2; expected version 1"


def run(end, output=""):
    return Run("converted", (Record("/copy", end=end),), {}, output, 7.0)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (End("exception", 1, WRONG, "a.py:81"), End("exception", 1, WRONG.replace("2", "3"), "a.py:89"), True),
        (End("exception", 1, WRONG, "a.py:81"), End("exception", 1, "NameError: name 'x'", "a.py:81"), False),
        (End("exit", 2, "", "a.py:3"), End("exit", 2, "", "a.py:5"), True),
        (End("exit", 2), End("exit", 3), False),
        (End("exit", 2), End("exception", 1, WRONG), False),
    ],
)
def test_a_failure_is_the_same_in_other_lines(one, other, is_same):
    assert run(one).fails_as(run(other)) is is_same


def test_what_is_killed_says_its_last_words():
    one, other = run(End(), "loss 0.5\nout of memory"), run(End(), "loss 0.5\nno such file")

    assert one.fails_as(one)
    assert not one.fails_as(other)
