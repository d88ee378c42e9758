"""The paragraph about a program: what was understood, what is left and why, and what could not be resolved."""

import textwrap
from pathlib import Path

import pytest

from migrate.options import Mode, Options
from migrate.pipeline import run, run_text
from migrate.report import text
from migrate.report.model import Report, Summary

HEAD = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
import somelib
"""
STEP = """\
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""


def told(source, **options):
    (summary,) = run_text(
        (HEAD + textwrap.dedent(source).lstrip("\n")).encode(), "train.py", Options(**options)
    ).summaries
    return summary.text


def test_a_program_with_everything():
    source = """
        class Net(nn.Module):
            def forward(self, x):
                return x
        def train(model, loader, optimizer):
            model.train()
            for x in loader:
                loss = model(x).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        def test(model, loader):
            model.eval()
            total = 0
            with torch.no_grad():
                for x in loader:
                    total += model(x).sum().item()
            return total
        model = Net()
        train_loader = DataLoader(data, shuffle=True)
        test_loader = DataLoader(other)
        optimizer = optim.Adam(model.parameters())
        scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
        for epoch in range(3):
            train(model, train_loader, optimizer)
            test(model, test_loader)
            scheduler.step()
    """

    assert told(source) == (
        "trains `model` (Net, line 22) with `optimizer` (Adam, line 25) and `scheduler` (StepLR, stepped per epoch, "
        "line 26) on `train_loader` (line 23) in the loop at line 10 (in train(), called from line 28); "
        "evaluates on `test_loader` (line 24) in the loop at line 19 (in test(), called from line 29)."
    )


def test_a_program_that_is_left_says_why():
    source = (
        "model = nn.Linear(1, 1).half()\noptimizer = optim.SGD(model.parameters())\n"
        "loader = DataLoader(data)\nfor x in loader:\n"
    )

    assert told(source + STEP).endswith(
        "Left as it is: the parameters of the model are in float16, and so are what steps and averages do with them "
        "(MIG106)."
    )


def test_a_loop_over_a_loader_without_the_model():
    source = f"""
model = nn.Linear(1, 1)
optimizer = optim.SGD(model.parameters())
loader = DataLoader(data)
for x in loader:
{STEP}for x in loader:
    print(x.shape)
"""

    assert "; also goes over `loader` (line 7) in the loop at line 12." in told(source)


MADE = "optimizer = optim.SGD(model.parameters())\n"
MISSING = {
    "the model": (
        "model, _ = somelib.build_extra()\noptimizer = optim.SGD(model.parameters())\nfor x in DataLoader(data):\n",
        "Not resolved: what `somelib.build_extra()` at line 5 returns. Left as it is: ",
    ),
    "the data": (
        "model = nn.Linear(1, 1)\noptimizer = optim.SGD(model.parameters())\nfor x in somelib.data():\n",
        "Not resolved: what `somelib.data()` at line 7 returns. Left as it is: ",
    ),
    "the optimizer": (
        "model = nn.Linear(1, 1)\noptimizer = somelib.Fast(model.parameters())\nfor x in DataLoader(data):\n",
        "Not resolved: what `somelib.Fast()` at line 6 returns. Left as it is: ",
    ),
    "a second model": (
        f"model, teacher = nn.Linear(1, 1), somelib.teacher()\n{MADE}for x in DataLoader(data):\n    teacher(x)\n",
        "Not resolved: what `somelib.teacher()` at line 5 returns.",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_matters_and_is_not_resolved(case):
    source, says = MISSING[case]

    assert says in told(source + STEP)


def test_what_does_not_matter_is_not_told():
    source = (
        "model = nn.Linear(1, 1)\noptimizer = optim.SGD(model.parameters(), lr=somelib.rate())\nlog = somelib.log()\n"
        "for x in DataLoader(data):\n    log('x')\n"
    )

    assert "Not resolved" not in told(source + STEP)


def test_one_name_for_several_models_is_told_once():
    source = (
        "if data:\n    model = nn.Linear(1, 1)\nelse:\n    model = nn.Conv2d(1, 1, 1)\n"
        "optimizer = optim.SGD(model.parameters())\nfor x in [1, 2]:\n"
    )

    assert told(source + STEP).startswith("trains `model` (Conv2d or Linear, line 6) with ")


def test_nobody_reads_it_in_a_check():
    source = "model = nn.Linear(1, 1)\noptimizer = optim.SGD(model.parameters())\nfor x in [1, 2]:\n" + STEP

    assert told(source, mode=Mode.CHECK) == ""


def test_files_that_are_only_modules_of_a_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()
    Path("nets.py").write_text(
        "import torch\nimport torch.nn as nn\nfrom parts import Part\nclass Net(nn.Module): pass\n"
    )
    Path("parts.py").write_text("import torch\nimport torch.nn as nn\nclass Part(nn.Module): pass\n")
    Path("other.py").write_text("import torch\n")
    program = (
        "from nets import Net\nmodel = Net()\noptimizer = optim.SGD(model.parameters())\nloader = DataLoader(data)\n"
    )
    Path("train.py").write_text(f"{HEAD}{program}for x in loader:\n{STEP}")

    report = run(["."], Options())

    first, *others = text.summaries(report, 200).splitlines()
    assert first.startswith(
        "train.py: trains `model` (Net, line 6) with `optimizer` (SGD, line 7) on `loader` (line 8) "
    )
    assert others == [
        "",
        "nets.py, parts.py: part of the program of train.py",
    ]


def test_a_paragraph_is_as_wide_as_the_terminal():
    report = Report(
        summaries=(Summary("a.py", "trains `model` on `loader` in the loop at src/deep-est/file-name.py:3", ()),)
    )

    assert text.summaries(report, 30) == (
        "a.py: trains `model` on\n`loader` in the loop at\nsrc/deep-est/file-name.py:3\n"
    )


def test_files_of_several_programs_are_told_once():
    report = Report(
        summaries=(
            Summary("a.py", "one.", (), ("nets.py", "b.py")),
            Summary("b.py", "two.", (), ("nets.py", *(f"part{n}.py" for n in range(9)))),
        )
    )

    assert text.summaries(report, 200).splitlines() == [
        "a.py: one.",
        "",
        "b.py: two.",
        "",
        "nets.py: part of the programs of a.py, b.py",
        "",
        f"{', '.join(f'part{n}.py' for n in range(8))} and 1 more file: part of the program of b.py",
    ]


def test_scripts_of_which_the_same_is_told_have_one_paragraph():
    report = Report(summaries=tuple(Summary("train.py", "one.", (), (f"script{n}.py",)) for n in range(3)))

    assert text.summaries(report, 200).splitlines()[:1] == ["train.py: one."]
    assert text.summaries(report, 200).count("train.py: one.") == 1
