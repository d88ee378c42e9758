"""Files with settings: which one counts, what may stand in one, and what `runtime config` writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from runtime.cli import app
from runtime.launch import machine
from runtime.launch.accelerate_keys import DISTRIBUTED_TYPES, IDLE, REFUSED, SECTIONS
from runtime.launch.configfile import find, load
from runtime.launch.options import OPTIONS
from runtime.launch.spec import LaunchError

# What `accelerate config` writes for two GPUs with FSDP2.
ACCELERATES = """\
compute_environment: LOCAL_MACHINE
debug: false
distributed_type: FSDP
downcast_bf16: 'no'
enable_cpu_affinity: false
fsdp_config:
  fsdp_activation_checkpointing: false
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_cpu_ram_efficient_loading: true
  fsdp_offload_params: false
  fsdp_reshard_after_forward: true
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_transformer_layer_cls_to_wrap: BertLayer
  fsdp_version: 2
machine_rank: 0
main_training_function: main
mixed_precision: bf16
num_machines: 1
num_processes: 2
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
"""


@pytest.fixture
def read(tmp_path):
    def write_and_load(text):
        path = tmp_path / "settings.yaml"
        path.write_text(text)
        return load(path)

    return write_and_load


def test_accelerates_file_is_read(read):
    file = read(ACCELERATES)
    assert file.values["num_processes"].value == 2
    assert (file.values["use_fsdp"].value, file.values["use_fsdp"].key) == (True, "distributed_type: FSDP")
    assert file.values["fsdp_transformer_layer_cls_to_wrap"].value == "BertLayer"
    assert {"main_training_function", "same_network", "tpu_env", "downcast_bf16"} <= set(file.idle)
    assert "num_processes" not in file.idle


def test_every_known_key_is_read(read):
    """Whatever stands under it; also with nothing under it."""
    for key in [*(option.key for option in OPTIONS if option.key), *IDLE]:
        section, _, name = key.rpartition(".")
        assert read(f"{section}:\n  {name}:\n" if section else f"{key}:\n") is not None
    for section in SECTIONS:
        assert read(f"{section}: {{}}\n").values == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("num_proceses: 2", "'num_proceses' is not known; did you mean 'num_processes'?"),
        ("fsdp_config: {wrap_policy: x}", "did you mean 'fsdp_auto_wrap_policy'"),
        ("fsdp_version: 2", "did you mean 'fsdp_version' in fsdp_config?"),
        ("colour: blue", "'colour' is not known; `runtime launch --explain` lists what is"),
        ("fsdp_config: 3", "write its settings below it"),
        ("distributed_type: DEEPSPEED", "not supported here; ZeRO's stages are FSDP here"),
        ("distributed_type: MEGATRON_LM", "write distributed_type: FSDP"),
        ("distributed_type: MULTI_NPU", "leave the key out"),
        ("distributed_type: QUANTUM", "known are NO, MULTI_CPU"),
        ("compute_environment: AMAZON_SAGEMAKER", "on the machine itself"),
        ("tpu_use_cluster: true", "on every machine of the pod"),
        ("mpirun_config: {mpirun_hostfile: hosts}", "start with mpirun yourself"),
        ("parallelism_config: {parallelism_config_tp_size: 2}", "give these processes to dp_shard_size"),
        ("[1, 2]", "not a list of settings"),
        ("just words", "not a list of settings"),
        ("a: b: c", "is not YAML: "),
        ("num_processes: !!python/object/apply:os.getcwd []", "is not YAML: could not determine a constructor"),
        ("num_processes: 2\nuse_cpu: true\nnum_processes: 3", "'num_processes' stands there twice, from line 1 on"),
    ],
)
def test_what_is_refused(read, text, says):
    with pytest.raises(LaunchError) as caught:
        read(text)
    assert says in str(caught.value)
    assert "settings.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "distributed_type: NO",  # which YAML reads as false
        "distributed_type: 'NO'\ndeepspeed_config: {}",
        "distributed_type: MULTI_GPU\ndeepspeed_config: {zero_stage: 2}",
        "compute_environment: LOCAL_MACHINE",
        "tpu_use_cluster: false",
        "mpirun_config: {mpirun_hostfile: ''}",
        "parallelism_config: {parallelism_config_tp_size: 1}",
        "",
    ],
)
def test_what_is_off_is_accepted(read, text):
    assert not any(entry.value is True for entry in read(text).values.values())


def test_old_keys(read):
    file = read("fp16: true\ndynamo_backend: EAGER")
    assert (file.values["mixed_precision"].value, file.values["dynamo_backend"].value) == ("fp16", "EAGER")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(LaunchError, match=r"nothing\.yaml: no such file; `runtime config --config_file .*` writes it"):
        load(tmp_path / "nothing.yaml")


def test_which_file_counts(tmp_path):
    home = {"HOME": str(tmp_path / "home")}
    project, inside = tmp_path / "project", tmp_path / "project" / "src"
    inside.mkdir(parents=True)
    (project / "pyproject.toml").touch()
    candidates = [
        inside / "runtime.yaml",
        project / "runtime.yaml",
        tmp_path / "home/.config/runtime/config.yaml",
        tmp_path / "home/.cache/huggingface/accelerate/default_config.yaml",
    ]
    (tmp_path / "runtime.yaml").touch()  # above the project
    assert find(home, inside) is None
    for path in reversed(candidates):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        assert find(home, inside) == path
    assert find({**home, "RUNTIME_CONFIG_FILE": "none"}, inside) is None
    assert find({**home, "RUNTIME_CONFIG_FILE": "x.yaml"}, inside) == Path("x.yaml")


def test_a_file_above_a_folder_without_a_project_does_not_count(tmp_path):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    (tmp_path / "a" / "runtime.yaml").touch()
    assert find({"HOME": str(tmp_path)}, inside) is None


def test_folders_of_the_user_can_be_elsewhere(tmp_path):
    environ = {"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    for path in (tmp_path / "hf/accelerate/default_config.yaml", tmp_path / "runtime/config.yaml"):
        path.parent.mkdir(parents=True)
        path.touch()
        assert find(environ, tmp_path) == path


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Runs `runtime config` in a scratch folder with a scratch home; gives the result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine, "gpu_count", lambda: 0)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HF_HOME", "RUNTIME_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)

    def invoke(*arguments, answers=""):
        return CliRunner().invoke(app, ["config", *arguments], input=answers)

    return invoke


def test_default_asks_nothing_and_writes_the_users_file(config, tmp_path):
    result = config("--default")
    path = tmp_path / "home/.config/runtime/config.yaml"
    assert (result.exit_code, os.listdir(path.parent)) == (0, ["config.yaml"])
    content = yaml.safe_load(path.read_text())
    assert (content["num_processes"], content["use_cpu"], content["distributed_type"]) == (1, True, "NO")
    assert set(content) <= {option.key for option in OPTIONS} | {"compute_environment", "distributed_type"}
    assert load(path).values["cpu"].value is True
    again = config("--default")
    assert (again.exit_code, again.output.count("\n")) == (2, 1)
    assert "is there; --update writes it anew" in again.output


def test_gpus_that_were_found_are_the_default(config, monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "gpu_count", lambda: 4)
    config("--default", "--project")
    content = yaml.safe_load((tmp_path / "runtime.yaml").read_text())
    assert (content["num_processes"], content["use_cpu"], content["distributed_type"]) == (4, False, "MULTI_GPU")


def test_questions(config, tmp_path):
    answers = "two\n2\n1\n10.0.0.1\n\n8\nBF16\nyes\nno\nyes\n"
    result = config("--project", answers=answers)
    assert result.exit_code == 0, result.output
    assert "two: write a number, such as 2, or MIN:MAX" in result.output
    content = yaml.safe_load((tmp_path / "runtime.yaml").read_text())
    assert (content["num_machines"], content["machine_rank"], content["main_process_ip"]) == (2, 1, "10.0.0.1")
    assert (content["main_process_port"], content["num_processes"], content["mixed_precision"]) == (29500, 8, "bf16")
    assert content["distributed_type"] == "FSDP"
    assert "dynamo_config" not in content


def test_answers_of_before_are_the_defaults_and_nothing_is_overwritten_unasked(config, tmp_path):
    path = tmp_path / "runtime.yaml"
    path.write_text("num_processes: 3\nmixed_precision: bf16\ntpu_name: mine\n")
    before = path.read_text()
    refused = config("--project", answers="\n" * 6)
    assert (refused.exit_code, path.read_text()) == (2, before)
    assert "nothing was written" in refused.output
    assert config("--project", answers="\n" * 5 + "yes\n").exit_code == 0
    content = yaml.safe_load(path.read_text())
    assert (content["num_processes"], content["mixed_precision"], content["tpu_name"]) == (3, "bf16", "mine")


def test_no_answers_write_nothing(config, tmp_path):
    assert config("--project").exit_code == 1
    assert not (tmp_path / "runtime.yaml").exists()


def test_update_keeps_what_a_file_says(config, tmp_path):
    path = tmp_path / "default.yaml"
    path.write_text(ACCELERATES)
    before = load(path)
    result = config("--update", "--config_file", str(path))
    assert result.exit_code == 0, result.output
    after = load(path)
    assert {name: entry.value for name, entry in after.values.items()} == {
        name: entry.value for name, entry in before.values.items()
    }
    old, new = yaml.safe_load(ACCELERATES), yaml.safe_load(path.read_text())
    assert {key: new[key] for key in old} == old
    assert config("--update", "--config_file", str(path)).exit_code == 0
    assert yaml.safe_load(path.read_text()) == new


def test_update_of_nothing_is_refused(config):
    result = config("--update")
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert "is not there; leave out --update" in result.output


def test_our_own_keys_are_marked(config, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("max_restarts: 2\nnum_machines: 1:4\nrdzv_conf: {join_timeout: '3'}\n")
    config("--update", "--config_file", str(path))
    lines = path.read_text().splitlines()
    assert next(line for line in lines if line.startswith("max_restarts: 2")).endswith("(*)")
    assert yaml.safe_load(path.read_text())["num_machines"] == "1:4"
    assert load(path).values["rdzv_conf"].value == {"join_timeout": "3"}


def test_tables_do_not_overlap():
    """A key has one meaning; those that are refused when on have a reason for when they are off."""
    keys = {option.key for option in OPTIONS if option.key}
    assert not keys & set(IDLE)
    assert not keys & set(REFUSED)
    assert set(REFUSED) <= set(IDLE)
    assert "FSDP" in DISTRIBUTED_TYPES
