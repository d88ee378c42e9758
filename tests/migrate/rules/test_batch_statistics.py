"""Losses that go on with a statistic of the batch: `migrate/programs/training/batch_statistics.py`."""

import pytest

from migrate.report.model import Kind

SAYS = "goes on with a statistic of the batch"
IMPORTS = "import torch.nn.functional as F"
EACH = "errors = F.mse_loss(output, y, reduction='none').view(-1)\n"
SETUP = """
class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.mse = nn.MSELoss()

    def forward(self, given, wanted):
        return torch.sqrt(self.mse(given, wanted) + 1e-6)


class Hardest(nn.Module):
    def forward(self, given, wanted):
        errors = F.mse_loss(given, wanted, reduction="none").view(-1)
        worst, places = torch.sort(errors, descending=True)
        return worst[:2].mean()


class Spread(nn.Module):
    def forward(self, given):
        deviation = given.unsqueeze(1).transpose(1, 2).std(0)
        return deviation.mean()


class Anchors(nn.Module):
    def forward(self, given, wanted):
        near = F.linear(F.normalize(given), torch.ones(2, 1))
        added = torch.where(wanted > 0, torch.exp(3 * (near - 1)), torch.zeros_like(near)).sum(dim=0)
        return torch.log(1 + added).sum() / 2


def stepped(one, wanted):
    step = torch.autograd.grad(F.mse_loss(model(one), wanted), model.weight, create_graph=True)[0]
    return (F.linear(one, model.weight - 0.1 * step) - wanted).pow(2).mean()


anchors = Anchors()
each = nn.MSELoss(reduction="none")
root, hardest, spread = Root(), Hardest(), Spread()
weight = 0.5
"""


def told(report, source):
    lines = source.splitlines()
    return [lines[f.line - 1].strip() for f in report.of(Kind.NOTE) if f.code == "MIG114" and SAYS in f.message]


GOING_ON = {
    "the root of a mean": "loss = torch.sqrt(criterion(output, y))",
    "a power of a mean": "loss = criterion(output, y) ** 0.5",
    "the root of a mean with a name": "error = (output - y).pow(2).mean()\nloss = error.sqrt()",
    "the logarithm of a mean": "loss = -torch.log(output.mean())",
    "what is above a bound": "loss = (criterion(output, y) - weight).abs()",
    "a step of an inner optimization": "inner = criterion(output, y)\n"
    "step = torch.autograd.grad(inner, model.weight, create_graph=True)[0]\n"
    "loss = (F.linear(x, model.weight - 0.1 * step) - y).pow(2).mean()",
    "a step by a function": "loss = stepped(x, y)",
    "a norm": "loss = (output - y).norm()",
    "a norm by a function": "loss = torch.norm(output - y, 2)",
    "a deviation": "loss = loss + output.std(0).sum()",
    "a variance": "loss = loss + torch.var(output)",
    "rows that are centred": "centred = output - output.mean(0)\nloss = centred.abs().mean()",
    "means of two groups": "loss = loss + (output.mean(0) - model(x + 1).mean(dim=0)).pow(2).sum()",
    "rows that are turned": "rows = output[:, None].transpose(1, 2)\nloss = (rows - rows.mean(0)).abs().mean()",
    "rows that are turned by a function": "loss = loss + torch.permute(output[:, None], (0, 2, 1)).std(0).mean()",
    "over the samples where they stand": "loss = loss + output.t().std(1).mean()",
    "over the samples behind the others": "loss = loss + output[:, None].permute(1, 2, 0).var(dim=2).mean()",
    "of columns": "columns = output.T\nloss = loss + (columns - columns.mean(1, keepdim=True)).abs().mean()",
    "turned in a loss of its own": "loss = loss + spread(output)",
    "the largest": EACH + "loss = torch.topk(errors, 2)[0].mean()",
    "the largest, by a method": EACH + "worst, _ = errors.topk(2)\nloss = worst.mean()",
    "the largest of a loss function's": "errors = each(output, y).flatten()\nloss = errors.max()",
    "places by order": EACH + "loss = errors[torch.argsort(errors.detach())[:2]].mean()",
    "below a quantile": EACH + "loss = (errors * (errors < torch.quantile(errors, 0.9))).mean()",
    "the logarithm of a sum over the samples": "loss = torch.log(1 + output.exp().sum(0)).mean()",
    "a root of what is summed under a name": "parts = torch.where(y > 0, -output, 1 - output).sum(dim=0)\n"
    "loss = parts.square().mean()",
    "in a loss of its own": "loss = root(output, y)",
    "a sum in a loss of its own": "loss = anchors(output, y)",
    "the largest in a loss of its own": "loss = hardest(output, y)",
}
INSIDE = ("step = ", "return torch.log(", "return torch.sqrt(", "deviation = ", "worst, places = torch.sort(")


@pytest.mark.parametrize("name", GOING_ON)
def test_statistics_are_told(convert_text, programs, name):
    code = GOING_ON[name]
    source = programs({"imports": IMPORTS, "setup": SETUP, "backward": f"{code}\nloss.backward()"})[0]
    report, result = convert_text(source)

    assert "accelerator.backward(" in result
    (line,) = told(report, source)
    assert line in code.splitlines() or line.startswith(INSIDE)


TRAINED = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Anchors(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 2))

    def forward(self, given, wanted):
        near = torch.exp(nn.functional.linear(given, self.weight) * wanted)
        return {gives}


rows = TensorDataset(torch.ones(16, 2), torch.ones(16, 1))
model, anchors = nn.Linear(2, 2), Anchors()
optimizer = torch.optim.SGD([*model.parameters(), *anchors.parameters()], lr=0.1)
for x, y in DataLoader(rows, batch_size=4):
    optimizer.zero_grad()
    loss = anchors(model(x), y){made}
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("gives", "made", "is_told"),
    [
        ("torch.log(1 + near.sum(0)).mean()", "", True),
        ("torch.log(1 + near.sum(1)).mean()", "", False),
        ("torch.log(1 + near)", ".mean()", False),
    ],
)
def test_losses_that_are_trained_themselves_are_looked_into(convert_text, gives, made, is_told):
    source = TRAINED.format(gives=gives, made=made)

    assert told(convert_text(source)[0], source) == ([f"return {gives}"] if is_told else [])


ROW_BY_ROW = {
    "the logarithm of a sum of each row": "loss = torch.log(1 + output.exp().sum(1)).mean()",
    "a sum of all": "loss = 0.1 * output.exp().sum(0).mean()",
    "the root of each": "loss = torch.sqrt((output - y).pow(2) + 1e-6).mean()",
    "the largest of each row": "loss = loss + output.max(1)[0].mean() + output.max(dim=1).values.mean()",
    "the largest of two": "loss = loss + torch.max(output, y).mean()",
    "what is taken off before an exponent": "loss = loss + (output - output.max()).exp().mean()",
    "the norm of each row": "loss = loss + output.norm(dim=1).mean() + torch.norm(output, 2, 1).mean()",
    "a step for each sample, which is a task": "loss = 0.0\n"
    "for i in range(len(x)):\n"
    "    guess = model(x[i])\n"
    "    inner = F.mse_loss(guess, y[i])\n"
    "    step = torch.autograd.grad(inner, model.weight, create_graph=True)[0]\n"
    "    loss = loss + (F.linear(x[i], model.weight - 0.1 * step) - y[i]).pow(2).mean() / len(x)",
    "a step for each sample, by a function": "loss = 0.0\n"
    "for i in range(len(x)):\n"
    "    loss = loss + stepped(x[i], y[i]) / len(x)",
    "gradients by each row": "x.requires_grad_(True)\n"
    "slope = torch.autograd.grad(model(x).sum(), x, create_graph=True)[0]\n"
    "loss = loss + (slope.norm(dim=1) - 1).pow(2).mean()",
    "a mean with a factor": "loss = weight * criterion(output, y) + 0.1 * output.mean(0).sum()",
    "the order in each row": "loss = loss + output.sort(1)[0][:, 0].mean()",
    "the deviation of each row": "loss = loss + output.std(1, unbiased=False).mean()",
    "the deviation of each row that is turned": "loss = loss + output.t().std(0).mean() + output.T.std(dim=0).mean()",
    "other dimensions behind the samples": "loss = loss + output[:, None].transpose(1, 2).std(1).mean()",
    "dimensions from the end": "loss = loss + output.transpose(-2, -1).std(0).mean()",
    "weights": "loss = loss + model.weight.norm() + torch.sqrt(model.weight.mean() ** 2 + 1)",
    "a size": "loss = loss / x.size(1) ** 0.5",
    "what is only shown": "print(torch.sqrt(criterion(output, y)).item())",
    "a number of the loss": "print(loss.item() ** 0.5)",
}


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_what_is_made_of_each_row_is_not(convert_text, programs, name):
    source = programs({"imports": IMPORTS, "setup": SETUP, "backward": f"{ROW_BY_ROW[name]}\nloss.backward()"})[0]
    report, result = convert_text(source)

    assert "accelerator.backward(" in result
    assert not told(report, source)
