import pytest

from migrate.report.model import Kind

IMPORTS = {"imports": "from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau, StepLR"}

NOT_PREPARED = {
    "per epoch": {"ready": "schedule = StepLR(optimizer, 1)", "epoch": "schedule.step()"},
    "per batch, horizon after prepare": {
        "ready": "schedule = CosineAnnealingLR(optimizer, 2 * len(loader))",
        "step": "schedule.step()",
    },
    "per batch, horizon after prepare under a name": {
        "ready": "steps = 2 * len(loader)\nschedule = CosineAnnealingLR(optimizer, steps)",
        "step": "schedule.step()",
    },
    "per batch, horizon after prepare in a dict": {
        "ready": "settings = dict(epochs=2)\n"
        'settings["steps"] = len(loader)\n'
        'schedule = CosineAnnealingLR(optimizer, settings["epochs"] * settings["steps"])',
        "step": "schedule.step()",
    },
    "per batch, horizon after prepare in a dict that comes from a file": {
        "ready": "import json\n"
        "def cosine(optimizer, settings):\n"
        '    return CosineAnnealingLR(optimizer, settings["epochs"] * settings["steps"])\n'
        """settings = json.loads('{"optim": {"epochs": 2}}')["optim"]\n"""
        'settings["steps"] = len(loader)\n'
        "schedule = cosine(optimizer, settings)",
        "step": "schedule.step()",
    },
    "on a metric": {"ready": "schedule = ReduceLROnPlateau(optimizer)", "epoch": "schedule.step(epoch / 2)"},
    "never stepped": {"ready": "schedule = StepLR(optimizer, 1)"},
}


@pytest.mark.parametrize("name", NOT_PREPARED)
def test_unchanged(unchanged, name):
    report = unchanged(**IMPORTS, **NOT_PREPARED[name])

    assert not [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG118"]


def test_an_item_of_another_key_is_no_horizon(changed):
    settings = 'settings = {}\nsettings["steps"] = 100\nsettings["batches"] = len(loader)\n'
    made = f"{settings}schedule = CosineAnnealingLR(optimizer, settings['steps'])"
    report = changed(**IMPORTS, prepare=f"{made}\n{PREPARE}", ready=(made, ""), step="schedule.step()")

    assert [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG118"]


PREPARE = "loader, model, optimizer, schedule = accelerator.prepare(\n    loader, model, optimizer, schedule\n)"
BEFORE = {
    "made": "steps = 2 * len(loader)",
    "prepare": f"schedule = CosineAnnealingLR(optimizer, steps)\n{PREPARE}",
    "ready": ("schedule = CosineAnnealingLR(optimizer, steps)", ""),
    "step": "schedule.step()",
}
ABSOLUTE = {
    "prepare": f"schedule = CosineAnnealingLR(optimizer, 100)\n{PREPARE}",
    "ready": ("schedule = CosineAnnealingLR(optimizer, 100)", ""),
    "step": "schedule.step()",
}


def test_per_batch_with_a_horizon_measured_before_prepare(changed):
    report = changed(**IMPORTS, **BEFORE)

    assert not [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG118"]


def test_per_batch_over_a_number_of_steps_is_reported(changed, programs, remark):
    report = changed(**IMPORTS, **ABSOLUTE)

    remark(
        report,
        programs({**IMPORTS, **ABSOLUTE})[0],
        "MIG118",
        "schedule = CosineAnnealingLR",
        ["schedule is stepped per batch", "prepared"],
        Kind.NOTE,
    )


def test_left_out_the_program_is_left(programs, convert_text):
    before, _ = programs({**IMPORTS, **ABSOLUTE})
    _, result = convert_text(before, ignore=("MIG118",))

    assert result == before


N = "accelerator.num_processes"
ADJUST = """
def adjust(optimizer, step, total):
    lr = 0.1 * (1 - step / total) ** 0.9
    for group in optimizer.param_groups:
        group["lr"] = lr
"""
NOAM = """
def rate(step):
    if step < 100:
        return step / 100
    return (step + 1) ** -0.5
"""
RESTARTS = "from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts"
NUMBERED = {"over": "enumerate(loader)", "target": "i, (x, y)"}
COUNTED = {"made": "step = 0"}
SET = 'for group in optimizer.param_groups:\n    group["lr"] = lr'

ANEW = "    optimizer = optim.SGD(model.parameters(), lr=rates[stage])"
PREPARED = "    optimizer = accelerator.prepare(optimizer)"

SCALED = {
    "a function, a plain horizon": {
        **COUNTED,
        "setup": ADJUST,
        "batch": ("step += 1\nadjust(optimizer, step, 100)", f"step += 1\nadjust(optimizer, step * {N}, 100)"),
    },
    "a function that gives the rate": {
        **COUNTED,
        "setup": NOAM,
        "batch": (f"lr = rate(step)\n{SET}", f"lr = rate(step * {N})\n{SET}"),
        "step": "step += 1",
    },
    "a function that asks whether it is given one": {
        **COUNTED,
        "setup": NOAM.replace("step):", "step=None):\n    if step is None:\n        step = 0"),
        "batch": (f"lr = rate(step)\n{SET}", f"lr = rate(step * {N})\n{SET}"),
        "step": "step += 1",
    },
    "a horizon measured before prepare": {
        **NUMBERED,
        "made": "total = 2 * len(loader)",
        "batch": (
            f"lr = 0.1 - 0.1 * (epoch * len(loader) + i) / total\n{SET}",
            f"lr = 0.1 - 0.1 * ((epoch * len(loader) + i) * {N}) / total\n{SET}",
        ),
    },
    "a warm-up by condition": {
        **NUMBERED,
        "batch": (
            f"done = epoch * len(loader) + i\nlr = 0.1\nif done < 10:\n    lr *= done / 10\n{SET}",
            f"done = epoch * len(loader) + i\nlr = 0.1\nif done * {N} < 10:\n    lr *= done * {N} / 10\n{SET}",
        ),
    },
    "edges that are numbers of batches": {
        **NUMBERED,
        "made": "edges = (10, 20)",
        "batch": (
            f"lr = 0.1 ** sum(epoch * len(loader) + i >= edge for edge in edges)\n{SET}",
            f"lr = 0.1 ** sum((epoch * len(loader) + i) * {N} >= edge for edge in edges)\n{SET}",
        ),
    },
    "stages that a count comes to": {
        "made": "step, stage, edges, rates = 0, 0, [10, 20, 99], [0.1, 0.01, 0.001]",
        "batch": (
            f"step += 1\nif step > edges[stage]:\n    stage += 1\nlr = rates[stage]\n{SET}",
            f"step += 1\nif step * {N} > edges[stage]:\n    stage += 1\nlr = rates[stage]\n{SET}",
        ),
    },
    "an optimizer with another rate": {
        "made": "step, stage, edges, rates = 0, 0, [10, 20, 99], [0.1, 0.01, 0.001]",
        "step": (
            f"step += 1\nif step > edges[stage]:\n    stage += 1\n{ANEW}",
            f"step += 1\nif step * {N} > edges[stage]:\n    stage += 1\n{ANEW}\n\n{PREPARED}",
        ),
    },
    "a part of an epoch, measured before prepare": {
        **NUMBERED,
        "imports": RESTARTS,
        "made": "iters = len(loader)",
        "ready": "schedule = CosineAnnealingWarmRestarts(optimizer, 2)",
        "step": ("schedule.step(epoch + i / iters)", f"schedule.step(epoch + i * {N} / iters)"),
    },
}


@pytest.mark.parametrize("name", SCALED)
def test_a_count_is_multiplied(changed, name):
    changed(**SCALED[name])


def test_a_schedule_that_is_only_drawn_counts_what_it_counts(changed):
    drawn = "for step in range(100):\n    curve.append(rate(step))"
    changed(
        setup=NOAM,
        made=f"curve = []\n{drawn}\nstep = 0",
        batch=(f"lr = rate(step)\n{SET}", f"lr = rate(step * {N})\n{SET}"),
        step="step += 1",
    )


#: Counts the groups of parameters, and begins anew at each step.
BY_GROUP = """\
def adjust(optimizer, done, rates):
    k = 0
    for group in optimizer.param_groups:
        group['lr'] = rates[k] * (1 + done)
        k += 1
"""
#: Edges that are measured after prepare, and how a rate goes by the first of them.
EDGES = "edges = [len(loader) * each for each in (1, 2)]"
BY_EDGES = {
    "a loop": "lr = 0.001\nfor edge in edges:\n    if done < edge:\n        lr = 0.1",
    "pairs": "lr = 0.001\nfor edge, rate in zip(edges, (0.1, 0.01)):\n    if done < edge:\n        lr = rate",
    "numbered": "lr = 0.001\nfor turn, edge in enumerate(edges):\n    if done < edge:\n        lr = 0.1",
    "a comprehension": "lr = 0.01\nif any([done < edge for edge in edges]):\n    lr = 0.1",
    "a sum": "lr = 0.1 ** sum(done >= edge for edge in sorted(edges))",
    "one of them": "lr = 0.1 if done < edges[0] else 0.01",
}

RIGHT_AS_IT_IS = {
    **{
        f"edges after prepare, by {name}": {
            **NUMBERED,
            "ready": EDGES,
            "batch": f"done = epoch * len(loader) + i\n{by}\n{SET}",
        }
        for name, by in BY_EDGES.items()
    },
    "a part of an epoch": {
        **NUMBERED,
        "imports": RESTARTS,
        "ready": "schedule = CosineAnnealingWarmRestarts(optimizer, 2)\niters = len(loader)",
        "step": "schedule.step(epoch + i / iters)",
    },
    "a horizon measured after prepare": {
        **NUMBERED,
        "ready": "total = 2 * len(loader)",
        "batch": f"lr = 0.1 * (1 - (epoch * len(loader) + i) / total) ** 0.9\n{SET}",
    },
    "a list as long as the training": {
        **NUMBERED,
        "ready": "rates = torch.linspace(0.1, 0, 2 * len(loader)).tolist()",
        "batch": f"lr = rates[epoch * len(loader) + i]\n{SET}",
    },
    "the horizon of a function": {
        **NUMBERED,
        "setup": ADJUST,
        "batch": "adjust(optimizer, epoch * len(loader) + i, 2 * len(loader))",
    },
    "by epochs": {"setup": ADJUST, "start": "adjust(optimizer, epoch, 10)"},
    "by epochs, in each batch": {"setup": ADJUST, "batch": "adjust(optimizer, epoch, 10)"},
    "told the epoch": {**IMPORTS, "ready": "schedule = StepLR(optimizer, 1)", "epoch": "schedule.step(epoch)"},
    "a function of the horizon": {
        **IMPORTS,
        "imports": "from torch.optim.lr_scheduler import LambdaLR",
        "ready": "total = 2 * len(loader)\ndef fall(step):\n    return 1 - step / total\n"
        "schedule = LambdaLR(optimizer, fall)",
        "step": "schedule.step()",
    },
    "told the steps of a horizon in steps": {
        **NUMBERED,
        "imports": "from torch.optim.lr_scheduler import LambdaLR",
        "ready": "n = len(loader)\nschedule = LambdaLR(optimizer, lambda it: 1 - it / (2 * n))",
        "step": "schedule.step(epoch * n + i)",
    },
    "a scheduler of a library": {
        **NUMBERED,
        "imports": "from timm.scheduler import CosineLRScheduler",
        "ready": "n = len(loader)\nschedule = CosineLRScheduler(optimizer, t_initial=2 * n, t_in_epochs=False)",
        "step": "schedule.step_update(epoch * n + i)",
    },
    "a number of each group, in a function": {
        **NUMBERED,
        "setup": BY_GROUP,
        "ready": "rates = [0.1, 0.01]",
        "batch": "adjust(optimizer, epoch + i / len(loader), rates)",
    },
    "a number of each group, in the loop": {
        "ready": "rates = [0.1, 0.01]",
        "batch": "k = 0\nfor group in optimizer.param_groups:\n    group['lr'] = rates[k]\n    k += 1",
    },
    "the end of the training": {
        **COUNTED,
        "setup": ADJUST,
        "batch": "adjust(optimizer, step, 100)",
        "step": "step += 1\nif step == 100:\n    break",
    },
}


@pytest.mark.parametrize("name", RIGHT_AS_IT_IS)
def test_a_count_that_stays(unchanged, name):
    unchanged(**RIGHT_AS_IT_IS[name])


@pytest.mark.parametrize("end", ["break", "exit()", "quit()"])
def test_a_schedule_over_the_steps_of_the_training_is_not_prepared(unchanged, end):
    report = unchanged(
        **IMPORTS,
        made="done = 0",
        ready="schedule = CosineAnnealingLR(optimizer, 100)",
        step=f"schedule.step()\ndone += 1\nif done >= 100:\n    {end}",
    )

    (note,) = [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG118"]
    assert "the steps after which the training ends" in note.message


@pytest.mark.parametrize(
    ("total", "told"),
    [("2 * len(loader)", True), ("limit or 2 * len(loader)", False)],
)
def test_a_schedule_over_a_length_where_the_steps_end_the_training_is_told(convert_text, programs, total, told):
    """On N processes it has run down after one N-th of the training, and OneCycleLR ends with an error."""
    before, _ = programs({
        **IMPORTS,
        "made": "done, limit = 0, 100",
        "ready": f"schedule = CosineAnnealingLR(optimizer, {total})",
        "step": "schedule.step()\ndone += 1\nif done >= limit:\n    break",
    })  # fmt: skip
    report, _ = convert_text(before)

    notes = [finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG118"]
    assert any("is made for the length of a loader" in n and "`done >= limit`" in n for n in notes) is told, notes


MADE_IN_A_FUNCTION = """
import torch
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, epoch):
    {epoch}
    for i, (x, y) in enumerate(loader):
        {batch}
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        schedule.step()


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train(model, loader, optimizer, epoch)
"""
WARM = "schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: min(1.0, (epoch * len(loader) + i) / 100))"
CYCLE = "schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=len(loader))"


def test_what_a_function_makes_for_each_batch_goes_by_what_it_is_made_with(refused_text):
    refused_text(MADE_IN_A_FUNCTION.format(epoch="", batch=WARM), "MIG118", "schedule = torch.optim")


def test_what_a_function_makes_for_each_epoch_is_stepped_as_often_as_that_has_steps(convert_text):
    report, _ = convert_text(MADE_IN_A_FUNCTION.format(epoch=CYCLE, batch=""))

    assert not report.of(Kind.LEFT)


BY_HAND = """
import torch
from torch import nn, optim
{seed}
points = torch.ones(100, 2)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
schedule = optim.lr_scheduler.StepLR(optimizer, 10)
for step in range(50):
    x = points[torch.randint(100, (8,))]
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    optimizer.step()
    schedule.step()
"""


@pytest.mark.parametrize(("seed", "notes"), [("torch.manual_seed(1)", 0), ("", 1)])  # unseeded, each draws its own
def test_where_every_process_takes_the_same_batches_a_step_is_what_it_was(convert_text, seed, notes):
    report, result = convert_text(BY_HAND.format(seed=seed))

    assert "accelerator.backward(loss)" in result
    assert [finding.code for finding in report.of(Kind.NOTE)].count("MIG118") == notes


TAKEN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm
loader = DataLoader(TensorDataset(torch.ones(64, 2)), batch_size=8)
batches = iter(loader)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
schedule = optim.lr_scheduler.StepLR(optimizer, 10)
steps = {steps}
{bar}
for step in {over}:
    for group in optimizer.param_groups:
        group["weight_decay"] = 0.1 / (1.0 + 0.01 * step)
    (x,) = next(batches)
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    schedule.step()
"""


@pytest.mark.parametrize(("bar", "over"), [("", "tqdm(range(steps))"), ("bar = tqdm(range(steps))", "bar")])
def test_a_number_of_steps_below_a_progress_bar_takes_as_many_on_several_processes(convert_text, bar, over):
    _, result = convert_text(TAKEN.format(steps=5, bar=bar, over=over))

    assert "\nmodel, optimizer = accelerator.prepare(model, optimizer)\n" in result
    assert 'group["weight_decay"] = 0.1 / (1.0 + 0.01 * step)\n' in result


def test_a_rate_that_is_set_by_the_steps_after_which_the_training_ends_is_told(convert_text):
    report, _ = convert_text(TAKEN.format(steps=5, bar="", over="tqdm(range(steps))"))

    told = [finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG118"]
    assert any("the rate that is set by `0.1 / (1.0 + 0.01 * step)` goes by the steps" in each for each in told), told


def test_a_number_of_steps_that_the_data_give_does_not(refused_text):
    source = TAKEN.format(steps="len(loader)", bar="", over="tqdm(range(steps))")
    refused_text(source, "MIG118", "0.01 * step", ["divides by a count of steps"])


EITHER = """
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0
    def update(self, value, n):
        self.total += value * n
        self.count += n
    @property
    def mean(self):
        return self.total / self.count
data = TensorDataset(torch.ones(16, 2), torch.ones(16, 1))
loader, tests = DataLoader(data, batch_size=4), DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
if sys.argv[1] == "plateau":
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer)
else:
    schedule = optim.lr_scheduler.StepLR(optimizer, 1)
def train():
    meters = {{"loss": Meter()}}
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        meters["loss"].update(loss.item(), len(x))
    return {{"loss": meters["loss"].mean}}
def validate():
    meters = {{"loss": Meter()}}
    model.eval()
    with torch.no_grad():
        for x, y in tests:
            meters["loss"].update((model(x) - y).pow(2).mean().item(), len(x))
    model.train()
    return {{"loss": meters["loss"].mean}}
for epoch in range(2):
    trained, validated = train(), validate()
    if sys.argv[1] == "plateau":
        schedule.step({told}["loss"])
    else:
        schedule.step()
"""


def test_a_schedule_that_may_be_told_an_evaluation(convert_text):
    _, result = convert_text(EITHER.format(told="validated"))

    assert "prepare(loader, tests, model, optimizer)" in result
    assert 'schedule.step(validated["loss"])' in result


def test_a_schedule_that_may_be_told_what_was_trained_on(convert_text):
    _, result = convert_text(EITHER.format(told="trained"))

    assert 'meters["loss"].total, meters["loss"].count = accelerator.reduce(' in result


FACTOR = 'for group in optimizer.param_groups:\n    group["lr"] *= 0.9'
EVALUATE = """
tests = DataLoader(data, batch_size=4)
def test():
    right = 0
    model.eval()
    with torch.no_grad():
        for x, y in tests:
            right += (model(x) == y).sum().item()
    model.train()
    return right
"""
TURN = {"imports": IMPORTS["imports"], "made": "done = 0", "ready": "schedule = ReduceLROnPlateau(optimizer)"}
TOLD = "done += 1\nif done % 2 == 0:\n    schedule.step({})"


def test_a_plateau_that_is_told_an_evaluation_between_batches_is_reported(convert_text, programs, remark):
    holes = TURN | {"made": TURN["made"] + EVALUATE}
    for step in (
        TOLD.format("test()"),
        TOLD.replace("    schedule", "    right = test()\n    schedule").format("right"),
    ):
        source = programs(holes | {"step": step})[0]
        report, result = convert_text(source)

        assert "accelerator.backward" in result
        remark(report, source, "MIG118", "schedule = ", ["schedule is stepped between batches"], Kind.NOTE)


def test_a_plateau_that_is_told_something_else_waits_for_a_batch(refused):
    refused("MIG118", "schedule.step(", **TURN, step=TOLD.format("1 / done"))


TWO_KINDS = "warm = input()\nschedule = CosineAnnealingLR(optimizer, 100) if warm else StepLR(optimizer, 1)"
BY_EPOCH = "schedule.step() if not warm else None"
LEFT = {
    "a factor at every batch": ("MIG118", '["lr"] *=', {"step": FACTOR}),
    "a factor at certain batches": (
        "MIG118",
        "if step %",
        {
            **COUNTED,
            "step": 'step += 1\nif step % 10 == 0:\n    for g in optimizer.param_groups:\n        g["lr"] *= 0.9',
        },
    ),
    "an optimizer that is made anew at certain batches": (
        "MIG118",
        "if step %",
        {
            **COUNTED,
            "step": "step += 1\nif step % 10 == 0:\n    optimizer = optim.SGD(model.parameters(), lr=1 / step)",
        },
    ),
    "a scheduler that each batch makes anew": (
        "MIG118",
        "schedule = LambdaLR",
        {
            "imports": "from torch.optim.lr_scheduler import LambdaLR",
            **COUNTED,
            "batch": "schedule = LambdaLR(optimizer, lambda _: min(1.0, (step + 1) / 100))",
            "step": "schedule.step()\nstep += 1",
        },
    ),
    "both kinds of numbers": (
        "MIG118",
        "adjust(optimizer, done",
        {
            **NUMBERED,
            "setup": ADJUST.replace("lr = 0.1", "lr = min(step, 10)"),
            "batch": "done = epoch * len(loader) + i\nadjust(optimizer, done, 2 * len(loader))",
        },
    ),
    "a plateau of one process": (
        "MIG122",
        "schedule.step(",
        {**IMPORTS, "ready": "schedule = ReduceLROnPlateau(optimizer)", "step": "schedule.step(loss.item())"},
    ),
    "per batch and per epoch": (
        "MIG118",
        "schedule.step() if",
        {**IMPORTS, "ready": TWO_KINDS, "step": "if warm:\n    schedule.step()", "epoch": BY_EPOCH},
    ),
    "per batch and after an evaluation": (
        "MIG118",
        "schedule.step(epoch)",
        {**IMPORTS, "ready": TWO_KINDS, "step": "if warm:\n    schedule.step()", "epoch": "schedule.step(epoch)"},
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_refused(refused, name):
    code, at, holes = LEFT[name]
    refused(code, at, **holes)


MADE_UP = "schedule = CosineAnnealingLR(optimizer, 100)\n{}for _ in range(10):\n    schedule.step()"


def test_steps_that_make_up_for_a_training_before(changed):
    changed(
        **IMPORTS,
        prepare=MADE_UP.format(f"{PREPARE}\n"),
        ready=(MADE_UP.format(""), ""),
        step="schedule.step()",
    )


def test_steps_of_another_kind_of_scheduler(changed):
    changed(**IMPORTS, **ABSOLUTE, epoch="if isinstance(schedule, StepLR):\n    schedule.step()")


def test_kinds_of_schedulers_with_names_of_their_own(changed):
    by_epoch = "slow = StepLR(optimizer, 1)"
    before, _ = ABSOLUTE["ready"]
    changed(**IMPORTS, **{**ABSOLUTE, "ready": (f"{before}\n{by_epoch}", by_epoch)}, epoch="slow.step()")


BY_COUNT = "done += 1\nfor group in optimizer.param_groups:\n    {}"
#: A rate by a count of batches that is refused, where and why, and the scheduler that does the same.
WAYS_OUT = {
    "a certain batch": (
        "if done % 9 == 0:\n        group['lr'] *= 0.5",
        ("if done", "waits for a certain batch"),
        "StepLR(optimizer, 9)",
    ),
    "a list of batches": (
        "if done in [5, 9]:\n        group['lr'] *= 0.1",
        ("if done", "waits for a certain batch"),
        "MultiStepLR(optimizer, [5, 9])",
    ),
    "every batch": (
        "group['lr'] *= 0.9",
        ("group['lr']", "by a step of its own at every batch"),
        "ExponentialLR(optimizer, 0.9)",
    ),
    "a share": (
        "group['lr'] = 0.1 / done",
        ("group['lr']", "divides by a count of steps"),
        "LambdaLR(optimizer, lambda n: 1 / (n + 1))",
    ),
}


@pytest.mark.parametrize("name", WAYS_OUT)
def test_the_way_out_of_a_count_leads_out(refused, convert_text, programs, name):
    sets, (at, why), scheduler = WAYS_OUT[name]
    finding = refused("MIG118", at, mentions=[why], setup="done = 0", step=BY_COUNT.format(sets))
    before, _ = programs({"ready": f"schedule = optim.lr_scheduler.{scheduler}", "step": "schedule.step()"})
    _, result = convert_text(before)

    assert "by a scheduler of PyTorch that is stepped per batch" in finding.hint
    assert "optimizer, schedule = accelerator.prepare(" in result


AT_RATE = "for group in optimizer.param_groups:\n    group['lr'] = rate"
OWN_STEPS = {
    "what it was": "for group in optimizer.param_groups:\n    group['lr'] = group['lr'] * 0.9",
    "a name": f"rate = rate * 0.9\n{AT_RATE}",
    "a name that is lowered": f"rate -= 0.001\n{AT_RATE}",
    "a name with another one": f"rate = max(0.0, rate - 0.001)\nnow = rate\n{AT_RATE.replace('rate', 'now')}",
    "an attribute": f"optimizer.rate = max(0.0, optimizer.rate - 0.001)\n{AT_RATE.replace('rate', 'optimizer.rate')}",
    "from a batch on": f"done += 1\nif done > 5:\n    rate *= 0.9\n{AT_RATE}",
    "what is set": "for group in optimizer.param_groups:\n    now = group['lr']\n    now *= 0.9\n    group['lr'] = now",
    "what is handed on": "rate = optimizer.rate\nrate *= 0.9\noptimizer.rate = rate\n" + AT_RATE,
}


@pytest.mark.parametrize("name", OWN_STEPS)
def test_a_rate_that_goes_on_from_what_it_was_a_batch_before(refused, name):
    setup = "rate = optimizer.rate = 0.1\ndone = 0"
    refused("MIG118", "group['lr']", mentions=["a step of its own at every batch"], setup=setup, step=OWN_STEPS[name])


def test_a_rate_that_is_lowered_once_an_epoch_is_what_it_was(convert_text, programs):
    before, _ = programs({"setup": "rate = 0.1", "epoch": f"rate = rate * 0.9\n{AT_RATE}"})
    report, _ = convert_text(before)
    assert all(loop.converts for loop in report.of(Kind.LOOP))


RESUMED = """\
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def adjust(optimizer, step):
    for group in optimizer.param_groups:
        group["lr"] = {rate}


restored = argparse.ArgumentParser().parse_args().restored
loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 1)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for i, (x, y) in enumerate(loader):
        step = i + restored + epoch * len(loader) + 1
        adjust(optimizer, step)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if {test}:
            torch.save(model.state_dict(), "net.pt")
"""
FALLING = "0.1 * min(step * 4000**-1.5, step**-0.5)"
TURNS = {"step % 9 == 0": "-step % 9", "(step + 1) % 9 == 0": "-(step + 1) % 9"}


@pytest.mark.parametrize("test", TURNS)
def test_a_turn_by_a_sum_with_a_multiplied_count_comes_when_one_of_its_batches_does(convert_text, test):
    report, result = convert_text(RESUMED.format(rate=FALLING, test=test))

    assert "step = i * accelerator.num_processes + restored + epoch * (len(loader) * " in result
    assert f"if {TURNS[test]} // accelerator.num_processes == 0:" in result
    assert any("one of the N batches of a step" in finding.message for finding in report.of(Kind.NOTE))


PASSED_BY = {
    "by one step": (FALLING, "step == 50", "if step == 50"),
    "by a list of steps": (FALLING, "step in (50, 90)", "if step in"),
    "by what is left": (FALLING, "not step % 9", "if not step"),
    "where the rate is set": ("0.1 if step == 50 else 0.2", "step % 9 == 0", "0.1 if step == 50"),
}


@pytest.mark.parametrize("name", PASSED_BY)
def test_a_sum_with_a_multiplied_count_may_pass_the_step_that_is_waited_for(refused_text, name):
    rate, test, at = PASSED_BY[name]
    refused_text(RESUMED.format(rate=rate, test=test), "MIG118", at, ["may pass it"])


DECAYED = """\
def adjust(optimizer, done):
    rate = 0.1 * min(1.0, done)
    rate *= 1 - done / 10
    for group in optimizer.param_groups:
        group['lr'] = rate
"""
AFRESH = {
    "in a function": (DECAYED, "adjust(optimizer, epoch + i / len(loader))"),
    "in the loop": ("", f"rate = 0.1 * min(1.0, i / len(loader))\nrate = rate * 0.5\n{AT_RATE}"),
}


@pytest.mark.parametrize("name", AFRESH)
def test_a_rate_that_begins_anew_at_every_batch_does_not_go_on(convert_text, programs, name):
    setup, batch = AFRESH[name]
    before, _ = programs({**NUMBERED, "setup": setup, "batch": batch})
    report, result = convert_text(before)
    assert all(loop.converts for loop in report.of(Kind.LOOP))
    assert batch.splitlines()[0] in result


def test_a_rate_that_a_function_is_handed_and_gives_back_goes_on(refused):
    back = DECAYED.replace("done):", "rate):").replace("    rate = 0.1 * min(1.0, done)\n", "")
    setup = f"{back.replace('1 - done / 10', '0.9')}    return rate\n\n\nrate = 0.1"
    mentions = ["a step of its own at every batch"]
    refused("MIG118", "group['lr']", mentions=mentions, setup=setup, step="rate = adjust(optimizer, rate)")


BY_LOSS = "for group in optimizer.param_groups:\n    group['lr'] = {}"


def test_a_rate_by_the_loss_of_a_step_and_its_way_out(refused, convert_text, programs):
    refused("MIG122", "group['lr']", mentions=["0.1 * loss.item()"], step=BY_LOSS.format("0.1 * loss.item()"))
    chosen = f"rate = 0.1 if loss.item() > 1 else 0.01\n{BY_LOSS.format('rate')}"
    finding = refused("MIG122", "group['lr']", mentions=["the rate is set by `rate`"], step=chosen)
    assert "a number of the whole epoch, after the loop" in finding.hint

    holes = {"start": "total = 0.0", "step": "total += loss.item()", "epoch": BY_LOSS.format("total / len(loader)")}
    _, result = convert_text(programs(holes)[0])

    assert "    total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes\n" in result


BY_A_GLOBAL = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

steps = 0


def rate({name}):
    return 0.1 * 40.0**0.5 * min(({name} + 1) * 40.0**-1.5, ({name} + 1) ** -0.5)


def train(model, loader, optimizer):
    global steps
    for epoch in range(3):
        for x, y in loader:
            for group in optimizer.param_groups:
                group["lr"] = rate(steps)
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
            steps += 1


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
train(model, loader, optimizer)
"""


@pytest.mark.parametrize("name", ["step", "steps"])
def test_a_parameter_is_not_the_global_of_its_name(convert_text, name):
    _, result = convert_text(BY_A_GLOBAL.format(name=name))

    assert "rate(steps * accelerator.num_processes)" in result
