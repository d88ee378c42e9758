"""A name that is looked for until there is no such file: that of the main process is the one of all."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import os
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

{function}
torch.manual_seed(0)
data = TensorDataset(torch.linspace(-1, 1, 24).view(8, 3), torch.linspace(0, 1, 8).view(8, 1))
loader = DataLoader(data, batch_size=SIZE)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
top = "TOP"
{looks}
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
{saves}
"""
SAVES = """
os.mkdir(folder)
path = os.path.join(folder, "model.pt")
torch.save(model.state_dict(), path)
print(sum(each.sum().item() for each in torch.load(path).values()))
"""
LOOK = """
number = 0
{begin}
while {test}:
    number += 1
    {go}
{end}
"""
LOOKS = {
    "a folder": (
        {
            "begin": "folder = top + '/a'",
            "test": "os.path.isdir(folder)",
            "go": "folder = f'{top}/{number}'",
            "end": "",
        },
        "folder, number = broadcast_object_list([folder, number])\n",
    ),
    "a number": (
        {
            "begin": "",
            "test": "os.path.exists(os.path.join(top, str(number)))",
            "go": "",
            "end": "folder = f'{top}/{number}'",
        },
        "number = broadcast_object_list([number])[0]\n",
    ),
    "a path": (
        {"begin": "folder = Path(top)", "test": "folder.exists()", "go": "folder = Path(top) / f'{number}'", "end": ""},
        "folder, number = broadcast_object_list([folder, number])\n",
    ),
}


@pytest.mark.parametrize("name", LOOKS)
def test_all_go_on_with_what_the_main_process_has_found(convert_text, numbers_printed, tmp_path, name):
    holes, told = LOOKS[name]
    _, result = convert_text(PROGRAM.format(function="", looks=LOOK.format(**holes), saves=SAVES))
    late = "accelerator.is_main_process or __import__('time').sleep(2)\n"
    result = "import os\nos.makedirs('TOP', exist_ok=True)\n" + result.replace("number = 0\n", f"{late}number = 0\n")

    assert result.count(told) == 1
    one = numbers_printed(result.replace("SIZE", "4").replace("TOP", f"{tmp_path}/one"), 1)
    two = numbers_printed(result.replace("SIZE", "2").replace("TOP", f"{tmp_path}/two"), 2)
    assert two == pytest.approx(one, rel=1e-4)


def test_where_only_the_main_process_uses_it_nothing_is_told(convert_text):
    saves = "torch.save(model.state_dict(), f'{folder}.pt')"
    _, result = convert_text(
        PROGRAM.format(function="", looks=LOOK.format(**LOOKS["a folder"][0]), saves=saves).replace("SIZE", "4")
    )

    assert "accelerator.save(" in result
    assert "broadcast_object_list" not in result


def test_a_loop_that_waits_for_a_file_is_no_search(convert_text):
    looks = "folder = f'{top}/run'\nwhile not os.path.exists(top):\n    __import__('time').sleep(1)"
    _, result = convert_text(PROGRAM.format(function="", looks=looks, saves=SAVES).replace("SIZE", "4"))

    assert "broadcast_object_list" not in result


def test_what_is_found_where_there_is_no_accelerator_is_left(convert_text):
    holes, _ = LOOKS["a number"]
    asked = "parser = __import__('argparse').ArgumentParser()\nparser.add_argument('--cpu', action='store_true')\n"
    chosen = f"{asked}args = parser.parse_args()\nmodel = nn.Linear(3, 1)\nif not args.cpu:\n    model.cuda()"
    source = PROGRAM.format(function="top = 'runs'\n" + LOOK.format(**holes), looks="", saves=SAVES)
    report, result = convert_text(source.replace("SIZE", "4").replace("model = nn.Linear(3, 1)", chosen))

    assert "broadcast_object_list" not in result
    assert [f for f in report.of(Kind.LEFT) if "makes up a name of its own" in f.message]
