"""Batches that a loop takes from an iterator one by one: each process has fewer of them."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, Sampler, TensorDataset
from tqdm import tqdm, trange


class Endless(Sampler):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        while True:
            yield from torch.randperm(self.size).tolist()


data = TensorDataset(torch.ones(40, 2), torch.ones(40, 1))
loader = DataLoader(data, batch_size=8GIVEN)
STEPS
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ONCE
for epoch in range(2):
    MAKE
    for step in OVER:
        TAKE
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
END"""
MADE = {
    "make": "batches = iter(loader)",
    "take": "x, y = next(batches)",
    "once": "",
    "over": "range(steps)",
    "end": "",
    "given": "",
}


@pytest.fixture
def converted(convert_text):
    def convert(**parts):
        text = PROGRAM
        for hole, part in (MADE | parts).items():
            text = text.replace(hole.upper(), part)
        return convert_text(text.lstrip())[1]

    return convert


@pytest.mark.parametrize(
    ("parts", "after"),
    [
        ({"steps": "steps = len(data) // 8"}, "range(min(steps, len(loader)))"),
        ({"steps": "steps = len(loader)"}, "range(min(steps, len(loader)))"),
        ({"steps": "size = len(data)", "over": "range(0, size // 8)"}, "range(0, min(size // 8, len(loader)))"),
        ({"steps": "steps = len(loader)", "over": "tqdm(range(steps))"}, "range(min(steps, len(loader)))"),
        ({"steps": "steps = len(loader)", "over": "trange(steps)"}, "trange(min(steps, len(loader))"),
        ({"steps": "steps = len(loader)", "take": "x, y = batches.__next__()"}, "range(min(steps, len(loader)))"),
        ({"steps": "steps = 3"}, "range(min(steps, len(loader)))"),
        ({"steps": "steps = 3", "make": "batches, done = iter(loader), 0"}, "range(min(steps, len(loader)))"),
        (
            {
                "steps": "steps = 3\nsampler = RandomSampler(data, replacement=True, num_samples=8 * steps)\n"
                "more = DataLoader(data, batch_size=8, sampler=sampler)",
                "make": "batches, others = iter(loader), iter(more)",
                "take": "x, y = next(batches)\n        z, y = next(others)\n        x = x + z",
            },
            "range(min(steps, len(loader), len(more)))",
        ),
    ],
)
def test_no_more_than_its_share_is_taken(converted, parts, after):
    assert after in converted(**parts)


CAUGHT = """try:
            x, y = next(batches)
        except StopIteration:
            break"""
OTHERS = {
    "the length of the share": {"steps": "", "over": "range(len(loader))"},
    "a sampler without a length": {"steps": "steps = 3", "given": ", sampler=Endless(9)"},
    "an end that is caught": {"steps": "steps = len(data) // 8", "take": CAUGHT},
    "an iterator of its own in each step": {"steps": "steps = len(data)", "take": "x, y = next(iter(loader))"},
    "one that goes on": {"steps": "steps = len(data) // 20", "once": "batches = iter(loader)", "make": "pass"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_ends_by_itself_or_goes_on_stays(converted, name):
    result = converted(**OTHERS[name])
    assert "accelerator.backward(loss)" in result
    assert "min(" not in result


@pytest.mark.parametrize(("given", "prepared"), [("", True), (", sampler=Endless(9)", False)])
def test_a_schedule_by_batches_goes_by_the_share_where_that_is_all_that_is_taken(converted, given, prepared):
    """Else the training takes as many steps as one process."""
    once = "schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=20)"
    take = f"{MADE['take']}\n        schedule.step()"
    result = converted(steps="steps = 3", once=once, take=take, given=given)
    assert ("optimizer, schedule = accelerator.prepare(" in result) == prepared


RENEWED = """
import math
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(40, 2), torch.ones(40, 1))
LOADER
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
STEPS
for step in range(30):
    if step % steps == 0:
        batches = iter(OVER)
    TAKE
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NEW, KEPT = "DataLoader(data, batch_size=8)", "loader = DataLoader(data, batch_size=8)"


def renewed(steps, loader="", over=NEW, take="x, y = next(batches)"):
    return RENEWED.replace("STEPS", steps).replace("LOADER", loader).replace("OVER", over).replace("TAKE", take)


@pytest.mark.parametrize(
    "source",
    [
        renewed("steps = math.ceil(len(data) / 8)"),
        renewed("size = len(data)\nsteps = size // 8"),
        renewed("steps = len(data) // 8", KEPT, "loader"),
    ],
)
def test_an_iterator_that_is_made_anew_by_the_size_of_the_data_is_refused(refused_text, source):
    refused_text(source, "MIG104", "if step % steps == 0:", ["batches is made anew", "its share"])


CAUGHT_INSIDE = "try:\n        x, y = next(batches)\n    except StopIteration:\n        break"


@pytest.mark.parametrize(
    "source",
    [
        renewed("steps = 3"),
        renewed("steps = len(loader)", KEPT, "loader"),
        renewed("steps = len(data) // 8", take=CAUGHT_INSIDE),
    ],
)
def test_one_that_is_made_anew_by_another_number_is_not(convert_text, source):
    assert "accelerator.backward(loss)" in convert_text(source)[1]


SHOWN = {"steps": "total = 0", "once": "batches = iter(loader)", "make": "total = 0", "over": "range(3)"}
SHOWN["take"] = """try:
            x, y = next(batches)
        except StopIteration:
            batches = iter(loader)
            x, y = next(batches)
        ADDED"""
OF_ONE = "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes"


@pytest.mark.parametrize("shown", ["total", "total / 3"])
@pytest.mark.parametrize("added", ["total += x.sum().item() / 3", "total += x.sum().item()", "total += len(x)"])
def test_what_as_many_batches_on_each_process_add_up_to_is_averaged(converted, added, shown):
    end = SHOWN | {"take": SHOWN["take"].replace("ADDED", added)}
    assert OF_ONE in converted(**end, end=f"    print({shown})\n")


def test_what_the_batches_of_a_share_add_up_to_is_summed(converted):
    parts = SHOWN | {"take": SHOWN["take"].replace("ADDED", "total += x.sum().item()"), "over": "range(len(loader))"}
    assert "total = sum(accelerator.gather_for_metrics([total]))\n" in converted(**parts, end="    print(total)\n")


AROUND = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import trange

loader = DataLoader(TensorDataset(torch.ones(40, 2), torch.ones(40, 1)), batch_size=8, shuffle=True)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = iter(loader)
total = 0
for _ in trange(5):
    x, y = next(batches)
    for _ in range(3):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
print(total / 15)
"""


def test_a_batch_that_is_taken_around_the_steps_is_dealt_out(convert_text):
    report, result = convert_text(AROUND)

    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in result
    assert "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes" in result
    assert not any(finding.code == "MIG903" for finding in report.findings)


ENDLESS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    batches = loader.__iter__()
    while True:
        try:
            yield batches.__next__()
        except StopIteration:
            batches = loader.__iter__()


def make(count):
    return DataLoader(TensorDataset(torch.ones(count, 2), torch.ones(count, 1)), batch_size=4)


{batches}
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    x, y = next(batches)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()


for step in range(4):
    train()
    {held}
"""


def test_a_generator_that_hands_on_what_is_trained_on(convert_text):
    _, result = convert_text(ENDLESS.format(batches="batches = endless(make(8))", held=""))

    assert "    return accelerator.prepare(\n        DataLoader(" in result


def test_a_generator_of_which_an_evaluation_takes_too(refused_text):
    held = "with torch.no_grad():\n        print(model(next(held)[0]).mean())"
    source = ENDLESS.format(batches="batches, held = [endless(make(count)) for count in (8, 7)]", held=held)

    refused_text(source, "MIG114", "next(held)", ["is not trained on"])
