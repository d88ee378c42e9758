"""What README shows is what the tools print."""

import subprocess
import sys
from pathlib import Path

import pytest

from migrate.options import Options, question
from migrate.pipeline import explain_role, run_text
from migrate.report.diff import unified

ROOT = Path(__file__).parents[1]


def test_the_diff_is_what_migrate_prints():
    before = (ROOT / "fixtures/classifier/before.py").read_bytes()
    (change,) = run_text(before, "", Options()).changes
    shown = (ROOT / "README.md").read_text().split("```diff\n")[1].split("```")[0]

    printed = unified(change.old, change.new, "train.py").decode()

    assert printed == shown


def test_the_chain_is_what_migrate_prints(monkeypatch):
    monkeypatch.chdir(ROOT / "fixtures/two-files/before")
    shown = (ROOT / "README.md").read_text().split("$ migrate --explain-role engine.py:9:model train.py\n")[1]

    assert explain_role(question("engine.py:9:model"), ["train.py"]) == shown.split("```")[0]


@pytest.mark.long
def test_the_verdicts_are_what_verify_prints(tmp_path):
    (tmp_path / "train.py").write_bytes((ROOT / "fixtures/classifier/before.py").read_bytes())
    shown = (ROOT / "README.md").read_text().split("Of the script above:\n\n```\n")[1].split("```")[0]

    command = [sys.executable, "-m", "migrate", "train.py", "--verify"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert shown in printed
