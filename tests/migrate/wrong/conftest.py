"""One process that forks those of all runs, and the verifications of right results, which many mistakes share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1]
sys.path[:0] = [str(HERE), str(TESTS / "end_to_end"), str(TESTS / "migrate" / "verify")]


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    from runner import Zygote
    from runs import Runs

    zygote = Zygote(str(TESTS / "end_to_end" / "stubs"))
    yield Runs(zygote.run, tmp_path_factory.mktemp("wrong"))
    zygote.close()
