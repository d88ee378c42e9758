import re
import textwrap

import pytest

from migrate.options import Target
from migrate.report.model import Kind

EVALUATION = """
model.eval()
correct, total, found = 0, 0, []
with torch.no_grad():
    for x, y in held:
{body}
"""
MADE = {"made": "held = DataLoader(data)"}
ON_CPU = "accelerator = Accelerator(cpu=True)"  # nothing moves the batches of a loader that is not prepared
SHARED_PREPARE = {"prepare": "loader, held, model, optimizer = accelerator.prepare(loader, held, model, optimizer)"}


def evaluation(body):
    return EVALUATION.format(body="\n".join(f"        {line}" for line in body.splitlines()))


IN_FULL = {
    "a sum before the result": (
        "total += x.sum().item()\nout = model(x)\nfound.append(out)",
        "before the model's result",
    ),
    "under a condition": ("if total == 0:\n    out = model(x)\n    found.append(out)", "inside another block"),
    "the model twice": ("correct += (model(x) - model(y)).sum()", "does more than call the model"),
    "no model": ("found.append(y)", "not called in the loop"),
    "a dictionary": ('out = model(y["rows"])\nfound.append((out, y["labels"]))', "dictionary"),
}


@pytest.mark.parametrize("name", IN_FULL)
def test_unchanged_and_run_in_full(unchanged, programs, remark, name):
    body, why = IN_FULL[name]
    holes = {**MADE, "end": evaluation(body)}
    report = unchanged(**holes, accelerator=ON_CPU if "model" in body else "accelerator = Accelerator()")

    remark(report, programs(holes)[0], "MIG114", "in held", ["in full", why], Kind.NOTE)


def test_unchanged_where_gradients_may_flow(unchanged, programs, remark):
    holes = {**MADE, "end": "for x, y in held:\n    out = model(x)\n    best = out.max()"}
    report = unchanged(**holes, accelerator=ON_CPU)

    remark(report, programs(holes)[0], "MIG114", "in held", ["no_grad"], Kind.NOTE)


GATHERED = "out, y = accelerator.gather_for_metrics((out, y))"
SHARED = {
    "counts": (
        "out = model(x)\ncorrect += (out.argmax(1) == y).sum().item()\ntotal += len(y)",
        f"out = model(x)\n{GATHERED}\ncorrect += (out.argmax(1) == y).sum().item()\ntotal += len(y)",
    ),
    "losses": (
        "out = model(x)\ntotal += criterion(out, y).item()",
        f"out = model(x)\n{GATHERED}\ntotal += criterion(out, y).item()",
    ),
    "lists": (
        "out = model(x)\nfound.append(out)",
        "out = model(x)\nout = accelerator.gather_for_metrics(out)\nfound.append(out)",
    ),
    "a prediction": (
        "pred = model(x).argmax(1)\ncorrect += (pred == y).sum().item()",
        (
            "pred = model(x).argmax(1)\npred, y = accelerator.gather_for_metrics((pred, y))\n"
            "correct += (pred == y).sum().item()"
        ),
    ),
    "a result without a name": (
        "correct += (model(x).argmax(1) == y).sum().item()",
        (
            "outputs = model(x)\noutputs, y = accelerator.gather_for_metrics((outputs, y))\n"
            "correct += (outputs.argmax(1) == y).sum().item()"
        ),
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_shared_out(changed, name):
    before, after = SHARED[name]
    changed(**MADE, **SHARED_PREPARE, end=(evaluation(before), evaluation(after)))


def test_a_name_that_holds_nothing_but_the_result_is_gathered(convert_text, programs):
    """Also of a model that may have been loaded whole, of which nobody knows what it gives."""
    before, _ = programs({**MADE, "end": evaluation(SHARED["losses"][0])})
    model = "model = nn.Linear(2, 1)"
    _, result = convert_text(before.replace(model, "model = torch.load('net.pt')['net'] if data else nn.Linear(2, 1)"))
    gathered = f"        out = model(x)\n        {GATHERED}\n        total"
    assert gathered in result


def test_a_name_that_is_taken(changed):
    before, after = (text.replace("found", "outputs") for text in SHARED["a result without a name"])
    changed(
        **MADE,
        **SHARED_PREPARE,
        end=(
            "outputs = []" + evaluation(before).replace("found", "others"),
            "outputs = []" + evaluation(after.replace("outputs", "model_outputs")).replace("found", "others"),
        ),
    )


JOIN = "total = sum(accelerator.gather_for_metrics([total]))"
JOINED = {
    "a number": (
        "total += loss.item()",
        "total = sum(accelerator.gather_for_metrics([total]))",
        "print(total)",
    ),
    "a number of samples": (
        "total += x.size(0)",
        "total = sum(accelerator.gather_for_metrics([total]))",
        "print(total)",
    ),
    "divided by the data": (
        "total += loss.item() * x.size(0)",
        "total = sum(accelerator.gather_for_metrics([total]))",
        "print(total / len(data))",
    ),
    "divided by the batches": (
        "total += loss.item()",
        "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes",
        "print(total / len(loader))",
    ),
    "divided by the batches, counted from a list": (
        "total += loss.item()",
        "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes",
        "print(total / len(list(loader)))",
    ),
    "divided by the fewest batches of several loaders": (
        "total += loss.item()",
        "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes",
        "steps = min(len(loader), 100)\nprint(total / steps)",
    ),
    "divided by steps that the loop counts": (
        "total += loss.item()\nsteps += 1",
        "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes",
        "print(total / steps)",
    ),
    "divided by as many samples as a batch is said to have": (
        "total += loss.item() * 4\nsteps += size",
        "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes",
        "size = 4\nprint(total / steps)",
    ),
    "divided by the batches before it is added": (
        "total += loss.item() / len(loader)",
        'total = accelerator.reduce(total, reduction="mean")',
        "print(total)",
    ),
    "a tensor that is divided by the batches before it is added": (
        "total += loss.detach() / len(loader)",
        'total = accelerator.reduce(total, reduction="mean")',
        "print(total)",
    ),
    "a mean that goes on": (
        "steps += 1\ntotal += (loss.item() - total) / steps",
        'total = accelerator.reduce(total, reduction="mean")',
        "print(total)",
    ),
    "divided by all samples before it is added": (
        "total += loss.item() / len(data)",
        "total = sum(accelerator.gather_for_metrics([total]))",
        "print(total)",
    ),
    "a number or a tensor, whichever a loss divided by a count is": (
        "total += loss / len(data)",
        'total = accelerator.reduce(total, reduction="sum")',
        "print(total)",
    ),
    "a list that grows": (
        "total += output.view(-1).tolist()",
        "total = accelerator.gather_for_metrics(total)",
        "print(sum(total))",
    ),
    "a tensor": (
        "total += loss.detach()",
        'total = accelerator.reduce(total, reduction="sum")',
        "print(total)",
    ),
}


def test_an_object_that_prepares_its_loader_divides_by_its_own_batches(convert_text):
    _, result = convert_text(OBJECT)

    assert "total = sum(self.accelerator.gather_for_metrics([total])) / self.accelerator.num_processes" in result


OBJECT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        self.model = nn.Linear(2, 1).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        total = 0
        for x, y in self.loader:
            loss = (self.model(x.to(self.device)) - y.to(self.device)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        print(total / len(self.loader))


trainer = Trainer()
trainer.train()
"""


def test_what_is_divided_by_the_batches_of_all_processes_is_added_up(changed):
    changed(
        made="steps = len(loader)",
        start="total = 0",
        step="total += loss.item()",
        epoch=("print(total / steps)", JOIN + "\naccelerator.print(total / steps)"),
    )


NUMBERS = [
    "loss.data.item()",
    "loss.cpu().data.numpy()",
    "loss.detach().cpu().numpy()[0]",
    "float(loss.data[0])",
    "round(loss.item(), 3)",
    "sum(loss.tolist())",
    "math.sqrt(loss.data.item())",
]
TENSORS = ["loss.data", "loss.data[0]", "loss.data.mean()", "-loss.data"]


@pytest.mark.parametrize("number", NUMBERS + TENSORS)
def test_every_way_to_take_a_number_out_of_a_tensor_is_joined(changed, number):
    join = "total = sum(accelerator.gather_for_metrics([total]))"
    changed(
        imports="import math",
        start="total = 0",
        step=f"total += {number}",
        epoch=(
            "print(total)",
            f"{join if number in NUMBERS else JOINED['a tensor'][1]}\naccelerator.print(total)",
        ),
    )


WEIGHTED = """
def weighted(x):
    share = np.random.beta(0.2, 0.2)
    return x * share, share
"""


def test_what_a_function_gives_in_a_tuple_is_told_by_what_it_returns_at_that_place(convert_text, programs):
    step = "more, share = weighted(output)\ntotal += share * loss.item()"
    holes = {"imports": "import numpy as np\n" + WEIGHTED, "start": "total = 0", "step": step, "epoch": "print(total)"}
    report, result = convert_text(programs(holes)[0], target=Target.ACCELERATE)

    assert "total = sum(accelerator.gather_for_metrics([total]))\n" in result
    assert not [finding for finding in report.findings if "number or a tensor" in finding.message]


MATRIX = """
class Matrix:
    def __init__(self):
        self.counts = np.zeros((2, 2))

    def update(self, a, b):
        index = 2 * a + b
        self.counts += np.bincount(index, minlength=4).reshape(2, 2)
"""


@pytest.mark.parametrize(
    ("target", "join"),
    [
        (Target.RUNTIME, "seen.counts = accelerator.reduce(seen.counts)"),
        (Target.ACCELERATE, "seen.counts = sum(accelerator.gather_for_metrics([seen.counts]))"),
    ],
)
def test_a_matrix_of_numpy_stays_one(convert_text, programs, target, join):
    fed = "seen.update(output.detach().numpy(), y.numpy())"
    holes = {"imports": "import numpy as np\n" + MATRIX, "start": "seen = Matrix()", "step": fed}
    _, result = convert_text(programs({**holes, "epoch": "print(seen.counts)"})[0], target=target)

    assert f"    {join}\n" in result


@pytest.mark.parametrize("step", ["total += str(loss.item()) + ' '", "total = f'{total} {loss.item()}'"])
def test_text_that_grows_is_not_joined(changed, step):
    changed(start="total = ''", step=step, epoch=("print(total)", "accelerator.print(total)"))


def test_what_grows_within_a_step_is_the_last_value_and_decides_as_its_mean(convert_text, programs):
    holes = {"backward": "loss = loss + output.mean()\nloss.backward()"}
    _, result = convert_text(programs({**holes, "end": "if loss < 3:\n    torch.save(model.state_dict(), 'x')"})[0])

    assert "    loss = accelerator.reduce(loss, reduction='mean')\nif loss < 3" in result


@pytest.mark.parametrize("name", JOINED)
def test_joined_after_the_training_loop(changed, name):
    step, join, read = JOINED[name]
    changed(
        start="total = []" if "list" in step else "total = steps = 0" if "steps" in step else "total = 0",
        step=step,
        epoch=(read, f"{join}\n{read.replace('print', 'accelerator.print')}"),
    )


def test_what_is_not_read_after_the_loop_is_not_joined(unchanged):
    unchanged(start="total = 0", step="total += loss.item()")


def test_what_is_shown_while_the_loop_runs_is_reported(changed, programs, remark):
    holes = {
        "start": "total = 0",
        "step": ("total += loss.item()\nprint(total)", "total += loss.item()\naccelerator.print(total)"),
    }
    report = changed(**holes)

    remark(report, programs(holes)[0], "MIG114", "in loader", ["total", "one process"], Kind.NOTE)


SHOWN = {
    "the mean": "print(sum(losses) / len(losses))",
    "the last ones": "print(losses[-1], losses[-10:])",
}
CHANGED = {
    "taken out": "losses.pop()",
    "under another name": "kept = losses",
    "handed on": "keep(losses)",
    "set": "losses[0] = 0.0",
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_list_that_is_shown_while_the_loop_runs_is_joined_after_it(convert_text, programs, name):
    step = f"losses.append(loss.item())\n{SHOWN[name]}"
    report, result = convert_text(
        programs({"start": "losses = []", "step": step, "epoch": "print(sum(losses) / len(losses))"})[0]
    )

    assert "    losses = accelerator.gather_for_metrics(losses)\n    accelerator.print" in result
    told = [finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG114"]
    assert any("while this loop runs, losses shows one process's share" in each for each in told), told


@pytest.mark.parametrize("name", CHANGED)
def test_a_list_that_the_loop_changes_otherwise_is_not(convert_text, programs, name):
    step = f"losses.append(loss.item())\n{CHANGED[name]}"
    setup = "def keep(numbers):\n    numbers.clear()"
    holes = {"setup": setup, "start": "losses = []", "step": step, "epoch": "print(sum(losses) / len(losses))"}
    _, result = convert_text(programs(holes)[0])

    assert "losses = accelerator.gather_for_metrics(losses)" not in result


UNKNOWN = "total += measures.error(output, y) if epoch else loss.item()"


def test_what_may_be_a_number_or_a_tensor_is_left_with_the_reason(unchanged, programs, remark):
    holes = {"imports": "import measures", "start": "total = 0", "step": UNKNOWN, "epoch": "best = total"}
    report = unchanged(**holes)

    finding = remark(report, programs(holes)[0], "MIG114", "in loader", ["total", "number or a tensor"])
    assert "accelerator.reduce(total)" in finding.hint


OPTION = "args = argparse.ArgumentParser()\nargs.add_argument('--steps'{})\nargs = args.parse_args([])"


@pytest.mark.parametrize("kind", ["type=int", "default=2, type=float"])
def test_a_number_times_an_option_that_is_one_is_joined(changed, kind):
    changed(
        imports="import argparse",
        made=OPTION.format(f", {kind}"),
        start="total = 0.0",
        step="total += loss.item() * args.steps",
        epoch=("print(total)", "total = sum(accelerator.gather_for_metrics([total]))\naccelerator.print(total)"),
    )


@pytest.mark.parametrize("kind", [", type=json.loads", ", type=torch.tensor"])
def test_an_option_that_may_be_anything_is_left_with_the_reason(unchanged, programs, remark, kind):
    holes = {
        "imports": "import argparse\nimport json",
        "made": OPTION.format(kind),
        "start": "total = 0.0",
        "step": "total += loss.item() * args.steps",
        "epoch": "best = total",
    }
    report = unchanged(**holes)

    remark(report, programs(holes)[0], "MIG114", "in loader", ["total", "number or a tensor"])


def test_what_an_unknown_function_gives_back_is_left_with_the_reason(unchanged):
    unchanged(
        imports="import measures", start="total = 0", step="total += measures.error(output, y)", epoch="best = total"
    )


NOT_SEEN = {
    "a list": ("total = []", "total.append(loss.item())", "best = sum(total) / len(total)"),
    "a plain sum": ("total = 0", "total = total + loss.item()", "best = total"),
    "the last loss": ("best = 0", "", "if loss.item() < best:\n    best = loss.item()"),
}


@pytest.mark.parametrize("name", NOT_SEEN)
def test_what_a_training_loop_collects_is_joined_or_reported(programs, convert_text, name):
    start, step, epoch = NOT_SEEN[name]
    before, _ = programs({"start": start, "step": step, "epoch": epoch})
    report, result = convert_text(before)

    assert "gather" in result or "reduce" in result or [f for f in report.findings if f.code == "MIG114"]


ANEW = {"losses": "losses = []", "a sum": "total = 0.0"}
FILLED = {"losses": "losses.append(loss.item())", "a sum": "total += loss.item()"}
IN_ORDER = "[each for step in zip(*accelerator.gather_for_metrics([losses])) for each in step]"
JOINS = {
    "losses": f"    losses = {IN_ORDER}\n    print",
    "a sum": "    total = sum(accelerator.gather_for_metrics([total]))\n    print",
}
NOT_ANEW = {
    "by what it was": "{name} = {name}[:9]",
    "in some rounds": "if epoch:\n    {anew}",
    "unless a round is left before": "if epoch > 8:\n    continue\n{anew}",
}


@pytest.mark.parametrize("what", ANEW)
def test_what_begins_anew_at_the_end_of_each_epoch_is_joined(convert_text, programs, what):
    name, anew = ANEW[what].split(" ")[0], ANEW[what]
    holes = {"made": anew, "step": FILLED[what], "epoch": f"print(str({name}))\n{anew}"}
    _, result = convert_text(programs(holes)[0])
    assert JOINS[what] in result.replace("accelerator.print", "print")


@pytest.mark.parametrize("what", ANEW)
@pytest.mark.parametrize("end", NOT_ANEW)
def test_what_goes_on_in_some_epochs_is_not(convert_text, programs, what, end):
    name, anew = ANEW[what].split(" ")[0], ANEW[what]
    last = NOT_ANEW[end].format(name=name, anew=anew)
    holes = {"made": anew, "step": FILLED[what], "epoch": f"print(str({name}))\n{last}"}
    _, result = convert_text(programs(holes)[0])
    assert JOINS[what] not in result.replace("accelerator.print", "print")


def test_evaluating_on_the_training_loader(changed):
    body = "out = model(x)\nfound.append(out)"
    changed(
        end=(
            evaluation(body).replace("held", "loader"),
            evaluation(SHARED["lists"][1]).replace("held", "loader"),
        )
    )


def test_evaluating_on_the_training_loader_in_other_ways(changed):
    body = "total += x.sum().item()\nfound.append(model(x))"
    first = "x = accelerator.gather_for_metrics(x)\n"
    changed(
        end=(
            evaluation(body).replace("held", "loader"),
            evaluation(first + body).replace("held", "loader"),
        )
    )


def test_evaluating_on_the_training_loader_in_other_ways_is_refused(refused):
    end = evaluation('found.append((model(x["a"]), x["b"]))').replace("held", "rows")
    finding = refused("MIG114", "in rows", ["also trained on"], ready="rows = enumerate(loader)", end=end)

    assert "second DataLoader" in finding.hint


def test_evaluating_on_the_training_loader_by_parts_of_its_batches(changed):
    end = evaluation('found.append((model(x["a"]), x["b"]))').replace("held", "loader")
    changed(end=(end, end.replace("in loader:", "in accelerator.whole_batches(loader):")))


def untold(body):
    """An evaluation on the training data, in training mode and with gradients."""
    return "rows, total, found = loader, 0, []\nfor x, y in rows:\n" + textwrap.indent(body, "    ")


WITHOUT = "rows, total, found = loader, 0, []\nwith torch.no_grad():\n    for x, y in rows:\n{body}"


def test_gradients_are_turned_off_where_nothing_tells_an_evaluation_from_training(changed, programs, remark):
    first = "out = model(x)\n"
    last = "total += y.size(0)\nfound.append(out)"
    gathered = first + "out, y = accelerator.gather_for_metrics((out, y))\n" + last
    holes = {"end": (untold(first + last), WITHOUT.format(body=textwrap.indent(gathered, " " * 8)))}
    report = changed(**holes)

    remark(report, programs(holes)[0], "MIG114", "in rows", ["gradients are off"], Kind.NOTE)


def test_a_layer_in_training_mode_gets_the_whole_batch_without_gradients(changed):
    body = "found.append(model(x))"
    first = "x = accelerator.gather_for_metrics(x)\n"
    changed(
        model="model = nn.Sequential(nn.Linear(2, 1), nn.Dropout())",
        end=(untold(body), WITHOUT.format(body=textwrap.indent(first + body, " " * 8))),
    )


GRADIENTS_NEEDED = {
    "the input's own": "x.requires_grad_()\nfound.append(model(x))",
    "a penalty": "found.append(torch.autograd.grad(model(x).sum(), x))",
    "trained on afterwards": "total = total + model(x)",
    "kept in a list": "found.append(model(x))",
}


@pytest.mark.parametrize("name", GRADIENTS_NEEDED)
def test_gradients_that_are_needed_stay(refused, name):
    later = {"trained on afterwards": "total.sum()", "kept in a list": "torch.stack(found).sum()"}
    end = untold(GRADIENTS_NEEDED[name])
    if name in later:
        end += f"\nloss = {later[name]}\nfor x, y in loader:\n    (criterion(model(x), y) + loss).backward()\n"
        end += "    optimizer.step()"
    refused("MIG114", "in rows", ["gradient"], end=end)


UNLIKE = {
    "a sum": ('nn.MSELoss(reduction="sum")', "divides it by N"),
    "a sum, in the old way": ("nn.MSELoss(size_average=False)", "divides it by N"),
    "class weights": ("nn.CrossEntropyLoss(weight=None)", "weighted by class"),
    "padding": ("nn.CrossEntropyLoss(ignore_index=0)", "what is not ignored"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_losses_that_are_no_plain_means_are_reported(unchanged, programs, remark, name):
    criterion, says = UNLIKE[name]
    holes = {"made": f"criterion = {criterion}"}
    report = unchanged(**holes)

    remark(report, programs(holes)[0], "MIG114", criterion, [says], Kind.NOTE)


COMPUTES_ITS_LOSS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 3)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.head(x), y{})
"""


@pytest.mark.parametrize(("given", "is_told"), [(", ignore_index=-1", True), ("", False)])
def test_a_mean_over_a_part_that_the_model_computes_is_reported(convert_text, programs, given, is_told):
    holes = {"setup": COMPUTES_ITS_LOSS.format(given), "model": "model = Net()", "forward": "model(x, y)"}
    report, _ = convert_text(programs(holes)[0])

    told = [finding.line for finding in report.findings if "what is not ignored" in finding.message]
    assert bool(told) is is_told


HOLDS_ITS_LOSS = """
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.MSELoss({given})

    def forward(self, output, y):
        return self.base(output, y){divided}, (y != 0).sum()
"""
HELD = {
    "a sum": ('reduction="sum"', "", True),
    "a sum that is divided": ('reduction="sum"', " / len(y)", False),
    "a mean": ("", "", False),
}


@pytest.mark.parametrize("name", HELD)
def test_a_sum_that_a_loss_of_the_project_holds_is_reported(convert_text, programs, name):
    given, divided, is_told = HELD[name]
    setup = HOLDS_ITS_LOSS.format(given=given, divided=divided)
    before = programs({"setup": setup, "made": "held = Loss()", "step": "part, count = held(model(x), y)"})[0]
    report, _ = convert_text(before)

    told = [finding.line for finding in report.findings if "divides it by N" in finding.message]
    assert bool(told) is is_told


def test_losses_without_reduction_are_not(unchanged):
    report = unchanged(made='criterion = nn.MSELoss(reduction="none")')

    assert not [finding for finding in report.findings if finding.code == "MIG114"]


@pytest.mark.parametrize(("loss", "is_told"), [("weighed", True), ("nn.functional.mse_loss", False)])
def test_those_that_nothing_calls_are_not(convert_text, programs, loss, is_told):
    made = "weighed = nn.CrossEntropyLoss(weight=None)"
    report, _ = convert_text(programs({"made": made, "backward": f"loss = {loss}(model(x), y)\nloss.backward()"})[0])

    assert any("weighted by class" in finding.message for finding in report.findings) is is_told


def test_those_of_an_evaluation_are_not(convert_text, programs):
    weighed = "nn.functional.nll_loss(model(x), y, weight=None)"
    measured = (
        f"rows = DataLoader(data)\nmodel.eval()\ntotal = 0\nfor x, y in rows:\n    total += {weighed}\nprint(total)"
    )
    report, _ = convert_text(programs({"end": measured})[0])

    assert not [finding for finding in report.findings if "weighted by class" in finding.message]


FOLDED = {
    "a sum": ("loss = (output - y).pow(2).sum()", "is a sum"),
    "a masked mean": ("mask = (y > 0).float()\nloss = (output * mask).sum() / mask.sum()", "a part of the batch"),
    "a masked mean below zero": (
        "mask = (y > 0).float()\nloss = -(output * mask).sum() / mask.sum()",
        "a part of the batch",
    ),
    "a masked mean by names": (
        "count = (y > 0).sum()\ntotal = output[y > 0].sum()\nloss = loss + total / count",
        "a part of the batch",
    ),
    "a function": ("loss = folded(output, y)", "is a sum"),
    "what a mask leaves": ("loss = criterion(output[y > 0], y[y > 0])", "a part of the batch"),
    "by a name": ("mask = ~torch.isnan(y)\nloss = loss + (output - y)[mask].abs().mean()", "a part of the batch"),
    "a sum by the square of the samples": ("loss = (output - y).pow(2).sum() / x.size(0) ** 2", "more than once"),
    "one after the other": ("n = len(x)\nerror = (output - y).abs().sum()\nloss = error / n / n", "more than once"),
    "a mean by the samples": ("loss = loss + (output - y).abs().mean() / len(x)", "more than once"),
    "a loss by the samples": ("loss = nn.functional.mse_loss(output, y) / len(x)", "more than once"),
    "what has no end": ("loss = loss + (output - y)[y.isinf()].abs().mean()", "a part of the batch"),
    "selected": (
        "out, y = torch.masked_select(output, y > 0), y.masked_select(y > 0)\nloss = nn.functional.mse_loss(out, y)",
        "a part of the batch",
    ),
}
EVEN = {
    "a mean": "loss = (output - y).pow(2).mean()",
    "a sum of columns": "loss = (output - y).pow(2).sum(1).mean()",
    "divided by the samples": "loss = (output - y).pow(2).sum() / x.size(0)",
    "by the samples and the columns": "loss = (output - y).pow(2).sum() / (x.size(0) * x.size(1))",
    "by a size twice": "loss = (output - y).pow(2).sum() / x.size(0) / x.size(1) ** 2",
    "a mean by the columns": "loss = (output - y).abs().mean() / x.size(1)",
    "weights": "loss = loss + sum(p.pow(2).sum() for p in model.parameters())",
    "some columns": "loss = criterion(output[:, 0], y[..., 0])",
    "the labels' own": "rows = torch.arange(len(y))\nloss = -output[rows, y].mean()",
    "weights above zero": "loss = loss + torch.cat([p[p > 0] for p in model.parameters()]).mean()",
}
FOLDS = "def folded(a, b):\n    return 0.1 * a.mean() + torch.sum((a - b) ** 2)"


@pytest.mark.parametrize("name", FOLDED)
def test_a_loss_that_is_folded_by_hand_is_told(convert_text, programs, name):
    code, why = FOLDED[name]
    report, _ = convert_text(programs({"imports": FOLDS, "backward": f"{code}\nloss.backward()"})[0])

    assert [finding.kind for finding in report.findings if why in finding.message] == [Kind.NOTE]


def test_a_sum_that_a_scaler_scales_is_told(convert_text, programs):
    summed = "loss = (output - y).pow(2).sum()"
    holes = {"ready": "scaler = torch.amp.GradScaler()", "backward": f"{summed}\nscaler.scale(loss).backward()"}
    report, _ = convert_text(programs(holes)[0])

    assert [finding.kind for finding in report.findings if "this loss is a sum" in finding.message] == [Kind.NOTE]


OF_CLASSES = {
    "overlap": ("inter = (a * b).sum()\nreturn 1 - (2 * inter + 1) / (a.sum() + b.sum() + 1)", "a part of the batch"),
    "summed, by what is there": (
        "n = (b > 0).sum()\nreturn F.mse_loss(a, b, reduction='sum') / n",
        "a part of the batch",
    ),
    "divided in place": (
        "loss = F.mse_loss(a, b, reduction='sum')\nloss /= (b > 0).sum().clamp(min=1)\nreturn loss",
        "a part of the batch",
    ),
    "by how many there are": (
        "there = torch.nonzero(b.sum(0) != 0).squeeze(1)\nn = len(there)\nreturn torch.log(1 + a.sum(0)).sum() / n",
        "a part of the batch",
    ),
    "by how many a mask leaves": (
        "mask = b > 0\nreturn ((a - b) ** 2)[mask].sum() / b[mask].size(0)",
        "a part of the batch",
    ),
    "by how many a mask beside other indexes leaves": (
        "mask = b > 0\nb = b[mask, ...].reshape(-1)\nreturn F.mse_loss(a[mask], b, reduction='sum') / b.size(0)",
        "a part of the batch",
    ),
    "a mean of what a mask leaves": ("mask = b > 0\nreturn ((a - b) ** 2)[mask].mean()", "a part of the batch"),
    "a sum": ("return ((a - b) ** 2).sum()", "is a sum"),
    "summed, by the samples": ("return F.mse_loss(a, b, reduction='sum') / b.size(0)", None),
    "in place by the samples": ("loss = ((a - b) ** 2).sum()\nloss /= len(b)\nreturn loss", None),
    "columns": ("return ((a * b).sum(1) / (a.sum(1) + b.sum(1))).mean()", None),
    "by weights": ("return F.mse_loss(a, b) / self.weights.sum()", None),
    "by the samples, of what is picked": ("rows = torch.arange(len(b))\nreturn -a[rows, 0].sum() / len(rows)", None),
}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_losses_of_the_projects_own_classes_are_told_like_those_of_functions(convert_text, programs, name):
    body, why = OF_CLASSES[name]
    forward = textwrap.indent(f"def forward(self, a, b):\n{textwrap.indent(body, '    ')}", "    ")
    made = f"import torch.nn.functional as F\n\n\nclass Own(nn.Module):\n{forward}"
    holes = {"imports": made, "setup": "own = Own()", "backward": "loss = own(output, y)\nloss.backward()"}
    report, _ = convert_text(programs(holes)[0])

    told = [finding.message for finding in report.findings if "this loss is" in finding.message]
    assert len(told) == (why is not None)
    assert why is None or why in told[0]


CHOSEN = """
class Distance:
    def __init__(self, size_average=True):
        self.size_average = size_average

    def __call__(self, a, b):
        if self.size_average:
            return torch.mean((a - b) ** 2)
        else:
            return torch.sum((a - b) ** 2)


measure = Distance({})
"""


@pytest.mark.parametrize(("given", "is_told"), [("", False), ("True", False), ("size_average=False", True)])
def test_a_way_to_fold_that_no_run_takes_is_not_told(convert_text, programs, given, is_told):
    holes = {"imports": CHOSEN.format(given), "backward": "loss = measure(output, y)\nloss.backward()"}
    report, _ = convert_text(programs(holes)[0])

    assert bool([finding for finding in report.findings if "this loss is a sum" in finding.message]) is is_told


@pytest.mark.parametrize("name", EVEN)
def test_a_loss_that_is_a_mean_is_not(convert_text, programs, name):
    report, _ = convert_text(programs({"backward": f"{EVEN[name]}\nloss.backward()"})[0])

    assert not [finding for finding in report.findings if "this loss" in finding.message]


@pytest.mark.parametrize(
    ("epoch", "is_told"),
    [
        ("hits = abs(-1.0)\nprint(hits)", False),
        ("print(hits)\nhits = abs(-1.0)", True),
        ("hits = hits / 2\nprint(hits)", True),
    ],
    ids=["set anew", "read before", "made of itself"],
)
def test_a_name_that_is_set_anew_before_it_is_read_is_not_told(convert_text, programs, epoch, is_told):
    holes = {"step": "hits = (output > y).sum().item()\nprint(hits)", "epoch": epoch}
    report, _ = convert_text(programs(holes)[0])

    assert is_told is any("hits, read after this loop" in finding.message for finding in report.findings)


HOLDING = """
def hold(rows, put=None):
    return DataLoader(rows, collate_fn=(put or {default}))
"""


@pytest.mark.parametrize(("default", "shares"), [("default_collate", True), ("gather_columns", False)])
def test_batches_that_torch_itself_puts_together_are_shared_out(programs, convert_text, default, shares):
    made = HOLDING.format(default=default) + "held = hold(data)"
    if shares:
        made = "from torch.utils.data.dataloader import default_collate\n" + made
    else:
        made = "def gather_columns(rows):\n    return torch.stack(rows, 1)\n" + made
    holes = {"made": made, "end": evaluation("out = model(x)\ntotal += criterion(out, y).item()")}
    _, result = convert_text(programs(holes)[0])

    assert (GATHERED in result) is shares


LOADERS = """
from torch.utils.data.dataloader import default_collate
def columns(rows):
    return torch.stack([x for x, _ in rows], 1), torch.cat([y for _, y in rows])
class Loader(DataLoader):
    def __init__(self, rows, put=default_collate):
        {begun}
        {kept}
"""
PUT_TOGETHER = {
    "handed on": ("super().__init__(rows, collate_fn=columns)", "", False),
    "handed on by itself": ("super().__init__(rows, collate_fn=put)", "", True),
    "in a dictionary": ('super().__init__(**{"dataset": rows, "collate_fn": columns})', "", False),
    "of its own": ("super().__init__(rows)", "self.collate_fn = columns", False),
    "nothing": ("super().__init__(rows)", "", True),
}


@pytest.mark.parametrize("name", PUT_TOGETHER)
def test_what_a_class_of_loaders_puts_together_is_shared_out_by_torchs_rows_alone(programs, convert_text, name):
    begun, kept, shares = PUT_TOGETHER[name]
    made = f"{LOADERS.format(begun=begun, kept=kept or 'pass')}held = Loader(data)"
    holes = {"made": made, "end": evaluation("out = model(x)\ntotal += criterion(out, y).item()")}
    _, result = convert_text(programs(holes)[0])

    assert (GATHERED in result) is shares


def test_what_a_loader_is_told_later_to_put_together_is_not_shared_out(programs, convert_text):
    made = "def columns(rows):\n    return torch.stack(rows, 1)\nheld = DataLoader(data)\nheld.collate_fn = columns"
    holes = {"made": made, "end": evaluation("out = model(x)\ntotal += criterion(out, y).item()")}
    _, result = convert_text(programs(holes)[0])

    assert GATHERED not in result


STACKING = {
    "columns": ("xs, ys = tuple(zip(*rows))\nxs = torch.stack(xs, dim=0)\nreturn xs, torch.stack(ys)", True),
    "items": ("xs = [row[0] for row in rows]\nreturn torch.stack(xs), torch.tensor([row[1] for row in rows])", True),
    "another dimension": ("xs, ys = zip(*rows)\nreturn torch.stack(xs, 1), torch.stack(ys)", False),
    "one length for all": ("xs, ys = zip(*rows)\nreturn nn.utils.rnn.pad_sequence(xs), torch.stack(ys)", False),
    "a number of all": ("xs, ys = zip(*rows)\nxs = torch.stack(xs)\nreturn xs / xs.max(), torch.stack(ys)", False),
    "some of them": ("rows = rows[1:]\nxs, ys = zip(*rows)\nreturn torch.stack(xs), torch.stack(ys)", False),
    "nothing": ('"""Not yet."""', False),
}


@pytest.mark.parametrize("name", STACKING)
def test_samples_that_the_program_only_stacks_are_shared_out(programs, convert_text, name):
    body, shares = STACKING[name]
    made = f"def put(rows):\n{textwrap.indent(body, '    ')}\nheld = DataLoader(data, collate_fn=put)"
    holes = {"made": made, "end": evaluation("out = model(x)\ntotal += criterion(out, y).item()")}
    _, result = convert_text(programs(holes)[0])

    assert (GATHERED in result) is shares


TWO_LOOPS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
first, second = DataLoader(data, batch_size=4), DataLoader(data, batch_size=2)
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{begun}
for x, y in first:
    loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {added}
{between}
for x, y in second:
    loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {added}
print({shown})
"""
SUMMED = {"begun": "seen = 0", "added": "seen += loss.item()", "shown": "seen"}
LISTED = {"begun": "seen = []", "added": "seen.append(loss.item())", "shown": "sum(seen)"}


METERED = {"begun": "seen = Meter()", "added": "seen.update(loss.item(), x.size(0))", "shown": "seen.avg"}
KEPT = """
class Meter:
    def __init__(self):
        self.sum = self.count = self.avg = 0

    def update(self, value, n):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count
"""


@pytest.mark.parametrize("kind", [SUMMED, LISTED, METERED], ids=["a sum", "a list", "a meter"])
@pytest.mark.parametrize(("between", "times"), [("", 1), ("seen = {}", 2)])
def test_what_goes_on_growing_in_another_loop_is_joined_behind_the_last(convert_text, kind, between, times):
    anew = between.format(kind["begun"].rpartition(" ")[2])
    source = TWO_LOOPS.format(**kind, between=anew and f"print({kind['shown']})\n{anew}")
    _, result = convert_text(source.replace("\ndevice", f"{KEPT}\n\ndevice", 1))

    joins = [m.start() for m in re.finditer(r"accelerator\.(gather_for_metrics|reduce)\(", result)]
    assert len(joins) == times
    assert joins[-1] > result.index("in second")
