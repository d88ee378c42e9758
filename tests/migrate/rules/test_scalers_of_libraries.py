"""Scalers that are called for a whole step: what is written in place of the call, and what is refused."""

import textwrap

import pytest

PROGRAM = """
import torch
from timm.utils import NativeScaler
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, scaler, limit=0):
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        {step}


def main():
    data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    loader = DataLoader(data, batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scaler = {made}
    for epoch in range(2):
        train(model, loader, optimizer, scaler)
        torch.save({{"model": model.state_dict(), "scaler": scaler.{state}}}, "model.pt")


if __name__ == "__main__":
    main()
"""
BACKWARD = "accelerator.backward(loss)"
STEP = "optimizer.step()"
CLIPPED = "    accelerator.clip_grad_norm_(model.parameters(), limit)"
CHANGED = {
    "a step": ("scaler(loss, optimizer)", f"{BACKWARD}\n{STEP}"),
    "no limit": ("scaler(loss, optimizer, clip_grad=None, parameters=model.parameters())", f"{BACKWARD}\n{STEP}"),
    "clipped": (
        "scaler(loss, optimizer, clip_grad=limit, parameters=model.parameters())",
        f"{BACKWARD}\nif limit is not None:\n{CLIPPED}\n{STEP}",
    ),
    "clipped by a number": (
        "scaler(loss, optimizer, 1.0, parameters=model.parameters(), clip_mode='norm')",
        f"{BACKWARD}\naccelerator.clip_grad_norm_(model.parameters(), 1.0)\n{STEP}",
    ),
    "twice": (
        "scaler(loss, optimizer, create_graph=limit > 0)",
        f"accelerator.backward(loss, create_graph=limit > 0)\n{STEP}",
    ),
    "now and then": (
        "scaler(loss, optimizer, need_update=limit > 0)",
        f"{BACKWARD}\nif limit > 0:\n{textwrap.indent(STEP, '    ')}",
    ),
}
CHOSEN = {
    "clipped in another way": (
        "scaler(loss, optimizer, 1.0, parameters=model.parameters(), clip_mode='agc')",
        f"""{BACKWARD}
accelerator.unscale_gradients(optimizer)
timm.utils.dispatch_clip_grad(model.parameters(), 1.0, mode='agc')
{STEP}""",
    ),
    "a mode that an option chooses": (
        "scaler(loss, optimizer, limit, parameters=model.parameters(), clip_mode=mode)",
        f"""{BACKWARD}
if limit is not None:
    accelerator.unscale_gradients(optimizer)
    timm.utils.dispatch_clip_grad(model.parameters(), limit, mode=mode)
{STEP}""",
    ),
}
LEFT = {
    "clipped in a way that is not known": {
        "step": "scaler(loss, optimizer, 1.0, parameters=model.parameters(), clip_mode='other')"
    },
    "a mode that is computed": {
        "step": "scaler(loss, optimizer, limit, parameters=model.parameters(), clip_mode=choose(limit))"
    },
    "arguments out of sight": {"step": "scaler(loss, optimizer, *limit)"},
    "settings of its own": {"made": "NativeScaler('cpu')"},
    "what only it has": {"state": "state_dict_key"},
    "apex's": {"made": "ApexScaler()"},
}


def program(step="scaler(loss, optimizer)", made="NativeScaler()", state="state_dict()"):
    text = PROGRAM.format(step=textwrap.indent(step, "        ").strip(), made=made, state=state)
    return text.replace("NativeScaler", "ApexScaler") if "Apex" in made else text


@pytest.mark.parametrize("name", CHANGED)
def test_the_step_is_written_out(convert_text, name):
    before, after = CHANGED[name]
    _, result = convert_text(program(before))

    assert textwrap.indent(after, "        ") + "\n" in result
    assert 'accelerator = Accelerator(mixed_precision="fp16")\n' in result
    assert "def train(model, loader, optimizer, accelerator, limit=0):" in result
    assert "timm" not in result


@pytest.mark.parametrize("name", CHOSEN)
def test_other_ways_of_clipping_are_those_of_the_library(convert_text, name):
    before, after = CHOSEN[name]
    _, result = convert_text(program(before).replace("limit=0)", "limit=0, mode='norm')"))

    assert textwrap.indent(after, "        ") + "\n" in result
    assert "import timm.utils\n" in result
    assert "NativeScaler" not in result


@pytest.mark.parametrize("name", LEFT)
def test_what_means_something_else_is_refused(convert_text, name):
    report, result = convert_text(program(**LEFT[name]))

    assert result == program(**LEFT[name]).lstrip("\n")
    assert "a scaler of a library computes the gradients and steps here" in {f.message for f in report.findings}
