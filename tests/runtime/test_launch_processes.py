"""Real launches of tiny scripts: arguments, environment, failures, signals."""

import json
import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

LIMIT_S = 90

SHOW = """
    import json, os, sys
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "OMP_NUM_THREADS")
    names = (*names, "ACCELERATE_USE_CPU", "ACCELERATE_MIXED_PRECISION")
    print(json.dumps({"argv": sys.argv, "path": sys.path[0], "name": __name__, "file": __file__,
                      "env": {name: os.environ[name] for name in names if name in os.environ}}))
"""
JOIN = """
    import os, sys
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    ones = torch.ones(1)
    dist.all_reduce(ones)
"""


@pytest.fixture
def launch(launched, tmp_path, request):
    """Starts `runtime launch` in a scratch folder.

    Workers are forked, as by default on the CPU, unless the test is one of those that run in both ways.
    """
    way = getattr(request, "param", "forked")
    return lambda *arguments, **variables: launched(tmp_path, *arguments, **{**WAYS[way], **variables})


@pytest.fixture
def script(tmp_path):
    def write(*parts, name="train.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(textwrap.dedent(part) for part in parts))
        return name

    return write


WAYS = {"forked": {}, "new": {"RUNTIME_LAUNCH_FORK": "0"}}
in_both_ways = pytest.mark.parametrize("launch", WAYS, indirect=True)


def finish(process):
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def rows(out):
    return sorted((json.loads(line) for line in out.splitlines()), key=lambda row: row["env"].get("RANK", ""))


PASSED = ["--num_processes", "7", "--", "-x", "--help", "$HOME ${local_rank} $$", "", "a b"]


def test_one_process_is_the_script_itself(launch, script, tmp_path):
    status, out, err = finish(launch("-n", "1", "--cpu", script(SHOW), *PASSED))
    assert (status, err) == (0, "")
    (row,) = rows(out)
    assert row["argv"] == ["train.py", *PASSED]
    assert (row["path"], row["name"], row["file"]) == (str(tmp_path), "__main__", str(tmp_path / "train.py"))
    assert row["env"] == {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}


def test_one_process_inherits_no_placement(launch, script):
    variables = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "3", "MASTER_PORT": "1"}
    _, out, _ = finish(launch("-n", "1", script(SHOW), **variables))
    assert rows(out)[0]["env"] == {"OMP_NUM_THREADS": "1"}


@in_both_ways
def test_files_that_scripts_leave_open_are_written(launch, script, tmp_path):
    text = """
        import csv, os
        log = csv.writer(open(f"{os.environ['RANK']}.csv", "w", newline=""))
        log.writerow([1, 2])
    """
    assert finish(launch("--num-processes", "2", "--cpu", script(text)))[0] == 0
    assert [(tmp_path / f"{rank}.csv").read_text().split() for rank in (0, 1)] == [["1,2"], ["1,2"]]


@in_both_ways
def test_two_processes_get_arguments_and_environment(launch, script, tmp_path):
    options = ["--num-processes", "2", "--cpu", "--mixed-precision", "bf16", "--num-cpu-threads-per-process", "3"]
    status, out, err = finish(launch(*options, script(SHOW), *PASSED))
    assert (status, err) == (0, "")
    first, second = rows(out)
    for row in (first, second):
        assert row["argv"] == ["train.py", *PASSED]
        assert (row["path"], row["name"], row["file"]) == (str(tmp_path), "__main__", str(tmp_path / "train.py"))
        assert row["env"]["WORLD_SIZE"] == "2"
        assert row["env"]["OMP_NUM_THREADS"] == "3"
        assert row["env"]["ACCELERATE_MIXED_PRECISION"] == "bf16"
    assert [first["env"]["LOCAL_RANK"], second["env"]["LOCAL_RANK"]] == ["0", "1"]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_module_in_a_package(launch, script, processes):
    script("", name="package/__init__.py")
    script("VALUE = 3", name="package/sibling.py")
    script("from .sibling import VALUE", SHOW, name="package/train.py")
    status, out, err = finish(launch("-n", processes, "--cpu", "-m", "package.train", "--x", "1"))
    assert (status, err) == (0, "")
    assert len(rows(out)) == int(processes)
    assert all(row["argv"][1:] == ["--x", "1"] and row["name"] == "__main__" for row in rows(out))


@in_both_ways
def test_main_can_be_pickled_and_spawned(launch, script):
    body = """
        import multiprocessing

        def double(value):
            return 2 * value

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(double, [4]))
    """
    assert finish(launch("-n", "2", "--cpu", script(body))) == (0, "[8]\n[8]\n", "")


def test_two_launches_at_once_reduce_apart(launch, script):
    body = "assert int(ones) == 2\nprint(os.environ['MASTER_PORT'])\ndist.destroy_process_group()"
    name = script(JOIN, body)
    both = [launch("-n", "2", "--cpu", name) for _ in range(2)]
    results = [finish(process) for process in both]
    assert [status for status, _, _ in results] == [0, 0]
    ports = [set(out.split()) for _, out, _ in results]
    assert all(len(found) == 1 for found in ports)
    assert ports[0] != ports[1]


def test_two_machines_keep_their_ranks(launch, script, unused_port):
    options = [
        "-n",
        "2",
        "--cpu",
        "--num_machines",
        "2",
        "--main_process_ip",
        "127.0.0.1",
        "--main_process_port",
        unused_port,
    ]
    name = script(JOIN, "print(dist.get_rank(), int(ones))\ndist.destroy_process_group()")
    machines = [launch(*options, "--machine_rank", rank, name) for rank in ("1", "0")]
    assert [finish(process)[:2] for process in machines] == [(0, "1 2\n"), (0, "0 2\n")]


def test_two_machines_start_again_together(launch, script, unused_port):
    options = [
        *"-n 2 --cpu --num_machines 2 --max_restarts 1 --main_process_ip 127.0.0.1".split(),
        "--main_process_port",
    ]
    body = """
        from pathlib import Path
        first = Path("failed")
        if dist.get_rank() == 1 and not first.exists():
            first.touch()
            raise RuntimeError("first attempt")
        dist.all_reduce(ones)
        print(int(ones))
        dist.destroy_process_group()
    """
    name = script(JOIN, body)
    machines = [launch(*options, unused_port, "--machine_rank", rank, name) for rank in ("1", "0")]
    results = [finish(process) for process in machines]
    assert [result[:2] for result in results] == [(0, "4\n"), (0, "4\n")]
    said = "".join(err for _, _, err in results)
    assert said.count("RuntimeError: first attempt") == 1
    assert "starting again (restart 1 of 1)" in said


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@in_both_ways
def test_a_failure_is_shown_once(launch, script):
    body = """
        def train():
            if dist.get_rank() == 1:
                raise ValueError("boom")
            dist.all_reduce(ones)

        train()
    """
    status, out, err = finish(launch("-n", "2", "--cpu", script(JOIN, body)))
    assert (status, out) == (1, "")
    assert err.count("Traceback") == 1
    assert err.count("ValueError: boom") == 1
    assert "in train" in err
    assert "child.py" not in err, "our own frames are no news"
    assert "elastic" not in err
    assert err.endswith(
        "ValueError: boom\nruntime launch: process 1 of 2 failed with exit status 1 (above); the others were stopped\n"
    )


@in_both_ways
@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [
        ("sys.exit(5)", 5, "runtime launch: process"),
        ("sys.exit('no data in ./data')", 1, "no data in ./data\nruntime launch: process"),
        ("os._exit(7)", 7, "failed with exit status 7"),
        ("os.kill(os.getpid(), 9)", 137, "was killed by SIGKILL"),
        ("sys.exit()", 0, ""),
        ("def broken(:", 1, "SyntaxError"),
    ],
)
def test_exit_status(launch, script, ending, status, said):
    found, out, err = finish(launch("-n", "2", "--cpu", script("import os, sys", ending)))
    assert (found, out) == (status, "")
    assert said in err
    assert err.count(said.split("\n")[0]) == (1 if said else len(err) + 1)


def test_the_exit_status_of_one_process(launch, script):
    assert finish(launch("-n", "1", script("import sys; sys.exit(5)")))[0] == 5
    assert finish(launch("-n", "1", script("import os; os.kill(os.getpid(), 9)")))[0] == -9


@in_both_ways
def test_a_restart_after_a_failure(launch, script):
    body = """
        if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            raise RuntimeError("first attempt")
        print("finished")
        dist.destroy_process_group()
    """
    status, out, err = finish(launch("-n", "2", "--cpu", "--max_restarts", "1", script(JOIN, body)))
    assert (status, out) == (0, "finished\nfinished\n")
    assert err.count("RuntimeError: first attempt") == 1
    assert "starting again (restart 1 of 1)" in err


SLEEP = """
    import os, time
    print(os.getpid())
    time.sleep(120)
"""


def is_running(pid):
    """False also for a zombie: it has ended, and waits for whoever adopted it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pids):
    deadline = time.monotonic() + 10
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline, "workers are still there"
        time.sleep(0.05)


@in_both_ways
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("sent", "status"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)],
    ids=str,
)
def test_a_signal_ends_the_workers(launch, script, sent, status):
    process = launch("-n", "2", "--cpu", script(SLEEP))
    workers = [int(process.stdout.readline()) for _ in range(2)]
    assert all(is_running(pid) for pid in workers)
    process.send_signal(sent)
    found, _, err = finish(process)
    assert found == status
    assert "Traceback" not in err
    wait_until_gone(workers)


@in_both_ways
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_launch_with_nohup_outlives_its_terminal(launch, script):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does, for those whom it starts
    try:
        process = launch("-n", "2", "--cpu", script(SLEEP))
    finally:
        signal.signal(signal.SIGHUP, before)
    workers = [int(process.stdout.readline()) for _ in range(2)]
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)  # a launcher that listens to it would be gone, and its workers stopped
    assert all(is_running(pid) for pid in [process.pid, *workers])
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_signal_reaches_one_process(launch, script):
    process = launch("-n", "1", script(SLEEP))
    assert int(process.stdout.readline()) == process.pid, "the launcher became the script"
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == -signal.SIGTERM


@in_both_ways
def test_workers_can_finish_their_work_on_a_signal(launch, script):
    body = """
        import signal, sys, time

        def save(*_):
            print("saved")
            sys.exit(0)

        signal.signal(signal.SIGTERM, save)
        print("ready")
        time.sleep(120)
    """
    process = launch("-n", "2", "--cpu", script(body))
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "ready\n"]
    process.send_signal(signal.SIGTERM)
    status, out, _ = finish(process)
    assert (status, out) == (143, "saved\nsaved\n")


@in_both_ways
def test_a_failure_while_ending_is_shown(launch, script):
    body = """
        import os, signal, sys, time

        def save(*_):
            if os.environ["RANK"] == "1":
                raise OSError("disk full")
            sys.exit(0)

        signal.signal(signal.SIGTERM, save)
        print("ready")
        time.sleep(120)
    """
    process = launch("-n", "2", "--cpu", script(body))
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "ready\n"]
    process.send_signal(signal.SIGTERM)
    status, _, err = finish(process)
    assert status == 143
    assert err.count("Traceback") == 1
    assert err.endswith(
        "OSError: disk full\nruntime launch: stopped by SIGTERM; process 1 of 2 failed with exit status 1 (above) "
        "while it ended\n"
    )


@in_both_ways
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_second_signal_kills(launch, script):
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: print('no'))"
    process = launch("-n", "2", "--cpu", script(stubborn, SLEEP + "    time.sleep(120)\n"))
    workers = [int(process.stdout.readline()) for _ in range(2)]
    process.send_signal(signal.SIGTERM)
    assert [process.stdout.readline() for _ in range(2)] == ["no\n", "no\n"]
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    status, _, err = finish(process)
    assert (status, err) == (
        143,
        "runtime launch: stopped by SIGTERM; process 0 of 2 did not end in time and was killed\n",
    )
    assert time.monotonic() - began < 20, "elastic waits for 30 s"
    wait_until_gone(workers)


PRINT = """
    import os, sys
    print("out", os.environ["RANK"])
    print("err", os.environ["RANK"], file=sys.stderr)
"""


def test_lines_with_the_rank_in_front(launch, script):
    status, out, err = finish(launch("-n", "2", "--cpu", "--console", "prefix", script(PRINT)))
    assert (status, sorted(out.splitlines())) == (0, ["[0] out 0", "[1] out 1"])
    assert sorted(err.splitlines()) == ["[0] err 0", "[1] err 1"]


def test_lines_of_rank_0_only_and_a_failure_of_another(launch, script):
    body = "if os.environ['RANK'] == '1': raise ValueError('boom')"
    status, out, err = finish(launch("-n", "2", "--cpu", "--console", "main", script(PRINT, body)))
    assert (status, out) == (1, "out 0\n")
    assert "ValueError: boom" in err
    assert "err 1" not in err


def test_lines_are_kept_in_files(launch, script, tmp_path):
    fails_once = "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0': sys.exit(3)"
    options = ["-n", "2", "--cpu", "--log_dir", "logs", "--console", "main", "--max_restarts", "1"]
    status, out, err = finish(launch(*options, script(PRINT, fails_once)))
    (folder,) = (tmp_path / "logs").iterdir()
    assert status == 0
    assert set(out.splitlines()) == {"[0] out 0"}
    assert err.endswith(f"runtime launch: the lines of each process are in logs/{folder.name}\n")
    for rank in ("0", "1"):
        assert (folder / f"rank_{rank}.stdout.log").exists()  # empty where the other one failed before
        assert (folder / "restart_1" / f"rank_{rank}.stdout.log").read_text() == f"out {rank}\n"
        assert (folder / "restart_1" / f"rank_{rank}.stderr.log").read_text() == f"err {rank}\n"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux binds processes to cores")
def test_each_process_has_cores_of_its_own(launch, script):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("there is one core")
    body = "import os; print(*sorted(os.sched_getaffinity(0)))"
    _, out, _ = finish(launch("-n", "2", "--cpu", "--enable_cpu_affinity", script(body)))
    half = len(cores) // 2
    assert sorted(out.splitlines()) == sorted(" ".join(map(str, part)) for part in (cores[:half], cores[half:]))


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_program_that_is_not_python(launch, tmp_path, processes):
    program = tmp_path / "train.sh"
    program.write_text('#!/bin/sh\necho "${RANK:-0} $1 $ACCELERATE_USE_CPU"\nexit 3\n')
    program.chmod(0o755)
    status, out, err = finish(launch("-n", processes, "--cpu", "--no_python", "./train.sh", "--x $HOME"))
    assert status == 3
    assert "0 --x $HOME true" in out
    assert ("failed with exit status 3" in err) == (processes == "2")


@pytest.mark.parametrize("tasks", ["processes", "machines"])
def test_under_srun_no_option_is_needed(launch, script, unused_port, tasks):
    """Two tasks: on one machine they are the processes, on two machines they start the processes of each."""
    name = script(JOIN, "print(dist.get_rank(), os.environ['LOCAL_RANK'], int(ones))\ndist.destroy_process_group()")
    step = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_TASKS_PER_NODE": "2"}
    if tasks == "machines":
        step |= {"SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
    step |= {"SLURM_STEP_NODELIST": "127.0.0.1", "ACCELERATE_USE_CPU": "true", "MASTER_PORT": unused_port}
    started = []
    for rank in ("1", "0"):
        place = {"SLURM_LOCALID": "0", "SLURM_NODEID": rank} if tasks == "machines" else {"SLURM_LOCALID": rank}
        started.append(launch(name, **{"SLURM_NODEID": "0", **step, **place, "SLURM_PROCID": rank}))
    results = [finish(process) for process in started]
    second = "0" if tasks == "machines" else "1"
    assert [result[:2] for result in results] == [(0, f"1 {second} 2\n"), (0, "0 0 2\n")]


@in_both_ways
def test_lines_of_processes_do_not_mix(launch, script):
    body = """
        for step in range(300):
            print("x" * 80, end="")
            print("y" * 80)
    """
    _, out, _ = finish(launch("-n", "2", "--cpu", script(body), PYTHONUNBUFFERED="1"))
    assert set(out.splitlines()) == {"x" * 80 + "y" * 80}
