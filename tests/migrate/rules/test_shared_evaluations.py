"""A function of several programs stays without an accelerator: what DataParallel moved for it goes to its model."""

import textwrap

import pytest
from typer.testing import CliRunner

from migrate.cli import app

HELPER = """
    import torch


    def evaluate({parameters}):
        net.eval()
        right = 0
        with torch.no_grad():
            for x, y in loader:
                {step}
                right += (net({given}).argmax(1) == y).sum().item()
        return right
"""
TRAIN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from helper import evaluate


    def main():
        torch.manual_seed(0)
        data = TensorDataset(torch.randn(20, 4), torch.randint(0, 2, (20,)))
        loader, rest = DataLoader(data, batch_size=4, shuffle=True), DataLoader(data, batch_size=4)
        model = {model}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            for x, y in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y.cuda())
                loss.backward()
                optimizer.step()
        print(evaluate(model, rest))


    main()
"""
WRAPPED, PLAIN = "nn.DataParallel(nn.Linear(4, 2)).cuda()", "nn.Linear(4, 2).cuda()"


@pytest.fixture
def helper(tmp_path):
    """What becomes of the function where so many scripts, each with such a model, call it."""

    def run(*models, parameters="net, loader", step="pass", given="x"):
        (tmp_path / "pyproject.toml").touch()
        (tmp_path / "helper.py").write_text(
            textwrap.dedent(HELPER).lstrip().format(parameters=parameters, step=step, given=given)
        )
        for number, model in enumerate(models):
            (tmp_path / f"train{number}.py").write_text(textwrap.dedent(TRAIN).lstrip().format(model=model))
        result = CliRunner().invoke(app, ["--write", "."])
        assert result.exit_code == 0, result.output
        return (tmp_path / "helper.py").read_text()

    return run


GIVEN = {
    "what may be no tensor": ("pass", "x", "send_to_device(x, next(net.parameters()).device)"),
    "what is asked for its size": ("n = x.size(0)", "x", "x.to(next(net.parameters()).device)"),
    "computed from it": ("rows = x.view(-1, 4)", "rows", "rows.to(next(net.parameters()).device)"),
    "what was moved": ("x = x.cuda()", "x", "x"),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_data_parallel_moved_goes_to_where_the_model_is(helper, name):
    step, given, after = GIVEN[name]
    result = helper(WRAPPED, WRAPPED, step=step, given=given)

    assert "def evaluate(net, loader):" in result
    assert f"(net({after}).argmax(1) == y)" in result
    assert ("from runtime import send_to_device" in result) == ("send_to_device" in after)


def test_it_does_so_where_one_of_the_programs_moves_all_itself(helper):
    assert "x.to(next(net.parameters()).device)" in helper(WRAPPED, PLAIN, step="n = x.size(0)")


def test_it_stays_where_nobody_had_data_parallel(helper):
    assert "net(x)" in helper(PLAIN, PLAIN)


def test_a_function_of_one_program_has_the_accelerator(helper):
    result = helper(WRAPPED)

    assert "def evaluate(net, loader, accelerator):" in result
    assert "parameters()" not in result


def test_a_model_without_a_name_is_not_asked_twice(helper):
    result = helper(WRAPPED, WRAPPED, step="out = (lambda: net)()(x)")

    assert "(lambda: net)().parameters()" not in result
