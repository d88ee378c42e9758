"""Names that scripts make up by the clock, and hand to one function that reads what they have written."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

READS = """\
import torch


def evaluate(path, model):
    model.load_state_dict(torch.load(path, map_location="cpu"))
    return model
"""
TRAINS = """\
import time

import torch
from evaluate import evaluate
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{top}
if __name__ == "__main__":
    name = {name}
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), name)
    evaluate(name, nn.Linear(2, 1))
"""
STAMP = 'f"out-{time.time()}.pt"'
TOLD = f"name = broadcast_object_list([{STAMP}])[0]\n"


@pytest.fixture
def converted(tmp_path, monkeypatch):
    def convert(**scripts):
        (tmp_path / "evaluate.py").write_text(READS)
        for name, text in scripts.items():
            (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        report = run(["."], Options())
        return report, {change.path: change.new.decode() for change in report.changes}

    return convert


def test_each_script_tells_its_own(converted):
    report, texts = converted(**{name: TRAINS.format(name=STAMP, top="") for name in ("large", "small")})

    assert TOLD in texts["large.py"]
    assert TOLD in texts["small.py"]
    assert not report.of(Kind.LEFT)


def test_a_script_whose_name_is_fixed_is_not_told_that_of_another(converted):
    fixed = TRAINS.format(name='"out.pt"', top="")
    report, texts = converted(large=TRAINS.format(name=STAMP, top=""), small=fixed)

    assert TOLD in texts["large.py"]
    assert "broadcast_object_list" not in texts["small.py"]
    assert not report.of(Kind.LEFT)


def test_a_name_that_another_file_makes_up_is_left(converted):
    top = "from settings import NAME\n"
    settings = f"import time\n\nNAME = {STAMP}\n"
    report, _ = converted(small=TRAINS.format(name="NAME", top=top), settings=settings)

    assert {f.code for f in report.of(Kind.LEFT)} == {"MIG117"}
