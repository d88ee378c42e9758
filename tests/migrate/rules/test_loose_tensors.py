"""Tensors that are trained and belong to no model; models of libraries that no table names."""

import pytest

from migrate.report.model import Kind

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from mystery import build, draw

{seed}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.linspace(0, 1, 32, device=device).view(16, 2)
loader = DataLoader(TensorDataset(x, x), batch_size=4)
model = nn.Linear(2, 2).to(device)
"""
SEEDED = "torch.manual_seed(0)"
STEP = """
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
WEIGHTS = "w = torch.randn(2, 1, device=device, requires_grad=True)\n"
BY_ITSELF = WEIGHTS + "optimizer = optim.SGD([w], lr=0.1)\nfor _ in range(5):\n    loss = (x @ w).pow(2).mean()"
BESIDE = WEIGHTS + "optimizer = optim.SGD([*model.parameters(), w], lr=0.1)\n"


def program(body, seed=SEEDED):
    return HEAD.format(seed=seed).lstrip("\n") + body + STEP


CONVERTED = {
    "alone": BY_ITSELF,
    "a parameter": BY_ITSELF.replace(
        "torch.randn(2, 1, device=device, requires_grad=True)", "nn.Parameter(torch.zeros(2, 1))"
    ),
    "what a library gives": BY_ITSELF.replace(WEIGHTS, "w = draw(2, 1)\n"),
    "beside a model": BESIDE + "for _ in range(5):\n    loss = (model(x) @ w).pow(2).mean()",
    "with an optimizer of its own": (
        f"{WEIGHTS}optimizer = optim.Adam(model.parameters())\nother = optim.Adam([w])\n"
        "for _ in range(5):\n    other.step()\n    loss = (model(x) @ w).pow(2).mean()"
    ),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_trained_where_nothing_is_dealt_out(convert_text, name):
    report, text = convert_text(program(CONVERTED[name]))

    assert not report.of(Kind.LEFT)
    assert "accelerator.backward(loss)" in text
    assert "set_seed" not in text


def test_trained_without_a_seed_it_takes_that_of_the_first_process(convert_text):
    _, text = convert_text(program(BY_ITSELF, seed=""))

    assert text.index("set_seed(broadcast_object_list") < text.index("w = torch.randn")
    assert "loader, optimizer = accelerator.prepare(loader, optimizer)" in text


OVER = "for a, b in loader:\n    loss = {}.pow(2).mean()"
OTHER = "other = optim.SGD(draw(), lr=0.1)\noptimizer = optim.SGD(model.parameters(), lr=0.1)\n"
REFUSED = {
    "on a loader": (
        BESIDE + OVER.format("(model(a.to(device)) @ w)"),
        "optimizer = optim",
        "`w`, a tensor",
    ),
    "in a group, on a loader": (
        f'{WEIGHTS}groups = [{{"params": model.parameters()}}, {{"params": w}}]\n'
        "optimizer = optim.SGD(groups, lr=0.1)\n" + OVER.format("(model(a.to(device)) @ w)"),
        "groups = ",
        "`w`, a tensor",
    ),
    "unknown, on a loader": (
        BESIDE.replace(WEIGHTS, "w = draw(2, 1)\n") + OVER.format("(model(a.to(device)) @ w)"),
        "optimizer = optim",
        "`w`, of which nothing is known",
    ),
    **{
        f"{name}, on a loader": (
            f"{WEIGHTS}{lines}\noptimizer = optim.SGD({given}, lr=0.1)\n" + OVER.format("(model(a.to(device)) @ w)"),
            "optimizer = optim",
            says,
        )
        for name, lines, given, says in (
            ("put behind a model's", "mine = list(model.parameters())\nmine.append(w)", "mine", "`mine`, of which"),
            ("put before a model's", "mine = [*model.parameters()]\nmine.insert(0, w)", "mine", "`mine`, of which"),
            ("in a chain", "import itertools", "itertools.chain(model.parameters(), [w])", "`w`, a tensor"),
            (
                "set under a name of its own",
                "mine = dict(model.named_parameters())\nmine['w'] = w",
                "mine.values()",
                "`mine.values()`, of which",
            ),
            (
                "an attribute of a model that is no parameter",
                "model.w = w",
                "[*model.parameters(), model.w]",
                "of which nothing is known",
            ),
        )
    },
    "by an optimizer of its own, on a loader": (
        OTHER + OVER.format("model(a.to(device))").replace("    loss", "    other.step()\n    loss"),
        "other = optim",
        "`draw()`, of which nothing is known",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_where_a_loader_deals_out(refused_text, name):
    body, at, says = REFUSED[name]
    refused_text(program(body), "MIG902", at, [says])


def test_refused_where_each_process_draws_its_own(refused_text):
    source = program(BY_ITSELF, seed="generator = torch.Generator()\ngenerator.seed()").replace(
        "    loss = (x", "    loss = (torch.randn(4, 2, generator=generator)"
    )
    refused_text(source, "MIG902", "optimizer = optim", ["`w`, a tensor"])


MODELS = {
    "called": "net = build(3)\n",
    "moved": "net = build(3).to(device)\n",
    "wrapped": "net = nn.DataParallel(build(3)).cuda()\n",
    "of a class that derives from it": (
        "class Net(build):\n    def forward(self, x):\n        return x\nnet = Net()\nnet = net.to(device)\n"
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_has_parameters_and_is_called_is_a_model(convert_text, name):
    body = "optimizer = optim.SGD(net.parameters(), lr=0.1)\nfor a, b in loader:\n    loss = net(a.to(device)).mean()"
    _, text = convert_text(program(MODELS[name] + body))

    assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in text


@pytest.mark.parametrize("told", ["net = build(3).to(device)\n", "net = build(3)\nstart = net.state_dict()\n"])
def test_what_has_parameters_and_is_moved_or_kept_is_a_model(convert_text, told):
    loop = "for a, b in loader:\n    loss = -net.log_prob(a.to(device)).mean()"
    body = f"optimizer = optim.SGD(net.parameters(), lr=0.1)\n{loop}"
    _, text = convert_text(program(told + body))

    assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in text
    assert "accelerator.unwrap_model(net).log_prob(a)" in text


NO_MODELS = {
    "one of several things": "net, other = build(3)\n",
    "never run": "net = build(3)\n",
}


@pytest.mark.parametrize("name", NO_MODELS)
def test_what_may_be_something_else_is_no_model(refused_text, name):
    run = "net(a)" if name != "never run" else "(net.scale * a)"
    body = f"optimizer = optim.SGD(net.parameters(), lr=0.1)\nfor a, b in loader:\n    loss = {run}.mean()"
    refused_text(program(NO_MODELS[name] + body), "MIG902", "", ["not known"])


def test_an_optimizer_that_a_function_makes_of_whatever_it_is_handed(convert_text):
    making = (
        "def made(module, kind, *args, **given):\n    return getattr(module, kind)(*args, **given)\n\n\n"
        'scale = made(nn, "LayerNorm", 2)\nkind = "SGD" if build() else "Adam"\n'
        "optimizer = made(optim, kind, model.parameters(), lr=0.1)\n"
    )
    report, text = convert_text(program(making + OVER.format("model(a.to(device))").replace("b in", "_ in")))

    assert not report.of(Kind.LEFT)
    assert "accelerator.prepare(loader, model, optimizer)" in " ".join(text.split())


ATTACK = """
def robust(model, x, y):
    delta = torch.zeros_like(x).requires_grad_()
    attack = optim.SGD([delta], lr=0.1)
    attack.zero_grad()
    loss = -nn.functional.mse_loss(model(x + delta), y)
    loss.backward()
    attack.step()
    return nn.functional.mse_loss(model(x + delta.detach()), y)


optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = robust(model, x, y)"""


def test_a_perturbation_that_an_optimizer_of_its_own_trains_is_named(refused_text):
    refused_text(program(ATTACK), "MIG902", "attack = ", ["`delta`, which belongs to no model"])
