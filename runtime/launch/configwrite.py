"""Writing a configuration file: with what was found, with what the user answers, or anew with what it says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.launch import configfile, machine
from runtime.launch.accelerate_keys import LEGACY
from runtime.launch.configtext import render
from runtime.launch.options import BY_NAME, OPTIONS
from runtime.launch.readers import Reader, yes_or_no
from runtime.launch.spec import LaunchError, Machines

Prompt = Callable[[str, str | None], str]
Complain = Callable[[str], None]


def target(named: str | None, environ: Mapping[str, str], folder: Path, *, project: bool, update: bool) -> Path:
    """The file to write.

    Raises:
        LaunchError: it is named twice.
    """
    if named is not None and project:
        raise LaunchError("--config_file and --project exclude each other; leave one of them out")
    if named is not None:
        return Path(named).expanduser()
    if project:
        return Path(configfile.PROJECT_FILE)
    found = configfile.find(environ, folder) if update else None
    return found or configfile.user_file(environ)


def update(path: Path) -> None:
    """Write the file anew, with what it says.

    Raises:
        LaunchError: it is not there, cannot be read, or says what is not understood.
    """
    if not path.is_file():
        raise LaunchError(f"{path} is not there; leave out --update to write it")
    before = configfile.load(path)
    _write(path, render(_read(before), _kept(before)))


def write_found(path: Path) -> None:
    """Write what was found on this machine.

    Raises:
        LaunchError: there is a file already, or it cannot be written.
    """
    if path.exists():
        raise LaunchError(f"{path} is there; --update writes it anew with what it says, --config_file names another")
    _write(path, render(_found()))


def write_answers(path: Path, prompt: Prompt, complain: Complain) -> None:
    """Ask, and write the answers; a file that is there gives the defaults.

    Raises:
        LaunchError: the user did not want it, or it cannot be written.
    """
    before = configfile.load(path) if path.is_file() else None
    answers = _ask(_found() if before is None else _read(before), prompt, complain)
    what = f"Write {path}" if before is None else f"{path} is there. Write it anew"
    if not _asked(yes_or_no, what, "yes" if before is None else "no", prompt, complain):
        raise LaunchError("nothing was written")
    _write(path, render(answers, {} if before is None else _kept(before)))


def _found() -> dict[str, Any]:
    gpus = machine.gpu_count()
    return {"num_processes": max(1, gpus), "cpu": not gpus, "mixed_precision": "no", "num_machines": Machines()}


def _read(before: configfile.ConfigFile) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, entry in before.values.items():
        try:
            read[name] = BY_NAME[name].read(entry.value)
        except LaunchError as error:
            raise LaunchError(f"{before.path}: {entry.key}: {entry.value}: {error}") from None
    return read


def _kept(before: configfile.ConfigFile) -> dict[str, Any]:
    """What stands in the file and is no setting of ours."""
    ours = {(option.key or "").partition(".")[0] for option in OPTIONS} | {"compute_environment", "distributed_type"}
    return {key: value for key, value in before.text.items() if key not in ours and key not in LEGACY}


@dataclass(frozen=True, slots=True)
class _Question:
    """Something that is asked."""

    name: str
    text: str
    default: Any


def _ask(values: Mapping[str, Any], prompt: Prompt, complain: Complain) -> dict[str, Any]:
    """The values with the answers."""
    answers = dict(values)
    for question in _questions(answers, values, machine.gpu_count()):
        shown = question.default
        if isinstance(shown, bool):
            shown = "yes" if shown else "no"
        text = None if shown is None else str(shown)
        answers[question.name] = _asked(BY_NAME[question.name].read, question.text, text, prompt, complain)
    if answers["dynamo_backend"] == "no":
        del answers["dynamo_backend"]
    return answers


def _questions(answers: dict[str, Any], before: Mapping[str, Any], gpus: int) -> Iterator[_Question]:
    """What is asked; a question depends on the answers so far, which are in `answers` when it is made."""

    def question(name: str, text: str, usual: Any) -> _Question:
        return _Question(name, text, usual if before.get(name) is None else before[name])

    if gpus:
        yield question(
            "cpu", f"Run on the CPU, although there {'is a GPU' if gpus == 1 else f'are {gpus} GPUs'}", False
        )
    yield question("num_machines", "Machines that take part (N, or MIN:MAX if they come and go)", 1)
    machines = answers["num_machines"]
    if machines.are_several:
        yield question("machine_rank", "Which of them this is, from 0", 0)
        yield question("main_process_ip", "Address of machine 0", None)
        yield question("main_process_port", "Port where they meet", 29500)
    else:
        answers.pop("machine_rank", None)
        answers.pop("main_process_ip", None)
    here = 1 if answers.get("cpu") else max(1, gpus)
    if machines.is_elastic:
        answers.pop("num_processes", None)
        yield question("processes_per_machine", "Processes on each machine", here)
    else:
        answers.pop("processes_per_machine", None)
        same_machines = (before.get("num_machines") or Machines()) == machines
        same_device = before.get("cpu", False) == answers.get("cpu", False)
        number = before.get("num_processes") if same_machines and same_device else None
        yield _Question("num_processes", "Processes over all machines", number or here * machines.least)
    yield question("mixed_precision", "Mixed precision (no, bf16, fp16)", "no")
    if answers.get("num_processes") != 1:
        yield question("use_fsdp", "Divide models over the processes (FSDP)", False)
    yield question("dynamo_backend", "Compile models with (no, inductor, ...)", "no")


def _asked(read: Reader, text: str, default: str | None, prompt: Prompt, complain: Complain) -> Any:
    """What the user says, asked again until it can be read."""
    while True:
        said = prompt(text, default).strip()
        try:
            return read(said)
        except LaunchError as error:
            complain(f"{said}: {error}")


def _write(path: Path, text: str) -> None:
    """Put the file in its place whole, or not at all.

    Raises:
        LaunchError: it cannot be written.
    """
    aside = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, path)
    except OSError as error:
        raise LaunchError(f"{path} cannot be written: {error.strerror}") from None
