"""Training programs put together from the ways in which people write each part of one: those of idioms.toml.

All of them train the same small problem, print a line for each number that matters, and run on a CPU: what they print
and write can be compared, converted and not, on one process and on two.
"""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import random

HEAD = """\
import argparse
import copy
import csv
import logging
import os
import sys
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
from tqdm import tqdm


class Rows(Dataset):
    def __init__(self, count, seed):
        made = np.random.RandomState(seed)
        self.x = made.randn(count, 6).astype("float32")
        self.y = (self.x.sum(1) > 0).astype("int64")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), int(self.y[i])


class Named(Rows):
    def __getitem__(self, i):
        x, y = super().__getitem__(i)
        return {"x": x, "y": y}


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, width), nn.ReLU())
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.body(x))


class AverageMeter:
    def __init__(self):
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        m.bias.data.fill_(0.01)


def set_seed(seed):
    torch.manual_seed(seed)
    np.random.seed(seed)


def get_device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--device", default=None)
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--resume", default="last.pt")
    return parser.parse_args()


"""
#: What every program has, in this order; the rest is in the ways.
WHOLE = {
    "objects": "<device>\n<data>\n<loaders>\n<model>\n<criterion>\n<optimizer>\n<scheduler>\n<precision>",
    "start": "<resume>\n<kept>",
    "train": "@model.train()\n<begin>\n<before an epoch>\n<loop>\n    <step of a batch>\n<show>",
    "step of a batch": "<open>\n<move>\n<before>\n<compute>\n<update>\n<after a batch>\n<add>",
    "end of epoch": "<tell>\n<rates>\n<after an epoch>\n<save>",
    "rates": 'print("lr", epoch, ["%.6f" % group["lr"] for group in @optimizer.param_groups])',
}
_HOLE = re.compile(r"^( *)<([a-z ]+)>\n", re.MULTILINE)


@dataclass(frozen=True)
class Made:
    """One program, which way of each part it takes, and what cannot be compared."""

    text: str
    ways: dict[str, int]
    tags: frozenset[str]


@cache
def parts() -> dict[str, list[dict]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def made(chance: random.Random) -> Made:
    """A program of ways that chance takes."""
    ways = {name: chance.randrange(len(each)) for name, each in parts().items()}
    taken = [parts()[name][number] for name, number in ways.items()]
    tags = frozenset(tag for way in taken for tag in way.get("tags", ()))
    holes = WHOLE | {hole: text for way in taken for hole, text in way.items() if hole != "tags"}
    body = f"{holes['program'].strip()}\n"
    while _HOLE.search(body):
        body = _HOLE.sub(lambda found: _indented(holes.get(found[2], ""), found[1]), body)
    return Made(HEAD + body.replace("@", "self." if "class" in tags else ""), ways, tags)


def _indented(text: str, depth: str) -> str:
    return textwrap.indent(f"{text.strip()}\n", depth) if text else ""
