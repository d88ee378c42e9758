"""What a person types into another script decides nothing in this one, though both call one helper."""

import pytest

from migrate.options import Options
from migrate.pipeline import run

HELPER = """\
def encode(texts):
    found = []
    for text in texts:
        for word in text.split():
            found.append(len(word))
    return found
"""
TRAIN = """\
import torch
from helper import encode
from torch import nn

model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
lengths = encode(["one two", "three"])
for length in lengths:
    optimizer.zero_grad()
    loss = model(torch.tensor([[float(length)]])).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
ASKS = """\
from helper import encode


def talk():
    text = input("text: ")
    while text != "q":
        print(encode([text]))
        text = input("text: ")


talk()
"""
ANOTHER = {
    "calls": ASKS,
    "under its guard": ASKS.replace("\n\n\ntalk()", '\n\n\nif __name__ == "__main__":\n    talk()'),
}
WAITS = "text = input()\nwhile text:\n    encode([text])\n    text = input()\n"


def converted(tmp_path, monkeypatch, texts):
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    report = run([f"{name}.py" for name in texts], Options())
    return {change.path for change in report.changes}, {finding.code for finding in report.findings}


@pytest.mark.parametrize("name", ["calls", "under its guard"])
def test_what_another_script_is_told_decides_nothing(tmp_path, monkeypatch, name):
    changed, codes = converted(tmp_path, monkeypatch, {"helper": HELPER, "train": TRAIN, "generate": ANOTHER[name]})

    assert "train.py" in changed
    assert "MIG122" not in codes


def test_what_the_script_itself_is_told_does(tmp_path, monkeypatch):
    asking = TRAIN.replace("for length", f"{WAITS}for length")
    changed, codes = converted(tmp_path, monkeypatch, {"helper": HELPER, "train": asking})

    assert "train.py" not in changed
    assert "MIG122" in codes


def test_what_an_imported_file_is_told_does(tmp_path, monkeypatch):
    texts = {"helper": HELPER, "train": f"import generate\n{TRAIN}", "generate": ASKS}
    changed, codes = converted(tmp_path, monkeypatch, texts)

    assert "train.py" not in changed
    assert "MIG122" in codes
