"""What a training loop keeps under keys that a batch gives, in meters and lists, or a dictionary: one process's own."""

import pytest

METER = """
from collections import defaultdict
import numpy as np
class Meter:
    def __init__(self):
        self.sum, self.count = 0, 0

    def update(self, value):
        self.sum += value
        self.count += 1

    def average(self):
        return self.sum / self.count
"""
EACH = "for k, v in {'loss': loss, 'mean': output.mean()}.items():\n    "
KEPT = {
    "meters by key": ("defaultdict(Meter)", EACH + "kept[k].update(v.item())", "[m.average() for m in kept.values()]"),
    "a list of meters": ("[Meter()]", "for k in (0,):\n    kept[k].update(loss.item())", "[m.average() for m in kept]"),
    "meters that a step goes over": (
        "{'a': Meter()}",
        "kept['a'].update(loss.item())\nfor m in kept.values():\n    m.average()",
        "[m.average() for m in kept.values()]",
    ),
    "one meter under two names": (
        "dict.fromkeys('ab', Meter())", "kept['a'].update(loss.item())", "[m.average() for m in kept.values()]"
    ),
    "sums": ("defaultdict(float)", "for k in y[:, 0].tolist(): kept[k] += loss.item()", "kept"),
    "lists": ("defaultdict(list)", EACH + "kept[k].append(v.item())", "{k: np.mean(v) for k, v in kept.items()}"),
    "an array": ("np.zeros(8)", "kept[step] = loss.item()\nstep += 1", "kept.mean()"),
    "a dictionary": ("{}", "kept.update(loss=loss.item())", "kept"),
    "a dictionary of a dictionary": ("{}", "kept.update({'loss': loss.item()})", "kept"),
}  # fmt: skip


def holes(name):
    made, step, shown = KEPT[name]
    return {"imports": METER, "start": f"step = 0\nkept = {made}", "step": step}, shown


@pytest.mark.parametrize("name", KEPT)
def test_it_is_said_where_it_is_shown(convert_text, programs, name):
    given, shown = holes(name)
    report, _ = convert_text(programs({**given, "epoch": f"print({shown})"})[0])

    assert any(f.message.startswith("kept") and "read after this loop" in f.message for f in report.findings)


@pytest.mark.parametrize("name", KEPT)
def test_it_is_unsaid_where_nobody_reads_it(convert_text, programs, name):
    given, _ = holes(name)
    report, _ = convert_text(programs({**given, "epoch": "kept = None"})[0])

    assert not [f for f in report.findings if "read after this loop" in f.message]


@pytest.mark.parametrize("name", ["meters by key", "sums", "lists", "an array"])
def test_nothing_is_decided_by_it(refused, name):
    given, shown = holes(name)
    epoch = f"if sum({shown}) > 3:\n    torch.save(model.state_dict(), 'best.pt')"
    refused("MIG122", "if sum(", ["kept", "differs between processes"], **given, epoch=epoch)


def test_what_can_be_averaged_is_averaged_as_it_is_put_there(convert_text, programs):
    given = {"imports": METER, "start": "kept = [[], []]", "step": "kept[epoch].append(loss.item())"}
    epoch = "if np.mean(kept[epoch]) > 3:\n    torch.save(model.state_dict(), 'best.pt')"
    _, result = convert_text(programs({**given, "epoch": epoch})[0])

    assert "kept[epoch].append(accelerator.reduce(loss.item(), reduction='mean'))" in result


@pytest.mark.parametrize("shown", ["kept['a'].average()", "[m.average() for m in kept.values()]"])
def test_meters_that_are_made_under_their_names_are_joined(convert_text, programs, shown):
    step = "kept['a'].update(loss.item())\nkept['b'].update(output.mean().item())"
    made = {"imports": METER, "start": "kept = {'a': Meter(), 'b': Meter()}", "step": step}
    report, result = convert_text(programs({**made, "epoch": f"print({shown})\nprint(kept['b'].average())"})[0])

    joined = "meter.sum, meter.count = accelerator.reduce((meter.sum, meter.count))"
    assert f"    for meter in (kept['a'], kept['b']):\n        {joined}\n" in result
    assert not [f for f in report.findings if "read after this loop" in f.message]
