"""What a model prints and writes through its own methods is told, or guarded, where it does so; and only there."""

import pytest

PROGRAM = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)
            self.draw()

        def draw(self):
            nn.init.zeros_(self.fc.weight)
            {says}

        def more(self):
            {more}

        def forward(self, x):
            return self.fc(x)


    class Trainer:
        def __init__(self, net, loader):
            self.net = net
            self.loader = loader
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def train(self):
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.net(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


    Trainer(Net(), DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64).long()), batch_size=8)).train()
"""
GUARD = 'if os.environ.get("RANK", "0") == "0":'
WRITES = 'open("x.txt", "a").write("y")'
PRINTS = {
    "itself": {"says": 'print("drawn")', "more": "pass"},
    "by another": {"says": "self.more()", "more": 'print("drawn")'},
    "both": {"says": 'print("drawn")\n            self.more()', "more": 'print("drawn")'},
}


def told(report):
    return [finding for finding in report.findings if finding.code == "MIG117"]


@pytest.mark.parametrize("name", PRINTS)
def test_what_is_only_printed_is_guarded_and_nothing_is_told(convert_text, name):
    report, text = convert_text(PROGRAM.format(**PRINTS[name]))

    assert text.count(GUARD) == PROGRAM.format(**PRINTS[name]).count('print("drawn")')
    assert not told(report)


@pytest.mark.parametrize("holes", [{"says": WRITES, "more": "pass"}, {"says": "self.more()", "more": WRITES}])
def test_what_is_written_is_told_once_where_it_is_written(convert_text, holes):
    source = PROGRAM.format(**holes)
    report, text = convert_text(source)

    assert text.count(WRITES) == 1
    (finding,) = told(report)
    assert "every process writes this" in finding.message
