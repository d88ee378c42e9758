"""What the runtime raises.

    AcceleratorError                  anything below; `except AcceleratorError` catches all of it
    ├── ConfigurationError            (ValueError)   a setting whose value cannot be used here
    │   └── UnsupportedArgument                      an argument that Accelerate has and this runtime does not
    ├── PrepareError                  (TypeError)    an object that `prepare` cannot take, or not any more
    ├── WorldError                    (RuntimeError) the processes cannot be joined, or not in this way
    ├── CollectiveError               (RuntimeError) the processes disagree on what they exchange, or one is gone
    ├── ProcessFailed                 (RuntimeError) one of the processes that a notebook has started has failed
    ├── BackwardError                 (RuntimeError) gradients that the engine in use cannot average
    ├── PrecisionError                (RuntimeError) a call that the numeric precision in use cannot serve
    ├── SaveError                     (RuntimeError) a file or a checkpoint that could not be written
    └── LoadError                     (RuntimeError) a checkpoint that is damaged, or is not one of this program

Each class also is the built-in error in brackets, so code written against Accelerate catches what it caught before.
"""

from __future__ import annotations


class AcceleratorError(Exception):
    """The base of every error of the runtime."""


class ConfigurationError(AcceleratorError, ValueError):
    """A setting has a value that cannot be used on this device or in this world."""


class UnsupportedArgument(ConfigurationError):
    """An argument, handler or variable that Accelerate understands and this runtime does not (yet)."""

    def __init__(self, name: str, way_out: str) -> None:
        super().__init__(f"{name} is not supported by this runtime. {way_out}")
        self.name = name


class PrepareError(AcceleratorError, TypeError):
    """An object cannot be prepared."""


class WorldError(AcceleratorError, RuntimeError):
    """The process group cannot be joined."""


class CollectiveError(AcceleratorError, RuntimeError):
    """The processes disagree on what they exchange, or one of them will not come to it.

    `told_by`: the rank that shows it where several have the same error (None: all do); `follows`: another process has
    ended with an error of its own.
    """

    def __init__(self, message: str, *, told_by: int | None = None, follows: bool = False) -> None:
        super().__init__(message)
        self.told_by = told_by
        self.follows = follows


class ProcessFailed(AcceleratorError, RuntimeError):
    """A process that `notebook_launcher` has started has failed; the message begins with its traceback.

    `status`: its exit status, or 128 + the signal that ended it.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(f"a process has failed:\n\n{message}")
        self.status = status


class BackwardError(AcceleratorError, RuntimeError):
    """Gradients that PyTorch's DistributedDataParallel cannot average."""


class PrecisionError(AcceleratorError, RuntimeError):
    """A call that the precision in use cannot serve."""


class SaveError(AcceleratorError, RuntimeError):
    """An object cannot be saved in the format asked for, or a checkpoint could not be written."""


class LoadError(AcceleratorError, RuntimeError):
    """A checkpoint cannot be loaded: it is damaged, or does not fit what was prepared."""


def refuse_other_kind(argument: str, value: object, kind: type) -> None:
    """Raise where something else is given than an object of this class, a dictionary of its fields for one."""
    if value is not None and not isinstance(value, kind):
        raise ConfigurationError(f"{argument}={value!r} is no {kind.__name__}. Pass {argument}={kind.__name__}(...).")
