"""MIG123: one seed for all processes. Which decisions it makes alike stands in test_without_loader.py."""

import pytest

from migrate.options import Target

PROGRAM = """
import random
import torch
from torch import nn, optim
{seed}
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
{made}
while {test}:
    loss = (model({given}) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HOLES = {"seed": "", "made": "", "test": "random.random() < 0.9", "given": "torch.ones(4, 2)"}
ALIKE = "set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])"


def source(**holes):
    return PROGRAM.format(**{**HOLES, **holes}).lstrip()


def test_processes_take_the_seed_of_the_first(convert_text):
    _, result = convert_text(source())

    assert f"if accelerator.num_processes > 1:\n    {ALIKE}\n" in result
    assert result.index(ALIKE) < result.index("while random")


def test_for_accelerate_its_names_come_from_its_utilities(convert_text):
    _, result = convert_text(source(), target=Target.ACCELERATE)

    assert "from accelerate.utils import broadcast_object_list, set_seed\n" in result


RUNS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split


class Trainer:
    def __init__(self, data):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.data = data

    def train(self):
        part, rest = random_split(self.data, [48, 16])
        loader = DataLoader(part, batch_size=8, shuffle=True)
        model = nn.Linear(4, 1).to(self.device)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.to(self.device)), y.to(self.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model


data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
trainer = Trainer(data)
{}
"""
ANEW = "set_seed(broadcast_object_list([torch.randint(2**32, ()).item()])[0])"
SEVERAL = {
    "a loop": "for fold in range(3):\n    trainer.train()",
    "a comprehension": "models = [trainer.train() for fold in range(3)]",
    "several calls": "trainer.train()\nother = trainer.train()",
    "a function in a loop": "def run():\n    trainer.train()\n\n\nfor fold in range(3):\n    run()",
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_runs_take_a_seed_each(convert_text, name):
    """With the one that torch has, they would all begin with the same model, and go on with the same data."""
    _, result = convert_text(RUNS.format(SEVERAL[name]))

    assert ANEW in result
    assert ALIKE not in result


def test_one_run_takes_the_seed_that_there_is(convert_text):
    _, result = convert_text(RUNS.format("trainer.train()"))

    assert ALIKE in result


SEEDED = "random.seed(1)\ntorch.manual_seed(1)"
NOT_SEEDED = {
    "it seeds itself": {"seed": SEEDED},
    "fresh batches only": {"made": "step = 0", "test": "(step := step + 1) < 9", "given": "torch.rand(4, 2)"},
    "nothing is drawn": {"made": "step = 0", "test": "(step := step + 1) < 9"},
}


@pytest.mark.parametrize("name", NOT_SEEDED)
def test_not_where_nothing_asks_for_it(convert_text, name):
    _, result = convert_text(source(**NOT_SEEDED[name]))

    assert "accelerator.backward(loss)" in result
    assert "broadcast_object_list" not in result


def test_refused_where_something_lasting_is_drawn_before(refused_text):
    made = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"
    body = source(made=made, given="noise").partition("model =")
    inside = "".join(f"    {line}\n" for line in (body[1] + body[2]).splitlines())
    text = f"{body[0]}noise = torch.rand(4, 2)\ndef main():\n{inside}\nmain()\n"

    refused_text(text, "MIG123", "noise = torch.rand", ["draws something here"])


def drawn_above(line):
    made = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"
    body = source(made=made).partition("model =")
    inside = "".join(f"    {line}\n" for line in (body[1] + body[2]).splitlines())
    return f"{body[0]}{line}\ndef main():\n{inside}\nmain()\n"


LAYERS = [
    "nn.Tanh()",
    "nn.AdaptiveAvgPool2d(1)",
    "nn.Sequential(nn.ReLU(), nn.Flatten())",
]


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_without_weights_draw_nothing(convert_text, layer):
    _, result = convert_text(drawn_above(f"layer = {layer}"))

    assert f"    {ALIKE}\n" in result


@pytest.mark.parametrize("made", ["preprocessing.StandardScaler()", "metrics.f1_score([1], [1])"])
def test_what_of_sklearn_only_computes_draws_nothing(convert_text, made):
    _, result = convert_text(f"from sklearn import metrics, preprocessing\n{drawn_above(f'scaled = {made}')}")

    assert f"    {ALIKE}\n" in result


@pytest.mark.parametrize("made", ["cluster.KMeans(2)", "metrics.silhouette_score([[1]], [1], sample_size=1)"])
def test_what_of_it_draws_does(refused_text, made):
    text = f"from sklearn import cluster, metrics\n{drawn_above(f'drawn = {made}')}"
    refused_text(text, "MIG123", "drawn =", ["draws something here"])


@pytest.mark.parametrize("layer", ["nn.Linear(2, 2)", "nn.Sequential(nn.Tanh(), nn.Linear(2, 2))"])
def test_layers_with_weights_do(refused_text, layer):
    text = drawn_above(f"layer = {layer}").replace("optimizer.step()", "optimizer.step()\n        layer(torch.ones(2))")
    refused_text(text, "MIG123", "layer =", ["draws something here"])


AGENT = """
import random
import sys
import torch
from torch import nn, optim


class Agent:
    def __init__(self, config):
        self.config = config
        self.net = nn.Linear(2, 2)
        self.target = nn.Linear(2, 2)
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)
        {flag}
        self.device = torch.device("cuda" if self.cuda else "cpu")
        self.net.to(self.device)
        self.target.to(self.device)
        self.losses = open("losses.txt", "a")

    def follow(self):
        self.target.load_state_dict(self.net.state_dict())

    def train(self):
        while random.random() < 0.9:
            x = torch.ones(4, 2, device=self.device)
            loss = (self.net(x) - self.target(x)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.write(str(loss.item()))

    def finish(self):
        torch.save(self.net.state_dict(), "net.pt")
        self.losses.close()


agent = globals()[sys.argv[1]](options)
for step in range(3):
    agent.train()
    agent.follow()
agent.finish()
"""


@pytest.mark.parametrize(
    ("flag", "cpu"),
    [
        ("self.cuda = torch.cuda.is_available() and self.config.cuda", "not self.config.cuda"),
        ("self.there = torch.cuda.is_available()\n        self.cuda = self.there & config.cuda", "not config.cuda"),
    ],
)
def test_the_flag_behind_a_flag_that_is_set_below_the_first_draw(convert_text, flag, cpu):
    _, result = convert_text(AGENT.format(flag=flag))

    made = result.index(f"self.accelerator = Accelerator(cpu={cpu})")
    assert made < result.index("self.net = nn.Linear")
    assert ("self.config" in cpu) == (result.index("self.config = config") < made)
    assert ALIKE in result


def test_two_flags_that_are_set_below_the_first_draw(refused_text):
    text = AGENT.format(flag="self.cuda = self.config.cuda & torch.cuda.is_available() & self.config.fast")

    refused_text(text, "MIG123", "self.net = nn.Linear", ["draws something here"])


def test_methods_beside_one_that_trains_are_of_the_program_though_nobody_is_seen_to_call_them(convert_text):
    flag = "self.cuda = torch.cuda.is_available() and self.config.cuda"
    _, result = convert_text(AGENT.format(flag=flag))

    assert "self.target.load_state_dict(self.accelerator.unwrap_model(self.net).state_dict())" in result
    assert 'self.accelerator.save(self.accelerator.unwrap_model(self.net).state_dict(), "net.pt")' in result


CHOSEN = """
import numpy as np
import torch
from torch import nn, optim

{seed}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Solver:
    def __init__(self, rows):
        self.rows = torch.tensor(rows).float().to(device)
        self.net = nn.Linear(2, 1).to(device)
        self.start = nn.Linear(2, 1).to(device)
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)

    def train(self):
        for _ in range(9):
            loss = (self.net(self.rows) - self.start(self.rows)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


{first}
solver = Solver({rows})
solver.train()
{again}
"""
DRAWN = "np.random.rand(8, 2)"


def test_what_is_drawn_from_a_stream_that_is_seeded_is_alike_already(convert_text):
    _, result = convert_text(CHOSEN.format(seed="np.random.seed(1)", first=f"rows = {DRAWN}", rows="rows", again=""))

    assert ALIKE in result


def test_an_object_that_is_made_once_more_finds_the_seed_of_the_first(convert_text):
    _, result = convert_text(CHOSEN.format(seed="", first="", rows="[[1, 2]]", again="Solver([[2, 3]]).train()"))

    assert ANEW in result


@pytest.mark.parametrize("seed", ["", "torch.manual_seed(1)"])
def test_what_is_drawn_from_a_stream_that_is_not_seeded_comes_too_early(refused_text, seed):
    text = CHOSEN.format(seed=seed, first=f"rows = {DRAWN}", rows="rows", again="").lstrip()

    refused_text(text, "MIG123", "rows = np", ["draws something here"])


SHUFFLED = "rows = np.loadtxt('rows.csv')\nfolds = list(KFold(4, {}).split(rows))"
WITH_NUMPY = (
    "import numpy as np\nfrom scipy import stats\nfrom sklearn.model_selection import KFold\ntorch.manual_seed(0)"
)
NOT_CHANCE = {
    "folds with a seed of their own": SHUFFLED.format("shuffle=True, random_state=42"),
    "statistics": "rows = stats.zscore(np.loadtxt('rows.csv'))",
}
OF_CHANCE = {
    "folds": SHUFFLED.format("shuffle=True"),
    "folds with none": SHUFFLED.format("shuffle=True, random_state=None"),
    "folds with a seed by the clock": f"import time\n{SHUFFLED.format('shuffle=True, random_state=int(time.time())')}",
    "a distribution": "rows = stats.norm.rvs(size=4)",
}


@pytest.mark.parametrize("name", [*NOT_CHANCE, *OF_CHANCE])
def test_what_has_a_seed_of_its_own_or_only_describes_draws_nothing(convert_text, name):
    made = {**NOT_CHANCE, **OF_CHANCE}[name]
    report, result = convert_text(source(seed=WITH_NUMPY, made=made, test="float(model.weight.sum()) < 3"))

    is_left = any(finding.code == "MIG122" for finding in report.findings)
    assert (is_left or ALIKE in result) is (name in OF_CHANCE)
