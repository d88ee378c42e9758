"""Every test starts without a trace of a launch, and leaves none."""

import os
import sys

import pytest

_LAUNCH_PREFIXES = (
    "ACCELERATE_",
    "FSDP_",
    "TORCHELASTIC_",
    "GROUP_",
    "ROLE_",
    "PARALLELISM_CONFIG_",
    "PET_",
    "SLURM_",
    "OMPI_",
    "PMI_",
    "MPI_",
    "MV2_",
)
_LAUNCH_NAMES = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "CUDA_VISIBLE_DEVICES",
)
# Written by pytest for each phase of a test, or once by a library: when imported, opening a GPU, profiling, compiling.
_NOT_OURS = ("PYTEST_", "KMP_", "TORCHINDUCTOR_", "_TORCHINDUCTOR_", "TRITON_", "CUDA_MODULE_LOADING")
_NOT_OURS += ("DISABLE_CUPTI_", "TEARDOWN_CUPTI")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    """No variable of a launch is visible; a test that changes the environment and does not restore it fails."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(_LAUNCH_PREFIXES) or name in _LAUNCH_NAMES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("RUNTIME_CONFIG_FILE", "none")  # the settings of whoever runs the tests are not theirs
    yield
    monkeypatch.undo()  # what was changed through monkeypatch is restored now, before the comparison
    names = [name for name in {*before, *os.environ} if not name.startswith(_NOT_OURS)]
    leaked = sorted(name for name in names if before.get(name) != os.environ.get(name))
    for name in leaked:
        os.environ.pop(name, None)
    os.environ.update({name: before[name] for name in leaked if name in before})
    assert not leaked, f"the test left the environment changed: {', '.join(leaked)}"


@pytest.fixture(autouse=True)
def no_process_group():
    """A test that joins a process group leaves it again; asks torch only if the test imported it."""
    yield
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
        pytest.fail("the test left a process group open")
