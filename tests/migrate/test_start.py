"""What a run waits for before it answers: modules without a use are not imported, garbage is not looked for."""

import subprocess
import sys
from pathlib import Path

import pytest

import migrate

# What `python -S` finds: us, and tomli, which Python 3.10 reads the settings with; nothing that a .pth file brings.
INSTALLED = [str(Path(migrate.__file__).resolve().parent.parent), *sys.path]
CODE = """
import atexit, gc, sys
atexit.register(lambda: print("LEFT", gc.get_threshold()[0], gc.get_freeze_count() > 0, *sys.modules))
sys.path[:] = {installed!r}
sys.argv[1:] = {arguments!r}
from migrate.cli import main
main()
"""
TRAIN = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
ON_SEVERAL = TRAIN.replace("\nloader", "\ntorch.distributed.init_process_group('nccl')\nloader")
SETTINGS = "[tool.migrate]\nignore = ['MIG117']\nper-file-ignores = { 'old/*' = ['prepare'] }\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text(SETTINGS)


def left(*arguments):
    """The status of a command, and what is there when its process ends: patience, whether all is frozen, modules."""
    code = CODE.format(installed=INSTALLED, arguments=list(arguments))
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)
    patience, frozen, *modules = done.stdout.partition("LEFT ")[2].split()
    return done.returncode, int(patience), frozen == "True", set(modules)


def test_a_check_waits_for_nothing_that_it_has_no_use_for():
    Path("train.py").write_text(TRAIN)
    status, _, _, modules = left("--check", "train.py")
    assert (status, "migrate.rules.prepare" in modules) == (1, True)
    assert not modules & {"migrate.alone.stage", "migrate.rules.chart", "migrate.report.map"}
    assert not modules & {"difflib", "libcst", "typer"}
    status, _, _, modules = left("--check", "train.py")  # of which the results are kept
    assert (status, "migrate.cache" in modules) == (1, True)
    assert not modules & {"migrate.analysis", "migrate.rules", "migrate.programs", "migrate.edits"}
    assert not modules & {"difflib", "textwrap", "typer"}


def test_a_script_of_several_processes_is_checked_with_what_makes_it_ready():
    Path("train.py").write_text(ON_SEVERAL)
    assert "migrate.alone.stage" in left("--check", "--no-cache", "train.py")[3]


def test_a_process_that_ends_leaves_its_garbage():
    Path("a.py").write_text("print(1)\n")
    _, patience, frozen, _ = left("--check", "a.py")
    assert patience > 100_000
    assert frozen


@pytest.mark.parametrize("closed", [0, 1, 2])
@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["--check", "train.py"], 1), (["--check", "a.py"], 0), (["--interactive", "train.py"], 1), (["--version"], 0)],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_standard_stream_that_a_shell_has_closed_leads_nowhere(closed, arguments, status):
    Path("train.py").write_text(TRAIN)
    Path("a.py").write_text("print(1)\n")
    run = f"import sys; sys.path[:] = {INSTALLED!r}; from migrate.cli import main; main()"
    command = [sys.executable, "-c", run, *arguments]
    code = f"import os; os.close({closed}); os.execv({sys.executable!r}, {command!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, input="")
    assert (done.returncode, "a bug of ours" in done.stderr + done.stdout) == (status, False), done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_plain_check_that_cannot_be_told_is_no_finding():
    Path("a.py").write_text("print(1)\n")
    code = f"import sys; sys.path[:] = {INSTALLED!r}; from migrate.cli import main; main()"
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-c", code, "--check", "a.py"]
        assert subprocess.run(command, stderr=full, check=False).returncode == 2
