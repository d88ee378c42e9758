"""Batches that are filled up to one size: the rows that fill them up never count, and nothing is compiled for them."""

from __future__ import annotations

import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler, TensorDataset

from runtime import Accelerator, DataLoaderConfiguration, skip_first_batches
from runtime.errors import ConfigurationError

SIZES = (3, 4, 13, 22)
BATCH = 4


class Stream(IterableDataset):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        return iter(zip(*self.data.tensors, strict=True))


class Chunks(DataLoader):
    """A loader with an iteration of its own."""

    def __iter__(self):
        for start in range(0, len(self.dataset), self.batch_size):
            yield [t[start : start + self.batch_size] for t in self.dataset.tensors]


class Sorted(BatchSampler):
    """A batch sampler that the runtime knows nothing of."""


def data(size):
    made = torch.Generator().manual_seed(size)
    return TensorDataset(torch.randn(size, 5, generator=made), torch.randint(0, 3, (size,), generator=made))


LOADERS = {
    "in order": lambda of: DataLoader(of, BATCH),
    "shuffled": lambda of: DataLoader(of, BATCH, shuffle=True),
    "without the last": lambda of: DataLoader(of, BATCH, drop_last=True),
    "workers that stay": lambda of: DataLoader(of, BATCH, num_workers=1, persistent_workers=True),
    "own batches": lambda of: DataLoader(of, batch_sampler=Sorted(SequentialSampler(of), BATCH, drop_last=False)),
    "stream": lambda of: DataLoader(Stream(of), BATCH),
    "own loader": lambda of: Chunks(of, BATCH),
}


def accelerator_with(**options):
    return Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**options))


def evaluated(accelerator, kind, size):
    """What an evaluation gathers, and the shapes that it saw."""
    torch.manual_seed(size)
    loader = accelerator.prepare(LOADERS[kind](data(size)))
    rows, found, names, counted = set(), [], [], 0
    with torch.no_grad():
        for x, y in loader:
            rows.add(x.shape[0])
            found.append(accelerator.gather_for_metrics({"x": x, "y": y}))
            names += accelerator.gather_for_metrics([str(int(label)) for label in y])
            if accelerator.config.pad_batches:
                counted += int(accelerator.reduce(accelerator.batch_mask.sum()))
    joined = {name: torch.cat([batch[name] for batch in found]) if found else None for name in ("x", "y")}
    lengths = [len(batch["y"]) for batch in found]
    return {**joined, "lengths": lengths, "names": names}, rows, counted


def all_evaluated(**options):
    accelerator = accelerator_with(**options)
    kinds = [kind for kind in LOADERS if kind != "workers that stay"]
    return {(kind, size): evaluated(accelerator, kind, size) for kind in kinds for size in SIZES}


@pytest.fixture(scope="module")
def plain():
    return all_evaluated()


def assert_same(own, expected):
    for name in ("x", "y"):
        if expected[name] is None:
            assert own[name] is None
        else:
            torch.testing.assert_close(own[name], expected[name], rtol=0, atol=0)
    assert (own["lengths"], own["names"]) == (expected["lengths"], expected["names"])


def all_filled():
    return all_evaluated(pad_batches=True)


@pytest.mark.parametrize(("world", "rows_each"), [(1, 4), (2, 2), (3, 2)])
def test_an_evaluation_counts_every_sample_once_in_batches_of_one_size(plain, world, rows_each):
    for results in [all_filled()] if world == 1 else run_ranks(all_filled, world):
        for case, (own, rows, counted) in results.items():
            expected = plain[case][0]
            assert_same(own, expected)
            assert rows == ({rows_each} if expected["lengths"] else set()), case
            assert counted == sum(expected["lengths"])


def test_workers_that_stay_fill_up_too():
    own, rows, _ = evaluated(accelerator_with(pad_batches=True), "workers that stay", 13)
    assert_same(own, evaluated(accelerator_with(), "in order", 13)[0])
    assert rows == {BATCH}


def trained(batch, pads, split):
    """The parameters after two epochs over 22 samples, by a loss that leaves out what does not count."""
    accelerator = accelerator_with(pad_batches=pads, split_batches=split)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))
    loader = DataLoader(data(22), batch, shuffle=True)
    net, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1), loader)
    rows = set()
    for _ in range(2):
        for x, y in loader:
            rows.add(len(x))
            losses = nn.functional.cross_entropy(net(x), y, reduction="none")
            if pads:
                mask = accelerator.batch_mask
                assert mask.dtype == torch.bool
                loss = (losses * mask).sum() / mask.sum().clamp(min=1)
            else:
                loss = losses.mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    accelerator.end_training()
    return [p.detach().clone() for p in accelerator.unwrap_model(net).parameters()], rows


@pytest.mark.parametrize(
    ("world", "split", "batch", "rows"),
    [(1, False, 8, 8), (2, True, 8, 4), (2, False, 4, 4), (3, True, 8, 3), (3, False, 7, 7)],
)
def test_a_training_with_the_mask_is_that_of_the_batches_that_were_not_filled_up(world, split, batch, rows):
    """Also where processes have nothing that counts: 22 samples are three batches of 7 and one sample."""
    expected, _ = trained(batch if split else batch * world, pads=False, split=False)
    found = [trained(batch, True, split)] if world == 1 else run_ranks(trained, world, batch, True, split)
    for own, seen in found:
        assert seen == {rows}
        for one, other in zip(own, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=2e-7)


class Counting:
    """A backend that runs the graph as it is, and keeps how many it was given."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, graph, examples):
        self.graphs += 1
        return graph


def compiled_graphs(pads):
    """How many graphs a training and an evaluation of 13 samples in batches of 4 make."""
    torch._dynamo.reset()
    accelerator = accelerator_with(pad_batches=pads, split_batches=True)
    net = nn.Linear(5, 3)
    backends = Counting(), Counting()
    learn, look = (
        torch.compile(lambda x, y: nn.functional.cross_entropy(net(x), y, reduction="none"), backend=backend)
        for backend in backends
    )
    training, evaluation = accelerator.prepare(DataLoader(data(13), BATCH), DataLoader(data(13), BATCH))
    for _ in range(2):
        for x, y in training:
            learn(x, y).mean().backward()
        with torch.no_grad():
            for x, y in evaluation:
                look(x, y)
    accelerator.end_training()
    return [backend.graphs for backend in backends]


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("world", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_last_short_batch_is_not_compiled(world):
    counts = {pads: run_ranks(compiled_graphs, world, pads, is_fresh=True) for pads in (False, True)}
    assert counts[True] == [[1, 1]] * world
    assert counts[False][0] == [2, 2], "else this test shows nothing"


class Drawing(Dataset):
    """Draws a random number for every sample that is read."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return torch.rand(2) + index


def test_nothing_is_read_or_drawn_for_what_fills_up():
    def seen(**options):
        accelerator = accelerator_with(**options)
        torch.manual_seed(4)
        loader = accelerator.prepare(DataLoader(Drawing(), BATCH, shuffle=True))
        return [accelerator.gather_for_metrics(batch) for _ in range(2) for batch in loader], torch.rand(1)

    (own, next_own), (expected, next_expected) = seen(pad_batches=True), seen()
    torch.testing.assert_close(own, expected, rtol=0, atol=0)
    assert next_own == next_expected


def test_what_fills_up_is_the_last_row_and_what_has_no_rows_stays():
    def collate(samples):
        return {"x": torch.stack(samples), "scale": torch.tensor(2.0), "classes": torch.arange(7), "names": ["a"]}

    accelerator = accelerator_with(pad_batches=True)
    batches = list(accelerator.prepare(DataLoader(torch.arange(6.0), BATCH, collate_fn=collate)))
    assert batches[1]["x"].tolist() == [4.0, 5.0, 5.0, 5.0]
    assert (batches[1]["scale"].item(), len(batches[1]["classes"]), batches[1]["names"]) == (2.0, 7, ["a"])


def test_an_epoch_that_goes_on_in_the_middle():
    accelerator = accelerator_with(pad_batches=True)
    loader = accelerator.prepare(DataLoader(data(10), BATCH))
    masks = [accelerator.batch_mask.tolist() for _ in skip_first_batches(loader, 1)]
    assert masks == [[True] * 4, [True, True, False, False]]


def test_without_the_option_the_loader_is_iterated_as_it_is():
    loader = DataLoader(data(10), BATCH)
    assert type(iter(accelerator_with().prepare(loader))) is type(iter(loader))


def test_a_mask_is_only_there_in_a_loop_with_the_option():
    for accelerator in (accelerator_with(), accelerator_with(pad_batches=True)):
        with pytest.raises(ConfigurationError, match="pad_batches=True"):
            _ = accelerator.batch_mask
    accelerator = accelerator_with()
    for _ in accelerator.prepare(DataLoader(data(3), BATCH)):
        with pytest.raises(ConfigurationError, match="in a loop over a prepared loader"):
            _ = accelerator.batch_mask


class Unequal:
    """Batches of several sizes."""

    def __iter__(self):
        return iter([[0, 1], [2, 3, 4], [5]])

    def __len__(self):
        return 3


def test_what_cannot_be_filled_up_is_refused_with_the_way_out():
    accelerator = accelerator_with(pad_batches=True)
    with pytest.raises(ConfigurationError, match=r"no fixed size.*Give the batch sampler that attribute"):
        accelerator.prepare(DataLoader(data(6), batch_sampler=Unequal()))
    with pytest.raises(ConfigurationError, match="no fixed size"):
        accelerator.prepare(DataLoader(data(6), batch_size=None))
    columns = DataLoader(data(6), BATCH, collate_fn=lambda samples: torch.stack([x for x, _ in samples], dim=1))
    with pytest.raises(ConfigurationError, match=r"should have 4 rows has tensors of 5 rows.*Have collate_fn"):
        list(accelerator.prepare(columns))
    two = Stream(TensorDataset(torch.arange(5)))
    with pytest.raises(ConfigurationError, match=r"should have 4 rows has tensors of 3, 4 rows"):
        list(accelerator.prepare(DataLoader(two, BATCH, collate_fn=lambda s: (torch.zeros(3), torch.zeros(len(s))))))
    with pytest.raises(ConfigurationError, match="no tensors with rows"):
        list(accelerator.prepare(DataLoader(two, BATCH, collate_fn=lambda _: ["a"])))


def shared_already():
    of = data(8)
    sampler = torch.utils.data.DistributedSampler(of, num_replicas=2, rank=0)
    try:
        accelerator_with(pad_batches=True).prepare(DataLoader(of, BATCH, sampler=sampler))
    except ConfigurationError as error:
        return str(error)
    return None


def test_a_sampler_that_shares_out_is_refused_on_two_processes():
    for message in run_ranks(shared_already, 2):
        assert "drop the sampler" in message
