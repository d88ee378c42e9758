"""Means over the processes that each step takes to show them: they stay where steps of a training alone come."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def mean(x{more}):
    if dist.get_world_size() < 2{and_more}:
        return x
    x = x.clone()
    dist.all_reduce(x)
    x /= {division}
    return x


dist.init_process_group("gloo")
data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler)
test_loader = DataLoader(data, batch_size=4)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {step}
    model.eval()
    with torch.no_grad():
        for x, y in test_loader:
            loss = nn.functional.mse_loss(model(x), y)
            {test}
            print(loss.item())
    model.train()
"""
STEP = "shown = mean(loss.detach())"
KEPT = """
def mean(x):
    if accelerator.num_processes == 1:
        return x
    x = x.clone()
    x.copy_(accelerator.reduce(x, reduction="sum"))
    x /= accelerator.num_processes
    return x
"""


def program(step=STEP, test="pass", more="", and_more="", division="dist.get_world_size()"):
    shown = "        print(shown)" if "shown" in step else ""
    return PROGRAM.format(step=f"{step}\n{shown}", test=test, more=more, and_more=and_more, division=division)


def test_what_each_step_joins_is_joined(convert_text):
    report, result = convert_text(program())

    assert KEPT in result
    assert "        shown = mean(loss.detach())\n" in result
    assert not [f for f in report.findings if f.kind is Kind.NOTE and "goes away" in f.message]


def test_what_stands_in_the_loop_itself_is_joined(convert_text):
    step = "shown = loss.detach().clone()\n        dist.all_reduce(shown)\n        shown /= dist.get_world_size()"
    _, result = convert_text(program(step))

    assert '        shown.copy_(accelerator.reduce(shown, reduction="sum"))\n' in result
    assert "        shown /= accelerator.num_processes\n" in result


IN_EVALUATIONS = {
    "in its loop": ("loss = mean(loss)", "(outputs, y)\n            accelerator.print(loss.item())\n"),
    "as an argument": ("print(mean(loss))", "            accelerator.print(loss)\n"),
}


@pytest.mark.parametrize("name", IN_EVALUATIONS)
def test_an_evaluation_that_asks_for_it_has_it_already(convert_text, name):
    before, after = IN_EVALUATIONS[name]
    report, result = convert_text(program(test=before))

    assert KEPT in result
    assert "        shown = mean(loss.detach())\n" in result
    assert after in result
    assert not [f for f in report.findings if f.kind is Kind.NOTE and "goes away" in f.message]


OTHERWISE = {
    "an evaluation that is given something else": {"test": "loss = mean(loss)", "more": ", by=2", "division": "by"},
    "under a condition": {"step": "shown = 0\n        if loss < 1:\n            shown = mean(loss.detach())"},
    "in what is shown itself": {"step": "print(mean(loss.detach()))"},
    "another test": {"more": ", flag=True", "and_more": " or not flag"},
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_others_come_to_goes_as_it_went(convert_text, name):
    report, result = convert_text(program(**OTHERWISE[name]))

    assert "reduce(" not in result
    assert [f for f in report.findings if f.kind is Kind.NOTE and "goes away" in f.message]


LOGGED = """
import argparse
import time
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def mean(x):
    dist.all_reduce(x)
    return x / dist.get_world_size()


def main(args):
    dist.init_process_group("gloo")
    data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    test_loader = DataLoader(data, batch_size=4)
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    steps, running, start = 0, 0, time.time()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {skip}
            running += loss.item()
            steps += 1
            if {test}:
                shown = torch.tensor(running / args.every)
                {sum}
                shown = shown.item() / dist.get_world_size()
                print(shown)
                running = 0
        {evaluation}


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--every", type=int, default=2)
parser.add_argument("--local_rank", type=int, default=0)
main(parser.parse_args())
"""
SUM = "dist.all_reduce(shown, op=dist.ReduceOp.SUM)"


def logged(test="steps % args.every == 0", skip="pass", sum=SUM, evaluation="pass"):  # noqa: A002
    return LOGGED.format(test=test, skip=skip, sum=sum, evaluation=evaluation)


def said(report):
    return [finding.message for finding in report.findings if finding.kind is Kind.NOTE]


COMMON = {
    "by the number of the step": {},
    "of the batch": {"test": "i % args.every == args.every - 1 or i == len(loader) - 1"},
    "by two tests": {"test": "steps > 1", "sum": f"if epoch > 0:\n                    {SUM}"},
}


@pytest.mark.parametrize("name", COMMON)
def test_what_all_come_to_at_times_is_joined(convert_text, name):
    report, result = convert_text(logged(**COMMON[name]))

    assert 'shown = accelerator.reduce(shown, reduction="sum")\n' in result
    assert "shown = shown.item() / accelerator.num_processes\n" in result
    assert not [note for note in said(report) if "goes away" in note]


def test_what_is_shown_of_the_sum_alone_is_no_share(convert_text):
    report, _ = convert_text(logged())

    assert not [note for note in said(report) if "one process's share" in note]


def test_what_is_shown_beside_the_sum_is_a_share(convert_text):
    report, _ = convert_text(logged(skip="print(running)"))

    assert [note for note in said(report) if "running shows one process's share" in note]


def test_what_a_function_joins_at_times_is_joined(convert_text):
    source = logged(sum="shown = mean(shown)").replace(".item() / dist.get_world_size()", ".item()")
    report, result = convert_text(source)

    assert 'x.copy_(accelerator.reduce(x, reduction="sum"))\n    return x / accelerator.num_processes\n' in result
    assert not [note for note in said(report) if "goes away" in note or "one process's share" in note]


EVALUATED = """model.eval()
        with torch.no_grad():
            for x, y in test_loader:
                shown = nn.functional.mse_loss(model(x), y)
                dist.all_reduce(shown)
                print(shown.item() / dist.get_world_size())
        model.train()"""
APART = {
    "by the batch": {"test": "loss.item() > 1"},
    "by a clock": {"test": "time.time() - start > 60"},
    "by the process": {"test": "args.local_rank == 0"},
    "by a draw": {"test": "torch.rand(1).item() > 0.5"},
    "not past another step": {"skip": "if loss.item() > 5: continue"},
    "in an evaluation, too": {"evaluation": EVALUATED},
    "of the most": {"sum": "dist.all_reduce(shown, op=dist.ReduceOp.MAX)"},
}


@pytest.mark.parametrize("name", APART)
def test_what_some_may_not_come_to_goes(convert_text, name):
    report, result = convert_text(logged(**APART[name]))

    assert "accelerator.reduce(shown" not in result
    assert "num_processes" not in result
    assert [note for note in said(report) if "running shows one process's share" in note]


ADDED = {
    "a mean": ("shown = mean(loss.detach())", "total += shown.item()", ""),
    "a sum": ("shown = (y > 0).sum()\n        dist.all_reduce(shown)", "total += shown.item()", ""),
    "in a name for it": ("shown = mean(loss.detach())", "value = shown.item() * 2\n        total = total + value", ""),
    "under a condition": ("shown = mean(loss.detach())", "if shown > 1:\n            total += shown.item()", ""),
    "in an attribute": ("shown = mean(loss.detach())", "log.total += shown.item()", "log."),
}


@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_up_of_all_is_not_joined_again(convert_text, name):
    step, adds, of = ADDED[name]
    source = program(f"{step}\n        {adds}")
    source = source.replace("    for x, y in loader:", f"    {of}total = 0\n    for x, y in loader:")
    source = source.replace("    model.eval()", f"    print({of}total)\n    model.eval()")
    source = source.replace(
        "dist.init_process_group", "class Log:\n    total = 0\n\n\nlog = Log()\ndist.init_process_group"
    )
    report, result = convert_text(source)

    assert "accelerator.reduce(" in result
    assert "gather" not in result.partition("model.eval()")[0]
    assert result.count("accelerator.reduce(") == 1
    assert not [note for note in said(report) if "one process's share" in note]


BESIDE = {
    "something else": "total += shown.item() + loss.item()",
    "where a batch says so": "if loss > 1:\n            total += shown.item()",
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_is_added_up_beside_it_is_joined(convert_text, name):
    source = program(f"{STEP}\n        {BESIDE[name]}")
    source = source.replace("    for x, y in loader:", "    total = 0\n    for x, y in loader:")
    _, result = convert_text(source.replace("    model.eval()", "    print(total / len(loader))\n    model.eval()"))

    assert "total = sum(accelerator.gather_for_metrics([total]))" in result


METER = """
class Meter:
    def __init__(self):
        self.sum = self.count = self.avg = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


"""


def metered(given):
    source = program(f"{STEP}\n        meter.update({given})\n        print(meter.avg)")
    source = source.replace("    for x, y in loader:", "    meter = Meter()\n    for x, y in loader:")
    source = source.replace("    model.eval()", "    print(meter.avg)\n    model.eval()")
    return source.replace("dist.init_process_group", METER.lstrip() + "dist.init_process_group")


@pytest.mark.parametrize("given", ["shown.item()", "shown.item(), x.size(0)", "shown.item(), len(x)"])
def test_a_meter_of_what_all_have_shows_no_share(convert_text, given):
    report, _ = convert_text(metered(given))

    assert not [note for note in said(report) if "one process's share" in note]


@pytest.mark.parametrize("given", ["loss.item()", "shown.item() + loss.item(), x.size(0)"])
def test_a_meter_of_something_else_does(convert_text, given):
    report, result = convert_text(metered(given))

    assert "meter.sum, meter.count = accelerator.reduce((meter.sum, meter.count))" in result
    assert [note for note in said(report) if "meter shows one process's share" in note]


def test_what_goes_on_being_summed_up_is_divided_by_the_processes_not_by_the_gpus_of_a_machine(convert_text):
    source = program("shown = mean(loss.detach(), gpus)", more=", n", division="n")
    source = source.replace("    if dist.get_world_size() < 2:\n        return x\n", "")
    _, result = convert_text(source.replace("data = ", "gpus = torch.cuda.device_count()\ndata = ", 1))

    assert "    x /= accelerator.num_processes\n" in result


@pytest.mark.parametrize("given", ["shown.item(), x.size(0)", "loss.item(), x.size(0)"])
def test_a_meter_that_is_shown_in_steps_alone(convert_text, given):
    source = metered(given).replace("    print(meter.avg)\n    model.eval()", "    model.eval()")
    report, _ = convert_text(source)

    notes = [note for note in said(report) if "meter shows one process's share" in note]
    assert bool(notes) is given.startswith("loss")
