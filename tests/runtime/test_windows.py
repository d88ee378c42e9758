"""How windows of micro-steps end, gradients that are averaged later than they are computed, and local SGD."""

from __future__ import annotations

from contextlib import suppress

import pytest
import torch
from ranks import run_ranks
from shards import needs_shards
from torch import nn
from torch.utils.data import DataLoader

from runtime import Accelerator, GradientAccumulationPlugin, LocalSGD
from runtime.errors import ConfigurationError, PrepareError, UnsupportedArgument


def steps_of(plugin, size=5, epochs=2, **options):
    """Per micro-step of a loss whose gradient is 1: whether it ended a window, and the gradient then."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_plugin=plugin, **options)
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(torch.ones(size, 1), batch_size=1))
    seen = []
    for _ in range(epochs):
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).sum())
                seen.append((accelerator.sync_gradients, round(accelerator.unwrap_model(model).weight.grad.item(), 6)))
                optimizer.step()
                optimizer.zero_grad()
    return seen


def test_the_end_of_a_pass_ends_a_window():
    window = [(False, 0.5), (True, 1.0)]
    assert steps_of(GradientAccumulationPlugin(num_steps=2)) == [*window, *window, (True, 0.5)] * 2


def test_windows_go_on_over_the_end_of_a_pass():
    plugin = GradientAccumulationPlugin(num_steps=2, sync_with_dataloader=False)
    assert steps_of(plugin) == [(False, 0.5), (True, 1.0)] * 5


@pytest.mark.parametrize("size", [4, 5, 6, 7])
def test_a_short_window_counts_as_long_as_it_is(size):
    seen = steps_of(GradientAccumulationPlugin(num_steps=4, exact_last_window=True), size)
    assert {gradient for is_due, gradient in seen if is_due} == {1.0}
    assert len([is_due for is_due, _ in seen if is_due]) == 2 * (1 if size == 4 else 2)


def test_the_windows_of_two_models_are_measured_by_themselves():
    plugin = GradientAccumulationPlugin(num_steps=2, exact_last_window=True)
    accelerator = Accelerator(cpu=True, gradient_accumulation_plugin=plugin)
    one, two = accelerator.prepare(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    for batch in accelerator.prepare(DataLoader(torch.ones(3, 1), batch_size=1)):
        for model in (one, two):
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).sum())
    assert (one.weight.grad.item(), two.weight.grad.item()) == (2.0, 2.0)  # of two windows: 1/2 + 1/2, and 1


def test_what_contradicts_and_what_has_no_effect_is_refused(monkeypatch):
    with pytest.raises(ConfigurationError, match="gradient_accumulation_steps=3 and gradient_accumulation_plugin"):
        Accelerator(
            cpu=True,
            gradient_accumulation_steps=3,
            gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=3),
        )
    with pytest.raises(UnsupportedArgument, match="no effect in Accelerate"):
        GradientAccumulationPlugin(num_steps=2, adjust_scheduler=True)
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4")
    plugin = GradientAccumulationPlugin(sync_each_batch=True)
    assert Accelerator(cpu=True, gradient_accumulation_plugin=plugin).gradient_accumulation_steps == 4


def test_random_streams_can_only_be_those_of_the_loaders():
    assert Accelerator(cpu=True, rng_types=["generator"]).num_processes == 1
    with pytest.raises(UnsupportedArgument, match="rng_types"):
        Accelerator(cpu=True, rng_types=["torch", "generator"])


@pytest.mark.parametrize(("precision", "is_low"), [("no", False), ("bf16", True)])
def test_native_amp_says_whether_a_low_precision_is_in_use(precision, is_low):
    assert Accelerator(cpu=True, mixed_precision=precision).native_amp is is_low


def test_the_precision_cannot_be_changed_later():
    """It was taken, and changed nothing."""
    accelerator = Accelerator(cpu=True)
    with pytest.raises(AttributeError, match=r"Pass it to Accelerator\(mixed_precision='bf16'\)"):
        accelerator.mixed_precision = "bf16"
    assert accelerator.mixed_precision == "no"


def test_local_sgd_on_one_process_changes_nothing():
    accelerator = Accelerator(cpu=True)
    model = accelerator.prepare(nn.Linear(1, 1))
    with LocalSGD(accelerator, model, local_sgd_steps=2) as local:
        local.step()
    assert not local.enabled
    for steps in (0, 2.5, "2"):
        with pytest.raises(ConfigurationError, match=f"local_sgd_steps={steps!r} is not a whole number"):
            LocalSGD(accelerator, model, local_sgd_steps=steps)


def gradients_in_each_batch():
    """The gradient after each micro-step, exchanged in each; the loss of rank r has the gradient r + 1."""
    plugin = GradientAccumulationPlugin(num_steps=2, sync_each_batch=True)
    accelerator = Accelerator(cpu=True, gradient_accumulation_plugin=plugin)
    model = accelerator.prepare(nn.Linear(1, 1, bias=False))
    seen = []
    for _ in range(2):
        with accelerator.accumulate(model):
            accelerator.backward((model(torch.ones(1)) * (accelerator.process_index + 1)).sum())
        seen.append(model.module.weight.grad.item())
    return seen


def averaged_later(accelerator):
    """Two forwards under no_sync, whose gradients are averaged in the second backward."""
    model = accelerator.prepare(nn.Linear(1, 1, bias=False))
    with accelerator.no_sync(model):
        losses = [model(torch.full((1,), accelerator.process_index + 1.0)).sum() for _ in range(2)]
    accelerator.backward(losses[0])
    before = model.module.weight.grad.item()
    with accelerator.trigger_sync_in_backward(model):
        accelerator.backward(losses[1])
    after = model.module.weight.grad.item()
    model.zero_grad()
    accelerator.backward(model(torch.full((1,), accelerator.process_index + 1.0)).sum())  # as ever
    return before, after, model.module.weight.grad.item()


def trained_locally(accelerator):
    """The weight after each step of one batch norm and one weight whose gradient is -(rank + 1); lr 1, mean of two."""
    model = nn.Sequential(nn.BatchNorm1d(1, affine=False), nn.Linear(1, 1, bias=False))
    nn.init.zeros_(model[1].weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model, optimizer = accelerator.prepare(model, optimizer)
    weights = []
    with LocalSGD(accelerator, model, local_sgd_steps=2) as local:
        for _ in range(3):
            model(torch.tensor([[1.0], [3.0]]) * accelerator.process_index)  # statistics of its own
            accelerator.backward(-(accelerator.process_index + 1) * model.module[1].weight.sum())
            optimizer.step()
            optimizer.zero_grad()
            local.step()
            weights.append(model.module[1].weight.item())
    end = model.module[1].weight.item(), round(model.module[0].running_mean.item(), 6)
    if accelerator.is_main_process:
        with suppress(KeyError), LocalSGD(accelerator, model, local_sgd_steps=2):
            raise KeyError  # a body that raises waits for nobody
    return weights, end


def sharded_is_refused():
    from runtime import FullyShardedDataParallelPlugin

    accelerator = Accelerator(cpu=True, fsdp_plugin=FullyShardedDataParallelPlugin())
    model = accelerator.prepare(nn.Linear(2, 2))
    try:
        LocalSGD(accelerator, model, 2)
    except PrepareError as error:
        return str(error)
    return ""


def on_two_processes():
    each = gradients_in_each_batch()
    accelerator = Accelerator(cpu=True)
    return each, averaged_later(accelerator), trained_locally(accelerator)


def test_on_two_processes():
    found = run_ranks(on_two_processes, 2)
    for rank, (each, later, (weights, end)) in enumerate(found):
        assert each == [0.75, 1.5]  # the mean of 1 and 2, halved, once and twice
        own = rank + 1.0
        assert later == (own, 3.0, 1.5)  # own sums 2 and 4 become their mean; then a step as ever
        assert weights == [own, 3.0, 3.0 + own]
        assert end == (4.5, 0.271)  # 0.38 and 0 after two steps, so 0.19; then 0.371 and 0.171


@needs_shards
def test_shards_do_not_train_locally():
    for refusal in run_ranks(sharded_is_refused, 2):
        assert "is sharded" in refusal


def test_a_loader_that_is_left_waiting_at_its_end_ends_no_windows_of_another():
    """Iterators that a script goes on with by hand take turns; the one that was begun last counted for all of them."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    model, training, validation = accelerator.prepare(
        nn.Linear(1, 1), DataLoader(torch.ones(8, 1), batch_size=1), DataLoader(torch.ones(1, 1))
    )
    batches, others, seen = iter(training), iter(validation), []
    for step in range(8):
        if step == 1:
            next(others)
        next(batches)
        with accelerator.accumulate(model):
            seen.append(accelerator.sync_gradients)
    assert seen == [False, False, False, True] * 2


def left_open(**options):
    """A loop is left in the middle of a window, and another one trains without accumulation."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(torch.ones(3, 1)))
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch).sum())
            optimizer.step()
        optimizer.step()  # of the same loop: Accelerate's examples have it here, too
        break
    before = model.weight.item()
    for batch in loader:
        if "sync_gradients" in options:
            accelerator.sync_gradients = options["sync_gradients"]
        accelerator.backward(model(batch).sum())
        optimizer.step()
    return model.weight.item() - before


def test_steps_that_an_open_window_leaves_out_are_told():
    with pytest.warns(UserWarning, match="a window of accumulate\\(\\) is not complete") as told:
        assert left_open() == 0.0
    assert len([one for one in told if "accumulate" in str(one.message)]) == 1


def test_a_loop_that_says_that_it_steps_does_so():
    assert left_open(sync_gradients=True) != 0.0
