"""Files are whole or not there, and hold the original model's keys."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
import torch
from ranks import run_ranks
from torch import nn

from runtime import Accelerator
from runtime.checkpoints.formats import mapped, read_safetensors, safetensors_header, without_aliases
from runtime.errors import SaveError
from runtime.save import in_bytes, save


def test_save_writes_what_torch_load_reads(tmp_path):
    accelerator = Accelerator(cpu=True)
    accelerator.save({"a": torch.ones(2)}, tmp_path / "x.pt")
    accelerator.save([1], str(tmp_path / "y.pt"))
    buffer = io.BytesIO()
    accelerator.save([2], buffer)

    assert torch.load(tmp_path / "x.pt")["a"].tolist() == [1, 1]
    assert torch.load(tmp_path / "y.pt") == [1]
    assert torch.load(io.BytesIO(buffer.getvalue())) == [2]
    assert sorted(os.listdir(tmp_path)) == ["x.pt", "y.pt"]


def test_an_open_file_is_written_in_the_format_that_is_asked_for(tmp_path):
    buffer = io.BytesIO()
    Accelerator(cpu=True).save({"a": torch.ones(2)}, buffer, safe_serialization=True)
    (tmp_path / "x.safetensors").write_bytes(buffer.getvalue())
    assert read_safetensors(tmp_path / "x.safetensors", mapped(tmp_path / "x.safetensors"))["a"].tolist() == [1, 1]
    with pytest.raises(SaveError, match="safe_serialization=False"):
        Accelerator(cpu=True).save([1], io.BytesIO(), safe_serialization=True)


def test_a_state_dictionary_keeps_the_versions_of_its_layers(tmp_path):
    accelerator = Accelerator(cpu=True)
    model = accelerator.prepare(nn.BatchNorm1d(2))
    accelerator.save(accelerator.get_state_dict(model), tmp_path / "x.pt")

    assert torch.load(tmp_path / "x.pt")._metadata == model.state_dict()._metadata


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    save([1], path)
    with pytest.raises(Exception, match="lambda"):
        save(lambda: 0, path)

    assert torch.load(path) == [1]
    assert os.listdir(tmp_path) == ["x.pt"]


def test_a_link_is_followed_and_a_missing_folder_named(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.pt"
    link.symlink_to(tmp_path / "real" / "x.pt")
    save([1], link)
    assert link.is_symlink()
    assert torch.load(tmp_path / "real" / "x.pt") == [1]
    with pytest.raises(SaveError, match=r"nowhere is not a folder. Create it first"):
        save([1], tmp_path / "nowhere" / "x.pt")


def test_save_model_needs_no_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    model[1].weight = model[0].weight
    Accelerator(cpu=True).save_model(model, tmp_path)
    Accelerator(cpu=True).save_model(model, tmp_path / "new", safe_serialization=False)
    assert set(torch.load(tmp_path / "new" / "pytorch_model.bin")) == set(model.state_dict())
    monkeypatch.undo()
    safetensors = pytest.importorskip("safetensors.torch")
    assert set(safetensors.load_file(tmp_path / "model.safetensors")) == {"0.weight", "0.bias", "1.bias"}


@pytest.mark.parametrize(("safe", "stem", "ending"), [(True, "model", "safetensors"), (False, "pytorch_model", "bin")])
def test_large_models_are_written_into_several_files(tmp_path, safe, stem, ending):
    safetensors = pytest.importorskip("safetensors.torch")
    read = safetensors.load_file if safe else torch.load
    model = nn.Sequential(nn.Linear(10, 10), nn.Linear(10, 10), nn.Linear(10, 10), nn.Linear(10, 300))
    model[2].weight = model[0].weight
    accelerator = Accelerator(cpu=True)
    accelerator.save_model(model, tmp_path, max_shard_size="800B", safe_serialization=safe)
    index = json.loads((tmp_path / f"{stem}.{ending}.index.json").read_text())
    files = sorted(set(index["weight_map"].values()))
    assert files == [f"{stem}-{number:05d}-of-00004.{ending}" for number in range(1, 5)]
    assert sorted(os.listdir(tmp_path)) == sorted([*files, f"{stem}.{ending}.index.json"])
    assert index["metadata"]["total_size"] == sum(p.numel() * 4 for p in model.parameters())
    found = {}
    for file in files:
        shard = read(tmp_path / file)
        assert all(index["weight_map"][name] == file for name in shard)
        found |= shard
    left_out = {"2.weight"} if safe else set()
    assert found.keys() == model.state_dict().keys() - left_out
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in found.items())

    (tmp_path / "other.bin").write_text("")
    accelerator.save_model(model, tmp_path, safe_serialization=safe)
    assert sorted(os.listdir(tmp_path)) == sorted([f"{stem}.{ending}", "other.bin"])


def test_what_safetensors_cannot_hold_is_told(tmp_path):
    with pytest.raises(SaveError, match="safe_serialization=False"):
        Accelerator(cpu=True).save({"a": 1}, tmp_path / "x", safe_serialization=True)
    assert os.listdir(tmp_path) == []


def test_shared_tensors_are_written_once():
    tensor = torch.ones(2)
    distinct, aliases = without_aliases(
        {"a": tensor, "b": tensor, "c": tensor[:1], "d": torch.empty(0), "e": torch.empty(0)}
    )
    assert list(distinct) == ["a", "c", "d", "e"]
    assert aliases == {"b": "a"}


@pytest.mark.parametrize(("text", "size"), [("10GB", 10**10), ("5 MiB", 5 * 2**20), ("0.5GB", 5 * 10**8), (17, 17)])
def test_sizes_are_read(text, size):
    assert in_bytes(text) == size


@pytest.mark.parametrize("size", ["many", "10 giga", -1, 0, "0GB", None])
def test_sizes_that_are_not_understood_are_refused(size):
    with pytest.raises(SaveError, match=f"{size!r} is not understood"):
        in_bytes(size)


class Named(nn.Module):
    """Parameters with the names that the format has in its own metadata; the last is the second once more."""

    def __init__(self):
        super().__init__()
        self.pt = nn.Parameter(torch.ones(2))
        self.a = nn.Parameter(torch.ones(3))
        self.format = self.a


def test_parameters_may_have_the_names_of_the_metadata(tmp_path):
    accelerator, other = Accelerator(cpu=True), Accelerator(cpu=True)
    accelerator.prepare(Named())
    accelerator.save_state(tmp_path / "all")
    model = other.prepare(Named())
    nn.init.zeros_(model.pt), nn.init.zeros_(model.a)
    other.load_state(tmp_path / "all")
    assert [p.tolist() for p in (model.pt, model.format)] == [[1, 1], [1, 1, 1]]
    path = tmp_path / "all" / "model.safetensors"
    assert safetensors_header(path)[1]["__metadata__"]["format"] == "pt"
    assert set(read_safetensors(path, mapped(path))) == {"pt", "a"}


def saves(folder):
    accelerator = Accelerator(cpu=True)
    model = accelerator.prepare(nn.Linear(2, 2))
    accelerator.save({"rank": accelerator.process_index}, Path(folder) / "own.pt")
    accelerator.save(accelerator.get_state_dict(model), Path(folder) / "model.pt")
    accelerator.save_model(model, folder, safe_serialization=False)
    accelerator.wait_for_everyone()
    return sorted(os.listdir(folder))


def test_one_process_writes_plain_keys(tmp_path):
    assert run_ranks(saves, 2, str(tmp_path)) == [["model.pt", "own.pt", "pytorch_model.bin"]] * 2
    assert torch.load(tmp_path / "own.pt") == {"rank": 0}
    nn.Linear(2, 2).load_state_dict(torch.load(tmp_path / "model.pt"))
    nn.Linear(2, 2).load_state_dict(torch.load(tmp_path / "pytorch_model.bin"))
