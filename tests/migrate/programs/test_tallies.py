"""What loops add up, and where that is reset, fed and read."""

import ast
import textwrap

from migrate.programs.values.tallies import Shape, tallies

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
loader = DataLoader(data)
net = nn.Linear(1, 1)
"""


def lines(nodes):
    return [ast.unparse(node) for node in nodes]


def test_a_training_loop(analysed):
    source = """
        def train():
            total, seen = 0, []
            for i, x in enumerate(loader):
                loss = net(x).sum()
                loss.backward()
                total += loss.item()
                seen.append(loss.item())
                i += 1
                print(total)
            return total / len(loader), seen
        train()
    """
    facts, loops = analysed(HEAD + textwrap.dedent(source))
    (loop,) = loops.training
    total, seen = tallies(facts, loop)

    assert (total.target, total.shape, seen.target, seen.shape) == ("total", Shape.SUM, "seen", Shape.LIST)
    assert lines(total.fed) == ["total += loss.item()"]
    assert lines(total.reset) == lines(seen.reset) == ["total, seen = (0, [])"]
    assert (len(total.read_inside), len(total.read_outside)) == (1, 1)
    assert (len(seen.read_inside), len(seen.read_outside)) == (0, 1)


def test_an_attribute_of_a_trainer_in_an_evaluation(analysed):
    source = """
        class Trainer:
            def __init__(self):
                self.correct = 0
            def evaluate(self):
                for x in loader:
                    self.correct += (net(x) > 0).sum().item()
            def report(self):
                print(self.correct)
        Trainer().evaluate()
    """
    facts, loops = analysed(HEAD + textwrap.dedent(source))
    (loop,) = loops.evaluation
    (correct,) = tallies(facts, loop)

    assert correct.target == "self.correct"
    assert lines(correct.reset) == ["self.correct = 0"]
    assert lines(correct.read_outside) == ["self.correct"]
