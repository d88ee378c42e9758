"""What one process would decide by its own batch; closures; gradients that DistributedDataParallel would miss."""

import pytest

from migrate.options import Target

TENSOR = "accelerator.gather(torch.isnan(loss)).any()"
GUARD = "if {}:\n    continue\nloss = loss * 1"
MEAN = "accelerator.reduce(loss.item(), reduction='mean')"
OVER = "accelerator.gather_for_metrics([bool(is_over)])"
AGREED = {
    "a tensor": {"step": (GUARD.format("torch.isnan(loss)"), GUARD.format(TENSOR))},
    "whether any element is one": {
        "step": (
            "if torch.isnan(output).any():\n    break",
            "if accelerator.gather(torch.isnan(output).any()).any():\n    break",
        )
    },
    "a comparison": {
        "step": (
            "if loss.item() > 100:\n    break",
            f"if {MEAN} > 100:\n    break",
        )
    },
    **{
        f"the end of the program, {end}": {
            "imports": "import sys",
            "step": (
                f"if loss.item() > 100:\n    {end}",
                f"if {MEAN} > 100:\n    {end}",
            ),
        }
        for end in ("sys.exit()", "exit(0)", "quit()", "sys.exit(int(x[0, 0]))")
    },
    "not": {
        "imports": "import math",
        "step": (
            "if not math.isfinite(loss.item()):\n    break",
            "if any(accelerator.gather_for_metrics([not math.isfinite(loss.item())])):\n    break",
        ),
    },
    "what is True or False already": {
        "step": (
            "if bool(loss == 0):\n    break",
            "if any(accelerator.gather_for_metrics([bool(loss == 0)])):\n    break",
        )
    },
    "a loss of what the model gives for a list": {
        "batch": "joint = model([x, y]).mean()",
        "step": ("if torch.isnan(joint):\n    break", "if accelerator.gather(torch.isnan(joint)).any():\n    break"),
    },
    "with something that all have": {
        "step": (
            "if epoch and loss.item() > 9:\n    break",
            f"if epoch and {MEAN} > 9:\n    break",
        )
    },
    **{
        f"an item of {kept}": {
            "made": f"kept = {made}",
            "batch": f"x = x\n{given}",
            "step": (
                "if kept[0] > 9:\n    break",
                "if any(accelerator.gather_for_metrics([bool(kept[0] > 9)])):\n    break",
            ),
        }
        for kept, made, given in (
            ("a tuple", "(0.0, 0.0)", "kept = (kept[0] * 0.9 + model(x).mean().item(), kept[1] * 0.9 + 1)"),
            ("a dictionary", "{}", "kept[0] = model(x).mean().item()"),
        )
    },
    "in an elif": {
        "step": (
            "if epoch:\n    pass\nelif torch.isnan(loss):\n    break",
            f"if epoch:\n    pass\nelif {TENSOR}:\n    break",
        )
    },
    "the step itself": {
        "backward": (
            "if torch.isfinite(loss):\n    loss.backward()",
            "if accelerator.gather(torch.isfinite(loss)).all():\n    accelerator.backward(loss)",
        )
    },
    "whether a step is taken once more": {
        "step": (
            "while loss.item() > 9:\n    loss = criterion(model(x), y)\n    loss.backward()",
            f"while {MEAN} > 9:\n    loss = criterion(model(x), y)\n    accelerator.backward(loss)",
        )
    },
    "a clock in a step": {
        "imports": "import time",
        "setup": "start = time.time()",
        "step": (
            "if time.time() - start > 60:\n    break",
            "if any(accelerator.gather_for_metrics([bool(time.time() - start > 60)])):\n    break",
        ),
    },
    "a clock after an epoch": {
        "imports": "import time",
        "setup": "start = time.time()",
        "epoch": (
            "if time.time() - start > 60:\n    break",
            "if any(accelerator.gather_for_metrics([bool(time.time() - start > 60)])):\n    break",
        ),
    },
    "what a clock has set": {
        "imports": "import time",
        "setup": "start, is_over = time.time(), False",
        "step": (
            "if time.time() - start > 60:\n    is_over = True\nif is_over:\n    break",
            f"if time.time() - start > 60:\n    is_over = True\nif any({OVER}):\n    break",
        ),
    },
    "the step in an expression": {
        "step": (
            "optimizer.step() if loss.item() > 9 else None",
            f"optimizer.step() if {MEAN} > 9 else None",
        )
    },
    "a step behind and": {
        "backward": (
            "torch.isfinite(loss) and loss.backward()",
            "accelerator.gather(torch.isfinite(loss)).all() and accelerator.backward(loss)",
        )
    },
    "a step behind or": {"step": ("torch.isnan(loss) or optimizer.step()", f"{TENSOR} or optimizer.step()")},
    "a step behind what all have, and what one has": {
        "step": (
            "epoch and loss.item() > 9 and optimizer.step()",
            f"epoch and {MEAN} > 9 and optimizer.step()",
        )
    },
    "steps in a comprehension": {
        "step": (
            "[each.step() for each in [optimizer] if loss.item() > 9]",
            f"[each.step() for each in [optimizer] if {MEAN} > 9]",
        )
    },
    "an exception that is caught in the step": {
        "step": (
            "try:\n    if loss.item() > 9:\n        raise ValueError\n    x = x + 1\nexcept ValueError:\n    pass",
            f"try:\n    if {MEAN} > 9:\n        raise ValueError\n    x = x + 1\nexcept ValueError:\n    pass",
        )
    },
    "the step in the else": {
        "backward": (
            "if torch.isnan(loss):\n    pass\nelse:\n    loss.backward()",
            f"if {TENSOR}:\n    pass\nelse:\n    accelerator.backward(loss)",
        )
    },
}


@pytest.mark.parametrize("name", AGREED)
def test_decided_together(changed, name):
    changed(**AGREED[name])


def test_a_function_of_the_step_returns_early(convert_text):
    _, result = convert_text(FUNCTION)

    assert "if accelerator.gather(torch.isnan(loss)).any():" in result


FUNCTION = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
def step(x, y):
    loss = (model(x) - y).pow(2).mean()
    if torch.isnan(loss):
        return
    loss.backward()
    optimizer.step()
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        step(x, y)
"""
MEAN = 'accelerator.reduce({}, reduction="mean")'
LOSS = MEAN.format("loss.item()")
PLAIN = "accelerator.unwrap_model(model)"
BOTH = "accelerator.gather_for_metrics([bool(loss.item() > 9 and bad > 3)])"
ANEW = "    optimizer = optim.SGD(model.parameters(), lr=0.01)"
PREPARED = f"{ANEW}\n    optimizer = accelerator.prepare(optimizer)"
#: Where a step goes on either way, and something in it must be done by all or by none.
ALIKE = {
    "weights that are kept": {
        "setup": "best = 9.0",
        "step": (
            "if loss.item() < best:\n    best = loss.item()\n    kept = model.state_dict()",
            f"if {LOSS} < {MEAN.format('best')}:\n    best = loss.item()\n    kept = {PLAIN}.state_dict()",
        ),
    },
    "weights that are saved": {
        "step": (
            'if loss < 0.1:\n    torch.save(model.state_dict(), "m.pt")',
            f'if {MEAN.format("loss")} < 0.1:\n    accelerator.save({PLAIN}.state_dict(), "m.pt")',
        ),
    },
    "weights that are frozen, with what all have": {
        "step": (
            "if epoch and loss.item() < 0.1:\n    for p in model.parameters():\n        p.requires_grad = False",
            f"if epoch and {LOSS} < 0.1:\n    for p in model.parameters():\n        p.requires_grad = False",
        ),
    },
    "parameters that are changed by hand": {
        "step": (
            "if loss.item() < 0.1:\n    for p in model.parameters():\n        p.data.mul_(0.5)",
            f"if {LOSS} < 0.1:\n    for p in model.parameters():\n        p.data.mul_(0.5)",
        ),
    },
    "parameters that are drawn anew": {
        "step": (
            "nn.init.zeros_(model.weight) if loss.item() > 9 else None",
            f"nn.init.zeros_({PLAIN}.weight) if {LOSS} > 9 else None",
        ),
    },
    "gradients that are changed by hand": {
        "backward": (
            "loss.backward()\nif loss.item() > 9:\n    for p in model.parameters():\n        p.grad *= 0.5",
            f"accelerator.backward(loss)\nif {LOSS} > 9:\n    for p in model.parameters():\n        p.grad *= 0.5",
        ),
    },
    "a layer's data": {
        "step": (
            "if loss.item() > 9:\n    model.weight.data = last",
            f"if {LOSS} > 9:\n    {PLAIN}.weight.data = last",
        ),
        "setup": "last = None",
    },
    "gradients": {
        "backward": (
            "loss.backward()\nif loss.item() > 9:\n    optimizer.zero_grad()",
            f"accelerator.backward(loss)\nif {LOSS} > 9:\n    optimizer.zero_grad()",
        ),
    },
    "another optimizer": {"step": (f"if loss.item() > 9:\n{ANEW}", f"if {LOSS} > 9:\n{PREPARED}")},
    "another optimizer, by what some steps have kept": {
        "setup": "kept = []",
        "step": (
            f"kept.append(loss.item())\nif sum(kept) > 9:\n{ANEW}",
            f"kept.append(loss.item())\nif any(accelerator.gather_for_metrics([bool(sum(kept) > 9)])):\n{PREPARED}",
        ),
    },
    "in a function": {
        "setup": "def lower(optimizer):\n    optimizer.zero_grad()",
        "step": ("if loss.item() > 9:\n    lower(optimizer)", f"if {LOSS} > 9:\n    lower(optimizer)"),
    },
    "by what has no mean": {
        "step": (
            "if (output > 9).any():\n    optimizer.zero_grad()",
            "if any(accelerator.gather_for_metrics([bool((output > 9).any())])):\n    optimizer.zero_grad()",
        ),
    },
    "beside what the batch has set": {
        "setup": "bad = 0",
        "step": (
            "if loss.item() > 1:\n    bad += 1\nif loss.item() > 9 and bad > 3:\n    optimizer.zero_grad()",
            f"if loss.item() > 1:\n    bad += 1\nif any({BOTH}):\n    optimizer.zero_grad()",
        ),
    },
}


@pytest.mark.parametrize("name", ALIKE)
def test_done_by_all_or_by_none(programs, convert_text, name):
    before, after = programs(ALIKE[name])
    _, result = convert_text(before)

    assert after.partition("\nfor epoch")[2].replace('"mean"', "'mean'").split() == (
        result.partition("\nfor epoch")[2].replace('"mean"', "'mean'").split()
    )


@pytest.mark.parametrize("test", ["rank == 0 and loss.item() < 0.1", "rank == 0:\n    if loss.item() < 0.1"])
def test_what_the_main_process_does_alone_is_not_asked_of_all(programs, convert_text, test):
    indent = "    " * (1 + test.count("\n"))
    before, _ = programs(
        {
            "imports": "import torch.distributed as dist",
            "setup": "rank = dist.get_rank() if dist.is_initialized() else 0",
            "step": f'if {test}:\n{indent}torch.save(model.state_dict(), "m.pt")',
        }
    )
    _, result = convert_text(before)

    assert "accelerator.save(" in result
    assert "reduce" not in result
    assert "gather" not in result


BESIDE_OUTPUT = {
    "below": """        writer.add_scalar("loss", loss.item(), step)
        if step % every == 0:
            torch.save(model.state_dict(), "m.pt")
            writer.flush()
""",
    "within": """        if writer:
            writer.add_scalar("loss", loss.item(), step)
            if step % every == 0:
                torch.save(model.state_dict(), "m.pt")
                writer.flush()
""",
}
DRAWN = """
import random

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter

model = nn.Linear(3, 1)
loader = DataLoader(TensorDataset(torch.ones(40, 3)), batch_size=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
writer = SummaryWriter()
every = random.randint(2, 5)
for epoch in range(3):
    for step, (x,) in enumerate(loader):
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
{output}"""


@pytest.mark.parametrize("output", BESIDE_OUTPUT.values(), ids=BESIDE_OUTPUT)
def test_all_come_to_what_they_agree_on_beside_output(convert_text, output):
    _, result = convert_text(DRAWN.format(output=output))

    asked = "if accelerator.gather_for_metrics([bool(step % every == 0)])[0]:"
    lines = [line.strip() for line in result.splitlines()]
    assert lines[lines.index(asked) - 1] == 'writer.add_scalar("loss", loss.item(), step)'
    assert lines[lines.index(asked) + 1 :][:3] == [
        "if accelerator.is_main_process:",
        'torch.save(accelerator.unwrap_model(model).state_dict(), "m.pt")',
        "writer.flush()",
    ]


STATISTICS = "model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))"
AGAIN_UNDER = "if {}:\n    loss = loss + model(2 * x).mean()\nloss.backward()"


def test_a_model_with_statistics_that_only_some_processes_run(refused, convert_text, programs):
    finding = refused("MIG122", "model(2 * x)", model=STATISTICS, backward=AGAIN_UNDER.format("x.sum() > 0"))
    assert finding.hint == "run it in every step, or under torch.no_grad()"

    ways_out = (
        "loss = loss + (x.sum() > 0) * model(2 * x).mean()\nloss.backward()",
        "if x.sum() > 0:\n    with torch.no_grad():\n        shown = model(2 * x).mean()\nloss.backward()",
    )
    plain = (
        ("nn.Linear(2, 1)", "x.sum() > 0"),
        (STATISTICS, "x.dim() == 2"),
        (STATISTICS, "epoch"),
        (STATISTICS, "y is not None"),
    )
    cases = [{"model": STATISTICS, "backward": way_out} for way_out in ways_out]
    cases += [{"model": f"model = {m.removeprefix('model = ')}", "backward": AGAIN_UNDER.format(t)} for m, t in plain]
    for holes in cases:
        _, result = convert_text(programs(holes)[0])
        assert "accelerator.backward(loss)" in result


def test_by_what_only_some_processes_have_counted(refused):
    refused(
        "MIG122",
        "if bad > 3",
        mentions=["scheduler.step()"],
        setup="bad = 0",
        ready="scheduler = optim.lr_scheduler.StepLR(optimizer, 10)",
        step="if loss.item() > 1:\n    bad += 1\nif bad > 3:\n    scheduler.step()",
    )


def test_a_clock_around_the_call_of_the_loop(refused_text, convert_text):
    around = "def main():\n    for epoch in range(2):\n        {}\nmain()"
    asked = around.format("if time.time() < end:\n            train(model, loader, optimizer)")
    refused_text(TIMED + asked, "MIG122", "if time.time()", mentions=["which a clock or the system gives"])

    _, result = convert_text(TIMED + around.format("train(model, loader, optimizer)"))

    assert "accelerator.backward(loss)" in result


TIMED = """
import time
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
end = time.time() + 60
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
""".lstrip()
LEFT_ALONE = {
    "leaving a loop that does not train": "for row in x:\n    if row.sum() > 0:\n        break",
    "by what all have": "if epoch > 1:\n    break",
    "by how batches are built": "if x.dim() == 2 and isinstance(y, torch.Tensor):\n    optimizer.zero_grad()",
    "without leaving": "if loss.item() > 9:\n    worst = epoch",
    "what is chosen for all, and not whether": "optimizer.step(None if loss.item() > 9 else None)",
    "as many rounds as a batch has columns": "for i in range(x.size(1)):\n    optimizer.step()",
    "each row": "for row in x:\n    optimizer.step()",
    "an exception that ends the program": "if loss.item() > 9:\n    raise ValueError",
    "an end of the program that tells of trouble": "if loss.item() > 9:\n    exit(1)",
    "what is only looked at": "if loss.item() > 9:\n    kept = optimizer.defaults",
    "what is said by a clock": "import time\nif time.time() > 9:\n    worst = epoch",
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_unchanged(unchanged, name):
    unchanged(step=LEFT_ALONE[name])


NESTED = "if x.sum() > 0:\n    if torch.isnan(loss):\n        break\n    loss = loss * 1"


def test_a_decision_that_not_all_come_to(refused):
    refused("MIG122", "if torch.isnan", step=NESTED)


REFUSED = {
    "in each row": "for row in x:\n    if torch.isnan(row).any():\n        loss.backward()",
    "in each row of a comprehension": "[optimizer.step() for row in x if torch.isnan(row).any()]",
    "as many steps as the loss says": "for _ in range(int(loss.item())):\n    optimizer.step()",
    "as many steps as a name says": "n = int(y.max())\nfor _ in range(n):\n    optimizer.step()",
    "as many steps in a comprehension": "[optimizer.step() for _ in range(int(loss.item()))]",
    "cases": "match int(loss.item()):\n    case 0:\n        pass\n    case _:\n        optimizer.step()",
    "a value that is used": "done = loss.item() and optimizer.step()",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused, name):
    (at,) = [
        line for line in REFUSED[name].splitlines() if line.lstrip().startswith(("if", "[", "for _", "match", "done"))
    ]
    refused("MIG122", at.strip(), step=REFUSED[name])


def test_a_model_with_statistics_that_an_expression_runs(refused):
    loss = "loss = loss + (model(2 * x).mean() if x.sum() > 0 else 0)\nloss.backward()"
    refused("MIG122", "model(2 * x)", model=STATISTICS, backward=loss)


# --- closures ---------------------------------------------------------------------------------------------------------

CLOSURE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.{optimizer}(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        def closure():
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            return {returned}
        optimizer.step(closure)
"""


def test_a_closure_gives_the_same_loss_to_all(convert_text):
    _, result = convert_text(CLOSURE.format(optimizer="LBFGS", returned="loss"))

    assert "return accelerator.reduce(loss.detach(), reduction='mean')" in result
    assert "accelerator.backward(loss)" in result


def test_a_closure_that_adds_its_loss_up_from_a_number_gives_a_tensor(convert_text):
    source = CLOSURE.format(optimizer="LBFGS", returned="loss")
    once = next(line for line in source.splitlines() if line.strip().startswith("loss = "))
    depth = once[: len(once) - len(once.lstrip())]
    added = f"{depth}loss = 0.0\n{depth}for part in parts(model(x), y):\n{depth}    loss += part.mean()"
    made = "def parts(output, y):\n    return [(output - y).pow(2), output.abs()]\n\n\n"
    at = source.index("model = ")
    _, result = convert_text(source[:at] + made + source[at:].replace(once, added))

    assert "return accelerator.reduce(loss.detach(), reduction='mean')" in result


def test_an_optimizer_that_does_not_look_at_the_loss(convert_text):
    _, result = convert_text(CLOSURE.format(optimizer="Adam", returned="loss"))

    assert "return loss\n" in result
    assert "accelerator.backward(loss)" in result


def test_a_closure_that_gives_a_number(refused_text):
    refused_text(CLOSURE.format(optimizer="LBFGS", returned="loss.item()"), "MIG122", "optimizer.step(closure)")


CLOSED = CLOSURE.format(optimizer="Adam", returned="loss").lstrip()
CLOSED = CLOSED.replace("        optimizer.step(closure)", "        last = optimizer.step(closure)")


def test_accelerate_gives_nothing_back(convert_text):
    report, result = convert_text(CLOSED, target=Target.ACCELERATE)

    assert result == CLOSED
    assert any("gives nothing back" in finding.message for finding in report.findings)


# --- gradients --------------------------------------------------------------------------------------------------------

HANDLED = "accelerator = Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])"
IRREGULAR = {
    "two losses of one forward": {
        "backward": (
            "loss.backward(retain_graph=True)\noutput.sum().backward()",
            "accelerator.backward(loss, retain_graph=True)\naccelerator.backward(output.sum())",
        )
    },
    "two forwards before": {
        "backward": (
            "other = model(2 * x).mean()\nloss.backward()\nother.backward()",
            "other = model(2 * x).mean()\naccelerator.backward(loss)\naccelerator.backward(other)",
        )
    },
    "a layer that is released": {
        "start": "for p in model.parameters():\n    p.requires_grad = epoch > 0",
    },
    "a model that is frozen as a whole": {"start": "model.requires_grad_(epoch > 0)"},
    "a penalty of its own": {
        "backward": (
            "loss.backward()\ng = torch.autograd.grad(model(x).sum(), x, create_graph=True)\ng[0].mean().backward()",
            "",
        )
    },
}


@pytest.mark.parametrize("name", IRREGULAR)
def test_gradients_are_averaged_after_backward(programs, convert_text, name):
    before, _ = programs(IRREGULAR[name])
    _, result = convert_text(before)

    assert HANDLED in result
    assert "from runtime import Accelerator, DistributedDataParallelKwargs" in result


def test_accelerate_averages_in_backward(convert_text, programs):
    before, _ = programs(IRREGULAR["two losses of one forward"])
    report, result = convert_text(before, target=Target.ACCELERATE)

    assert result == before
    assert any("does not average" in finding.message for finding in report.findings)


REGULAR = {
    "frozen before": {"made": "for p in model.parameters():\n    p.requires_grad = True"},
    "a forward in between": {
        "backward": (
            "loss.backward()\nmodel(2 * x).mean().backward()",
            "accelerator.backward(loss)\naccelerator.backward(model(2 * x).mean())",
        )
    },
    "one of two": {
        "backward": (
            "if epoch:\n    loss.backward()\nelse:\n    (2 * loss).backward()",
            "if epoch:\n    accelerator.backward(loss)\nelse:\n    accelerator.backward(2 * loss)",
        )
    },
    "a gradient for the batch": {"batch": "x.requires_grad_(True)"},
}


@pytest.mark.parametrize("name", REGULAR)
def test_as_ever(changed, name):
    changed(**REGULAR[name])


COUNT = "losses = []"
LEAVE = "if len(losses) % 3 == 2:\n    break"


@pytest.mark.parametrize("made", ["[]", "list()"])
def test_how_long_a_list_is_that_each_step_appends_to_is_no_question(unchanged, made):
    unchanged(ready=COUNT.replace("[]", made), step=f"losses.append(loss.item())\n{LEAVE}")


APART = {
    "at times": ("", "if loss.item() > 1:\n    losses.append(loss.item())"),
    "emptied at times": ("", "losses.append(loss.item())\nif loss.item() > 1:\n    losses.clear()"),
    "by a function": (
        "def add(rows, loss):\n    rows.append(loss)",
        "losses.append(loss.item())\nadd(losses, loss.item())",
    ),
}


@pytest.mark.parametrize("name", APART)
def test_how_long_another_list_is_is_agreed_on(changed, name):
    function, step = APART[name]
    agreed = LEAVE.replace("len(losses) % 3 == 2", "any(accelerator.gather_for_metrics([bool(len(losses) % 3 == 2)]))")
    changed(setup=function, ready=COUNT, step=(f"{step}\n{LEAVE}", f"{step}\n{agreed}"))
