"""Runs a user's script as `__main__`, and writes down what it does.

    python migrate/verify/recorder/__main__.py ORDER

It is started by its path: the Python that has torch need not have `migrate`, and what `import` finds is decided by the
script's own folder. So our modules are imported by an entry of the path that is taken out again, and forgotten by name.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve()


def main() -> None:
    """Become the script that the order names; does not return."""
    home = str(HERE.parents[3])
    sys.path[:] = [home, *(folder for folder in sys.path if Path(folder).resolve() != HERE.parent)]
    from migrate.verify.order import Order
    from migrate.verify.recorder.session import Session

    session = Session(Order.read(sys.argv[1]))
    sys.path.remove(home)
    for name in [name for name in sys.modules if name.partition(".")[0] == "migrate"]:
        del sys.modules[name]  # a script may have a module of this name
    session.run()


if __name__ == "__main__":
    main()
