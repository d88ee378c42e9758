"""A device that an object chooses below where it has handed its model on: the accelerator is made above that."""

PROGRAM = """
import argparse

import torch
from torch import nn


class Evaluation:
    def __init__(self, model, size):
        self.model = model
        self.size = size


class Trainer:
    def __init__(self, model, optimizer, use_cuda):
        self.model = model
        self.optimizer = optimizer
        self.evaluation = Evaluation(self.model, 8)
        {between}self.device = torch.device("cuda" if use_cuda else "cpu")

    def train(self):
        for _ in range(3):
            loss = self.model(torch.randn(8, 4).to(self.device)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


parser = argparse.ArgumentParser()
parser.add_argument("--cuda", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Linear(4, 1)
Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), args.cuda).train()
"""


def test_the_accelerator_is_made_above_what_is_handed_on(convert_text):
    _, result = convert_text(PROGRAM.format(between=""))

    made, prepared = result.index("Accelerator(cpu=not use_cuda)"), result.index("self.accelerator.prepare(")
    assert made < prepared < result.index("Evaluation(self.") < result.index("self.device = self.accelerator.device")


def test_it_is_refused_where_the_flag_is_only_there_below(refused_text):
    refused_text(
        PROGRAM.format(between="use_cuda = use_cuda and torch.cuda.is_available()\n        "),
        code="MIG100",
        at="self.device = ",
        mentions=["which gets its value after the models are made"],
    )
