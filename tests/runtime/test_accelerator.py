"""On one process: nothing is added, nothing is drawn, the same objects come back."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from runtime import Accelerator, DataLoaderConfiguration, DistributedType, set_seed
from runtime.devices import moved
from runtime.errors import ConfigurationError, PrepareError


def parts(augment=False):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 30)
    data = TensorDataset(torch.randn(29, 4), torch.randn(29, 1))
    collate = (lambda rows: [torch.stack(c) + torch.rand(1) for c in zip(*rows, strict=True)]) if augment else None
    return model, optimizer, scheduler, DataLoader(data, batch_size=3, shuffle=True, collate_fn=collate)


def plain_loop():
    torch.manual_seed(1)
    model, optimizer, scheduler, loader = parts(augment=True)
    losses = []
    for _ in range(3):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            losses.append(loss.item())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    return losses, [p.detach().clone() for p in model.parameters()]


def converted_loop(**arguments):
    torch.manual_seed(1)
    accelerator = Accelerator(cpu=True, **arguments)
    model, optimizer, scheduler, loader = accelerator.prepare(*parts(augment=True))
    losses = []
    for _ in range(3):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(x), y)
                losses.append(loss.item())
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
    return losses, [p.detach().clone() for p in model.parameters()]


def test_a_converted_loop_is_bit_identical():
    """Also with an augmentation that shares its generator with dropout: nothing is drawn early or twice."""
    losses, parameters = plain_loop()
    ours, own = converted_loop()

    assert ours == losses
    assert all(torch.equal(a, b) for a, b in zip(own, parameters, strict=True))


def test_an_accumulating_loop_is_bit_identical():
    """Windows of 3 over 10 batches; the last batch ends a window, as `or i + 1 == len(loader)` does by hand."""
    torch.manual_seed(1)
    model, optimizer, _, loader = parts()
    for _ in range(2):
        for i, (x, y) in enumerate(loader):
            (nn.functional.mse_loss(model(x), y) / 3).backward()
            if (i + 1) % 3 == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
    torch.manual_seed(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
    ours, own, _, prepared = accelerator.prepare(*parts())
    for _ in range(2):
        for x, y in prepared:
            with accelerator.accumulate(ours):
                accelerator.backward(nn.functional.mse_loss(ours(x), y))
                own.step()
                own.zero_grad()

    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), model.parameters(), strict=True))


def test_prepare_gives_the_same_objects_in_the_same_order():
    accelerator = Accelerator(cpu=True)
    model, optimizer, scheduler, loader = parts()
    a, b, c, d, e = accelerator.prepare(scheduler, loader, "text", model, optimizer)

    assert (a, c, d, e) == (scheduler, "text", model, optimizer)
    assert isinstance(b, DataLoader)
    for name in ("dataset", "sampler", "batch_sampler", "batch_size", "collate_fn", "num_workers"):
        assert getattr(b, name) is getattr(loader, name)
    assert len(b) == len(loader)
    assert type(iter(b)) is type(iter(loader))
    assert b.total_batch_size == 3
    assert b.total_dataset_length == 29
    b.set_epoch(1)
    assert accelerator.prepare(loader) is b
    assert accelerator.prepare(b) is b
    assert accelerator.prepare() == ()
    assert accelerator.optimizer_step_was_skipped is optimizer.step_was_skipped is False
    assert optimizer.step(lambda: model(torch.ones(2, 4)).sum()) is not None


def test_a_subclass_of_the_loader_keeps_its_class_and_iteration():
    class Own(DataLoader):
        def __iter__(self):
            yield from ("a", "b", self.batch_size)

        def describe(self):
            return "own"

    loader = Accelerator(cpu=True).prepare(Own([1, 2], batch_size=2))
    assert isinstance(loader, Own)
    assert list(loader) == ["a", "b", 2]
    assert loader.describe() == "own"


def test_containers_are_refused():
    model, optimizer, _, loader = parts()
    with pytest.raises(PrepareError, match=r"got a list with a DataLoader at position 1. .*\*loaders"):
        Accelerator(cpu=True).prepare(model, [loader])
    with pytest.raises(ConfigurationError, match="1 entries for 2 objects"):
        Accelerator(cpu=True).prepare(model, optimizer, device_placement=[True])


def test_optimizers_that_wait_keep_their_class_methods_and_hooks():
    class Own(torch.optim.SGD):
        def average(self):
            return "average"

    model = nn.Linear(2, 1)
    raw = Own(model.parameters(), lr=0.1)
    before = torch.optim.lr_scheduler.StepLR(raw, 1, 0.5)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    optimizer = accelerator.prepare(raw)
    after = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    hooked = []
    optimizer.register_step_post_hook(lambda *_: hooked.append(1))

    assert optimizer is raw
    assert optimizer.average() == "average"
    for i in range(4):
        with accelerator.accumulate(model):
            accelerator.backward(model(torch.ones(1, 2)).sum())
            value = optimizer.step(lambda: torch.tensor(5.0))
            assert value == (torch.tensor(5.0) if i % 2 else None)
            optimizer.zero_grad()
            assert (model.weight.grad is None) is bool(i % 2)
    assert len(hooked) == 2
    before.step()
    after.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.025)
    assert torch.optim.Optimizer.__getstate__(optimizer).keys() == {"defaults", "state", "param_groups"}


def test_the_state_of_an_optimizer_follows_a_model_that_is_prepared_later():
    class Elsewhere(nn.Linear):
        def to(self, *_):
            return self.double()  # another dtype stands for another device

    model = Elsewhere(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    accelerator = Accelerator(cpu=True)
    optimizer = accelerator.prepare(optimizer)
    model = accelerator.prepare(model)
    assert {state["momentum_buffer"].dtype for state in optimizer.state.values()} == {torch.float64}
    assert accelerator.prepare(optimizer) is optimizer


def test_a_prepared_scheduler_is_a_scheduler_with_the_same_state():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    optimizer, scheduler = accelerator.prepare(optimizer, plain)
    loss = model(torch.ones(1, 2)).sum()
    for _ in range(4):
        with accelerator.accumulate(model):
            accelerator.backward(loss, retain_graph=True)
            optimizer.step()
            scheduler.step()

    assert isinstance(scheduler, torch.optim.lr_scheduler.StepLR)
    assert scheduler.last_epoch == plain.last_epoch == 2
    assert scheduler.get_last_lr() == [0.025]
    assert scheduler.state_dict().keys() == torch.optim.lr_scheduler.StepLR(optimizer, 1).state_dict().keys()
    unstepped = Accelerator(cpu=True, gradient_accumulation_steps=2, step_scheduler_with_optimizer=False)
    assert unstepped.prepare(plain) is plain


def test_steps_set_after_an_optimizer_was_prepared_are_refused():
    accelerator = Accelerator(cpu=True)
    accelerator.gradient_accumulation_steps = 2
    accelerator.gradient_accumulation_steps = 1
    accelerator.prepare(parts()[1])
    with pytest.raises(PrepareError, match="Set it before prepare"):
        accelerator.gradient_accumulation_steps = 2
    with pytest.raises(ConfigurationError):
        accelerator.gradient_accumulation_steps = 0
    with pytest.raises(ConfigurationError, match=r"2\.5 is not a whole number of at least 1"):
        accelerator.gradient_accumulation_steps = 2.5


def test_state_of_one_process():
    accelerator = Accelerator(cpu=True)
    assert accelerator.device == torch.device("cpu")
    assert (accelerator.num_processes, accelerator.process_index, accelerator.local_process_index) == (1, 0, 0)
    assert accelerator.is_main_process
    assert accelerator.is_local_main_process
    assert accelerator.is_last_process
    assert accelerator.sync_gradients
    assert accelerator.distributed_type == DistributedType.NO == "NO"
    assert accelerator.mixed_precision == "no"
    accelerator.wait_for_everyone()
    with accelerator.main_process_first(), accelerator.local_main_process_first():
        pass
    with accelerator.no_sync(nn.Linear(1, 1)):
        pass
    assert accelerator.on_main_process(lambda x: x + 1)(1) == 2
    accelerator.end_training()


def fail_inside(loader):
    for _ in loader:
        raise ValueError("in the loop")


def test_a_pass_is_over_when_its_loop_is():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    outer, inner = accelerator.prepare(parts()[3], parts()[3])
    passes = accelerator._passes
    for i, _ in enumerate(outer):
        first = passes.current
        for _ in inner:
            assert passes.current is not first
            break
        assert passes.current is first
        with pytest.raises(ValueError, match="in the loop"):
            fail_inside(inner)
        assert first.is_last is (i == 9)
    assert passes.current is None


def test_free_memory_forgets_and_uncovers():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, _, _, loader = parts()
    optimizer = torch.optim.SGD(model.parameters())
    prepared = accelerator.prepare(model, optimizer, loader)
    assert "step" in optimizer.__dict__
    assert accelerator.free_memory(*prepared) == [None, None, None]
    assert "step" not in optimizer.__dict__
    assert not accelerator._models
    assert accelerator.prepare(loader) is not prepared[2]


def test_objects_without_state_cannot_be_registered():
    accelerator = Accelerator(cpu=True)
    accelerator.register_for_checkpointing(nn.Linear(1, 1), parts()[2])
    with pytest.raises(ConfigurationError, match="3: no state_dict"):
        accelerator.register_for_checkpointing(3)
    assert len(accelerator._custom_objects) == 2


def test_unwrap_takes_wrappers_off():
    accelerator = Accelerator(cpu=True)
    model = nn.Linear(1, 1)
    compiled = torch.compile(model)
    assert accelerator.unwrap_model(nn.DataParallel(model)) is model
    assert accelerator.unwrap_model(compiled) is compiled
    assert accelerator.unwrap_model(compiled, keep_torch_compile=False) is model
    assert set(accelerator.get_state_dict(compiled)) == {"weight", "bias"}
    around = torch.compile(nn.DataParallel(model))
    assert set(accelerator.unwrap_model(around).state_dict()) == set(compiled.state_dict())
    assert accelerator.unwrap_model(around).in_features == 1
    assert accelerator.unwrap_model(around, keep_torch_compile=False) is model


def test_batches_of_any_shape_are_moved():
    @dataclass
    class Batch:
        x: torch.Tensor
        name: str

    class Moves:
        def to(self, device):
            self.at = device
            return self

    meta = torch.device("meta")
    packed = nn.utils.rnn.pack_sequence([torch.ones(2)])
    batch = defaultdict(list, {"a": [torch.ones(1), 3], "b": Batch(torch.ones(1), "n"), "c": Moves(), "d": packed})
    got = moved(batch, meta)
    assert got["a"][0].device == got["b"].x.device == got["d"].data.device == meta
    assert got["b"].name == "n"
    assert got["c"].at == meta
    assert got["new"] == []
    untouched = [1, ("a", None)]
    assert moved(untouched, meta) is untouched


def test_a_seed_of_the_process_goes_by_its_rank_before_the_processes_are_joined(monkeypatch):
    for name, value in {"WORLD_SIZE": "4", "RANK": "3"}.items():
        monkeypatch.setenv(name, value)
    set_seed(4, device_specific=True)
    assert torch.initial_seed() == 7


def test_a_function_that_slices_batches_is_refused():
    with pytest.raises(ConfigurationError, match="slice_fn_for_dispatch"):
        Accelerator(cpu=True).prepare_data_loader(DataLoader([1]), slice_fn_for_dispatch=print)


def test_set_seed_seeds_everything():
    import random

    import numpy as np

    set_seed(4)
    first = random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002, S311
    set_seed(4, device_specific=True)
    assert first == (random.random(), np.random.rand(), torch.rand(1).item())  # noqa: NPY002, S311


def test_importing_the_package_loads_no_torch():
    code = "import sys, runtime; assert 'torch' not in sys.modules; runtime.Accelerator; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_of_the_package_list_what_there_is():
    import runtime

    with pytest.raises(AttributeError, match="It has: Accelerator"):
        _ = runtime.Accelerater
    assert set(runtime.__all__) <= set(dir(runtime))
    for name in runtime.__all__:
        assert getattr(runtime, name).__name__ == name


def test_configuration_defaults_are_those_of_accelerate():
    configuration = DataLoaderConfiguration()
    assert (configuration.split_batches, configuration.even_batches, configuration.non_blocking) == (False, True, False)


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        ("dataloader_config", "DataLoaderConfiguration"),
        ("gradient_accumulation_plugin", "GradientAccumulationPlugin"),
        ("project_config", "ProjectConfiguration"),
        ("fsdp_plugin", "FullyShardedDataParallelPlugin"),
        ("parallelism_config", "ParallelismConfig"),
        ("dynamo_plugin", "TorchDynamoPlugin"),
    ],
)
def test_a_dictionary_in_the_place_of_a_configuration_is_named(argument, kind):
    with pytest.raises(ConfigurationError, match=rf"{argument}=\{{'a': 1\}} is no {kind}. Pass {argument}={kind}\("):
        Accelerator(cpu=True, **{argument: {"a": 1}})
