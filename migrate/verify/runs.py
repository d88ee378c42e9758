"""All runs of a verification, by what they are for."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrate.verify.run import Run


@dataclass(slots=True)
class Several:
    """The converted program on N processes."""

    launched: Run  # as a user would start it
    frozen: Run | None  # with every step undone, and the global batch kept where it can be; None: it does not run
    reason: str = ""  # why the global batch is not kept
    times: int = 1  # how many steps of one process one of `launched` was to take


@dataclass(slots=True)
class Runs:
    """What was run; None where nothing asked for it."""

    original: Run
    again: Run | None = None
    one: Run | None = None  # the converted program on one process
    frozen: Run | None = None  # the original, with every step undone
    several: dict[int, Several] = field(default_factory=dict)

    def all(self) -> list[Run]:
        """In a fixed order."""
        some = [self.original, self.again, self.one, self.frozen]
        for several in self.several.values():
            some += [several.frozen, several.launched]
        return [run for run in some if run is not None]
