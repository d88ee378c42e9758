"""Folders that a step above the training fills: who looks into them waits for the main process, which wrote alone."""

import pytest

PROGRAM = """
import glob
import os
import shutil
import cv2
import splitfolders
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.datasets import ImageFolder

root = "faces"


class Pictures(Dataset):
    def __init__(self, folder):
        self.names = os.listdir(folder)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return torch.zeros(2), 0


def split(source, target):
    for name in os.listdir(source):
        shutil.copy(os.path.join(source, name), os.path.join(target, "train", name))


def mean_of(folder, names):
    paths = [os.path.join(folder, name) for name in names]
    return [Image.open(paths[index]).size for index in range(len(paths))]


def named(folder, names):
    return [os.path.join(folder, name) for name in names]


{fill}

{look}

loader = DataLoader(ImageFolder("rows"), batch_size=4, shuffle=True)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CROPS = """\
for name in os.listdir("raw"):
    path = os.path.join(root, "cat", name)
    cv2.imwrite(path, cv2.imread(os.path.join("raw", name))[:8])"""
BROKEN = """\
for name in os.listdir(root):
    try:
        Image.open(f"{root}/{name}").verify()
    except Exception:
        os.remove(f"{root}/{name}")"""
SPLIT = 'split("raw", root)'
SAVED = 'for name in os.listdir("raw"):\n    Image.open("raw/" + name).resize((8, 8)).save("faces/" + name)'
WAITED = {
    "listed": (CROPS, "names = os.listdir(root)"),
    "by its name": (CROPS, 'names = os.listdir("./faces/")'),
    "a folder in it": (CROPS, 'names = glob.glob(os.path.join(root, "cat", "*.png"))'),
    "a data set of a library": (CROPS, "data = ImageFolder(root)"),
    "a library of which nothing is known": (CROPS, 'splitfolders.ratio(root, output="parts")'),
    "one of the pictures": (CROPS, 'picture = cv2.imread(os.path.join(root, "cat", "1.png"))'),
    "copied by a function": (SPLIT, 'data = ImageFolder(os.path.join(root, "train"))'),
    "a data set of the project": (SPLIT, 'data = Pictures(f"{root}/train")'),
    "what is broken goes away": (BROKEN, "data = ImageFolder(root)"),
    "saved by a method": (SAVED, "data = ImageFolder(root)"),
    "handed to a function that reads it": (SAVED, 'shades = mean_of(root, ["1.png"])'),
}
ALONE = {
    "handed to a function that reads no file": (SAVED, 'names = named(root, ["1.png"])'),
    "another folder": (CROPS, "names = os.listdir('raw')"),
    "one beside it": (SPLIT, 'data = ImageFolder(os.path.join(root, "test"))'),
    "a folder in which it does not lie": (SPLIT, 'names = glob.glob("*.txt")'),
    "looked into before": ('names = os.listdir("faces")', CROPS),
}


@pytest.mark.parametrize("name", WAITED)
def test_all_wait_above_what_looks_into_a_folder_that_is_filled(convert_text, name):
    fill, look = WAITED[name]
    _, result = convert_text(PROGRAM.format(fill=fill, look=look))

    assert f"accelerator.wait_for_everyone()\n{look}\n" in result
    assert result.count("wait_for_everyone") == 1


@pytest.mark.parametrize("name", ALONE)
def test_nobody_waits_where_something_else_is_looked_into(convert_text, name):
    fill, look = ALONE[name]
    _, result = convert_text(PROGRAM.format(fill=fill, look=look))

    assert "accelerator.prepare(" in result
    assert "wait_for_everyone" not in result


@pytest.mark.parametrize(("taken", "waits"), [("root", 2), ('"raw"', 1)])
def test_all_are_done_with_a_folder_before_it_is_taken_away(convert_text, taken, waits):
    look = f'shades = mean_of(root, ["1.png"])\nshutil.rmtree({taken})'
    _, result = convert_text(PROGRAM.format(fill=SAVED, look=look))

    assert result.count("wait_for_everyone") == waits
    if waits > 1:
        assert "accelerator.wait_for_everyone()\nif accelerator.is_main_process:\n    shutil.rmtree(root)" in result
