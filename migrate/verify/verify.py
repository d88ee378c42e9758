"""A verification on one screen:

    original → converted on one process → both frozen, on one and on N → converted on N as launched → original again

The second run of the original comes last: it also loads what the converted program has saved.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean

from migrate.errors import VerifyError
from migrate.verify import launching
from migrate.verify.compare.batches import Sharing, samples
from migrate.verify.compare.evaluation import after_evaluation
from migrate.verify.model import Curve, Verification
from migrate.verify.run import Run
from migrate.verify.runs import Runs, Several
from migrate.verify.trials import Kind, Starter, Trials
from migrate.verify.verdicts import Judge
from migrate.verify.wish import Wish

ASKS_FOR_LAUNCHER = ("rank", "world_size", "master_addr", "master_port", "torchrun", "launch", "distributed")


def verify(wish: Wish, say: Callable[[str], None] = lambda _: None, start: Starter = launching.run) -> Verification:
    """Run the original and the converted program, and compare them.

    Args:
        say: is told of each run when it is over.
        start: runs the processes of one run.

    Raises:
        VerifyError: the original cannot be run, or wrote outside of its copy.
    """
    _check_machine(wish)
    with tempfile.TemporaryDirectory(prefix="migrate-verify-") as name:
        trials = Trials(wish, Path(name).resolve(), say, start, wish.per_pass)
        runs = Runs(_original(trials))
        if 1 in wish.processes:
            runs.one = trials.run(Kind(name="converted", converted=True))
        for count in (count for count in wish.processes if count > 1):
            cpu = runs.original.main.gpus < count
            runs.frozen = runs.frozen or trials.run(Kind(name="original, frozen", is_frozen=True, cpu=cpu))
            runs.several[count] = _several(trials, runs.frozen, count, cpu=cpu)
        runs.again = trials.run(Kind(name="original, again"))
        verdicts = Judge(trials, runs, runs.again).verdicts()
    curves = tuple(_curve(run) for run in runs.all())
    remarks = _remarks(runs)
    return Verification(
        str(wish.script.relative_to(wish.folder)),
        wish.arguments,
        wish.steps,
        wish.processes,
        tuple(verdicts),
        curves,
        remarks,
    )


def _check_machine(wish: Wish) -> None:
    if os.name == "nt":
        raise VerifyError("--verify starts and ends groups of processes as Linux and macOS have them", "Run it there.")
    for package in ("torch", wish.target.value):
        if importlib.util.find_spec(package) is None:
            raise VerifyError(
                f"this Python has no package {package!r}: {sys.executable}",
                "Install migrate where the script runs, with what it needs: pip install 'torch-migrate[runtime]'.",
            )


# --- runs -----------------------------------------------------------------------------------------------------------


def _original(trials: Trials) -> Run:
    """The first run, which everything is compared with; it finds out how the program can be run at all."""
    kind = Kind(name="original")
    run = trials.run(kind)
    if run.has_failed and not run.main.losses and _asks_for_launcher(run):
        trials.is_launched = True
        run = trials.run(kind)
    if run.has_failed and run.main.losses:  # it may count the batches of a pass
        trials.per_pass = 0
        run = trials.run(kind)
    if run.main.losses:
        return _longer(trials, run)
    if run.has_failed:
        raise VerifyError(
            f"the original does not train: it {run.why}",
            "Put the arguments that it needs after --: migrate train.py --verify -- --data data.",
        )
    if run.end.is_cut:
        at = f" It stood at {run.end.place}." if run.end.place else ""
        raise VerifyError(
            f"the original did not train within {trials.wish.limit_s:g} s.{at}", "Give --time-limit more."
        )
    raise VerifyError(
        f"the original does not train: it {run.why} without a backward", "Put arguments with which it trains after --."
    )


def _longer(trials: Trials, run: Run) -> Run:
    """Few epochs of few steps are fewer than were asked for: with longer passes there are as many."""
    few = len(run.main.steps)
    if not trials.per_pass or run.end.how not in {"ended", "exit"} or few >= trials.wish.steps:
        return run
    longest = max(Counter((step.optimizer, step.passes) for step in run.main.steps).values(), default=0)
    if longest < trials.per_pass:  # no pass was cut
        return run
    passes = len(run.main.trained) or 1
    trials.per_pass = trials.wish.rounded(math.ceil(trials.wish.steps / passes))
    longer = trials.run(Kind(name="original"))
    return run if longer.has_failed else longer


def _asks_for_launcher(run: Run) -> bool:
    message = run.end.message.lower()
    return any(word in message for word in ASKS_FOR_LAUNCHER)


def _several(trials: Trials, alone: Run, count: int, *, cpu: bool) -> Several:
    kind = partial(Kind, converted=True, processes=count, cpu=cpu)
    reason = ""
    frozen: Run | None = trials.run(kind(name=f"converted on {count}, frozen", is_frozen=True, splits=True))
    assert frozen is not None
    if frozen.has_failed and not alone.has_failed:
        reason = frozen.why
        frozen = trials.run(kind(name=f"converted on {count}, frozen as launched", is_frozen=True))
        frozen = None if frozen.has_failed else frozen
    is_shared = frozen is None or samples(alone.main, frozen.records).sharing is not Sharing.WHOLE
    times = count if is_shared else 1
    return Several(trials.run(kind(name=f"converted on {count}", times=times)), frozen, reason, times)


def _curve(run: Run) -> Curve:
    record = run.main
    return Curve(
        name=run.name,
        processes=run.processes,
        is_frozen=run.is_frozen,
        splits=run.splits,
        end=run.why,
        seconds=round(run.seconds, 3),
        memory_bytes=max(each.end.memory_bytes for each in run.records),
        losses=_losses(run),
        gradients=tuple(step.gradient[0] if step.gradient else None for step in record.steps),
        rates=tuple(step.rates for step in record.steps),
        step_seconds=tuple(round(step.seconds, 6) for step in record.steps),
        batches=tuple(batch.rows for batch in record.batches),
        lines=tuple(each.line.text for each in after_evaluation(record)),
        files=tuple(run.files),
    )


def _losses(run: Run) -> tuple[float, ...]:
    """The losses as gradients see them: their mean over the processes, each of which has a share of the batch."""
    calls = zip(*(record.losses for record in run.records), strict=False)  # as many as all of them came to
    return tuple(fmean(loss.value for loss in each) for each in calls)


def _remarks(runs: Runs) -> tuple[str, ...]:
    if runs.original.main.has_kernel_fence:
        return ()
    return ("This system cannot fence C code: writes are watched as far as Python sees them.",)
