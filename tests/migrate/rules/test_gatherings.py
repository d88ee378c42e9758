"""`all_gather` in evaluations: with the whole of the data on each process, its own part is all there is."""

import pytest

PROGRAM = """\
import argparse
import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def whole(part):
    {made}
    {called}
    return {read}


def evaluated(model, loader):
    model.eval()
    found = []
    with torch.no_grad():
        for x, y in loader:
            out = model(x.cuda())
            found.append({in_loop})
    return {after_loop}


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
    sampler = DistributedSampler(rows)
    loader = DataLoader(rows, batch_size=4, sampler=sampler)
    held = DataLoader(rows, batch_size=4, sampler=DistributedSampler(rows))
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        model.train()
        sampler.set_epoch(epoch)
        for x, y in loader:
            out = model(x.cuda())
            loss = nn.functional.mse_loss({in_step}, y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        found = evaluated(model, held)
        if rank == 0:
            print(len(found))


main()
"""
HOLES = {
    "made": "parts = [torch.zeros_like(part) for _ in range(dist.get_world_size())]",
    "called": "dist.all_gather(parts, part)",
    "read": "torch.cat(parts)",
    "in_loop": "whole(out)",
    "after_loop": "torch.cat(found)",
    "in_step": "out",
}
ONE = {
    "of each batch": {},
    "after the loop": {"in_loop": "out", "after_loop": "whole(torch.cat(found))"},
    "repeated": {"made": "parts = [torch.zeros_like(part)] * dist.get_world_size()"},
    "objects": {
        "made": "parts = [None] * dist.get_world_size()",
        "called": "dist.all_gather_object(parts, part)",
        "read": "list(itertools.chain(*parts))",
        "in_loop": "whole(out.tolist())",
        "after_loop": "found",
    },
    "on the main process": {
        "made": "parts = [torch.zeros_like(part) for _ in range(2)] if dist.get_rank() == 0 else None",
        "called": "dist.gather(part, parts, dst=0)",
    },
    "objects on the main process": {
        "made": "parts = [None] * dist.get_world_size()",
        "called": "dist.gather_object(part, parts if dist.get_rank() == 0 else None)",
        "read": "list(itertools.chain(*parts))",
        "in_loop": "whole(out.tolist())",
        "after_loop": "found",
    },
    "the first beside all": {"read": "sum(parts) / parts[0].numel() / len(parts)"},
    "one after the other": {"read": "torch.cat([each.float() for each in parts])"},
}


def program(holes):
    return PROGRAM.format(**{**HOLES, **holes})


@pytest.mark.parametrize("name", ONE)
def test_the_own_part_is_all_there_is(convert_text, name):
    _, after = convert_text(program(ONE[name]))

    assert "parts = [part]\n" in after
    assert "all_gather" not in after
    assert "zeros_like" not in after


REFUSED = {
    "a single element": {"read": "parts[0]"},
    "on another process": {
        "made": "parts = [part] * dist.get_world_size()",
        "called": "dist.gather(part, parts, dst=1)",
    },
    "in a group of some": {"called": "dist.all_gather(parts, part, group=None)"},
    "without waiting": {"called": "dist.all_gather(parts, part, None, True)"},
    "a list that is made elsewhere": {"made": "parts = list(range(2))"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_else_is_gathered_is_refused(refused_text, name):
    holes = REFUSED[name]

    refused_text(program(holes), "MIG113", "gather(part", ("gather",))


def test_what_is_divided_by_their_number_is_whole_already(convert_text):
    _, after = convert_text(program({**ONE["on the main process"], "read": "sum(parts) / dist.get_world_size()"}))

    assert "return sum(parts)\n" in after


#: Each process has data of its own, by its rank, and no loader that shares them out.
DRAWING = """\
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(3 * dist.get_rank())
for step in range(8):
    x = torch.randn(4, 2)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
parts = [torch.zeros_like(loss) for _ in range(dist.get_world_size())]
dist.all_gather(parts, loss.detach())
print(sum(parts).item())
"""


def test_what_is_gathered_of_data_that_each_draws_itself_is_refused(refused_text):
    refused_text(DRAWING, "MIG113", "dist.all_gather(", ("gathered",))


def test_what_a_loss_gathers_is_refused(refused_text):
    holes = {"in_step": "whole(out)[:4]"}

    refused_text(program(holes), "MIG113", "dist.all_gather(", ("for a loss",))


def test_what_a_step_gathers_to_show_it_is_refused(refused_text):
    shown = program({}).replace("optimizer.step()", "optimizer.step()\n            shown = whole(loss.detach())")

    refused_text(shown, "MIG113", "dist.all_gather(", ("gathered",))
