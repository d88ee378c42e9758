"""Checkpoints of several processes: each writes its part, and all know how it ended."""

from __future__ import annotations

import errno
import json
import os
import random
import warnings
from pathlib import Path
from unittest import mock

import pytest
import torch
from ranks import run_ranks
from torch import nn

from runtime import Accelerator, ProjectConfiguration, set_seed
from runtime.errors import CollectiveError, LoadError, SaveError


class Training:
    def __init__(self):
        self.accelerator = Accelerator(cpu=True)
        torch.manual_seed(0)
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)

    def step(self):
        self.accelerator.backward(self.model(torch.randn(3, 2)).pow(2).mean())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return [p.detach().clone() for p in self.model.parameters()]


def draws():
    return torch.rand(2).tolist(), random.random()  # noqa: S311


def error_of(call):
    try:
        call()
    except (SaveError, LoadError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def no_room(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def saves(folder):
    parent = Path(folder)
    training = Training()
    accelerator = training.accelerator
    rank = accelerator.process_index
    set_seed(3, device_specific=True)
    training.step()
    accelerator.save_state(parent / "a")
    expected = training.step(), draws()
    accelerator.load_state(parent / "a")
    again = training.step(), draws()
    assert again[1] == expected[1]
    assert all(map(torch.equal, again[0], expected[0]))
    files = sorted(os.listdir(parent / "a"))

    with mock.patch("os.write", no_room if rank == 1 else os.write):
        told = error_of(lambda: accelerator.save_state(parent / "b"))
        accelerator.save_state(parent / "b", async_save=True)
        later = error_of(accelerator.wait_for_save)
    hooked = accelerator.register_save_state_pre_hook(lambda *_: 1 / rank)
    divided = error_of(lambda: accelerator.save_state(parent / "b"))
    hooked.remove()
    accelerator.wait_for_everyone()
    left = sorted(os.listdir(parent))
    accelerator.wait_for_everyone()

    accelerator.save_state(parent / "c", async_save=True)
    training.step()  # collectives of the training and of the save at the same time
    accelerator.wait_for_save()
    if rank == 0:
        path = parent / "c" / "random_states_1.pkl"
        data = bytearray(path.read_bytes())
        data[700] ^= 4
        path.write_bytes(data)
    accelerator.wait_for_everyone()
    damaged = error_of(lambda: accelerator.load_state(parent / "c"))
    unnamed = error_of(lambda: accelerator.load_state(parent / "nowhere"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = accelerator.load_state(parent).name
    warned = [str(item.message) for item in caught]
    accelerator.end_training()
    return [files, told, later, divided, left, damaged, unnamed, chosen, warned, expected[1]]


def resumes(folder):
    training = Training()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        training.accelerator.load_state(Path(folder) / "a")
    torch.randn(3, 2)  # what the step drew
    return draws(), [str(item.message) for item in caught]


def test_processes_save_and_load_together(tmp_path):
    results = run_ranks(saves, 2, str(tmp_path))
    names = ["manifest.json", "model.safetensors", "optimizer.bin", "random_states_0.pkl", "random_states_1.pkl"]
    for files, told, later, divided, left, damaged, unnamed, chosen, _, _ in results:
        assert files == names
        for error in (told, later):
            assert "b was not saved: rank 1: OSError: [Errno 28] No space left on device: '" in error
            assert "random_states_1.pkl'. What was there before is as it was" in error
        assert "rank 0: ZeroDivisionError" in divided
        assert left == ["a"]
        assert "c cannot be loaded: random_states_1.pkl is damaged" in damaged
        assert "nowhere cannot be searched for checkpoints" in unnamed
        assert chosen == "a"
    assert "newer checkpoints are damaged" in results[0][8][0]
    assert results[1][8] == []
    assert json.loads((tmp_path / "a" / "manifest.json").read_text())["processes"] == 2

    drawn = [result[-1] for result in results]
    assert drawn[0] != drawn[1]
    others = run_ranks(resumes, 3, str(tmp_path))
    assert [others[0][0], others[1][0]] == drawn
    assert others[2][0] not in drawn
    (warned,) = others[0][1]
    assert "was saved by 2 processes and is loaded by 3: processes from rank 2 on get random numbers derived" in warned
    assert others[1][1] == others[2][1] == []
    assert run_ranks(resumes, 3, str(tmp_path))[2][0] == others[2][0]
    with pytest.warns(UserWarning, match="saved by 2 processes and is loaded by 1: no process gets"):
        Training().accelerator.load_state(tmp_path / "a")


def saves_apart(folder):
    """Two machines with a disk each."""
    rank = os.environ["RANK"]
    os.environ.update(LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
    mine = Path(folder) / rank
    project = ProjectConfiguration(mine, automatic_checkpoint_naming=True, save_on_each_node=True)
    accelerator = Accelerator(cpu=True, project_config=project)
    model = accelerator.prepare(nn.Linear(2, 2))
    accelerator.save_state()
    accelerator.save_state()
    accelerator.save([rank], mine / "own.pt")
    accelerator.save_model(model, mine / "weights")
    assert os.listdir(mine / "weights") == ["model.safetensors"]
    assert torch.load(mine / "own.pt") == [rank]
    files = sorted(os.listdir(mine / "checkpoints" / "checkpoint_1"))
    if rank == "1":
        (mine / "checkpoints" / "checkpoint_1" / "model.safetensors").unlink()
    accelerator.wait_for_everyone()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = accelerator.load_state()
    accelerator.end_training()
    return files, chosen.relative_to(mine).as_posix(), len(caught)


def test_machines_with_disks_of_their_own_take_the_same_checkpoint(tmp_path):
    first, second = run_ranks(saves_apart, 2, str(tmp_path))
    whole = ["manifest.json", "model.safetensors"]
    assert first == ([*whole, "random_states_0.pkl"], "checkpoints/checkpoint_0", 1)
    assert second == ([*whole, "random_states_1.pkl"], "checkpoints/checkpoint_0", 0)


def saves_on_one(folder):
    accelerator = Accelerator(cpu=True)
    try:
        if accelerator.is_main_process:
            accelerator.save_state(Path(folder) / "a")
        else:
            accelerator.gather(torch.ones(1))
    except CollectiveError as error:
        return str(error)
    return None


def test_a_save_that_only_one_process_comes_to_is_named(tmp_path):
    for told in run_ranks(saves_on_one, 2, str(tmp_path)):
        assert "save_state" in told
        assert "gather" in told
    assert os.listdir(tmp_path) == []
