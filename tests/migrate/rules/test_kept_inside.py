"""What models keep while they run, beside what they give: hooks that collect, attributes that a forward sets."""

import pytest

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.rand(64, 3)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size={size}, shuffle=True)
held_out = DataLoader(TensorDataset(x[:18], x[:18].sum(1, keepdim=True)), batch_size={size})
kept, last = [], dict()

class Layer(nn.Linear):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.sums, self.calls = [], 0

    def forward(self, x):
        h = super().forward(x)
        {inside}
        return h

class Keeper:
    total = 0.0
    def __call__(self, layer, given, output):
        self.total += output.sum().item()
    def hook(self, layer, given, output):
        self.total += output.sum().item()

def into(sums):
    def hook(layer, given, output):
        sums.append(output.sum().item())
    return hook

def last_of(name):
    def hook(layer, given, output):
        last[name] = output
    return hook

layer, keeper = Layer(3, 4), Keeper()
model = nn.Sequential(layer, nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{hook}
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    {step}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{after}
model.eval()
total = 0.0
with torch.no_grad():
    for x, y in held_out:
        output = model(x)
        total += (output - y).abs().sum().item()
        {evaluated}
print(total / 18)
{end}
"""
TRAINING = {
    "a list": {
        "hook": "layer.register_forward_hook(lambda l, i, o: kept.append(o.sum().item()))",
        "after": "print(sum(kept))",
    },
    "a list that it is handed": {"hook": "model[1].register_forward_hook(into(kept))", "after": "print(sum(kept))"},
    "an object": {"hook": "layer.register_forward_hook(keeper.hook)", "after": "print(keeper.total)"},
    "the last one": {"hook": "layer.register_forward_hook(last_of('h'))", "after": "print(last['h'].sum())"},
    "in backward": {"hook": "layer.register_full_backward_hook(into(kept))", "after": "print(len(kept))"},
    "by a model": {"inside": "self.sums.append(h.sum().item())", "after": "print(sum(layer.sums))"},
    "by a model, at last": {"inside": "self.h = h.detach()", "after": "print(layer.h.sum())"},
}
HOLES = dict.fromkeys("inside hook step after evaluated end".split(), "")
SHARE = "filled while the model runs, is of one process's share"


def _source(holes, size=4):
    return SOURCE.format(**HOLES | holes, size=size)


def _told(report, words=SHARE):
    return [finding for finding in report.findings if words in finding.message]


@pytest.mark.parametrize("name", TRAINING)
def test_what_a_training_keeps_beside_is_told(convert_text, name):
    report, result = convert_text(_source(TRAINING[name]))

    assert "accelerator.prepare(" in result
    assert len(_told(report)) == 1


USED = {
    "in the step": {"hook": "layer.register_forward_hook(last_of('h'))", "step": "loss = loss + last['h'].mean()"},
    "and emptied": {
        "hook": "layer.register_forward_hook(lambda l, i, o: kept.append(o.mean()))",
        "step": "loss = loss + sum(kept); kept.clear()",
    },
    "of a model": {"inside": "self.h = h", "step": "loss = loss + layer.h.mean()"},
    "by what the layer is": {
        "inside": "rows, size = x.shape; eye = torch.eye(size); self.h = self.weight @ eye",
        "after": "print(layer.h.sum())",
    },
    "a count of calls": {"inside": "self.calls += 1", "after": "print(layer.calls)"},
    "by nobody": {"inside": "self.sums.append(h.sum().item())"},
    "in the hook alone": {"hook": "layer.register_forward_hook(lambda l, i, o: print(o.shape[1]))"},
}


@pytest.mark.parametrize("name", USED)
def test_what_a_step_uses_is_not(convert_text, name):
    report, result = convert_text(_source(USED[name]))

    assert "accelerator.prepare(" in result
    assert not _told(report)


LISTED = "layer.register_forward_hook(lambda l, i, o: kept.append(o.sum().item()))"
BELOW = {
    "emptied": ({"after": "kept.clear()", "end": "print(sum(kept))"}, 0),
    "given another": ({"after": "kept = []", "end": "print(sum(kept))"}, 0),
    "read before that": ({"after": "print(sum(kept))\nkept.clear()", "end": "print(sum(kept))"}, 1),
    "emptied at times": ({"after": "if total > 1:\n    kept.clear()", "end": "print(sum(kept))"}, 1),
    "emptied after the evaluation": ({"after": "pass", "end": "print(sum(kept))\nkept.clear()"}, 1),
}


@pytest.mark.parametrize("name", BELOW)
def test_what_is_emptied_below_a_training_is_not(convert_text, name):
    holes, told = BELOW[name]
    source = _source({"hook": f"total = 2\n{LISTED}", **holes})

    assert len(_told(convert_text(source)[0])) == told


EVALUATED = {
    "a hook": {
        "after": "layer.register_forward_hook(lambda l, i, o: kept.append(o.sum().item()))",
        "end": "print(sum(kept), len(kept))",
    },
    "a hook's object": {"after": "layer.register_forward_hook(keeper.hook)", "end": "print(keeper.total)"},
    "an attribute": {
        "inside": "self.h = h.detach()",
        "evaluated": "kept.append(layer.h.sum().item())",
        "end": "print(sum(kept))",
    },
    "a list": {
        "inside": "self.sums.append(h.sum().item())",
        "after": "layer.sums.clear()",
        "end": "print(sum(layer.sums))",
    },
}


@pytest.mark.parametrize("name", EVALUATED)
def test_an_evaluation_that_keeps_more_is_run_in_full(convert_text, numbers_printed, name):
    source = _source(EVALUATED[name])
    report, result = convert_text(source)
    alone = numbers_printed(_source(EVALUATED[name], 8), 1)

    assert _told(report, "every process runs this evaluation in full: ")
    assert "gather_for_metrics" not in result
    both = numbers_printed(result, 2)
    assert both[0] == pytest.approx(alone[0], abs=1e-4)
    assert both[1] == pytest.approx(alone[1], rel=1e-3)


def test_one_that_keeps_nothing_is_shared_out(convert_text):
    _, result = convert_text(
        _source({"inside": "if self.training: self.sums.append(h.sum().item())", "end": "print(len(layer.sums))"})
    )

    assert "gather_for_metrics" in result


LATER = {
    "in a line": "layer.register_forward_hook(into(kept)); model(x); print(sum(kept))",
    "in a function": (
        "def look():\n    layer.register_full_backward_hook(into(kept))\n    layer.register_forward_hook(keeper.hook)\n"
        "    model(x).sum().backward()\n    print(sum(kept), keeper.total)\nlook()"
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_a_hook_that_is_put_in_when_all_is_over_keeps_nothing_of_it(convert_text, name):
    report, result = convert_text(_source({"end": LATER[name]}))

    assert "gather_for_metrics" in result
    assert not _told(report)


@pytest.mark.parametrize("name", ["a hook", "a hook's object"])
def test_one_that_is_put_in_below_the_training_keeps_nothing_of_that(convert_text, name):
    report, _ = convert_text(_source(EVALUATED[name]))

    assert not _told(report)


def test_one_that_the_next_round_runs_with_is_told(convert_text):
    source = _source({"end": "layer.register_forward_hook(into(kept)); print(sum(kept))"})
    top, _, rounds = source.partition("for x, y in loader:")
    indented = "".join(f"    {line}\n" for line in f"for x, y in loader:{rounds}".splitlines())
    report, _ = convert_text(f"{top}for epoch in range(2):\n{indented}")

    assert len(_told(report)) == 1


LOOK = """
def look(model):
    handles = []
    def add(layer):
        {put}
    model.apply(add)
    model(torch.ones(1, 3))
    {taken}
{called}
"""
APPENDED = "handles.append(layer.register_forward_hook(into(kept)))"
ONCE = {
    "taken out again": (APPENDED, "for each in handles:\n        each.remove()", "look(model)", 0),
    "by their numbers": (APPENDED, "for i in range(3):\n        handles[i].remove()", "look(model)", 1),
    "left there": (APPENDED, "print(len(handles))", "look(model)", 1),
    "out of another list": (APPENDED, "for each in kept:\n        each.remove()", "look(model)", 1),
    "of each layer": (
        "handle = layer.register_forward_hook(into(kept))\n        layer(torch.ones(1, 3))\n        handle.remove()",
        "pass",
        "look(model)",
        0,
    ),
    "in each step": (APPENDED, "for each in handles:\n        each.remove()", "", 1),
}


@pytest.mark.parametrize("name", ONCE)
def test_a_hook_of_a_function_that_takes_it_out_again_keeps_nothing_of_a_training(convert_text, name):
    put, taken, called, told = ONCE[name]
    step = "" if called else "look(model)"
    hook = LOOK.format(put=put, taken=taken, called=called)
    report, result = convert_text(_source({"hook": hook, "step": step, "after": "print(sum(kept))"}))

    assert "accelerator.prepare(" in result
    assert len(_told(report)) == told
