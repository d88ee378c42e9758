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


@pytest.mark.parametrize("name", WAITED)
def test_so_they_do_where_the_paths_are_called_alike(convert_text, name):
    named = PROGRAM.replace("load(path)", "load(target)")
    _, result = convert_text(named.format(**{**HOLES, **WAITED[name]}))

    assert "    accelerator.wait_for_everyone()\n    rows = load(" in result
    assert result.count("wait_for_everyone") == 1


@pytest.mark.parametrize("name", ["another kind of file", "made below"])
def test_the_name_of_a_path_is_not_the_path(convert_text, name):
    named = PROGRAM.replace("load(path)", "load(target)")
    _, result = convert_text(named.format(**{**HOLES, **UNWAITED[name]}))

    assert "wait_for_everyone" not in result


LINES = """
import os
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def write(path, count):
    if os.path.exists(path):
        return
    with open(path, {mode}) as file:
        {body}


class Rows(Dataset):
    def __init__(self, path):
        with open(path) as file:
            self.rows = [float(line) for line in file]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.tensor([self.rows[index]])


def main():
    write("rows.txt", 16)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows = Rows("rows.txt")
    loader = DataLoader(rows, batch_size=4, shuffle=True)
    model = nn.Linear(1, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for x in loader:
        loss = model(x.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(round(loss.item(), 4))


main()
"""
WRITING = {"mode": '"w"', "body": 'file.writelines(f"{i}\\n" for i in range(count))'}


def test_what_a_function_writes_line_by_line_is_written_once(convert_text):
    """The accelerator was made below it: each process wrote, and read what another had begun to write."""
    _, result = convert_text(LINES.format(**WRITING))

    assert "    accelerator = Accelerator()\n    if accelerator.is_main_process:\n        write(" in result
    assert "    accelerator.wait_for_everyone()\n    rows = Rows(" in result


def test_a_function_that_reads_leaves_the_accelerator_where_the_device_is_chosen(convert_text):
    _, result = convert_text(LINES.format(mode='"r"', body="file.read()"))

    assert "torch.manual_seed(0)\n    accelerator = Accelerator()\n" in result
    assert "wait_for_everyone" not in result


@pytest.mark.parametrize("processes", [1, 2])
def test_every_process_reads_the_whole_file(convert_text, numbers_printed, tmp_path, monkeypatch, processes):
    _, result = convert_text(LINES.format(**WRITING))
    monkeypatch.chdir(tmp_path)

    assert len(numbers_printed(result, processes)) == 1
    assert (tmp_path / "rows.txt").read_text() == "".join(f"{number}\n" for number in range(16))
