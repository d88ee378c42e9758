"""The diff is right when `git apply` and `patch -p1` make the new file of the old one, byte for byte."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from migrate.report.diff import coloured, diff, name_of
from migrate.report.model import Change

ROOT = Path(__file__).resolve().parents[2]
GIT = shutil.which("git") or "git"
PATCH = shutil.which("patch") or "patch"
BODY = b"import torch\n\n\ndef f(x):\n    return x\n\n\nloss = f(1)\nloss.backward()\nprint(loss)\n\n\n# end\n"


def edited(content: bytes) -> bytes:
    content = content.replace(b"import torch", b"import torch  # x", 1)
    return content.replace(b"loss.backward()", b"accelerator.backward(loss)")


CONTENTS = {
    "lf": BODY,
    "crlf": BODY.replace(b"\n", b"\r\n"),
    "cr": BODY.replace(b"\n", b"\r"),
    "mixed": BODY.replace(b"x\n", b"x\r\n"),
    "no-final-newline": BODY + b"loss.backward()",
    "no-final-newline-crlf": BODY.replace(b"\n", b"\r\n") + b"loss.backward()",
    "unchanged-last-line": BODY.rstrip(b"\n"),
    "form-feed": BODY.replace(b"def f", b"\x0cdef f").replace(b"# end", b"# a\x0bb\x1cc\x85"),
    "line-separators": BODY.replace(b"# end", "# a\u2028b\u0085c".encode()),
    "bom": b"\xef\xbb\xbf" + BODY,
    "latin-1": b"# -*- coding: latin-1 -*-\n" + BODY.replace(b"# end", b"# fa\xe7ade"),
    "tabs": BODY.replace(b"    ", b"\t"),
    "dashes": BODY.replace(b"loss = f(1)\n", b"loss = f(1)\n-- a\n++ b\n"),
    "far-apart": BODY + b"pass\n" * 300 + BODY,
}
NAMES = [
    "train.py",
    "a b.py",
    "sub dir/tr ain.py",
    'quote".py',
    "back\\slash.py",
    "tab\there.py",
    "é.py",
    "new\nline.py",
    "-w.py",
]
NEWLINE_IN_NAME = "patch refuses a name with a line feed, as a matter of safety"

APPLY = {
    "git apply": [GIT, "apply", "-"],
    "git apply --whitespace=error": [GIT, "apply", "--whitespace=error", "-"],
    "patch -p1": [PATCH, "-p1", "--binary", "-s"],
}


@pytest.mark.parametrize("program", APPLY)
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_patch_gives_the_new_bytes(program, name, tmp_path, monkeypatch):
    if program.startswith("patch") and "\n" in name:
        pytest.skip(NEWLINE_IN_NAME)
    if not shutil.which(APPLY[program][0]):
        pytest.skip(f"{program} is not installed")
    monkeypatch.chdir(tmp_path)
    for case, content in CONTENTS.items():
        if program.endswith("=error") and case in {"crlf", "mixed", "no-final-newline-crlf"}:
            continue  # to git, CR at the end of an added line is an error of white space whoever put it there
        file = Path(case) / name
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        patch = diff([Change(str(file), content, edited(content))])
        result = subprocess.run(APPLY[program], input=patch, capture_output=True, check=False)
        assert result.returncode == 0, (case, result.stderr, patch)
        assert file.read_bytes() == edited(content), case


def golden():
    """Every pair of a file before and after the conversion that the fixtures promise (test_fixtures.py converts)."""
    found = {}
    for before in sorted((ROOT / "fixtures").rglob("before*")):
        after = before.with_name(before.name.replace("before", "after"))
        for file in before.rglob("*.py") if before.is_dir() else [before]:
            other = after / file.relative_to(before) if before.is_dir() else after
            if other.is_file() and other.read_bytes() != file.read_bytes():
                found[file.relative_to(ROOT).as_posix()] = (file.read_bytes(), other.read_bytes())
    return found


VARIANTS = {
    "as it is": lambda content: content,
    "CRLF": lambda content: content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "no final newline": lambda content: content.rstrip(b"\n"),
    "byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "form feeds": lambda content: content.replace(b"\n\n", b"\n\x0c\n"),
}


@pytest.mark.parametrize("program", ["git apply", "patch -p1"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_fixture_from_the_top_of_the_repository(program, variant, tmp_path, monkeypatch):
    if not shutil.which(APPLY[program][0]):
        pytest.skip(f"{program} is not installed")
    subprocess.run([GIT, "init", "-q", tmp_path], check=True)
    pairs = {name: tuple(map(VARIANTS[variant], pair)) for name, pair in golden().items()}
    assert len(pairs) > 100
    for number, (name, (old, _)) in enumerate(pairs.items()):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(old)
        if number == 0:
            monkeypatch.chdir(file.parent)  # names are relative to the top all the same
    patch = diff(Change(str(tmp_path / name), old, new) for name, (old, new) in pairs.items())
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(APPLY[program], input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    wrong = [name for name, (_, new) in pairs.items() if not is_now(tmp_path / name, new)]
    assert wrong == []


def is_now(file, content):
    """Whether a file has this content; an empty file may be gone, as patch has it."""
    return file.read_bytes() == content if file.is_file() else not content


def test_many_files_in_one_patch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changes = []
    for case, content in CONTENTS.items():
        Path(f"{case}.py").write_bytes(content)
        changes.append(Change(f"{case}.py", content, edited(content)))
    subprocess.run([GIT, "apply", "-"], input=diff(changes), check=True)
    assert all(Path(change.path).read_bytes() == change.new for change in changes)


def test_names_are_relative_to_the_repository(tmp_path, monkeypatch):
    subprocess.run([GIT, "init", "-q", tmp_path], check=True)
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "a.py").write_bytes(BODY)
    (tmp_path / "link.py").symlink_to(folder / "a.py")
    monkeypatch.chdir(folder)
    assert name_of("a.py") == "deep/er/a.py"
    monkeypatch.chdir(tmp_path / "deep")
    assert name_of("er/a.py") == "deep/er/a.py"
    assert name_of("../link.py") == "deep/er/a.py"  # neither program patches through a link
    monkeypatch.chdir("/")
    assert name_of(str(folder / "a.py")) == "deep/er/a.py"


def test_names_without_repository(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert name_of("a.py") == "a.py"
    assert name_of("x/../a.py") == "a.py"
    assert name_of("../other/a.py") == (tmp_path / "other" / "a.py").as_posix().lstrip("/")


def test_name_that_is_not_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9.py")
    try:
        Path(name).write_bytes(BODY)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    subprocess.run([GIT, "apply", "-"], input=diff([Change(name, BODY, edited(BODY))]), check=True)
    assert Path(name).read_bytes() == edited(BODY)


def test_equal_contents_give_nothing():
    assert diff([Change("a.py", BODY, BODY)]) == b""


def test_colours_add_nothing_but_colours():
    patch = diff([Change("a.py", CONTENTS["crlf"], edited(CONTENTS["crlf"]))])
    painted = coloured(patch)
    assert painted != patch
    for code in (b"\x1b[1m", b"\x1b[31m", b"\x1b[32m", b"\x1b[36m", b"\x1b[0m"):
        painted = painted.replace(code, b"")
    assert painted == patch
