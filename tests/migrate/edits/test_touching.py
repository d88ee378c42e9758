"""A keyword may touch the parenthesis of a conditional expression or a lambda."""

import libcst as cst
import pytest

from migrate import pipeline
from migrate.edits.touching import see_parentheses
from migrate.options import Options

TRAINING = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pick(a, b):
    {line}
    return a


model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=8):
    loss = pick(nn.functional.mse_loss(model(x.cuda()), y.cuda()), True)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "line",
    [
        "return(a if b else -a)",
        "assert(a if b else -a)",
        "if(lambda: b): a = -a",
        "a = a if b else(a if a else b)",
        "b = not(lambda: b)and(b if a else a)or b",
    ],
)
def test_a_file_with_such_a_line_converts(line):
    report = pipeline.run_text(TRAINING.format(line=line).encode(), "train.py", Options())
    assert not report.problems
    assert line in report.changes[0].new.decode()
    assert "accelerator.backward(loss)" in report.changes[0].new.decode()


@pytest.mark.parametrize("text", ["a if b else c", "lambda: 0"])
def test_words_without_parentheses_must_not_touch(text):
    see_parentheses()
    with pytest.raises(cst.CSTValidationError, match="at least one space after 'return'"):
        cst.Return(value=cst.parse_expression(text), whitespace_after_return=cst.SimpleWhitespace(""))
