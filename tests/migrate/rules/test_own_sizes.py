"""The size of one process's batches, which was divided for its loader, and which other code goes by, too."""

import pytest

SOURCE = """\
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


{functions}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {before}
    {size}
    data = TensorDataset(torch.randn(64, 4), torch.arange(64) % 4)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, {name}, sampler=sampler, drop_last=True)
    test_loader = DataLoader(data, {name})
    {setup}
    for epoch in range(2):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            {batch}
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in test_loader:
                right = (model(x).argmax(1) == y).sum()
                {judged}
    if rank == 0:
        print("%.5f" % sum((p * p).sum().item() for p in model.parameters()))


if __name__ == "__main__":
    main()
"""
HOLES = {
    "functions": "",
    "before": "pass",
    "size": "batch_size = args.batch_size // world_size",
    "name": "batch_size",
    "setup": "pass",
    "batch": "pass",
    "judged": "pass",
}
COUNT = "accelerator.num_processes"
OWN = {
    "a part": (
        {"setup": "part = int(batch_size / 4)", "batch": "x, y = x[:part], y[:part]"},
        f"part = int((batch_size // {COUNT}) / 4)",
    ),
    "of a step": ({"batch": "x = x + torch.zeros(batch_size, 4)"}, f"torch.zeros(batch_size // {COUNT}, 4"),
    "a comparison": ({"batch": "if x.size(0) != batch_size: continue"}, f"!= batch_size // {COUNT}"),
    "an option": (
        {
            "size": "args.batch_size //= world_size",
            "name": "args.batch_size",
            "batch": "part = args.batch_size // 2; x, y = x[:part], y[:part]",
        },
        f"part = (args.batch_size // {COUNT}) // 2",
    ),
    "of a function that is called later": (
        {
            "functions": "def half(args):\n    return args.batch_size // 2",
            "size": "args.batch_size = int(args.batch_size / world_size)",
            "name": "args.batch_size",
            "batch": "x = x[: half(args)]; y = y[: half(args)]",
        },
        f"return (args.batch_size // {COUNT}) // 2",
    ),
    "given anew at times": (
        {
            "batch": "if epoch: batch_size = args.batch_size // world_size"
            "\n            part = batch_size // 2; x = x[:part]; y = y[:part]"
        },
        f"part = (batch_size // {COUNT}) // 2",
    ),
    "given anew by what it was": (
        {"setup": "batch_size = max(batch_size, 2); part = batch_size // 2", "batch": "x, y = x[:part], y[:part]"},
        f"part = (batch_size // {COUNT}) // 2",
    ),
}
ALL = {
    "of all processes": ({"setup": "seen = 0", "batch": "seen += batch_size * world_size"}, "seen += batch_size\n"),
    "in a product": ({"setup": "k = 2", "batch": "k = k * batch_size * world_size"}, "k = k * batch_size\n"),
    "what is shown": ({"setup": 'print("size", batch_size)'}, 'accelerator.print("size", batch_size)'),
    "in an evaluation": ({"judged": "share = right / batch_size"}, "share = right / batch_size\n"),
    "before it": (
        {
            "before": "rate = args.batch_size / 256",
            "size": "args.batch_size = int(args.batch_size / world_size)",
            "name": "args.batch_size",
        },
        "rate = args.batch_size / 256\n",
    ),
    "given anew": (
        {
            "before": "batch_size = args.batch_size",
            "setup": "batch_size = 8\n    rate = batch_size / 256\n    batch_size = batch_size // world_size"
            "\n    loader = DataLoader(data, batch_size, sampler=sampler, drop_last=True)",
        },
        "rate = batch_size / 256\n",
    ),
    "of a function that is called before": (
        {
            "functions": "def rate(args):\n    return args.batch_size / 256",
            "before": "print(rate(args))",
            "size": "args.batch_size = int(args.batch_size / world_size)",
            "name": "args.batch_size",
        },
        "return args.batch_size / 256\n",
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_what_a_process_goes_by_is_divided(convert_text, name):
    holes, expected = OWN[name]
    text = convert_text(SOURCE.format(**HOLES | holes))[1]
    assert expected in text
    assert "split_batches=True" in text


@pytest.mark.parametrize("name", ALL)
def test_what_is_of_all_is_not(convert_text, name):
    holes, expected = ALL[name]
    text = convert_text(SOURCE.format(**HOLES | holes))[1]
    assert expected in text
    assert f"batch_size // {COUNT}" not in text
