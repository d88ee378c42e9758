"""What a script does in lines that others run, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Place: TypeAlias = tuple[str, int, int]
"""Where code stands: path, line, column."""


@dataclass(frozen=True, slots=True)
class Along:
    """What a script does in lines that others run, too: they do it as well, where they could leave it."""

    seeds: bool = False  # one seed is set for all processes
    moves: frozenset[Place] = frozenset()  # of models, where prepare comes too late

    def __or__(self, other: Along) -> Along:
        return Along(self.seeds or other.seeds, self.moves | other.moves)


#: What a script does of which no line is another's.
ALONE = Along()
