"""What the code around a trainer prints of its training: all processes train, and the first one prints."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor:
    def __init__(self, device=None):
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")

    def build(self):
        self.net = nn.Linear(2, 1).to(self.device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self, x, y):
        self.build()
        loader = DataLoader(TensorDataset(x, y), batch_size=8)
        for a, b in loader:
            a, b = a.to(self.device), b.to(self.device)
            loss = (self.net(a) - b).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return self

    def error(self, x, y):
        with torch.no_grad():
            return round((self.net(x.to(self.device)).cpu() - y).abs().mean().item(), 4)


torch.manual_seed(0)
x, y = torch.randn(32, 2), torch.randn(32, 1)
regressor = Regressor().fit(x, y)
{end}
"""
FIRST = 'if os.environ.get("RANK", "0") == "0":'


def test_what_is_computed_is_computed_by_all(convert_text, numbers_printed):
    report, converted = convert_text(PROGRAM.format(end="print(1)\nprint(regressor.error(x, y))\nprint(2)"))

    error = f"result = regressor.error(x, y)\n{FIRST}\n    print(result)\n    print(2)"
    assert f"{FIRST}\n    print(1)\n{error}" in converted
    assert not [finding for finding in report.findings if finding.code == "MIG117"]
    halved = converted.replace("batch_size=8", "batch_size=4")
    alone, together = numbers_printed(converted, 1), numbers_printed(halved, 2)
    assert len(together) == 3
    assert together == pytest.approx(alone, abs=2e-4)


@pytest.mark.parametrize(
    "end",
    [
        "print(regressor.error(x, y), regressor.error(x, y))",
        'print("error", regressor.error(x, y) if torch.rand(1) > 2 else 3)',
        'print(f"error {regressor.error(x, y)}")',
    ],
)
def test_what_cannot_be_computed_first_is_said(convert_text, end):
    report, converted = convert_text(PROGRAM.format(end=end))

    assert end in converted
    (said,) = [finding.message for finding in report.findings if finding.code == "MIG117"]
    assert said == "every process prints this: the top level of this file runs without the accelerator"
