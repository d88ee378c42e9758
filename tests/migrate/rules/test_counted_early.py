"""What an evaluation counts before it calls the model: `migrate/programs/evaluation/late.py`."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(64, 2), torch.ones(64, 1)), batch_size=8, shuffle=True)
held = DataLoader(TensorDataset(torch.ones(22, 2), torch.ones(22, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()


def evaluate(rows):
    model.eval()
    total = found = 0
    with torch.no_grad():
        for x, y in rows:
            {before}
            {call}
            {after}
    print(found / total)


for epoch in range(3):
    model.train()
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    evaluate(held)
"""


def source(before, call="output = model(x)", after="found += criterion(output, y).item()"):
    lines = ("\n" + 12 * " ").join
    return PROGRAM.format(before=lines(before), call=call, after=after)


LATE = {
    "rows of what the model is given": (source(["total += x.size(0)"]), "total += y.size(0)"),
    "rows of the labels": (source(["total += len(y)"]), "total += len(y)"),
    "computed with": (source(["total += 2 * y.shape[0]"]), "total += 2 * y.shape[0]"),
    "kept for what follows": (
        source(["size = x.size(0)"], after="total += size; found += criterion(output, y).item() * size"),
        "size = y.size(0)",
    ),
    "moved in between": (source(["total += y.size(0)", "x, y = x.float(), y.float()"]), "total += y.size(0)"),
    "above a call that is a part": (
        source(["size = len(x)"], "found += criterion(model(x), y).item() * size", "total += size"),
        "size = len(y)",
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_it_counts_when_the_batch_is_whole_again(convert_text, name):
    before, late = LATE[name]
    _, result = convert_text(before)

    assert result.index("gather_for_metrics(") < result.index(late) < result.index("found += criterion")
    assert result.count(late) == 1


STAYING = {
    "the model is told": source(["size = len(x)"], "output = model(x.view(size, 2))", "total += size"),
    "a test in between": source(["size = len(x)", "if size < 3: continue"], after="total += size"),
    "what is counted changes": source(["total += len(x)", "x = x[:2]"]),
    "more than a count": source(["total += x.sum().item()"]),
    "a function may read it": source(["total += len(x)", "note = lambda: total"]),
}


@pytest.mark.parametrize("name", STAYING)
def test_every_process_evaluates_in_full_where_it_cannot_wait(convert_text, name):
    report, result = convert_text(STAYING[name])

    assert "gather_for_metrics" not in result
    assert any("every process runs this evaluation in full" in finding.message for finding in report.findings)


def test_what_nobody_reads_below_stays(convert_text):
    _, result = convert_text(source(["rows = x.size(0)"], after="total += len(output); found += 1"))

    assert result.index("rows = x.size(0)") < result.index("output = model(x)") < result.index("gather_for_metrics(")
