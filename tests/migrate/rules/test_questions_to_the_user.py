"""`input()`: what only the main process comes to, it alone asks, and nothing is left to say of that."""

PROGRAM = """\
import os
import shutil

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def ensure(path):
    if os.path.exists(path):
        if input(f"{{path}} exists, remove? ([y]/n)") != "n":
            shutil.rmtree(path)
            os.makedirs(path)
    else:
        os.makedirs(path)
    {given}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    {called}
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()


main()
"""


def asked(report):
    return [finding for finding in report.findings if "every process asks the user" in finding.message]


def test_a_question_in_what_the_main_process_does_alone_is_no_matter(convert_text):
    report, result = convert_text(PROGRAM.format(given="pass", called='ensure("out")'))

    assert 'if accelerator.is_main_process:\n        ensure("out")' in result
    assert not asked(report)


def test_one_whose_answer_all_go_by_is_told(convert_text):
    report, _ = convert_text(PROGRAM.format(given="return path", called='print(ensure("out"))'))

    assert len(asked(report)) == 1
