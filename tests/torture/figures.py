"""The figures of a run: added up, told on the terminal, and written as docs/reliability.md."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from asked import INPUTS, SEED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MENDED = Path(__file__).with_name("mended.md")  # what a person writes about what was found


@dataclass(frozen=True)
class Figure:
    """What one test counted."""

    part: str  # of the page
    kind: str  # a row of its table
    test: str
    seconds: float  # of CPU
    counts: dict[str, int] = field(default_factory=dict)


#: Part of the page → its heading, what its table says.
PARTS = {
    "inputs": (
        "Inputs",
        """Each input goes through the whole conversion in memory. *parse*: it is Python; *training*: a plain
training loop is found in it; *converted*: it came out changed; *broken*: a law of `tests/torture/laws.py`
did not hold.""",
    ),
    "runs": (
        "Mutated programs, run before and after (E1)",
        """*refused*: left as it was; *does not run*: neither does the original; *by chance*: two runs of the original
differ; *same*: every printed character and every written file is the same; *differs*: E1 is broken.""",
    ),
    "made": (
        "Programs put together from what people write",
        """Each part (device, data, loaders, model, step, metrics, files) is written in one of its common ways, taken by
chance. What they print and write is compared with the original: alone (E1), on two processes (E2 to E5), on pretended
GPUs, resumed. *refused*: left as it was, with a reason; *hold*: all that can be compared is the same; *fail*: not.""",
    ),
    "metamorphic": (
        "What must not matter",
        """Fixtures, changed in a way that means nothing. *same*: the same is found and the same converts; *differs*:
not, for a reason that stands in `tests/torture/test_metamorphic.py`.""",
    ),
    "writing": (
        "Writing, and hostile files",
        "*broken*: a file that is neither old nor new, something lost, or something left behind.",
    ),
}


def rows(figures: Iterable[Figure]) -> dict[str, dict[str, tuple[Counter[str], float]]]:
    """Part → kind → counts and seconds, added up."""
    found: dict[str, dict[str, tuple[Counter[str], float]]] = {}
    for figure in figures:
        table = found.setdefault(figure.part, {})
        counts, seconds = table.get(figure.kind, (Counter(), 0.0))
        added = Counter(counts)
        for name, number in figure.counts.items():
            added[name] += number
        table[figure.kind] = added, seconds + figure.seconds
    return found


def merged(kept: Path, figures: Iterable[Figure]) -> list[Figure]:
    """The figures of a run, and those that earlier runs have left of other tests; all are left for the next."""
    found: dict[tuple[str, str, str], Figure] = {}
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    for figure in [*(Figure(**json.loads(line)) for line in lines), *figures]:
        found[figure.test, figure.part, figure.kind] = figure
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("".join(f"{json.dumps(asdict(figure))}\n" for figure in found.values()), encoding="utf-8")
    return list(found.values())


def told(figures: Iterable[Figure]) -> Iterator[str]:
    """The figures as lines of a terminal."""
    for part, table in rows(figures).items():
        for kind, (counts, seconds) in table.items():
            numbers = ", ".join(f"{number} {name}" for name, number in counts.items())
            yield f"{part}: {kind}: {numbers}; {seconds:.0f} s"


def page(figures: Iterable[Figure], failed: int) -> str:
    """The page, in Markdown."""
    made = rows(figures)
    took_s = sum(seconds for table in made.values() for _, seconds in table.values())
    done = sum(counts["inputs"] for counts, _ in made.get("inputs", {}).values())
    late = "" if done >= INPUTS else f" **The run ended early, after {done:,} of {INPUTS:,}.**"
    day = datetime.now(tz=timezone.utc).date().isoformat()
    head = (
        "# Reliability\n\n"
        "Written by `make torture`, whose tests are in `tests/torture`; do not edit.\n\n"
        f"{day}, Python {platform.python_version()}, {os.cpu_count()} cores, seed {SEED}: {done:,} inputs in "
        f"{took_s / 60:.0f} minutes of CPU, {failed or 'no'} failed test{'s' if failed != 1 else ''}.{late}\n"
    )
    return "\n".join([head, *_tables(made), MENDED.read_text(encoding="utf-8")])


def _tables(made: dict[str, dict[str, tuple[Counter[str], float]]]) -> Iterator[str]:
    for part, (heading, text) in PARTS.items():
        if part in made:
            columns = list(dict.fromkeys(name for counts, _ in made[part].values() for name in counts))
            yield f"## {heading}\n\n{text}\n"
            yield f"| | {' | '.join(columns)} | CPU s |\n|---|{'---:|' * (len(columns) + 1)}"
            for kind, (counts, seconds) in made[part].items():
                yield f"| {kind} | {' | '.join(f'{counts[name]:,}' for name in columns)} | {seconds:.0f} |"
            yield ""
