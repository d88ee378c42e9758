"""A program that imports a file which does not parse: what that gives it is not known."""

import textwrap

import pytest
from typer.testing import CliRunner

from migrate.cli import app

TRAIN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    {top}


    def main():
        {inside}
        loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()


    main()
"""
IMPORTS = ["from lib.data import *", "from lib.data import get_loader", "import lib.data", "from lib import data"]


def told(tmp_path, monkeypatch, *, top="import os", inside="pass", named=(".",)):
    """What is said of the training loop, and which programs are left for the file."""
    monkeypatch.chdir(tmp_path)
    files = {
        "pyproject.toml": "",
        "lib/__init__.py": "",
        "lib/data.py": "def get_loader(:\n    pass\n",
        "train.py": textwrap.dedent(TRAIN.format(top=top, inside=inside)).lstrip(),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return " ".join(CliRunner().invoke(app, ["--check", *named]).output.split())


@pytest.mark.parametrize("named", [["."], ["train.py"]])
@pytest.mark.parametrize("statement", IMPORTS)
def test_a_file_that_is_imported_at_the_top_refuses_the_program(tmp_path, monkeypatch, statement, named):
    output = told(tmp_path, monkeypatch, top=statement, named=named)

    assert "MIG905 lib/data.py does not parse here" in output
    assert "not converted (MIG905)" in output


@pytest.mark.parametrize("statement", IMPORTS[1:])
def test_one_that_a_function_imports_does_not(tmp_path, monkeypatch, statement):
    output = told(tmp_path, monkeypatch, inside=statement)

    assert "MIG905" not in output
    assert "migrate --write converts it" in output
