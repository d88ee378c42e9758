"""Data that a program with loaders makes up or chooses at random: alike on all processes."""

import pytest

PROGRAM = """
import random
import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import KFold, StratifiedShuffleSplit
from sklearn.utils import shuffle
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, SubsetRandomSampler, TensorDataset, random_split
{seed}


class Points(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        {each}
        return torch.ones(4) * index, torch.ones(1)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Points()
    {split}
    loader, tests = DataLoader(train, batch_size=4, shuffle=True), DataLoader(test, batch_size=4)
    model = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        {batch}
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
    wrong = 0.0
    model.eval()
    with torch.no_grad():
        for x, y in tests:
            wrong += (model(x.to(device)) - y.to(device)).abs().sum().item()
    print(wrong)


main()
"""
BY_INDEX = "chosen = list(range(32))\n    {}\n    train, test = Subset(data, chosen[:24]), Subset(data, chosen[24:])"
FOLDS = "chosen, rest = next(folds.split(data))\n    train, test = Subset(data, chosen), Subset(data, rest)"
ROWS = "rows = {}\n    train, test = TensorDataset(torch.tensor(rows.values), torch.tensor(rows.values)), data"
CHOSEN = {
    "random_split": "train, test = random_split(data, [24, 8])",
    "numpy": BY_INDEX.format("np.random.shuffle(chosen)"),
    "random": BY_INDEX.format("random.shuffle(chosen)"),
    "a permutation": BY_INDEX.format("chosen = torch.randperm(32).tolist()"),
    "scikit-learn": BY_INDEX.format("chosen = shuffle(chosen)"),
    "folds": "folds = KFold(4, shuffle=True)\n    " + FOLDS,
    "a stratified split": "folds = StratifiedShuffleSplit(1)\n    " + FOLDS,
    "rows of a frame": ROWS.format("pd.read_csv('rows.csv').dropna().sample(frac=1)"),
    "rows by their number": ROWS.format("pd.read_csv('rows.csv').sample(24)"),
}
SEED = "accelerator.num_processes > 1:\n        set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])\n"


def program(split, seed="", each="pass", batch="pass"):
    return PROGRAM.format(split=split, seed=seed, each=each, batch=batch)


@pytest.mark.parametrize("name", CHOSEN)
def test_nobody_seeds_it(convert_text, name):
    _, result = convert_text(program(CHOSEN[name]))

    assert SEED in result
    assert result.index("set_seed(broadcast") < result.index("train, test =")


SEEDED = {
    "all": (CHOSEN["random_split"], "torch.manual_seed(0)"),
    "its own generator": ("train, test = random_split(data, [24, 8], generator=torch.Generator().manual_seed(1))", ""),
    "not at random": ("train, test = Subset(data, range(24)), Subset(data, range(24, 32))", ""),
    "folds as they stand": (f"folds = KFold(4)\n    {FOLDS}", ""),
    "folds with a seed": (f"folds = KFold(4, shuffle=True, random_state=1)\n    {FOLDS}", ""),
    "rows with a seed": (ROWS.format("pd.read_csv('rows.csv').sample(frac=1, random_state=1)"), ""),
    "rows under NumPy's seed": (ROWS.format("pd.read_csv('rows.csv').sample(frac=1)"), "np.random.seed(0)"),
}


@pytest.mark.parametrize("name", SEEDED)
def test_it_is_seeded_or_not_at_random(convert_text, name):
    split, seed = SEEDED[name]
    _, result = convert_text(program(split, seed))

    assert "set_seed" not in result


UNDER_TEST = BY_INDEX.format("if len(data) > 9:\n        {}random.shuffle(chosen)")
ABOVE = {
    "a number": ("random.seed(1234)\n        ", False),
    "with a name between": ("random.seed(1234)\n        size = 3\n        ", False),
    "a number that is not written out": ("random.seed(len(data))\n        ", True),
    "something that is called in between": ("random.seed(1234)\n        data[0]\n        print(data)\n        ", True),
    "another library": ("np.random.seed(1234)\n        ", True),
}


@pytest.mark.parametrize("name", ABOVE)
def test_a_seed_right_above_a_draw_counts_under_any_condition(convert_text, name):
    above, is_seeded = ABOVE[name]
    _, result = convert_text(program(UNDER_TEST.format(above)))

    assert (SEED in result) is is_seeded


EACH = {
    "for a sample": {"each": "index = random.sample(range(32), 1)[0]"},
    "for a batch": {"batch": "x = x + 0.1 * x[torch.randperm(len(x))]"},
}


@pytest.mark.parametrize("name", EACH)
def test_what_is_drawn_for_each_is_not_seeded(convert_text, name):
    _, result = convert_text(program(SEEDED["not at random"][0], **EACH[name]))

    assert "set_seed" not in result


ANEW = "    def draw_anew(self):\n        self.rows = [np.random.randint(9) for _ in range(32)]\n\n    def __len__"


@pytest.mark.parametrize("told", ["data.draw_anew()", ""])
def test_what_a_data_set_draws_when_it_is_told_to(convert_text, told):
    split, _ = SEEDED["not at random"]
    source = program(f"{split}\n    {told}").replace("    def __len__", ANEW, 1)
    _, result = convert_text(source)

    assert (SEED in result) is bool(told)


def test_a_split_in_a_function_that_nobody_calls_is_not_seeded(convert_text):
    unused = "def unused(data):\n    np.random.shuffle(data)"
    _, result = convert_text(program(SEEDED["not at random"][0], unused))
    assert "set_seed" not in result

    _, result = convert_text(program(SEEDED["not at random"][0], unused + "\n\nchoose = unused"))
    assert SEED in result


def test_a_seed_for_another_library_stays(convert_text):
    _, result = convert_text(program(CHOSEN["numpy"], "torch.manual_seed(0)"))

    assert SEED in result
    assert "torch.manual_seed(0)" in result


OWN = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=None)
args = parser.parse_args()


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


"""


@pytest.mark.long
def test_a_function_of_the_name_that_an_option_switches(convert_text):
    seeds = OWN + "if args.seed is not None:\n    set_seed(args.seed)"
    _, result = convert_text(program(CHOSEN["numpy"], seeds))

    assert SEED.replace("set_", "runtime.set_").replace("broad", "runtime.broad") in result
    assert "import runtime\n" in result


def test_a_function_of_the_name_that_is_not_seen(convert_text):
    """What is imported below it would take its place."""
    seeds = OWN[: OWN.index("def set_seed")] + "from helpers import *\nif args.seed:\n    set_seed(args)"
    _, result = convert_text(program(CHOSEN["numpy"], seeds))

    assert SEED.replace("set_", "runtime.set_").replace("broad", "runtime.broad") in result
    assert "broadcast_object_list, set_seed" not in result


def test_a_function_of_the_name_that_always_seeds(convert_text):
    _, result = convert_text(program(CHOSEN["numpy"], OWN + "set_seed(0)"))

    assert "broadcast_object_list" not in result


def test_a_seed_by_the_clock_is_told(convert_text):
    report, result = convert_text(program(CHOSEN["numpy"], "import time\nnp.random.seed(int(time.time()))"))

    assert "set_seed" not in result
    assert any("np.random.shuffle, which is not seeded" in finding.message for finding in report.findings)


def test_weights_that_are_made_before_are_no_split(convert_text):
    _, result = convert_text(program(CHOSEN["random_split"], "probe = nn.Linear(2, 2)"))

    assert SEED in result


EPISODES = """
class Episodes(Dataset):
    def __init__(self):
        self.rows = [np.random.choice(100, 4, False) for _ in range(16)]

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.tensor(self.rows[index]).float(), torch.ones(1)
"""


def test_data_that_are_made_up_in_the_loop(convert_text):
    batch = "print(sum(model(a.to(device)).sum().item() for a, b in DataLoader(Episodes(), 4)))"
    _, result = convert_text(program(SEEDED["not at random"][0], EPISODES, batch=batch))

    assert SEED in result


def test_a_split_before_there_is_an_accelerator(refused_text):
    before = "halves = random_split(TensorDataset(torch.ones(32, 4), torch.ones(32, 1)), [24, 8])"
    refused_text(program("train, test = halves", before), "MIG123", "random_split(Tensor", ("draws something here",))


MADE_UP = """
import random
import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Points(Dataset):
    def __init__(self):
        self.x = {held}

    def __len__(self):
        return 32

    def __getitem__(self, index):
        return self.x[index] + {each}, self.x[index][:1]


def made(count):
    x = torch.randn(count, 4)
    return x, x @ torch.ones(4, 1)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    {lines}
    loader = DataLoader({data}, batch_size=4, shuffle=True)
    model = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
    print(model(torch.randn(2, 4, device=device)))


main()
"""


def made_up(lines="pass", data="TensorDataset(x, x[:, :1])", held="torch.ones(32, 4)", each="0"):
    return MADE_UP.format(lines=lines, data=data, held=held, each=each)


DRAWN = {
    "torch": made_up("x = torch.randn(32, 4)"),
    "numpy beside a seed of torch": made_up("torch.manual_seed(0)\n    x = torch.tensor(np.random.rand(32, 4))"),
    "in place": made_up("x = torch.empty(32, 4)\n    x.uniform_(-1, 1)"),
    "in a function": made_up("x, y = made(32)", "TensorDataset(x, y)"),
    "in the data set": made_up(data="Points()", held="torch.randn(32, 4)"),
    "one by one": made_up("rows = []\n    for _ in range(32):\n        rows.append([random.random()])", "rows"),
    "by sklearn": made_up("x = torch.tensor(make_moons(32)[0])"),
    "above the seed": made_up("x = torch.randn(32, 4)\n    torch.manual_seed(0)"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_made_up_is_the_same_on_all(convert_text, name):
    _, result = convert_text(DRAWN[name])

    assert SEED in result
    assert result.index("set_seed(broadcast") < result.index("DataLoader(", result.index("def main"))


NOT_DRAWN = {
    "for each sample": made_up(data="Points()", each="torch.randn(4)"),
    "nothing": made_up("x = torch.ones(32, 4)"),
    "after the seed": made_up("torch.manual_seed(0)\n    x = torch.randn(32, 4)"),
    "with a seed of its own": made_up("x = torch.tensor(make_moons(32, random_state=0)[0])"),
    "with a generator": made_up("x = torch.randn(32, 4, generator=torch.Generator().manual_seed(1))"),
    "by a seeded stream": made_up("x = torch.tensor(np.random.default_rng(0).normal(size=(32, 4)))"),
}


@pytest.mark.parametrize("name", NOT_DRAWN)
def test_what_is_not_made_up_needs_no_seed(convert_text, name):
    _, result = convert_text(NOT_DRAWN[name])

    assert "accelerator.backward" in result
    assert "set_seed" not in result


def test_a_stream_that_nobody_seeds_is_told(convert_text):
    rng = "rng = np.random.default_rng()\n    x = torch.tensor(rng.normal(size=(32, 4)))"
    report, result = convert_text(made_up(rng))

    assert "set_seed" not in result
    (note,) = [finding for finding in report.findings if finding.code == "MIG123"]
    assert "np.random.default_rng, which is not seeded" in note.message


def test_a_stream_beside_the_split_does_not_matter(convert_text):
    report, result = convert_text(program(CHOSEN["random_split"], each="np.random.RandomState(None).rand()"))

    assert SEED in result
    assert not [finding for finding in report.findings if finding.code == "MIG123"]


def test_what_is_made_up_before_there_is_an_accelerator_is_told(convert_text):
    before = "\n\ndata = [torch.randn(4) for _ in range(32)]\n\n\ndef main"
    report, result = convert_text(made_up("pass", "data").replace("\n\ndef main", before))

    assert "accelerator.backward" in result
    assert "set_seed" not in result
    (note,) = [finding for finding in report.findings if finding.code == "MIG123"]
    assert "each process has data of its own by torch.randn" in note.message


MAYBE_SEEDED = """
import argparse
{imports}
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
if args.seed is None:
    args.seed = random.randint(1, 1000)
{seed}


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.ones(32, 2), torch.ones(32, 1))
    chosen = list(range(32))
    {shuffle}
    loader = DataLoader(Subset(data, chosen[:24]), batch_size=4, shuffle=True)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""
NUMPY_STATE = "np.random.set_state(broadcast_object_list([np.random.get_state()])[0])"
OWN_SEEDS = {
    "numpy": (
        "import random\nimport numpy as np",
        "np.random.seed(args.seed)",
        "np.random.shuffle(chosen)",
        NUMPY_STATE,
    ),
    "python": (
        "import random",
        "random.seed(args.seed)",
        "random.shuffle(chosen)",
        "random.setstate(broadcast_object_list([random.getstate()])[0])",
    ),
}


@pytest.mark.parametrize("name", OWN_SEEDS)
def test_what_the_program_has_seeded_goes_on_where_the_main_process_is(convert_text, name):
    imports, seed, shuffle, expected = OWN_SEEDS[name]
    _, result = convert_text(MAYBE_SEEDED.format(imports=imports, seed=seed, shuffle=shuffle))

    first = "        torch.manual_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])\n"
    assert f"    if accelerator.num_processes > 1:\n{first}" in result
    assert f"        {expected}\n" in result
    assert ("random.seed(torch.initial_seed() % 2**32)" in result) == (name == "numpy")
    assert " set_seed" not in result


def test_a_library_without_a_name_is_seeded_with_all_others(convert_text):
    seed, shuffle = (
        "random.seed(args.seed)",
        "__import__('numpy')\n    from numpy.random import shuffle\n    shuffle(chosen)",
    )
    _, result = convert_text(MAYBE_SEEDED.format(imports="import random", seed=seed, shuffle=shuffle))

    assert SEED.partition("\n")[2] in result


FEATURES = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

SEED
data = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))


def features_of(loader, encoder):
    features, targets = [], []
    for x, y in loader:
        features.extend(encoder(x).detach().numpy())
        targets.append(y)
    return torch.tensor(features), torch.cat(targets)


def main():
    encoder = torch.load("encoder.pt")
    loader = DataLoader(data, batch_size=8ORDER)
    features, targets = features_of(loader, encoder)
    train = DataLoader(TensorDataset(features, targets), batch_size=8, shuffle=True)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in train:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""


@pytest.mark.parametrize("order", [", shuffle=True", ", sampler=RandomSampler(data)"])
def test_features_of_shuffled_data_are_in_one_order_on_all_processes(convert_text, order):
    """Of two orders each process would be dealt some samples that the other has, too, and miss others."""
    _, result = convert_text(FEATURES.replace("ORDER", order).replace("SEED", "").lstrip())

    assert SEED in result
    assert result.index("set_seed(broadcast") < result.index("= features_of(loader, encoder)")


ORDERED = {
    "in the order of the data": ("", ""),
    "a generator of its own": (", shuffle=True, generator=torch.Generator().manual_seed(1)", ""),
    "seeded": (", shuffle=True", "torch.manual_seed(0)"),
}


@pytest.mark.parametrize("name", ORDERED)
def test_features_that_are_in_one_order_already(convert_text, name):
    order, seed = ORDERED[name]
    _, result = convert_text(FEATURES.replace("ORDER", order).replace("SEED", seed).lstrip())

    assert "accelerator.backward(loss)" in result
    assert "broadcast_object_list" not in result
