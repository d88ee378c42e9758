"""What the last steps of a training loop leave, and what is read of it after the loop: `shares/last_numbers.py`."""

import pytest

from migrate.options import Target

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(8, 4), torch.randn(8, 1)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = {loss}
        loss.backward()
        optimizer.step()
        {step}
    {after}
"""
MEAN = "nn.functional.mse_loss(model(x), y)"
JOINED = {
    "the last loss": ("", "", "print(loss.item())", "loss"),
    "a tensor that is shown": ("", "", "print(f'{loss:.4f}')", "loss"),
    "its number": ("", "last = loss.item()", "print(last)", "last"),
    "a moving average": ("mean = 0.0", "mean = 0.9 * mean + 0.1 * loss.item()", "print(mean)", "mean"),
    "one that begins with the first": (
        "mean = None",
        "mean = loss.item() if mean is None else 0.9 * mean + 0.1 * loss.item()",
        "print(mean)",
        "mean",
    ),
    "one that is pulled": ("mean = 0.0", "mean += (loss.item() - mean) * 0.1", "print(mean)", "mean"),
    "by a condition that all meet": ("", "if i % 2 == 0:\n            last = loss.item()", "print(last)", "last"),
    "where it is logged at times": ("", "last = loss.item()", "if epoch:\n        print(last)", "last"),
}
LEFT = {
    "a count": ("", "last = (model(x) > 0).sum().item()", "print(last)", "last"),
    "a perplexity": ("import math", "last = math.exp(loss.item())", "print(last)", "last"),
    "the least": ("last = 9.0", "last = min(last, loss.item())", "print(last)", "last"),
    "a product": ("last = 1.0", "last = last * loss.item()", "print(last)", "last"),
    "by a condition of the batch": (
        "last = 0.0",
        "if loss.item() < 1.0:\n            last = loss.item()",
        "print(last)",
        "last",
    ),
    "what may not be set": (
        "",
        "if i > 9:\n            last = loss.item()",
        "if epoch > 9:\n        print(last)",
        "last",
    ),
    "what goes back through it": ("", "", "shown = loss * 2", "loss"),
    "rows": ("", "last = model(x)", "print(last)", "last"),
}


@pytest.mark.parametrize("case", JOINED.values(), ids=JOINED)
@pytest.mark.parametrize("target", ["runtime", "accelerate"])
def test_a_mean_of_the_last_batches_is_that_of_all_processes(convert_text, target, case):
    before, step, after, name = case
    text = PROGRAM.format(before=before, step=step, after=after, loss=MEAN)
    report, result = convert_text(text, target=Target(target))

    joined = [line.strip().replace("'", '"') for line in result.splitlines() if line.startswith(f"    {name} = ")]
    is_number = target == "accelerate" and name != "loss"
    by_numbers = f"{name} = sum(accelerator.gather_for_metrics([{name}])) / accelerator.num_processes"
    assert joined == [by_numbers if is_number else f'{name} = accelerator.reduce({name}, reduction="mean")']
    assert not [finding for finding in report.findings if "read after this loop" in finding.message]


@pytest.mark.parametrize("case", LEFT.values(), ids=LEFT)
def test_what_is_no_mean_stays_one_process_own_and_is_told(convert_text, case):
    before, step, after, name = case
    report, result = convert_text(PROGRAM.format(before=before, step=step, after=after, loss=MEAN))

    assert "reduce(" not in result
    assert "gather" not in result
    assert [f for f in report.findings if f.message.startswith(f"{name}, read after this loop")]


def test_a_name_that_a_tuple_gives_another_value_is_not_read_after_the_loop(convert_text):
    after = "loss, done = 1.0, True\n    print(loss, done)"
    report, result = convert_text(PROGRAM.format(before="", step="", after=after, loss=MEAN))

    assert "reduce(" not in result
    assert not [finding for finding in report.findings if "read after this loop" in finding.message]


OWN = """
class Distance(nn.Module):
    def forward(self, out, y):
        return torch.mean((out - y) ** 2)


def distance(out, y):
    return torch.mean((out - y) ** 2)


criterion = Distance()
"""


@pytest.mark.parametrize("loss", ["criterion(model(x), y)", "distance(model(x), y)"])
def test_the_last_loss_of_a_criterion_of_its_own_is_that_of_all_processes(convert_text, loss):
    report, result = convert_text(PROGRAM.format(before=OWN, step="", after="print(loss.item())", loss=loss))

    assert "    loss = accelerator.reduce(loss, reduction='mean')\n" in result
    assert not [finding for finding in report.findings if "read after this loop" in finding.message]


def test_the_last_loss_that_is_a_sum_stays_one_process_own_and_is_told(convert_text):
    loss = "((model(x) - y) ** 2).sum()"
    report, result = convert_text(PROGRAM.format(before="", step="", after="print(loss.item())", loss=loss))

    assert "reduce(" not in result
    assert [f for f in report.findings if f.message.startswith("loss, read after this loop")]


KEPT = PROGRAM.replace("    for i, ", "    losses = []\n    for i, ")
STEPS = {
    "the loss": "losses.append(loss)",
    "without its graph": "losses.append(loss.detach())",
    "of every second step": "if i % 2 == 0:\n            losses.append(loss)",
}
STEPS_LEFT = {
    "of steps by the batch": "if loss.item() < 1.0:\n            losses.append(loss)",
    "rows": "losses.append(model(x))",
    "what may go back": "losses.append(nn.functional.l1_loss(model(x), y))",
    "a list that the steps read": "losses.append(loss)\n        print(torch.stack(losses).mean())",
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("target", ["runtime", "accelerate"])
def test_tensors_of_each_step_become_those_of_all_processes(convert_text, target, step):
    text = KEPT.format(before="", step=step, after="print(torch.stack(losses).mean().item())", loss=MEAN)
    report, result = convert_text(text, target=Target(target))

    assert "    losses = accelerator.reduce(losses, reduction='mean')\n" in result
    assert not [finding for finding in report.findings if "read after this loop" in finding.message]


@pytest.mark.parametrize("step", STEPS_LEFT.values(), ids=STEPS_LEFT)
def test_tensors_that_the_processes_do_not_have_alike_stay_their_own_and_are_told(convert_text, step):
    after = "print(torch.stack(losses).mean().item())"
    report, result = convert_text(KEPT.format(before="", step=step, after=after, loss=MEAN))

    assert "reduce(" not in result
    assert [finding for finding in report.findings if "losses" in finding.message]
