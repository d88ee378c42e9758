"""Modules of the project that would be imported in the place of the package."""

from pathlib import Path

import pytest

from migrate.options import Options, Target
from migrate.pipeline import run

PROGRAM = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    Path("train.py").write_text(PROGRAM)


def left(**options):
    """Why the program is left, in the words of the findings."""
    report = run(["train.py"], Options(**options))
    return [f"{found.code} {found.message}; {found.hint}" for found in report.findings if found.code == "MIG100"]


@pytest.mark.parametrize(
    ("path", "target", "other"),
    [
        ("runtime.py", Target.RUNTIME, "accelerate"),
        ("runtime/__init__.py", Target.RUNTIME, "accelerate"),
        ("accelerate.py", Target.ACCELERATE, "runtime"),
    ],
)
def test_own_module_comes_first_on_the_path(path, target, other):
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("def now():\n    return 0\n")
    (why,) = left(target=target)
    package = target.value
    assert why.startswith(f"MIG100 the project's own {path} hides the package {package}")
    assert why.endswith(f"; give {path} another name, or convert with --target {other}")


@pytest.mark.parametrize(
    "path",
    [
        "runtime/notes.txt",  # Python looks on where a folder is no package
        "tools/runtime.py",
        "accelerate.py",
    ],
)
def test_other_files_hide_nothing(path):
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("")
    assert left() == []
    assert run(["train.py"], Options()).changes


def test_copy_of_the_package_is_the_package():
    Path("runtime").mkdir()
    Path("runtime/__init__.py").write_text("from runtime.training import Accelerator\n")
    assert left() == []
