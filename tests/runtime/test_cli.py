"""The command line of the runtime, in process."""

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from runtime.cli import app
from runtime.config import MixedPrecision
from runtime.launch.spec import Machines, Meeting


@pytest.fixture
def run(monkeypatch):
    """Runs a command line; gives the result and the spec that would have been launched."""
    seen = []
    monkeypatch.setattr("runtime.launch.start.launch", lambda spec: seen.append(spec) or 7)

    def invoke(*arguments):
        result = CliRunner().invoke(app, ["launch", *arguments])
        return result, seen[-1] if seen else None

    return invoke


def test_all_options_reach_the_launch(run):
    text = (
        "-n 4 --num_machines 2 --machine_rank 1 --main_process_ip 10.0.0.1 --main_process_port 1234 --cpu "
        "--mixed_precision bf16 --num_cpu_threads_per_process 3 --max_restarts 2 --debug --gpu_ids 0,1 "
        "-m package.train --x -n 9"
    )
    result, spec = run(*text.split())
    assert result.exit_code == 7, "the status of the script is ours"
    assert (spec.num_processes, spec.machines, spec.machine_rank) == (4, Machines(2, 2), 1)
    assert (spec.main_process_ip, spec.main_process_port) == ("10.0.0.1", 1234)
    assert (spec.cpu, spec.mixed_precision, spec.gpu_ids) == (True, MixedPrecision.BF16, ("0", "1"))
    assert (spec.threads_per_process, spec.max_restarts, spec.debug) == (3, 2, True)
    assert (spec.as_module, spec.target, spec.arguments) == (True, "package.train", ("--x", "-n", "9"))


def test_nothing_given_leaves_the_choice_open(run):
    _, spec = run("train.py")
    assert (spec.num_processes, spec.mixed_precision, spec.gpu_ids, spec.main_process_port) == (None,) * 4
    assert (spec.machines, spec.max_restarts, spec.cpu, spec.arguments) == (Machines(1, 1), 0, False, ())
    assert (spec.machine_rank, spec.processes_per_machine, spec.rdzv_backend, spec.rdzv_conf) == (None, None, None, {})


def test_elastic_machines(run):
    text = "--num_machines 1:4 --processes_per_machine 2 --rdzv_backend c10d --rdzv_conf join_timeout=9,close_timeout=3"
    _, spec = run(*text.split(), "train.py")
    assert (spec.machines, spec.processes_per_machine, spec.meeting) == (Machines(1, 4), 2, Meeting.C10D)
    assert spec.rdzv_conf == {"join_timeout": "9", "close_timeout": "3"}


@pytest.mark.parametrize("option", ["--num_processes", "--num-processes", "-n"])
def test_dashes_and_underscores(run, option):
    _, spec = run(option, "3", "train.py", "--num-processes", "7")
    assert (spec.num_processes, spec.arguments) == (3, ("--num-processes", "7"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--no_such_option", "train.py"], "--no_such_option"),
        (["-n", "many", "train.py"], "--num_processes"),
        (["--mixed_precision", "fp8", "train.py"], "fp16"),
        (["--gpu_ids", "0,", "train.py"], "--gpu_ids 0,1"),
        (["--num_machines", "two", "train.py"], "such as 2:4"),
        (["--num_machines", "2:", "train.py"], "such as 2:4"),
        (["--rdzv_conf", "join_timeout", "train.py"], "--rdzv_conf join_timeout=300"),
        (["--rdzv_conf", "join_timout=300", "train.py"], "join_timout is not known; known are timeout, join_timeout"),
        (["--rdzv_conf", "min_nodes=1", "train.py"], "min_nodes is not known"),
        (["--gpu_ids", "0,b", "train.py"], "b is neither the number nor the UUID of a GPU"),
        (["--gpu_ids", "-1", "train.py"], "-1 is neither the number nor the UUID of a GPU"),
        ([], "SCRIPT"),
    ],
)
def test_wrong_usage_is_status_2(run, arguments, said):
    result, spec = run(*arguments)
    assert (result.exit_code, spec) == (2, None)
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_refusal_is_one_line_and_status_2(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["launch", "missing.py"])
    assert result.exit_code == 2
    assert result.output.startswith("runtime launch: no such file: missing.py; ")
    assert result.output.count("\n") == 1


def test_help_teaches(run):
    result, _ = run("--help")
    assert result.exit_code == 0
    assert "runtime launch --cpu -n 2 train.py" in result.output
    assert CliRunner().invoke(app, ["--help"]).output.count("runtime launch") >= 2


def test_env_names_what_a_report_needs(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    for name in ("SECRET_TOKEN", "SLURM_JWT", "ACCELERATE_API_KEY"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.delenv("RUNTIME_CONFIG_FILE", raising=False)
    settings = tmp_path / "runtime.yaml"
    settings.write_text("num_processes: 2\n")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["env"])
    assert result.exit_code == 0
    for expected in (
        "python: 3.",
        "torch: ",
        "cores: ",
        "gpus: ",
        "devices: ",
        "ACCELERATE_MIXED_PRECISION: bf16",
        "SLURM_JWT: (not shown)",
    ):
        assert expected in result.output
    assert "hunter2" not in result.output
    assert f"settings: {settings} " in result.output
    assert re.search(r"^backends: .*gloo", result.output, re.MULTILINE)


def test_test_launches_the_checks_with_the_options_of_launch(run, monkeypatch):
    seen = []
    monkeypatch.setattr("runtime.launch.start.launch", lambda spec: seen.append(spec) or 1)
    result = CliRunner().invoke(app, ["test", "--cpu", "-n", "2", "--mixed-precision", "bf16"])
    assert result.exit_code == 1, "a check failed"
    (spec,) = seen
    assert (spec.target, spec.as_module, spec.arguments) == ("runtime.launch.selftest", True, ())
    assert (spec.cpu, spec.num_processes, spec.mixed_precision) == (True, 2, MixedPrecision.BF16)


@pytest.mark.parametrize("words", [["--cpu", "-n", "x"], ["train.py"], ["--module", "x"], ["--nonsense"]])
def test_test_refuses_what_it_does_not_know(words):
    result = CliRunner().invoke(app, ["test", *words])
    assert result.exit_code == 2
    assert result.stdout == ""


def test_help_lists_the_commands_without_importing_them():
    from runtime.cli import listing

    full, short = (CliRunner().invoke(each, ["--help"]).output for each in (app, listing.app))
    assert short == full
    for name, summary in listing.SUMMARIES.items():
        first = CliRunner().invoke(app, [name, "--help"]).output.split("\n\n")[1]
        assert " ".join(first.split()).startswith(summary)


@pytest.mark.parametrize(
    ("words", "offered"), [("runtime la", "launch"), ("runtime launch --num_p", "--num_processes")]
)
def test_shells_complete_commands_and_options(words, offered):
    count = str(len(words.split()) - 1)
    asked = {"_RUNTIME_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
    done = subprocess.run(
        [sys.executable, "-m", "runtime"], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [offered]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device is full here")
@pytest.mark.parametrize("arguments", [["--help"], ["launch", "--help"], ["env"]])
def test_a_full_disk_is_told_in_a_line(arguments):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "runtime", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    said = "runtime: no space left on device. Make room, or lead the output elsewhere.\n"
    assert (done.returncode, done.stderr) == (2, said)
