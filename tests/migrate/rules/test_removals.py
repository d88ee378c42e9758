"""Files that all processes read before the main process alone removes, renames or overwrites them."""

import pytest

PROGRAM = """
import json
import os
import shutil
import torch
from pathlib import Path
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def average(epochs, keep=False):
    total = torch.load("epoch-0.pt")
    for epoch in range(1, epochs):
        path = f"epoch-{{epoch}}.pt"
        {read}
        for key in total:
            total[key] = total[key] + state[key]
        {taken}
    return {{key: value / epochs for key, value in total.items()}}


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(TensorDataset(torch.randn(64, 2), torch.randn(64, 1)), batch_size=4, shuffle=True)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(model.state_dict(), f"epoch-{{epoch}}.pt")
    model.load_state_dict(average(3))


main()
"""
READ = "state = torch.load(path)"
TAKEN = {
    "removed": "os.remove(path)",
    "removed by choice": "if not keep:\n            os.remove(path)",
    "unlinked": "Path(path).unlink()",
    "renamed": "os.rename(path, path + '.old')",
    "renamed by its method": "path.rename(path.with_suffix('.old'))",
    "replacing another": "path.replace('old')",
    "moved": "shutil.move(path, 'old')",
    "overwritten": "torch.save(total, path)",
}


def convert(convert_text, taken, read=READ):
    _, result = convert_text(PROGRAM.format(read=read, taken=taken))
    return result


@pytest.mark.parametrize("name", TAKEN)
def test_all_have_read_what_goes_away(convert_text, name):
    is_of_path = name in ("unlinked", "renamed by its method", "replacing another")
    read = "path = Path(path)\n        state = torch.load(path)" if is_of_path else READ
    taken = "path.unlink()" if name == "unlinked" else TAKEN[name]

    result = convert(convert_text, taken, read)

    waited = "total[key] + state[key]\n        accelerator.wait_for_everyone()\n        "
    assert waited + ("accelerator.save(" if name == "overwritten" else "if ") in result


def test_what_is_written_above_the_removal_is_under_a_guard_of_its_own(convert_text):
    written = 'with open("mean.txt", "w") as out:\n            out.write(path)'
    removed = 'os.remove(path)\n        with open("log.txt", "a") as out:\n            out.write(path)'
    result = convert(convert_text, f"{written}\n        {removed}")

    guard = "        if accelerator.is_main_process:\n            "
    waited = "out.write(path)\n        accelerator.wait_for_everyone()\n"
    assert f'{guard}with open("mean.txt", "w")' in result
    assert f'{waited}{guard}os.remove(path)\n            with open("log.txt", "a")' in result


KEPT = {
    "another file": "os.remove('epoch-0.json')",
    "nothing": "print(path)",
    "a text": "print(path.replace('epoch', 'step'))",
}


@pytest.mark.parametrize("name", KEPT)
def test_nobody_waits_where_nothing_goes_away(convert_text, name):
    result = convert(convert_text, KEPT[name])

    assert "state[key]\n        accelerator.wait_for_everyone()" not in result


RECORD = """
import json
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.randn(64, 2), torch.randn(64, 1)), batch_size=4, shuffle=True)
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.load_state_dict(torch.load("last.pt"))
for x, y in loader:
    x, y = x.to(device), y.to(device)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "last.pt")
"""


def test_training_between_reading_and_writing_is_a_wait(convert_text):
    _, result = convert_text(RECORD)

    assert "torch.save" in result or "accelerator.save" in result
    assert "wait_for_everyone" not in result


def test_the_way_from_reading_to_writing_waits_without_training(convert_text):
    again = 'torch.save({"runs": 1}, "last.pt")\nfor x, y in loader:'

    _, result = convert_text(RECORD.replace("for x, y in loader:", again))

    assert result.index("torch.load(") < result.index("accelerator.wait_for_everyone()") < result.index('{"runs": 1}')


STRIPPED = """
import copy
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def strip(path):
    state = torch.load(path, map_location="cpu")
    state["model"].half()
    for parameter in state["model"].parameters():
        parameter.requires_grad = False
    torch.save(state, path)


def finish(path):
    strip(path)


def main():
    rank = int(os.environ.get("LOCAL_RANK", 0))
    world_size = int(os.environ.get("WORLD_SIZE", 1))
    if world_size > 1:
        dist.init_process_group("nccl")
    torch.manual_seed(0)
    data = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
    sampler = DistributedSampler(data) if world_size > 1 else None
    loader = DataLoader(data, batch_size=4, sampler=sampler, shuffle=sampler is None)
    model = nn.Linear(2, 1)
    if world_size > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        if world_size > 1:
            sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save({{"model": copy.deepcopy(model)}}, "last.pt")
    if rank == 0:
        {called}


main()
"""


@pytest.mark.parametrize("called", ['strip("last.pt")', 'finish("last.pt")'])
def test_nobody_waits_where_only_one_process_comes(convert_text, called):
    _, result = convert_text(STRIPPED.format(called=called))

    assert "accelerator.prepare(" in result
    assert "wait_for_everyone" not in result


@pytest.mark.parametrize("kept", ["name = path.replace('epoch', 'old')", "print(path.replace('epoch', 'old'))"])
def test_a_text_in_which_something_is_replaced_goes_nowhere(convert_text, kept):
    assert "        accelerator.wait_for_everyone()\n        " not in convert(convert_text, kept)
