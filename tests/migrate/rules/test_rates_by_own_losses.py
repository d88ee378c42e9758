"""A scheduler that is told the loss of each step, where every process draws its own batches: rates would part ways."""

import pytest

PROGRAM = """\
import numpy as np
import torch
from torch import nn

{seed}
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.{scheduler}
for step in range(100):
    x = torch.from_numpy(np.random.randn(8, 4)).float()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step({told})
torch.save(model.state_dict(), "model.pt")
"""
PLATEAU = "ReduceLROnPlateau(optimizer, patience=2)"
SEED = "set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])"


@pytest.mark.parametrize("told", ["loss", "loss.item()", "metrics=loss.detach()"])
def test_where_rates_go_by_losses_all_processes_draw_the_same(convert_text, told):
    _, text = convert_text(PROGRAM.format(seed="pass", scheduler=PLATEAU, told=told))
    assert SEED in text


def test_where_rates_go_by_steps_each_process_draws_its_own(convert_text):
    warm = "CosineAnnealingWarmRestarts(optimizer, 10)"
    _, text = convert_text(PROGRAM.format(seed="pass", scheduler=warm, told="step / 4"))
    assert "accelerator.backward" in text
    assert "set_seed" not in text


def test_a_program_that_seeds_itself_gets_no_other_seed(convert_text):
    seed = "np.random.seed(0)\ntorch.manual_seed(0)"
    _, text = convert_text(PROGRAM.format(seed=seed, scheduler=PLATEAU, told="loss"))
    assert "accelerator.backward" in text
    assert "set_seed" not in text
