"""Several processes give what one gives."""

import os
import signal
from pathlib import Path

import pytest

from migrate import pipeline, workers
from migrate.options import Mode, Options

pytestmark = pytest.mark.skipif(workers.count([1, 1], 2) < 2, reason="processes are not forked on this system")

SCRIPT = """import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 2)), batch_size=4)
for (x,) in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""


def test_what_is_found_is_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(6):
        Path(f"train{number}.py").write_text(f"{'# more' * number}\n{SCRIPT}")
    Path("broken.py").write_text("import torch\nloss.backward(\n")
    for mode in (Mode.PREVIEW, Mode.CHECK):
        one = pipeline.run(["."], Options(mode=mode, jobs=1))
        three = pipeline.run(["."], Options(mode=mode, jobs=3))
        assert len(one.touched) == 6
        assert one.findings == three.findings
        assert one.changes == three.changes
        assert one.summaries == three.summaries
        assert list(map(str, one.problems)) == list(map(str, three.problems))


def test_where_processes_pay():
    cores = workers._cores()
    assert workers.count([], 0) == 1
    assert workers.count([10**9], 0) == 1  # one piece is one piece
    assert workers.count([100, 100], 0) == 1
    assert workers.count([10**6] * 3, 0) == min(cores, 3)
    assert workers.count([10**6] * 3, 1) == 1
    assert workers.count([1, 1], 8) == 2  # as somebody wants it
    assert workers.count([], 8) == 1


def test_results_come_with_their_numbers():
    assert dict(workers.results(lambda number: number * 2, [5, 9, 1], 2)) == {0: 0, 1: 2, 2: 4}
    assert list(workers.results(lambda number: number * 2, [5, 9], 1)) == [(0, 0), (1, 2)]


def test_a_process_that_ends_costs_nothing():
    here = os.getpid()

    def work(number):
        if number == 1 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert dict(workers.results(work, [1, 1, 1], 2)) == {0: 0, 1: 1, 2: 2}


def test_what_cannot_be_sent_is_made_here():
    class Local(Exception):
        """Nobody else knows this class."""

    made = dict(workers.results(Local, [1, 1], 2))
    assert [made[number].args for number in range(2)] == [(0,), (1,)]


def test_an_error_of_the_work_is_raised_here():
    def fail(number):
        raise ValueError(number)

    with pytest.raises(ValueError, match=r"0|1"):
        list(workers.results(fail, [1, 1], 2))


def test_a_process_of_ours_forks_no_more_than_are_wanted():
    def counts(_):
        return workers.count([10**6] * 3, 2), workers.count([10**6] * 3, 0)

    made = dict(workers.results(counts, [1, 1], 2))
    assert made == {number: (1, workers.count([10**6] * 3, 0)) for number in range(2)}
    assert workers.count([10**6] * 3, 2) == 2
