"""What cells have set of the whole process: the processes that a notebook starts go on with it, as forks would.

    torch.set_default_dtype(torch.float64)          logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    torch.backends.cudnn.deterministic = True       warnings.filterwarnings("ignore")

Of PyTorch only what is not as it is in a new process.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

Setting = tuple[str, Any]
_OF_FUNCTIONS = ("formatter", "override_repr")  # of NumPy's printing: they may be such as cannot be sent


def settings() -> list[Setting]:
    """What this process has set, by the names of `_TORCH`, and "numpy", "warnings", "logging"."""
    found: list[Setting] = [("warnings", list(_warnings())), ("logging", list(_loggers()))]
    if (numpy := sys.modules.get("numpy")) is not None:
        printed = {name: value for name, value in numpy.get_printoptions().items() if name not in _OF_FUNCTIONS}
        found.append(("numpy", (printed, numpy.geterr())))
    if (torch := sys.modules.get("torch")) is not None:
        for name, (read, _, usual) in _TORCH.items():
            with suppress(RuntimeError, AttributeError):  # an older PyTorch; two ways to set TF32 that do not mix
                if (value := read(torch)) != usual:
                    found.append((name, value))
    return found


def take_on(kept: Sequence[Setting]) -> None:
    """Set the same in this process."""
    for name, value in kept:
        if name == "warnings":
            _warn(value)
        elif name == "logging":
            _log(value)
        elif name == "numpy":
            import numpy as np  # late: only where the notebook has it

            np.set_printoptions(**value[0])
            np.seterr(**value[1])
        else:
            import torch

            _TORCH[name][1](torch, value)


# --- PyTorch --------------------------------------------------------------------------------------------------------


def _called(name: str) -> Callable[[Any, Any], None]:
    return lambda torch, value: attrgetter(name)(torch)(value)


def _attribute(name: str) -> Callable[[Any, Any], None]:
    owner, _, last = name.rpartition(".")
    return lambda torch, value: setattr(attrgetter(owner)(torch), last, value)


def _read(name: str) -> Callable[[Any], Any]:
    return lambda torch: attrgetter(name)(torch)()


_Entry = tuple[Callable[[Any], Any], Callable[[Any, Any], None], Any]
#: Setting → how it is read, how it is set, and what it is in a new process.
_TORCH: dict[str, _Entry] = {
    "dtype": (
        lambda t: str(t.get_default_dtype()),
        lambda t, v: t.set_default_dtype(getattr(t, v[6:])),
        "torch.float32",
    ),
    "device": (lambda t: t.get_default_device().type, _called("set_default_device"), "cpu"),  # each has its own GPU
    "deterministic": (_read("get_deterministic_debug_mode"), _called("set_deterministic_debug_mode"), 0),
    "matmul": (_read("get_float32_matmul_precision"), _called("set_float32_matmul_precision"), "highest"),
    "gradients": (_read("is_grad_enabled"), _called("set_grad_enabled"), True),
    "anomalies": (_read("is_anomaly_enabled"), _called("autograd.set_detect_anomaly"), False),
    "sharing": (_read("multiprocessing.get_sharing_strategy"), _called("multiprocessing.set_sharing_strategy"), None),
    "printing": (
        lambda t: vars(t._tensor_str.PRINT_OPTS),  # noqa: SLF001  there is no other way to read them
        lambda t, v: vars(t._tensor_str.PRINT_OPTS).update(v),  # noqa: SLF001
        None,
    ),
    **{
        name: (attrgetter(name), _attribute(name), usual)
        for name, usual in (
            ("backends.cudnn.enabled", True),
            ("backends.cudnn.benchmark", False),
            ("backends.cudnn.deterministic", False),
            ("backends.cudnn.allow_tf32", True),
        )
    },
}

# --- warnings and logging -------------------------------------------------------------------------------------------


def _warnings() -> Iterator[tuple[str, str, type[Warning], str, int]]:
    """The filters, from the first, as `filterwarnings` takes them; those of Python's own warnings."""
    for action, message, category, module, line in warnings.filters:
        if isinstance(category, type) and category.__module__ == "builtins":
            yield action, _text(message), category, _text(module), line


def _text(pattern: str | re.Pattern[str] | None) -> str:
    return pattern.pattern if isinstance(pattern, re.Pattern) else pattern or ""


def _warn(filters: Sequence[tuple[Any, str, type[Warning], str, int]]) -> None:
    warnings.resetwarnings()
    for action, message, category, module, line in reversed(filters):
        warnings.filterwarnings(action, message, category, module, line)


def _loggers() -> Iterator[tuple[str, int, bool, list[dict[str, Any]]]]:
    """The loggers of which a level or a handler was set: name, level, whether it hands on, its handlers."""
    named = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    for logger in (logging.root, *named):
        handlers = [kept for handler in logger.handlers if (kept := _kept(handler)) is not None]
        if handlers or logger.level != (logging.WARNING if logger is logging.root else logging.NOTSET):
            yield logger.name if logger is not logging.root else "", logger.level, logger.propagate, handlers


def _kept(handler: logging.Handler) -> dict[str, Any] | None:
    """A handler that writes to the output or to a file, as what makes it again; None: another."""
    kept: dict[str, Any] = {"level": handler.level, "formatter": _formatter(handler.formatter)}
    if type(handler) is logging.FileHandler:
        return {**kept, "file": (handler.baseFilename, handler.encoding)}
    if type(handler) is logging.StreamHandler and handler.stream in (sys.stdout, sys.stderr):
        return {**kept, "stream": "stdout" if handler.stream is sys.stdout else "stderr"}
    return None


def _formatter(formatter: logging.Formatter | None) -> tuple[str | None, str | None] | None:
    return (formatter._fmt, formatter.datefmt) if type(formatter) is logging.Formatter else None  # noqa: SLF001


def _log(loggers: Sequence[tuple[str, int, bool, list[dict[str, Any]]]]) -> None:
    for name, level, hands_on, handlers in loggers:
        logger = logging.getLogger(name or None)
        logger.setLevel(level)
        logger.propagate = hands_on
        for kept in handlers:
            logger.addHandler(_handler(kept))


def _handler(kept: dict[str, Any]) -> logging.Handler:
    handler: logging.Handler
    if "file" in kept:
        path, encoding = kept["file"]
        handler = logging.FileHandler(path, mode="a", encoding=encoding, delay=True)  # another has begun it
    else:
        handler = logging.StreamHandler(getattr(sys, kept["stream"]))
    handler.setLevel(kept["level"])
    if kept["formatter"] is not None:
        handler.setFormatter(logging.Formatter(*kept["formatter"]))
    return handler
