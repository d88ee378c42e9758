"""Joining the processes, letting them wait, and leaving without noise."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks

from runtime import Accelerator, DistributedType
from runtime.errors import WorldError
from runtime.world import World


def test_variables_of_torchrun_are_understood():
    variables = {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    world = World.from_environment(variables)
    assert (world.size, world.rank, world.local_rank, world.local_size) == (4, 3, 1, 2)
    assert World.from_environment({}) == World()
    assert World.from_environment({"WORLD_SIZE": "1", "RANK": "0"}) == World()


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"WORLD_SIZE": "2"}, "RANK is not"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE='two' is not a number"),
        ({"WORLD_SIZE": "2", "RANK": "2"}, "RANK=2 and WORLD_SIZE=2: ranks are counted from 0"),  # it waited for ever
        ({"WORLD_SIZE": "0", "RANK": "0"}, "RANK=0 and WORLD_SIZE=0"),
    ],
    ids=["no rank", "no number", "counted from 1", "none"],
)
def test_variables_that_name_no_process_are_refused(variables, says):
    with pytest.raises(WorldError, match=says):
        World.from_environment(variables)


def test_a_port_in_use_is_named(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        placement = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        for name, value in placement.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(WorldError, match=f"port {port}.*is in use.*set MASTER_PORT"):
            Accelerator(cpu=True)


def first_and_last(folder):
    accelerator = Accelerator(cpu=True)
    path = os.path.join(folder, "order")
    with accelerator.main_process_first():
        if accelerator.is_main_process:
            time.sleep(0.3)
        with open(path, "a") as file:
            file.write(str(accelerator.process_index))
    accelerator.wait_for_everyone()
    try:
        with accelerator.local_main_process_first():
            if accelerator.is_main_process:
                raise ValueError("on the main process")  # noqa: TRY301  a body that fails is what is tested
    except ValueError:
        pass
    accelerator.wait_for_everyone()
    written = open(path).read()  # noqa: SIM115
    again = Accelerator(cpu=True)  # uses the group that is there
    facts = (
        again.num_processes, again.process_index, again.is_last_process, again.is_main_process,
        again.distributed_type, again.on_last_process(lambda: "last")(), again.on_main_process(lambda: "main")(),
    )  # fmt: skip
    accelerator.end_training()
    return written, facts, dist.is_initialized()


def test_the_main_process_goes_first_and_releases_the_others(tmp_path):
    (written, first, left), (_, second, _) = run_ranks(first_and_last, 2, str(tmp_path))
    assert written == "01"
    assert first == (2, 0, False, True, DistributedType.MULTI_CPU, None, "main")
    assert second == (2, 1, True, False, DistributedType.MULTI_CPU, "last", None)
    assert not left


def start(code, size=2):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            env={
                **os.environ, "RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(size),
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for r in range(size)
    ]  # fmt: skip


LEAVE = """
from runtime import Accelerator
a = Accelerator(cpu=True)
a.print("hello from", a.num_processes)
"""
DIE = """
import sys
from runtime import Accelerator
a = Accelerator(cpu=True)
if a.process_index == 1:
    sys.exit(3)
a.wait_for_everyone()
"""


def leave_and_join_again():
    joined = []
    for turn in range(4):
        accelerator = Accelerator(cpu=True)
        joined.append(accelerator.gather(torch.tensor([accelerator.process_index])).tolist())
        time.sleep(0.2 * (accelerator.process_index == turn % 3))  # each is the last to leave
        accelerator.end_training()
    return joined


def test_who_has_left_may_join_again():
    """Who was first to do so found the meeting place of the group that was left, with its addresses, and failed."""
    assert run_ranks(leave_and_join_again, 3) == 3 * [4 * [[0, 1, 2]]]


def test_processes_leave_without_noise():
    outputs = [process.communicate(timeout=60) for process in start(LEAVE)]
    assert outputs == [("hello from 2\n", ""), ("", "")]


def test_nobody_hangs_when_another_process_is_gone():
    first, second = start(DIE)
    _, errors = first.communicate(timeout=60)
    second.communicate(timeout=60)
    assert second.returncode == 3
    assert first.returncode == 1
    assert "wait_for_everyone" in errors
