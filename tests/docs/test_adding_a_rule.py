"""docs/adding_a_rule.md, followed to the letter in a copy of the sources."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding_a_rule.md").read_text(encoding="utf-8")
#: Every fenced block, with the text before it, which names the file that it is.
BLOCK = re.compile(r"(?P<before>(?:(?!```).)*?)```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
COPIED = ("migrate", "docs", "tests/migrate/rules", "README.md", "pyproject.toml")


@pytest.fixture
def copy(tmp_path):
    for name in COPIED:
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "images"))
        else:
            shutil.copy(source, target)
    return tmp_path


def create(folder, before, text):
    """A file that the paragraph above names."""
    (name,) = re.findall(r"Create `([^`]+)`:\s*\Z", before)
    path = folder / name
    assert not path.exists()
    path.write_text(text, encoding="utf-8")


def edit(folder, text):
    """A diff without line numbers: the lines that stay are there once, one after the other."""
    (name,) = re.findall(r"^\+\+\+ b/(\S+)$", text, re.MULTILINE)
    path = folder / name
    content = path.read_text(encoding="utf-8")
    for hunk in text.split("@@\n")[1:]:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] == " ")
        assert content.count(old) == 1, old
        content = content.replace(old, "".join(line[1:] for line in lines))
    path.write_text(content, encoding="utf-8")


def run(folder, text):
    """Commands, each with what it must say."""
    for part in text.split("$ ")[1:]:
        command, _, said = part.partition("\n")
        words = shlex.split(command)
        assert words[0] == "python"
        variables = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *words[1:]], cwd=folder, env=variables, capture_output=True, text=True, check=False
        )
        output = done.stdout + done.stderr
        assert done.returncode == int(" failed" in said), (command, output)
        for line in said.splitlines():
            assert line in output, (command, output)


def test_followed_literally(copy):
    done = {"python": 0, "diff": 0, "console": 0}
    for block in BLOCK.finditer(PAGE):
        kind, text = block["kind"], block["text"]
        if kind == "python":
            create(copy, block["before"], text)
        elif kind == "diff":
            edit(copy, text)
        else:
            run(copy, text)
        done[kind] += 1
    assert done == {"python": 2, "diff": 2, "console": 3}
