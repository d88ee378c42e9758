"""Who starts the training: a command line may, the program's own processes and searches may not."""

import textwrap

import pytest
from typer.testing import CliRunner

from migrate.cli import app
from migrate.programs.reach.starters import is_option

TRAIN = """
    import torch
    from torch import nn, optim
    from torch.utils.data import DataLoader, TensorDataset
    {imports}

    {decorator}def train({parameters}):
        loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        model = nn.Linear(2, 1)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()


    {start}
"""
REFUSED = {
    "processes": (
        "import torch.multiprocessing as mp",
        "",
        "mp.Process(target=train).start()",
        "torch.multiprocessing.Process()",
    ),
    "a context": (
        "import multiprocessing",
        "",
        'multiprocessing.get_context("spawn").Process(target=train).start()',
        "multiprocessing.get_context().Process()",
    ),
    "a partial function": (
        "import functools, torch.multiprocessing as mp",
        "n, rank",
        "mp.spawn(functools.partial(train, 3), nprocs=2)",
        "starts its own processes",
    ),
    "threads": ("import threading", "", "threading.Thread(target=train).start()", "threading.Thread()"),
    "an executor": (
        "from concurrent.futures import ProcessPoolExecutor",
        "",
        "ProcessPoolExecutor().submit(train)",
        "concurrent.futures.ProcessPoolExecutor().submit()",
    ),
    "a search": ("import optuna", "trial", "optuna.create_study().optimize(train)", "chooses the settings"),
    "a sweep": ("import wandb", "", 'wandb.agent("id", function=train)', "wandb.agent() chooses the settings"),
}
CONVERTED = {
    "hydra": ("import hydra", '@hydra.main(config_path="conf")\n    ', "cfg", "train()"),
    "click": ("import click", "@click.command()\n    ", "", "train()"),
    "fire": ("import fire", "", "lr=0.1", "fire.Fire(train)"),
    "typer": ("import typer", "", "lr: float = 0.1", "typer.run(train)"),
    "a flag": (
        "import sys, threading",
        "",
        "",
        "if sys.argv[1:]:\n        threading.Thread(target=train).start()\n    train()",
    ),
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "train.py"

    def migrate(program=TRAIN, **parts):
        path.write_text(textwrap.dedent(program.format(**parts)).lstrip(), encoding="utf-8")
        done = CliRunner().invoke(app, ["train.py", "--write"])
        return path.read_text(encoding="utf-8"), " ".join(done.output.split())

    return migrate


@pytest.mark.parametrize("name", REFUSED)
def test_processes_threads_and_searches_are_refused(name, run):
    imports, parameters, start, why = REFUSED[name]
    changed, told = run(imports=imports, decorator="", parameters=parameters, start=start)

    assert "accelerator" not in changed
    assert "MIG111" in told
    assert why in told


@pytest.mark.parametrize("name", CONVERTED)
def test_a_command_line_starts_a_program_as_it_is(name, run):
    imports, decorator, parameters, start = CONVERTED[name]
    changed, told = run(imports=imports, decorator=decorator, parameters=parameters, start=start)

    assert "accelerator.backward(loss)" in changed, told


WATCHED = """
import threading

import torch
import torch.multiprocessing as mp
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def watch(net, n):
    while True:
        print(net(torch.ones(n, 2)))


def train():
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    model.share_memory()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    {start}
    for x, y in loader:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train()
"""
WATCHING = {
    "a process": ("mp.Process(target=watch, args=(model, 2)).start()", True),
    "by name": ("mp.Process(target=watch, kwargs={'n': 2, 'net': model}).start()", True),
    "of a context": ("mp.get_context('spawn').Process(target=watch, args=(model, 2)).start()", True),
    "another model": ("mp.Process(target=watch, args=(other, 2)).start()", False),
    "a thread": ("threading.Thread(target=watch, args=(model, 2)).start()", False),
}


@pytest.mark.parametrize("name", WATCHING)
def test_a_process_that_is_handed_the_model_is_refused(name, run):
    start, is_refused = WATCHING[name]
    changed, told = run(WATCHED, start=start)

    assert ("hands a process of the program's own the model" in told) is is_refused
    assert ("accelerator" not in changed) is is_refused


JOINING = """
import argparse
import os

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--distributed", action="store_true")
args = parser.parse_args()
{joined}
model = torch.nn.Linear(2, 1)
if args.distributed:
    model = torch.nn.parallel.DistributedDataParallel(model)
model(torch.ones(2)).backward()
"""
BY_LAUNCHER = {
    "an option": ("pass", True),
    "what the environment is asked for": ('args.distributed = "RANK" in os.environ', False),
    "a branch of it": ('if "RANK" in os.environ:\n    args.distributed = True', False),
    "its other branch": ('if "RANK" in os.environ:\n    pass\nelse:\n    args.distributed = False', False),
}


@pytest.mark.parametrize("name", BY_LAUNCHER)
def test_a_flag_that_goes_by_the_launcher_is_no_option(analysed, name):
    joined, is_users = BY_LAUNCHER[name]
    facts, _ = analysed(JOINING.format(joined=joined))
    (use,) = (u for u in facts.calls_anywhere if "torch.nn.parallel.DistributedDataParallel" in facts.called(u.node))

    assert is_option(facts, use.node) is is_users
