"""A model that two loops train one after the other is prepared once, and what is taken by hand is a batch, too."""

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
"""
DATA = """
loader = DataLoader(TensorDataset(torch.ones(64, 2), torch.ones(64, 1)), batch_size=4, shuffle=True)
model = nn.Linear(2, 1).cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
FINDER = """
class Batches:
    def __init__(self, loader):
        self.loader = loader
        self.left = iter(loader)

    def __next__(self):
        try:
            x, y = next(self.left)
        except StopIteration:
            self.left = iter(self.loader)
            x, y, *_ = next(self.left)
        return x, y

    def one(self):
        return next(self)


class Finder:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def run(self, loader):
        batches, best = Batches(loader), None
        for step in range(20):
            loss = self.step(batches)
            if best is None or loss < best:
                best = loss
            if loss > 4 * best:
                break

    def step(self, batches):
        x, y = batches.one()
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x.cuda()), y.cuda())
        loss.backward()
        self.optimizer.step()
        return loss.item()
"""
AGAIN = """
Finder(model, optimizer).run(loader)
optimizer = optim.Adam(model.parameters(), lr=0.01)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
"""


def test_what_tries_rates_out_and_the_training_are_one_program(convert_text):
    report, text = convert_text(HEAD + FINDER + DATA + AGAIN)

    assert text.count("Accelerator()") == 1
    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in text
    assert "optimizer = accelerator.prepare(optimizer)" in text
    assert text.count("accelerator.backward(") == 2
    assert not [finding for finding in report.findings if finding.code == "MIG903"]


def test_batches_of_an_object_with_next_decide_together(convert_text):
    _, text = convert_text(HEAD + FINDER + DATA + AGAIN)

    assert "if any(accelerator.gather_for_metrics([bool(loss > 4 * best)])):" in text


def test_neither_is_converted_where_one_is_left(convert_text):
    """Half of it would train a model that the other half has prepared."""
    loose = AGAIN.replace("Adam(model.parameters()", "Adam([*model.parameters(), torch.ones(1, requires_grad=True)]")
    source = (HEAD + FINDER + DATA + loose).lstrip("\n")
    _, text = convert_text(source)

    assert text == source


def test_models_that_only_share_a_class_stay_apart(convert_text):
    other = AGAIN.replace("model", "second").replace("Finder(second", "Finder(model")
    second = "second = nn.Linear(2, 1).cuda()\n"
    _, text = convert_text(HEAD + FINDER + DATA + second + other)

    assert "accelerator.prepare(" in text


ROWS = """
rows, targets = torch.randn(16, 2), torch.randn(16, 1)
loader = DataLoader(TensorDataset(rows, targets), batch_size=4, shuffle=True)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(rows), targets).backward()
    optimizer.step()
for x, y in loader:
    optimizer.zero_grad()
    (nn.functional.mse_loss(model(x), y) + rows.mean() * 0).backward()
    optimizer.step()
"""


def test_two_reasons_to_stay_on_the_cpu_are_one_argument(convert_text):
    _, text = convert_text(HEAD + ROWS)

    assert "Accelerator(cpu=True)" in text
