"""Models that give their samples in another dimension: `migrate/programs/evaluation/turned_inside.py`."""

import pytest

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 5, 4), torch.ones(8, 4)), batch_size=4)
held = DataLoader(TensorDataset(torch.ones(6, 5, 4), torch.ones(6, 4)), batch_size=4)


class Columns(nn.Module):
    def forward(self, x):
        x = x.transpose(0, 1)
        return x.contiguous()


class Inner(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2).relu()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.columns, self.out = Inner(), Columns(), nn.Linear(4, 4)
        self.lstm, self.position = nn.LSTM(4, 4), nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        {forward}


model = Net()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
model.eval()
total = 0
with torch.no_grad():
    for x, y in held:
        {call}
        total += F.l1_loss(out, x).item()
print(total)
"""
TURNED = {
    "at the end": "return self.out(x).permute(1, 0, 2).log_softmax(2)",
    "at the beginning": "x = x.transpose(0, 1)\n        x = self.out(x)\n        return F.relu(x)",
    "by a function": "return F.log_softmax(torch.transpose(self.out(x), 0, 1), dim=-1)",
    "by a layer of its own": "return self.out(self.columns(x))",
    "to the end": "return self.out(x).permute(1, 2, 0)",
    "with a name of its own": "x = self.out(x)\n        turned = x.permute(1, 0, 2)\n        return turned + 1",
    "at times": "if x.size(1) > 3:\n            x = x.transpose(0, 1)\n        return self.out(x)",
    "steps in a list": "steps = []\n        for t in range(x.size(1)):\n            steps.append(self.out(x[:, t]))\n"
    "        return torch.stack(steps)",
    "steps in a tensor": "steps = torch.zeros(5, 4, 4)\n        for t in range(x.size(1)):\n"
    "            steps[t] = self.out(x[:, t])\n        return steps",
    "the states of an LSTM": "out, (h, c) = self.lstm(x)\n        return h",
    "padded by steps": "packed = pack_padded_sequence(x, [5] * len(x))\n        out, _ = pad_packed_sequence(packed)\n"
    "        return out",
    "in a shape that hides it": "x = x.transpose(0, 1)\n        return self.out(x).reshape(-1, 4)",
}
APART = {
    "back again": "x = x.permute(1, 0, 2)\n        x = self.out(x)\n        return x.permute(1, 0, 2)",
    "the last step": "x = x.transpose(0, 1)\n        out, _ = self.lstm(x)\n        return self.out(out[-1])",
    "the mean over the steps": "out, _ = self.lstm(x.transpose(0, 1))\n        return self.out(out.mean(0))",
    "the last state": "out, (h, c) = self.lstm(x.transpose(0, 1))\n        return self.out(h[-1])",
    "the last states of both ways": "_, (h, c) = self.lstm(x)\n        return torch.cat((h[-2], h[-1]), dim=1)",
    "the states turned": "_, (h, c) = self.lstm(x)\n        return h.transpose(0, 1).reshape(x.size(0), -1)",
    "other dimensions": "return self.inner(x).flatten(2).transpose(1, 2)",
    "parameters": "return x @ self.position.t() + self.position.transpose(0, 1)",
    "scores": "return torch.softmax(x @ x.transpose(-2, -1), dim=-1) @ x",
    "by a layer, and back": "return self.columns(self.out(self.columns(x)))",
    "steps in a list": "steps = [self.out(x[:, t]) for t in range(5)]\n        return torch.stack(steps, dim=1)",
    "steps in columns": "steps = torch.zeros(len(x), 5, 4)\n        for t in range(5):\n"
    "            steps[:, t] = self.out(x[:, t])\n        return steps",
    "padded by samples": "packed = pack_padded_sequence(x, [5] * len(x), batch_first=True)\n"
    "        out, _ = pad_packed_sequence(packed, batch_first=True)\n        return out",
    "what is not given back": "self.seen = x.transpose(0, 1).shape\n        return self.out(x)",
}


@pytest.mark.parametrize("name", TURNED)
def test_they_are_evaluated_in_full(convert_text, name):
    report, result = convert_text(SOURCE.format(forward=TURNED[name], call="out = model(x)"))

    assert "accelerator.backward(" in result
    assert "gather_for_metrics" not in result
    assert any("in full: the model turns its samples" in finding.message for finding in report.findings)


@pytest.mark.parametrize("name", APART)
def test_what_has_its_samples_first_is_shared_out(convert_text, name):
    _, result = convert_text(SOURCE.format(forward=APART[name], call="out = model(x)"))

    assert "out, x = accelerator.gather_for_metrics((out, x))" in result


@pytest.mark.parametrize(("call", "is_shared"), [("out, _ = model(x)", True), ("_, out = model(x)", False)])
def test_only_what_is_read_of_several_results(convert_text, call, is_shared):
    source = SOURCE.replace("F.mse_loss(model(x), y)", "F.mse_loss(model(x)[0], y)")
    _, result = convert_text(source.format(forward="out, (h, c) = self.lstm(x)\n        return out, h", call=call))

    assert ("gather_for_metrics" in result) is is_shared
