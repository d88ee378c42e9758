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
