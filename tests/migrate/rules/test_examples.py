"""What runs a model with an example beside it, to export it or to count what it does, needs both in one place."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import fvcore.nn
import thop
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter

{device}
data = TensorDataset(torch.zeros(16, 4), torch.zeros(16, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(4, 1){to}
example = torch.zeros(1, 4){to}
{early}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    x, y = x{to}, y{to}
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
{late}
"""
CALLS = [
    'torch.onnx.export(model, example, "model.onnx")',
    "traced = torch.jit.trace(model, example)",
    "thop.profile(model, inputs=(example,))",
    "fvcore.nn.FlopCountAnalysis(model, example)",
    "SummaryWriter().add_graph(model, example)",
]
ELSE = ["print(model, example)", 'torch.save((model, example), "both.pt")', "thop.profile(model)"]
DEVICE = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
NOWHERE = {"device": "", "to": "", "early": "", "late": ""}


@pytest.mark.parametrize("call", CALLS)
def test_a_program_without_a_device_stays_where_its_example_is(convert_text, call):
    source = SOURCE.format(**NOWHERE | {"late": call}).lstrip()
    report, result = convert_text(source)

    assert "Accelerator(cpu=True)" in result
    notes = [finding for finding in report.of(Kind.NOTE) if "so the program stays on the CPU" in finding.message]
    assert [source.splitlines()[note.line - 1] for note in notes] == [call]


@pytest.mark.parametrize("call", ELSE)
def test_what_only_shows_or_keeps_both_does_not_keep_it_there(convert_text, call):
    _, result = convert_text(SOURCE.format(**NOWHERE | {"late": call}))

    assert "accelerator = Accelerator()\n" in result


@pytest.mark.parametrize("call", CALLS)
def test_above_prepare_the_model_is_where_its_example_is(convert_text, call):
    _, result = convert_text(SOURCE.format(**NOWHERE | {"early": call}))
    _, moved = convert_text(SOURCE.format(**NOWHERE | {"device": DEVICE, "to": ".to(device)", "early": call}))

    assert "accelerator = Accelerator()\n" in result
    assert "model = nn.Linear(4, 1).to(device)\n" in moved
