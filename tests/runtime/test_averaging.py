"""Gradients that do not come in one backward for each forward: N processes have those of one."""

import warnings

import pytest
import torch
from ranks import run_ranks
from torch import nn

from runtime import Accelerator, DistributedDataParallelKwargs
from runtime.errors import BackwardError

SIZE, STEPS = 12, 3


def two_losses(accelerator, model, x):
    output = model(x)
    accelerator.backward(output.mean(), retain_graph=True)
    accelerator.backward((output**2).mean())


def both_forwards_first(accelerator, model, x):
    first, second = model(x), model(2 * x)
    accelerator.backward(first.mean())
    accelerator.backward((second**2).mean())


def penalty_alone(accelerator, model, x):
    accelerator.backward(model(x).mean())
    x = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    accelerator.backward(((gradient.norm(dim=1) - 1) ** 2).mean())


def parts_alone(accelerator, model, x):
    hidden = accelerator.unwrap_model(model)[0](x)
    accelerator.backward(hidden.mean())
    accelerator.backward((model(x) ** 2).mean())


def released_late(accelerator, model, x):
    accelerator.steps_seen = getattr(accelerator, "steps_seen", 0) + 1
    for parameter in accelerator.unwrap_model(model)[0].parameters():
        parameter.requires_grad_(accelerator.steps_seen != 2)
    accelerator.backward((model(x) ** 2).mean())


STEPPING = {f.__name__: f for f in (two_losses, both_forwards_first, penalty_alone, parts_alone, released_late)}


def train(name):
    accelerator = Accelerator(cpu=True, kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    data = torch.randn(STEPS, SIZE, 4)
    for x in data:
        optimizer.zero_grad()
        STEPPING[name](accelerator, model, x.chunk(accelerator.num_processes)[accelerator.process_index])
        optimizer.step()
    return [parameter.detach().tolist() for parameter in model.parameters()]


@pytest.mark.parametrize("name", STEPPING)
def test_many_processes_have_the_gradients_of_one(name):
    alone = train(name)
    for rank in run_ranks(train, 2, name):
        for mine, expected in zip(rank, alone, strict=True):
            assert torch.allclose(torch.tensor(mine), torch.tensor(expected), atol=1e-6)


class TwoHeads(nn.Module):
    """A model with two results, and a layer that is never run."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.first = nn.Linear(8, 1)
        self.second = nn.Linear(8, 1)
        self.spare = nn.Linear(8, 1)

    def forward(self, x):
        hidden = self.body(x).tanh()
        return self.first(hidden), self.second(hidden)


def first_head_first(accelerator, model, step, x):
    first, _ = model(x)
    accelerator.backward(first.mean())
    step()
    first, second = model(x)
    accelerator.backward((first**2).mean() + second.mean())


def both_heads_first(accelerator, model, step, x):
    first, second = model(x)
    accelerator.backward((first**2).mean() + second.mean())
    step()
    first, _ = model(x)  # for another model, say: these gradients are thrown away
    accelerator.backward(first.mean())
    model.zero_grad()


def both_heads_once(accelerator, model, step, x):
    both_heads_first(accelerator, model, step, x)
    first, _ = model(x)
    accelerator.backward(first.mean())


PARTIAL = {f.__name__: f for f in (first_head_first, both_heads_first, both_heads_once)}


def train_in_part(name, has_spare):
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = TwoHeads()
    for parameter in model.spare.parameters():
        parameter.requires_grad_(has_spare)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    data = torch.randn(STEPS, SIZE, 4)
    model, optimizer = accelerator.prepare(model, optimizer)

    def step():
        optimizer.step()
        optimizer.zero_grad()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for x in data:
            PARTIAL[name](accelerator, model, step, x.chunk(accelerator.num_processes)[accelerator.process_index])
            step()
    return [parameter.detach().tolist() for parameter in model.parameters()], [str(w.message) for w in told]


@pytest.mark.parametrize("has_spare", [False, True])
@pytest.mark.parametrize("name", PARTIAL)
def test_parameters_that_take_no_part_change_nothing(name, has_spare):
    alone, _ = train_in_part(name, has_spare)
    ranks = run_ranks(train_in_part, 2, name, has_spare)
    for rank, _ in ranks:
        for mine, expected in zip(rank, alone, strict=True):
            assert torch.allclose(torch.tensor(mine), torch.tensor(expected), atol=1e-6)
    (first, *more), others = ranks[0][1], ranks[1][1]
    assert "TwoHeads took no part in a backward" in first
    assert not more
    assert not others


def release(k, **options):
    """The first layer is frozen when the model is prepared, and trained from the second of three steps on."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=k, **options)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    first = model[0].requires_grad_(False)
    data = torch.randn(3, k, 8, 4)
    wrapped, optimizer = accelerator.prepare(model, torch.optim.SGD(model[2].parameters(), lr=0.1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number, window in enumerate(data):
            if number == 1:
                optimizer.add_param_group({"params": list(first.requires_grad_(True).parameters())})
            for x in window:
                with accelerator.accumulate(wrapped):
                    own = x.chunk(accelerator.num_processes)[accelerator.process_index]
                    accelerator.backward(wrapped(own).square().mean())
                    optimizer.step()
                    optimizer.zero_grad()
    return [parameter.detach().tolist() for parameter in model.parameters()], [str(w.message) for w in told]


@pytest.mark.parametrize("k", [1, 2])
def test_layers_that_are_released_after_prepare_are_averaged_too(k):
    """DistributedDataParallel leaves them out for good: the processes trained different models, without a word."""
    alone, _ = release(k)
    (first, told), (second, untold) = run_ranks(release, 2, k)
    for mine, other, expected in zip(first, second, alone, strict=True):
        assert mine == other
        assert torch.allclose(torch.tensor(mine), torch.tensor(expected), atol=1e-6)
    assert [len(told), len(untold)] == [1, 0]
    assert "Sequential were frozen when it was prepared, and are trained now" in told[0]


def release_what_cannot_adapt():
    with pytest.raises(BackwardError, match=r"were frozen when it was prepared.*Release them before prepare"):
        release(1, kwargs_handlers=[DistributedDataParallelKwargs(static_graph=True)])
    accelerator = Accelerator(cpu=True)
    model = accelerator.prepare(nn.Linear(1, 1).requires_grad_(False)).requires_grad_(True)
    with pytest.raises(BackwardError, match=r"all parameters of a Linear were frozen.*Prepare it first"):
        accelerator.backward(model(torch.ones(1, 1)).sum())


def test_where_they_cannot_be_averaged_it_is_said():
    run_ranks(release_what_cannot_adapt, 2)


def train_and_lose():
    accelerator = Accelerator(cpu=True)
    model = TwoHeads()
    model.spare.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(accelerator.process_index))
    for takes_both in (True, False, True):
        first, second = model(x)
        (first.mean() + second.mean() if takes_both else first.mean()).backward()  # the accelerator hears nothing of it
        optimizer.step()
        optimizer.zero_grad()


def test_steps_on_gradients_that_were_not_averaged_are_an_error():
    with pytest.raises(AssertionError, match="the processes hold different models"):
        run_ranks(train_and_lose, 2)


class Deep(nn.Module):
    """A model whose gradients PyTorch sends in several messages, of about 1 MB each, once it has seen them."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(512, 512) for _ in range(4)])

    def forward(self, x, left_out):
        for number, layer in enumerate(self.layers):
            x = x if number == left_out else layer(x).tanh()
        return x


def train_apart(keeps_gradients):
    """From the third step on, each half of a batch leaves out another layer."""
    accelerator = Accelerator(cpu=True, kwargs_handlers=[DistributedDataParallelKwargs(bucket_cap_mb=1)])
    torch.manual_seed(0)
    model, x = Deep(), torch.randn(5, 8, 512)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    own = [0, 1] if accelerator.num_processes == 1 else [accelerator.process_index]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step, batch in enumerate(x):
            optimizer.zero_grad(set_to_none=not keeps_gradients)
            losses = [model(batch.chunk(2)[half], 3 * half if step > 1 else -1).square().mean() for half in own]
            accelerator.backward(torch.stack(losses).mean())
            optimizer.step()
    return [p.detach().double().norm().item() for p in model.parameters()], [str(w.message) for w in told]


@pytest.mark.parametrize("keeps_gradients", [False, True])
def test_processes_that_leave_out_other_layers_later_go_on(keeps_gradients):
    """They had sent other numbers of messages, and met in different ones from then on: a crash, or an endless wait."""
    alone, _ = train_apart(keeps_gradients)
    (first, told), (second, untold) = run_ranks(train_apart, 2, keeps_gradients)
    assert first == second
    assert first == pytest.approx(alone, abs=1e-5)
    assert [len(told), len(untold)] == [1, 0]
    assert "Deep took no part in a backward" in told[0]


def train_hooked():
    accelerator = Accelerator(cpu=True, kwargs_handlers=[DistributedDataParallelKwargs(comm_hook="fp16")])
    model = accelerator.prepare(TwoHeads())
    for _ in range(2):
        first, _ = model(torch.ones(2, 4))
        accelerator.backward(first.mean())


def test_a_hook_for_gradients_rules_another_way_out():
    with pytest.raises(
        AssertionError, match=r"TwoHeads took no part.*leave out.*find_unused_parameters=True"
    ) as caught:
        run_ranks(train_hooked, 2)
    assert "finished reduction" not in str(caught.value)  # one message is enough
