"""What a model's forward prints, every process prints of its own batches: nothing calls it, so it is said."""

from textwrap import dedent, indent

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def told(x):
    print(x.shape)


class Layer(nn.Module):
    def forward(self, x):
        {inner}
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.layer = Layer(), nn.Linear(4, 1)

    def forward(self, x):
        {outer}
        return self.layer(self.first(x))


data = torch.randn(16, 4)
loader = DataLoader(TensorDataset(data, data.sum(1, keepdim=True)), batch_size=4, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
WHAT = "every process prints or writes what {} does, of its own batches"


def _told(convert_text, **bodies):
    filled = {part: indent(dedent(bodies.get(part, "pass")), 8 * " ").lstrip() for part in ("inner", "outer")}
    report, _ = convert_text(PROGRAM.format(**filled))
    assert report.changes
    return [finding.message for finding in report.findings if finding.code == "MIG117"]


@pytest.mark.parametrize("said", ["print(x.shape)", "told(x)", "if x.isnan().any():\n    print('nan')"])
def test_what_a_forward_says_is_told(convert_text, said):
    assert _told(convert_text, outer=said) == [WHAT.format("Net.forward()")]


def test_what_a_layer_of_it_says_is_told(convert_text):
    assert _told(convert_text, inner="print(x.mean())") == [WHAT.format("Layer.forward()")]


@pytest.mark.parametrize(
    "said", ["pass", "import os\nif os.environ.get('RANK', '0') == '0':\n    print(x.shape)", "y = str(x.shape)"]
)
def test_what_says_nothing_or_asks_for_the_process_is_not(convert_text, said):
    assert _told(convert_text, outer=said) == []
