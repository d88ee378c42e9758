"""A process that is killed while it saves, at any moment, leaves a checkpoint that can be loaded."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from runtime import Accelerator, ProjectConfiguration
from runtime.checkpoints.choice import newest_first

pytestmark = pytest.mark.long

KILLS = 50
LIMIT_S = 60


class Count:
    """Says with the weights which checkpoint it is."""

    value = 0

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


def build(folder):
    project = ProjectConfiguration(folder, automatic_checkpoint_naming=True, total_limit=2)
    accelerator = Accelerator(cpu=True, project_config=project)
    model = accelerator.prepare(nn.Linear(64, 64))
    count = Count()
    accelerator.register_for_checkpointing(count)
    return accelerator, model, count


def saves_for_ever(folder, ready):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    torch.set_num_threads(1)
    accelerator, model, count = build(folder)
    while True:
        if count.value == 0 and os.path.isdir(os.path.join(folder, "checkpoints")):
            accelerator.load_state()
        count.value += 1
        with torch.no_grad():
            model.weight.fill_(count.value)
        accelerator.save_state(async_save=count.value % 2 == 0)
        accelerator.project_configuration.automatic_checkpoint_naming = False
        accelerator.save_state(os.path.join(folder, "same"))  # in the place of another one
        accelerator.project_configuration.automatic_checkpoint_naming = True
        ready.set()
        time.sleep(0.004)  # some moments without a save


def loaded(folder, place=None):
    accelerator, model, count = build(folder)
    accelerator.load_state(place)
    assert model.weight.eq(count.value).all(), "parts of two checkpoints"
    return count.value


def test_a_kill_at_any_moment_leaves_a_good_checkpoint(tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.optim", "torch.utils.data", "runtime.accelerator"])
    draws = random.Random(0)  # noqa: S311
    newest, moments = 0, {"aside": 0, "renamed": 0}
    for _ in range(KILLS):
        ready = context.Event()
        process = context.Process(target=saves_for_ever, args=(str(tmp_path), ready), daemon=True)
        process.start()
        assert ready.wait(LIMIT_S)
        time.sleep(draws.random() * 0.04)
        process.kill()
        process.join(LIMIT_S)
        left = [path.name for place in (tmp_path, tmp_path / "checkpoints") for path in place.glob(".*")]
        moments["aside" if left else "renamed"] += 1
        found = loaded(tmp_path)
        assert found >= newest
        assert loaded(tmp_path, tmp_path / "same") >= newest
        newest = found
        assert len(newest_first(tmp_path / "checkpoints")) <= 3  # one more than kept, until the next save
    assert min(moments.values()) > 0, moments
    accelerator, _, _ = build(tmp_path)
    accelerator.load_state()
    accelerator.save_state()
    accelerator.save_state()
    assert len(os.listdir(tmp_path / "checkpoints")) == 2
