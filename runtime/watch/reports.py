"""What the processes say of themselves, and what follows when all of it is put together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum

from runtime.watch.places import Doing

PATIENCE_S = 8.0  # without any progress on any process, before it is called a deadlock
WARN_AFTER_S = 20.0  # of waiting for a process that is doing something else

#: The way out, wherever processes have come to different calls.
SAME_CALLS = (
    "Every process must come to the same calls in the same order: look for one inside of `if is_main_process`, in a "
    "loop that has more steps on some processes, or after a return that only some take."
)

#: The way out in one line, where one of them is over before the others.
SAME_STEPS = (
    "Every process must take the same steps: look for a loop with more of them on some, or a break that only some take."
)

#: The way out, where one of them is in a backward, or in what follows one.
SAME_BACKWARDS = (
    "A backward averages gradients with the others: every process must run it, in the same steps and through the same "
    "layers. Let what chooses be the same on all of them (one seed, or one process that tells the others: "
    "broadcast_object_list), or have averaged what each has: "
    "Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])."
)
#: What is called where gradients are averaged by the runtime, after a backward.
GRADIENTS = "the averaging of gradients"


def way_out(calls: Iterable[str]) -> str:
    """What to do where processes have come to these calls, a backward (`GRADIENTS`) or others."""
    return f"{SAME_CALLS}\n{SAME_BACKWARDS}" if GRADIENTS in calls else SAME_CALLS


@dataclass(frozen=True, slots=True)
class Report:
    """One process: what it does, where, and for how many seconds it has not moved."""

    rank: int
    doing: Doing
    place: str
    still_s: float
    call: str = ""  # of the runtime or of PyTorch, when it is in one
    failure: str = ""  # the error that ended its script

    def line(self) -> str:
        """For people: `rank 0: waits in gather for 9 s    at train.py:41, in main`."""
        if self.failure:
            return f"  rank {self.rank}: ended with {self.failure}    at {self.place}"
        doing = {
            Doing.CALL: f"waits in {self.call} for {self.still_s:.0f} s",
            Doing.EXCHANGE: f"in a collective of PyTorch for {self.still_s:.0f} s",
            Doing.BACKWARD: f"in backward for {self.still_s:.0f} s",
            Doing.CODE: "runs other code",
        }
        return f"  rank {self.rank}: {doing[self.doing]}    at {self.place}"

    @property
    def is_of_gradients(self) -> bool:
        """Whether it waits in a backward, or in the forward after one: there PyTorch exchanges what it saw in that."""
        return self.doing is Doing.BACKWARD or (self.doing is Doing.EXCHANGE and self.call == "forward")

    def packed(self) -> bytes:
        """One line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def unpacked(cls, data: bytes) -> Report:
        """What `packed` gave."""
        values = json.loads(data)
        return cls(**{**values, "doing": Doing(values["doing"])})


class Silence(Enum):
    """Why there is no report of a process."""

    GONE = "is no longer there: its script has ended, or it was killed"
    SILENT = "does not answer"


Answers = dict[int, "Report | Silence"]


def told(answers: Answers) -> str:
    """A line for every process."""
    lines = [
        answer.line() if isinstance(answer, Report) else f"  rank {rank}: {answer.value}"
        for rank, answer in sorted(answers.items())
    ]
    return "\n".join(lines)


def failed(answers: Answers) -> Report | None:
    """The process whose error comes first in rank order; None if there is none."""
    return next((a for _, a in sorted(answers.items()) if isinstance(a, Report) and a.failure), None)


def gone(answers: Answers) -> list[int]:
    """The processes that have ended."""
    return [rank for rank, answer in sorted(answers.items()) if answer is Silence.GONE]


def is_deadlock(answers: Answers) -> bool:
    """Whether all processes wait for each other, in different places, and none of them has moved for a while.

    A process in other code may still come, and one that does not answer may be stopped: both are no deadlock.
    """
    reports = [answer for answer in answers.values() if isinstance(answer, Report)]
    if len(reports) < len(answers) or len(reports) < 2:
        return False
    if any(report.doing is Doing.CODE or report.still_s < PATIENCE_S for report in reports):
        return False
    return len({(report.doing, report.call) for report in reports}) > 1


def in_vain(answers: Answers) -> str:
    """Where all wait for each other, and the way out."""
    reports = [answer for answer in answers.values() if isinstance(answer, Report)]
    calls = [GRADIENTS if report.is_of_gradients else report.call for report in reports]
    return f"the processes wait for each other in different places:\n{told(answers)}\n{way_out(calls)}"
