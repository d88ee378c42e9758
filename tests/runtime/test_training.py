"""Training on N processes: the same samples in the same order, the same gradients, the same schedule."""

from __future__ import annotations

import copy
import pickle
from itertools import chain

import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from runtime import Accelerator, DataLoaderConfiguration

SIZE = 23


class Numbers(Dataset):
    def __init__(self, size=SIZE):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index


class Lists(Numbers):
    def __getitem__(self, indices):
        return torch.tensor(indices)


class NumberStream(IterableDataset):
    def __iter__(self):
        return iter(range(SIZE))


class ShuffledStream(IterableDataset):
    """Draws its order when the first sample is asked for."""

    def __iter__(self):
        yield from torch.randperm(SIZE).tolist()


class Odd(Sampler):
    """Draws from the global generator, like a sampler somebody wrote."""

    def __iter__(self):
        yield from (2 * torch.randperm(10) + 1).tolist()

    def __len__(self):
        return 10


class Buckets(Sampler):
    """Batches of different sizes, without a batch size."""

    def __iter__(self):
        yield from ([0, 1, 2], [3], [4, 5], [6, 7, 8, 9], [10])

    def __len__(self):
        return 5


class OwnLoop(DataLoader):
    """A loader that makes its batches itself."""

    def __iter__(self):
        for batch in super().__iter__():
            yield batch + 100


def generator():
    return torch.Generator().manual_seed(11)


LOADERS = {
    "in order": lambda: DataLoader(Numbers(), batch_size=4),
    "shuffled": lambda: DataLoader(Numbers(), batch_size=4, shuffle=True),
    "drop last": lambda: DataLoader(Numbers(), batch_size=4, shuffle=True, drop_last=True),
    "generator": lambda: DataLoader(Numbers(), batch_size=4, shuffle=True, generator=generator()),
    "replacement": lambda: DataLoader(Numbers(), batch_size=4, sampler=RandomSampler(Numbers(), True, 50)),
    "many": lambda: DataLoader(Numbers(), batch_size=4, sampler=RandomSampler(Numbers(), num_samples=50)),
    "subset": lambda: DataLoader(Numbers(), batch_size=4, sampler=SubsetRandomSampler(range(5, 22))),
    "samples of a subset": lambda: DataLoader(Numbers(), batch_size=None, sampler=SubsetRandomSampler(range(5, 22))),
    "own sampler": lambda: DataLoader(Numbers(), batch_size=4, sampler=Odd()),
    "own batches": lambda: DataLoader(Numbers(), batch_sampler=Buckets()),
    "samples": lambda: DataLoader(Numbers(), batch_size=None, shuffle=True),
    "lists": lambda: DataLoader(Lists(), batch_size=None, sampler=BatchSampler(Odd(), 3, drop_last=False)),
    "own loop": lambda: OwnLoop(Numbers(), batch_size=4, shuffle=True),
    "stream": lambda: DataLoader(NumberStream(), batch_size=4),
    "shuffled stream": lambda: DataLoader(ShuffledStream(), batch_size=4),
    "single stream": lambda: DataLoader(NumberStream(), batch_size=None),
    "workers": lambda: DataLoader(
        Numbers(),
        batch_size=4,
        shuffle=True,
        num_workers=1,
        persistent_workers=True,
        multiprocessing_context="fork",
    ),
}


def rows(batch):
    return torch.as_tensor(batch).reshape(-1).tolist()


def read_twice(kind):
    """Two epochs and a bit: the batches, the steps that len promises, and what is drawn afterwards."""
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(LOADERS[kind]())
    torch.manual_seed(3)
    epochs = []
    for _ in range(2):
        epochs += [[(rows(b), rows(accelerator.gather_for_metrics(torch.as_tensor(b)))) for b in loader]]
    for _ in loader:
        break
    drawn = torch.rand(1).item()
    assert accelerator._passes.current is None
    return epochs, len(loader) if not kind.endswith("stream") else None, drawn


def read_all():
    return {kind: read_twice(kind) for kind in LOADERS}


@pytest.mark.parametrize("world", [2, 3])
def test_training_order_is_that_of_one_process(world):
    """Batch i goes to rank i % N; rows that complete the last round do not come through gather_for_metrics.

    And the generators have been used exactly as by one process.
    """
    alone = read_all()
    together = run_ranks(read_all, world)
    for kind, (epochs, _, drawn) in alone.items():
        for number, epoch in enumerate(epochs):
            batches = [batch for batch, _ in epoch]
            if kind == "drop last":
                batches = batches[: len(batches) // world * world]
            own = [ranks[kind][0][number] for ranks in together]
            assert len({len(taken) for taken in own}) == 1, kind
            dealt = [taken[step][0] for step in range(len(own[0])) for taken in own]
            for given, expected in zip(dealt, batches, strict=False):
                assert given[: len(expected)] == expected, kind
            assert len(dealt) == -(-len(batches) // world) * world, kind
            for taken in own:
                assert list(chain.from_iterable(row for _, row in taken)) == list(chain.from_iterable(batches)), kind
        for ranks in together:
            assert ranks[kind][2] == drawn or kind == "own sampler", kind
            assert ranks[kind][1] in (None, len(ranks[kind][0][0])), kind


class Blob(nn.Module):
    def __init__(self, extra=()):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), *extra, nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


class Points(Dataset):
    def __init__(self, size):
        generator = torch.Generator().manual_seed(size)
        self.x, self.y = torch.randn(size, 3, generator=generator), torch.randn(size, 1, generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def train(split, size, batch_size, steps=1, epochs=2, extra=(), clip=None, seed=0):
    """A training loop as converted scripts have it; the parameters after it and the learning rates in it."""
    torch.manual_seed(seed)
    accelerator = Accelerator(
        cpu=True, gradient_accumulation_steps=steps, dataloader_config=DataLoaderConfiguration(split_batches=split)
    )
    model = Blob(extra).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = DataLoader(Points(size), batch_size=batch_size, shuffle=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    rates, updates = [], 0
    for _ in range(epochs):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(x.double()), y.double())
                accelerator.backward(loss)
                if clip and accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                updates += accelerator.sync_gradients
            rates.append(scheduler.get_last_lr()[0])
    state = accelerator.get_state_dict(model)
    return {name: value.clone() for name, value in state.items()}, rates, updates


def train_all(cases):
    return [train(*case) for case in cases]


def close(ours, expected):
    assert ours.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.allclose(ours[name], value, rtol=1e-10, atol=1e-12), name


SPLIT = [(True, 23, 8), (True, 17, 5), (True, 9, 4, 3), (True, 13, 1), (True, 16, 8, 1, 2, (), 0.1)]


@pytest.mark.parametrize("world", [2, 3])
def test_split_batches_train_as_one_process_does(world):
    """Also where a batch is not divisible, or smaller than the world: the gradient is that of the whole batch."""
    alone = train_all(SPLIT)
    for results in run_ranks(train_all, world, SPLIT):
        for (ours, rates, updates), (expected, expected_rates, expected_updates) in zip(results, alone, strict=True):
            close(ours, expected)
            assert (rates, updates) == (expected_rates, expected_updates)


def test_whole_batches_train_as_one_process_with_batches_of_the_world_size():
    """Two processes with batches of 4 are one with batches of 8, and the schedule runs in samples."""
    rates = [0.1, 0.05, 0.05, 0.025, 0.025, 0.0125]  # after each update: stepped twice, halved every 4 steps
    expected = one_process_with_rates([0.1, *rates[:-1]])
    for ((ours, own_rates, updates),) in run_ranks(train_all, 2, [(False, 24, 4)]):
        assert updates == 6
        assert own_rates == pytest.approx(rates)
        close(ours, expected)


def one_process_with_rates(rates):
    torch.manual_seed(0)
    model = Blob().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = DataLoader(Points(24), batch_size=8, shuffle=True)
    batches = (batch for _ in range(2) for batch in loader)
    for (x, y), rate in zip(batches, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        nn.functional.mse_loss(model(x.double()), y.double()).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.state_dict()


def test_accumulation_steps_on_the_last_batch():
    """5 batches with windows of 2: steps after 2, 4 and 5, in every epoch."""
    _, rates, updates = train(False, 10, 2, 2, 3)
    assert updates == 9
    assert len(rates) == 15


def told_a_metric():
    accelerator = Accelerator(cpu=True)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
    _, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
    rates = []
    for _ in range(5):
        scheduler.step(1.0)
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


def test_a_metric_is_counted_once_however_many_processes_have_measured_it():
    assert told_a_metric() == [1.0, 1.0, 1.0, 0.5, 0.5]
    assert run_ranks(told_a_metric, 2) == 2 * [told_a_metric()]


@pytest.mark.filterwarnings("ignore:Seems like `optimizer.step:UserWarning")  # PyTorch's, of any copy
def test_a_copy_of_a_prepared_scheduler_is_a_scheduler_of_its_own():
    """Its steps were those of the original, and it could not be pickled."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    scheduler = accelerator.prepare(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5))
    for other in (copy.deepcopy(scheduler), pickle.loads(pickle.dumps(scheduler))):  # noqa: S301
        optimizer.step()
        other.step()
        assert (type(other), other.get_last_lr()) == (torch.optim.lr_scheduler.StepLR, [0.5])
        assert (scheduler.last_epoch, optimizer.param_groups[0]["lr"]) == (0, 1.0)


def assorted():
    """What can only be seen on several processes, in one start of them."""
    accelerator = Accelerator(cpu=True)
    world, rank = accelerator.num_processes, accelerator.process_index
    torch.manual_seed(rank)  # ranks disagree about everything random

    # batch statistics, dropout, and evaluation in the middle of an epoch
    model = Blob((nn.BatchNorm1d(8), nn.Dropout(0.5)))
    optimizer = torch.optim.Adam(model.parameters())
    loader, inner = DataLoader(Points(20), batch_size=4, shuffle=True), DataLoader(Points(7), batch_size=3)
    model, optimizer, loader, inner = accelerator.prepare(model, optimizer, loader, inner)
    seen, counts = [], []
    for x, y in loader:
        seen.append(accelerator.gather_for_metrics(x))
        accelerator.backward(nn.functional.mse_loss(model(x), y))
        optimizer.step()
        optimizer.zero_grad()
        model.eval()
        for a, _ in inner:
            counts.append(len(accelerator.gather_for_metrics(model(a))))
        with torch.no_grad():
            for _ in inner:
                break
        model.train()
        seen[-1] = torch.cat([seen[-1], accelerator.gather_for_metrics(x)])
    buffers = torch.cat([b.flatten().float() for b in model.buffers()])
    parameters = torch.cat([p.detach().flatten() for p in model.parameters()])

    # a forward without gradients may run on one rank only
    if accelerator.is_main_process:
        with torch.no_grad():
            model(x)

    # frozen models, models that are wrapped already, and preparing twice
    frozen = nn.Linear(2, 2).requires_grad_(requires_grad=False)
    wrapped = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    assert accelerator.prepare(frozen) is frozen
    assert accelerator.prepare(wrapped) is wrapped
    assert accelerator.prepare(model, loader, optimizer) == (model, loader, optimizer)
    assert isinstance(accelerator.unwrap_model(model), Blob)
    assert set(accelerator.get_state_dict(model)) == set(Blob((nn.BatchNorm1d(8),)).state_dict()) - {
        name for name in Blob((nn.BatchNorm1d(8),)).state_dict() if name.startswith("layers.3")
    } | {"layers.4.weight", "layers.4.bias"}
    return {
        "rows": sum(map(len, seen)),
        "counts": counts,
        "buffers": buffers,
        "parameters": parameters,
        "frozen": frozen.weight.clone(),
        "world": world,
        "first": float(torch.rand(1)),
    }


def test_ranks_agree_although_their_generators_do_not():
    """Parameters, buffers and the order of samples are the same; random streams stay those of the ranks."""
    first, second = run_ranks(assorted, 2)

    assert first["rows"] == second["rows"] == 40  # each batch gathered twice: before and after a nested evaluation
    assert first["counts"] == second["counts"] == [3, 3, 1] * 3
    for name in ("buffers", "parameters", "frozen"):
        assert torch.equal(first[name], second[name]), name
    assert first["first"] != second["first"]


def gan():
    """Two models in turn with windows of 2: every optimizer steps once per window."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    models = [Blob().double(), Blob().double()]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    loader = accelerator.prepare(DataLoader(Points(16), batch_size=2))
    models = accelerator.prepare(*models)
    optimizers = accelerator.prepare(*optimizers)
    steps = [0, 0]
    for x, _ in loader:
        for turn, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            with accelerator.accumulate(model):
                accelerator.backward(model(x.double()).mean())
                optimizer.step()
                optimizer.zero_grad()
                steps[turn] += accelerator.sync_gradients
    return steps, [next(model.parameters()).detach().clone() for model in models]


def test_models_in_turn_have_windows_of_their_own():
    assert gan()[0] == [4, 4]
    (first, weights), (second, same) = run_ranks(gan, 2)
    assert first == second == [2, 2]
    for a, b in zip(weights, same, strict=True):
        assert torch.equal(a, b)


def sharded_already():
    accelerator = Accelerator(cpu=True)
    data = Numbers(8)
    loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data, shuffle=False))
    prepared = accelerator.prepare(loader)
    prepared.set_epoch(3)
    assert loader.sampler.epoch == 3
    return [rows(batch) for batch in prepared], len(prepared)


def test_a_loader_that_is_sharded_already_is_not_sharded_again():
    assert run_ranks(sharded_already, 2) == [([[0, 2], [4, 6]], 2), ([[1, 3], [5, 7]], 2)]


def made_for_one():
    accelerator = Accelerator(cpu=True)
    data = Numbers(8)
    loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data, num_replicas=1, rank=0, shuffle=False))
    return [rows(batch) for batch in accelerator.prepare(loader)]


def test_a_sampler_that_is_made_for_one_process_shares_nothing_out():
    assert run_ranks(made_for_one, 2) == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


def asked_of_a_pass():
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(DataLoader(Numbers(10), batch_size=2))
    batches = iter(loader)
    length = len(batches)
    next(batches)
    with torch.no_grad():
        evaluating = len(iter(loader))
    return length, len(batches), len(list(batches)), evaluating


@pytest.mark.parametrize(("ranks", "steps"), [(1, 5), (2, 3)])
def test_an_iterator_is_as_long_as_its_pass(ranks, steps):
    """As PyTorch's own: `len(iter(loader))`, whatever has been taken of it."""
    assert run_ranks(asked_of_a_pass, ranks) == [(steps, steps, steps - 1, 5)] * ranks


def uneven():
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(even_batches=False))
    loader = accelerator.prepare(DataLoader(Numbers(5), batch_size=2))
    return [rows(batch) for batch in loader], len(loader), loader.batch_size, loader.total_batch_size


def test_without_even_batches_nothing_is_repeated():
    assert run_ranks(uneven, 2) == [([[0, 1], [4]], 2, 2, 4), ([[2, 3]], 1, 2, 4)]


class Texts(OwnLoop):
    def __iter__(self):
        yield from (["a", "b", "c"], ["d", "e"])


def read_texts():
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(Texts(Numbers(5), batch_size=3))
    with torch.no_grad():
        return [(batch, accelerator.gather_for_metrics(batch)) for batch in loader]


def test_what_cannot_be_cut_is_given_to_all_and_counts_once():
    first, second = run_ranks(read_texts, 2)
    assert first == second == [(["a", "b", "c"], ["a", "b", "c"]), (["d", "e"], ["d", "e"])]


class Sparse(OwnLoop):
    def __iter__(self):
        yield from ((torch.eye(3).to_sparse(), torch.arange(3)), (torch.eye(2).to_sparse(), torch.arange(2)))


def read_sparse():
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(Sparse(Numbers(5), batch_size=3))
    with torch.no_grad():
        return [(links.to_dense().tolist(), accelerator.gather_for_metrics(nodes).tolist()) for links, nodes in loader]


def test_sparse_batches_are_given_to_all_and_count_once():
    """PyTorch takes no rows of them, and ended the run with a message about its own operators."""
    expected = [(torch.eye(size).tolist(), list(range(size))) for size in (3, 2)]
    assert run_ranks(read_sparse, 2) == [expected] * 2


def test_batches_without_a_fixed_size_have_no_total():
    accelerator = Accelerator(cpu=True)
    assert accelerator.prepare(LOADERS["own batches"]()).total_batch_size is None
    assert accelerator.prepare(LOADERS["in order"]()).total_batch_size == 4


def broken_sampler():
    accelerator = Accelerator(cpu=True)

    class Broken(Sampler):
        def __iter__(self):
            yield 0
            if accelerator.is_main_process:
                raise ValueError("no more")
            yield 1

    loader = accelerator.prepare(DataLoader(Numbers(), sampler=Broken(), batch_size=1))
    try:
        for _ in loader:
            pass
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return "nothing"


def test_a_sampler_that_fails_on_rank_0_fails_everywhere():
    first, second = run_ranks(broken_sampler, 2)
    assert first == "ValueError: no more"
    assert "the sampler failed on rank 0: ValueError('no more')" in second
