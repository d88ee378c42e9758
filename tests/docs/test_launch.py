"""docs/launch: what is shown there is current, and does what it says as far as one machine can tell."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from runtime.cli import app
from runtime.launch.options import OPTIONS
from runtime.launch.request import request

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "launch"


README = (FOLDER / "README.md").read_text()


def load(path):
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_options_is_current(tmp_path, monkeypatch):
    generator = load(ROOT / "docs" / "options.py")
    assert generator.main(["--check"]) == 0, "run python docs/options.py"
    monkeypatch.setattr(generator, "PAGE", tmp_path / "options.md")
    assert generator.main(["--check"]) == 1
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0


def test_every_option_in_the_text_exists():
    known = {flag for option in OPTIONS for flag in option.flags}
    known |= {"--config_file", "--explain", "--dry_run", "--no_cpu"}
    known |= {"--project", "--default", "--update"}  # of runtime config
    foreign = {"--ntasks-per-node", "--numa-binding", "--epochs"}
    assert set(re.findall(r"--[a-z][a-z_-]+", README)) <= known | foreign


@pytest.mark.parametrize("line", re.findall(r"^    runtime launch (.*)$", README, re.MULTILINE))
def test_the_commands_of_the_text_can_be_parsed(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    monkeypatch.setattr("runtime.launch.machine.gpu_count", lambda: 8)
    words = line.partition("#")[0].split()
    result = CliRunner().invoke(app, ["launch", "--explain", *words])
    assert result.exit_code == 0, result.output


def test_the_manifest_has_the_fields_of_a_trainjob():
    job = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("trainer.kubeflow.org/v1alpha1", "TrainJob")
    assert set(job) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(job["spec"]) == {"runtimeRef", "trainer"}
    trainer = job["spec"]["trainer"]
    assert set(trainer) <= {"image", "command", "args", "numNodes", "numProcPerNode", "resourcesPerNode", "env"}
    assert all(isinstance(word, str) for word in (*trainer["command"], *trainer["args"]))
    assert all(set(item) == {"name", "value"} and isinstance(item["value"], str) for item in trainer["env"])
    assert trainer["resourcesPerNode"]["limits"]["nvidia.com/gpu"] == trainer["numProcPerNode"]


@pytest.mark.parametrize("pod", [0, 1])
def test_a_pod_of_the_manifest_joins_the_others_without_options(pod, tmp_path, monkeypatch):
    job = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
    trainer, name = job["spec"]["trainer"], job["metadata"]["name"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    monkeypatch.setattr("runtime.launch.machine.gpu_count", lambda: 4)
    variables = {  # what Kubeflow sets in a pod (pkg/runtime/framework/plugins/torch)
        "PET_NNODES": str(trainer["numNodes"]),
        "PET_NPROC_PER_NODE": str(trainer["numProcPerNode"]),
        "PET_NODE_RANK": str(pod),
        "PET_MASTER_ADDR": f"{name}-node-0-0.{name}",
        "PET_MASTER_PORT": "29400",
        **{item["name"]: item["value"] for item in trainer["env"]},
    }
    assert trainer["command"] == ["runtime", "launch"]
    result = CliRunner().invoke(app, ["launch", "--dry_run", *trainer["args"]], env=variables)
    assert result.output.splitlines()[-1] == (
        f"torchrun --nnodes=2 --nproc-per-node=4 --node-rank={pod} --master-addr=train-node-0-0.train "
        "--master-port=29400 train.py --lr 0.1"
    )
    assert request("train.py", (), {}, variables, config_file="none").spec.mixed_precision == "bf16"


SRUN = """\
#!/usr/bin/env bash
# Two machines with one task each, as srun would start them; $1 is --kill-on-bad-exit.
test "$1" = --kill-on-bad-exit=1 || exit 9
shift
export SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=2 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST='gpu[07-08]'
for task in 0 1; do SLURM_PROCID=$task SLURM_NODEID=$task SLURM_LOCALID=0 "$@"; done
"""
RUNTIME = f"""\
#!/usr/bin/env bash
shift
exec {sys.executable} -m runtime launch --cpu --processes_per_machine 4 --dry_run "$@"
"""


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_the_slurm_script_starts_a_launcher_on_each_machine(tmp_path):
    for name, text in (("srun", SRUN), ("runtime", RUNTIME)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "train.py").touch()
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    script = ["/usr/bin/env", "bash", str(FOLDER / "slurm.sh")]
    done = subprocess.run(script, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.splitlines() if line.startswith("torchrun")]
    assert [re.search(r"--node-rank=(\d)", line).group(1) for line in lines] == ["0", "1"]
    assert all("--nnodes=2 --nproc-per-node=4" in line and "--master-addr=gpu07" in line for line in lines)
    assert all(line.endswith(" train.py --lr 0.1") for line in lines)
    assert len({re.search(r"--master-port=(\d+)", line).group(1) for line in lines}) == 1


def test_the_slurm_script_asks_for_one_task_on_each_machine():
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)", (FOLDER / "slurm.sh").read_text(), re.MULTILINE))
    known = "job-name nodes ntasks-per-node gpus-per-node cpus-per-task time signal output"
    assert set(options) == set(known.split())
    assert options["ntasks-per-node"] == "1"


def test_the_ray_function_trains_and_reports(monkeypatch, capsys):
    """With a stand-in for Ray that runs the function in this process, as Ray does with one worker."""
    pytest.importorskip("torch")
    reported = []

    class TorchTrainer:
        def __init__(self, function, train_loop_config, scaling_config):
            self.function, self.settings, self.scaling = function, train_loop_config, scaling_config

        def fit(self):
            self.function(self.settings)
            return types.SimpleNamespace(metrics=reported[-1])

    modules = {name: types.ModuleType(name) for name in ("ray", "ray.train", "ray.train.torch")}
    modules["ray"].train = modules["ray.train"]
    modules["ray.train"].report = reported.append
    modules["ray.train"].ScalingConfig = lambda num_workers, use_gpu: (num_workers, use_gpu)
    modules["ray.train.torch"].TorchTrainer = TorchTrainer
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    load(FOLDER / "ray_train.py").main(workers=1)
    assert len(reported) == 1
    assert reported[0]["workers"] == 1
    assert 0 <= reported[0]["loss"] < 0.5
    assert capsys.readouterr().out == f"loss {reported[0]['loss']:.4f} on 1 workers\n"
