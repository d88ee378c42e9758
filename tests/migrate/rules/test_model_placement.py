import pytest

from migrate.options import Options
from migrate.pipeline import run

DEVICE = 'device = torch.device("cuda")'
CHOSEN = {"accelerator": "", "setup": (DEVICE, "accelerator = Accelerator()")}

UNCHANGED = {
    "its mode": {"made": "model.train()"},
    "its gradients": {"made": "model.requires_grad_(True)"},
    "never moved": {"model": "model = nn.Linear(2, 1)"},
    "a cast": {"made": "model.double()"},
    "a dtype": {"made": "model = model.to(torch.bfloat16)"},
    "channels last": {"made": "model = model.to(memory_format=torch.channels_last)"},
    "to the CPU at the end": {"end": 'model.to("cpu")'},
    "with cpu()": {"end": "model.cpu()"},
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


NAMED = "class model(nn.Linear):\n    def __init__(self):\n        super().__init__(2, 1)\n"
CHANGED = {
    "where it is made": ("model = nn.Linear(2, 1).to(device)", "model = nn.Linear(2, 1)"),
    "by keyword": ("model = nn.Linear(2, 1).to(device=device)", "model = nn.Linear(2, 1)"),
    "to a text": ('model = nn.Linear(2, 1).to("cuda:0")', "model = nn.Linear(2, 1)"),
    "cuda": ("model = nn.Linear(2, 1).cuda()", "model = nn.Linear(2, 1)"),
    "by itself": ("model = nn.Linear(2, 1)\nmodel.to(device)", "model = nn.Linear(2, 1)"),
    "cuda by itself": ("model = nn.Linear(2, 1)\nmodel.cuda()", "model = nn.Linear(2, 1)"),
    "assigned": ("model = nn.Linear(2, 1)\nmodel = model.to(device)", "model = nn.Linear(2, 1)"),
    "with a dtype": ("model = nn.Linear(2, 1).to(device, torch.float64)", "model = nn.Linear(2, 1).to(torch.float64)"),
    "with a dtype by keyword": (
        "model = nn.Linear(2, 1).to(device, dtype=torch.float64)",
        "model = nn.Linear(2, 1).to(dtype=torch.float64)",
    ),
    "in a chain": ("model = nn.Linear(2, 1).to(device).train()", "model = nn.Linear(2, 1).train()"),
    "under a condition": (
        "model = nn.Linear(2, 1)\nif torch.cuda.is_available():\n    model.cuda()",
        "model = nn.Linear(2, 1)",
    ),
    "a choice": (
        "model = nn.Linear(2, 1)\nmodel = model.cuda() if torch.cuda.is_available() else model",
        "model = nn.Linear(2, 1)",
    ),
    "by the name of its class": (f"{NAMED}model = model().to(device)", f"{NAMED}model = model()"),
    "with its comment": ("model = nn.Linear(2, 1).to(device)  # the net", "model = nn.Linear(2, 1)  # the net"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    before, _ = CHANGED[name]
    chosen = CHOSEN if "device" in before else {}
    changed(**chosen, model=CHANGED[name])


def test_a_dtype_stays(changed):
    changed(
        **CHOSEN,
        made=("model = model.to(device, torch.float64)", "model = model.to(torch.float64)"),
    )


def test_a_loss_without_tensors(changed):
    changed(made=("criterion = nn.L1Loss().cuda()", "criterion = nn.L1Loss()"))


def test_a_loss_with_weights_goes_to_the_accelerators_device(changed):
    changed(
        made=(
            "criterion = nn.CrossEntropyLoss(weight=torch.ones(2)).cuda()",
            "criterion = nn.CrossEntropyLoss(weight=torch.ones(2)).to(accelerator.device)",
        )
    )


def test_a_model_that_is_not_trained_goes_to_the_accelerators_device(changed):
    changed(
        made=("teacher = nn.Linear(2, 1).cuda()", "teacher = nn.Linear(2, 1).to(accelerator.device)"),
        batch="guide = teacher(x)",
    )


def test_weights_that_are_drawn_after_the_move(changed):
    draw = "def draw(layer):\n    nn.init.normal_(layer.weight)"
    changed(
        setup=draw,
        model=(
            "model = nn.Linear(2, 1).cuda()\nmodel.apply(draw)",
            "model = nn.Linear(2, 1).to(accelerator.device)\nmodel.apply(draw)",
        ),
    )


def test_weights_that_are_drawn_before_the_move(changed):
    draw = "def draw(layer):\n    nn.init.normal_(layer.weight)"
    kept = "model = nn.Linear(2, 1)\nmodel.apply(draw)"
    changed(setup=draw, model=(f"{kept}\nmodel.cuda()", kept))


def test_batch_norm_of_apex_that_is_synchronized_stays_before_prepare(unchanged):
    unchanged(
        imports="import sys\ntry:\n    import apex\n    from apex import amp\nexcept ImportError:\n    pass",
        made="if len(sys.argv) > 1:\n    model = apex.parallel.convert_syncbn_model(model)",
    )


def test_batch_norm_that_a_function_synchronizes_stays_as_it_is(unchanged):
    unchanged(
        setup="def make():\n    net = nn.Linear(2, 1)\n    return nn.SyncBatchNorm.convert_sync_batchnorm(net)",
        model="model = make()",
    )


RUNS = """
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))


class Experiment:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = nn.Linear(2, 1).to(self.device)

    def train(self):
        loader = DataLoader(data, batch_size=4)
        optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            optimizer.zero_grad()
            loss = (self.model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()

    def test(self):
        with torch.no_grad():
            for x, y in DataLoader(data, batch_size=4):
                print(self.model(x.to(self.device)).mean())


{calls}
"""
RUN = "def run(experiment):\n    with torch.enable_grad():\n        experiment.train()\n\n"
THROUGH_TRAINING = {
    "below it": "experiment = Experiment()\nexperiment.train()\nexperiment.test()",
    "below what calls it": RUN + "experiment = Experiment()\nrun(experiment)\nif len(data):\n    experiment.test()",
    "once in a turn": "for turn in range(2):\n    e = Experiment()\n    e.train()\n    e.test()",
}
AROUND_TRAINING = {
    "in the other branch": "e = Experiment()\nif len(sys.argv) > 1:\n    e.train()\nelse:\n    e.test()",
    "below one branch": "e = Experiment()\nif len(sys.argv) > 1:\n    e.train()\ne.test()",
    "above it": "e = Experiment()\ne.test()\ne.train()",
    "where nobody is seen to call it": "Experiment().train()",
    "where both is true": "e = Experiment()\nlen(sys.argv) > 1 and e.train()\ne.test()",
}


@pytest.mark.parametrize("name", [*THROUGH_TRAINING, *AROUND_TRAINING])
def test_a_model_that_also_runs_where_nothing_has_prepared_it_is_moved(convert_text, name):
    _, result = convert_text(RUNS.format(calls={**THROUGH_TRAINING, **AROUND_TRAINING}[name]))

    assert "self.accelerator.prepare(" in result
    assert ("nn.Linear(2, 1).to(self.device)" in result) is (name in AROUND_TRAINING)


SHOWN = """
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, device):
        self.device = torch.device(device)
        self.net = nn.Linear(2, 1).to(self.device)
        {above}
        self.loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)
        {below}

    def show(self):
        with torch.no_grad():
            print(self.net(torch.ones(1, 2).to(self.device)))

    def describe(self):
        print(sum(p.numel() for p in self.net.parameters()))

    def train(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = (self.net(x.to(self.device)) - y.to(self.device)).pow(2).mean()
            loss.backward()
            self.optimizer.step()


parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
Trainer(parser.parse_args().device).train()
"""


@pytest.mark.parametrize(
    ("above", "below", "stays"),
    [("self.show()", "", True), ("self.describe()", "", False), ("", "self.show()", False)],
)
def test_a_method_that_runs_the_model_before_it_is_prepared_needs_it_on_its_device(convert_text, above, below, stays):
    _, result = convert_text(SHOWN.format(above=above, below=below))

    assert "self.accelerator.prepare(" in result
    assert ("nn.Linear(2, 1).to(self.device)" in result) is stays


def test_a_function_that_runs_the_model_of_its_module_before_it_is_prepared_needs_it_on_its_device(changed):
    changed(
        setup="def show():\n    return model(torch.ones(1, 2))",
        model=("model = nn.Linear(2, 1).cuda()", "model = nn.Linear(2, 1).to(accelerator.device)"),
        made="show()",
    )


OWN_TO = """
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 1)
        self.scale = torch.tensor(1.0)

    def forward(self, x):
        return self.net(x) * self.scale

    def to(self, device):
        self.scale = self.scale.to(device)
        return {parent}.to(device)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
policy = Policy().to(device)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for epoch in range(3):
    loss = policy(torch.ones(8, 2).to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("parent", ["super()", "super(Policy, self)"])
def test_a_model_that_moves_more_itself_is_still_the_model(convert_text, parent):
    _, result = convert_text(OWN_TO.format(parent=parent))

    assert f"return {parent}.to(device)" in result
    assert "policy = Policy().to(device)" in result
    assert "policy, optimizer = accelerator.prepare(policy, optimizer)" in result


THROWN_AWAY = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Centres(nn.Module):
    def __init__(self):
        super().__init__()
        self.centre = nn.Parameter(torch.zeros(1))

    def forward(self, x, y):
        return ((x - self.centre) ** 2 + (x - y) ** 2).mean()


device = torch.device("cuda")
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
_ = model.to(device)
criterion = Centres()
_ = criterion.to(device)
optimizer = torch.optim.SGD([*model.parameters(), *criterion.parameters()], lr=0.1)
for epoch in range(3):
    _ = model.train()
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    _ = model.eval()
{end}
"""


def test_what_is_thrown_away_is_no_name_and_goes_with_the_move(convert_text):
    _, result = convert_text(THROWN_AWAY.format(end=""))

    assert "model = nn.Linear(2, 1)\ncriterion = Centres()\noptimizer = " in result
    assert "loader, model, criterion, optimizer = accelerator.prepare(" in result


def test_what_is_thrown_away_and_read_all_the_same_stays(convert_text):
    _, result = convert_text(THROWN_AWAY.format(end="print(_)"))

    assert "_ = model\n" in result


REGISTERED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Average:
    def __init__(self, share):
        self.share, self.shadow = share, {{}}

    def register(self, name, weight):
        {kept}

    def update(self, name, weight):
        self.shadow[name] = self.share * self.shadow[name] + (1 - self.share) * weight


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1).to(device)
average = Average(0.9)
for name, param in model.named_parameters():
    average.register(name, param.data)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, param in model.named_parameters():
        average.update(name, param.data)
"""


@pytest.mark.parametrize(
    ("kept", "stays"),
    [("self.shadow[name] = weight.clone()", True), ("self.shadow[name] = weight.shape", False)],
    ids=["copied", "measured"],
)
def test_a_model_whose_weights_are_copied_one_by_one_before_prepare_is_moved_above_that(convert_text, kept, stays):
    _, result = convert_text(REGISTERED.format(kept=kept))

    assert ("model = nn.Linear(2, 1).to(device)" in result) is stays


@pytest.mark.parametrize("asked", ["next(model.parameters()).device", "model.weight.device"])
def test_a_model_whose_device_is_asked_for_above_prepare_is_moved_above_that(changed, asked):
    place = f"place = torch.zeros(2, device={asked})"
    changed(
        model=(f"model = nn.Linear(2, 1).cuda()\n{place}", f"model = nn.Linear(2, 1).to(accelerator.device)\n{place}")
    )


def test_a_model_whose_device_is_asked_for_below_prepare_is_moved_by_it(convert_text, programs):
    holes = {"model": "model = nn.Linear(2, 1).cuda()", "step": "place = model.weight.device"}
    _, result = convert_text(programs(holes)[0])

    assert "model = nn.Linear(2, 1)\n" in result


DRAWN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def main():
    model = made()
    {above}
    model = model.cuda()
    {below}
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()


def made():
    net = nn.Linear(2, 1)
    {inside}
    return net


def start(net):
    net.apply(draw)


def draw(layer):
    nn.init.ones_(layer.bias)
    nn.init.normal_(layer.weight)


def watched(net, seen):
    def add(layer):
        layer.register_forward_hook(lambda layer, given, made: seen.append(type(layer)))

    net.apply(add)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("where", "code", "stays"),
    [
        ("inside", "net.apply(draw)", False),
        ("above", "start(model)", False),
        ("below", "start(model)", True),
        ("below", "model.apply(draw)", True),
        ("below", "watched(model, [])", False),
        ("below", "model.apply(lambda layer: None)", False),
    ],
)
def test_a_model_whose_weights_are_drawn_below_the_move_is_moved_there(convert_text, where, code, stays):
    report, result = convert_text(DRAWN.format(**{**dict.fromkeys(("above", "below", "inside"), "pass"), where: code}))
    assert report.changes
    assert ("model = model.to(accelerator.device)" in result) is stays


MAIN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

import scoring


def train():
    model = nn.Linear(2, 1)
    model.cuda()
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
    return scoring.score(model)


if __name__ == "__main__":
    print(train())
"""
SCORING = """
import torch
from torch import nn


def score(net):
    return net(torch.ones(3, 2).cuda()).sum()


if __name__ == "__main__":
    net = nn.Linear(2, 1)
    net.cuda()
    print(score(net))
"""


def test_a_model_that_another_script_runs_when_it_is_the_program_is_moved_by_prepare(tmp_path):
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "scoring.py").write_text(SCORING)
    report = run([str(tmp_path)], Options(cache=False))
    (main,) = (change for change in report.changes if change.path.endswith("main.py"))
    assert b"model = nn.Linear(2, 1)\n    loader" in main.new
