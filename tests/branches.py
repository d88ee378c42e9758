"""Which branches the tests go through, by package: what `make coverage` prints at its end.

    python tests/branches.py REPORT      REPORT: what `coverage json` wrote

The exit status is 1 if a package has less than it should have.
"""

import json
import sys
from collections import Counter
from pathlib import Path

LEAST = 95  # percent, of each package
PACKAGES = ("migrate/analysis", "migrate/edits", "migrate/rules", "runtime/data")


def counted(files):
    """Branches of each package: those that were taken, and all."""
    taken, every = Counter(), Counter()
    for path, file in files.items():
        package = next(each for each in PACKAGES if Path(path).as_posix().startswith(f"{each}/"))
        taken[package] += file["summary"]["covered_branches"]
        every[package] += file["summary"]["num_branches"]
    return [(package, taken[package], every[package]) for package in PACKAGES]


def main():
    is_enough = True
    for package, taken, every in counted(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["files"]):
        print(f"{package:17} {taken:5} of {every:5} branches  {100 * taken / max(every, 1):5.1f} %")
        is_enough = is_enough and 100 * taken >= LEAST * every > 0
    print(f"wanted: {LEAST} % of each; `coverage html` shows what is left" if is_enough else f"less than {LEAST} %")
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
