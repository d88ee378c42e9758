"""What a verification found: verdicts, and the runs that they rest on. Renderers only read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


def counted(count: int, word: str, plural: str = "s") -> str:
    """`1 step`, `2 steps`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}{plural}"


class Outcome(str, Enum):
    """What a verdict says."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    NOT_CHECKED = "not checked"


class Contract(Enum):
    """What is promised, as docs/design.md numbers it; the value is (code, what it says)."""

    RUNS = ("runs", "ends as the original does")
    E1 = ("E1", "same on one process")
    RANKS = ("ranks", "all processes have the same parameters")
    E2 = ("E2", "same global batch")
    E3 = ("E3", "exact evaluation")
    E4 = ("E4", "one voice")
    E5 = ("E5", "same schedule")
    E6 = ("E6", "loadable checkpoints")

    @property
    def code(self) -> str:
        """Its short name."""
        return self.value[0]

    @property
    def title(self) -> str:
        """What it promises, in words."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing in which two runs differ."""

    what: str  # "loss", "parameters", "learning rate", "line", ...
    original: str
    converted: str
    step: int | None = None  # 0-based optimizer step
    place: str = ""  # in the original: "train.py:31"
    size: float | None = None  # of the difference, where it is one of numbers

    def __str__(self) -> str:
        at = "" if self.step is None else f" at step {self.step}"
        place = f" ({self.place})" if self.place else ""
        size = "" if self.size is None else f", a difference of {self.size:.3g}"
        return f"{self.what}{at}{place}: {self.original} in the original, {self.converted} converted{size}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One contract on one number of processes."""

    contract: Contract
    processes: int
    outcome: Outcome
    message: str  # what was compared, or why not
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """A run as numbers over its steps; lists are of one process, the main one, and losses the mean over all."""

    name: str  # "original", "converted", "converted, frozen", ...
    processes: int
    is_frozen: bool  # steps were undone
    splits: bool  # the global batch was kept
    end: str  # how it ended, in words
    seconds: float
    memory_bytes: int  # of the process that held most
    losses: tuple[float, ...]
    gradients: tuple[float | None, ...]  # norms, one for each optimizer step
    rates: tuple[tuple[float, ...], ...]
    step_seconds: tuple[float, ...]
    batches: tuple[int, ...]  # rows of each batch
    lines: tuple[str, ...]  # what was said after an evaluation
    files: tuple[str, ...]  # what was written


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything that was found."""

    script: str
    arguments: tuple[str, ...]
    steps: int
    processes: tuple[int, ...]
    verdicts: tuple[Verdict, ...]
    runs: tuple[Curve, ...]
    remarks: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """What is wrong with the conversion."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome is Outcome.FAIL)

    @property
    def exit_status(self) -> int:
        """1 if a verdict is a failure."""
        return int(bool(self.failed))
