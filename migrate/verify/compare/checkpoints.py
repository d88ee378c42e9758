"""E6: what is saved has the keys, classes, shapes and dtypes of the original, and loads into the original's objects."""

from __future__ import annotations

from typing import Any

from migrate.verify.model import Contract, Difference, Outcome, Verdict, counted
from migrate.verify.run import Run, with_cuts


def loadable(original: Run, converted: Run, loading: Run, other: int) -> Verdict:
    """E6 for one run of the converted program.

    Args:
        loading: the run of the original that tried to load what others have saved.
        other: which of these others the converted run is.
    """
    count = converted.processes
    ours, theirs = original.main.saves(), converted.main.saves()
    if not ours:
        message = with_cuts("the original saved nothing with torch.save in these steps", original)
        return Verdict(Contract.E6, count, Outcome.NOT_CHECKED, message)
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        message = with_cuts(f"the converted program did not come to save {min(ours)}", converted)
        return Verdict(Contract.E6, count, Outcome.NOT_CHECKED, message)
    for path in both:
        left, right = ours[path], theirs[path]
        last = min(len(left), len(right)) - 1 if original.cut or converted.cut else -1
        if found := _structure(left[last], right[last], ""):
            message = "a checkpoint has another format"
            return Verdict(
                Contract.E6, count, Outcome.FAIL, message, Difference(f"{path}{found[0]}", found[1], found[2])
            )
    tried = [each for each in loading.main.loaded if each.other == other]
    for each in tried:
        if each.error:
            message = f"{each.path} does not load into the original: {' '.join(each.error.split())[:200]}"
            return Verdict(Contract.E6, count, Outcome.FAIL, message)
    loaded = f", {len(tried)} loaded into the original" if tried else ""
    plain = ", without the `module.` of the wrapper" if any(each.unwrapped for each in original.main.saved) else ""
    message = f"{counted(len(both), 'checkpoint')} of the same format{plain}{loaded}"
    return Verdict(Contract.E6, count, Outcome.PASS, message)


def _structure(one: Any, other: Any, keys: str) -> tuple[str, str, str] | None:
    """The keys to the first part that is another kind of thing, and what it is in both."""
    if _kind(one) != _kind(other):
        return keys, _kind(one), _kind(other)
    if one[0] in {"value", "object", "tensor"}:
        return None
    if one[0] == "model":
        return _structure(one[2], other[2], keys)
    if one[0] == "list":
        pairs = ((str(i), pair) for i, pair in enumerate(zip(one[1], other[1], strict=True)))
    else:
        lost = [key for key in one[1] if key not in other[1]] or [key for key in other[1] if key not in one[1]]
        if lost:
            return f"{keys}[{lost[0]!r}]", *(("there", "missing") if lost[0] in one[1] else ("missing", "there"))
        pairs = ((repr(key), (one[1][key], other[1][key])) for key in one[1])
    for key, (left, right) in pairs:
        if found := _structure(left, right, f"{keys}[{key}]"):
            return found
    return None


def _kind(item: Any) -> str:
    """What a part is, without its values."""
    if item[0] == "tensor":
        return f"{item[1]} {tuple(item[2])}"
    if item[0] == "list":
        return f"a list of {len(item[1])}"
    return "a dict" if item[0] == "dict" else str(item[1])
