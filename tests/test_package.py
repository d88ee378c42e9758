"""The wheel: the same bytes each time it is built, and all that a person needs once it is installed, without torch."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # it installs packages
ROOT = Path(__file__).resolve().parent.parent
SCRIPT = (ROOT / "fixtures/classifier/before.py").read_bytes()
CONVERTED = (ROOT / "fixtures/classifier/after.py").read_bytes()


def run(*command, folder, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = list(map(str, command))
    return subprocess.run(
        command, cwd=folder, env={**environment, **variables}, capture_output=True, text=True, check=False
    )


def built(source, target, moment="1700000000"):
    """The wheel of the sources, as pip builds it."""
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", target, source)
    done = run(*command, folder=target.parent, SOURCE_DATE_EPOCH=moment)
    assert done.returncode == 0, done.stderr
    (wheel,) = target.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """What a wheel is made of, without the build folder of an earlier build."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("migrate", "runtime"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(sources, tmp_path_factory):
    return built(sources, tmp_path_factory.mktemp("wheel") / "first")


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The commands of an environment that has the wheel and what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    done = run(folder / "bin/python", "-m", "pip", "install", "--quiet", wheel, folder=folder)
    assert done.returncode == 0, done.stderr
    assert run(folder / "bin/python", "-c", "import torch", folder=folder).returncode == 1
    return folder / "bin"


def test_the_same_sources_make_the_same_bytes(sources, wheel, tmp_path):
    shutil.rmtree(sources / "build", ignore_errors=True)
    assert built(sources, tmp_path / "again").read_bytes() == wheel.read_bytes()


def test_the_wheel_holds_both_packages_and_the_licence(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"migrate", "runtime"}
    assert {"migrate/py.typed", "runtime/py.typed"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    modules = {str(path.relative_to(ROOT)) for name in ("migrate", "runtime") for path in (ROOT / name).rglob("*.py")}
    assert modules == {name for name in names if name.endswith(".py")}


@pytest.mark.parametrize("command", [("migrate",), ("python", "-m", "migrate")], ids=" ".join)
def test_it_converts_in_another_folder(installed, tmp_path, command):
    script = tmp_path / "train.py"
    script.write_bytes(SCRIPT)
    done = run(installed / command[0], *command[1:], "train.py", "--write", folder=tmp_path)
    assert (done.returncode, script.read_bytes()) == (0, CONVERTED), done.stderr


@pytest.mark.parametrize("command", [("runtime",), ("python", "-m", "runtime")], ids=" ".join)
def test_launching_without_torch_says_what_to_install(installed, tmp_path, command):
    (tmp_path / "train.py").write_bytes(CONVERTED)
    done = run(installed / command[0], *command[1:], "launch", "--cpu", "-n", "2", "train.py", folder=tmp_path)
    assert done.returncode == 2
    assert "torch is not installed" in done.stderr
    assert "pip install 'torch-migrate[runtime]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_of_both_needs_no_torch(installed, tmp_path):
    for command in (("migrate", "--help"), ("runtime", "--help"), ("runtime", "launch", "--help")):
        done = run(installed / command[0], *command[1:], folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Usage" in done.stdout
