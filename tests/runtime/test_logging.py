"""Loggers and progress bars of several processes: who speaks, in which order, and what stays untouched."""

from __future__ import annotations

import io
import logging
import sys

import pytest
from ranks import run_ranks

import runtime
from runtime import Accelerator
from runtime.errors import ConfigurationError, WorldError
from runtime.logging import get_logger


@pytest.fixture
def name(request):
    """The name of a logger that no other test has."""
    return f"test.{request.node.name}"


def test_messages_carry_the_rank_and_the_line(name, caplog):
    with caplog.at_level("INFO"):
        get_logger(name).info("loss %.1f", 0.25, main_process_only=False)
        get_logger(name).warning_once("told %s", "you")
    assert [record.getMessage() for record in caplog.records] == ["[RANK 0] loss 0.2", "[RANK 0] told you"]
    assert {(record.filename, record.funcName) for record in caplog.records} == {
        ("test_logging.py", "test_messages_carry_the_rank_and_the_line")
    }


def test_a_warning_is_given_once_by_each_logger(name, caplog):
    logger = get_logger(name)
    for word in ("a", "a", "b"):
        logger.warning_once("word %s", word)
    get_logger(name).warning_once("word %s", "a")
    assert [record.getMessage()[-1] for record in caplog.records] == ["a", "b", "a"]


def test_only_this_loggers_level_is_set(name, monkeypatch):
    before = logging.getLogger().level
    assert get_logger(name, log_level="debug").isEnabledFor(logging.DEBUG)
    monkeypatch.setenv("ACCELERATE_LOG_LEVEL", "error")
    assert not get_logger(f"{name}.env").isEnabledFor(logging.WARNING)
    assert logging.getLogger().level == before


def test_before_the_processes_are_joined_the_environment_says_who_one_is(name, caplog, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    logger = get_logger(name)
    logger.warning("main only")
    logger.warning("all", main_process_only=False)
    assert [record.getMessage() for record in caplog.records] == ["[RANK 1] all"]
    with pytest.raises(WorldError, match="Make the Accelerator first"):
        logger.warning("in turn", in_order=True)


@pytest.mark.parametrize(
    ("local_rank", "options", "is_shown"), [(0, {}, True), (1, {}, False), (1, {"main_process_only": False}, True)]
)
def test_one_bar_for_each_machine(monkeypatch, local_rank, options, is_shown):
    pytest.importorskip("tqdm")
    for variable, value in {"RANK": 2 + local_rank, "WORLD_SIZE": 4, "LOCAL_RANK": local_rank}.items():
        monkeypatch.setenv(variable, str(value))
    screen = io.StringIO()
    assert list(runtime.tqdm(range(3), file=screen, **options)) == [0, 1, 2]
    assert ("3/3" in screen.getvalue()) is is_shown


def test_bars_that_cannot_be_made(monkeypatch):
    with pytest.raises(ConfigurationError, match="Write main_process_only=False"):
        runtime.tqdm(False, range(3))
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        runtime.tqdm(range(3))


def on_two_processes(path):
    """All processes write into one file; returns nothing, the file tells."""
    accelerator = Accelerator(cpu=True)
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.getLogger("turns").addHandler(handler)
    logger = get_logger("turns", log_level="INFO")
    logger.debug("too low to be seen, and nobody waits", in_order=accelerator.is_main_process)
    logger.info("main")
    accelerator.wait_for_everyone()
    for _ in range(3):
        logger.info("turn", in_order=True)
    handler.close()


def test_messages_in_order(tmp_path):
    run_ranks(on_two_processes, 2, str(tmp_path / "log"))
    turn = ["[RANK 0] turn", "[RANK 1] turn"]
    assert (tmp_path / "log").read_text().splitlines() == ["[RANK 0] main", *turn * 3]
