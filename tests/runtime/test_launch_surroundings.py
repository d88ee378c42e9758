"""What SLURM, MPI and torchrun say about a launch."""

from __future__ import annotations

import pytest

from runtime.launch import machine
from runtime.launch.env import child_environment
from runtime.launch.refusals import check
from runtime.launch.request import request
from runtime.launch.share import divide
from runtime.launch.spec import LaunchError, Machines
from runtime.launch.surroundings import hosts, surroundings

STEP = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_NODES": "4",
    "SLURM_STEP_NODELIST": "gpu[02-04,11]",
    "SLURM_NODEID": "2",
}
ONE_A_MACHINE = {**STEP, "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2", "SLURM_LOCALID": "0"}
SEVERAL = {
    **STEP,
    "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
INTEL_MPI = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"}


@pytest.fixture
def ask(tmp_path):
    (tmp_path / "train.py").touch()

    def make(environ, **given):
        return request(str(tmp_path / "train.py"), (), given, environ, config_file="none")

    return make


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node1", ["node1"]),
        ("gpu[01-03,7],login", ["gpu01", "gpu02", "gpu03", "gpu7", "login"]),
        ("a[1-2]b[3-4]", ["a1b3", "a1b4", "a2b3", "a2b4"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("x,y", ["x", "y"]),
        ("", []),
    ],
)
def test_hosts(text, expected):
    assert hosts(text) == expected


def test_one_task_on_each_machine_starts_the_processes_of_its_machine(ask):
    asked = ask(ONE_A_MACHINE, num_processes="8")
    spec = asked.spec
    assert (spec.machines, spec.machine_rank, spec.main_process_ip, spec.place) == (Machines(4, 4), 2, "gpu02", None)
    assert 10_000 <= spec.main_process_port < 30_000
    assert str(asked.settings.where("machine_rank").origin) == "environment (SLURM_NODEID)"
    check(spec)


def test_all_tasks_of_a_step_name_one_port_and_steps_name_different_ones(ask):
    ports = [
        ask({**ONE_A_MACHINE, "SLURM_NODEID": node, "SLURM_PROCID": node}).spec.main_process_port for node in "0123"
    ]
    assert len(set(ports)) == 1
    others = {"SLURM_STEP_ID": "1"}, {"SLURM_JOB_ID": "4712"}
    assert not {ask({**ONE_A_MACHINE, **other}).spec.main_process_port for other in others} & set(ports)


def test_several_tasks_on_a_machine_are_the_processes(ask):
    spec = ask(SEVERAL).spec
    check(spec)
    share = divide(spec, SEVERAL)
    assert (share.processes, share.processes_here) == (7, 1)
    variables = child_environment(spec, share, SEVERAL)
    found = {name: variables[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")}
    assert list(found.values()) == ["5", "7", "1", "2", "gpu02"]
    assert variables["MASTER_PORT"] == str(spec.main_process_port)
    assert variables["PYTHONHASHSEED"] == "0"


def test_what_is_given_goes_before_what_slurm_says(ask):
    asked = ask({**ONE_A_MACHINE, "PET_MASTER_ADDR": "ib0"}, main_process_port="1234", machine_rank="1")
    assert (asked.spec.main_process_ip, asked.spec.main_process_port, asked.spec.machine_rank) == ("ib0", 1234, 1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"num_processes": "8"}, "SLURM_PROCID says that 7 are there already; start one task on each machine"),
        ({"max_restarts": "1"}, "srun --ntasks-per-node=1"),
        ({"log_dir": "logs"}, "use srun --output"),
        ({"console": "prefix"}, "srun --label"),
    ],
)
def test_what_tasks_cannot_have_is_refused(ask, given, says):
    with pytest.raises(LaunchError, match=says):
        check(ask(SEVERAL, **given).spec)
    assert ask(SEVERAL, num_processes="7").spec.place.size == 7


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {**ONE_A_MACHINE, "SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_NUM_NODES": "1"},  # srun --pty bash
        {
            "SLURM_JOB_NUM_NODES": "1",
            "SLURM_PROCID": "0",
            "SLURM_NODEID": "0",
            "SLURM_NTASKS": "4",
        },  # in a batch script
        {**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "1"},
        {**ONE_A_MACHINE, "SLURM_PROCID": "many"},
        {**ONE_A_MACHINE, "LOCAL_RANK": "0"},  # a launch inside of a launched process
    ],
)
def test_one_launcher_for_one_machine(ask, environ):
    around = surroundings(environ)
    assert (around.place, dict(around.values), around.notice) == (None, {}, None)


def test_a_batch_script_of_several_machines_without_srun_is_told(ask):
    assert "`srun runtime launch ...` uses all" in ask({"SLURM_JOB_NUM_NODES": "2", "SLURM_PROCID": "0"}).around.notice
    assert ask({**ONE_A_MACHINE, "SLURM_JOB_NUM_NODES": "4"}).around.notice is None


def test_mpi(ask):
    place = ask(OPEN_MPI).spec.place
    assert (place.rank, place.size, place.local_rank, place.local_size) == (1, 2, 1, 2)
    check(ask(OPEN_MPI).spec)
    one_each = ask(INTEL_MPI)
    assert (one_each.spec.place, one_each.spec.machines, one_each.spec.machine_rank) == (None, Machines(2, 2), 1)
    with pytest.raises(LaunchError, match="need --main_process_ip"):
        check(one_each.spec)
    with pytest.raises(LaunchError, match="processes on several machines need --main_process_ip"):
        check(ask({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "4"}).spec)


def test_torchruns_variables_are_those_of_kubernetes_jobs(ask):
    job = {
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "auto",
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": "train-node-0-0.train",
        "PET_MASTER_PORT": "29400",
    }
    spec = ask(job).spec
    assert (spec.machines, spec.machine_rank, spec.processes_per_machine) == (Machines(2, 2), 1, None)
    assert (spec.main_process_ip, spec.main_process_port) == ("train-node-0-0.train", 29400)


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [("h0:29400", ("h0", 29400)), ("h0", ("h0", None)), ("[fe80::1]:5", ("fe80::1", 5))],
)
def test_an_endpoint(ask, endpoint, expected):
    spec = ask({"PET_RDZV_ENDPOINT": endpoint, "PET_NNODES": "1:3", "PET_NPROC_PER_NODE": "2"}).spec
    assert (spec.main_process_ip, spec.main_process_port) == expected
    assert (spec.machines, spec.processes_per_machine) == (Machines(1, 3), 2)


@pytest.mark.parametrize(("cores", "threads"), [(8, 4), (2, 2)])
def test_tasks_that_are_not_bound_share_the_cores(ask, monkeypatch, cores, threads):
    monkeypatch.setattr(machine, "core_count", lambda: cores)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    share = divide(ask(OPEN_MPI).spec, {})
    assert share.threads == (threads if cores == 8 else None), "bound to cores of its own: torch's default"
