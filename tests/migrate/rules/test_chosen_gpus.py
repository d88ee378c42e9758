"""GPUs that a program chooses itself: what is said of them, and where the accelerator is made."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

ASKED = (
    "import argparse\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--gpu', type=int, default=0)\nparser.add_argument('--device', default='cuda')\n"
    "args = parser.parse_args()"
)
ACCELERATOR = "accelerator = Accelerator()"


def chosen(report):
    notes = [finding for finding in report.of(Kind.NOTE) if "no longer chooses the GPU" in finding.message]
    assert all("--gpu_ids" in note.hint for note in notes)
    return [note.message.partition(" no longer")[0] for note in notes]


NUMBERED = {
    "a device": "device = torch.device(f'cuda:{args.gpu}' if torch.cuda.is_available() else 'cpu')",
    "a device with a number": "device = torch.device('cuda', args.gpu)",
    "a format": "device = torch.device('cuda:{}'.format(args.gpu))",
}


@pytest.mark.parametrize("name", NUMBERED)
def test_a_number_of_the_user_is_said(changed, name):
    report = changed(
        accelerator="",
        setup=(f"{ASKED}\n{NUMBERED[name]}", f"{ASKED}\n{ACCELERATOR}"),
        batch=("x, y = x.to(device), y.to(device)", ""),
    )
    assert chosen(report) == ["args.gpu"]


STAYING = """
import torch
from torch import nn, optim
{asked}
if args.gpu >= 0 and torch.cuda.is_available():
    device = {gpu}
else:
    device = {cpu}

if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(8, 2).to(device)
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
"""
TEXTS = ["f'cuda:{args.gpu}'", "'cuda:{}'.format(args.gpu)", "'cuda:%d' % args.gpu", "'cuda:' + str(args.gpu)"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_with_a_number_of_the_user_is_a_device(changed, text):
    asked = "if args.gpu >= 0 and torch.cuda.is_available():\n    device = {}\nelse:\n    device = 'cpu'"
    report = changed(
        accelerator="",
        setup=(f"{ASKED}\n{asked.format(text)}", f"{ASKED}\naccelerator = Accelerator(cpu=not args.gpu >= 0)"),
        batch=("x, y = x.to(device), y.to(device)", ""),
    )
    assert chosen(report) in (["args.gpu"], ["str(args.gpu)"])


@pytest.mark.parametrize("made", ["torch.device({})", "{}"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_gpu_by_a_number_that_stays_above_the_accelerator_becomes_that_of_the_process(convert_text, text, made):
    """The program goes by it in its main guard, and other files may import it."""
    source = STAYING.format(asked=ASKED, gpu=made.format(text), cpu=made.format("'cpu'"))
    _, result = convert_text(source)

    assert "Accelerator(cpu=not args.gpu >= 0)" in result
    assert f"    device = {made}\n".format("'cuda'") in result
    assert "x = torch.randn(8, 2).to(device)" in result


def test_a_current_gpu_is_said(changed):
    report = changed(
        accelerator="",
        setup=(
            f"{ASKED}\ntorch.cuda.set_device(args.gpu)",
            ASKED.replace("import argparse", f"import argparse\n{ACCELERATOR}"),
        ),
    )
    assert chosen(report) == ["args.gpu"]


def test_a_number_that_stands_there_is_said(changed):
    report = changed(accelerator=ACCELERATOR, model=("model = nn.Linear(2, 1).cuda(1)", "model = nn.Linear(2, 1)"))
    assert chosen(report) == ["1"]


def test_what_a_user_names_may_have_a_number(changed):
    asked = "accelerator = Accelerator(cpu=torch.device(args.device).type == 'cpu')"
    report = changed(
        accelerator="",
        setup=(f"{ASKED}\ndevice = torch.device(args.device)", f"{ASKED}\n{asked}"),
        batch=("x, y = x.to(device), y.to(device)", ""),
    )
    assert chosen(report) == ["a number in args.device (cuda:1)"]


FIRST = {
    "the first": "device = torch.device('cuda:0')",
    "the first by its number": "device = torch.device('cuda', 0)",
    "the best there is": "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
    "a number that is set": "number = 0\ndevice = torch.device(f'cuda:{number}')",
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_gpu_is_no_choice(convert_text, programs, name):
    report, _ = convert_text(programs({"setup": FIRST[name], "batch": "x, y = x.to(device), y.to(device)"})[0])
    assert report.changes
    assert not chosen(report)


VISIBLE = ["os.environ['CUDA_VISIBLE_DEVICES'] = '0'", "os.putenv('CUDA_VISIBLE_DEVICES', '0')"]


@pytest.mark.parametrize("given", VISIBLE)
def test_the_accelerator_is_made_below_what_hides_gpus(changed, given):
    report = changed(imports="import os", accelerator="", setup=(given, f"{given}\n{ACCELERATOR}"))
    assert any("several processes need one each" in finding.message for finding in report.of(Kind.NOTE))


def test_what_is_only_printed_above_that_goes_by_the_rank(changed):
    hide = "os.environ['CUDA_VISIBLE_DEVICES'] = '1'"
    guarded = "if os.environ.get('RANK', '0') == '0':\n    print('on GPU 1')"
    report = changed(
        imports="import os", accelerator="", setup=(f"print('on GPU 1')\n{hide}", f"{guarded}\n{hide}\n{ACCELERATOR}")
    )
    assert not [finding for finding in report.of(Kind.NOTE) if "too late" in finding.message]


SET_GPU = "def set_gpu(gpu):\n    os.environ['CUDA_VISIBLE_DEVICES'] = gpu{}"
HIDES = {
    "and nothing else": (SET_GPU.format(""), SET_GPU.format("")),
    "and says so": (
        SET_GPU.format("\n    print('on', gpu)"),
        SET_GPU.format("\n    if os.environ.get('RANK', '0') == '0':\n        print('on', gpu)"),
    ),
}


@pytest.mark.parametrize("name", HIDES)
def test_the_accelerator_is_made_below_a_call_of_what_hides_gpus(changed, name):
    before, after = (f"{function}\nset_gpu('1')" for function in HIDES[name])
    report = changed(imports="import os", accelerator="", setup=(before, f"{after}\n{ACCELERATOR}"))
    said = [finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG101"]
    assert said == ["the GPUs are chosen here: several processes need one each"]


TOO_LATE = {
    "a file is written above": ("torch.save(torch.ones(1), 'gpu.pt')", "accelerator.save(torch.ones(1), 'gpu.pt')"),
    "a logger speaks above": ("tb = SummaryWriter()", "tb = SummaryWriter() if accelerator.is_main_process else None"),
    "what is printed is the project's": ("print(name())", "accelerator.print(name())"),
}


@pytest.mark.parametrize("name", TOO_LATE)
def test_gpus_that_are_hidden_too_late_are_said(convert_text, programs, name):
    above, after = TOO_LATE[name]
    helper = "from torch.utils.tensorboard import SummaryWriter\ndef name():\n    return 'GPU 1'\n"
    hide = "os.environ['CUDA_VISIBLE_DEVICES'] = '1'"
    report, result = convert_text(programs({"imports": "import os", "setup": f"{helper}{above}\n{hide}"})[0])
    assert after.partition(" if ")[0] in result
    (note,) = [finding for finding in report.of(Kind.NOTE) if "too late" in finding.message]
    assert "--gpu_ids" in note.hint


READ_ABOVE = """
import os
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
weights = torch.ones(2).to(device)
{between}
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
model = nn.Linear(2, 1).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1)), batch_size=4)
for i, (x, y) in enumerate(loader):
    x, y = x.to(device), y.to(device)
    loss = nn.functional.mse_loss(model(x), y) / {steps}
    loss.backward()
    if (i + 1) % {steps} == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
"""


def test_what_needs_no_name_is_told_to_an_accelerator_above_the_choice_of_gpus(convert_text):
    report, result = convert_text(READ_ABOVE.format(between="", steps=4))

    assert "accelerator = Accelerator(gradient_accumulation_steps=4)\ndevice = accelerator.device\nweights" in result
    assert any("too late" in finding.message for finding in report.of(Kind.NOTE))


def test_a_device_that_is_read_above_a_name_that_the_accelerator_needs(convert_text):
    report, result = convert_text(READ_ABOVE.format(between="steps = 4", steps="steps"))

    (note,) = [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG108"]
    assert "device is read here, before steps, which the accelerator needs, has its value" in note.message
    assert "accelerator = Accelerator()\n" in result


KIND = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

device = "cuda"
kind = "cuda" if "cuda" in device else "cpu"

def made(parameters, kind):
    return optim.AdamW(parameters, fused=kind == "cuda")

model = nn.Linear(2, 1)
model.to(device)
optimizer = made(model.parameters(), kind)
loader = DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1)), batch_size=4)
for x, y in loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    with torch.autocast(device_type=kind):
        loss = (model(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


def test_a_word_that_goes_by_the_device_stays(convert_text):
    _, result = convert_text(KIND)
    assert 'kind = "cuda" if "cuda" in ' in result
    assert "Accelerator()" in result


AGENT = """
import torch
from torch import nn, optim

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Agent:
    def __init__(self):
        self.net = nn.Linear(2, 1).to(device)
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)

    def act(self):
        return self.net(torch.zeros(1, 2).to(device)).item()

    def train(self, x, y):
        loss = (self.net(x.to(device)) - y.to(device)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
TRAINS = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from agent import Agent

agent = Agent()
loader = DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1)), batch_size=4)
for x, y in loader:
    agent.train(x, y)
"""
UNSEEN = "    def act(self):\n        return self.net(torch.zeros(1, 2).to(device)).item()\n"


@pytest.mark.parametrize(("left", "is_said"), [(UNSEEN, True), ("", False)])
def test_a_device_that_a_helper_chooses_for_itself_is_said(tmp_path, monkeypatch, left, is_said):
    (tmp_path / "agent.py").write_text(AGENT.replace(UNSEEN, left))
    (tmp_path / "train.py").write_text(TRAINS)
    monkeypatch.chdir(tmp_path)
    notes = [f for f in run(["."], Options()).findings if "stays the GPU or the CPU" in f.message]
    assert [(note.path, note.line) for note in notes] == [("agent.py", 5)] * is_said
    assert all("launch --cpu" in note.hint for note in notes)


PARTED = """
import torch
from torch import nn


class Plain(nn.Linear):
    pass


class Parted(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(2, 2).to("cuda:0")
        self.two = nn.Linear(2, 1).to("cuda:1")

    def forward(self, x):
        return self.two(self.one(x).to("cuda:1"))
"""
RUNS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from nets import Parted, Plain

model = {made}
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1)), batch_size=4):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("made", "converts"), [("Parted()", False), ("Plain(2, 1)", True)])
def test_a_model_of_another_file_that_lies_on_two_gpus(tmp_path, monkeypatch, made, converts):
    (tmp_path / "nets.py").write_text(PARTED)
    (tmp_path / "train.py").write_text(RUNS.replace("{made}", made))
    monkeypatch.chdir(tmp_path)
    report = run(["."], Options())
    assert ["several devices" in f.message for f in report.findings if f.code == "MIG110"] == [True] * (not converts)
    assert bool(report.touched) is converts


NAMED_IN_A_PART = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self, device="cuda"):
        super().__init__()
        self.device = device
        self.one = nn.Linear(2, 2)

    def forward(self, x):
        self.device = x.device
        return self.one(x) + torch.zeros(1, 2, device=self.device)


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part(device=torch.device("cuda:0"))
        self.two = nn.Linear(2, 1)

    def forward(self, x):
        return self.two(self.part(x)) + torch.zeros(1, 1, device=x.device)
"""


def test_the_device_that_a_tensor_lies_on_is_no_second_one(tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text(NAMED_IN_A_PART)
    (tmp_path / "train.py").write_text(RUNS.replace("{made}", "Whole()").replace("Parted, Plain", "Whole"))
    monkeypatch.chdir(tmp_path)
    report = run(["."], Options())

    assert not [finding for finding in report.findings if finding.code == "MIG110"]
    assert report.touched
