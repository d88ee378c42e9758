"""Scalers that functions and objects are handed: where the accelerator scales, the parameter goes with them."""

import pytest

FUNCTION = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train({parameters}):
    {first}
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        with torch.cuda.amp.autocast(enabled=scaler is not None):
            loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()


def main(args):
    device = torch.device("cuda")
    loader = DataLoader(TensorDataset(torch.ones(16, 2), torch.ones(16, 1)), batch_size=4)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler() if args.amp else None
    for epoch in range(2):
        {call}
    {last}


parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
main(parser.parse_args())
"""
PARAMETERS = "model, loader, optimizer, device, scaler, freq=3"


def function(
    parameters=PARAMETERS, call="train(model, loader, optimizer, device, scaler, 4)", first="pass", last="pass"
):
    return FUNCTION.format(parameters=parameters, call=call, first=first, last=last)


TAKEN = {
    "by its place": (PARAMETERS, "train(model, loader, optimizer, device, scaler, 4)"),
    "by its name": (PARAMETERS, "train(model, loader, optimizer, device, scaler=scaler, freq=4)"),
    "with a default": (
        "model, loader, optimizer, device, scaler=None, freq=3",
        "train(model, loader, optimizer, device, scaler, 4)",
    ),
    "in front": ("scaler, model, loader, optimizer, device", "train(scaler, model, loader, optimizer, device)"),
    "without a device": (
        "model, loader, optimizer, scaler, device=torch.device('cuda')",
        "train(model, loader, optimizer, scaler)",
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_the_parameter_goes_with_the_scaler(convert_text, case):
    parameters, call = TAKEN[case]
    report, changed = convert_text(function(parameters, call))
    assert "scaler" not in changed
    assert "        with accelerator.autocast():\n" in changed
    assert "        accelerator.backward(loss)\n        optimizer.step()\n" in changed
    assert 'mixed_precision="fp16" if args.amp else "no"' in changed
    assert not [finding for finding in report.findings if finding.code == "MIG106"]


def test_what_follows_it_is_passed_as_it_was(convert_text):
    _, changed = convert_text(function())
    assert "def train(model, loader, optimizer, accelerator, freq=3):" in changed
    assert "train(model, loader, optimizer, accelerator, 4)" in changed


def test_the_accelerator_stands_where_the_parameters_without_defaults_end(convert_text):
    parameters = PARAMETERS.replace("device, ", "")
    call = "train(model, loader, optimizer, scaler, 4)"
    _, changed = convert_text(function(parameters, call).replace("x, y = x.to(device), y.to(device)", "pass"))
    assert "def train(model, loader, optimizer, accelerator, freq=3):" in changed
    assert "train(model, loader, optimizer, accelerator, 4)" in changed


BY_HAND = {
    "one call goes without it": {"last": "train(model, loader, optimizer, device, None)"},
    "it is given anew": {"first": "scaler = scaler or torch.cuda.amp.GradScaler()"},
    "all arguments are starred": {"call": "given = (model, loader, optimizer, device, scaler)\n        train(*given)"},
    "the function is handed on": {"last": "print(train)"},
    "something else is told of it": {"last": "print(vars(scaler))"},
}


@pytest.mark.parametrize("case", BY_HAND)
def test_what_may_be_something_else_is_scaled_by_hand(convert_text, case):
    _, changed = convert_text(function(**BY_HAND[case]))
    assert "mixed_precision" not in changed
    assert "scaler.step(optimizer)" in changed or "Accelerator" not in changed


OBJECT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, scaler, loader):
        self.model = model
        self.optimizer = optimizer
        {kept}
        self.loader = loader

    def fit(self):
        for x, y in self.loader:
            with torch.cuda.amp.autocast():
                loss = nn.functional.mse_loss(self.model(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        torch.save({{"scaler": self.scaler.state_dict()}}, "checkpoint.pt")


def main():
    loader = DataLoader(TensorDataset(torch.ones(16, 2), torch.ones(16, 1)), batch_size=4)
    model = nn.Linear(2, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    {early}
    Trainer(model, optimizer, scaler, loader).fit()


main()
"""


def test_an_object_that_keeps_it_keeps_it_no_longer(convert_text):
    _, changed = convert_text(OBJECT.format(kept="self.scaler = scaler", early="pass"))
    assert "def __init__(self, model, optimizer, loader):" in changed
    assert "Trainer(model, optimizer, loader).fit()" in changed
    assert 'self.accelerator = Accelerator(mixed_precision="fp16")' in changed
    assert '{"scaler": self.accelerator.scaler.state_dict() if self.accelerator.scaler else {}}' in changed


@pytest.mark.parametrize(
    ("kept", "early"),
    [
        ("self.scaler = scaler", "scaler.load_state_dict({})"),
        ("self.scaler = scaler if model else None", "pass"),
        ("self.scaler = self.other = scaler", "pass"),
    ],
)
def test_an_object_that_may_keep_another_scales_by_hand(convert_text, kept, early):
    report, changed = convert_text(OBJECT.format(kept=kept, early=early))
    assert "mixed_precision" not in changed
    assert "self.scaler.step(self.optimizer)" in changed
    assert [finding.code for finding in report.findings if "scaling its losses by hand" in finding.message] == [
        "MIG106"
    ]


BRANCHES = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fit(model, optimizer, loader, fp16, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        if not fp16:
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
        else:
            from {module} import {name}
            with torch.cuda.amp.autocast():
                loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()


fp16 = True
loader = DataLoader(TensorDataset(torch.ones(16, 2), torch.ones(16, 1)), batch_size=4)
model = nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if fp16:
    scaler = torch.cuda.amp.GradScaler()
else:
    scaler = None
for epoch in range(2):
    fit(model, optimizer, loader, fp16, scaler)
"""


def test_a_branch_that_imports_what_it_needs_of_amp_says_the_same(convert_text):
    _, changed = convert_text(BRANCHES.format(module="torch.cuda.amp", name="autocast"))
    assert "fp16' if fp16 else 'no'" in changed.replace('"', "'")
    assert "scaler" not in changed
    assert changed.count("optimizer.step()") == 1


def test_a_branch_that_imports_something_else_does_not(convert_text):
    _, changed = convert_text(BRANCHES.format(module="time", name="sleep"))
    assert "mixed_precision" not in changed
    assert "scaler.step(optimizer)" in changed
