"""`--report`: where the page is written, what it is never written over, and what a run does beside it."""

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrate.cli import app
from migrate.errors import UsageError, WriteError
from migrate.report.html import is_ours
from migrate.source import document

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader(torch.ones(8, 2), batch_size=2)
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    model(x).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    return tmp_path


def migrate(*arguments, **kwargs):
    return CliRunner().invoke(app, list(arguments), **kwargs)


@pytest.mark.parametrize("mode", [(), ("--check",), ("--diff",), ("--write",)])
def test_each_mode_writes_the_page_and_says_where(here, mode):
    without = migrate("train.py", *mode)
    Path("train.py").write_text(SCRIPT)
    done = migrate("train.py", *mode, "--report", "out.html")
    assert done.exit_code == without.exit_code
    assert done.stdout == without.stdout
    assert done.stderr.replace(f"The report is in {here / 'out.html'}\n", "").split() == without.stderr.split()
    assert f"The report is in {here / 'out.html'}\n" in done.stderr
    source = Path("out.html").read_text()
    assert "accelerator" in source
    assert 'class="map"' in source
    assert ("have been converted" in source) == (mode == ("--write",))
    assert (Path("train.py").read_text() == SCRIPT) == (mode != ("--write",))
    assert sorted(os.listdir()) == ["out.html", "train.py"]


def test_quiet_says_nothing(here):
    done = migrate("train.py", "--report", "out.html", "--quiet")
    assert done.stderr == ""
    assert Path("out.html").exists()


def test_standard_input(here):
    done = migrate("-", "--report", "out.html", input=SCRIPT)
    assert "accelerator" in done.stdout
    assert "&lt;stdin&gt;" in Path("out.html").read_text()


def test_an_earlier_report_is_replaced_and_keeps_its_permissions(here):
    migrate("train.py", "--report", "out.html")
    Path("out.html").chmod(0o640)
    Path("link.html").symlink_to("out.html")
    Path("train.py").write_text(SCRIPT.replace("lr=0.1", "lr=0.25"))
    assert migrate("train.py", "--report", "link.html").exit_code == 1
    assert "lr=" in Path("out.html").read_text()
    assert "0.25" in Path("out.html").read_text()
    assert Path("link.html").is_symlink()
    assert Path("out.html").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("train.py", "is no report of migrate"),
        ("./train.py", "is no report of migrate"),
        ("link.py", "is no report of migrate"),
        ("notes.md", "is no report of migrate"),
        ("empty.py", "is no report of migrate"),
        ("folder", "is a folder"),
        ("nowhere/out.html", "is no folder"),
        ("-", "the report is a file"),
    ],
)
def test_nothing_is_written_over_anything_else(here, path, says):
    Path("notes.md").write_text("mine")
    Path("empty.py").touch()
    Path("folder").mkdir()
    Path("link.py").hardlink_to("train.py")
    before = {name: Path(name).read_bytes() for name in os.listdir() if Path(name).is_file()}
    done = migrate("train.py", "--write", "--report", path)
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stdout == ""
    assert {name: Path(name).read_bytes() for name in os.listdir() if Path(name).is_file()} == before


def test_an_empty_file_may_be_filled(here):
    Path("out.html").touch()
    assert migrate("train.py", "--report", "out.html").exit_code == 1
    assert is_ours(Path("out.html").read_bytes())


PAGE = document.Kind("report", "report.html", lambda _: True)


def test_an_input_is_never_replaced_whatever_it_holds(tmp_path):
    file = tmp_path / "page.html"
    file.write_text("ours")
    other = tmp_path / "other"
    other.hardlink_to(file)
    document.check(str(file), PAGE)
    with pytest.raises(UsageError, match="one of the files that are read"):
        document.check(str(file), PAGE, [tmp_path / "gone", other])


@pytest.mark.skipif(sys.platform == "win32", reason="there is no /dev/null")
def test_what_is_no_file_is_left(here):
    assert "no ordinary file" in migrate("train.py", "--report", os.devnull).stderr


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    file = tmp_path / "out.html"
    file.write_text("before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WriteError, match="no space left on device"):
        document.write(str(file), b"after", PAGE)
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.html"]


def test_a_failure_after_the_conversion_is_told_and_the_conversion_stands(here, monkeypatch):
    def fail(path, content, kind):
        raise WriteError("the report cannot be written: no space left", "Name another file.", path=path)

    monkeypatch.setattr(document, "write", fail)
    done = migrate("train.py", "--write", "--report", "out.html")
    assert done.exit_code == 2
    assert "out.html: the report cannot be written: no space left. Name another file." in done.stderr
    assert "1 file converted" in done.stderr
    assert "accelerator" in Path("train.py").read_text()


def test_a_file_that_does_not_parse_is_in_the_page(here):
    Path("broken.py").write_text("import torch\ndef (\n")
    done = migrate(".", "--report", "out.html")
    assert done.exit_code == 2
    assert "broken.py" in Path("out.html").read_text()
