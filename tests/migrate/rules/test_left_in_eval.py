"""Training loops that may begin in eval mode: `migrate/programs/evaluation/left_in_eval.py`."""

import pytest

from migrate.options import Target

PROGRAM = """
import os
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
size = int(os.environ.get("BATCH", "8"))
x, y = torch.randn(64, 4), torch.arange(64) % 2
device = "cuda" if torch.cuda.is_available() else "cpu"
loader = DataLoader(TensorDataset(x[:48], y[:48]), batch_size=size, shuffle=True)
held = DataLoader(TensorDataset(x[48:], y[48:]), batch_size=size)
model = nn.Linear(4, 2).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
scheduler = optim.lr_scheduler.StepLR(optimizer, 6, gamma=0.5)


def validate():
    model.eval()
    right = 0
    with torch.no_grad():
        for a, b in held:
            right += (model(a.to(device)).argmax(1) == b.to(device)).sum().item()
    {validated}
    return right


def step(a, b):
    {stepping}
    loss = nn.functional.cross_entropy(model(a.to(device)), b.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()


for epoch in range(3):
    {epoch}
    for a, b in {over}:
        step(a, b)
    right = validate()
    print(scheduler.get_last_lr()[0], right)
"""
FILLINGS = {"validated": "pass", "stepping": "pass", "epoch": "pass", "over": "loader"}
SAYING = "accelerator.training_batches(loader)"
STEPPING = pytest.mark.parametrize("holes", [{}, {"stepping": "model.train()"}], ids=["never again", "in each step"])


def program(**holes):
    return PROGRAM.format(**{**FILLINGS, **holes})


@STEPPING
def test_a_training_after_an_evaluation_says_that_it_is_one(convert_text, holes):
    _, result = convert_text(program(**holes))

    assert f"for a, b in {SAYING}:" in result


NOT_LEFT = {
    "at the top of each epoch": {"epoch": "model.train()"},
    "at the end of the evaluation": {"validated": "model.train()"},
}


@pytest.mark.parametrize("name", NOT_LEFT)
def test_others_stay_as_they_are(convert_text, name):
    _, result = convert_text(program(**NOT_LEFT[name]))

    assert "training_batches" not in result
    assert "accelerator.backward(loss)" in result


def test_accelerate_knows_no_such_passes(convert_text):
    _, result = convert_text(program(), target=Target.ACCELERATE)

    assert "training_batches" not in result
    assert "accelerator.backward(loss)" in result


@STEPPING
def test_processes_train_as_one_with_batches_of_the_world_size(convert_text, numbers_printed, monkeypatch, holes):
    source = program(**holes).replace("scheduler.step()", "pass")
    _, result = convert_text(source)
    expected = numbers_printed(source, 1)
    monkeypatch.setenv("BATCH", "4")

    assert numbers_printed(result, 2) == pytest.approx(expected)


@STEPPING
def test_the_schedule_runs_in_samples_in_every_epoch(convert_text, numbers_printed, holes):
    source = program(**holes)
    _, result = convert_text(source)

    assert numbers_printed(result, 2)[::2] == pytest.approx(numbers_printed(source, 1)[::2])


def test_a_length_in_its_header_is_that_of_a_training(convert_text):
    counted = "for i, (a, b) in enumerate(loader, start=epoch * len(loader)):"
    _, result = convert_text(PROGRAM.format(**FILLINGS).replace("for a, b in loader:", counted))

    over = "enumerate(accelerator.training_batches(loader), start=epoch * accelerator.steps_per_epoch(loader))"
    assert f"for i, (a, b) in {over}:" in result


BEGUN = "    for a, b in loader:\n        step(a, b)\n"
BY_HAND = {
    "for each of them": "    batches = iter(loader)\n    for a, b in batches:\n        step(a, b)\n",
    "as often as there are batches": """    batches = iter(loader)
    for _ in range(len(loader)):
        step(*next(batches))
""",
    "while there are batches": """    batches, i = iter(loader), 0
    while i < len(loader):
        step(*next(batches))
        i += 1
        if i == 3:
            validate()
""",
    "by a function that reads the variable": """    batches, i = iter(loader), 0
    while i < len(loader):
        take()
        i += 1
""",
}
TAKES = "def take():\n    step(*next(batches))\n\n\nfor epoch in range(3):"


def begun(name, **holes):
    assert BEGUN in program(**holes, over="loader")
    source = program(**holes, over="loader").replace(BEGUN, BY_HAND[name])
    return source.replace("for epoch in range(3):", TAKES) if "take()" in BY_HAND[name] else source


@STEPPING
@pytest.mark.parametrize("name", BY_HAND)
def test_an_iterator_that_is_made_in_eval_mode_is_one_of_a_training(
    convert_text, numbers_printed, monkeypatch, name, holes
):
    source = begun(name, **holes).replace("scheduler.step()", "pass")
    _, result = convert_text(source)
    assert f"iter({SAYING})" in result
    expected = numbers_printed(source, 1)
    assert numbers_printed(result, 1) == expected
    monkeypatch.setenv("BATCH", "4")

    assert numbers_printed(result, 2) == pytest.approx(expected)


@pytest.mark.parametrize("name", BY_HAND)
def test_one_that_is_made_in_training_mode_stays(convert_text, name):
    _, result = convert_text(begun(name, epoch="model.train()"))

    assert "training_batches" not in result
    assert "iter(loader)" in result


def test_where_a_loop_evaluates_on_the_same_iterator_it_is_refused(convert_text):
    both = """    batches = iter(loader)
    for a, b in batches:
        step(a, b)
        break
    with torch.no_grad():
        for a, b in batches:
            print(model(a.to(device)).sum().item())
"""
    report, result = convert_text(program(over="loader").replace(BEGUN, both))

    assert "accelerator" not in result
    assert any("may still be in eval mode" in finding.message for finding in report.findings)


@pytest.mark.parametrize("name", BY_HAND)
def test_accelerate_cannot_be_told_of_an_iterator(convert_text, name):
    report, result = convert_text(begun(name), target=Target.ACCELERATE)

    assert "accelerator" not in result
    assert any("may still be in eval mode" in finding.message for finding in report.findings)


TWO = PROGRAM.format(**FILLINGS).replace(
    "held =", "other = DataLoader(TensorDataset(x[:48] + 1, y[:48]), batch_size=size, shuffle=True)\nheld ="
)
SAYING_TWO = "accelerator.training_batches(loader), accelerator.training_batches(other)"
PAIRS = {
    "with a name": "    both = zip(loader, other)\n    {}\n    for (a, b), (c, d) in both:\n",
    "counted below": "    both = zip(loader, other)\n    {}\n    for i, ((a, b), (c, d)) in enumerate(both):\n",
    "counted above": "    both = enumerate(zip(loader, other))\n    {}\n    for i, ((a, b), (c, d)) in both:\n",
    "by next": """    both = iter(zip(loader, other))
    {}
    for _ in range(len(loader)):
        (a, b), (c, d) = next(both)
""",
}


def pairs(name, mode="model.train()"):
    loop = PAIRS[name].format(mode) + "        step(a, b)\n        step(c, d)\n"
    assert BEGUN in TWO
    return TWO.replace(BEGUN, loop).replace("scheduler.step()", "pass")


@pytest.mark.parametrize("mode", ["model.train()", "pass"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_of_loaders_that_is_made_in_eval_mode_is_for_a_training(
    convert_text, numbers_printed, monkeypatch, name, mode
):
    source = pairs(name, mode)
    _, result = convert_text(source)
    assert f"zip({SAYING_TWO})" in result
    expected = numbers_printed(source, 1)
    assert numbers_printed(result, 1) == expected
    monkeypatch.setenv("BATCH", "4")

    assert numbers_printed(result, 2) == pytest.approx(expected)


NOT_OF_LOADERS_ALONE = {
    "chained": "itertools.chain(loader, other)",
    "cut": "zip(itertools.islice(loader, 4), other)",
    "chosen": "zip(*[loader, other])",
}


@pytest.mark.parametrize("name", NOT_OF_LOADERS_ALONE)
def test_what_is_not_made_of_loaders_alone_is_not_said_to_train(convert_text, name):
    source = pairs("with a name").replace("zip(loader, other)", NOT_OF_LOADERS_ALONE[name])
    _, result = convert_text("import itertools\n" + source)

    assert "training_batches" not in result


def test_a_pair_that_is_made_in_training_mode_stays(convert_text):
    _, result = convert_text(pairs("with a name").replace("    both =", "    model.train()\n    both ="))

    assert "training_batches" not in result
    assert "both = zip(loader, other)" in result
