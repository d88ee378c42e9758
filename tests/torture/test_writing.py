"""`--write` over 50 files, disturbed: killed, without room, beside another run and beside a person who edits."""

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from asked import SEED
from cases import FIXTURES

import migrate
from migrate.engine import Conversion, Engine
from migrate.options import Mode, Options
from migrate.pipeline import run
from migrate.report.model import Outcome

pytestmark = pytest.mark.torture
ROOT = str(Path(migrate.__file__).resolve().parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": ROOT, "PYTHONDONTWRITEBYTECODE": "1"}
FILES, KILLS, ROUNDS, EDITS = 50, 200, 40, 100
OLD = (FIXTURES / "grad-scaler" / "before.py").read_bytes()  # a short one
WRITE = Options(mode=Mode.WRITE)

# Converts everything once; then, for each line that it reads, forks, and the forks go on to save. A line says how many.
VICTIM = """
import os, sys
from migrate.options import Mode, Options
from migrate.pipeline import run

def accept(report):
    print(len(report.changes), flush=True)
    for line in sys.stdin:
        children = []
        for _ in range(int(line)):
            child = os.fork()
            if child == 0:
                return report
            children.append(child)
        print(*children, flush=True)
        print(*[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], flush=True)
    os._exit(0)

report = run([sys.argv[1]], Options(mode=Mode.WRITE), accept=accept)
os._exit(0 if report.written else 3)
"""


class Victim:
    """A run of --write that has converted everything and can be let save any number of times."""

    def __init__(self, folder):
        self.folder = folder
        self.reset()
        command = [sys.executable, "-c", VICTIM, str(folder)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=ENVIRONMENT, **pipes)
        assert int(self._process.stdout.readline()) == FILES

    def reset(self):
        for number in range(FILES):
            file = self.folder / f"d{number % 3}" / f"train{number}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(OLD)

    def let_save(self, runs=1):
        """The process numbers of runs that save now."""
        self._process.stdin.write(f"{runs}\n")
        self._process.stdin.flush()
        return [int(number) for number in self._process.stdout.readline().split()]

    def statuses(self):
        """How they ended; 0: everything was written, 3: nothing was."""
        return [int(status) for status in self._process.stdout.readline().split()]

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    @property
    def contents(self):
        return [file.read_bytes() for file in sorted(self.folder.rglob("*.py"))]

    @property
    def leftovers(self):
        return [path for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".py"]


@pytest.fixture
def victim(tmp_path):
    opened = Victim(tmp_path / "many")
    yield opened
    opened.close()


@pytest.fixture
def new(victim):
    """What the files become; and how long that takes, in seconds."""
    start = time.perf_counter()
    victim.let_save()
    assert victim.statuses() == [0]
    took_s = time.perf_counter() - start
    (content,) = set(victim.contents)
    assert content != OLD
    assert victim.leftovers == []
    return content, took_s


def finish(victim, content):
    """The next run, which tidies up and converts what is left; without the analysis, which would take longest."""

    def plan(project, options):
        return Conversion(Outcome(), tuple(file.path for file in project.files if file.content == OLD))

    def apply(file, conversion):
        return type("Applied", (), {"content": content, "lost_comments": ()})

    report = run([str(victim.folder)], WRITE, engine=Engine(plan, apply, lambda file, change, conversion: []))
    assert not report.problems
    assert set(victim.contents) == {content}
    assert victim.leftovers == []


def test_killed_at_random_moments(victim, new, record):
    chance = random.Random(f"{SEED} kills")  # noqa: S311 (moments, not secrets)
    content, longest_s = new
    counts = dict.fromkeys(("runs", "killed", "files old", "files new", "left behind, then removed", "broken"), 0)
    while counts["killed"] < KILLS:
        assert counts["runs"] < 10 * KILLS
        victim.reset()
        (process,) = victim.let_save()
        time.sleep(chance.uniform(0, longest_s))
        with contextlib.suppress(ProcessLookupError):  # it has come to its end
            os.kill(process, signal.SIGKILL)
        (status,) = victim.statuses()
        longest_s = longest_s * 1.05 if status else longest_s * 0.9
        counts["runs"] += 1
        counts["killed"] += status == -signal.SIGKILL
        found = victim.contents
        counts["files old"] += found.count(OLD)
        counts["files new"] += found.count(content)
        counts["broken"] += len(found) - found.count(OLD) - found.count(content)
        counts["left behind, then removed"] += len(victim.leftovers)
        finish(victim, content)
    record("writing", "kill -9 at random moments", **counts)
    assert not counts["broken"]
    assert counts["left behind, then removed"]
    assert counts["files old"]


def cpu_s(pid):
    """Seconds of CPU that a process has taken, however busy the machine is."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_killed_while_it_is_analysing(tmp_path, record):
    """The command itself, before it has anything to write: nothing is changed or left."""
    chance = random.Random(f"{SEED} early kills")  # noqa: S311
    for number in range(8):
        (tmp_path / f"train{number}.py").write_bytes(OLD)
    command = [sys.executable, "-m", "migrate", "--no-cache", "--quiet", str(tmp_path)]
    quiet = {"env": ENVIRONMENT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    assert subprocess.run([*command, "--check"], check=False, **quiet).returncode == 1
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert subprocess.run([*command, "--check"], check=False, **quiet).returncode == 1
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime  # what writes takes longer
    for _ in range(10):
        process = subprocess.Popen([*command, "--write"], **quiet)
        moment = chance.uniform(0, 0.8 * seconds)
        while cpu_s(process.pid) < moment:
            time.sleep(0.002)
        process.kill()
        process.wait()
        contents = [file.read_bytes() for file in tmp_path.glob("*.py")]
        assert contents == [OLD] * 8
        assert len(list(tmp_path.iterdir())) == 8
    record("writing", "kill -9 while it analyses", runs=10, killed=10, broken=0)


def test_two_runs_at_once(victim, new, record):
    content, _ = new
    counts = dict.fromkeys(("runs", "wrote", "refused", "broken"), 0)
    for _ in range(ROUNDS):
        victim.reset()
        victim.let_save(2)
        statuses = victim.statuses()
        counts["runs"] += 2
        counts["wrote"] += statuses.count(0)
        counts["refused"] += statuses.count(3)
        assert set(statuses) <= {0, 3}
        counts["broken"] += FILES - victim.contents.count(content)
        assert victim.leftovers == []
    record("writing", "two runs at once", **counts)
    assert not counts["broken"]


def test_a_person_edits_meanwhile(victim, new, record):
    """A line that somebody adds to a file is there afterwards, whenever it was added."""
    chance = random.Random(f"{SEED} edits")  # noqa: S311
    content, longest_s = new
    counts = dict.fromkeys(("runs", "wrote", "refused", "broken"), 0)
    mine = b"# by a person\n"
    for _ in range(EDITS):
        victim.reset()
        file = chance.choice(sorted(victim.folder.rglob("*.py")))
        victim.let_save()
        time.sleep(chance.uniform(0, longest_s))
        edit(file, mine, by_renaming=chance.random() < 0.5)
        (status,) = victim.statuses()
        counts["runs"] += 1
        counts["wrote"] += status == 0
        counts["refused"] += status == 3
        others = set(victim.contents) - {OLD, content, OLD + mine, content + mine}
        counts["broken"] += bool(others) or not file.read_bytes().endswith(mine)
        rest = {one.read_bytes() for one in victim.folder.rglob("*.py") if one != file}
        counts["broken"] += rest != {content if status == 0 else OLD}
        assert victim.leftovers == []
    record("writing", "a person edits meanwhile", **counts)
    assert not counts["broken"]
    assert counts["refused"]


def edit(file, line, *, by_renaming):
    """As editors save: into the file, or beside it and then renamed."""
    if by_renaming:
        beside = file.with_name(f"{file.name}~")
        beside.write_bytes(file.read_bytes() + line)
        beside.replace(file)
    else:
        with file.open("ab") as stream:
            stream.write(line)


# Ends the writing of any file after so many bytes, as a full disk or a quota does, in the middle of it.
NO_ROOM = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from migrate.cli import main
sys.argv[0:2] = ["migrate"]
main()
"""


@pytest.mark.parametrize("room", [0, 1000, len(OLD), len(OLD) + 3000])
def test_no_room(room, tmp_path, record):
    """Files of which the last one no longer fits: all stay as they were."""
    contents = {f"train{number}.py": OLD for number in range(5)} | {"z.py": OLD + b"# longer\n" * 500}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-c", NO_ROOM, str(room), "--write", str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)

    assert done.returncode == 2, done.stderr
    assert "cannot be written: file too large. Nothing was written." in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == contents
    record("writing", "no room on the disk", runs=1, refused=1, broken=0)


def test_a_full_file_system(tmp_path, record):
    """The same on a file system that is really full, where the machine lets us make one."""
    place = tmp_path / "small"
    place.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    try:
        if subprocess.run(made, capture_output=True, check=False).returncode:
            pytest.skip("this machine does not let us mount a file system")
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    try:
        for number in range(20):
            (place / f"train{number}.py").write_bytes(OLD)
        room = os.statvfs(place)
        (place / "filler").write_bytes(b"x" * max(room.f_bavail * room.f_bsize - 3 * room.f_bsize, 0))
        command = [sys.executable, "-m", "migrate", "--write", str(place)]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert "no space left on device. Nothing was written." in done.stderr
        assert {path.read_bytes() for path in place.glob("*.py")} == {OLD}
        assert len(list(place.iterdir())) == 21
    finally:
        subprocess.run(["umount", str(place)], check=True)  # noqa: S607 (as above)
    record("writing", "no room on the disk", runs=1, refused=1, broken=0)
