"""Loaders that a comprehension or a loop makes, one for each of some keys, and that are asked for by key."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

def fetch(kinds):
    loaders = {{}}
    for split in ["train", "val", "test"]:
        if split in kinds:
            if split == "train":
                loader = DataLoader(data[split], batch_size=4, shuffle=True)
            else:
                loader = DataLoader(data[split], batch_size=4)
            loaders[split] = loader
    return loaders

{made}
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
for x, y in {train}:
    opt.zero_grad()
    net(x).sum().backward()
    opt.step()
net.eval()
total = 0.0
with torch.no_grad():
    for x, y in {val}:
        total += net(x).sum().item()
print(total)
"""
KEYS = '["train", "val"]'
COMPREHENSION = f'loaders = {{k: DataLoader(data[k], batch_size=4, shuffle=k == "train") for k in {KEYS}}}'
LOOP = f"loaders = {{}}\nfor k in {KEYS}:\n    loaders[k] = DataLoader(data[k], batch_size=4)"
SETS = "sets = {k: torch.utils.data.TensorDataset(x[k]) for k in ['train', 'val']}\n"
ITEMS = 'loaders["train"]', 'loaders["val"]'
KNOWN = {
    "a comprehension": (COMPREHENSION, *ITEMS),
    "keys by a name": (COMPREHENSION.replace(KEYS, "NAMES").replace("loaders =", f"NAMES = {KEYS}\nloaders ="), *ITEMS),
    "the items of a dictionary": (
        'data = {"train": one, "val": other}\nloaders = {k: DataLoader(d, batch_size=4) for k, d in data.items()}',
        *ITEMS,
    ),
    "one over the keys of another": (SETS + "loaders = {k: DataLoader(sets[k], batch_size=4) for k in sets}", *ITEMS),
    "pairs": (COMPREHENSION.replace(f"k in {KEYS}", "k, _ in (('train', 1), ('val', 2))"), *ITEMS),
    "a call of dict": (COMPREHENSION.replace(f"k in {KEYS}", "k, _ in dict(train=1, val=2).items()"), *ITEMS),
    "a dictionary that a call of dict makes": (COMPREHENSION.replace(KEYS, "dict(train=1, val=2)"), *ITEMS),
    "a loop over pairs": (LOOP.replace(f"k in {KEYS}", "k, _ in [('train', 1), ('val', 2)]"), *ITEMS),
    "a loop": (LOOP, *ITEMS),
    "a loop with a name for each round": (
        LOOP.replace("loaders[k] =", "loader =") + "\n    loaders[k] = loader",
        *ITEMS,
    ),
    "names that are taken from it": (f"{COMPREHENSION}\na, b = loaders['train'], loaders['val']", "a", "b"),
    "of a function that makes some of them": (
        f"loaders = fetch({KEYS})\na = loaders['train']\nb = loaders['val']",
        "a",
        "b",
    ),
    "of two calls of it": ("a = fetch(['train'])['train']\nb = fetch(['val'])['val']", "a", "b"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_each_key_has_a_loader_of_its_own(decide, name):
    made, train, val = KNOWN[name]
    program, conversion = decide(PROGRAM.format(made=made, train=train, val=val))

    assert not program.refusals
    objects = conversion.placement.stages.first.objects
    assert [named.target for named in objects] == [train, val, "net", "opt"]


WRITTEN = "loaders = {'train': DataLoader(one, batch_size=4), 'val': DataLoader(other, batch_size=4)}"
WHERE_MADE = {
    "keys that a user gives": (f"import sys\n{COMPREHENSION.replace(KEYS, 'sys.argv[1:]')}", *ITEMS),
    "keys that are there at times": (COMPREHENSION.replace(KEYS, f"{KEYS} if k in data"), *ITEMS),
    "keys that are put together": (COMPREHENSION.replace("{k:", "{f'{k}ing':"), 'loaders["training"]', ITEMS[1]),
    "pairs by one name": (
        "loaders = {}\nfor k in [('train', 1), ('val', 2)]:\n    loaders[k[0]] = DataLoader(data[k], batch_size=4)",
        *ITEMS,
    ),
    "pairs that are the keys": (
        f"PAIRS = [('train', 1), ('val', 2)]\n{COMPREHENSION.replace(KEYS, 'PAIRS')}",
        "loaders[('train', 1)]",
        "loaders[('val', 2)]",
    ),
    "a key that is a name": (WRITTEN.replace("'train'", "first"), *ITEMS),
    "a list": ("loaders = [DataLoader(data[k], batch_size=4) for k in sets]", "loaders[0]", "loaders[1]"),
    "a list that is taken apart": ("a, b = [DataLoader(data[k], batch_size=4) for k in sets]", "a", "b"),
    "a generator that is taken apart": ("a, b = (DataLoader(data[k], batch_size=4) for k in sets)", "a", "b"),
    "values of a dictionary that has had others": (
        f"{WRITTEN}\nloaders.pop('train')\na, b = loaders.values()",
        "a",
        "b",
    ),
}


@pytest.mark.parametrize("name", WHERE_MADE)
def test_loaders_whose_keys_nobody_knows_are_prepared_where_they_are_made(decide, name):
    made, train, val = WHERE_MADE[name]
    program, conversion = decide(PROGRAM.format(made=made, train=train, val=val))

    assert not program.refusals
    assert [named.target for named in conversion.placement.stages.first.objects] == ["net", "opt"]
    wrapped = [stage for stage in conversion.placement.stages.elsewhere if stage.call is not None]
    assert len(wrapped) == made.count("DataLoader(")


def test_one_place_for_what_is_trained_on_and_what_has_to_stay_whole(decide):
    made, train, val = WHERE_MADE["a list"]
    text = PROGRAM.format(made=made, train=train, val=val)
    program, conversion = decide(f"{text}x, y = next(iter({val}))\nprint(net(x))\n")

    assert conversion is None
    assert {refusal.code for refusal in program.refusals} == {"MIG114"}


VALUES = {
    "a dictionary that is written out": (WRITTEN, "one"),
    "a comprehension": (COMPREHENSION, "data[k]"),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_in_the_order_of_the_keys(decide, name):
    made, _ = VALUES[name]
    program, conversion = decide(PROGRAM.format(made=f"{made}\na, b = loaders.values()", train="a", val="b"))

    assert not program.refusals
    assert [named.target for named in conversion.placement.stages.first.objects] == ["a", "b", "net", "opt"]


UNKNOWN = {
    "the name that the last round leaves": (
        LOOP.replace("loaders[k] =", "loader =") + "\n    loaders[k] = loader",
        'loaders["train"]',
        "loader",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_to_be_there_is_not_asked_for(decide, name):
    made, train, val = UNKNOWN[name]
    program, conversion = decide(PROGRAM.format(made=made, train=train, val=val))

    assert conversion is None
    assert {refusal.code for refusal in program.refusals} <= {"MIG901", "MIG104"}


def test_a_round_that_may_be_left_out_is_prepared_where_it_is_made(decide):
    made = LOOP.replace(KEYS, '["train", "val", "test"]').replace(":\n", ":\n    if k not in data:\n        continue\n")
    program, conversion = decide(PROGRAM.format(made=made, train=ITEMS[0], val=ITEMS[1]))

    assert not program.refusals
    assert [named.target for named in conversion.placement.stages.first.objects] == ["net", "opt"]


def test_a_key_that_a_dictionary_gets_at_times_is_left_out(decide):
    made = 'data = {"train": one}\nif other:\n    data["val"] = other\n' + COMPREHENSION.replace(KEYS, "data")
    program, conversion = decide(PROGRAM.format(made=made, train=ITEMS[0], val=ITEMS[1]))

    assert not program.refusals
    assert [named.target for named in conversion.placement.stages.first.objects] == ['loaders["train"]', "net", "opt"]


def test_models_under_keys(decide):
    text = PROGRAM.format(made=COMPREHENSION, train=ITEMS[0], val=ITEMS[1])
    text = text.replace("net = nn.Linear(1, 1)", 'nets = {k: nn.Linear(1, 1) for k in ["a", "b"]}')
    text = text.replace("net.parameters()", 'nets["a"].parameters()')
    text = text.replace("net(", 'nets["a"](').replace("net.eval", 'nets["a"].eval')
    program, conversion = decide(text)

    assert not program.refusals
    objects = [named.target for named in conversion.placement.stages.first.objects]
    assert objects == ['loaders["train"]', 'loaders["val"]', 'nets["a"]', "opt"]


LISTS = """
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

train = DataLoader(data, batch_size=4)
{made}
for epoch in range(2):
    for x, y in train:
        for net, opt in zip(nets, opts):
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
        {step}
{below}
"""
NETS = "nets = [nn.Linear(1, 1) for _ in range(2)]"
OPTS = "opts = [optim.SGD(net.parameters(), lr=0.1) for net in nets]"
POSITIONS = {
    "comprehensions": f"{NETS}\n{OPTS}",
    "lists that are written out": f"nets = [nn.Linear(1, 1), nn.Linear(1, 1)]\n{OPTS}",
    "over something else": f"nets = [nn.Linear(1, n) for n in (1, 2)]\n{OPTS}",
    "by positions": f"{NETS}\nopts = [optim.SGD(nets[i].parameters(), lr=0.1 * i) for i in range(2)]",
}


@pytest.mark.parametrize("name", POSITIONS)
def test_each_position_of_a_list_has_an_object_of_its_own(decide, name):
    below = "for net in nets:\n    net.eval()\nprint([net(x) for net in nets])"
    program, conversion = decide(LISTS.format(made=POSITIONS[name], step="pass", below=below))

    assert not program.refusals
    objects = [named.target for named in conversion.placement.stages.first.objects]
    assert objects == ["train", "nets[0]", "nets[1]", "opts[0]", "opts[1]"]
    trains = {named.target: conversion.facts.models_of[min(named.origins)] for named in program.optimizers[:1]}
    assert trains == {"opts[0]": set(program.models[0].origins)}


NOT_THERE = {
    "a number that a user gives": f"{NETS.replace('2', 'int(sys.argv[1])')}\n{OPTS}",
    "an object that is taken away": f"{NETS}\n{OPTS}\nnets.pop(0)\nopts.pop(0)",
    "objects that are added": f"{NETS}\nopts = []\nfor net in nets:\n    opts.append(optim.SGD(net.parameters()))",
}


@pytest.mark.parametrize("name", NOT_THERE)
def test_lists_of_which_nobody_knows_what_stands_where(decide, name):
    program, conversion = decide(LISTS.format(made=NOT_THERE[name], step="pass", below=""))

    assert conversion is None
    (refusal,) = program.refusals
    assert refusal.code == "MIG901"
    assert "in lists of which nobody knows what stands where" in refusal.why


def test_a_name_for_one_of_a_list_is_none_for_the_list(decide):
    """The list would go on with the raw one, and train it without the other processes."""
    made = f"{NETS}\n{OPTS}\nfirst = nets[0]"
    program, conversion = decide(LISTS.format(made=made, step="print(first(x))", below=""))

    assert conversion is None
    assert {refusal.code for refusal in program.refusals} == {"MIG104"}
