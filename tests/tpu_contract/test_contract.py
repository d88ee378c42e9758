"""What the stand-in for a TPU imitates is so in the real torch_tpu, as far as that shows without a TPU.

`make test-tpu-contract` makes an environment with torch_tpu, and runs these. No operation of the device is run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("TORCH_TPU_PYTHON")
sys.path.insert(0, str(ROOT / "tests/runtime/standin"))

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs torch_tpu: make test-tpu-contract")
WITHOUT_QUESTIONS = {"TPU_SKIP_MDS_QUERY": "1"}  # of a metadata server, which take minutes where there is none


def run(*arguments, **variables):
    inherited = {name: value for name, value in os.environ.items() if name not in WITHOUT_QUESTIONS}
    environ = {**inherited, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run([PYTHON, *arguments], env=environ, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def facts():
    done = run(str(ROOT / "tests/tpu_contract/facts.py"), **WITHOUT_QUESTIONS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_it_is_the_version_that_is_imitated(facts):
    assert facts["version"].startswith("0.2.")


def test_the_names_are_there_and_the_same_ones_are_internal(facts):
    from tpu import INTERNAL, NAMES

    assert not {*INTERNAL, *NAMES} - set(facts["names"])
    internal = {name for name, stage in facts["stages"].items() if "internal" in stage.lower()}
    assert internal == set(INTERNAL)


def test_the_refusals_have_the_words_that_are_imitated(facts):
    from tpu import REFUSAL

    for name, said in facts["refusals"].items():
        assert said.startswith(f"RuntimeError: {REFUSAL.format(name=name)}")


def test_a_package_without_a_chip_is_not_found(facts):
    assert not facts["is_available"]
    assert not facts["found"]
    assert facts["chosen"] == "cpu"
    assert "privateuseone" in facts["device"]


def test_the_launcher_is_told_the_same_variables(facts):
    from tpu import LAUNCH_VARIABLES

    assert "nnodes" in facts["signature"]
    assert "nproc_per_node" in facts["signature"]
    assert facts["four"] == sorted(LAUNCH_VARIABLES)
    assert facts["two"] == "RuntimeError: No TPU topology found for count: 2"
    assert "expected TPU devices, got none" in facts["without chips"]


FIRST = """
import torch, torch.distributed as dist, torch_tpu._loader as loader
loader._init_device("tpu")
print(dist.get_default_backend_for_device("tpu"), flush=True)
torch.ones(2, device="tpu")
"""


def test_the_process_group_has_its_name_and_the_first_operation_fails_without_a_chip():
    done = run("-c", FIRST, **WITHOUT_QUESTIONS)
    assert done.stdout.splitlines()[-1:] == ["tpu_dist"]
    assert done.returncode != 0
    assert "failed to retrieve the PjRt client" in done.stderr


def test_choosing_a_device_asks_no_metadata_server():
    """Not told to leave it out: a question would take minutes here."""
    started = time.monotonic()
    done = run("-c", "from runtime import Accelerator; print(Accelerator().device)")
    assert done.stdout.splitlines()[-1] == "cpu"
    assert time.monotonic() - started < 60
