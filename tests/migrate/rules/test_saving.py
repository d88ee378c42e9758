import pytest

from migrate.report.model import Kind

ACCELERATOR = "accelerator = Accelerator()"

UNCHANGED = {
    "a state that is kept": {"epoch": "best = {name: p.detach() for name, p in zip('wb', model.parameters())}"},
    "the optimizer's state": {"end": "state = optimizer.state_dict()"},
    "what is loaded": {"setup": 'rows = torch.load("rows.pt")'},
    "another library's": {"imports": "from safetensors.torch import save_model", "end": "state = save_model"},
    "a function of the same name": {
        "setup": "def save(state, path):\n    return state",
        "end": 'state = save(3, "m.pt")',
    },
    "not called": {"end": "writer = torch.save"},
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


STATE = "accelerator.unwrap_model(model).state_dict()"
CHANGED = {
    "the model": ('torch.save(model.state_dict(), "m.pt")', f'accelerator.save({STATE}, "m.pt")'),
    "the whole model": ('torch.save(model, "m.pt")', 'accelerator.save(accelerator.unwrap_model(model), "m.pt")'),
    "the optimizer": ('torch.save(optimizer.state_dict(), "o.pt")', 'accelerator.save(optimizer.state_dict(), "o.pt")'),
    "both": (
        'torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "c.pt")',
        f'accelerator.save({{"model": {STATE}, "optimizer": optimizer.state_dict()}}, "c.pt")',
    ),
    "under a name": (
        'state = model.state_dict()\ntorch.save(state, "m.pt")',
        f'state = {STATE}\naccelerator.save(state, "m.pt")',
    ),
    "two": (
        'torch.save(model.state_dict(), "m.pt")\ntorch.save(optimizer.state_dict(), "o.pt")',
        f'accelerator.save({STATE}, "m.pt")\naccelerator.save(optimizer.state_dict(), "o.pt")',
    ),
    "with a message": (
        'torch.save(model.state_dict(), "m.pt")\nprint("saved")',
        f'accelerator.save({STATE}, "m.pt")\naccelerator.print("saved")',
    ),
    "under a condition": (
        'if epoch == 1:\n    torch.save(model.state_dict(), "m.pt")',
        f'if epoch == 1:\n    accelerator.save({STATE}, "m.pt")',
    ),
    "among other files": (
        'os.mkdir("out")\ntorch.save(model.state_dict(), "out/m.pt")',
        (f'if accelerator.is_main_process:\n    os.mkdir("out")\n    torch.save({STATE}, "out/m.pt")'),
    ),
    "from the CPU": (
        'torch.save(model.cpu().state_dict(), "m.pt")',
        'accelerator.save(accelerator.unwrap_model(model.cpu()).state_dict(), "m.pt")',
    ),
    "in eval mode": (
        'torch.save(model.eval().state_dict(), "m.pt")',
        'accelerator.save(accelerator.unwrap_model(model.eval()).state_dict(), "m.pt")',
    ),
    "with options": (
        'torch.save(model.state_dict(), "m.pt", pickle_protocol=4)',
        f'if accelerator.is_main_process:\n    torch.save({STATE}, "m.pt", pickle_protocol=4)',
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(imports="import os", end=CHANGED[name])


def test_in_each_epoch(changed):
    changed(epoch=('torch.save(model.state_dict(), f"{epoch}.pt")', f'accelerator.save({STATE}, f"{{epoch}}.pt")'))


def test_the_import_goes_with_its_last_use(changed):
    changed(
        imports=("from torch import save", ""),
        end=('save(model.state_dict(), "m.pt")', f'accelerator.save({STATE}, "m.pt")'),
    )


def test_a_function_that_only_writes_is_left_and_its_calls_are_guarded(changed):
    function = 'def keep(net, path):\n    torch.save({{"net": {net}.state_dict()}}, path)'
    changed(
        setup=(function.format(net="net"), function.format(net="accelerator.unwrap_model(net)")),
        end=('keep(model, "m.pt")', 'if accelerator.is_main_process:\n    keep(model, "m.pt")'),
    )


def test_it_can_be_left_out(programs, convert_text):
    before, _ = programs({"end": 'torch.save(model.state_dict(), "m.pt")'})
    _, result = convert_text(before, ignore=("MIG115",))

    assert f'torch.save({STATE}, "m.pt")' in result


STOPPER = """
class Stopper:
    def __init__(self, say):
        self.best = 1e9
        self.say = say

    def __call__(self, value, net):
        if value < self.best:
            self.best = value
            {say}
            {save}
"""


def test_what_an_object_does_that_is_called(changed):
    """Objects of the project that are called are entered like functions; a print under another name is guarded."""
    before = STOPPER.format(say='self.say("better")', save='torch.save({"net": net.state_dict()}, "best.pt")')
    after = STOPPER.format(
        say='if accelerator.is_main_process:\n                self.say("better")',
        save='    torch.save({"net": accelerator.unwrap_model(net).state_dict()}, "best.pt")',
    )
    report = changed(
        accelerator="",
        setup=(f"{before}\nstop = Stopper(print)", f"{ACCELERATOR}\n{after}\nstop = Stopper(print)"),
        epoch="stop(float(epoch), model)",
    )

    assert not report.of(Kind.NOTE)


def test_what_a_function_has_written_before_the_training_is_waited_for(convert_text):
    source = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build(folder):
    for i in range(2):
        with open(folder + "{}.txt".format(i), "w") as f:
            f.write("1 2 3")


def main(folder="tokens"):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    build(folder)
    tokens = []
    for i in range(2):
        with open(folder + "{}.txt".format(i), "r") as f:
            tokens += f.read().split()
    loader = DataLoader(TensorDataset(torch.ones(len(tokens), 2)), batch_size=2)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        loss = model(x.to(device)).mean()
        loss.backward()
        optimizer.step()


main()
"""
    _, result = convert_text(source.lstrip())

    assert "    accelerator.wait_for_everyone()\n    for i in range(2):\n        with open(" in result
