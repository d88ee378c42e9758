"""What the bytes of a file are checked by: fast enough to read a checkpoint at the speed of memory.

A file is cut into segments of 64 MiB, each with a digest of its own, so several threads and processes share the work
and an error says where the damage is. Of a segment every 1,024 bytes are summed as 128 whole numbers of 64 bits, and
the digest is the SHA-256 of these sums, cut to 64 bits. One flipped bit changes a sum by a power of two, so it is
always found, as are blocks that are missing, zeroed, torn or in another's place. What would not be found are words that
changed places within 1,024 bytes, or errors that cancel each other there. It is no protection against a person, who
could write another manifest.

CRC-32 or SHA-256 over the bytes themselves cost several times a copy in memory (bench/checkpoints.py), and loading
would take that much longer.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

SEGMENT = 64 * 2**20  # bytes
_CHUNK = 256 * 2**10  # bytes; stays in the cache, and is below what torch shares out over threads of its own
_PIECE = 2**20  # bytes that are read and then summed
_ROW = 1024  # bytes
_WORD = 8  # bytes
_THREADS = 4


def segments(size: int) -> range:
    """Where the segments of a file of `size` bytes begin; an empty file has one."""
    return range(0, max(size, 1), SEGMENT)


def digest(path: str | os.PathLike[str], start: int) -> str:
    """The digest of the segment that begins at `start`: 16 hexadecimal digits."""
    with open(path, "rb", buffering=0) as file:
        size = min(max(os.fstat(file.fileno()).st_size - start, 0), SEGMENT)
        sums = Sums(size)
        file.seek(start)
        _add_all(file, sums, 0, size)  # of a file that has become shorter it is another one
    return sums.digests()[0]


def digests(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The digests of all segments of a file."""
    places = segments(os.path.getsize(path))
    return tuple(found for _, _, found in all_digests((path, start) for start in places))


def all_digests(places: Iterable[tuple[str | os.PathLike[str], int]]) -> list[tuple[Path, int, str]]:
    """The digests of segments of several files (path and start each), in the order given."""
    chosen = [(Path(path), start) for path, start in places]
    if len(chosen) < 2:
        return [(path, start, digest(path, start)) for path, start in chosen]
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1, len(chosen))) as pool:
        return list(pool.map(lambda place: (*place, digest(*place)), chosen))


def _fill(file: object, data: bytearray | memoryview) -> int:
    """Read until `data` is full or the file ends: the number of bytes."""
    view, count = memoryview(data), 0
    while count < len(data):
        more = file.readinto(view[count:])  # type: ignore[attr-defined]  # io.FileIO
        if not more:
            break
        count += more
    return count


class Sums:
    """What the digests are made of, for a file whose bytes come in any order, each once."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._bytes = bytearray(max(-(-size // _ROW), 1) * _WORD)
        self._sums = torch.frombuffer(self._bytes, dtype=torch.int64)

    def add(self, start: int, words: torch.Tensor) -> None:
        """Count words (int64) that begin at a byte which is a multiple of 8."""
        per_row = _ROW // _WORD
        first = start // _WORD
        head = min(-first % per_row, words.numel())
        if head:
            self._sums[first // per_row] += words[:head].sum()
        rows, rest = divmod(words.numel() - head, per_row)
        row = (first + head) // per_row
        if rows:
            whole = words[head : head + rows * per_row].view(-1, per_row)
            torch.sum(whole, 1, out=self._sums[row : row + rows])
        if rest:
            self._sums[row + rows] += words[-rest:].sum()

    def digests(self) -> tuple[str, ...]:
        """The digests of all segments."""
        view, step = memoryview(self._bytes), SEGMENT // _ROW * _WORD
        used = -(-self._size // _ROW) * _WORD
        starts = range(0, max(used, 1), step)
        return tuple(hashlib.sha256(view[start : min(start + step, used)]).hexdigest()[:16] for start in starts)


def _add_all(file: object, sums: Sums, start: int, stop: int) -> bool:
    """Count the bytes from `start` (a multiple of 8) to `stop`, which the file gives next; False if it ends before."""
    data = bytearray(_CHUNK)
    words = torch.frombuffer(data, dtype=torch.int64)
    while start < stop:
        size = min(_CHUNK, stop - start)
        if _fill(file, memoryview(data)[:size]) < size:
            return False
        count = -(-size // _WORD)
        data[size : count * _WORD] = bytes(count * _WORD - size)
        sums.add(start, words[:count])
        start += size
    return True


class CheckedFile:
    """A file that is read once, into where its content is wanted, and checked on the way."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  closed by close()
        self._size = os.path.getsize(path)
        self._sums = Sums(self._size)
        self._counted: list[tuple[int, int]] = []

    def readinto(self, target: memoryview) -> int:
        """Fill `target` from where the file stands: the number of bytes."""
        view, done, start = memoryview(target).cast("B"), 0, self._file.tell()
        is_counted = len(view) >= _ROW and start % _WORD == 0 and self._is_new(start, start + len(view))
        while done < len(view):
            part = view[done : done + _PIECE - (start + done) % _ROW]  # pieces end where rows do
            count = _fill(self._file, part)
            if is_counted and count >= _WORD:
                self._sums.add(start + done, torch.frombuffer(part[: count // _WORD * _WORD], dtype=torch.int64))
            done += count
            if count < len(part):
                break
        if is_counted:
            self._counted.append((start, start + done // _WORD * _WORD))
        return done

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        return self._file.read(size) or b""

    def seek(self, place: int, whence: int = 0) -> int:
        """As of a file."""
        return self._file.seek(place, whence)

    def tell(self) -> int:
        """As of a file."""
        return self._file.tell()

    def close(self) -> None:
        """As of a file."""
        self._file.close()

    def digests(self) -> tuple[str, ...]:
        """The digests of the file; what nobody has asked for is read now."""
        at = 0
        for start, end in [*sorted(self._counted), (self._size, self._size)]:
            self._file.seek(at)
            if not _add_all(self._file, self._sums, at, start):
                return ()  # the file has become shorter
            at = max(at, end)
        return self._sums.digests()

    def _is_new(self, start: int, end: int) -> bool:
        return all(end <= other or start >= until for other, until in self._counted)


def digests_of(content: torch.Tensor) -> tuple[str, ...]:
    """The digests of a file whose bytes are in memory, or mapped into it (uint8)."""
    size = content.numel()
    sums, words = Sums(size), content[: size // _WORD * _WORD].view(torch.int64)
    for start in range(0, words.numel(), _PIECE // _WORD):
        sums.add(start * _WORD, words[start : start + _PIECE // _WORD])
    rest = bytearray(_WORD)
    rest[: size % _WORD] = bytes(content[size // _WORD * _WORD :].tolist())
    if size % _WORD:
        sums.add(size // _WORD * _WORD, torch.frombuffer(rest, dtype=torch.int64))
    return sums.digests()
