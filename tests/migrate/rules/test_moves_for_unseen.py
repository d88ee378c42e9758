"""`x.cuda()` in a function whose callers are not all seen: its signature stays, and so does the GPU, which is told."""

import pytest

SOURCE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def noise(n):
    return torch.randn(n, 2).{move}


HOOKS = {{"noise": noise}}
{last}

def main():
    loader = DataLoader(TensorDataset(torch.ones(20, 2), torch.ones(20, 1)), batch_size=4)
    model = nn.Linear(2, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x + noise(len(x))), y)
            {backward}
            optimizer.step()


main()
"""


def source(move="cuda()", backward="loss.backward()", last=""):
    return SOURCE.format(move=move, backward=backward, last=last)


@pytest.mark.parametrize("move", ["cuda()", "cuda(non_blocking=True)"])
def test_a_function_that_is_kept_as_a_value_too_stays(convert_text, remark, move):
    report, result = convert_text(source(move))

    assert f"def noise(n):\n    return torch.randn(n, 2).{move}\n" in result
    assert "model(x + noise(len(x)))" in result
    assert "accelerator.backward(loss)" in result
    (note,) = (finding for finding in report.findings if finding.code == "MIG103")
    assert "noise() goes on moving to the current GPU, which is the process's own" in note.message
    assert "it is used as a value in" in note.message
    assert note.hint == "call noise() by its name, or give noise() a device as a parameter"


def test_where_all_callers_are_seen_it_is_given_the_accelerator(convert_text):
    report, result = convert_text(source().replace('HOOKS = {"noise": noise}\n', ""))

    assert "def noise(n, accelerator):\n    return torch.randn(n, 2).to(accelerator.device)" in result
    assert not [finding for finding in report.findings if finding.code == "MIG103"]


BACKWARD = "def step(loss):\n    loss.backward()\n\n\nSTEPS = [step]\n"


def test_what_needs_more_than_a_device_is_refused(refused_text):
    refused_text(source(backward="step(loss)", last=BACKWARD), "MIG904", "def step", ("used as a value",))


@pytest.mark.parametrize("move", ["cuda(0)", "cuda(1)"])
def test_a_gpu_by_its_number_is_not_the_process_s_own(convert_text, move):
    report, result = convert_text(source(move))

    assert result == source(move)
    assert {finding.code for finding in report.findings} & {"MIG904", "MIG112", "MIG101"}


EARLY = """\
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def noise(n):
    return torch.randn(n, 2).cuda()


HOOKS = {"noise": noise}


def main():
    start = noise(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    device = torch.device("cpu" if args.no_cuda else "cuda")
    loader = DataLoader(TensorDataset(torch.ones(20, 2), torch.ones(20, 1)), batch_size=4)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x + noise(len(x)) + start), y)
        loss.backward()
        optimizer.step()


main()
"""


def test_before_there_is_an_accelerator_the_current_gpu_is_the_first_one_everywhere(refused_text):
    refused_text(EARLY, "MIG904", "def noise", ("also called before it can be made",))
