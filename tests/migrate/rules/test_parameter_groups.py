"""What an optimizer trains, where methods of a model hand its parameters out: by layers, in lists, one by one."""

import textwrap

import pytest

MODEL = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x))

    def handed_out(self):
{body}

loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = Net()
optimizer = optim.SGD({given}, lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
EACH = "    for p in {}:\n        if p.requires_grad:\n            yield p"
METHODS = {
    "all layers": "for m in self.modules():\n" + EACH.format("m.parameters()"),
    "layers with names": "for m in self.body.named_modules():\n" + EACH.format("m[1].parameters()"),
    "layers of parts": "for part in [self.body, self.head]:\n    for m in part.modules():\n"
    + textwrap.indent(EACH.format("m.parameters()"), "    "),
    "parts": "found = []\nfor m in self.children():\n    found += list(m.parameters())\nreturn found",
    "parts with names": "found = []\nfor name, m in self.named_children():\n    for n, p in m.named_parameters():\n"
    "        found.append(p)\nreturn found",
    "by their dictionary": "found = []\nfor n, m in self._modules.items():\n    found += m.parameters()\nreturn found",
    "weights and biases": "found = []\nfor m in self.modules():\n    if isinstance(m, nn.Linear):\n"
    "        found.append(m.weight)\n        if m.bias is not None:\n            found.append(m.bias)\nreturn found",
    "groups": "plain, decayed = [], []\nfor name, m in self.named_modules():\n    if isinstance(m, nn.Linear):\n"
    "        decayed.append(m.weight)\n        plain.append(m.bias)\n    elif isinstance(m, nn.BatchNorm1d):\n"
    '        plain += list(m.parameters())\nreturn [{"params": decayed}, {"params": plain, "weight_decay": 0}]',
}


@pytest.mark.parametrize("name", METHODS)
def test_what_a_method_hands_out_is_the_models(convert_text, name):
    source = MODEL.format(body=textwrap.indent(METHODS[name], "        "), given="model.handed_out()")
    _, text = convert_text(source)

    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in text


BY_NAME = {
    "items": '[{"params": m.parameters(), "lr": 0.1 if n == "head" else 0.01} for n, m in model.parts.items()]',
    "values": "[p for m in model.parts.values() for p in m.parameters()]",
}


@pytest.mark.parametrize("name", BY_NAME)
def test_so_are_the_layers_of_a_dictionary_of_layers(convert_text, name):
    source = MODEL.format(body="        pass", given=BY_NAME[name])
    parts = 'nn.ModuleDict({"body": nn.Linear(2, 4), "head": nn.Linear(4, 1)})'
    body = "self.body = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4))\n        self.head = nn.Linear(4, 1)"
    source = source.replace(body, f"self.parts = {parts}")
    source = source.replace("self.head(self.body(x))", 'self.parts["head"](self.parts["body"](x))')
    _, text = convert_text(source)

    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in text


STACKED = """        self.body = nn.ModuleList()
        for size in (2, 4):
            self.body.append(nn.Linear(size, 4))"""
SLICES = {
    "whole": "return list(self.body[:1].parameters()) + list(self.body[1:].parameters())",
    "layer by layer": "return [p for m in self.body[:-1] for p in m.parameters()]",
}


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_of_a_list_of_layers_is_the_models(convert_text, name):
    source = MODEL.format(body=textwrap.indent(SLICES[name], "        "), given="model.handed_out()")
    source = source.replace("        self.body = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4))", STACKED)
    _, text = convert_text(source.replace("self.body(x)", "self.body[1](self.body[0](x))"))

    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in text


def test_a_slice_of_a_list_beside_the_model_is_no_part_of_it(refused_text):
    source = MODEL.format(body="        return self.parameters()", given="[p for p in others[1:]]")
    source = source.replace("model = Net()", "model = Net()\nothers = torch.load('others.pt')")
    refused_text(source, "MIG902", "for x, y in loader", ["not known"])


def test_a_layer_in_eval_mode_is_not_the_model(convert_text):
    """`m.eval()` of one layer says nothing of the others."""
    frozen = "for m in model.modules():\n    if isinstance(m, nn.BatchNorm1d):\n        m.eval()\n"
    shown = (
        f"{frozen}with torch.no_grad():\n    for x, y in held:\n        found = model(x)\n        print(found.sum())"
    )
    source = MODEL.format(body="        return self.parameters()", given="model.handed_out()") + shown
    source = source.replace("model = Net()", "held = DataLoader(loader.dataset, batch_size=4)\nmodel = Net()")
    report, _ = convert_text(source)

    assert any("not seen to be in eval mode" in finding.message for finding in report.findings)


def test_tensors_beside_the_models_are_still_refused(refused_text):
    body = "        found = [torch.zeros(1, requires_grad=True)]\n        for m in self.modules():\n"
    body += "            found += list(m.parameters())\n        return found"
    source = MODEL.format(body=body, given="model.handed_out() + [torch.ones(1, requires_grad=True)]")
    refused_text(source, "MIG902", "optim.SGD(", ("belongs to no model",))
