"""Loops over phases with their loaders."""

import pytest

MADE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
train_loader, test_loader = DataLoader(data, batch_size=4), DataLoader(data, batch_size=2)
loaders = {"train": train_loader, "test": test_loader}
pairs = [("train", train_loader), ("test", test_loader)]
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
RUN = """
for epoch in range(2):
    for HEAD
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
        print(phase, total / len(loader.dataset))
"""
BY_STEP = RUN.replace(
    RUN[RUN.index("            loss =") : RUN.index("        print")],
    '            total += step(x, y, train=phase == "train") * len(x)\n',
)
STEP = """
def step(x, y, train=True):
    loss = nn.functional.mse_loss(model(x), y)
    if train:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
"""
HEADS = [
    "phase, loader in pairs:",
    "phase, loader in loaders.items():",
    'phase, loader in zip(["train", "test"], [train_loader, test_loader]):',
    'phase in ["train", "test"]:\n        loader = loaders[phase]',
]
COMPUTED = """
for epoch in range(2):
    total = run(train_loader, Computes(optimizer))
    with torch.no_grad():
        print(total, run(test_loader, Computes()))
"""
COMPUTES = """
class Computes:
    def __init__(self, optimizer=None):
        self.optimizer = optimizer

    def __call__(self, x, y):
        loss = nn.functional.mse_loss(model(x), y)
        if self.optimizer is not None:
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.item()

def run(loader, compute):
    total = 0.0
    for x, y in loader:
        total += compute(x, y)
    return total / len(loader)
"""


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("source", [RUN, STEP + BY_STEP])
def test_the_loader_of_the_phase_that_trains_is_prepared(convert_text, source, head):
    _, new = convert_text(MADE + source.replace("HEAD", head))

    prepared = next(line for line in new.splitlines() if "= accelerator.prepare(" in line and "loader" in line)
    assert "train_loader" in prepared
    assert "test_loader" not in prepared
    joined = "if phase == 'train':\n            total = sum(accelerator.gather_for_metrics([total]))\n"
    assert joined.replace("'", '"') in new or joined in new


CHOSEN = """
for epoch in range(2):
    for is_train in (True, False):
        total = 0.0
        for HEAD:
            loss = nn.functional.mse_loss(model(x), y)
            if is_train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
        print(total)
"""


@pytest.mark.parametrize("head", ["x, y in CHOICE", "i, (x, y) in enumerate(CHOICE)"])
def test_a_choice_where_the_loop_runs_over_it(convert_text, head):
    choice = "(train_loader if is_train else test_loader)"

    _, new = convert_text(MADE + CHOSEN.replace("HEAD", head.replace("CHOICE", choice)))

    prepared = next(line for line in new.splitlines() if "= accelerator.prepare(" in line and "loader" in line)
    assert "train_loader" in prepared
    assert "test_loader" not in prepared
    assert "        if is_train:\n            total = sum(accelerator.gather_for_metrics([total]))\n" in new


@pytest.mark.parametrize("test", ["epoch % 2 == 0", "is_train and epoch"])
def test_a_choice_by_another_test(convert_text, test):
    report, new = convert_text(MADE + CHOSEN.replace("HEAD", f"x, y in (train_loader if {test} else test_loader)"))

    assert "accelerator" not in new
    assert "MIG114" in [finding.code for finding in report.findings]


@pytest.mark.parametrize("head", ["phase, loader in more():", "phase, loader in pairs * 2:"])
def test_pairs_that_are_not_in_sight(convert_text, head):
    report, new = convert_text(MADE + RUN.replace("HEAD", head))

    assert "accelerator.prepare(" not in new
    assert report.findings


def test_an_object_that_trains_or_does_not(convert_text):
    _, new = convert_text(MADE + COMPUTES + COMPUTED)

    assert "    if torch.is_grad_enabled():\n        total = sum(accelerator.gather_for_metrics([total]))" in new


def test_two_passes_with_gradients_may_both_train(convert_text):
    more = COMPUTED.replace("    with", "    print(run(DataLoader(data), Computes()))\n    with")
    report, new = convert_text(MADE + COMPUTES + more)

    assert "accelerator" not in new
    assert "MIG114" in [finding.code for finding in report.findings]
