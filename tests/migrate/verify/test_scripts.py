"""Scripts as they are: they write where they should not, go on for ever, fail, leave, take arguments, read much."""

import os
import sys

import pytest

from migrate.errors import UsageError, VerifyError
from migrate.verify import scratch
from migrate.verify.model import Outcome
from migrate.verify.wish import wish

pytestmark = pytest.mark.long

TRAIN = """\
import os, shutil, sys, time, torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
"""


def outcome(verification, code):
    return next(v for v in verification.verdicts if v.contract.code == code)


def test_an_original_that_differs_from_itself_proves_nothing(prove):
    found = prove(
        TRAIN
        + """
for i in range(9):
    step()
    if i == 4:
        torch.manual_seed(time.time_ns())
    optimizer.param_groups[0]["lr"] = torch.rand(1).item()
"""
    )

    assert outcome(found, "E1").outcome is Outcome.NOT_CHECKED
    assert "two runs of the original differ in learning rate at step 5" in outcome(found, "E1").message


def test_a_difference_before_that_is_one(prove):
    program = (
        TRAIN + "step()\nstep()\nlr = time.time()\nfor group in optimizer.param_groups: group['lr'] = lr\nstep()\n"
    )
    found = prove(program, program.replace("lr=0.1", "lr=0.2"))

    assert outcome(found, "E1").outcome is Outcome.FAIL
    assert outcome(found, "E1").difference.step == 0


def test_numbers_that_go_by_the_clock_do_not_count(prove):
    found = prove(TRAIN + "step()\nprint('at', time.time_ns(), 'took', time.perf_counter())\nprint('loss', 1.5)\n")

    assert outcome(found, "E1").outcome is Outcome.PASS
    assert "2 lines" in outcome(found, "E1").message


@pytest.mark.parametrize(
    "write",
    [
        "open('{path}', 'w').close()",
        "torch.save(model.state_dict(), '{path}')",
        "os.mkdir('{path}')",
        "os.rename('train.py', '{path}')",
    ],
)
def test_a_write_outside_is_refused_with_its_place(prove, tmp_path, write):
    path = tmp_path / "outside"
    with pytest.raises(VerifyError) as caught:
        prove(TRAIN + "step()\n" + write.format(path=path) + "\n")

    assert str(path) in str(caught.value)
    assert "train.py:8" in str(caught.value)
    assert "refused" in str(caught.value)
    assert not os.path.lexists(path)


def test_a_folder_outside_is_not_emptied(prove, tmp_path):
    path = tmp_path / "outside"
    path.mkdir()
    (path / "kept").write_text("mine")
    with pytest.raises(VerifyError) as caught:
        prove(TRAIN + f"step()\nshutil.rmtree('{path}')\n")

    assert f"the script writes {path}/kept at train.py:8" in str(caught.value)
    assert (path / "kept").read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's fence is Linux's")
def test_a_program_that_the_script_starts_cannot_write_outside_either(prove, tmp_path):
    path = tmp_path / "outside"
    found = prove(TRAIN + f"step()\nprint('status', os.system('touch inside && touch {path} 2>/dev/null'))\n")

    assert not path.exists()
    assert outcome(found, "E1").outcome is Outcome.PASS
    assert found.runs[0].files == ("inside",)


def test_a_loop_without_training_ends_with_the_time(prove):
    with pytest.raises(VerifyError, match=r"did not train within 2 s\. It stood at train\.py:7") as caught:
        prove(TRAIN + "while True: time.sleep(0.01)\n", limit_s=2.0)

    assert "--time-limit" in caught.value.way_out


def test_training_without_an_end_ends_after_the_steps(prove):
    found = prove(TRAIN + "while True:\n    try: step()\n    except BaseException: pass\n", steps=5)

    assert found.exit_status == 0
    assert found.runs[0].end == "was ended after the steps asked for"
    assert len(found.runs[0].rates) == 5


def test_a_script_that_hangs_after_training_is_compared_as_far_as_it_came(prove):
    found = prove(TRAIN + "step()\nwhile True: time.sleep(0.01)\n", limit_s=2.0)

    assert "1 loss, 1 optimizer step; the run 'original' was cut after" in outcome(found, "E1").message
    assert outcome(found, "E1").outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("raise KeyError('lost')", "KeyError: 'lost' at train.py:7"),
        ("sys.exit('no data')", "sys.exit(no data)"),
        ("sys.stderr.write('usage: x\\n'); sys.exit(2)", "sys.exit(2); its last words: usage: x"),
        ("print('done')", "ended by itself without a backward"),
    ],
)
def test_a_script_that_does_not_train_cannot_be_verified(prove, end, says):
    with pytest.raises(VerifyError) as caught:
        prove(TRAIN + end + "\n")

    assert says in str(caught.value)
    assert "after --" in caught.value.way_out


def test_both_may_leave_in_the_same_way(prove):
    program = TRAIN + "step()\nsys.exit(3)\n"
    found = prove(program)
    assert "sys.exit(3)" in outcome(found, "runs").message
    assert outcome(found, "runs").outcome is Outcome.PASS

    found = prove(program, program.replace("(3)", "(4)"))
    assert outcome(found, "runs").outcome is Outcome.FAIL


WITHOUT_A_COPY = """
model = torch.nn.utils.spectral_norm(model)
step()
torch.save({state}, "model.pt")
"""


@pytest.mark.parametrize(
    ("state", "loads"), [("model.state_dict()", True), ("dict(model.state_dict(), extra=1.0)", False)]
)
def test_a_checkpoint_is_loaded_into_a_model_that_has_no_copy(prove, state, loads):
    program = TRAIN + WITHOUT_A_COPY
    found = outcome(prove(program.format(state="model.state_dict()"), program.format(state=state)), "E6")

    assert (found.outcome is Outcome.PASS) == loads
    assert "deepcopy" not in found.message


IN_A_WRAPPER = """
model = {made}
for _ in range(4): step()
torch.save({{"epoch": 1, "state": {state}}}, "model.pt")
"""


@pytest.mark.parametrize(
    ("made", "state", "loads"),
    [
        ("model", "model.state_dict()", True),
        ("torch.nn.DataParallel(model)", "model.state_dict()", True),
        ("model", "{f'module.{k}': v for k, v in model.state_dict().items()}", False),
    ],
)
def test_a_checkpoint_of_a_model_in_data_parallel_may_lose_the_prefix(prove, made, state, loads):
    original = TRAIN + IN_A_WRAPPER.format(made="torch.nn.DataParallel(model)", state="model.state_dict()")
    found = prove(original, TRAIN + IN_A_WRAPPER.format(made=made, state=state))

    assert (outcome(found, "E6").outcome is Outcome.PASS) == loads
    assert (outcome(found, "E1").outcome is Outcome.PASS) == loads
    assert ("without the `module.` of the wrapper" in outcome(found, "E6").message) == loads


COPIED = """
import shutil
model = torch.nn.DataParallel(model)
for _ in range(2): step()
torch.save({"state": model.state_dict()}, "last.pt")
shutil.copyfile("last.pt", "best.pt")
for _ in range(2): step()
torch.save({"state": model.state_dict()}, "last.pt")
"""


@pytest.mark.parametrize(("copied", "holds"), [('"last.pt", "best.pt"', True), ('"train.py", "best.pt"', False)])
def test_a_copy_of_a_checkpoint_is_what_was_saved_then(prove, copied, holds):
    converted = COPIED.replace("torch.nn.DataParallel(model)", "model").replace('"last.pt", "best.pt"', copied)
    found = outcome(prove(TRAIN + COPIED, TRAIN + converted), "E1")

    assert (found.outcome is Outcome.PASS) == holds


def test_arguments_reach_the_script(prove):
    found = prove(TRAIN + "for _ in range(int(sys.argv[2])): step()\n", arguments=("--epochs", "3"))

    assert len(found.runs[0].losses) == 3
    assert found.arguments == ("--epochs", "3")


def test_large_files_are_read_where_they_lie_and_replaced_in_the_copy(prove, monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "LARGE_BYTES", 10)
    monkeypatch.setattr(scratch, "MANY_FILES", 2)
    data = prove.folder / "data"
    data.mkdir()
    for name in "abc":
        (data / name).write_text(name)
    (prove.folder / "weights").write_text("x" * 20)
    (prove.folder / "log").write_text("before\n" * 3)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("far away")
    (prove.folder / "link").symlink_to(elsewhere)
    found = prove(
        TRAIN
        + """
step()
print(len(os.listdir("data")), os.path.islink("data"), open("weights").read(), open("link").read())
open("weights", "w").write("new")
open("log", "a").write("after")
print(len(open("log").read()))
"""
    )

    assert outcome(found, "E1").outcome is Outcome.PASS
    assert found.runs[0].files == ("log", "weights")
    assert (prove.folder / "weights").read_text() == "x" * 20
    assert (prove.folder / "log").read_text() == "before\n" * 3
    assert sorted(path.name for path in prove.folder.iterdir()) == ["data", "link", "log", "train.py", "weights"]


@pytest.fixture
def above(prove):
    """The folder above that of the program, the top of its project, with data and a module in it."""
    top = prove.folder.parent
    for folder in (".git", "data"):
        (top / folder).mkdir()
    (top / "data" / "names").write_text("names")
    (top / "shared.py").write_text("NUMBER = 17\n")
    return top


def test_what_lies_above_the_folder_in_its_project_is_found(prove, above):
    found = prove(
        TRAIN
        + """
step()
sys.path.append("..")
import shared
print(open("../data/names").read(), shared.NUMBER, os.path.exists("../.git"))
"""
    )

    assert outcome(found, "E1").outcome is Outcome.PASS
    assert found.runs[0].files == ()
    assert {path.name for path in above.iterdir()} == {".git", "data", "project", "shared.py"}


@pytest.mark.parametrize("path", ["../data/new", "../new"])
def test_what_lies_above_the_folder_is_not_written(prove, above, path):
    with pytest.raises(VerifyError, match=r"new at train\.py:8, which is outside of its folder"):
        prove(TRAIN + f"step()\nopen({path!r}, 'w')\n")

    assert not list(above.rglob("new"))


def test_a_copy_lies_as_deep_as_the_folder(tmp_path):
    folder = tmp_path / "project" / "all" / "one"
    for each in (folder, tmp_path / "project" / ".git", tmp_path / "project" / "data", tmp_path / "beside"):
        each.mkdir(parents=True)
    copy = scratch.place_for(folder, tmp_path / "work")

    assert copy == tmp_path / "work" / "project" / "all" / "one"
    assert (copy / "../../data").resolve() == tmp_path / "project" / "data"
    assert not (copy / "../../../beside").exists()
    assert scratch.place_for(tmp_path / "beside", tmp_path / "work") == tmp_path / "work" / "beside"


def test_a_folder_of_data_is_not_written(prove, monkeypatch):
    monkeypatch.setattr(scratch, "MANY_FILES", 2)
    data = prove.folder / "data"
    data.mkdir()
    for name in "abc":
        (data / name).write_text(name)
    with pytest.raises(VerifyError, match=r"data/new at train\.py:8"):
        prove(TRAIN + "step()\nopen('data/new', 'w')\n")

    assert not (data / "new").exists()


def test_what_is_no_script_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").touch()
    for name in ("a.txt", "missing.py", "missing.ipynb"):
        with pytest.raises(UsageError, match="is neither a Python script nor a notebook"):
            wish(name, {})


def test_a_folder_that_is_no_project_is_refused(prove, monkeypatch):
    monkeypatch.setattr(scratch, "MOST_ENTRIES", 3)
    for number in range(5):
        (prove.folder / str(number)).touch()
    with pytest.raises(UsageError, match="more than 3 files, or"):
        prove(TRAIN + "step()\n")
