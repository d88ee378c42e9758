"""The settings in a file: YAML with Accelerate's keys, so its `default_config.yaml` is read as it is, and our own.

Every key is known or refused: a misspelt one must not silently do nothing. Nothing in a file is evaluated.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.launch.accelerate_keys import DISTRIBUTED_TYPES, IDLE, LEGACY, REFUSED, SECTIONS
from runtime.launch.options import OPTIONS
from runtime.launch.spec import LaunchError

PROJECT_FILE = "runtime.yaml"
VARIABLE = "RUNTIME_CONFIG_FILE"  # a path, or `none`
_ROOT_MARKS = ("pyproject.toml", ".git", "setup.py")


@dataclass(frozen=True, slots=True)
class Entry:
    """A value, and the key that it stands under."""

    value: Any
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """What a file says."""

    path: Path
    values: Mapping[str, Entry] = field(default_factory=dict)
    """By the name of the option."""
    idle: Mapping[str, str] = field(default_factory=dict)
    """Keys that change nothing here → why."""
    text: Mapping[str, Any] = field(default_factory=dict)
    """All that stands in it."""


def find(environ: Mapping[str, str], folder: Path) -> Path | None:
    """The file that counts where none is named: the project's, then the user's, then Accelerate's."""
    named = environ.get(VARIABLE)
    if named:
        return None if named == "none" else Path(named)
    return next((path for path in places(environ, folder) if path.is_file()), None)


def places(environ: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """Where files are looked for, in this order."""
    for parent in _project(folder):
        yield parent / PROJECT_FILE
    yield user_file(environ)
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(_home(environ), ".cache")
    yield Path(environ.get("HF_HOME") or os.path.join(cache, "huggingface"), "accelerate", "default_config.yaml")


def _project(folder: Path) -> list[Path]:
    """The folders from this one up to the root of its project; outside of a project this one alone.

    What others may have put above, in a shared folder such as /tmp, is nobody's project.
    """
    upwards = [folder, *folder.parents]
    for number, parent in enumerate(upwards, start=1):
        if any((parent / mark).exists() for mark in _ROOT_MARKS):
            return upwards[:number]
    return [folder]


def user_file(environ: Mapping[str, str]) -> Path:
    """The file in the user's configuration folder."""
    return Path(environ.get("XDG_CONFIG_HOME") or os.path.join(_home(environ), ".config"), "runtime", "config.yaml")


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")


def load(path: Path) -> ConfigFile:
    """What the file says.

    Raises:
        LaunchError: it cannot be read, a key is not known, or asks for what is not here.
    """
    content = _content(path)
    values: dict[str, Entry] = {}
    idle: dict[str, str] = {}
    for key, value in _entries(path, content):
        _sort(path, key, value, values, idle)
    if content.get("fsdp_config") and "use_fsdp" not in values:
        idle["fsdp_config"] = "distributed_type is not FSDP"
    return ConfigFile(path=path, values=values, idle=idle, text=content)


def _content(path: Path) -> dict[str, Any]:
    import yaml  # type: ignore[import-untyped]  # late: only where there is a file

    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_loader())  # noqa: S506  a safe one
    except FileNotFoundError:
        raise LaunchError(f"{path}: no such file; `runtime config --config_file {path}` writes it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LaunchError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        raise LaunchError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise LaunchError(f"{path} is not a list of settings such as `num_processes: 2`; `runtime config` writes one")
    return {str(key): value for key, value in content.items()}


def _loader() -> Any:
    """YAML's safe loader, for which 1:4 is text (YAML 1.1 reads it as 64, a number of minutes and seconds).

    A key that stands there twice is an error, as YAML has it: one of both would do nothing.
    """
    import yaml

    kinds = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag not in kinds]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    own = {"yaml_implicit_resolvers": resolvers, "construct_mapping": _each_once}
    loader: Any = type("Loader", (yaml.SafeLoader,), own)
    digits = list("+-0123456789.")
    loader.add_implicit_resolver(kinds[0], re.compile(r"[-+]?(0x[0-9a-fA-F]+|[0-9]+)$"), digits)
    loader.add_implicit_resolver(kinds[1], re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"), digits)
    return loader


def _each_once(loader: Any, node: Any, deep: bool = False) -> Any:
    import yaml

    keys = [key.value for key, _ in node.value]
    for key, _ in node.value:
        if keys.count(key.value) > 1:
            raise yaml.YAMLError(f"{key.value!r} stands there twice, from line {key.start_mark.line + 1} on")
    return yaml.SafeLoader.construct_mapping(loader, node, deep)


def _entries(path: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keys with their section before a dot, and without the prefix that keys of a section may have."""
    for key, value in content.items():
        if key not in SECTIONS:
            yield LEGACY.get(key, key), value
            continue
        if value is not None and not isinstance(value, dict):
            raise LaunchError(f"{path}: {key} is {value!r}; write its settings below it, each on a line of its own")
        for inner, setting in (value or {}).items():
            yield f"{key}.{SECTIONS[key].full_name(str(inner))}", setting


def _sort(path: Path, key: str, value: Any, values: dict[str, Entry], idle: dict[str, str]) -> None:
    """Put one entry where it belongs."""
    if key == "distributed_type":
        for name, implied in _implied(path, value).items():
            values[name] = Entry(implied, f"distributed_type: {value}")
    elif key in REFUSED and REFUSED[key].is_on(value):
        raise LaunchError(f"{path}: {key}: {_short(value)} is not supported here; {REFUSED[key].way_out}")
    elif key in _BY_KEY:
        option = _BY_KEY[key]
        if value is not None:
            values[option.name] = Entry(_legacy_value(key, value), key)
            if option.idle:
                idle[key] = option.idle
    elif key in IDLE or key in REFUSED:
        idle[key] = IDLE.get(key, "it is off")
    else:
        raise LaunchError(f"{path}: {key!r} is not known{_similar(key)}")


def _implied(path: Path, value: Any) -> Mapping[str, Any]:
    word = "NO" if value is False else str(value).upper()  # YAML reads a bare NO as false
    known = DISTRIBUTED_TYPES.get(word)
    if known is None:
        raise LaunchError(f"{path}: distributed_type: {value} is not known; known are {', '.join(DISTRIBUTED_TYPES)}")
    if isinstance(known, str):
        raise LaunchError(f"{path}: distributed_type: {value} is not supported here; {known}")
    return known


def _legacy_value(key: str, value: Any) -> Any:
    """`fp16: true` of the oldest files, which became a precision."""
    return "fp16" if key == "mixed_precision" and value is True else value


def _similar(key: str) -> str:
    """A hint at the key that was probably meant, or at where to look."""
    section, _, name = key.rpartition(".")
    known = {known.rpartition(".")[2]: known for known in (*_BY_KEY, *IDLE, *REFUSED, *LEGACY, "distributed_type")}
    close = difflib.get_close_matches(name, known, n=1)
    if not close:
        return "; `runtime launch --explain` lists what is"
    meant = known[close[0]]
    place = f" in {meant.rpartition('.')[0]}" if meant.rpartition(".")[0] != section else ""
    return f"; did you mean {close[0]!r}{place}?"


def _short(value: Any) -> str:
    return "..." if isinstance(value, (dict, list)) else str(value)


_BY_KEY: Mapping[str, Any] = {option.key: option for option in OPTIONS if option.key}
