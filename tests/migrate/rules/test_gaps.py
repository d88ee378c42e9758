"""What a function gives on the main process alone, and who goes on with it."""

import pytest

SOURCE = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def get_rank():
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()


def is_main_process():
    return get_rank() == 0


def evaluate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += (model(x) - y).abs().sum().item()
    if is_main_process():
        info = [total, 1.0]
    else:
        info = {other}
    return {given}


def main():
    data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    loader = DataLoader(data, batch_size=4)
    held = DataLoader(data, batch_size=4)
    model = nn.Linear(2, 1)
    criterion = nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    kept = []
    for epoch in range(2):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        {call}
        {read}


main()
"""


def source(*, call="info = evaluate(model, held)", read="kept.append(info[1])", other="None", given="info"):
    return SOURCE.format(call=call, read=read, other=other, given=given)


@pytest.mark.parametrize(
    ("at", "holes"),
    [
        ("info[1]", {}),
        ("info + [0.5]", {"read": "kept.append(info + [0.5])"}),
        ("info[1]", {"call": "_, info = evaluate(model, held)", "given": "total, info"}),
    ],
    ids=["an item", "a sum", "one of two"],
)
def test_what_all_read_is_refused(refused_text, at, holes):
    refused_text(source(**holes), "MIG113", at, mentions=("evaluate()", "info"))


@pytest.mark.parametrize(
    "holes",
    [
        {"read": "if is_main_process():\n            kept.append(info[1])"},
        {"read": "if info is not None:\n            kept.append(info[1])"},
        {"other": "[0.0, 0.0]"},
        {"read": "kept.append(info)"},
    ],
    ids=["asked again", "asked for", "something for all", "handed on"],
)
def test_what_is_safe_is_no_gap(convert_text, holes):
    report, _ = convert_text(source(**holes))

    assert not [finding for finding in report.findings if finding.code == "MIG113"]
