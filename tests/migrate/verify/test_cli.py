"""`migrate --verify` on the command line: what it asks for, shows, writes, and exits with."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from migrate.cli import app, verification
from migrate.verify.model import Contract, Curve, Difference, Outcome, Verdict, Verification

CURVE = Curve(
    name="original",
    processes=1,
    is_frozen=False,
    splits=False,
    end="ended by itself",
    seconds=1.0,
    memory_bytes=2**20,
    losses=(1.0, float("nan")),
    gradients=(None,),
    rates=((0.1,),),
    step_seconds=(0.1,),
    batches=(4,),
    lines=("accuracy 1",),
    files=("model.pt",),
)
DIFFERENCE = Difference("loss", "1", "2", 3, "train.py:9", 1.0)
VERDICTS = {
    Outcome.PASS: Verdict(Contract.E1, 1, Outcome.PASS, "identical to the last bit"),
    Outcome.FAIL: Verdict(Contract.E2, 2, Outcome.FAIL, "the training differs", DIFFERENCE),
    Outcome.NOT_CHECKED: Verdict(Contract.E3, 2, Outcome.NOT_CHECKED, "no evaluation"),
}


@pytest.fixture
def call(monkeypatch, tmp_path, program):
    """Run the command on a program; the verification says what it is told to."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(program)
    asked = []

    def run(*arguments, outcomes=(Outcome.PASS, Outcome.NOT_CHECKED)):
        def verify(wish, say):
            asked.append(wish)
            say("original: 3 losses")
            verdicts = tuple(VERDICTS[outcome] for outcome in outcomes)
            return Verification("train.py", wish.arguments, wish.steps, wish.processes, verdicts, (CURVE,))

        monkeypatch.setattr(verification, "verify", verify)
        return CliRunner().invoke(app, arguments)

    run.asked, run.path = asked, path
    return run


def test_without_the_flag_nothing_is_run(call):
    call("train.py")
    call("train.py", "--write")
    assert call.asked == []


def test_verdicts_are_shown_and_nothing_is_written(call, program):
    done = call("train.py", "--verify")

    assert done.exit_code == 0, done.output
    assert "E1     pass" in done.stdout
    assert "E3     not checked" in done.stdout
    assert "1 passed, 0 failed, 1 not checked" in done.stdout
    assert "original: 3 losses" in done.stderr
    assert call.path.read_text() == program
    (wish,) = call.asked
    assert (wish.steps, wish.processes, wish.limit_s, wish.arguments) == (20, (1, 2), 300.0, ())
    assert b"Accelerator" in wish.changed["train.py"]


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.FAIL])
@pytest.mark.parametrize("more", [(), ("--write",)])
def test_what_could_not_be_read_wins_over_the_verdicts(call, tmp_path, outcome, more):
    (tmp_path / "broken.py").write_text("def (\n")
    done = call("train.py", "broken.py", "--verify", *more, outcomes=(outcome,))
    assert "broken.py:1: syntax error" in done.stderr
    assert done.exit_code == 2


def test_a_failure_is_one(call):
    done = call("train.py", "--verify", outcomes=(Outcome.FAIL,))

    assert done.exit_code == 1
    assert "loss at step 3 (train.py:9): 1 in the original, 2 converted, a difference of 1" in " ".join(
        done.stdout.split()
    )


def test_write_writes_only_what_has_not_failed(call, program):
    done = call("train.py", "--verify", "--write", outcomes=(Outcome.FAIL,))
    assert (done.exit_code, call.path.read_text()) == (1, program)
    assert "nothing was written" in done.stderr

    done = call("train.py", "--verify", "--write")
    assert done.exit_code == 0, done.output
    assert call.path.read_bytes() == call.asked[-1].changed["train.py"]


def test_options_and_arguments_of_the_script(call):
    words = "--verify --steps 7 --processes 2,1,2 --time-limit 9 -- --epochs 3 --verify data"
    assert call("train.py", *words.split()).exit_code == 0
    (wish,) = call.asked
    assert (wish.steps, wish.processes, wish.limit_s) == (7, (1, 2), 9.0)
    assert wish.arguments == ("--epochs", "3", "--verify", "data")


def test_json_holds_everything(call, tmp_path):
    call("train.py", "--verify", "--verify-json", "out.json", outcomes=(Outcome.PASS, Outcome.FAIL))
    document = json.loads((tmp_path / "out.json").read_text())

    assert (document["schema"], document["exit_status"], document["steps"]) == (1, 1, 20)
    first, second = document["verdicts"]
    assert (first["contract"], first["outcome"], first["difference"]) == ("E1", "pass", None)
    assert second["difference"]["place"] == "train.py:9"
    assert document["runs"][0]["losses"] == [1.0, "nan"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--verify", "--check"], "Run migrate twice"),
        (["--verify", "--diff"], "Run migrate twice"),
        (["--steps", "3"], "Give --verify, too"),
        (["--processes", "1"], "Give --verify, too"),
        (["--verify-json", "x"], "Give --verify, too"),
        (["--verify", "--processes", "1,x"], "is not a list of numbers"),
        (["--verify", "--processes", "0"], "is not a list of numbers"),
        (["--verify", "--verify-json", "missing/x"], "missing is no folder. Make it first"),
        (["--verify", "--verify-json", "train.py"], "train.py is there already, and is no verification of migrate"),
    ],
)
def test_what_does_not_go_together(call, arguments, says):
    before = call.path.read_bytes()
    done = call("train.py", *arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert call.asked == []  # nothing was run
    assert call.path.read_bytes() == before


def test_a_script_must_come_first(call, tmp_path):
    done = call(".", "--verify")
    assert done.exit_code == 2
    assert "Name the script first" in done.stderr


def test_a_script_that_stays_is_not_run(call):
    call.path.write_text("print('nothing to convert')\n")
    done = call("train.py", "--verify")
    assert (done.exit_code, call.asked) == (0, [])
    assert "nothing to verify" in done.stderr


def test_without_the_flag_a_dash_dash_ends_the_options(call):
    call.path.rename("-train.py")
    assert "converts it" in call("--", "-train.py").stderr


@pytest.mark.long
def test_as_a_user_starts_it(tmp_path, program):
    """The whole way once, with the interpreter's own processes."""
    (tmp_path / "train.py").write_text(program)
    command = [sys.executable, "-m", "migrate", "train.py", "--verify", "--processes", "1", "--steps", "3"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "3 passed, 0 failed, 0 not checked" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
