"""Layers that a model gets: those of before it is prepared are prepared with it, those of afterwards are nobody's."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.nn.utils import parametrize
from torch.utils.data import DataLoader

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x)

    def grow(self):
        self.fc = Wrapped(self.fc)

class Wrapped(nn.Module):
    def __init__(self, base=None):
        super().__init__()
        self.base = base
        self.low = nn.Parameter(torch.zeros(2, 2))

    def forward(self, x):
        return x @ self.low

def inject(model, rank=4):
    for name, child in model.named_children():
        setattr(model, name, Wrapped(child))
    return model

"""
FIT = """
def fit(net, loader):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()

"""
MAIN = """
def main():
    torch.manual_seed(0)
    loader = DataLoader(data, shuffle=True)
    base = Net()
"""

LATE = [
    "inject(base)",
    "setattr(base, 'fc', nn.Linear(2, 2))",
    "base.add_module('fc', nn.Linear(2, 2))",
    "base.grow()",
    "parametrize.register_parametrization(base.fc, 'weight', Wrapped())",
    "nn.utils.parametrizations.weight_norm(base.fc)",
]


@pytest.mark.parametrize("late", LATE)
def test_a_layer_between_two_trainings_is_refused(decide, late):
    program, conversion = decide(
        HEAD + FIT + MAIN + f"    fit(base, loader)\n    {late}\n    fit(base, loader)\n\nmain()\n"
    )

    assert conversion is None
    assert ["is replaced here" in refusal.why for refusal in program.refusals] == [True]


@pytest.mark.parametrize("more", ["append(nn.Linear(2, 2))", "insert(0, nn.Linear(2, 2))"])
def test_one_more_layer_is_told_for_what_it_is(decide, more):
    main = MAIN.replace("Net()", "nn.Sequential(nn.Linear(2, 2))")
    program, conversion = decide(
        HEAD + FIT + main + f"    fit(base, loader)\n    base.{more}\n    fit(base, loader)\n\nmain()\n"
    )

    assert conversion is None
    assert ["base gets one more layer here" in refusal.why for refusal in program.refusals] == [True]


@pytest.mark.parametrize("late", ["inject(base)", "base.grow()", "base.fc = nn.Identity()"])
def test_a_layer_below_all_training_is_not(decide, late):
    program, _ = decide(HEAD + FIT + MAIN + f"    fit(base, loader)\n    {late}\n    print(base)\n\nmain()\n")

    assert not program.refusals


@pytest.mark.parametrize(
    ("given", "name"), [("model = inject(base)", "model"), ("base = inject(base)", "base"), ("inject(base)", "base")]
)
def test_a_model_is_prepared_with_the_layers_that_a_function_has_given_it(decide, given, name):
    program, conversion = decide(
        HEAD
        + MAIN
        + f"""    {given}
    print(sum(p.numel() for p in {name}.parameters()))
    optimizer = optim.SGD({name}.parameters(), lr=0.1)
    for x in loader:
        optimizer.zero_grad()
        {name}(x).mean().backward()
        optimizer.step()

main()
"""
    )

    assert not program.refusals
    (stage,) = conversion.placement.stages.each
    assert [named.target for named in stage.objects] == ["loader", name, "optimizer"]


BUILD = """
def build():
    made = nn.Sequential()
    made.add_module("low", nn.Linear(2, 2))
    return made

"""


def test_a_function_that_builds_a_model_may_build_another_one_after_the_training(decide):
    program, conversion = decide(
        HEAD
        + BUILD
        + """
loader = DataLoader(data, shuffle=True)
net = build()
optimizer = optim.SGD(net.parameters(), lr=0.1)
for x in loader:
    optimizer.zero_grad()
    net(x).mean().backward()
    optimizer.step()
other = build()
other.load_state_dict(net.state_dict())
"""
    )

    assert not program.refusals
    assert conversion is not None
