"""Models that are exported to a file and read again: all processes wait for what the main process writes."""

import pytest

SOURCE = """
import onnx
import onnxruntime
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(16, 2), torch.ones(16, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.onnx.export(model, torch.ones(1, 2), {path})
read = {reads}
"""


@pytest.mark.parametrize("reads", ['onnx.load("net.onnx")', 'onnxruntime.InferenceSession("net.onnx")'])
def test_all_wait_for_the_file(convert_text, reads):
    _, changed = convert_text(SOURCE.format(path='"net.onnx"', reads=reads))
    assert "if accelerator.is_main_process:\n    torch.onnx.export(" in changed
    assert f"accelerator.wait_for_everyone()\nread = {reads}" in changed


def test_nobody_waits_for_another_file(convert_text):
    _, changed = convert_text(SOURCE.format(path='"net.onnx"', reads='onnx.load("teacher.onnx")'))
    assert "if accelerator.is_main_process:\n    torch.onnx.export(" in changed
    assert "wait_for_everyone" not in changed
