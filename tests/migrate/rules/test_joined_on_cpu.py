"""Batches that an evaluation puts into a list as they are, and what PyTorch makes of that list below it."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
data = TensorDataset(torch.rand(16, 2), torch.rand(16, 1))
loader = DataLoader(data, batch_size=4)
val = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
model.eval()
found, wanted = [], []
with torch.no_grad():
    for x, y in val:
        {kept}
print({shown})
"""
BESIDE = "(torch.cat(found) - torch.cat(wanted)).shape[0]"
ON_CPU = {
    "what the model found is brought there": ("found.append(model(x.to(device)).cpu()); wanted.append(y)", BESIDE),
    "stacked": (
        "found.append(model(x.to(device)).cpu()); wanted.append(y)",
        "len(torch.stack(found) == torch.stack(wanted)) * 4",
    ),
}
ON_DEVICE = {
    "both are on the device": ("found.append(model(x.to(device))); wanted.append(y.to(device))", BESIDE),
    "nothing is made of them": ("found.append(model(x.to(device)).cpu()); wanted.append(y)", "4 * len(wanted)"),
}


@pytest.mark.parametrize("name", ON_CPU)
def test_they_stay_on_the_cpu(convert_text, on_pretended_gpu, name):
    kept, shown = ON_CPU[name]
    _, result = convert_text(PROGRAM.format(kept=kept, shown=shown))

    assert "device_placement=[True, False, True, True]" in result
    assert on_pretended_gpu(result) == "16\n"


@pytest.mark.parametrize("name", ON_DEVICE)
def test_else_the_loader_places_them(convert_text, on_pretended_gpu, name):
    kept, shown = ON_DEVICE[name]
    _, result = convert_text(PROGRAM.format(kept=kept, shown=shown))

    assert "device_placement" not in result
    assert on_pretended_gpu(result) == "16\n"
