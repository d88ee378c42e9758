"""What a model, or a loss, collects from all processes in the steps of its training: the accelerator gathers it."""

import pytest

SOURCE = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@torch.no_grad()
def gather_all(tensor):
    {gather}


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(4, 3), nn.Linear(4, 3)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        q = self.query(x)
        keys = {keys}
        labels = torch.arange(len(q)) + len(q) * dist.get_rank()
        return nn.functional.cross_entropy(q @ keys.t(), labels)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 4))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(Contrast())
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            loss = model(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        dist.all_reduce(loss)
        if dist.get_rank() == 0:
            print(round(loss.item() / dist.get_world_size(), 4))
        {epoch}


main()
"""
GATHER = """parts = [torch.ones_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    {last}"""


def source(last="return torch.cat(parts, dim=0)", keys="gather_all(self.key(x))", epoch="pass", gather=GATHER):
    return SOURCE.format(gather=gather.format(last=last), keys=keys, epoch=epoch)


@pytest.mark.parametrize(
    ("last", "becomes"),
    [
        ("return torch.cat(parts, dim=0)", "return accelerator.gather(tensor.detach())"),
        ("return torch.cat(parts)", "return accelerator.gather(tensor.detach())"),
        ("parts = torch.cat(parts)\n    return parts", "parts = accelerator.gather(tensor.detach())\n    return parts"),
    ],
)
def test_joined_rows_of_all_are_gathered(convert_text, last, becomes):
    _, changed = convert_text(source(last))
    assert f"def gather_all(tensor, accelerator):\n    {becomes}\n" in changed
    assert "keys = gather_all(self.key(x), self.accelerator)" in changed
    assert "len(q) * self.accelerator.process_index" in changed


def test_the_rows_of_all_are_those_of_one(convert_text, numbers_printed):
    _, changed = convert_text(source())
    whole = numbers_printed(changed, 1)
    assert len(whole) == 2
    assert numbers_printed(changed.replace("batch_size=8", "batch_size=4"), 2) == pytest.approx(whole, abs=2e-4)


def test_it_stays_where_only_several_processes_gather(convert_text):
    gather = "if dist.get_world_size() == 1:\n        return tensor\n    " + GATHER
    _, changed = convert_text(source(gather=gather))
    assert "    if accelerator.num_processes == 1:\n        return tensor\n" in changed
    assert "    return accelerator.gather(tensor.detach())\n" in changed


def test_what_a_model_sends_in_each_step_is_sent(convert_text):
    sent = "order = torch.randperm(len(x))\n        dist.broadcast(order, src=0)"
    order = f"self.key(x)\n        {sent}\n        keys = keys[order]"
    _, changed = convert_text(source(keys=order))
    assert "        broadcast(order)\n" in changed


@pytest.mark.parametrize(
    ("holes", "at", "words"),
    [
        ({"last": "parts[dist.get_rank()] = tensor\n    return torch.cat(parts)"}, "dist.all_gather", "for a loss"),
        ({"last": "return torch.cat(parts, dim=1)"}, "dist.all_gather", "for a loss"),
        ({"last": "return parts[0]"}, "dist.all_gather", "for a loss"),
        ({"last": "tensor = tensor * 2\n    return torch.cat(parts) * tensor.sum()"}, "dist.all_gather", "for a loss"),
        ({"epoch": "print(gather_all(torch.ones(1)))"}, "dist.all_gather", "in code around models"),
    ],
)
def test_what_the_accelerator_does_not_gather_so_is_refused(refused_text, holes, at, words):
    refused_text(source(**holes), "MIG113", at, (words,))
