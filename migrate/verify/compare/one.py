"""E1: on one process every bit is that of the original, unless the original differs from itself."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.verify.compare.lines import Volatile, first_difference, said
from migrate.verify.compare.numbers import is_near
from migrate.verify.model import Contract, Difference, Outcome, Verdict, counted
from migrate.verify.records import Loss, Record, Step
from migrate.verify.run import Run, with_cuts

GPU_CLOSE = 1e-3  # relative: kernels that add in any order, over a few steps


def same_on_one(original: Run, again: Run, converted: Run) -> Verdict:
    """E1 of the converted program on one process."""
    found = divergence(original.main, converted.main)
    own = divergence(original.main, again.main)
    if found is not None and again.cut and found[0] >= len(again.main.training):
        message = "the training differs, and nothing says whether two runs of the original do as well"
        return _verdict(Outcome.NOT_CHECKED, with_cuts(message, again))
    if found is not None and (own is None or found[0] < own[0]):
        return _verdict(Outcome.FAIL, "the training differs", found[1])
    if own is not None:
        return _unsteady(original.main, converted.main, own)
    if not (original.main.training and converted.main.training):
        message = "no backward and no optimizer step was seen"
        return _verdict(Outcome.NOT_CHECKED, with_cuts(message, original, converted))
    if difference := _said(original, again, converted) or _written(original, again, converted):
        return _verdict(Outcome.FAIL, "the training is the same, what it leaves is not", difference)
    message = f"identical to the last bit: {_counts(original, converted)}"
    return _verdict(Outcome.PASS, with_cuts(message, original, converted))


def divergence(left: Record, right: Record) -> tuple[int, Difference] | None:
    """Where the training of two processes parts, as an index into it, and how; None if it does not."""
    for index, (one, other) in enumerate(zip(left.training, right.training, strict=False)):
        if difference := _event(one, other):
            return index, difference
    return _length(left, right)


def _event(one: Loss | Step, other: Loss | Step) -> Difference | None:
    if isinstance(one, Loss) and isinstance(other, Loss):
        if one.exact == other.exact:
            return None
        return Difference(
            "loss", f"{one.value:.9g}", f"{other.value:.9g}", one.step, one.place, abs(one.value - other.value)
        )
    if isinstance(one, Step) and isinstance(other, Step):
        return _step(one, other)
    names = [f"a {type(each).__name__.lower()}" for each in (one, other)]
    return Difference("what comes next", names[0], names[1], place=one.place)


def _step(one: Step, other: Step) -> Difference | None:
    at, place = one.number - 1, one.place
    if one.kind != other.kind:
        return Difference("optimizer", one.kind, other.kind, at, place)
    if one.rates != other.rates:
        return Difference("learning rate", _shown(one.rates), _shown(other.rates), at, place)
    if one.parameters == other.parameters:
        return None
    size = abs(one.size - other.size)
    return Difference("norm of the parameters", f"{one.size:.9g}", f"{other.size:.9g}", at, place, size)


def _length(left: Record, right: Record) -> tuple[int, Difference] | None:
    """A run that its time has ended is as long as it is; else both are equally long."""
    counts = len(left.training), len(right.training)
    if counts[0] == counts[1] or left.end.is_cut or right.end.is_cut:
        return None
    what = "number of losses and steps"
    return min(counts), Difference(what, str(counts[0]), str(counts[1]))


def _shown(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:.6g}" for rate in dict.fromkeys(rates))


def _unsteady(original: Record, converted: Record, own: tuple[int, Difference]) -> Verdict:
    """What can be said if two runs of the original differ."""
    at = f"two runs of the original differ in {own[1].what}" + (
        "" if own[1].step is None else f" at step {own[1].step}"
    )
    on_gpu = any("cuda" in step.devices for step in original.steps)
    if on_gpu and _is_close(original, converted):
        message = f"the losses agree within {GPU_CLOSE:.0e}; not to the last bit, as {at} (kernels of the GPU)"
        return _verdict(Outcome.PASS, message)
    seed = "its kernels" if on_gpu else "a clock, a set or a thread"
    message = f"{at}, so nothing can be asked of the conversion from there on: {seed} decides something"
    return _verdict(Outcome.NOT_CHECKED, message)


def _is_close(left: Record, right: Record) -> bool:
    if len(left.losses) != len(right.losses) or not left.losses:
        return False
    pairs = zip(left.losses, right.losses, strict=True)
    return all(is_near(a.value, b.value, GPU_CLOSE * max(abs(a.value), abs(b.value), 1e-6)) for a, b in pairs)


def _said(original: Run, again: Run, converted: Run) -> Difference | None:
    left, right = said(original.main), said(converted.main)
    if original.cut or again.cut or converted.cut:
        shortest = min(len(left), len(said(again.main)), len(right))
        left, right = left[:shortest], right[:shortest]
    volatile = Volatile.between(original.main, again.main)
    if (found := first_difference(left, right, volatile)) is None:
        return None
    return Difference("line", repr(found[0]), repr(found[1]), place=found[2])


def _written(original: Run, again: Run, converted: Run) -> Difference | None:
    """Files that two runs of the original write alike."""
    if original.cut or converted.cut:
        return None
    first, second, theirs = original.digests(), again.digests(), converted.digests()
    for path in sorted(first.keys() & second.keys()):
        if path not in theirs:
            return Difference(f"file {path}", "written", "not written")
        if first[path] == second[path] != theirs[path]:
            return Difference(f"file {path}", first[path][:8], theirs[path][:8])
    if first.keys() == second.keys() and (more := sorted(theirs.keys() - first.keys())):
        return Difference(f"file {more[0]}", "not written", "written")
    return None


def _counts(original: Run, converted: Run) -> str:
    """How much was compared."""
    one, other = original.main, converted.main
    is_cut = original.cut or converted.cut
    counts = (
        (min(len(one.losses), len(other.losses)), "loss", "es"),
        (min(len(one.steps), len(other.steps)), "optimizer step", "s"),
        (min(len(said(one)), len(said(other))), "line", "s"),
        (0 if is_cut else len(original.files), "file", "s"),
    )
    return ", ".join(counted(*each) for each in counts if each[0])


def _verdict(outcome: Outcome, message: str, difference: Difference | None = None) -> Verdict:
    return Verdict(Contract.E1, 1, outcome, message, difference)
