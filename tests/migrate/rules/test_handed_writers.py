"""Functions of libraries that write, and are handed to what calls them: threads, pools, `partial`."""

import pytest

SOURCE = """
import functools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

pool = ThreadPoolExecutor(1)


def main():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    state = model.state_dict()
    {save}


main()
"""
GUARDED = {
    "a thread": ["threading.Thread(target=torch.save, args=(state, 'a.pt')).start()"],
    "a pool": ["pool.submit(torch.save, state, 'a.pt')"],
    "partial": ["saver('a.pt')"],
    "a thread with a name": ["thread.start()", "thread.join()"],
}
ABOVE = {
    "partial": "saver = functools.partial(torch.save, state)",
    "a thread with a name": "thread = threading.Thread(target=torch.save, args=(state, 'a.pt'))",
}


@pytest.mark.parametrize("name", GUARDED)
def test_one_process_starts_them(convert_text, name):
    """Each process wrote the file, at once."""
    above = [ABOVE[name]] if name in ABOVE else []
    _, result = convert_text(SOURCE.format(save="\n    ".join([*above, *GUARDED[name]])))

    assert "    if accelerator.is_main_process:\n        " + "\n        ".join(GUARDED[name]) + "\n" in result
    assert not above or f"\n    {above[0]}\n" in result


def test_what_writes_nothing_is_started_by_all(convert_text):
    source = SOURCE.format(
        save="pool.submit(torch.sum, state['weight'])\n    threading.Thread(target=sys.exit).start()"
    )
    _, result = convert_text(source)

    assert "\n    pool.submit(torch.sum, " in result
    assert "\n    threading.Thread(target=sys.exit).start()" in result


@pytest.mark.parametrize("kept", ["done = {}", "waiting = [{}]"])
def test_what_is_kept_of_it_is_told(convert_text, remark, kept):
    """The others would have no result to wait for."""
    save = kept.format("pool.submit(torch.save, state, 'a.pt')")

    report, _ = convert_text(SOURCE.format(save=save))
    remark(report, SOURCE.lstrip("\n").format(save=save), "MIG117", save, ("every process writes this",))
