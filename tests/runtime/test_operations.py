"""The functions that are called without an accelerator."""

from __future__ import annotations

import os
from collections import namedtuple
from types import SimpleNamespace

import pytest
import torch
from ranks import run_ranks
from torch import nn

import runtime
from runtime import Accelerator, operations
from runtime.operations import load, save

Pair = namedtuple("Pair", "a b")  # noqa: PYI024  the untyped kind, too
TREE = {"x": torch.tensor([1.5, 2.5]), "y": (Pair(torch.tensor([[1], [2]]), "text"),)}


def between(folder):
    """No accelerator: the first call joins the processes that the environment describes."""
    rank = int(os.environ["RANK"])
    assert runtime.gather(torch.tensor(rank)).tolist() == [0, 1]
    assert runtime.reduce(torch.tensor([1.0, rank])).tolist() == [1, 0.5]
    assert runtime.reduce({"n": rank + 1}, "sum") == {"n": 3}
    assert runtime.gather_object([rank]) == [0, 1]
    assert runtime.pad_across_processes(torch.ones(rank + 1)).tolist() == [1, float(rank)]
    assert runtime.copy_tensor_to_devices(None if rank else torch.arange(3)).tolist() == [0, 1, 2]
    torch.manual_seed(rank)
    own = torch.Generator().manual_seed(rank)
    runtime.synchronize_rng_states(["torch", "generator"], own)
    drawn = runtime.gather(torch.stack([torch.rand(1)[0], torch.rand(1, generator=own)[0]]).reshape(1, 2))
    assert torch.equal(drawn[0], drawn[1])
    path = os.path.join(folder, "state.pt")
    save({"rank": torch.tensor(rank)}, path)
    runtime.wait_for_everyone()
    assert load(path)["rank"] == 0
    return True


def test_processes_are_joined_by_the_first_call(tmp_path):
    assert run_ranks(between, 2, str(tmp_path)) == [True, True]


def test_containers_keep_their_form():
    sliced = runtime.slice_tensors(TREE, slice(0, 1))
    assert sliced["x"].tolist() == [1.5]
    assert isinstance(sliced["y"][0], Pair)
    assert sliced["y"][0].b == "text"
    joined = runtime.concatenate([{"x": torch.ones(2), "y": [torch.zeros(1)]}] * 2)
    assert joined["x"].tolist() == [1, 1, 1, 1]
    assert joined["y"][0].tolist() == [0, 0]
    assert runtime.concatenate(["text"]) == "text"
    assert runtime.listify(TREE) == {"x": [1.5, 2.5], "y": (([[1], [2]], "text"),)}
    assert runtime.listify(torch.ones(1, dtype=torch.bfloat16)) == [1.0]
    assert runtime.find_batch_size(TREE) == 2
    halves = runtime.convert_to_fp32({"a": torch.ones(1, dtype=torch.float16), "b": torch.tensor(1)})
    assert (halves["a"].dtype, halves["b"].dtype) == (torch.float32, torch.int64)
    moved = runtime.send_to_device(TREE | {"kept": torch.ones(1)}, "meta", skip_keys="kept")
    assert (moved["x"].device.type, moved["kept"].device.type) == ("meta", "cpu")
    assert moved["y"][0].a.device.type == "meta"
    kinds = {"kind": torch.Tensor, "deep": [{"kept": torch.ones(1)}]}
    assert runtime.send_to_device(kinds, "meta", skip_keys=["kept"]) is kinds  # nothing had to move
    doubled = runtime.recursively_apply(lambda number, factor: number * factor, {"a": 2, "b": "x"}, 3, test_type=is_int)
    assert doubled == {"a": 6, "b": "x"}


def test_a_tensor_of_the_main_process_comes_to_the_device_and_not_to_where_messages_lie(monkeypatch):
    here = SimpleNamespace(device=torch.device("meta"))  # messages lie on the CPU
    monkeypatch.setattr(operations, "PartialState", lambda: here)
    monkeypatch.setattr(operations.collectives, "broadcast_object", lambda world, item: torch.ones(1))
    assert runtime.copy_tensor_to_devices(None).device.type == "meta"


def is_int(value):
    return isinstance(value, int)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: runtime.concatenate(["a", "b"]), TypeError, "joins tensors, and got a str"),
        (lambda: runtime.find_batch_size([]), ValueError, "an empty list has no batch size"),
        (lambda: runtime.find_batch_size(["a"]), TypeError, "this is a str"),
        (lambda: runtime.recursively_apply(is_int, ["a"], error_on_other_type=True), TypeError, "is_int takes"),
        (lambda: runtime.synchronize_rng_state("npu"), ValueError, "rng_type='npu'.*cuda, generator, torch"),
        (lambda: runtime.synchronize_rng_state("generator"), ValueError, "needs the generator"),
        (runtime.copy_tensor_to_devices, TypeError, "got a NoneType"),
        (lambda: runtime.extract_model_from_parallel(nn.Linear(1, 1), recursive=True), ValueError, "recursive=True"),
    ],
)
def test_what_cannot_be_done_is_named(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_variables_are_given_back(monkeypatch):
    monkeypatch.setenv("OLD", "1")
    with runtime.patch_environment(old=2, new="x"):
        assert (os.environ["OLD"], os.environ["NEW"]) == ("2", "x")
    assert "NEW" not in os.environ
    with pytest.raises(KeyError), runtime.patch_environment(old=3, new="x"):
        raise KeyError
    assert os.environ["OLD"] == "1"
    assert "NEW" not in os.environ


def test_models_come_out_of_their_wrappers():
    model = nn.Linear(1, 1)
    assert runtime.extract_model_from_parallel(nn.DataParallel(model)) is model
    prepared = Accelerator(cpu=True, mixed_precision="bf16").prepare(model)
    assert "forward" in vars(prepared)
    assert "forward" not in vars(runtime.extract_model_from_parallel(prepared, keep_fp32_wrapper=False))
    assert not runtime.is_compiled_module(model)
