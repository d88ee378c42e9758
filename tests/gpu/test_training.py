"""One process on a GPU computes what the plain program computes there, to the last bit."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from on_gpu import DEVICE, ON_CPU, Net, accelerator, converted, parts, plain
from torch import nn

from runtime import DistributedType, GradScalerKwargs, ProfileKwargs, find_executable_batch_size, release_memory
from runtime.memory import clear_device_cache

SCALING = GradScalerKwargs(growth_interval=2)
CASES = [
    *itertools.product(("no", "bf16", "fp16"), ("sgd", "adamw", "fused"), (1,), (False, True)),
    *itertools.product(("no", "bf16", "fp16"), ("adamw",), (2,), (False, True)),
]


@pytest.mark.parametrize(("precision", "optimizer", "window", "clips"), CASES)
def test_losses_rates_scales_and_weights_are_those_of_the_plain_program(precision, optimizer, window, clips):
    mine = converted(
        accelerator(mixed_precision=precision, gradient_accumulation_steps=window, kwargs_handlers=[SCALING]),
        precision,
        optimizer,
        window,
        clips,
    )
    expected = plain(precision, optimizer, window, clips)
    assert {name: mine[name] for name in ("losses", "rates", "scale")} == {
        name: expected[name] for name in ("losses", "rates", "scale")
    }
    assert all(torch.equal(mine["state"][key], value) for key, value in expected["state"].items())
    assert precision != "fp16" or expected["scale"] != 65536.0, "nothing has overflown, and nothing has grown"


@pytest.mark.parametrize(("precision", "window"), [("no", 1), ("no", 2), ("bf16", 1), ("fp16", 1), ("fp16", 2)])
def test_losses_and_weights_are_those_of_accelerate(precision, window):
    accelerate = pytest.importorskip("accelerate")
    if precision == "fp16" and ON_CPU:
        pytest.skip("accelerate does not scale on a CPU")
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()
    scaling = accelerate.utils.GradScalerKwargs(growth_interval=2)
    other = accelerate.Accelerator(
        cpu=DEVICE.type == "cpu",
        mixed_precision=precision,
        gradient_accumulation_steps=window,
        kwargs_handlers=[scaling],
    )
    expected = converted(other, precision, "adamw", window, clips=True)
    own = accelerator(mixed_precision=precision, gradient_accumulation_steps=window, kwargs_handlers=[SCALING])
    mine = converted(own, precision, "adamw", window, clips=True)
    assert mine["losses"] == expected["losses"]
    assert all(torch.equal(mine["state"][key], value) for key, value in expected["state"].items())


def test_an_accelerator_says_where_it_is():
    own = accelerator()
    assert own.device.type == DEVICE.type
    assert own.distributed_type is DistributedType.NO
    model = own.prepare(Net())
    assert {tensor.device.type for tensor in (*model.parameters(), *model.buffers())} == {DEVICE.type}


def test_an_optimizer_with_a_state_follows_its_model_to_the_gpu():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    own = accelerator()
    model, optimizer = own.prepare(model, optimizer)
    own.backward(model(torch.ones(1, 3, device=own.device)).sum())
    optimizer.step()
    assert {state["exp_avg"].device.type for state in optimizer.state.values()} == {DEVICE.type}


def test_two_optimizers_share_one_update_of_the_scale():
    own = accelerator(mixed_precision="fp16", kwargs_handlers=[GradScalerKwargs(init_scale=8.0, growth_interval=1)])
    models = [own.prepare(nn.Linear(2, 1)) for _ in range(2)]
    optimizers = [own.prepare(torch.optim.SGD(model.parameters(), lr=0.1)) for model in models]
    x = torch.ones(4, 2, device=own.device)
    for expected, factor, skipped in ((16.0, 1.0, False), (8.0, 1e30, True), (16.0, 1.0, False)):
        own.backward(sum(model(x).mean() for model in models) * factor)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        assert [optimizer.step_was_skipped for optimizer in optimizers] == [skipped] * 2
        assert own.optimizer_step_was_skipped is skipped
        assert own.scaler.get_scale() == expected


def test_autocast_computes_in_the_precision_that_was_asked_for():
    for precision, dtype in (("no", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)):
        own = accelerator(mixed_precision=precision)
        x = torch.ones(2, 2, device=own.device)
        with own.autocast():
            assert (x @ x).dtype is dtype


@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")
def test_a_compiled_model_trains_as_the_plain_one_does():
    torch.use_deterministic_algorithms(False)  # what inductor makes is not
    model, make, loader, _ = parts("adamw")
    model.drop.p = 0.0
    eager, compiled = copy.deepcopy(model), model
    own = accelerator(dynamo_backend="inductor")
    batches = [(x.to(DEVICE), y.to(DEVICE)) for x, y in loader]
    found = []
    for plain_model, one in ((eager, accelerator()), (compiled, own)):
        candidate, optimizer = one.prepare(plain_model, make(plain_model.parameters()))
        for x, y in batches[:-1]:
            loss = nn.functional.cross_entropy(candidate(x), y)
            one.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            found.append(loss.detach())
    half = len(found) // 2
    assert torch.allclose(torch.stack(found[:half]), torch.stack(found[half:]), rtol=1e-2)


def test_a_batch_size_that_fits_is_found_and_the_memory_comes_back():
    if DEVICE.type == "cpu":
        pytest.skip("a CPU gives what it does not have")
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.02)  # others may be on this GPU
    before, tried = torch.cuda.memory_reserved(), []

    def smaller():
        return tried[-1] // 4

    @find_executable_batch_size(starting_batch_size=1 << 22, reduce_batch_size_fn=smaller)
    def train(batch_size):
        tried.append(batch_size)
        return torch.empty(batch_size, 1 << 18, device=DEVICE)  # a MiB for each

    result = train()
    assert len(tried) > 1
    assert len(result) == tried[-1]
    torch.cuda.set_per_process_memory_fraction(1.0)
    result = release_memory(result)
    assert torch.cuda.memory_allocated() < (tried[-1] << 20)
    clear_device_cache()  # of what the caller has held until then
    assert torch.cuda.memory_reserved() <= before


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")
def test_a_profile_sees_the_gpu():
    own = accelerator(kwargs_handlers=[ProfileKwargs()])
    model = own.prepare(Net())
    with own.profile() as profile:
        model(torch.randn(4, 1, 8, 8, device=own.device)).sum().item()
    kinds = {event.device_type.name for event in profile.events()}
    assert kinds >= ({"CPU"} if DEVICE.type == "cpu" else {"CPU", "CUDA"})
