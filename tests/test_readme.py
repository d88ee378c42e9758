"""What README shows is what the tools print, and what the pages of figures say."""

import re
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


def ratio(section, library):
    """What a step costs with a library, of that of plain PyTorch: of the first table of a section."""
    table = (ROOT / "docs/performance.md").read_text().split(f"## {section}\n")[1]
    (last,) = re.search(rf"^{library} .* (\S+)$", table, re.MULTILINE).groups()
    return f"{float(last):.2f}"


def test_the_costs_of_a_step_are_those_that_were_measured():
    text = (ROOT / "README.md").read_text()
    one, two = (
        {name: ratio(f"A training step on {number}", name) for name in ("runtime", "accelerate", "fabric")}
        for number in ("one process", "two processes")
    )
    on_one = f"costs {one['runtime']} of plain PyTorch on one process (Accelerate: {one['accelerate']})"
    assert f"{on_one}, {two['runtime']} on two ({two['accelerate']})" in text
    assert f"by hand: {one['fabric']} and {two['fabric']} in the same tables" in text


def test_the_costs_of_a_check_are_those_that_were_measured():
    row = re.search(r"^\| pytorch/examples \|.*$", (ROOT / "bench/README.md").read_text(), re.MULTILINE)[0]
    *_, first, again, torchfix, _ = (cell.strip() for cell in row.split("|"))
    shown = f"takes TorchFix {torchfix} s of CPU, `migrate --check` {first} s, and {again} s when nothing has changed"
    assert shown in (ROOT / "README.md").read_text()


@pytest.mark.long
def test_the_verdicts_are_what_verify_prints(tmp_path):
    (tmp_path / "train.py").write_bytes((ROOT / "fixtures/classifier/before.py").read_bytes())
    shown = (ROOT / "docs/proof.md").read_text().split("$ migrate train.py --verify\n")[1].split("\noriginal:")[0]

    command = [sys.executable, "-m", "migrate", "train.py", "--verify"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert shown in printed
