"""Where a thread is, in the words of the user's script: the innermost line that is neither PyTorch's nor ours."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from types import FrameType, TracebackType

import torch

_TORCH = os.path.dirname(torch.__file__) + os.sep
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_EXCHANGING = tuple(  # code of PyTorch that does nothing but wait for others, once it is the innermost
    os.path.join(_TORCH, *name.split("/"))
    for name in (
        "distributed/distributed_c10d.py",
        "distributed/c10d_logger.py",
        "distributed/_functional_collectives.py",
        "distributed/utils.py",
        "distributed/fsdp/",
        "nn/parallel/distributed.py",
    )
)
_DISPATCH = os.path.join("torch", "_ops.py")
_DECORATORS = {"wrapper", "inner", "decorator"}
_CONTEXTS = os.sep + "contextlib.py"  # decorators and contexts of both stand in it


class Doing(str, Enum):
    """What a process is doing, as far as its stack tells."""

    CALL = "call"  # a collective of the runtime
    EXCHANGE = "exchange"  # a collective of PyTorch
    BACKWARD = "backward"  # which exchanges gradients
    CODE = "code"  # anything else: it may come to a collective later


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's script and what is done there."""

    doing: Doing
    call: str  # of PyTorch, when it is in one of its collectives
    text: str  # train.py:41, in main


def frame_of(thread: int) -> FrameType | None:
    """Where a thread is now; None if it has ended.

    No garbage is collected meanwhile: Python 3.11 holds a lock in there that the end of any thread needs, and what is
    collected may let such a thread run (a loader's iterator waits for its workers). All of them would wait for ever.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)  # noqa: SLF001  documented, in spite of its name
    finally:
        if collects:
            gc.enable()


def place_of(frame: FrameType | None) -> Place:
    """Where the code that runs in `frame` was called from."""
    inside = list(_inside(frame))
    outside = inside[-1].f_back if inside else frame
    running = [part for part in inside if not part.f_code.co_filename.endswith(_DISPATCH)]
    doing, call = Doing.CODE, ""
    if running and running[0].f_code.co_filename.startswith(_EXCHANGING):
        names = [part.f_code.co_name for part in running if part.f_code.co_filename.startswith(_EXCHANGING)]
        doing, call = Doing.EXCHANGE, next(name for name in (*reversed(names), "") if name not in _DECORATORS)
    elif running and running[0].f_code.co_name == "_engine_run_backward":
        doing = Doing.BACKWARD
    return Place(doing, call, _text(outside or frame))


def place_of_caller() -> str:
    """The line of the script that called into the runtime."""
    return place_of(sys._getframe(1)).text  # noqa: SLF001  there is no public way to the caller's frame


def levels_to_script() -> int:
    """The `stacklevel` with which a warning of the function that asks is one of the script's own line."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  as above
    levels = 1
    while frame is not None and _is_inside(frame.f_code.co_filename):
        frame, levels = frame.f_back, levels + 1
    return levels


def place_of_error(traceback: TracebackType | None) -> str:
    """The innermost line of the script on the way to an error."""
    last = "an unknown line"
    while traceback is not None:
        frame = traceback.tb_frame
        if not _is_inside(frame.f_code.co_filename):
            last = f"{frame.f_code.co_filename}:{traceback.tb_lineno}, in {frame.f_code.co_name}"
        traceback = traceback.tb_next
    return last


def _inside(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None and _is_inside(frame.f_code.co_filename):
        yield frame
        frame = frame.f_back


def _is_inside(path: str) -> bool:
    return path.startswith((_TORCH, _OURS)) or path.endswith(_CONTEXTS)


def _text(frame: FrameType | None) -> str:
    if frame is None:
        return "an unknown line"
    return f"{frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}"
