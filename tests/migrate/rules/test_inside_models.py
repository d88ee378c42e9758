"""What models and losses of a program for several processes sum up over these in each step of their training."""

import textwrap

import pytest

from migrate.report.model import Kind

PROGRAM = """\
import copy
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def world_size():
    return dist.get_world_size() if dist.is_initialized() else 1


{helper}


class Centred(nn.Module):
    def __init__(self, momentum=0.9):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("center", torch.zeros(1, 1))

    def forward(self, own, other):
        loss = (own - self.center).pow(2).mean() + other.mean()
        self.follow(other)
        return loss

    @torch.no_grad()
    def follow(self, other):
        {sum}
        self.center = self.center * self.momentum + mean * (1 - self.momentum)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.ones(32, 4))
    loader = DataLoader(data, 4, sampler=DistributedSampler(data))
    student, teacher = nn.Linear(4, 1), nn.Linear(4, 1)
    student = nn.parallel.DistributedDataParallel(student)
    measure = {made}
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for (x,) in loader:
            loss = measure(student(x), teacher(x).detach())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {epoch}


if __name__ == "__main__":
    main()
"""
SUMMED = """\
mean = torch.sum(other, dim=0, keepdim=True)
dist.all_reduce(mean)
mean = mean / (len(other) * dist.get_world_size())
"""


def source(**holes):
    holes = {"helper": "", "sum": SUMMED, "made": "Centred()", "epoch": "", **holes}
    lines = []
    for line in PROGRAM.splitlines():
        hole, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        if hole.startswith("{") and hole.endswith("}"):
            lines += textwrap.indent(holes[hole[1:-1]], indent).splitlines()
        else:
            lines.append(line.replace("{made}", holes["made"]))
    return "\n".join(lines) + "\n"


#: What stands in the loss, and what becomes of it.
STAYING = {
    "a name of its own": (
        SUMMED,
        """\
        mean = torch.sum(other, dim=0, keepdim=True)
        mean = self.accelerator.reduce(mean, reduction="sum")
        mean = mean / (len(other) * self.accelerator.num_processes)
        """,
    ),
    "the mean of all": (
        "mean = other.mean(0)\ndist.all_reduce(mean, op=dist.ReduceOp.AVG)",
        """\
        mean = other.mean(0)
        mean = self.accelerator.reduce(mean, reduction="mean")
        """,
    ),
    "a tensor with other names": (
        "mean = other[0]\ndist.all_reduce(mean)\nmean = mean / world_size()",
        """\
        mean = other[0]
        mean.copy_(self.accelerator.reduce(mean, reduction="sum"))
        mean = mean / self.accelerator.num_processes
        """,
    ),
    "a tensor that was shown around": (
        "mean = other.sum(0)\nkept = mean\ndist.all_reduce(mean)",
        """\
        mean = other.sum(0)
        kept = mean
        mean.copy_(self.accelerator.reduce(mean, reduction="sum"))
        """,
    ),
    "an attribute": (
        "mean = other.sum(0)\ndist.all_reduce(self.center)",
        """\
        mean = other.sum(0)
        self.center.copy_(self.accelerator.reduce(self.center, reduction="sum"))
        """,
    ),
    "a branch on several processes": (
        "mean = other.mean(0)\nif world_size() > 1:\n    dist.all_reduce(mean)\n    mean = mean / world_size()",
        """\
        mean = other.mean(0)
        if self.accelerator.num_processes > 1:
            mean = self.accelerator.reduce(mean, reduction="sum")
            mean = mean / self.accelerator.num_processes
        """,
    ),
    "a branch that only sums up": (
        "mean = other.mean(0)\nif dist.is_initialized():\n    dist.all_reduce(mean)",
        """\
        mean = other.mean(0)
        mean = self.accelerator.reduce(mean, reduction="sum")
        """,
    ),
}


@pytest.mark.parametrize("case", STAYING)
def test_what_a_loss_sums_up_stays(convert_text, case):
    before, after = STAYING[case]
    report, result = convert_text(source(sum=before))
    assert [f.converts for f in report.findings if f.kind is Kind.LOOP] == [True]
    assert textwrap.indent(textwrap.dedent(after), " " * 8) in result
    assert "def __init__(self, accelerator, momentum=0.9):" in result or "def __init__(self, momentum=0.9, a" in result
    assert "super().__init__()\n        self.accelerator = accelerator\n" in result
    assert "measure = Centred(accelerator)" in result
    assert "dist.all_reduce" not in result


def test_a_function_that_a_loss_calls_is_given_the_accelerator(convert_text):
    helper = """\
def reduced(tensor):
    if world_size() == 1:
        return tensor
    dist.all_reduce(tensor)
    return tensor
"""
    _, result = convert_text(source(helper=helper, sum="mean = reduced(other.sum(0)) / (len(other) * world_size())"))
    assert "mean = reduced(other.sum(0), self.accelerator) / (len(other) * self.accelerator.num_processes)" in result
    assert 'tensor.copy_(accelerator.reduce(tensor, reduction="sum"))' in result
    assert "if accelerator.num_processes == 1:" in result


SHARES = """\
@torch.no_grad()
def shares(scores):
    whole = torch.sum(scores.exp())
    dist.all_reduce(whole)
    return scores.exp() / whole
"""


def test_what_comes_to_the_loss_stays_outside_of_models_too(convert_text):
    text = source(helper=SHARES, sum="mean = other.mean(0)").replace(
        "loss = measure(student(x), teacher(x).detach())",
        "own = student(x)\n            weights = shares(own)\n            loss = (own * weights).sum()",
    )
    _, result = convert_text(text)
    assert 'whole = accelerator.reduce(whole, reduction="sum")' in result
    assert "weights = shares(own, accelerator)" in result


def test_what_each_step_shows_stays_outside_of_models_too(convert_text):
    text = (
        source(helper=SHARES, sum="mean = other.mean(0)")
        .replace(
            "            optimizer.zero_grad()",
            "            shown = shares(loss.detach())\n            optimizer.zero_grad()",
        )
        .replace("            optimizer.step()", "            optimizer.step()\n            print(shown)")
    )
    _, result = convert_text(text)
    assert 'whole = accelerator.reduce(whole, reduction="sum")' in result
    assert "shown = shares(loss.detach(), accelerator)" in result


UNUSED = """\
class Other(nn.Module):
    def forward(self, x):
        x = x * 2
        dist.all_reduce(x)
        return x
"""


def test_a_class_that_nobody_uses_stays_as_it_is(convert_text):
    _, result = convert_text(source(helper=UNUSED))
    assert UNUSED in result
    assert "import torch.distributed as dist" in result
    assert "self.accelerator.reduce(mean" in result


EVALUATED = """\
with torch.no_grad():
    for (x,) in DataLoader(data, 4):
        print(measure(student(x), teacher(x)))
"""


@pytest.mark.parametrize(
    "divided", ["mean = mean / (len(other) * dist.get_world_size())", "mean = (mean / world_size()).clamp(min=1)"]
)
def test_a_mean_that_an_evaluation_takes_too_is_that_of_the_same_numbers(convert_text, divided):
    summed = f"mean = torch.sum(other, dim=0, keepdim=True)\ndist.all_reduce(mean)\n{divided}"
    named = source(epoch=EVALUATED.replace("DataLoader(data, 4)", "held"), sum=summed)
    text = named.replace("    optimizer = torch", "    held = DataLoader(data, 4)\n    optimizer = torch")
    report, result = convert_text(text.replace("        with torch", "        student.eval()\n        with torch"))

    assert 'self.accelerator.reduce(mean, reduction="sum")' in result
    assert "gather_for_metrics" not in result
    assert [f for f in report.findings if "sums something up over the processes" in f.message]


FOLLOWED = """\
mean = self.center
if self.training:
    mean = reduced(other.sum(0))
"""
HELPER = "def reduced(tensor):\n    dist.all_reduce(tensor)\n    return tensor"


def test_a_function_that_a_model_calls_only_in_training_mode_is_of_the_training(convert_text):
    measured = "measure.eval()\n" + EVALUATED
    report, result = convert_text(source(helper=HELPER, sum=FOLLOWED, epoch=measured))

    assert [f.converts for f in report.findings if f.kind is Kind.LOOP] == [True]
    assert 'tensor.copy_(accelerator.reduce(tensor, reduction="sum"))' in result
    assert "mean = reduced(other.sum(0), self.accelerator)" in result


#: What is left: holes, where it is said, and words of the reason.
LEFT = {
    "evaluated, too": (
        {"epoch": EVALUATED, "sum": "mean = other.sum(0)\ndist.all_reduce(mean)"},
        "dist.all_reduce",
        "not only where that is trained",
    ),
    "evaluated, and not only divided": (
        {"epoch": EVALUATED, "sum": "mean = other.sum(0)\ndist.all_reduce(mean)\nmean = mean / world_size() + mean"},
        "dist.all_reduce",
        "not only where that is trained",
    ),
    "gathered": (
        {"sum": "parts = [other.sum(0)]\ndist.all_gather(parts, other.sum(0))\nmean = parts[0]"},
        "dist.all_gather",
        "runs inside a model",
    ),
    "the greatest of all": (
        {"sum": "mean = other.sum(0)\ndist.all_reduce(mean, op=dist.ReduceOp.MAX)"},
        "dist.all_reduce",
        "runs inside a model",
    ),
    "nobody waits": (
        {"sum": "mean = other.sum(0)\ndist.all_reduce(mean, async_op=True)"},
        "dist.all_reduce",
        "runs inside a model",
    ),
    "what another than the main process has": (
        {"sum": "mean = other.sum(0)\nif dist.is_initialized():\n    dist.broadcast(mean, 1)"},
        "dist.broadcast",
        "runs inside a model",
    ),
    "only in some steps": (
        {"sum": "mean = other.sum(0)\nif self.training and world_size() > 1:\n    dist.all_reduce(mean)"},
        "if self.training",
        "for something else",
    ),
    "a function of both": (
        {"helper": HELPER, "sum": "mean = reduced(other.sum(0))", "epoch": "print(reduced(torch.ones(1)))"},
        "dist.all_reduce",
        "in code around models",
    ),
    "a function with gradients of its own": (
        {
            "helper": "class Mean(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
            "        if world_size() > 1:\n            dist.all_reduce(x)\n        return x\n\n"
            "    @staticmethod\n    def backward(ctx, grad):\n        return grad\n",
            "sum": "mean = Mean.apply(other.sum(0))",
        },
        "dist.all_reduce",
        "with gradients of its own",
    ),
    "a function that is not seen to be called": (
        {"helper": HELPER.replace("reduced", "total"), "sum": "mean = total(other.sum(0))"},
        "dist.all_reduce",
        "runs inside a model",
    ),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_the_accelerator_cannot_do_in_its_place_is_left(refused_text, case):
    holes, at, words = LEFT[case]
    refused_text(source(**holes), "MIG113", at, (words,))


def test_a_loss_that_is_written_as_a_whole_cannot_keep_the_accelerator(refused_text):
    refused_text(source(epoch='torch.save(measure, "measure.pt")'), "MIG904", "def follow", ("saved as a whole",))


GUIDED = """\
class Guided(nn.Module):
    def sample(self, x):
        # see example.com/main/sampling.py
        return 2 * x
"""
SHOWN = """\
total = torch.tensor(float(epoch))
dist.all_reduce(total)
print(total / dist.get_world_size())
"""


def test_a_comment_in_a_model_calls_no_function(convert_text):
    report, result = convert_text(source(helper=GUIDED, sum="mean = other.mean(0)", epoch=SHOWN))
    assert [f.converts for f in report.findings if f.kind is Kind.LOOP] == [True]
    assert "# see example.com/main/sampling.py" in result
    assert "dist.all_reduce" not in result


ALONE = """
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def summed(x):
    dist.all_reduce(x)
    return x


class Base({base}):
    pass


class Centred({kind}):
    {doc}scale = 2

    def forward(self, own, other):
        center = {center}
        center = center / dist.get_world_size()
        return (own - (other - center).detach()).pow(2).mean() * self.scale


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.ones(32, 4))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 4, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    measure = Centred()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        loss = measure(model(x), model(x).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""
PLAIN = {
    "kind": "nn.Module",
    "base": "nn.Module",
    "doc": "",
    "center": "other.mean(0)\n        dist.all_reduce(center)",
}
WITHOUT = {
    "in its forward": ({}, ""),
    "below what it says of itself": ({"doc": "'''A loss.'''\n\n    "}, "    '''A loss.'''\n\n"),
    "in a function": ({"center": "summed(other.mean(0))"}, ""),
}
KEPT = """\
    def __init__(self, accelerator):
        super().__init__()
        self.accelerator = accelerator

    scale = 2
"""


@pytest.mark.parametrize("name", WITHOUT)
def test_a_loss_without_a_constructor_gets_one(convert_text, name):
    holes, above = WITHOUT[name]
    report, result = convert_text(ALONE.format(**PLAIN | holes))

    assert f"class Centred(nn.Module):\n{above}{KEPT}" in result
    assert "measure = Centred(accelerator)\n" in result
    assert not report.of(Kind.LEFT)


@pytest.mark.parametrize("base", ["nn.Module", "nn.MSELoss"])
def test_one_that_has_another_base_is_left(convert_text, base):
    source = ALONE.format(**PLAIN | {"kind": "Base", "base": base})
    report, result = convert_text(source)

    assert result == source.lstrip()
    assert {f.code for f in report.of(Kind.LEFT)} <= {"MIG904"}


def test_one_that_the_accelerator_is_a_global_for_needs_none(convert_text):
    head, _, body = ALONE.format(**PLAIN).partition("def main():\n")
    source = head + textwrap.dedent(body.replace("\n\nmain()\n", "\n"))
    _, result = convert_text(source)

    assert "__init__" not in result
    assert 'center = accelerator.reduce(center, reduction="sum")\n' in result
    assert "center = center / accelerator.num_processes\n" in result  # whatever a helper's `x` is
