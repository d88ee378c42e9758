"""Notebooks as Jupyter writes them."""

import json

import pytest


def code(source, **more):
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": _lines(source)}
    return {**cell, **more}


def markdown(source):
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(source)}


def notebook(*cells, language="python", ids=False, **style):
    """The bytes of a notebook; texts are code cells."""
    made = [code(cell) if isinstance(cell, str) else cell for cell in cells]
    made = [{**cell, "id": f"cell{number}"} for number, cell in enumerate(made)] if ids else made
    document = {"cells": made, "metadata": {"language_info": {"name": language}}, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(document, **{"indent": 1, "ensure_ascii": False, **style}) + "\n").encode()


def _lines(source):
    return source.splitlines(keepends=True)


@pytest.fixture
def book():
    return notebook


TRAINING = (
    """\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = torch.randn(16, 4)
loader = DataLoader(TensorDataset(data, data.sum(1, keepdim=True)), batch_size=4, shuffle=True)""",
    """\
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)""",
    """\
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}")""",
)


@pytest.fixture
def training():
    """The cells of a program that converts."""
    return TRAINING
