import pytest

from migrate.options import Target

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
    "a class": {
        "setup": "class Meter:\n    def add(self, value):\n        self.value = value\n\nmeter = Meter()",
        "epoch": "meter.add(1)",
    },
    "a function that nobody calls": {"setup": "def later():\n    return 1"},
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


IMPORTS = {
    "between": (
        "import torch\nfrom torch import nn, optim\nfrom torch.utils.data import DataLoader",
        (
            "import torch\nfrom runtime import Accelerator\nfrom torch import nn, optim\n"
            "from torch.utils.data import DataLoader"
        ),
    ),
    "in a group of its own kind": (
        "import os\n\nimport torch\nfrom torch import nn, optim\nfrom torch.utils.data import DataLoader",
        (
            "import os\n\nimport torch\nfrom runtime import Accelerator\nfrom torch import nn, optim\n"
            "from torch.utils.data import DataLoader"
        ),
    ),
    "after the future": (
        "from __future__ import annotations\n\nfrom torch import nn, optim\nfrom torch.utils.data import DataLoader",
        (
            "from __future__ import annotations\n\nfrom runtime import Accelerator\nfrom torch import nn, optim\n"
            "from torch.utils.data import DataLoader"
        ),
    ),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_the_import_is_sorted_into_its_place(becomes, name):
    before, after = IMPORTS[name]
    body = "\n\ndef main():\n"
    becomes(
        f"{before}\n{body}{SETUP[1:]}    for x, y in loader:\n        {BACKWARD}\n        optimizer.step()\n",
        f"{after}\n{body}{CREATED}\n{SETUP[1:]}{PREPARE}"
        f"    for x, y in loader:\n        {NEW_BACKWARD}\n        optimizer.step()\n",
    )


def test_for_accelerate(programs, convert_text):
    before, _ = programs({})
    _, result = convert_text(before, target=Target.ACCELERATE)

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
        + SETUP[1:]
        + "    train(model, loader, optimizer, 2.0)\n    train(model, loader, optimizer=optimizer)\n\n\nmain()\n",
        NEW_HEAD
        + TRAIN.format(first="", last=", accelerator, scale=1.0", backward=NEW_BACKWARD)
        + CREATED
        + SETUP
        + PREPARE
        + "    train(model, loader, optimizer, accelerator, 2.0)\n"
        + "    train(model, loader, optimizer=optimizer, accelerator=accelerator)\n\n\nmain()\n",
    )


INNER = "    def descend(value):\n        {}\n\n"
LOOP = "    for x, y in loader:\n        descend(model(x).sum())\n        optimizer.step()\n\n\nmain()\n"


def test_a_function_inside_sees_it(becomes):
    becomes(
        f"{HEAD}\ndef main():\n{DEVICE}\n\n{INNER.format('value.backward()')}{SETUP[1:]}{LOOP}",
        f"{NEW_HEAD}\ndef main():\n{CREATED}\n\n{INNER.format('accelerator.backward(value)')}"
        f"{SETUP[1:]}{PREPARE}{LOOP}",
    )


def test_a_nested_function_keeps_its_distance(becomes):
    becomes(
        f"{HEAD}\ndef main():\n{INNER.format('value.backward()')}{SETUP[1:]}{LOOP}",
        f"{NEW_HEAD}\ndef main():\n{CREATED}\n\n{INNER.format('accelerator.backward(value)')}"
        f"{SETUP[1:]}{PREPARE}{LOOP}",
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


def test_the_import_stands_above_its_first_use(convert_text, programs):
    before, _ = programs({"setup": "scale = torch.tensor(2.0)\nimport math"})
    _, result = convert_text(before)

    assert result.index("from runtime import Accelerator") < result.index("accelerator = Accelerator()")


TAKEN = {
    "read": "accelerator = torch.accelerator.current_accelerator()\nkind = accelerator",
    "another thing": "accelerator = 3",
    "a class": "class Accelerator:\n    pass",
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_name_that_is_taken(refused, name):
    refused("MIG100", TAKEN[name].splitlines()[0], ["is already taken here"], setup=TAKEN[name])


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
}


@pytest.mark.parametrize("name", OUT_OF_REACH)
def test_refused(refused_text, name):
    call, at, mention = OUT_OF_REACH[name]
    source = HEAD + TRAIN.format(first="", last="", backward=BACKWARD) + SETUP[1:] + call + "\n\nmain()\n"
    finding = refused_text(source, "MIG904", at, [mention])

    assert finding.hint


STARRED = {
    "train(model, loader, optimizer, **{})": "train(model, loader, optimizer, accelerator, **{})",
    "train(model, **{'loader': loader, 'optimizer': optimizer})": (
        "train(model, accelerator=accelerator, **{'loader': loader, 'optimizer': optimizer})"
    ),
}


@pytest.mark.parametrize("call", STARRED)
def test_what_two_stars_pass_has_names(convert_text, call):
    source = HEAD + TRAIN.format(first="", last="", backward=BACKWARD) + SETUP[1:] + f"    {call}\n\n\nmain()\n"
    _, result = convert_text(source)

    assert STARRED[call] in result
    assert "def train(model, loader, optimizer, accelerator):" in result


def test_a_device_that_two_stars_may_pass_stays(convert_text):
    parts = "{'device': device, 'loader': loader, 'optimizer': optimizer}"
    train = TRAIN.format(first="device, ", last="", backward=BACKWARD)
    device = "    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
    source = HEAD + train + SETUP[1:] + f"{device}    train(model, **{parts})\n\n\nmain()\n"
    _, result = convert_text(source)

    assert "def train(model, device, loader, optimizer, accelerator):" in result
    assert f"train(model, accelerator=accelerator, **{parts})" in result


def test_a_function_whose_parameters_all_have_defaults_gets_it_first(convert_text):
    source = (
        HEAD
        + TRAIN.replace("model, {first}loader, optimizer{last}", "model=None, loader=None, optimizer=None").format(
            backward=BACKWARD
        )
        + SETUP[1:]
        + "    train(model, loader=loader, optimizer=optimizer)\n\n\nmain()\n"
    )
    _, result = convert_text(source)

    assert "def train(accelerator, model=None, loader=None, optimizer=None):" in result
    assert "train(accelerator, model, loader=loader, optimizer=optimizer)" in result


def test_a_helper_whose_parameters_all_have_defaults_speaks_with_one_voice(convert_text):
    source = (
        "import torch\n\n\ndef load(path='data', /, size=2, *rest, more=1):\n    print('loading', path)\n"
        "    return torch.utils.data.DataLoader(torch.ones(8, size), batch_size=2)\n\n\n"
        "def main():\n    model = torch.nn.Linear(2, 1)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    loader = load()\n    for x in loader:\n"
        "        optimizer.zero_grad()\n        model(x).mean().backward()\n        optimizer.step()\n"
        "    load('other', 2)\n    load(size=2)\n\n\nmain()\n"
    )
    _, result = convert_text(source)

    assert "def load(accelerator, path='data', /, size=2, *rest, more=1):" in result
    assert "accelerator.print('loading', path)" in result
    for call in ("load(accelerator)", "load(accelerator, 'other', 2)", "load(accelerator, size=2)"):
        assert f"{call}\n" in result


def test_what_is_printed_above_the_imports_does_not_draw_the_accelerator_up(convert_text):
    source = (
        'print("hello")\nimport torch\nfrom torch import nn, optim\n'
        'from torch.utils.data import DataLoader\nprint("go")\n'
        "loader, model = DataLoader([]), nn.Linear(2, 1)\noptimizer = optim.SGD(model.parameters(), lr=0.1)\n"
        "for x in loader:\n    model(x).sum().backward()\n    optimizer.step()\n"
    )
    _, result = convert_text(source)

    first = 'if os.environ.get("RANK", "0") == "0":\n    print("hello")\nimport torch\n'
    assert result.startswith(f"import os\n\nfrom runtime import Accelerator\n\n{first}")
    assert '\n\naccelerator = Accelerator()\n\naccelerator.print("go")\n' in result


MOVED = """
def train(model, loader, optimizer, {flag}):
    for x, y in loader:
        if {flag}:
            x = x.cuda()
        model(x).sum().backward()
        optimizer.step()


def main(args):
    loader = DataLoader(data)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer, {given})


main(options)
"""


@pytest.mark.parametrize("parameter", ["on_gpu", "on_gpu=False"])
def test_a_flag_that_is_handed_on_keeps_its_meaning(convert_text, parameter):
    source = MOVED.format(flag="on_gpu", given="args.gpu").replace("on_gpu):", f"{parameter}):")
    _, result = convert_text(HEAD + source)

    assert "accelerator = Accelerator(cpu=not args.gpu)" in result


def test_a_flag_without_a_name_at_the_start_is_refused(refused_text):
    given = "args.gpu)\n    train(model, loader, optimizer"
    source = HEAD + MOVED.format(flag="on_gpu", given=given).replace("on_gpu):", "on_gpu=False):")
    refused_text(source, "MIG101", "if on_gpu", ["on_gpu decides about the GPU"])


OF_AN_OBJECT = """
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Engine:
    def __init__(self, config, model):
        self.config = config
        self.model = model
        if self.config["gpu"]:
            self.model.cuda()
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    def fit(self, loader):
        for x, y in loader:
            if self.config["gpu"]:
                x, y = x.cuda(), y.cuda()
            self.optimizer.zero_grad()
            (self.model(x) - y).sum().backward()
            self.optimizer.step()


engine = Engine({"gpu": True}, nn.Linear(3, 1))
loader = DataLoader(TensorDataset(data, data), batch_size=8)
engine.fit(loader)
"""


def test_a_flag_that_an_object_holds_is_named_whole(refused_text):
    says = ["self.config['gpu'] decides about the GPU here, and self is not known where the accelerator is made"]
    refused_text(OF_AN_OBJECT, "MIG101", 'if self.config["gpu"]', says)


OF_TWO_KINDS = """
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Wide(nn.Linear):
    pass


class Engine:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.is_wide = {kind}

    def fit(self, loader):
        for x, y in loader:
            if self.is_wide:
                x, y = x.to(self.device), y.to(self.device)
                out = self.model(x)
            else:
                out = self.model(x + 1)
            self.optimizer.zero_grad()
            (out - y).pow(2).mean().backward()
            self.optimizer.step()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Wide(3, 3).to(device)
engine = Engine(model, optim.SGD(model.parameters(), lr=0.1), device)
engine.fit(DataLoader(TensorDataset(data, data), batch_size=8))
"""


def test_what_kind_of_model_it_is_decides_about_no_gpu(convert_text):
    _, result = convert_text(HEAD + OF_TWO_KINDS.format(kind="isinstance(model, Wide)"))

    assert "Accelerator()" in result


def test_what_kind_of_thing_a_user_names_may_decide(refused_text):
    says = ["the accelerator needs self.is_wide"]
    source = HEAD + OF_TWO_KINDS.format(kind="isinstance(args.gpu, int)")
    refused_text(source, "MIG100", "self.is_wide = isinstance", says)


def test_a_kind_that_is_also_set_otherwise_may_decide(refused_text):
    kind = "isinstance(model, Wide)\n        self.is_wide = model.bias is not None"
    says = ["the accelerator needs self.is_wide"]
    refused_text(HEAD + OF_TWO_KINDS.format(kind=kind), "MIG100", "self.is_wide = model.bias", says)


READ_AMONG_IMPORTS = """
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
print(device)

from torch import nn

model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    loss = model(torch.ones(8, 2, device=device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_device_that_is_read_above_later_imports_gives_way_where_it_stands(convert_text):
    _, result = convert_text(READ_AMONG_IMPORTS)

    assert "import torch\nfrom runtime import Accelerator\n\naccelerator = Accelerator()\n" in result
    assert result.index("accelerator.print(device)") < result.index("from torch import nn")
