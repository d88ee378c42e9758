"""Statistics of batch normalization that a model takes anew from a prepared loader are those of all processes."""

PROGRAM = """\
import torch
from torch import nn
from torch.optim import swa_utils
from torch.utils.data import DataLoader, TensorDataset

rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
loader = DataLoader(rows, batch_size=4)
others = DataLoader(rows, batch_size=4)
model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
averaged = swa_utils.AveragedModel(model)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    averaged.update_parameters(model)
swa_utils.update_bn(loader, averaged)
torch.save(averaged.state_dict(), "averaged.pt")
"""
JOINED = """\
swa_utils.update_bn(loader, averaged)
for statistic in averaged.buffers():
    if statistic.is_floating_point():
        statistic.copy_(accelerator.reduce(statistic, reduction="mean"))
"""


def test_the_statistics_are_joined(convert_text):
    assert JOINED in convert_text(PROGRAM)[1]


def test_those_of_a_loader_that_every_process_has_to_itself_are_not(convert_text):
    _, after = convert_text(PROGRAM.replace("update_bn(loader", "update_bn(others"))

    assert "statistic" not in after


def test_without_a_name_it_is_left_to_the_user(convert_text):
    report, after = convert_text(PROGRAM.replace("(loader, averaged)", "(loader, [averaged][0])"))

    assert "statistic" not in after
    assert any("takes these statistics from its share" in each.message for each in report.findings)
