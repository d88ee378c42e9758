"""A folder that is named by the clock, and what opens its log there: of all processes, or of the main one alone."""

from migrate.options import Options
from migrate.pipeline import run

LOGS = """
import logging
import os


def get_logger(folder):
    logger = logging.getLogger("train")
    logger.addHandler(logging.FileHandler(os.path.join(folder, "info.log")))
    return logger
"""
TRAIN = """
import os
import time

import torch
from logs import get_logger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.logger = get_logger(self.folder())
        self.model = nn.Linear(2, 1).to(self.device)
        self.loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def folder(self):
        folder = os.path.join("runs", time.strftime("%H%M%S"))
        if not os.path.exists(folder):
            os.makedirs(folder)
        return folder

    def train(self):
        for x, y in self.loader:
            loss = (self.model(x.to(self.device)) - y.to(self.device)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.logger.info("loss %f", loss.item())


Trainer().train()
"""


def converted(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text.lstrip("\n"))
    return {change.path: change.new.decode() for change in run(["."], Options()).changes}


def test_who_has_no_accelerator_opens_its_log_in_the_folder_of_all(tmp_path):
    beside = "from logs import get_logger\n\nget_logger('.').info('tested')\n"
    result = converted(tmp_path, logs=LOGS, train=TRAIN, test=beside)["train.py"]

    assert 'folder = broadcast_object_list([os.path.join("runs", time.strftime("%H%M%S"))])[0]' in result
    assert "os.makedirs(folder, exist_ok=True)" in result


def test_who_can_ask_opens_it_on_the_main_process_alone(tmp_path):
    changed = converted(tmp_path, logs=LOGS, train=TRAIN)

    assert "if not os.path.exists(folder) and self.accelerator.is_main_process:" in changed["train.py"]
    assert 'os.path.join(folder, "info.log") if accelerator.is_main_process else os.devnull' in changed["logs.py"]
