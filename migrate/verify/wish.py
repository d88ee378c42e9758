"""What is to be verified."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate.errors import UsageError
from migrate.options import Target

PASSES = 4  # how many passes over the training data the steps are divided among


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The script (a notebook is run as one), how it is run, and what its conversion changes."""

    script: Path
    folder: Path  # where it is run from; what lies below is copied
    changed: Mapping[str, bytes]  # path below the folder -> converted content
    arguments: tuple[str, ...] = ()
    steps: int = 20
    processes: tuple[int, ...] = (1, 2)
    limit_s: float = 300.0
    target: Target = Target.RUNTIME

    @property
    def per_pass(self) -> int:
        """Optimizer steps in a pass: several passes are reached, and N processes can take an N-th of them."""
        return self.rounded(max(2, self.steps // PASSES))

    def rounded(self, steps: int) -> int:
        """At least so many steps, which every number of processes can share."""
        together = math.lcm(*self.processes)
        return math.ceil(steps / together) * together


def wish(
    script: str,
    changes: Mapping[str, bytes],
    *,
    arguments: tuple[str, ...] = (),
    steps: int = 20,
    processes: tuple[int, ...] = (1, 2),
    limit_s: float = 300.0,
    target: Target = Target.RUNTIME,
) -> Wish:
    """The wish for a script as it was named, run from the current folder if it lies there, else from its own.

    Args:
        changes: converted content by the path of the file, as it was named.

    Raises:
        UsageError: the script is no file of Python and no notebook, or a converted file lies outside of the folder.
    """
    path = Path(script).resolve()
    if path.suffix not in {".py", ".ipynb"} or not path.is_file():
        raise UsageError(
            f"--verify runs the first path, and {script} is neither a Python script nor a notebook",
            "Name the script first: migrate train.py src/ --verify.",
        )
    here = Path.cwd().resolve()
    folder = here if path.is_relative_to(here) else path.parent
    below: dict[str, bytes] = {}
    for name, content in changes.items():
        real = Path(name).resolve()
        if not real.is_relative_to(folder):
            raise UsageError(
                f"{name} is converted with {script} and lies outside of {folder}",
                "Go to a folder that holds both and run migrate there.",
            )
        below[str(real.relative_to(folder))] = content
    return Wish(
        script=path,
        folder=folder,
        changed=below,
        arguments=arguments,
        steps=steps,
        processes=processes,
        limit_s=limit_s,
        target=target,
    )
