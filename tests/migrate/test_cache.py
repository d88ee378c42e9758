"""Results that are kept are told again as long as they are right, and not a moment longer."""

import ast
import json
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from migrate import cache as module
from migrate import pipeline
from migrate.cli import main
from migrate.engine import ENGINE
from migrate.options import Mode, Options
from migrate.report.model import Report
from migrate.source.files import load
from migrate.source.project import Project

SCRIPT = """import torch

from data import loader
from engine import fit

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    fit(model, loader, optimizer)
"""
ENGINE_PY = """def fit(model, loader, optimizer):
    for (x,) in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
"""
DATA = """import torch

loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 2)), batch_size=4)
"""
OTHER = f"{DATA}\nmodel = torch.nn.Linear(2, 1)\nfor (x,) in loader:\n    model(x).mean().backward()\n"
ALONE = f"{DATA}{ENGINE_PY}{SCRIPT.partition('engine import fit')[2]}import data, engine\n"
CHECK = Options(mode=Mode.CHECK, cache=True)


class Watched:
    """The engine, which counts how often it is asked for a plan."""

    def __init__(self):
        self.plans = 0
        self.engine = replace(ENGINE, plan=self._plan)

    def _plan(self, project, options):
        self.plans += 1
        return ENGINE.plan(project, options)

    def run(self, *paths, options=CHECK):
        """The report, and how many plans were made for it."""
        before = self.plans
        return pipeline.run(paths or ["."], options, self.engine), self.plans - before


@pytest.fixture
def watched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write({"pyproject.toml": "", "train.py": SCRIPT, "engine.py": ENGINE_PY, "data.py": DATA, "other.py": OTHER})
    return Watched()


def write(files):
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def entries(folder=".migrate_cache"):
    return sorted(Path(folder).glob("*.json"))


def told(report):
    return report.findings, report.summaries, report.touched, [str(e) for e in report.problems], report.ignored


def test_what_was_found_is_told_again(watched):
    write({"broken.py": "import torch\nloss.backward(\n", "note.ipynb": "{}"})
    first, plans = watched.run()
    assert plans == 3  # two programs that have nothing to do with each other, and what does not parse
    assert first.findings
    again, plans = watched.run()
    assert plans == 0
    assert told(again) == told(first)
    assert again.problems
    text = Path("other.py").read_text()
    write({"other.py": f"{text}# more\n"})
    assert watched.run()[1] == 1  # of that program alone
    write({"other.py": text})
    assert watched.run()[1] == 1  # an entry holds one state


def test_where_nothing_has_changed_the_files_are_not_told_apart_again(watched):
    divided = []

    def parts(project):
        divided.append(project)
        return ENGINE.parts(project)

    def times(change=None):
        divided.clear()
        write(change or {})
        engine = replace(ENGINE, parts=parts)
        kept = pipeline.run(["."], CHECK, engine)
        assert told(kept) == told(pipeline.run(["."], Options(mode=Mode.CHECK)))
        return len(divided)

    write({"broken.py": "import torch\nloss.backward(\n", "plain.py": "import torch\n"})
    assert [times(), times(), times()] == [1, 0, 0]
    assert times({"plain.py": "import torch, train\n"}) == 1
    assert times({"broken.py": "import torch\n"}) == 1
    assert times({"new.py": "import other\n"}) == 1
    assert times({"data/__init__.py": DATA}) == 1  # a package comes before a module
    assert times() == 0


def test_answers_that_change_while_a_run_goes_on_are_not_kept(watched):
    project = Project(load(["."]).files)
    made = [Report()]
    for answer, is_found in (("False", False), ("True", True)):
        cache = module.Cache(Path("kept").absolute(), CHECK)
        place = str(Path("train.py").absolute())
        assert project.disk.exists(place)
        cache.keep_all(project, [project], made, [[("exists", place, answer)]])
        assert (cache.found_in_all(project) is not None) == is_found


@pytest.mark.parametrize(
    "change",
    [
        {"engine.py": ENGINE_PY.replace("zero_grad()", "zero_grad(True)")},
        {"train.py": SCRIPT.replace("0.1", "0.2")},
        {"data/__init__.py": DATA},  # a package comes before a module
        {"engine/__init__.py": ENGINE_PY},
        {"pyproject.toml": "[tool.migrate]\ntarget = 'accelerate'\n"},
        {"pyproject.toml": "[tool.migrate.known.makes]\n'lib.model' = 'model'\n"},
        {"pyproject.toml": "[tool.migrate.per-file-ignores]\n'engine.py' = ['MIG001']\n"},
    ],
    ids=str,
)
def test_a_result_ends_with_what_it_rests_on(watched, change):
    assert watched.run("train.py", "engine.py")[1] == 1
    assert watched.run("train.py", "engine.py")[1] == 0
    write(change)
    later, plans = watched.run("train.py", "engine.py")
    assert plans >= 1
    assert told(later) == told(pipeline.run(["train.py", "engine.py"], Options(mode=Mode.CHECK)))


def test_files_beside_that_use_what_is_named(watched):
    assert watched.run("train.py", "engine.py")[1] == 1
    write({"test.py": "from engine import fit\nfit(None, [], None)\n"})
    later, plans = watched.run("train.py", "engine.py")
    assert plans == 1
    assert told(later) == told(pipeline.run(["train.py", "engine.py"], Options(mode=Mode.CHECK)))
    Path("test.py").unlink()
    assert watched.run("train.py", "engine.py")[1] == 1


def test_which_other_files_are_named_counts_as_far_as_it_matters(watched):
    assert watched.run("train.py", "engine.py", "other.py")[1] == 2
    assert watched.run("train.py", "engine.py")[1] == 1  # other.py is now a file beside them
    write({"sub/far.py": OTHER})
    assert watched.run("other.py")[1] == 1
    assert watched.run("other.py")[1] == 0


def test_settings_python_and_place_count(watched, monkeypatch, tmp_path):
    assert watched.run("other.py")[1] == 1
    assert watched.run("other.py", options=replace(CHECK, ignore=("MIG001",)))[1] == 1
    assert watched.run("other.py", options=replace(CHECK, review=True))[1] == 1
    assert watched.run("other.py", options=replace(CHECK, mode=Mode.DIFF))[1] > 0
    assert watched.run("other.py", options=replace(CHECK, jobs=2))[1] == 0
    assert watched.run("./other.py")[1] == 0  # the same path
    assert watched.run(str(tmp_path / "other.py"))[1] == 1  # shown otherwise
    for name, value in (("sys.version", "3.99"), ("migrate.cache.__version__", "9"), ("migrate.cache._stamp", str)):
        with monkeypatch.context() as patch:
            patch.setattr(name, value)
            assert watched.run("other.py")[1] == 1
    assert watched.run("other.py")[1] == 0
    write({"sub/x.py": ""})
    monkeypatch.chdir("sub")
    assert watched.run("../other.py")[1] == 1


@pytest.mark.parametrize("shown", [Mode.PREVIEW, Mode.DIFF])
def test_what_was_shown_is_written_without_being_planned_again(watched, shown):
    plain = pipeline.run(["."], Options(mode=Mode.PREVIEW))
    assert len(plain.changes) == 2
    first, _ = watched.run(options=replace(CHECK, mode=shown))
    again, plans = watched.run(options=replace(CHECK, mode=Mode.WRITE))
    assert (plans, again.written) == (0, True)
    for report in (first, again):
        assert (told(report), report.changes) == (told(plain), plain.changes)
    for change in plain.changes:
        assert Path(change.path).read_bytes() == change.new
    assert watched.run(options=replace(CHECK, mode=Mode.WRITE))[1] > 0  # the files are others now


@pytest.mark.parametrize(
    "change",
    [
        {"train.py": SCRIPT.replace("0.1", "0.2")},
        {"engine.py": ENGINE_PY.replace("zero_grad()", "zero_grad(True)")},  # is not named
        {"data.py": f"{DATA}\nmore = 1\n"},
        {"beside.py": "from engine import fit\nfit(None, [], None)\n"},
        {"pyproject.toml": "[tool.migrate]\ntarget = 'accelerate'\n"},
        {"pyproject.toml": "[tool.migrate.known.makes]\n'lib.model' = 'model'\n"},
    ],
    ids=str,
)
def test_what_was_shown_of_another_program_is_not_written(watched, change):
    def made(options):
        shown = []
        pipeline.run(["train.py"], options, accept=lambda report: shown.append(report) or replace(report, changes=()))
        return [report.changes for report in shown]

    write({"train.py": ALONE})
    assert watched.run("train.py", options=replace(CHECK, mode=Mode.PREVIEW))[0].changes
    write(change)
    writes = replace(CHECK, mode=Mode.WRITE)
    assert watched.run("train.py", options=replace(writes, mode=Mode.DIFF))[1] > 0
    assert made(writes) == made(replace(writes, cache=False))


def test_other_options_write_something_else(watched):
    write({"other.py": ALONE})
    assert watched.run("other.py", options=replace(CHECK, mode=Mode.PREVIEW))[0].changes
    report, plans = watched.run("other.py", options=replace(CHECK, mode=Mode.WRITE, annotate=True))
    assert (plans > 0, report.written) == (True, True)


def test_a_damaged_change_is_not_written(watched):
    write({"other.py": ALONE})
    shown, _ = watched.run("other.py", options=replace(CHECK, mode=Mode.PREVIEW))
    assert shown.changes
    for entry in entries():
        content = entry.read_bytes().replace(b"accelerator.backward", b"accelerator.forward_")
        entry.write_bytes(content)
    damaged, plans = watched.run("other.py", options=replace(CHECK, mode=Mode.WRITE))
    assert (plans > 0, damaged.changes) == (True, shown.changes)


def test_changes_of_other_files_are_no_entry_of_ours(watched):
    write({"other.py": ALONE})
    watched.run("other.py", options=replace(CHECK, mode=Mode.PREVIEW))
    for entry in entries():
        content = entry.read_bytes().split(b"\n", 1)[1]
        entry.write_bytes(other_shape(content.replace(b'"changes":[["other.py"', b'"changes":[["train.py"')))
    assert watched.run("other.py", options=replace(CHECK, mode=Mode.WRITE))[1] > 0


def test_a_bug_of_ours_is_not_kept(watched):
    def fail(project, options):
        raise RuntimeError("once")

    report = pipeline.run(["other.py"], CHECK, replace(ENGINE, plan=fail))
    assert [finding.code for finding in report.findings] == ["MIG999"]
    report, plans = watched.run("other.py")
    assert (plans, "MIG999" in {finding.code for finding in report.findings}) == (1, False)


def other_shape(content):
    return module._digest(content).encode() + b"\n" + content


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"MIG001", b"MIG002"),
        lambda content: b"\xff" * 100,
        lambda content: other_shape(b"[]"),
        lambda content: other_shape(b"null"),
        lambda content: other_shape(b'{"contents": 1}'),
        lambda content: other_shape(
            json.dumps({**json.loads(content.split(b"\n", 1)[1]), "reports": [{"findings": [[1]]}]}).encode()
        ),
    ],
    ids="empty half other noise list null keys finding".split(),
)
def test_damaged_entries_are_as_if_they_were_not_there(watched, damage):
    first, _ = watched.run()
    for entry in entries():
        entry.write_bytes(damage(entry.read_bytes()))
    again, plans = watched.run()
    assert (plans, told(again)) == (2, told(first))
    assert watched.run()[1] == 0


def test_a_folder_that_cannot_be_made_is_no_error(watched):
    Path(".migrate_cache").write_text("mine")
    first, plans = watched.run()
    assert (plans, watched.run()[1]) == (2, 2)
    assert Path(".migrate_cache").read_text() == "mine"
    assert first.findings


def test_the_folder(watched):
    watched.run()
    folder = Path(".migrate_cache")
    assert (folder / ".gitignore").read_text() == "*\n"
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert not [path for path in folder.iterdir() if path.suffix != ".json" and path.name not in module._FILES]
    shutil.rmtree(folder)
    Path("pyproject.toml").unlink()
    watched.run()
    assert not folder.exists()  # where no project is, nothing is left
    watched.run(options=replace(CHECK, cache_dir="kept"))
    assert entries("kept")


def test_old_entries_go(watched, monkeypatch):
    watched.run()
    monkeypatch.setattr(module, "MOST", 3)
    for number in range(6):
        write({f"more{number}.py": OTHER})
        os.utime(entries()[0], (number, number))
        watched.run()
        assert len(entries()) <= 5


def test_options_of_the_command_line(watched, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["migrate", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr()

    status, said = run("other.py", "--check", "--no-cache")
    assert status == 1
    assert not Path(".migrate_cache").exists()
    assert run("other.py", "--check", "--cache-dir", "kept") == (1, said)
    assert entries("kept")
    assert not Path(".migrate_cache").exists()
    write({"pyproject.toml": "[tool.migrate]\ncache-dir = 'here'\n", "sub/none.txt": ""})
    monkeypatch.chdir("sub")
    assert run("../other.py", "--check")[0] == 1
    assert entries("../here")
    assert run("other.py", "--check", "--no-cache", "--cache-dir", "x")[0] == 2


# --- the whole of it ------------------------------------------------------------------------------------------------

NAMES = ("train.py", "engine.py", "data.py", "other.py", "sub/train.py", "sub/engine.py", "sub/__init__.py", "test.py")
TEXTS = (
    SCRIPT,
    ENGINE_PY,
    DATA,
    OTHER,
    "",
    "from engine import fit\nfit(None, [], None)\n",
    SCRIPT.replace("from engine", "from sub.engine"),
    SCRIPT.replace("import torch", "import sys, torch\nsys.path.append('sub')", 1),
)


@pytest.mark.parametrize("seed", range(4))
def test_any_history_tells_what_a_first_run_would_tell(watched, seed):
    chance = random.Random(seed)  # noqa: S311 (the same history every time)
    for _ in range(12):
        name = chance.choice(NAMES)
        if chance.random() < 0.3 and Path(name).exists():
            Path(name).unlink()
        else:
            write({name: chance.choice(TEXTS)})
        there = [name for name in NAMES if Path(name).exists()]
        paths = ["."] if chance.random() < 0.5 or not there else chance.sample(there, min(2, len(there)))
        kept, _ = watched.run(*paths)
        assert told(kept) == told(pipeline.run(paths, Options(mode=Mode.CHECK)))
        assert told(watched.run(*paths)[0]) == told(kept)


def test_everything_that_is_read_for_a_result_was_asked_of_the_disk(watched, monkeypatch):
    write({"test.py": "from engine import fit\n", "lib/__init__.py": "", "train.py": f"import lib.more\n{SCRIPT}"})
    project = Project(load(["train.py", "engine.py"]).files).noting()
    seen = []
    real_open = open

    def noted(path, *rest, **more):
        seen.append(str(path))
        return real_open(path, *rest, **more)

    monkeypatch.setattr("builtins.open", noted)
    monkeypatch.setattr("io.open", noted)
    ENGINE.plan(project, Options(mode=Mode.CHECK))
    monkeypatch.undo()
    known = {path for question, path in project.disk.asked if question == "content"}
    here = str(Path(project.named[0].real).parent)
    assert {path for path in seen if path.startswith(here)} <= known
    assert {os.path.basename(path) for path in known} >= {"data.py", "test.py"}
    assert project.disk.walked


def test_nobody_else_asks_the_disk():
    """What decides about programs reads through `Project`, and that through `Disk`."""
    root = Path(pipeline.__file__).parent
    parts = ["analysis", "programs", "rules", "alone", "edits", "launching"]
    files = [path for part in parts for path in (root / part).rglob("*.py")]
    files += [root / "source" / f"{name}.py" for name in ("project", "search", "importers", "parts", "reach", "above")]
    asking = {"is_file", "is_dir", "exists", "iterdir", "read_bytes", "read_text", "stat", "lstat", "glob", "rglob"}
    wrong = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            called = ast.unparse(node.func) if name in {*asking, "open", "listdir", "scandir", "walk"} else ""
            if called in {"open", "os.listdir", "os.scandir", "os.walk", "os.stat"} or (
                name in asking and not called.startswith(("disk.", "self."))
            ):
                wrong.append(f"{path.relative_to(root)}:{node.lineno}: {called}")
    assert not wrong
