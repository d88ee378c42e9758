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
from runtime.launch.refusals import REFUSALS, Refusal
from runtime.launch.spec import LaunchError, LaunchSpec
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
    """All settings, each by itself.

    Args:
        arguments: by the name of the option; None counts as not given.

    Raises:
        LaunchError: a value that is not understood; the message says where it came from.
    """
    return Settings({option.name: _resolved(option, arguments, environ, file, around) for option in OPTIONS})


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


def without_contradictions(settings: Settings, launch: Callable[[Settings], LaunchSpec]) -> Settings:
    """The settings where, of two that exclude each other, the one from the weaker place has given way.

    Two from the same place both stay, and are refused later (`refusals.check`), where the message can name both.

    Args:
        launch: what is launched with some settings.
    """
    for refusal in REFUSALS:
        pair = _weaker_and_stronger(refusal, settings)
        if pair is not None and refusal.is_wrong(launch(settings)):
            weaker, stronger = pair
            reason = f"{settings.where(weaker).origin} gives way to {settings.where(stronger).origin}"
            without = Setting(BY_NAME[weaker].default, Provenance(Source.DEFAULT, reason))
            settings = settings.with_settings(**{weaker: without})
    return settings


def _weaker_and_stronger(refusal: Refusal, settings: Settings) -> tuple[str, str] | None:
    """The names of two settings that exclude each other, the one that may give way first; None where none may."""
    if refusal.between is None or not all(settings.where(name).is_given for name in refusal.between):
        return None
    first, second = refusal.between
    strength = {name: _STRENGTH.index(settings.where(name).origin.source) for name in refusal.between}
    if strength[first] > strength[second]:
        return second, first
    if strength[first] < strength[second] and not refusal.first_stays:
        return first, second
    return None
