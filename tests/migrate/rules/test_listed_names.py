"""Names that a program reads all at once: what only processes needed stays among them."""

import pytest

PROGRAM = """\
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

backend = "gloo"
rate = 0.1
{above}
dist.init_process_group(backend)
model = DistributedDataParallel(nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
for step in range(10):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 2)).mean()
    loss.backward()
    optimizer.step()

"""
ABOVE = {
    "all of them": "config = {name: value for name, value in globals().items() if isinstance(value, str)}",
    "those of the file": "known = sorted(vars())",
    "a text that may set them": "exec(open('settings.py').read())",
    "in a function": "def shown():\n    return globals()",
}


@pytest.mark.parametrize("name", ABOVE)
def test_what_is_read_with_all_others_stays(convert_text, name):
    _, result = convert_text(PROGRAM.format(above=ABOVE[name]))

    assert 'backend = "gloo"' in result
    assert "init_process_group" not in result


@pytest.mark.parametrize("above", ["", "config = vars(torch)"])
def test_what_nothing_reads_any_more_goes(convert_text, above):
    _, result = convert_text(PROGRAM.format(above=above))

    assert "backend" not in result


def test_what_was_read_before_it_had_its_value_goes(convert_text):
    text = PROGRAM.format(above="").replace('backend = "gloo"', 'known = sorted(globals())\nbackend = "gloo"')
    _, result = convert_text(text)

    assert "backend" not in result
