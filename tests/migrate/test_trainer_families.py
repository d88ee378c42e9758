"""Trainers that derive from each other, in files of their own: a base that trains what its subclasses make and do."""

import textwrap

import pytest
from typer.testing import CliRunner

from migrate.cli import app

TEMPLATE = {
    "core/__init__.py": "",
    "core/base.py": """
        import torch


        class Base:
            def __init__(self):
                self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                self.model = self.make_model().to(self.device)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                self.loader = self.make_loader()

            def make_model(self):
                raise NotImplementedError

            def make_loader(self):
                raise NotImplementedError

            def fit(self):
                for batch in self.loader:
                    loss = self.loss(batch)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()

            def loss(self, batch):
                raise NotImplementedError
    """,
    "main.py": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        from core.base import Base


        class Run(Base):
            def make_model(self):
                return nn.Linear(2, 1)

            def make_loader(self):
                return DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)

            def loss(self, batch):
                x, y = batch
                x, y = x.to(self.device), y.to(self.device)
                return ((self.model(x) - y) ** 2).mean()


        if __name__ == "__main__":
            Run().fit()
    """,
}
HANDED_OVER = {
    "core/__init__.py": "from .base import *\n",
    "core/base.py": """
        from abc import abstractmethod


        class Base:
            def __init__(self, model, optimizer):
                self.model = model
                self.optimizer = optimizer

            @abstractmethod
            def epoch(self, number):
                raise NotImplementedError

            def train(self):
                for number in range(2):
                    self.epoch(number)
    """,
    "main.py": """
        import torch
        from core import Base
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset


        class Run(Base):
            def __init__(self, model, optimizer, loader):
                super().__init__(model, optimizer)
                self.loader = loader

            def epoch(self, number):
                for x, y in self.loader:
                    loss = ((self.model(x) - y) ** 2).mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()


        def main():
            model = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
            Run(model, optimizer, loader).train()


        if __name__ == "__main__":
            main()
    """,
}


@pytest.fixture
def converted(tmp_path, monkeypatch):
    """Writes a project, converts it whole, and gives its files back."""

    def convert(files):
        (tmp_path / "pyproject.toml").touch()
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        result = CliRunner().invoke(app, [".", "--write"])
        assert result.exit_code == 0, result.output
        return {path: (tmp_path / path).read_text(encoding="utf-8") for path in files}

    return convert


def test_a_base_that_trains_what_its_subclass_makes(converted):
    after = converted(TEMPLATE)

    assert "self.model = self.make_model()\n" in after["core/base.py"]
    assert "self.accelerator.backward(loss)" in after["core/base.py"]
    assert ".to(self.device)" not in after["main.py"]


def test_an_override_gets_its_parameter_with_what_it_overrides(converted):
    after = converted(HANDED_OVER)

    assert "def epoch(self, number, accelerator):\n        raise NotImplementedError" in after["core/base.py"]
    assert "self.epoch(number, accelerator)" in after["core/base.py"]
    assert "def epoch(self, number, accelerator):\n        for x, y" in after["main.py"]
    assert "Run(model, optimizer, loader).train(accelerator)" in after["main.py"]


def test_all_overrides_get_it(converted):
    main = HANDED_OVER["main.py"]
    other = main[main.index("        class Run") : main.index("        def main")].replace("Run", "Other")
    main = main.replace("        def main", f"{other}        def main").replace(
        "Run(model, optimizer, loader).train()",
        "run = Run(model, optimizer, loader) if loader else Other(model, optimizer, loader)\n            run.train()",
    )
    after = converted({**HANDED_OVER, "main.py": main})

    assert after["main.py"].count("def epoch(self, number, accelerator):") == 2
    assert after["core/base.py"].count("self.epoch(number, accelerator)") == 1
