"""Helpers for several processes that were copied together with others, and that nothing uses: they stay as they are."""

import pytest

ASKED = """
def get_rank():
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()
"""
HELPERS = {
    "one that asks for the rank": """
def say(text):
    print(f"[{dist.get_rank()}] {text}")
""",
    "one that asks another one": """
def is_main_process():
    return get_rank() == 0
""",
    "one that two ask": """
def is_main_process():
    return get_rank() == 0

def say_once(text):
    if is_main_process():
        print(text)
""",
    "one that joins a group": """
def start(args):
    args.rank = int(os.environ["RANK"])
    dist.init_process_group("nccl", rank=args.rank, world_size=args.world_size)
    dist.barrier()
""",
    "a class": """
class Logger:
    def __init__(self):
        self.rank = dist.get_rank()

    def say(self, text):
        if self.rank == 0:
            print(text)
""",
}
SINGLE = """
import os
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{helpers}
def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        {step}

main()
"""
SEVERAL = SINGLE.replace("    loader = ", '    dist.init_process_group("nccl")\n    loader = ').replace(
    "    optimizer = ", "    model = nn.parallel.DistributedDataParallel(model)\n    optimizer = "
)


@pytest.mark.parametrize("source", [SINGLE, SEVERAL], ids=["a plain program", "a program of several processes"])
@pytest.mark.parametrize("name", HELPERS)
def test_they_stay_as_they_are(convert_text, source, name):
    helpers = ASKED + HELPERS[name]
    _, result = convert_text(source.format(helpers=helpers, step="pass"))

    assert "accelerator.backward(loss)" in result
    assert HELPERS[name] in result
    assert ASKED in result or "get_rank" not in HELPERS[name].replace("dist.get_rank", "")


def test_one_that_is_used_is_the_accelerators(convert_text):
    helpers = ASKED + HELPERS["one that asks another one"]
    _, result = convert_text(SEVERAL.format(helpers=helpers, step="print(loss.item() if is_main_process() else 0)"))

    assert "accelerator.is_main_process" in result
    assert "def is_main_process" not in result


JOINING = HELPERS["one that joins a group"].lstrip()
USED = {
    "it is called": SINGLE.replace("def main():\n", "def main():\n    start(os)\n"),
    "it is registered": SINGLE.replace("{helpers}", "entry = {{}}.setdefault\n{helpers}").replace(
        "def main():\n", "def main():\n    entry('start', start)(os)\n"
    ),
    "its name is written out": SINGLE.replace("def main():\n", "def main():\n    globals()['start'](os)\n"),
}


@pytest.mark.parametrize("name", USED)
def test_one_that_something_names_is_looked_at(convert_text, name):
    _, result = convert_text(USED[name].format(helpers=JOINING, step="pass"))

    assert JOINING not in result or "accelerator.backward(loss)" not in result


def test_an_entry_that_nothing_calls_here_is_converted(convert_text):
    source = SEVERAL.replace("\nmain()\n", "")
    _, result = convert_text(source.format(helpers="", step="pass"))

    assert "init_process_group" not in result
    assert "accelerator.backward(loss)" in result
