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


SET_SEED = """
import os
import time


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


set_seed(1)
"""
SEEDED_AGAIN = {
    "by the library": ("torch.manual_seed(42 + epoch)", "torch.randperm(8)"),
    "by a function of the project": ("set_seed(42 + epoch)", "torch.randperm(8)"),
    "on the same line": ("set_seed(42 + epoch); rows = rows[:]", "torch.randperm(8)"),
}
NOT_SEEDED_AGAIN = {
    "another stream": ("torch.manual_seed(42 + epoch)", "np.random.permutation(8)"),
    "by a clock": ("torch.manual_seed(int(time.time() * 1000))", "torch.randperm(8)"),
    "by the process": ("set_seed(42 + os.getpid())", "torch.randperm(8)"),
    "at times": ("if len(rows) > epoch + held_out:\n            set_seed(42)", "torch.randperm(8)"),
}


def seeded_again(seed, drawn, sample="pass"):
    late = program("rows[:8]", seed=SET_SEED, sample=sample).replace("rows[:8]", drawn)
    late = late.replace("        chosen =", f"        {seed}\n        chosen =")
    return late.replace("def main():", "def main(held_out=3):")


@pytest.mark.parametrize("name", SEEDED_AGAIN)
def test_what_is_drawn_below_a_seed_for_each_epoch_is_prepared(convert_text, name):
    _, result = convert_text(seeded_again(*SEEDED_AGAIN[name]))

    assert "held = accelerator.prepare(held)" in result


@pytest.mark.parametrize("name", NOT_SEEDED_AGAIN)
def test_what_another_seed_or_none_is_set_for_is_refused(refused_text, name):
    late = seeded_again(*NOT_SEEDED_AGAIN[name], sample="index = np.random.choice([index])")
    refused_text(late, "MIG104", "chosen =", ["drawn at random here"])


def test_a_seed_above_the_loop_that_trains_does_not_hold_for_its_second_round(refused_text):
    late = seeded_again("", "torch.randperm(8)").replace("    for epoch in", "    set_seed(3)\n    for epoch in")
    refused_text(late, "MIG104", "chosen =", ["drawn at random here"])


def test_a_seed_above_a_loop_that_goes_over_a_loader_does_not_hold_for_its_second_round(refused_text):
    late = seeded_again("", "torch.randperm(8)")
    held = late[late.index("        \n        chosen =") : late.index("\n\n\nmain()")]
    inner = held.replace("\n        ", "\n            ").replace(
        "        \n", "        set_seed(3)\n        for _ in range(2):\n", 1
    )
    refused_text(late.replace(held, inner), "MIG104", "chosen =", ["drawn at random here"])
