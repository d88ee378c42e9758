"""Objects that hold models and optimizers of their own, of a class that more than one file makes objects of."""

import pytest

from migrate.report.model import Kind

GAN = """
    import torch
    from torch import nn, optim


    class Gan:
        def __init__(self, width):
            self.G = nn.Linear(4, width)
            self.D = nn.Linear(width, 1)
            self.optim_G = optim.Adam(self.G.parameters(), lr=1e-3)
            self.optim_D = optim.Adam(self.D.parameters(), lr=1e-3)

        def step(self, x, optimizer, sign):
            loss = sign * self.D(self.G(x)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    if __name__ == "__main__":
        gan = Gan(8)
        print(gan.G)
"""
TRAIN = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from gan import Gan

    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=16, shuffle=True)
    gan = Gan(4)
    for i, (x,) in enumerate(loader):
        gan.step(x, gan.optim_D if i % 2 else gan.optim_G, 1 if i % 2 else -1)
"""


def test_one_that_another_script_makes_stays_what_it_was(converted):
    report, files = converted(gan=GAN, train=TRAIN)

    assert not report.of(Kind.LEFT)
    assert "gan.optim_G, gan.optim_D = accelerator.prepare(" in files["train"]
    assert 'if __name__ == "__main__":\n    gan = Gan(8)\n    print(gan.G)\n' in files["gan"]


@pytest.mark.parametrize("second", ["other = Gan(4)\n    other.step(x, other.optim_D, 1)", "gan = Gan(4)"])
def test_two_that_train_are_refused(converted, second):
    trained = TRAIN.replace("gan.step(", f"{second}\n        gan.step(".replace("\n    other", "\n        other"))
    report, files = converted(gan=GAN, train=trained)

    assert report.of(Kind.LEFT)
    assert all("ccelerator" not in text for text in files.values())
