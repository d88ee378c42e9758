"""Notebooks under `--verify`: their cells are run as a script, before and after."""

import json

import pytest
from typer.testing import CliRunner

from migrate import pipeline
from migrate.cli import app
from migrate.options import Options
from migrate.verify.model import Contract, Outcome
from migrate.verify.recorder.cells import script
from migrate.verify.verify import verify
from migrate.verify.wish import wish


def notebook(*sources):
    cells = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
        for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def run(*sources):
    source, names = script(notebook(*sources), "a.ipynb")
    exec(compile(source, "a.ipynb", "exec", dont_inherit=True), names)  # noqa: S102
    return names


def test_cells_are_run_one_after_the_other():
    names = run("from __future__ import annotations\n%matplotlib inline\nx = 1", "!ls\ny = x + 1\ndisplay(y)")

    assert names["y"] == 2


def test_what_a_magic_runs():
    names = run("%time x = 1\n%timeit y = 2\nx", "%%time\nz = 3", "%%bash\nrm -r /")

    assert (names["x"], names["z"]) == (1, 3)
    assert "y" not in names


def test_what_a_shell_line_gives_is_not_known():
    with pytest.raises(RuntimeError, match="takes what IPython gives"):
        run("files = !ls")


def test_a_notebook_is_verified(zygote, tmp_path, monkeypatch, program):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    head, tail = program.split("\nfor epoch", 1)
    (tmp_path / "train.ipynb").write_bytes(notebook("%matplotlib inline\n" + head, "for epoch" + tail))
    report = pipeline.run(["train.ipynb"], Options())
    changes = {change.path: change.new for change in report.changes}
    found = verify(wish("train.ipynb", changes, steps=12, limit_s=60.0), start=zygote.run)
    outcomes = {(v.contract, v.processes): v.outcome for v in found.verdicts}

    assert found.script == "train.ipynb"
    assert not found.failed
    for contract, processes in ((Contract.E1, 1), (Contract.E2, 2), (Contract.E3, 2), (Contract.E4, 2)):
        assert outcomes[contract, processes] is Outcome.PASS
    assert (tmp_path / "train.ipynb").read_bytes() not in changes.values()


def test_a_notebook_that_starts_its_processes_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.ipynb").write_bytes(notebook("x = 1"))
    done = CliRunner().invoke(app, ["train.ipynb", "--verify", "--notebook-launcher"])

    assert done.exit_code == 2
    assert "--verify starts the processes itself" in done.output
