"""A model that one function makes, another trains and gives back, and a third goes on with."""

import textwrap

import pytest

from migrate.report.model import Kind

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def make():
    net = nn.Sequential()
    net.add_module("one", nn.Linear(4, 1))
    return net


def fit(net, data):
    optimizer = optim.Adam(net.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=8, shuffle=True)
    for epoch in range(3):
        for x, y in loader:
            loss = ((net(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    {returns}


data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
"""
KEPT = {
    "at module level": "net = make()\nnet = fit(net, data)\ntorch.save(net.state_dict(), 'n.pt')\n",
    "in a function": "def main():\n    net = make()\n    net = fit(net, data)\n"
    "    torch.save(net.state_dict(), 'n.pt')\n"
    "    print(net[0])\n\n\nmain()\n",
    "by another name": "net = make()\ntrained = fit(net, data)\ntorch.save(trained.state_dict(), 'n.pt')\n",
}


def program(body, returns="return net"):
    return HEAD.format(returns=returns).lstrip("\n") + body


@pytest.mark.parametrize("name", KEPT)
def test_given_back_to_what_has_it_as_it_was(convert_text, name):
    report, result = convert_text(program(KEPT[name]))

    assert not report.of(Kind.LEFT)
    assert "    return accelerator.unwrap_model(net)\n" in result
    assert result.count("unwrap_model") == 1


def test_given_back_to_nobody(convert_text):
    _, result = convert_text(program("fit(make(), data)\n"))

    assert "unwrap_model" not in result


def test_given_back_among_others(convert_text):
    _, result = convert_text(program("net, last = fit(make(), data)\nprint(net[0])\n", "return net, loss.item()"))

    assert "    return accelerator.unwrap_model(net), loss.item()\n" in result


def test_where_it_is_made_it_is_not_prepared(convert_text):
    _, result = convert_text(program("fit(make(), data)\n"))

    assert '    net.add_module("one", nn.Linear(4, 1))\n' in result


LATE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64, 1)), batch_size=8)
model = nn.Linear(4, 1)
optimizer = optim.Adam(model.parameters(), lr=0.1)
flag = {flag}
if flag:
    model.cuda()
for x, y in loader:
    if flag:
        x, y = x.cuda(), y.cuda()
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{after}
"""


def late(flag, after=""):
    return textwrap.dedent(LATE).lstrip("\n").format(flag=flag, after=after)


def test_a_flag_that_comes_after_the_models(convert_text):
    source = late("torch.cuda.is_available() and len(loader) > 3")
    report, result = convert_text(source)

    assert result == source
    (left,) = report.of(Kind.LEFT)
    assert left.message == "the accelerator needs flag, which gets its value after the models are made"


def test_what_is_asked_of_a_name_is_not_told_beside_it(convert_text):
    source = late("types.SimpleNamespace(gpu=len(loader) > 3)").replace("if flag:", "if flag.gpu:")
    report, _ = convert_text(f"import types\n{source}")

    (left,) = report.of(Kind.LEFT)
    assert left.message == "the accelerator needs flag, which gets its value after the models are made"
    assert left.hint == "set flag before"


@pytest.mark.parametrize("values", ["True if {} else False", "1 if {} else None", "'cuda' if {} else ''"])
def test_a_flag_that_only_asks_for_a_gpu(convert_text, values):
    report, result = convert_text(late(values.format("torch.cuda.is_available()")))

    assert not report.of(Kind.LEFT)
    assert "accelerator = Accelerator()\n" in result
    assert "flag" not in result


def test_moved_once_more_after_the_training(convert_text):
    device = "torch.device('cuda' if torch.cuda.is_available() else 'cpu')"
    source = late("True", f"device = {device}\nmodel = model.eval().to(device)")
    _, result = convert_text(
        source.replace("flag = True\nif flag:\n    model.cuda()\n", "").replace("    if flag:\n    ", "")
    )

    assert "\nmodel = model.eval()\n" in result


def test_a_question_that_is_not_asked(convert_text):
    device = "torch.device('cuda' if torch.cuda.is_available else 'cpu')"
    source = late(device).replace("if flag:\n    model.cuda()", "model = model.to(flag)")
    report, result = convert_text(source.replace("    if flag:\n        x, y = x.cuda(), y.cuda()\n", ""))

    assert not report.of(Kind.LEFT)
    assert "accelerator = Accelerator()\n" in result
