"""Models that are lent to code that stays as it is: what it asks, saves or copies is the model itself."""

import ast
import textwrap

import pytest
from typer.testing import CliRunner

from migrate.cli import app

HELPER = """
    import copy
    import pickle

    import torch


    def whole(model, path):
        torch.save(model, path)


    def in_a_dictionary(model, path):
        torch.save({"net": model, "epoch": 1}, path)


    def pickled(model, path):
        with open(path, "wb") as file:
            pickle.dump(model, file)


    def copied(model):
        return copy.deepcopy(model)


    def handed_on(model, path):
        whole(model, path)


    def each(models, path):
        for model in models:
            torch.save(model.state_dict(), path)


    def state(held, path):
        torch.save(held, path)


    def ready_for_both(model):
        return model.module if hasattr(model, "module") else model


    def count(model):
        return sum(p.numel() for p in model.parameters())


    def loss_of(model, x, y):
        return ((model(x) - y) ** 2).mean() * model.scale


    @torch.no_grad()
    def scaled(model, x):
        return model(x) * model.scale


    class Scaled(torch.nn.Module):
        def forward(self, model, x, y):
            return ((model(x) - y) ** 2).mean() * model.scale


    class Size(torch.nn.Module):
        def forward(self, model):
            return model.layer.weight.abs().sum() * model.scale


    class Saver:
        def __init__(self, path):
            self.path = path
            self.what = None

        def keep(self, what):
            self.what = what

        def save(self):
            torch.save(self.what, self.path)
"""
TRAIN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    import helper


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)
            self.scale = 2

        def forward(self, x):
            return self.layer(x)


    def main():
        data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
        loader = DataLoader(data, batch_size=8, shuffle=True)
        saver = helper.Saver("net.pt")
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            {step}
        {end}


    main()
"""
OTHER = """
    import torch

    import helper

    net = torch.nn.Linear(2, 2)
    net.scale = 3
    for call in (helper.loss_of, helper.scaled):
        print(call(net, torch.ones(2), torch.ones(2)))
    helper.whole(net, "other.pt")
    saver = helper.Saver("other.pt")
    saver.keep(net)
    saver.save()
"""


@pytest.fixture
def convert(tmp_path, monkeypatch):
    """Convert the training script, given what it does in each step and at its end; the output, and what it is then."""

    def run(end="pass", *, step="pass", named=("train.py",), **others):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "pyproject.toml").touch()
        files = {"helper": HELPER, "train": TRAIN.format(step=step, end=end), **others}
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text).lstrip())
        result = CliRunner().invoke(app, ["--write", *named])
        assert (tmp_path / "helper.py").read_text() == textwrap.dedent(HELPER).lstrip()
        return " ".join(result.output.split()), (tmp_path / "train.py").read_text()

    return run


ITSELF = (
    'helper.whole({}, "net.pt")',
    'helper.in_a_dictionary({}, "net.pt")',
    'helper.pickled(path="net.pt", model={})',
    "best = helper.copied({})",
    'helper.handed_on({}, "net.pt")',
    'helper.each([{}], "net.pt")',
    'helper.state(dict(net={}), "net.pt")',
    "saver.keep({}); saver.save()",
    "y = helper.scaled({}, x)",
    "penalty = helper.Size()({})",
)


@pytest.mark.parametrize("call", ITSELF)
def test_what_is_asked_saved_or_copied_in_a_file_that_was_not_named_is_the_model_itself(convert, call):
    _, after = convert(call.format("model"))
    expected = ast.parse(call.format("accelerator.unwrap_model(model)")).body[0]
    assert ast.unparse(expected) in ast.unparse(ast.parse(after))


@pytest.mark.parametrize("call", ['helper.whole({}, "net.pt")', "saver.keep({})"])
def test_the_same_in_functions_that_another_program_uses(convert, call):
    _, after = convert(f"{call.format('model')}\n        saver.save()", named=["."], other=OTHER)
    assert call.format("accelerator.unwrap_model(model)") in after


@pytest.mark.parametrize("call", ["inner = helper.ready_for_both(model)", "size = helper.count(model)"])
def test_what_a_wrapper_has_as_well_is_asked_of_the_wrapper(convert, call):
    _, after = convert(call)
    assert f"    {call}\n" in after


def test_a_model_that_is_run_for_a_loss_and_asked_refuses_the_program_with_the_file_to_name(convert):
    output, after = convert(step="more = helper.loss_of(model, x, y)")
    assert "accelerator" not in after
    assert (
        "helper.py, which was not named, runs the model and needs the one inside its wrapper for model.scale" in output
    )
    assert "name it too: migrate train.py helper.py" in output


def test_the_same_in_a_function_that_another_program_uses(convert):
    output, after = convert(step="more = helper.loss_of(model, x, y)", named=["."], other=OTHER)
    assert "accelerator" not in after
    assert "code of helper.py that is also used by another program runs the model" in output


def test_what_is_run_to_be_shown_is_the_model_itself(convert):
    _, after = convert(step="print(helper.loss_of(model, x, y))")
    assert "print(helper.loss_of(accelerator.unwrap_model(model), x, y))" in after


def test_a_loss_that_runs_the_model_and_asks_it_refuses_the_program(convert):
    output, after = convert(step="more = helper.Scaled()(model, x, y)", named=["."])
    assert "accelerator" not in after
    assert "the call of helper.Scaled(), which has no accelerator, runs the model and needs" in output


def test_such_a_loss_of_a_file_that_was_not_named(convert):
    output, after = convert(step="more = helper.Scaled()(model, x, y)")
    assert "accelerator" not in after
    assert "helper.py, which was not named, runs the model and needs the one inside its wrapper" in output
