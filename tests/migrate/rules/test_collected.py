"""Lists that the steps of a training loop fill with a number each: `migrate/programs/shares/collected.py`."""

import pytest

from migrate.options import Target

HEAD = """
import torch
from collections import defaultdict
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 2), torch.randn(16, 1))
loader = DataLoader(data, batch_size=BATCH)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """
for x, y in loader:
    optimizer.zero_grad()
    output = model(x)
    loss = nn.functional.mse_loss(output, y)
    loss.backward()
    optimizer.step()
    KEEP
"""


def _indented(code, by):
    return code.replace("\n", "\n" + " " * by)


def _loop(keep, by=4):
    return _indented(STEP.replace("KEEP", _indented(keep, 4)), by).rstrip(" ")


EPOCHS = "for epoch in range(2):"
KEEPING = "losses.append(loss.item())"
JOINED = "losses[:] = accelerator.reduce(losses, reduction='mean')"
OF_ITEM = "log['loss'][:] = accelerator.reduce(log['loss'], reduction='mean')"
OF_ATTRIBUTE = "self.losses[:] = accelerator.reduce(self.losses, reduction='mean')"
STEPPED = [
    "self.last = loss.item()",
    "self.rate = 0.9 * self.rate + 0.1 * loss.item()",
    "self.losses.append(loss.item())",
]
ATTRIBUTE = f"""
class Trainer:
    def __init__(self):
        self.losses = []
        self.last = None
        self.rate = 0.0

    def epoch(self):{_loop(chr(10).join(STEPPED), 8)}
trainer = Trainer()
{EPOCHS}
    trainer.epoch()
    print(trainer.last, trainer.rate, trainer.losses)
"""


def _over_epochs(keep=KEEPING, after="print(losses)", start="losses = []"):
    return f"{start}\n{EPOCHS}{_loop(keep)}{after}\n"


WHOLE = {
    "over all epochs": (_over_epochs(), JOINED),
    "read after each": (_over_epochs(after="    print(losses[-1])"), JOINED),
    "with something in it": (_over_epochs(start="losses = [0.5]", after="print(sum(losses) / len(losses))"), JOINED),
    "of a caller": (
        f"def train(losses):{_loop(KEEPING)}\nfound = []\n{EPOCHS}\n    train(found)\nprint(found)\n",
        JOINED,
    ),
    "an item": (_over_epochs("log['loss'].append(loss.item())", "print(log)", "log = {'loss': []}"), OF_ITEM),
    "an item that is made when it is asked for": (
        _over_epochs("log['loss'].append(loss.item())", "print(log)", "log = defaultdict(list)"),
        OF_ITEM,
    ),
    "an attribute": (ATTRIBUTE, OF_ATTRIBUTE),
    "of a function below": (
        _over_epochs("keep(loss)", start="losses = []\ndef keep(loss):\n    losses.append(loss.item())"),
        JOINED,
    ),
}
LEFT = {
    "a sum": _over_epochs(after="print(sum(losses))"),
    "a sum by another number": _over_epochs(after="print(sum(losses) / len(loader))"),
    "no mean": _over_epochs("losses.append(loss.item() * len(x))"),
    "in some steps": _over_epochs("if loss.item() < 1: losses.append(loss.item())"),
    "beside other things": _over_epochs(after="    losses.append('end')\nprint(losses)"),
    "items of other kinds": _over_epochs(
        "losses['loss'].append(loss.item())\nlosses['name'].append('a')", start="losses = defaultdict(list)"
    ),
    "no list": _over_epochs(start="from collections import deque\nlosses = deque(maxlen=3)"),
}
SHOWN_INSIDE = _over_epochs(f"{KEEPING}\nprint(losses[-1])")
DIVIDED = f"{EPOCHS}\n    losses = []{_loop(KEEPING)}    print(SHOWN)\n"
AVERAGED = {
    "runtime": "accelerator.reduce(losses, reduction='mean')",
    "accelerate": "[sum(each) / accelerator.num_processes for each in zip(*accelerator.gather_for_metrics([losses]))]",
}


def _text(code, batch=4):
    return HEAD.replace("BATCH", str(batch)) + code


@pytest.mark.parametrize("name", WHOLE)
def test_what_each_step_adds_is_of_all_processes(convert_text, name):
    code, joined = WHOLE[name]
    report, result = convert_text(_text(code))

    assert f"{joined}\n" in result.replace('"', "'")
    assert not [finding for finding in report.findings if "read after this loop" in finding.message]


@pytest.mark.parametrize("name", LEFT)
def test_what_a_mean_does_not_say_is_told(convert_text, name):
    report, result = convert_text(_text(LEFT[name]))

    assert "accelerator.prepare(" in result
    assert "reduce(" not in result
    assert [f for f in report.findings if f.message.startswith(("losses, read", "losses['loss'], read"))]


def test_what_the_steps_show_of_it_is_told(convert_text):
    report, _ = convert_text(_text(SHOWN_INSIDE))

    assert [f for f in report.findings if f.message.startswith("while this loop runs, losses shows")]


@pytest.mark.parametrize("target", ["runtime", "accelerate"])
def test_a_sum_that_is_divided_by_the_steps_of_a_process(convert_text, target):
    _, result = convert_text(_text(DIVIDED.replace("SHOWN", "sum(losses) / len(loader)")), target=Target(target))

    assert f"    losses = {AVERAGED[target]}\n" in result


@pytest.mark.parametrize("shown", ["sum(losses) / len(losses)", "max(losses)", "sum(losses) / 4"])
def test_a_list_that_is_divided_by_no_length_of_a_process(convert_text, shown):
    _, result = convert_text(_text(DIVIDED.replace("SHOWN", shown)))

    assert "    losses = accelerator.gather_for_metrics(losses)\n" in result


def test_numbers_of_each_row_that_are_divided_by_steps_are_told(convert_text):
    code = DIVIDED.replace("SHOWN", "sum(losses) / len(loader)").replace(KEEPING, "losses.extend(output.tolist())")
    report, result = convert_text(_text(code))

    assert "gather" not in result
    assert [f for f in report.findings if f.message.startswith("losses, read after this loop")]


@pytest.mark.parametrize("shown", ["sum(losses) / len(loader)", "sum(losses) / len(losses)"])
def test_two_processes_say_what_one_says(convert_text, numbers_printed, shown):
    before, after = (_text(DIVIDED.replace("SHOWN", shown), batch) for batch in (4, 2))
    _, result = convert_text(after)

    one, two = numbers_printed(before, 1), numbers_printed(result, 2)
    assert two == pytest.approx(one, rel=1e-5)


def test_two_processes_keep_the_history_of_one(convert_text, numbers_printed):
    _, result = convert_text(_text(ATTRIBUTE, 2))

    one, two = numbers_printed(_text(ATTRIBUTE), 1), numbers_printed(result, 2)
    assert two == pytest.approx(one, rel=1e-5)


@pytest.mark.parametrize(
    ("more", "is_joined"),
    [
        ("loss.item() * len(x)", True),
        ("mean * 2", True),
        ("(loss.item() - mean) ** 2", False),
        ("distance * (loss.item() - mean)", False),
        ("loss.item() / mean", False),
    ],
)
def test_a_sum_of_products_with_what_was_added_up_is_told(convert_text, more, is_joined):
    keep = f"distance = loss.item() - mean\nmean += distance / 4\nspread += {more}"
    report, result = convert_text(_text(_over_epochs(keep, "print(mean, spread)", "mean, spread = 0.0, 0.0")))

    assert ("spread = " in result.partition("print(")[0].partition("spread += ")[2]) is is_joined
    told = [f for f in report.findings if f.message.startswith("spread, read after this loop")]
    assert bool(told) is not is_joined


def _in_steps(keep, start="losses = []"):
    """What the steps alone ask of a list: nothing reads it after the loop."""
    return _over_epochs(keep, after="", start=start)


IN_STEPS = {
    "their mean": _in_steps(f"{KEEPING}\nprint(sum(losses) / len(losses))"),
    "that of the last ones": _in_steps(f"{KEEPING}\nprint(torch.tensor(losses[-10:]).mean())"),
    "of which the first goes": _in_steps(f"{KEEPING}\nif len(losses) > 9: losses.pop(0)\nprint(f'{{losses}}')"),
    "of a deque": _in_steps(
        f"{KEEPING}\nprint(sum(losses))", "from collections import deque\nlosses = deque(maxlen=9)"
    ),
    "of tensors": _in_steps("losses.append(loss.detach())\nprint(torch.stack(losses).mean())"),
}
NOT_IN_STEPS = {
    "how many there are": _in_steps(f"{KEEPING}\nprint(len(losses), len(losses[-10:]))"),
    "the last one": _in_steps(f"{KEEPING}\nprint(losses[-1])"),
    "of one step": _in_steps(f"losses = []\nfor part in range(2): {KEEPING}\nprint(sum(losses))", "pass"),
    "what all have": _in_steps("losses.append(optimizer.param_groups[0]['lr'])\nprint(sum(losses))"),
    "nothing": _in_steps(f"{KEEPING}\nif losses: losses.clear()"),
}


@pytest.mark.parametrize("name", [*IN_STEPS, *NOT_IN_STEPS])
def test_what_the_steps_alone_show_of_a_list_is_told(convert_text, name):
    report, result = convert_text(_text((IN_STEPS | NOT_IN_STEPS)[name]))

    assert "accelerator.prepare(" in result
    told = [finding for finding in report.findings if finding.message.startswith("while this loop runs, losses shows")]
    assert len(told) == (name in IN_STEPS)
