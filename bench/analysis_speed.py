"""What understanding a whole project costs, next to parsing it.

    python bench/analysis_speed.py                       synthetic projects of 250 to 2,000 files
    python bench/analysis_speed.py --rounds 9 ~/src/*    every folder as a project of its own, then the synthetic ones

Every variant runs on a project in turn, in a shuffled order, so that other load on the machine meets all; times are CPU
time of this process. bench/README.md says what the figures mean.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate.analysis import analyse
from migrate.pipeline import deep_stack
from migrate.programs.loops import Loops
from migrate.programs.program import programs
from migrate.source.project import Project, SourceFile

Work = Callable[[], object]
PARSE, ANALYSE, UNDERSTAND = "ast.parse", "analyse", "analyse, loops, programs"


@dataclass(frozen=True, slots=True)
class Subject:
    """A project with what is measured on it."""

    name: str
    files: int
    lines: int
    variants: dict[str, Work]


def subject(name: str, folder: Path) -> Subject | None:
    """None for a folder without a file that Python can parse."""
    contents = {path: path.read_bytes() for path in sorted(folder.rglob("*.py")) if path.is_file()}
    contents = {path: content for path, content in contents.items() if parses(content)}
    if not contents:
        return None

    def files() -> list[SourceFile]:
        return [SourceFile(str(path), content, real=path.resolve(), found=True) for path, content in contents.items()]

    variants: dict[str, Work] = {
        PARSE: lambda: [ast.parse(content) for content in contents.values()],
        ANALYSE: lambda: analyse(Project(files())),
        UNDERSTAND: lambda: understood(Project(files())),
    }
    return Subject(name, len(contents), sum(content.count(b"\n") for content in contents.values()), variants)


def understood(project: Project) -> object:
    """All that is known before a rule is asked."""
    facts = analyse(project)
    loops = Loops(facts)
    return programs(facts, loops), loops.evaluation


def parses(content: bytes) -> bool:
    try:
        ast.parse(content)
    except (SyntaxError, ValueError):
        return False
    return True


def seconds(work: Work) -> float:
    """CPU time of one run, which keeps what it makes; what was there before is no matter of the garbage collector's."""
    gc.collect()
    gc.freeze()
    start = time.process_time()
    kept = work()
    used = time.process_time() - start
    del kept
    gc.unfreeze()
    return used


def measured(one: Subject, rounds: int, shuffled: random.Random) -> dict[str, list[float]]:
    """Variant -> seconds in each round."""
    found: dict[str, list[float]] = {name: [] for name in one.variants}
    for _ in range(rounds):
        names = list(one.variants)
        shuffled.shuffle(names)
        for name in names:
            found[name].append(seconds(one.variants[name]))
    return found


def show(rows: Sequence[tuple[str, int, int, dict[str, list[float]]]]) -> None:
    """One line a project: sizes, milliseconds, ratios to parsing (medians over the rounds)."""
    print(f"\n{'':44}{'files':>6}{'lines':>8}{'parse ms':>10}{'analyse':>9}{'+ loops, programs':>19}")
    for name, files, lines, times in rows:
        ratios = [
            statistics.median(a / b for a, b in zip(times[variant], times[PARSE], strict=True))
            for variant in (ANALYSE, UNDERSTAND)
        ]
        parse = statistics.median(times[PARSE]) * 1e3
        print(f"{name[:43]:44}{files:6}{lines:8}{parse:10.1f}{ratios[0]:9.2f}{ratios[1]:19.2f}")


def total(rows: Sequence[tuple[str, int, int, dict[str, list[float]]]]) -> dict[str, list[float]]:
    """The times of all projects together, round by round."""
    return {
        variant: [sum(values) for values in zip(*(times[variant] for *_, times in rows), strict=True)]
        for variant in (PARSE, ANALYSE, UNDERSTAND)
    }


# --- synthetic projects ---------------------------------------------------------------------------------------------

MODEL = '''"""A model."""
import torch
from torch import nn
import torch.nn.functional as F
from ..common.blocks import Block


class Net{i}(nn.Module):
    """Some layers."""

    def __init__(self, width={w}, classes=10, dropout=0.1):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.ModuleList([Block(width, width * 2 ** k) for k in range(3)])
        self.head = nn.Linear(width * 4, classes)
        self.classes = classes

    def features(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return x.mean(dim=(2, 3))

    def forward(self, x):
        h = self.features(x)
        if h.shape[-1] != self.head.in_features:
            raise ValueError("width %d" % h.shape[-1])
        return F.log_softmax(self.head(h), dim=-1)


def net{i}(pretrained=False, **kwargs):
    model = Net{i}(**kwargs)
    if pretrained:
        model.load_state_dict(torch.load("net{i}.pt"))
    return model
'''

BLOCKS = """from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return nn.functional.relu(self.norm(self.conv(x)))
"""

DATA = """import os
import random

import numpy as np
import torch
from torch.utils.data import Dataset, DataLoader


class Images{i}(Dataset):
    def __init__(self, root, train=True, transform=None):
        self.root = root
        self.transform = transform
        self.names = sorted(os.listdir(os.path.join(root, "train" if train else "val")))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        array = np.load(os.path.join(self.root, self.names[index]))
        x = torch.from_numpy(array["x"]).float()
        if self.transform is not None and random.random() < 0.5:
            x = self.transform(x)
        return x, int(array["y"])


def loaders{i}(root, batch_size, workers={w}):
    train = DataLoader(Images{i}(root), batch_size=batch_size, shuffle=True, num_workers=workers)
    val = DataLoader(Images{i}(root, train=False), batch_size=batch_size, num_workers=workers)
    return train, val
"""

PLAIN = '''"""Nothing to do with training: strings, paths, tables."""
import collections
import json
import os


class Table{i}:
    def __init__(self, rows):
        self.rows = [dict(row) for row in rows]
        self.index = collections.defaultdict(list)
        for number, row in enumerate(self.rows):
            for key, value in row.items():
                self.index[key, value].append(number)

    def find(self, **wanted):
        found = None
        for key, value in wanted.items():
            here = set(self.index[key, value])
            found = here if found is None else found & here
        return [self.rows[number] for number in sorted(found or ())]

    def to_json(self, path):
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            os.makedirs(folder)
        with open(path, "w") as file:
            json.dump(self.rows, file, indent={w})


def parse_line{i}(line, separator=","):
    parts = [part.strip() for part in line.split(separator)]
    return {{name: value for name, value in zip("abc", parts) if value}}
'''

TRAIN = """import argparse

import torch
from torch import nn, optim

from project.common.engine import evaluate, train_epoch
from project.data.data{d} import loaders{d}
from project.models.model{m} import net{m}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default={w})
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    args.device = torch.device("cuda" if torch.cuda.is_available() and not args.no_cuda else "cpu")
    model = net{m}().to(args.device)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    train, val = loaders{d}("data", 64)
    best = 0.0
    for epoch in range(args.epochs):
        loss = train_epoch(model, train, optimizer, nn.NLLLoss(), args.device)
        accuracy = evaluate(model, val, args.device)
        scheduler.step()
        print(epoch, loss, accuracy)
        if accuracy > best:
            best = accuracy
            torch.save(model.state_dict(), "best{i}.pt")


if __name__ == "__main__":
    main()
"""

ENGINE = """import torch


def train_epoch(model, loader, optimizer, criterion, device):
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)
"""

#: Of ten files: three models, two data sets, four without PyTorch, one script.
KINDS = (("models/model", MODEL),) * 3 + (("data/data", DATA),) * 2 + (("tables/table", PLAIN),) * 4


def write_project(folder: Path, size: int) -> None:
    """A project of that many files: packages of models, data and plain code, scripts that train through an engine."""
    package = folder / "project"
    for name in ("", "models", "data", "tables", "common"):
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "__init__.py").touch()
    (package / "common" / "blocks.py").write_text(BLOCKS)
    (package / "common" / "engine.py").write_text(ENGINE)
    (folder / "pyproject.toml").touch()
    for number in range(size - 7):
        tens, kind = divmod(number, 10)
        if kind < len(KINDS):
            name, text = KINDS[kind]
            path = package / f"{name}{tens * 10 + kind}.py"
            path.write_text(text.format(i=tens * 10 + kind, w=kind + 2))
        else:
            text = TRAIN.format(i=number, m=tens * 10, d=tens * 10 + 3, w=kind)
            (folder / f"train{number}.py").write_text(text)


def synthetic(sizes: Sequence[int]) -> Iterator[Subject]:
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_project(Path(folder), size)
            one = subject(f"synthetic project of {size} files", Path(folder))
            assert one is not None
            yield one


def main() -> None:
    warnings.simplefilter("ignore", SyntaxWarning)  # about the files, not about us
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="projects")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=[250, 500, 1000, 2000], help="of synthetic projects")
    asked = parser.parse_args()
    shuffled = random.Random(0)  # noqa: S311 - the same order in every run of the benchmark
    print(f"{asked.rounds} rounds, CPU time, medians; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with deep_stack():
        found = [one for folder in asked.folders if (one := subject(folder.name, folder)) is not None]
        rows = [(one.name, one.files, one.lines, measured(one, asked.rounds, shuffled)) for one in found]
        if rows:
            rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows), total(rows)))
        made = [
            (one.name, one.files, one.lines, measured(one, asked.rounds, shuffled)) for one in synthetic(asked.sizes)
        ]
    show([*rows, *made])


if __name__ == "__main__":
    main()
