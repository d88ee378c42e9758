"""What is printed by methods that no call names: one process says it (contract E4)."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Bar:
    def __init__(self, over=()):
        self.over = over
        self.count = 0
{methods}

def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.rand(16, 2)), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{loop}
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()

main()
"""
ENTERED = """
    def __enter__(self):
        print(1)
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        print(2)
"""
ITERATED = """
    def __iter__(self):
        for batch in self.over:
            yield batch
            self.count += 1
            print(self.count)
"""
WITH = "    with Bar():\n        for (x,) in loader:"
LOOPS = {
    "a block": (ENTERED, WITH, [1, 2]),
    "a loop": (ITERATED, "    if True:\n        for (x,) in Bar(loader):", [1, 2, 3, 4]),
    "a loop that counts": (ITERATED, "    if True:\n        for _, (x,) in enumerate(Bar(loader)):", [1, 2, 3, 4]),
}


def _source(methods, loop, size=4):
    return PROGRAM.format(methods=methods, loop=loop).replace("batch_size=4", f"batch_size={size}")


@pytest.mark.parametrize("name", LOOPS)
def test_one_process_prints(convert_text, numbers_printed, name):
    methods, loop, printed = LOOPS[name]
    _, result = convert_text(_source(methods, loop, 2))

    assert numbers_printed(result, 2) == printed


def test_a_print_that_asks_which_process_it_is_stays(convert_text):
    asked = ENTERED.replace("print(1)", 'if os.environ.get("RANK", "0") == "0": print(1)').replace("print(2)", "pass")
    _, result = convert_text(_source(asked, WITH))

    assert result.count("RANK") == 1


def test_a_file_that_every_process_writes_is_told(convert_text):
    written = '    def __exit__(self, *args):\n        open("log.txt", "w").write("done")\n\n'
    report, result = convert_text(_source(written + "    def __enter__(self):\n        return self", WITH))

    assert 'open("log.txt", "w").write("done")' in result
    assert [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG117"]
