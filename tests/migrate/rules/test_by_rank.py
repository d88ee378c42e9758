"""What is printed where no accelerator is at hand: the first process says it, which RANK tells."""

import json
from pathlib import Path

import pytest

from migrate.options import Options, Target
from migrate.pipeline import run
from migrate.report.model import Kind

GUARD = 'if os.environ.get("RANK", "0") == "0":'
PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, kind="small"):
        super().__init__()
        self.linear = nn.Linear(2, 1)
        {made}

    def grow(self):
        self.size = 1
        return self.size

    def forward(self, x):
        return self.linear(x)


class Trainer:
    def __init__(self, kind):
        torch.manual_seed(0)
        self.model = Net(kind).cuda()
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)

    def train(self):
        for x, y in self.loader:
            loss = (self.model(x.cuda()) - y.cuda()).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def main(kinds=("small", "large")):
    {ready}
    for kind in kinds:
        trainer = Trainer(kind)
        {around}
        trainer.train()


if __name__ == "__main__":
    main()
"""


def program(**parts):
    return PROGRAM.format(**{name: parts.get(name, "pass") for name in ("made", "ready", "around")})


def notes(report):
    return [finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG117"]


BRANCHES = """\
        if kind:
            print(1)
            self.kind = 1
        elif self:
            print(2)
        else:
            print(3)"""
SAID = {
    "neighbours": ("print(1)\n        print(2)", f"{GUARD}\n            print(1)\n            print(2)"),
    "a loop": (
        "for name in kind:\n            print(name)",
        f"{GUARD}\n            for name in kind:\n                print(name)",
    ),
    "a branch": ("if kind:\n            print(1)", f"if kind and {GUARD[3:]}\n            print(1)"),
    "branches that do more": (
        BRANCHES.strip(),
        BRANCHES.strip().replace("            print(", f"            {GUARD}\n                print("),
    ),
}


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("name", SAID)
def test_what_a_model_says_while_it_is_made(convert_text, name, target):
    before, after = SAID[name]
    report, result = convert_text(program(made=before), target=target)

    assert f"        {after}\n" in result
    assert "import os\n" in result
    assert not notes(report)


def test_what_the_code_around_a_trainer_says(convert_text):
    text = program(ready="print('begin')", around="print('now', kind)", made="print('made')")
    report, result = convert_text(text + "\n\nprint('imported')\n")

    assert result.count("if os.environ.get('RANK', '0') == '0':") == 4
    assert not notes(report)


def test_it_is_said_once(convert_text, numbers_printed):
    said = {"ready": "print(1)", "around": "print(len(kind))", "made": "print(self.linear.weight.numel())"}
    _, result = convert_text(program(**said))

    assert numbers_printed(result, 2) == numbers_printed(result, 1) == [1, 2, 5, 2, 5]


LEFT = {
    "a warning": "log.warning('old')",
    "a file": "torch.save(kind, 'kind.pt')",
    "what it prints into": "print(kind, file=open('kind.txt', 'w'))",
    "what is drawn": "print(torch.rand(2))",
    "what begins a pass": "print(next(iter(DataLoader([1, 2], shuffle=True))))",
    "what is taken": "print(kind.pop())",
    "what changes the model": "print(self.grow())",
    "a value that is used": "self.said = print(kind)",
    "a last word": "if kind == 'none':\n            print('unknown')\n            raise ValueError(kind)",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_does_more_than_print_is_left(convert_text, name):
    _, result = convert_text(
        "import logging\nfrom tqdm import tqdm\nlog = logging.getLogger()\n" + program(made=LEFT[name])
    )

    assert f"        {LEFT[name]}\n" in result
    assert "RANK" not in result


def test_who_asks_already_is_let_be(convert_text):
    report, result = convert_text("import os\n" + program(made=f"{GUARD}\n            print(1)"))

    assert result.count("RANK") == 1
    assert not notes(report)


def test_a_file_of_two_programs_is_changed_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head, trainer = program(made="print(kind)").split("class Trainer", 1)
    Path("nets.py").write_text(head)
    for name in ("one", "two"):
        Path(f"{name}.py").write_text(
            head[: head.index("class Net")] + "from nets import Net\n\n\nclass Trainer" + trainer
        )
    report = run(["."], Options())

    (nets,) = (change.new.decode() for change in report.changes if change.path == "nets.py")
    assert len(report.changes) == 3
    assert nets.count(GUARD) == 1


def test_the_cells_of_a_notebook_have_no_rank(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": program(made="print(kind)"),
        }
    ]
    Path("a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    report = run(["a.ipynb"], Options())

    assert report.changes
    assert not any(b"RANK" in change.new for change in report.changes)


LOGGED = """
import argparse
import logging

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger(__name__)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", action="store_true")
    log.info("begin")
    log.warning("old")
    args = parser.parse_args()
    device = torch.device("cuda" if args.gpu else "cpu")
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4):
        loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""


def test_what_is_logged_before_there_is_an_accelerator(convert_text):
    """A warning may be one process's own trouble."""
    report, result = convert_text(LOGGED)

    assert f'    {GUARD}\n        log.info("begin")\n    log.warning("old")\n    args =' in result
    assert any("it runs before the accelerator exists" in note for note in notes(report))


ABOVE = """
import logging

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def get_logger(path):
    logger = logging.getLogger()
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.FileHandler(path))
    logger.info("opened")
    logger.warning("old")
    return logger


{top}
def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    {first}
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4):
        loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.info("step")
    print(len(open("log.txt").read().split("opened")) - 1, open("log.txt").read().count("begin"))


main()
"""
OPENED = 'log = get_logger("log.txt")\nlog.info("begin")\n\n\n'


def test_what_is_logged_above_the_function_that_trains(convert_text, numbers_printed, monkeypatch, tmp_path):
    """A function that is called there logs above the accelerator, too; a file would hold it once a process."""
    _, result = convert_text(ABOVE.format(top=OPENED, first="torch.manual_seed(0)"))

    assert f'    {GUARD}\n        logger.info("opened")\n    logger.warning("old")\n' in result
    assert f'\n{GUARD}\n    log.info("begin")\n' in result
    monkeypatch.chdir(tmp_path)
    assert numbers_printed(result, 2) == [1, 1]


def test_what_is_logged_by_what_runs_below_the_accelerator_alone_needs_no_guard(convert_text):
    top = "def begin():\n    return get_logger('log.txt')\n\n\n"
    _, result = convert_text(ABOVE.format(top=top, first="log = begin()"))

    assert "logging.disable" in result
    assert "RANK" not in result


BY_HAND = "for p in model.parameters():\n            p.data -= 0.1 * p.grad"


def test_what_is_logged_above_by_what_a_refused_program_runs_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head, rest = ABOVE.format(top=OPENED, first="torch.manual_seed(0)").split("def get_logger", 1)
    helper, script = rest.split("\n\n\n", 1)
    Path("helpers.py").write_text(f"import logging\n\n\ndef get_logger{helper}\n")
    script = f"{head}from helpers import get_logger\n\n{script}"
    Path("one.py").write_text(script)
    Path("two.py").write_text(script.replace("optimizer.step()", BY_HAND))
    report = run(["."], Options())

    changed = {change.path: change.new.decode() for change in report.changes}
    assert changed.keys() == {"helpers.py", "one.py"}
    assert f'    {GUARD}\n        logger.info("opened")\n    logger.warning("old")\n' in changed["helpers.py"]
