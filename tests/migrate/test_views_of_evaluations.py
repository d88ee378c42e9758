"""Scripts that share a function which evaluates, also on what one of them trains on: each is a program of its own."""

import pytest

from migrate.report.model import Kind

HELPERS = """
    import torch


    def accuracy(net, batches, device):
        net.eval()
        right = 0
        with torch.no_grad():
            for x, y in batches:
                out = net(x.to(device))
                right += (out.argmax(1) == y.to(device)).sum().item()
        return right / len(batches.dataset)
"""
SCRIPT = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from helpers import accuracy

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))
    loader = DataLoader(data, batch_size=10, shuffle=True)
    held = DataLoader(data, batch_size=10)
    net = nn.Linear(2, 2).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        net.train()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        print({evaluated})
"""
BOTH = "accuracy(net, loader, device), accuracy(net, held, device)"
HELD = "accuracy(net, held, device)"


def script(evaluated=BOTH, rate="0.1"):
    return SCRIPT.format(evaluated=evaluated).replace("lr=0.1", f"lr={rate}")


@pytest.mark.parametrize("other", [BOTH, HELD])
def test_each_script_hands_its_accelerator_over(converted, other):
    report, files = converted(helpers=HELPERS, first=script(), second=script(other, rate="0.2"))

    assert not report.of(Kind.LEFT)
    assert all(loop.converts for loop in report.of(Kind.LOOP))
    assert "def accuracy(net, batches, accelerator):" in files["helpers"]
    assert files["helpers"].count("accelerator.gather_for_metrics") == 1
    for name in ("first", "second"):
        assert files[name].count("accelerator = Accelerator()") == 1
        assert "accuracy(net, held, accelerator)" in files[name]


def test_a_script_that_converts_without_the_other_goes_on_to(converted):
    random = script(rate="0.2").replace(
        "data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))",
        """
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, index):
            return torch.rand(2), 1


    data = Rows()""",
    )
    report, files = converted(helpers=HELPERS, first=script(HELD), second=random)

    assert "accelerator.prepare" in files["first"]
    assert "accelerator" not in files["second"]
    assert any("also trained on" in finding.message for finding in report.of(Kind.LEFT))
