"""A folder that is made and filled where there is none: all processes fill it, or none does."""

import textwrap

import pytest

PROGRAM = """\
import os
import pickle
import time

import torch
from torch import nn

torch.manual_seed(0)
if os.environ.get("RANK") == "1":
    time.sleep(3)


def collect(path):
    rows = torch.randn(8, 2)
    if not os.path.exists(path + "/rows.pkl"):
        pickle.dump(rows, open(path + "/rows.pkl", "wb"))
    else:
        rows = pickle.load(open(path + "/rows.pkl", "rb"))
    if not os.path.exists(path + "/twice.pkl"):
        pickle.dump(2 * rows, open(path + "/twice.pkl", "wb"))


def fetch(path):
    torch.hub.download_url_to_file("https://example.org/rows.pkl", path + "/rows.pkl")


out = "data"
{made}
rows = pickle.load(open("data/twice.pkl", "rb"))
model = nn.Sequential(nn.Linear(2, 1), nn.Dropout())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = model(rows).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
FILLED = """
if not os.path.exists(out):
    os.mkdir(out)
    collect(out)
"""
WAIT = "accelerator.wait_for_everyone()"


def program(made):
    return PROGRAM.format(made=textwrap.dedent(made).strip("\n"))


@pytest.mark.parametrize(
    ("made", "below"),
    [
        (FILLED, "    os.makedirs(out, exist_ok=True)\n    collect(out)\n"),
        (
            "if os.path.isdir(out):\n    print(0)\nelse:\n    os.makedirs(out)\n    collect(out)",
            "    os.makedirs(out, ",
        ),
    ],
)
def test_all_have_asked_before_one_makes_it(convert_text, made, below):
    _, text = convert_text(program(made))

    assert f"    {WAIT}\n{below}" in text


def test_what_is_kept_in_it_is_made_by_the_main_process_first(convert_text):
    _, text = convert_text(program(FILLED))

    assert '    with accelerator.main_process_first():\n        if not os.path.exists(path + "/rows.pkl"):\n' in text


def test_a_process_that_comes_late_draws_what_the_others_draw(convert_text, numbers_printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, text = convert_text(program(FILLED))

    one = numbers_printed(text, 1)
    for made in (tmp_path / "data").iterdir():
        made.unlink()
    (tmp_path / "data").rmdir()
    two = numbers_printed(text, 2)
    assert len(one) == 3
    assert one == pytest.approx(two, abs=1e-6)


@pytest.mark.parametrize(
    "made",
    [
        "if not os.path.exists(out):\n    os.mkdir(out)\ncollect(out)",
        "if not os.path.exists(out):\n    os.mkdir(out)\n    open(out + '/log', 'w').write('new')",
    ],
)
def test_a_folder_that_is_only_made_needs_no_waiting(convert_text, made):
    _, text = convert_text(program(made))

    assert f"{WAIT}\n    os.makedirs" not in text


def test_what_is_fetched_into_it_is_fetched_by_the_main_process_first(convert_text):
    _, text = convert_text(program("if not os.path.exists(out):\n    os.mkdir(out)\n    fetch(out)"))

    assert "with accelerator.main_process_first():\n    if not os.path.exists(out):\n        os.makedirs(out" in text
    assert f"{WAIT}\n        os.m" not in text
