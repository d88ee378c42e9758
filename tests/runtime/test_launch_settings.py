"""Where the settings of a launch come from, and which of two gives way."""

from __future__ import annotations

import itertools

import pytest

from runtime.config import MixedPrecision
from runtime.launch.configfile import ConfigFile, load
from runtime.launch.options import BY_NAME, OPTIONS
from runtime.launch.refusals import check
from runtime.launch.request import blamed, request
from runtime.launch.settings import resolve
from runtime.launch.spec import Console, LaunchError, Machines, Meeting
from runtime.launch.surroundings import Surroundings

NOTHING = Surroundings()


@pytest.fixture
def file(tmp_path):
    """Writes a configuration file, and reads it."""

    def write(text) -> ConfigFile:
        path = tmp_path / "runtime.yaml"
        path.write_text(text)
        return load(path)

    return write


@pytest.fixture
def ask(tmp_path):
    """The launch of a script with options, variables and the text of a file."""

    def make(given=None, environ=None, text=None, script="train.py"):
        path = "none"
        if text is not None:
            path = str(tmp_path / "runtime.yaml")
            (tmp_path / "runtime.yaml").write_text(text)
        (tmp_path / "train.py").touch()
        return request(str(tmp_path / script), (), given or {}, environ or {}, config_file=path)

    return make


PLACES = ("argument", "environment", "torchrun", "slurm", "file")


@pytest.mark.parametrize(
    "places", [tuple(itertools.compress(PLACES, bits)) for bits in itertools.product([0, 1], repeat=5)]
)
def test_the_strongest_place_decides(file, places):
    """One setting that all places can say, in every combination of them."""
    values = dict(zip(PLACES, ("11", "12", "13", "14", "15"), strict=True))
    environ = {"MASTER_PORT": values["torchrun"]} if "torchrun" in places else {}
    if "environment" in places:
        environ["PET_MASTER_PORT"] = values["environment"]
    from runtime.launch.surroundings import Said

    around = Surroundings(
        values={"main_process_port": Said(values["slurm"], "SLURM_JOB_ID")} if "slurm" in places else {}
    )
    given = {"main_process_port": values["argument"]} if "argument" in places else {}
    settings = resolve(
        given, environ, file(f"main_process_port: {values['file']}") if "file" in places else None, around
    )
    found = settings.where("main_process_port")
    assert found.value == (int(values[places[0]]) if places else None)
    names = ("argument (--main_process_port)", "environment (PET_MASTER_PORT)", "environment (MASTER_PORT)")
    names = (*names, "environment (SLURM_JOB_ID)", "file (runtime.yaml: main_process_port)")
    assert str(found.origin) == (dict(zip(PLACES, names, strict=True))[places[0]] if places else "default")


def test_every_option_is_found_in_its_variable_and_in_its_key(file):
    samples = {"gpu_ids": "0,2", "rdzv_conf": "join_timeout=3", "rdzv_backend": "c10d", "console": "main"}
    samples |= {
        "mixed_precision": "bf16",
        "fsdp_auto_wrap_policy": "NO_WRAP",
        "fsdp_state_dict_type": "FULL_STATE_DICT",
    }
    for option in OPTIONS:
        text = samples.get(option.name, "true" if option.read.__name__ == "yes_or_no" else "2")
        expected = option.read(text)
        assert expected not in (None, option.default), option.name
        for variable in option.variables:
            assert resolve({}, {variable: text}, None, NOTHING)[option.name] == expected, variable
        if option.key is not None:
            section, _, key = option.key.rpartition(".")
            read = file(f"{section}:\n  {key}: {text}\n" if section else f"{key}: {text}\n")
            assert resolve({}, {}, read, NOTHING)[option.name] == expected, option.key
        assert resolve({option.name: text}, {}, None, NOTHING)[option.name] == expected


def test_names_keys_and_flags_are_unique():
    for what in ("name", "key"):
        found = [getattr(option, what) for option in OPTIONS if getattr(option, what)]
        assert len(found) == len(set(found))
    flags = [flag for option in OPTIONS for flag in option.flags]
    assert len(flags) == len(set(flags))


@pytest.mark.parametrize(
    ("given", "environ", "text", "says"),
    [
        ({"num_processes": "many"}, {}, None, "^--num_processes many: write a whole number$"),
        ({}, {}, "num_processes: many", r"num_processes: many: write a whole number; it came from file \(runtime.yaml"),
        ({}, {"PET_NNODES": "2:"}, None, r"num_machines: 2:: .*; it came from environment \(PET_NNODES\)"),
        ({}, {"ACCELERATE_USE_CPU": "perhaps"}, None, "write true or false"),
        ({"mixed_precision": "fp8"}, {}, None, "fp8 is not here; use bf16"),
        ({"monitor_interval": "0"}, {}, None, "seconds above 0"),
        ({"monitor_interval": "inf"}, {}, None, "seconds above 0"),
        ({"gradient_accumulation_steps": "0"}, {}, None, "at least 1"),
        ({"console": "loud"}, {}, None, "known are all, prefix, main"),
        ({"use_fsdp": True, "fsdp_min_num_params": "few"}, {}, None, "write a number"),
        ({"use_fsdp": True, "fsdp_version": "3"}, {}, None, "known are 1 and 2"),
        ({"fsdp_offload_params": "true"}, {}, None, "--fsdp_offload_params needs --use_fsdp"),
        ({"use_fsdp": True, "fsdp_forward_prefetch": "true"}, {}, None, "FSDP2 decides that by itself"),
        ({"use_fsdp": True, "fsdp_sharding_strategy": "NO_SHARD"}, {}, None, "Leave FSDP out"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_origin(ask, given, environ, text, says):
    with pytest.raises(LaunchError, match=says) as caught:
        ask(given, environ, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "environ", "text", "expected"),
    [
        ({"cpu": True}, {}, "gpu_ids: 0,1", {"gpu_ids": None, "cpu": True}),
        ({"gpu_ids": "0"}, {}, "use_cpu: true", {"gpu_ids": ("0",), "cpu": False}),
        ({"cpu": True}, {}, "mixed_precision: fp16", {"mixed_precision": None}),
        (
            {"num_processes": "3"},
            {"PET_NPROC_PER_NODE": "2"},
            None,
            {"num_processes": 3, "processes_per_machine": None},
        ),
        ({"num_machines": "1:2"}, {}, "num_processes: 8\nmain_process_ip: a", {"num_processes": None}),
        ({"num_machines": "1"}, {}, "num_machines: 2\nmachine_rank: 1", {"machine_rank": None}),
        (
            {"max_restarts": "1"},
            {},
            "rdzv_backend: static\nnum_machines: 2\nmain_process_ip: a",
            {"rdzv_backend": None},
        ),
    ],
)
def test_the_weaker_of_two_that_exclude_each_other_gives_way(ask, given, environ, text, expected):
    asked = ask(given, environ, text)
    assert {name: asked.settings[name] for name in expected} == expected
    check(asked.spec)
    loser = next(name for name, value in expected.items() if value == BY_NAME[name].default)
    assert "gives way to argument" in str(asked.settings.where(loser).origin)


@pytest.mark.parametrize(
    ("given", "text", "says"),
    [
        ({"num_processes": "8"}, "num_machines: 1:4\nmain_process_ip: a", "use --processes_per_machine"),
        ({"machine_rank": "2"}, "num_machines: 2\nmain_process_ip: a", "ranks are 0 to 1"),
        ({"rdzv_backend": "static"}, "num_machines: 1:4\nmain_process_ip: a", "use --rdzv_backend c10d"),
    ],
)
def test_how_many_machines_there_are_never_gives_way(ask, given, text, says):
    asked = ask(given, text=text)
    with pytest.raises(LaunchError, match=says):
        check(asked.spec)


def test_two_from_the_same_place_are_refused(ask):
    asked = ask(text="use_cpu: true\ngpu_ids: 0,1")
    with pytest.raises(LaunchError, match="exclude each other") as caught:
        check(asked.spec)
    assert blamed(str(caught.value), asked.settings).endswith(
        "(cpu is from file (runtime.yaml: use_cpu), gpu_ids is from file (runtime.yaml: gpu_ids))"
    )


def test_on_the_command_line_nobody_else_is_blamed(ask):
    asked = ask({"cpu": True, "gpu_ids": "0"})
    assert blamed("--cpu and --gpu_ids exclude each other", asked.settings) == "--cpu and --gpu_ids exclude each other"


def test_all_settings_reach_the_launch(ask):
    text = """
        num_processes: 4
        num_machines: 2
        machine_rank: 1
        main_process_ip: 10.0.0.1
        main_process_port: 1234
        mixed_precision: bf16
        enable_cpu_affinity: true
        max_restarts: 2
        monitor_interval: 0.5
        num_cpu_threads_per_process: 3
        rdzv_conf: {join_timeout: 9}
        log_dir: logs
        debug: true
    """
    spec = ask(text=text).spec
    assert (spec.num_processes, spec.machines, spec.machine_rank) == (4, Machines(2, 2), 1)
    assert (spec.main_process_ip, spec.main_process_port, spec.mixed_precision) == (
        "10.0.0.1",
        1234,
        MixedPrecision.BF16,
    )
    assert (spec.affinity, spec.max_restarts, spec.monitor_interval, spec.threads_per_process) == (True, 2, 0.5, 3)
    assert (spec.rdzv_conf, spec.log_dir, spec.console, spec.debug) == (
        {"join_timeout": "9"},
        "logs",
        Console.PREFIX,
        True,
    )
    assert spec.meeting is Meeting.C10D


def test_fsdp_in_a_file_reaches_the_processes(ask):
    text = """
        distributed_type: FSDP
        fsdp_config:
          fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
          transformer_layer_cls_to_wrap: [Block, Head]
          fsdp_reshard_after_forward: true
          fsdp_min_num_params: 1e8
        parallelism_config:
          parallelism_config_dp_replicate_size: 2
          dp_shard_size: 2
          parallelism_config_tp_size: 1
        dynamo_config:
          dynamo_backend: INDUCTOR
          dynamo_use_fullgraph: false
    """
    assert ask(text=text).spec.variables == {
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
        "FSDP_TRANSFORMER_CLS_TO_WRAP": "Block,Head",
        "FSDP_RESHARD_AFTER_FORWARD": "true",
        "FSDP_MIN_NUM_PARAMS": "100000000",
        "PARALLELISM_CONFIG_DP_REPLICATE_SIZE": "2",
        "PARALLELISM_CONFIG_DP_SHARD_SIZE": "2",
        "ACCELERATE_USE_PARALLELISM_CONFIG": "true",
        "ACCELERATE_DYNAMO_BACKEND": "INDUCTOR",
        "ACCELERATE_DYNAMO_USE_FULLGRAPH": "false",
    }


def test_shards_that_are_off_are_not_passed_on(ask):
    assert ask(text="distributed_type: MULTI_GPU\nfsdp_config: {fsdp_version: 2}").spec.variables == {}
    on_again = ask({"use_fsdp": True}, text="distributed_type: 'NO'\nfsdp_config: {fsdp_version: 2}").spec
    assert on_again.variables == {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}


@pytest.mark.parametrize(
    ("given", "text", "variables"),
    [
        ({}, "debug: false", {}),  # stands in every file of Accelerate: nobody's wish
        ({}, "debug: true", {"ACCELERATE_DEBUG_MODE": "true"}),
        ({"debug": False}, "debug: true", {"ACCELERATE_DEBUG_MODE": "false"}),
        ({"cpu": False}, "use_cpu: true", {"ACCELERATE_USE_CPU": "false"}),
    ],
)
def test_denials_reach_the_processes(ask, given, text, variables):
    assert ask(given, text=text).spec.variables == variables


def test_what_the_environment_says_stays_as_it_is(ask):
    """Devices and threads that are already chosen: the processes inherit them, and nothing is counted twice."""
    spec = ask({}, {"CUDA_VISIBLE_DEVICES": "2,3", "OMP_NUM_THREADS": "5"}, "gpu_ids: 0,1").spec
    assert (spec.gpu_ids, spec.threads_per_process) == (None, None)


def test_the_port_of_a_job_is_not_asked_of_one_machine(ask):
    assert ask({}, {"MASTER_ADDR": "a", "MASTER_PORT": "29500"}).spec.main_process_port is None
    several = ask({"num_machines": "2"}, {"MASTER_ADDR": "a", "MASTER_PORT": "29501"}).spec
    assert (several.main_process_ip, several.main_process_port) == ("a", 29501)


def test_a_launch_inside_of_a_launched_process_is_its_own(ask):
    inside = {"LOCAL_RANK": "1", "RANK": "1", "MASTER_ADDR": "a", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}
    spec = ask({}, {**inside, "SLURM_STEP_NUM_NODES": "2", "SLURM_NODEID": "1"}).spec
    assert (spec.machines, spec.main_process_ip, spec.place) == (Machines(), None, None)
