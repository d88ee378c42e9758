"""What takes a model out of DataParallel, which goes away: a copy of it is taken out of nothing, either."""

import textwrap

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

TOOLS = """
    import copy

    import torch


    def sample(model, parallel):
        inner = copy.deepcopy(model)
        {taken}
        with torch.no_grad():
            return inner(torch.ones(2, 2)).mean()
"""
TRAIN = """
    import argparse
    import copy

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    {imported}
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallel", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    averaged = copy.deepcopy(model)
    if args.parallel:
        model = nn.DataParallel(model)
        averaged = nn.DataParallel(averaged)
    loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for (x,) in loader:
            optimizer.zero_grad()
            loss = model(x).mean()
            loss.backward()
            optimizer.step()
        print(sample(model, args.parallel), sample(averaged, args.parallel))
"""
OF_A_COPY = "if parallel:\n            inner = inner.module"
OF_THE_MODEL = "inner = model.module if parallel else model"
ASKING = 'if hasattr(model, "module"):\n            inner = model.module'


def together(taken):
    return TRAIN.format(imported=TOOLS.format(taken=taken).replace("    import copy\n\n    import torch\n", ""))


@pytest.mark.parametrize("taken", [OF_A_COPY, OF_THE_MODEL])
def test_nothing_is_taken_out_any_more(convert_text, taken):
    _, text = convert_text(together(taken))
    assert "accelerator.prepare(" in text
    assert "module" not in text


def converted(folder, taken):
    (folder / "tools.py").write_text(textwrap.dedent(TOOLS.format(taken=taken)))
    (folder / "train.py").write_text(textwrap.dedent(TRAIN.format(imported="\n    from tools import sample\n")))
    return run([folder / "train.py"], Options())


def test_a_file_that_would_go_on_taking_it_out_has_to_be_named(tmp_path):
    report = converted(tmp_path, OF_THE_MODEL)
    assert not report.changes
    (left,) = (finding for finding in report.findings if finding.code == "MIG904")
    assert "model.module in tools.py" in left.message
    assert left.hint == "name tools.py as well"


def test_a_file_that_asks_first_need_not_be_named(tmp_path):
    report = converted(tmp_path, ASKING)
    assert report.changes
    assert not report.of(Kind.LEFT)


def test_what_other_code_enters_too_cannot_be_taken_out_of_nothing(tmp_path):
    (tmp_path / "other.py").write_text("from tools import sample\nsample(None, False)\n")
    (tmp_path / "tools.py").write_text(textwrap.dedent(TOOLS.format(taken=OF_A_COPY)))
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAIN.format(imported="\n    from tools import sample\n")))
    report = run([tmp_path / "train.py", tmp_path / "tools.py"], Options())
    assert not report.changes
    (left,) = (finding for finding in report.findings if finding.code == "MIG110")
    assert "other code enters sample(), too" in left.message
    assert "inner.module if hasattr(inner, 'module') else inner" in left.hint
