"""Batches on a GPU: copied one ahead, beside the computation, and never another batch than the plain program's."""

from __future__ import annotations

import pytest
import torch
from on_gpu import DEVICE, ON_CPU, accelerator
from torch.utils.data import DataLoader, Dataset, TensorDataset

from runtime import DataLoaderConfiguration, set_seed
from runtime.data.prefetch import Ahead, Move, Stay

BATCH = 8


class Pairs(Dataset):
    """Dictionaries with numbers and text beside their tensors."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return {"x": self.data[index], "index": index, "name": f"sample {index}"}


def busy():
    """Work that copies run beside."""
    if not ON_CPU:
        torch.cuda._sleep(2_000_000)


def test_the_batches_of_workers_are_copied_ahead_and_right():
    data = torch.randn(512, 1 << 12)
    loader = accelerator().prepare(DataLoader(TensorDataset(data), batch_size=BATCH, num_workers=2))
    assert type(loader._source.transfer) is (Stay if ON_CPU else Ahead)
    for number, (x,) in enumerate(loader):
        busy()
        assert x.device.type == DEVICE.type
        assert torch.equal(x.cpu(), data[BATCH * number : BATCH * (number + 1)])


def test_memory_of_a_batch_is_not_given_away_while_it_is_read():
    data = torch.arange(256).repeat_interleave(1 << 12).reshape(256, -1)
    loader = accelerator().prepare(DataLoader(TensorDataset(data), batch_size=BATCH, num_workers=2))
    sums = []
    for (x,) in loader:
        busy()
        sums.append(x.sum(1))
        del x
    assert torch.equal(torch.cat(sums).cpu(), data.sum(1))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("non_blocking", [False, True])
def test_what_is_in_a_batch_arrives_whatever_the_way(workers, pinned, non_blocking):
    data = torch.randn(100, 1 << 10)
    config = DataLoaderConfiguration(non_blocking=non_blocking)
    pinned = pinned and not ON_CPU
    loader = DataLoader(Pairs(data), batch_size=BATCH, num_workers=workers, pin_memory=pinned)
    loader = accelerator(dataloader_config=config).prepare(loader)
    assert type(loader._source.transfer) is (Stay if ON_CPU else Ahead if workers else Move)
    place = 0
    for batch in loader:
        rows = slice(place, place + len(batch["name"]))
        busy()
        assert torch.equal(batch["x"].cpu(), data[rows])
        assert batch["index"].tolist() == list(range(rows.start, rows.stop))
        assert batch["name"] == [f"sample {index}" for index in batch["index"]]
        place = rows.stop
    assert place == len(data)


def test_an_epoch_goes_on_after_some_batches():
    own = accelerator()
    data = TensorDataset(torch.arange(64))
    loader = own.prepare(DataLoader(data, batch_size=BATCH, num_workers=1))
    rest = [x.tolist() for (x,) in own.skip_first_batches(loader, 3)]
    assert rest == [x.tolist() for (x,) in loader][3:]


def test_a_seed_reaches_the_generator_of_the_gpu():
    set_seed(3)
    first = torch.rand(4, device=DEVICE)
    set_seed(3)
    assert torch.equal(torch.rand(4, device=DEVICE), first)
