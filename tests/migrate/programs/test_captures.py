"""Models that lie in a list, or have a second name, since before they were prepared: these have the raw ones."""

import pytest


def stages(conversion):
    """Each call of prepare: the line below which it stands, and what it is given."""
    each = conversion.placement.stages.each
    return [(stage.end, [named.target for named in stage.objects]) for stage in each]


TEXT = """
import torch
from torch import nn, optim

one, other = nn.Linear(2, 1), nn.Linear(2, 1)
nets = [one, other]


def clear():
    {clear}


first = optim.SGD(one.parameters(), lr=0.1)
second = optim.SGD(other.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(rows, batch_size=2):
    loss = (one(x) - other(x)).pow(2).mean()
    clear()
    loss.backward()
    first.step()
    second.step()
{after}
"""


@pytest.mark.parametrize(
    "clear",
    [
        "for net in nets:\n        net.zero_grad()",
        "[net.zero_grad() for net in nets]",
        "for p in [p for net in nets for p in net.parameters()]:\n        p.grad = None",
    ],
)
def test_a_list_of_models_that_are_asked_for_their_parameters(decide, clear):
    program, _ = decide(TEXT.format(clear=clear, after=""))

    assert not program.refusals


@pytest.mark.parametrize(
    ("clear", "after"),
    [
        ("for net in nets:\n        net.eval()", ""),
        ("for net in nets:\n        net(rows).sum()", ""),
        ("for net in nets:\n        net.zero_grad()\n    net(rows).sum()", ""),
        ("for net in nets:\n        fill(net)", ""),
        ("for net in nets:\n        net.zero_grad()", "print([net(rows) for net in nets])"),
        ("for net in nets:\n        net.zero_grad()", "print({n: net(rows) for n, net in enumerate(nets)})"),
    ],
)
def test_models_that_are_run_are_prepared_above_the_list_that_keeps_them(decide, clear, after):
    program, conversion = decide(TEXT.format(clear=clear, after=after))

    assert not program.refusals
    assert [names for _, names in stages(conversion)] == [["one", "other"], ["first", "second"]]


TWO_NAMES = """
import torch
from torch import nn, optim


def score(model, x):
    {within}
        return model(x).mean()


detector = nn.Linear(2, 1)
net = detector
optimizer = optim.SGD(net.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(rows, batch_size=2):
    loss = net(x).pow(2).mean(){and_by_it}
    loss.backward()
    optimizer.step()
print(score(detector, rows))
"""


def test_a_second_name_by_which_a_model_is_only_looked_at(decide):
    program, _ = decide(TWO_NAMES.format(within="with torch.no_grad():", and_by_it=""))

    assert not program.refusals
    assert [model.target for model in program.models] == ["net"]


def test_a_second_name_by_which_a_model_is_trained_too(decide):
    program, conversion = decide(TWO_NAMES.format(within="if True:", and_by_it=" + score(detector, -x)"))

    assert not program.refusals
    assert stages(conversion) == [(11, ["detector"]), (13, ["optimizer"])]


IN_A_CLASS = """
import torch
from torch import nn, optim


class Trainer:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = nn.Linear(2, 1)
        {wrapped}
        self.model = {given}
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        for x in torch.utils.data.DataLoader(rows, batch_size=2):
            self.optimizer.zero_grad()
            self.model(x.to(self.device)).mean().backward()
            self.optimizer.step()


Trainer().fit()
"""


@pytest.mark.parametrize("given", ["net", "net.to(self.device)"])
@pytest.mark.parametrize(
    "wrapped", ["pass", "if torch.cuda.device_count() > 1:\n            net = nn.DataParallel(net)"]
)
def test_a_model_is_prepared_by_the_attribute_that_the_methods_train_it_by(decide, wrapped, given):
    program, _ = decide(IN_A_CLASS.format(wrapped=wrapped, given=given))

    assert not program.refusals
    assert [model.target for model in program.models] == ["self.model"]


KEPT = """
import torch
from torch import nn, optim


class Flow:
    def __init__(self, model):
        self.model = model

    def loss(self, x):
        return (self.model(x) - x).pow(2).mean()


def fit():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    flow = Flow(model)
    {between}
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 2)), batch_size=2):
        optimizer.zero_grad()
        flow.loss(x).backward()
        optimizer.step()


fit()
"""


@pytest.mark.parametrize("between", ["pass", "print(model)", "model.load_state_dict(torch.load('start.pt'))"])
def test_a_model_is_prepared_above_an_object_that_keeps_it(decide, between):
    program, conversion = decide(KEPT.format(between=between))

    assert not program.refusals
    assert stages(conversion) == [(16, ["model"]), (19, ["optimizer"])]


@pytest.mark.parametrize(
    ("between", "why"),
    [
        ("model[0].requires_grad_(False)", "is kept here before it is prepared"),
        ("for p in model[0].parameters():\n        p.requires_grad = False", "is kept here before it is prepared"),
        ("nn.init.normal_(model[0].weight)", "is kept here before it is prepared"),
        ("model = nn.DataParallel(model)", "is kept here before it is prepared"),
        ("model[0] = nn.Linear(2, 2)", "a layer of model is replaced here"),
    ],
    ids=["frozen", "frozen each", "drawn", "wrapped", "replaced"],
)
def test_a_model_that_changes_before_the_optimizer_is_made_is_not(decide, between, why):
    program, _ = decide(KEPT.format(between=between))

    assert [why in refusal.why for refusal in program.refusals] == [True]
