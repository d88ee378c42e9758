"""Objects that train and are saved as a whole: `migrate/programs/home/saved_whole.py`."""

import pytest

PROGRAM = """
import pickle

import torch
from torch import nn


class Tagger:
    def __init__(self, size):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = nn.Linear(size, 1).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, rows):
        for start in range(0, len(rows), 8):
            loss = self.model(rows[start : start + 8].to(self.device)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def save(kept, path):
    with open(path, "wb") as file:
        pickle.dump(kept, file)


def main():
    torch.manual_seed(0)
    tagger = Tagger(2)
    tagger.train(torch.randn(64, 2))
    {saved}


main()
"""
WHOLE = {
    "by a function of the project": "save(tagger, 'tagger.pkl')",
    "at once": "torch.save(tagger, 'tagger.pt')",
    "all that it holds": "torch.save(tagger.__dict__, 'tagger.pt')",
    "all that it holds, asked for otherwise": "torch.save(vars(tagger), 'tagger.pt')",
    "a copy of that by a name": "state = tagger.__dict__.copy()\n    torch.save(state, 'tagger.pt')",
    "item by item": "torch.save({k: v for k, v in tagger.__dict__.items()}, 'tagger.pt')",
    "beside something else": "torch.save({'epoch': 1, 'all': tagger}, 'tagger.pt')",
}


@pytest.mark.parametrize("name", WHOLE)
def test_an_object_that_would_keep_the_accelerator_is_not_saved_with_it(convert_text, name):
    report, result = convert_text(PROGRAM.format(saved=WHOLE[name]))

    assert "accelerator" not in result
    assert any("saves an object of Tagger as a whole" in finding.message for finding in report.findings)


PARTS = {
    "its weights": "torch.save(tagger.model.state_dict(), 'tagger.pt')",
    "its model": "torch.save(tagger.model, 'tagger.pt')",
    "its weights by a name": "state = {'w': tagger.model.state_dict(), 'lr': 1}\n    torch.save(state, 'tagger.pt')",
    "some of what it holds": "torch.save({k: v for k, v in vars(tagger).items() if k == 'lr'}, 'tagger.pt')",
    "something else": "save([1, 2], 'rows.pkl')",
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_it_are(convert_text, name):
    _, result = convert_text(PROGRAM.format(saved=PARTS[name]))

    assert "self.accelerator = Accelerator()" in result
