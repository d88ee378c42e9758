"""Classes that take the batches of several loaders ahead: one place takes what is trained on, and what is not."""

PREFETCHER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Prefetcher:
    def __init__(self, loader):
        self.loader = loader
        self.reset()

    def reset(self):
        self.batches = iter(self.loader)
        self.preload()

    def preload(self):
        try:
            self.ahead = next(self.batches)
        except StopIteration:
            self.ahead = None
            return None
        self.ahead = [part.cuda() for part in self.ahead]

    def next(self):
        batch = self.ahead
        self.preload()
        return batch


def fit(batches, model, optimizer):
    model.train()
    batches.reset()
    batch = batches.next()
    while batch is not None:
        x, y = batch
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch = batches.next()


def test(batches, model):
    model.eval()
    batches.reset()
    total, batch = 0.0, batches.next()
    with torch.no_grad():
        while batch is not None:
            x, y = batch
            total += nn.functional.mse_loss(model(x), y).item()
            batch = batches.next()
    return total


def made():
    train_loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    test_loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    return Prefetcher(train_loader), Prefetcher(test_loader)


def main():
    batches, test_batches = made()
    model = nn.Linear(2, 1).cuda()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        fit(batches, model, optimizer)
        print(test(test_batches, model))


main()
"""


def test_a_loader_of_which_a_class_takes_the_batches_beside_others_is_said_to_be_trained_on(refused_text):
    refused_text(
        PREFETCHER, "MIG114", "self.ahead = next(self.batches)", ["train_loader is trained on, and of what is taken"]
    )
