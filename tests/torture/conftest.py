"""The torture of `migrate`: what it was told (seed, sizes), and its figures, which become docs/reliability.md."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "end_to_end")]  # test files import their neighbours
from asked import INPUTS, SECONDS, SEED  # noqa: E402 (where they lie is said above)
from figures import Figure, merged, page, told  # noqa: E402

STARTED = "TORTURE_STARTED"
KEPT = HERE.parents[1] / ".torture" / "figures.jsonl"
PAGE = HERE.parents[1] / "docs" / "reliability.md"


def pytest_configure(config):
    os.environ.setdefault(STARTED, str(time.time()))  # workers are told through the environment


def pytest_report_header(config):
    return f"torture: {INPUTS} inputs, seed {SEED} (TORTURE_INPUTS, TORTURE_SEED, TORTURE_SECONDS)"


@pytest.fixture
def is_late():
    """Whether the time of the whole suite is used up: what is not begun then is left out, and the figures say so."""
    end = float(os.environ[STARTED]) + SECONDS
    return lambda: time.time() > end


@pytest.fixture
def record(record_property, request):
    """Puts a figure into the report of the run."""
    start = used_s()

    def put(part, kind, **counts):
        figure = {
            "part": part,
            "kind": kind,
            "test": request.node.nodeid,
            "seconds": used_s() - start,
            "counts": counts,
        }
        record_property("torture", json.dumps(figure))

    return put


def used_s():
    """Seconds of CPU that this process and its children have taken."""
    return sum(os.times()[:4])


def pytest_terminal_summary(terminalreporter, config):
    """The figures of all workers; with TORTURE_PAGE set they become the page, with those kept of other tests."""
    reports = [r for outcome in ("passed", "failed") for r in terminalreporter.stats.get(outcome, ())]
    figures = [Figure(**json.loads(value)) for r in reports for name, value in r.user_properties if name == "torture"]
    if not figures:
        return
    terminalreporter.section("torture")
    for line in told(figures):
        terminalreporter.line(line)
    failed = len(terminalreporter.stats.get("failed", ())) + len(terminalreporter.stats.get("error", ()))
    if os.environ.get("TORTURE_PAGE"):
        PAGE.write_text(page(merged(KEPT, figures), failed), encoding="utf-8")
        terminalreporter.line(f"written: {PAGE}")
