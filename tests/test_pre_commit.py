"""The hooks of `.pre-commit-hooks.yaml` in another repository, run by the real pre-commit."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent
IDENTITY = ["-c", "user.name=Tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false"]
LIMIT_S = 300  # a slow download; a whole run takes some ten seconds
#: What pip says when it cannot reach an index, as against an index that has no such package.
NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeoutError|Read timed out|ProxyError|SSLError|Name or service not known"
    r"|Temporary failure in name resolution|Network is unreachable|Could not fetch URL|Connection refused"
    r"|\(from versions: none\)"
)
TRAINING = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
CONFIGURATION = """\
repos:
  - repo: {repository}
    rev: {revision}
    hooks:
      - id: migrate-check
      - id: migrate-write
        stages: [manual]
      - id: migrate
        stages: [manual]
"""


def run(command, folder, **environment):
    """The finished command; git knows no settings of the person who runs the tests."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def git(folder, *arguments):
    done = run(["git", *IDENTITY, *arguments], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(folder):
    git(folder, "init", "--quiet")
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--message", "all")
    return git(folder, "rev-parse", "HEAD").strip()


def copy_of_this_repository(folder):
    """A repository of the files as they are now: those that git tracks here, and new ones that it does not ignore."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT)
    if listed.returncode:
        pytest.skip(f"{ROOT} is no git repository: which files belong to it is not known")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():  # a file may be deleted and not committed yet
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return commit(folder)


@pytest.mark.skipif(shutil.which("git") is None, reason="pre-commit needs git")
def test_the_hooks_in_another_repository(tmp_path):
    pytest.importorskip("pre_commit")
    repository, scratch, home = tmp_path / "hooks", tmp_path / "scratch", tmp_path / "home"
    for folder in (repository, scratch):
        folder.mkdir()
    revision = copy_of_this_repository(repository)
    script = scratch / "train.py"
    script.write_text(TRAINING)
    (scratch / ".pre-commit-config.yaml").write_text(
        CONFIGURATION.format(repository=repository.as_posix(), revision=revision)
    )
    commit(scratch)

    def hook(name, *options, start=("run",)):
        command = [sys.executable, "-m", "pre_commit", *start, name, "--all-files", *options]
        done = run(command, scratch, PRE_COMMIT_HOME=str(home), PRE_COMMIT_COLOR="never")
        log = home / "pre-commit.log"  # what an installation that failed has said
        said = done.stdout + done.stderr + (log.read_text() if log.is_file() else "")
        if NO_NETWORK.search(said):
            pytest.skip(f"pip cannot install the hook without a network: {NO_NETWORK.search(said)[0]}")
        assert "An unexpected error has occurred" not in said, said
        return done.returncode, said

    status, said = hook("migrate-check")
    assert status == 1, said
    assert re.search(r"^train\.py:8:\d+:? MIG001 ", said, re.MULTILINE), said
    assert script.read_text() == TRAINING

    (scratch / "pyproject.toml").write_text('[tool.migrate]\nexclude = ["train.py"]\n')
    git(scratch, "add", "pyproject.toml")
    status, said = hook("migrate-check")
    assert status == 0, said  # hooks name files, and what is excluded is left out all the same
    git(scratch, "rm", "--quiet", "--force", "pyproject.toml")

    status, said = hook("migrate-write", "--hook-stage", "manual")
    assert status == 1, said  # pre-commit fails a hook that changes files
    assert "files were modified by this hook" in said
    by_hook = script.read_text()
    assert "accelerator.backward(loss)" in by_hook

    script.write_text(TRAINING)
    written = run([sys.executable, "-m", "migrate", "train.py", "--write"], scratch, PYTHONPATH=str(ROOT))
    assert written.returncode == 0, written.stderr
    assert script.read_text() == by_hook
    status, said = hook("migrate-check")
    assert status == 0, said
    for name in ("migrate", "migrate-write"):
        status, said = hook(name, "--hook-stage", "manual")
        assert status == 0, said

    script.write_text(TRAINING)
    status, said = hook("migrate-check", start=("try-repo", str(repository)))
    assert status == 1, said
    assert re.search(r"^train\.py:8:\d+:? MIG001 ", said, re.MULTILINE), said

    assert installed(home) >= {"libcst", "typer", "migrate", "runtime"}
    assert not installed(home) & {"torch", "numpy"}


def installed(home):
    """The importable names of the environment that pre-commit made for the hooks, of those that matter here."""
    (environment,) = (path.parent for path in home.glob("repo*/py_env-*/pyvenv.cfg"))
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    names = ["torch", "numpy", "libcst", "typer", "migrate", "runtime"]
    code = f"from importlib.util import find_spec; print(*(n for n in {names} if find_spec(n)))"
    done = subprocess.run(
        [str(python), "-I", "-c", code], cwd=home, capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    return set(done.stdout.split())
