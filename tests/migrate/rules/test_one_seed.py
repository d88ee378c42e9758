"""MIG123: one seed for all processes. Which decisions it makes alike stands in test_without_loader.py."""

import pytest

from migrate.options import Target

PROGRAM = """
import random
import torch
from torch import nn, optim
{seed}
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
{made}
while {test}:
    loss = (model({given}) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HOLES = {"seed": "", "made": "", "test": "random.random() < 0.9", "given": "torch.ones(4, 2)"}
ALIKE = "set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])"


def source(**holes):
    return PROGRAM.format(**{**HOLES, **holes}).lstrip()


def test_processes_take_the_seed_of_the_first(convert_text):
    _, result = convert_text(source())

    assert f"if accelerator.num_processes > 1:\n    {ALIKE}\n" in result
    assert result.index(ALIKE) < result.index("while random")


def test_for_accelerate_its_names_come_from_its_utilities(convert_text):
    _, result = convert_text(source(), target=Target.ACCELERATE)

    assert "from accelerate.utils import broadcast_object_list, set_seed\n" in result


SEEDED = "random.seed(1)\ntorch.manual_seed(1)"
NOT_SEEDED = {
    "it seeds itself": {"seed": SEEDED},
    "fresh batches only": {"made": "step = 0", "test": "(step := step + 1) < 9", "given": "torch.rand(4, 2)"},
    "nothing is drawn": {"made": "step = 0", "test": "(step := step + 1) < 9"},
}


@pytest.mark.parametrize("name", NOT_SEEDED)
def test_not_where_nothing_asks_for_it(convert_text, name):
    _, result = convert_text(source(**NOT_SEEDED[name]))

    assert "accelerator.backward(loss)" in result
    assert "broadcast_object_list" not in result


def test_refused_where_something_lasting_is_drawn_before(refused_text):
    made = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"
    body = source(made=made, given="noise").partition("model =")
    inside = "".join(f"    {line}\n" for line in (body[1] + body[2]).splitlines())
    text = f"{body[0]}noise = torch.rand(4, 2)\ndef main():\n{inside}\nmain()\n"

    refused_text(text, "MIG123", "noise = torch.rand", ["draws something here"])
