"""Classes beside each other that train, whose common base makes the accelerator."""

import textwrap

from migrate.report.model import Kind

BASE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

def data(flag):
    return DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=2, shuffle=flag)

class Base:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = self.build().to(self.device)

"""
MEAN = """
class Mean(Base):
    def build(self):
        return nn.Linear(2, 1)

    def train(self):
        loader = data(True)
        optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        for (x,) in loader:
            x = x.to(self.device)
            optimizer.zero_grad()
            loss = self.model(x).pow(2).mean()
            loss.backward()
            optimizer.step()

"""
ABSOLUTE = MEAN.replace("Mean", "Absolute").replace("pow(2)", "abs()").replace("SGD", "Adam")
RUN = """
KINDS = {"mean": Mean, "absolute": Absolute}
trainer = KINDS[name](args)
trainer.train()
"""
SCALED = (
    ABSOLUTE.replace("loader = data(True)", "loader = data(True)\n        scaler = torch.cuda.amp.GradScaler()")
    .replace("loss = self", "with torch.cuda.amp.autocast():\n                loss = self")
    .replace("loss.backward()", "scaler.scale(loss).backward()")
    .replace("optimizer.step()", "scaler.step(optimizer)\n            scaler.update()")
)


def test_one_accelerator_for_all(convert_text):
    report, result = convert_text(BASE + MEAN + ABSOLUTE + RUN)
    assert not [f for f in report.findings if f.kind is Kind.LEFT]
    assert result.count("Accelerator()") == 1
    assert "        self.args = args\n        self.accelerator = Accelerator()\n" in result
    assert result.count("loader, self.model, optimizer = self.accelerator.prepare(") == 2
    assert result.count("self.accelerator.backward(loss)") == 2
    assert "x.to(" not in result


def test_the_base_may_be_made_in_several_places(convert_text):
    train = "if args.train:\n" + textwrap.indent(RUN, "    ")
    test = "else:\n    trainer = {'mean': Mean, 'absolute': Absolute}[name](args)\n    print(trainer.model)\n"
    _, result = convert_text(BASE + MEAN + ABSOLUTE + train + test)
    assert result.count("loader, self.model, optimizer = self.accelerator.prepare(") == 2


def test_all_or_none(convert_text):
    source = BASE + MEAN + SCALED + RUN
    report, result = convert_text(source)
    assert result == source.lstrip("\n")
    left = [f.message for f in report.findings if f.kind is Kind.LEFT]
    assert any("that would have to become something else for it" in message for message in left)
    assert any("it changes the base of its class together with the training at line" in message for message in left)


def test_a_model_that_is_handed_to_both_is_prepared_by_none(convert_text):
    shared = BASE.replace("self.build().to(self.device)", "args.net.to(self.device)")
    run = "class Args:\n    net = nn.Linear(2, 1)\nMean(Args).train()\nAbsolute(Args).train()\n"
    source = shared + MEAN + ABSOLUTE + run
    report, result = convert_text(source)
    assert result == source.lstrip("\n")
    assert any(f.kind is Kind.LEFT for f in report.findings)
