"""Runs that were cut when their time was over: compared is what both came to, and the reason says the rest."""

import pytest

from migrate.errors import VerifyError
from migrate.verify.compare.batches import same_batches, same_ranks
from migrate.verify.compare.checkpoints import loadable
from migrate.verify.compare.evaluation import exact_evaluation, joined_too_often
from migrate.verify.compare.lines import Volatile
from migrate.verify.compare.one import same_on_one
from migrate.verify.compare.schedule import same_schedule
from migrate.verify.model import Outcome
from migrate.verify.records import Batch, End, Line, Loss, Record, Saved, Step
from migrate.verify.run import Run
from migrate.verify.trials import Kind, Trials
from migrate.verify.wish import Wish

WHY = "; the run 'converted' was cut after 7 s"


def record(*events, cut=False):
    """A process: "train" and "test" are passes over a loader, a number is the rate of a step, all else is said."""
    found = Record("/copy", end=End("time" if cut else "ended"))
    passes = -1
    for event in events:
        if event in {"train", "test"}:
            passes += 1
            found.batches.append(Batch(passes, 0, 4, (), ()))
        if event == "train":
            found.trained.append(passes)
        elif isinstance(event, float):
            number = len(found.steps) + 1
            found.losses.append(Loss(number - 1, 1.0, "0x1p0", "train.py:3"))
            step = Step(0, "SGD", number, (1.0, 1.0), 0, 1.0, (event,), 0.0, (), (), False, "train.py:3", passes, 0)
            found.steps.append(step)
            found.training += [found.losses[-1], step]
        elif event != "test":
            found.lines.append(Line(event, "stdout", False, passes, "train.py:7"))
    return found


def run(*events, cut=False, name="converted", processes=1):
    records = tuple(record(*events, cut=cut) for _ in range(processes))
    return Run(name, records, {}, "", 7.0)


def epochs(count, *said):
    """Epochs that begin with their number, and what is said after each evaluation."""
    return [event for epoch in range(count) for event in (f"Epoch: {epoch}", "train", "test", *said)]


def never():
    raise AssertionError("nothing differs, so nothing is to be run")


def evaluation(alone, several, other_data=never):
    return exact_evaluation(alone, several, Volatile(), other_data)


# --- evaluations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [(), ("saving",)])
def test_the_epochs_that_a_cut_run_did_not_come_to_are_no_difference(said):
    verdict = evaluation(run(*epochs(4, *said)), run(*epochs(3, *said), cut=True))

    assert verdict.outcome is Outcome.NOT_CHECKED
    assert verdict.message == "no number is about an evaluation alone" + WHY


def test_an_epoch_that_begins_before_any_evaluation_is_the_counterpart_of_no_other():
    verdict = evaluation(run(*epochs(4)), run(*epochs(4)))
    assert verdict.outcome is Outcome.NOT_CHECKED
    assert verdict.message == "no number is about an evaluation alone"


@pytest.mark.parametrize(("is_cut", "reached"), [("several", 2), ("alone", 2), ("several", 1), ("alone", 1)])
def test_what_both_runs_came_to_is_compared(is_cut, reached):
    whole, part = epochs(3, "acc 0.7512"), epochs(reached, "acc 0.7512")
    runs = [run(*whole), run(*part, cut=True)]
    verdict = evaluation(*(runs if is_cut == "several" else reversed(runs)))

    assert verdict.outcome is Outcome.PASS
    assert verdict.message.startswith("1 number in 1 line" if reached == 1 else "2 numbers in 2 lines")
    assert verdict.message.endswith("after evaluations agree" + WHY)


def test_what_both_runs_came_to_and_differs_is_a_difference():
    verdict = evaluation(run(*epochs(3, "acc 0.7512")), run(*epochs(2, "acc 0.3756"), cut=True), lambda: None)

    assert verdict.outcome is Outcome.FAIL
    assert (verdict.difference.original, verdict.difference.converted) == ("'acc 0.7512'", "'acc 0.3756'")


@pytest.mark.parametrize("events", [(), ("Epoch: 0", "train"), ("Epoch: 0", "train", "test")])
def test_a_run_that_was_cut_before_it_said_anything_is_not_checked(events):
    verdict = evaluation(run(*epochs(3, "acc 0.7512")), run(*events, cut=True))
    assert verdict.outcome is Outcome.NOT_CHECKED
    assert verdict.message == "no line after an evaluation was said by both" + WHY

    verdict = evaluation(run(*events, cut=True), run(*epochs(3, "acc 0.7512")))
    assert verdict.outcome is Outcome.NOT_CHECKED
    assert verdict.message.endswith(WHY)


def test_a_line_that_is_missing_from_a_whole_run_is_a_difference():
    assert evaluation(run(*epochs(3, "acc 0.7512")), run(*epochs(2, "acc 0.7512"))).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("other", "outcome"),
    [
        (run(*epochs(2, "loss 0.1234")), Outcome.PASS),  # it is about the training
        (run(*epochs(2, "loss 0.7512")), Outcome.FAIL),
        (run(*epochs(1), cut=True), Outcome.NOT_CHECKED),
        (run(*epochs(1, "loss 0.1234"), cut=True), Outcome.NOT_CHECKED),
        (run(*epochs(1, "loss 0.7512"), cut=True), Outcome.FAIL),
        (run(*epochs(1, "loss 0.1234")), Outcome.FAIL),
        (None, Outcome.FAIL),
    ],
)
def test_a_number_that_differs_is_asked_of_a_run_on_other_batches(other, outcome):
    said = epochs(2, "loss 0.7512")
    said.insert(4, "acc 0.5012")
    converted = ["loss 0.3700" if event == "loss 0.7512" else event for event in said]
    verdict = evaluation(run(*said), run(*converted), lambda: other)

    assert verdict.outcome is outcome
    assert verdict.message.endswith(WHY) is (outcome is Outcome.NOT_CHECKED)


def test_what_grows_with_the_processes_is_not_asked_of_a_run_that_was_cut():
    alone, several = run("samples 640", "train"), run("samples 1280", "train", processes=2)
    cut = run("samples 1280", "train", processes=2, cut=True)

    assert joined_too_often(alone, several, Volatile()).outcome is Outcome.FAIL
    assert joined_too_often(alone, cut, Volatile()) is None


# --- other contracts ------------------------------------------------------------------------------------------------


def test_a_run_that_was_cut_before_its_first_step_has_the_gradients_of_none():
    alone, several = run("train", 0.1), run(cut=True, processes=2)
    verdict = same_batches(alone, several, alone, several)
    assert (verdict.outcome, verdict.message) == (Outcome.NOT_CHECKED, "no optimizer step was seen" + WHY)


def test_steps_that_one_process_did_not_come_to_are_not_the_same_on_all():
    several = Run("converted", (record("train", 0.1, 0.1), record("train", 0.1, cut=True)), {}, "", 7.0)
    assert same_ranks(several).message == "1 step, the same bits on all" + WHY

    several = Run("converted", (record("train", 0.1, 0.1), record("train", cut=True)), {}, "", 7.0)
    assert same_ranks(several).outcome is Outcome.NOT_CHECKED


def test_a_rate_that_changes_where_a_cut_run_did_not_come_to_is_not_checked():
    alone = run("train", 0.1, 0.1, "train", 0.01)
    assert same_schedule(alone, alone, alone, run("train", 0.1, "train", 0.01)).outcome is Outcome.PASS

    verdict = same_schedule(alone, alone, alone, run("train", 0.1, cut=True))
    assert verdict.outcome is Outcome.NOT_CHECKED
    assert verdict.message.endswith(WHY)


def saving(*histories, **options):
    found = run("train", 0.1, **options)
    content = [["dict", {"history": ["list", [["value", "float", "1.0"]] * length]}] for length in histories]
    found.main.saved.extend(Saved("/copy/model.pt", each) for each in content)
    return found


@pytest.mark.parametrize(
    ("converted", "outcome"),
    [
        (saving(1, 2, 3), Outcome.PASS),
        (saving(1, 2), Outcome.FAIL),
        (saving(1, 2, cut=True), Outcome.PASS),
        (saving(1, 1, cut=True), Outcome.FAIL),
        (saving(cut=True), Outcome.NOT_CHECKED),
    ],
)
def test_of_checkpoints_the_last_is_compared_that_both_saved(converted, outcome):
    assert loadable(saving(1, 2, 3), converted, run(), 0).outcome is outcome


@pytest.mark.parametrize(
    ("converted", "outcome", "message"),
    [
        (("a", "train", 0.1), Outcome.PASS, "identical to the last bit: 1 loss, 1 optimizer step, 1 line"),
        (("a",), Outcome.NOT_CHECKED, "no backward and no optimizer step was seen"),
        (("b", "train", 0.1), Outcome.FAIL, "the training is the same, what it leaves is not"),
    ],
)
def test_on_one_process_what_both_came_to_is_counted(converted, outcome, message):
    whole = run("a", "train", 0.1, 0.1, "b", name="original")
    verdict = same_on_one(whole, whole, run(*converted, cut=True))

    assert verdict.outcome is outcome
    assert verdict.message == message + (WHY if outcome is not Outcome.FAIL else "")


def test_where_the_original_was_not_run_twice_nothing_is_asked_of_the_conversion():
    original, other = run("train", 0.1, 0.1), run("train", 0.1, 0.2)
    assert same_on_one(original, original, other).outcome is Outcome.FAIL
    assert same_on_one(original, run("train", 0.1, 0.1, cut=True), other).outcome is Outcome.FAIL

    verdict = same_on_one(original, run("train", 0.1, cut=True), other)
    assert verdict.outcome is Outcome.NOT_CHECKED
    assert verdict.message.endswith(WHY)


# --- the time of all runs -------------------------------------------------------------------------------------------


def test_a_further_run_without_time_is_one_that_was_cut(tmp_path):
    wish = Wish(script=tmp_path / "train.py", folder=tmp_path, changed={}, limit_s=2.0)
    trials = Trials(wish, tmp_path, print, start=never, _began=-1e9)
    with pytest.raises(VerifyError, match=r"the time for all runs is over \(12 s\)"):
        trials.run(Kind(name="original"))

    run = trials.further(Kind(name="original on 2", processes=2))
    assert (run.processes, run.cut) == (2, "the run 'original on 2' was cut after 0 s")
