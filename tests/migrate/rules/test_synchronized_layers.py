"""Layers that share their statistics over the processes, where a branch for several of them makes them."""

import ast

import pytest

from migrate.programs.marker import ACCELERATOR, parts
from migrate.report.model import Kind

PROGRAM = """
    import os

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    world_size = int(os.environ.get("WORLD_SIZE", 1))
    sync = os.environ.get("SYNC") == "1"
    if world_size > 1:
        dist.init_process_group("nccl")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    data = TensorDataset(torch.ones(40, 4))
    sampler = DistributedSampler(data) if world_size > 1 else None
    loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None)
    if world_size > 1:
        {wrapped}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        if world_size > 1:
            sampler.set_epoch(epoch)
        for (x,) in loader:
            loss = model(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
CONVERTED = "model = nn.SyncBatchNorm.convert_sync_batchnorm(model)"
ASKED = "if accelerator.num_processes > 1 and accelerator.device.type != 'cpu':\n    "
WRAPPED = "model = nn.parallel.DistributedDataParallel({})"


@pytest.mark.parametrize(
    ("wrapped", "left"),
    [
        (f"{CONVERTED}\n        {WRAPPED.format('model')}", CONVERTED),
        (WRAPPED.format("nn.SyncBatchNorm.convert_sync_batchnorm(model)"), CONVERTED),
        (f"if sync:\n            {CONVERTED}\n        {WRAPPED.format('model')}", f"if sync:\n        {CONVERTED}"),
    ],
)
def test_several_processes_go_on_sharing_them(convert_text, wrapped, left):
    report, text = convert_text(PROGRAM.format(wrapped=wrapped))
    assert not report.of(Kind.LEFT)
    assert ASKED + left in text
    assert text.index(ASKED) < text.index("accelerator.prepare(")


@pytest.mark.parametrize(
    ("test", "asked"),
    [
        ("world_size > 1 and sync", "sync"),
        ("sync and world_size > 1", "sync"),
        ("world_size > 1 and (sync or world_size > 8)", "(sync or accelerator.num_processes > 8)"),
    ],
)
def test_an_option_beside_several_processes_is_asked_as_well(convert_text, test, asked):
    wrapped = f"{WRAPPED.format('model')}\n    if {test}:\n        {CONVERTED}"
    report, text = convert_text(PROGRAM.format(wrapped=wrapped))
    assert not report.of(Kind.LEFT)
    assert f"{ASKED[:-6]} and {asked}:\n    {CONVERTED}" in text


def test_where_there_are_none_nothing_is_asked(convert_text):
    _, text = convert_text(PROGRAM.format(wrapped=WRAPPED.format("model")))
    assert "num_processes" not in text


def test_what_is_said_where_there_are_none_is_not_said_of_several_processes(convert_text):
    wrapped = f"{WRAPPED.format('model')}\n    if sync and world_size > 1:\n        {CONVERTED}"
    report, text = convert_text(PROGRAM.format(wrapped=f'{wrapped}\n    elif sync:\n        print("none")'))
    assert not report.of(Kind.LEFT)
    assert f'{ASKED[:-6]} and sync:\n    {CONVERTED}\nelif sync:\n    accelerator.print("none")' in text


def test_it_is_asked_once_how_many_there_are(convert_text):
    program = PROGRAM.replace("sync = os", "gpus = torch.cuda.device_count()\n    sync = os")
    wrapped = f"{WRAPPED.format('model')}\n    if sync and gpus > 1 and world_size > 1:\n        {CONVERTED}"
    _, text = convert_text(program.format(wrapped=wrapped))
    assert text.count("num_processes > 1") == 1


JUDGED = """
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rank = int(os.environ.get("RANK", 0))
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
if dist.get_world_size() > 1 and os.environ.get("SYNC") == "1":
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for (x,) in loader:
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        model.eval()
        for (x,) in loader:
            print("%.5f" % model(x).sum())
        model.train()
"""


def test_a_branch_of_all_may_make_what_the_main_process_goes_on_with(convert_text):
    """The kind of the devices is the same for all: who goes there is no question of which process it is."""
    report, text = convert_text(JUDGED)
    assert not report.of(Kind.LEFT)
    assert CONVERTED in text


@pytest.mark.parametrize(("test", "may_differ"), [("device.type == 'cpu'", False), ("device.index == 0", True)])
def test_devices_are_of_one_kind(test, may_differ):
    assert parts(ast.parse(f"{ACCELERATOR}.num_processes > 1 and {ACCELERATOR}.{test}")) is may_differ
