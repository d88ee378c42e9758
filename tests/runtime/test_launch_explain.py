"""What is shown instead of starting: settings with their origins, and torchrun's command."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from typer.testing import CliRunner

from runtime.cli import app
from runtime.kinds import CUDA
from runtime.launch import machine
from runtime.launch.options import OPTIONS


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """Runs `runtime launch` in process, in a scratch folder with a script; nothing may be started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(machine, "gpu_count", lambda: 0)
    monkeypatch.setattr(machine, "core_count", lambda: 8)
    monkeypatch.setattr("runtime.launch.start.launch", lambda spec: pytest.fail("something was started"))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("RUNTIME_CONFIG_FILE")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HF_HOME", "PYTHONHASHSEED"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "train.py").touch()

    def invoke(*arguments, **variables):
        return CliRunner().invoke(app, ["launch", *arguments], env=variables)

    return invoke


def rows(output):
    """Setting → value and origin."""
    lines = [line.split(maxsplit=2) for line in output.splitlines()]
    return {words[0]: tuple(words[1:]) for words in lines if len(words) == 3}


def test_explain_shows_every_setting_and_its_origin(launch, tmp_path):
    (tmp_path / "runtime.yaml").write_text(
        "mixed_precision: bf16\nnum_processes: 2\nuse_cpu: true\nsame_network: true\ngpu_ids: 0,1\n"
    )
    result = launch("-n", "4", "--explain", ACCELERATE_GRADIENT_ACCUMULATION_STEPS="8")
    assert result.exit_code == 0
    found = rows(result.output)
    assert {option.name for option in OPTIONS if option.key or not option.idle} <= set(found)
    assert found["num_processes"] == ("4", "argument (--num_processes)")
    assert found["mixed_precision"] == ("bf16", "file (runtime.yaml: mixed_precision)")
    assert found["gradient_accumulation_steps"] == ("8", "environment (ACCELERATE_GRADIENT_ACCUMULATION_STEPS)")
    assert found["num_cpu_threads_per_process"] == ("2", "detected (cores / processes)")
    assert found["max_restarts"] == ("0", "default")
    assert f"file: {tmp_path / 'runtime.yaml'}" in result.output
    assert result.output.count("same_network: ") == 1


def test_explain_says_what_gave_way(launch, tmp_path):
    (tmp_path / "runtime.yaml").write_text("gpu_ids: 0,1\n")
    origin = rows(launch("--cpu", "--explain").output)["gpu_ids"][1]
    assert origin == "default (file (runtime.yaml: gpu_ids) gives way to argument (--cpu))"


def test_flags_of_accelerate_that_ask_for_what_is_done_anyway(launch):
    lines = launch("--multi_gpu", "--explain").output.splitlines()
    assert [line for line in lines if "multi_gpu" in line] == [
        "multi_gpu: all GPUs are used where several processes are asked for, or none is named"
    ]


def test_explain_without_a_file_says_where_it_looked(launch, tmp_path):
    output = launch("--explain").output
    assert f"\n  {tmp_path / 'runtime.yaml'}\n  {tmp_path}/home/.config/runtime/config.yaml\n" in output


def test_detected_gpus(launch, monkeypatch):
    monkeypatch.setattr(machine, "gpu_count", lambda: 4)
    monkeypatch.setattr(machine, "device_kind", lambda: CUDA)
    assert rows(launch("--explain").output)["num_processes"] == ("4", "detected (4 GPUs here)")


def parsed(line):
    """The last line of a dry run as torchrun itself understands it."""
    run = pytest.importorskip("torch.distributed.run")
    words = shlex.split(line)
    assert words[0] == "torchrun"
    return run.parse_args(words[1:])


SEVERAL = "--cpu --num_machines 2 --main_process_ip 10.0.0.1"
ELASTIC = "--cpu --num_machines 1:4 --main_process_ip a"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--cpu -n 3", {"nnodes": "1", "nproc_per_node": "3", "standalone": True}),
        (f"{SEVERAL} -n 4 --machine_rank 1", {"node_rank": 1, "nproc_per_node": "2", "master_addr": "10.0.0.1"}),
        (f"{SEVERAL} --main_process_port 7", {"master_port": 7, "rdzv_backend": "static"}),
        (f"{SEVERAL} --max_restarts 3", {"rdzv_backend": "c10d", "max_restarts": 3, "rdzv_endpoint": "10.0.0.1:29500"}),
        (f"{ELASTIC.removesuffix('a')}fd00::1 --processes_per_machine 2", {"rdzv_endpoint": "[fd00::1]:29500"}),
        (
            "--cpu --num_machines 1:4 --main_process_ip a --processes_per_machine 2",
            {"nnodes": "1:4", "rdzv_id": "runtime-launch"},
        ),
        ("--cpu -n 2 -m", {"module": True}),
        ("--cpu -n 2 --log_dir logs", {"log_dir": "logs", "tee": "3"}),
        ("--cpu -n 2 --console main", {"local_ranks_filter": "0"}),
        (f"{SEVERAL} --rdzv_conf timeout=3", {"rdzv_conf": "timeout=3"}),
    ],
)
def test_dry_run_is_torchruns_command(launch, options, expected):
    result = launch("--dry_run", *options.split(), "train.py", "--lr", "a b")
    assert result.exit_code == 0, result.output
    arguments = parsed(result.output.splitlines()[-1])
    assert {name: getattr(arguments, name) for name in expected} == expected
    assert (arguments.training_script, arguments.training_script_args) == ("train.py", ["--lr", "a b"])


def test_dry_run_shows_the_variables_as_a_shell_reads_them(launch, tmp_path):
    (tmp_path / "runtime.yaml").write_text("distributed_type: FSDP\nfsdp_config: {fsdp_ignored_modules: 'a b|$c'}\n")
    result = launch("--dry_run", "--cpu", "-n", "2", "train.py", RANK="3", LOCAL_RANK="3")
    exports = "\n".join(result.output.splitlines()[:-1])
    command = ["/bin/sh", "-c", f"{exports}\nenv"]
    shell = subprocess.run(command, capture_output=True, text=True, check=True, env={"RANK": "3"})
    variables = dict(line.split("=", 1) for line in shell.stdout.splitlines())
    assert (variables["FSDP_IGNORED_MODULES"], variables["ACCELERATE_USE_FSDP"]) == ("a b|$c", "true")
    assert (variables["OMP_NUM_THREADS"], variables["ACCELERATE_USE_CPU"]) == ("4", "true")
    assert "RANK" not in variables, "the place of a parent"


def test_dry_run_of_one_process_is_the_script(launch):
    line = launch("--dry_run", "--cpu", "train.py", "x y").output.splitlines()[-1]
    assert shlex.split(line)[1:] == ["train.py", "x y"]
    assert shlex.split(launch("--dry_run", "--cpu", "--no_python", "env", "x").output.splitlines()[-1]) == ["env", "x"]


@pytest.mark.parametrize(
    "arguments", [["--dry_run", "missing.py"], ["--dry_run"], ["--dry_run", "-n", "0", "train.py"]]
)
def test_dry_run_refuses_what_a_launch_refuses(launch, arguments):
    result = launch(*arguments)
    assert (result.exit_code, result.output.count("\n")) == (2, 1)


def test_a_refusal_names_where_it_was_said(launch, tmp_path):
    (tmp_path / "runtime.yaml").write_text("num_machines: 2\n")
    result = launch("--dry_run", "--machine_rank", "2", "--main_process_ip", "a", "train.py")
    assert result.exit_code == 2
    assert result.output.endswith("ranks are 0 to 1 (num_machines is from file (runtime.yaml: num_machines))\n")
