"""MIG106: mixed precision that was apex's."""

import textwrap

import pytest

from migrate.options import Options, Target
from migrate.pipeline import run, run_text
from migrate.report.model import Kind

BEFORE = """\
import argparse
import torch
from apex import amp
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
parser.add_argument("--level", default="O1")
args = parser.parse_args()
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
START = "model, optimizer = amp.initialize(model, optimizer)"
PREPARED = "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)\n"
LOOP = """
for x, y in loader:
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    {step}
    optimizer.step()
"""
SCALED = "with amp.scale_loss(loss, optimizer) as scaled_loss:\n    scaled_loss.backward()"
OPTION = 'parser.add_argument("--level", default="O1")\n'


def program(start, step):
    return f"{BEFORE}{start}\n{LOOP.format(step=textwrap.indent(step, '    ').strip())}"


def without_blank_lines(text):
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


def native(precision, step):
    text = BEFORE.replace("from apex import amp\n", "from runtime import Accelerator\n")
    first = "data =" if "args" in precision else "parser ="
    made = text.replace(first, f"accelerator = Accelerator({precision})\n{first}", 1)
    return made + PREPARED + LOOP.format(step=textwrap.indent(step, "    ").strip())


def flagged(body):
    return f"if args.amp:\n{textwrap.indent(body, '    ')}"


def both(on, off):
    return f"{flagged(on)}\nelse:\n{textwrap.indent(off, '    ')}"


CLIPPED = "torch.nn.utils.clip_grad_norm_({}, 1.0)"
MASTER, MODEL = CLIPPED.format("amp.master_params(optimizer)"), CLIPPED.format("model.parameters()")
CLIPS = "accelerator.clip_grad_norm_(model.parameters(), 1.0)"
BACKWARD = "accelerator.backward(loss)"
ALWAYS, FLAG = 'mixed_precision="fp16"', 'mixed_precision="fp16" if args.amp else "no"'
LEVEL = 'mixed_precision="no" if args.level == "O0" else "fp16"'
BOTH = 'mixed_precision="fp16" if args.amp and args.level != "O0" else "no"'
TRIED = "try:\n    from apex import amp\nexcept ImportError:\n    raise ImportError('Please install apex')\n"

#: name: (what starts it, a step, the constructor's argument, the step afterwards)
CHANGED = {
    "always": (START, SCALED, ALWAYS, BACKWARD),
    "a model alone": ("model = amp.initialize(model, opt_level='O1')", SCALED, ALWAYS, BACKWARD),
    "in place": ("amp.initialize(model, optimizer, verbosity=0)", SCALED, ALWAYS, BACKWARD),
    "lists": ("[model], [optimizer] = amp.initialize([model], [optimizer])", SCALED, ALWAYS, BACKWARD),
    "a flag": (flagged(START), both(SCALED, "loss.backward()"), FLAG, BACKWARD),
    "the other way round": (
        flagged(START),
        both("loss.backward()", SCALED).replace("if args.amp:", "if not args.amp:"),
        FLAG,
        BACKWARD,
    ),
    "imported where it is needed": (flagged(TRIED + START), both(SCALED, "loss.backward()"), FLAG, BACKWARD),
    "a parameter": (START.replace("er)", "er, enabled=args.amp)"), SCALED, FLAG, BACKWARD),
    "a level": (START.replace("er)", "er, opt_level=args.level)"), SCALED, LEVEL, BACKWARD),
    "a flag and a level": (
        flagged(START.replace("er)", "er, opt_level=args.level)")),
        both(SCALED, "loss.backward()"),
        BOTH,
        BACKWARD,
    ),
    "a flag with a name of its own": (
        "use_amp = args.amp\n" + flagged(START).replace("args.amp", "use_amp"),
        both(SCALED, "loss.backward()").replace("args.amp", "use_amp"),
        FLAG,
        BACKWARD,
    ),
    "a flag and a GPU": (
        flagged(START).replace("args.amp", "torch.cuda.is_available() and args.amp and args.level"),
        SCALED,
        'mixed_precision="fp16" if args.amp and args.level else "no"',
        BACKWARD,
    ),
    "clipping": (START, f"{SCALED}\n{MASTER}", ALWAYS, f"{BACKWARD}\n{CLIPS}"),
    "clipping in both branches": (
        flagged(START),
        both(f"{SCALED}\n{MASTER}", f"loss.backward()\n{MODEL}"),
        FLAG,
        f"{BACKWARD}\n{CLIPS}",
    ),
    "clipping inside": (START, f"{SCALED}\n    {MASTER}", ALWAYS, f"{BACKWARD}\n{CLIPS}"),
    "a branch of its own for clipping": (
        flagged(START),
        both(SCALED, "loss.backward()") + "\n" + both(MASTER, MODEL),
        FLAG,
        f"{BACKWARD}\n{CLIPS}",
    ),
    "branches that differ": (
        flagged(START),
        both(f"{SCALED}\n{MASTER}", "loss.backward()"),
        FLAG,
        both(f"{BACKWARD}\n{CLIPS}", BACKWARD),
    ),
    "a loss that is computed there": (
        START,
        SCALED.replace("(loss,", "(loss / 2,"),
        ALWAYS,
        "accelerator.backward(loss / 2)",
    ),
    "full precision": (START.replace("er)", "er, opt_level='O0')"), SCALED, "", BACKWARD),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(convert_text, name):
    start, step, precision, after = CHANGED[name]
    report, result = convert_text(program(start, step))

    assert without_blank_lines(result) == without_blank_lines(native(precision, after))
    assert [finding.code for finding in report.of(Kind.LEFT)] == []


def test_a_scale_of_its_own_is_told(convert_text):
    start = START.replace("er)", "er, loss_scale=128.0, keep_batchnorm_fp32=None)")
    report, result = convert_text(program(start, SCALED))

    assert ALWAYS in result
    assert any("loss_scale=128.0 has no counterpart" in finding.message for finding in report.of(Kind.NOTE))


def test_a_scheduler_that_waits_for_a_step_that_overflows_is_told(convert_text):
    scheduler = "scheduler = optim.lr_scheduler.LinearLR(optimizer, total_iters=100)"
    report, result = convert_text(program(f"{START}\n{scheduler}", f"{SCALED}\nscheduler.step()"))

    assert ALWAYS in result
    assert any("scheduler waits for a step that overflows" in finding.message for finding in report.of(Kind.NOTE))


def test_whether_it_is_installed_is_no_question_any_more(convert_text):
    source = program(
        "if has_apex and args.amp:\n    " + START,
        both(SCALED, "loss.backward()").replace("args.amp", "has_apex and args.amp"),
    )
    tried = "try:\n    from apex import amp\n    has_apex = True\nexcept ImportError:\n    has_apex = False\n"
    told = "if args.amp and not has_apex:\n    raise SystemExit('no apex')\n"
    source = source.replace("from apex import amp\n", tried, 1).replace("data =", told + "data =", 1)
    _, result = convert_text(source)

    assert without_blank_lines(result) == without_blank_lines(
        native(FLAG, BACKWARD)
        .replace("from runtime import Accelerator\n", "", 1)
        .replace("import torch\n", "import torch\nfrom runtime import Accelerator\n", 1)
    )


def test_the_state_is_the_scalers(convert_text):
    source = program(START, SCALED)
    source += "state = torch.load('a.pt')\namp.load_state_dict(state['amp'])\nkept = {'amp': amp.state_dict()}\n"
    _, result = convert_text(source)

    assert "kept = {'amp': accelerator.scaler.state_dict() if accelerator.scaler else {}}" in result
    assert (
        "if accelerator.scaler and \"scale\" in state['amp']:\n"
        "    accelerator.scaler.load_state_dict(state['amp'])\n" in result
    )


CLAMP = "for p in model.parameters():\n    p.grad.clamp_(-1, 1)"
READ = "norms = [p.grad.norm().item() for p in {}]"
UNSCALED = "accelerator.unscale_gradients(optimizer)"

#: What is done with gradients between the backward and the step, and afterwards.
READING = {
    "changed": (f"{SCALED}\n{CLAMP}", f"{BACKWARD}\n{UNSCALED}\n{CLAMP}"),
    "in both branches": (
        both(
            f"{SCALED}\n{READ.format('amp.master_params(optimizer)')}",
            f"loss.backward()\n{READ.format('model.parameters()')}",
        ),
        f"{BACKWARD}\n{UNSCALED}\n{READ.format('model.parameters()')}",
    ),
    "divided": (
        f"{SCALED}\n{CLAMP}".replace("clamp_(-1, 1)", "data.div_(2)"),
        f"{BACKWARD}\n{CLAMP}".replace("clamp_(-1, 1)", "data.div_(2)"),
    ),
}


@pytest.mark.parametrize("name", READING)
def test_gradients_that_are_read_are_unscaled(convert_text, name):
    step, after = READING[name]
    start, precision = (flagged(START), FLAG) if "both" in name else (START, ALWAYS)
    _, result = convert_text(program(start, step))

    assert without_blank_lines(result) == without_blank_lines(native(precision, after))


def test_a_number_of_apex_is_an_item(convert_text):
    source = program(START, f"{SCALED}\nkept = to_python_float(loss.data)")
    source = source.replace("amp\n", "amp\nfrom apex.fp16_utils import to_python_float\n", 1)
    _, result = convert_text(source)

    assert "    kept = loss.data.item()\n" in result
    assert "apex" not in result


@pytest.mark.parametrize(
    ("step", "mention"),
    [
        (f"{SCALED}\n{CLAMP}", "gradients are read"),
        (f"{SCALED}\n{MASTER}\nif (i + 1) % 2 == 0:\n    optimizer.step()", "gradients are clipped while"),
    ],
)
def test_with_accelerate_gradients_are_unscaled_once(step, mention):
    source = program(START, step).replace("for x, y in loader:", "for i, (x, y) in enumerate(loader):")
    if "% 2" in step:
        source = source.replace("\n    optimizer.step()\n", "\n", 2).replace(
            "% 2 == 0:\n", "% 2 == 0:\n        optimizer.step()\n"
        )
    report = run_text(source.encode(), "program.py", Options(target=Target.ACCELERATE))

    assert report.changes == ()
    (left,) = report.of(Kind.LEFT)
    assert left.code == "MIG106"
    assert mention in left.message


#: name: (what starts it, a step, a part of the reason)
REFUSED = {
    "parameters in float16": (START.replace("er)", "er, opt_level='O2')"), SCALED, "opt_level O2"),
    "a default in float16": (
        START.replace("er)", "er, opt_level=args.half)"),
        SCALED,
        "opt_level O3",
    ),
    "settings of its own": (START.replace("er)", "er, master_weights=True)"), SCALED, "(master_weights)"),
    "functions in full precision": (f"amp.register_float_function(torch, 'sigmoid')\n{START}", SCALED, "amp.register"),
    "handed on": (f"{START}\nprint(vars(amp))", SCALED, "amp is handed on"),
    "a loss that is kept": (START, f"{SCALED}\nkept = scaled_loss.item()", "outside of its `with`"),
    "a scaler beside it": (f"{START}\nscaler = torch.cuda.amp.GradScaler()", SCALED, "PyTorch's scaler, too"),
    "copies of the parameters": (
        "from apex.fp16_utils import FP16_Optimizer\noptimizer = FP16_Optimizer(optimizer)",
        "loss.backward()",
        "FP16_Optimizer keeps the parameters in float16",
    ),
}


#: Where it is said, if not where apex starts.
AT = {
    "a loss that is kept": "scaled_loss.item",
    "handed on": "vars(amp)",
    "a scaler beside it": "torch.cuda.amp.GradScaler",
    "copies of the parameters": "FP16_Optimizer(optimizer)",
    "functions in full precision": "amp.register_float_function",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused_text, name):
    start, step, mention = REFUSED[name]
    source = program(start, step).replace(OPTION, OPTION + 'parser.add_argument("--half", default="O3")\n')
    refused_text(source, "MIG106", AT.get(name, start[start.index("amp.") :] if "amp." in start else ""), [mention])


def test_what_apex_does_beside_its_precision_is_named(refused_text):
    start = "from apex.parallel.LARC import LARC\noptimizer = LARC(optimizer)"
    refused_text(program(start, "loss.backward()"), "MIG106", "LARC(optimizer)", ["apex.parallel.LARC.LARC()"])


TRAINS = """\
import torch
from torch import nn
from apex import amp


def train(model, loader, optimizer, is_amp):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        if is_amp:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def test_its_import_goes_with_its_last_use_though_an_option_has_its_name(tmp_path, monkeypatch):
    start = "if args.amp:\n    model, optimizer = amp.initialize(model, optimizer)\n"
    called = "train(model, loader, optimizer, args.amp)\n"
    (tmp_path / "main.py").write_text(f"from process import train\n{BEFORE}{start}{called}")
    (tmp_path / "process.py").write_text(TRAINS)
    monkeypatch.chdir(tmp_path)

    changes = {change.path: change.new.decode() for change in run(["."], Options()).changes}

    assert "accelerator.backward(loss)" in changes["process.py"]
    assert not any("apex" in text for text in changes.values())


SHOWN = """\
import torch
from apex import amp
from net import Net

model, _ = amp.initialize(Net().cuda(), [], opt_level="O3")
print(model(torch.ones(1, 2).cuda()))  # nothing here needs backward
"""


SPAWNED = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from apex import amp
from net import Net
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def main(rank):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:23456", world_size=2, rank=rank)
    data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    loader = DataLoader(data, batch_size=4, sampler=torch.utils.data.DistributedSampler(data))
    model = Net().cuda(rank)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x.cuda(rank)) - y.cuda(rank)).square().mean()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()


if __name__ == "__main__":
    mp.spawn(main, nprocs=2)
"""
NET = """\
from torch import nn


class Net(nn.Linear):  # fits on a gpu
    def __init__(self):
        super().__init__(2, 1)
"""


def test_a_script_that_only_shows_a_model_keeps_its_apex(tmp_path):
    for name, source in {"train.py": SPAWNED, "show.py": SHOWN, "net.py": NET}.items():
        (tmp_path / name).write_text(source)
    report = run([str(tmp_path)], Options(cache=False))
    assert not [finding for finding in report.findings if finding.code == "MIG106" and finding.kind is Kind.LEFT]
    (change,) = report.changes
    assert change.path.endswith("train.py")
    assert b"mixed_precision='fp16')" in change.new
