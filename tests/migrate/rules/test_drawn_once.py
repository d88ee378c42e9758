"""What a training goes by that is drawn once, and that no prepare gives to all processes: they draw it alike."""

import pytest

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from mine import Samples


class Head(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3, 4))
        nn.init.xavier_uniform_(self.weight)
        self.scale = scale

    def forward(self, x):
        return nn.functional.linear(x, self.weight) * self.scale


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        {attribute}
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(torch.sin(x @ self.frequencies))


def train(loader, model, head, optimizer):
    for x, y in loader:
        loss = nn.functional.cross_entropy({computed}, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    {seed}
    loader = DataLoader(Samples(), batch_size=8, shuffle=True)
    model = {model}.cuda()
    head = {head}
    head = head.cuda()
    optimizer = torch.optim.SGD({trained}, lr=0.1)
    for epoch in range(2):
        train(loader, model, head, optimizer)
    torch.save(model.state_dict(), "model.pt")


main()
"""
SEEDED = "set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])"
PLAIN = {
    "attribute": 'self.register_buffer("frequencies", torch.randn(4, 4))',
    "computed": "head(model(x))",
    "seed": "pass",
    "model": "nn.Linear(4, 4)",
    "head": "Head()",
    "trained": "model.parameters()",
}


@pytest.fixture
def converted(convert_text):
    return lambda **parts: convert_text(HEAD.format(**{**PLAIN, **parts}))[1]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"head": "nn.Linear(4, 3)"},
        {"head": "Head(0.5).requires_grad_(False)"},
        {"computed": "model(x) + torch.zeros(1) + head(x)"},
        {"model": "Waves()", "head": "nn.Identity()", "attribute": "self.frequencies = torch.randn(4, 4) * 10"},
        {"model": "Waves()", "head": "nn.Identity()", "attribute": "self.frequencies = 2 * torch.randn(4, 4).float()"},
    ],
)
def test_what_nobody_trains_is_drawn_alike_on_all_processes(converted, parts):
    assert SEEDED in converted(**parts)


@pytest.mark.parametrize(
    "parts",
    [
        {"seed": "torch.manual_seed(0)"},
        {"head": "nn.ReLU()"},
        {"trained": "[*model.parameters(), *head.parameters()]"},
        {"computed": "model(x)"},
        {"model": "Waves()", "head": "nn.Identity()"},
        {
            "model": "Waves()",
            "head": "nn.Identity()",
            "attribute": "self.frequencies = nn.Parameter(torch.randn(4, 4))",
        },
        {"head": 'Head(); head.load_state_dict(torch.load("head.pt"))'},
        {
            "computed": "head[0](model(x))",
            "head": 'nn.Sequential(Head(), nn.ReLU()); head.load_state_dict(torch.load("head.pt"))',
        },
    ],
)
def test_no_seed_is_set_for_what_prepare_gives_or_a_file_holds(converted, parts):
    after = converted(**parts)
    assert "accelerator.backward" in after
    assert "set_seed" not in after


def test_a_tensor_that_losses_are_computed_by_is_drawn_alike(convert_text):
    text = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from mine import Samples

loader = DataLoader(Samples(), batch_size=8, shuffle=True)
model = nn.Linear(784, 4)
centers = torch.randn(10, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    noise = torch.randn_like(x)
    loss = nn.functional.mse_loss(model(x + noise), centers[y])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""
    _, after = convert_text(text)
    assert SEEDED in after
    _, after = convert_text(text.replace("centers[y]", "torch.zeros(len(x), 4)"))
    assert "accelerator.backward" in after
    assert "set_seed" not in after


SHOWN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from mine import Samples

loader = DataLoader(Samples(), batch_size=8, shuffle=True)
model = nn.Linear(4, 4)
fixed = torch.randn(10, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for x, y in loader:
    {first}
    loss = nn.functional.mse_loss(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    out = model(x) + fixed
    print(out.mean().item())
torch.save(model.state_dict(), "model.pt")
"""


@pytest.mark.parametrize(
    ("before", "first", "goes_by_it"),
    [
        ("pass", "out = model(x)", False),
        ("out = 0", "out = model(x) + out", True),
        ("out = 0", "if y.sum() > 0:\n        out = model(x)", True),
        ("out = 0", "if y.sum() > 0:\n        out = model(x)\n    else:\n        out = model(-x)", True),  # as of old
    ],
)
def test_a_name_that_was_given_another_value_above_a_loss_is_not_what_it_had_before(
    convert_text, before, first, goes_by_it
):
    _, after = convert_text(SHOWN.format(before=before, first=first))
    assert "accelerator.backward" in after
    assert (SEEDED in after) is goes_by_it
