"""Evaluation sees every sample exactly once, in the original batches, on any number of processes."""

from __future__ import annotations

import warnings

import pytest
import torch
from ranks import run_ranks
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from runtime import Accelerator, DataLoaderConfiguration

BATCH_SIZES = (1, 3, 8)
ALL_SIZES = range(1, 41)
SOME_SIZES = (3, 4, 8, 13, 25)


class Stream(IterableDataset):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        return iter(zip(*self.data, strict=True))


class Reversed(torch.utils.data.Sampler):
    """A sampler the runtime knows nothing of, over a part of the data."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return iter(range(self.size - 1, self.size // 3, -1))

    def __len__(self):
        return self.size - 1 - self.size // 3


class Chunks(DataLoader):
    """A loader with an iteration of its own."""

    def __iter__(self):
        for start in range(0, len(self.dataset), self.batch_size):
            yield [t[start : start + self.batch_size] for t in self.dataset.tensors]


def data_of(size):
    generator = torch.Generator().manual_seed(size)
    return torch.randn(size, 4, generator=generator), torch.randint(0, 3, (size,), generator=generator)


LOADERS = {
    "in order": lambda data, batch: DataLoader(TensorDataset(*data), batch_size=batch),
    "shuffled": lambda data, batch: DataLoader(TensorDataset(*data), batch_size=batch, shuffle=True),
    "drop last": lambda data, batch: DataLoader(TensorDataset(*data), batch_size=batch, shuffle=True, drop_last=True),
    "generator": lambda data, batch: DataLoader(
        TensorDataset(*data), batch_size=batch, shuffle=True, generator=torch.Generator().manual_seed(5)
    ),
    "own sampler": lambda data, batch: DataLoader(
        TensorDataset(*data), batch_size=batch, sampler=Reversed(len(data[0]))
    ),
    "stream": lambda data, batch: DataLoader(Stream(data), batch_size=batch),
    "own loader": lambda data, batch: Chunks(TensorDataset(*data), batch_size=batch),
}


def evaluate(accelerator, loader, weights, *, has_length):
    """What a script prints after an evaluation: everything that must not depend on the number of processes."""
    correct, count, loss_sum, batch_means, predictions, sizes, objects = 0, 0, 0.0, [], [], [], []
    with torch.no_grad():
        for x, y in loader:
            output = x @ weights
            losses = torch.nn.functional.cross_entropy(output, y, reduction="none")
            gathered = accelerator.gather_for_metrics({"output": output, "target": y, "loss": losses})
            names = accelerator.gather_for_metrics([f"{int(value)}" for value in y])
            correct += (gathered["output"].argmax(1) == gathered["target"]).sum().item()
            count += len(gathered["target"])
            loss_sum += gathered["loss"].sum().item()
            batch_means.append(gathered["loss"].mean().item())
            predictions += gathered["output"].argmax(1).tolist()
            sizes.append(len(gathered["target"]))
            objects += names
    return {
        "correct": correct, "count": count, "loss": loss_sum, "means": batch_means, "predictions": predictions,
        "sizes": sizes, "objects": objects, "length": len(loader) if has_length else None,
    }  # fmt: skip


def evaluate_all():
    accelerator = Accelerator(cpu=True)
    weights = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    results = {}
    for kind, make in LOADERS.items():
        for size in ALL_SIZES if kind in ("in order", "shuffled") else SOME_SIZES:
            for batch_size in BATCH_SIZES:
                loader = accelerator.prepare(make(data_of(size), batch_size))
                torch.manual_seed(size)
                results[kind, size, batch_size] = evaluate(accelerator, loader, weights, has_length=kind != "stream")
    return results


@pytest.fixture(scope="module")
def one_process():
    return evaluate_all()


@pytest.mark.parametrize("world", [2, pytest.param(3, marks=pytest.mark.long)])
def test_evaluation_is_that_of_one_process_when_shared_out(world, one_process):
    """Sums, counts, means of batch means, orders of predictions and numbers of steps do not depend on the world."""
    for results in run_ranks(evaluate_all, world):
        for case, expected in one_process.items():
            assert (case, results[case]) == (case, expected)


def arrays():
    """What is gathered of arrays of NumPy, one of them of a class that tensors do not have."""
    found = []
    for fill in (False, True):
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(pad_batches=fill))
        with torch.no_grad():
            for x, y in accelerator.prepare(DataLoader(TensorDataset(*data_of(5)), batch_size=3)):
                rows, texts = accelerator.gather_for_metrics(x.numpy()), y.numpy().astype(str)
                lists = accelerator.gather_for_metrics([row.tolist() for row in x.numpy()])
                found.append((type(rows).__name__, rows.tolist(), lists, rows.tolist() == lists))
                accelerator.gather_for_metrics(texts)
    return found


def test_arrays_are_joined_as_tensors_are():
    expected = arrays()
    assert all(each[0] == "ndarray" and each[3] for each in expected)
    assert run_ranks(arrays, 2) == [expected] * 2


def whole_batches_of_all():
    """The batches that each process is given whole, what it gathers of them, and the lengths beside."""
    found = {}
    for dispatch in (False, True):
        settings = DataLoaderConfiguration(dispatch_batches=dispatch)
        accelerator = Accelerator(cpu=True, dataloader_config=settings)
        for kind, make in LOADERS.items():
            for size in (3, 13):
                loader = accelerator.prepare(make(data_of(size), 4))
                torch.manual_seed(size)
                given = []
                for x, y in accelerator.whole_batches(loader):
                    given.append((x.tolist(), y.tolist(), accelerator.gather_for_metrics(y).tolist()))
                has_length = kind != "stream"
                lengths = (len(accelerator.whole_batches(loader)), len(loader)) if has_length else None
                drawn = None if dispatch else torch.rand(1).item()  # by the main process alone
                found[dispatch, kind, size] = given, lengths, drawn
    single = accelerator.prepare(DataLoader(TensorDataset(*data_of(5)), batch_size=None, shuffle=True))
    torch.manual_seed(0)
    passes = Accelerator(cpu=True).whole_batches(single)
    found["samples"] = [y.item() for _, y in passes], len(passes)
    return found


def test_whole_batches_are_given_to_every_process():
    expected = whole_batches_of_all()
    for given, lengths, _ in (each for key, each in expected.items() if key != "samples"):
        assert all(labels == gathered for _, labels, gathered in given)
        assert lengths in (None, (len(given), len(given)))
    for found in run_ranks(whole_batches_of_all, 2):
        for case, one in expected.items():
            assert (case, found[case]) == (case, one)


def test_whole_batches_of_a_loader_that_is_not_prepared():
    loader = DataLoader(TensorDataset(*data_of(10)), batch_size=4)
    assert Accelerator().whole_batches(loader) is loader


def trained_by_mode():
    """The batches that this process trains on in eval mode, asked for or not, and the lengths beside."""
    accelerator = Accelerator(cpu=True)
    loader, model = accelerator.prepare(DataLoader(TensorDataset(*data_of(16)), batch_size=4), torch.nn.Linear(4, 3))
    model.eval()
    asked = accelerator.training_batches(loader)
    given = [y.tolist() for _, y in asked]
    return given, len(asked), len(loader), len([*loader])


def test_a_training_in_eval_mode_is_dealt_whole_batches():
    given, *lengths = trained_by_mode()
    assert lengths == [4, 4, 4]
    shares = run_ranks(trained_by_mode, 2)
    for rank, (own, *counts) in enumerate(shares):
        assert own == given[rank::2]
        assert counts == [2, 2, 4]  # the last pass, which nobody asked for, is one of an evaluation


def test_training_batches_of_a_loader_that_is_not_prepared():
    loader = DataLoader(TensorDataset(*data_of(10)), batch_size=4)
    assert Accelerator().training_batches(loader) is loader


def resumed_in_eval_mode():
    """The batches behind the first one of a training in eval mode, in that pass and in one that goes on from there."""
    accelerator = Accelerator(cpu=True)
    loader, model = accelerator.prepare(DataLoader(TensorDataset(*data_of(32)), batch_size=4), torch.nn.Linear(4, 3))
    model.eval()
    steps = iter(accelerator.training_batches(loader))
    next(steps)
    state = loader.state_dict()
    rest = [y.tolist() for _, y in steps]
    loader.load_state_dict(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        left = accelerator.skip_first_batches(loader, 1)
        again = [y.tolist() for _, y in accelerator.training_batches(left)]
    return rest, again


def test_a_training_in_eval_mode_goes_on_where_it_was():
    for rest, again in run_ranks(resumed_in_eval_mode, 2):
        assert len(rest) == 3
        assert again == rest


def lengths_by_mode():
    """What loaders say of their steps before the first pass and after an evaluation."""
    accelerator = Accelerator()
    data = TensorDataset(*data_of(32))
    shuffled = DataLoader(data, batch_size=4, shuffle=True)
    shuffled, ordered, model = accelerator.prepare(shuffled, DataLoader(data, batch_size=4), torch.nn.Linear(4, 3))
    model.eval()
    said = [len(shuffled), len(ordered)]
    with torch.no_grad():
        said.append(len(shuffled))
        for _ in shuffled:
            pass
    said += [len(shuffled), accelerator.steps_per_epoch(shuffled), accelerator.steps_per_epoch(ordered)]
    with torch.enable_grad():
        model.train()
        for _ in shuffled:
            said += [len(shuffled), accelerator.steps_per_evaluation(shuffled)]
            break
    return said


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        # in eval mode one that shuffles is taken for one to train on; without gradients, and after its evaluation, for
        # what it is; the steps of a training do not change
        (1, [8, 8, 8, 8, 8, 8, 8, 8]),
        (2, [4, 8, 8, 8, 4, 4, 4, 8]),
    ],
)
def test_steps_of_a_training_are_not_those_of_an_evaluation(world, expected):
    assert run_ranks(lengths_by_mode, world) == [expected] * world


def test_steps_of_a_loader_that_is_not_prepared():
    loader = DataLoader(TensorDataset(*data_of(10)), batch_size=4)
    assert Accelerator().steps_per_epoch(loader) == Accelerator().steps_per_evaluation(loader) == 3


def samples_in_a_list():
    a = Accelerator(cpu=True)
    loader = a.prepare(DataLoader(torch.arange(12.0), batch_size=4))
    told = []
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for batch in loader:
            a.gather_for_metrics([batch, 2 * batch])  # as many as rows, by chance: each has the rows
            a.gather_for_metrics([batch.sum(), batch.mean()])
            told.append(len(caught))
            a.gather_for_metrics([{"boxes": row.repeat(3)} for row in batch])
            a.gather_for_metrics([row.repeat(3) for row in batch], use_gather_object=True)
    return told, [str(each.message) for each in caught]


def test_samples_in_a_list_that_are_joined_by_their_place_are_told_once():
    for rank, (told, said) in enumerate(run_ranks(samples_in_a_list, 2)):
        assert told == ([0, 1, 1] if rank == 0 else [0, 0, 0])
        assert ["use_gather_object=True" in each for each in said] == [True] * (rank == 0)
