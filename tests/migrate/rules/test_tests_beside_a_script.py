"""What a test hands to a function of the script is not what the script hands to it: they never run together."""

import pytest

from migrate.options import Options
from migrate.pipeline import run

TRAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def restore(path, model):
    model.load_state_dict(torch.load(path)["model"])
    return int(path.split("_")[1])


def main():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
    for epoch in range(restore("last_0", model), 6):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


{end}
"""
TEST = """\
import os
import tempfile

import torch
from torch import nn

from train import restore


def test_restore():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last_1")
        torch.save({"model": nn.Linear(4, 1).state_dict()}, path)
        assert restore(path, nn.Linear(4, 1)) == 1
"""
UNDER_GUARD = 'if __name__ == "__main__":\n    main()'
ENTERED = {
    "by its own guard": UNDER_GUARD,
    "by a command": "",
}
TOGETHER = {
    "the script runs when it is imported": "main()",
    "the script imports the test": f"import test_train\n\n\n{UNDER_GUARD}",
    "the script does so itself": f"import tempfile\n\nrestore(tempfile.mkdtemp(), None)\n{UNDER_GUARD}",
}


def codes(tmp_path, monkeypatch, end):
    (tmp_path / "train.py").write_text(TRAIN.format(end=end))
    (tmp_path / "test_train.py").write_text(TEST)
    monkeypatch.chdir(tmp_path)
    report = run(["train.py", "test_train.py"], Options())
    return {finding.code for finding in report.findings}


@pytest.mark.parametrize("name", ENTERED)
def test_what_a_test_makes_up_decides_nothing_in_the_script(tmp_path, monkeypatch, name):
    assert "MIG122" not in codes(tmp_path, monkeypatch, ENTERED[name])


@pytest.mark.parametrize("name", TOGETHER)
def test_it_does_where_both_run_in_one_process(tmp_path, monkeypatch, name):
    assert "MIG122" in codes(tmp_path, monkeypatch, TOGETHER[name])
