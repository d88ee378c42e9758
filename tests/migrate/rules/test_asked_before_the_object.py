"""What a program asks of its rank before it makes the object in which the accelerator is made."""

PROGRAM = """\
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, model, loader, optimizer):
        self.gpu_id = int(os.environ["LOCAL_RANK"])
        self.model = model.to(self.gpu_id)
        self.loader = loader
        self.optimizer = optimizer
        self.model = nn.parallel.DistributedDataParallel(self.model, device_ids=[self.gpu_id])

    def train(self):
        for epoch in range(2):
            self.loader.sampler.set_epoch(epoch)
            for x, y in self.loader:
                x, y = x.to(self.gpu_id), y.to(self.gpu_id)
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if int(os.environ["LOCAL_RANK"]) == 0:
        {before}
    rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
    loader = DataLoader(rows, batch_size=4, sampler=DistributedSampler(rows))
    model = nn.Linear(2, 1)
    trainer = Trainer(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
    trainer.train()
    if int(os.environ["LOCAL_RANK"]) == 0:
        print("trained")
    dist.destroy_process_group()


main()
"""


def test_before_rank_tells_and_after_the_object_is_asked(convert_text):
    report, after = convert_text(PROGRAM.format(before='print("starting")'))

    assert '    if os.environ.get("RANK", "0") == "0":\n        print("starting")\n    rows' in after
    assert '    trainer.train()\n    if trainer.accelerator.is_local_main_process:\n        print("trained")' in after
    assert "LOCAL_RANK" not in after
    assert not [finding for finding in report.findings if "before the accelerator exists" in finding.message]


def test_what_would_do_harm_on_all_is_refused(refused_text):
    before = 'torch.save({}, "started.pt")'

    refused_text(PROGRAM.format(before=before), "MIG113", "if int(", ())
