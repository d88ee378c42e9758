"""What a process of `notebook_launcher` runs: the function that came in a parcel, and rank 0 sends back what it gave.

    python child.py <pid> script cell.py <parcel> <result>

This file is started by its name and imports nothing but the standard library before it has the notebook's import path.
"""

from __future__ import annotations

import linecache
import os
import pickle
import sys
import types
from typing import Any


def main() -> None:
    _, parcel, result = sys.argv
    with open(parcel, "rb") as file:
        contents = pickle.load(file)  # noqa: S301  written by the process that started this one
    sys.path[:], sys.argv = contents["path"], contents["argv"]
    # Tracebacks show the lines of cells, which are in no file.
    linecache.cache.update((name, (len("".join(lines)), None, lines, name)) for name, lines in contents["sources"])
    function, arguments = pickle.loads(contents["call"])  # noqa: S301
    _become_main(function)
    from runtime.launch.parcel import go_on, send_back  # late: found by the notebook's path
    from runtime.launch.standing import take_on

    take_on(contents["settings"])
    go_on(contents["random"])
    value = function(*arguments)
    if os.environ.get("RANK") == "0":
        send_back(value, result)


def _become_main(function: Any) -> None:
    """Let what the cells defined be found where it says it is: a pickle of a model asks for `__main__.Net`."""
    module = types.ModuleType("__main__")
    names = getattr(function, "__globals__", None)
    if names is not None and names.get("__name__") == "__main__":
        module.__dict__.update(names)
    sys.modules["__main__"] = module


if __name__ == "__main__":
    main()
