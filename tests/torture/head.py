# ruff: noqa: B905, F401, I001, N812, NPY002, PLR0402
"""What programs that are put together begin with: imports, and those of these classes and functions that they use."""

import argparse
import collections
import copy
import csv
import itertools
import logging
import os
import shutil
import sys
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
from tqdm import tqdm


class Rows(Dataset):
    def __init__(self, count, seed):
        made = np.random.RandomState(seed)
        self.x = made.randn(count, 6).astype("float32")
        self.y = (self.x.sum(1) > 0).astype("int64")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), int(self.y[i])


class Named(Rows):
    def __getitem__(self, i):
        x, y = super().__getitem__(i)
        return {"x": x, "y": y}


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, width), nn.ReLU())
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.body(x))


class Mlp(nn.Module):
    def __init__(self, inputs, outputs, width=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, outputs))

    def forward(self, x):
        return self.layers(x)


class Smoothed(nn.Module):
    def __init__(self, smoothing):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, out, target):
        logs = F.log_softmax(out, dim=-1)
        exact = -logs.gather(1, target.unsqueeze(1)).squeeze(1)
        return ((1.0 - self.smoothing) * exact - self.smoothing * logs.mean(dim=-1)).mean()


class AverageMeter:
    def __init__(self):
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


class Metric:
    def __init__(self):
        self.loss, self.hits, self.count = 0.0, 0, 0

    def update(self, out, y):
        self.loss += F.cross_entropy(out, y, reduction="sum").item()
        self.hits += (out.argmax(1) == y).sum().item()
        self.count += y.shape[0]

    def compute(self):
        return self.loss / self.count, self.hits / self.count


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.counter = 0
        self.best = None
        self.early_stop = False

    def __call__(self, loss, model):
        if self.best is None or loss < self.best:
            self.best = loss
            self.counter = 0
            torch.save(model.state_dict(), "checkpoint.pt")
        else:
            self.counter += 1
            if self.counter >= self.patience:
                self.early_stop = True


def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        m.bias.data.fill_(0.01)


def set_seed(seed):
    torch.manual_seed(seed)
    np.random.seed(seed)


def get_device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def get_data():
    return Rows(64, 0), Rows(30, 1)


def collate(samples):
    if isinstance(samples[0], dict):
        return {key: torch.stack([torch.as_tensor(sample[key]) for sample in samples]) for key in samples[0]}
    x, y = zip(*samples)
    return torch.stack(x), torch.tensor([int(each) for each in y])


def get_loaders(train_set, val_set, batch_size):
    train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=batch_size, shuffle=False)
    return train_loader, val_loader


def get_loader(dataset, args, training):
    return DataLoader(dataset, batch_size=args.batch_size, shuffle=training, drop_last=training)


def build_model(args, device):
    model = Net(width=4)
    model.apply(init_weights)
    return model.to(device)


def get_optimizer(model, args):
    if args.optimizer == "Adam":
        return optim.Adam(model.parameters(), lr=args.lr)
    return optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)


def get_scheduler(optimizer, args):
    if args.epochs > 2:
        return optim.lr_scheduler.StepLR(optimizer, step_size=2)
    return optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)


def adjust_learning_rate(optimizer, epoch, args):
    lr = args.lr * (0.1 ** (epoch // 2))
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr


def update_average(net, average, decay):
    with torch.no_grad():
        for fast, slow in zip(net.parameters(), average.parameters()):
            slow.data.mul_(decay).add_(fast.data, alpha=1 - decay)


def to_device(batch, device):
    if isinstance(batch, (list, tuple)):
        return [to_device(each, device) for each in batch]
    return batch.to(device)


def compute_loss(out, y, criterion):
    return criterion(out, y) + 0.01 * out.abs().mean()


def accuracy(output, target):
    with torch.no_grad():
        return (output.argmax(1) == target).float().mean().item() * 100


def f1(truth, guess):
    hits = ((truth == 1) & (guess == 1)).sum()
    return float(2 * hits / max(1, (truth == 1).sum() + (guess == 1).sum()))


def save_checkpoint(state, is_best, filename="checkpoint.pth"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth")


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--optimizer", default="SGD")
    parser.add_argument("--device", default=None)
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--resume", default="last.pt")
    return parser.parse_args()
