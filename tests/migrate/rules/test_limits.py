"""What stands in the way of a whole program: `migrate/programs/limits.py`, and codes that are only ever reasons."""

import pytest
from typer.testing import CliRunner

from migrate.analysis import analyse
from migrate.cli import app
from migrate.options import Options
from migrate.pipeline import run
from migrate.programs.limits import CHECKS, limits
from migrate.programs.loops import Loops
from migrate.programs.program import programs as programs_of
from migrate.report.model import Kind
from migrate.source.project import Project, SourceFile

ALLOWED = {
    "one GPU by number": {"ready": 'z = torch.ones(2).to("cuda:0")', "accelerator": "accelerator = Accelerator()"},
    "a model that goes to another GPU in the end": {
        "made": ('model.to("cuda:1")', ""),
        "end": ('model.to("cuda:0")', ""),
    },
    "a GPU that is chosen": {
        "setup": ('device = torch.device("cuda:1" if torch.cuda.device_count() > 1 else "cuda:0")', ""),
        "batch": ("x = x.to(device)", ""),
    },
    "another lambda": {"made": "double = lambda rows: 2 * rows"},
    "a lambda that brings something back": {"made": "back = lambda rows: rows.cpu()"},
    "a lambda that brings it to the CPU": {"made": "back = lambda rows: rows.to('cpu').detach().numpy()"},
    "a CPU tensor type": {"ready": "z = torch.FloatTensor([1.0])"},
    "a default dtype": {"setup": "torch.set_default_dtype(torch.float32)"},
    "a default type on the CPU": {"setup": "torch.set_default_tensor_type(torch.DoubleTensor)"},
    "a default device": {"setup": 'torch.set_default_device("cuda")'},
    "a default type": {"setup": 'torch.set_default_tensor_type("torch.cuda.FloatTensor")'},
    "a model with helpers of its own": {
        "setup": "class Net(nn.Linear):\n    def loss(self, output, y):\n        return (output - y).sum()",
        "model": "model = Net(2, 1)",
    },
}
#: What becomes of an allowed one is another rule's matter.
CHANGES_TOO = {"one GPU by number": "z = torch.ones(2).to(accelerator.device)"}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(changed, name):
    holes = dict(ALLOWED[name])
    if name in CHANGES_TOO:
        holes["ready"] = (holes["ready"], CHANGES_TOO[name])
    changed(**holes)


def test_a_lambda_that_moves_what_it_makes_names_the_accelerator(changed):
    made = "hot = lambda rows: torch.zeros(rows.shape).{}"
    moves = made.format("cuda()"), made.format("to(accelerator.device)")
    changed(made=moves, step="shown = hot(output).sum()", accelerator="accelerator = Accelerator()")


REFUSED = {
    "apex": (
        "MIG106",
        {"imports": "from apex import amp", "ready": 'model, optimizer = amp.initialize(model, optimizer, True, "O2")'},
        "amp.initialize",
        "opt_level O2 keeps the parameters in float16",
    ),
    "a pipeline": (
        "MIG110",
        {"made": "stages = torch.distributed.pipelining.pipeline(model)"},
        "pipeline(model)",
        "pipeline parallel",
    ),
    "two GPUs": (
        "MIG110",
        {"ready": 'z = torch.ones(2, device="cuda:0")\nw = torch.ones(2, device="cuda:1")'},
        "cuda:1",
        "several devices itself (cuda:0, cuda:1)",
    ),
    "a default that names one GPU": (
        "MIG120",
        {"setup": 'torch.set_default_device("cuda:0")'},
        "set_default_device",
        "on one GPU by default",
    ),
    "a default that is not known": (
        "MIG120",
        {"setup": "torch.set_default_device(input())"},
        "set_default_device",
        "is not known",
    ),
    "several defaults": (
        "MIG120",
        {
            "setup": 'if torch.cuda.is_available():\n    torch.set_default_device("cuda")\n'
            'if len("a"):\n    torch.set_default_tensor_type(torch.cuda.FloatTensor)'
        },
        "set_default_device",
        "several conditions",
    ),
    "a tensor type": (
        "MIG120",
        {"setup": "KINDS = {'cuda': torch.cuda.FloatTensor, 'cpu': torch.FloatTensor}"},
        "torch.cuda.FloatTensor",
        "torch.cuda.FloatTensor hides the device",
    ),
    "a lambda": (
        "MIG120",
        {"setup": "put = lambda rows: rows.cuda()", "batch": "x = put(x)"},
        "lambda rows",
        "lambda moves",
    ),
    "an accelerator that is there": (
        "MIG906",
        {"imports": "from accelerate import Accelerator", "setup": "accelerator = Accelerator()"},
        "Accelerator()",
        "already makes an accelerator",
    ),
    "a device by its number": (
        "MIG103",
        {"batch": 'x = x.to(f"cuda:{len(data) % 1}")'},
        "x.to(f",
        "is not known",
    ),
    "a device by its number in a format": (
        "MIG103",
        {"batch": 'x = x.to("cuda:{}".format(len(data) % 1))'},
        "x.to(",
        "is not known",
    ),
    "a loader of another library": (
        "MIG903",
        {"imports": "from timm.data import create_loader", "over": "create_loader(data, 8, 4)"},
        "for x, y in create_loader",
        "which prepare cannot take",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused, name):
    code, holes, at, mention = REFUSED[name]
    finding = refused(code, at, [mention], **holes)

    assert finding.path == "program.py"
    assert finding.loop.startswith("program.py:")  # the training loop that it keeps back


HEAD = """
from torch import nn, optim
from torch.utils.data import DataLoader

loader = DataLoader(data)
model = nn.Linear(2, 1)
"""
LOOP = "for x, y in loader:\n    model(x).sum().backward()\n    optimizer.step()\n"
WHOLE = {
    "no optimizer": (HEAD + "for x, y in loader:\n    model(x).sum().backward()\n", "MIG902", "no optimizer steps"),
    "an optimizer of unknown parameters": (
        HEAD + "optimizer = optim.SGD(found, lr=0.1)\n" + LOOP,
        "MIG902",
        "what the optimizer trains",
    ),
    "steps by hand": (
        HEAD + "for x, y in loader:\n    model(x).sum().backward()\n    model.weight.data -= model.weight.grad\n",
        "MIG902",
        "no optimizer steps",
    ),
    "no home": (
        HEAD.replace("model = nn.Linear(2, 1)\n", "")
        + "\ndef make():\n    model = nn.Linear(2, 1)\n"
        + "    return (model, optim.SGD(model.parameters(), lr=0.1))\n\n"
        + "both = make()\nfor x, y in loader:\n    both[0](x).sum().backward()\n    both[1].step()\n",
        "MIG901",
        "has a name for",
    ),
    "no home, and of many models some are told": (
        HEAD.replace("model = nn.Linear(2, 1)\n", "")
        + "".join(f"\ndef make{n}():\n    return nn.Linear(2, 1)\n" for n in range(5))
        + "\nmodels = {str(n): make for n, make in enumerate([make0, make1, make2, make3, make4])}\n"
        + "\ndef train(key):\n    optimizer = optim.SGD(models[key].parameters(), lr=0.1)\n"
        + "    for x, y in loader:\n        models[key](x).sum().backward()\n        optimizer.step()\n\n"
        + "models = {key: make() for key, make in models.items()}\ntrain(input())\n",
        "MIG901",
        "program.py:16 and 2 more): prepare needs them together",
    ),
    "no home, and of those that lack as much the one that trains is told": (
        HEAD.replace("model = nn.Linear(2, 1)\n", "")
        + "\ndef count(model, loader):\n    return len(list(model.parameters())) + len(loader)\n"
        + "\ndef make(model):\n    return (model, optim.SGD(model.parameters(), lr=0.1))\n"
        + "\ndef train(model, loader, both):\n    for x, y in loader:\n        model(x).sum().backward()\n"
        + "        both[1].step()\n"
        + "\ndef main():\n    pair = (nn.Linear(2, 1), 0)\n"
        + "    print(count(pair[0], loader))\n    train(pair[0], loader, make(pair[0]))\n\nmain()\n",
        "MIG901",
        "train() has a name for the model and the loader, and none for the optimizer",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_refused_as_a_whole(refused_text, name):
    source, code, mention = WHOLE[name]
    refused_text(source, code, "for x, y in loader", [mention])


def test_a_function_that_nobody_calls_is_flagged(convert_text, remark):
    source = HEAD.lstrip() + "\ndef step(x, optimizer):\n    model(x).sum().backward()\n    optimizer.step()\n"
    report, result = convert_text(source)

    assert result == source
    finding = remark(report, source, "MIG907", "model(x).sum().backward()", ["step() trains"], Kind.LOOP)
    assert finding.converts is False
    assert finding.hint.startswith("name the files")


def test_every_reason_is_told(convert_text, programs):
    before, _ = programs(
        {"imports": "from apex import amp", "made": "amp.init()", "setup": 'torch.set_default_device("cuda:0")'},
    )
    report, _ = convert_text(before)

    assert {finding.code for finding in report.of(Kind.LEFT)} == {"MIG106", "MIG120"}
    (loop,) = report.of(Kind.LOOP)
    assert "(MIG120, MIG106)" in loop.message


def test_a_bound_that_is_reached_is_a_reason(programs):
    facts = analyse(Project([SourceFile("program.py", programs({})[0].encode())]))
    loops = Loops(facts)
    (program,) = programs_of(facts, loops)
    assert limits(facts, loops, program) == []

    (refusal,) = CHECKS[0](_Incomplete(facts), loops, program)
    assert refusal.code == "MIG905"
    assert "bound" in refusal.why


class _Incomplete:
    """Facts of an analysis that stopped."""

    cut_short = ("program.py",)

    def __init__(self, facts):
        self._facts = facts

    def __getattr__(self, name):
        return getattr(self._facts, name)


def test_a_loop_in_a_file_that_is_imported_but_not_named(tmp_path, monkeypatch):
    loop = "for x in range(9):\n        model(torch.ones(2)).sum().backward()\n        optimizer.step()"
    (tmp_path / "engine.py").write_text(f"import torch\ndef fit(model, optimizer):\n    {loop}\n", encoding="utf-8")
    (tmp_path / "main.py").write_text("from engine import fit\nfit(object(), object())\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, ["main.py"])

    assert result.exit_code == 0
    assert "main.py:2:1 MIG907 this leads to the training loop in engine.py:3: " in result.output
    assert "the program needs engine.py, which was not named" in result.output
    assert "migrate main.py engine.py" in result.output


def test_a_function_that_is_named_without_the_file_that_calls_it(tmp_path, monkeypatch):
    fit = "def fit(model, data):\n    optimizer = optim.SGD(model.parameters(), 0.1)\n    for x in data:\n        "
    step = "model(x).sum().backward()\n        optimizer.step()\n"
    (tmp_path / "engine.py").write_text(f"from torch import optim\n\n{fit}{step}", encoding="utf-8")
    (tmp_path / "main.py").write_text("from engine import fit\nfit(object(), object())\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, ["engine.py"])

    assert "MIG902 what the optimizer trains is not known: nothing that was read calls fit()" in result.output
    assert "name it too: migrate engine.py main.py" in result.output


def test_a_model_whose_class_stands_below(refused_text):
    text = """
    import torch
    from torch import nn, optim

    net = Net(3)
    optimizer = optim.SGD(net.parameters(), 0.1)

    class Net(nn.Linear):
        def __init__(self, n):
            super().__init__(n, n)

    for step in range(3):
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    """
    refused_text(text, "MIG902", "for step in", ["`Net` is asked for at line 4, and defined at line 7"])


BY_HAND = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.zeros(8, 2))
{loader} = DataLoader(data, batch_size=2)
{model} = nn.Linear(2, 1)
for (x,) in {loader}:
    {model}.zero_grad()
    {model}(x).mean().backward()
    for p in {model}.parameters():
        p.data = p.data - 0.1 * p.grad.data
{second}
net = nn.Linear(2, 1)
optimizer = optim.SGD(net.parameters(), lr=0.1)
for (x,) in loader:
    optimizer.zero_grad()
    net(x).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("loader", "model"), [("first", "first_net"), ("loader", "net")])
def test_a_loop_that_trains_by_hand_keeps_its_data(convert_text, loader, model):
    second = "loader = DataLoader(data, batch_size=4)"
    report, result = convert_text(BY_HAND.format(loader=loader, model=model, second=second))

    assert result.count("accelerator.prepare(") == result.count("accelerator.backward(") == 1
    assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in result
    assert f"    {model}(x).mean().backward()\n" in result
    assert [finding.converts for finding in report.findings if finding.kind is Kind.LOOP] == [False, True]


@pytest.mark.parametrize("model", ["first", "net"])
def test_a_loop_that_trains_by_hand_on_the_data_of_another(convert_text, model):
    report, result = convert_text(BY_HAND.format(loader="loader", model=model, second=""))

    assert "Accelerator" not in result
    assert "written by hand" in str([finding.message for finding in report.findings])


SHARING = """\
import torch
import torch.multiprocessing as mp
from torch import nn

def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.utils.data.DataLoader(torch.randn(8, 2)):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

model = nn.Linear(2, 1)
model.share_memory()
workers = [mp.Process(target=train, args=(model,)) for _ in range(2)]
"""


def test_processes_that_share_one_model(convert_text):
    report, _ = convert_text(SHARING)

    assert "train one model in shared memory" in " ".join(finding.message for finding in report.of(Kind.LEFT))


FACTORY = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def fetch(shuffle, size=4):
    rows = torch.ones(8, 2)
    pick = {pick}
    return DataLoader(TensorDataset(pick(1), torch.ones(8, 1)), batch_size=size, shuffle=shuffle)


model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
loader = fetch(True)
tests = fetch(False)
for x, y in loader:
    (model(x) - y).pow(2).mean().backward()
    optimizer.step()
"""


def test_a_lambda_that_keeps_what_a_function_has_made_keeps_its_calls_from_being_told_apart(convert_text):
    source = FACTORY.format(pick="lambda i: torch.mul(rows, i)")
    report, result = convert_text(source)
    assert result == source
    assert {finding.code for finding in report.of(Kind.LEFT)} == {"MIG104"}


@pytest.mark.parametrize("name", ["Accelerator", "accelerator"])
def test_a_name_that_everything_of_a_file_brings(tmp_path, name):
    script = "import torch\nfrom torch import nn\n\nfrom data import *\n\nmodel = nn.Linear(2, 1)\n"
    script += (
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x, y in loader:\n    optimizer.zero_grad()\n"
        "    nn.functional.mse_loss(model(x), y).backward()\n    optimizer.step()\n"
    )
    data = "import torch\nrows = torch.utils.data.TensorDataset(torch.ones(8, 2), torch.ones(8, 1))\n"
    data += "loader = torch.utils.data.DataLoader(rows, batch_size=2)\n"
    (tmp_path / "train.py").write_text(script)
    for content, converts in ((data, True), (f"{data}{name} = 3\n", False)):
        (tmp_path / "data.py").write_text(content)
        report = run([str(tmp_path)], Options())
        assert [loop.converts for loop in report.of(Kind.LOOP)] == [converts]
        said = [(f.code, f.line) for f in report.of(Kind.LEFT)]
        assert said == ([] if converts else [("MIG100", 4)])


BY_TURNS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
for device in {devices}:
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.to({to})
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x.to({to})) - y.to({to})).pow(2).mean()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("devices", "to", "converts"),
    [
        ('["cpu", "cuda"]', "device", False),
        ('("cuda:0", "cpu")', "torch.device(device)", False),
        ('["cuda"]', "device", True),
        ('["first", "second"]', '"cuda"', True),
    ],
)
def test_a_training_on_several_devices_by_turns_is_refused(convert_text, devices, to, converts):
    report, _ = convert_text(BY_TURNS.format(devices=devices, to=to))

    (loop,) = report.of(Kind.LOOP)
    assert loop.converts is converts
    assert converts or "MIG101" in {finding.code for finding in report.of(Kind.LEFT)}


CASTS = [
    "rows.to(torch.float32)",
    "rows.to(dtype=torch.float32)",
    "rows.to(other.dtype)",
    "rows.to(torch.float32) / 255.0",
]


@pytest.mark.parametrize("cast", CASTS)
def test_a_lambda_that_only_casts_moves_nothing(convert_text, programs, cast):
    holes = {"setup": f"other = torch.zeros(1)\ncast = lambda rows: {cast}", "batch": "x = cast(x)"}
    _, result = convert_text(programs(holes)[0])

    assert "accelerator.prepare(" in result
    assert f"cast = lambda rows: {cast}\n" in result


MOVES = ["rows.to(device)", "rows.to(device, torch.float32)", "rows.to(config['device'])", "rows.to(other)"]


@pytest.mark.parametrize("move", MOVES)
def test_a_lambda_that_moves_while_it_casts_is_refused(refused, move):
    setup = f"config, other = dict(device='cuda'), torch.zeros(1)\nput = lambda rows: {move}"
    refused("MIG120", "lambda rows", ["lambda moves"], setup=setup, batch="x = put(x)")
