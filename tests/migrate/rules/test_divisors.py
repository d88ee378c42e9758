"""What a sum over the processes was divided by, once the accelerator has taken the sum's place."""

import pytest

PROGRAM = """\
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--world-size", default=1, type=int)
parser.add_argument("--rank", default=0, type=int)
parser.add_argument("--parts", default=4, type=int)
parser.add_argument("--batch-size", default=4, type=int)
args = parser.parse_args()


def reduced(tensor{parameter}):
    rt = tensor.clone()
    dist.all_reduce(rt)
    {divided}
    return rt


def evaluated(model, loader):
    total = torch.zeros(())
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(model(x.cuda()), y.cuda())
    {mean}
    return mean


def main():
    dist.init_process_group("nccl", world_size=args.world_size, rank=args.rank)
    torch.cuda.set_device(args.rank)
    rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
    sampler = DistributedSampler(rows)
    loader = DataLoader(rows, batch_size=args.batch_size, sampler=sampler)
    held = DataLoader(rows, batch_size=args.batch_size, sampler=DistributedSampler(rows))
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1).cuda(), device_ids=[args.rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean = evaluated(model, held)
        if args.rank == 0:
            print(mean)


main()
"""
MEAN = "mean = reduced(total)"


def program(divided="rt /= dist.get_world_size()", mean=MEAN, parameter=""):
    return PROGRAM.format(divided=divided, mean=mean, parameter=parameter)


GONE = {
    "asked for": {},
    "an option that the process group is told": {"divided": "rt /= args.world_size"},
    "a parameter": {"divided": "rt /= n", "parameter": ", n", "mean": "mean = reduced(total, args.world_size)"},
    "a number of the rows": {"divided": "rt /= 64", "mean": "mean = reduced(total)"},
    "a number that is computed": {"divided": "n = len(parser.description or 'rows')\n    rt /= n"},
    "the size of a batch": {"divided": "rt /= args.batch_size"},
}
STAYING = {"a number of the rows", "a number that is computed", "the size of a batch"}


@pytest.mark.parametrize("name", GONE)
def test_the_number_of_processes_goes_with_the_sum(convert_text, name):
    _, after = convert_text(program(**GONE[name]))

    assert "all_reduce" not in after
    assert "world_size" not in after
    assert ("rt /= " in after) is (name in STAYING)


REFUSED = {
    "an option": ({"divided": "rt /= args.parts"}, "rt /= args.parts", "args.parts"),
    "an option by a parameter": (
        {"divided": "rt /= n", "parameter": ", n", "mean": "mean = reduced(total, args.parts)"},
        "rt /= n",
        "divided by n",
    ),
    "one of several calls": (
        {
            "divided": "rt /= n",
            "parameter": ", n",
            "mean": "mean = reduced(total, dist.get_world_size()) + reduced(total, len(loader))",
        },
        "rt /= n",
        "divided by n",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_be_that_number_is_asked_for(refused_text, name):
    holes, at, said = REFUSED[name]

    refused_text(program(**holes), "MIG113", at, (said, "is not seen"))


TELLING = """\
def tell(rt, n):
    with torch.no_grad():
        dist.reduce(rt, dst=0)
        if dist.get_rank() == 0:
            rt /= n


def evaluated("""


def test_a_function_that_only_told_the_others_goes(convert_text):
    told = "optimizer.step()\n            tell(loss, args.world_size)"

    _, after = convert_text(program().replace("def evaluated(", TELLING).replace("optimizer.step()", told))

    assert "tell(" not in after
    assert "world_size" not in after


def test_a_loader_that_nobody_reads_is_no_other_order(convert_text):
    idle = "idle = DataLoader(rows, shuffle=True)\n    for epoch in range(2):"

    report, after = convert_text(program().replace("for epoch in range(2):", idle))

    assert all(finding.converts for finding in report.findings if finding.converts is not None)
    assert "accelerator.backward(loss)" in after
