"""What a launch would do, without doing it: every setting with its origin, or the command and the variables."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runtime.config import Provenance, Source
from runtime.launch import configfile
from runtime.launch.env import PLACEMENT, child_environment
from runtime.launch.option import Option, Topic
from runtime.launch.options import OPTIONS
from runtime.launch.request import Request
from runtime.launch.settings import Setting
from runtime.launch.share import Share
from runtime.launch.single import command
from runtime.launch.spec import Console, LaunchSpec, Machines, Meeting


def explain(asked: Request, share: Share, environ: Mapping[str, str], folder: Path) -> str:
    """Every setting with its value and where it came from, and what changes nothing; ends with a newline."""
    settings = [(option, _detected(option, asked, share)) for option in OPTIONS]
    rows = [(option, setting) for option, setting in settings if option.key or not option.idle]
    shown = [(option.name, _words(setting.value), str(setting.origin)) for option, setting in rows]
    width = max(len(name) for name, _, _ in shown)
    value_width = max(len(value) for _, value, _ in shown)
    lines = [_files(asked, environ, folder), ""]
    topic: Topic | None = None
    for (option, _), (name, value, origin) in zip(rows, shown, strict=True):
        if option.topic is not topic:
            topic = option.topic
            lines += [f"# {topic.value}"]
        lines.append(f"{name:<{width}}  {value:<{value_width}}  {origin}".rstrip())
    lines += ["", *_place(asked.spec), *_idle(asked)]
    return "\n".join(lines).rstrip() + "\n"


def dry_run(spec: LaunchSpec, share: Share, environ: Mapping[str, str]) -> str:
    """A shell script with PyTorch's own command for this launch, and the variables that the processes get."""
    variables = child_environment(spec, share, environ)
    changed = {name: value for name, value in variables.items() if environ.get(name) != value}
    gone = sorted(name for name in PLACEMENT if name in environ and name not in variables)
    lines = ["# what runs on this machine, in PyTorch's own words"]
    if gone:
        lines.append(f"unset {' '.join(gone)}")
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(changed.items())]
    is_one = spec.place is not None or (share.processes == 1 and not spec.needs_watching)
    words = command(spec) if is_one else ["torchrun", *_torchrun(spec, share), *_target(spec)]
    return "\n".join([*lines, shlex.join(words)]) + "\n"


def _files(asked: Request, environ: Mapping[str, str], folder: Path) -> str:
    order = "arguments > environment > file > what is found here"
    if asked.file is not None:
        return f"{order}\nfile: {asked.file.path}"
    looked_at = "".join(f"\n  {path}" for path in configfile.places(environ, folder))
    return f"{order}\nfile: none; `runtime config` writes one. Looked for:{looked_at}"


def _detected(option: Option, asked: Request, share: Share) -> Setting:
    """The setting, with what this machine decides where nobody has said anything."""
    setting = asked.settings.where(option.name)
    if setting.value is not None:
        return setting
    spec = asked.spec
    here = f"{share.processes_here} {share.kind.called} here"
    found: dict[str, tuple[Any, str]] = {
        "num_processes": (share.processes, "no GPU counted" if share.kind.is_host else here),
        "num_machines": (Machines(), ""),
        "machine_rank": (0, "") if spec.meeting is Meeting.STATIC else (None, "numbered as they meet"),
        "main_process_port": (spec.meeting_port, "") if spec.machines.are_several else ("free", "one is picked"),
        "gpu_ids": ("all", ""),
        "num_cpu_threads_per_process": (share.threads, "cores / processes" if share.threads else "PyTorch's own"),
        "rdzv_backend": (spec.meeting.value if spec.machines.are_several else None, ""),
        "console": (spec.console.value, ""),
    }
    if option.name not in found:
        return setting
    value, reason = found[option.name]
    gave_way = setting.origin.name
    source = Source.DETECTED if reason else Source.DEFAULT
    return Setting(value, Provenance(source, gave_way or reason))


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, dict):
        return ",".join(f"{name}={setting}" for name, setting in value.items())
    return "-" if value is None else str(value)


def _place(spec: LaunchSpec) -> Iterator[str]:
    if spec.place is not None:
        yield f"# this is process {spec.place.rank} of {spec.place.size}: environment ({spec.place.origin})"


def _idle(asked: Request) -> Iterator[str]:
    """What was said and changes nothing, once each."""
    said = [
        (option.name, option.idle) for option in OPTIONS if option.idle and asked.settings.where(option.name).is_given
    ]
    in_file = dict(asked.file.idle) if asked.file is not None else {}
    rest = {name: why for name, why in said if not any(key.endswith(name) for key in in_file)}
    if in_file or rest:
        yield "# known, and without effect here"
        for name, why in {**in_file, **rest}.items():
            yield f"{name}: {why}"


def _torchrun(spec: LaunchSpec, share: Share) -> Iterator[str]:
    """The options of torchrun that do what we ask torch elastic for."""
    yield f"--nnodes={spec.machines}"
    yield f"--nproc-per-node={share.processes_here}"
    if not spec.machines.are_several:
        yield "--standalone"
    elif spec.meets_statically:
        yield f"--node-rank={spec.machine_rank or 0}"
        yield f"--master-addr={spec.main_process_ip}"
        yield f"--master-port={spec.meeting_port}"
    else:
        yield "--rdzv-backend=c10d"
        yield f"--rdzv-endpoint={spec.endpoint}"
        yield "--rdzv-id=runtime-launch"
    conf = dict(spec.rdzv_conf)
    if spec.machine_rank is not None and spec.machines.are_several and not spec.meets_statically:
        conf["is_host"] = str(int(spec.machine_rank == 0))
    if conf:
        yield "--rdzv-conf=" + ",".join(f"{name}={value}" for name, value in conf.items())
    if spec.max_restarts:
        yield f"--max-restarts={spec.max_restarts}"
    if spec.log_dir is not None:
        yield f"--log-dir={spec.log_dir}"
    if spec.log_dir is not None or spec.console is Console.PREFIX:
        yield "--tee=3"
    if spec.console is Console.MAIN:
        yield "--local-ranks-filter=0"
    if spec.affinity and not share.kind.is_host:
        yield "--numa-binding=node"


def _target(spec: LaunchSpec) -> list[str]:
    how = ["--no-python"] if spec.no_python else ["-m"] if spec.as_module else []
    return [*how, spec.target, *spec.arguments]
