"""Objects that a training loop feeds by calling them, or that it takes out of a list: `metrics/feeding.py`."""

import pytest

from migrate.options import Options
from migrate.pipeline import run_text
from migrate.report.model import Kind

METER = """\
class Accuracy:
    def __init__(self):
        self.right = 0
        self.seen = 0
    def __call__(self, output, y):
        self.right += (output > y).sum().item()
        self.seen += y.size(0)
        return self.right / self.seen
    def value(self):
        return self.right / self.seen
"""
#: It keeps what it is given by a method of its own, which hands it on.
LOG = """\
class Log:
    def __init__(self):
        self.sums = {"right": 0, "seen": 0}
    def __call__(self, output, y):
        if y is not None:
            self.step(output, y)
    def add(self, output, y):
        self.step(output, y)
    def show(self, output, y):
        self.begin()
    def begin(self):
        self.seen = 0
    def step(self, output, y):
        self.sums["right"] += (output > y).sum().item()
        self.sums["seen"] += y.size(0)
    def value(self):
        return self.sums["right"] / self.sums["seen"]
"""
#: What is set to anything is no sum that can be joined.
BEGIN = """\
    def begin(self, right):
        self.right = right
"""
LOSS = """\
class Error:
    def __init__(self):
        self.steps = 0
        self.last = None
    def __call__(self, output, y):
        self.steps += 1
        self.last = output - y
        return (output - y).pow(2).mean()
"""


def notes(report):
    return [finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG114"]


FED = {
    "one that may begin with any number": (
        "metric = Accuracy()",
        "metric(output, y)",
        "print(metric.value())",
        "metric",
    ),
    "of a list": (
        "metrics = [Accuracy(), Accuracy()]",
        "for metric in metrics:\n    metric(output, y)",
        "for metric in metrics:\n    print(metric.value())",
        "metrics",
    ),
    "of a list, with its number": (
        "metrics = [Accuracy(), Accuracy()]",
        "for i, metric in enumerate(metrics):\n    metric(output, y)",
        "print([metric.value() for metric in metrics])",
        "metrics",
    ),
    "beside names": (
        "names, metrics = ['a', 'b'], [Accuracy(), Accuracy()]",
        "for metric, name in zip(metrics, names):\n    metric(output, y)",
        "print([metric.value() for metric in metrics])",
        "metrics",
    ),
    "of a dictionary": (
        "metrics = {'a': Accuracy(), 'b': Accuracy()}",
        "for metric in metrics.values():\n    metric(output, y)",
        "print(metrics['a'].value())",
        "metrics",
    ),
    "of a dictionary, with its key": (
        "metrics = {'a': Accuracy(), 'b': Accuracy()}",
        "for key, metric in metrics.items():\n    metric(output, y)",
        "print(metrics['a'].value())",
        "metrics",
    ),
    "in a comprehension": (
        "metrics = [Accuracy(), Accuracy()]",
        "[metric(output, y) for metric in metrics]",
        "print(metrics[0].value())",
        "metrics",
    ),
}


@pytest.mark.parametrize("step", ["log(output, y)", "log.add(output, y)"])
def test_what_a_method_hands_on_to_another_is_told(convert_text, programs, step):
    holes = {"setup": LOG, "made": "log = Log()", "step": step, "end": "print(log.value())"}
    report, _ = convert_text(programs(holes)[0])

    assert "log, read after this loop, is of one process's share of the data" in notes(report)


def test_a_method_that_hands_nothing_on_keeps_nothing(convert_text, programs):
    holes = {"setup": LOG, "made": "log = Log()", "step": "log.show(output, y)", "end": "print(log.value())"}
    report, _ = convert_text(programs(holes)[0])

    assert not notes(report)


MEASURED = """\
def measured(output, y):
    error = (output - y).abs()
    numbers = {numbers}
    return error.mean(), numbers
"""


@pytest.mark.parametrize(("numbers", "is_told"), [("{'error': error.mean().item()}", True), ("{'size': 4}", False)])
def test_a_row_that_a_function_gives_beside_the_loss_is_of_a_process_share(convert_text, programs, numbers, is_told):
    log = LOG.replace("def add(self, output, y)", "def add(self, row)").replace(
        "self.step(output, y)\n    def show", "for key in row:\n            self.sums[key] += row[key]\n    def show"
    )
    setup = log + MEASURED.replace("{numbers}", numbers)
    step = "loss, row = measured(output, y)\nlog.add(row)"
    report, _ = convert_text(
        programs({"setup": setup, "made": "log = Log()", "step": step, "end": "print(log.sums)"})[0]
    )

    assert ("while this loop runs, log shows one process's share of the data" in notes(report)) is is_told


@pytest.mark.parametrize("name", FED)
def test_what_counts_one_process_share_is_told(convert_text, programs, name):
    made, step, end, told = FED[name]
    report, result = convert_text(programs({"setup": METER + BEGIN, "made": made, "step": step, "end": end})[0])

    assert "accelerator.prepare(" in result
    assert f"while this loop runs, {told} shows one process's share of the data" in notes(report)
    assert f"{told}, read after this loop, is of one process's share of the data" in notes(report)


@pytest.mark.parametrize(("step", "is_shown"), [("metric(output, y)", False), ("print(metric(output, y))", True)])
def test_a_meter_that_is_called_is_joined(convert_text, programs, step, is_shown):
    holes = {"setup": METER, "start": "metric = Accuracy()", "step": step, "epoch": "print(metric.value())"}
    report, result = convert_text(programs(holes)[0])

    assert "    metric.right, metric.seen = accelerator.reduce((metric.right, metric.seen))\n" in result
    assert notes(report) == ["while this loop runs, metric shows one process's share of the data"] * is_shown


def test_what_is_decided_by_one_of_a_list_is_refused(refused, programs):
    holes = {
        "setup": METER,
        "made": "metrics = [Accuracy(), Accuracy()]",
        "step": "for metric in metrics:\n    metric(output, y)",
        "epoch": "if metrics[0].value() > 0.9:\n    break",
    }
    refused("MIG122", "metrics[0].value()", ["metrics"], **holes)


def test_a_loss_that_counts_its_steps_is_no_metric(convert_text, programs):
    source = programs({"setup": LOSS, "end": "print(criterion.steps)"})[0]
    report, _ = convert_text(source.replace("nn.MSELoss()", "Error()"))

    assert not [message for message in notes(report) if "criterion" in message]


STEP = """\
class Step:
    def __init__(self):
        self.taken = 0
    def __call__(self, loss, optimizer):
        self.taken += 1
        loss.backward()
        optimizer.step()
"""


def test_what_takes_the_whole_step_is_no_metric(convert_text, programs):
    source = programs({"setup": STEP, "made": "step = Step()", "end": "print(step.taken)"})[0]
    source = source.replace(
        "        loss.backward()\n        optimizer.step()\nprint", "        step(loss, optimizer)\nprint"
    )
    report, result = convert_text(source)

    assert "step(loss, optimizer, accelerator)" in result or "step(loss, optimizer)" in result
    assert not notes(report)


def test_what_goes_through_a_list_of_one_process_own_says_so(programs):
    source = programs({"made": "kept = []", "step": "kept.append(output)", "end": "for rows in kept:\n    print(rows)"})
    report = run_text(source[0].encode(), "program.py", Options())

    assert "kept, read after this loop, is of one process's share of the data" in notes(report)


TRAINER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 4)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return self.net(x)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.forward(x), y)
        {early}
        loss.backward()
        self.optimizer.step()
        {count}


loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 4)), batch_size=4)
trainer = Trainer()
for x, y in loader:
    trainer.step(x, y)
    {after}
    if trainer.steps % 4 == 0:
        torch.save(trainer.net.state_dict(), "net.pt")
"""


def test_steps_that_all_processes_count_alike_may_decide(convert_text):
    report, result = convert_text(TRAINER.format(early="pass", count="self.steps += 1", after="pass"))

    assert "accelerator.save(" in result
    assert not [finding for finding in report.findings if finding.code == "MIG122"]


OWN_COUNTS = {
    "by the batch": {"count": "if loss.item() > 1:\n            self.steps += 1"},
    "left early": {"early": "if loss.item() > 1:\n            return", "count": "self.steps += 1"},
    "called by the batch": {"after": "if y.sum() > 1:\n        trainer.forward(x)"},
}


@pytest.mark.parametrize("name", OWN_COUNTS)
def test_steps_that_each_process_counts_by_its_batches_may_not(convert_text, name):
    source = TRAINER.format(**({"early": "pass", "count": "pass", "after": "pass"} | OWN_COUNTS[name]))
    report, _ = convert_text(source)

    assert [finding for finding in report.findings if finding.code == "MIG122"]
