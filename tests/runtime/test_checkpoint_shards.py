"""Checkpoints of state that is spread over processes: as shards and as a whole, on other numbers of processes, too."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from unittest import mock

import torch
from ranks import run_ranks
from shards import needs_shards
from torch import nn

from runtime import Accelerator, FullyShardedDataParallelPlugin
from runtime.errors import LoadError, SaveError


class Training:
    def __init__(self, kind=None, seed=0):
        options = {} if kind is None else {"fsdp_plugin": FullyShardedDataParallelPlugin(state_dict_type=kind)}
        self.accelerator = Accelerator(cpu=True, **options)
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)

    def step(self):
        data = torch.arange(8.0).reshape(2, 4) / 8
        self.accelerator.backward(self.model(data).sub(1).pow(2).mean())
        self.optimizer.step()
        self.optimizer.zero_grad()

    def whole(self):
        """Weights that all processes know."""
        return [
            (p.full_tensor() if hasattr(p, "full_tensor") else p).detach().flatten().tolist()
            for p in self.model.parameters()
        ]


def close(one, other):
    return all(torch.allclose(torch.tensor(a), torch.tensor(b), atol=1e-6) for a, b in zip(one, other, strict=True))


def saves(folder):
    results = {}
    for kind in ("SHARDED_STATE_DICT", "FULL_STATE_DICT"):
        place = Path(folder) / kind
        training = Training(kind)
        accelerator = training.accelerator
        training.step()
        accelerator.save_state(place / "now")
        accelerator.save_state(place / "behind", async_save=True)
        saved = training.whole()
        training.step()
        accelerator.wait_for_save()
        later = training.whole()
        for name in ("now", "behind"):
            other = Training(kind, seed=1)
            other.accelerator.load_state(place / name)
            assert close(other.whole(), saved)
            other.step()
            assert close(other.whole(), later), (kind, name)
        accelerator.wait_for_everyone()
        results[kind] = (sorted(os.listdir(place / "now")), saved, later)
    with mock.patch("torch.distributed.checkpoint.FileSystemWriter", side_effect=OSError(28, "No space left")):
        told = error_of(lambda: accelerator.save_state(Path(folder) / "full"))
    assert told is None  # whole state is no business of DCP
    place = Path(folder) / "SHARDED_STATE_DICT"
    training = Training("SHARDED_STATE_DICT")
    with mock.patch("torch.distributed.checkpoint.filesystem.FileSystemWriter.write_data", _no_room):
        told = error_of(lambda: training.accelerator.save_state(place / "now"))
    damage = place / "behind" / "pytorch_model_fsdp_0" / "__1_0.distcp"
    if accelerator.is_main_process:
        data = bytearray(damage.read_bytes())
        data[len(data) // 2] ^= 1
        damage.write_bytes(data)
    accelerator.wait_for_everyone()
    damaged = error_of(lambda: training.accelerator.load_state(place / "behind"))
    accelerator.end_training()
    return results, told, damaged


def _no_room(*_):
    raise OSError(28, "No space left on device")


def error_of(call):
    try:
        call()
    except (SaveError, LoadError) as error:
        return str(error)
    return None


def resumes(place, kind):
    training = Training(kind, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another number of processes
        training.accelerator.load_state(Path(place) / "now")
    loaded = training.whole()
    training.step()
    later = training.whole()
    training.accelerator.end_training()
    return loaded, later


def alone(folder):
    """A script that has put its only process into a group."""
    torch.distributed.init_process_group("gloo")
    training = Training("SHARDED_STATE_DICT")
    training.step()
    for name, behind in (("now", False), ("behind", True)):
        training.accelerator.save_state(Path(folder) / name, async_save=behind)
    saved = training.whole()
    training.step()
    training.accelerator.wait_for_save()
    later = training.whole()
    found = []
    for name in ("now", "behind"):
        other = Training("SHARDED_STATE_DICT", seed=1)
        other.accelerator.load_state(Path(folder) / name)
        found.append(close(other.whole(), saved))
        other.step()
        found.append(close(other.whole(), later))
    training.accelerator.end_training()
    plain = Training(seed=2)
    plain.accelerator.load_state(Path(folder) / "now")
    return [*found, close(plain.whole(), saved)]


@needs_shards
def test_one_process_in_a_group_of_its_own_saves_shards_without_a_warning(tmp_path):
    assert run_ranks(alone, 1, str(tmp_path)) == [[True] * 5]


@needs_shards
def test_shards_and_whole_state_are_loaded_by_any_number_of_processes(tmp_path):
    (results, told, damaged), other = run_ranks(saves, 2, str(tmp_path))
    assert other[0] == results
    assert "now was not saved: rank 0: SaveError: model 0: rank 0: OSError: [Errno 28] No space left on device" in told
    assert "behind cannot be loaded: pytorch_model_fsdp_0/__1_0.distcp is damaged" in damaged
    files, saved, later = results["SHARDED_STATE_DICT"]
    states = ["random_states_0.pkl", "random_states_1.pkl"]
    assert files == ["manifest.json", "optimizer_0", "pytorch_model_fsdp_0", *states]
    assert results["FULL_STATE_DICT"][0] == ["manifest.json", "model.safetensors", "optimizer.bin", *states]
    for saved_as, kind, size in (
        ("SHARDED_STATE_DICT", "SHARDED_STATE_DICT", 3),
        ("SHARDED_STATE_DICT", None, 1),
        ("SHARDED_STATE_DICT", None, 2),
        ("FULL_STATE_DICT", "SHARDED_STATE_DICT", 3),
        ("FULL_STATE_DICT", None, 1),
    ):
        for found in run_ranks(resumes, size, str(tmp_path / saved_as), kind):
            assert close(found[0], saved), (saved_as, kind, size)
            assert close(found[1], later), (saved_as, kind, size)
