"""What one run of a program is asked to do: written by `migrate`, read by the recorder in each of its processes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PARALLEL = ("runtime", "accelerate")  # the packages that may make a script parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run. Paths are absolute; the script and what it reads lie in a copy of the user's folder."""

    script: str
    arguments: tuple[str, ...]
    folder: str
    """Where the script runs."""
    root: str
    """The copy. Nothing is written but below this and `writable`."""
    records: str
    """Where each process leaves `rank<n>.jsonl`."""
    writable: tuple[str, ...]
    seed: int
    steps: int
    """Optimizer steps after which the run ends."""
    per_pass: int
    """Optimizer steps after which a pass over a loader ends, so that what follows is reached; 0: passes are whole."""
    limit_s: float
    """Seconds after which the run ends."""
    package: str = ""
    """The one of `PARALLEL` that makes the script parallel; empty for the original."""
    is_frozen: bool = False
    """Steps are undone, and layers that draw or that learn from the batch do not."""
    splits: bool = False
    """The global batch is kept: `split_batches`."""
    shuffled: tuple[tuple[int, int], ...] = ()
    """Passes, counted from 0, and how many batches they had: they get other batches in another order."""
    checkpoints: tuple[str, ...] = ()
    """Copies in which other runs have saved: what this run saves is loaded from there, too."""

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: str) -> Order:
        """What `write` wrote."""
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        given: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**given)
