"""The commands of docs/tutorial.md, run one after the other as a reader would."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 180
PROGRAMS = ("migrate", "runtime")  # as modules of this checkout, whatever is installed beside it
EXPECTED = {"migrate vision.py": 1, "migrate vision.py words.py gan.py ddp.py --write --undo-patch undo.patch": {0, 1}}


def blocks():
    """Of every block of commands: whether they run at the same time, and its lines."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    return [
        ("together" in kind, body.splitlines())
        for kind, body in re.findall(r"```sh([^\n]*)\n(.*?)```", text, re.DOTALL)
    ]


@pytest.fixture
def start(tmp_path):
    """Starts a command in the folder that the reader is in."""
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}
    place = [tmp_path]

    def run(line):
        program, *arguments = words = shlex.split(line)
        if program == "cd":
            place[0] /= arguments[0]
            words = ["true"]
        if program in PROGRAMS:
            words = [sys.executable, "-m", *words]
        return subprocess.Popen(
            words, cwd=place[0], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    return run


def test_every_command_does_what_the_page_says(start):
    said = {}
    for together, lines in blocks():
        running = []
        for line in lines:
            running.append((line, start(line)))
            if not together:
                said |= ended(running)
        said |= ended(running)
    assert "accelerator.backward(loss)" in said["migrate vision.py"]
    alone, *shared = [output for line, output in said.items() if line.startswith("runtime launch") and "vision" in line]
    assert evaluated(alone)
    assert [len(evaluated(output)) for output in shared[:1]] == [len(evaluated(alone))]
    machines = [output for line, output in said.items() if "--num_machines" in line]
    assert [evaluated(output) for output in machines] == [evaluated(shared[0])] * 2  # two processes, wherever they are


def evaluated(output):
    return [line for line in output.splitlines() if "valid accuracy" in line]


def ended(running):
    """What the commands printed, each of which ended as it should; none is left."""
    said = {}
    while running:
        line, process = running.pop(0)
        output, _ = process.communicate(timeout=LIMIT_S)
        expected = EXPECTED.get(line, 0)
        assert process.returncode in (expected if isinstance(expected, set) else {expected}), f"$ {line}\n{output}"
        said[line] = output
    return said
