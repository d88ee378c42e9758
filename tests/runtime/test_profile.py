"""Profiles on one process; test_tracking.py has the traces of several."""

from __future__ import annotations

import pytest
import torch

from runtime import Accelerator, ProfileKwargs
from runtime.errors import ConfigurationError


def test_the_accelerators_options_are_used_unless_others_are_given():
    seen = []
    options = ProfileKwargs(
        activities=["cpu"],
        schedule_option={"wait": 1, "warmup": 1, "active": 1, "repeat": 1},
        on_trace_ready=seen.append,
    )
    accelerator = Accelerator(cpu=True, kwargs_handlers=[options])
    with accelerator.profile() as profiler:
        for _ in range(4):
            torch.ones(2).add(1)
            profiler.step()
    assert seen == [profiler]
    with accelerator.profile(ProfileKwargs(record_shapes=True)) as other:
        torch.ones(2).add(1)
    assert "aten::add" in {event.key for event in other.key_averages()}
    assert len(seen) == 1


def test_a_trace_that_the_script_has_saved_is_not_saved_again(tmp_path):
    def save(profiler):
        profiler.export_chrome_trace(str(tmp_path / "own.json"))

    options = ProfileKwargs(activities=["cpu"], on_trace_ready=save, output_trace_dir=str(tmp_path))
    with Accelerator(cpu=True).profile(options):
        torch.ones(2).add(1)
    assert [path.name for path in tmp_path.iterdir()] == ["own.json"]


def test_an_unknown_activity_is_named():
    profile = Accelerator(cpu=True).profile(ProfileKwargs(activities=["gpu"]))
    with pytest.raises(ConfigurationError, match=r"\['gpu'\]\) is not known. Known: cpu"), profile:
        pass


def test_an_activity_that_is_no_list_is_named():
    """Its letters were taken for activities."""
    with (
        pytest.raises(ConfigurationError, match=r"activities='cpu'\): activities are a list, \['cpu'\]"),
        Accelerator(cpu=True).profile(ProfileKwargs(activities="cpu")),
    ):
        pass
