import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

"""
NEW_HEAD = """
import torch
from runtime import Accelerator
from torch import nn, optim
from torch.utils.data import DataLoader

"""
SETUP = """
    loader = DataLoader(data)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
TRAIN = """
def train(model, {first}loader, optimizer{last}):
    for x, y in loader:
        {backward}
        optimizer.step()


def main():
"""
BACKWARD = "model(x).sum().backward()"
NEW_BACKWARD = "accelerator.backward(model(x).sum())"
PREPARE = "\n    loader, model, optimizer = accelerator.prepare(loader, model, optimizer)\n\n"
DEVICE = '    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
CREATED = "    accelerator = Accelerator()"

UNCHANGED = {
    "the functions of a module that makes everything": {
        "setup": "def descend(value):\n    return value",
        "step": "descend(loss)",
    },
    "a function that has no need of it": {
        "setup": "def double(rows):\n    return 2 * rows",
        "forward": "model(double(x))",
    },
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


def test_the_import_is_sorted_into_its_place(becomes, programs):
    before, _ = programs({})
    moved = before.replace("import torch\n", "import torch\nimport zlib\n")
    becomes(
        moved,
        moved.replace("import zlib\n", "import zlib\n\nfrom runtime import Accelerator\n", 0)
        .replace("from torch import nn, optim", "from runtime import Accelerator\nfrom torch import nn, optim")
        .replace("data = Tensor", "\naccelerator = Accelerator()\n\ndata = Tensor")
        .replace("lr=0.1)\n", f"lr=0.1)\n\n{PREPARE.strip()}\n\n")
        .replace("loss.backward()", "accelerator.backward(loss)"),
    )


def test_for_accelerate(programs, convert_text):
    before, _ = programs({})
    _, result = convert_text(before, target=__import__("migrate.options").options.Target.ACCELERATE)

    assert "from accelerate import Accelerator" in result
    assert "runtime" not in result


def test_it_takes_the_place_of_the_device(becomes):
    becomes(
        HEAD
        + TRAIN.format(first="device, ", last="", backward=BACKWARD)
        + DEVICE
        + SETUP
        + "    train(model, device, loader, optimizer)\n\n\nmain()\n",
        NEW_HEAD
        + TRAIN.format(first="accelerator, ", last="", backward=NEW_BACKWARD)
        + CREATED
        + SETUP
        + PREPARE
        + "    train(model, accelerator, loader, optimizer)\n\n\nmain()\n",
    )


def test_by_keyword(becomes):
    becomes(
        HEAD
        + TRAIN.format(first="device, ", last="", backward=BACKWARD)
        + DEVICE
        + SETUP
        + "    train(model, device=device, loader=loader, optimizer=optimizer)\n\n\nmain()\n",
        NEW_HEAD
        + TRAIN.format(first="accelerator, ", last="", backward=NEW_BACKWARD)
        + CREATED
        + SETUP
        + PREPARE
        + "    train(model, accelerator=accelerator, loader=loader, optimizer=optimizer)\n\n\nmain()\n",
    )


def test_it_becomes_a_parameter(becomes):
    becomes(
        HEAD
        + TRAIN.format(first="", last=", scale=1.0", backward=BACKWARD)
        + SETUP.lstrip("\n")
        + "    train(model, loader, optimizer, 2.0)\n    train(model, loader, optimizer=optimizer)\n\n\nmain()\n",
        NEW_HEAD
        + TRAIN.format(first="", last=", accelerator, scale=1.0", backward=NEW_BACKWARD)
        + CREATED
        + "\n"
        + SETUP.lstrip("\n")
        + PREPARE
        + "    train(model, loader, optimizer, accelerator, 2.0)\n"
        + "    train(model, loader, optimizer=optimizer, accelerator=accelerator)\n\n\nmain()\n",
    )


def test_a_function_inside_sees_it(becomes):
    inner = "    def descend(value):\n        {}\n\n"
    loop = "    for x, y in loader:\n        descend(model(x).sum())\n        optimizer.step()\n\n\nmain()\n"
    becomes(
        f"{HEAD}\ndef main():\n{inner.format('value.backward()')}{SETUP.lstrip()[4:] and SETUP.lstrip(chr(10))}{loop}",
        f"{NEW_HEAD}\ndef main():\n{CREATED}\n\n{inner.format('accelerator.backward(value)')}"
        f"{SETUP.lstrip(chr(10))}{PREPARE}{loop}",
    )


def test_the_functions_of_the_module_see_it(changed):
    changed(
        setup=(
            "def descend(value):\n    value.backward()",
            "def descend(value):\n    accelerator.backward(value)",
        ),
        backward="descend(loss)",
    )


def test_a_flag_that_guards_the_moves_goes_on_deciding(changed):
    parse = "import argparse\nargs = argparse.ArgumentParser().parse_args()"
    changed(
        accelerator="",
        setup=(parse, f"{parse}\naccelerator = Accelerator(cpu=not args.cuda)"),
        made=("if args.cuda:\n    model.cuda()", ""),
        batch=("if args.cuda:\n    x, y = x.cuda(), y.cuda()", ""),
    )


OUT_OF_REACH = {
    "used as a value": (
        "    steps = [train]\n    steps[0](model, loader, optimizer)\n",
        "def train",
        "not all of its callers are known",
    ),
    "called with a star": (
        "    parts = (model, loader, optimizer)\n    train(*parts)\n",
        "train(*parts)",
        "called with * or **",
    ),
    "called with two stars": (
        "    parts = dict(model=model, loader=loader, optimizer=optimizer)\n    train(**parts)\n",
        "train(**parts)",
        "called with * or **",
    ),
}


@pytest.mark.parametrize("name", OUT_OF_REACH)
def test_refused(refused_text, name):
    call, at, mention = OUT_OF_REACH[name]
    source = HEAD + TRAIN.format(first="", last="", backward=BACKWARD) + SETUP.lstrip("\n") + call + "\n\nmain()\n"
    finding = refused_text(source, "MIG904", at, [mention])

    assert finding.hint


def test_a_function_whose_parameters_all_have_defaults_is_refused(refused_text):
    source = (
        HEAD
        + TRAIN.replace("model, {first}loader, optimizer{last}", "model=None, loader=None, optimizer=None").format(
            backward=BACKWARD
        )
        + SETUP.lstrip("\n")
        + "    train(model, loader, optimizer)\n\n\nmain()\n"
    )
    refused_text(source, "MIG904", "def train", ["all of its parameters have defaults"])
