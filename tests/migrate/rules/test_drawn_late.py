"""Data that are drawn after a training: alike where no process is ahead of another in the stream they come from."""

import pytest

PROGRAM = """
import random
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

{seed}


class Points(Dataset):
    transform = None

    def __len__(self):
        return 32

    def __getitem__(self, index):
        {sample}
        return torch.ones(4) * index, torch.ones(1)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Points(), batch_size=4, shuffle=True)
    rows = list(range(32))
    for epoch in range(3):
        model.train()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            {batch}
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        chosen = {chosen}
        held = DataLoader(TensorDataset(torch.ones(8, 4) * chosen[0]), batch_size=4)
        model.eval()
        with torch.no_grad():
            for (x,) in held:
                print(model(x.to(device)).sum().item())


main()
"""
SEED = "random.seed(1)\nnp.random.seed(1)\ntorch.manual_seed(1)"
LATE = {"random": "random.sample(rows, 8)", "numpy": "np.random.permutation(8)"}
REFUSED = {
    "another stream": {"chosen": "torch.randperm(8)"},
    "for each sample": {"chosen": LATE["random"], "sample": "index = random.choice([index])"},
    "for each batch": {"chosen": LATE["numpy"], "batch": "x = x * np.random.rand()"},
    "by what a data set was given": {"chosen": LATE["random"], "sample": "index = self.transform(index)"},
    "not seeded": {"chosen": LATE["random"], "seed": "torch.manual_seed(1)"},
}


def program(chosen, seed=SEED, sample="pass", batch="pass"):
    return PROGRAM.format(chosen=chosen, seed=seed, sample=sample, batch=batch)


@pytest.mark.parametrize("name", LATE)
def test_what_all_draw_alike_is_prepared(convert_text, name):
    _, result = convert_text(program(LATE[name]))

    assert "held = accelerator.prepare(held)" in result


@pytest.mark.parametrize("sample", ["index = np.random.choice([index])", "index = sum([np.int64(index)])"])
def test_another_stream_for_each_sample_is_no_matter(convert_text, sample):
    _, result = convert_text(program(LATE["random"], sample=sample))

    assert "held = accelerator.prepare(held)" in result


@pytest.mark.parametrize("name", REFUSED)
def test_what_each_may_draw_for_itself_is_refused(refused_text, name):
    refused_text(program(**REFUSED[name]), "MIG104", "chosen =", ["drawn at random here"])


PICK = """
def pick(rows, held):
    if held:
        {first}
        {then}
    return rows[:8]
"""


@pytest.mark.parametrize("stream", ["random", "np.random"])
def test_what_a_function_draws_below_its_own_seed_is_prepared(convert_text, stream):
    pick = PICK.format(first=f"{stream}.seed(1337)", then=f"{stream}.shuffle(rows)")
    _, result = convert_text(program("pick(rows, True)", seed=pick))

    assert "held = accelerator.prepare(held)" in result


def test_what_a_function_draws_above_its_seed_is_refused(refused_text):
    pick = PICK.format(first="random.shuffle(rows)", then="random.seed(1337)")
    refused_text(program("pick(rows, True)", seed=pick), "MIG104", "random.shuffle(rows)", ["drawn at random here"])
