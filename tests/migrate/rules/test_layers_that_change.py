"""What prints and changes the layers of a model, such as a pruning, is for all processes."""

import pytest

SOURCE = """
import torch
from torch import nn
from torch.nn.utils import prune
from torch.utils.data import DataLoader, TensorDataset


class Masked(nn.Linear):
    def __init__(self, inside, outside):
        super().__init__(inside, outside)
        self.mask = nn.Parameter(torch.ones(outside, inside), requires_grad=False)

    def forward(self, x):
        return nn.functional.linear(x, self.weight * self.mask, self.bias)

    def cut(self, threshold):
        self.mask.data = (self.weight.data.abs() > threshold).float()

    def share(self):
        return self.mask.mean().item()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = Masked(4, 1)

    def forward(self, x):
        return self.last(x)

    def cut(self, threshold):
        for name, layer in self.named_modules():
            if name == "last":
                print("cutting", name)
                layer.cut(threshold)

    def show(self):
        for name, layer in self.named_modules():
            if name == "last":
                print(name, layer.share())


def cut(model):
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear):
            print("cutting", name)
            {change}


model = Net()
loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    {call}
"""
CUT = "prune.l1_unstructured(layer, name='weight', amount=0.5)"
GUARD = "    if accelerator.is_main_process:\n"


@pytest.mark.parametrize(
    ("call", "change", "result"),
    [
        pytest.param("model.cut(0.1)", CUT, "accelerator.unwrap_model(model).cut(0.1)", id="the project's layers"),
        pytest.param("cut(model)", CUT, "cut(", id="by PyTorch"),
        pytest.param("cut(model)", "layer.reset_running_stats()", "cut(", id="its buffers"),
    ],
)
def test_what_changes_layers_runs_on_all_processes(convert_text, call, change, result):
    _, text = convert_text(SOURCE.format(call=call, change=change))

    assert f"    {result}" in text
    assert GUARD not in text


def test_what_only_shows_them_runs_on_one(convert_text):
    _, text = convert_text(SOURCE.format(call="model.show()", change=CUT))

    assert f"{GUARD}        accelerator.unwrap_model(model).show()\n" in text
