"""What is refused before anything starts, and how processes and settings are shared out."""

import functools
import importlib
import os
import signal
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from runtime import hardware
from runtime.config import MixedPrecision
from runtime.kinds import CPU, CUDA, TPU, XPU
from runtime.launch import machine, readers
from runtime.launch.env import child_environment, environment
from runtime.launch.failure import Exit, Note, cause, describe, describe_stop, read_note
from runtime.launch.refusals import check
from runtime.launch.share import Share, divide
from runtime.launch.single import command
from runtime.launch.spec import Console, LaunchError, LaunchSpec, Machines, Meeting


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("pass\n")
    return str(path)


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(machine, "gpu_count", lambda: 2)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(machine, "gpu_count", lambda: 0)


SEVERAL = {"machines": Machines(2, 2), "main_process_ip": "10.0.0.1"}
ELASTIC = {**SEVERAL, "machines": Machines(2, 4)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_processes": 0}, "at least 1 is needed; leave it out for one process per GPU"),
        ({"machines": Machines(0, 0)}, "leave it out for this machine alone"),
        ({"machine_rank": 1}, "ranks are 0 to 0"),
        ({"machines": Machines(2, 2)}, "need --main_process_ip"),
        ({**SEVERAL, "machine_rank": 2}, "ranks are 0 to 1"),
        ({**SEVERAL, "main_process_port": 0}, "have to name the same port"),
        ({**SEVERAL, "num_processes": 3}, "use a multiple of 2"),
        ({**SEVERAL, "max_restarts": 1, "rdzv_backend": Meeting.STATIC}, "use --rdzv_backend c10d"),
        ({**ELASTIC, "rdzv_backend": Meeting.STATIC}, "use --rdzv_backend c10d"),
        ({**ELASTIC, "machines": Machines(4, 2)}, "the smaller number first"),
        ({**ELASTIC, "num_processes": 8}, "use --processes_per_machine"),
        ({**ELASTIC, "machine_rank": 4}, "ranks are 0 to 3"),
        ({"processes_per_machine": 0}, "at least 1 is needed"),
        ({**SEVERAL, "processes_per_machine": 2, "num_processes": 6}, "is not --num_processes 6"),
        ({"main_process_port": 65536}, "ports are 1 to 65535"),
        ({"cpu": True, "mixed_precision": MixedPrecision.FP16}, "with --cpu use --mixed_precision bf16"),
        ({"cpu": True, "gpu_ids": ("0",)}, "exclude each other"),
        ({"threads_per_process": 0}, "at least 1 is needed"),
        ({"max_restarts": -1}, "0 or more is needed"),
    ],
)
def test_check_refuses(script, wrong, message):
    with pytest.raises(LaunchError, match=message) as caught:
        check(LaunchSpec(target=script, **wrong))
    assert "\n" not in str(caught.value)


def test_check_accepts(script):
    check(LaunchSpec(target=script))
    check(LaunchSpec(target=script, **SEVERAL, machine_rank=1, num_processes=4))
    check(LaunchSpec(target="package.train", as_module=True))


def test_a_missing_script_names_the_similar_one(script, tmp_path):
    with pytest.raises(LaunchError, match=r"no such file: .*trian\.py; did you mean .*train\.py\?"):
        check(LaunchSpec(target=str(tmp_path / "trian.py")))
    with pytest.raises(LaunchError, match="the script comes after the options"):
        check(LaunchSpec(target=str(tmp_path / "nothing_like_it" / "x.py")))


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(LaunchError, match="is a directory; name the script in it"):
        check(LaunchSpec(target=str(tmp_path)))


def test_a_notebook_is_refused(tmp_path):
    (tmp_path / "train.ipynb").write_text("{}")  # Python runs that, and nothing happens
    with pytest.raises(LaunchError, match=r"is a notebook.*`jupyter execute .*` does"):
        check(LaunchSpec(target=str(tmp_path / "train.ipynb")))


def test_logs_that_cannot_be_written_are_refused(script, tmp_path, monkeypatch):
    check(LaunchSpec(target=script, log_dir=str(tmp_path / "logs"), console=Console.MAIN))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)  # root may write anywhere
    with pytest.raises(LaunchError, match=r"--log_dir .*logs/run cannot be written; name another folder"):
        check(LaunchSpec(target=script, log_dir=str(tmp_path / "logs" / "run"), console=Console.MAIN))


@pytest.mark.parametrize("name", ["runtime.py", "runtime/__init__.py"])
def test_a_module_that_hides_the_package_is_refused(script, tmp_path, name):
    own = tmp_path / name
    own.parent.mkdir(exist_ok=True)
    own.write_text("x = 1\n")
    check(LaunchSpec(target=script))  # which does not ask for the package
    Path(script).write_text("import torch\nfrom runtime import Accelerator, DataLoaderConfiguration\n")
    with pytest.raises(LaunchError, match=r"train\.py imports Accelerator from runtime, and would find .*runtime"):
        check(LaunchSpec(target=script))
    own.write_text("class Accelerator: ...\n")  # a copy of the package
    check(LaunchSpec(target=script))


@pytest.mark.parametrize("text", ["", "0,", "0,,1", "1,1"])
def test_gpu_ids_are_refused(text):
    with pytest.raises(LaunchError, match="not a list of different GPUs"):
        readers.gpu_ids(text)


def test_gpu_ids():
    assert readers.gpu_ids("0, 2") == ("0", "2")
    assert readers.gpu_ids("GPU-8a2b") == ("GPU-8a2b",)
    assert readers.gpu_ids("MIG-GPU-8a2b/1/0, 0.1") == ("MIG-GPU-8a2b/1/0", "0.1")
    assert readers.gpu_ids("all") is None


def test_processes_default_to_one_per_gpu(script, two_gpus):
    assert divide(LaunchSpec(target=script), {}).processes == 2
    assert divide(LaunchSpec(target=script, cpu=True), {}).processes == 1
    assert divide(LaunchSpec(target=script), {"ACCELERATE_USE_CPU": "true"}).processes == 1
    assert divide(LaunchSpec(target=script, gpu_ids=("1",)), {}).processes == 1
    both = divide(LaunchSpec(target=script, **SEVERAL), {})
    assert (both.processes, both.processes_here) == (4, 2)
    changing = divide(LaunchSpec(target=script, **ELASTIC, processes_per_machine=1), {})
    assert (changing.processes, changing.processes_here) == (2, 1)


def test_processes_default_to_one_without_gpus(script, no_gpu):
    share = divide(LaunchSpec(target=script), {})
    assert (share.processes, share.notice) == (1, None)


def test_more_processes_than_gpus_are_refused(script, two_gpus):
    with pytest.raises(LaunchError, match=r"which has 2 GPUs to use.*use --num_processes 2, or --cpu"):
        divide(LaunchSpec(target=script, num_processes=3), {})
    with pytest.raises(LaunchError, match="has 1 GPU to use"):
        divide(LaunchSpec(target=script, num_processes=2, gpu_ids=("0",)), {})
    assert divide(LaunchSpec(target=script, num_processes=3, cpu=True), {}).processes == 3


def test_a_gpu_that_is_not_there_is_refused(script, two_gpus):
    with pytest.raises(LaunchError, match="names 2, and this machine has GPUs 0 to 1"):
        divide(LaunchSpec(target=script, gpu_ids=("0", "2")), {})


def test_a_gpu_of_a_machine_without_one_is_refused_by_its_name_too(script, no_gpu):
    with pytest.raises(LaunchError, match="names GPU-8a2b, and this machine has no GPU that torch can use"):
        divide(LaunchSpec(target=script, gpu_ids=("GPU-8a2b",)), {})


@pytest.mark.parametrize(
    ("kind", "variable"),
    [(CUDA, "CUDA_VISIBLE_DEVICES"), (XPU, "ZE_AFFINITY_MASK"), (TPU, "TPU_VISIBLE_CHIPS")],
)
def test_devices_are_masked_by_the_variable_of_their_kind(script, two_gpus, monkeypatch, kind, variable):
    monkeypatch.setattr(machine, "device_kind", lambda: kind)
    spec = LaunchSpec(target=script, gpu_ids=("1",))
    assert child_environment(spec, divide(spec, {}), {}) == {variable: "1"}


@pytest.fixture
def devices(monkeypatch):
    """A torch that sees these devices, on a machine that may have some."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(machine, "may_have_accelerator", lambda: True)

    def have(cuda=0, xpu=0, other=None):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.xpu, "device_count", lambda: xpu)
        monkeypatch.setattr(torch.accelerator, "is_available", lambda: other is not None)
        found = SimpleNamespace(type=other)
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: found)
        monkeypatch.setattr("runtime.devices.tpu.tpu_chips", lambda: 4)  # as the machine's bus shows them
        return machine.device_kind(), machine.gpu_count()

    return have


def test_devices_that_are_counted(devices):
    assert devices(cuda=2) == (CUDA, 2)
    assert devices(xpu=3) == (XPU, 3)
    assert devices(other="tpu") == (TPU, 4)
    assert devices(other="mps") == (CPU, 0), "one process has Apple's GPU, several have none"
    assert devices() == (CPU, 0)


@pytest.mark.parametrize(
    ("vendor", "device", "is_open", "has_one"),
    [
        ("0x1ae0", "0x0063", True, True),
        ("0x1ae0", "0x0063", False, False),  # another container has it
        ("0x1ae0", "0x0042", True, False),
        ("0x10de", "0x0063", True, False),
    ],
)
def test_a_tpu_on_the_bus(tmp_path, monkeypatch, vendor, device, is_open, has_one):
    chip, groups = tmp_path / "pci" / "0000:00:04.0", tmp_path / "dev" / "vfio"
    chip.mkdir(parents=True)
    groups.mkdir(parents=True)
    (chip / "vendor").write_text(f"{vendor}\n")
    (chip / "device").write_text(f"{device}\n")
    (chip / "iommu_group").symlink_to(tmp_path / "groups" / "7")
    if is_open:
        (groups / "7").touch()
    on_this_bus = functools.partial(hardware.tpu_chips, tmp_path / "pci", tmp_path / "dev")
    monkeypatch.setattr(hardware, "tpu_chips", on_this_bus)
    monkeypatch.setattr(hardware.platform, "system", lambda: "Linux")
    monkeypatch.setattr(hardware.glob, "glob", lambda pattern: [])  # no driver of another device
    assert hardware.may_have_accelerator() is has_one


def test_tpu_chips_are_divided_before_the_processes_start(script, monkeypatch):
    pytest.importorskip("torch")
    agent = importlib.import_module("runtime.launch.agent")
    asked = []

    def set_tpu_launch_env(*, nnodes, nproc_per_node):
        asked.append((nnodes, nproc_per_node))
        if nproc_per_node == 3:
            raise RuntimeError("No TPU topology found for count: 3")
        monkeypatch.setenv("TORCH_TPU_TOPOLOGY", "2,2,1")

    of_torch_tpu = SimpleNamespace(set_tpu_launch_env=set_tpu_launch_env)
    monkeypatch.setitem(sys.modules, "torch.tpu", SimpleNamespace(distributed=of_torch_tpu))
    monkeypatch.setitem(sys.modules, "torch.tpu.distributed", of_torch_tpu)
    several = LaunchSpec(target=script, **SEVERAL)
    share = Share(processes=8, processes_here=4, threads=None, kind=TPU)
    assert agent._device_variables(several, share) == {"TORCH_TPU_TOPOLOGY": "2,2,1"}
    assert asked == [(2, 4)]
    with pytest.raises(
        LaunchError, match=r"3 processes cannot share the TPU chips .*No TPU topology.*--processes_per_machine"
    ):
        agent._device_variables(several, Share(processes=6, processes_here=3, threads=None, kind=TPU))
    assert agent._device_variables(several, Share(processes=8, processes_here=4, threads=None)) == {}


def test_several_processes_without_a_gpu_say_so(script, no_gpu):
    assert "2 processes on the CPU" in divide(LaunchSpec(target=script, num_processes=2), {}).notice
    assert divide(LaunchSpec(target=script, num_processes=2, cpu=True), {}).notice is None


def test_one_process_counts_no_gpus(script, monkeypatch):
    monkeypatch.setattr(machine, "gpu_count", lambda: pytest.fail("torch would be imported for nothing"))
    assert divide(LaunchSpec(target=script, num_processes=1), {}).processes == 1


def test_a_taken_port_is_refused(script):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        with pytest.raises(LaunchError, match="is in use; leave it out"):
            divide(LaunchSpec(target=script, num_processes=1, main_process_port=taken.getsockname()[1]), {})


@pytest.mark.parametrize(
    ("settings", "environ", "threads"),
    [
        ({"num_processes": 1}, {}, None),  # torch's default: other threads, other sums
        ({"num_processes": 2}, {}, 4),
        ({"num_processes": 16}, {}, 1),
        ({"num_processes": 2}, {"OMP_NUM_THREADS": "3"}, None),
        ({"num_processes": 2, "threads_per_process": 5}, {"OMP_NUM_THREADS": "3"}, 5),
    ],
)
def test_threads(script, monkeypatch, settings, environ, threads):
    monkeypatch.setattr(machine, "core_count", lambda: 8)
    assert divide(LaunchSpec(target=script, cpu=True, **settings), environ).threads == threads


def test_the_environment_of_children():
    spec = LaunchSpec(target="x.py", cpu=True, mixed_precision=MixedPrecision.BF16, debug=True)
    share = Share(processes=2, processes_here=2, threads=3)
    inherited = {"RANK": "5", "WORLD_SIZE": "9", "MASTER_PORT": "1", "HOME": "/home/x", "ACCELERATE_LOG_LEVEL": "INFO"}
    assert child_environment(spec, share, inherited) == {
        "HOME": "/home/x",
        "ACCELERATE_LOG_LEVEL": "INFO",
        "ACCELERATE_USE_CPU": "true",
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELERATE_MIXED_PRECISION": "bf16",
        "ACCELERATE_DEBUG_MODE": "true",
        "OMP_NUM_THREADS": "3",
        "PYTHONHASHSEED": "0",
    }
    assert child_environment(spec, share, {"PYTHONHASHSEED": "7"})["PYTHONHASHSEED"] == "7"


def test_settings_that_were_not_given_are_not_set():
    share = Share(processes=1, processes_here=1, threads=None)
    assert child_environment(LaunchSpec(target="x.py"), share, {}) == {}
    gpus = child_environment(LaunchSpec(target="x.py", gpu_ids=("0", "2")), share, {})
    assert gpus == {"CUDA_VISIBLE_DEVICES": "0,2"}


def test_several_machines_talk_over_the_interface_between_them(script, monkeypatch):
    monkeypatch.setattr(hardware, "address_towards", {"10.0.0.1": "10.0.0.7"}.get)
    monkeypatch.setattr(machine, "interface_of", {"10.0.0.7": "eth1"}.get)
    several = LaunchSpec(target=script, cpu=True, num_processes=2, **SEVERAL)
    share = divide(several, {})
    assert child_environment(several, share, {})["GLOO_SOCKET_IFNAME"] == "eth1"
    assert child_environment(several, share, {"GLOO_SOCKET_IFNAME": "ib0"})["GLOO_SOCKET_IFNAME"] == "ib0"
    assert divide(LaunchSpec(target=script, cpu=True, num_processes=2), {}).interface is None


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for its interfaces")
def test_addresses_and_interfaces():
    assert hardware.address_towards("127.0.0.1") == "127.0.0.1"
    assert machine.interface_of("127.0.0.1") == "lo"
    assert machine.interface_of("203.0.113.7") is None, "reserved for documentation: no machine has it"
    assert hardware.address_towards("no such host") is None


def test_what_may_start_again_opens_a_fresh_store_each_time(script):
    share = Share(processes=4, processes_here=2, threads=None)
    for spec in (LaunchSpec(target=script, **ELASTIC), LaunchSpec(target=script, max_restarts=1)):
        assert child_environment(spec, share, {})["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" not in child_environment(LaunchSpec(target=script), share, {})


@pytest.mark.parametrize(
    ("settings", "meeting"),
    [
        (SEVERAL, Meeting.STATIC),  # keeps --machine_rank
        ({**SEVERAL, "max_restarts": 1}, Meeting.C10D),
        (ELASTIC, Meeting.C10D),
        ({**SEVERAL, "rdzv_backend": Meeting.C10D}, Meeting.C10D),
    ],
)
def test_how_machines_meet(script, settings, meeting):
    spec = LaunchSpec(target=script, **settings)
    check(spec)
    assert spec.meeting is meeting


def test_environment_is_restored(monkeypatch):
    monkeypatch.setenv("STAYS", "1")
    before = dict(os.environ)

    def fail_inside():
        with environment({"ONLY": "this"}):
            assert dict(os.environ) == {"ONLY": "this"}
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert dict(os.environ) == before


def test_command_of_one_process():
    assert command(LaunchSpec(target="x.py", arguments=("-m", "--")))[1:] == ["x.py", "-m", "--"]
    assert command(LaunchSpec(target="a.b", as_module=True, arguments=("1",)))[1:] == ["-m", "a.b", "1"]


def note(time_s, status=1, text="Traceback\n", *, follows=False):
    return Note(time_ns=time_s * 10**9, status=status, text=text, follows=follows)


NOW_NS = 100 * 10**9


@pytest.mark.parametrize(
    ("exits", "rank", "status"),
    [
        ([Exit(0, 1, note(99)), Exit(1, 1, note(98))], 1, 1),  # the earlier traceback
        ([Exit(0, -signal.SIGTERM), Exit(1, 1, note(98))], 1, 1),  # 0 was stopped by the agent
        ([Exit(0, 1, note(99)), Exit(1, -signal.SIGKILL)], 1, 137),  # out of memory; 0 lost its peer
        ([Exit(0, 1, note(60)), Exit(1, -signal.SIGKILL)], 0, 1),  # 1 was killed by the agent after its patience
        ([Exit(0, -signal.SIGABRT), Exit(1, 1, note(99))], 1, 1),  # NCCL aborts because 1 is gone
        ([Exit(0, -signal.SIGSEGV, note(98)), Exit(1, 1, note(99))], 0, 1),  # crashed while ending after its error
        ([Exit(0, 1, note(98, follows=True)), Exit(1, -signal.SIGABRT)], 1, 134),  # gloo ended 1, and 0 says so
        ([Exit(0, 1, note(98, follows=True)), Exit(1, 1, note(99))], 1, 1),  # the clocks of two machines differ
        ([Exit(0, 1, note(98, follows=True)), Exit(1, -signal.SIGTERM)], 0, 1),  # 1 was stopped by the agent
        ([Exit(0, 1, note(99)), Exit(1, 7)], 1, 7),  # os._exit
        ([Exit(0, -signal.SIGTERM), Exit(1, -signal.SIGTERM)], 0, 143),
        ([Exit(0, 4, note(99, status=4, text=""))], 0, 4),
    ],
)
def test_cause(exits, rank, status):
    found = cause(exits, NOW_NS)
    assert (found.rank, found.status) == (rank, status)


def test_describe():
    assert describe(Exit(1, 1, note(1, text="Boom\n")), 2) == (
        "Boom\nruntime launch: process 1 of 2 failed with exit status 1 (above); the others were stopped\n"
    )
    assert describe(Exit(0, -signal.SIGTERM), 1, "restart 1 of 2") == (
        "runtime launch: process 0 of 1 was killed by SIGTERM; starting again (restart 1 of 2)\n"
    )


STOPPED = "runtime launch: stopped by SIGTERM"


@pytest.mark.parametrize(
    ("exits", "said"),
    [
        ([Exit(0, 0), Exit(1, -signal.SIGTERM)], f"{STOPPED}\n"),
        (
            [Exit(0, 1, note(99, text="Boom\n")), Exit(1, 1, note(98, text="First\n"))],
            f"First\n{STOPPED}; process 1 of 2 failed with exit status 1 (above) while it ended\n",
        ),
        (
            [Exit(0, 4, note(99, status=4, text=""))],
            f"{STOPPED}; process 0 of 2 failed with exit status 4 while it ended\n",
        ),
        ([Exit(0, -signal.SIGKILL)], f"{STOPPED}; process 0 of 2 did not end in time and was killed\n"),
    ],
)
def test_describe_stop(exits, said):
    assert describe_stop(signal.SIGTERM, exits, 2, NOW_NS) == said


@pytest.mark.parametrize("content", [None, "", "[]", '{"message": "elastic wrote it"}', '{"time_ns": "soon"}'])
def test_a_broken_note_is_no_note(tmp_path, content):
    path = tmp_path / "error.json"
    if content is not None:
        path.write_text(content)
    assert read_note(path) is None
