"""Over a loader: what a draw, a signal or a clock decides, all decide alike."""

import pytest

FIRST = "accelerator.gather_for_metrics([{}])[0]"
COIN = "random.random() < 0.5"
DRAWN = FIRST.format(COIN)
RANDOM = {"imports": "import random"}
LEFT = "if {}:\n    continue"
STEPPED = "for _ in {}:\n    loss = criterion(model(x), y)\n    {}\n    optimizer.step()"
CASES = "match {}:\n    case 0:\n        continue\n    case _:\n        {}"
ONE = "epoch and {}"
BACKWARD = ("loss.backward()", "accelerator.backward(loss)")
VALIDATE = """
if {}:
    model.eval()
    with torch.no_grad():
        for a, b in val:
            {}total = criterion({}, b).item()
    model.train()
"""
GATHERED = "outputs = model(a)\n            outputs, b = accelerator.gather_for_metrics((outputs, b))\n            "
EVALUATED = {
    "made": "val = DataLoader(data, batch_size=4)",
    "prepare": "loader, val, model, optimizer = accelerator.prepare(loader, val, model, optimizer)",
}
TAKEN = {
    "a step that is left": {**RANDOM, "batch": (LEFT.format(COIN), LEFT.format(DRAWN))},
    "a step that is taken": {
        **RANDOM,
        "backward": (f"if {COIN}:\n    loss.backward()", f"if {DRAWN}:\n    accelerator.backward(loss)"),
    },
    "seeded, but for the data set": {
        "imports": "import random",
        "setup": "random.seed(0)",
        "batch": (LEFT.format(COIN), LEFT.format(DRAWN)),
    },
    "a name": {
        **RANDOM,
        "batch": (
            f"skip = {COIN}\nif skip:\n    continue",
            f"skip = {COIN}\nif {FIRST.format('bool(skip)')}:\n    continue",
        ),
    },
    "NumPy's generator": {
        "imports": "import numpy as np",
        "setup": "rng = np.random.default_rng()",
        "batch": (LEFT.format("rng.random() < 0.5"), LEFT.format(FIRST.format("bool(rng.random() < 0.5)"))),
    },
    "a tensor that draws in place": {
        "setup": "coin = torch.empty(1)",
        "batch": (LEFT.format("coin.uniform_() < 0.5"), LEFT.format(FIRST.format("bool(coin.uniform_() < 0.5)"))),
    },
    "one of two steps": {
        **RANDOM,
        "backward": (
            f"if {COIN}:\n    loss.backward()\nelse:\n    (loss * 2).backward()",
            f"if {DRAWN}:\n    accelerator.backward(loss)\nelse:\n    accelerator.backward(loss * 2)",
        ),
    },
    "how many steps": {
        **RANDOM,
        "step": (
            STEPPED.format("range(random.randint(1, 3))", BACKWARD[0]),
            STEPPED.format(FIRST.format("range(random.randint(1, 3))"), BACKWARD[1]),
        ),
    },
    "which case": {
        **RANDOM,
        "backward": (
            CASES.format("random.randint(0, 2)", BACKWARD[0]),
            CASES.format(FIRST.format("random.randint(0, 2)"), BACKWARD[1]),
        ),
    },
    "in an expression": {
        **RANDOM,
        "step": (f"{COIN} and optimizer.step()", f"{DRAWN} and optimizer.step()"),
    },
    "an epoch": {**RANDOM, "epoch": (f"if {COIN}:\n    break", f"if {DRAWN}:\n    break")},
    "an evaluation": {
        **RANDOM,
        **EVALUATED,
        "epoch": (VALIDATE.format(COIN, "", "model(a)"), VALIDATE.format(DRAWN, GATHERED, "outputs")),
    },
    "gradients that are kept": {
        **RANDOM,
        "batch": (f"if {COIN}:\n    optimizer.zero_grad()", f"if {DRAWN}:\n    optimizer.zero_grad()"),
    },
}


@pytest.mark.parametrize("name", TAKEN)
def test_the_main_process_draws_for_all(changed, name):
    changed(**TAKEN[name])


ALIKE = {
    "what a batch becomes": {**RANDOM, "batch": f"if {COIN}:\n    x = x + 1"},
    "samples of a loader over what is drawn": {
        "made": "val = DataLoader(TensorDataset(torch.randn(8)), batch_size=4)",
        "epoch": "for (a,) in val:\n    last = a.sum().item()\nif last > 3:\n    optimizer.zero_grad()",
    },
    "how many there are": {
        "imports": "import numpy as np",
        "made": "order = np.random.permutation(8)",
        "step": "if len(order) < 3:\n    break",
    },
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_needs_no_agreement(convert_text, programs, name):
    before, _ = programs(ALIKE[name])
    report, result = convert_text(before)

    assert report.changes
    assert "gather" not in result


ANY = "any(accelerator.gather_for_metrics([bool({})]))"
HANDLER = "def leave(signum, frame):\n    {}\nsignal.signal(signal.SIGTERM, leave)"
KEEPER = """
class Keeper:
    def __init__(self):
        self.now = False
        signal.signal(signal.SIGTERM, self.leave)
    def leave(self, *args):
        self.now = True
keeper = Keeper()
"""
ASKED = {
    "a flag": ("stop = False\n" + HANDLER.format("global stop\n    stop = True"), "stop"),
    "an item": ('state = {"stop": False}\n' + HANDLER.format('state["stop"] = True'), 'state["stop"]'),
    "an object": (KEEPER, "keeper.now"),
    "an event": (
        "stop = threading.Event()\nsignal.signal(signal.SIGTERM, lambda *_: stop.set())",
        "stop.is_set()",
    ),
    "a timer": (
        "stop = False\ndef leave():\n    global stop\n    stop = True\nthreading.Timer(9, leave).start()",
        "stop",
    ),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("hole", ["step", "epoch"])
def test_all_stop_where_one_of_them_is_asked_to(changed, name, hole):
    setup, test = ASKED[name]
    stop = "if {}:\n    break"
    changed(
        imports="import signal\nimport threading",
        setup=setup,
        **{hole: (stop.format(test), stop.format(ANY.format(test)))},
    )


def test_a_handler_that_only_tells(unchanged):
    setup = "told = False\n" + HANDLER.format("print('asked')") + "\nif told:\n    print('told')"
    setup = setup.replace("print(", "str(")
    unchanged(imports="import signal\nimport threading", setup=setup, step="if told:\n    break")


LATE = "time.time() - last > 60"
KEPT = {
    "an evaluation by a clock": {
        **EVALUATED,
        "epoch": (
            VALIDATE.format(LATE, "", "model(a)"),
            VALIDATE.format(ANY.format(LATE), GATHERED, "outputs"),
        ),
    },
    "weights that are saved by a clock": {
        "step": (
            f"if {LATE}:\n    torch.save(model.state_dict(), 'm.pt')",
            f"if {ANY.format(LATE)}:\n    accelerator.save(accelerator.unwrap_model(model).state_dict(), 'm.pt')",
        ),
    },
}


@pytest.mark.parametrize("name", KEPT)
def test_what_all_do_alike_by_a_clock(changed, name):
    changed(imports="import time", setup="last = time.time()", **KEPT[name])


FUNCTION = """
import random
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{seed}
def coin():
    return random.random() < 0.5
def step(model, optimizer, x, y):
    if {test}:
        return
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    {above}
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            step(model, optimizer, x, y)
main()
"""


@pytest.mark.parametrize(("test", "asked"), [(COIN, COIN), ("coin()", "bool(coin())")])
def test_a_function_of_the_step_draws(convert_text, test, asked):
    _, result = convert_text(FUNCTION.format(seed="", test=test, above=""))

    assert f"    if {FIRST.format(asked)}:\n        return\n" in result


ABOVE = f"if {COIN}:\n        return"
SEED = "random.seed(0)\ntorch.manual_seed(0)"


def test_whether_there_is_a_training_is_drawn(refused_text, convert_text):
    source = FUNCTION.format(seed="", test="False", above=ABOVE)
    refused_text(source, "MIG122", f"if {COIN}", ["random and torch not seeded"])

    report, _ = convert_text(FUNCTION.format(seed=SEED, test="False", above=ABOVE))
    assert report.changes


INNER = f"if loss > 3:\n    if {COIN}:\n        continue\n    optimizer.step()"


def test_a_draw_that_not_all_come_to(refused, convert_text, programs):
    refused("MIG122", f"if {COIN}", ["random and torch not seeded"], **RANDOM, step=INNER)

    before, _ = programs({**RANDOM, "setup": SEED, "step": INNER})
    assert convert_text(before)[0].changes


def test_an_evaluation_by_a_clock_that_not_all_come_to(refused):
    asked = f"if loss > 3:\n    if {LATE}:\n        torch.save(model.state_dict(), 'm.pt')"
    mention = "what all must do alike is decided here by time.time() - last > 60"
    refused("MIG122", f"if {LATE}", [mention], imports="import time", setup="last = time.time()", step=asked)


FILE = 'os.path.exists("stop")'


@pytest.mark.parametrize("hole", ["step", "epoch"])
def test_all_stop_where_one_of_them_finds_a_file(changed, hole):
    stop = "if {}:\n    break"
    changed(imports="import os", **{hole: (stop.format(FILE), stop.format(ANY.format(FILE)))})


@pytest.mark.parametrize("test", [LATE, "random.random() < 0.5"])
def test_an_evaluation_that_one_process_may_leave_is_run_in_full(convert_text, programs, test):
    epoch = VALIDATE.format("epoch", f"if {test}:\n                break\n            ", "model(a)")
    holes = {"imports": "import random\nimport time", "setup": "last = time.time()", "made": EVALUATED["made"]}
    report, result = convert_text(programs({**holes, "epoch": epoch})[0])

    assert "gather" not in result
    assert any("every process runs this evaluation in full" in finding.message for finding in report.findings)
