"""A model that is compiled once its optimizer is there is prepared above that: what is compiled is the prepared one."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

def main(compiles):
    torch.manual_seed(0)
    loader = DataLoader(data, shuffle=True)
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    {made}
    for x in loader:
        optimizer.zero_grad()
        {name}(x).mean().backward()
        optimizer.step()

main(True)
"""
MADE = {
    "always": ("model = torch.compile(net)", "model"),
    "if asked": ("if compiles:\n        model = torch.compile(net)\n    else:\n        model = net", "model"),
    "under its name": ("net = torch.compile(net)", "net"),
    "for something else": ("fast = torch.compile(net)", "net"),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_compiled_is_prepared(decide, name):
    made, trained = MADE[name]
    program, conversion = decide(PROGRAM.format(made=made, name=trained))

    assert not program.refusals
    assert [named.target for stage in conversion.placement.stages.each for named in stage.objects] == [
        "loader",
        "net",
        "optimizer",
    ]
