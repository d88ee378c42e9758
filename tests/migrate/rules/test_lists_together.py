"""Lists that a training loop fills side by side: `migrate/programs/values/together.py`."""

import pytest

from migrate.options import Target

START = "scores, labels = [], []"
STEP = "scores.append(output.detach().cpu().numpy())\nlabels.append(y)"
JOINED = "scores = accelerator.gather_for_metrics(scores)"
IN_ORDER = "scores = [each for step in zip(*accelerator.gather_for_metrics([scores])) for each in step]"

TOGETHER = {
    "one call": "print(roc_auc_score(torch.cat(labels), np.concatenate(scores)))",
    "a loop over both": "for score, label in zip(scores, labels):\n    print(score - label)",
    "one by the other's places": "for i, score in enumerate(scores):\n    print(labels[i])",
    "one by the other's length": "for i in range(len(scores)):\n    print(labels[i])",
    "a comprehension": "print([score - label for score, label in zip(scores, labels)])",
    "other names": "rows = np.concatenate(scores)\ntruth = torch.cat(labels).numpy()\nprint((rows > truth).mean())",
    "other names at once": "rows, truth = np.stack(scores), torch.stack(labels)\nprint(rows - truth.numpy())",
    "the same names": (
        "scores = np.concatenate(scores)\nlabels = torch.cat(labels).numpy()\nprint(np.abs(scores - labels).sum())"
    ),
    "one that grows by the other": "rows = np.stack(scores)\nrows += torch.stack(labels).numpy()\nprint(rows)",
    "another between them": "others = list(zip(scores, losses))\nprint(list(zip(losses, labels)), others)",
    "sums of both in one number": "print(sum(scores).sum() / torch.cat(labels).sum())",
    "a sum that a mean is taken by": "total = np.sum(scores)\nprint(total / len(labels))",
    "an object that keeps both": "kept.scores = scores\nkept.labels = labels",
}
APART = {
    "each by itself": "print(np.mean(scores))\nprint(torch.cat(labels).mean())",
    "folded before they meet": "print(np.mean(scores) - torch.cat(labels).float().mean())",
    "shown beside each other": "print(scores, labels)",
    "a name that holds another thing by then": (
        "print(np.mean(scores))\nrows = labels\nrows = 3\nlabels = [4]\nprint(list(zip(scores, labels, [rows])))"
    ),
}
HOLES = {
    "imports": "import types\nimport numpy as np\nfrom sklearn.metrics import roc_auc_score",
    "setup": "kept = types.SimpleNamespace()",
    "start": f"{START}\nlosses = []",
    "step": f"{STEP}\nlosses.append(loss.item())",
}


@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_gone_through_with_one_that_stays_is_not_joined(convert_text, programs, name):
    report, result = convert_text(programs(HOLES | {"epoch": TOGETHER[name]})[0])

    assert "accelerator.prepare(" in result
    assert JOINED not in result
    assert IN_ORDER not in result
    told = [finding.message for finding in report.findings if finding.code == "MIG114"]
    for each in ("scores", "labels"):
        assert f"{each}, read after this loop, is of one process's share of the data" in told


@pytest.mark.parametrize("name", APART)
def test_what_is_read_by_itself_is_joined(convert_text, programs, name):
    _, result = convert_text(programs(HOLES | {"epoch": APART[name]})[0])

    assert f"    {IN_ORDER if '(scores, labels' in APART[name] else JOINED}\n" in result


def test_what_never_meets_it_is_joined(convert_text, programs):
    epoch = f"{TOGETHER['one call']}\nprint(sum(losses) / len(losses))"
    _, result = convert_text(programs(HOLES | {"epoch": epoch})[0])

    assert "losses = accelerator.gather_for_metrics(losses)" in result
    assert JOINED not in result


def test_lists_that_can_all_be_joined_are_joined(convert_text, programs):
    holes = HOLES | {"step": "scores.append(output.tolist())\nlabels.append(y.tolist())"}
    _, result = convert_text(programs(holes | {"epoch": "print(list(zip(scores, labels)))"})[0])

    assert JOINED in result
    assert "labels = accelerator.gather_for_metrics(labels)" in result


RETURNED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def train(loader, model, optimizer):
    {start}
    for x, y in loader:
        optimizer.zero_grad()
        output = model(x)
        loss = (output - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        scores.append(output.detach().cpu().numpy())
        labels.append(y)
    return {given}


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
print(train(loader, model, optimizer))
"""


@pytest.mark.parametrize(("given", "is_joined"), [("scores, labels", False), ("scores, len(loader)", True)])
def test_what_is_given_back_together_stays_together(convert_text, given, is_joined):
    _, result = convert_text(RETURNED.format(start=START, given=given))

    assert (f"    {IN_ORDER}\n" in result) is is_joined
    assert JOINED not in result


NUMBERED = {
    "steps": "print(list(zip(steps, losses)))",
    "rates": "for rate, loss in zip(rates, losses):\n    print(rate, loss)",
    "a range of steps that were counted": "print(list(zip(range(count), losses)))",
    "a range as long as the loader": "print(list(zip(np.arange(len(loader)), losses)))",
}


@pytest.mark.parametrize("name", NUMBERED)
def test_what_is_gone_through_with_the_steps_of_one_process_is_as_long_as_there(convert_text, programs, name):
    holes = HOLES | {
        "start": "steps, rates, losses, count = [], [], [], 0",
        "step": "steps.append(count)\nrates.append(0.1 * count)\nlosses.append(loss.item())\ncount += 1",
        "epoch": NUMBERED[name],
    }
    _, result = convert_text(programs(holes)[0])

    assert "    losses[:] = accelerator.reduce(losses, reduction='mean')\n" in result


OWN = [
    "losses[-1]",
    "np.mean(losses[-2:])",
    "sum(losses) / len(loader)",
    "np.sum(losses) / count",
    "np.array(losses).sum() / len(loader)",
]
WHOLE = ["sum(losses) / len(losses)", "sum(losses) / len(data)", "np.mean(losses)", "sum(losses)"]


@pytest.mark.parametrize("value", OWN)
@pytest.mark.parametrize("package", Target)
def test_a_sum_that_is_divided_by_the_batches_of_one_process_is_of_means(convert_text, programs, value, package):
    holes = HOLES | {"start": "losses, count = [], 0", "step": "losses.append(loss.item())\ncount += 1"}
    before, _ = programs(holes | {"epoch": f"print({value}, np.mean(losses))"})
    _, result = convert_text(before, target=package)

    joined = {
        Target.RUNTIME: "losses = accelerator.reduce(losses, reduction='mean')",
        Target.ACCELERATE: (
            "losses = [sum(each) / accelerator.num_processes "
            "for each in zip(*accelerator.gather_for_metrics([losses]))]"
        ),
    }
    assert f"    {joined[package]}\n    accelerator.print({value}, np.mean(losses))" in result


@pytest.mark.parametrize("value", WHOLE)
def test_what_all_batches_divide_is_of_all_processes(convert_text, programs, value):
    holes = HOLES | {"start": "losses, count = [], 0", "step": "losses.append(loss.item())\ncount += 1"}
    _, result = convert_text(programs(holes | {"epoch": f"print({value})"})[0])

    assert "losses = accelerator.gather_for_metrics(losses)" in result


UNLIKE = {
    "not in each step": ("if x.max() > 0:\n    losses.append(loss.item())", "print(sum(losses) / len(loader))"),
    "shown as it is, too": ("losses.append(loss.item())", "print(sum(losses) / len(loader), sum(losses))"),
    "divided by all samples, too": (
        "losses.append(loss.item())",
        "print(sum(losses) / len(loader), sum(losses) / len(data))",
    ),
    "taken by their places, beside their sum": ("losses.append(loss.item())", "print(losses[-1], sum(losses))"),
    "under another name": ("losses.append(loss.item())", "total = sum(losses)\nprint(total / len(loader))"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_a_sum_that_is_not_of_means_alone_is_told(convert_text, programs, name):
    step, epoch = UNLIKE[name]
    report, result = convert_text(programs(HOLES | {"start": "losses = []", "step": step, "epoch": epoch})[0])

    assert "accelerator.prepare(" in result
    assert "losses = " not in result.replace("losses = []", "")
    told = [finding.message for finding in report.findings if finding.code == "MIG114"]
    assert "losses, read after this loop, is of one process's share of the data" in told
