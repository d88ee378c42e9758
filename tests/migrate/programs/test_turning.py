"""Loops that train and evaluate by turns, on a dictionary of loaders."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

loaders = {{x: DataLoader(data[x], batch_size=4) for x in ["train", "val"]}}
{early}
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
{late}
for epoch in range(3):
    for phase in {phases}:
        total = 0.0
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = net(x).sum()
                if phase == "train":
                    loss.backward()
                    opt.step()
            total += loss.item()
        print(phase, total)
"""


def _program(early="", late="", phases='["train", "val"]'):
    return PROGRAM.format(early=early, late=late, phases=phases)


@pytest.mark.parametrize(
    "holes",
    [
        {},
        {"early": 'x, y = next(iter(loaders["train"]))'},
        {"early": "sizes = {k: len(v.dataset) for k, v in loaders.items()}"},
        {"late": 'size = len(loaders["val"].dataset)'},
    ],
)
def test_the_loader_that_is_trained_on_is_prepared(decide, holes):
    program, conversion = decide(_program(**holes))

    assert not program.refusals
    assert [named.target for named in conversion.placement.stages.first.objects] == ['loaders["train"]', "net", "opt"]


LITERAL = '{x: DataLoader(data[x], batch_size=4) for x in ["train", "val"]}'
SETS = "sets = {x: Data(x) for x in names}\n"
NAMED = {
    "a list by its name": ('names = ["train", "val"]\n', "{x: DataLoader(data[x], batch_size=4) for x in names}", True),
    "the items of a dictionary": (
        'sets = {"train": data[0], "val": data[1]}\n',
        "{x: DataLoader(part, batch_size=4) for x, part in sets.items()}",
        True,
    ),
    "the keys of one that a list makes": (
        f'names = ("train", "val")\n{SETS}',
        "{x: DataLoader(sets[x], batch_size=4) for x in sets}",
        True,
    ),
    "a list that a user gives": (
        "import sys\nnames = sys.argv[1:]\n",
        "{x: DataLoader(data[x], batch_size=4) for x in names}",
        False,
    ),
    "one of two lists": (
        'names = ["train", "val"]\nif small:\n    names = ["val"]\n',
        "{x: DataLoader(data[x], batch_size=4) for x in names}",
        False,
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_loaders_under_names_that_are_written_elsewhere(decide, name):
    before, made, is_known = NAMED[name]
    text = _program().replace(f"loaders = {LITERAL}", f"{before}loaders = {made}")
    program, conversion = decide(text)

    assert (not program.refusals) is is_known
    if conversion is not None:
        objects = conversion.placement.stages.first.objects
        assert [named.target for named in objects] == ['loaders["train"]', "net", "opt"]


def test_moves_stay_since_only_some_batches_arrive_on_the_device(decide):
    text = _program().replace("net(x)", 'net(x.to("cuda"))')
    _, conversion = decide(text)

    assert [move.is_dropped for move in conversion.moves] == [False]


@pytest.mark.parametrize(
    "late",
    [
        'steps = len(loaders["train"])',
        "steps = {k: len(loaders[k]) for k in loaders}",
        "for name, loader in loaders.items():\n    print(name, len(loader))",
    ],
)
def test_loaders_taken_out_in_other_ways_are_refused(decide, late):
    program, conversion = decide(_program(late=late))

    assert conversion is None
    assert {refusal.code for refusal in program.refusals} == {"MIG114"}


def test_a_sum_that_goes_on_over_the_phases_is_refused(decide):
    text = _program().replace("        total = 0.0\n", "").replace("    for phase", "    total = 0.0\n    for phase")
    text = text.replace("        print(phase, total)", "    print(total)")
    program, conversion = decide(text)

    assert conversion is None
    assert "cannot be joined" in program.refusals[0].why


def test_phases_that_are_not_written_out_are_refused(decide):
    _, conversion = decide(_program(phases="names"))

    assert conversion is None


MADE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

def make_loaders():
    train_loader = DataLoader(data, batch_size=4)
    held = DataLoader(other, batch_size=4)
    return train_loader, held

def main():
    {made}
    loaders = {{"train": train_loader, "val": held}}
    net = nn.Linear(1, 1)
    opt = optim.SGD(net.parameters(), lr=0.1)
    best = 0.0
    for epoch in range(3):
        for phase in ["train", "val"]:
            found = []
            for x, y in loaders[phase]:
                with torch.set_grad_enabled(phase == "train"):
                    out = net(x)
                    if phase == {kept}:
                        found.extend([row for row in out.detach().cpu().numpy()])
                    if phase == "train":
                        out.sum().backward()
                        opt.step()
            if phase == {kept}:
                score = score_of(found)
                if score > best:
                    best = score
                    torch.save(net.state_dict(), "best.pt")

main()
"""
UNPACKED = "train_loader, held = make_loaders()"


def test_loaders_of_a_dictionary_that_a_function_makes_together(decide):
    program, conversion = decide(MADE.format(made=UNPACKED, kept='"val"'))

    assert not program.refusals
    assert [named.target for named in conversion.placement.stages.first.objects] == ['loaders["train"]', "net", "opt"]


def test_loaders_that_a_tuple_goes_on_holding_are_refused(decide):
    kept = "both = make_loaders()\n    train_loader, held = both"
    program, conversion = decide(MADE.format(made=kept, kept='"val"'))

    assert conversion is None
    assert {refusal.code for refusal in program.refusals} == {"MIG901"}


@pytest.mark.parametrize(("kept", "is_share"), [('"val"', False), ('"train"', True)])
def test_what_the_last_batch_gives_is_a_share_where_that_is_trained_on(decide, kept, is_share):
    collected = "found.extend([row for row in out.detach().cpu().numpy()])"
    text = MADE.format(made=UNPACKED, kept=kept).replace(collected, "found = out.detach().cpu().numpy()")
    program, _ = decide(text)

    assert {refusal.code for refusal in program.refusals} == ({"MIG122"} if is_share else set())
