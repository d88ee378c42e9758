"""What is asked before files are written (`--interactive`), and the way back (`--undo-patch`)."""

import builtins
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrate.cli import app

ROOT = Path(__file__).resolve().parents[2]
GIT = shutil.which("git") or "git"
PATCH = shutil.which("patch") or "patch"
PROGRAM = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
ENGINE = """\
def fit(model, optimizer, loader, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
"""
MAIN = PROGRAM.partition("for x")[0] + "from engine import fit\n\nfit(model, optimizer, loader, nn.MSELoss())\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))


def write(**files):
    for name, content in files.items():
        Path(f"{name}.py").write_bytes(content.encode() if isinstance(content, str) else content)


def migrate(*arguments, answers=""):
    return CliRunner().invoke(app, list(map(str, arguments)), input=answers, prog_name="migrate")


def converted(*names):
    return [name for name in names if b"accelerator" in Path(f"{name}.py").read_bytes()]


@pytest.mark.parametrize(
    ("answers", "wanted", "status"),
    [
        ("y\nn\ny\n", ["a", "c"], 1),
        ("n\na\n", ["b", "c"], 1),
        ("a\n", ["a", "b", "c"], 0),
        ("y\nq\n", ["a"], 1),
        ("y\n", ["a"], 1),  # the end of the answers
        ("", [], 1),
        ("\nwhat\nYes\nn\nn\n", ["a"], 1),
        ("abort\nyolo\nnever\nno\nall\n", ["b", "c"], 1),
    ],
)
def test_answers(answers, wanted, status):
    write(a=PROGRAM, b=PROGRAM, c=PROGRAM)
    result = migrate(".", "--interactive", answers=answers)
    assert converted("a", "b", "c") == wanted
    assert result.exit_code == status
    if wanted:
        assert f"{len(wanted)} file{'s' if len(wanted) > 1 else ''} converted" in result.stderr


def test_questions_show_the_diff_and_the_way_out():
    write(a=PROGRAM, b=PROGRAM)
    result = migrate(".", "-i", answers="?\nn\nn\n")
    assert "+    accelerator.backward(loss)" in result.stdout
    assert "(1/2) Convert a.py [y,n,a,q,?]? y - convert this program\n" in result.stdout
    assert result.stdout.count("(2/2) Convert b.py") == 1
    assert "2 loops not converted" in result.stderr


def test_files_of_one_program_are_one_question():
    write(engine=ENGINE, main=MAIN, other=PROGRAM)
    result = migrate(".", "-i", answers="n\ny\n")
    assert "Convert these 2 files (engine.py, main.py)" in result.stdout
    assert converted("engine", "main", "other") == ["other"]
    assert migrate("main.py", "engine.py", "-i", answers="y\n").exit_code == 0
    assert converted("engine", "main") == ["engine", "main"]


def test_nothing_to_ask():
    write(a="x = 1\n")
    result = migrate("a.py", "-i")
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize("arguments", [["--check"], ["--diff"], ["--output-format", "json"]])
def test_questions_exclude_other_modes(arguments):
    write(a=PROGRAM)
    assert migrate("a.py", "-i", *arguments).exit_code == 2
    assert not converted("a")


def variants(text):
    content = text.encode()
    return {
        "plain": content,
        "crlf": content.replace(b"\n", b"\r\n"),
        "no_end": content.rstrip(b"\n"),
        "bom": b"\xef\xbb\xbf" + content,
        "feed": content.replace(b"\nfor x", b"\n\x0c\nfor x"),
        "odd name é": content,
    }


@pytest.mark.parametrize("command", [[GIT, "apply"], [PATCH, "-p1", "--binary", "-s", "-i"]], ids=["git", "patch"])
def test_the_way_back_gives_the_old_bytes(command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    old = variants(PROGRAM)
    write(**old)
    assert migrate(".", "--write", "--undo-patch", "back.patch").exit_code == 0
    assert converted(*old) == list(old)
    subprocess.run([*command, "back.patch"], check=True)
    assert {name: Path(f"{name}.py").read_bytes() for name in old} == old


def test_the_way_back_from_what_was_accepted():
    write(a=PROGRAM, b=PROGRAM)
    assert migrate(".", "-i", "--undo-patch", "back.patch", answers="n\ny\n").exit_code == 1
    patch = Path("back.patch").read_text(encoding="utf-8")
    assert "a/b.py" in patch
    assert "a/a.py" not in patch


def test_the_way_back_overwrites_nothing():
    write(a=PROGRAM)
    Path("back.patch").write_text("mine", encoding="utf-8")
    for name in ("back.patch", "missing/back.patch"):
        result = migrate("a.py", "--write", "--undo-patch", name)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert Path("back.patch").read_text(encoding="utf-8") == "mine"
    assert not converted("a")
    assert migrate("a.py", "--check", "--undo-patch", "b.patch").exit_code == 2


def test_there_is_no_way_back_from_nothing(monkeypatch):
    write(a="x = 1\n", b=PROGRAM)
    assert migrate("a.py", "--write", "--undo-patch", "back.patch").exit_code == 0
    assert not Path("back.patch").exists()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert migrate("b.py", "--write", "--undo-patch", "back.patch").exit_code == 2
    assert not Path("back.patch").exists()
    assert not converted("b")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_half_a_way_back_is_taken_away(monkeypatch):
    write(a=PROGRAM)
    real = builtins.open

    def full(path, mode="r", **options):
        stream = real(path, mode, **options)
        if mode == "xb":
            os.dup2(os.open("/dev/full", os.O_WRONLY), stream.fileno())
        return stream

    monkeypatch.setattr(builtins, "open", full)
    result = migrate("a.py", "--write", "--undo-patch", "back.patch")
    assert (result.exit_code, "the undo patch cannot be written" in result.stderr) == (2, True)
    assert not Path("back.patch").exists()
    assert not converted("a")
