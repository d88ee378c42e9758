"""Lines taken apart, and printed numbers that are one."""

from types import SimpleNamespace

import pytest

from migrate.verify.compare.evaluation import exact_evaluation, joined_too_often
from migrate.verify.compare.lines import Volatile, first_difference, is_close, is_multiple, said, taken
from migrate.verify.model import Outcome
from migrate.verify.records import Batch, Line, Record


def record(*texts):
    found = Record("/copy")
    found.lines += [Line(text, "stdout", False, 0, "train.py:1") for text in texts]
    return found


@pytest.mark.parametrize(
    ("text", "template", "numbers"),
    [
        ("acc 0.75 (3/4)", "acc # (#/#)", ("0.75", "3", "4")),
        ("loss: -1.5e-3, nan", "loss: #, #", ("-1.5e-3", "nan")),
        ("resnet18 v2", "resnet18 v2", ()),
        ("2026-01-02 03:04:05,678 loss 1", "<date> <time> loss #", ("1",)),
        ("epoch 1 took 3.25 s, 12.5it/s", "epoch # took <time>, <time>", ("1",)),
        ("Time 0.12 Loss 3", "<time> Loss #", ("3",)),
        ("time:  8.34s | loss   12", "time: <time> | loss #", ("12",)),
        ("epoch 1 took 00: 00: 02", "epoch # took <time>", ("1",)),
        ("on cuda:0, not cuda:1", "on cuda, not cuda:#", ("1",)),
        ("<Net at 0x7f00aa1122>", "<Net at <address>>", ()),
    ],
)
def test_a_line_is_text_and_numbers(text, template, numbers):
    found = taken(Line(text, "stdout", False, 0, ""))
    assert (found.template, found.numbers) == (template, numbers)


@pytest.mark.parametrize("text", ["train:{} loss 0.5", "[train.py line:{}] loss 0.5", "line {}: loss 0.5"])
def test_the_number_of_the_statement_that_says_a_line_says_nothing(text):
    one, other = (taken(Line(text.format(n), "stdout", False, 0, f"src/train.py:{n}")) for n in (171, 183))
    elsewhere = taken(Line(text.format(171), "stdout", False, 0, "src/train.py:5"))

    assert one.template == other.template
    assert one.numbers == other.numbers == ("0.5",)
    assert elsewhere.numbers == ("171", "0.5")


@pytest.mark.parametrize(
    ("one", "other", "close"),
    [
        ("0.7342", "0.7342", True),
        ("0.7342", "0.7343", True),  # the last digit, rounded the other way
        ("0.7342", "0.7345", False),
        ("0.75", "0.76", False),  # two digits: the last one is more than rounding
        ("91", "92", False),
        ("1234567.0", "1234567.1", True),
        ("1.000000e-08", "1.000001e-08", True),
        ("nan", "nan", True),
        ("nan", "1.0", False),
        ("inf", "1.0", False),
        ("3", "inf", False),
    ],
)
def test_numbers_that_differ_by_rounding_are_one(one, other, close):
    assert is_close(one, other) is close


@pytest.mark.parametrize(
    ("one", "other", "multiple"),
    [
        ("0.6931", "1.3863", True),  # as far as four digits go
        ("0.6931", "1.3869", False),
        ("0.6931", "0.6931", False),
        ("-1.25e-3", "-2.50e-3", True),
        ("192", "384", True),
        ("192", "385", False),
        ("12", "24", False),  # by chance
        ("0.0", "0.0", False),
        ("nan", "nan", False),
    ],
)
def test_a_number_that_is_just_so_many_times_another(one, other, multiple):
    assert is_multiple(one, other, 2) is multiple


def test_what_differs_between_two_runs_says_nothing():
    volatile = Volatile.between(record("loss 1 id 17"), record("loss 1 id 18"))
    left = said(record("loss 1 id 17"))

    assert first_difference(left, said(record("loss 1 id 99")), volatile) is None
    assert first_difference(left, said(record("loss 2 id 17")), volatile) == (
        "loss 1 id 17", "loss 2 id 17", "train.py:1",
    )  # fmt: skip


def test_a_missing_line_is_a_difference():
    assert first_difference(said(record("a", "b")), said(record("a")), Volatile()) == ("b", "nothing", "train.py:1")
    assert first_difference(said(record("a")), said(record("a", "b")), Volatile()) == ("nothing", "b", "train.py:1")


@pytest.mark.parametrize(
    ("theirs", "fails"),
    [
        (("acc 12.500 of 6", "acc 0.000 of 12", "acc 50.000 of 18"), True),
        (("acc 12.500 of 6", "acc 0.000 of 12", "acc 37.500 of 18"), False),  # the first is so by chance
        (("acc 6.250 of 3", "acc 0.000 of 6", "acc 25.000 of 9"), False),
    ],
)
def test_a_number_of_all_processes_is_so_in_every_line(theirs, fails):
    assert is_joined_too_often(("acc 6.250 of 3", "acc 0.000 of 6", "acc 25.000 of 9"), theirs) is fails


def test_one_number_among_zeros_is_so_by_chance():
    assert not is_joined_too_often(("acc 0.000", "acc 12.500"), ("acc 0.000", "acc 25.000"))
    assert is_joined_too_often(("acc 12.500", "acc 12.500"), ("acc 25.000", "acc 25.000"))
    assert is_joined_too_often(("seen 0", "seen 64", "seen 128"), ("seen 0", "seen 128", "seen 256"))


def is_joined_too_often(ours, theirs):
    """Whether two processes say too much, beside what one process says."""
    runs = [SimpleNamespace(main=record(*lines), processes=n, cut="") for n, lines in ((1, ours), (2, theirs))]
    return joined_too_often(*runs, Volatile()) is not None


def stepped(*evaluations, after=0):
    """A run of one training pass of four batches with evaluations after some of them, and some after all."""
    found = Record("/copy", trained=[0])
    for number in range(4):
        found.batches.append(Batch(0, number, 2, (), ()))
        for passes in (each for each, at in enumerate(evaluations, 1) if at == number):
            evaluate(found, passes)
    for passes in range(len(evaluations) + 1, len(evaluations) + 1 + after):
        evaluate(found, passes)
    return SimpleNamespace(main=found, cut=False, processes=2)


def evaluate(found, passes):
    found.batches.append(Batch(passes, 0, 2, (), ()))
    found.lines.append(Line("accuracy 0.75", "stdout", False, passes, "train.py:9"))


@pytest.mark.parametrize(
    ("alone", "several", "outcome"),
    [
        (stepped(0, 2), stepped(1), Outcome.PASS),  # one after every two steps, of which there are half as many
        (stepped(0, 2, after=1), stepped(1, after=1), Outcome.PASS),
        (stepped(after=2), stepped(after=1), Outcome.FAIL),
        (stepped(0, 2), stepped(), Outcome.NOT_CHECKED),
    ],
)
def test_an_evaluation_after_so_many_steps_comes_less_often_on_several_processes(alone, several, outcome):
    assert exact_evaluation(alone, several, Volatile(()), lambda: None).outcome is outcome
