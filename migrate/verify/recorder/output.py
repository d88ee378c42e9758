"""What a process says: every line of its two streams, and what it hands to a writer of scalars."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from migrate.verify.recorder.journal import Journal

WRITERS = (("torch.utils.tensorboard.writer", "SummaryWriter"), ("tensorboardX.writer", "SummaryWriter"))


class Stream:
    """A stream that is written down line by line and otherwise the one that it covers."""

    def __init__(self, covered: TextIO, name: str, journal: Journal) -> None:
        self._covered = covered
        self._name = name
        self._journal = journal
        self._rest = ""

    def write(self, text: str) -> int:
        """As the covered stream does; a line is noted when it is whole."""
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))  # noqa: SLF001 - who writes is what is asked
        if caller != "warnings":  # Python's own voice, not the program's
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                self._note(line)
        return self._covered.write(text)

    def _note(self, line: str) -> None:
        shown = line.rpartition("\r")[2] or line
        is_bar = "\r" in line
        journal = self._journal
        journal.write(
            "line", text=shown, stream=self._name, bar=is_bar, passes=journal.last_pass, place=journal.place()
        )

    def close_line(self) -> None:
        """Note what stands without an end of line."""
        if self._rest:
            self._note(self._rest)
            self._rest = ""

    def writelines(self, lines: Any) -> None:
        """As the covered stream does."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._covered, name)


class Output:
    """Both streams, and the writers as soon as they are imported."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._streams: list[Stream] = []
        self._waiting = list(WRITERS)

    def cover(self) -> None:
        """From now on."""
        for name in ("stdout", "stderr"):
            stream = Stream(getattr(sys, name), name, self._journal)
            self._streams.append(stream)
            setattr(sys, name, stream)

    def finish(self) -> None:
        """Note what was written without an end of line."""
        for stream in self._streams:
            stream.close_line()

    def cover_writers(self) -> None:
        """Called now and then: a writer is imported by the script, later than this is."""
        for place in list(self._waiting):
            kind = getattr(sys.modules.get(place[0]), place[1], None)
            if kind is not None:
                self._waiting.remove(place)
                self._cover_writer(kind)

    def _cover_writer(self, kind: Any) -> None:
        run, journal = kind.add_scalar, self._journal

        def add_scalar(writer: Any, tag: str, value: Any, *arguments: Any, **options: Any) -> Any:
            text = f"{tag} {float(value):.9g}"
            place = journal.place()
            journal.write("line", text=text, stream="writer", bar=False, passes=journal.last_pass, place=place)
            return run(writer, tag, value, *arguments, **options)

        kind.add_scalar = add_scalar
