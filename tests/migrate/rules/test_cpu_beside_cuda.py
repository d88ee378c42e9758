"""`device = torch.device("cpu")` beside `model.cuda()` is where data are kept: the program trains on the GPU."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

{device}
data = TensorDataset(torch.load("x.pt").to(device), torch.load("y.pt").to(device))
loader = DataLoader(data, batch_size=4, shuffle=True)
model = {model}
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model({x}), {y})
        loss.backward()
        optimizer.step()
{end}
"""
CPU = 'device = torch.device("cpu")'


def converted(convert_text, device=CPU, model="nn.Linear(4, 1).cuda()", x="x.cuda()", y="y.cuda()", end=""):
    return convert_text(PROGRAM.format(device=device, model=model, x=x, y=y, end=end))[1]


@pytest.mark.parametrize("device", [CPU, 'device = "cpu"'])
def test_what_is_kept_on_the_cpu_stays_there(convert_text, device):
    result = converted(convert_text, device)

    assert "accelerator = Accelerator()\n" in result
    assert device in result
    assert 'torch.load("x.pt").to(device)' in result
    assert "mse_loss(model(x), y)" in result


ON_THE_CPU = {
    "where the model goes, too": {"model": "nn.Linear(4, 1).to(device)", "x": "x.to(device)", "y": "y.to(device)"},
    "where a helper that nobody needs has a model of its own": {
        "model": "nn.Linear(4, 1).to(device)",
        "x": "x.to(device)",
        "y": "y.to(device)",
        "end": "def measured():\n    return nn.Linear(4, 1).cuda()",
    },
    "where only tensors go to the GPU": {"model": "nn.Linear(4, 1)", "x": "x", "y": "y", "end": "x = x.cuda()"},
}


@pytest.mark.parametrize("name", ON_THE_CPU)
def test_the_device_of_the_model_is_the_accelerators(convert_text, name):
    result = converted(convert_text, **ON_THE_CPU[name])

    assert "Accelerator(cpu=True)" in result
    assert "device = accelerator.device" in result
