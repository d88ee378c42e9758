"""What mixed precision does to a model's forward, and the gradient scaler to steps."""

from __future__ import annotations

import copy
import pickle
from collections import namedtuple
from dataclasses import dataclass
from types import MethodType
from typing import Any

import pytest
import torch
from torch import nn

from runtime import Accelerator, AutocastKwargs
from runtime.accumulation import Accumulation
from runtime.data.passes import Passes
from runtime.errors import PrecisionError
from runtime.handlers import GradScalerKwargs
from runtime.optimizer import following, hold_back
from runtime.precision import Fp16, in_float32

Pair = namedtuple("Pair", "a b")  # noqa: PYI024  the untyped kind, too


@dataclass(frozen=True)
class Output:
    logits: Any
    name: str = "x"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.seen = self.layer(x)
        return self.seen


def fp16_on_cpu(**scaling):
    return Fp16(torch.device("cpu"), AutocastKwargs(), GradScalerKwargs(**scaling))


def test_fp16_on_the_cpu_computes_in_full_precision():
    with pytest.warns(UserWarning, match="needs a GPU: computing in full precision"):
        accelerator = Accelerator(cpu=True, mixed_precision="fp16")
    model = accelerator.prepare(Net())
    output = model(torch.randn(2, 4))

    assert model.seen.dtype is output.dtype is torch.float32
    assert accelerator.mixed_precision == "fp16"
    assert not accelerator.scaler.is_enabled()
    assert accelerator.scaler.state_dict() == {}


def test_bf16_computes_in_bf16_and_gives_float32():
    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    model = accelerator.prepare(Net())
    output = model(torch.randn(2, 4))

    assert model.seen.dtype is torch.bfloat16
    assert output.dtype is torch.float32
    assert accelerator.scaler is None


def test_without_mixed_precision_the_model_is_untouched():
    model = Net()
    assert Accelerator(cpu=True).prepare(model) is model
    assert "forward" not in model.__dict__


def test_autocast_follows_the_precision():
    x = torch.randn(2, 2)
    with Accelerator(cpu=True).autocast():
        assert (x @ x).dtype is torch.float32
    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    with accelerator.autocast():
        assert (x @ x).dtype is torch.bfloat16
    with accelerator.autocast(AutocastKwargs(enabled=False)):
        assert (x @ x).dtype is torch.float32


def test_a_deep_copy_of_a_prepared_model_runs_its_own_weights():
    model = Accelerator(cpu=True, mixed_precision="bf16").prepare(Net())
    average = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in average.parameters():
            parameter.zero_()

    assert average(torch.randn(2, 4)).abs().sum() == 0
    assert average.seen.dtype is torch.bfloat16
    assert model(torch.randn(2, 4)).abs().sum() > 0


def test_a_prepared_model_can_be_pickled_and_restored():
    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    model = accelerator.prepare(Net())
    again = pickle.loads(pickle.dumps(model))  # noqa: S301

    assert set(again.state_dict()) == {"layer.weight", "layer.bias"}
    restored = accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    assert restored is model
    restored(torch.randn(2, 4))
    assert restored.seen.dtype is torch.float32


@torch.no_grad()
@pytest.mark.parametrize("is_copied", [False, True])
def test_a_forward_that_the_script_has_put_on_the_model_is_run_and_comes_back(is_copied):
    def doubled(self, x):
        return 2 * Net.forward(self, x)

    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    plain = Net()
    plain.forward = MethodType(doubled, plain)
    model = accelerator.prepare(copy.deepcopy(plain))
    x = torch.randn(2, 4)
    assert torch.allclose(model(x), plain(x), atol=0.1)
    other = copy.deepcopy(model) if is_copied else model
    other.layer.weight.mul_(3)
    plain.layer.weight.mul_(3)
    assert torch.equal(accelerator.unwrap_model(other, keep_fp32_wrapper=False)(x), plain(x))


def test_a_forward_that_is_the_method_of_another_object_stays_so():
    model, other = nn.Identity(), Net()
    model.forward = other.forward
    prepared = Accelerator(cpu=True, mixed_precision="bf16").prepare(model)
    prepared(torch.randn(2, 4))
    assert other.seen.dtype is torch.bfloat16


def test_outputs_of_any_container_come_back_in_float32():
    half = torch.ones(2, dtype=torch.bfloat16)
    result = in_float32({"a": [half, (half, 3)], "b": Pair(half, None), "c": Output(half)})

    assert result["a"][0].dtype is result["a"][1][0].dtype is torch.float32
    assert result["b"].a.dtype is torch.float32
    assert type(result["c"]) is Output
    assert result["c"].logits.dtype is torch.float32
    whole = [torch.ones(2), torch.ones(2, dtype=torch.int64)]
    assert in_float32(whole) is whole


def prepared_fp16(**scaling):
    model, precision = nn.Linear(2, 1), fp16_on_cpu(**scaling)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hold_back(optimizer, precision, Accumulation(1, Passes(0)))
    return model, precision, optimizer


def test_scaler_skips_a_step_that_is_not_finite_and_lowers_the_scale():
    model, precision, optimizer = prepared_fp16(init_scale=8.0)
    before = model.weight.clone()
    precision.backward(model(torch.full((1, 2), float("inf"))).sum())
    optimizer.step()

    assert optimizer.step_was_skipped
    assert torch.equal(model.weight, before)
    assert precision.scaler.get_scale() == 4.0

    optimizer.zero_grad()
    precision.backward(model(torch.ones(1, 2)).sum())
    precision.unscale([optimizer])
    precision.unscale([optimizer])
    assert torch.equal(model.weight.grad, torch.ones(1, 2))
    optimizer.step()
    assert not optimizer.step_was_skipped
    assert torch.allclose(model.weight, before - 0.1)


def test_scaler_is_updated_once_when_two_optimizers_step():
    precision = fp16_on_cpu(init_scale=4.0, growth_interval=1)
    models = [nn.Linear(2, 1), nn.Linear(2, 1)]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in models]
    for optimizer in optimizers:
        hold_back(optimizer, precision, Accumulation(1, Passes(0)))
    for expected in (8.0, 16.0):
        precision.backward(sum(m(torch.ones(1, 2)).sum() for m in models))
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        assert precision.scaler.state_dict()["scale"] == expected


def test_gradients_are_unscaled_once_for_each_step():
    with pytest.warns(UserWarning, match="needs a GPU"):
        accelerator = Accelerator(cpu=True, mixed_precision="fp16")
    accelerator._precision = fp16_on_cpu(init_scale=8.0)  # as on a GPU
    model = nn.Linear(2, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for unscale in (
        accelerator.unscale_gradients,
        lambda: accelerator.unscale_gradients(optimizer),
        lambda: accelerator.unscale_gradients([optimizer]),
    ):
        accelerator.backward(model(torch.ones(1, 2)).sum())
        assert torch.equal(model.weight.grad, torch.full((1, 2), 8.0))
        unscale()
        assert torch.equal(model.weight.grad, torch.ones(1, 2))
        assert accelerator.clip_grad_norm_([model.weight], 10.0) == torch.tensor(2.0).sqrt()
        optimizer.step()
        optimizer.zero_grad()


def test_gradients_that_two_optimizers_were_made_for_are_unscaled_once():
    with pytest.warns(UserWarning, match="needs a GPU"):
        accelerator = Accelerator(cpu=True, mixed_precision="fp16")
    accelerator._precision = fp16_on_cpu(init_scale=8.0)  # as on a GPU
    model = accelerator.prepare(nn.Linear(2, 1))
    for _ in range(2):  # a training that begins again with a new optimizer
        optimizer = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=0.0))
        accelerator.backward(model(torch.ones(1, 2)).sum())
        accelerator.clip_grad_norm_(model.parameters(), 10.0)
        assert torch.equal(model.weight.grad, torch.ones(1, 2))
        optimizer.step()
        optimizer.zero_grad()


def test_scaler_refuses_closures():
    _, _, optimizer = prepared_fp16()
    with pytest.raises(PrecisionError, match="closure"):
        optimizer.step(lambda: torch.tensor(0.0))


def test_scheduler_waits_while_steps_are_skipped():
    model, precision, optimizer = prepared_fp16()
    plain = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    scheduler = following(plain, [optimizer], Accumulation(1, Passes(0)), times=1)
    for value, rate in ((float("nan"), 0.1), (1.0, 0.05)):
        precision.backward(model(torch.full((1, 2), value)).sum())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        assert optimizer.param_groups[0]["lr"] == rate


def test_gradients_that_are_clipped_after_each_backward_are_scaled_again_before_more_is_added():
    model, precision, optimizer = prepared_fp16(init_scale=8.0)
    for expected in (0.5, 1.0):
        precision.backward(0.5 * model(torch.ones(1, 2)).sum())
        precision.unscale([optimizer])
        assert torch.equal(model.weight.grad, torch.full((1, 2), expected))
    precision.backward(model(torch.ones(1, 2)).sum())
    assert torch.equal(model.weight.grad, torch.full((1, 2), 16.0))
    before = model.weight.clone()
    optimizer.step()
    assert torch.allclose(model.weight, before - 0.2)


def test_what_was_not_finite_when_it_was_clipped_is_found_at_the_step():
    model, precision, optimizer = prepared_fp16(init_scale=8.0)
    for value in (float("inf"), 1.0):
        precision.backward(model(torch.full((1, 2), value)).sum())
        precision.unscale([optimizer])
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    assert optimizer.step_was_skipped
