"""Which value every setting has, and where it came from: arguments > environment > file > what is found or usual.

The environment is the variable of the setting (Accelerate's, then torchrun's), then what SLURM or MPI say. Where two
settings exclude each other, the one from the weaker place gives way; from the same place both are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.config import Provenance, Source
from runtime.launch.configfile import ConfigFile
from runtime.launch.option import Option
from runtime.launch.options import BY_NAME, OPTIONS
from runtime.launch.spec import LaunchError, Machines
from runtime.launch.surroundings import Surroundings

_STRENGTH = (Source.DEFAULT, Source.DETECTED, Source.FILE, Source.ENVIRONMENT, Source.ARGUMENT)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, and where it came from."""

    value: Any
    origin: Provenance

    @property
    def is_given(self) -> bool:
        """Whether somebody has said it."""
        return self.origin.source not in (Source.DEFAULT, Source.DETECTED)


class Settings(Mapping[str, Any]):
    """The values by name; `where` also knows the origins."""

    def __init__(self, found: Mapping[str, Setting]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> Any:
        return self._found[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def where(self, name: str) -> Setting:
        """The value with its origin."""
        return self._found[name]

    def with_settings(self, **changed: Setting) -> Settings:
        """These settings with others in the place of some."""
        return Settings({**self._found, **changed})


def resolve(
    arguments: Mapping[str, Any],
    environ: Mapping[str, str],
    file: ConfigFile | None,
    around: Surroundings,
) -> Settings:
    """All settings.

    Args:
        arguments: by the name of the option; None counts as not given.

    Raises:
        LaunchError: a value that is not understood; the message says where it came from.
    """
    found = {option.name: _resolved(option, arguments, environ, file, around) for option in OPTIONS}
    return _without_contradictions(Settings(found))


def _resolved(
    option: Option,
    arguments: Mapping[str, Any],
    environ: Mapping[str, str],
    file: ConfigFile | None,
    around: Surroundings,
) -> Setting:
    for raw, origin in _said(option, arguments, environ, file, around):
        value = _read(option, raw, origin)
        if value is not None:
            return Setting(value, origin)
    return Setting(option.default, Provenance(Source.DEFAULT))


def _said(
    option: Option,
    arguments: Mapping[str, Any],
    environ: Mapping[str, str],
    file: ConfigFile | None,
    around: Surroundings,
) -> Iterator[tuple[Any, Provenance]]:
    """What each place says, the strongest first."""
    if arguments.get(option.name) is not None:
        yield arguments[option.name], Provenance(Source.ARGUMENT, option.flags[0])
    for variable in option.variables:
        if environ.get(variable, "") not in ("", "None"):
            yield environ[variable], Provenance(Source.ENVIRONMENT, variable)
    said = around.values.get(option.name)
    if said is not None:
        yield said.value, Provenance(Source.ENVIRONMENT, said.variable)
    if file is not None and option.name in file.values:
        entry = file.values[option.name]
        yield entry.value, Provenance(Source.FILE, f"{file.path.name}: {entry.key}")


def _read(option: Option, raw: Any, origin: Provenance) -> Any:
    try:
        return option.read(raw)
    except LaunchError as error:
        if origin.source is Source.ARGUMENT:
            raise LaunchError(f"{origin.name} {raw}: {error}") from None
        raise LaunchError(f"{option.name}: {raw}: {error}; it came from {origin}") from None


@dataclass(frozen=True, slots=True)
class _Contradiction:
    """Two settings that cannot both hold."""

    one: str
    other: str
    is_so: Callable[[Settings], bool]
    one_stays: bool = False
    """Whether only the other can give way: how many machines there are is no detail."""


def _elastic(settings: Settings) -> bool:
    machines = settings["num_machines"]
    return isinstance(machines, Machines) and machines.is_elastic


def _numbers_differ(settings: Settings) -> bool:
    machines = settings["num_machines"] or Machines()
    return bool(settings["processes_per_machine"] * machines.least != settings["num_processes"])


def _rank_is_too_high(settings: Settings) -> bool:
    return not 0 <= settings["machine_rank"] < settings["num_machines"].most


def _static_and_elastic(settings: Settings) -> bool:
    return _elastic(settings) and settings["rdzv_backend"] == "static"


_CONTRADICTIONS = (
    _Contradiction("cpu", "gpu_ids", lambda s: s["cpu"]),
    _Contradiction("cpu", "mixed_precision", lambda s: s["cpu"] and s["mixed_precision"] == "fp16"),
    _Contradiction("num_processes", "processes_per_machine", _numbers_differ),
    _Contradiction("num_machines", "num_processes", _elastic, one_stays=True),
    _Contradiction("num_machines", "machine_rank", _rank_is_too_high, one_stays=True),
    _Contradiction("num_machines", "rdzv_backend", _static_and_elastic, one_stays=True),
    _Contradiction("max_restarts", "rdzv_backend", lambda s: s["max_restarts"] > 0 and s["rdzv_backend"] == "static"),
    _Contradiction("module", "no_python", lambda s: s["module"] and s["no_python"]),
)


def _without_contradictions(settings: Settings) -> Settings:
    for pair in _CONTRADICTIONS:
        one, other = settings.where(pair.one), settings.where(pair.other)
        if not (one.is_given and other.is_given) or not pair.is_so(settings):
            continue
        strengths = [_STRENGTH.index(setting.origin.source) for setting in (one, other)]
        if strengths[0] == strengths[1] or (pair.one_stays and strengths[0] < strengths[1]):
            continue  # refused later (`spec.check`), where the message can name both
        loser, winner = (pair.one, other) if strengths[0] < strengths[1] else (pair.other, one)
        given_way = Provenance(Source.DEFAULT, f"{settings.where(loser).origin} gives way to {winner.origin}")
        settings = settings.with_settings(**{loser: Setting(BY_NAME[loser].default, given_way)})
    return settings
