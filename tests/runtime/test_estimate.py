"""`runtime estimate`: what a model of known size takes."""

import sys

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from runtime import estimate
from runtime.cli import app

MODELS = """
import torch
from torch import nn

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        self.norm = nn.BatchNorm1d(64)
        self.head = nn.Linear(64, 1000, bias=False)
        self.head.weight = self.embed.weight
        self.norm.requires_grad_(False)

def large():
    return nn.Linear(300_000, 300_000)

def reads():
    return nn.Linear(int(torch.ones(1)), 1)

def needs(size):
    return nn.Linear(size, 1)

number = 3
no_model = dict
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "models_of_a_test.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    yield lambda name: CliRunner().invoke(app, ["estimate", name])
    sys.modules.pop("models_of_a_test", None)


def test_shared_frozen_and_buffers_are_counted_as_they_are(run):
    result = run("models_of_a_test:Tied")
    assert result.exit_code == 0
    first, _, _, single, half = result.output.splitlines()
    assert first == "64,128 parameters, 64,000 of them trained; largest layer: embed"
    assert single.split() == "float32 251.00 KiB 250.00 KiB 500.00 KiB 1001.00 KiB 250.00 KiB".split()
    assert half.split()[:3] == ["bfloat16", "125.50", "KiB"]


def test_as_many_bytes_as_a_real_training_has():
    model = nn.Sequential(nn.Linear(30, 70), nn.LayerNorm(70), nn.Linear(70, 3))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 30)).sum().backward()
    optimizer.step()
    moments = [value for state in optimizer.state.values() for name, value in state.items() if name != "step"]
    tensors = [*model.parameters(), *(p.grad for p in model.parameters()), *moments]
    single = next(iter(estimate.memory(estimate.count(model))))
    assert single.training == sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def test_nothing_is_allocated(run):
    result = run("models_of_a_test:large")
    assert "90,000,300,000 parameters" in result.output
    assert "335.28 GiB" in result.output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("models_of_a_test:missing", "has no attribute 'missing'"),
        ("no_such_module:x", "No module named 'no_such_module'"),
        ("models_of_a_test:number", "is a int: name a class or a function"),
        ("models_of_a_test:no_model", "gave a dict, and not a torch.nn.Module"),
        ("models_of_a_test:reads", "could not be made on the meta device"),
        ("models_of_a_test:needs", "Name a function without arguments"),
        ("some-model", "transformers, which is not installed"),
    ],
)
def test_what_cannot_be_estimated_is_refused(run, monkeypatch, name, said):
    monkeypatch.setitem(sys.modules, "transformers", None)
    result = run(name)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in " ".join(result.stderr.split())
