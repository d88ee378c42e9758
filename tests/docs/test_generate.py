"""docs/generate.py: what is committed is current, and what is not is found."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "generate.py"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("docs_generate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def written(generate, tmp_path):
    """A folder with a README and everything that is generated."""
    (tmp_path / "README.md").write_text("# Title\n\n<!-- rules -->\nold\n<!-- /rules -->\n\nEnd.\n")
    assert generate.main([], tmp_path) == 0
    return tmp_path


def test_the_committed_pages_are_current():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_left_to_do_after_writing(generate, written, capsys):
    assert generate.main(["--check"], written) == 0
    assert generate.main([], written) == 0
    assert "written" not in capsys.readouterr().out.partition("README.md written")[2]


def test_only_what_is_between_the_markers_changes(written):
    text = (written / "README.md").read_text()

    assert text.startswith("# Title\n\n<!-- rules -->\n| code |")
    assert text.endswith("|\n<!-- /rules -->\n\nEnd.\n")
    assert "old" not in text


CHANGES = {
    "changed": lambda folder: (folder / "docs/rules/MIG105.md").write_text("# something else\n"),
    "missing": lambda folder: (folder / "docs/rules/MIG105.md").unlink(),
    "too many": lambda folder: (folder / "docs/rules/MIG777.md").write_text("# gone\n"),
    "the table": lambda folder: (folder / "README.md").write_text("<!-- rules --><!-- /rules -->"),
    "the index": lambda folder: (folder / "docs/rules/README.md").write_text(""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_current_is_found_and_mended(generate, written, capsys, name):
    CHANGES[name](written)
    capsys.readouterr()

    assert generate.main(["--check"], written) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert generate.main([], written) == 0
    assert generate.main(["--check"], written) == 0


def test_without_a_readme_it_says_so_and_goes_on(generate, tmp_path, capsys):
    assert generate.main([], tmp_path) == 0

    assert "README.md does not exist" in capsys.readouterr().err
    assert (tmp_path / "docs/rules/MIG105.md").is_file()


def test_a_readme_without_markers_is_not_touched(generate, tmp_path, capsys):
    (tmp_path / "README.md").write_text("# Title\n")
    assert generate.main([], tmp_path) == 0

    assert "<!-- rules -->" in capsys.readouterr().err
    assert (tmp_path / "README.md").read_text() == "# Title\n"


def test_every_code_has_a_page_that_the_index_links(written):
    from migrate.rules import REASONS, RULES

    codes = {each.code for each in (*RULES, *REASONS)}
    folder = written / "docs" / "rules"
    assert {path.stem for path in folder.glob("MIG*.md")} == codes
    assert set(re.findall(r"\]\((MIG\d+)\.md\)", (folder / "README.md").read_text())) == codes
    for path in folder.glob("MIG*.md"):
        links = re.findall(r"\]\(([^)]+)\)", path.read_text())
        assert all((folder / link).is_file() for link in links)


def test_a_page_holds_the_whole_documentation(generate):
    for each in generate.EVERY:
        text = re.sub(r"\\([*_<>\\])", r"\1", generate.page(each)).lower()
        words = each.documentation.partition(": ")[2].lower().split()
        assert [word for word in words if word not in text] == []


def test_prose_means_what_it_says(generate):
    assert generate.prose("an __init__ of use_cuda with * or `**x` <y>") == (
        r"an \_\_init\_\_ of use_cuda with \* or `**x` \<y\>"
    )


@pytest.mark.parametrize("code", ["MIG001", "MIG105", "MIG109", "MIG902"])
def test_a_page_says_what_kind_of_code_it_is(generate, code):
    (each,) = (each for each in generate.EVERY if each.code == code)
    said = {
        "MIG001": "\nFinding: ",
        "MIG105": "\nEdit: every conversion needs it",
        "MIG109": "\nOptional edit: `--ignore MIG109`",
        "MIG902": "\nReason: ",
    }
    assert said[code] in generate.page(each)


def test_the_script_runs_from_anywhere(tmp_path):
    command = [sys.executable, str(SCRIPT), "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
