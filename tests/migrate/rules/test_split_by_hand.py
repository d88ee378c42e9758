"""Programs that run their model on all GPUs of one process, without a wrapper around it."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def on_all(model, *given):
    devices = list(range(torch.cuda.device_count()))
    copies = nn.parallel.replicate(model, devices)
    outputs = nn.parallel.parallel_apply(copies, nn.parallel.scatter(given, devices))
    return nn.parallel.gather(outputs, devices[0])


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    if {several}:
        output = {split}
    else:
        output = model(x)
    nn.functional.mse_loss(output, y).backward()
    optimizer.step()
"""
SPLIT = {
    "a function of the project": "on_all(model, x)",
    "one of PyTorch": "nn.parallel.data_parallel(model, x)",
    "one of PyTorch, with its devices": "nn.parallel.data_parallel(model, x, range(torch.cuda.device_count()))",
}


@pytest.mark.parametrize("name", SPLIT)
@pytest.mark.parametrize("also", ["", 'device.type == "cuda" and '])
def test_the_part_for_one_gpu_stays(convert_text, name, also):
    several = also + "torch.cuda.device_count() > 1"
    report, result = convert_text(SOURCE.format(several=several, split=SPLIT[name]))

    assert not report.of(Kind.LEFT)
    assert "    optimizer.zero_grad()\n    output = model(x)\n" in result


@pytest.mark.parametrize("name", SPLIT)
def test_where_it_is_not_told_from_one_gpu_it_is_refused(convert_text, name):
    report, _ = convert_text(SOURCE.format(several="torch.cuda.is_available()", split=SPLIT[name]))

    (left,) = report.of(Kind.LEFT)
    assert (left.code, left.line) == ("MIG110", 21)
    assert "splits its batches over the GPUs itself" in left.message


def test_another_model_may_be_split(convert_text):
    source = SOURCE.replace("on_all(model, x)", "on_all(teacher, x)").replace("model = nn", "teacher = model = nn", 1)
    source = source.replace("teacher = model = nn.Linear(2, 1)", "teacher = nn.Linear(2, 1)\nmodel = nn.Linear(2, 1)")
    report, _ = convert_text(source.format(several="torch.cuda.is_available()", split="on_all(teacher, x)"))

    assert "splits its batches" not in " ".join(f.message for f in report.of(Kind.LEFT))


TWO_NAMES = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self):
        self.model = nn.Linear(2, 1)
        nn.parallel.replicate(self.model, [0])

    def load(self):
        return DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)

    def step(self, optimizer, x, y):
        optimizer.zero_grad()
        nn.functional.mse_loss(self.model(x), y).backward()
        optimizer.step()


def run(step, batches, optimizers):
    for x, y in batches:
        step(optimizers[0], x, y)


trainer = Trainer()
run(trainer.step, trainer.load(), [torch.optim.SGD(p.parameters(), 0.1) for p in [trainer.model]])
"""


def test_a_program_without_a_place_for_prepare_is_told_so(convert_text):
    report, _ = convert_text(TWO_NAMES)

    assert "MIG999" not in {finding.code for finding in report.findings}
