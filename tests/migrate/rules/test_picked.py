"""A device that a function gives which also makes it the current one."""

PICKED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def pick(gpu=0):
    if torch.cuda.is_available():
        {also}
        return torch.device("cuda", gpu)
    return torch.device("cpu")

def score(model, x, device):
    with torch.no_grad():
        return model(x.to(device)).shape[0]

device = pick()
torch.manual_seed(0)
x = torch.rand(16, 2)
loader = DataLoader(TensorDataset(x), batch_size=4)
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (batch,) in loader:
    optimizer.zero_grad()
    model(batch.to(device)).pow(2).mean().backward()
    optimizer.step()
print(score(model, x, device))
"""


def test_the_device_is_the_accelerators(convert_text, on_pretended_gpu):
    _, result = convert_text(PICKED.format(also="torch.cuda.set_device(gpu)"))

    assert "device = accelerator.device" in result
    assert "set_device" not in result
    assert on_pretended_gpu(result) == "16\n"


def test_what_is_printed_there_is_printed_once(convert_text):
    _, result = convert_text(PICKED.format(also='print("on the GPU")'))

    assert '        print("on the GPU")' not in result.splitlines()
