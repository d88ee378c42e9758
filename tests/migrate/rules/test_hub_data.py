"""Data sets of the `datasets` library that are shuffled or split without a seed: alike on all processes, or told."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
from datasets import load_dataset
from torch import nn
from torch.utils.data import DataLoader

{made}
model = nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(rows.with_format("torch"), batch_size=8)
for batch in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(batch["x"]), batch["y"]).backward()
    optimizer.step()
"""
TABLE = 'table = load_dataset("imdb", split="train")\n'
STREAM = 'stream = load_dataset("imdb", streaming=True)\n'
SEED = "set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])\n"
UNSEEDED = {
    "split": TABLE + 'rows = table.train_test_split(0.1)["train"]',
    "under its own name": TABLE + 'table = table.train_test_split(test_size=0.1)\nrows = table["train"]',
    "shuffled": TABLE + "rows = table.shuffle()",
    "shuffled by no seed": TABLE + "rows = table.shuffle(seed=None)",
    "of a part": 'rows = load_dataset("imdb")["train"].map(len).shuffle().select(range(10))',
}
ALIKE = {
    "a seed": TABLE + "rows = table.shuffle(seed=1)",
    "a number": TABLE + "rows = table.shuffle(1)",
    "a split by a seed": TABLE + 'rows = table.train_test_split(0.1, seed=1)["train"]',
    "a split in order": TABLE + 'rows = table.train_test_split(0.1, shuffle=False)["train"]',
    "NumPy's seed": "import numpy\nnumpy.random.seed(1)\n" + TABLE + "rows = table.shuffle()",
    "a stream with a seed": STREAM + 'rows = stream["train"].shuffle(seed=1, buffer_size=9)',
    "another library's": "import deck\nrows = deck.load().shuffle()",
}


@pytest.mark.parametrize("name", UNSEEDED)
def test_nobody_seeds_it(convert_text, name):
    _, result = convert_text(PROGRAM.format(made=UNSEEDED[name]))

    assert SEED in result
    assert result.index("set_seed(broadcast") < result.index("rows =")


@pytest.mark.parametrize("name", ALIKE)
def test_it_is_alike_already(convert_text, name):
    report, result = convert_text(PROGRAM.format(made=ALIKE[name]))

    assert "set_seed" not in result
    assert not [note for note in report.of(Kind.NOTE) if note.code == "MIG123"]


def test_a_stream_without_a_seed_is_told(convert_text):
    """No seed that the program sets reaches it: it takes one from the system."""
    report, result = convert_text(PROGRAM.format(made=STREAM + 'rows = stream["train"].shuffle(buffer_size=9)'))

    (note,) = [note for note in report.of(Kind.NOTE) if note.code == "MIG123"]
    assert "data of its own" in note.message
    assert "seed=0" in note.hint
    assert "set_seed" not in result
