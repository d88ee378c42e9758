"""Tests in a training loop that go by how many samples one process has seen are told (contract E2)."""

import pytest

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
size = {size}
x = torch.rand(64, 3)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=size, shuffle=True)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = steps = 0

def step(x, y):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {inside}

for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        {above}
        step(x, y)
        steps += 1
        {below}
print(*(round(each, 4) for each in model.weight.flatten().tolist()))
"""
BREAK = "if {}:\n            break"
TOLD = {
    "by the number of the batch": ("above", BREAK.format("i * len(x) >= 32")),
    "by the size that the loader was told": ("above", BREAK.format("(i + 1) * size > 32 and epoch")),
    "added up": ("below", f"seen += x.size(0)\n        {BREAK.format('seen >= 48')}"),
    "in turns": ("below", "seen += len(y)\n        if seen % 32 == 0:\n            print(loss_of(x))"),
    "chosen in an expression": ("below", "seen += x.shape[0]\n        optimizer.zero_grad() if seen < 9 else None"),
    "where it trains": ("inside", "global seen\n    seen += len(x)\n    if seen > 40: model.eval()"),
}


def _source(hole, code, size=8):
    code = code.replace("loss_of(x)", "model(x).sum().item()")
    return SOURCE.format(**{"inside": "", "above": "", "below": ""} | {"size": size, hole: code})


def _told(report):
    return [each for each in report.findings if "goes by the samples of one process" in each.message]


@pytest.mark.parametrize("name", TOLD)
def test_what_goes_by_the_samples_of_a_process_is_told(convert_text, name):
    report, result = convert_text(_source(*TOLD[name]))

    assert "accelerator.prepare(" in result
    assert len(_told(report)) == 1


OTHERS = {
    "of one batch": ("above", "if len(x) < 4:\n            continue"),
    "by steps": ("below", BREAK.format("steps >= 5")),
    "by the number of the batch": ("below", BREAK.format("2 * i > 5")),
    "by what is no batch": ("below", BREAK.format("i * len(loader.dataset) > 128")),
    "only shown": ("below", "if i % 2 == 0:\n            print(i * len(x))"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_is_not(convert_text, name):
    report, result = convert_text(_source(*OTHERS[name]))

    assert "accelerator.prepare(" in result
    assert not _told(report)


def test_the_way_out_that_is_told(convert_text, numbers_printed):
    alone = numbers_printed(_source(*TOLD["added up"], size=8), 1)
    report, result = convert_text(_source(*TOLD["added up"], size=4))
    better = result.replace("seen += x.size(0)", "seen += x.size(0) * accelerator.num_processes")

    assert "multiply by accelerator.num_processes" in _told(report)[0].hint
    assert numbers_printed(result, 2)[:3] != pytest.approx(alone, abs=2e-4)
    assert numbers_printed(better, 2)[:3] == pytest.approx(alone, abs=2e-4)


TURNS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
size = 8
x = torch.rand(64, 3)
data = TensorDataset(x, x.sum(1, keepdim=True))
loaders = {{"train": DataLoader(data, batch_size=size, shuffle=True), "val": DataLoader(data, batch_size=size)}}
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for phase in ["train", "val"]:
        for i, (x, y) in enumerate(loaders[phase]):
            with torch.set_grad_enabled(phase == "train"):
                loss = nn.functional.mse_loss(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if phase == "{phase}":
                if i * size < 16:
                    print(i)
"""


@pytest.mark.parametrize(("phase", "told"), [("train", 1), ("val", 0)])
def test_where_a_loop_only_evaluates_a_process_has_seen_all(convert_text, phase, told):
    report, result = convert_text(TURNS.format(phase=phase))

    assert "accelerator.prepare(" in result
    assert len(_told(report)) == told
