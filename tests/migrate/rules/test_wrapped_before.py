"""DataParallel around a model in code that leads to the object in which everything is prepared."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, loader, device):
        self.model = model
        self.optimizer = optimizer
        self.loader = loader
        self.device = device

    def fit(self):
        for epoch in range(2):
            for x, y in self.loader:
                loss = nn.functional.mse_loss(self.model(x.to(self.device)), y.to(self.device))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


def run():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(2, 1)
    {wrapped}
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(64, 2), torch.ones(64, 1)), batch_size=4, shuffle=True)
    trainer = Trainer(model, optimizer, loader, device)
    trainer.fit()
    {after}


run()
"""
GONE = {
    "plainly": "model = nn.DataParallel(model)",
    "with devices": "model = nn.DataParallel(model, device_ids=[0, 1])",
    "where there are several GPUs": "if torch.cuda.device_count() > 1:\n        model = nn.DataParallel(model)",
}


@pytest.mark.parametrize("name", GONE)
def test_the_wrapper_goes(convert_text, name):
    report, after = convert_text(PROGRAM.format(wrapped=GONE[name], after="return model"))

    assert all(finding.converts for finding in report.findings if finding.converts is not None)
    assert "DataParallel" not in after
    assert "device_count" not in after
    assert "self.accelerator.prepare(" in after


STAYING = {
    "under another name": {"wrapped": "wrapped = nn.DataParallel(model)\n    model = wrapped"},
    "over another dimension": {"wrapped": "model = nn.DataParallel(model, dim=1)"},
    "opened again": {"wrapped": "model = nn.DataParallel(model)", "after": "torch.save(model.module, 'model.pt')"},
}


@pytest.mark.parametrize("name", STAYING)
def test_what_else_is_done_with_it_is_refused(refused_text, name):
    source = PROGRAM.format(**{"after": "return model", **STAYING[name]})

    refused_text(source, "MIG110", "for x, y in self.loader", ("which stays",))
