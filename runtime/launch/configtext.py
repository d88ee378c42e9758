"""The text of a configuration file: YAML with a comment on every key, for Accelerate, too, where it knows the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runtime.launch.accelerate_keys import SECTIONS
from runtime.launch.option import Option
from runtime.launch.options import OPTIONS

_HEAD = """\
# Settings of `runtime launch`; `runtime launch --explain` shows them all, and where each came from.
# Arguments and variables of the environment go first. Keys are those of Accelerate, which reads this file, too{but}.
"""
_BUT = ";\n# those marked (*) are known here only"
_WIDTH = 40

#: Written in any case, so that the file can be edited without looking names up. The others are there if they are set.
_ALWAYS = ("num_processes", "num_machines", "machine_rank", "main_process_ip", "main_process_port", "mixed_precision")


def render(values: Mapping[str, Any], kept: Mapping[str, Any] | None = None) -> str:
    """The file for these values.

    Args:
        values: by the name of the option, as the readers give them; None leaves one out.
        kept: entries of an older file that are no settings of ours, such as `tpu_name`, as they stood there.
    """
    lines = list(_top(values))
    for section in SECTIONS:
        lines += _section(section, values)
    if kept:
        lines += ["# Known, and without effect here; Accelerate reads them.", _dump(kept)]
    is_ours = any(option.is_ours and values.get(option.name) is not None for option in OPTIONS)
    return _HEAD.format(but=_BUT if is_ours else "") + "\n".join(lines) + "\n"


def _top(values: Mapping[str, Any]) -> Iterator[str]:
    yield _line("compute_environment", "LOCAL_MACHINE", "this machine, or those that are started alike")
    yield _line("distributed_type", distributed_type(values), "FSDP divides models over the processes")
    for option in OPTIONS:
        if option.key is None or "." in option.key:
            continue
        value = values.get(option.name)
        if value is not None or option.name in _ALWAYS:
            yield _line(option.key, _plain(option, value), _comment(option))


def distributed_type(values: Mapping[str, Any]) -> str:
    """Accelerate's word for such a launch."""
    if values.get("use_fsdp"):
        return "FSDP"
    if (values.get("num_processes") or 1) == 1:
        return "NO"
    return "MULTI_CPU" if values.get("cpu") else "MULTI_GPU"


def _section(section: str, values: Mapping[str, Any]) -> Iterator[str]:
    options = [option for option in OPTIONS if (option.key or "").startswith(f"{section}.")]
    given = [option for option in options if values.get(option.name) is not None]
    if given:
        yield f"{section}:"
        for option in given:
            key = SECTIONS[section].written((option.key or "").partition(".")[2])
            yield "  " + _line(key, values[option.name], _comment(option))


def _comment(option: Option) -> str:
    mark = " (*)" if option.is_ours else ""
    otherwise = f" Empty: {option.otherwise}." if option.otherwise else ""
    return f"{option.help.rstrip('.')}.{otherwise}{mark}"


def _plain(option: Option, value: Any) -> Any:
    """The value as YAML and Accelerate know it."""
    if option.name == "num_processes" and value is None:
        return -1
    if option.name == "mixed_precision":
        return value or "no"
    if option.name == "num_machines":
        return 1 if value is None else int(str(value)) if str(value).isdecimal() else str(value)
    if option.name == "machine_rank":
        return value or 0
    return ",".join(value) if isinstance(value, tuple) else value


def _line(key: str, value: Any, comment: str) -> str:
    text = f"{key}:" if value is None else _dump({key: value})
    return f"{text:<{_WIDTH}}  # {comment}" if "\n" not in text else f"# {comment}\n{text}"


def _dump(content: Mapping[str, Any]) -> str:
    import yaml  # type: ignore[import-untyped]  # late: only where a file is written

    text: str = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=1000)
    return text.rstrip("\n")
