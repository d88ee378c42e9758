"""Checkpoints of a wrapped model that a function inside loads, into the model around it."""

import pytest

SOURCE = """\
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def main(path):
    dist.init_process_group("gloo")
    model = nn.Linear(4, 1)
{above}
    model = DistributedDataParallel(model)
{below}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64, 1)), batch_size=8)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({{"model": model.state_dict()}}, path)


main("m.pt")
"""
RESUME = """\
    def resume():
        if os.path.isfile(path):
            state = torch.load(path, map_location="cpu")
            model.load_state_dict(state["model"])
"""
OWN = RESUME.replace("            state =", "            model = nn.Linear(4, 1)\n            state =")
STRIP = 'torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state["model"], "module.")'
CALLED = "    resume()"
BELOW, ABOVE, OTHER = {"below": RESUME + CALLED}, {"above": RESUME + CALLED}, {"below": OWN + CALLED}


@pytest.mark.parametrize(
    ("where", "is_stripped"),
    [(BELOW, True), ({"above": RESUME, "below": CALLED}, True), (ABOVE, False), (OTHER, False)],
)
def test_what_a_function_inside_loads(convert_text, where, is_stripped):
    _, text = convert_text(SOURCE.format(**{"above": "", "below": ""} | where))

    assert (STRIP in text.replace("'", '"')) is is_stripped
