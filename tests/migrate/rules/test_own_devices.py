"""What models move by `.cuda()` while they run: it follows their weights, to any device."""

import pytest

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {made}
        self.scale = torch.ones(1){scale}

    def begin(self, n):
        return torch.zeros(n, 1).cuda()

    def forward(self, x):
        return {computed}


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.ones(16, 2), torch.ones(16, 1)), batch_size=4)
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        {step}
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {last}


main()
"""
THERE = ".to(next(self.parameters()).device)"


def source(
    made="self.line = nn.Linear(2, 1)", computed="self.line(x) + self.begin(len(x))", scale="", step="pass", last="pass"
):
    return SOURCE.format(made=made, computed=computed, scale=scale, step=step, last=last)


@pytest.mark.parametrize(
    "made",
    ["self.line = nn.Linear(2, 1)", "self.line = nn.Sequential(nn.Dropout(0.0), nn.Linear(2, 1))"],
)
def test_what_the_forward_makes_goes_where_the_weights_are(convert_text, made):
    _, changed = convert_text(source(made, "self.line(x) + self.begin(len(x)) * torch.ones(1).cuda()"))
    assert f"return torch.zeros(n, 1){THERE}\n" in changed
    assert f"torch.ones(1){THERE}" in changed
    assert "cuda()" not in changed


def test_it_runs_where_there_is_no_gpu(convert_text, numbers_printed):
    _, changed = convert_text(source(last="print(model.line.weight.sum().item())"))
    (one,) = numbers_printed(changed, 1)
    assert numbers_printed(changed.replace("batch_size=4", "batch_size=2"), 2) == [pytest.approx(one, abs=1e-5)]


STAYING = {
    "where it is made": ({"scale": ".cuda()"}, "self.scale = torch.ones(1).cuda()\n"),
    "called by others, too": ({"step": "print(model.begin(2))"}, "return torch.zeros(n, 1).cuda()\n"),
    "without weights of its own": (
        {"made": "self.line = nn.Dropout(0.0)", "computed": "self.begin(len(x)) * x.sum()"},
        "return torch.zeros(n, 1).cuda()\n",
    ),
    "compiled": ({"last": "torch.jit.script(model)"}, "return torch.zeros(n, 1).cuda()\n"),
    "to a GPU of its own": ({"computed": "self.line(x) + torch.zeros(1).cuda(1)"}, "torch.zeros(1).cuda(1)"),
}


@pytest.mark.parametrize("case", STAYING)
def test_what_may_run_before_the_weights_are_there_stays(convert_text, case):
    holes, line = STAYING[case]
    _, changed = convert_text(source(**holes))
    assert line in changed
