"""A model that is made again, by the function that makes its optimizer as well, once the training is over."""

import pytest

PROGRAM = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)


    class Solver:
        def __init__(self, loader):
            self.loader = loader
            self.build()

        def build(self):
            self.net = nn.Linear(4, 2)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def train(self):
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.net(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            torch.save(self.net.state_dict(), "net.pth")
            {anew}
            self.net.load_state_dict(torch.load("net.pth"))
            print(sum(p.sum().item() for p in self.net.parameters()))


    data = TensorDataset(torch.ones(32, 4), torch.arange(32) % 2)
    Solver(DataLoader(data, batch_size=8)).train()
"""
ANEW = {"built again": "self.build()", "taken away first": "del self.net; self.build()"}


@pytest.mark.parametrize("name", ANEW)
def test_a_model_that_is_built_again_below_its_training(refused_text, name):
    place = ["above line 24, where self.net is made and would be prepared"]
    finding = refused_text(PROGRAM.format(anew=ANEW[name]), "MIG104", "for x, y in self.loader:", place)

    assert "a name of its own" in finding.hint


def test_one_that_is_only_loaded_again(convert_text):
    _, text = convert_text(PROGRAM.format(anew="pass"))

    assert "self.accelerator.backward(loss)" in text
