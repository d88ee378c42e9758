"""Methods that are called by a name which a function is given: `getattr(callback, hook)(self)`."""

import textwrap

import pytest

SCHEDULE = """\
class Schedule:
    def begin_fit(self, learner):
        self.scheduler = torch.optim.lr_scheduler.StepLR(learner.optimizer, 1, 0.5)

    def after_batch(self, learner):
        pass

    def after_epoch(self, learner):
        self.scheduler.step()
"""
IN_EACH_BATCH = SCHEDULE.replace("        pass", "        self.begin_fit(learner)")
BY_ITS_OWN_SHARE = """\
class Schedule:
    def begin_fit(self, learner):
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(learner.optimizer, patience=0)
        self.total = 0.0

    def after_batch(self, learner):
        self.total += learner.loss.item()

    def after_epoch(self, learner):
        self.scheduler.step(self.total)
"""
STOPPING = SCHEDULE.replace("        pass", "        if learner.loss.item() > 2.0:\n            learner.stop = True")
PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


{schedule}

class Printer:
    def begin_fit(self, learner):
        pass

    def after_batch(self, learner):
        pass

    def after_epoch(self, learner):
        print(learner.optimizer.param_groups[0]["lr"])


{more}

class Learner:
    def __init__(self, model, optimizer, loader, callbacks):
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self.callbacks = {kept}
        self.stop = False

    def run(self, hook):
{run}

    def fit(self, epochs):
        self.run("begin_fit")
        for self.epoch in range(epochs):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                self.loss = nn.functional.mse_loss(self.model(x), y)
                self.loss.backward()
                self.optimizer.step()
                self.run("after_batch")
            self.run("after_epoch")
            if self.stop:
                break


if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=8, shuffle=True)
    learner = Learner(model, optimizer, loader, [Schedule(), Printer()])
    learner.fit(3)
    print(learner.model.weight.sum().item())
"""
OTHERS = """\
class Callbacks:
    def __init__(self, callbacks):
        self.callbacks = callbacks

    def call(self, name, learner):
        for callback in self.callbacks:
            if hasattr(callback, name):
                getattr(callback, name)(learner)
"""
AT_ONCE = """
for callback in self.callbacks:
    getattr(callback, hook)(self)
"""
UNDER_A_NAME = """
for callback in self.callbacks:
    method = getattr(callback, hook, None)
    if method is not None:
        method(self)
"""
IN_A_COMPREHENSION = "[getattr(callback, hook)(self) for callback in self.callbacks]"
HANDED_ON = "self.callbacks.call(hook, self)"


def program(run, schedule=SCHEDULE):
    handed_on = run == HANDED_ON
    return PROGRAM.format(
        schedule=schedule,
        more=OTHERS if handed_on else "",
        kept="Callbacks(callbacks)" if handed_on else "callbacks",
        run=textwrap.indent(run.strip(), " " * 8),
    )


@pytest.mark.parametrize("run", [AT_ONCE, UNDER_A_NAME, IN_A_COMPREHENSION, HANDED_ON])
def test_each_call_is_of_the_methods_that_it_names(run, convert_text):
    _, text = convert_text(program(run))
    assert "self.accelerator.backward(self.loss)" in text


@pytest.mark.parametrize("run", [UNDER_A_NAME, HANDED_ON])
def test_numbers_are_those_of_one_process(run, convert_text, numbers_printed):
    source = program(run)
    _, text = convert_text(source)
    alone = numbers_printed(text, 1)
    assert alone == numbers_printed(source, 1)
    halves = text.replace("batch_size=8", "batch_size=4")
    assert numbers_printed(halves, 2) == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("run", [AT_ONCE, UNDER_A_NAME, IN_A_COMPREHENSION, HANDED_ON])
def test_what_is_made_in_each_batch_is_still_seen(run, refused_text):
    refused_text(program(run, IN_EACH_BATCH), "MIG118", "lr_scheduler.StepLR", ["made anew here for each batch"])


def test_an_object_that_is_handed_over_beside_the_name_is_none(refused_text):
    source = program(HANDED_ON, IN_EACH_BATCH).replace(
        'self.run("after_batch")', 'self.callbacks.call("after_batch", self)'
    )
    refused_text(source, "MIG118", "lr_scheduler.StepLR", ["made anew here for each batch"])


@pytest.mark.parametrize("run", [AT_ONCE, HANDED_ON])
def test_what_a_process_keeps_of_its_batches_must_not_decide(run, refused_text):
    refused_text(program(run, BY_ITS_OWN_SHARE), "MIG122", "self.scheduler.step(self.total)", ["self.total"])


@pytest.mark.parametrize("run", [AT_ONCE, UNDER_A_NAME])
def test_a_flag_by_the_batch_of_one_process_must_not_decide(run, refused_text):
    refused_text(program(run, STOPPING), "MIG122", "if self.stop:", ["`break`", "self.stop"])


def test_a_name_that_is_not_written_out_may_be_any(refused_text):
    source = program(AT_ONCE).replace('self.run("after_batch")', "self.run(self.hooks[self.epoch])")
    source = source.replace("self.stop = False", 'self.stop, self.hooks = False, ["begin_fit", "after_batch"]')
    refused_text(source, "MIG118", "lr_scheduler.StepLR")
