"""In which mode loops begin, whoever sets it."""

import textwrap

import pytest

TRAINING = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
train, test = DataLoader(a, shuffle=True), DataLoader(b)
net = nn.Sequential(nn.Linear(1, 1){layer})
opt = optim.SGD(net.parameters(), lr=0.1)
crit = nn.MSELoss()
{before}

def measure(model, loader):
    right = 0
    for x, y in loader:
        right += (model(x) == y).sum()
    return right

for epoch in range(3):
    net.train()
    for x, y in train:
        opt.zero_grad()
        crit(net(x), y).backward()
        opt.step()
{calls}
{after}"""


def source(calls, before="", layer="", after=""):
    """A program that trains, and evaluates at the end of each epoch with these calls."""
    return TRAINING.format(calls=textwrap.indent(calls, "    "), before=before, layer=layer, after=after)


SEEN = {
    "no_grad at the call": "with torch.no_grad():\n    print(measure(net, test))",
    "set_grad_enabled at the call": "with torch.set_grad_enabled(False):\n    print(measure(net, test))",
    "set_grad_enabled before": "torch.set_grad_enabled(False)\nmeasure(net, test)\ntorch.set_grad_enabled(True)",
    "eval mode at the call": "net = net.eval()\nprint(measure(net, test))",
    "train(False)": "net.train(False)\nprint(measure(net, test))",
    "both branches": "if epoch:\n    net.eval()\nelse:\n    net.eval()\nmeasure(net, test)",
    "every call": "net.eval()\nmeasure(net, train)\nmeasure(net, test)\nnet.train()",
    "each call in its own way": "net.eval()\nmeasure(net, test)\nnet.train()\n"
    "with torch.no_grad():\n    measure(net, test)",
    "in the epoch loop": "if epoch % 2:\n    net.eval()\n    measure(net, test)\n    net.train()",
}

NOT_SEEN = {
    "nothing": "measure(net, test)",
    "one of two calls": "measure(net, test)\nnet.eval()\nmeasure(net, test)",
    "one branch": "if epoch:\n    net.eval()\nmeasure(net, test)",
    "training again": "net.eval()\nnet.train()\nmeasure(net, test)",
    "gradients on again": "with torch.no_grad():\n    print(1)\nmeasure(net, test)",
    "a flag": "with torch.set_grad_enabled(epoch > 2):\n    measure(net, test)",
    "enable_grad": "with torch.no_grad():\n    with torch.enable_grad():\n        measure(net, test)",
    "given to others": "import lib\nnet.eval()\nlib.fit(net)\nmeasure(net, test)",
}


@pytest.mark.parametrize("name", SEEN)
def test_seen(decide, name):
    _, conversion = decide(source(SEEN[name]))

    assert len(conversion.shared) == 1


@pytest.mark.parametrize("name", NOT_SEEN)
def test_not_seen(decide, name):
    _, conversion = decide(source(NOT_SEEN[name]))

    assert "not seen" in conversion.in_full[0].why


LEAVING = {
    "return": "def first(model, x):\n    model.eval()\n    with torch.no_grad():\n        return model(x)",
    "break": (
        "def first(model, x):\n    model.eval()\n    for _ in range(3):\n"
        "        with torch.no_grad():\n            model(x)\n            break"
    ),
}


@pytest.mark.parametrize("name", LEAVING)
def test_gradients_are_on_again_behind_what_leaves_the_block(decide, name):
    _, conversion = decide(source("first(net, x)\nnet.train()\nmeasure(net, test)", before=LEAVING[name]))

    assert "not seen" in conversion.in_full[0].why


HELPERS = """
def freeze(model):
    model.eval()

def thaw(model):
    model.train()
"""


@pytest.mark.parametrize(("calls", "shares"), [("freeze(net)\nmeasure(net, test)", True), ("thaw(net)", False)])
def test_functions_that_set_the_mode(decide, calls, shares):
    text = source(calls if shares else "net.eval()\nthaw(net)\nmeasure(net, test)", before=HELPERS)
    _, conversion = decide(text)

    assert bool(conversion.shared) is shares


def test_layers_that_are_others_in_training_mode_need_eval_mode(decide):
    calls = "with torch.no_grad():\n    measure(net, test)"
    _, conversion = decide(source(calls, layer=", nn.Dropout(0.1)"))

    assert conversion.in_full[0].why == "the model, with Dropout, is not seen to be in eval mode"
    _, conversion = decide(source("net.eval()\n" + calls, layer=", nn.Dropout(0.1)"))
    assert conversion.shared


def test_what_an_epoch_leaves_behind_holds_after_it(decide):
    _, conversion = decide(
        source("net.eval()\nmeasure(net, train)", after="measure(net, test)", layer=", nn.Dropout(0.1)")
    )

    assert conversion.shared


TURNS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader


class Experiment:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.1))

    def measure(self, loader):
        right = 0
        {mode}
        with torch.no_grad():
            for x, y in loader:
                right += (self.net(x) == y).sum()
        self.net.train()
        return right

    def train(self):
        train, test = DataLoader(a, shuffle=True), DataLoader(b)
        opt = optim.SGD(self.net.parameters(), lr=0.1)
        crit = nn.MSELoss()
        for epoch in range(3):
            for x, y in train:
                opt.zero_grad()
                crit(self.net(x), y).backward()
                opt.step()
            print(self.measure(test))


for i in range(2):
    Experiment().train()
"""


@pytest.mark.parametrize(("mode", "shares"), [("self.net.eval()", True), ("pass", False)])
def test_a_model_of_an_earlier_turn_does_not_run_in_this_one(decide, mode, shares):
    _, conversion = decide(TURNS.format(mode=mode))

    assert bool(conversion.shared) is shares


TWICE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
train, test = DataLoader(a, shuffle=True), DataLoader(b)
{decorator}
def measure(model, loader):
    {mode}
    right = 0
    for x, y in loader:
        right += (model(x) == y).sum()
    return right

def fit(net):
    opt = optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        net.train()
        for x, y in train:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()
        print(measure(net, test))

net = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.1))
try:
    fit(net)
except torch.cuda.OutOfMemoryError:
    fit(net)
"""
OF_TWO_RUNS = {
    "gradients are off and this model is in eval mode": ("@torch.inference_mode()", "model.eval()", ""),
    "only the mode: the model of the first run is not in it": ("", "model.eval()", "not seen to run under"),
    "only gradients": ("@torch.no_grad()", "model.train()", "is not seen to be in eval mode"),
}


@pytest.mark.parametrize("name", OF_TWO_RUNS)
def test_a_function_that_trains_and_is_called_again(decide, name):
    decorator, mode, why = OF_TWO_RUNS[name]
    _, conversion = decide(TWICE.format(decorator=decorator, mode=mode))

    if why:
        assert why in conversion.in_full[0].why
    else:
        assert len(conversion.shared) == 1


TRAINER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
train, test = DataLoader(a, shuffle=True), DataLoader(b)

class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.1))
        self.opt = optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self):
        self.net.train()
        for x, y in train:
            self.opt.zero_grad()
            nn.functional.mse_loss(self.net(x), y).backward()
            self.opt.step()

    def measure(self):
        {mode}
        right = 0
        for x, y in test:
            with torch.no_grad():
                right += (self.net(x) == y).sum()
        return right

{made}
    trainer.fit()
    print(trainer.measure())
"""
ONE = "trainer = Trainer()\nfor epoch in range(3):"
OF_TRAINERS = {
    "one that is made once": (ONE, "self.net.eval()", True),
    "one that stays in training mode": (ONE, "pass", False),
    "one after the other, each with an accelerator of its own": (
        "for seed in range(3):\n    trainer = Trainer()",
        "self.net.eval()",
        True,
    ),
    "another one in training mode": (f"{ONE}\n    trainer.net.eval()", "trainer.net.train()", False),
}


@pytest.mark.parametrize("name", OF_TRAINERS)
def test_models_that_an_object_makes(decide, name):
    made, mode, is_shared = OF_TRAINERS[name]
    _, conversion = decide(TRAINER.format(made=made, mode=mode))

    assert bool(conversion.shared) is is_shared


UNSEEN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Agent:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.1))
        self.opt = optim.SGD(self.net.parameters(), lr=0.1)
        rows = TensorDataset(torch.ones(64, 1), torch.ones(64, 1))
        self.train, self.test = DataLoader(rows, 16, shuffle=True), DataLoader(rows, 16)

    def run(self):
        self.net.train()
        for x, y in self.train:
            self.opt.zero_grad()
            nn.functional.mse_loss(self.net(x), y).backward()
            self.opt.step()
        print(self.measure())

    def measure(self):
        {mode}
        right = 0
        with torch.no_grad():
            for x, y in self.test:
                right += (self.net(x) == y).sum()
        return right

globals()[input()]().run()
"""


@pytest.mark.parametrize(("mode", "is_shared"), [("self.net.eval()", True), ("pass", False)])
def test_models_of_an_object_that_nobody_is_seen_to_make(decide, mode, is_shared):
    _, conversion = decide(UNSEEN.format(mode=mode))

    assert bool(conversion.shared) is is_shared


BEGUN = """
{first}
{second}
for x, y in batches:
    right = (net(x) == y).sum()
    print(right)
"""


@pytest.mark.parametrize("made", ["iter(test)", "enumerate(test)", "zip(test, test)", "tqdm(test)"])
@pytest.mark.parametrize("is_late", [False, True])
def test_an_evaluation_begins_where_its_iterator_is_made(decide, made, is_late):
    lines = (f"batches = {made}", "net.eval()")
    first, second = reversed(lines) if is_late else lines
    loop = BEGUN.format(first=first, second=second)
    if made.startswith(("enumerate", "zip")):
        loop = loop.replace("x, y in", "_, (x, y) in")
    _, conversion = decide(source(loop, before="from tqdm import tqdm"))

    assert bool(conversion.shared) is (is_late or "tqdm" in made)
    if not conversion.shared:
        assert "where its iterator is made" in conversion.in_full[0].why


TRAINED_FROM = """
for epoch in range(3):
{head}
    for x, y in batches:
        opt.zero_grad()
        crit(net(x), y).backward()
        opt.step()
    net.eval()
    print(measure(net, test))
"""


@pytest.mark.parametrize(
    ("head", "is_refused"),
    [
        (["batches = iter(train)", "net.train()"], False),  # it is said that it trains
        (["net.train()", "batches = iter(train)"], False),
        (["batches = tqdm(train)", "net.train()"], False),
        (["batches = list(train)", "net.train()"], True),
        (["batches = tuple(tqdm(train))", "net.train()"], True),
        (["net.train()", "batches = list(train)"], False),
        (["names = list('ab')", "batches = tqdm(train)", "net.train()"], False),
    ],
)
def test_a_training_pass_that_begins_in_the_mode_of_an_evaluation_is_refused(decide, head, is_refused):
    start, _, _ = source("", before="from tqdm import tqdm").partition("for epoch")
    program, conversion = decide(start + TRAINED_FROM.format(head="\n".join(f"    {line}" for line in head)))

    assert (conversion is None) is is_refused
    assert any("call model.train() before this" in r.way_out for r in program.refusals) is is_refused


TWO_MODELS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
train, test = DataLoader(a, shuffle=True), DataLoader(b)
maker = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
critic = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
opt_m, opt_c = optim.SGD(maker.parameters(), lr=0.1), optim.SGD(critic.parameters(), lr=0.1)
crit = nn.MSELoss()

for epoch in range(3):
    maker.train()
    critic.train()
    for x, y in train:
        opt_m.zero_grad()
        opt_c.zero_grad()
        crit(critic(maker(x)), y).backward()
        opt_m.step()
        opt_c.step()
    maker.eval()
    with torch.no_grad():
        right = 0
        for x, y in test:
            out = {run}
            right += (out == y).sum()
        print(right)
"""


@pytest.mark.parametrize(("run", "shared"), [("maker(x)", 1), ("critic(maker(x))", 0), ("critic(x)", 0)])
def test_models_that_do_not_run_in_a_loop_may_be_in_any_mode(decide, run, shared):
    _, conversion = decide(TWO_MODELS.format(run=run))

    assert len(conversion.shared) == shared


def test_batches_that_a_training_pass_has_put_into_a_list_are_not_evaluated(decide):
    program, conversion = decide(source(BEGUN.format(first="batches = list(train)", second="net.eval()")))

    assert conversion is None
    assert any("its batches are in a list before it begins" in refusal.why for refusal in program.refusals)


ANEW = "if options.small:\n    net = nn.Linear(1, 1, bias=False)\n"
MADE_ANEW = {
    "above the optimizer": (ANEW, True),
    "below a look at it": (f"print(len(list(net.parameters())))\n{ANEW}", True),
    "below an evaluation": (f"for x, y in test:\n    net(x)\n{ANEW}", False),
}


@pytest.mark.parametrize("name", MADE_ANEW)
def test_a_model_that_is_made_anew_before_anything_is_prepared_is_the_only_one(decide, name):
    above, is_shared = MADE_ANEW[name]
    text = source("net.eval()\nmeasure(net, test)").replace("opt = optim", f"{above}opt = optim", 1)
    _, conversion = decide(text.replace("import torch\n", "import torch\nimport options\n", 1))

    assert any(shared.loop.unit.name == "measure" for shared in conversion.shared) is is_shared
