"""Converted notebooks in a real kernel: what they print is what the originals print."""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from migrate.options import Options
from migrate.pipeline import run_text

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
LATER = """\
def evaluate():
    model.eval()
    total = 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            total += ((model(x) - y) ** 2).sum().item()
    return total

print(f"all {evaluate():.4f}")"""
#: The same number once more, of what came back.
AGAIN = 'print(f"all {((model(data) - data.sum(1, keepdim=True)) ** 2).sum().item():.4f}")'


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("kernel"))
    # Under this variable of pytest's a kernel does not show what its child processes print, as it does otherwise.
    environ = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environ |= {"PYTHONPATH": str(ROOT), "IPYTHONDIR": folder, "JUPYTER_RUNTIME_DIR": folder, "OMP_NUM_THREADS": "1"}

    def run(content):
        book = nbformat.reads(content, as_version=4)
        client = NotebookClient(book, timeout=120, resources={"metadata": {"path": folder}})
        client.execute(env=environ)
        texts = (output.text for cell in book.cells for output in cell.get("outputs", ()) if "text" in output)
        return re.findall(r"^(?:epoch|all) .*", "".join(texts), re.MULTILINE)

    return run


@pytest.fixture
def cells(training):
    settings, made, loop = training
    return (settings, made, "%%time\n" + loop.replace("{epoch}", "{epoch} {loss.item()}"), "!true", LATER, AGAIN)


def test_notebook_prints_the_same_when_it_is_converted(book, cells, printed):
    content = book(*cells, ids=True)
    (change,) = run_text(content, "train.ipynb", Options()).changes

    expected = printed(content)

    assert len(expected) == 4
    assert printed(change.new) == expected


def test_what_two_processes_train_comes_back(book, cells, printed):
    (change,) = run_text(book(*cells, ids=True), "train.ipynb", Options(notebook_launcher=True)).changes
    started = re.sub(rb"notebook_launcher\((\w+)\)", rb"notebook_launcher(\1, num_processes=2)", change.new)

    *_, told, again = printed(started)

    assert started.count(b"num_processes=2") == 2
    assert told == again


BY_PHASE = (
    """\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
loaders = {"train": DataLoader(data, batch_size=SIZE), "val": DataLoader(data, batch_size=SIZE)}""",
    """\
def train_model(model, optimizer, epochs):
    for epoch in range(epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            running = 0.0
            for x, y in loaders[phase]:
                x, y = x.to(device), y.to(device)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = torch.nn.functional.mse_loss(model(x), y)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running += loss.item() * len(x)
            print(f"epoch {running / len(loaders[phase].dataset):.3f}")
    return model""",
    """\
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)""",
    "model = train_model(model, optimizer, 2)",
    "model = train_model(model, optimizer, 1)",
    'print(f"all {sum(p.sum().item() for p in model.parameters()):.3f}")',
)


def test_loaders_of_a_dictionary_are_shared_out_and_the_model_goes_on(book, printed):
    whole = book(*(cell.replace("SIZE", "8") for cell in BY_PHASE), ids=True)
    half = book(*(cell.replace("SIZE", "4") for cell in BY_PHASE), ids=True)
    (change,) = run_text(half, "train.ipynb", Options(notebook_launcher=True)).changes
    started = re.sub(rb"notebook_launcher\((\w+)\)", rb"notebook_launcher(\1, num_processes=2)", change.new)

    assert started.count(b"num_processes=2") == 2
    assert set(printed(started)) == set(printed(whole))
