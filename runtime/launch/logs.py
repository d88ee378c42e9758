"""Where the lines of the processes go: to the console as they are, with the rank in front, or of rank 0 only; to files.

Notes on failures always go to a temporary folder (`failure.py`). Imports torch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from torch.distributed.elastic.multiprocessing import LogsDest, LogsSpecs

from runtime.launch.spec import Console

PREFIX = "[${rank}] "  # of torch elastic: filled in for each process


class Logs(LogsSpecs):
    """What torch elastic asks for each start of the processes.

    Args:
        notes: a temporary folder.
        kept: a folder for the lines of each process; None keeps none.
    """

    def __init__(self, notes: str, kept: str | None, console: Console) -> None:
        super().__init__(log_dir=notes)
        self._notes = Path(notes)
        self._kept = None if kept is None else Path(kept)
        self._console = console
        self.folder: Path | None = None
        """Where the lines of this launch are kept, once processes were started."""

    @property
    def root_log_dir(self) -> str:
        return str(self._notes)

    def reify(self, envs: Mapping[int, Mapping[str, str]]) -> LogsDest:
        """The files of one start; `envs` are the variables of the processes by local rank."""
        places = LogsDest()
        for local_rank, variables in envs.items():
            rank, attempt = int(variables["RANK"]), variables.get("TORCHELASTIC_RESTART_COUNT", "0")
            note = self._notes / f"attempt_{attempt}" / f"{rank}.json"
            note.parent.mkdir(exist_ok=True)
            note.unlink(missing_ok=True)  # of a start with the same number: machines that came are no attempt
            places.error_files[local_rank] = str(note)
            self._place(places, local_rank, rank, self._folder(variables, attempt))
            envs[local_rank]["TORCHELASTIC_ERROR_FILE"] = str(note)  # type: ignore[index]
        return places

    def _place(self, places: LogsDest, local_rank: int, rank: int, folder: Path | None) -> None:
        """Each stream of a process: to the console, to a file, to both, or nowhere."""
        is_shown = self._console is not Console.MAIN or rank == 0
        streams = (
            ("stdout", places.stdouts, places.tee_stdouts),
            ("stderr", places.stderrs, places.tee_stderrs),
        )
        for name, targets, tees in streams:
            if folder is not None:
                targets[local_rank] = str(folder / f"rank_{rank}.{name}.log")
                if is_shown:
                    tees[local_rank] = targets[local_rank]
            else:
                targets[local_rank] = "" if is_shown else os.devnull

    def _folder(self, variables: Mapping[str, str], attempt: str) -> Path | None:
        """Where lines go to files: for good, or to be shown with a prefix."""
        if self._kept is None:
            if self._console is not Console.PREFIX:
                return None
            folder = self._notes / f"lines_{attempt}"
            folder.mkdir(exist_ok=True)
            return folder
        if self.folder is None:
            self.folder = _new_folder(self._kept, variables)
        folder = self.folder if attempt == "0" else self.folder / f"restart_{attempt}"
        folder.mkdir(exist_ok=True)
        return folder


def _new_folder(parent: Path, variables: Mapping[str, str]) -> Path:
    """A folder of this launch alone: nothing of an earlier one is overwritten."""
    name = time.strftime("%Y-%m-%d_%H-%M-%S")
    if variables.get("GROUP_WORLD_SIZE", "1") != "1":
        name += f"_machine_{variables.get('GROUP_RANK', '0')}"
    for ending in ("", *(f"_{number}" for number in range(2, 1000))):
        try:
            (parent / f"{name}{ending}").mkdir(parents=True)
        except FileExistsError:
            continue
        return parent / f"{name}{ending}"
    raise FileExistsError(parent / name)
