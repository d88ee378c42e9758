"""Batches that are copied beside the computation: the same ones, in the same order, and never too early."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from runtime.accumulation import Accumulation
from runtime.data.feeds import Dealing
from runtime.data.loader import prepared_loader
from runtime.data.passes import Passes
from runtime.data.prefetch import Ahead, Move, Stay, transfer
from runtime.world import World

CPU = torch.device("cpu")


class Recorded:
    """Streams that only note what is asked of them."""

    def __init__(self):
        self.notes = []
        self.name = "main"

    def make(self):
        return self

    def current(self):
        return self

    def wait_stream(self, other):
        self.notes.append("wait")

    @contextmanager
    def on(self, stream):
        self.notes.append("copy")
        yield

    def pinned(self, tensor):
        self.notes.append("pin")
        return tensor.clone()

    def keep(self, tensor, stream):
        self.notes.append("keep")


class Graph:
    """A batch that moves itself."""

    def to(self, device, non_blocking=False):
        assert not non_blocking
        return self


def test_the_next_batch_is_copied_before_this_one_is_given():
    streams = Recorded()
    steps = Ahead(CPU, streams).through(iter([((torch.ones(1), "text"), 0), ({"x": torch.zeros(1)}, 1)]))
    first = next(steps)
    assert streams.notes == ["copy", "pin", "copy", "pin", "wait", "keep"]
    assert (first[0][0].item(), first[0][1], first[1]) == (1.0, "text", 0)
    assert [share for _, share in steps] == [1]
    assert streams.notes[6:] == ["wait", "keep"]


def test_an_error_comes_after_the_batch_before_it():
    def steps():
        yield torch.ones(1), 0
        raise ValueError("no more")

    ahead = Ahead(CPU, Recorded()).through(steps())
    assert next(ahead)[0].item() == 1.0
    with pytest.raises(ValueError, match="no more"):
        next(ahead)


def test_what_moves_itself_is_copied_where_it_is_used():
    streams = Recorded()
    batch = Graph()
    given = next(Ahead(CPU, streams).through(iter([((batch, torch.ones(1)), 0)])))
    assert given[0][0] is batch
    assert "copy" not in streams.notes


@pytest.mark.parametrize(
    ("device", "streams", "ahead", "kind"),
    [(None, None, True, Stay), (CPU, None, True, Move), (CPU, Recorded(), False, Move), (CPU, Recorded(), True, Ahead)],
)
def test_the_way_to_the_device_is_chosen_once(device, streams, ahead, kind):
    assert type(transfer(device, streams, non_blocking=False, may_look_ahead=ahead)) is kind


def test_a_loader_without_batches_gives_none():
    streams = Recorded()
    assert list(Ahead(CPU, streams).through(iter([]))) == []
    assert streams.notes == []


def test_a_batch_is_shared_out_over_the_chips_where_it_has_arrived():
    way = transfer(CPU, Recorded(), non_blocking=False, may_look_ahead=True, spread=lambda batch: batch.chunk(2))
    assert [(len(parts), share) for parts, share in way.through(iter([(torch.ones(4), 7)]))] == [(2, 7)]


def on_a_fake_device(**settings):
    passes = Passes(0)
    return prepared_loader(
        DataLoader(TensorDataset(torch.arange(10)), batch_size=2, shuffle=True, **settings),
        world=World(),
        passes=passes,
        accumulation=Accumulation(1, passes),
        dealing=Dealing(),
        device=CPU,
        non_blocking=False,
        streams=Recorded(),
    ), passes


def test_a_batch_that_was_fetched_ahead_does_not_count():
    """Places, the last step and the rest of a restored epoch are those of what the script was given."""
    loader, passes = on_a_fake_device(num_workers=1, multiprocessing_context="fork")
    torch.manual_seed(1)
    given = []
    for number, (x,) in enumerate(loader, 1):
        assert loader.state_dict()["place"] == 2 * number
        assert passes.current.is_last == (number == 5)
        given.append(x.tolist())
        if number == 2:
            state = loader.state_dict()
    loader.load_state_dict(state)
    assert [x.tolist() for (x,) in loader] == given[2:]


def test_nothing_is_fetched_ahead_where_the_data_set_draws_beside_the_script():
    loader, _ = on_a_fake_device()
    assert type(loader._source.transfer) is Move
