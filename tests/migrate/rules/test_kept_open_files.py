"""Files that an object keeps open where the accelerator does not come to: one process writes into them."""

import pytest

from migrate.report.model import Kind

RESULTS = """
import json
import os
import torch


def placed(path):
    if not os.path.exists("logs"):
        os.makedirs("logs")
    return path


class Results:
    def __init__(self, path, **settings):
        {opened}
        self.seen = 0

    def log(self, **numbers):
        self.seen += 1
        {written}
"""
TRAIN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from results import Results

if __name__ == "__main__":
    torch.manual_seed(0)
    results = Results("logs/results.txt", **{"rate": 0.1})
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        results.log(**{"epoch": epoch})
    print(results.seen)
"""
WRITTEN = 'self.file.write(json.dumps(numbers) + "\\n")\n        self.file.flush()'
EMPTIED = 'self.file = open({}, "w")'
FIRST = 'placed(path) if os.environ.get("RANK", "0") == "0" else os.devnull'
OPENED = {
    "emptied": EMPTIED,
    "gone on with": 'self.file = open({}, "a", encoding="utf-8")',
    "by its keyword": 'self.file = open({}, mode="w")',
}
LEFT = {
    "that must not be there": ('self.file = open(placed(path), "x")', WRITTEN),
    "that is read as well": ('self.file = open(placed(path), "w+")', f"{WRITTEN}\n        self.file.read()"),
    "of one function": (
        'self.path = placed(path)\n        with open(self.path, "w") as file:\n            file.write(str(settings))',
        'with open(self.path, "a") as file:\n            file.write(str(numbers))',
    ),
    "that another method opens": (
        "self.path = placed(path)",
        f'self.file = open(self.path, "w")\n        {WRITTEN}',
    ),
}


def _of(converted, opened, written=WRITTEN):
    report, files = converted(results=RESULTS.format(opened=opened, written=written), train=TRAIN)
    return [f.message for f in report.of(Kind.NOTE) if f.code == "MIG117"], files


@pytest.mark.parametrize("name", OPENED)
def test_all_but_the_first_process_write_nowhere(converted, name):
    said, files = _of(converted, OPENED[name].format("placed(path)"))

    assert OPENED[name].format(FIRST) in files["results"]
    assert said == []


@pytest.mark.parametrize("name", LEFT)
def test_other_files_are_told(converted, name):
    said, files = _of(converted, *LEFT[name])

    assert "os.devnull" not in files["results"]
    assert any("writes" in message for message in said)


def test_what_is_written_besides_is_still_told(converted):
    saved = f"{WRITTEN}\n        torch.save(numbers, 'numbers.pt')"
    said, files = _of(converted, EMPTIED.format("placed(path)"), saved)

    assert EMPTIED.format(FIRST) in files["results"]
    assert any("log()" in message for message in said)


def test_on_two_processes_each_line_is_there_once(converted, numbers_printed, tmp_path):
    _, files = _of(converted, EMPTIED.format("placed(path)"))
    numbers_printed(files["train"], 2)

    assert (tmp_path / "logs" / "results.txt").read_text() == '{"epoch": 0}\n{"epoch": 1}\n'


LOG = """
class Log:
    def __init__(self, path):
        self.file = open(path, "a")

    def say(self, text):
        print(text)
        self.file.write(text)
"""
LOGGED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from log import Log


def train(log):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4):
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    log.say("trained")


if __name__ == "__main__":
    torch.manual_seed(0)
    log = Log("log.txt")
    {above}
    train(log)
"""


def _logged(converted, log=LOG):
    report, files = converted(log=log, train=LOGGED.format(above='log.say("begun")'))
    assert 'if os.environ.get("RANK", "0") == "0" else os.devnull' in files["log"]
    assert 'if accelerator.is_main_process:\n        log.say("trained")' in files["train"]
    return [f.line for f in report.of(Kind.NOTE) if f.code == "MIG117"], files["train"]


def test_what_is_said_above_the_accelerator_is_said_by_one(converted):
    """The file is that of one in any case: what is left is printed."""
    said, text = _logged(converted)

    assert 'if os.environ.get("RANK", "0") == "0":\n        log.say("begun")' in text
    assert said == []


def test_what_writes_another_file_there_is_told(converted):
    more = LOG + '        with open("all.txt", "a") as file:\n            file.write(text)\n'
    said, text = _logged(converted, more)

    assert '    log = Log("log.txt")\n    log.say("begun")' in text
    assert said == [LOGGED.splitlines().index("    {above}") + 1]
