"""Data that a program with loaders chooses at random: alike on all processes."""

import pytest

PROGRAM = """
import random
import numpy as np
import torch
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
CHOSEN = {
    "random_split": "train, test = random_split(data, [24, 8])",
    "numpy": BY_INDEX.format("np.random.shuffle(chosen)"),
    "random": BY_INDEX.format("random.shuffle(chosen)"),
    "a permutation": BY_INDEX.format("chosen = torch.randperm(32).tolist()"),
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
}


@pytest.mark.parametrize("name", SEEDED)
def test_it_is_seeded_or_not_at_random(convert_text, name):
    split, seed = SEEDED[name]
    _, result = convert_text(program(split, seed))

    assert "set_seed" not in result


EACH = {
    "for a sample": {"each": "index = random.sample(range(32), 1)[0]"},
    "for a batch": {"batch": "x = x + 0.1 * x[torch.randperm(len(x))]"},
}


@pytest.mark.parametrize("name", EACH)
def test_what_is_drawn_for_each_is_not_seeded(convert_text, name):
    _, result = convert_text(program(SEEDED["not at random"][0], **EACH[name]))

    assert "set_seed" not in result


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


def test_a_function_of_the_name_that_an_option_switches(convert_text):
    seeds = OWN + "if args.seed is not None:\n    set_seed(args.seed)"
    _, result = convert_text(program(CHOSEN["numpy"], seeds))

    assert SEED.replace("set_", "runtime.set_").replace("broad", "runtime.broad") in result
    assert "import runtime\n" in result


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
