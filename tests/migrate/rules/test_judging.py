"""Loss functions of the project's own in an evaluation: `migrate/programs/evaluation/judging.py`."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Dice(nn.Module):
    def __init__(self, weight=1.0):
        super().__init__()
        self.weight = weight

    def forward(self, output, y):
        p = output.sigmoid()
        return 1 - 2 * self.weight * (p * y).sum() / (p.sum() + y.sum())

class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, output, y):
        return (self.scale * (output - y) ** 2).mean()

torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 2), torch.rand(32, 1).round())
loader = DataLoader(data, batch_size=BATCH)
test_loader = DataLoader(TensorDataset(torch.randn(22, 2), torch.rand(22, 1).round()), batch_size=8)
model = nn.Linear(2, 1)
criterion = Dice()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in test_loader:
            STEP
    print(total / len(test_loader))
"""
STEPS = {
    "of a result that has a name": "output = model(x)\n            loss = criterion(output, y)",
    "around the model's call": "loss = criterion(model(x), y)",
    "of what is made of the result": "output = model(x)\n            loss = criterion(output * 2, y)",
    "of two judges": "output = model(x)\n            loss = criterion(output, y) + Judge()(output, y)",
}


#: The number is taken at once.
AT_ONCE = {
    "beside rows": "output = model(x)\n            hits += (output > 0).sum().item()\n            "
    "total += criterion(output, y).item() * len(y)",
    "alone": "output = model(x)\n            total += criterion(output, y).item()",
    "around the model's call": "total += criterion(model(x), y).item() * y.size(0)",
    "as a tensor": "output = model(x)\n            total += criterion(output, y)",
    "by float": "output = model(x)\n            total += float(criterion(output, y)) * x.size(0)",
}


def _text(step, batch=4):
    return PROGRAM.replace("STEP", f"{step}\n            total += loss.item()").replace("BATCH", str(batch))


@pytest.mark.parametrize("name", STEPS)
def test_they_judge_the_whole_batch_below_the_gather(convert_text, name):
    report, result = convert_text(_text(STEPS[name]))

    assert result.count("accelerator.gather_for_metrics((output") == 1
    assert not [finding for finding in report.findings if "in full" in finding.message]


@pytest.mark.parametrize("name", ["of a result that has a name", "around the model's call"])
def test_two_processes_judge_as_one(convert_text, numbers_printed, name):
    _, result = convert_text(_text(STEPS[name], 2))

    one, two = numbers_printed(_text(STEPS[name]), 1), numbers_printed(result, 2)
    assert two == pytest.approx(one, rel=1e-5)


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_number_that_has_no_name_is_no_row(convert_text, numbers_printed, name):
    """Two processes' numbers were gathered: there is no `item()` of two, and the program ended with an error."""
    before, small = (
        PROGRAM.replace("STEP", AT_ONCE[name]).replace("BATCH", str(batch)).replace("total = 0.0", "total = hits = 0.0")
        for batch in (4, 2)
    )
    before, small = (text.replace("total / len(test_loader)", "float(total), hits") for text in (before, small))
    _, result = convert_text(small)

    assert "outputs = criterion(" not in result
    assert result.count("accelerator.gather_for_metrics((output") == 1
    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(before, 1), rel=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("criterion = Dice()\noptimizer = optim.SGD(model.parameters(), lr=0.1)",
         "criterion = Judge()\noptimizer = optim.SGD([*model.parameters(), *criterion.parameters()], lr=0.1)"),
        ("loss = criterion(output, y)", "loss = criterion(x[:, :1], y)"),
    ],
    ids=["one that is trained, too", "one that is given no result"],
)  # fmt: skip
def test_what_is_no_judge_is_run_in_full(convert_text, old, new):
    code = _text(STEPS["of a result that has a name"])
    assert old in code
    report, result = convert_text(
        code.replace(old, new).replace("nn.functional.mse_loss(model(x)", "criterion(model(x)")
    )

    assert "accelerator.prepare(" in result
    assert "gather_for_metrics" not in result
    assert [finding for finding in report.findings if "runs this evaluation in full" in finding.message]


EITHER = "criterion = nn.BCEWithLogitsLoss() if len(data) > 99 else Dice()"


@pytest.mark.parametrize("name", ["of a result that has a name", "around the model's call"])
def test_one_that_may_be_pytorch_s_gives_no_rows_either(convert_text, numbers_printed, name):
    """The number that it gives is not gathered: two of them are no number, and the program ended with an error."""
    before, small = (_text(STEPS[name], n).replace("criterion = Dice()", EITHER) for n in (4, 2))
    _, result = convert_text(small)

    assert result.count("accelerator.gather_for_metrics((output") == 1
    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(before, 1), rel=1e-5)


def test_a_model_that_may_be_another_one_gives_rows(convert_text):
    code = _text("output = model(x)\n            loss = ((output - y) ** 2).mean()")
    _, result = convert_text(
        code.replace("model = nn.Linear(2, 1)", "model = nn.Linear(2, 1) if len(data) else Dice()")
    )

    assert "accelerator.gather_for_metrics((output, y))" in result
