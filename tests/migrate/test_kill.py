"""`kill -9` at any moment of --write: each file is old or new, and the next run tidies up and finishes.

Once at every step of saving, deterministically, and then at random moments of a run over many files.
"""

import random
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from migrate import pipeline
from migrate.engine import Conversion, Engine
from migrate.options import Mode, Options
from migrate.report.model import Outcome

pytestmark = pytest.mark.long

OLD = b"import torch\nloss.backward()\n" + b"# a line that makes the file longer\n" * 200
NEW = OLD.replace(b"loss.backward()", b"accelerator.backward(loss)")


def plan(project, options):
    return Conversion(Outcome(), tuple(file.path for file in project.files if b"loss.backward()" in file.content))


def apply(file, conversion):
    new = file.content.replace(b"loss.backward()", b"accelerator.backward(loss)")
    return types.SimpleNamespace(content=new, lost_comments=())


ENGINE = Engine(plan, apply, lambda file, change, conversion: [])
WRITE = Options(mode=Mode.WRITE)

# argv: this file, the folder, the step at which the process kills itself (0: never). Says how many steps there were.
VICTIM = """
import importlib.util, os, signal, sys
from pathlib import Path
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("tests_of_kill", sys.argv[1])
tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tests)
step, fatal = 0, int(sys.argv[3])

def counted(owner, name):
    real = getattr(owner, name)
    def call(*args, **kwargs):
        global step
        step += 1
        if step == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    setattr(owner, name, call)

for owner, names in ((os, ("open", "fdopen", "fsync")), (Path, ("chmod", "hardlink_to", "replace", "unlink"))):
    for name in names:
        counted(owner, name)
print("ready", flush=True)
sys.stdin.readline()
tests.pipeline.run([sys.argv[2]], tests.WRITE, engine=tests.ENGINE)
print(step, flush=True)
"""


def victim(folder, fatal=0):
    root = str(Path(pipeline.__file__).parent.parent)
    command = [sys.executable, "-c", VICTIM, __file__, str(folder), str(fatal)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, env={"PYTHONPATH": root}, **pipes)
    assert process.stdout.readline() == b"ready\n"
    process.stdin.write(b"go\n")
    process.stdin.flush()
    return process


def files(folder):
    return sorted(folder.rglob("*.py"))


def reset(folder, count):
    for number in range(count):
        file = folder / f"d{number % 3}" / f"train{number}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(OLD)


def state(folder):
    """`OLD`, `NEW` or mixed; fails on a file that is neither."""
    contents = [file.read_bytes() for file in files(folder)]
    assert all(content in {OLD, NEW} for content in contents)
    return "mixed" if len(set(contents)) > 1 else "new" if contents[0] == NEW else "old"


def leftovers(folder):
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".py"]


def run_again(folder):
    report = pipeline.run([str(folder)], WRITE, engine=ENGINE)
    assert report.exit_status(Mode.WRITE) == 0
    assert state(folder) == "new"
    assert leftovers(folder) == []


def test_killed_at_every_step(tmp_path):
    reset(tmp_path, 2)
    process = victim(tmp_path)
    steps = int(process.communicate()[0])
    assert process.returncode == 0
    assert steps >= 2 * (2 + 1 + 1 + 1 + 1)  # open, write, sync, mode, second name and rename of both
    seen, littered = set(), 0
    for fatal in range(1, steps + 1):
        reset(tmp_path, 2)
        process = victim(tmp_path, fatal)
        process.communicate()
        assert process.returncode == -9
        seen.add(state(tmp_path))
        littered += bool(leftovers(tmp_path))
        run_again(tmp_path)
    assert seen == {"old", "mixed", "new"}
    assert littered  # or the tidying was never put to the test


KILLS = 30
FILES = 40


def test_killed_at_random_moments(tmp_path):
    chance = random.Random(0)  # noqa: S311 (moments, not secrets)
    seen, killed, littered = set(), 0, 0
    longest_s = 0.02
    for _ in range(10 * KILLS):
        reset(tmp_path, FILES)
        process = victim(tmp_path)
        start = time.perf_counter()
        time.sleep(chance.uniform(0, longest_s))
        process.kill()
        if process.communicate()[0]:  # it had finished: now we know how long that takes
            longest_s = min(longest_s, time.perf_counter() - start)
        else:
            killed += 1
            longest_s *= 1.2  # too early, perhaps
        seen.add(state(tmp_path))
        littered += bool(leftovers(tmp_path))
        run_again(tmp_path)
        if killed == KILLS:
            break
    assert killed == KILLS
    assert littered > KILLS // 3
    assert "old" in seen
