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
_ROW = 1024  # bytes
_WORD = 8  # bytes
_THREADS = 4


def segments(size: int) -> range:
    """Where the segments of a file of `size` bytes begin; an empty file has one."""
    return range(0, max(size, 1), SEGMENT)


def digest(path: str | os.PathLike[str], start: int) -> str:
    """The digest of the segment that begins at `start`: 16 hexadecimal digits."""
    data, sums = bytearray(min(_CHUNK, SEGMENT)), bytearray(SEGMENT // _ROW * _WORD)
    words = torch.frombuffer(data, dtype=torch.int64).view(-1, _ROW // _WORD)
    out = torch.frombuffer(sums, dtype=torch.int64)
    done = 0
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while done < SEGMENT:
            count = _fill(file, data)
            if count == 0:
                break
            rows = -(-count // _ROW)
            data[count : rows * _ROW] = bytes(rows * _ROW - count)
            first = done // _ROW
            torch.sum(words[:rows], 1, out=out[first : first + rows])
            done += count
            if count < len(data):
                break
    return hashlib.sha256(memoryview(sums)[: -(-done // _ROW) * _WORD]).hexdigest()[:16]


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


def _fill(file: object, data: bytearray) -> int:
    """Read until `data` is full or the file ends: the number of bytes."""
    view, count = memoryview(data), 0
    while count < len(data):
        more = file.readinto(view[count:])  # type: ignore[attr-defined]  # io.FileIO
        if not more:
            break
        count += more
    return count
