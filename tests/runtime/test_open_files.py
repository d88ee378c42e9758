"""What a script has left in open files is written, and its exit handlers run once, however its process ends."""

import os
import subprocess
import sys
import textwrap
import threading
import zlib

import pytest
from ranks import free_port

from runtime import open_files
from runtime.launch import child

WAITS_IN_VAIN = """
    import atexit, sys
    import torch, torch.distributed as dist

    atexit.register(lambda: print("first registered", flush=True))
    from runtime import Accelerator
    from runtime.errors import CollectiveError
    from runtime.watch import reports, watch

    watch.ASK_AFTER_S = watch.ASK_EVERY_S = 0.2
    watch.LOOK_EVERY_S = 0.3
    reports.PATIENCE_S = 1.0
    accelerator = Accelerator(cpu=True)
    rank = accelerator.process_index
    log = open(f"log{rank}.txt", "w")
    log.write("kept")
    atexit.register(lambda: print("last registered", flush=True))
    {body}
"""
CALLS_OF_PYTORCH = "(dist.all_reduce if rank else lambda x: dist.all_gather([x, x], x))(torch.ones(3))"
BODIES = {
    "caught": """
    try:
        accelerator.gather(torch.ones(1)) if rank == 0 else dist.all_reduce(torch.ones(3))
    except CollectiveError:
        print("caught")
    """,
    "uncaught": "accelerator.gather(torch.ones(1)) if rank == 0 else dist.all_reduce(torch.ones(3))",
    "left and caught": """
    try:
        accelerator.gather(torch.ones(1)) if rank == 0 else dist.all_reduce(torch.ones(3))
    except CollectiveError:
        print("caught")
        accelerator.end_training()
    """,
    "of PyTorch": CALLS_OF_PYTORCH,
    "the other is done": "None if rank == 0 else dist.all_reduce(torch.ones(3))",
}


def started(folder, rank, port):
    placement = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
    variables = {name: str(value) for name, value in placement.items()}
    return subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, "MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("body", BODIES)
def test_files_of_processes_that_wait_in_vain_are_written(tmp_path, monkeypatch, body):
    """They came to no end of their own where a collective that was given up is waited for by PyTorch."""
    monkeypatch.setenv("PYTHONPATH", str(child.__file__).rpartition("/runtime/")[0])
    (tmp_path / "script.py").write_text(textwrap.dedent(WAITS_IN_VAIN).replace("{body}", textwrap.dedent(BODIES[body])))
    port = free_port()
    both = [started(tmp_path, rank, port) for rank in range(2)]
    try:
        said = [process.communicate(timeout=60) for process in both]
    finally:
        for process in both:
            process.kill()
    assert [process.returncode for process in both] == [0 if body == "the other is done" else 1, 1], said
    for rank in range(2):
        assert (tmp_path / f"log{rank}.txt").read_text() == "kept", (rank, said)
    if body != "of PyTorch":  # there the script's thread hangs, and no handler runs
        for out, _ in said:
            handlers = [line for line in out.splitlines() if line.endswith("registered")]
            assert handlers == ["last registered", "first registered"]


STOPPED = """
    import gzip, sys, time
    from runtime import Accelerator

    accelerator = Accelerator(cpu=True)
    log = open(f"log{accelerator.process_index}.txt", "w")
    log.write("kept")
    packed = gzip.open(f"packed{accelerator.process_index}.gz", "wt")
    packed.write("kept")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        time.sleep(60)  # computes; the launcher ends it with a signal
    raise ValueError("the second batch is empty")
"""


def test_files_of_a_process_that_is_stopped_since_another_has_failed_are_written(tmp_path, launched):
    (tmp_path / "train.py").write_text(textwrap.dedent(STOPPED))
    _, said = launched(tmp_path, "--cpu", "-n", "2", "train.py").communicate(timeout=60)
    assert "ValueError: the second batch is empty" in said
    assert [(tmp_path / f"log{rank}.txt").read_text() for rank in range(2)] == ["kept"] * 2
    with (tmp_path / "packed0.gz").open("rb") as file:  # it was cut off: without its last bytes
        assert zlib.decompressobj(wbits=31).decompress(file.read()) == b"kept"


def test_a_file_whose_lock_is_held_is_given_up_and_the_others_are_written(tmp_path, monkeypatch):
    reading, writing = os.pipe()
    stuck = os.fdopen(writing, "wb", buffering=1 << 20)
    thread = threading.Thread(target=lambda: (stuck.write(b"x" * (1 << 20)), stuck.flush()), daemon=True)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive(), "nobody reads at the other end"
    logs = [(tmp_path / f"{number}.txt").open("w") for number in range(3)]
    for log in logs:
        log.write("kept")
    ends = [*(log.flush for log in logs[:1]), stuck.flush, *(log.flush for log in logs[1:])]
    monkeypatch.setattr(open_files, "_ends", lambda **_: ends)
    try:
        open_files.write_open_files(patience_s=0.3)
        assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["kept"] * 3
    finally:
        left = 1 << 20
        while left:
            left -= len(os.read(reading, left))
        thread.join()
        for file in (*logs, stuck):
            file.close()
        os.close(reading)


def test_files_are_written_where_no_thread_starts_any_more(tmp_path, monkeypatch):
    def refuse(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with open(tmp_path / "log.txt", "w") as log:
        log.write("kept")
        monkeypatch.setattr(open_files, "_ends", lambda **_: [log.flush])
        open_files.write_open_files()
        assert (tmp_path / "log.txt").read_text() == "kept"
