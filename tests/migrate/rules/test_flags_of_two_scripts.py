"""Two scripts with a flag of the same name under which each joins a process group: a flag of its own each."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

ENGINE = """\
import torch


def fit(model, optimizer, loader, device):
    model.train()
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPT = """\
import os

import torch
import torch.distributed as dist
from engine import fit
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

if __name__ == "__main__":
    distributed = False
    torch.manual_seed({seed})
    if {asked}:
        dist.init_process_group("nccl")
        local_rank = int(os.environ["LOCAL_RANK"])
        device = torch.device("cuda", local_rank)
    else:
        local_rank = 0
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows = TensorDataset(torch.randn(64, 2), torch.randn(64, 1))
    batch_size = int(os.environ.get("BATCH", "8"))
    if distributed:
        sampler = DistributedSampler(rows, shuffle=True)
        batch_size = batch_size // torch.cuda.device_count()
        shuffle = False
    else:
        sampler = None
        shuffle = True
    loader = DataLoader(rows, batch_size=batch_size, shuffle=shuffle, sampler=sampler)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(2):
        if distributed:
            sampler.set_epoch(epoch)
        fit(model, optimizer, loader, device)
        if local_rank == 0:
            print(model.weight.sum().item())
"""


@pytest.fixture
def converted(tmp_path, monkeypatch):
    def convert(**files):
        for name, text in {"engine": ENGINE, **files}.items():
            (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        report = run(["."], Options())
        after = {change.path: change.new.decode() for change in report.changes}
        return after, [finding for finding in report.findings if finding.kind is Kind.LEFT]

    return convert


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_flag_is_that_of_its_script(converted, count):
    scripts = {f"train_{n}": SCRIPT.format(seed=n, asked="distributed") for n in range(count)}

    after, left = converted(**scripts)

    assert not left
    assert after.keys() == {"engine.py", *(f"{name}.py" for name in scripts)}
    for name in scripts:
        assert "distributed" not in after[f"{name}.py"].replace("DistributedDataParallelKwargs", "")
        assert "loader = DataLoader(rows, batch_size=batch_size, shuffle=shuffle)" in after[f"{name}.py"]


@pytest.mark.parametrize("name", ["train_a", "train_b"])
def test_a_flag_under_which_nothing_is_joined_is_none_beside_one_that_is(converted, name):
    """Of the other script's flag nothing is known here: under another test than its own it has joined."""
    others = {"train_a": "distributed", "train_b": "distributed"} | {name: "'OTHER' in os.environ"}
    scripts = {each: SCRIPT.format(seed=1, asked=asked) for each, asked in others.items()}

    after, left = converted(**scripts)

    assert not after
    assert any(f"{name}.py" in finding.path for finding in left)
