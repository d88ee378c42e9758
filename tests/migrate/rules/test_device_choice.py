import textwrap

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

ACCELERATOR = "accelerator = Accelerator()"
PLAIN = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'

UNCHANGED = {
    "whether there is a GPU": {"setup": "there = torch.cuda.is_available()"},
    "how many there are": {"setup": "count = torch.cuda.device_count()"},
    "the name of the GPU": {"end": "name = torch.cuda.get_device_name() if torch.cuda.is_available() else None"},
    "benchmarking": {"setup": "torch.backends.cudnn.benchmark = True"},
    "a seed": {"setup": "torch.cuda.manual_seed(0)"},
    "the CPU, for a tensor": {"setup": "", "end": 'rows = x.to("cpu")'},
    "another tensor's": {"end": "place = x.device\nz = torch.ones(2, device=place)"},
    "what a function of the project chooses for itself": {
        "setup": "def report():\n    device = torch.cuda.current_device()\n    return device"
    },
    "a key": {"end": 'known = {"cuda": 1}["cuda"]'},
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


TEXTS = {
    "a key": {"end": 'kind = "cuda"\nknown = {"cuda": 1}[kind]'},
    "a word": {"made": 'kind = "cpu"\nwords = [kind, "memory"]'},
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_no_device(unchanged, name):
    unchanged(**TEXTS[name])


#: All of these come before what is prepared, so the accelerator takes their place.
GONE = {
    "where there is one": PLAIN,
    "a text": 'device = "cuda" if torch.cuda.is_available() else "cpu"',
    "always a GPU": 'device = torch.device("cuda")',
    "a numbered GPU": 'device = torch.device("cuda:0")',
    "three kinds": (
        'device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"'
    ),
    "branches": (
        'if torch.cuda.is_available():\n    device = torch.device("cuda")\nelse:\n    device = torch.device("cpu")'
    ),
    "branches that set it": (
        "if torch.cuda.is_available():\n    torch.cuda.set_device(0)\n"
        '    device = torch.device("cuda")\nelse:\n    device = torch.device("cpu")'
    ),
}


@pytest.mark.parametrize("name", GONE)
def test_gone_with_its_last_use(changed, name):
    changed(accelerator="", setup=(GONE[name], ACCELERATOR), batch=("x, y = x.to(device), y.to(device)", ""))


NAMED = 'torch.device(args.device).type == "cpu"'
CPU = {
    "a flag": ('device = torch.device("cuda" if args.gpu else "cpu")', "not args.gpu"),
    "a flag against it": (
        'device = torch.device("cuda" if torch.cuda.is_available() and not args.no_cuda else "cpu")',
        "args.no_cuda",
    ),
    "always": ('device = torch.device("cpu")', "True"),
    "what a user names, or the CPU without a GPU": (
        (
            'if "cuda" in args.device and not torch.cuda.is_available():\n    device = torch.device("cpu")\n'
            "else:\n    device = torch.device(args.device)"
        ),
        NAMED,
    ),
    "what a user names, where there is a GPU": (
        'device = torch.device(args.device) if torch.cuda.is_available() else torch.device("cpu")',
        NAMED,
    ),
    "what a user names, in a branch": (
        (
            'if not torch.cuda.is_available():\n    device = torch.device("cpu")\n'
            "else:\n    device = torch.device(args.device)"
        ),
        NAMED,
    ),
    "a flag, or what a user names": (
        'device = torch.device("cpu" if args.no_cuda else args.device)',
        f"args.no_cuda or {NAMED}",
    ),
    "what a user may name": (
        (
            'device = torch.device(args.device if args.device is not None else "cuda" if torch.cuda.is_available()'
            ' else "cpu")'
        ),
        f"args.device is not None and {NAMED}",
    ),
}


@pytest.mark.parametrize("name", CPU)
def test_a_flag_goes_on_deciding(changed, name):
    choice, cpu = CPU[name]
    parse = "import argparse\nargs = argparse.ArgumentParser().parse_args()"
    changed(
        accelerator="",
        setup=(f"{parse}\n{choice}", f"{parse}\naccelerator = Accelerator(cpu={cpu})"),
        batch=("x, y = x.to(device), y.to(device)", ""),
    )


def test_other_tensors_keep_the_variable(changed):
    changed(
        accelerator="",
        setup=(PLAIN, f"{ACCELERATOR}\ndevice = accelerator.device"),
        batch=("x = x.to(device)\nnoise = torch.randn(4, 2).to(device)", "noise = torch.randn(4, 2).to(device)"),
    )


def test_a_function_has_a_device_of_its_own(changed):
    own = "def other():\n    device = 'cpu'\n    return torch.ones(1, device=device)"
    changed(
        accelerator="",
        setup=(f"{PLAIN}\n{own}", f"{ACCELERATOR}\ndevice = accelerator.device\n{own}"),
        end="noise = torch.ones(2, device=device) + other()",
    )


def test_what_is_executed_before_the_choice_does_not_change_it(changed):
    early = 'exec("steps = 1")'
    changed(
        accelerator="",
        setup=(f"{early}\n{PLAIN}", f"{early}\n{ACCELERATOR}"),
        batch=("x, y = x.to(device), y.to(device)", ""),
    )


def test_after_something_was_made(changed):
    changed(made=(PLAIN, ""), batch=("x, y = x.to(device), y.to(device)", ""))


def test_after_something_was_made_and_still_needed(changed):
    changed(made=(PLAIN, "device = accelerator.device"), batch="noise = torch.randn(4, 2).to(device)")


def test_a_comparison_asks_the_accelerator(changed):
    changed(
        accelerator="",
        setup=('device = "cuda" if torch.cuda.is_available() else "cpu"', ACCELERATOR),
        batch=("x, y = x.to(device), y.to(device)", ""),
        end=('if device == "cuda":\n    x = None', 'if accelerator.device.type == "cuda":\n    x = None'),
    )


def test_a_text_that_is_used_elsewhere_stays_a_text(changed):
    changed(
        accelerator="",
        setup=(
            'device = "cuda" if torch.cuda.is_available() else "cpu"',
            f"{ACCELERATOR}\ndevice = accelerator.device.type",
        ),
        batch=("x, y = x.to(device), y.to(device)", ""),
        end="names = [device]",
    )


SET_DEVICE = (
    "torch.cuda.set_device(0)",
    'torch.cuda.set_device("cuda:0")',
    "torch.accelerator.set_device_index(0)",
)


@pytest.mark.parametrize("call", SET_DEVICE)
def test_set_device_is_gone(changed, call):
    changed(setup=(call, ""), batch=("x, y = x.cuda(), y.cuda()", ""))


def test_set_device_is_gone_with_its_condition(changed):
    changed(
        setup=("if torch.cuda.is_available():\n    torch.cuda.set_device(0)", ""),
        batch=("x, y = x.cuda(), y.cuda()", ""),
    )


FUNCTION = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader


def train(model, device, loader, optimizer):
    for x, y in loader:
        x = x.to(device)
        {use}
        {backward}
        optimizer.step()


def main():
    device = torch.device("cuda")
    loader = DataLoader(data)
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    train(model, device, loader, optimizer)


main()
"""


@pytest.mark.parametrize(
    ("use", "after"),
    [
        ("z = torch.ones(2, device=device)", "z = torch.ones(2, device=accelerator.device)"),
        ("z = torch.ones(2).to(device)", "z = torch.ones(2).to(accelerator.device)"),
    ],
)
def test_a_parameter_that_gives_way_is_read_from_the_accelerator(convert_text, use, after):
    _, result = convert_text(FUNCTION.format(use=use, backward="model(x).sum().backward()"))

    assert "def train(model, accelerator, loader, optimizer):" in result
    assert after in result
    assert not any(line.lstrip().startswith("device =") for line in result.splitlines())


def test_a_parameter_that_is_read_often_stays_a_variable(convert_text):
    use = "z = [torch.ones(2, device=device), torch.zeros(2, device=device), torch.empty(2, device=device)]"
    _, result = convert_text(FUNCTION.format(use=use, backward="model(x).sum().backward()"))

    assert "def train(model, accelerator, loader, optimizer):\n    device = accelerator.device\n" in result
    assert use in result


def test_a_second_choice_that_would_lose_a_flag(refused):
    first = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    second = 'if fast:\n    device = torch.device("cuda" if args.gpu else "cpu")'
    refused(
        "MIG101", first, ["several places"], imports=f"{first}\n{second}", batch="x, y = x.to(device), y.to(device)"
    )


BLOCKS = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.zeros(8, 1), torch.zeros(8, 1))
loader = DataLoader(data, batch_size=2)

{first}:
    device = torch.device({chosen})
    model = nn.Linear(1, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()

{second}:
    device = torch.device({chosen})
    model = nn.Linear(1, 1).to(device)
    print(model(torch.zeros(2, 1).to(device)))
"""
FOLDS = ("for fold in range(2)", "for fold in range(3)")
FLAGS = ("if len(data) > 2", "if len(data) > 4")


@pytest.mark.parametrize(("first", "second"), [FOLDS, FLAGS], ids=["loops", "flags"])
def test_the_same_choice_in_blocks_of_which_one_may_run_alone_is_made_in_each(convert_text, first, second):
    _, result = convert_text(BLOCKS.format(first=first, second=second, chosen='"cuda:0"'))

    assert f"{first}:\n    device = accelerator.device\n" in result
    assert f"{second}:\n    device = accelerator.device\n    model = nn.Linear(1, 1).to(device)\n" in result


def test_a_choice_by_a_flag_in_blocks_of_which_none_may_run_stays(convert_text):
    chosen = '"cuda" if loader.batch_size > 1 else "cpu"'
    _, result = convert_text(BLOCKS.format(first=FLAGS[0], second=FLAGS[1], chosen=chosen))

    assert "Accelerator" not in result


OWN_DEVICE = """
def main():
    model = nn.Linear(2, 1)
    loader = DataLoader(data, batch_size=4)
    held = DataLoader(data, batch_size=4)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
    test(model, held)

def test(model, loader):
    device = {device}
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += model(x.to(device)).sum().item()
    {end}

def nobody_calls(path="net.pth"):
    test(torch.load(path), DataLoader(data))

main()
"""


@pytest.mark.parametrize(
    ("device", "end", "after"),
    [
        ("'cuda:0' if torch.cuda.is_available() else 'cpu'", "", "'cuda' if torch.cuda.is_available() else 'cpu'"),
        ('torch.device("cuda:0")', "", 'torch.device("cuda")'),
        ('torch.device("cuda:1")', "", 'torch.device("cuda:1")'),
        ("'cuda:0'", "print(device == 'cuda:0')", "'cuda:0'"),
    ],
)
def test_a_function_with_a_device_of_its_own_means_the_gpu_of_the_process(convert_text, device, end, after):
    head = "import torch\nfrom torch import nn, optim\nfrom torch.utils.data import DataLoader\ndata = []\n"
    _, result = convert_text(head + OWN_DEVICE.format(device=device, end=end))

    assert f"    device = {after}\n" in result


ELIF = """\
device = "cpu"
if torch.cuda.is_available():
    device = "cuda"
elif hasattr(torch.backends, "mps") and torch.backends.mps.is_available():
    device = "mps"
"""


def test_a_default_and_a_chain(changed):
    changed(accelerator="", setup=(ELIF, ACCELERATOR), batch=("x, y = x.to(device), y.to(device)", ""))


HELPER = """\
def get_device():
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("cpu")

device = get_device()
"""


def test_a_function_that_only_asks_goes_with_its_call(changed):
    changed(accelerator="", setup=(HELPER, ACCELERATOR), batch=("x, y = x.to(device), y.to(device)", ""))


def test_a_function_that_is_used_elsewhere_stays(changed):
    used = HELPER + "print(get_device())"
    kept = HELPER.replace("device = get_device()\n", f"{ACCELERATOR}\naccelerator.print(get_device())")
    changed(accelerator="", setup=(used, kept), batch=("x, y = x.to(device), y.to(device)", ""))


def test_a_function_with_a_flag_goes_on_deciding(changed):
    helper = "import sys\n" + HELPER.replace("is_available()", "is_available() and '--cpu' not in sys.argv")
    chosen = 'accelerator = Accelerator(cpu=torch.device(get_device()).type == "cpu")'
    changed(
        accelerator="",
        setup=(helper, helper.replace("device = get_device()", chosen)),
        batch=("x, y = x.to(device), y.to(device)", ""),
    )


NAMED = HELPER.replace("        return ", "        device = ").replace(
    "    return torch", "    else:\n        device = torch"
)
NAMED = NAMED.replace("\n\ndevice =", "\n    return device\n\ndevice =")


@pytest.mark.parametrize("given", ["", "args"])
def test_so_does_one_that_gives_what_it_has_named_whatever_it_is_handed(changed, given):
    helper = NAMED.replace("get_device()", f"get_device({given})")
    changed(
        accelerator="",
        setup=(f"args = [1]\n{helper}", f"args = [1]\n{ACCELERATOR}"),
        batch=("x, y = x.to(device), y.to(device)", ""),
    )


OF_AN_OBJECT = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

{helper}
class Trainer:
    def __init__(self):
        self.device = {call}
        self.model = made(self.device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = DataLoader(torch.ones(8, 4), batch_size=4)

{method}    def fit(self):
        for x in self.loader:
            self.optimizer.zero_grad()
            self.model(x.to(self.device)).mean().backward()
            self.optimizer.step()


def made(device):
    return nn.Linear(4, 4).to(device)


Trainer().fit()
"""
ASKS = """\
def get_device({}):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return device

"""


@pytest.mark.parametrize("is_method", [False, True], ids=["a function", "a method"])
def test_the_device_of_an_object_is_that_which_a_function_gave_it(convert_text, is_method):
    method = textwrap.indent(ASKS.format("self"), "    ").replace("    \n", "\n") if is_method else ""
    helper, call = ("", "self.get_device()") if is_method else (ASKS.format(""), "get_device()")
    report, result = convert_text(OF_AN_OBJECT.format(helper=helper, call=call, method=method))

    assert "self.device = self.accelerator.device\n" in result
    assert "get_device" not in result
    assert "cpu=" not in result
    assert not [finding for finding in report.findings if "MPS" in finding.message]


BASE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader


class Base:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def fit(self):
        for x in self.loader:
            self.optimizer.zero_grad()
            self.model(x.to(self.device)).mean().backward()
            self.optimizer.step()


class Trainer(Base):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 4).to(self.device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = DataLoader(torch.ones(8, 4), batch_size=4)


Trainer().fit()
"""


def test_the_device_that_a_base_chooses_is_the_accelerators_which_it_makes(convert_text):
    _, result = convert_text(BASE)

    assert "    def __init__(self):\n        self.accelerator = Accelerator()\n\n    def fit(self)" in result
    assert "self.accelerator.backward(self.model(x).mean())" in result
    assert "self.model = nn.Linear(4, 4)\n" in result


def test_a_method_that_another_class_has_too_stays(convert_text):
    other = "class Other(Trainer):\n    def get_device(self):\n        return torch.device('cpu')\n\n\ndef made"
    method = textwrap.indent(ASKS.format("self"), "    ").replace("    \n", "\n")
    text = OF_AN_OBJECT.format(helper="", call="self.get_device()", method=method)
    _, result = convert_text(text.replace("def made", other))

    assert result.count("def get_device(self):") == 2


PARSED = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
args = parser.parse_args()
"""
ASKED = 'accelerator = Accelerator(cpu=torch.device(args.device).type == "cpu")'
ASKING = {
    "as it is": "",
    "where there is a GPU": 'if not torch.cuda.is_available():\n    args.device = "cpu"',
    "in an expression": 'args.device = torch.device(args.device if torch.cuda.is_available() else "cpu")',
    "where there is a GPU, as a device": (
        'if not torch.cuda.is_available():\n    args.device = "cpu"\nargs.device = torch.device(args.device)'
    ),
}


@pytest.mark.parametrize("name", ASKING)
def test_the_device_that_a_user_names(changed, name):
    changed(
        accelerator="",
        setup=(f"{PARSED}\n{ASKING[name]}", f"{PARSED}\n{ASKED}"),
        batch=("x, y = x.to(args.device), y.to(args.device)", ""),
        step=("z = torch.ones(2, device='cuda')", "z = torch.ones(2, device=accelerator.device)"),
    )


def test_a_device_that_is_read_before_it_is_made_of_its_name_is_none_choice(refused):
    read = "print(args.device)"
    setup = f"{PARSED}\n{ASKING['where there is a GPU']}\n{read}\nargs.device = torch.device(args.device)"
    refused("MIG101", "args.device =", ["at several places"], setup=setup, batch="x = x.to(args.device)")


def test_what_a_user_names_gives_way_where_tensors_are_made(changed):
    changed(
        accelerator="",
        setup=(PARSED, f"{PARSED}\n{ASKED}"),
        batch=("x = x.to(args.device)", ""),
        step=("z = torch.ones(2, device=args.device)", "z = torch.ones(2, device=accelerator.device)"),
    )


TOLD = """
class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = {kept}
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x.to(self.device))

"""


@pytest.mark.parametrize(("kept", "given"), [("device", "accelerator"), ("device.split(':')[0]", "args")])
def test_a_model_that_is_told_what_a_user_names_is_told_that_of_the_accelerator(changed, kept, given):
    net = TOLD.format(kept=kept)
    changed(
        accelerator="",
        setup=(f"{PARSED}{net}", f"{PARSED}\n{ASKED}{net}"),
        model=("model = Net(args.device).to(args.device)", f"model = Net({given}.device)"),
    )


def test_a_device_that_exec_may_set_is_noted(changed):
    report = changed(
        accelerator="",
        setup=(
            "device = 'cuda'\nexec(open('config.py').read())",
            "accelerator = Accelerator()\nexec(open('config.py').read())",
        ),
        batch=("x, y = x.to(device), y.to(device)", ""),
    )
    assert any("exec() in line" in finding.message and finding.hint for finding in report.of(Kind.NOTE))


MOVES = "x, y = x.to(device), y.to(device)"
#: Several statements that come to one choice, and what is left of them.
ONE_CHOICE = {
    "the same again": (f"{PLAIN}\n{PLAIN}", ACCELERATOR),
    "a text, then its device": (
        'device = "cuda" if torch.cuda.is_available() else "cpu"\ndevice = torch.device(device)',
        ACCELERATOR,
    ),
    "another one that counts": (f'device = torch.device("cpu")\n{PLAIN}', ACCELERATOR),
    "among prints": (
        (
            'if torch.cuda.is_available():\n    device = torch.device("cuda")\n    print("GPU")\n'
            'else:\n    device = torch.device("cpu")\n    print("CPU")'
        ),
        (
            f'{ACCELERATOR}\nif torch.cuda.is_available():\n    accelerator.print("GPU")\n'
            'else:\n    accelerator.print("CPU")'
        ),
    ),
    "with a default, among seeds": (
        'gpu = bool(1)\ndevice = "cpu"\nif gpu:\n    torch.cuda.manual_seed(0)\n    device = "cuda"',
        "gpu = bool(1)\naccelerator = Accelerator(cpu=not gpu)\nif gpu:\n    torch.cuda.manual_seed(0)",
    ),
    "a number that stands for the CPU": (
        'gpu = int(0)\nif gpu != -1:\n    device = torch.device("cuda")\nelse:\n    device = torch.device("cpu")',
        "gpu = int(0)\naccelerator = Accelerator(cpu=gpu == -1)",
    ),
    "the CPU by two tests": (
        (
            'gpu, small = bool(1), bool(0)\nif small:\n    device = torch.device("cpu")\nelif gpu:\n'
            '    device = torch.device("cuda")\nelse:\n    device = torch.device("cpu")'
        ),
        "gpu, small = bool(1), bool(0)\naccelerator = Accelerator(cpu=small or not gpu)",
    ),
}


@pytest.mark.parametrize("name", ONE_CHOICE)
def test_several_statements_that_are_one_choice(changed, name):
    changed(accelerator="", setup=ONE_CHOICE[name], batch=(MOVES, ""))


def test_a_default_that_is_needed_stays_where_both_sides_see_it(changed):
    before = 'gpu = bool(1)\ndevice = torch.device("cpu")\nif gpu:\n    device = torch.device("cuda")\n    print("GPU")'
    after = (
        "gpu = bool(1)\naccelerator = Accelerator(cpu=not gpu)\ndevice = accelerator.device\n"
        'if gpu:\n    accelerator.print("GPU")'
    )
    noise = "noise = torch.zeros(2, device=device)"
    changed(accelerator="", setup=(before, after), batch=(f"{MOVES}\n{noise}", noise))


def test_a_text_that_is_read_before_it_is_made_a_device(changed):
    text = 'device = "cuda" if torch.cuda.is_available() else "cpu"'
    asked = 'if device == "cuda":\n    torch.cuda.empty_cache()\ndevice = torch.device(device)'
    noise = "noise = torch.zeros(2, device=device)"
    changed(
        accelerator="",
        setup=(f"{text}\n{asked}", f"{ACCELERATOR}\ndevice = accelerator.device.type\n{asked}"),
        batch=(f"{MOVES}\n{noise}", noise),
    )


NESTED = """\
if {gpu}:
    device = "cuda"
elif torch.backends.mps.is_available():
    if torch.__version__ >= "1.12":
        device = "mps"
    else:
        device = "cpu"
else:
    device = "cpu"
"""


def test_a_choice_inside_of_a_choice(changed):
    setup = NESTED.format(gpu="torch.cuda.is_available()")
    changed(accelerator="", setup=(setup, ACCELERATOR), batch=("x, y = x.to(device), y.to(device)", ""))


VERSION = """\
if torch.cuda.is_available():
    device = torch.device("cuda")
elif torch.backends.mps.is_available():
    {computed}
    if {asked}:
        device = torch.device("mps")
{otherwise}else:
    device = torch.device("cpu")
"""
OTHERWISE = '    else:\n        device = torch.device("cpu")\n'
COMPUTED = 'major, minor = map(int, torch.__version__.split(".")[:2])'


def by_version(computed=COMPUTED, asked="(major, minor) >= (2, 9)", otherwise=OTHERWISE):
    return VERSION.format(computed=computed, asked=asked, otherwise=otherwise)


def test_a_choice_by_a_version_that_is_taken_apart_above_it(changed):
    report = changed(accelerator="", setup=(by_version(), ACCELERATOR), batch=(MOVES, ""))
    assert any("a version no longer decides" in finding.message for finding in report.findings)


def test_a_choice_that_keeps_what_was_chosen_above_it(changed):
    again = by_version(otherwise="")
    changed(accelerator="", setup=(f"{by_version()}\n{again}", ACCELERATOR), batch=(MOVES, ""))


LEFT_OPEN = {
    "nothing is chosen above it": by_version(otherwise=""),
    "another thing is done in it": by_version(computed="print(torch.__version__)"),
    "what it computes is read below": f"{by_version()}print(major)",
    "it computes by something else": by_version(computed="major, minor = int(environ[0]), int(environ[1])"),
}


@pytest.mark.parametrize("name", LEFT_OPEN)
def test_a_choice_by_more_than_a_version(refused, name):
    setup = LEFT_OPEN[name]
    refused(
        "MIG101", '    device = torch.device("cuda")', ["several places"], imports=f"import torch\n{setup}", batch=MOVES
    )


def test_a_flag_inside_of_a_choice(refused):
    first = 'gpu = bool(1)\nif torch.cuda.is_available():\n    if gpu:\n        device = "cuda"\n    else:\n'
    setup = f'{first}        device = "cpu"\nelse:\n    device = "cpu"'
    refused("MIG101", "    if gpu:", ["several places"], imports=setup, batch=MOVES)


SEVERAL = {
    "more than a choice inside of a choice": NESTED.format(gpu="torch.cuda.is_available()").replace(
        '        device = "mps"\n', '        device = "mps"\n        print(1)\n'
    ),
    "read between": f'device = torch.device("cpu")\nfirst = torch.zeros(2, device=device)\n{PLAIN}',
    "read by a function between": (
        'device = torch.device("cpu")\ndef zeros():\n    return torch.zeros(2, device=device)\n'
        f"first = zeros()\n{PLAIN}"
    ),
    "read in a test": 'device = "cpu"\nif device == str(1):\n    device = "cuda"\n    print("GPU")',
    "a device that is read before it is made one again": (
        f"{PLAIN}\nfirst = torch.zeros(2, device=device)\ndevice = torch.device(device)"
    ),
    "another flag the second time": (
        'gpu = bool(1)\ndevice = torch.device("cuda" if gpu else "cpu")\nfirst = torch.zeros(2, device=device)\n'
        'gpu = bool(0)\ndevice = torch.device("cuda" if gpu else "cpu")'
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_choices_that_are_not_one(refused, name):
    line = next(line for line in SEVERAL[name].splitlines() if "device =" in line)
    refused("MIG101", line, ["several places"], imports=SEVERAL[name], batch=MOVES)


SETTINGS = """\
import torch

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
"""
NETWORK = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from {settings} import *


class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.scale = torch.ones(1, device=device)
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x * self.scale)


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = {model}
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
KEPT_DEVICE = "Net(device).to(device)"


def settings_after(tmp_path, monkeypatch, files, names=(".",)):
    """The report on a project of some files."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return run(list(names), Options())


@pytest.mark.parametrize("settings", ["settings", "common"])
def test_a_device_of_a_file_of_settings_is_that_of_the_process(tmp_path, monkeypatch, settings):
    files = {"settings.py": SETTINGS, "common.py": "from settings import *\n"}
    files["train.py"] = NETWORK.format(settings=settings, model=KEPT_DEVICE)
    report = settings_after(tmp_path, monkeypatch, files)
    changes = {change.path: change.new.decode() for change in report.changes}

    assert "model = Net(device)\n" in changes["train.py"]
    assert changes["settings.py"] == SETTINGS.replace("cuda:0", "cuda")


FIELD = """\
class Settings:
    device: torch.device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    steps = 3
    rate: float

settings = Settings()
"""


def test_a_device_that_a_class_keeps_is_that_of_the_process(changed):
    changed(
        setup=(FIELD, FIELD.replace("cuda:0", "cuda")),
        end="noise = torch.zeros(settings.steps, device=settings.device)",
    )


def test_a_device_that_only_moves_read_stays(tmp_path, monkeypatch):
    model = "nn.Linear(2, 1).to(device)"
    files = {"settings.py": SETTINGS, "train.py": NETWORK.format(settings="settings", model=model)}
    report = settings_after(tmp_path, monkeypatch, files)

    assert [change.path for change in report.changes] == ["train.py"]


def test_a_device_of_a_file_that_is_not_named_is_noted(tmp_path, monkeypatch):
    files = {"settings.py": SETTINGS, "train.py": NETWORK.format(settings="settings", model=KEPT_DEVICE)}
    report = settings_after(tmp_path, monkeypatch, files, ["train.py"])

    assert [change.path for change in report.changes] == ["train.py"]
    assert any("settings.py, which was not named" in finding.message for finding in report.findings)


FLAGGED = """\
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--cuda", action="store_true")
parser.add_argument("--half-cuda", action="store_true")


def main():
    global args
    args = parser.parse_args()
    use_cuda = {flag}
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1)
    if use_cuda:
        model = model.cuda()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer)


def train(model, loader, optimizer):
    for x, y in loader:
        if args.cuda:
            x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


main()
"""


def test_a_flag_with_two_names_goes_on_deciding(convert_text):
    _, result = convert_text(FLAGGED.format(flag="args.cuda"))

    assert "Accelerator(cpu=not args.cuda)" in result


@pytest.mark.parametrize(
    ("first", "second", "cpu"),
    [
        ("args.gpus == 1", "args.gpus > 0", "cpu=not args.gpus > 0"),
        ("args.gpus", "args.gpus > 1", "cpu=not args.gpus"),
        ("args.gpus == 1", "args.gpus > 1", ""),
        ("args.gpus > 0", "args.cuda > 0", ""),
    ],
)
def test_of_several_questions_for_one_number_that_which_always_holds_decides(convert_text, first, second, cpu):
    source = FLAGGED.format(flag="args.cuda").replace("    use_cuda = args.cuda\n", "")
    source = source.replace("if use_cuda:", f"if {first}:").replace("if args.cuda:", f"if {second}:")
    source = source.replace('"--half-cuda", action="store_true"', '"--gpus", type=int, default=1')

    assert f"Accelerator({cpu})" in convert_text(source)[1]


@pytest.mark.parametrize(
    ("first", "second", "cpu"),
    [
        ("torch.cuda.is_available() and torch.cuda.device_count() > 1", "torch.cuda.is_available()", ""),
        ("torch.cuda.device_count() > 1", "args.cuda", "cpu=not args.cuda"),
        ("args.half_cuda", "there", "cpu=not there"),
    ],
)
def test_only_what_a_user_says_keeps_a_program_off_the_gpu(convert_text, first, second, cpu):
    """How many GPUs there are says nothing of it, and of two flags the one that asks for a GPU, too, is about it."""
    source = FLAGGED.format(flag="args.cuda").replace("    use_cuda = args.cuda\n", "")
    source = source.replace("def main", "there = args.cuda and torch.cuda.is_available()\n\n\ndef main").replace(
        "    global args\n    args = parser.parse_args()\n", ""
    )
    source = source.replace("\n\n\nthere", "\nargs = parser.parse_args()\nthere")
    source = source.replace("if use_cuda:", f"if {first}:").replace("if args.cuda:", f"if {second}:")

    assert f"Accelerator({cpu})" in convert_text(source)[1]


HANDED_WHETHER = """\
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, use_cuda=False):
        self.model, self.optimizer = model, optimizer
        self.use_cuda = use_cuda
        if self.use_cuda:
            self.model.cuda()

    def train(self, loader):
        for x, y in loader:
            if self.use_cuda:
                x, y = x.cuda(), y.cuda()
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()


wanted = argparse.ArgumentParser().parse_args().wanted
loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 1)), batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
trainer = Trainer(model, optimizer, use_cuda={given})
trainer.train(loader)
"""


def test_a_flag_that_is_handed_whether_there_is_a_gpu_decides_nothing(convert_text):
    _, result = convert_text(HANDED_WHETHER.format(given="torch.cuda.is_available()"))

    assert "accelerator = Accelerator()\n" in result
    assert ".cuda()" not in result


def test_one_that_is_handed_what_a_user_wants_has_no_name_where_the_accelerator_is_made(refused_text):
    refused_text(HANDED_WHETHER.format(given="wanted"), "MIG101", "if self.use_cuda:", ["self is not known"])


def test_a_flag_above_a_loop_that_only_moves_goes_on_deciding(convert_text):
    moved = "losses = [nn.L1Loss()]\n    if args.cuda:\n        for loss in losses:\n            loss = loss.cuda()\n"
    source = FLAGGED.format(flag="args.cuda").replace("optimizer = ", f"{moved}    optimizer = ")

    assert "Accelerator(cpu=not args.cuda)" in convert_text(source)[1]


def test_a_flag_above_moves_without_gradients_goes_on_deciding(convert_text):
    moved = "            with torch.no_grad():\n                x, y = x.cuda(), y.cuda()"
    source = FLAGGED.format(flag="args.cuda").replace("            x, y = x.cuda(), y.cuda()", moved)

    assert "Accelerator(cpu=not args.cuda)" in convert_text(source)[1]


TEACHER = """\
    if use_cuda:
        model = model.cuda()
        if args.half_cuda:
            teacher = teacher.cuda()
"""


@pytest.mark.parametrize(
    ("moves", "cpu"),
    [
        (TEACHER, "cpu=not args.cuda"),
        (TEACHER.replace("if args.half_cuda:", "if args.half_cuda and args.cuda:"), "cpu=not args.cuda"),
        (TEACHER.replace("        if args.half_cuda:\n    ", "    if args.half_cuda:\n"), "cpu=not args.cuda"),
        (TEACHER.replace("if use_cuda:", "if args.half_cuda or args.cuda:"), ""),
    ],
    ids=["inside of it", "inside of it, asked twice", "beside it", "the model by another one than batches"],
)
def test_of_several_flags_the_one_above_all_moves_or_those_of_what_is_trained_decides(convert_text, moves, cpu):
    source = FLAGGED.format(flag="args.cuda").replace("    if use_cuda:\n        model = model.cuda()\n", moves)
    source = source.replace("    model = nn", "    teacher = nn.Linear(2, 1)\n    model = nn")

    assert f"Accelerator({cpu})" in convert_text(source)[1]


SWITCHED = """\
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, args):
        self.model = nn.Linear(2, 1)
        self.on_gpu = False
        self.look(args.cuda)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def look(self, flag=False):
        if flag:
            self.on_gpu = True
            self.model.cuda()

    def moved(self, x):
        if self.on_gpu:
            return x.cuda()
        return x

    def train(self, loader):
        for step, (x, y) in enumerate(loader):
            noise = self.moved(torch.randn(4, 2))
            x, y = self.moved(x), self.moved(y)
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x + noise), y).backward()
            self.optimizer.step()
            if step % 10 == 0:
                print(self.model(torch.ones(1, 2).cuda()))


def main(args):
    torch.manual_seed(0)
    trainer = Trainer(args)
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    trainer.train(loader)


parser = argparse.ArgumentParser()
parser.add_argument("--cuda", action="store_true")
main(parser.parse_args())
"""


def test_a_switch_that_a_flag_turns_on_goes_on_deciding(convert_text):
    assert "Accelerator(cpu=not args.cuda)" in convert_text(SWITCHED)[1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("            self.model.cuda()\n", "            self.model.cuda()\n        self.on_gpu = False\n"),
        ("            self.on_gpu = True\n", "            self.on_gpu = torch.cuda.device_count() > 1\n"),
        ("        self.on_gpu = False\n", "        self.on_gpu = not args.cuda\n"),
    ],
)
def test_a_switch_that_something_else_turns_too_asks_for_no_flag(convert_text, before, after):
    assert SWITCHED.count(before) == 1

    assert "Accelerator(cpu=not args.cuda)" not in convert_text(SWITCHED.replace(before, after))[1]


def test_a_block_on_one_gpu_gives_way(changed):
    block = "with torch.cuda.device({}):\n    shown = model(x)"
    for gpu in ("0", "'cuda:0'"):
        changed(
            made=("model.cuda()", ""),
            batch=("x, y = x.cuda(), y.cuda()", ""),
            step=(block.format(gpu), "shown = model(x)"),
        )


def test_a_block_on_one_gpu_and_in_something_else_is_noted(unchanged):
    report = unchanged(step="with torch.no_grad(), torch.cuda.device(0):\n    shown = model(x)")

    assert any("made the current one" in finding.message for finding in report.findings)


IS_NAMED = "args.device is not None and {on_cpu}"
BEST = '"cuda" if torch.cuda.is_available() else "cpu"'
ON_CPU = 'torch.device({}).type == "cpu"'
#: How a program says that the user's device counts: (what chooses it, the condition for the CPU)
TOLD_OR_CHOSEN = {
    "where there is a GPU": ('device = "cpu" if not torch.cuda.is_available() else args.device', "{on_cpu}"),
    "if there is one": (f"device = args.device if args.device else ({BEST})", "args.device and {on_cpu}"),
    "if it is not None": (f"device = ({BEST}) if args.device is None else args.device", IS_NAMED),
    "one or the other": (f"device = args.device or ({BEST})", "args.device and {on_cpu}"),
    "in a device": (f"device = torch.device(args.device or ({BEST}))", "args.device and {on_cpu}"),
    "a device either way": (
        f"device = torch.device(args.device) if args.device else torch.device({BEST})",
        "args.device and {on_cpu}",
    ),
    "written into the settings": (
        f"if args.device is None:\n    args.device = {BEST}\ndevice = torch.device(args.device)",
        IS_NAMED,
    ),
    "of two words": (
        f"if not args.device or args.device == 'auto':\n    args.device = {BEST}\ndevice = torch.device(args.device)",
        "not (not args.device or args.device == 'auto') and {on_cpu}",
    ),
}


@pytest.mark.parametrize("name", TOLD_OR_CHOSEN)
def test_a_device_of_the_user_or_else_the_best_one(programs, convert_text, name):
    chosen, condition = TOLD_OR_CHOSEN[name]
    parsed = "import argparse\nargs = argparse.ArgumentParser().parse_args()"
    before, _ = programs({"setup": f"{parsed}\n{chosen}", "batch": "x, y = x.to(device), y.to(device)"})
    _, result = convert_text(before)

    wanted = condition.format(on_cpu=ON_CPU.format("args.device"))
    assert f"accelerator = Accelerator(cpu={wanted})".replace("'", '"') in result.replace("'", '"')
    assert ".to(device)" not in result


PARAMETER = """
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
def train(device=None):
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(2, 1).to(device)
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
parser = argparse.ArgumentParser()
parser.add_argument("--device", default=None)
train({given})
"""


HANDED = 'cpu=device is not None and torch.device(device).type == "cpu"'


@pytest.mark.parametrize(
    ("given", "arguments"), [("parser.parse_args().device", HANDED), ("'cpu'", HANDED), ("", "")], ids=str
)
def test_a_device_that_is_handed_over_or_else_the_best_one(convert_text, given, arguments):
    _, result = convert_text(PARAMETER.format(given=given))

    assert f"accelerator = Accelerator({arguments})".replace('"', "'") in result.replace('"', "'")
    assert ".to(device)" not in result


def test_a_device_of_the_user_or_of_the_program_as_the_caller_likes_is_refused(convert_text):
    source = PARAMETER.replace("    if device is None:\n        device =", "    best =").replace(
        "device=None", "device"
    )
    report, result = convert_text(source.format(given="parser.parse_args().device)\ntrain('cpu'"))

    assert "accelerator" not in result
    assert any("is what a user names, or a device that the program chooses" in f.message for f in report.findings)


def test_what_a_user_names_goes_on_deciding_where_the_program_may_set_it(changed):
    asked = f'{PARSED}\nif args.device == "cuda" and not torch.cuda.is_available():\n    args.device = "cpu"\n'
    changed(
        accelerator="",
        setup=(f"{asked}device = torch.device(args.device)", f"{asked}{ASKED}"),
        batch=("x, y = x.to(device), y.to(device)", ""),
    )


SPAWNED = """
import argparse
import torch
import torch.multiprocessing as mp
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def main_worker(index, opt):
    if index >= 0 and opt.device.type == "cuda":
        opt.device = torch.device(f"cuda:{index}")
    if opt.distributed:
        torch.distributed.init_process_group("nccl", init_method=opt.url, world_size=opt.world_size, rank=index)
    data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    loader = DataLoader(data, batch_size=4)
    model = nn.Linear(2, 1).to(opt.device)
    criterion = nn.MSELoss().to(opt.device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            x, y = x.to(opt.device), y.to(opt.device)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--no_cuda", action="store_true")
    parser.add_argument("--distributed", action="store_true")
    parser.add_argument("--url", default="tcp://127.0.0.1:23456")
    opt = parser.parse_args()
    opt.device = torch.device("cpu" if opt.no_cuda else "cuda")
    if opt.distributed:
        opt.world_size = torch.cuda.device_count()
        mp.spawn(main_worker, nprocs=opt.world_size, args=(opt,))
    else:
        main_worker(-1, opt)
"""


def test_a_flag_goes_on_deciding_where_a_process_gives_its_device_a_number(convert_text):
    _, result = convert_text(SPAWNED)

    assert "accelerator = Accelerator(cpu=opt.no_cuda)" in result


OF_THE_MODULE = """
import torch
from torch import nn, optim

device = torch.device("cpu")
if torch.cuda.is_available():
    device = torch.device("cuda:0")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 1)

    def forward(self, x):
        return self.body(x + torch.ones(2).to(device))

class Trainer:
    def __init__(self):
        self.net = Net().to(device)
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self):
        for _ in range(4):
            loss = self.net(torch.ones(3, 2).to(device)).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

torch.manual_seed(0)
Trainer().fit()
"""


def test_a_device_that_a_model_reads_is_the_gpu_of_the_process(convert_text):
    _, result = convert_text(OF_THE_MODULE)
    assert 'device = torch.device("cuda")\n' in result
    assert "torch.ones(2).to(device)" in result
    assert "torch.ones(3, 2).to(self.accelerator.device)" in result


IN_A_MODEL = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Part(nn.Module):
    def __init__(self, device="cuda"):
        super().__init__()
        self.device = device
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x) + torch.zeros(1, 2, device=self.device)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part(device=torch.device("cuda:0"))
        self.last = nn.Linear(2, 1)

    def forward(self, x):
        return self.last(self.part(x)) + {made}


model = Net().cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1)), batch_size=4):
    loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "after"),
    [
        ('torch.zeros(1, 1, device="cuda:0")', 'torch.zeros(1, 1, device="cuda")'),
        ('torch.zeros(1, 1).to("cuda:0")', 'torch.zeros(1, 1).to("cuda")'),
        ("torch.zeros(1, 1).cuda(0)", "torch.zeros(1, 1).cuda()"),
        ("torch.zeros(1, 1, device=x.device)", "torch.zeros(1, 1, device=x.device)"),
        ('torch.zeros(1, 1, device="cpu").sum().item()', 'torch.zeros(1, 1, device="cpu").sum().item()'),
    ],
)
def test_a_model_that_names_the_first_gpu_means_that_of_the_process(convert_text, made, after):
    _, result = convert_text(IN_A_MODEL.format(made=made))

    assert f"self.last(self.part(x)) + {after}\n" in result
    assert 'Part(device=torch.device("cuda"))' in result


def test_a_model_that_compares_the_name_of_the_first_gpu_keeps_it(convert_text):
    made = '(torch.zeros(1, 1, device="cuda:0") if str(x.device) == "cuda:0" else 0)'
    _, result = convert_text(IN_A_MODEL.format(made=made))

    assert f"self.last(self.part(x)) + {made}\n" in result


CONFIGURED = """
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Settings:
    def __init__(self, args):
        self.lr = args.lr
        self.device = torch.device(args.device)


def train(settings, loader):
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=settings.lr)
    {alias}
    model.to(settings.device)
    for x, y in loader:
        loss = (model(x.to({device})) - y.to({device})).pow(2).mean() + torch.ones(1, device={device}).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lr", type=float, default=0.1)
    settings = Settings(parser.parse_args())
    train(settings, DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4))


main()
"""


def test_another_name_for_the_device_of_an_object_is_the_accelerators(convert_text):
    _, result = convert_text(CONFIGURED.format(alias="dev = settings.device", device="dev"))

    assert "    dev = accelerator.device\n" in result
    assert "model.to(" not in result


def test_a_device_of_an_object_that_the_user_chooses_is_asked(convert_text):
    _, result = convert_text(CONFIGURED.format(alias="", device="settings.device"))

    assert 'accelerator = Accelerator(cpu=torch.device(settings.device).type == "cpu")' in result


RESUMED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

use_cuda = torch.cuda.is_available()


def main(path=None):
    model = nn.Linear(4, 1)
    if use_cuda:
        model = model.cuda()
    optimizer = torch.optim.Adam(model.parameters())
    if path is not None:
        optimizer.load_state_dict(torch.load(path))
        if use_cuda:
            for state in optimizer.state.values():
                for name, value in state.items():
                    if {test}:
                        state[name] = value.cuda()
    for x, y in DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4):
        if use_cuda:
            x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


main()
"""


@pytest.mark.parametrize("test", ["torch.is_tensor(value)", "isinstance(value, torch.Tensor)"])
def test_what_kind_of_thing_is_moved_is_no_flag(convert_text, test):
    _, result = convert_text(RESUMED.format(test=test))

    assert "accelerator = Accelerator()" in result
    assert "state[name] = value.to(accelerator.device)" in result


HANDED_BY_NAME = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, device):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def row(device):
    return torch.ones(1, 2, device=device)


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train(model, loader, optimizer, device=torch.device("cuda"))
print(model(row(device=torch.device("cuda"))), row(device=torch.device("cpu")))
"""


def test_a_device_given_by_keyword_gives_way_to_the_accelerator(convert_text):
    _, result = convert_text(HANDED_BY_NAME)

    assert "train(model, loader, optimizer, accelerator=accelerator)\n" in result
    assert 'model(row(device=accelerator.device)), row(device=torch.device("cpu"))' in result


def test_where_files_are_loaded_to_is_no_choice_of_a_device(convert_text):
    loads = 'if os.path.exists("net.pt"):\n    place = "cpu"\n'
    loads += '    model.load_state_dict(torch.load("net.pt", map_location=place))\n'
    _, result = convert_text(f"""\
import os
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
{loads}for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""")

    assert "accelerator = Accelerator()\n" in result
    assert '    place = "cpu"\n' in result
