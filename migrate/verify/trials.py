"""The runs of a verification: each in a fresh copy, one after the other, within one budget of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from migrate.errors import VerifyError
from migrate.verify import launching, records
from migrate.verify.launching import Exit, Start
from migrate.verify.order import Order
from migrate.verify.records import End, Record
from migrate.verify.run import Run
from migrate.verify.scratch import Scratch, place_for, written
from migrate.verify.wish import Wish

SEED = 20  # any
TOTAL = 6  # all runs together may take this many times what one may
LEAST_S = 1.0  # a run that has no more time is not begun
CACHES = (".cache", ".torch", ".keras")  # below the home folder: where libraries keep what they have downloaded

Starter = Callable[[Start, Path, Path, float], Exit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is special about a run."""

    name: str
    converted: bool = False
    processes: int = 1
    cpu: bool = False
    is_frozen: bool = False
    splits: bool = False
    shuffled: tuple[tuple[int, int], ...] = ()
    times: int = 1  # the steps asked for are divided by this: where a step of N processes is N steps of one


@dataclass(slots=True)
class Trials:
    """Runs a program as often as it is asked to."""

    wish: Wish
    work: Path  # an empty folder
    say: Callable[[str], None]
    start: Starter = launching.run
    per_pass: int = 0
    is_launched: bool = False  # the original runs only as what torchrun starts
    kept: dict[str, Path] = field(default_factory=dict)  # run -> the copy in which it has written
    _began: float = field(default_factory=time.monotonic)
    _count: int = 0

    def run(self, kind: Kind) -> Run:
        """One run, to its end.

        Raises:
            VerifyError: it wrote outside of its copy, or there is no time left.
        """
        wish, left = self.wish, self._left_s()
        if left <= LEAST_S:
            raise VerifyError(f"the time for all runs is over ({TOTAL * wish.limit_s:g} s)", "Give --time-limit more.")
        copy = place_for(wish.folder, self.work / "copy")
        before = Scratch(wish.folder, wish.changed).make(copy, converted=kind.converted)
        order = self._order(kind, copy, min(wish.limit_s, left))
        path = Path(order.records) / "order.json"
        order.write(path)
        launcher = wish.target.value if kind.converted else "torchrun"
        is_launched = self.is_launched and not kind.converted
        start = Start(kind.processes, launcher, kind.cpu, is_launched, str(wish.folder), str(copy))
        done = self.start(start, path, self.work, order.limit_s)
        found = tuple(
            records.read(Path(order.records) / f"rank{rank}.jsonl", str(copy)) for rank in range(kind.processes)
        )
        made = Run(
            kind.name, found, written(copy, before), done.output, done.seconds, kind.is_frozen, splits=kind.splits
        )
        self.say(f"{kind.name}: {len(made.main.losses)} losses, {made.why} ({done.seconds:.1f} s)")
        self._check_writes(made)
        self._keep(kind, copy)
        return made

    def further(self, kind: Kind) -> Run:
        """A run that settles a doubt about others; where no time is left for it, one that was cut before it began.

        Raises:
            VerifyError: it wrote outside of its copy.
        """
        if self._left_s() > LEAST_S:
            return self.run(kind)
        nothing = tuple(Record("", end=End("time")) for _ in range(kind.processes))
        return Run(kind.name, nothing, {}, "", 0.0, kind.is_frozen, splits=kind.splits)

    def _left_s(self) -> float:
        return self._began + TOTAL * self.wish.limit_s - time.monotonic()

    def _order(self, kind: Kind, copy: Path, limit_s: float) -> Order:
        self._count += 1
        folder = self.work / f"records{self._count}"
        folder.mkdir()
        home = Path.home()
        caches = (home / name for name in CACHES if (home / name).is_dir() and not self._holds(home / name))
        return Order(
            script=str(copy / self.wish.script.relative_to(self.wish.folder)),
            arguments=self.wish.arguments,
            folder=str(copy),
            root=str(copy),
            records=str(folder),
            writable=(str(folder), str(self.work / "tmp"), *map(str, caches)),
            seed=SEED,
            steps=max(1, self.wish.steps // kind.times),
            per_pass=self.per_pass and max(1, self.per_pass // kind.times),
            limit_s=limit_s,
            package=self.wish.target.value if kind.converted else "",
            is_frozen=kind.is_frozen,
            splits=kind.splits,
            shuffled=kind.shuffled,
            checkpoints=() if kind.converted or kind.is_frozen else tuple(map(str, self.kept.values())),
        )

    def _holds(self, folder: Path) -> bool:
        return self.wish.folder.is_relative_to(folder)

    def _check_writes(self, run: Run) -> None:
        for record in run.records:
            for refused in record.refused:
                at = f" at {refused.place}" if refused.place else ""
                if refused.is_program:
                    what = f"the script starts {refused.path!r}{at}, and this system cannot keep what it writes apart"
                    raise VerifyError(what, "Verify on Linux, or with arguments that leave it out.")
                raise VerifyError(
                    f"the script writes {refused.path}{at}, which is outside of its folder; the write was refused",
                    "Give it arguments after -- that let it write below its folder. Nothing of yours was changed.",
                )

    def _keep(self, kind: Kind, copy: Path) -> None:
        """Put the copy of a converted run aside: what it has saved is loaded by the original later."""
        if kind.converted:
            place = self.work / "kept" / kind.name.replace(" ", "-")
            place.parent.mkdir(exist_ok=True)
            copy.rename(place)
            self.kept[kind.name] = place
