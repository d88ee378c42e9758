"""What README shows is what the tools print."""

from pathlib import Path

from migrate.options import Options
from migrate.pipeline import run_text
from migrate.report.diff import unified

ROOT = Path(__file__).parents[1]


def test_the_diff_is_what_migrate_prints():
    before = (ROOT / "fixtures/classifier/before.py").read_bytes()
    (change,) = run_text(before, "", Options()).changes
    shown = (ROOT / "README.md").read_text().split("```diff\n")[1].split("```")[0]

    printed = unified(change.old, change.new, "train.py").decode()

    assert printed == shown
