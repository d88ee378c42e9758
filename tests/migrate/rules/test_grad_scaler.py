"""MIG106 and MIG107: what becomes of scalers and autocast contexts, and what is kept by hand."""

import textwrap

import pytest

from migrate.options import Target
from migrate.report.model import Kind

BEFORE = """\
import argparse
from contextlib import nullcontext
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

args = argparse.ArgumentParser().parse_args()
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
AFTER = (
    BEFORE.replace("import torch\n", "import torch\nfrom runtime import Accelerator\n", 1)
    .replace("data =", "accelerator = Accelerator({})\ndata =", 1)
    .replace("lr=0.1)\n", "lr=0.1)\nloader, model, optimizer = accelerator.prepare(loader, model, optimizer)\n")
)
ALWAYS, FLAG = 'mixed_precision="fp16"', 'mixed_precision="fp16" if args.amp else "no"'
LOOP = """
for x, y in loader:
    optimizer.zero_grad()
    with {context}:
        loss = criterion(model(x), y)
    {step}
"""
PLAIN = "accelerator.backward(loss)\noptimizer.step()"
STEP = "scaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()"
SCALER = "scaler = torch.cuda.amp.GradScaler()"
AUTOCAST = "torch.cuda.amp.autocast()"


def looped(context, step):
    return LOOP.format(context=context, step=textwrap.indent(step, "    ").strip())


#: name: (constructor, before, after)
CHANGED = {
    "always": (ALWAYS, f"{SCALER}\n{looped(AUTOCAST, STEP)}", looped("accelerator.autocast()", PLAIN)),
    "by its new name": (
        ALWAYS,
        'scaler = torch.amp.GradScaler("cuda")\n' + looped('torch.autocast("cuda", dtype=torch.float16)', STEP),
        looped("accelerator.autocast()", PLAIN),
    ),
    "a flag": (
        FLAG,
        "scaler = torch.amp.GradScaler(enabled=args.amp)\n"
        + looped('torch.autocast(device_type="cuda", enabled=args.amp)', STEP),
        looped("accelerator.autocast()", PLAIN),
    ),
    "a scaler that may be None": (
        FLAG,
        "scaler = torch.cuda.amp.GradScaler() if args.amp else None\n"
        + looped(
            "torch.cuda.amp.autocast(enabled=scaler is not None)",
            f"if scaler:\n{textwrap.indent(STEP, '    ')}\nelse:\n    loss.backward()\n    optimizer.step()",
        ),
        looped("accelerator.autocast()", PLAIN),
    ),
    "None first, and the branches the other way round": (
        FLAG,
        "scaler = None\nif args.amp:\n    scaler = torch.cuda.amp.GradScaler()\n"
        + looped(
            "torch.cuda.amp.autocast(scaler is not None)",
            f"if scaler is None:\n    loss.backward()\n    optimizer.step()\nelse:\n{textwrap.indent(STEP, '    ')}",
        ),
        looped("accelerator.autocast()", PLAIN),
    ),
    "a context that may be none": (
        FLAG,
        "scaler = torch.cuda.amp.GradScaler(enabled=args.amp)\n"
        + looped("torch.cuda.amp.autocast() if args.amp else nullcontext()", STEP),
        looped("accelerator.autocast()", PLAIN),
    ),
    "the forward in both branches": (
        FLAG,
        """\
        if args.amp:
            scaler = torch.cuda.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            if args.amp:
                with torch.cuda.amp.autocast():
                    loss = criterion(model(x), y)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            else:
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
        """,
        looped("accelerator.autocast()", PLAIN),
    ),
    "clipping": (
        ALWAYS,
        f"{SCALER}\n"
        + looped(
            AUTOCAST,
            "scaler.scale(loss).backward(retain_graph=True)\nscaler.unscale_(optimizer)\n"
            "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nscaler.step(optimizer)\nscaler.update()",
        ),
        looped(
            "accelerator.autocast()",
            "accelerator.backward(loss, retain_graph=True)\n"
            "accelerator.clip_grad_norm_(model.parameters(), 1.0)\noptimizer.step()",
        ),
    ),
    "gradients that are read": (
        ALWAYS,
        f"{SCALER}\n"
        + looped(
            AUTOCAST,
            "scaler.scale(loss).backward()\nscaler.unscale_(optimizer)\nnorm = next(model.parameters()).grad.norm()\n"
            "scaler.step(optimizer)\nscaler.update()",
        ),
        looped(
            "accelerator.autocast()",
            "accelerator.backward(loss)\naccelerator.unscale_gradients(optimizer)\n"
            "norm = next(model.parameters()).grad.norm()\noptimizer.step()",
        ),
    ),
    "the state": (
        ALWAYS,
        f"{SCALER}\nstart = {{}}\nscaler.load_state_dict(start)\n{looped(AUTOCAST, STEP)}state = scaler.state_dict()",
        "start = {}\nif accelerator.scaler:\n    accelerator.scaler.load_state_dict(start)\n"
        + looped("accelerator.autocast()", PLAIN)
        + "state = accelerator.scaler.state_dict() if accelerator.scaler else {}",
    ),
    "the state of one that may be None": (
        FLAG,
        "scaler = torch.cuda.amp.GradScaler() if args.amp else None\n"
        + looped(
            "torch.cuda.amp.autocast(enabled=args.amp)",
            f"if args.amp:\n{textwrap.indent(STEP, '    ')}\nelse:\n    loss.backward()\n    optimizer.step()",
        )
        + "state = {}\nif scaler is not None:\n    state['scaler'] = scaler.state_dict()",
        looped("accelerator.autocast()", PLAIN)
        + "state = {}\nif accelerator.scaler is not None:\n    state['scaler'] = accelerator.scaler.state_dict()",
    ),
    "whether a step was skipped": (
        ALWAYS,
        f"{SCALER}\n"
        + looped(
            AUTOCAST,
            "scaler.scale(loss).backward()\nscale = scaler.get_scale()\nscaler.step(optimizer)\nscaler.update()\n"
            "if scaler.get_scale() < scale:\n    skipped = True",
        ),
        looped("accelerator.autocast()", f"{PLAIN}\nif accelerator.optimizer_step_was_skipped:\n    skipped = True"),
    ),
    "the scale": (
        ALWAYS,
        f"{SCALER}\n{looped(AUTOCAST, STEP)}scale = [scaler.get_scale()]",
        looped("accelerator.autocast()", PLAIN)
        + "scale = [accelerator.scaler.get_scale() if accelerator.scaler else 1.0]",
    ),
    "micro-steps by hand": (
        ALWAYS,
        f"{SCALER}\n"
        + looped(
            AUTOCAST,
            "scaler.scale(loss / 2).backward()\nif args.last:\n    scaler.step(optimizer)\n    scaler.update()",
        ),
        looped("accelerator.autocast()", "accelerator.backward(loss / 2)\nif args.last:\n    optimizer.step()"),
    ),
}


def whole(head, body):
    return head + textwrap.dedent(body).lstrip("\n") + "\n"


def normal(text):
    """Without blank lines, and without the line whose place and quotes depend on others."""
    return "\n".join(line for line in text.splitlines() if line.strip() and "= Accelerator(" not in line)


@pytest.mark.parametrize("name", CHANGED)
def test_changed(convert_text, name):
    arguments, before, after = CHANGED[name]
    report, result = convert_text(whole(BEFORE, before))

    assert f"accelerator = Accelerator({arguments})" in result.replace("'", '"')
    expected = whole(AFTER, after)
    if "nullcontext()" in before:  # its import went with it
        expected = expected.replace("from contextlib import nullcontext\n", "")
    assert normal(result) == normal(expected), report.findings


OWN = "class Own:\n    def __enter__(self):\n        pass\n    def __exit__(self, *error):\n        pass\n"
#: name: (before, a part of the reason)
KEPT = {
    "settings": ("scaler = torch.cuda.amp.GradScaler(growth_interval=100)\n", AUTOCAST, STEP, "settings of its own"),
    "for the CPU": ('scaler = torch.amp.GradScaler("cpu")\n', AUTOCAST, STEP, "settings of its own"),
    "turned off": ("scaler = torch.cuda.amp.GradScaler(enabled=False)\n", AUTOCAST, STEP, "turned off"),
    "autocast on the CPU": (f"{SCALER}\n", 'torch.autocast("cpu")', STEP, "on the CPU, too"),
    "bfloat16": (f"{SCALER}\n", "torch.cuda.amp.autocast(dtype=torch.bfloat16)", STEP, "precision than float16"),
    "two flags": (f"{SCALER}\n", "torch.cuda.amp.autocast(enabled=args.amp)", STEP, "not on where the scaler is"),
    "no autocast": (f"{SCALER}\n", "torch.enable_grad()", STEP, "trained outside of autocast"),
    "two scalers": (f"{SCALER}\nother = torch.cuda.amp.GradScaler()\n", AUTOCAST, STEP, "several scalers"),
    "scaled gradients are clipped": (
        f"{SCALER}\n",
        AUTOCAST,
        STEP.replace("scaler.step", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nscaler.step"),
        "clipped while they are scaled",
    ),
    "arithmetic on the scale": (
        f"{SCALER}\n",
        AUTOCAST,
        "scaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update(2.0)",
        "scaler.update(2.0) has no counterpart",
    ),
    "the scaled loss is kept": (
        f"{SCALER}\n",
        AUTOCAST,
        "scaled = scaler.scale(loss)\nscaled.backward()\nscaler.step(optimizer)\nscaler.update()",
        "scaled loss is kept",
    ),
    "no update after the step": (
        f"{SCALER}\n",
        AUTOCAST,
        "scaler.update()\nscaler.scale(loss).backward()\nscaler.step(optimizer)",
        "not updated right after the step",
    ),
    "branches that differ": (
        "scaler = torch.cuda.amp.GradScaler() if args.amp else None\n",
        "torch.cuda.amp.autocast(enabled=args.amp)",
        f"if args.amp:\n{textwrap.indent(STEP, '    ')}\nelse:\n    (2 * loss).backward()\n    optimizer.step()",
        "branches with and without mixed precision differ",
    ),
    "a loss that is not scaled": (
        f"{SCALER}\n",
        AUTOCAST,
        f"if args.amp:\n{textwrap.indent(STEP, '    ')}\nelse:\n    loss.backward()\n    optimizer.step()",
        "also trained without the scaler",
    ),
    "autocast or another context": (
        f"{SCALER}\ncontext = torch.cuda.amp.autocast if args.amp else nullcontext\n",
        "context()",
        STEP,
        "may be another one than autocast",
    ),
    "autocast or a context of one's own": (
        f"{OWN}{SCALER}\ncontext = torch.cuda.amp.autocast if args.amp else Own\n",
        "context()",
        STEP,
        "may be another one than autocast",
    ),
    "no branch without it": (
        "scaler = torch.cuda.amp.GradScaler() if args.amp else None\n",
        "torch.cuda.amp.autocast(enabled=args.amp)",
        f"if args.amp:\n{textwrap.indent(STEP, '    ')}",
        "what happens without mixed precision is not seen",
    ),
}


STEPS = f"{STEP}\nscheduler.step()"
SCHEDULER = "scheduler = optim.lr_scheduler.LinearLR(optimizer, total_iters=steps)"


@pytest.mark.parametrize("steps", ["100", "2 * len(loader)"])
def test_kept_beside_a_scheduler_that_would_wait_for_a_step_that_overflows(convert_text, remark, steps):
    before = BEFORE.replace("model =", f"steps = {steps}\nmodel =")
    before = whole(before, f"{SCHEDULER}\n{SCALER}\n{looped(AUTOCAST, STEPS)}")
    report, result = convert_text(before)

    remark(report, before, "MIG106", "GradScaler", ("make scheduler wait for a step that overflows",), Kind.NOTE)
    assert "optimizer, scheduler = accelerator.prepare(" in result
    assert "scaler.step(optimizer)\n    scaler.update()\n    scheduler.step()" in result


def test_a_scheduler_that_is_not_prepared_goes_on_by_itself(convert_text):
    epochs = f"{looped(AUTOCAST, STEP)}scheduler.step()"
    _, result = convert_text(whole(BEFORE, f"{SCHEDULER.replace('steps', '100')}\n{SCALER}\n{epochs}"))

    assert "scaler" not in result


def test_the_guard_of_a_script_is_no_flag(convert_text):
    script = textwrap.indent(f"{SCALER}{looped(AUTOCAST, STEP)}", "    ")
    _, result = convert_text(whole(BEFORE, f'if __name__ == "__main__":\n{script}'))

    assert "accelerator = Accelerator(mixed_precision='fp16')" in result.replace('"', "'")
    assert "scaler" not in result


@pytest.mark.parametrize("name", KEPT)
def test_not_understood_and_kept_by_hand(convert_text, remark, name):
    made, context, step, why = KEPT[name]
    before = whole(BEFORE, made + looped(context, step))
    report, result = convert_text(before)

    remark(report, before, "MIG106", "GradScaler", (why,), Kind.NOTE)
    assert context in result
    assert "accelerator = Accelerator()\n" in result
    if "scaler.scale(loss).backward()" in step:
        assert "accelerator.backward(scaler.scale(loss))" in result


def test_calls_without_autocast_are_told(convert_text, remark):
    evaluation = "with torch.no_grad():\n    print(model(data[0][0]))\n"
    before = whole(BEFORE, f"{SCALER}\n{looped(AUTOCAST, STEP)}{evaluation}")
    report, _ = convert_text(before)

    remark(report, before, "MIG106", "print(model(", ("computes in float16 here, too",), Kind.NOTE)


HELPED = """\
scaler.scale(loss).backward()
if step % 2:
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
else:
    scaler.unscale_(optimizer)
    clip(model)
scaler.step(optimizer)
scaler.update()"""


@pytest.mark.parametrize(("target", "unscales", "clips"), [(Target.RUNTIME, 1, 2), (Target.ACCELERATE, 2, 0)])
def test_accelerate_unscales_once_where_the_program_does_it_by_itself(convert_text, target, unscales, clips):
    helper = "def clip(model):\n    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
    loop = looped(AUTOCAST, HELPED).replace("for x, y in loader", "for step, (x, y) in enumerate(loader)")
    _, result = convert_text(whole(BEFORE, f"{helper}{SCALER}\n{loop}"), target=target)

    assert result.count("accelerator.unscale_gradients(optimizer)") == unscales
    assert result.count("accelerator.clip_grad_norm_(") == clips
    assert result.count("nn.utils.clip_grad_norm_(") == 2 - clips


def test_a_flag_that_is_set_after_the_model_is_made_keeps_the_scaler(convert_text, remark):
    before = whole(
        BEFORE,
        "amp = loader.batch_size > 2\nscaler = torch.cuda.amp.GradScaler(enabled=amp)\n"
        + looped("torch.cuda.amp.autocast(amp)", STEP),
    )
    report, result = convert_text(before)

    remark(report, before, "MIG106", "GradScaler", ("gets its value after the models are made",), Kind.NOTE)
    assert "accelerator.backward(scaler.scale(loss))" in result


def test_imports_go_with_the_last_use(convert_text):
    head = BEFORE.replace("from torch import nn, optim", "from torch import nn, optim\nfrom torch.cuda import amp")
    _, result = convert_text(whole(head, f"scaler = amp.GradScaler()\n{looped('amp.autocast()', STEP)}"))

    assert "amp import" not in result
    assert "import amp" not in result


TRAINER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Trainer:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = nn.Linear(4, 2).to(self.device)

    def train(self):
        use_amp = self.args["amp"]
        loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 2)), batch_size=4)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        scaler = torch.cuda.amp.GradScaler(enabled=use_amp)
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            with torch.cuda.amp.autocast(enabled=use_amp):
                loss = nn.functional.mse_loss(self.model(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

Trainer({"amp": True}).train()
"""


def test_a_flag_of_another_function_is_told_where_the_accelerator_is_made(convert_text):
    _, result = convert_text(TRAINER)

    assert 'self.accelerator = Accelerator(mixed_precision="fp16" if self.args["amp"] else "no")' in result
    assert "scaler" not in result
    assert result.index("self.args = args") < result.index("self.accelerator =")


def test_one_that_can_not_be_told_there_keeps_the_scaler(convert_text):
    report, result = convert_text(TRAINER.replace('self.args["amp"]', "next(self.model.parameters()).is_cuda"))
    (note,) = [finding for finding in report.findings if finding.code == "MIG106"]

    assert "use_amp is not at hand where the accelerator is made" in note.message
    assert "self.accelerator = Accelerator()\n" in result
    assert "self.accelerator.backward(scaler.scale(loss))" in result


def test_a_flag_that_the_object_holds_goes_to_the_accelerator(convert_text):
    _, result = convert_text(
        TRAINER.replace('        use_amp = self.args["amp"]\n', "")
        .replace("use_amp", "self.amp")
        .replace("self.args = args", "self.amp = args")
    )

    assert 'self.accelerator = Accelerator(mixed_precision="fp16" if self.amp else "no")' in result
    assert result.index("self.amp = args") < result.index("self.accelerator =")
    assert "scaler" not in result


BY_DEVICE = """
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Trainer:
    def __init__(self, args):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = nn.Linear(2, 1).to(self.device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        {given}
        self.scaler = torch.cuda.amp.GradScaler(enabled={flag})

    def fit(self):
        for x, y in self.loader:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled={flag}):
                loss = nn.functional.mse_loss(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
Trainer(parser.parse_args()).fit()
"""
GPU = "torch.cuda.is_available()"
#: By what mixed precision goes, below the device that the accelerator chooses: (a name for it, the flag, what is asked)
ASKED = {
    "its kind": ("pass", 'self.device.type == "cuda"', GPU),
    "any but the CPU": ("pass", 'self.device.type != "cpu"', GPU),
    "its text": ("pass", 'str(self.device).startswith("cuda")', GPU),
    "a name for it": ('self.amp = self.device.type == "cuda"', "self.amp", GPU),
    "a flag and its kind": ('self.amp = args.amp and "cuda" in str(self.device)', "self.amp", f"args.amp and {GPU}"),
}


@pytest.mark.parametrize("name", ASKED)
def test_mixed_precision_that_goes_by_the_device_asks_for_a_gpu(convert_text, name):
    given, flag, asked = ASKED[name]
    _, result = convert_text(BY_DEVICE.format(given=given, flag=flag))

    assert f'self.accelerator = Accelerator(mixed_precision="fp16" if {asked} else "no")' in result
    assert "self.device" not in result
    assert "self.amp" not in result


def test_a_name_for_it_stays_where_something_else_reads_it(convert_text):
    given = 'self.amp = self.device.type == "cuda"\n        print("amp", self.amp)'
    _, result = convert_text(BY_DEVICE.format(given=given, flag="self.amp"))

    assert f'Accelerator(mixed_precision="fp16" if {GPU} else "no")' in result
    assert 'self.amp = self.device.type == "cuda"' in result


def test_a_flag_that_is_written_out_above_the_device_keeps_its_name(convert_text):
    """A person turns mixed precision on where it stands."""
    source = BY_DEVICE.format(given="pass", flag="self.amp")
    _, result = convert_text(
        source.replace("        self.device =", "        self.amp = False\n        self.device =", 1)
    )

    assert 'Accelerator(mixed_precision="fp16" if self.amp else "no")' in result
    assert result.index("self.amp = False") < result.index("Accelerator(mixed")


def test_a_flag_that_is_written_out_below_it_is_written_there(convert_text):
    _, result = convert_text(BY_DEVICE.format(given="self.amp = False", flag="self.amp"))

    assert 'Accelerator(mixed_precision="fp16" if False else "no")' in result


ARGUMENTS = 'parser = argparse.ArgumentParser()\nparser.add_argument("--half", action="store_true")'
BY_FLAG = "if args.half:\n    model.half()"


def test_parameters_in_half_precision_by_a_flag_are_told(unchanged, programs, remark):
    holes = {"imports": "import argparse", "setup": f"{ARGUMENTS}\nargs = parser.parse_args()", "made": BY_FLAG}
    report = unchanged(**holes)

    remark(report, programs(holes)[0], "MIG106", "model.half()", ["float16", "where this is chosen"], Kind.NOTE)


@pytest.mark.parametrize("made", ["model.half()", "if torch.cuda.is_available():\n    model.half()"])
def test_parameters_in_half_precision_that_nobody_chooses_are_refused(refused, made):
    refused("MIG106", "model.half()", ["float16"], made=made)


BUILT = """
import argparse

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, args):
        self.args = args
        self.build(args)

    def build(self, args):
        self.device = {device}
        self.model = nn.Linear(2, 1).to(self.device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = DataLoader(TensorDataset(torch.ones(16, 2), torch.zeros(16, 1)), batch_size=4)
        self.amp = {amp}
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.amp)

    def train(self):
        for x, y in self.loader:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=self.amp):
                loss = nn.functional.mse_loss(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        print(loss.item())


parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
torch.manual_seed(0)
Solver(parser.parse_args()).train()
"""
CHOSEN = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'
#: What the flag is given below the accelerator, and the same above; None: it cannot be told there.
BELOW = {
    "args.amp": "args.amp",
    "self.args.amp and torch.cuda.is_available()": "self.args.amp and torch.cuda.is_available()",
    'str(self.device).startswith("cuda")': None,
    "bool(input())": None,
}


@pytest.mark.parametrize("amp", BELOW)
def test_a_flag_that_gets_its_value_below_the_accelerator_is_told_above_or_stays(convert_text, numbers_printed, amp):
    device = 'name["device"]' if "device" in amp else CHOSEN
    source = BUILT.format(amp=amp, device=device).replace(
        "import argparse\n", "import argparse\nname = {'device': 'cpu'}\n"
    )
    _, result = convert_text(source)

    asked = BELOW[amp]
    argument = "" if asked is None else f'mixed_precision="fp16" if {asked} else "no"'
    assert f"self.accelerator = Accelerator({argument})" in result
    if "input" not in amp:
        assert numbers_printed(result, 1) == numbers_printed(source, 1)
