"""Copies of a folder to run in."""

import os
import shutil

import pytest

from migrate.verify import scratch


@pytest.fixture
def locked(monkeypatch):
    """Files and folders of this name may not be read, whoever runs the tests."""
    may, copy, scan = os.access, shutil.copy2, os.scandir

    def refuse(path):
        if "locked" in os.path.basename(path):
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(scratch.os, "access", lambda path, mode: "locked" not in str(path) and may(path, mode))
    monkeypatch.setattr(scratch.shutil, "copy2", lambda one, other: refuse(one) or copy(one, other))
    monkeypatch.setattr(scratch.os, "scandir", lambda path: refuse(path) or scan(path))


def test_what_may_not_be_read_stays_where_it_is(tmp_path, locked):
    folder = tmp_path / "folder"
    for name in ("train.py", "locked.db", "locked/a.py", "data/b.csv"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    copy = tmp_path / "copy"
    before = scratch.Scratch(folder, {}).make(copy, converted=False)
    assert (copy / "locked.db").readlink() == folder / "locked.db"
    assert (copy / "locked").readlink() == folder / "locked"
    assert not (copy / "train.py").is_symlink()
    assert (copy / "data" / "b.csv").read_text() == "data/b.csv"
    assert scratch.written(copy, before) == {}


def test_a_source_that_a_program_keeps_beside_its_results_is_a_copy_of_it(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, text in (("train.py", "print(1)"), ("data.csv", "1,2")):
        (folder / name).write_text(text)
    copy = tmp_path / "copy"
    before = scratch.Scratch(folder, {}).make(copy, converted=False)
    (copy / "runs").mkdir()
    kept = ("train.py", "print(1)"), ("train.py.backup", "print(1)"), ("made.py", "print(2)"), ("data.csv", "1,2")
    for name, text in kept:
        (copy / "runs" / name).write_text(text)

    found = scratch.written(copy, before)

    assert found["runs/train.py"] == found["runs/train.py.backup"] == "a copy of train.py"
    assert len(found["runs/made.py"]) == len(found["runs/data.csv"]) == 64
