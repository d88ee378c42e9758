"""One process reads, the others are sent what is theirs: the same batches, and not one byte more than that."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from torch.utils.data import DataLoader, IterableDataset

from runtime import Accelerator, DataLoaderConfiguration

SIZE = 23
READ = []


class Source(IterableDataset):
    """Rows of a width that differs from batch to batch, as with padding to the longest."""

    def __iter__(self):
        for number in range(SIZE):
            READ.append(number)
            yield number


class Broken(IterableDataset):
    def __iter__(self):
        yield from range(4)
        raise ValueError("no more")


def padded(numbers):
    width = 1 + numbers[0] % 3
    x = torch.tensor(numbers, dtype=torch.float32).view(-1, 1).repeat(1, width)
    return {"x": x, "y": torch.tensor(numbers), "mask": torch.ones(len(numbers), dtype=torch.bool)}


def named(numbers):
    return torch.tensor(numbers), [f"{number}" for number in numbers]


def arrays(numbers):
    return {"y": torch.tensor(numbers), "ids": np.array(numbers)}


def prepared(collate_fn=padded, data=None, *, dispatch=True, **settings):
    names = ("split_batches", "use_seedable_sampler")
    config = DataLoaderConfiguration(
        dispatch_batches=dispatch, **{name: settings.pop(name) for name in names if name in settings}
    )
    accelerator = Accelerator(cpu=True, dataloader_config=config)
    loader = DataLoader(data or Source(), batch_size=4, collate_fn=collate_fn, **settings)
    return accelerator, accelerator.prepare(loader)


def rows(batch):
    assert batch["x"].shape[0] == len(batch["y"]) == int(batch["mask"].sum())
    assert torch.equal(batch["x"][:, 0], batch["y"].float())
    return tuple(batch["x"].shape), batch["y"].tolist()


def evaluated(accelerator, loader):
    with torch.no_grad():
        return [accelerator.gather_for_metrics(batch["y"]).tolist() for batch in loader]


def checks():
    """Everything at once: a start of processes costs more than all of it."""
    sent = []
    scatter = dist.scatter

    def counted(tensor, scatter_list=None, src=0):
        sent.append(tensor.numel())
        return scatter(tensor, scatter_list, src=src)

    dist.scatter = counted
    found = {}
    accelerator, loader = prepared()
    found["dealt"] = [rows(batch) for batch in loader]
    found["read"], found["sent"] = list(READ), list(sent)
    found["steps"] = len(found["dealt"])
    found["again"] = [rows(batch) for batch in loader]
    found["evaluated"] = evaluated(accelerator, loader)
    for number, batch in enumerate(loader, 1):
        if number == 2:
            state = loader.state_dict()
            rest = [rows(batch) for batch in prepared_with(state)]
            break
    found["resumed"] = rest
    _, loader = prepared(split_batches=True)
    found["split"] = [rows(batch) for batch in loader]
    _, loader = prepared(drop_last=True)
    found["drop last"] = [rows(batch) for batch in loader]
    torch.manual_seed(5)
    _, loader = prepared(data=list(range(SIZE)), shuffle=True)
    found["shuffled"] = [rows(batch)[1] for batch in loader], len(loader), torch.rand(()).item()
    accelerator, loader = prepared(named, split_batches=True)
    found["objects"] = [accelerator.gather_for_metrics(batch[0]).tolist() for batch in loader]
    accelerator, loader = prepared(arrays, split_batches=True)
    found["arrays"] = [(accelerator.gather_for_metrics(batch["y"]).tolist(), batch["ids"].tolist()) for batch in loader]
    return found


def prepared_with(state):
    _, loader = prepared()
    loader.load_state_dict(state)
    return loader


def numbers_of(batches):
    return [rows(batch)[1] for batch in batches]


def gone_on_with_workers_that_stay():
    """The rest of a second epoch, as it was and resumed, and what the program draws after both."""

    def made():
        torch.manual_seed(5)
        workers = {"num_workers": 1, "persistent_workers": True, "multiprocessing_context": "fork"}
        return prepared(data=list(range(SIZE)), shuffle=True, **workers)[1]

    loader = made()
    numbers_of(loader)
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    rest, drawn = numbers_of(epoch), torch.rand(()).item()
    resumed = made()
    resumed.load_state_dict(state)
    return rest, numbers_of(resumed), drawn


def drawn_by_the_plain_loader():
    torch.manual_seed(5)
    workers = {"num_workers": 1, "persistent_workers": True, "multiprocessing_context": "fork"}
    loader = DataLoader(list(range(SIZE)), batch_size=4, collate_fn=padded, shuffle=True, **workers)
    numbers_of(loader)
    return numbers_of(loader), torch.rand(()).item()


def changing(numbers):
    return {"even" if numbers[0] % 8 else "odd": torch.tensor(numbers)}


def failing():
    return failure(data=Broken()), failure(changing)


def failure(*arguments, **settings):
    _, loader = prepared(*arguments, **settings)
    try:
        list(loader)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"


BATCHES = [list(range(start, min(start + 4, SIZE))) for start in range(0, SIZE, 4)]


@pytest.fixture(scope="module")
def found():
    return run_ranks(checks, 2)


def test_batches_are_dealt_in_turn(found):
    for rank in range(2):
        assert [numbers for _, numbers in found[rank]["dealt"]] == BATCHES[rank::2]
        assert found[rank]["dealt"] == found[rank]["again"]
        assert found[rank]["resumed"] == found[rank]["dealt"][2:]
        assert [numbers for _, numbers in found[rank]["drop last"]] == BATCHES[rank:4:2]


def test_one_process_reads_and_sends_to_each_what_is_its_own(found):
    assert found[0]["read"] == list(range(SIZE))
    assert found[1]["read"] == []
    largest = 3 * 16 + 4 * 3 * 4 + 4 * 8 + 16  # sizes, x, y, mask
    assert max(found[1]["sent"]) <= largest


def test_every_batch_is_cut_where_that_is_asked_for(found):
    for key in ("split",):
        together = [[*a, *b] for (_, a), (_, b) in zip(found[0][key], found[1][key], strict=True)]
        assert together == BATCHES
    assert found[0]["evaluated"] == found[1]["evaluated"] == BATCHES


def test_a_shuffled_loader_draws_as_ever(found):
    torch.manual_seed(5)
    expected = [rows(batch)[1] for batch in DataLoader(range(SIZE), batch_size=4, collate_fn=padded, shuffle=True)]
    drawn = torch.rand(()).item()
    assert [found[rank]["shuffled"][0] for rank in range(2)] == [expected[0::2], expected[1::2]]
    assert found[0]["shuffled"][1:] == (3, drawn)


def test_what_cannot_be_cut_counts_once(found):
    assert found[0]["objects"] == found[1]["objects"] == BATCHES
    assert found[0]["arrays"] == found[1]["arrays"] == [(batch, batch) for batch in BATCHES]


def test_an_error_of_the_reader_reaches_all():
    (first, form), (second, told) = run_ranks(failing, 2)
    assert first == "ValueError: no more"
    assert second == "AcceleratorError: the loader failed on rank 0: ValueError('no more')"
    assert form.startswith("ConfigurationError: dispatch_batches=True needs batches of one form")
    assert "differ in their keys" in told


def test_an_epoch_goes_on_with_workers_that_stay():
    """They draw their seed once, so the order of a later epoch begins elsewhere than that of the first."""
    batches, drawn = drawn_by_the_plain_loader()
    results = run_ranks(gone_on_with_workers_that_stay, 2)
    for rank, (rest, resumed, _) in enumerate(results):
        assert rest == resumed == batches[2 + rank :: 2]
    assert results[0][2] == drawn
