"""`Trainer(model).fit(loader)`: the trainer prepares its model, and the loader is prepared where it has a name."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            total = 0.0
            for x, y in loader:
                loss = (self.model(x) - y).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            print(epoch, round(total / len(loader), 4))


{start}
"""
IN_MODULE = """\
if __name__ == "__main__":
    loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=8)
    Trainer(nn.Linear(4, 1)).fit(loader, 2)"""
TWICE = f"{IN_MODULE}\n    Trainer(nn.Linear(4, 1)).fit(loader, 1)"
IN_FUNCTION = f"def main():{IN_MODULE.partition(':')[2]}\n\n\nmain()"


@pytest.mark.parametrize("start", [IN_MODULE, IN_FUNCTION, TWICE], ids=["in the module", "in a function", "two"])
def test_each_object_is_prepared_where_it_has_a_name(convert_text, numbers_printed, start):
    report, converted = convert_text(PROGRAM.format(start=start))

    assert report.changes
    assert "self.model, self.optimizer = accelerator.prepare(self.model, self.optimizer)" in converted
    assert "loader = accelerator.prepare(loader)" in converted
    halved = converted.replace("batch_size=8", "batch_size=4")
    assert numbers_printed(halved, 2) == pytest.approx(numbers_printed(converted, 1), abs=2e-4)
