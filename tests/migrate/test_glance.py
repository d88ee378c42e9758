"""What a hook is told at a glance is what it would be told otherwise; and doubt leads to the other way."""

import subprocess
import sys
from pathlib import Path

import pytest

import migrate
from migrate import pipeline
from migrate.cli.hook import is_answered
from migrate.options import Mode, Options
from migrate.source.glance import is_plain

ROOT = Path(__file__).parent.parent.parent
# What `python -S` finds: us, and tomli, which Python 3.10 reads the settings with; nothing that a .pth file brings.
INSTALLED = [str(Path(migrate.__file__).resolve().parent.parent), *sys.path]
ENGINE = b"import torch\n\n\ndef fit(loss):\n    loss.backward()\n"
TRAIN = b"import torch\nfrom engine import fit\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)


def write(**files):
    for name, content in files.items():
        path = Path(f"{name if '/' in name else name.replace('__', '/')}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"import os\nimport torch\nfrom torch import nn\nprint(os.sep, nn)\n",
        b"from . import beside\nimport beside as b, nowhere\nfrom beside import x\n",
        "# é: ß\nx = 'ü'\n".encode(),
        b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
    ],
)
def test_files_without_training_are_plain(content):
    write(a=content, beside=b"x = 1\n")

    assert is_plain(["a.py"])
    assert is_plain(["a.py", "beside.py", "./a.py"])
    report = pipeline.run(["a.py", "beside.py"], Options(mode=Mode.CHECK))
    assert (report.findings, report.problems, report.remarks) == ((), (), ())


@pytest.mark.parametrize(
    "content",
    [
        b"loss.backward()\n",
        b"from accelerate import Accelerator\n",
        b"import importlib\nimportlib.import_module(name)\n",
        b"import sys\nsys.path.append('lib')\n",
        b"# migrate: skip-file\n",
        b"def (\n",
        b"x = '\xe9'\n",
        b"\0",
        b"x = " + b"-" * 2000 + b"1\n",
    ],
)
def test_what_is_not_plain_is_looked_at_properly(content):
    write(a=content, b=b"import a\n", c=b"from a import x\n", d=b"import c\n")

    assert not is_plain(["a.py"])
    if b"=" not in content and b"\0" not in content and b"(\n" not in content:
        assert not any(is_plain([path]) for path in ("b.py", "c.py", "d.py"))  # nor what leads to it


@pytest.mark.parametrize(
    ("place", "imports"),
    [
        ("engine", "import engine\n"),
        ("engine", "import os, engine as e\n"),
        ("engine", "from engine import (  # all of it\n    fit,\n)\n"),
        ("engine", "from engine import \\\n    fit\n"),
        ("engine", "def main():\n    from engine import fit\n    fit(1)\n"),
        ("engine", "from . import engine\n"),
        ("engine", "from .engine import fit\n"),
        ("engine__fits", "import engine.fits\n"),
        ("engine__fits", "from engine.fits import fit\n"),
        ("engine__fits", "from engine import fits\n"),
        ("engine/__init__", "from engine.nothing import x\n"),
        ("src__engine", "import engine\n"),
    ],
)
@pytest.mark.parametrize("folder", ["", "scripts__"])
def test_all_that_an_import_may_mean_is_looked_at(place, imports, folder):
    if folder and "from ." in imports:
        imports = imports.replace("from .", "from ..")
    write(**{place: ENGINE, f"{folder}train": f"import torch\n{imports}".encode()})

    assert not is_plain([f"{folder.replace('__', '/')}train.py"])


def test_what_is_imported_from_where_it_is_imported():
    write(scripts__train=b"import lib.models\n", lib__models=b"import helpers\n", scripts__helpers=ENGINE)
    assert not is_plain(["scripts/train.py"])  # the folder of the script goes on being looked in
    Path("scripts/helpers.py").write_bytes(b"import lib.models\n")
    assert is_plain(["scripts/train.py"])


def test_what_is_no_ordinary_file_is_looked_at_properly():
    write(a=b"x = 1\n")
    Path("link.py").symlink_to("a.py")
    Path("a.ipynb").write_text("{}")
    for path in ("link.py", "a.ipynb", "missing.py", ".", "nul\0.py"):
        assert not is_plain([path])


def test_settings_are_read_by_those_who_understand_them(tmp_path):
    write(sub__a=b"x = 1\n")
    assert is_plain(["sub/a.py"])
    Path("pyproject.toml").write_text("[tool.migrate]\nselct = []\n")
    assert not is_plain(["sub/a.py"])
    Path("sub/pyproject.toml").write_text("[tool.other]\n")  # the nearest
    assert is_plain(["sub/a.py"])


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('[project]\ndependencies = ["torch-migrate"]\n', True),
        ("[tool.migrate]\n", True),
        ("tool.migrate.ignore = ['MIG117']\n", True),
        ("[tool]\nmigrate = {}\n", True),
        ("tool = 'migrate'\n", True),
        ("[tool.migrate\n", False),
    ],
    ids=str,
)
def test_settings_are_found_however_they_are_written(text, plain):
    write(a=b"x = 1\n")
    Path("pyproject.toml").write_text(text)
    assert is_plain(["a.py"]) == plain


def test_only_checks_of_paths_are_answered(capsys):
    write(a=b"x = 1\n")
    assert is_answered(["--check", "a.py", "--force-exclude"])
    assert capsys.readouterr() == ("", "No plain training loops.\n")
    assert is_answered(["a.py", "-q", "--check"])
    assert capsys.readouterr() == ("", "")
    assert is_answered(["--check", "--cache-dir", "kept", "a.py", "-q"])
    for other in (["a.py"], ["--check"], ["--check", "--diff", "a.py"], ["--check", "-"], ["--check", ""], []):
        assert not is_answered(other)
    for wrong in (["a.py", "--cache-dir"], ["--cache-dir", "a.py"], ["--no-cache", "--cache-dir", "b", "a.py"]):
        assert not is_answered(["--check", *wrong])
    assert not is_answered(["--check", "a.py", "--cache-dir", "-q"])
    assert capsys.readouterr() == ("", "")


def test_what_is_told_is_what_would_be_told():
    """Of every fixture: where the answer is plain, nothing is found by looking properly."""
    files = sorted((ROOT / "fixtures").glob("*/*.py"))
    plain = [str(file) for file in files if is_plain([str(file)])]
    for path in plain:
        report = pipeline.run([path], Options(mode=Mode.CHECK))
        assert (report.findings, report.problems, report.remarks) == ((), (), ())
    assert len(plain) < len(files)


@pytest.mark.parametrize(
    "text", ["", "[tool.migrate]\nignore = ['MIG117']\nexclude = ['legacy/*']\ntarget = 'runtime'\n"]
)
def test_the_answer_does_not_wait_for_what_takes_longer(text):
    Path("pyproject.toml").write_text(text)
    write(a=b"import os\nimport torch\n\nprint(os.sep)\n")
    code = (
        "import sys\nsys.argv[1:] = ['--check', 'a.py']\nfrom migrate.cli import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys\nsys.path[:] = {INSTALLED!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "No plain training loops.\n"
    assert not {
        "dataclasses",
        "inspect",
        "pathlib",
        "tokenize",
        "migrate.options",
        "migrate.pipeline",
        "migrate.rules",
    } & set(done.stdout.split())
