"""`python -m migrate`."""

import os
import sys

# Python puts the current folder first, which here is the project that is looked at: its `typing.py` or `rich.py` would
# be run in the place of the real one. The command `migrate` does not have it there either.
if sys.path and sys.path[0] in {"", os.getcwd()} and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

from migrate.cli import main

main()
