"""Callbacks that are handed the object which has the accelerator, and are called in a way that takes no more."""

import pytest

from migrate.report.model import Kind

CALLBACKS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Callback:
    def on_epoch_begin(self, trainer):
        pass

    def on_epoch_end(self, trainer):
        pass

class History(Callback):
    def on_epoch_end(self, trainer):
        print(trainer.epoch, trainer.loss)

class Trainer:
    def __init__(self, net, callbacks):
        self.net, self.callbacks = net, callbacks
        self.optimizer = optim.SGD(net.parameters(), lr=0.1)
        self.loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)

    def fire(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def fit(self):
        for self.epoch in range(2):
            self.fire("on_epoch_begin")
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.net(x), y)
                loss.backward()
                self.optimizer.step()
            self.loss = loss.item()
            self.fire("on_epoch_end")

trainer = Trainer(nn.Linear(2, 1), [History()])
trainer.fit()
"""
REBOUND = CALLBACKS.replace("        print(", "        trainer = vars(trainer)\n        print(").replace(
    "trainer.epoch, trainer.loss", 'trainer["epoch"], trainer["loss"]'
)
SOMEONE_ELSE = CALLBACKS + 'getattr(History(), "on_epoch_end")(trainer.loader)\n'


def told(report):
    return [finding.message for finding in report.findings if finding.kind is Kind.NOTE]


def test_a_callback_asks_the_trainer_for_the_accelerator(convert_text):
    report, new = convert_text(CALLBACKS)

    assert "trainer.accelerator.print(trainer.epoch, trainer.loss)" in new
    assert new.count("def on_epoch_end(self, trainer):") == 2
    assert not told(report)


@pytest.mark.parametrize("source", [REBOUND, SOMEONE_ELSE])
def test_what_is_not_the_trainer_is_not_asked(convert_text, source):
    report, new = convert_text(source)

    assert "accelerator.print" not in new
    assert "        if os.environ.get('RANK', '0') == '0':\n            print(trainer" in new.replace('"', "'")
    assert not told(report)


def test_what_is_told_of_functions_out_of_reach_is_what_helps(convert_text):
    """Others would print all the same under main_process_first(), and wait in it for ever where a model is run."""
    written = REBOUND.replace("        print(", "        torch.save(trainer['loss'], 'epoch.pt')\n        print(")
    report, _ = convert_text(written)
    (note,) = [finding for finding in report.findings if finding.kind is Kind.NOTE]
    assert "`if os.environ.get('RANK', '0') == '0':`" in note.hint
    assert "main_process_first" not in note.hint

    guard = "        if os.environ.get('RANK', '0') == '0':\n            torch.save("
    done = "import os\n" + written.replace("        torch.save(", guard)
    assert not told(convert_text(done)[0])
