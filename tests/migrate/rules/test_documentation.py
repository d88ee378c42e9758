"""What the documentation of the rules shows, before -> after, is what the tool does; and both run to the same end."""

import contextlib
import io
import re
import textwrap

import pytest

from migrate.rules import RULES

ARROW = re.compile(r"^ {4}(?P<before>\S.*?) +-> +(?P<after>\S.*)$")
WORDS = re.compile(r"\([a-z ]+\)")  # a case told in words: its code stands in the line above

CHOICE = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
CHOSEN = {"accelerator": "", "setup": (CHOICE, "accelerator = Accelerator()")}
NET = """
class Net(nn.Linear):
    def __init__(self):
        super().__init__(2, 1)
    def decode(self, z):
        return 2 * z
"""
MODEL = {"setup": NET, "model": "model = Net()"}
#: What the examples leave open.
WITH = {"...": '"done"', "path": '"m.pt"', "dtype": "torch.float64", "points": "x", "n, 8": "4, 2"}


def is_gone(after):
    return after.startswith("(gone")


def arrows():
    """(rule, before, after) for every arrow in the documentation of the rules."""
    for rule in RULES:
        for line in rule.documentation.splitlines():
            if (found := ARROW.match(line)) and not WORDS.fullmatch(found["before"]):
                yield rule.name, found["before"], found["after"]


def put(hole, template="{}", **others):
    """The holes of the program with an example, as a pair, in one of them."""

    def holes(before, after):
        return {**others, hole: (template.format(before), "" if is_gone(after) else template.format(after))}

    return holes


def joined(before, after):
    """The new statement of the example stands after the loop."""
    return {
        "start": "total_loss = 0",
        "step": before,
        "epoch": ("print(total_loss)", f"{after}\naccelerator.print(total_loss)"),
    }


def summed(before, after):
    """The same of a dictionary, under keys that are not written out."""
    return {
        "start": "sums = {name: 0 for name in names}",
        "step": f"for name in names: {before}",
        "epoch": ("print(sums)", f"{after}\naccelerator.print(sums)"),
        "made": "names = ['mse']",
    }


METER = """class Meter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
"""


def metered(before, after):
    """The meter is made before the loop, and read after it."""
    return {
        "setup": METER,
        "start": "meter = Meter()",
        "step": before,
        "epoch": ("print(meter.sum)", f"{after}\naccelerator.print(meter.sum)"),
    }


def left(before, after):
    """The last loss is joined above what reads it after the loop."""
    return {"made": 'quoted = "so", "all"', "epoch": (before, f"{after}\naccelerator.{before}")}


def listed(before, after):
    """The list is filled in the loop and joined after it."""
    return {
        "start": "losses = []",
        "step": before,
        "epoch": ("print(sum(losses))", f"{after}\naccelerator.print(sum(losses))"),
    }


def kept(before, after):
    """The list goes on over all epochs; what an epoch adds is joined behind its loop."""
    shown = "print(history[-1])"
    return {
        "made": 'history = []\nquoted = "so", "all"',
        "step": before,
        "epoch": (shown, f"{after}\naccelerator.{shown}"),
    }


def counted(before, after):
    """The function sets the rate by a count of batches."""
    lines = ("lr = 0.1 * 0.9 ** (step / 100)", "for group in optimizer.param_groups:", '    group["lr"] = lr')
    function = "\n    ".join(["def adjust_learning_rate(optimizer, step):", *lines])
    return {"setup": function, "made": "step = 0", "batch": (before, after), "step": "step += 1"}


def closed(before, after):
    """An optimizer that decides by the loss, in the place of the usual step."""
    lines = ("def closure():", "    loss = criterion(model(x), y)", "    {}", "    {}", "lbfgs.step(closure)")
    made = 'lbfgs = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")'
    return {
        "made": made,
        "prepare": "loader, model, lbfgs, optimizer = accelerator.prepare(loader, model, lbfgs, optimizer)",
        "step": (
            "\n".join(lines).format("loss.backward()", before),
            "\n".join(lines).format("accelerator.backward(loss)", after),
        ),
    }


def guarded(before, after):
    call = before.replace('("done")', '("epoch", epoch)')
    make = "if accelerator.is_main_process:\n    writer = SummaryWriter()"
    return {
        "imports": "from torch.utils.tensorboard import SummaryWriter",
        "ready": ("writer = SummaryWriter()", make),
        "epoch": (call, f"{after}\n    {call}"),
    }


def drawn(before, after):
    make = "writer = SummaryWriter()"
    indented = textwrap.indent(f"{make}\n{after}", "    ")
    return {
        "imports": "from torch.utils.tensorboard import SummaryWriter",
        "ready": (f"{make}\n{before}", f"if accelerator.is_main_process:\n{indented}"),
        **CHOSEN,
        "setup": (
            f"{CHOICE}\nx = torch.randn(1, 2).to(device)",
            "accelerator = Accelerator()\ndevice = accelerator.device\nx = torch.randn(1, 2).to(device)",
        ),
    }


def bars(before, after):
    over = re.compile(r"for x, y in (.*):")
    return {
        "imports": "from tqdm import tqdm",
        "over": (over.fullmatch(before)[1], over.fullmatch(after)[1]),
    }


def one_by_one(before, after):
    """The loop counts the batches that it takes from an iterator."""
    over = re.compile(r"for step in (.*):")
    return {
        "ready": "steps = len(data) // 4",
        "start": "batches = iter(loader)",
        "target": "step",
        "over": (over.fullmatch(before)[1], over.fullmatch(after)[1]),
        "batch": "x, y = next(batches)",
    }


def logged(before, after):
    """The example stays; what silences the other processes follows the accelerator."""
    silent = "if not accelerator.is_main_process:\n    logging.disable(logging.INFO)"
    assert after.endswith("after: if not accelerator.is_main_process:")
    return {
        "imports": "import logging",
        "epoch": before,
        "accelerator": "",
        "setup": (CHOICE, f"accelerator = Accelerator()\n{silent}"),
        "made": ("model.to(device)", ""),
    }


def compared(chosen, kept):
    def fill(before, after):
        return {
            "accelerator": "",
            "setup": (f"device = {chosen}", f"accelerator = Accelerator(){kept}"),
            "made": ("model = model.to(device)", ""),
            "end": (f"{before}\n    x = None", f"{after}\n    x = None"),
        }

    return fill


def labelled(before, after):
    naming = "labels, predicted = y.view(-1), output.argmax(1)"
    return {
        "imports": "from sklearn.metrics import accuracy_score",
        "step": (f"{naming}\nscore = {before}", f"{naming}\nscore = {after}"),
    }


def grouped(hole, template="{}", **others):
    """The program joins a process group; its rank and the number of processes have names."""
    joins = 'dist.init_process_group("gloo")\nrank, world_size = dist.get_rank(), dist.get_world_size()'
    return put(hole, template, imports=("import torch.distributed as dist", ""), setup=(joins, ""), **others)


def variables(before, after):
    return {"imports": ("from torch.autograd import Variable", ""), "batch": (before, "")}


TENSOR = "Tensor = torch.cuda.FloatTensor"
GPU = ("cuda = torch.cuda.is_available()", "")
MADE = ("noise = Tensor(4, 2)", "noise = Tensor(4, 2).to(accelerator.device)")


def typed(before, after):
    return {"setup": (TENSOR, "Tensor = torch.FloatTensor"), "batch": (before, after)}


#: (rule, example) -> the holes of the program that the example fills.
AROUND = {
    ("model-placement", "model = Net().to(device)"): put("model", **CHOSEN | {"imports": NET}),
    ("model-placement", "model.cuda()"): put("made"),
    ("model-placement", "model = model.to(device, dtype)"): put("made", **CHOSEN),
    ("prepare", "for step in range(steps):"): one_by_one,
    ("prepare", "steps = len(loader)"): put("ready", "model.eval()\n{}", start="model.train()"),
    ("batch-moves", "x, y = x.to(device), y.to(device)"): put("batch", **CHOSEN),
    ("batch-moves", "batch = {k: v.to(device) for k, v in batch.items()}"): put(
        "batch",
        **CHOSEN,
        made='loader = DataLoader([{"x": row, "y": label} for row, label in data])',
        target="batch",
        forward='model(batch["x"])',
        start="y = torch.ones(1, 1)",
    ),
    ("batch-moves", "x = Variable(x.cuda())"): variables,
    ("batch-moves", "noise = torch.randn(n, 8).cuda()"): put("batch"),
    ("hidden-device", f"{TENSOR} if cuda else torch.FloatTensor"): put("setup", imports=GPU, batch=MADE),
    ("hidden-device", "noise = Tensor(4, 2)"): typed,
    ("hidden-device", "x = x.type(Tensor)"): put("batch", setup=(f"{TENSOR}", "")),
    ("hidden-device", "y = y.type(torch.LongTensor)"): put("step"),
    ("to-the-host", "points.numpy()"): put("batch", "shown = {}"),
    ("to-the-host", "accuracy_score(labels, predicted)"): labelled,
    ("backward-call", "loss.backward()"): put("backward"),
    ("backward-call", "loss.backward(torch.ones_like(loss))"): put("backward"),
    ("backward-call", "(a + b).backward(retain_graph=True)"): put("backward", "a, b = loss, output.sum()\n{}"),
    ("backward-call", "torch.autograd.backward([a, b])"): put("backward", "a, b = loss, output.mean()\n{}"),
    ("gradient-clipping", "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"): put("step"),
    ("data-parallel", "model = nn.DataParallel(model)"): put("made"),
    ("data-parallel", 'getattr(model, "module", model)'): put("end", "inner = {}"),
    ("data-parallel", "model.module.state_dict()"): put(
        "end", "shown = {}", made=("model = nn.DataParallel(model)", "")
    ),
    ("metrics", "total_loss += loss.item()"): joined,
    ("metrics", "losses.append(loss.item())"): listed,
    ("metrics", "history.append(loss.item())"): kept,
    ("metrics", "sums[name] += loss.item()"): summed,
    ("metrics", "print(loss.item())"): left,
    ("metrics", "meter.update(loss.item())"): metered,
    ("loading", "model.load_state_dict(torch.load(path))"): put("made"),
    ("model-attributes", "model.state_dict()"): put("end", "state = {}"),
    ("model-attributes", "model.decode(z)"): put("end", "z = x\nz = {}", **MODEL),
    ("model-attributes", "model[0].weight"): put("end", "weight = {}", model="model = nn.Sequential(nn.Linear(2, 1))"),
    ("model-attributes", "for layer in model:"): put(
        "end", "{}\n    layer", model="model = nn.Sequential(nn.Linear(2, 1))"
    ),
    ("model-attributes", "print(model)"): put("end"),
    ("model-attributes", "writer.add_graph(model, x)"): drawn,
    ("model-attributes", 'torch.save({"net": model}, path)'): put("end"),
    ("model-attributes", "torch.save(model.cpu(), path)"): put("end"),
    ("model-attributes", "model = model.cpu()"): put(
        "end", "{}\nshown = model(torch.ones(1, 2))", **CHOSEN, batch=("x, y = x.to(device), y.to(device)", "")
    ),
    ("agreement", "if torch.isnan(loss):"): put("step", "{}\n    continue"),
    ("agreement", "if not math.isfinite(loss.item()):"): put("step", "{}\n    break", imports="import math"),
    ("agreement", "if loss.item() < 0.1:"): put(
        "step", "{}\n    model.zero_grad()", made='wanted = {"low": 0.0, "high": 1.0}'
    ),
    ("agreement", "losses.append(loss.item())"): put(
        "step", made='losses = []\nwanted = {"low": 0.0, "high": 1.0}', epoch="if losses[-1] < 0.0:\n    break"
    ),
    ("agreement", "if random.random() < 0.1:"): put("step", "{}\n    continue", imports="import random"),
    ("agreement", "return loss"): closed,
    ("schedulers", "adjust_learning_rate(optimizer, step)"): counted,
    ("saving", "torch.save(model.state_dict(), path)"): put("end"),
    ("output", "print(...)"): put("end"),
    ("output", "writer.add_scalar(...)"): guarded,
    ("output", "for x, y in tqdm(loader):"): bars,
    ("output", "logging.info(...)"): logged,
    ("rank-guards", "if dist.get_rank() == 0:"): grouped("end", "{}\n    x = None"),
    ("rank-guards", "torch.manual_seed(seed + rank)"): grouped("made", "seed = 1\n{}"),
    ("rank-guards", "lr = args.lr * world_size"): grouped("made", "args = nn.Module()\nargs.lr = 1\n{}\nscaled = lr"),
    ("rank-guards", "dist.barrier()"): grouped("end"),
    ("device-choice", CHOICE): put("made"),
    ("device-choice", 'if device == "cuda":'): compared('"cuda" if torch.cuda.is_available() else "cpu"', ""),
    ("device-choice", 'if device == torch.device("cuda"):'): compared(
        'torch.device("cuda" if torch.cuda.is_available() else "cpu")', "\ndevice = accelerator.device"
    ),
    ("device-choice", 'torch.ones(3, device="cuda")'): put("end", "a = {}"),
    ("device-choice", "torch.cuda.set_device(0)"): put("setup", made=("model.cuda()", "")),
}
#: Not executed: they need a GPU or a library that is not among the tests', or read a file.
NOT_RUN = (
    "cuda()", "set_device", "tqdm", "writer.", "accuracy_score", "torch.load", "DataParallel", "model.module",
    "torch.float64", "torch.cuda.", "dist.", 'device="cuda"',
)  # fmt: skip
#: What cannot be shown in one line: test_accelerator.py, test_grad_scaler.py, test_metric_sync.py and others have it.
ELSEWHERE = {
    "batches = min(limit, len(loader))",
    "print(total / batches)",
    "for data in loader:",
    "for x, y in train_loader:",
    'accuracy = Accuracy(task="multiclass", num_classes=3)',
    "def train(model, device, loader):",
    "train(model, device, loader)",
    "scaler.scale(loss).backward()",
    "scaler = GradScaler()",
    "scaler = GradScaler(enabled=args.amp)",
    "scaler.step(optimizer)",
    "scaler.update()",
    "scaler.unscale_(optimizer)",
    "scaler.state_dict()",
    "if scaler is not None:",
    "loss = loss / k",
    "with model.no_sync():",
    "if (i + 1) % k == 0 or i + 1 == len(loader):",
    "with torch.cuda.amp.autocast():",
    'with torch.autocast("cuda", enabled=args.amp):',
    "dist.all_reduce(center)",
    "dist.broadcast(stop, src=0)",
    "train(model, optimizer, scaler)",
    "return model",
}


def examples():
    return [
        pytest.param(rule, before, after, id=f"{rule}: {before}")
        for rule, before, after in arrows()
        if before not in ELSEWHERE
    ]


def open_ends(text):
    for word, filling in WITH.items():
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", filling, text)
    return text


@pytest.mark.parametrize(("rule", "before", "after"), examples())
def test_documented(changed, programs, rule, before, after, tmp_path, monkeypatch):
    assert (rule, before) in AROUND, "a new example in the documentation: say here which program it stands in"
    filled = AROUND[rule, before](open_ends(before), open_ends(after))
    changed(**filled)

    if not any(word in str(filled) for word in NOT_RUN):
        monkeypatch.chdir(tmp_path)
        first, second = (trained(text) for text in programs(filled))
        assert first == second


def trained(text):
    """What a program says, and the parameters it ends with."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    said = io.StringIO()
    names = {"__name__": "__main__"}
    with contextlib.redirect_stdout(said):
        exec(compile(text, "program.py", "exec"), names)  # noqa: S102 (a program of the table above)
    return said.getvalue(), [p.tolist() for p in names["model"].parameters()]


def test_every_program_belongs_to_an_example():
    assert AROUND.keys() == {(rule, before) for rule, before, _ in arrows() if before not in ELSEWHERE}
