"""What is made once and kept in a file: the main process makes it, and the others find it done."""

import re

import pytest

PROGRAM = """
import glob
import os
import pickle
import random

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, TensorDataset


{load}

def train(dataset, model):
    loader = DataLoader(dataset, shuffle=True, batch_size=4)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


def main(overwrite=False):
    model = nn.Linear(2, 1)
    {made}
    train(dataset, model)


if __name__ == "__main__":
    main()
"""
FIRST = "    with accelerator.main_process_first():\n"
LOAD = """
def load(path, overwrite):
    if os.path.exists(path) and not overwrite:
        x = torch.load(path)
    else:
        x = torch.ones(24, 2)
        torch.save(x, path)
    return TensorDataset(x, x.sum(dim=1, keepdim=True))
"""
DATA = """
class Data(Dataset):
    def __init__(self, path):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                self.rows = pickle.load(file)
        else:
            self.rows = [(torch.ones(2), torch.ones(1))] * 24
            with open(path, "wb") as file:
                pickle.dump(self.rows, file)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]
"""
CALL = "dataset = load('data.pt', overwrite)"
WORDS = """
from pathlib import Path

from tokenizers import Tokenizer, models


def load(path, overwrite):
    if not Path.exists(path):
        words = Tokenizer(models.WordLevel())
        words.save(path)
    else:
        words = Tokenizer.from_file(path)
    x = torch.ones(24, words.get_vocab_size())
    return TensorDataset(x, x.sum(dim=1, keepdim=True))
"""
FETCH = """
import zipfile
from urllib import request

URL = "https://example.org/rows.pt"

def load(path, overwrite):
    if not os.path.exists(path):
        request.urlretrieve(URL, path)
    return TensorDataset(torch.load(path), torch.ones(24, 1))
"""
WRITTEN = """with request.urlopen(URL) as answer:
            with open(path, "wb") as file:
                file.write(answer.read())"""
FOUND = {
    "a tokenizer": (
        WORDS,
        "dataset = load(Path('words.json'), overwrite)",
        FIRST + "        if not Path.exists(path):\n            words = Tokenizer(models.WordLevel())\n"
        "            if accelerator.is_main_process:\n                words.save(path)\n",
    ),
    "one of both": (LOAD, CALL, FIRST + "        if os.path.exists(path) and not overwrite:\n"),
    "the other way round": (
        LOAD.replace(
            """\
    if os.path.exists(path) and not overwrite:
        x = torch.load(path)
    else:
        x = torch.ones(24, 2)
        torch.save(x, path)
""",
            """\
    if overwrite or not os.path.exists(path):
        x = torch.ones(24, 2)
        torch.save(x, path)
    else:
        x = torch.load(path)
""",
        ),
        CALL,
        FIRST + "        if overwrite or not os.path.exists(path):\n",
    ),
    "it is given back": (
        """
def load(path, overwrite):
    if os.path.exists(path):
        return torch.load(path, weights_only=False)
    x = torch.ones(24, 2)
    data = TensorDataset(x, x.sum(dim=1, keepdim=True))
    torch.save(data, path)
    print("made")
    return data
""",
        CALL,
        FIRST + "        if os.path.exists(path):\n            return torch.load(path, weights_only=False)\n",
    ),
    "it is tried": (
        """
def load(path, overwrite):
    try:
        x = torch.load(path)
    except FileNotFoundError:
        x = torch.ones(24, 2)
        torch.save(x, path)
    return TensorDataset(x, x.sum(dim=1, keepdim=True))
""",
        CALL,
        FIRST + "        try:\n            x = torch.load(path)\n",
    ),
    "it is tried by functions": (
        """
def read(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def keep(x, path):
    with open(path, "wb") as file:
        pickle.dump(x, file)


def load(path, overwrite):
    try:
        x = read(path)
    except (OSError, EOFError):
        x = torch.ones(24, 2)
        keep(x, path)
    return TensorDataset(x, x.sum(dim=1, keepdim=True))
""",
        CALL,
        FIRST + "        try:\n            x = read(path)\n",
    ),
    "a function writes it": (
        "def keep(x, path):\n    torch.save(x, path)\n\n" + LOAD.replace("torch.save(x, path)", "keep(x, path)"),
        CALL,
        FIRST + "        if os.path.exists(path) and not overwrite:\n",
    ),
    "files in a folder": (
        """
def load(path, overwrite):
    rows = path + "/rows.pt"
    if os.path.exists(path):
        x = torch.load(rows)
    else:
        x = torch.ones(24, 2)
        os.makedirs(path)
        torch.save(x, rows)
    return TensorDataset(x, x.sum(dim=1, keepdim=True))
""",
        CALL,
        FIRST + "        if os.path.exists(path):\n            x = torch.load(rows)\n",
    ),
    "a download": (
        FETCH,
        CALL,
        FIRST + "        dataset = load('data.pt', overwrite)\n",
    ),
    "a download that a function of the project asks for": (
        "def is_there(path):\n    'Whether there is a file.'\n    return os.path.isfile(path)\n"
        + FETCH.replace("os.path.exists(path)", "is_there(path)"),
        CALL,
        FIRST + "        dataset = load('data.pt', overwrite)\n",
    ),
    "a download that is written": (
        FETCH.replace("request.urlretrieve(URL, path)", WRITTEN),
        CALL,
        FIRST + "        if not os.path.exists(path):\n            with request.urlopen(URL) as answer:\n",
    ),
    "a download in a function": (
        FETCH.replace("request.urlretrieve(URL, path)", "fetch(path)")
        + "\n\ndef fetch(path):\n    request.urlretrieve(URL, path)",
        CALL,
        FIRST + "        dataset = load('data.pt', overwrite)\n",
    ),
    "what is unpacked": (
        FETCH.replace("request.urlretrieve(URL, path)", "zipfile.ZipFile('rows.zip').extractall(path)"),
        CALL,
        FIRST + "        dataset = load('data.pt', overwrite)\n",
    ),
    "what is unpacked into this folder": (
        FETCH.replace("request.urlretrieve(URL, path)", "zipfile.ZipFile('rows.zip').extractall()"),
        CALL,
        FIRST + "        dataset = load('data.pt', overwrite)\n",
    ),
    "what is unpacked into a folder above": (
        """
import tarfile
from urllib import request

URL = "https://example.org/rows.tar"

def load(path, overwrite):
    folder = os.path.join(path, "rows", "images")
    if not os.path.exists(folder):
        os.makedirs(path)
        packed = os.path.join(path, os.path.basename(URL))
        with open(packed, "wb") as file:
            file.write(request.urlopen(URL).read())
        with tarfile.open(packed) as archive:
            for item in archive:
                archive.extract(item, path)
        os.remove(packed)
    return TensorDataset(torch.load(os.path.join(folder, "rows.pt")), torch.ones(24, 1))
""",
        CALL,
        FIRST + "        if not os.path.exists(folder):\n",
    ),
    "what is unpacked below": (
        """
import zipfile

def load(path, overwrite):
    name = unpacked(path)
    return TensorDataset(torch.load(name), torch.ones(24, 1))

def unpacked(path):
    if os.path.exists(path):
        return path
    with zipfile.ZipFile("rows.zip") as archive:
        archive.extractall()
    return path
""",
        CALL,
        FIRST + "        dataset = load('data.pt', overwrite)\n",
    ),
    "a data set": (DATA, "dataset = Data('data.pkl')", FIRST + "        dataset = Data('data.pkl')\n"),
    "a data set of its own function": (
        DATA + "\n\ndef load(path, overwrite):\n    return Data(path)\n",
        CALL,
        FIRST + "        dataset = load('data.pt', overwrite)\n",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_main_process_makes_it_first(convert_text, name):
    load, made, expected = FOUND[name]
    report, result = convert_text(PROGRAM.format(load=load, made=made))

    assert expected in result
    assert result.count("main_process_first") == 1
    assert "wait_for_everyone" not in result
    assert "every process writes" not in str(report.findings)


RANDOM = LOAD.replace("torch.ones(24, 2)", "torch.tensor([[random.random(), 1.0] for _ in range(24)])")
NOT_FOUND = {
    "made at random": (RANDOM, CALL),
    "brought into another folder": (
        """
import tarfile
from urllib import request

URL = "https://example.org/rows.tar"

def load(path, overwrite):
    folder = os.path.join(path, "rows", "images")
    if not os.path.exists(folder):
        with open("other/rows.pt", "wb") as file:
            file.write(request.urlopen(URL).read())
    return TensorDataset(torch.ones(24, 2), torch.ones(24, 1))
""",
        CALL,
    ),
    "unpacked elsewhere": (
        FETCH.replace("request.urlretrieve(URL, path)", "zipfile.ZipFile('rows.zip').extractall('other')"),
        CALL,
    ),
    "a file that is tried, and another one that is written": (
        """
def load(path, overwrite):
    try:
        x = torch.load(path)
    except FileNotFoundError:
        x = torch.ones(24, 2)
        torch.save(x, "other")
    return TensorDataset(x, x.sum(dim=1, keepdim=True))
""",
        CALL,
    ),
    "another file": (LOAD.replace("torch.save(x, path)", "torch.save(x, 'other')"), CALL),
    "as many as there are files": (
        LOAD,
        "for path in glob.glob('*.pt'):\n        dataset = load(path, overwrite)".replace("load(", "load("),
    ),
    "for each sample": (
        """
class Data(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        path = f"{index}.pt"
        if os.path.exists(path):
            x = torch.load(path)
        else:
            x = torch.ones(2)
            torch.save(x, path)
        return x, torch.ones(1)
""",
        "dataset = Data()",
    ),
    "trained weights": (
        """
def load(path, overwrite):
    data = TensorDataset(torch.ones(24, 2), torch.ones(24, 1))
    model = nn.Linear(2, 1)
    if os.path.exists(path):
        model.load_state_dict(torch.load(path))
    else:
        train(data, model)
        torch.save(model.state_dict(), path)
    return data
""",
        CALL,
    ),
}


@pytest.mark.parametrize("name", NOT_FOUND)
def test_processes_take_no_turns(convert_text, name):
    load, made = NOT_FOUND[name]
    _, result = convert_text(PROGRAM.format(load=load, made=made))

    assert "main_process_first" not in result


TRIED = """
def load(path, overwrite):
    try:
        x = torch.load(path)
    except FileNotFoundError:
        x = torch.randn(24, 2)
        torch.save(x, path)
    return TensorDataset(x, x.sum(dim=1, keepdim=True))
"""
MISSING = """
def load(path, overwrite):
    if not os.path.exists(path):
        torch.save(torch.randn(24, 2), path)
    x = torch.load(path)
    return TensorDataset(x, x.sum(dim=1, keepdim=True))
"""
DRAWN_DATA = """
class Data(Dataset):
    def __init__(self, path):
        if os.path.isfile(path):
            self.rows = torch.load(path)
        else:
            self.rows = torch.randn(24, 3)
            torch.save(self.rows, path)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index, :2], self.rows[index, 2:]
"""


WAIT = "accelerator.wait_for_everyone()\n"
SAVED = f"        {WAIT}        accelerator.save(x, path)\n"
LOADED = f"        {WAIT}        accelerator.save(torch.randn(24, 2), path)\n    {WAIT}    x = torch.load(path)\n"


@pytest.mark.parametrize(("load", "expected"), [(RANDOM, SAVED), (TRIED, SAVED), (MISSING, LOADED)])
def test_what_all_draw_is_saved_when_all_have_looked_for_it(convert_text, load, expected):
    report, result = convert_text(PROGRAM.format(load=load, made=CALL))

    assert expected in result
    assert "half written" not in str(report.findings)


def test_what_is_drawn_out_of_the_accelerators_reach_is_told(convert_text):
    report, result = convert_text(PROGRAM.format(load=DRAWN_DATA, made="dataset = Data('data.pt')"))

    assert "wait_for_everyone" not in result
    assert "a process that is late finds this file half written" in str(report.findings)


def test_what_the_main_process_alone_comes_to_takes_no_turns(convert_text):
    shown = LOAD + "\n\ndef show(overwrite):\n    print(len(load('data.pt', overwrite)))\n"
    made = "dataset = load('data.pt', overwrite)\n    if torch.distributed.get_rank() == 0:\n        show(overwrite)"
    _, result = convert_text(PROGRAM.format(load=shown, made="torch.distributed.init_process_group()\n    " + made))

    assert "main_process_first" not in result


def test_a_program_that_takes_turns_itself_takes_no_more(convert_text):
    turns = LOAD.replace(
        "    if os.path", "    if local_rank not in [-1, 0]:\n        torch.distributed.barrier()\n    if os.path"
    )
    turns = turns.replace("    return", "    if local_rank == 0:\n        torch.distributed.barrier()\n    return")
    source = PROGRAM.format(load="local_rank = int(os.environ.get('LOCAL_RANK', -1))\n" + turns, made=CALL)
    _, result = convert_text(
        source.replace("    model = nn.Linear", "    torch.distributed.init_process_group()\n    model = nn.Linear")
    )

    assert result.count("wait_for_everyone") == 2
    assert "main_process_first" not in result


ASKED = {
    "== False": ("os.path.isfile(path) == False", True),
    "is not True": ("os.path.isfile(path) is not True", True),
    "!= True": ("os.path.exists(path) != True", True),
    "not, and == True": ("not os.path.exists(path) == True", True),
    "== True": ("os.path.isfile(path) == True", False),
    "== 0": ("os.path.getsize(path) == 0", None),
    "another thing": ("path.startswith('x') == False", None),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_may_be_compared_with_true_or_false(convert_text, name):
    asked, if_missing = ASKED[name]
    read, made = re.search(r"isfile\(path\):\n(.*?)\n        else:\n(.*?)\n\n", DATA, re.DOTALL).groups()
    first, second = (read, made) if if_missing is False else (made, read)
    load = DATA[: DATA.index("        if os")] + f"        if {asked}:\n{first}\n        else:\n{second}\n"
    load += DATA[DATA.index("\n    def __len__") :]
    _, result = convert_text(PROGRAM.format(load=load, made="dataset = Data('rows.pkl')"))
    assert (FIRST + "        dataset = Data('rows.pkl')" in result) is (if_missing is not None)
