"""A loop that trains and evaluates by turns, on loaders that one place makes: what fills up a batch would count."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--split", default="train")
args = parser.parse_args()
splits = ["train", "val"]
{loaders}
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for {turn}:
        total = 0
        for x, y in {loader}:
            loss = nn.functional.mse_loss(model(x), y)
            if split == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
        print(split, total)
"""
MADE = "DataLoader(TensorDataset(torch.zeros(13, 4), torch.zeros(13, 1)), batch_size=4)"
FILLED = f"loaders = []\nfor split in splits:\n    loaders.append({MADE})"
TURNS = {
    "a list that is filled": (FILLED, "split, loader in zip(splits, loaders)", "loader"),
    "a list at once": (f"loaders = [{MADE} for split in splits]", "split, loader in zip(splits, loaders)", "loader"),
    "by their numbers": (FILLED, "i, split in enumerate(splits)", "loaders[i]"),
}


@pytest.mark.parametrize("name", TURNS)
def test_a_list_of_loaders_is_not_trained_and_evaluated_on_in_one_loop(convert_text, name):
    loaders, turn, loader = TURNS[name]
    report, result = convert_text(SOURCE.format(loaders=loaders, turn=turn, loader=loader))

    assert "accelerator" not in result
    assert any("trains or evaluates by turns" in f.message for f in report.of(Kind.LEFT))


def test_one_loader_that_an_option_trains_on_is_converted(convert_text):
    report, result = convert_text(SOURCE.format(loaders=f"one = {MADE}", turn="split in [args.split]", loader="one"))

    assert not report.of(Kind.LEFT)
    assert "accelerator.backward(loss)" in result


@pytest.mark.parametrize("name", ["a list that is filled", "a list at once"])
def test_loops_of_their_own_are_converted(convert_text, name):
    source = SOURCE.format(loaders=TURNS[name][0], turn="split in [0]", loader="loaders[0]")
    source = source.replace('if split == "train"', "if True")
    source += "    with torch.no_grad():\n        for x, y in loaders[1]:\n            print(model(x).sum())\n"
    report, result = convert_text(source)

    assert not report.of(Kind.LEFT)
    assert "accelerator.prepare(" in result
