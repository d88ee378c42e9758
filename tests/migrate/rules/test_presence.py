"""Whether something is None on all processes, where the question leads back to itself: a function that calls itself."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def fit(model, loader, optimizer, again, limit=None):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        if limit is not None:
            loss = loss.clamp(max=1.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if limit is not None:
            break
    print(model.weight.sum().item())
    if again:
        fit(model, loader, optimizer, again - 1, {passed})


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4)
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    fit(model, loader, optimizer, 2, {given})


main()
"""


@pytest.mark.parametrize("passed", ["limit", "limit if again else None", "None"])
def test_a_function_that_hands_on_what_it_was_handed(convert_text, passed):
    report, result = convert_text(PROGRAM.format(given="3.0", passed=passed))

    assert not [finding for finding in report.findings if finding.code == "MIG999"]
    assert "accelerator.backward(loss)" in result


def test_it_trains_as_before(convert_text, numbers_printed):
    source = PROGRAM.format(given="3.0", passed="limit")
    _, result = convert_text(source)

    assert numbers_printed(result, 1) == numbers_printed(source, 1)


ASKED = "if any(accelerator.gather_for_metrics([limit is not None])):"
GIVEN = {"3.0": False, "None": False, "time.time() if time.time() % 2 > 1 else None": True}


@pytest.mark.parametrize("given", GIVEN)
def test_all_are_asked_only_where_one_process_may_have_what_others_have_not(convert_text, given):
    source = PROGRAM.format(given=given, passed="limit").replace("import torch\n", "import time\n\nimport torch\n", 1)
    _, result = convert_text(source)

    assert (ASKED in result) == GIVEN[given]
