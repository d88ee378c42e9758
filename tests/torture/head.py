# ruff: noqa: B905, F401, I001, N812, NPY002, PLR0402
"""What programs that are put together begin with: imports, and those of these classes and functions that they use."""

import argparse
import collections
import copy
import csv
import itertools
import json
import logging
import math
import os
import shutil
import sys
import types
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from dataclasses import dataclass
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


class Curve(Rows):
    def __getitem__(self, i):
        x = torch.from_numpy(self.x[i])
        return x, torch.sin(x[:2].sum()).view(1)


class Labels(Rows):
    def __getitem__(self, i):
        return {"x": self.x[i], "y": (self.x[i][:3] > 0.2).astype("float32")}


class Heads(Rows):
    def __getitem__(self, i):
        x, y = super().__getitem__(i)
        return x, (y, x.abs().mean())


class Pairs(Rows):
    def __getitem__(self, i):
        j = (7 * i + 3) % len(self)
        return (torch.from_numpy(self.x[i]), torch.from_numpy(self.x[j])), float(self.y[i] == self.y[j])


class Text(Dataset):
    def __init__(self, count, seed):
        self.tokens = np.random.RandomState(seed).randint(0, 9, (count, 7))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        tokens = torch.as_tensor(self.tokens[i])
        return tokens[:-1], (tokens[1:] + tokens[:-1]) % 9


class Ragged(Text):
    def __getitem__(self, i):
        tokens = self.tokens[i][: 2 + self.tokens[i][0] % 5]
        return torch.as_tensor(tokens), float(tokens.sum() % 2)


class Pictures(Dataset):
    def __init__(self, count, seed):
        self.x = torch.randn(count, 1, 4, 4, generator=torch.Generator().manual_seed(seed))
        self.y = (self.x[:, 0] > 0).long() + (self.x[:, 0] > 1).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Lines(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 8)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, 9)

    def forward(self, tokens, hidden=None):
        out, hidden = self.rnn(self.embedding(tokens), hidden)
        return self.out(out), hidden


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 8, padding_idx=0)
        self.rnn = nn.LSTM(8, 8, batch_first=True)
        self.out = nn.Linear(8, 1)

    def forward(self, tokens, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(tokens), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        _, (hidden, _) = self.rnn(packed)
        return self.out(hidden[-1]).squeeze(1)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 1))

    def forward(self, x):
        return self.layers(x)


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 4), nn.Linear(2, 6)

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        z = mu
        if self.training:
            z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(z), mu, logvar


class Twin(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward_once(self, x):
        return self.net(x)

    def forward(self, a, b):
        return self.forward_once(a), self.forward_once(b)


class Forked(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.kind, self.size = nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x):
        x = torch.tanh(self.body(x))
        return self.kind(x), self.size(x)


class Contrastive(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, one, two, same):
        distance = F.pairwise_distance(one, two)
        apart = torch.clamp(self.margin - distance, min=0.0)
        return torch.mean(same * distance.pow(2) + (1 - same) * apart.pow(2))


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


def padded(samples):
    texts, answers = zip(*samples)
    lengths = torch.tensor([len(text) for text in texts])
    return nn.utils.rnn.pad_sequence(texts, batch_first=True), lengths, torch.tensor(answers)


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


def dice(out, y, smooth=1.0):
    guess = F.one_hot(out.argmax(1), 3).float()
    truth = F.one_hot(y, 3).float()
    hits = (guess * truth).sum((1, 2))
    return ((2 * hits + smooth) / (guess.sum((1, 2)) + truth.sum((1, 2)) + smooth)).mean().item()


def average_precision(labels, scores):
    found = []
    for truth, score in zip(labels.T, scores.T):
        ranked = truth[np.argsort(-score, kind="stable")]
        precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
        found.append(float((precision * ranked).sum() / max(1, ranked.sum())))
    return float(np.mean(found))


def make_run_folder(root):
    number = 0
    while os.path.exists(os.path.join(root, f"run{number}")):
        number += 1
    path = os.path.join(root, f"run{number}")
    os.makedirs(path)
    return path


def save_checkpoint(state, is_best, filename="checkpoint.pth"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth")


@dataclass
class Config:
    lr: float = 0.05
    batch_size: int = 8
    epochs: int = 3
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


class Settings:
    BATCH_SIZE = 8
    EPOCHS = 3
    DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_config():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "config.json")) as file:
        return json.load(file)


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
