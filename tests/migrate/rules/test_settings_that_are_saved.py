"""What an object is handed by a method that only looks at it is nothing that it holds."""

import pytest

PROGRAM = """\
import json
import os
import time

import torch
from torch import nn


class Params:
    def __init__(self, path):
        with open(path) as f:
            self.__dict__.update(json.load(f))

    def save(self, path):
{save}


params = Params("config.json")
params.save(os.path.join("runs", time.strftime("%H%M"), "config.json"))
rows = torch.randn(8, 2)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(params.epochs):
    for start in range(0, 8, 4):
        optimizer.zero_grad()
        loss = model(rows[start : start + 4]).pow(2).mean()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "save",
    [
        "with open(path, 'w') as f:\n            json.dump(self.__dict__, f, indent=4)",
        "print(path, self.__dict__)",
    ],
)
def test_what_is_saved_stays_as_it_is(convert_text, save):
    _, text = convert_text(PROGRAM.format(save=f"        {save}"))

    assert "accelerator.backward(loss)" in text


@pytest.mark.parametrize(
    "save",
    [
        "self.epochs = int(path[-16:-12])",
        "self.__dict__['epochs'] = int(path[-16:-12])",
        "self.__dict__.update(epochs=int(path[-16:-12]))",
        "held = self.__dict__\n        held['epochs'] = int(path[-16:-12])",
        "setattr(self, 'epochs', int(path[-16:-12]))",
    ],
)
def test_what_a_method_puts_into_its_object_is_asked_for(refused_text, save):
    refused_text(PROGRAM.format(save=f"        {save}"), "MIG122", "for epoch in range(params.epochs):", ["strftime"])
