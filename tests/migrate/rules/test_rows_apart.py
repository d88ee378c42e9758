"""Evaluations that compute something of several rows of a batch before their model sees it."""

import pytest

SOURCE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 4)), batch_size=4)
held = DataLoader(TensorDataset(torch.ones(6, 4), torch.ones(6, 4)), batch_size=4)


{model}
model = Net()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
model.eval()
total = 0
with torch.no_grad():
    for x, y in held:
        {before}
        {forward}
print(total)
"""
ROWS = "class Net(nn.Linear):\n    def __init__(self):\n        super().__init__(4, 4)"
FORWARD = "out = model(x)\n        total += nn.functional.mse_loss(out, y).item()"
TOGETHER = {
    "its range": "x = (x - x.min()) / (x.max() - x.min())",
    "a number with a name": "low = x.mean()\n        x = x - low",
    "its norm": "x = x / x.norm()",
    "a mean over the samples": "x = x - x.mean(dim=(0, 1))",
    "normalized over the samples": "x = nn.functional.normalize(x, dim=0)",
    "the other way round": "x = x.flip(0)",
    "sorted": "x = x[torch.argsort(x[:, 0])]",
    "some of them": "x, y = x[1:, :], y[1:, :]",
    "with another half": "x = torch.cat([x, x.flip(1)])",
    "without a dimension of size 1": "x = x.squeeze()",
    "targets without one": "y = torch.squeeze(y)",
    "without the first if that has size 1": "x = x.squeeze(0)",
}


@pytest.mark.parametrize("name", TOGETHER)
def test_it_is_run_in_full(convert_text, remark, name):
    source = SOURCE.format(model=ROWS, before=TOGETHER[name], forward=FORWARD)
    report, result = convert_text(source)

    assert "gather" not in result
    assert any("every process runs this evaluation in full: `" in finding.message for finding in report.findings)


APART = {
    "a shape": "x = x.view(x.size(0), -1)",
    "a mean of each row": "x = x - x.mean(dim=1, keepdim=True)",
    "a norm of each row": "x = x / x.norm(2, 1, keepdim=True)",
    "each row the other way round": "x = x.flip(1)",
    "columns": "x = x[:, [2, 1, 0, 3]]",
    "columns beside each other": "x = torch.cat([x[:, :2], x[:, 2:]], dim=1)",
    "normalized in each row": "x = nn.functional.normalize(x, dim=-1)",
    "without another dimension of size 1": "x = x.unsqueeze(1).squeeze(1)",
    "something else without one": "one = torch.ones(1, 4).squeeze()\n        x = x * 1",
}


@pytest.mark.parametrize("name", APART)
def test_what_goes_row_by_row_is_shared_out(convert_text, name):
    _, result = convert_text(SOURCE.format(model=ROWS, before=APART[name], forward=FORWARD))

    assert "gather_for_metrics" in result


SUMS = """
class Net(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)

    def forward(self, x):
        found = 0
        for t in range(x.size(0)):
            found += self.of(x[t])
        return found, x

    def of(self, row):
        return torch.sum(row)
"""


TURNED = {
    "by a method": "x = x.transpose(0, 1)",
    "by a function": "x = torch.transpose(x, 0, 1)",
    "in another order": "x = torch.permute(x, (1, 0))",
    "dimensions from the end": "x = x.transpose(-2, -1)",
    "an attribute": "x = x.T",
    "by a rule": "x = torch.einsum('bi->ib', x)",
    "the halves of a batch": "x, other = torch.chunk(x, 2)",
}


@pytest.mark.parametrize("name", TURNED)
def test_samples_that_are_turned_away_are_whole(convert_text, name):
    report, result = convert_text(SOURCE.format(model=ROWS, before=TURNED[name], forward=FORWARD))

    assert "gather" not in result
    assert any("no row for each sample" in finding.message for finding in report.findings)


TURNED_BEHIND = {
    "by a method": "x = x.transpose(1, 2)",
    "a dimension from the end": "x = x.transpose(1, -1)",
    "by a function": "x = torch.permute(x, (0, 2, 1))",
    "one that moves": "x = x.movedim(1, 2)",
    "by a rule": "x = torch.einsum('bij->bji', x)",
    "the halves of each sample": "x, other = x.chunk(2, dim=1)",
}


@pytest.mark.parametrize("name", TURNED_BEHIND)
def test_dimensions_that_are_turned_behind_the_samples_are_shared_out(convert_text, name):
    _, result = convert_text(SOURCE.format(model=ROWS, before=TURNED_BEHIND[name], forward=FORWARD))

    assert "out, y = accelerator.gather_for_metrics((out, y))" in result


def test_samples_that_are_no_longer_the_first_dimension(convert_text):
    source = SOURCE.replace("nn.functional.mse_loss(model(x), y).backward()", "model(x)[0].backward()")
    forward = "found, _ = model(x)\n        total += found.item()"
    report, result = convert_text(source.format(model=SUMS, before="x = x.transpose(0, 1)", forward=forward))

    assert "gather" not in result
    assert any("no row for each sample" in finding.message for finding in report.findings)


def test_a_result_is_gathered_before_a_row_of_it_may_lose_its_dimension(convert_text):
    forward = FORWARD.replace("model(x)", "model(x).squeeze()")
    _, result = convert_text(SOURCE.format(model=ROWS, before="pass", forward=forward))

    assert "outputs, y = accelerator.gather_for_metrics((outputs, y))\n        out = outputs.squeeze()" in result


NET = """
class Last(nn.Linear):
    def forward(self, x):
        return torch.squeeze(super().forward(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(4, 4), nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(1, 1))
        {made}

    def forward(self, x):
        return {result}
"""
SQUEEZED = {
    "on its way": "torch.softmax(self.out(self.inner(x).squeeze()), dim=1)",
    "at its end": "self.out(self.inner(x)).squeeze()",
    "in a layer of its own": "self.last(x)",
}


@pytest.mark.parametrize("name", SQUEEZED)
def test_a_model_that_squeezes_is_given_whole_batches(convert_text, name):
    model = NET.format(result=SQUEEZED[name], made="self.last = nn.Sequential(nn.ReLU(), Last(4, 4))")
    report, result = convert_text(SOURCE.format(model=model, before="pass", forward=FORWARD))

    assert "gather_for_metrics" not in result
    assert any("in the model (line " in finding.message for finding in report.findings)


@pytest.mark.parametrize("result", ["self.out(x) * self.scale.squeeze()", "self.out(x.unsqueeze(1)).squeeze(1)"])
def test_a_model_that_squeezes_what_is_no_row_is_shared_out(convert_text, result):
    _, result = convert_text(SOURCE.format(model=NET.format(result=result, made=""), before="pass", forward=FORWARD))

    assert "gather_for_metrics" in result
