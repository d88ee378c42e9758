"""What functions write that a library calls, in a thread or at the end of the program: each process writes it."""

import pytest

PROGRAM = """\
import atexit
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rows = queue.Queue()


def write():
    {does}


def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {hand}
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows.put(loss.item())
    rows.put(None)


main()
"""
TOLD = "every process prints or writes what write() does"
WRITES = 'with open("rows.txt", "w") as file:\n        file.write(str(rows.get()))'

BY_RANK = (
    'torch.distributed.init_process_group("gloo")\n    '
    "if torch.distributed.get_rank() == 0:\n        threading.Thread(target=write).start()"
)


def told(report):
    return [finding for finding in report.findings if finding.message == TOLD]


@pytest.mark.parametrize(
    "hand",
    [
        "threading.Thread(target=write).start()",
        "writer = threading.Thread(target=write)\n    writer.start()",
        "atexit.register(write)",
        "pool = ThreadPoolExecutor(1)\n    pool.submit(write)",
    ],
)
def test_a_file_that_a_library_has_a_function_write_is_told(convert_text, hand):
    report, result = convert_text(PROGRAM.format(does=WRITES, hand=hand))

    assert len(told(report)) == 1
    assert WRITES in result


def test_what_it_only_prints_is_said_by_one(convert_text):
    hand = "threading.Thread(target=write).start()"
    report, result = convert_text(PROGRAM.format(does="print(rows.qsize())", hand=hand))

    assert not told(report)
    assert 'if os.environ.get("RANK", "0") == "0":\n        print(' in result.replace("'", '"')


@pytest.mark.parametrize(
    ("does", "hand"),
    [
        ("rows.get()", "threading.Thread(target=write).start()"),
        (WRITES, "write()"),
        (WRITES, BY_RANK),
    ],
)
def test_nothing_is_told_where_nothing_is_written_or_one_does(convert_text, does, hand):
    assert not told(convert_text(PROGRAM.format(does=does, hand=hand))[0])
