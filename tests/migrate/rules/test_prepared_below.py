"""Models that get their last layer, or run on the CPU, before they are moved: prepare comes below all that."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(16, 4), torch.ones(16).long())
loader = DataLoader(data, batch_size=4, shuffle=True)
images = torch.ones(2, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 10)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def accuracy(model, device):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x.to(device))
            right += (out.argmax(1) == y.to(device)).sum().item()
    return right / len(data)


def new_head(net):
    net.head = nn.Linear(8, 2)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net(){at_once}
{first}
{then}
{moved}
print("before", accuracy(model, device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    {late}
    print(epoch, accuracy(model, device))
"""
HEAD = "model.head = nn.Linear(8, 2)"
RUN = "print(model(images).shape)"


def program(first="print(1)", then="print(2)", moved="model.to(device)", late="pass", at_once=""):
    return PROGRAM.format(first=first, then=then, moved=moved, late=late, at_once=at_once)


def lines_of(result):
    return [line.strip() for line in result.splitlines()]


@pytest.mark.parametrize(
    "given", [HEAD, "new_head(model)", "for name in ['head']:\n    setattr(model, name, nn.Linear(8, 2))"]
)
def test_prepare_sees_a_layer_that_is_given_before_the_model_is_used(convert_text, given):
    _, result = convert_text(program(first=given, moved="pass"))
    lines = lines_of(result)

    assert lines.index(given.splitlines()[-1].strip()) < lines.index(
        "loader, model = accelerator.prepare(loader, model)"
    )
    assert lines.index("loader, model = accelerator.prepare(loader, model)") < lines.index("accelerator.print(2)")


def test_a_layer_that_is_given_between_trainings_is_refused(refused_text):
    refused_text(program(late=HEAD), "MIG104", HEAD, ["a layer of model is replaced here"])


@pytest.mark.parametrize("run", [RUN, "with torch.no_grad():\n    print(model(images).shape)"])
def test_prepare_takes_the_place_of_the_move_where_the_model_runs_above_it(convert_text, run):
    _, result = convert_text(program(first=HEAD, then=run))
    lines = lines_of(result)

    assert lines.index("accelerator.print(model(images).shape)") < lines.index(
        "loader, model = accelerator.prepare(loader, model)"
    )
    assert "model.to(" not in result


@pytest.mark.parametrize(
    ("run", "at_once"), [("print(3)", ""), ("print(model(images.to(device)).shape)", ".to(device)")]
)
def test_prepare_stays_where_the_model_is_made_if_it_does_not_run_on_the_cpu(convert_text, run, at_once):
    _, result = convert_text(program(then=run, at_once=at_once))
    lines = lines_of(result)

    assert lines.index("loader, model = accelerator.prepare(loader, model)") < lines.index("accelerator.print(1)")
