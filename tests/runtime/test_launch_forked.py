"""Workers that are forked are as new processes are; and when they are not forked, and why."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runtime.launch import early, forked
from runtime.launch.spec import LaunchSpec

ROOT = Path(__file__).resolve().parents[2]
linux = pytest.mark.skipif(sys.platform != "linux" or not hasattr(os, "pidfd_open"), reason="forks on Linux only")


@pytest.fixture
def run(tmp_path):
    """Runs `train.py` on two processes in a scratch folder, and gives its output by rank; stderr must be empty."""

    def start(body, *options, stdin=None, errors="", **variables):
        (tmp_path / "train.py").write_text(textwrap.dedent(body))
        command = [sys.executable, "-m", "runtime", "launch", "--cpu", "-n", "2", *options, "train.py", "a", "$b"]
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2", **variables}
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            pass_fds=stdin or (),
        )
        shown = "\n".join(line for line in done.stderr.splitlines() if errors and errors in line)
        assert done.returncode == 0, done.stderr
        assert errors or not done.stderr
        return sorted(done.stdout.splitlines()), shown

    return start


LAUNCHER_IS_GONE = """
    import importlib.util
    from multiprocessing import Pipe

    spec = importlib.util.spec_from_file_location("fork_server", {server!r})
    server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(server)
    here, there = Pipe()
    there.send("never read")  # as of a launcher that was killed before it heard how a worker had ended
    here.close()
    server._serve(there)
"""


@linux
def test_a_launcher_that_is_killed_leaves_no_traceback_of_the_server():
    code = textwrap.dedent(LAUNCHER_IS_GONE).format(server=str(Path(early.__file__).with_name("fork_server.py")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


STATE = """
    import json, os, sys
    at_first = {"path": list(sys.path), "argv": sys.argv, "main": sorted(globals()), "flags": str(sys.flags)}
    import gc, locale, multiprocessing, resource, signal, threading, warnings
    import numpy, torch, torch.distributed
    state = {
        **at_first,
        "env": {k: v for k, v in os.environ.items() if k not in CHANGING},
        "handlers": {str(n): repr(signal.getsignal(n)).split(" at ")[0] for n in signal.valid_signals()},
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "open": sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")),
        "files": [sys.stdin.fileno(), sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdout.encoding],
        "session": os.getsid(0) == os.getpgid(0) == os.getpid(),
        "process": [multiprocessing.current_process().name, str(multiprocessing.parent_process())],
        "threads": [threading.active_count(), threading.current_thread() is threading.main_thread()],
        "limits": [resource.getrlimit(n) for n in range(10)],
        "umask": [os.umask(0o77), os.umask(0o77)][:1],
        "cores": sorted(os.sched_getaffinity(0)),
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "hash": hash("text"),
        "threads of torch": [torch.get_num_threads(), torch.get_num_interop_threads()],
        "ours": sorted(name for name in sys.modules if name.split(".")[0] in {"runtime", "typer", "cell", "early"}),
        "module": [__name__, __file__, __spec__, sys.modules["__main__"].__dict__ is globals()],
        "filters": [str(found) for found in warnings.filters],
        "excepthook": sys.excepthook.__name__,
        "locale": locale.setlocale(locale.LC_ALL),
    }
    print(json.dumps(state, sort_keys=True))
"""


@linux
def test_a_forked_worker_is_as_a_new_one(run):
    changing = ["MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "RUNTIME_LAUNCH_FORK"]
    body = STATE.replace("CHANGING", repr(changing))
    reader, writer = os.pipe()  # a descriptor that the launcher was given, and no worker gets
    try:
        found, new = (run(body, stdin=(reader,), RUNTIME_LAUNCH_FORK=switch)[0] for switch in "10")
    finally:
        os.close(reader)
        os.close(writer)
    assert len(found) == len(new) == 2
    for one, other in zip(map(json.loads, found), map(json.loads, new), strict=True):
        assert {name: value for name, value in one.items() if value != other[name]} == {}


WHERE = "import sys; print('torch' in sys.modules)\n"


@linux
def test_workers_share_one_import_but_not_their_random_numbers(run):
    body = (
        WHERE
        + "import numpy, random, torch, uuid; print(numpy.random.rand(), random.random(), torch.rand(()), uuid.uuid4())"
    )
    lines, _ = run(body)
    assert lines[2:] == ["True", "True"]
    first, second = (line.split() for line in lines[:2])
    assert not set(first) & set(second)


@linux
def test_threads_of_a_forked_worker_compute(run):
    body = (
        WHERE
        + "import torch; print(float((torch.ones(2000, 200) @ torch.ones(200, 2000)).sum()), torch.get_num_threads())"
    )
    assert run(body)[0] == ["800000000.0 2", "800000000.0 2", "True", "True"]


@linux
@pytest.mark.parametrize(
    ("files", "body", "reason"),
    [
        (
            {"queue.py": "VALUE = 3"},
            "import queue; print(queue.VALUE)",
            "has modules named as those that torch imports: queue",
        ),
        (
            {},
            "import os; os.environ['OMP_NUM_THREADS'] = '1'; import torch; print(torch.get_num_threads() + 2)",
            "train.py:2 sets OMP_NUM_THREADS, which may be read when torch is loaded",
        ),
    ],
    ids=["shadowed", "early"],
)
def test_where_a_fork_would_differ_processes_are_new(run, tmp_path, files, body, reason):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    lines, shown = run(WHERE + body, "--debug", errors="runtime launch: every process imports torch itself: ")
    assert lines == ["3", "3", "False", "False"]
    assert reason in shown


def test_why_workers_are_not_forked(tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    script.write_text("import torch")
    spec = LaunchSpec(target=str(script), cpu=True, num_processes=2)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr(os, "pidfd_open", None, raising=False)
    monkeypatch.setattr(forked, "may_have_accelerator", lambda: True)
    assert forked.why_not(spec, {}) == ""
    assert "drivers of GPUs" in forked.why_not(LaunchSpec(target=str(script)), {})
    assert "own way" in forked.why_not(spec, {"PYTHONHASHSEED": "random"})
    assert "coverage" in forked.why_not(spec, {"COVERAGE_PROCESS_START": ".coveragerc"})
    assert forked.why_not(spec, {"RUNTIME_LAUNCH_FORK": "0"}) == "RUNTIME_LAUNCH_FORK=0"
    assert "not a file" in forked.why_not(LaunchSpec(target="json.tool", as_module=True, cpu=True), {})
    monkeypatch.setattr(forked, "entry_points", lambda group: [group])
    assert "torch.backends" in forked.why_not(spec, {})
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    assert "Linux only" in forked.why_not(spec, {})


SET = [
    ("import os\nos.environ['OMP_NUM_THREADS'] = '2'", "train.py:2 sets OMP_NUM_THREADS"),
    ("from os import environ\nenviron.setdefault('MKL_NUM_THREADS', '1')", "train.py:2 sets MKL_NUM_THREADS"),
    ("import os\nos.environ.update(KMP_AFFINITY='x', A='b')", "KMP_AFFINITY"),
    ("import os\nos.environ.update({'A': 'b', 'TORCH_LOGS': 'all'})", "TORCH_LOGS"),
    ("import os\nos.environ |= {'PYTORCH_NVML_BASED_CUDA_CHECK': '1'}", "PYTORCH_NVML_BASED_CUDA_CHECK"),
    ("import os\nos.putenv('LD_BIND_NOW', '1')", "LD_BIND_NOW"),
    ("import os\nfor name in names:\n    os.environ[name] = '1'", "train.py:3 sets variables"),
    ("import os\nos.environ.update(settings)", "train.py:2 sets variables"),
    ("from dotenv import load_dotenv\nload_dotenv()", "train.py:2 sets variables"),
    ("import os\ndel os.environ['OMP_NUM_THREADS']", "OMP_NUM_THREADS"),
    ("import part", "part.py:1 sets OMP_NUM_THREADS"),
    ("from package import inner", "inner.py:1 sets OMP_NUM_THREADS"),
]
NOT_SET = [
    "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    "import os\nprint(os.environ['OMP_NUM_THREADS'], os.environ.get('TORCHELASTIC_RUN_ID'))",
    "import os\nos.environ['TOKENIZERS_PARALLELISM'] = 'false'",
    "settings = {}\nsettings.update(OMP_NUM_THREADS=1)\nsettings['OMP_NUM_THREADS'] = 1",
    "def broken(:",
    "import other\nfrom . import nothing",
]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "package").mkdir()
    line = "import os; os.environ['OMP_NUM_THREADS'] = '2'\n"
    for name in ("part.py", "package/inner.py", "unused.py"):
        (tmp_path / name).write_text(line)
    (tmp_path / "package/__init__.py").write_text("from .inner import os")
    (tmp_path / "other.py").write_text("import train")  # a cycle
    return tmp_path


@pytest.mark.parametrize(("body", "said"), SET)
def test_a_variable_that_is_set_before_torch_is_found(project, body, said):
    (project / "train.py").write_text(body)
    assert said in early.set_before_torch(project / "train.py", str(project))


@pytest.mark.parametrize("body", NOT_SET)
def test_other_variables_do_not_matter(project, body):
    (project / "train.py").write_text(body)
    assert early.set_before_torch(project / "train.py", str(project)) == ""
