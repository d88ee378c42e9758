"""A loader goes on in the middle of an epoch: with the samples not yet seen, on any number of processes."""

from __future__ import annotations

import io
import os
import random

import pytest
import torch
from ranks import run_ranks
from test_training import LOADERS, Numbers, rows
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, Sampler, WeightedRandomSampler

from runtime import Accelerator, DataLoaderConfiguration, skip_first_batches
from runtime.errors import ConfigurationError

STOP = 2


def prepared(kind, **config):
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**config))
    return accelerator, accelerator.prepare(LOADERS[kind]())


def stored(state):
    """The state as a checkpoint gives it back."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def interrupted(kind, **config):
    """An epoch, one that is saved after `STOP` steps and goes on, and another; the generator at each epoch's end."""
    torch.manual_seed(3)
    _, loader = prepared(kind, **config)
    epochs, states, saved = [], [], None
    for epoch in range(3):
        epochs.append([])
        for step, batch in enumerate(loader, 1):
            epochs[-1].append((rows(batch), torch.rand(()).item() if epoch else 0.0))  # epoch 1 is that of any world
            if (epoch, step) == (1, STOP):
                saved = stored(loader.state_dict()), torch.get_rng_state()
        states.append(torch.rand(()).item())
    return saved, epochs, states


def resumed(kind, saved, **config):
    """The rest of the second epoch and the third, in another program."""
    state, generator = saved
    torch.manual_seed(99)
    _, loader = prepared(kind, **config)
    loader.load_state_dict(state)
    torch.set_rng_state(generator)
    epochs, states = [], []
    for _ in range(2):
        epochs.append([(rows(batch), torch.rand(()).item()) for batch in loader])
        states.append(torch.rand(()).item())
    return epochs, states


CONFIGS = ({}, {"split_batches": True}, {"use_seedable_sampler": True})


def go_on_everywhere():
    """Every kind of loader, saved and resumed in this world."""
    found = {}
    for kind in LOADERS:
        for number, config in enumerate(CONFIGS):
            saved, epochs, states = interrupted(kind, **config)
            assert saved[0]["is_in_epoch"], kind
            assert (kind, resumed(kind, saved, **config)) == (kind, ([epochs[1][STOP:], epochs[2]], states[1:]))
            found[kind, number] = saved[0], epochs
    return found


@pytest.fixture(scope="module")
def alone():
    return go_on_everywhere()


@pytest.fixture(scope="module")
def together():
    return run_ranks(go_on_everywhere, 2)


def test_a_run_goes_on_as_if_it_had_not_stopped(alone):
    """The same batches, and the same random numbers beside them, in the rest of the epoch and in the next."""
    assert set(alone) == {(kind, number) for kind in LOADERS for number in range(len(CONFIGS))}


@pytest.mark.long
def test_on_two_processes_too(together):
    first, second = together
    assert {key: state["place"] for key, (state, _) in first.items()} == {
        key: state["place"] for key, (state, _) in second.items()
    }


def continue_all(states):
    found = {}
    for (kind, number), state in states.items():
        accelerator, loader = prepared(kind, **CONFIGS[number])
        loader.load_state_dict(state)
        torch.manual_seed(0)
        found[kind, number] = [rows(accelerator.gather_for_metrics(torch.as_tensor(batch))) for batch in loader]
    return found


def samples_of(epoch):
    return [row for batch, _ in epoch for row in batch]


@pytest.mark.parametrize("worlds", [(1, 2), (2, 1), (2, 3)])
def test_the_number_of_processes_may_change(worlds, alone, together):
    """What was given before and what comes after are the epoch of one process."""
    before, after = worlds
    states = {key: state for key, (state, _) in (alone if before == 1 else together[0]).items()}
    found = continue_all(states) if after == 1 else run_ranks(continue_all, after, states)[0]
    for (kind, number), (_, epochs) in alone.items():
        is_single = kind in ("samples", "samples of a subset", "lists", "single stream")
        done = STOP * (before if number != 1 or is_single else 1)
        expected = samples_of(epochs[1][done:])
        rest = [row for batch in found[kind, number] for row in batch]
        if kind == "drop last" and after > 1 and number != 1:
            expected = expected[: len(rest)]
        assert (kind, number, rest) == (kind, number, expected)


def epochs_and_draws(loader):
    torch.manual_seed(8)
    found = []
    for number in range(3):
        for batch in loader:
            found.append((rows(batch), torch.rand(()).item()))
            if number == 1:
                break
        found.append(torch.rand(()).item())
    return found


@pytest.mark.parametrize("kind", [kind for kind in LOADERS if kind != "workers"])
def test_a_large_data_set_is_gone_through_as_ever(kind, monkeypatch):
    """On one process, where the indices come from tensors: the same batches, and the same draws between them."""
    expected = epochs_and_draws(LOADERS[kind]())
    monkeypatch.setattr("runtime.data.feeds.LARGE", 1)
    _, loader = prepared(kind)
    assert epochs_and_draws(loader) == expected
    assert type(iter(loader)) is type(iter(LOADERS[kind]()))
    if not kind.endswith(("stream", "loop")):
        assert len(iter(loader)) == len(iter(LOADERS[kind]()))


class Noisy(Numbers):
    """Augments with the generators that dropout uses."""

    def __getitem__(self, index):
        return torch.full((4,), index / 10) + torch.rand(4) + random.random()  # noqa: S311


def losses_of(resume_from=None, stop=None):
    """Training with dropout and augmentation on one process; saved after `stop` steps."""
    torch.manual_seed(5)
    random.seed(5)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    accelerator = Accelerator(cpu=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Noisy(23), batch_size=4, shuffle=True))
    done = 0
    if resume_from is not None:
        model_state, optimizer_state, loader_state, generators, done = resume_from
        model.load_state_dict(model_state)
        optimizer.load_state_dict(optimizer_state)
        loader.load_state_dict(loader_state)
        torch.set_rng_state(generators[0])
        random.setstate(generators[1])
    losses = []
    for _ in range((done - 1) // len(loader) if done else 0, 3):  # the epoch that was going on
        for x in loader:
            loss = model(x).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
            done += 1
            if done == stop:
                state = stored((model.state_dict(), optimizer.state_dict(), loader.state_dict()))
                return losses, (*state, (torch.get_rng_state(), random.getstate()), done)
    return losses, None


@pytest.mark.parametrize("stop", [1, 5, 6, 8, 13])
def test_losses_are_those_of_a_run_that_was_not_interrupted(stop):
    """6 steps an epoch: in the first batch, in the last but one, in the last, in later epochs."""
    whole, _ = losses_of()
    before, saved = losses_of(stop=stop)
    resume = losses_of(resume_from=saved)[0]
    assert before + resume == whole


def test_what_workers_have_read_ahead_does_not_count():
    torch.manual_seed(1)
    _, loader = prepared("workers")
    batches = iter(loader)
    given = [rows(next(batches)) for _ in range(2)]
    state = loader.state_dict()
    rest = [rows(batch) for batch in batches]
    assert state["place"] == sum(map(len, given))
    loader.load_state_dict(state)
    assert [rows(batch) for batch in loader] == rest


def test_a_loop_that_was_left_is_over():
    _, loader = prepared("shuffled")
    for _ in loader:
        assert loader.state_dict()["place"] == 4
        break
    state = loader.state_dict()
    assert (state["is_in_epoch"], state["place"]) == (False, 0)
    loader.load_state_dict(state)
    assert len(list(loader)) == len(loader)


def test_saved_again_before_the_resumed_epoch_has_begun():
    _, loader = prepared("shuffled")
    next(batches := iter(loader))
    state = loader.state_dict()
    loader.load_state_dict(state)
    again = loader.state_dict()
    assert (again["place"], again["is_in_epoch"]) == (4, True)
    next(batches)
    for number, _ in enumerate(loader, 2):
        assert loader.state_dict()["place"] == min(4 * number, 23)


def test_another_batch_size_goes_on_with_the_next_sample():
    torch.manual_seed(2)
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(DataLoader(Numbers(), batch_size=4, shuffle=True))
    given = []
    for batch in loader:
        given += rows(batch)
        if len(given) == 12:
            state = loader.state_dict()
    other = accelerator.prepare(DataLoader(Numbers(), batch_size=5, shuffle=True))
    other.load_state_dict(state)
    assert [rows(batch) for batch in other] == [given[12:17], given[17:22], given[22:]]


class OwnPass(DataLoader):
    """Its own `__iter__`, around PyTorch's."""

    def __iter__(self):
        yield from super().__iter__()


def gone_on_in_a_later_epoch():
    """The rest of the second epoch of a loader whose workers stay, as it was and resumed, and the epoch after."""

    def made():
        torch.manual_seed(5)
        workers = {"num_workers": 1, "persistent_workers": True, "multiprocessing_context": "fork"}
        return Accelerator(cpu=True).prepare(OwnPass(range(23), batch_size=4, shuffle=True, **workers))

    loader = made()
    first = [batch.tolist() for batch in loader]
    epoch = iter(loader)
    next(epoch)
    state, generator = loader.state_dict(), torch.get_rng_state()
    rest = [batch.tolist() for batch in epoch], [batch.tolist() for batch in loader]
    resumed = made()
    resumed.load_state_dict(state)
    torch.set_rng_state(generator)
    return len(first), rest, ([batch.tolist() for batch in resumed], [batch.tolist() for batch in resumed])


@pytest.mark.parametrize(("world", "steps"), [(1, 6), (2, 3)])
def test_a_later_epoch_goes_on_where_workers_stay_in_a_loader_of_ones_own(world, steps):
    """They draw their seed in the first epoch only, so the others are drawn from elsewhere."""
    for length, rest, resumed in run_ranks(gone_on_in_a_later_epoch, world):
        assert length == steps == len(rest[0]) + 1
        assert resumed == rest


class InOrder(Sampler):
    """The order of a loader that does not shuffle, written by hand."""

    def __iter__(self):
        return iter(range(23))

    def __len__(self):
        return 23


def test_a_place_is_found_with_another_kind_of_sampler():
    """One kind of place is a number of samples, the other a number of batches."""
    accelerator = Accelerator(cpu=True)

    def loader(batch_size, sampler=None):
        return accelerator.prepare(DataLoader(Numbers(), batch_size=batch_size, sampler=sampler))

    for saving, resuming in ((loader(4), loader(2, InOrder())), (loader(4, InOrder()), loader(2))):
        for batch in saving:
            if 7 in rows(batch):
                resuming.load_state_dict(saving.state_dict())
        assert rows(next(iter(resuming))) == [8, 9]


def test_what_cannot_be_resumed_is_said():
    accelerator, loader = prepared("shuffled")
    next(batches := iter(loader))
    state = loader.state_dict()
    del batches
    with pytest.raises(ConfigurationError, match=r"epoch of 23 samples, and this one has 9"):
        accelerator.prepare(DataLoader(Numbers(9), batch_size=4, shuffle=True)).load_state_dict(state)
    with pytest.raises(ConfigurationError, match="state_dict"):
        loader.load_state_dict({"epoch": 1})
    own = accelerator.prepare(LOADERS["own sampler"]())
    batches = iter(own)
    next(batches)
    with pytest.raises(ConfigurationError, match=r"4 samples .* no whole number of batches of 3"):
        accelerator.prepare(
            DataLoader(Numbers(), batch_size=3, sampler=LOADERS["own sampler"]().sampler)
        ).load_state_dict(own.state_dict())
    with pytest.raises(ConfigurationError, match="-1"):
        accelerator.skip_first_batches(loader, -1)


def skipped(kind):
    torch.manual_seed(4)
    accelerator, loader = prepared(kind)
    later = accelerator.skip_first_batches(loader, 2)
    taken = [rows(batch) for batch in later]
    length = None if kind.endswith("stream") else (len(loader), len(later), len(taken))
    torch.manual_seed(4)
    _, loader = prepared(kind)
    return taken, [rows(batch) for batch in loader], length


def skip_all():
    return {kind: skipped(kind) for kind in LOADERS}


@pytest.mark.parametrize("world", [1, 2])
def test_the_first_batches_can_be_skipped(world):
    for found in [skip_all()] if world == 1 else run_ranks(skip_all, world):
        for kind, (taken, everything, length) in found.items():
            assert (kind, taken) == (kind, everything[2:])
            assert length is None or length == (len(everything), len(taken), len(taken)), kind


def test_a_plain_loader_can_be_skipped_too():
    accelerator = Accelerator(cpu=True)
    loader = accelerator.skip_first_batches(DataLoader(Numbers(), batch_size=4), 5)
    assert [rows(batch) for batch in loader] == [[20, 21, 22]]
    assert isinstance(loader, DataLoader)


@pytest.mark.parametrize(
    ("loader", "number", "message"),
    [
        (DataLoader([1]), -1, r"skip_first_batches\(loader, -1\): pass a whole number"),
        (DataLoader([1]), 1.5, r"skip_first_batches\(loader, 1.5\): pass a whole number"),
        (DataLoader([1]), None, r"skip_first_batches\(loader, None\): pass a whole number"),
        ([1, 2], 1, r"got a list.*islice\(batches, 1, None\)"),
    ],
)
def test_what_cannot_be_skipped_is_told(loader, number, message):
    with pytest.raises(ConfigurationError, match=message):
        skip_first_batches(loader, number)


def skipped_and_then_prepared():
    accelerator = Accelerator(cpu=True)
    data = DataLoader(Numbers(), batch_size=4)
    with pytest.raises(TypeError, match=r"skip_first_batches\(prepare\(loader\), 1\)"):
        accelerator.prepare(skip_first_batches(data, 1))
    return [rows(batch) for batch in accelerator.prepare(skip_first_batches(data, 0))]


def test_a_loader_of_which_steps_are_left_out_can_be_prepared():
    """It came back as it was: on several processes each had all batches, and on a GPU they were not moved."""
    accelerator = Accelerator(cpu=True)
    plain = skip_first_batches(DataLoader(Numbers(), batch_size=4), 5)
    loader = accelerator.prepare(plain)
    assert loader is accelerator.prepare(plain) is not plain
    assert [rows(batch) for batch in loader] == [[20, 21, 22]]
    first, second = run_ranks(skipped_and_then_prepared, 2)
    assert [first[0], second[0], len(first), len(second)] == [[0, 1, 2, 3], [4, 5, 6, 7], 3, 3]


def test_what_a_checkpoint_restored_is_not_skipped_again():
    """The recipe of Accelerate: load the state, then skip what was done. Saved meanwhile, the place is right."""
    torch.manual_seed(6)
    accelerator, loader = prepared("shuffled")
    everything = []
    for batch in loader:
        everything.append(rows(batch))
        if len(everything) == 3:
            state = loader.state_dict()
    loader.load_state_dict(state)
    given = []
    for batch in accelerator.skip_first_batches(loader, 3):
        given.append(rows(batch))
        assert loader.state_dict()["place"] == min(12 + 4 * len(given), 23)
    assert given == everything[3:]
    assert len([1 for _ in loader]) == 6
    loader.load_state_dict(state)
    with pytest.warns(UserWarning, match=r"skip_first_batches\(loader, 2\).*\(8\).*restored \(12\)"):
        assert [rows(batch) for batch in accelerator.skip_first_batches(loader, 2)] == everything[3:]


def test_an_epoch_that_was_done_may_be_counted_as_done():
    """Saved in the body of the last step: the rest is empty, and nothing to skip means the next epoch."""
    for kind in ("shuffled", "generator"):
        torch.manual_seed(6)
        accelerator, loader = prepared(kind)
        for _ in loader:
            state, generator = loader.state_dict(), torch.get_rng_state()
        following = [rows(batch) for batch in loader]
        _, loader = prepared(kind)
        loader.load_state_dict(state)
        torch.set_rng_state(generator)
        assert [rows(batch) for batch in accelerator.skip_first_batches(loader, 0)] == following
        _, loader = prepared(kind)
        loader.load_state_dict(state)
        torch.set_rng_state(generator)
        assert list(loader) == []
        assert [rows(batch) for batch in loader] == following


def own_shares():
    accelerator = Accelerator(cpu=True)
    data = Numbers(16)
    loader = accelerator.prepare(DataLoader(data, batch_size=2, sampler=DistributedSampler(data, seed=1)))
    loader.set_epoch(2)
    taken = []
    for batch in loader:
        taken.append(rows(batch))
        if len(taken) == 2:
            state = loader.state_dict()
    other = accelerator.prepare(DataLoader(data, batch_size=2, sampler=DistributedSampler(data, seed=1)))
    other.load_state_dict(state)
    assert [rows(batch) for batch in other] == taken[2:]
    return state


def test_a_loader_that_is_shared_out_by_itself_goes_on_with_as_many_processes():
    state = run_ranks(own_shares, 2)[1]
    with pytest.raises(ConfigurationError, match=r"saved with 2 process\(es\) and there are 1"):
        Accelerator(cpu=True).prepare(DataLoader(Numbers(16), batch_size=2)).load_state_dict(state)


def drawn_apart(is_prepared=True):
    """Ranks whose generators differ; what each draws after an epoch and a bit."""
    torch.manual_seed(int(os.environ.get("RANK", "0")))
    sampler = WeightedRandomSampler(torch.arange(1.0, 24.0), 20)
    loader = DataLoader(Numbers(), batch_size=5, sampler=sampler)
    accelerator = Accelerator(cpu=True)
    prepared = accelerator.prepare(loader) if is_prepared else loader
    taken = [rows(accelerator.gather_for_metrics(batch)) for batch in prepared]
    next(iter(prepared))
    return [row for batch in taken for row in batch], torch.rand(()).item()


def drawn_plain():
    return drawn_apart(is_prepared=False)


def test_weighted_samples_are_rank_0s_and_every_generator_goes_on_as_its_own():
    alone = drawn_apart()
    plain = run_ranks(drawn_plain, 2)
    together = run_ranks(drawn_apart, 2)
    assert [taken for taken, _ in together] == [alone[0]] * 2
    assert [drawn for _, drawn in together] == [drawn for _, drawn in plain]
    assert plain[0][1] == alone[1]
