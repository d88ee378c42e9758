"""MIG108: what becomes of gradient accumulation by hand, and what is kept."""

import textwrap

import pytest

from migrate.report.model import Kind

HEAD = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
steps = 2
{accelerator}data = TensorDataset(torch.ones(20, 2), torch.ones(20, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.1)
{prepare}for epoch in range(2):
"""
BEFORE = HEAD.format(accelerator="", prepare="")
AFTER = HEAD.format(
    accelerator="accelerator = Accelerator(gradient_accumulation_steps=steps)\n",
    prepare="loader, model, optimizer = accelerator.prepare(loader, model, optimizer)\n",
).replace("import torch\n", "import torch\nfrom runtime import Accelerator\n", 1)
LAST = "if (i + 1) % steps == 0 or (i + 1) == len(loader):"
STEP = "    optimizer.step()\n    optimizer.zero_grad()"
PLAIN = """\
for x, y in loader:
    with accelerator.accumulate(model):
        loss = criterion(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
"""


def micro(loss, window, over="enumerate(loader)", divided="", step=STEP, backward="loss.backward()"):
    lines = [f"loss = {loss}", *([divided] if divided else []), backward, window, *step.splitlines()]
    return f"for i, (x, y) in {over}:\n" + textwrap.indent("\n".join(lines), "    ")


LOSS = "criterion(model(x), y)"
CHANGED = {
    "a statement that divides": (micro(LOSS, LAST, divided="loss = loss / steps"), PLAIN),
    "in place": (micro(LOSS, LAST, divided="loss /= steps"), PLAIN),
    "only where there are several": (micro(LOSS, LAST, divided="if steps > 1:\n    loss = loss / steps"), PLAIN),
    "where the loss is computed": (micro(f"{LOSS} / steps", LAST), PLAIN),
    "where backward is called": (micro(LOSS, LAST, backward="(loss / steps).backward()"), PLAIN),
    "the end asked for by the last number": (
        micro(f"{LOSS} / steps", "if i == len(loader) - 1 or (i + 1) % steps == 0:"),
        PLAIN,
    ),
    "clipping waits for the window": (
        micro(f"{LOSS} / steps", LAST, step=f"    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n{STEP}"),
        PLAIN.replace(
            "        optimizer.step()",
            "        if accelerator.sync_gradients:\n"
            "            accelerator.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()",
        ),
    ),
    "a window that does more": (
        micro(f"{LOSS} / steps", LAST, step=f"{STEP}\n    updates = i"),
        """\
        for i, (x, y) in enumerate(loader):
            with accelerator.accumulate(model):
                loss = criterion(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    optimizer.step()
                    optimizer.zero_grad()
                    updates = i
        """,
    ),
    "a sum of what was not divided yet": (
        "total = 0\n" + micro(LOSS, LAST, divided="total += loss.detach()\nloss = loss / steps"),
        "total = 0\n" + PLAIN.replace("        accelerator.b", "        total += loss.detach()\n        accelerator.b"),
    ),
    "the number of the batch is needed": (
        micro(f"{LOSS} / steps", LAST) + "\n    number = i",
        PLAIN.replace("x, y in loader", "i, (x, y) in enumerate(loader)") + "    number = i",
    ),
}


def whole(head, body):
    return head + textwrap.indent(textwrap.dedent(body), "    ").rstrip() + "\n"


def normal(text):
    return "\n".join(line for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("name", CHANGED)
def test_changed(convert_text, name):
    before, after = CHANGED[name]
    report, result = convert_text(whole(BEFORE, before))

    assert normal(result) == normal(whole(AFTER, after)), report.findings


OPEN = "if (i + 1) % steps == 0:"
KEPT = {
    "the last window stays open": (micro(f"{LOSS} / steps", OPEN), "last window of an epoch is left open"),
    "counted from zero": (
        micro(f"{LOSS} / steps", "if i % steps == 0 or i == len(loader) - 1:"),
        "counted in another way",
    ),
    "the length of something else": (
        micro(f"{LOSS} / steps", "if (i + 1) % steps == 0 or i + 1 == len(data):"),
        "counted in another way",
    ),
    "no division": (micro(LOSS, LAST), "not divided by the number"),
    "another number": (micro(f"{LOSS} / 3", LAST), "not divided by the number"),
    "the quotient is printed": (
        micro(f"{LOSS} / steps", LAST) + "\n    print(loss.item())",
        "used after it is divided",
    ),
    "a way past the count": (
        micro(LOSS, LAST, divided="if i == 3:\n    continue\nloss = loss / steps"),
        "`continue` leaves a window open",
    ),
    "gradients are cleared in every step": (
        micro(f"{LOSS} / steps", LAST, step="    optimizer.step()") + "\n    optimizer.zero_grad()",
        "cleared outside of the window",
    ),
    "two backwards": (
        micro(f"{LOSS} / steps", LAST, divided="loss.backward(retain_graph=True)"),
        "several calls of backward",
    ),
    "counted from one": (micro(f"{LOSS} / steps", LAST, over="enumerate(loader, 1)"), "not counted by enumerate"),
    "a number that changes": (micro(f"{LOSS} / steps", LAST) + "\nsteps = steps + 1", "steps changes"),
}


@pytest.mark.parametrize("name", KEPT)
def test_not_canonical_and_kept_by_hand(convert_text, remark, name):
    body, why = KEPT[name]
    before = whole(BEFORE, body)
    report, result = convert_text(before)

    remark(report, before, "MIG108", "if ", (why,), Kind.NOTE)
    assert "gradient_accumulation_steps" not in result
    assert "accumulate" not in result
    assert "% steps == 0" in result


def test_a_loop_that_takes_steps_of_its_own_is_no_window(convert_text):
    own = "for _ in range(2):\n    other.zero_grad()\n    tail(x).mean().backward()\n    other.step()"
    later = "if i % 4 == 0:\n" + textwrap.indent(own, "    ")
    step = f"    optimizer.zero_grad()\n    {LOSS}.backward()\n    optimizer.step()\n"
    body = f"for i, (x, y) in enumerate(loader):\n{step}"
    made = "tail = nn.Linear(2, 1)\nother = optim.SGD(tail.parameters(), lr=0.1)\nsteps = 2"
    before = whole(BEFORE.replace("steps = 2", made), body + textwrap.indent(later, "    "))
    report, result = convert_text(before)

    assert "accelerator.backward(tail(x).mean())" in result
    assert not [finding for finding in report.findings if finding.code == "MIG108"]


def test_a_number_that_is_set_after_the_model_is_made_is_kept(convert_text, remark):
    before = whole(
        BEFORE.replace("steps = 2\n", "").replace("for epoch", "steps = 2\nfor epoch"),
        micro(LOSS, LAST, divided="loss /= steps"),
    )
    report, result = convert_text(before)

    remark(report, before, "MIG108", "if ", ("gets its value after the models are made",), Kind.NOTE)
    assert "accumulate" not in result


def test_another_loop_without_windows_keeps_all_by_hand(convert_text, remark):
    other = (
        "for x, y in loader:\n    criterion(model(x), y).backward()\n    optimizer.step()\n    optimizer.zero_grad()"
    )
    before = whole(BEFORE, micro(LOSS, LAST, divided="loss /= steps") + f"\n{other}")
    report, result = convert_text(before)

    remark(report, before, "MIG108", "if ", ("another loop of the program does not accumulate",), Kind.NOTE)
    assert "accumulate" not in result


DISTRIBUTED = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    data = TensorDataset(torch.ones(40, 4), torch.ones(40, 2))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=5, sampler=sampler)
    model = DDP(nn.Linear(4, 2).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        {sync}
            (nn.functional.mse_loss(model(x), y) / 2).backward()
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()

main()
"""


def test_no_sync_by_hand_is_the_accelerator_s(convert_text):
    _, result = convert_text(DISTRIBUTED.replace("{sync}", "with model.no_sync():"))
    assert "        with accelerator.no_sync(model):\n" in result


def test_the_flag_of_the_wrapper_stays_on_the_wrapper(convert_text):
    flag = "model.require_backward_grad_sync = i % 2 == 1\n        if True:"
    _, result = convert_text(DISTRIBUTED.replace("{sync}", flag))
    assert "        model.require_backward_grad_sync = i % 2 == 1\n" in result


@pytest.mark.parametrize(("place", "stays"), [("    ", True), ("        ", False)], ids=["every batch", "every window"])
def test_a_prepared_scheduler_that_is_stepped_in_every_micro_step_keeps_it_by_hand(
    convert_text, remark, numbers_printed, place, stays
):
    made = "scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)\nfor epoch"
    told = 'print(optimizer.param_groups[0]["lr"])'
    before = whole(
        BEFORE.replace("for epoch", made), f"{micro(f'{LOSS} / steps', LAST)}\n{place}scheduler.step()\n\n{told}"
    )
    report, result = convert_text(before)

    assert "model, optimizer, scheduler = accelerator.prepare(" in result
    assert ("accumulate(" not in result) is stays
    if stays:
        remark(report, before, "MIG108", "if ", ("scheduler is stepped in every micro-step",), Kind.NOTE)
    assert numbers_printed(result, 1) == numbers_printed(before, 1)


def test_where_losses_are_scaled_by_hand_windows_stay_by_hand(convert_text, remark):
    """`unscale_` and `update` ran in every micro-step: on a GPU the gradients of a window were of two scales."""
    step = "    scaler.unscale_(optimizer)\n    scaler.step(optimizer)\n    scaler.update()\n    optimizer.zero_grad()"
    window = micro(LOSS, LAST, step=step, backward="scaler.scale(loss / steps).backward()")
    made = 'scaler = None\nscaler = torch.amp.GradScaler("cuda")\nfor epoch'
    before = whole(BEFORE.replace("for epoch", made), window)
    report, result = convert_text(before)

    remark(report, before, "MIG106", "GradScaler", ("goes on scaling its losses by hand",), Kind.NOTE)
    remark(report, before, "MIG108", "if ", ("goes on scaling its losses by hand",), Kind.NOTE)
    assert "accumulate(" not in result
    assert "accelerator.backward(scaler.scale(loss / steps))" in result
