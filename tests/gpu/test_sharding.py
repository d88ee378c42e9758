"""Sharded models (FSDP2) on a GPU: alone in a group of one, and on two processes that share it."""

from __future__ import annotations

import socket

import pytest
import torch
from on_gpu import DEVICE, ON_CPU, accelerator, on_two
from shards import Net
from torch import nn

from runtime import FullyShardedDataParallelPlugin, GradScalerKwargs

STEPS, SIZE = 5, 12
BY_CLASS = {"auto_wrap_policy": "transformer_based_wrap", "transformer_cls_names_to_wrap": ["Block"]}
# options of the plugin, precision, micro-steps, tolerance
CASES = {
    "by class": (BY_CLASS, "no", 1, 1e-5),
    "windows": (BY_CLASS, "no", 2, 1e-5),
    "by size": ({"auto_wrap_policy": "SIZE_BASED_WRAP", "min_num_params": 40}, "no", 1, 1e-5),
    "kept gathered": ({**BY_CLASS, "reshard_after_forward": False}, "no", 1, 1e-5),
    "offload": ({**BY_CLASS, "cpu_offload": True}, "no", 1, 1e-5),
    "computed again": ({**BY_CLASS, "activation_checkpointing": True}, "no", 2, 1e-5),
    "bf16": (BY_CLASS, "bf16", 1, 0.05),
    "fp16": (BY_CLASS, "fp16", 1, 0.05),
    "fp16, offload": ({**BY_CLASS, "cpu_offload": True}, "fp16", 2, 0.05),
}


def train(options, precision, window, folder=None):
    """Losses, norms and the whole state; with a folder, the losses again after a checkpoint that is loaded."""
    plugin = None if options is None else FullyShardedDataParallelPlugin(**options)
    own = accelerator(
        fsdp_plugin=plugin,
        mixed_precision=precision,
        gradient_accumulation_steps=window,
        kwargs_handlers=[GradScalerKwargs(init_scale=1024.0)],
    )
    torch.manual_seed(0)
    model = Net(16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model, optimizer = own.prepare(model, optimizer)
    batches = torch.randn(STEPS, SIZE, 5)

    def epoch():
        losses, norms = [], []
        for x in batches:
            mine = x.chunk(own.num_processes)[own.process_index].to(own.device)
            with own.accumulate(model):
                loss = (model(mine) - 1).square().mean()
                own.backward(loss)
                if own.sync_gradients:
                    norms.append(float(own.clip_grad_norm_(model.parameters(), 0.5)))
                optimizer.step()
                optimizer.zero_grad()
            losses.append(float(own.reduce(loss.detach(), "mean")))
        return losses, norms

    first = epoch()
    state = {key: value.float().cpu() for key, value in own.get_state_dict(model).items()}
    result = {"first": first, "state": state, "sharded": own._strategy.is_sharded(model) if plugin else False}
    if folder is not None:
        result["again"] = []
        for behind in (False, True):
            own.save_state(f"{folder}/{behind}", async_save=behind)
            expected = epoch()
            own.wait_for_save()
            own.load_state(f"{folder}/{behind}")
            result["again"].append(epoch() == expected)
    own.end_training()
    return result


def in_a_group_of_one(options, precision, window, folder=None):
    """As `train`, of a script that has made a process group for itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    backend = "gloo" if ON_CPU else "cpu:gloo,cuda:nccl"
    torch.distributed.init_process_group(backend, init_method=address, rank=0, world_size=1)
    try:
        return train(options, precision, window, folder)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def check(found, expected, tolerance):
    assert found["sharded"]
    for mine, other in zip(found["first"], expected["first"], strict=True):
        assert torch.allclose(torch.tensor(mine), torch.tensor(other), rtol=tolerance, atol=tolerance)
    for key, value in expected["state"].items():
        assert torch.allclose(found["state"][key], value, rtol=tolerance, atol=max(tolerance, 2e-5)), key


@pytest.mark.parametrize("name", CASES)
def test_one_gpu_computes_what_the_plain_model_does(name):
    options, precision, window, tolerance = CASES[name]
    check(in_a_group_of_one(options, precision, window), train(None, precision, window), tolerance)


@pytest.mark.parametrize("name", CASES)
def test_two_processes_compute_what_one_does(name):
    options, precision, window, tolerance = CASES[name]
    first, second = on_two(train, options, precision, window)
    assert first["first"] == second["first"]
    assert second["state"] == {}
    check(first, train(None, precision, window), tolerance)


def one_overflows():
    """Whether each step was skipped, and the scale after it; in the second one process has too large a loss."""
    own = accelerator(
        fsdp_plugin=FullyShardedDataParallelPlugin(**BY_CLASS),
        mixed_precision="fp16",
        kwargs_handlers=[GradScalerKwargs(init_scale=1024.0)],
    )
    torch.manual_seed(0)
    model = Net(16)
    model, optimizer = own.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01))
    seen = []
    for step in range(3):
        loss = model(torch.randn(4, 5, device=own.device)).square().mean()
        own.backward(loss * (1e30 if step == own.process_index == 1 else 1.0))
        optimizer.step()
        optimizer.zero_grad()
        seen.append((own.optimizer_step_was_skipped, own.scaler.get_scale()))
    own.end_training()
    return seen


def test_a_step_that_overflows_in_one_part_is_skipped_by_all():
    assert on_two(one_overflows) == [[(False, 1024.0), (True, 512.0), (False, 512.0)]] * 2


@pytest.mark.parametrize("kind", ["FULL_STATE_DICT", "SHARDED_STATE_DICT"])
def test_a_sharded_training_is_saved_and_goes_on(tmp_path, kind):
    options = {**BY_CLASS, "state_dict_type": kind}
    assert in_a_group_of_one(options, "no", 1, str(tmp_path / "one"))["again"] == [True, True]
    assert [found["again"] for found in on_two(train, options, "no", 1, str(tmp_path / "two"))] == [[True, True]] * 2


def test_memory_of_the_weights_is_what_one_process_has_a_part_of():
    if DEVICE.type == "cpu":
        pytest.skip("a CPU does not count")
    (whole,) = {in_a_group_of_one_bytes()}
    first, second = on_two(bytes_of_weights)
    assert first == second
    assert first < 0.6 * whole


def bytes_of_weights():
    own = accelerator(fsdp_plugin=FullyShardedDataParallelPlugin())
    before = torch.cuda.memory_allocated()
    model = own.prepare(nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]))
    taken = torch.cuda.memory_allocated() - before
    del model
    own.end_training()
    return taken


def in_a_group_of_one_bytes():
    before = torch.cuda.memory_allocated()
    model = accelerator().prepare(nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]))
    taken = torch.cuda.memory_allocated() - before
    del model
    return taken
