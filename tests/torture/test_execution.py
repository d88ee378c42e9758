"""Nothing that is looked at is run: no module of the user, no setting, no checkpoint."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from cases import FIXTURES

import migrate

pytestmark = pytest.mark.torture
ROOT = Path(migrate.__file__).resolve().parents[1]
OLD = (FIXTURES / "classifier" / "before.py").read_text()
BITES = """import os
open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bitten"), "a").write(__name__)
os._exit(77)
"""
#: Modules of libraries and of Python that a project may have of its own; `migrate` needs some of them at some time.
MODULES = sorted(
    set(
        "torch numpy runtime accelerate transformers utils data model setup conftest sitecustomize usercustomize "
        "libcst typer click rich yaml tomllib ast json re types typing random secrets tokenize difflib platform "
        "dataclasses pathlib contextlib functools collections subprocess tempfile shutil html string token copy abc "
        "hashlib socket textwrap traceback warnings keyword inspect linecache graphlib tomli nbformat pygments".split()
    )
)


@pytest.fixture
def project(tmp_path):
    """A training script among modules that bite whoever runs them; it imports them all."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"import torch\n{BITES}")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text(f"import torch\n{BITES}")
    imports = "\n".join(f"import {name}" for name in ("utils", "data", "model", "package", "setup"))
    bites = "import os\nif os.environ.get('NEVER') != '1':\n    open('bitten', 'a')\n    os._exit(77)\n"
    (folder / "train.py").write_text(f"{imports}\n{OLD}\n{bites}")
    (folder / "pyproject.toml").write_text(
        "[tool.migrate]\nselect = ['MIG']\n[build-system]\nbuild-backend = 'setup'\nbackend-path = ['.']\n"
    )
    return folder


ARGUMENTS = (
    ["--check"], ["--write"], ["--diff"], ["--check", "--output-format", "json"], ["--report", "page.html"],
    ["--explain-role", "train.py:80:model"], ["--check", "--since", "HEAD"],
)  # fmt: skip


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
@pytest.mark.parametrize("start", ["module", "script"])
def test_modules_of_the_user_are_never_run(project, start, arguments):
    program = (
        ["-m", "migrate"]
        if start == "module"
        else ["-c", "import sys; del sys.path[0]; from migrate.cli import main; main()"]
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    paths = [] if arguments[0] == "--explain-role" else ["."]
    done = subprocess.run(
        [sys.executable, *program, *arguments, *paths],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 77, done.stderr
    assert not list(project.rglob("bitten")), done.stderr
    assert "Traceback" not in done.stderr, done.stderr


class Bite:
    """What runs a command when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return os.system, (f"touch {self._path}",)


def test_checkpoints_are_never_run(tmp_path):
    """A checkpoint is whatever somebody has sent: it is read as tensors and plain values."""
    import torch

    import runtime

    bitten = tmp_path / "bitten"
    for name in ("model.pt", "plain.pt"):
        torch.save({"state": Bite(bitten)}, tmp_path / name)
    (tmp_path / "raw.pt").write_bytes(pickle.dumps(Bite(bitten)))
    for name in ("model.pt", "plain.pt", "raw.pt"):
        with pytest.raises(Exception, match=r"(?i)weights.only|unsupported|not .*allowed|cannot be|pickle"):
            runtime.load(tmp_path / name)
    assert not bitten.exists()

    accelerator = runtime.Accelerator(cpu=True)
    net = torch.nn.Linear(1, 1)
    accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1))
    accelerator.save_state(str(tmp_path / "state"))
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        path.write_bytes(pickle.dumps(Bite(bitten)))
        with pytest.raises(Exception):  # noqa: B017 (which one depends on the file)
            accelerator.load_state(str(tmp_path / "state"))
        torch.save(Bite(bitten), path)
        with pytest.raises(Exception):  # noqa: B017
            accelerator.load_state(str(tmp_path / "state"))
        assert not bitten.exists(), path.name
        path.write_bytes(content)
    accelerator.load_state(str(tmp_path / "state"))


#: Each is what some way of reading a setting would run: a shell, Python's eval, format and %, an unsafe loader of YAML.
HOSTILE = (
    "x$(touch bitten)`touch bitten`;touch bitten|touch bitten",
    "__import__('os').system('touch bitten')",
    "{os.system('touch bitten')}%(touch)s",
    "!!python/object/apply:os.system ['touch bitten']",
)
VARIABLES = (
    "ACCELERATE_MIXED_PRECISION",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLURM_NODELIST",
    "SLURM_JOB_NODELIST",
    "SLURM_NTASKS",
    "CUDA_VISIBLE_DEVICES",
    "ACCELERATE_USE_FSDP",
    "OMP_NUM_THREADS",
)
KEYS = (
    "mixed_precision",
    "num_processes",
    "main_process_ip",
    "machine_rank",
    "gpu_ids",
    "main_training_function",
    "compute_environment",
    "downcast_bf16",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_settings_are_never_evaluated(text, tmp_path):
    (tmp_path / "train.py").write_text("print('ran')\n")
    for name in VARIABLES:
        launched(tmp_path, {name: text}, "--cpu", "train.py")
    for key in KEYS:
        (tmp_path / "settings.yaml").write_text(f"{key}: {text}\n")
        launched(tmp_path, {}, "--config_file", "settings.yaml", "train.py")


def launched(folder, variables, *arguments):
    """What the launcher understands, without starting anything."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-m", "runtime", "launch", "--dry_run", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert not list(folder.rglob("bitten"))
