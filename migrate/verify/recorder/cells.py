"""A notebook as the script that its code cells make together, one after the other.

Its lines are those of the module that is analysed. What IPython does, Python does not: shell lines and magics do
nothing, but `%time train()` runs what it measures. What a shell line would give is not known: a cell that takes it
fails, and says so.
"""

from __future__ import annotations

import contextlib
import re
from typing import NoReturn

from migrate.source.notebook.notebook import read


def script(content: bytes, path: str) -> tuple[bytes, dict[str, object]]:
    """The source of a notebook's script, in UTF-8, and the names that it finds there.

    Raises:
        SourceError: it is no notebook, or a cell does not parse.
    """
    notebook = read(content, path)
    magic = rf"\b({re.escape(notebook.mark)}_\w+?__)"  # what stands for one: see `source/notebook/magics.py`
    text = re.sub(rf"{magic}\([\w, ]*\)", r"\1()", notebook.module.decode())  # the names in a line may not be there
    names = re.findall(rf"{magic}[(:]", text)
    return text.encode(), {"display": print, **{name: _meaning(name, text) for name in names}}


def _meaning(name: str, text: str) -> object:
    """What stands for a magic, by how it is used."""
    if f"with {name}:" in text:
        return contextlib.nullcontext()
    return _unknown if re.search(rf"=[ \t]*{name}\(\)", text) else _nothing


def _nothing() -> None:
    """Python that a magic runs in its own way, such as `%timeit`."""


def _unknown() -> NoReturn:
    raise RuntimeError("this line takes what IPython gives (a shell command, a magic), and is run without it")
