"""Where something fails over a loader: one process may fail alone, and the others wait for it."""

import sys
import textwrap

import pytest

from migrate.report.model import Kind

HANDLED = "try:\n    {}\nexcept {}:\n    {}"
AGREED = "any(accelerator.gather_for_metrics([bool({})]))"
OOM = """
except RuntimeError as error:
    if "out of memory" in str(error):
        optimizer.zero_grad()
        continue
    raise
"""
LEFT = {
    "the batch before": (HANDLED.format("x = x + 1", "Exception", "continue"), "except Exception:"),
    "the loop": (HANDLED.format("x = x + 1", "(KeyError, ValueError)", "break"), "except (KeyError, ValueError):"),
    "whatever it is": (HANDLED.format("x = x + 1", "", "continue").replace("except :", "except:"), "except:"),
    "a sample that is not there": (HANDLED.format("x = x + 1", "KeyError", "continue"), "except KeyError:"),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_step_that_is_left_before_it_is_taken(refused, name):
    batch, at = LEFT[name]
    finding = refused("MIG122", at, [f"`{at}` goes on where one process alone may have failed"], batch=batch)

    assert "`if failed: continue`" in finding.hint


TAKEN = {
    "out of memory": f"try:\n    loss.backward()\n{OOM.strip()}",
    "to its end": HANDLED.format("loss.backward()", "RuntimeError", "pass"),
    "raised by the program, and not alone": HANDLED.format(
        "if torch.isnan(loss):\n        raise RuntimeError\n    loss.backward()", "RuntimeError", "continue"
    ),
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs except*")
def test_a_group_of_exceptions(refused):
    group = HANDLED.replace("except", "except*").format("loss.backward()", "RuntimeError", "pass")
    refused("MIG122", "except* RuntimeError", backward=group)


@pytest.mark.parametrize("name", TAKEN)
def test_a_step_that_fails_while_it_is_taken(refused, name):
    finding = refused("MIG122", "except RuntimeError", backward=TAKEN[name])

    assert "let it end the program" in finding.hint


NAN = "not torch.isnan(loss)"
CAUGHT = {
    "an assertion": (
        HANDLED.format(f"assert {NAN}\n    loss.backward()", "AssertionError", "continue"),
        HANDLED.format(
            f"assert all(accelerator.gather_for_metrics([{NAN}]))\n    accelerator.backward(loss)",
            "AssertionError",
            "continue",
        ),
    ),
    "an exception of the program": (
        HANDLED.format(
            "if torch.isnan(loss):\n        raise ValueError\n    loss.backward()", "ValueError", "continue"
        ),
        HANDLED.format(
            "if accelerator.gather(torch.isnan(loss)).any():\n        raise ValueError\n    accelerator.backward(loss)",
            "ValueError",
            "continue",
        ),
    ),
    "an exception by a draw": (
        HANDLED.format("if torch.rand(1) < 0.1:\n        raise ValueError\n    loss.backward()", "ValueError", "pass"),
        HANDLED.format(
            "if accelerator.gather_for_metrics([bool(torch.rand(1, device=accelerator.device) < 0.1)])[0]:\n"
            "        raise ValueError\n    accelerator.backward(loss)",
            "ValueError",
            "pass",
        ),
    ),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_what_the_step_itself_raises_is_raised_by_all(changed, name):
    changed(backward=CAUGHT[name])


ORDINARY = {
    "what goes on with the step": {"step": HANDLED.format("last = int('3')", "ValueError", "last = 0")},
    "what ends the program": {"step": HANDLED.format("optimizer.step()", "RuntimeError", "x = None\n    raise")},
    "what says so and ends it": {
        "imports": "import sys",
        "step": HANDLED.format("optimizer.step()", "RuntimeError", "x = None\n    sys.exit(1)"),
    },
    "the end of an iterator": {
        "made": "more = iter([1])",
        "batch": HANDLED.format("x = x + next(more)", "StopIteration", "more = iter([1])\n    continue"),
    },
    "an interrupt": {"step": HANDLED.format("optimizer.step()", "KeyboardInterrupt", "break")},
    "an assertion that ends the program": {"step": f"assert {NAN}"},
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_handlers(unchanged, name):
    unchanged(**ORDINARY[name])


NOTED = "failed = False\n" + HANDLED.format("x = x + 1", "{}", "failed = True") + "\nif {}:\n    continue"


@pytest.mark.parametrize("kind", ["Exception", "ValueError"])
def test_a_failure_that_is_noted(changed, kind):
    changed(batch=(NOTED.format(kind, "failed"), NOTED.format(kind, AGREED.format("failed"))))


def test_a_failure_that_is_noted_where_not_all_ask_for_it(refused):
    noted = NOTED.partition("\nif")[0].format("ValueError")
    asked = "if loss > 3:\n    if failed:\n        continue\n    optimizer.step()"
    refused("MIG122", "if failed:", ["which an exception sets"], batch=noted, step=asked)


MONITORED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, loader, metric):
        self.model, self.optimizer, self.loader, self.metric = model, optimizer, loader, metric
        self.found = True

    def train(self):
        for epoch in range(4):
            log = {{"epoch": epoch}}
            log.update(self.train_epoch())
            if self.found:
                try:
                    is_low = {asked}
                except KeyError:
                    self.found = False
                    is_low = False
                if is_low:
                    break

    def train_epoch(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
        {step}
        return {{"loss": 0.5}}


model = nn.Linear(2, 1)
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), loader, "loss").train()
"""


def test_a_key_that_is_there_for_all_or_for_none(convert_text):
    _, result = convert_text(MONITORED.format(step="pass", asked="log[self.metric] < 0.1"))

    assert "accelerator.backward(loss)" in result


@pytest.mark.parametrize(
    "holes",
    [
        {"step": "self.metric = time.time()", "asked": "log[self.metric] < 0.1"},
        {"step": "pass", "asked": "log.pop(self.metric) < 0.1"},
    ],
)
def test_a_key_that_one_process_may_miss(convert_text, holes):
    text = MONITORED.format(**holes).replace("import torch\n", "import time\nimport torch\n", 1)
    report, _ = convert_text(text)

    assert not report.changes
    assert any("is_low, which an exception sets" in finding.message for finding in report.of(Kind.LEFT))


def test_what_is_imported_or_not(unchanged):
    unchanged(
        made=HANDLED.format("import apex\n    is_there = True", "Exception", "is_there = False"),
        step="if is_there:\n    break",
    )


PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
def epoch(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
def main(rate=0.1):
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=rate)
    {body}
{start}
"""
STEP = "epoch(model, optimizer, loader)"
WAITS = "accelerator.wait_for_everyone()\n"


def program(body, start="main()"):
    return PROGRAM.format(body=textwrap.indent(body, "    ").strip(), start=start)


def each(kind, then):
    return textwrap.indent(HANDLED.format(STEP, kind, then), "    ")


AGAIN = {
    "begun again": HANDLED.format(STEP, "torch.cuda.OutOfMemoryError", STEP),
    "the next epoch": f"for number in range(3):\n{each('RuntimeError', 'continue')}",
    "another training": f"{HANDLED.format(STEP, 'RuntimeError', 'pass')}\n{STEP}",
}


@pytest.mark.parametrize("name", AGAIN)
def test_a_training_goes_on_once_all_have_failed(convert_text, remark, name):
    source = program(AGAIN[name])
    report, result = convert_text(source)

    handler = next(line for line in result.splitlines() if "except" in line)
    assert f"{handler}\n{handler.partition('except')[0]}    {WAITS}" in result
    assert [f.message for f in report.findings if f.code == "MIG122"] == [
        "training goes on here once all processes have failed: one that fails alone waits in vain"
    ]


def test_trials_go_on_once_all_have_failed(convert_text):
    trials = (
        "for rate in (0.1, 0.2):\n    try:\n        main(rate)\n    except RuntimeError as error:\n        print(error)"
    )
    _, result = convert_text(program(STEP, trials))

    assert f"    except RuntimeError as error:\n        {WAITS}" in result


ENDED = {
    "around all": HANDLED.format(f"for number in range(3):\n        {STEP}", "Exception as error", "print(error)"),
    "that leaves the only loop": f"for number in range(3):\n{each('RuntimeError', 'break')}",
    "for an interrupt": f"for number in range(3):\n{each('KeyboardInterrupt', 'continue')}",
    "that ends the program": f"for number in range(3):\n{each('RuntimeError', 'raise')}",
}


@pytest.mark.parametrize("name", ENDED)
def test_a_handler_after_which_nothing_trains(convert_text, name):
    report, result = convert_text(program(ENDED[name]))

    assert report.changes
    assert "wait_for_everyone" not in result


def test_a_handler_on_the_line_of_its_exception(refused_text):
    body = f"for number in range(3):\n    try: {STEP}\n    except RuntimeError: continue"
    refused_text(program(body), "MIG122", "except RuntimeError", ["all must wait for each other first"])


def test_a_handler_where_there_is_no_accelerator(refused_text):
    source = program(
        STEP, "for rate in (0.1, 0.2):\n    try:\n        main(rate)\n    except RuntimeError:\n        pass"
    )
    source = source.replace(
        "    model = nn.Linear(2, 1)", '    device = torch.device("cuda")\n    model = nn.Linear(2, 1).to(device)'
    )
    refused_text(source, "MIG122", "except RuntimeError", ["nothing there lets all wait"])
