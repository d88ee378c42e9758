"""Notebooks through the whole of it: what is written, shown and said."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrate import cli
from migrate.engine import ENGINE
from migrate.options import Mode, Options, question
from migrate.pipeline import explain_role, run, run_text
from migrate.report import text
from migrate.report.model import Kind

GIT = shutil.which("git")


def _text(source):
    return {"cell_type": "markdown", "metadata": {}, "source": [source]}


def _sources(content):
    return ["".join(cell["source"]) for cell in json.loads(content)["cells"]]


def _converted(content):
    (change,) = run_text(content, "train.ipynb", Options()).changes
    return change


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_notebook_is_converted_cell_by_cell(book, training):
    change = _converted(book(*training))

    settings, made, loop = _sources(change.new)
    assert "from runtime import Accelerator" in settings
    assert made.endswith("\n\nloader, model, optimizer = accelerator.prepare(loader, model, optimizer)")
    assert "accelerator.backward(loss)" in loop
    assert ".to(device)" not in made + loop


def test_nothing_but_the_sources_of_changed_cells_is_another(book, training):
    text = {"cell_type": "markdown", "metadata": {"tags": ["a"]}, "source": "# Ünïcode", "id": "x1"}
    shown = {"output_type": "stream", "name": "stdout", "text": ["loss.backward()\n"]}
    plain = {
        "cell_type": "code",
        "execution_count": 7,
        "metadata": {"x": 1.50},
        "outputs": [shown],
        "source": ["a = 1"],
    }
    content = book(text, *training, plain, "!ls")

    change = _converted(content)

    old, new = json.loads(content), json.loads(change.new)
    assert [cell.number for cell in change.cells] == [2, 3, 4]
    for number, cell in enumerate(old["cells"], 1):
        other = new["cells"][number - 1]
        assert number in {2, 3, 4} or cell == other
        assert {key: value for key, value in cell.items() if key != "source"} == {
            key: value for key, value in other.items() if key != "source"
        }
    assert change.new.endswith(b"}\n")
    assert json.dumps(new, indent=1, ensure_ascii=False).encode() + b"\n" == change.new


def test_magics_and_shell_lines_are_kept(book, training):
    settings, made, loop = training
    content = book(
        f"%matplotlib inline\n!pip install torch\n{settings}",
        f"{made}\nfiles = !ls",
        f"%%time\n{loop}",
        "%timeit sum(range(3))\nmodel?",
        "%%bash\nls -l",
    )

    sources = _sources(_converted(content).new)

    assert sources[0].startswith("%matplotlib inline\n!pip install torch\nimport torch\n")
    assert "files = !ls" in sources[1]
    assert sources[2].startswith("%%time\nfor epoch in range(2):\n")
    assert sources[3:] == ["%timeit sum(range(3))\nmodel?", "%%bash\nls -l"]
    assert not any("__migrate" in source for source in sources)


def test_training_on_a_line_of_its_own_time(book, training):
    settings, made, loop = training
    function = "def train():\n" + "\n".join(f"    {line}" for line in loop.splitlines())

    sources = _sources(_converted(book(settings, made, function, "%time train()")).new)

    assert "accelerator.backward(loss)" in sources[2]
    assert sources[3] == "%time train()"


def test_second_run_changes_nothing(book, training):
    change = _converted(book(*training))

    report = run_text(change.new, "train.ipynb", Options())

    assert (report.changes, report.of(Kind.LOOP), report.exit_status(Mode.CHECK)) == ((), (), 0)


def test_findings_name_the_cell(book, training):
    content = book("# a comment", *training)

    report = run_text(content, "train.ipynb", Options())

    (loop,) = report.of(Kind.LOOP)
    assert (loop.place, loop.cell, loop.line, loop.loop) == ("train.ipynb:cell 4:2:5", 4, 2, "train.ipynb:cell 4:2")
    assert "the loop at cell 4:2" in report.summaries[0].text
    assert "Linear, cell 3:2" in report.summaries[0].text


def test_a_number_of_loops_is_no_line(book, training):
    settings, made, loop = training

    report = run_text(book(settings, made, *[loop] * 6), "train.ipynb", Options())

    assert "in the loops at cell 3:2, cell 4:2, cell 5:2, cell 6:2 and 2 more" in report.summaries[0].text


def test_reason_names_the_cell(book, training):
    settings, made, loop = training
    content = book(settings, made, loop.replace("loss.backward()", "loss.backward(gradient=g)"))

    report = run_text(content, "train.ipynb", Options())

    assert report.changes == ()
    assert [(left.cell, left.line) for left in report.of(Kind.LEFT)] == [(3, 6)]


def test_cell_that_is_no_python_costs_the_notebook(book, training):
    report = run_text(book(*training, "x = = 1"), "train.ipynb", Options())

    assert [str(problem) for problem in report.problems] == [
        "train.ipynb:cell 4:1: syntax error: invalid syntax. Mend the cell, or leave the notebook out."
    ]
    assert report.exit_status(Mode.WRITE) == 2


def test_what_is_about_the_whole_notebook_stands_in_its_first_cell(here, book, training):
    """A bug of ours is told with the file's first line, which no cell has: between the texts of cells are borders."""

    def fails(project, options):
        raise ZeroDivisionError("oh")

    (here / "train.ipynb").write_bytes(book(_text("# A title"), *training))
    report = run(["."], Options(), engine=replace(ENGINE, plan=fails))

    (finding,) = report.findings
    assert (finding.code, finding.cell, finding.line) == ("MIG999", 2, 1)
    assert "import torch" in text.findings(report, [finding.kind], text.Style(), excerpts=True)


def test_unfinished_cell_where_nothing_trains_is_no_trouble(book):
    report = run_text(book("import torch", "x = = 1"), "train.ipynb", Options())

    assert (report.problems, report.exit_status(Mode.CHECK)) == ((), 0)


def test_order_of_the_last_run_is_told(book, training):
    content = json.loads(book(*training))
    for cell, count in zip(content["cells"], (1, 5, 3), strict=True):
        cell["execution_count"] = count

    (note,) = [
        f for f in run_text(json.dumps(content).encode(), "train.ipynb", Options()).findings if f.code == "MIG908"
    ]

    assert (note.cell, note.kind) == (3, Kind.NOTE)
    assert "run as [3], before cell 2, which is [5]" in note.message
    quiet = run_text(json.dumps(content).encode(), "train.ipynb", Options(ignore=("MIG908",)))
    assert not [f for f in quiet.findings if f.code == "MIG908"]


def test_folder_is_walked(here, book, training):
    (here / ".ipynb_checkpoints").mkdir()
    for name in ("train.ipynb", ".ipynb_checkpoints/train-checkpoint.ipynb"):
        (here / name).write_bytes(book(*training))
    (here / "plots.ipynb").write_bytes(b"{ this is not even JSON")
    (here / "stats.ipynb").write_bytes(book("library(torch)", language="R"))

    report = run(["."], Options(mode=Mode.WRITE))

    assert [change.path for change in report.changes] == ["train.ipynb"]
    assert (report.problems, report.remarks) == ((), ())
    assert b"accelerator" in (here / "train.ipynb").read_bytes()
    assert b"accelerator" not in (here / ".ipynb_checkpoints/train-checkpoint.ipynb").read_bytes()


def test_notebook_of_another_language_is_skipped(here, book):
    (here / "stats.ipynb").write_bytes(book("library(torch)", language="R"))

    report = run(["stats.ipynb"], Options())

    assert report.remarks == ("stats.ipynb: skipped, a notebook in r",)
    assert report.exit_status(Mode.CHECK) == 0


def test_notebook_imports_the_modules_beside_it(here, book, training):
    settings, made, loop = training
    (here / "data.py").write_text(settings)
    (here / "train.ipynb").write_bytes(book("import torch\nfrom data import loader", made, loop))

    report = run(["train.ipynb", "data.py"], Options())

    assert {finding.path: finding.converts for finding in report.of(Kind.LOOP)} == {"train.ipynb": True}


def test_function_that_a_notebook_uses_keeps_its_signature(here, book, training):
    settings, made, loop = training
    body = "\n".join(f"    {line}" for line in f"{made}\n{loop}".splitlines())
    (here / "train.py").write_text(f"{settings}\n\n\ndef train(device):\n{body}\n\n\ntrain('cpu')\n")
    (here / "use.ipynb").write_bytes(book("from train import train", "train('cuda')"))

    alone = run(["train.py"], Options())
    (here / "use.ipynb").unlink()

    assert not any(change.new for change in alone.changes if b"def train(accelerator" in change.new)


def test_diff_is_a_patch_of_the_file(here, book, training):
    path = here / "my train.ipynb"
    path.write_bytes(book(*training))
    subprocess.run([GIT, "init", "--quiet", "."], check=True)

    patch = CliRunner().invoke(cli.app, ["--diff", path.name]).stdout_bytes
    subprocess.run([GIT, "apply", "-"], input=patch, check=True)

    assert b'+    "    accelerator.print(f\\"epoch {epoch}\\")"\n' in patch
    assert run_text(path.read_bytes(), path.name, Options()).changes == ()


def test_preview_shows_the_code_of_each_cell(here, book, training):
    (here / "train.ipynb").write_bytes(book("# Title", *training))

    shown = CliRunner().invoke(cli.app, ["train.ipynb"])

    assert "--- a/train.ipynb:cell 4\t\n+++ b/train.ipynb:cell 4\t\n@@ " in shown.stdout
    assert "\n-        loss.backward()\n+        accelerator.backward(loss)\n" in shown.stdout
    assert "train.ipynb:cell 4:2:5 MIG001" in shown.stderr


def test_standard_input_is_a_notebook_by_its_name(book, training):
    content = book(*training)

    done = CliRunner().invoke(cli.app, ["-", "--stdin-filename", "train.ipynb"], input=content)

    assert done.stdout_bytes == _converted(content).new


def test_role_of_a_name_in_a_cell(here, book, training):
    (here / "train.ipynb").write_bytes(book("# Title", *training))

    told = explain_role(question("train.ipynb:cell 4:5:model"), [])

    assert "train.ipynb:cell 4:5: `model` is a model" in told
    assert "train.ipynb:cell 3:2: " in told


def test_roles_are_asked_of_code_cells(here, book, training):
    (here / "train.ipynb").write_bytes(book("# Title", *training))

    for asked in ("train.ipynb:9:1:model", "train.ipynb:cell 4:99:model"):
        assert "has no line" in CliRunner().invoke(cli.app, ["--explain-role", asked]).stderr


def test_words_that_are_not_there_are_not_looked_for(here, monkeypatch, book):
    """A notebook that trains nothing costs reading its bytes."""
    (here / "plots.ipynb").write_bytes(book("import pandas"))
    monkeypatch.setattr("migrate.source.notebook.notebook.parsed", None)

    assert run(["."], Options(mode=Mode.CHECK)).exit_status(Mode.CHECK) == 0
    assert Path("plots.ipynb").exists()


def _formatted(style):
    done = CliRunner().invoke(cli.app, ["train.ipynb", "--check", "--output-format", style])
    return done.stdout


def test_formats_for_files_name_the_line_of_the_file(here, book, training):
    path = here / "train.ipynb"
    path.write_bytes(book("# Title", *training))
    line = path.read_text().splitlines().index('    "    for x, y in loader:\\n",') + 1

    (result,) = json.loads(_formatted("sarif"))["runs"][0]["results"]
    (entry,) = json.loads(_formatted("gitlab"))
    (diagnostic,) = json.loads(_formatted("rdjson"))["diagnostics"]

    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == line
    assert entry["location"]["lines"]["begin"] == diagnostic["location"]["range"]["start"]["line"] == line
    assert f"line={line}," in _formatted("github")


def test_json_names_the_cell(here, book, training):
    (here / "train.ipynb").write_bytes(book("# Title", *training))

    (found,) = json.loads(_formatted("json"))["findings"]

    assert (found["cell"], found["location"]["row"]) == (4, 2)
    assert found["source"] == "    for x, y in loader:"


def test_check_shows_the_line_of_the_cell(here, book, training):
    (here / "train.ipynb").write_bytes(book("# Title", *training))

    assert "train.ipynb:cell 4:2:5 MIG001" in _formatted("text")
    assert "\n    2 |     for x, y in loader:\n" in _formatted("text")


@pytest.mark.parametrize("style", ["json", "sarif", "github", "gitlab", "rdjson"])
def test_broken_cell_is_named_in_every_format(here, book, training, style):
    (here / "train.ipynb").write_bytes(book(*training, "x = = 1"))

    shown = _formatted(style)

    assert ('"cell": 4' if style == "json" else "cell 4") in shown
    assert "invalid syntax" in shown
