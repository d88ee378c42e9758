"""How the values of settings are read: words of a command line or a variable, or what YAML has made of them.

A reader gives None for what says nothing ("all", "auto", -1), and raises LaunchError with what it expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runtime.config import flag
from runtime.errors import ConfigurationError
from runtime.kinds import ONE_EACH
from runtime.launch.spec import LaunchError, Machines

Reader = Callable[[Any], Any]
# The number of a GPU, of a tile of one (Intel's 0.1), or the beginning of a UUID as nvidia-smi and rocm-smi show it.
_GPU = re.compile(r"\d+(\.\d+)?|(GPU|MIG)-[\w/-]+")
_MEETING = (  # what torch elastic's two meetings ask for
    "timeout",
    "join_timeout",
    "last_call_timeout",
    "close_timeout",
    "heartbeat_timeout",
    "read_timeout",
    "keep_alive_interval",
    "keep_alive_max_attempt",
    "is_host",
    "store_type",
    "rank",
)


def text(value: Any) -> str | None:
    """The words themselves."""
    return str(value) or None


def whole(value: Any) -> int:
    """A whole number."""
    try:
        return int(str(value))
    except ValueError:
        raise LaunchError("write a whole number") from None


def seconds(value: Any) -> float:
    """A number of seconds above 0."""
    try:
        number = float(str(value))
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise LaunchError("write a number of seconds above 0")
    return number


def at_least_one(value: Any) -> int:
    """A whole number of at least 1."""
    number = whole(value)
    if number < 1:
        raise LaunchError("write a whole number of at least 1")
    return number


def processes(value: Any) -> int | None:
    """A number of processes; Accelerate writes -1 where the command line has to say it."""
    number = whole(value)
    return None if number == -1 else number


def processes_of_machine(value: Any) -> int | None:
    """A number of processes, or torchrun's words for one per device."""
    return None if str(value) in ONE_EACH else whole(value)


def yes_or_no(value: Any) -> bool:
    """A claim, also in words."""
    try:
        return flag(value)
    except ConfigurationError:
        raise LaunchError("write true or false") from None


def machines(value: Any) -> Machines:
    """A number, or MIN:MAX."""
    return Machines.parse(str(value))


def gpu_ids(value: Any) -> tuple[str, ...] | None:
    """The devices to use; YAML may have made a number or a list of them."""
    words = ",".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
    if words.strip() == "all":
        return None
    ids = tuple(word.strip() for word in words.split(","))
    if not all(ids) or len(set(ids)) != len(ids):
        raise LaunchError("that is not a list of different GPUs; write it as --gpu_ids 0,1 or --gpu_ids all")
    if unknown := [word for word in ids if not _GPU.fullmatch(word)]:  # CUDA would take it for no GPU at all
        what = f"{', '.join(unknown)} is neither the number nor the UUID of a GPU"
        raise LaunchError(f"{what}; write it as --gpu_ids 0,1")
    return ids


def rdzv_conf(value: Any) -> dict[str, str]:
    """Settings by name, also written as `join_timeout=300,last_call_timeout=10`."""
    if isinstance(value, dict):
        found = {str(name): str(setting) for name, setting in value.items()}
    else:
        items = [item.partition("=") for item in str(value).split(",") if item.strip()]
        if not all(name.strip() and setting.strip() for name, _, setting in items):
            raise LaunchError("write it as --rdzv_conf join_timeout=300,last_call_timeout=10")
        found = {name.strip(): setting.strip() for name, _, setting in items}
    if unknown := [name for name in found if name not in _MEETING]:  # torch elastic would overlook it
        raise LaunchError(f"{', '.join(unknown)} is not known; known are {', '.join(_MEETING)}")
    return found


def choice(*known: str) -> Reader:
    """A reader of one of these words, in any case; they come back as they are written here."""
    by_name = {word.lower(): word for word in known}

    def read(value: Any) -> str:
        # YAML makes booleans of the words no and yes
        word = ("no", "yes")[value] if isinstance(value, bool) else str(value)
        if word.strip().lower() not in by_name:
            raise LaunchError(f"known are {', '.join(known)}")
        return by_name[word.strip().lower()]

    return read


def precision(value: Any) -> str:
    """The name of a precision."""
    if str(value).lower() == "fp8":
        raise LaunchError("fp8 is not here; use bf16 or fp16")
    word: str = choice("no", "bf16", "fp16")(value)
    return word


def amount(value: Any) -> int | str:
    """A whole number, also as 1e8."""
    try:
        number = float(str(value))
    except ValueError:
        raise LaunchError("write a number") from None
    return int(number) if number.is_integer() else str(value)


def fsdp_version(value: Any) -> int:
    """1 or 2."""
    number = whole(value)
    if number not in (1, 2):
        raise LaunchError("known are 1 and 2")
    return number


def reshard(value: Any) -> bool | str:
    """A claim, or the name of one of FSDP1's strategies."""
    try:
        return yes_or_no(value)
    except LaunchError:
        return str(value)


def names(value: Any) -> str | None:
    """Names with commas between them; YAML may have made a list of them."""
    return ",".join(str(item) for item in value) if isinstance(value, (list, tuple)) else text(value)
