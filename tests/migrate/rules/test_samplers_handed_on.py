"""Samplers that functions give back beside their loaders, hand to others, or keep in objects: they go with these."""

import pytest

HEAD = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def data():
    x = torch.randn(48, 2, generator=torch.Generator().manual_seed(0))
    return TensorDataset(x[:32], x[:32].sum(1, keepdim=True)), TensorDataset(x[32:], x[32:].sum(1, keepdim=True))
"""
ONE_EACH = """

def get_loader(data, shuffle):
    sampler = {sampler}
    loader = DataLoader(data, batch_size=4, sampler=sampler{more})
    return loader, sampler
"""
BOTH = """

def get_loaders(train, held_out):
    train_sampler = DistributedSampler(train)
    test_sampler = DistributedSampler(held_out, shuffle=False)
    train_loader = DataLoader(train, batch_size=4, sampler=train_sampler)
    test_loader = DataLoader(held_out, batch_size=4, sampler=test_sampler)
    return train_loader, test_loader, train_sampler, test_sampler
"""
MAIN = """

def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train, held_out = data()
    {made}
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        {told}
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        model.eval()
        {tested}
        near = torch.zeros(1)
        with torch.no_grad():
            for x, y in test_loader:
                near += ((model(x) - y).abs() < 0.5).sum()
        dist.all_reduce(near)
        if dist.get_rank() == 0:
            print(near.item())


main()
"""
MADE = """train_loader, train_sampler = get_loader(train, True)
    test_loader, test_sampler = get_loader(held_out, False)"""
TRAINER = """

class Trainer:
    def __init__(self, model, loader, sampler):
        {kept}
        self.model, self.optimizer = model, optim.SGD(model.parameters(), lr=0.1)

    def fit(self):
        for epoch in range(2):
            self.sampler.set_epoch(epoch)
            for x, y in self.loader:
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.model(x), y).backward()
                self.optimizer.step()


def get_loader(data):
    sampler = DistributedSampler(data)
    return DataLoader(data, batch_size=4, sampler=sampler), sampler


def main():
    dist.init_process_group("gloo")
    train, held_out = data()
    loader, sampler = get_loader(train)
    Trainer(nn.parallel.DistributedDataParallel(nn.Linear(2, 1)), loader, sampler).fit()


main()
"""


def one_each(sampler="DistributedSampler(data, shuffle=shuffle)", more="", made=MADE, told="", tested="pass"):
    return HEAD + ONE_EACH.format(sampler=sampler, more=more) + MAIN.format(made=made, told=told, tested=tested)


def test_each_loader_of_one_function_is_told_for_its_own_sampler(convert_text):
    report, changed = convert_text(
        one_each(told="train_sampler.set_epoch(epoch)", tested="test_sampler.set_epoch(epoch)")
    )
    assert not [f.code for f in report.findings if f.code == "MIG113"]
    assert "return loader\n" in changed
    assert "train_loader = get_loader(train, True)\n    test_loader = get_loader(held_out, False)\n" in changed
    assert "        train_loader.set_epoch(epoch)\n        model.train()" in changed
    assert "        test_loader.set_epoch(epoch)\n        near" in changed
    assert "ampler" not in changed.replace("use_seedable_sampler", "")


def test_what_is_left_of_a_longer_tuple_is_given_back_and_taken(convert_text):
    made = "train_loader, test_loader, train_sampler, test_sampler = get_loaders(train, held_out)"
    _, changed = convert_text(
        HEAD + BOTH + MAIN.format(made=made, told="train_sampler.set_epoch(epoch)", tested="pass")
    )
    assert "return train_loader, test_loader\n" in changed
    assert "    train_loader, test_loader = get_loaders(train, held_out)\n" in changed
    assert "        train_loader.set_epoch(epoch)\n" in changed


@pytest.mark.parametrize("asked", ["if train_sampler is not None:", "if train_sampler:"])
def test_a_sampler_that_one_process_does_not_have_goes_as_well(convert_text, asked):
    _, changed = convert_text(
        one_each(
            sampler="DistributedSampler(data, shuffle=shuffle) if dist.get_world_size() > 1 else None",
            more=", shuffle=shuffle and sampler is None",
            told=f"{asked}\n            train_sampler.set_epoch(epoch)",
        )
    )
    assert "loader = DataLoader(data, batch_size=4, shuffle=shuffle)\n    return loader\n" in changed
    assert "sampler" not in changed


def test_both_kinds_train_on_processes_as_they_did(convert_text, numbers_printed):
    _, changed = convert_text(one_each(told="train_sampler.set_epoch(epoch)"))
    whole = numbers_printed(changed, 1)
    halves = changed.replace("batch_size=4", "batch_size=2")
    assert len(whole) == 2
    assert numbers_printed(halves, 2) == whole


@pytest.mark.parametrize(
    "kept",
    ["self.loader = loader\n        self.sampler = sampler", "self.loader, self.sampler = loader, sampler"],
)
def test_an_object_that_keeps_both_keeps_the_loader(convert_text, kept):
    _, changed = convert_text(HEAD + TRAINER.format(kept=kept))
    assert "def __init__(self, model, loader):" in changed
    assert "self.loader = loader\n" in changed
    assert "self.loader.set_epoch(epoch)" in changed
    assert "lf.sampler" not in changed


@pytest.mark.parametrize(
    ("made", "read", "at"),
    [
        (MADE, "epochs = train_sampler.epoch + 1", "train_sampler.epoch"),
        (MADE, "steps = train_sampler.num_samples // 4", "train_sampler.num_samples"),
        ("both = get_loader(train, True)\n    train_loader, test_loader = both[0], both[0]", "pass", "return loader"),
    ],
)
def test_what_is_read_of_it_in_another_way_is_refused(refused_text, made, read, at):
    refused_text(one_each(made=made, told=read), "MIG113", at)


def test_its_data_are_those_of_the_loader(convert_text):
    _, changed = convert_text(
        one_each(told="train_sampler.set_epoch(epoch)", tested="print(len(train_sampler.dataset))")
    )
    assert "print(len(train_loader.dataset))" in changed


def test_an_evaluation_comes_to_all_that_its_sampler_counts(convert_text):
    made = "train_loader, test_loader, train_sampler, test_sampler = get_loaders(train, held_out)"
    program = (
        HEAD + BOTH + MAIN.format(made=made, told="train_sampler.set_epoch(epoch)", tested="print(len(test_sampler))")
    )
    _, changed = convert_text(program)
    assert "print(len(test_loader.dataset))" in changed


def test_how_many_samples_a_process_trains_on_is_not_what_the_loader_has(refused_text):
    steps = "steps = len(train_sampler) // 4"
    refused_text(one_each(told="train_sampler.set_epoch(epoch)", tested=steps), "MIG113", steps)


KEYED = """

def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    sets = dict(zip(("train", "test"), data()))
    {samplers}
    {loaders}
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        samplers["train"].set_epoch(epoch)
        for x, y in loaders["train"]:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


main()
"""


@pytest.mark.parametrize(
    ("samplers", "loaders"),
    [
        (
            'samplers = {x: DistributedSampler(sets[x]) for x in ("train", "test")}',
            'loaders = {x: DataLoader(sets[x], batch_size=4, sampler=samplers[x]) for x in ("train", "test")}',
        ),
        (
            'samplers = {"train": DistributedSampler(sets["train"])}',
            'loaders = {"train": DataLoader(sets["train"], batch_size=4, sampler=samplers["train"])}',
        ),
        (
            'samplers = {}\n    samplers["train"] = DistributedSampler(sets["train"])',
            'loaders = {}\n    loaders["train"] = DataLoader(sets["train"], batch_size=4, sampler=samplers["train"])',
        ),
    ],
)
def test_a_loader_under_the_key_of_its_sampler_is_told(convert_text, samplers, loaders):
    _, changed = convert_text(HEAD + KEYED.format(samplers=samplers, loaders=loaders))
    assert 'loaders["train"].set_epoch(epoch)' in changed
    assert "samplers" not in changed
    assert "batch_size=4, shuffle=True)" in changed


@pytest.mark.parametrize(
    ("samplers", "loaders"),
    [
        (
            'samplers = {x: DistributedSampler(sets[x]) for x in ("train", "test")}',
            "loaders = {k: DataLoader(sets[k], batch_size=4, sampler=samplers[o]) for k, o in (('train', 'test'),)}",
        ),
        (
            'samplers = {x: DistributedSampler(sets[x], shuffle=x == "train") for x in ("train", "test")}',
            'loaders = {x: DataLoader(sets[x], batch_size=4, sampler=samplers[x]) for x in ("train", "test")}',
        ),
    ],
)
def test_a_loader_that_may_have_taken_another_is_refused(refused_text, samplers, loaders):
    refused_text(HEAD + KEYED.format(samplers=samplers, loaders=loaders), "MIG113", "samplers")


def test_a_sampler_that_is_all_a_function_gives_back_is_refused(refused_text):
    alone = HEAD + "\n\ndef get_sampler(data):\n    sampler = DistributedSampler(data)\n    return (sampler,)\n"
    made = """(train_sampler,) = get_sampler(train)
    train_loader = test_loader = DataLoader(train, batch_size=4, sampler=train_sampler)"""
    refused_text(
        alone + MAIN.format(made=made, told="train_sampler.set_epoch(epoch)", tested="pass"), "MIG113", "sampler"
    )
