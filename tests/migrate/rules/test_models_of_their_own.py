"""A function that makes a model for each of its calls, over loaders that were made above; and what keeps the models."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))


def fit(rate{parameter}):
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


loader = DataLoader(rows, batch_size=4)
{look}
{calls}
"""
RATES = "models = [fit(rate) for rate in (0.1, 0.01)]"
TWICE = "first = fit(0.1)\nsecond = fit(0.01)\nprint(first(torch.ones(1, 2).to(device)))"


def program(parameter="", look="", calls=RATES):
    return PROGRAM.format(parameter=parameter, look=look, calls=calls)


@pytest.mark.parametrize(
    "source",
    [program(), program(calls=TWICE), program(", loader", calls="for rate in (0.1, 0.01):\n    fit(rate, loader)")],
)
def test_the_loader_is_prepared_once_and_each_model_where_it_is_made(convert_text, source):
    _, after = convert_text(source)

    assert "\nloader = accelerator.prepare(loader)\n" in after
    assert "\n    model, optimizer = accelerator.prepare(model, optimizer)\n" in after
    assert after.count("Accelerator()") == 1


@pytest.mark.parametrize(
    "look",
    ["print(next(iter(loader))[0].shape)", "steps = 2 * len(loader)", "for x, _ in loader:\n    print(x.mean())"],
)
def test_what_looks_at_the_loader_by_then_meets_it_as_it_was(convert_text, look):
    _, after = convert_text(program(look=look))

    last = look.splitlines()[-1].replace("print(", "accelerator.print(")
    assert f"{last}\n\nloader = accelerator.prepare(loader)\n" in after


@pytest.mark.parametrize(
    "look", ["batches = iter(loader)\nprint(next(batches))", "def show(): print(next(iter(loader)))\nshow()"]
)
def test_not_where_something_may_go_on_with_it_as_it_was(convert_text, look):
    report, _ = convert_text(program(look=look))

    assert not report.changes
    assert any(each.code == "MIG114" for each in report.findings)


ENSEMBLE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
loader = DataLoader(rows, batch_size=4)
models = {empty}
for fold in range(3):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {above}
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {below}
with torch.no_grad():
    for x, y in loader:
        print(sum(each(x) for each in {models}))
"""


@pytest.mark.parametrize(
    ("empty", "below", "models"),
    [
        ("[]", "models.append(model)", "models"),
        ("list()", "models += [model]", "models"),
        ("{}", "models[fold] = model", "models.values()"),
    ],
)
def test_models_that_are_collected_once_they_are_trained_are_the_prepared_ones(convert_text, empty, below, models):
    _, after = convert_text(ENSEMBLE.format(empty=empty, above="print(fold)", below=below, models=models))

    assert "model, optimizer = accelerator.prepare(model, optimizer)" in after
    assert "free_memory" not in after


def test_models_that_are_collected_before_they_are_prepared_are_not(convert_text):
    filled = "model = nn.Linear(2, 1)\n    models.append(model)"
    source = ENSEMBLE.format(empty="[]", above="", below="print(fold)", models="models")
    report, _ = convert_text(source.replace("model = nn.Linear(2, 1)", filled))

    assert not report.changes
    assert any("kept here before it is prepared" in each.message for each in report.findings)
