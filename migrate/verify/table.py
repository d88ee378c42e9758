"""A verification for people: a line for each verdict, and what is wrong below it."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator

from migrate.verify.model import Curve, Outcome, Verdict, Verification, counted

COLOURS = {Outcome.PASS: "\x1b[32m", Outcome.FAIL: "\x1b[1;31m", Outcome.NOT_CHECKED: "\x1b[33m"}
PLAIN = "\x1b[0m"
INDENT = " " * 22


def table(verification: Verification, width: int, *, colour: bool) -> str:
    """The lines of the table, at most `width` characters each where words allow it."""
    return "".join(f"{line}\n" for line in _lines(verification, width, colour=colour))


def _lines(verification: Verification, width: int, *, colour: bool) -> Iterator[str]:
    command = " ".join((verification.script, *verification.arguments))
    yield f"{command}: the original and the converted program, {counted(verification.steps, 'step')}"
    for count in verification.processes:
        yield ""
        yield f"on {counted(count, 'process', 'es')}"
        for verdict in (each for each in verification.verdicts if each.processes == count):
            yield from _verdict(verdict, width, colour=colour)
    yield ""
    yield from _costs(verification)
    for remark in verification.remarks:
        yield from textwrap.wrap(remark, width)
    yield _summary(verification)


def _verdict(verdict: Verdict, width: int, *, colour: bool) -> Iterator[str]:
    code = f"  {verdict.contract.code:7}"
    word = verdict.outcome.value
    outcome = f"{word.upper() if verdict.outcome is Outcome.FAIL else word:13}"
    if colour:
        outcome = f"{COLOURS[verdict.outcome]}{outcome}{PLAIN}"
    said = f"{verdict.contract.title}: {verdict.message}"
    first, *rest = textwrap.wrap(said, max(width - len(INDENT), 40)) or [""]
    yield f"{code}{outcome}{first}"
    yield from (f"{INDENT}{line}" for line in rest)
    if verdict.difference:
        yield from (f"{INDENT}{line}" for line in textwrap.wrap(str(verdict.difference), max(width - len(INDENT), 40)))


def _costs(verification: Verification) -> Iterator[str]:
    """What a step takes and what a process holds: the recorder's own work is not in the first, but in the second."""
    told = [curve for curve in verification.runs if not curve.is_frozen and "again" not in curve.name]
    for curve in told:
        if curve.step_seconds:
            step = f"{1000 * statistics.median(curve.step_seconds):.1f} ms"
            memory = f"{curve.memory_bytes / 2**20:,.0f} MiB"
            yield f"{curve.name + ':':24} {step:>10} a step (median), {memory} at most, loss {_losses(curve)}"


def _losses(curve: Curve) -> str:
    if len(curve.losses) < 2:
        return " ".join(f"{loss:.6g}" for loss in curve.losses)
    return f"{curve.losses[0]:.6g} to {curve.losses[-1]:.6g}"


def _summary(verification: Verification) -> str:
    counts = {outcome: sum(each.outcome is outcome for each in verification.verdicts) for outcome in Outcome}
    words = [
        f"{counts[Outcome.PASS]} passed",
        f"{counts[Outcome.FAIL]} failed",
        f"{counts[Outcome.NOT_CHECKED]} not checked",
    ]
    return ", ".join(words)
