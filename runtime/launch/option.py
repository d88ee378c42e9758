"""What one setting of a launch is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from runtime.launch.readers import Reader


class Topic(str, Enum):
    """What an option is about."""

    PROCESSES = "processes"
    MACHINES = "several machines"
    FAILURES = "failures"
    SCRIPT = "the script"
    OUTPUT = "output"
    SHARDS = "sharded models (FSDP2)"
    COMPILING = "compiling (torch.compile)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting."""

    name: str
    topic: Topic
    help: str
    read: Reader
    flags: tuple[str, ...]
    is_switch: bool = False
    """Whether the flag is a claim without a value, with a second flag that denies it."""
    metavar: str | None = None
    variables: tuple[str, ...] = ()
    """Where a value may come from, in this order; a value from elsewhere is handed on in the first (`passes_on`)."""
    passes_on: bool = False
    is_usual_in_files: bool = False
    """Whether Accelerate writes `false` into every file, which is then nobody's wish."""
    key: str | None = None
    """The name in a file, with its section before a dot; None: not in files."""
    is_ours: bool = False
    """Whether Accelerate does not know the key."""
    default: Any = None
    otherwise: str = ""
    """What happens where nobody says anything, in words."""
    is_shown: bool = True
    """Whether help lists the flag, which is accepted in any case."""
    idle: str = ""
    """Why the setting, though known, changes nothing here."""


def option(topic: Topic, name: str, text: str, read: Reader, /, **rest: Any) -> Option:
    """A setting whose flag and key are its name, unless `rest` says otherwise."""
    rest.setdefault("flags", (f"--{name}",))
    rest.setdefault("key", name)
    return Option(name=name, topic=topic, help=text, read=read, **rest)
