"""Weights that are drawn once the model is made: before it is prepared, so that all processes get the same."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{first}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)

    def draw(self):
        for part in self.modules():
            if isinstance(part, nn.Linear):
                part.weight.data.normal_(0, 0.1)

def draw(part):
    if isinstance(part, nn.Linear):
        draw_linear(part)

def draw_linear(part):
    nn.init.normal_(part.weight)

def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = Net().cuda()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    {drawn}
    print(model)
    for epoch in range(2):
        {again}
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

main()
"""
PREPARE = "    loader, model, optimizer = accelerator.prepare(loader, model, optimizer)"
DRAWN = [
    "model.apply(draw)",
    "model.draw()",
    "draw(model.layer)",
    "nn.init.xavier_uniform_(model.layer.weight)",
    "model.layer.weight.data.uniform_(-1, 1)",
    "model.layer.reset_parameters()",
    "for p in model.parameters(): nn.init.normal_(p)",
    "[p.data.normal_() for p in model.parameters()]",
    "[nn.init.normal_(p) for part in model.children() for p in part.parameters()]",
    "if True: model.apply(draw)",
]


def program(drawn="pass", again="pass", first=""):
    return PROGRAM.format(drawn=drawn, again=again, first=first).lstrip("\n")


@pytest.mark.parametrize("drawn", DRAWN)
def test_drawn_on_the_device_and_before_prepare(convert_text, drawn):
    report, result = convert_text(program(drawn))

    lines = result.splitlines()
    assert not report.of(Kind.LEFT)
    assert "    model = Net().to(accelerator.device)" in lines  # there the original drew them
    assert lines.index(f"    {drawn}") + 2 == lines.index(PREPARE)


OTHERS = "[x.normal_() for part in model.children() for x in [torch.empty(2)]]"


@pytest.mark.parametrize("drawn", ["nn.init.zeros_(model.layer.bias)", "other = torch.empty(2).normal_()", OTHERS])
def test_what_draws_no_weights_may_follow(convert_text, drawn):
    _, result = convert_text(program(drawn))

    lines = result.splitlines()
    assert lines.index(PREPARE) < next(n for n, line in enumerate(lines) if drawn.partition("(")[0] in line)


def test_drawn_anew_in_each_round(convert_text):
    source = program(again="model.apply(draw)")
    report, result = convert_text(source)

    assert result == source
    (left,) = report.of(Kind.LEFT)
    assert (left.code, left.message) == (
        "MIG104",
        "weights of model are drawn anew here, after that was prepared: each process would draw others",
    )


@pytest.mark.parametrize("words", [{"first": "torch.manual_seed(0)"}, {"again": "pass"}])
def test_drawn_alike_in_each_round(convert_text, words):
    report, _ = convert_text(program(**{"again": "model.apply(draw)", **words}))

    assert not report.of(Kind.LEFT)


ATTACKED = """
def attack(net, x, y):
    noise = {noise}
    {fill}
    return (x + noise).detach()

def main():"""
NOISE = [
    {"noise": "torch.zeros_like(x).cuda()", "fill": "noise[:, 0].uniform_(-1, 1)"},
    {"noise": "torch.FloatTensor(x.shape).uniform_(-1, 1).cuda()", "fill": "net(x + noise)"},
]


def attacked(drawn):
    text = PROGRAM.format(first="", drawn="pass", again="pass").replace(
        "def main():", ATTACKED.format(**drawn).lstrip()
    )
    return text.replace("loss = (model(x)", "x = attack(model, x, y)\n            loss = (model(x)")


@pytest.mark.parametrize("drawn", NOISE)
def test_noise_that_a_function_makes_is_no_weight(convert_text, drawn):
    _, result = convert_text(attacked(drawn))

    assert "accelerator.backward(loss)" in result


def test_a_weight_that_a_function_fills_is_drawn_anew(convert_text):
    drawn = {"noise": "net.layer.weight", "fill": "noise.data.uniform_(-1, 1)"}
    report, _ = convert_text(attacked(drawn))

    assert any("are drawn anew here" in finding.message for finding in report.of(Kind.LEFT))


COPYING = """
class Mean:
    def follow(self, mean, net):
        self.reset_parameters(mean, net)

    def reset_parameters(self, mean, net):
        {fills}

"""
COPIED = "copied = Net().cuda(); mean = Mean()"


@pytest.mark.parametrize(
    ("fills", "is_left"),
    [
        ("mean.load_state_dict(net.state_dict())", False),
        ("net.layer.reset_parameters()", True),
        ("nn.init.normal_(net.layer.weight)", True),
    ],
)
def test_what_a_method_that_is_called_like_one_of_a_layer_does_is_seen(convert_text, fills, is_left):
    source = program(drawn=COPIED, again="mean.follow(copied, model)")
    report, result = convert_text(source.replace("class Net", f"{COPYING.format(fills=fills).lstrip()}class Net"))

    assert any("are drawn anew here" in finding.message for finding in report.of(Kind.LEFT)) is is_left
    assert ("accelerator.prepare(" in result) is not is_left


def test_of_several_places_the_first_is_told(convert_text):
    names = [f"fresh{number}" for number in range(8)]
    functions = "".join(f"def {name}(net):\n    net.apply(draw)\n\n" for name in names)
    calls = "; ".join(f"{name}(model)" for name in names)
    source = program(again=calls).replace("def main():", f"{functions}def main():")
    report, _ = convert_text(source)

    (left,) = (finding for finding in report.of(Kind.LEFT) if "are drawn anew here" in finding.message)
    assert left.line == source.splitlines().index("def fresh0(net):") + 2
