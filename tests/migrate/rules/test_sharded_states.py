"""Optimizers whose states are shared out over the processes."""

import pytest

PROGRAM = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
{imported}

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
loader = DataLoader(rows, batch_size=4, sampler=DistributedSampler(rows))
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1).cuda(), device_ids=[rank])
optimizer = {made}
for epoch in range(2):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {after}
"""
ZERO = "from torch.distributed.optim import ZeroRedundancyOptimizer"
SAVED = (
    "optimizer.consolidate_state_dict(to=0)\n    if rank == 0:\n        torch.save(optimizer.state_dict(), 'state.pt')"
)
OF_SGD = "optimizer_class=torch.optim.SGD"
INSIDE = {
    "of PyTorch": (
        ZERO,
        "ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=0.1)",
        "torch.optim.AdamW(model.parameters(), lr=0.1)",
    ),
    "with words of its own": (
        ZERO,
        f"ZeroRedundancyOptimizer(model.parameters(), {OF_SGD}, parameters_as_bucket_view=True, lr=0.1)",
        "torch.optim.SGD(model.parameters(), lr=0.1)",
    ),
    "of fairscale": (
        "from fairscale.optim.oss import OSS",
        "OSS(params=model.parameters(), optim=torch.optim.SGD, lr=0.1)",
        "torch.optim.SGD(params=model.parameters(), lr=0.1)",
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_the_optimizer_inside_is_made(convert_text, name):
    imported, made, inside = INSIDE[name]

    _, after = convert_text(PROGRAM.format(imported=imported, made=made, after=SAVED))

    assert f"optimizer = {inside}\n" in after
    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in after
    assert "consolidate" not in after
    assert imported not in after


UNKNOWN = {
    "by position": "ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)",
    "from a dictionary": f"ZeroRedundancyOptimizer(model.parameters(), {OF_SGD}, **dict(lr=0.1))",
    "that is computed": "ZeroRedundancyOptimizer(model.parameters(), optimizer_class=[torch.optim.SGD][0], lr=0.1)",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_inside_must_be_seen(refused_text, name):
    source = PROGRAM.format(imported=ZERO, made=UNKNOWN[name], after="print(epoch)")

    refused_text(source, "MIG902", "for x, y in loader", ())
