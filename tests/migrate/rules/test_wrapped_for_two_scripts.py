"""DataParallel in a function that several scripts make their models with: it goes for all of them, or stays."""

import os
import subprocess
import sys

import pytest

from migrate.options import Mode, Options
from migrate.pipeline import run
from migrate.report.model import Kind

NETWORK = """\
import torch
from torch import nn


def define_net(width, cuda):
    net = nn.Linear(2, 1) if width == 1 else nn.Sequential(nn.Linear(2, width), nn.Linear(width, 1))
    if cuda:
        net = nn.DataParallel(net).cuda()
    else:
        net = nn.DataParallel(net)
    return net
"""
TRAINS = """\
import torch
from network import define_net
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    cuda = torch.cuda.is_available()
    net = define_net({width}, cuda)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    rows = torch.arange(48.0).view(24, 2) / 48
    loader = DataLoader(TensorDataset(rows, rows.sum(1, keepdim=True)), batch_size=8)
    for epoch in range(3):
        for x, y in loader:
            if cuda:
                x, y = x.cuda(), y.cuda()
            loss = nn.functional.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item(), [p.sum().item() for p in net.parameters()])
{more}

if __name__ == "__main__":
    main()
"""
TEACHER = TRAINS.format(width=1, more="")
STUDENT = TRAINS.format(width=3, more="")
LOADS = """\
import torch
from network import define_net

net = define_net(1, False)
net.load_state_dict(torch.load("net.pth"))
print(net(torch.ones(1, 2)))
"""


@pytest.fixture
def converted(tmp_path, monkeypatch):
    def convert(**scripts):
        (tmp_path / "network.py").write_text(NETWORK)
        for name, text in scripts.items():
            (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        return run(["."], Options(mode=Mode.WRITE))

    return convert


def left(report):
    return {(each.path, each.code) for each in report.findings if each.kind is Kind.LEFT}


def numbers(path, processes):
    command = [sys.executable, "-m", "runtime", "launch", "--cpu", "-n", str(processes), path]
    command = command if processes else [sys.executable, path]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    )
    return [float(each.strip("[],")) for each in ended.stdout.split()]


def test_it_goes_where_all_of_them_are_converted(converted, tmp_path):
    report = converted(teacher=TEACHER, student=STUDENT)

    assert {change.path for change in report.changes} == {"network.py", "teacher.py", "student.py"}
    assert not left(report)
    assert "DataParallel" not in next(c.new for c in report.changes if c.path == "network.py").decode()


@pytest.mark.parametrize("name", ["teacher", "student"])
def test_numbers_are_those_of_one_process(converted, tmp_path, name):
    report = converted(teacher=TEACHER, student=STUDENT)
    before = numbers(f"{name}.py", 0)
    for change in report.changes:
        (tmp_path / change.path).write_bytes(change.new)

    alone = numbers(f"{name}.py", 1)
    assert alone == before
    halves = (tmp_path / f"{name}.py").read_text().replace("batch_size=8", "batch_size=4")
    (tmp_path / f"{name}.py").write_text(halves)
    assert numbers(f"{name}.py", 2)[1:] == pytest.approx(alone[1:], rel=1e-5)


def test_it_stays_for_a_script_that_does_not_train(converted):
    report = converted(teacher=TEACHER, student=STUDENT, loads=LOADS)

    assert not report.changes
    assert ("teacher.py", "MIG110") in left(report)


def test_it_stays_where_one_of_them_is_left(converted):
    flag = "            if loss.item() < 0.1:\n                done = True\n"
    student = STUDENT.replace("optimizer.step()\n", f"optimizer.step()\n{flag}        if done:\n            break\n")
    report = converted(teacher=TEACHER, student=student.replace("    cuda = ", "    done = False\n    cuda = "))

    assert not report.changes
    assert left(report) == {("student.py", "MIG122")}
    loops = {each.path: each.message for each in report.findings if each.kind is Kind.LOOP}
    assert "it shares code with student.py, which is left" in loops["teacher.py"]
