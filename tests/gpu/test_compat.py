"""Accelerate's own test scripts on a GPU, run on the runtime."""

from __future__ import annotations

import sys

import pytest
from on_gpu import ROOT, launched

sys.path.insert(0, str(ROOT / "tests" / "compat"))

from alias import package_folder
from test_scripts import ALIAS, ENDS_WITH


@pytest.mark.skipif(package_folder() is None, reason="accelerate is not installed")
@pytest.mark.parametrize("machines", [1, 2])
@pytest.mark.parametrize("script", sorted(ENDS_WITH))
def test_scripts_of_accelerate_pass(tmp_path, script, machines):
    for out, errors, status in launched(tmp_path, machines, str(ALIAS), f"accelerate.test_utils.scripts.{script}"):
        assert status == 0, out[-2000:] + errors[-4000:]
        assert ENDS_WITH[script] in out
