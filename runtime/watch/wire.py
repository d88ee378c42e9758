"""How processes reach each other beside the group: one line of JSON there, one back, over a socket.

Not the store of the process group: it goes with the process that holds it, and asking it again and again costs.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.hardware import address_towards
from runtime.watch.reports import Report, Silence

TIMEOUT_S = 2.0
LONGEST = 65536  # bytes of a line
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a process listens, and the word that it wants to hear."""

    host: str
    port: int
    word: str
    machine: str

    @property
    def is_out_of_reach(self) -> bool:
        """Whether only processes on another machine can go there: what listens there on this one is somebody else."""
        return ipaddress.ip_address(self.host).is_loopback and self.machine != socket.gethostname()

    def packed(self) -> str:
        """As text, for the store of the process group."""
        return json.dumps([self.host, self.port, self.word, self.machine])

    @classmethod
    def unpacked(cls, text: bytes) -> Address:
        """What `packed` gave."""
        return cls(*json.loads(text))


def listen(environ: Mapping[str, str]) -> tuple[socket.socket, Address]:
    """A socket on the way to the main process, which the others can reach as well."""
    host = address_towards(environ.get("MASTER_ADDR") or _LOOPBACK) or _LOOPBACK
    server = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64)
    os.register_at_fork(after_in_child=server.close)  # workers of loaders must not keep it open
    return server, Address(host, server.getsockname()[1], secrets.token_hex(16), socket.gethostname())


def serve(connection: socket.socket, word: str, answer: Callable[[dict[str, Any]], Report]) -> None:
    """Answer one question."""
    with contextlib.suppress(OSError, ValueError), connection:
        connection.settimeout(TIMEOUT_S)
        message = json.loads(_line(connection))
        if isinstance(message, dict) and message.pop("word", None) == word:  # else a stranger's
            connection.sendall(answer(message).packed())


def ask(address: Address, **message: Any) -> Report | Silence:
    """What the process at `address` says of itself; `message` is told to it."""
    if address.is_out_of_reach:
        return Silence.SILENT
    try:
        with socket.create_connection((address.host, address.port), timeout=TIMEOUT_S) as connection:
            connection.sendall(json.dumps({"word": address.word, **message}).encode() + b"\n")
            return Report.unpacked(_line(connection))
    except (ConnectionRefusedError, ConnectionResetError):
        return Silence.GONE
    except (OSError, ValueError):
        return Silence.SILENT


def _line(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n") and len(data) < LONGEST:
        more = connection.recv(4096)
        if not more:
            break
        data += more
    return data
