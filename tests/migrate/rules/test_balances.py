"""A number that a step leaves for the next one, where the loss goes by it: the same on all processes."""

import pytest

BALANCES = {
    "a number": ("k = k + 0.01 * {}", "loss.item()", True),
    "as it grows": ("k += 0.01 * {}", "loss.item()", True),
    "a tensor": ("k = k + 0.01 * ({} - 1)", "loss.detach()", True),
    "an old index": ("k = k + 0.01 * ({} - 1)", "loss.data[0]", True),
    "under another name": ("now = 0.9 * k + 0.1 * loss\nnow = {}\nk = min(max(now, 0), 1)", "now.item()", True),
    "by the epoch": ("if epoch > 0:\n    k = {}", "loss.item()", True),
    "of no batch": ("k = min(1, k + {})", "0.01", False),
}


@pytest.mark.parametrize("name", BALANCES)
def test_a_balance_goes_by_the_mean_of_all(changed, name):
    step, taken, is_own = BALANCES[name]
    joined = f"accelerator.reduce({taken}, reduction='mean')" if is_own else taken
    backward = "loss = loss - k * output.abs().mean()\n{}"
    changed(
        made="k = 0.5",
        backward=(backward.format("loss.backward()"), backward.format("accelerator.backward(loss)")),
        step=(step.format(taken), step.format(joined)),
    )


@pytest.mark.parametrize("where", ["start", "made"])
def test_a_balance_that_is_shown_is_no_share(convert_text, programs, where):
    holes = {
        where: "k = 0.5",
        "backward": "loss = loss - k * output.abs().mean()\nloss.backward()",
        "step": "k += 0.01 * loss.item()\nprint(k)",
        "epoch": "print(k)",
    }
    report, result = convert_text(programs(holes)[0])

    assert "k += 0.01 * accelerator.reduce(loss.item()" in result
    assert "gather_for_metrics([k])" not in result
    assert not [f for f in report.findings if "one process's share" in f.message]


UNTOUCHED = {
    "it weighs nothing": {"made": "k = 0.5", "step": "k = 0.9 * k + 0.1 * loss.item()"},
    "it begins in each step": {"batch": "k = 0.0", "step": "k = k + loss.item()"},
    "it is the loss of some steps": {
        "made": "k = 0.0",
        "backward": ("k = k + loss\nk.backward()\nk = 0.0", "k = k + loss\naccelerator.backward(k)\nk = 0.0"),
    },
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_other_numbers_stay(changed, name):
    changed(**UNTOUCHED[name])


def test_a_balance_of_some_processes_is_refused(refused):
    holes = {"made": "k = 0.5", "backward": "loss = loss - k * output.abs().mean()\nloss.backward()"}
    refused("MIG122", "k = k +", ["weighs the loss"], **holes, step="if y.sum() > 3:\n    k = k + 0.01 * loss.item()")


def test_a_tensor_that_is_set_by_a_batch_is_refused(refused):
    refused(
        "MIG122",
        "k.data =",
        ["k weighs the loss and is set by a batch of one process"],
        made="k = torch.tensor(0.5)",
        backward="loss = loss - k * output.abs().mean()\nloss.backward()",
        step="k.data = torch.quantile(output.detach(), 0.9)",
    )


def test_a_balance_of_what_is_copied_into_a_tensor_goes_by_the_mean_of_all(convert_text, programs):
    holes = {
        "made": "k = 0.5\nreal = torch.zeros(4, 2)",
        "batch": "real.data.resize_(x.size()).copy_(x)",
        "forward": "model(real)",
        "backward": "loss = loss - k * output.abs().mean()\nloss.backward()",
        "step": "kept = (output - real).abs().mean()\nk = k + 0.01 * kept.item()",
    }

    assert "k = k + 0.01 * accelerator.reduce(kept.item(), reduction=" in convert_text(programs(holes)[0])[1]


ATTACKED = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

args = argparse.ArgumentParser().parse_args()
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
BEFORE
for step, (x, y) in enumerate(loader):
    if TEST:
        MADE
        delta.requires_grad = True
        nn.functional.mse_loss(model(x + delta), y).backward()
        delta.data = torch.clamp(delta + torch.sign(delta.grad), -0.1, 0.1)
        delta = delta.detach()
    elif args.attack == 'none':
        delta = torch.zeros_like(x)
    loss = nn.functional.mse_loss(model(x + delta), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FRESH = {"BEFORE": "", "TEST": "args.attack == 'fgsm'", "MADE": "delta = torch.zeros_like(x)"}


def attacked(**parts):
    text = ATTACKED
    for hole, part in (FRESH | {name.upper(): value for name, value in parts.items()}).items():
        text = text.replace(hole, part)
    return text


def test_what_each_step_makes_anew_is_carried_to_no_other(convert_text):
    assert "accelerator.backward(loss)" in convert_text(attacked())[1]


@pytest.mark.parametrize(
    "parts",
    [
        {"before": "delta = torch.zeros(4, 2)", "made": "pass"},
        {"before": "delta = torch.zeros(4, 2)", "test": "step % 2 == 0"},
        {"before": "delta = torch.zeros(4, 2)", "made": "delta = delta * 0.5"},
    ],
)
def test_what_goes_on_into_the_next_step_is_refused(refused_text, parts):
    refused_text(attacked(**parts), "MIG122", "delta.data =", ["delta weighs the loss"])


IN_ROUNDS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def attack(x, y, rounds):
    x = x.clone().detach().requires_grad_(True)
    for _ in range(rounds):
        nn.functional.mse_loss(model(x), y).backward()
        x.data = x.data + 0.1 * torch.sign(x.grad)
        x.grad.zero_()
        STEP
    return x.detach()

loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(attack(x, y, 3)), y)
    loss.backward()
    optimizer.step()
"""


def test_rounds_on_one_batch_leave_nothing_for_the_next_step(convert_text):
    assert "accelerator.backward(loss)" in convert_text(IN_ROUNDS.replace("STEP", "pass"))[1]


def test_rounds_that_are_steps_themselves(refused_text):
    refused_text(IN_ROUNDS.replace("STEP", "optimizer.step()"), "MIG122", "x.data =", ["x weighs the loss"])


DRAWN = """
import torch
from torch import nn
{seed}
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
k = 0.5
for step in range(10):
    output = model(torch.randn(4, 2))
    loss = output.pow(2).mean() - k * output.abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {step}
"""
STEPS = {
    "every step": "k = k + 0.01 * loss.item()",
    "some steps": "if step % 2 == 0:\n        k = k + 0.01 * loss.item()",
}


@pytest.mark.parametrize("name", STEPS)
def test_where_each_process_draws_its_batches(convert_text, name):
    _, result = convert_text(DRAWN.format(seed="", step=STEPS[name]))

    assert "k = k + 0.01 * accelerator.reduce(loss.item(), reduction='mean')" in result


def test_where_all_draw_the_same(convert_text):
    _, result = convert_text(DRAWN.format(seed="torch.manual_seed(0)", step=STEPS["every step"]))

    assert "    k = k + 0.01 * loss.item()" in result


def test_where_each_decides_by_what_it_drew(refused_text):
    text = DRAWN.format(seed="", step="if loss > 3:\n        k = k + 0.01 * loss.item()")
    refused_text(text, "MIG122", "k = k +", ("weighs the loss",))
