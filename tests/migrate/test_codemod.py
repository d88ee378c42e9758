"""The conversion as a command of `python -m libcst.tool codemod`."""

import os
import subprocess
import sys
from pathlib import Path

import libcst
import pytest
from libcst.codemod import CodemodContext

from migrate.codemod import ConvertCommand
from migrate.options import Options
from migrate.pipeline import run_text

ROOT = Path(__file__).resolve().parents[2]
BEFORE = (ROOT / "fixtures/classifier/before.py").read_bytes()
AFTER = (ROOT / "fixtures/classifier/after.py").read_bytes()
LEFT = (ROOT / "fixtures/given-model-again/before.py").read_bytes()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def transformed(content, **settings):
    context = CodemodContext()
    return ConvertCommand(context, **settings).transform_module(libcst.parse_module(content)).bytes, context.warnings


def test_it_makes_what_migrate_makes():
    assert transformed(BEFORE) == (AFTER, [])
    assert b"from accelerate import Accelerator" in transformed(BEFORE, target="accelerate")[0]
    assert transformed(AFTER) == (AFTER, [])


def test_what_stays_is_a_warning():
    content, (why, loop) = transformed(LEFT)
    assert content == LEFT
    assert loop.startswith("11:9 MIG001 ")
    assert why.startswith("7:26 MIG104 ")


def test_settings_count_as_for_migrate():
    Path("pyproject.toml").write_text("[tool.migrate]\ntarget = 'accelerate'\n", encoding="utf-8")
    assert b"from accelerate import Accelerator" in transformed(BEFORE)[0]
    assert b"from runtime import Accelerator" in transformed(BEFORE, target="runtime")[0]
    assert transformed(b"# migrate: skip-file\n" + BEFORE)[0] == b"# migrate: skip-file\n" + BEFORE


def test_excluded_text_stays():
    Path("pyproject.toml").write_text("[tool.migrate]\nexclude = ['old']\nforce-exclude = true\n", encoding="utf-8")
    assert not run_text(BEFORE, "old/train.py", Options()).changes
    assert run_text(BEFORE, "new/train.py", Options()).changes


def test_from_the_command_line():
    Path("train.py").write_bytes(BEFORE)
    command = [sys.executable, "-m", "libcst.tool", "codemod", "--no-format", "-j1", "-x"]
    done = subprocess.run(
        [*command, "migrate.codemod.ConvertCommand", "--hide-progress", "train.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path("train.py").read_bytes() == AFTER
