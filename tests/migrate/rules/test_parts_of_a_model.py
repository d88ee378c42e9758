"""Optimizers that are given parts of a model by its name, or a model that others contain: what runs is prepared."""

import pytest

AGENT = """
import torch
from torch import nn, optim

class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(4, 2)
        self.critic = nn.Linear(4, 1)

    def evaluate(self, states):
        return self.actor(states).softmax(1), self.critic(states)

class PPO:
    def __init__(self):
        self.policy = ActorCritic()
        self.optimizer = optim.Adam([
            {"params": self.policy.actor.parameters(), "lr": 0.1},
            {"params": self.policy.critic.parameters(), "lr": 0.01},
        ])
        self.policy_old = ActorCritic()
        self.policy_old.load_state_dict(self.policy.state_dict())

    def update(self):
        for _ in range(4):
            chances, values = self.policy.evaluate(torch.ones(3, 4))
            loss = (chances.log() * values).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

torch.manual_seed(0)
PPO().update()
"""


def test_the_model_of_which_an_optimizer_has_the_parts_is_prepared(convert_text):
    _, result = convert_text(AGENT)
    assert "self.policy, self.optimizer = self.accelerator.prepare(" in result
    assert "self.accelerator.unwrap_model(self.policy).evaluate(torch.ones(3, 4" in result
    assert "self.policy_old.load_state_dict(self.accelerator.unwrap_model(self.policy).state_dict())" in result


def test_both_models_of_which_an_optimizer_has_parts_are_prepared(convert_text):
    old = "        self.policy_old = ActorCritic()\n"
    source = AGENT.replace("self.policy.critic", "self.policy_old.critic").replace(old, "")
    _, result = convert_text(
        source.replace("        self.policy = ActorCritic()", f"{old}        self.policy = ActorCritic()")
    )
    assert "self.policy_old, self.policy, self.optimizer = self.accelerator.prepare(" in result


CONTAINED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Losses(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return (self.model(x) - x).pow(2)

class Sampler(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        for _ in range(3):
            x = x - self.model(x)
        return x

def endless(loader):
    while True:
        for (x,) in iter(loader):
            yield x

batches = endless(DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4))
net = nn.Linear(2, 2)
optimizer = optim.SGD(net.parameters(), lr=0.1)
losses, sampler = Losses(net), Sampler(net)
for step in range(20):
    loss = losses(next(batches)).mean()
    {sample}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_model_that_only_shows_what_the_one_in_it_has_learnt_stays_beside_it(convert_text):
    sample = "with torch.no_grad():\n        print(sampler(torch.ones(1, 2)))"
    _, result = convert_text(CONTAINED.format(sample=sample))

    assert "losses, optimizer = accelerator.prepare(losses, optimizer)" in result
    assert "accelerator.print(sampler(torch.ones(1, 2" in result
    assert "net.parameters()" in result


def test_two_models_that_are_trained_around_one(refused_text):
    sample = "loss = loss + sampler(torch.ones(1, 2)).mean()"
    refused_text(CONTAINED.format(sample=sample), "MIG119", "losses(next(batches))", ["contains the one"])


LOADED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x))

    @classmethod
    def from_pretrained(cls, path):
        net = cls()
        net.load_state_dict(torch.load(path))
        return net

def train(path):
    loader = DataLoader(TensorDataset(torch.ones(8, 4)), 4)
    if path:
        net = Net.from_pretrained(path)
    else:
        net = Net()
    optimizer = optim.SGD([
        {"params": net.body.parameters(), "lr": 0.1},
        {"params": net.head.parameters(), "lr": 0.01},
    ])
    for (x,) in loader:
        loss = net(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

torch.manual_seed(0)
train("")
"""


def test_a_model_that_is_one_of_two_is_prepared_as_a_whole(convert_text):
    _, result = convert_text(LOADED)
    assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in result


AROUND = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Learner(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, steps=1):
        return self.net(x).mean()

def train():
    loader = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=4)
    net = nn.Linear(4, 1)
    learner = Learner(net)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for (x,) in loader:
        loss = CALL
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

torch.manual_seed(0)
train()
"""


@pytest.mark.parametrize("call", ["learner(x)", "learner.forward(x, steps=2)"])
def test_a_model_around_the_one_that_is_trained_is_prepared_however_it_is_run(convert_text, call):
    """With the one inside prepared, nothing would average the gradients: the one around it runs the raw model."""
    _, result = convert_text(AROUND.replace("CALL", call))
    assert "loader, learner, optimizer = accelerator.prepare(loader, learner, optimizer)" in result
    assert f"loss = {call}" in result


def test_gradients_that_a_method_of_a_model_around_it_makes_are_averaged_after_backward(convert_text):
    source = AROUND.replace("def forward(self, x, steps=1)", "def loss_of(self, x)")
    _, result = convert_text(source.replace("CALL", "learner.loss_of(x)"))
    assert "DistributedDataParallelKwargs(find_unused_parameters=True)" in result
    assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in result


AROUND_TWO = """
import os
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Learner(nn.Module):
    def __init__(self, net, head):
        super().__init__()
        self.net, self.head = net, head

    def forward(self, x):
        return self.head(self.net(x)).pow(2).mean()

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=int(os.environ.get("BATCH", "8")))
net, head = nn.Linear(4, 4), nn.Linear(4, 1)
{learner}
optimizer, other = optim.SGD(net.parameters(), lr=0.1), optim.SGD(head.parameters(), lr=0.01)
for (x,) in loader:
    loss = {call}
    learner.zero_grad()
    loss.backward()
    optimizer.step()
    {second}
    other.step()
print(float(net.weight.sum()), float(head.weight.sum()))
"""
LEARNER = "learner = Learner(net, head)"
EITHER = f"if os.environ.get('DEEP'):\n    {LEARNER}\nelse:\n    {LEARNER}"


@pytest.mark.parametrize("learner", [LEARNER, EITHER])
@pytest.mark.parametrize("call", ["learner(x)", "learner.forward(x)"])
def test_a_model_around_two_that_an_optimizer_each_trains_is_prepared(convert_text, call, learner):
    _, result = convert_text(AROUND_TWO.format(call=call, learner=learner, second=""))

    assert "loader, learner, optimizer, other = accelerator.prepare(" in result
    assert "optim.SGD(net.parameters(), lr=0.1), optim.SGD(head.parameters(), lr=0.01)" in result


def test_its_parts_train_as_on_one_process(convert_text, numbers_printed, monkeypatch):
    before = AROUND_TWO.format(call="learner(x)", learner=LEARNER, second="")
    _, result = convert_text(before)
    one = numbers_printed(before, 1)
    monkeypatch.setenv("BATCH", "4")

    assert numbers_printed(result, 2) == pytest.approx(one, abs=1e-6)


@pytest.mark.parametrize("call", ["learner(x)", "learner.forward(x)"])
def test_one_of_two_losses_may_leave_some_out(refused_text, call):
    """With several losses, as of a GAN, each backward has gradients of some of the parameters alone."""
    source = AROUND_TWO.format(call=call, learner=LEARNER, second=f"(-{call}).backward()")
    refused_text(source.lstrip(), "MIG119", call, ["contains the one that the optimizer trains"])


HEAD = """
import sys

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=8, shuffle=True)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
model = nn.Sequential(body, head)
groups = [{"params": head.parameters(), "lr": 0.1}]
if len(sys.argv) > 1:
    groups.append({"params": body.parameters(), "lr": 0.01})
optimizer = optim.SGD(groups, 0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(head.state_dict(), "head.pt")
"""


def test_a_sequence_of_which_an_optimizer_has_the_head_is_prepared(convert_text):
    """It was refused: of models in a sequence it was not seen that the sequence is what runs."""
    _, result = convert_text(HEAD)
    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in result
    assert 'accelerator.save(head.state_dict(), "head.pt")' in result


BESIDE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.ones(4, 2))

    def forward(self, x):
        return x @ self.kernel

class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = torch.ones(4, 2, requires_grad=True)

    def forward(self, x):
        return x @ self.kernel

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=4)
net = nn.Linear(4, 4)
head = {head}
{trained}
for (x,) in loader:
    loss = head(net(x)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LISTED = "mine = list(net.parameters())\n{}\noptimizer = optim.SGD(mine, lr=0.1)"
BOTH = {
    "a group of one parameter": 'optimizer = optim.SGD([{"params": net.parameters()}, {"params": head.kernel}], 0.1)',
    "a list of one": "optimizer = optim.SGD(list(net.parameters()) + [head.kernel], lr=0.1)",
    "each by its name": "optimizer = optim.SGD([net.weight, net.bias, head.kernel], lr=0.1)",
    "added as a group": (
        'optimizer = optim.SGD(net.parameters(), lr=0.1)\noptimizer.add_param_group({"params": [head.kernel]})'
    ),
    "one put behind those of a model": LISTED.format("mine.append(head.kernel)"),
    "those of another model": LISTED.format("mine.extend(head.parameters())"),
    "those of another model, one by one": LISTED.format("for each in head.parameters():\n    mine.append(each)"),
    "under their names": (
        "mine = dict(net.named_parameters())\nmine.update(head.named_parameters())\n"
        "optimizer = optim.SGD(mine.values(), lr=0.1)"
    ),
}


@pytest.mark.parametrize("name", BOTH)
def test_models_of_which_an_optimizer_is_given_parameters_one_by_one_are_prepared(convert_text, name):
    _, result = convert_text(BESIDE.format(head="Head()", trained=BOTH[name]))
    assert "net, head, optimizer = accelerator.prepare(" in result


@pytest.mark.parametrize("name", ["a group of one parameter", "a list of one", "one put behind those of a model"])
def test_a_tensor_of_that_name_in_one_of_two_models_is_no_parameter(refused_text, name):
    head = 'Head() if input("head?") else Fixed()'
    refused_text(BESIDE.format(head=head, trained=BOTH[name]), "MIG902", "", ["processes would not share"])


def test_single_parameters_of_a_part_stand_for_the_model_that_runs(convert_text):
    whole = """
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), Head()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.head(self.body(x)) * self.scale

    def groups(self):
        return [{"params": [self.scale]}, {"params": self.body.parameters()}, {"params": self.head.kernel}]

whole = Whole()
optimizer = optim.SGD(whole.groups(), lr=0.1)"""
    source = BESIDE.format(head="None", trained=whole).replace("head(net(x))", "whole(x)").replace("head = None\n", "")
    _, result = convert_text(source)
    assert "loader, whole, optimizer = accelerator.prepare(loader, whole, optimizer)" in result


POLICIES = """
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

def made(width):
    net = nn.Sequential(nn.Linear(4, width), nn.Linear(width, 1))
    return net, optim.SGD(net.parameters(), lr=0.1)

def smaller():
    net = nn.Linear(4, 1)
    return net, optim.Adam(net.parameters(), lr=0.1)

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.optimizer = made(8)

    def forward(self, x):
        return self.net(x).pow(2).mean()

class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.optimizer = smaller()

    def forward(self, x):
        return self.net(x).abs().mean()

def choose(kind):
    if kind == "deep":
        policy = Deep()
    else:
        policy = Flat()
    return policy

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=4)
policy = choose(sys.argv[1])
optimizer = policy.optimizer
for (x,) in loader:
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_one_of_two_models_that_each_make_the_optimizer_of_what_they_hold(convert_text):
    _, result = convert_text(POLICIES.format(loss="policy(x)"))
    assert "loader, policy, optimizer = accelerator.prepare(loader, policy, optimizer)" in result


def test_of_two_models_that_are_both_run_each_is_to_be_named(refused_text):
    both = "loss = policy(x) + Flat()(x)".removeprefix("loss = ")
    refused_text(POLICIES.format(loss=both), "MIG901", "for (x,)", ["none for the model"])
