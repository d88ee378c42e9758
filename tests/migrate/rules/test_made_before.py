"""Files that a step before the training makes, read below by paths that are written differently."""

import pytest

PROGRAM = """
import os
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FILES = "rows/train.npz"


def preprocess(mode):
    target = f"rows/{{mode}}.npz"
    {kept}
    rows = np.loadtxt(f"rows/{{mode}}.txt")
    np.savez_compressed(target, rows=rows)


def process():
    {made}


def load(path):
    return torch.tensor(np.load(path)["rows"]).float()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    {before}
    rows = load({path})
    {after}
    loader = DataLoader(TensorDataset(rows[:, :-1], rows[:, -1:]), batch_size=4, shuffle=True)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""
HOLES = {
    "kept": "if os.path.exists(target):\n        return",
    "made": "preprocess('train')",
    "before": "process()",
    "path": "FILES",
    "after": "",
}
WAITED = {
    "an early return": {},
    "made anew": {"kept": ""},
    "several": {"made": "for mode in ['train', 'test']:\n        preprocess(mode)"},
    "by the function itself": {"before": "preprocess('train')"},
    "a part of a name": {"made": "np.savez(os.environ['NAME'] + '.npz', rows=1)"},
    "a path that is put together": {"path": 'os.path.join("rows", "train" + ".npz")'},
}


@pytest.mark.parametrize("name", WAITED)
def test_all_wait_for_what_the_main_process_makes(convert_text, name):
    _, result = convert_text(PROGRAM.format(**{**HOLES, **WAITED[name]}))

    assert "    accelerator.wait_for_everyone()\n    rows = load(" in result
    assert result.count("wait_for_everyone") == 1


UNWAITED = {
    "another kind of file": {"path": '"rows/train.npy"'},
    "another name": {"made": "np.savez('rows/rest.npz', rows=1)"},
    "another name in a folder": {"made": "np.savez(os.path.join(FILES, 'rest.npz'), rows=1)"},
    "made below": {"before": "", "after": "process()"},
    "nothing that is made": {"before": ""},
}


@pytest.mark.parametrize("name", UNWAITED)
def test_nothing_is_waited_for(convert_text, name):
    _, result = convert_text(PROGRAM.format(**{**HOLES, **UNWAITED[name]}))

    assert "accelerator.backward(loss)" in result
    assert "wait_for_everyone" not in result
