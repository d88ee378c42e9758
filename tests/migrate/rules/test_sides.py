"""Tests of which one side joins a group, and both say so by a flag: `if args.launcher == "none":`."""

import pytest

SOURCE = """\
import argparse
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def init_dist(launcher):
    if launcher == "pytorch":
        dist.init_process_group("gloo", rank=int(os.environ["RANK"]))
    else:
        raise ValueError(launcher)


def main(args):
{chosen}
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    model = nn.Linear(4, 1)
    if args.distributed:
        model = DistributedDataParallel(model)
        sampler = DistributedSampler(data)
    else:
        sampler = None
    shuffle = False if args.distributed else True
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=shuffle, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        if args.distributed:
            sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", default="none")
    parser.add_argument("--batch-size", type=int, default=8)
    main(parser.parse_args())
"""
CHOSEN = {
    "one process first": """\
    if args.launcher == "none":
        args.distributed = False
    else:
        args.distributed = True
        args.batch_size //= torch.cuda.device_count()
        init_dist(args.launcher)
""",
    "several first": """\
    if args.launcher != "none":
        init_dist(args.launcher)
        args.distributed = True
        args.batch_size //= torch.cuda.device_count()
    else:
        args.distributed = False
""",
}
OTHERWISE = """\
    if args.launcher == "none":
        args.distributed = False
    else:
        args.distributed = True
    init_dist(args.launcher)
"""


@pytest.mark.parametrize("name", CHOSEN)
def test_the_side_of_one_process_stays(convert_text, name):
    _, text = convert_text(SOURCE.format(chosen=CHOSEN[name]))

    assert "split_batches=True" in text
    assert "init_dist" not in text
    assert "args.distributed" not in text
    assert "args.launcher" not in text
    assert "sampler" not in text


def test_what_joins_on_both_sides_says_nothing_of_the_test(refused_text):
    at = "DistributedSampler(data)"
    refused_text(SOURCE.format(chosen=OTHERWISE), "MIG113", at, ("what becomes of this sampler is not known",))
