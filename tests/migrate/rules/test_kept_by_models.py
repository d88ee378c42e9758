"""What a model adds up of the batches that it is handed, and shows later, is of one process's batches: it is told."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.losses = []
        self.total = 0.0
        self.steps = 0
        self.logs = {{}}

    def forward(self, x):
        return self.layer(x)

    def loss_of(self, batch):
        x, y = batch
        loss = (self(x) - y).pow(2).mean()
        self.keep(loss.item())
        return loss

    def keep(self, loss):
        {keep}

    def report(self):
        print({shown})


torch.manual_seed(0)
net = Net()
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=8, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for number, batch in enumerate(loader):
        loss = net.loss_of(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {inside}
    {after}
"""


def _told(convert_text, keep, shown, inside="pass", after="net.report()"):
    report, _ = convert_text(PROGRAM.format(keep=keep, shown=shown, inside=inside, after=after))
    assert report.changes
    return [finding.message for finding in report.findings if "share of the data" in finding.message]


@pytest.mark.parametrize(
    ("keep", "shown", "name"),
    [
        ("self.losses.append(loss)", "sum(self.losses)", "net.losses"),
        ("self.total += loss", "self.total / 4", "net.total"),
        ("self.logs['loss'] = self.logs.get('loss', 0) + loss", "self.logs", "net.logs['loss']"),
    ],
)
def test_what_a_model_keeps_and_shows_later(convert_text, keep, shown, name):
    assert _told(convert_text, keep, shown) == [f"{name}, read after this loop, is of one process's share of the data"]
    by_loop = _told(convert_text, keep, "self.steps", after=f"print({name})")
    assert by_loop == [f"{name}, read after this loop, is of one process's share of the data"]


def test_counts_in_the_buffer_of_a_module_that_is_not_trained(convert_text):
    source = """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        class Counts(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("seen", torch.zeros(2))

            def update(self, y):
                for label in y.unique():
                    self.seen[label] += (y == label).sum()

        loader = DataLoader(TensorDataset(torch.rand(16, 2), torch.randint(0, 2, (16,))), batch_size=4)
        model, counts = nn.Linear(2, 2), Counts()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            counts.update(y)
        print(counts.seen)
        """
    report, _ = convert_text(source)

    told = [finding.message for finding in report.findings if "share of the data" in finding.message]
    assert told == ["counts.seen, read after this loop, is of one process's share of the data"]


def test_what_is_shown_in_the_rounds_of_the_loop_alone(convert_text):
    told = _told(convert_text, "self.total += loss", "self.steps", inside="print(net.total)", after="net.eval()")

    assert told == ["while this loop runs, net.total shows one process's share of the data"]


@pytest.mark.parametrize(
    ("keep", "shown"),
    [
        ("self.losses.append(loss)", "self.steps"),  # nothing reads them
        ("self.steps += 1", "self.steps"),  # all processes take as many
    ],
)
def test_nothing_is_told_of_what_is_not_read_or_the_same(convert_text, keep, shown):
    assert _told(convert_text, keep, shown) == []
