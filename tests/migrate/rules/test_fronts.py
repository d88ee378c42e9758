"""Classes that hand on to a writer what they lack: what is asked of their objects is output."""

import pytest

IMPORTS = "from torch.utils.tensorboard import SummaryWriter"
BOARD = """\
class Board:
    def __init__(self, env="main"):
        self.vis = {writer}
        self.index = {{}}
    def plot_many(self, values):
        for name, value in values.items():
            self.plot(name, value)
    def plot(self, name, value):
        x = self.index.get(name, 0)
        self.vis.add_scalar(name, value, x)
        self.index[name] = x + 1
    def state_dict(self):
        return {{"index": self.index, "env": self.vis.log_dir}}
    def __getattr__(self, name):
        return {handed}

board = Board()"""
BEFORE_WRITER = BOARD.format(writer="SummaryWriter(env)", handed="getattr(self.vis, name)")


def guarded(statement):
    return statement, f"if accelerator.is_main_process:\n    {statement}"


SAID = {
    "by the writer": 'board.add_text("end", "done")',
    "by the class, which counts": 'board.plot("loss", loss.item())',
    "by a method that calls one that counts": 'board.plot_many({"loss": loss.item()})',
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_to_a_class_before_a_writer_is_said_once(changed, name):
    report = changed(
        imports=IMPORTS,
        setup=BEFORE_WRITER,
        step=guarded(SAID[name]),
        end=('state = {"board": board.state_dict()}', 'state = {"board": board.state_dict()}'),
    )
    assert [f for f in report.findings if "every process makes this writer" in f.message]


DECIDED = {
    "by what it counts": "if board.index:\n    break",
    "by what it gives": 'if board.state_dict()["index"]:\n    break',
    "by a name for what it gives": "seen = board.state_dict()",
}
AGREED = dict.fromkeys([*DECIDED][:2], 'accelerator.reduce(loss.item(), reduction="mean")')  # where it decides


@pytest.mark.parametrize("name", DECIDED)
def test_what_a_program_asks_for_is_counted_by_every_process(changed, name):
    line = "        self.vis.add_scalar(name, value, x)"
    once = line.replace("        ", "        if accelerator.is_main_process:\n            ")
    changed(
        imports=IMPORTS,
        setup=(BEFORE_WRITER, BEFORE_WRITER.replace(line, once)),
        step=('board.plot("loss", loss.item())', f'board.plot("loss", {AGREED.get(name, "loss.item()")})'),
        epoch=DECIDED[name],
    )


OTHERS = {
    "around something else": BOARD.format(writer="dict(env=env)", handed="getattr(self.vis, name)"),
    "with a default": BOARD.format(writer="SummaryWriter(env)", handed="getattr(self.vis, name, None)"),
    "of something else": BOARD.format(writer="SummaryWriter(env)", handed="getattr(self.index, name)"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_class_that_hands_on_in_another_way_is_no_writer(unchanged, name):
    unchanged(imports=IMPORTS, setup=OTHERS[name], epoch='board.add_text("end", "done")')


def test_a_class_that_only_writes_is_made_by_one_process(convert_text):
    _, text = convert_text("""
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter

class Log:
    def __init__(self, folder):
        self.writer = SummaryWriter(folder)
    def loss(self, value, step):
        self.writer.add_scalar("loss", value, step)
    def __getattr__(self, name):
        return getattr(self.writer, name)

loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
log = Log("runs")
for epoch in range(2):
    for (x,) in loader:
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    log.loss(loss.item(), epoch)
    log.add_scalar("epoch", epoch)
""")
    assert 'if accelerator.is_main_process:\n    log = Log("runs")' in text
    assert "    if accelerator.is_main_process:\n        log.loss(loss.item(), epoch)\n        log.add_scalar(" in text


HELPERS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

def to_tensor(data, cuda=True):
    tensor = data.detach()
    if cuda:
        tensor = tensor.cuda()
    return tensor

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
    def forward(self, x):
        return self.layer({inside})

class Made(Net):
    def get_optimizer(self):
        return optim.SGD(self.parameters(), lr=0.1)

def train():
    loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
    model = Made().cuda()
    optimizer = model.get_optimizer()
    for (x,) in loader:
        loss = model(x.cuda()).mean() + to_tensor(torch.zeros(1)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown = to_tensor(loss, False)

if __name__ == "__main__":
    import fire
    fire.Fire()
"""


def test_a_move_that_callers_switch_is_no_flag_of_the_users(convert_text):
    _, text = convert_text(HELPERS.format(inside="x"))
    assert "accelerator = Accelerator()" in text
    assert "tensor = tensor.to(accelerator.device)" in text


def test_a_move_in_a_function_that_models_call_goes_to_the_current_gpu(convert_text):
    _, text = convert_text(HELPERS.format(inside="to_tensor(x)"))
    assert "accelerator = Accelerator()" in text
    assert "tensor = tensor.cuda()" in text
    assert "accelerator.backward(loss)" in text


INSIDE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Log:
    def __init__(self, path):
        self.file = open(path, "w")

    def scalar(self, name, value):
        self.file.write(f"{name} {value}")


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log = Log("log.txt")
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.scalar("loss", loss.item())
    log.file.flush()
"""


def test_what_an_object_of_the_main_process_holds_is_asked_by_that_process(convert_text):
    _, result = convert_text(INSIDE)

    assert 'if accelerator.is_main_process:\n    log = Log("log.txt")\n' in result
    guarded = '    if accelerator.is_main_process:\n        log.scalar("loss", loss.item())\n        log.file.flush()\n'
    assert guarded in result
