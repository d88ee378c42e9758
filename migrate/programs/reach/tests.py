"""Code that nothing calls, because pytest or unittest does: it is entered without the program having run."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from migrate.analysis.units import Function

if TYPE_CHECKING:
    from migrate.analysis.units import Unit

_FILES = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")  # where pytest looks, if it is told nothing else
_CASES = frozenset({"unittest.TestCase", "unittest.case.TestCase", "unittest.IsolatedAsyncioTestCase"})


def is_run_by_tests(unit: Unit) -> bool:
    """Whether a function that nothing calls is one that a test runner collects, or a helper or fixture of such."""
    if not isinstance(unit, Function):
        return False
    if unit.owner is not None and unit.owner.library_bases() & _CASES:
        return True
    return _FILES.fullmatch(PurePath(unit.module.path).name) is not None
