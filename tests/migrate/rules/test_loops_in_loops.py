"""A training loop in another one, as for the steps of a critic: what both add up is joined once, by the outer one."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n):
        self.sum += value * n
        self.count += n


data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
maker, critic = nn.Linear(2, 1), nn.Linear(1, 1)
made = torch.optim.SGD(maker.parameters(), lr=0.1)
told = torch.optim.SGD(critic.parameters(), lr=0.1)
{begun}
for x, y in loader:
    for _ in range(3):
        judged = critic(maker(x)).mean()
        told.zero_grad()
        judged.backward()
        told.step()
        {added}
    loss = (critic(maker(x)) - y).pow(2).mean()
    made.zero_grad()
    loss.backward()
    made.step()
    {more}
print({shown})
"""
KINDS = {
    "a sum": {"begun": "seen = 0", "added": "seen += judged.item() * len(x)", "shown": "seen / len(data)"},
    "a list": {"begun": "seen = []", "added": "seen.append(judged.item())", "shown": "max(seen)"},
    "a meter": {"begun": "seen = Meter()", "added": "seen.update(judged.item(), len(x))", "shown": "seen.sum"},
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("grows_outside", [False, True])
def test_what_both_add_up_is_joined_once(convert_text, name, grows_outside):
    kind = KINDS[name]
    more = kind["added"].replace("judged", "loss") if grows_outside else ""
    report, result = convert_text(PROGRAM.format(**kind, more=more))

    joined = result.count("accelerator.gather_for_metrics(") + result.count("accelerator.reduce(")
    assert joined == 1
    assert result.rindex("made.step()") < max(result.rfind("gather_for_metrics("), result.rfind("accelerator.reduce("))
    notes = [f.message for f in report.findings if f.code == "MIG114"]
    assert all("may count samples twice" in note for note in notes)  # of the last batches, whichever loop it is


def test_what_the_outer_loop_shows_meanwhile_is_told(convert_text):
    report, _ = convert_text(PROGRAM.format(**KINDS["a sum"], more="print(seen)"))

    notes = [f.message for f in report.findings if f.code == "MIG114"]
    assert "while this loop runs, seen shows one process's share of the data" in notes
