"""No edit rests on what is only likely: such a program is found, told what it lacks, and left as it is."""

import textwrap

import pytest
from typer.testing import CliRunner

from migrate.cli import app

HEAD = """
    import torch
    from torch import nn, optim
    from torch.utils.data import DataLoader, Dataset, TensorDataset


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 1)

        def forward(self, x):
            return self.layer(x)

"""
BODY = """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model.to(device)
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
        torch.save(model.state_dict(), "net.pt")
"""
DATA = "TensorDataset(torch.ones(8, 2), torch.ones(8, 1))"
LIKELY = {
    "everything": (
        "model: nn.Module, loader: DataLoader, optimizer: optim.Optimizer",
        "",
        "parameters `loader` and `optimizer`",
    ),
    "the model": (
        "model: Net",
        f"""
        loader = DataLoader({DATA}, batch_size=4)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        """,
        "parameter `model`",
    ),
    "the loader": (
        'loader: "DataLoader | None" = None',
        """
        model = Net()
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        """,
        "parameter `loader`",
    ),
    "the optimizer": (
        "optimizer: optim.Adam",
        f"""
        loader = DataLoader({DATA}, batch_size=4)
        model = Net()
        """,
        "parameter `optimizer`",
    ),
}


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()

    def write(text):
        (tmp_path / "train.py").write_text(text, encoding="utf-8")
        return tmp_path / "train.py"

    return write


def program(parameters, made):
    return f"{textwrap.dedent(HEAD).lstrip()}\ndef train({parameters}):\n{_indented(made)}{_indented(BODY)}"


def _indented(text):
    return textwrap.indent(textwrap.dedent(text).strip("\n") + "\n", "    ") if text else ""


def migrate(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("name", LIKELY)
def test_what_is_only_likely_is_found_and_not_converted(name, script):
    parameters, made, missing = LIKELY[name]
    path = script(program(parameters, made))
    before = path.read_bytes()
    done = migrate("train.py", "--write")
    told = " ".join(done.output.split())

    assert path.read_bytes() == before
    assert "MIG907" in told
    assert f"the {missing} of train() (train.py:15) " in told
    assert "filled by nothing that was read" in told
    assert "name the files that call train(), too" in told
    assert done.exit_code == 1


def test_the_same_program_with_its_callers_is_converted(script):
    parameters, made, _ = LIKELY["everything"]
    main = f"""
    def main():
        loader = DataLoader({DATA}, batch_size=4)
        model = Net()
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        train(model, loader, optimizer)


    main()
    """
    path = script(f"{program(parameters, made)}\n\n{textwrap.dedent(main).lstrip()}")
    done = migrate("train.py", "--write")

    assert "accelerator.backward(loss)" in path.read_text(), done.output


def test_likely_functions_do_not_keep_a_program_from_being_converted(script):
    likely = """
    def look(model: Net, loader: DataLoader):
        for x, _ in loader:
            print(model(x.cuda()))


    def freeze(model: "nn.Module") -> None:
        model.cuda()


    """
    _, made, _ = LIKELY["the model"]
    functions = textwrap.dedent(likely).lstrip()
    text = program("", f"\n        model = Net()\n{made}").replace("def train", f"{functions}def train")
    path = script(f"{text}\n\ntrain()\n")
    done = migrate("train.py", "--write")
    changed = path.read_text()

    assert "accelerator.backward(loss)" in changed, done.output
    assert "print(model(x.cuda()))" in changed
    assert "\n    model.cuda()\n" in changed


def test_a_class_of_which_nobody_makes_an_object(script):
    fit = textwrap.indent(
        textwrap.dedent("""
            def fit(self):
                loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)))
                optimizer = optim.SGD(self.parameters(), lr=0.1)
                for x, y in loader:
                    loss = ((self(x) - y) ** 2).mean()
                    loss.backward()
                    optimizer.step()
        """),
        "    ",
    )
    path = script(textwrap.dedent(HEAD).lstrip().rstrip() + fit)
    before = path.read_bytes()
    done = migrate("train.py", "--write")
    told = " ".join(done.output.split())

    assert path.read_bytes() == before
    assert "nothing that was read makes an object of the class Net (train.py:6)" in told


def test_with_review_it_is_converted_and_to_be_looked_at(script):
    parameters, made, missing = LIKELY["the model"]
    path = script(program(parameters, made).replace("    model.to(", "    model = model.to("))
    done = migrate("train.py", "--write", "--review")
    told = " ".join(done.output.split())

    assert "accelerator.backward(loss)" in path.read_text(), done.output
    assert "edited on what is likely" in told
    assert f"the {missing} of train() (train.py:15) " in told
    assert "1 place to review" in told
    assert "# review" not in path.read_text()
    assert done.exit_code == 1


def test_with_annotate_a_comment_says_so(script):
    parameters, made, missing = LIKELY["the model"]
    path = script(program(parameters, made).replace("    model.to(", "    model = model.to("))
    migrate("train.py", "--write", "--review", "--annotate")

    comments = [line.strip() for line in path.read_text().splitlines() if line.strip().startswith("#")]
    assert comments == [f"# review: the {missing} of train() is filled by nothing that was read"]

    again = path.read_bytes()
    assert migrate("train.py", "--write", "--review", "--annotate").exit_code == 0
    assert path.read_bytes() == again


TRAINER = """
class Trainer:
    def __init__(self, model: nn.Module, loader: DataLoader, optimizer: optim.Optimizer):
        self.model = model
        self.loader = loader
        self.optimizer = optimizer

    def fit(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            ((self.model(x) - y) ** 2).mean().backward()
            self.optimizer.step()
"""


def test_a_trainer_that_is_given_everything(script):
    path = script(textwrap.dedent(HEAD).lstrip() + TRAINER)
    before = path.read_bytes()

    assert "MIG907" in migrate("train.py", "--write").output
    assert path.read_bytes() == before

    migrate("train.py", "--write", "--review")
    assert "self.accelerator.backward(" in path.read_text()
    assert "self.loader, self.model, self.optimizer = self.accelerator.prepare(" in path.read_text()


def test_annotate_needs_review(script):
    script(TRAINER)
    done = migrate("train.py", "--annotate")

    assert done.exit_code == 2
    assert "--review" in done.output
