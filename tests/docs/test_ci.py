"""The workflow and the job of `docs/ci`: YAML that says what their systems ask for, and commands that run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "docs" / "ci"
GIT = shutil.which("git")
IDENTITY = ["-c", "user.name=Tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false"]
PROGRAM = """\
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
pytestmark = pytest.mark.skipif(GIT is None, reason="the commands ask git")


def document(name):
    return yaml.safe_load((CI / name).read_text(encoding="utf-8"))


@pytest.fixture
def scratch(tmp_path):
    """A clone on a branch that adds a training loop to one that `main` has, with its commands on the path."""
    upstream, clone, commands = tmp_path / "upstream", tmp_path / "clone", tmp_path / "bin"
    upstream.mkdir()
    git(upstream, "init", "--quiet", "--initial-branch", "main")
    (upstream / "old.py").write_text(PROGRAM, encoding="utf-8")
    git(upstream, "add", "--all")
    git(upstream, "commit", "--quiet", "--message", "all")
    git(tmp_path, "clone", "--quiet", str(upstream), str(clone))
    git(clone, "checkout", "--quiet", "-b", "topic")
    (clone / "new.py").write_text(PROGRAM, encoding="utf-8")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "new")
    commands.mkdir()
    script(commands / "migrate", f'PYTHONPATH={ROOT} exec {sys.executable} -m migrate "$@"')
    script(commands / "reviewdog", 'echo "$@" > reviewdog.arguments\nexec cat > reviewdog.input')
    script(commands / "pip", 'echo "$@" > pip.arguments')
    return clone


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def git(folder, *arguments):
    subprocess.run([GIT, *IDENTITY, *arguments], cwd=folder, check=True, env=environment())


def environment(**more):
    return {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **more}


def run(command, folder, **variables):
    path = f"{folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-c", command],  # noqa: S607 (as both systems start them)
        cwd=folder,
        env=environment(PATH=path, **variables),
        capture_output=True,
        text=True,
        check=False,
    )


def reviewed(folder, reporter):
    """What reviewdog was given holds the conversion of both files."""
    assert f"-f=rdjson -name=migrate -reporter={reporter}" in (folder / "reviewdog.arguments").read_text(
        encoding="utf-8"
    )
    given = json.loads((folder / "reviewdog.input").read_text(encoding="utf-8"))["diagnostics"]
    assert {each["location"]["path"] for each in given if "suggestions" in each} == {"new.py", "old.py"}
    return True


def applies(folder):
    git(folder, "apply", "--check", "migrate.patch")
    return (folder / "migrate.patch").stat().st_size > 0


def test_github_workflow(scratch):
    workflow = document("github.yml")
    assert workflow[True] == "pull_request"  # YAML 1.1 reads `on` so
    assert set(workflow["permissions"]) == {"contents", "pull-requests"}
    steps = workflow["jobs"]["migrate"]["steps"]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    commands = [step["run"].replace("${{ github.base_ref }}", "main") for step in steps if "run" in step]
    install, annotate, keep, suggest = commands
    assert run(install, scratch, MIGRATE="x").returncode == 0
    annotated = run(annotate, scratch)
    assert annotated.returncode == 1, annotated.stderr
    assert re.fullmatch(r"::warning [^\n]*file=new\.py,line=8,[^\n]*\n", annotated.stdout)  # old.py was not touched
    kept = run(keep, scratch)
    assert kept.returncode == 0, kept.stderr
    assert applies(scratch)
    suggested = run(suggest, scratch)
    assert suggested.returncode == 0, suggested.stderr
    assert reviewed(scratch, "github-pr-review")


def test_the_workflow_does_not_take_trouble_for_a_finding(scratch):
    (scratch / "broken.py").write_text("import torch\ndef (\n", encoding="utf-8")
    keep = next(
        step["run"] for step in document("github.yml")["jobs"]["migrate"]["steps"] if "patch" in step.get("run", "")
    )
    assert run(keep, scratch).returncode != 0


def test_gitlab_job(scratch):
    jobs = document("gitlab.yml")
    job, suggestions = jobs["migrate"], jobs["migrate-suggestions"]
    assert suggestions["extends"] == "migrate"
    variables = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", **job["variables"]}
    *before, check = [*job["before_script"], *job["script"]]
    for command in before:
        done = run(command, scratch, **variables)
        assert done.returncode == 0, done.stderr
    assert applies(scratch)
    assert run(check, scratch, **variables).returncode == 1
    report = scratch / job["artifacts"]["reports"]["codequality"]
    (entry,) = json.loads(report.read_text(encoding="utf-8"))
    assert entry["location"] == {"path": "new.py", "lines": {"begin": 8}}
    assert all((scratch / name).is_file() for name in job["artifacts"]["paths"])
    for command in suggestions["script"]:
        done = run(command, scratch, **variables)
        assert done.returncode == 0, done.stderr
    assert reviewed(scratch, "gitlab-mr-discussion")


def test_the_page_shows_hooks_that_exist():
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    shown = set(re.findall(r"id: ([\w-]+)", (CI / "README.md").read_text(encoding="utf-8")))
    assert shown == {"migrate-check", "migrate-write"} <= hooks
