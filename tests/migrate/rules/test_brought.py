"""What a program fetches or unpacks, whatever was there before: the main process does, and the others wait below."""

import pytest

PROGRAM = """
import os
import shutil
import tarfile
import zipfile
from urllib.request import urlretrieve

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

URL = "https://example.org/rows.zip"


def fetch(path):
    urlretrieve(URL, path)
    with zipfile.ZipFile(path) as archive:
        archive.extractall("rows")


def keep(path):
    if not os.path.exists("rows"):
        shutil.unpack_archive(path, "rows")


{brought}
loader = DataLoader(ImageFolder("rows"), batch_size=4, shuffle=True)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
MAIN = "if accelerator.is_main_process:\n"
WAIT = "accelerator.wait_for_everyone()\n"
LOADER = 'loader = DataLoader(ImageFolder("rows")'
EACH = """\
for name in os.listdir("archives"):
    archive = tarfile.open(name)
    archive.extractall("rows")"""
BROUGHT = {
    "fetched": ('urlretrieve(URL, "rows.zip")', f'{MAIN}    urlretrieve(URL, "rows.zip")\n{WAIT}{LOADER}'),
    "unpacked": (
        'shutil.unpack_archive("rows.zip", "rows")',
        f'{MAIN}    shutil.unpack_archive("rows.zip", "rows")\n{WAIT}{LOADER}',
    ),
    "by a method": (
        'with zipfile.ZipFile("rows.zip") as archive:\n    archive.extractall()',
        f'with zipfile.ZipFile("rows.zip") as archive:\n    {MAIN}        archive.extractall()\n{WAIT}{LOADER}',
    ),
    "each of several": (
        EACH,
        f'    archive = tarfile.open(name)\n    {MAIN}        archive.extractall("rows")\n{WAIT}{LOADER}',
    ),
    "by a function": ('fetch("rows.zip")', f'{MAIN}    fetch("rows.zip")\n{WAIT}{LOADER}'),
    "one upon the other": (
        'urlretrieve(URL, "rows.zip")\narchive = zipfile.ZipFile("rows.zip")\narchive.extractall()',
        f'{WAIT}archive = zipfile.ZipFile("rows.zip")\n{MAIN}    archive.extractall()\n{WAIT}{LOADER}',
    ),
}


@pytest.mark.parametrize("name", BROUGHT)
def test_the_main_process_brings_files_and_the_others_wait_below(convert_text, name):
    brought, expected = BROUGHT[name]
    _, result = convert_text(PROGRAM.format(brought=brought))

    assert expected in result


def test_what_is_brought_if_it_is_not_there_is_done_in_turns(convert_text):
    _, result = convert_text(PROGRAM.format(brought='keep("rows.zip")'))

    assert "with accelerator.main_process_first():\n" in result
    assert "is_main_process:" not in result
