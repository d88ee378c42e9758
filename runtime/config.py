"""The settings of an `Accelerator`, and where each came from: arguments > environment > default.

What stands in a configuration file reaches it through the environment: `runtime launch` reads the file and sets the
variables (`runtime/launch/settings.py` has the same order for the launcher: arguments > environment > file > detected).

An argument left at its default counts as not given, so `ACCELERATE_MIXED_PRECISION=bf16` decides for `Accelerator()`
and not for `Accelerator(mixed_precision="no")`. No torch in here: the launcher reads the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from runtime.errors import ConfigurationError, UnsupportedArgument, refuse_other_kind

if TYPE_CHECKING:
    from runtime.handlers import DataLoaderConfiguration
    from runtime.plugins import GradientAccumulationPlugin


class DistributedType(str, Enum):
    """What the processes of this run are; scripts also ask for those below the line, which no run has."""

    NO = "NO"
    MULTI_CPU = "MULTI_CPU"
    MULTI_GPU = "MULTI_GPU"
    FSDP = "FSDP"
    # ---
    DEEPSPEED = "DEEPSPEED"
    MEGATRON_LM = "MEGATRON_LM"
    XLA = "XLA"
    TPU = XLA
    MULTI_HPU = "MULTI_HPU"
    MULTI_MLU = "MULTI_MLU"
    MULTI_MUSA = "MULTI_MUSA"
    MULTI_NEURON = "MULTI_NEURON"
    MULTI_NPU = "MULTI_NPU"
    MULTI_SDAA = "MULTI_SDAA"
    MULTI_XPU = "MULTI_XPU"


class MixedPrecision(str, Enum):
    """The number format of a model's forward pass; parameters stay in float32."""

    NO = "no"
    BF16 = "bf16"
    FP16 = "fp16"


class Source(str, Enum):
    """Where a setting came from."""

    ARGUMENT = "argument"
    ENVIRONMENT = "environment"
    FILE = "file"  # read by the launcher, which hands its settings on as variables
    DETECTED = "detected"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a setting came from, in words: `environment (ACCELERATE_USE_CPU)`."""

    source: Source
    name: str = ""

    def __str__(self) -> str:
        return f"{self.source.value} ({self.name})" if self.name else self.source.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of one `Accelerator`."""

    mixed_precision: MixedPrecision
    cpu: bool
    gradient_accumulation_steps: int
    split_batches: bool
    even_batches: bool
    dispatch_batches: bool
    pad_batches: bool
    non_blocking: bool
    use_seedable_sampler: bool
    data_seed: int | None
    device_placement: bool
    step_scheduler_with_optimizer: bool
    debug: bool | None
    origin: Mapping[str, Provenance]


def precision_of(value: object) -> MixedPrecision:
    """The precision of this name, or of this member of an enumeration such as Accelerate's.

    Raises:
        ConfigurationError: there is none.
    """
    text = str(getattr(value, "value", value)).lower()
    known = ", ".join(kind.value for kind in MixedPrecision)
    if text not in {kind.value for kind in MixedPrecision}:
        raise ConfigurationError(f"mixed_precision={text!r} is not known. Known: {known}.")
    return MixedPrecision(text)


OFF = {"", "0", "false", "no", "off", "n", "f"}


def flag(value: object, name: str = "") -> bool:
    """Yes or no, also as text.

    Args:
        name: of the setting or variable, for the message.

    Raises:
        ConfigurationError: it is neither.
    """
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in {"1", "true", "yes", "y", "on", "t"}:
        return True
    if text in OFF:
        return False
    raise ConfigurationError(f"{name and f'{name}='}{value!r} is neither yes nor no. Write true or false.")


def flag_or_none(value: object, name: str = "") -> bool | None:
    """The same, or None where nothing is said."""
    return None if value is None else flag(value, name)


def _whole(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def accumulation_steps(value: object) -> int:
    """Micro-steps per optimizer step.

    Raises:
        ConfigurationError: it is no whole number of at least 1.
    """
    steps = _whole(value)
    if steps is None or steps < 1:
        raise ConfigurationError(f"gradient_accumulation_steps={value!r} is not a whole number of at least 1.")
    return steps


def _precision(value: object) -> MixedPrecision:
    return MixedPrecision.NO if value is None else precision_of(value)


def _seed(value: object) -> int | None:
    seed = _whole(value)
    if value is not None and seed is None:
        raise ConfigurationError(f"data_seed={value!r} is not a whole number.")
    return seed


@dataclass(frozen=True, slots=True)
class Option:
    """One setting: its default, the variable that may set it, and how a value is read."""

    name: str
    default: Any
    read: Callable[[object], Any]
    variable: str | None = None


OPTIONS = (
    Option("mixed_precision", None, _precision, "ACCELERATE_MIXED_PRECISION"),  # nobody's choice; "no" is one
    Option("cpu", False, flag, "ACCELERATE_USE_CPU"),
    Option("gradient_accumulation_steps", 1, accumulation_steps, "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"),
    Option("split_batches", False, flag),
    Option("even_batches", True, flag),
    Option("dispatch_batches", False, flag),
    Option("pad_batches", False, flag),
    Option("non_blocking", False, flag),
    Option("use_seedable_sampler", False, flag),
    Option("data_seed", None, _seed),
    Option("device_placement", True, flag),
    Option("step_scheduler_with_optimizer", True, flag),
    Option("debug", None, flag_or_none, "ACCELERATE_DEBUG_MODE"),
)

UNSUPPORTED_VARIABLES = {  # set by `accelerate launch`; a run that asks for them must not silently do without
    "ACCELERATE_USE_DEEPSPEED": "Launch without DeepSpeed.",
    "ACCELERATE_USE_MEGATRON_LM": "Launch without Megatron-LM.",
}

_ENGINE = "Models are replicated, or sharded with FSDP2: leave it out, or pass fsdp_plugin=..."

UNSUPPORTED_ARGUMENTS = {  # arguments of Accelerate's constructor that are not here, each with the way out
    "deepspeed_plugin": _ENGINE,
    "deepspeed_plugins": _ENGINE,
    "megatron_lm_plugin": _ENGINE,
    "torch_tp_plugin": _ENGINE,
    "rng_types": "The order of samples is agreed on, other random numbers belong to their process: leave it out.",
}


ACCEPTED_VALUES = {"rng_types": [["generator"]]}  # what Accelerate does by default, and is done here


def refuse_unsupported(arguments: Mapping[str, object]) -> None:
    """Raise for arguments of Accelerate that are not here, unless they are None, and for unknown ones.

    Raises:
        UnsupportedArgument: the argument exists in Accelerate.
        TypeError: nobody knows the argument.
    """
    for name, value in arguments.items():
        if name not in UNSUPPORTED_ARGUMENTS:
            raise TypeError(f"Accelerator() has no argument {name!r}.")
        if value is not None and value not in ACCEPTED_VALUES.get(name, ()):
            raise UnsupportedArgument(f"Accelerator({name}=...)", UNSUPPORTED_ARGUMENTS[name])


def resolve(arguments: Mapping[str, Any], environ: Mapping[str, str]) -> Config:
    """The settings, each from the first place that gives it.

    Args:
        arguments: the constructor's arguments by name; None and the default count as not given.
        environ: the variables of this process.

    Raises:
        ConfigurationError: a value that is not understood; the message names where it came from.
    """
    for variable, way_out in UNSUPPORTED_VARIABLES.items():
        if environ.get(variable, "").lower() not in OFF:
            raise UnsupportedArgument(f"{variable}={environ[variable]}", way_out)
    values: dict[str, Any] = {}
    origin: dict[str, Provenance] = {}
    for option in OPTIONS:
        values[option.name], origin[option.name] = _resolve_one(option, arguments, environ)
    return Config(**values, origin=origin)


def _resolve_one(option: Option, arguments: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[Any, Provenance]:
    argument = arguments.get(option.name)
    found, origin = option.default, Provenance(Source.DEFAULT)
    if argument is not None and argument != option.default:
        found, origin = argument, Provenance(Source.ARGUMENT, option.name)
    elif option.variable and option.variable in environ:
        found, origin = environ[option.variable], Provenance(Source.ENVIRONMENT, option.variable)
    try:
        return option.read(found), origin
    except ConfigurationError as error:
        raise ConfigurationError(f"{error} It came from: {origin}.") from None


def data_settings(configuration: DataLoaderConfiguration | None, split_batches: bool | None) -> dict[str, Any]:
    """The settings of `dataloader_config`, with the constructor's own (older) `split_batches` merged in.

    Raises:
        ConfigurationError: both say something different, or it is something else.
    """
    from runtime.handlers import DataLoaderConfiguration  # late: the launcher reads the names above, and prints help

    refuse_other_kind("dataloader_config", configuration, DataLoaderConfiguration)
    chosen = configuration or DataLoaderConfiguration()
    if split_batches is not None and configuration is not None and split_batches != configuration.split_batches:
        raise ConfigurationError(
            f"split_batches={split_batches} contradicts DataLoaderConfiguration(split_batches="
            f"{configuration.split_batches}). Keep the one in DataLoaderConfiguration."
        )
    split = chosen.split_batches if split_batches is None else split_batches
    kept = ("even_batches", "dispatch_batches", "pad_batches", "non_blocking", "use_seedable_sampler", "data_seed")
    return {"split_batches": split, **{name: getattr(chosen, name) for name in kept}}


def window_steps(plugin: GradientAccumulationPlugin | None, steps: int) -> int | None:
    """Micro-steps per optimizer step: the plugin's where there is one; None leaves it to the environment.

    Raises:
        ConfigurationError: both are given, or the plugin is something else.
    """
    if plugin is None:
        return steps
    from runtime.plugins import GradientAccumulationPlugin  # late: most do without

    refuse_other_kind("gradient_accumulation_plugin", plugin, GradientAccumulationPlugin)
    if steps != 1:
        raise ConfigurationError(
            f"gradient_accumulation_steps={steps} and gradient_accumulation_plugin contradict. "
            "Keep GradientAccumulationPlugin(num_steps=...)."
        )
    return plugin.num_steps
