"""What a loop fills under one name and the program reads under another: `migrate/programs/values/aliases.py`."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 2), torch.randn(16, 1))
loader = DataLoader(data, batch_size=BATCH)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    KEEP
"""
KEEPING = "log.append(loss.item())"


def _indented(code, by):
    return code.replace("\n", "\n" + " " * by)


def _epochs(keep, after, start="", each=""):
    """Two epochs; `start` stands above them, `each` at the top of each, `after` below."""
    step = _indented(STEP.replace("KEEP", _indented(keep, 4)), 4).rstrip(" ")
    return f"{start}\nfor epoch in range(2):\n    {_indented(each, 4) or 'pass'}{step}{after}\n"


def _text(code, batch=4):
    return HEAD.replace("BATCH", str(batch)) + code


IN_A_METHOD = f"""
class Trainer:
    def __init__(self):
        self.history = []

    def fit(self):
        log = self.history{_indented(STEP.replace("KEEP", KEEPING), 8).rstrip(" ")}
trainer = Trainer()
trainer.fit()
print(trainer.history)
"""
LOGS = "logs = {'train': [], 'val': []}"
JOINED = {
    "an item of a dictionary": _epochs(KEEPING, "print(logs['train'])", LOGS, "log = logs['train']"),
    "an item that is made where it is missing": _epochs(
        KEEPING, "print(logs['train'])", "logs = {}", "log = logs.setdefault('train', [])"
    ),
    "an attribute": IN_A_METHOD,
    "a list that lies in another": _epochs(KEEPING, "print(history)", "history = []", "log = []\nhistory.append(log)"),
    "two names of one": _epochs(KEEPING, "print(other)", "other = log = []"),
    "what a program stops by": _epochs(
        KEEPING, "    if logs['train'][-1] < 0.01: break", LOGS + "\nlog = logs['train']"
    ),
}
ROWS = "table = torch.zeros(2, 4)"
TOLD = {
    "of which one is taken for each number": (
        _epochs(
            "for name, log in zip(names, kept):\n    log.append(loss.item())",
            "for i, log in enumerate(kept): print(log[-1])",
            "names, kept = ['a', 'b'], [[], []]",
        ),
        "kept",
    ),
    "of the items of a dictionary": (
        _epochs("for name, log in logs.items():\n    log.append(loss.item())", "print(logs['val'])", LOGS),
        "logs",
    ),
    "that is taken in each step": (
        _epochs(f"log = logs['train']\n{KEEPING}", "print(logs['train'])", LOGS),
        "logs['train']",
    ),
    "of which a sum is taken": (
        _epochs(KEEPING, "print(sum(logs['train']))", LOGS, "log = logs['train']"),
        "logs['train']",
    ),
    "a row of an array": (
        _epochs("row[step] = loss.item()\nstep += 1", "print(table.mean())", ROWS, "row, step = table[epoch], 0"),
        "table",
    ),
    "by a method that has a name": (
        _epochs("put(loss.item())", "print(log)", "log = []\nput = log.append"),
        "log",
    ),
    "of which another is made below, for who had it": (
        _epochs(
            KEEPING,
            "    print(sum(log) / len(log))\nprint(history)",
            "history = []",
            "log = []\nhistory.append(log)",
        ),
        "history",
    ),
}
GLOBAL = f"""
state = {{"loss": 0.0}}

class Engine:
    def __init__(self):
        self.state = state

    def run(self):{_indented(STEP.replace("KEEP", "self.state['loss'] += loss.item()"), 8).rstrip(" ")}
Engine().run()
print(state["loss"])
"""
WHOLE = {
    "kept when it is joined": _epochs(
        KEEPING, "    print(sum(log) / len(log))\n    history.append(log)\nprint(history)", "history = []", "log = []"
    ),
    "of the validation": _epochs("pass", "print(logs['val'], logs)", LOGS, "log = logs['val']\nlog.append(epoch)"),
    "made in each step": _epochs(
        "log = [loss.item()]\nkept = [log]", "    history.append([])\nprint(history)", "history = []"
    ),
    "read before alone": _epochs(KEEPING, "", LOGS + "\nprint(logs)", "log = logs['train']"),
    "only how many there are": _epochs(KEEPING, "", LOGS, "log = logs['train']\nlog.clear()"),
}
YIELDING = f"""
def steps():{_indented(STEP.replace("KEEP", "yield loss.item()"), 4).rstrip(" ")}
for value in steps():
    print(value)
"""


def _told(report, name):
    start = f"{name}, read after this loop, is of one process's share"
    return [finding for finding in report.findings if finding.message.startswith(start)]


@pytest.mark.parametrize("name", JOINED)
def test_two_processes_keep_what_one_keeps(convert_text, numbers_printed, name):
    report, result = convert_text(_text(JOINED[name], 2))

    assert not _told(report, "")
    assert not [finding for finding in report.findings if "share of the data" in finding.message]
    one, two = numbers_printed(_text(JOINED[name]), 1), numbers_printed(result, 2)
    assert two == pytest.approx(one, rel=1e-5)


@pytest.mark.parametrize("name", TOLD)
def test_what_cannot_be_joined_is_told_by_the_name_that_is_read(convert_text, name):
    code, read = TOLD[name]
    report, result = convert_text(_text(code))

    assert "accelerator.prepare(" in result
    assert len(_told(report, read)) == 1


def test_what_a_module_reads_by_a_name_of_its_own_is_told(convert_text):
    report, _ = convert_text(_text(GLOBAL))

    assert len(_told(report, "state['loss']")) == 1


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_of_all_processes_is_not_told(convert_text, name):
    report, result = convert_text(_text(WHOLE[name]))

    assert "accelerator.prepare(" in result
    assert not [finding for finding in report.findings if "read after this loop" in finding.message]


@pytest.mark.parametrize(
    ("code", "is_told"), [(YIELDING, True), (YIELDING.replace("loss.item()", "len(loader)"), False)]
)
def test_what_a_training_generator_yields_is_told(convert_text, code, is_told):
    report, _ = convert_text(_text(code))

    assert bool([f for f in report.findings if f.message.startswith("loss.item(), which is yielded here")]) is is_told
