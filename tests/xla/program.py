"""A small training, run by the tests on each kind of device: prints what it computed as JSON."""

from __future__ import annotations

import json
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from runtime import Accelerator, set_seed


class Net(nn.Module):
    """A weight that two layers share, and statistics of batches."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8, bias=False)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, 6, bias=False)
        self.last.weight = nn.Parameter(self.first.weight.detach().t().clone())
        self.again = nn.Linear(8, 6, bias=False)
        self.again.weight = self.last.weight

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        return self.last(x) + self.again(x)


def data(size):
    made = torch.Generator().manual_seed(3)
    return TensorDataset(torch.randn(size, 6, generator=made), torch.randint(0, 6, (size,), generator=made))


def main(folder, mixed_precision):
    set_seed(11)
    accelerator = Accelerator(mixed_precision=mixed_precision, gradient_accumulation_steps=2)
    torch.manual_seed(5)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)  # made before the model is moved
    loader = DataLoader(data(38), batch_size=8, shuffle=True)  # the last batch has 6 rows: four chips cannot share it
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    losses = []

    def epoch():
        net.train()
        for x, y in loader:
            with accelerator.accumulate(net):
                loss = nn.functional.cross_entropy(net(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.detach())

    epoch()
    accelerator.save_state(folder)
    epoch()
    drawn = torch.rand(3, device=accelerator.device)
    accelerator.load_state(folder)
    epoch()
    again = torch.rand(3, device=accelerator.device)
    net.eval()
    hits = 0
    with torch.no_grad():
        for x, y in accelerator.prepare_data_loader(DataLoader(data(21), batch_size=8)):
            predicted, target = accelerator.gather_for_metrics((net(x).argmax(1), y))
            hits += (predicted == target).sum().item()
    accelerator.save(net.state_dict(), f"{folder}-net.pt")
    saved = {str(value.device) for value in torch.load(f"{folder}-net.pt").values()}
    print(
        json.dumps(
            {
                "device": accelerator.device.type,
                "type": accelerator.distributed_type.value,
                "losses": [loss.item() for loss in losses],
                "repeats": drawn.tolist() == again.tolist(),
                "hits": hits,
                "saved": sorted(saved),
                "is_shared": net.last.weight is net.again.weight,
                "keys": len(torch.load(f"{folder}-net.pt")),
            }
        )
    )
    accelerator.end_training()


main(*sys.argv[1:])
