"""From a command line to a launch: settings from everywhere become one `LaunchSpec`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from runtime.config import MixedPrecision, Source
from runtime.errors import ConfigurationError
from runtime.launch import configfile
from runtime.launch.configfile import ConfigFile
from runtime.launch.env import outside
from runtime.launch.option import Topic
from runtime.launch.options import OPTIONS
from runtime.launch.settings import Settings, resolve, without_contradictions
from runtime.launch.spec import Console, LaunchError, LaunchSpec, Machines, Meeting
from runtime.launch.surroundings import Surroundings, surroundings

_ONLY_FOR_SEVERAL = {"MASTER_PORT", "PET_MASTER_PORT"}  # exported for a job; one machine finds a free port
_INHERITED = {"gpu_ids": "gpu_ids", "num_cpu_threads_per_process": "threads_per_process"}  # setting → field of a launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be launched, and where that was said."""

    spec: LaunchSpec
    settings: Settings
    file: ConfigFile | None
    around: Surroundings


def request(
    script: str,
    words: Sequence[str],
    given: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    config_file: str | None = None,
) -> Request:
    """The launch of `script` with its arguments `words`.

    Args:
        given: the options of the command line by name; None where one was not given.
        config_file: a path, or `none`; None takes the file that is found.

    Raises:
        LaunchError: a value that is not understood, wherever it stands.
    """
    around = surroundings(environ)
    environ = outside(environ)
    file = _file(config_file, environ)
    launch = partial(_spec, script, words, around)
    settings = without_contradictions(resolve(given, environ, file, around), launch)
    _refuse_parts_without_whole(settings)
    spec = _without_inherited(launch(settings), settings)
    return Request(spec=spec, settings=settings, file=file, around=around)


def blamed(message: str, settings: Settings) -> str:
    """The message, with where the options that it names were said, unless on the command line."""
    names = [name for name in re.findall(r"--(\w+)", message) if name in settings]
    origins = {name: settings.where(name) for name in names}
    foreign = [
        f"{name} is from {setting.origin}"
        for name, setting in origins.items()
        if setting.is_given and setting.origin.source is not Source.ARGUMENT
    ]
    return f"{message} ({', '.join(foreign)})" if foreign else message


def _file(named: str | None, environ: Mapping[str, str]) -> ConfigFile | None:
    if named == "none":
        return None
    path = configfile.find(environ, Path.cwd()) if named is None else Path(named)
    return None if path is None else configfile.load(path)


def _spec(script: str, words: Sequence[str], around: Surroundings, settings: Settings) -> LaunchSpec:
    machines = settings["num_machines"] or Machines()
    precision, backend = settings["mixed_precision"], settings["rdzv_backend"]
    return LaunchSpec(
        target=script,
        arguments=tuple(words),
        as_module=settings["module"],
        no_python=settings["no_python"],
        num_processes=settings["num_processes"],
        processes_per_machine=settings["processes_per_machine"],
        machines=machines,
        machine_rank=settings["machine_rank"],
        rdzv_backend=backend and Meeting(backend),
        rdzv_conf=settings["rdzv_conf"] or {},
        main_process_ip=settings["main_process_ip"],
        main_process_port=_port(settings, machines),
        cpu=settings["cpu"],
        mixed_precision=precision and MixedPrecision(precision),
        gpu_ids=settings["gpu_ids"],
        threads_per_process=settings["num_cpu_threads_per_process"],
        affinity=settings["enable_cpu_affinity"],
        max_restarts=settings["max_restarts"],
        monitor_interval=settings["monitor_interval"],
        log_dir=settings["log_dir"],
        console=Console(settings["console"] or ("prefix" if settings["log_dir"] else "all")),
        debug=settings["debug"],
        variables=dict(_variables(settings)),
        place=around.place,
    )


def _without_inherited(spec: LaunchSpec, settings: Settings) -> LaunchSpec:
    """The launch without what the environment says of it, which reaches the processes by itself."""
    inherited: dict[str, Any] = {
        field: None for name, field in _INHERITED.items() if settings.where(name).origin.source is Source.ENVIRONMENT
    }
    return dataclasses.replace(spec, **inherited)


def _port(settings: Settings, machines: Machines) -> int | None:
    found = settings.where("main_process_port")
    is_for_several = found.origin.name in _ONLY_FOR_SEVERAL and not machines.are_several
    port: int | None = None if is_for_several else found.value
    return port


def _variables(settings: Settings) -> Iterator[tuple[str, str]]:
    """The settings that the processes read for themselves."""
    for option in OPTIONS:
        setting = settings.where(option.name)
        is_part = option.topic is Topic.SHARDS and option.name.startswith("fsdp_")
        is_habit = option.is_usual_in_files and setting.origin.source is Source.FILE and setting.value is False
        if option.passes_on and setting.is_given and not is_habit and (settings["use_fsdp"] or not is_part):
            value = setting.value
            yield option.variables[0], str(value).lower() if isinstance(value, bool) else str(value)
    if settings["dp_replicate_size"] or settings["dp_shard_size"]:
        yield "ACCELERATE_USE_PARALLELISM_CONFIG", "true"


def _refuse_parts_without_whole(settings: Settings) -> None:
    """Settings of shards on the command line mean that shards are wanted: say so, instead of doing without.

    Raises:
        LaunchError: there are some, and no --use_fsdp; or a value that shards cannot have.
    """
    if not settings["use_fsdp"]:
        for option in OPTIONS:
            said_here = settings.where(option.name).origin.source is Source.ARGUMENT
            if option.name.startswith("fsdp_") and said_here:
                raise LaunchError(f"{option.flags[0]} needs --use_fsdp, which divides models over the processes")
        return
    from runtime.sharding import sharding  # late: only where it is asked for; imports no torch

    try:
        sharding(None, None, dict(_variables(settings)), _processes(settings))
    except ConfigurationError as error:
        raise LaunchError(f"FSDP: {error}") from None


def _processes(settings: Settings) -> int:
    """A number of processes that both sizes fit, whatever there will be: that is looked at when they are there."""
    return int((settings["dp_replicate_size"] or 1) * (settings["dp_shard_size"] or 1))
