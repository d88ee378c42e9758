"""Decisions by one process's own numbers: refused where the processes would part ways, converted where they do not."""

import pytest

PLATEAU = {
    "imports": "from torch.optim.lr_scheduler import ReduceLROnPlateau",
    "ready": "schedule = ReduceLROnPlateau(optimizer)",
}
COLLECTED = {"start": "found = []", "step": "found.append(output)"}

MEAN = "loss = accelerator.reduce(loss, reduction='mean')\n"
DOUBLE = MEAN.replace("'", '"')
LOG = 'log["loss"] = sum(accelerator.gather_for_metrics([log["loss"]]))\n'
SAVE = 'best = {0}\n    {1}save(best, "b.pt")'
LAST = {
    "a schedule by the last loss": {
        **PLATEAU,
        "epoch": ("schedule.step(loss.item())", MEAN + "schedule.step(loss.item())"),
    },
    "what may fail": {
        "epoch": (
            "try:\n    done = loss.item() < 0.3\nexcept ValueError:\n    done = False\nif done:\n    break",
            MEAN + "try:\n    done = loss.item() < 0.3\nexcept ValueError:\n    done = False\nif done:\n    break",
        )
    },
    "one of two branches": {
        "epoch": (
            "if len(x) > 1:\n    last = loss.item()\nelse:\n    last = 9.0\nif last < 0.3:\n    break",
            MEAN + "if len(x) > 1:\n    last = loss.item()\nelse:\n    last = 9.0\nif last < 0.3:\n    break",
        )
    },
    "a branch that may not be taken": {
        "epoch": (
            "last = loss.item()\nif len(x) > 1:\n    last = 9.0\nif last < 0.3:\n    break",
            MEAN + "last = loss.item()\nif len(x) > 1:\n    last = 9.0\nif last < 0.3:\n    break",
        )
    },
    "stopping early": {"epoch": ("if loss.item() < 0.3:\n    break", MEAN + "if loss.item() < 0.3:\n    break")},
    "a schedule that an expression steps": {
        **PLATEAU,
        "epoch": (
            "schedule.step(epoch) if loss.item() < 0.3 else None",
            MEAN + "schedule.step(epoch) if loss.item() < 0.3 else None",
        ),
    },
    "saving the best": {
        "made": "best = 9.0",
        "epoch": (
            f"if loss.item() < best:\n    {SAVE.format('loss.item()', 'torch.')}",
            f"{DOUBLE}if loss.item() < best:\n    {SAVE.format('loss.item()', 'accelerator.')}",
        ),
    },
    "a number that goes on over all epochs": {
        **PLATEAU,
        "made": "smooth = 0.0",
        "step": "smooth = 0.9 * smooth + 0.1 * loss.item()",
        "epoch": (
            "schedule.step(smooth)",
            "smooth = accelerator.reduce(smooth, reduction='mean')\nschedule.step(smooth)",
        ),
    },
    "the least loss": {
        **PLATEAU,
        "start": "low = 9.0",
        "step": "low = min(low, loss.item())",
        "epoch": ("schedule.step(low)", "low = min(accelerator.gather_for_metrics([low]))\nschedule.step(low)"),
    },
    "a list over all epochs": {
        "made": "found = []",
        "step": (
            "found.append(loss.item())",
            "found.append(accelerator.reduce(loss.item(), reduction='mean'))",
        ),
        "epoch": "if found[-1] < 0.3:\n    break",
    },
    "items": {
        **PLATEAU,
        "start": 'log = {"loss": 0.0, "n": 0}',
        "step": 'log["loss"] += loss.item() * x.size(0)\nlog["n"] += x.size(0)',
        "epoch": (
            'schedule.step(log["loss"] / log["n"])',
            LOG + 'log["n"] = sum(accelerator.gather_for_metrics([log["n"]]))\nschedule.step(log["loss"] / log["n"])',
        ),
    },
    "items that are divided by the steps": {
        **PLATEAU,
        "start": 'log = {"loss": 0.0, "steps": 0}',
        "step": 'log["loss"] += loss.item()\nlog["steps"] += 1',
        "epoch": (
            'schedule.step(log["loss"] / log["steps"])',
            LOG.replace("\n", " / accelerator.num_processes\n") + 'schedule.step(log["loss"] / log["steps"])',
        ),
    },
}


@pytest.mark.parametrize("name", LAST)
def test_a_number_that_decides_is_joined(changed, name):
    changed(**LAST[name])


LONE = {
    "outputs that are collected": ("if sum(", {**COLLECTED, "epoch": "if sum(f.sum() for f in found) > 9:\n    break"}),
    "a count of the last batch": (
        "if hits",
        {"step": "hits = (output > 0).sum().item()", "epoch": "if hits > 3:\n    break"},
    ),
    "a list that the batch itself decides about": (
        "if found",
        {
            "made": "found = [1.0]",
            "step": "if loss.item() > 0.1:\n    found.append(loss.item())",
            "epoch": "if found[-1] < 0.3:\n    break",
        },
    ),
    "a count of the last batch, in an expression": (
        "hits > 3",
        {
            **PLATEAU,
            "step": "hits = (output > 0).sum().item()",
            "epoch": "schedule.step(epoch) if hits > 3 else None",
        },
    ),
    "numbers that a comprehension puts together": (
        "if found",
        {
            "made": "found = [1.0]",
            "step": "found.extend([row.item() for row in output])",
            "epoch": "if found[-1] < 0.3:\n    break",
        },
    ),
}


@pytest.mark.parametrize("name", LONE)
def test_refused(refused, name):
    at, holes = LONE[name]
    refused("MIG122", at, **holes)


TRAIN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer)
def train():
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader), loss.item()
for epoch in range(2):
"""


@pytest.mark.parametrize("body", ["mean, last = train()\n    schedule.step(last)", "schedule.step(train()[1])"])
def test_a_value_that_a_function_returns(convert_text, body):
    _, result = convert_text(f"{TRAIN}    {body}\n".lstrip())

    assert "    loss = accelerator.reduce(loss, reduction=" in result


def test_a_sum_that_the_caller_divides_by_its_batches(convert_text):
    text = TRAIN.replace("total / len(loader), loss.item()", "total")
    _, result = convert_text(f"{text}    schedule.step(train() / len(loader))\n".lstrip())

    assert "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes" in result


def test_the_joined_part_of_what_a_function_returns(convert_text):
    _, result = convert_text(f"{TRAIN}    mean, last = train()\n    schedule.step(mean)\n    print(last)\n".lstrip())

    assert "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes" in result


SAME_ON_ALL = {
    "the epoch": {"epoch": "if epoch > 0:\n    break"},
    "how many there are": {**COLLECTED, "epoch": "if len(found) > 3:\n    break"},
    "a name that got another value": {"epoch": "loss = epoch / 2\nif loss > 3:\n    break"},
    "a name that the next loop binds": {"epoch": "for x in range(3):\n    if x > 1:\n        break"},
}


@pytest.mark.parametrize("name", SAME_ON_ALL)
def test_unchanged(unchanged, name):
    unchanged(**SAME_ON_ALL[name])


def test_numbers_that_are_joined(changed):
    changed(
        **PLATEAU,
        start="found = []",
        step="found.append(loss.item())",
        epoch=(
            "schedule.step(sum(found) / len(found))",
            "found = accelerator.gather_for_metrics(found)\nschedule.step(sum(found) / len(found))",
        ),
    )


@pytest.mark.parametrize(
    ("number", "is_joined"), [("loss.item()", True), ("(output > 0).sum().item()", False)], ids=["means", "counts"]
)
def test_a_list_over_all_epochs_stays_in_the_order_of_time(convert_text, programs, number, is_joined):
    before, _ = programs({"made": "found = []", "step": f"found.append({number})", "end": "curve = list(found)"})
    report, result = convert_text(before)

    assert "gather" not in result
    assert ("found[:] = accelerator.reduce(found, reduction='mean')" in result) is is_joined
    assert any(f.code == "MIG114" and "found" in f.message for f in report.findings) is not is_joined


def test_lists_of_predictions_are_joined(changed):
    changed(
        start="found = []",
        step="found.extend(output.argmax(1).tolist())",
        epoch=("print(len(found))", "found = accelerator.gather_for_metrics(found)\naccelerator.print(len(found))"),
    )


METERS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
class Average:
    def __init__(self):
        self.total = 0
        self.count = 0
    def update(self, value, n=1):
        self.total += value * n
        self.count += n
    @property
    def mean(self):
        return self.total / self.count
class Smooth:
    def __init__(self):
        self.value = 0
    def update(self, value):
        self.value = 0.9 * self.value + 0.1 * value
class Patience:
    def __init__(self):
        self.best = 9.0
        self.stop = False
    def __call__(self, value):
        if value > self.best:
            self.stop = True
        self.best = value
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer)
patience = Patience()
history = {{"loss": [], "lr": []}}
def train():
    meter = {made}()
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        meter.update(loss.item())
    return {result}
for epoch in range(2):
    {use}
"""

BY_METERS = {
    "a schedule": ("meter.value", "schedule.step(train())", "schedule.step("),
    "an item": ('{"loss": meter.value}', 'log = train()\n    schedule.step(log["loss"])', "schedule.step("),
    "a history": (
        "meter.value",
        'history["loss"].append(train())\n    if history["loss"][-1] > 3:\n        break',
        "if history",
    ),
    "an object that judges": (
        "meter.value",
        "last = train()\n    patience(last)\n    if patience.stop:\n        break",
        "if patience.stop",
    ),
    "the learning rate": (
        "meter.value",
        'if train() > 3:\n        for group in optimizer.param_groups:\n            group["lr"] *= 0.1',
        "if train()",
    ),
}


@pytest.mark.parametrize("name", BY_METERS)
def test_a_meter_that_cannot_be_joined_is_given_what_is(convert_text, name):
    result, use, _ = BY_METERS[name]
    _, converted = convert_text(METERS.format(made="Smooth", result=result, use=use).lstrip())

    assert '    meter.update(accelerator.reduce(loss.item(), reduction="mean"))\n' in converted


@pytest.mark.parametrize("name", BY_METERS)
def test_a_meter_that_is_given_what_cannot_be_joined(refused_text, name):
    result, use, at = BY_METERS[name]
    text = METERS.format(made="Smooth", result=result, use=use).replace("loss.item()", "y")
    refused_text(text, "MIG122", at)


@pytest.mark.parametrize("name", BY_METERS)
def test_a_meter_that_is_joined(convert_text, name):
    result, use, _ = BY_METERS[name]
    text = METERS.format(made="Average", result=result.replace("value", "mean"), use=use)
    report, converted = convert_text(text.lstrip())

    assert "    meter.total, meter.count = accelerator.reduce((meter.total, meter.count))\n" in converted
    assert not [finding for finding in report.findings if finding.code == "MIG114"]


def test_a_count_that_no_value_feeds_is_joined_too(convert_text):
    text = METERS.format(made="Average", result="meter.mean", use="print(train())")
    text = text.replace("value, n=1", "value").replace("value * n", "value").replace("count += n", "count += 1")
    _, converted = convert_text(text.lstrip())

    assert "    meter.total, meter.count = accelerator.reduce((meter.total, meter.count))\n" in converted


def test_an_item_that_is_the_same_on_all(convert_text):
    use = 'log = train()\n    schedule.step(log["epoch"])'
    text = METERS.format(made="Smooth", result='{"loss": meter.value, "epoch": 3}', use=use)
    report, converted = convert_text(text.lstrip())

    assert "accelerator.backward" in converted
    assert [f.message for f in report.findings if f.code == "MIG114"] == [
        "while this loop runs, meter shows one process's share of the data",
        "meter, read after this loop, is of one process's share of the data",
    ]


KEEPER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
class Patience:
    def __init__(self):
        self.best = 9.0
        self.waited = 0
        self.stop = False
    def {method}(self, value):
        if value > self.best:
            self.waited += 1
        self.best = min(value, self.best)
        if self.waited > 3:
            self.stop = True
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
patience = Patience()
bad = 0
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        {step}
"""


@pytest.mark.parametrize("method", ["__call__", "look"])
def test_an_object_that_ends_the_loop_over_the_batches(convert_text, method):
    call = "patience" if method == "__call__" else f"patience.{method}"
    step = f"{call}(loss.item())\n        if patience.stop:\n            break"
    _, converted = convert_text(KEEPER.format(method=method, step=step).lstrip())

    assert f'        {call}(accelerator.reduce(loss.item(), reduction="mean"))\n' in converted.replace("'", '"')


def test_a_count_of_bad_steps_that_ends_the_loop(refused_text):
    step = "if loss.item() > 2:\n            bad += 1\n        if bad > 3:\n            break"
    refused_text(KEEPER.format(method="look", step=step), "MIG122", "if bad > 3")


def test_a_count_that_all_set_together(convert_text):
    left = "if torch.isnan(loss):\n            bad += 9\n            break\n"
    step = f"{left}        bad += 1\n        if bad > 3:\n            break"
    _, converted = convert_text(KEEPER.format(method="look", step=step).lstrip())

    assert "        if accelerator.gather(torch.isnan(loss)).any():\n            bad += 9\n" in converted


def test_a_meter_that_a_clock_feeds_beside_one_of_the_batches(convert_text):
    text = METERS.format(
        made="Average", result="meter.mean, clock.mean", use="mean, _ = train()\n    schedule.step(mean)"
    )
    text = text.replace("import torch\n", "import time\nimport torch\n", 1)
    text = text.replace("    meter = Average()\n", "    meter = Average()\n    clock = Average()\n")
    text = text.replace("        meter.update(", "        clock.update(time.time())\n        meter.update(")
    _, converted = convert_text(text.lstrip())

    assert "    meter.total, meter.count = accelerator.reduce((meter.total, meter.count))\n" in converted


SET = {
    "a flag": ("done = False", "done = True", "if done:\n    break"),
    "a count": ("low = 0", "low += 1", "if low > 3:\n    break"),
    "a tensor": ("stop = torch.zeros(1)", "stop += 1", "if stop.item() > 0:\n    break"),
}


@pytest.mark.parametrize("name", SET)
def test_what_a_step_sets_on_a_condition_of_its_own_batch(refused, name):
    start, given, asked = SET[name]
    mention = f"`break` here goes by {given.split()[0]}, which differs between processes"
    refused("MIG122", asked.split("\n")[0], [mention], start=start, step=f"if loss < 0.1:\n    {given}", epoch=asked)


def test_a_flag_that_is_set_where_all_leave_together(changed):
    test = "accelerator.reduce(loss, reduction='mean') < 0.1"
    flag = "if {}:\n    done = True\n    break"
    changed(start="done = False", step=(flag.format("loss < 0.1"), flag.format(test)), epoch="if done:\n    break")
