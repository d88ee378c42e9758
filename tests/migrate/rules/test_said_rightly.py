"""Notes and reasons that must not be said of what only looks like it, and must name what they go back to."""

import pytest

from migrate.options import Options
from migrate.pipeline import run

PROGRAM = """
import time
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1)), batch_size=4)
for x, y in loader:
    {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SUM = 'nn.functional.mse_loss(model(x), y, reduction="sum")'
SUMS = {
    "a sum": (f"loss = {SUM}", True),
    "divided": (f"loss = {SUM} / x.size(0)", False),
    "divided by twice the samples": (f"loss = {SUM} / (x.size()[0] * 2)", False),
    "divided by a weight of the samples": (f"loss = {SUM} / (x.size(0) * x.sum())", True),
    "divided under a name": (f"size = len(x)\n    whole = {SUM}\n    loss = (whole + 0.1) / size", False),
    "divided in place": (f"loss = {SUM}\n    loss = loss / len(x)", False),
    "divided in place by a number of the user": (f"loss = {SUM}\n    loss /= 4", True),
    "divided by what is written in front of it": (f"loss = {SUM}\n    loss /= len(x)", False),
    "divided to be shown": (f"loss = {SUM}\n    shown = loss / len(x)", True),
    "divided as a number": (f"loss = {SUM}\n    shown = loss.item() / len(x)", True),
    "divided by what the user says": (f"loss = {SUM} / 4", True),
    "divided by a method": (f"n = x.size(0)\n    loss = {SUM}.div(n)", False),
    "divided by a function": (f"loss = torch.div({SUM}, len(x))", False),
    "a method that divides by a number": (f"loss = {SUM}.div(4)", True),
    "a mean over the rows, summed": ("loss = (model(x) - y).pow(2).mean(dim=0).sum()", False),
    "a mean over the rows under a name, summed": (
        "error = torch.mean((model(x) - y).pow(2), 0)\n    loss = torch.sum(error)",
        False,
    ),
    "a mean over the columns, summed": ("loss = (model(x) - y).pow(2).mean(dim=1).sum()", True),
    "summed and divided by a number": ("loss = ((model(x) - y) ** 2).sum() / 1000.0", True),
    "summed and divided by the samples": ("loss = ((model(x) - y) ** 2).sum() / x.size(0)", False),
    "a mean that is multiplied by the samples": ("n = x.size(0)\n    loss = n * (model(x) - y).pow(2).mean()", True),
    "a mean that is multiplied by the columns": ("loss = (model(x) - y).pow(2).mean() * x.size(1)", False),
    "a mean by the samples, and divided": ("loss = (model(x) - y).pow(2).mean() * len(x) / len(x)", False),
    "several means": ("loss = torch.stack([(model(x) - y).abs().mean(), (model(x) - y).pow(2).mean()]).sum()", False),
    "several sums": ("loss = torch.stack([(model(x) - y).abs().sum(), (model(x) - y).pow(2).sum()]).sum()", True),
    "a number that is shown beside": (f"loss = nn.functional.mse_loss(model(x), y)\n    print({SUM}.item())", False),
    "without gradients, shown beside": (
        f"loss = nn.functional.mse_loss(model(x), y)\n    kept = {SUM}.detach()",
        False,
    ),
    "not reduced": ("loss = nn.functional.mse_loss(model(x), y, reduce=False, size_average=False).mean()", False),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_that_is_divided_is_a_mean(convert_text, name):
    loss, is_said = SUMS[name]
    report, _ = convert_text(PROGRAM.format(loss=loss))
    assert report.changes
    assert any("this loss is a sum" in finding.message for finding in report.findings) is is_said


COUNTED = {
    "by a mask's sum": ("loss = {sum} / (y != 0).sum()", True),
    "by a name of one": ("count = (y != 0).sum().item()\n    loss = {sum}\n    loss /= count", True),
    "by what is left of the batch": ("loss = {sum} / len(y[y != 0])", True),
    "by what it holds": ("loss = {sum}.div(y.sum())", True),
    "by a number": ("loss = {sum} / 1000", False),
    "by itself, shown": ("loss = {sum}\n    print(loss.item() / (y != 0).sum().item())", False),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_sum_that_is_divided_by_what_is_counted_in_the_batch_is_a_mean_over_a_part(convert_text, name):
    loss, is_part = COUNTED[name]
    report, _ = convert_text(PROGRAM.format(loss=loss.format(sum=SUM)))
    assert report.changes
    assert any("this loss is a mean over a part" in finding.message for finding in report.findings) is is_part
    assert any("this loss is a sum" in finding.message for finding in report.findings) is not is_part


HANDED_ON = {
    "all of it, divided": ("return whole", "loss", "loss = loss / len(x)", False),
    "all of it": ("return whole", "loss", "pass", True),
    "one of two, divided": ("return whole, out.mean()", "loss, m", "loss = (loss + m) / len(x)", False),
    "one of two": ("return whole, out.mean()", "loss, m", "loss = loss + m", True),
    "one of two, beside what is divided": ("return whole, out.mean()", "loss, m", "m = m / len(x)", True),
    "divided inside": ("return whole / len(y), out.mean()", "loss, m", "pass", False),
    "with another": ("return whole + out.abs().mean()", "loss", "loss = loss / x.size(0)", False),
    "divided to be shown": ("return whole, out.mean()", "loss, m", "print(loss.item() / len(x))", True),
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_a_sum_that_a_function_hands_on_is_a_mean_where_all_that_train_divide_it(convert_text, name):
    given, names, then, is_said = HANDED_ON[name]
    whole = 'whole = nn.functional.mse_loss(out, y, reduction="sum")'
    function = f"def summed(out, y):\n    {whole}\n    {given}\n"
    source = PROGRAM.replace("for x, y", f"{function}for x, y", 1).format(
        loss=f"{names} = summed(model(x), y)\n    {then}"
    )
    report, _ = convert_text(f"{source}\nwith torch.no_grad():\n    print(summed(model(x), y))\n")
    assert report.changes
    assert any("this loss is a sum" in finding.message for finding in report.findings) is is_said


def test_where_each_process_has_a_whole_batch_a_sum_is_none(convert_text):
    source = PROGRAM.replace("in loader:", "in [(torch.zeros(8, 2), torch.zeros(8, 1))] * 4:").format(
        loss=f"loss = {SUM}"
    )
    report, _ = convert_text(source)
    assert report.changes
    assert not any("this loss is a sum" in finding.message for finding in report.findings)


EVALUATED = """
model.eval()
with torch.no_grad():
    for x, y in held:
        print(criterion(model(x), y).item())
"""
HELD = 'criterion = nn.MSELoss(reduction="sum")\nheld = DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1)))'


@pytest.mark.parametrize(("trained", "is_said"), [("nn.functional.mse_loss", False), ("criterion", True)])
def test_a_sum_that_is_only_evaluated_with_is_no_matter(convert_text, trained, is_said):
    source = PROGRAM.replace("for x, y", f"{HELD}\nfor x, y", 1).format(loss=f"loss = {trained}(model(x), y)")
    report, _ = convert_text(source + EVALUATED)
    assert report.changes
    assert any("this loss is a sum" in finding.message for finding in report.findings) is is_said


CRITIC = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

G, D = nn.Linear(2, 2), nn.Linear(2, 1)
g_optimizer, d_optimizer = optim.SGD(G.parameters(), lr=0.1), optim.SGD(D.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.zeros(8, 2)), batch_size=4)
for i, (x,) in enumerate(loader):
    d_loss = D(G(x).detach()).mean() - D(x).mean()
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()
    if (i + 1) % 5 == 0:
        g_loss = -D(G(x)).mean()
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
"""


def test_a_generator_that_is_trained_now_and_then_accumulates_nothing(convert_text):
    report, result = convert_text(CRITIC)
    assert "accelerator.backward(g_loss)" in result
    assert not [finding for finding in report.findings if finding.code == "MIG108"]


ENDS = """
import time
import torch
from torch import nn, optim

torch.manual_seed(0)
limit = int(time.time()) % 5
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
step = 0
while step < limit:
    loss = model(torch.zeros(4, 2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
"""


def test_the_clock_that_decides_is_named(convert_text):
    report, _ = convert_text(ENDS)
    assert not report.changes
    (reason,) = {finding.message for finding in report.findings if "a clock or the system" in finding.message}
    assert "step < limit, which a clock or the system gives (time.time() in line 6): processes would part" in reason


def test_a_clock_of_another_file_is_named_with_it(tmp_path, monkeypatch):
    (tmp_path / "limits.py").write_text("import time\n\n\ndef limit():\n    return int(time.time()) % 5\n")
    imported = ENDS.replace("import time\n", "from limits import limit as most\n")
    (tmp_path / "train.py").write_text(imported.replace("int(time.time()) % 5", "most()"))
    monkeypatch.chdir(tmp_path)
    report = run(["train.py"], Options())

    assert any("(time.time() in limits.py:5)" in finding.message for finding in report.findings)
