"""Numbers that run on from step to step and are shown meanwhile: `migrate/programs/shares/running.py`."""

import pytest

PROGRAM = """
import collections
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(32, 2), torch.randn(32, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
sums = collections.defaultdict(float)
smooth, mean, count, step, noise = None, 0.0, 0, 0, torch.zeros(1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        {grown}
        loss.backward()
        optimizer.step()
        step += 1
        if step % 4 == 0:
            print(step, {shown})
"""
TOLD = {
    "a moving average": (
        "smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()", "smooth", "smooth shows",
    ),
    "in a text": ("mean += 0.1 * (loss.item() - mean)", 'f"{mean:.3f}"', "mean shows"),
    "a mean that is gone on with": ("mean = (mean * count + loss.item()) / (count + 1); count += 1", "mean", "mean"),
    "in a dictionary": ('sums["loss"] += loss.item(); sums["n"] += len(x)', 'sums["loss"] / sums["n"]', "sums['loss']"),
}  # fmt: skip
SILENT = {
    "what each step makes": ("loss = loss + 0.1 * (x**2).mean()", "loss.item()"),
    "what is not shown": ("sums['loss'] += loss.item()", "step"),
    "what goes by no batch": ("mean += 0.5", "mean"),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_shown_of_one_process_is_told(convert_text, name):
    grown, shown, told = TOLD[name]
    report, _ = convert_text(PROGRAM.format(grown=grown, shown=shown))

    (found,) = (f.message for f in report.findings if "while this loop runs" in f.message)
    assert told in found
    assert "one process's share of the data" in found


@pytest.mark.parametrize("name", SILENT)
def test_what_is_of_a_step_or_of_all_is_not(convert_text, name):
    grown, shown = SILENT[name]
    report, _ = convert_text(PROGRAM.format(grown=grown, shown=shown))

    assert report.changes
    assert not [f.message for f in report.findings if "while this loop runs" in f.message]


def test_a_state_that_is_carried_on_is_no_number(convert_text):
    source = PROGRAM.format(grown="noise = 0.9 * noise + model(x).detach()[:1]", shown="noise.mean().item()")
    report, _ = convert_text(source)

    assert not [f.message for f in report.findings if "noise show" in f.message]


def test_a_list_of_losses_that_a_scaler_scales_is_told(convert_text):
    source = PROGRAM.format(grown="losses.append(loss.detach().cpu())", shown="torch.stack(losses).mean()")
    source = source.replace("loss.backward()", "scaler.scale(loss).backward()").replace(
        "optimizer.step()", "scaler.step(optimizer)\n        scaler.update()"
    )
    source = source.replace("sums = coll", "losses, scaler = [], torch.amp.GradScaler('cuda')\nsums = coll")
    source = source.replace("nn.functional.mse_loss(model(x), y)", "measured(nn.MSELoss(), model(x), y)").replace(
        "\nloader =",
        "\ndef measured(criterion, out, y):\n    return criterion(out, y) + 0.01 * out.abs().mean()\n\nloader =",
    )
    report, _ = convert_text(source)

    assert any("while this loop runs, losses shows" in finding.message for finding in report.findings)


IN_A_FUNCTION = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(32, 2), torch.randn(32, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
results = {"steps": 0, "losses": []}


def train():
    for step, (x, y) in enumerate(loader):
        RESET
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        results["losses"].append(loss.cpu().detach().numpy())
        results["steps"] = step
        if step % 4 == 3:
            print(step, sum(results["losses"][-4:]) / 4)


train()
"""


@pytest.mark.parametrize(("reset", "told"), [("pass", True), ('results["losses"] = []', False)])
def test_so_is_a_list_that_others_made(convert_text, reset, told):
    report, _ = convert_text(IN_A_FUNCTION.replace("RESET", reset))

    found = [f for f in report.findings if "while this loop runs, results['losses'] shows" in f.message]
    assert bool(found) is told
