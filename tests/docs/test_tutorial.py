"""The commands of docs/tutorial.md, run one after the other as a reader would."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 300
XLA_PYTHON = os.environ.get("TORCH_XLA_PYTHON")  # of `make test-xla`
PROGRAMS = ("migrate", "runtime")  # as modules of this checkout, whatever is installed beside it
EXPECTED = {
    "migrate vision": 1,
    "migrate --for tpu ../fixtures/vision-trainer/before": 1,
    "migrate vision words.py gan.py ddp.py --write --undo-patch undo.patch": {0, 1},
}
SCRIPTS = ("vision/train.py", "words.py", "gan.py", "ddp.py")
#: What the scripts say of their evaluations, after each epoch.
EVALUATIONS = ("valid loss", "perplexity", "mean radius", "test accuracy")


@dataclass(frozen=True)
class Block:
    """Lines of the page that belong together."""

    kind: str
    lines: list

    @property
    def is_together(self):
        return self.kind == "sh together"

    @property
    def is_xla(self):
        return self.kind == "sh xla"


def blocks():
    """The commands and the files of the page, in its order."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    found = re.findall(r"```((?:sh|python)[^\n]*)\n(.*?)```", text, re.DOTALL)
    return [Block(kind.strip(), body.splitlines()) for kind, body in found]


@pytest.fixture
def reader(tmp_path):
    """Somebody in a folder with the fixtures, who starts commands and writes files."""
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    return Reader(tmp_path)


class Reader:
    def __init__(self, home):
        self.place = home
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        # Under this variable of pytest's a kernel shows nothing of its processes.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        paths = {"PYTHONPATH": str(ROOT), "PATH": path, "HOME": str(home)}
        self.environ = {**inherited, **paths, "OMP_NUM_THREADS": "1"}

    def start(self, line, python=sys.executable):
        words = shlex.split(line)
        own = {}
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            own[name] = value
        program, *arguments = words
        if program == "cd":
            self.place /= arguments[0]
            words = ["true"]
        if program in PROGRAMS:
            words = [python, "-m", *words]
        return subprocess.Popen(
            words,
            cwd=self.place,
            env={**self.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def write(self, name, lines):
        (self.place / name).write_text("\n".join([*lines, ""]))


def followed(reader, wanted):
    """What each of the wanted commands printed; all ended as they should."""
    said = {}
    for block in blocks():
        if block.kind.startswith("python"):
            reader.write(block.kind.split()[1], block.lines)
        elif wanted(block):
            running = []
            for line in block.lines:
                running.append((line, reader.start(line, XLA_PYTHON if block.is_xla else sys.executable)))
                if not block.is_together:
                    said |= ended(running)
            said |= ended(running)
    return said


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


def evaluated(output):
    return [line for line in output.splitlines() if any(words in line for words in EVALUATIONS)]


def test_every_command_does_what_the_page_says(reader):
    said = followed(reader, lambda block: not block.is_xla)
    assert "self.accelerator.backward(loss)" in said["migrate vision"]
    assert "MIG125" in said["migrate --for tpu ../fixtures/vision-trainer/before"]
    alone = evaluated(said["runtime launch vision/train.py"])
    assert alone
    shared = {script: evaluated(said[f"runtime launch --cpu -n 2 {script}"]) for script in SCRIPTS}
    assert len(shared["vision/train.py"]) == len(alone), "the same lines, once"
    for script in SCRIPTS:
        machines = [said[line] for line in said if "--num_machines" in line and line.endswith(script)]
        second = [] if script == "ddp.py" else shared[script]  # which speaks under `if rank == 0`
        assert [evaluated(output) for output in machines] == [shared[script], second], (
            "two processes, wherever they are"
        )
    started = [line for script in SCRIPTS for line in shared[script]]
    assert evaluated(said["python start.py"]) == started, "the same processes, started from a session"
    notebook = (reader.place / "train.ipynb").read_text()
    assert notebook.count("accuracy 0.") >= 3, "what its processes print stands in the notebook"


@pytest.mark.skipif(XLA_PYTHON is None, reason="needs torch_xla: TORCH_XLA_PYTHON names the Python of make test-xla")
def test_the_same_scripts_train_through_xla(reader):
    wanted = ("mkdir", "cp", "cd", "migrate vision words.py")
    said = followed(reader, lambda block: block.is_xla or block.lines[0].startswith(wanted))
    said = {line.removeprefix("PJRT_DEVICE=CPU runtime launch "): output for line, output in said.items()}
    for script in SCRIPTS:
        assert evaluated(said[script]), said[script]
