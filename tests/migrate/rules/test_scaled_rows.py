"""Embeddings with max_norm, which scale the rows of each process's own share."""

import pytest

from migrate.report.model import Kind

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


{kinds}class Words(nn.Module):
    def __init__(self, limit=None):
        super().__init__()
        self.table = {table}
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head({found})


torch.manual_seed(0)
data = TensorDataset(torch.arange(32) % 16, torch.ones(32, 1))
model = Words({limit})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{loader}
for x, y in {batches}:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FILLINGS = {
    "kinds": "",
    "table": "nn.Embedding(16, 4, max_norm=limit)",
    "found": "self.table(x)",
    "limit": "",
    "loader": "loader = DataLoader(data, batch_size=4, shuffle=True)",
    "batches": "loader",
}


@pytest.fixture
def convert(convert_text):
    def run(**holes):
        text = PROGRAM
        for name, filling in {**FILLINGS, **holes}.items():
            text = text.replace("{" + name + "}", filling)
        report, result = convert_text(text)
        return [(finding.code, finding.message) for finding in report.of(Kind.LEFT)], result != text

    return run


@pytest.mark.parametrize(
    "holes",
    [
        {"limit": "1.0"},
        {"limit": "float(input())"},
        {"table": "nn.Embedding(16, 4, None, 1.0)"},
        {"table": "nn.EmbeddingBag(16, 4, 1.0)", "found": "self.table(x[:, None])"},
        {"table": "nn.Embedding(16, 4)", "found": "nn.functional.embedding(x, self.table.weight, max_norm=1.0)"},
    ],
)
def test_rows_that_each_process_would_scale_by_its_own_share_are_refused(convert, holes):
    left, is_changed = convert(**holes)

    assert not is_changed
    assert [code for code, _ in left] == ["MIG122"]
    assert "max_norm scales the rows that the model looks up" in left[0][1]


@pytest.mark.parametrize(
    "holes",
    [{}, {"table": "nn.Embedding(16, 4)"}, {"table": "nn.Embedding(16, 4, max_norm=None)"}],
    ids=["handed None by all", "not asked for", "None"],
)
def test_rows_that_nobody_scales_are_not(convert, holes):
    assert convert(**holes) == ([], True)


def test_processes_that_look_up_the_same_rows_scale_the_same(convert):
    left, is_changed = convert(limit="1.0", loader="x, y = data.tensors", batches="[(x[:4], y[:4]), (x[4:], y[4:])]")

    assert left == []
    assert is_changed


OWN = """\
class Table(nn.Embedding):
    def __init__({parameters}):
        {made}

    def forward(self, x):
        return nn.functional.embedding(x, self.weight, self.padding_idx, self.max_norm)


class Words("""


@pytest.mark.parametrize(
    ("parameters", "made"),
    [
        ("self, rows, width", "super().__init__(rows, width)"),
        ("self, rows, width", "super().__init__(rows, width, None, None)"),
        ("self, rows, width, **kwargs", "super().__init__(rows, width, **kwargs)"),
        ("self, rows, width", "nn.Embedding.__init__(self, rows, width, 0)"),
        ("self, rows, width, limit=None", "super(Table, self).__init__(rows, width, max_norm=limit)"),
    ],
)
def test_a_table_of_ones_own_scales_no_rows_where_its_base_is_told_nothing(convert_own, parameters, made):
    assert convert_own(parameters, made) == ([], True)


@pytest.mark.parametrize(
    ("parameters", "made", "table"),
    [
        ("self, rows, width", "super().__init__(rows, width, 0, 1.0)", "Table(16, 4)"),
        ("self, rows, width", "super().__init__(rows, width, max_norm=1.0)", "Table(16, 4)"),
        ("self, rows, width", "nn.Embedding.__init__(self, rows, width, 0, 1.0)", "Table(16, 4)"),
        ("self, rows, width, **kwargs", "super().__init__(rows, width, **kwargs)", "Table(16, 4, max_norm=1.0)"),
        ("self, rows, width, **kwargs", "super().__init__(rows, width, **kwargs)", "Table(16, 4, **given)"),
        ("self, *args", "super().__init__(*args)", "Table(16, 4, 0, 1.0)"),
        ("self, rows, limit=None", "super().__init__(rows, 4, max_norm=limit)", "Table(16, 1.0)"),
        ("self, rows, width", "super().__init__(rows, width)\n        self.max_norm = 1.0", "Table(16, 4)"),
    ],
)
def test_a_table_of_ones_own_scales_rows_where_it_may_be_told_to(convert_own, parameters, made, table):
    left, is_changed = convert_own(parameters, made, table)

    assert not is_changed
    assert [code for code, _ in left] == ["MIG122"]


def test_a_table_that_looks_up_as_its_base_does_scales_rows_where_that_is_told_to(convert):
    text = "class Table(nn.Embedding):\n    def __init__(self):\n        super().__init__(16, 4, max_norm=1.0)\n\n\n"
    left, is_changed = convert(table="Table()", kinds=text)
    assert not is_changed
    assert [code for code, _ in left] == ["MIG122"]
    assert convert(table="Table()", kinds=text.replace(", max_norm=1.0", "")) == ([], True)


@pytest.fixture
def convert_own(convert_text):
    def run(parameters, made, table="Table(16, 4)"):
        text = PROGRAM.replace("class Words(", OWN.replace("{parameters}", parameters).replace("{made}", made))
        for name, filling in {**FILLINGS, "table": table}.items():
            text = text.replace("{" + name + "}", filling)
        text = text.replace("torch.manual_seed", "given = {}\ntorch.manual_seed")
        report, result = convert_text(text)
        return [(finding.code, finding.message) for finding in report.of(Kind.LEFT)], result != text

    return run
