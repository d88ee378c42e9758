"""Processes of a pool: what they fill is theirs, and what they give comes in order, so all decide alike by it."""

import pytest

PROGRAM = """\
import multiprocessing
import multiprocessing.pool
import concurrent.futures
import random

import numpy as np
import torch
from torch import nn, optim

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
rows = torch.linspace(0, 1, 32).view(16, 2)


def score(row):
    found = []
    for value in row:
        if value > 0:
            found.append(1)
        else:
            found.append(0)
    return found[0]


def evaluate(model):
    pool = {pool}
    with torch.no_grad():
        predicted = model(rows.to(device)).cpu().numpy()
    total = 0
    for each in pool.{called}(score, predicted):
        total += each
    return total / 16


model = nn.Linear(2, 1).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(100):
    loss = model(rows.to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evaluate(model) > 0.9:
        break
"""
IN_ORDER = {
    "map": "multiprocessing.Pool(2)",
    "imap": "multiprocessing.Pool(2)",
    "map ": "concurrent.futures.ProcessPoolExecutor()",
}


@pytest.mark.parametrize("called", IN_ORDER)
def test_what_a_pool_gives_in_order_decides_alike(convert_text, called):
    _, result = convert_text(PROGRAM.format(pool=IN_ORDER[called], called=called.strip()))

    assert "accelerator.backward(loss)" in result


@pytest.mark.parametrize(
    ("pool", "called"),
    [("multiprocessing.Pool(2)", "imap_unordered"), ("multiprocessing.pool.ThreadPool(2)", "map")],
)
def test_what_comes_as_it_is_ready_does_not(refused_text, pool, called):
    at = "if evaluate(model) > 0.9:"
    refused_text(PROGRAM.format(pool=pool, called=called), "MIG122", at, ["which a clock or the system gives"])
