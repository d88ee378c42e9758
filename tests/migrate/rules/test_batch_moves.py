import pytest

DEVICE = 'device = torch.device("cuda")'
#: The device choice comes before everything that is made, so the accelerator takes its place.
CHOSEN = {"accelerator": "", "setup": (DEVICE, "accelerator = Accelerator()")}
KEPT = {"accelerator": "", "setup": (DEVICE, "accelerator = Accelerator()\ndevice = accelerator.device")}

UNCHANGED = {
    "a cast by its name": {"batch": "x = x.float()"},
    "a reshaped batch": {"batch": "x = x.view(-1, 2)"},
    "a method called to of another object": {
        "setup": "class Port:\n    def to(self, place):\n        return place\n\nport = Port()",
        "batch": "place = port.to(x)",
    },
    "made on the batch's device": {"batch": "z = torch.zeros(4, 2, device=x.device)"},
    "made on the CPU": {"ready": 'kept = torch.zeros(4, 2, device="cpu")'},
    "made from the batch": {"batch": "z = x.new_zeros(4, 2)"},
    "a cast": {"batch": "x = x.to(torch.float64)"},
    "to the CPU by name": {"batch": 'kept = x.to("cpu")'},
    "with cpu()": {"batch": "kept = x.cpu()"},
    "to another tensor's device": {"batch": "scale = torch.ones(2, device=x.device)\nx = x * scale.to(x.device)"},
    "a loader that is not trained on, in other code": {
        "setup": "def look(rows):\n    return rows.to('cpu')",
        "batch": "seen = look(x)",
    },
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


DROPPED = {
    "a pair": ("x, y", "x, y = x.to(device), y.to(device)"),
    "one at a time": ("x, y", "x = x.to(device)\ny = y.to(device)"),
    "by keyword": ("x, y", "x = x.to(device=device)\ny = y.to(device=device, non_blocking=True)"),
    "non_blocking": ("x, y", "x = x.to(device, non_blocking=True)\ny = y.to(device, True)"),
    "cuda": ("x, y", "x, y = x.cuda(), y.cuda(non_blocking=True)"),
    "cuda of a number": ("x, y", "x, y = x.cuda(0), y.cuda(0)"),
    "the list in place": ("batch", "batch = [t.to(device) for t in batch]"),
    "the tuple in place": ("batch", "batch = tuple(t.to(device) for t in batch)"),
    "a dictionary in place": ("batch", "batch = {k: v.to(device) for k, v in batch.items()}"),
}


@pytest.mark.parametrize("name", DROPPED)
def test_dropped(changed, name):
    target, moves = DROPPED[name]
    forward = "model(x)" if target == "x, y" else "model(batch[0])"
    changed(**CHOSEN, target=target, batch=(moves, ""), forward=forward)


REWRITTEN = {
    "unpacked from a list": ("batch", "x, y = [t.to(device) for t in batch]", "x, y = batch"),
    "unpacked from a tuple": ("batch", "x, y = tuple(t.to(device) for t in batch)", "x, y = batch"),
    "unpacked from some of a list": (
        "batch",
        "x, y = list(t.to(device) for t in batch if len(t))",
        "x, y = list(t for t in batch if len(t))",
    ),
    "a dictionary made of pairs": (
        "batch",
        "rows = {k: v.to(device) for k, v in zip('xy', batch)}\nx, y = rows['x'], rows['y']",
        "rows = {k: v for k, v in zip('xy', batch)}\nx, y = rows['x'], rows['y']",
    ),
    "a dictionary that is cast": (
        "batch",
        "rows = {k: v.float().to(device) for k, v in dict(x=batch[0]).items()}\nx, y = rows['x'], batch[1]",
        "rows = {k: v.float() for k, v in dict(x=batch[0]).items()}\nx, y = rows['x'], batch[1]",
    ),
    "moved, or something else": (
        "x, y",
        "x = x.to(device) if len(x) else x.float()",
        "x = x if len(x) else x.float()",
    ),
    "put back by a map": ("x, y", "x, y = map(lambda t: t.to(device), (x, y))", ""),
    "unpacked from a map": ("batch", "x, y = map(lambda t: t.to(device), batch)", "x, y = batch"),
    "a map of a part": (
        "batch",
        "x, y = batch\nrows = list(map(lambda t: t.cuda(), [x]))",
        "x, y = batch\nrows = list(map(lambda t: t.to(accelerator.device), [x]))",
    ),
    "elements": ("batch", "x, y = batch[0].to(device), batch[1]", "x, y = batch[0], batch[1]"),
    "another name": ("x, y", "rows = x.to(device)", "rows = x"),
    "a dtype": ("x, y", "rows = y.to(device, torch.float32)", "rows = y.to(torch.float32)"),
    "in a chain": ("x, y", "x = x.to(device).float()", "x = x.float()"),
    "at the end of a chain": ("x, y", "x = x.view(-1, 2).to(device)", "x = x.view(-1, 2)"),
    "an element": ("batch", 'x = batch["x"].to(device)', 'x = batch["x"]'),
    "inside a call": ("x, y", "z = torch.cat([x.to(device), x.to(device)])", "z = torch.cat([x, x])"),
    "a choice": ("x, y", "x = x.cuda() if torch.cuda.is_available() else x", ""),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_rewritten(changed, name):
    target, before, after = REWRITTEN[name]
    changed(**CHOSEN, target=target, batch=(before, after))


def test_a_choice_that_asks_only_for_a_gpu_is_the_accelerators(changed):
    made = "noise = torch.ones(2)"
    changed(
        setup="use = torch.cuda.is_available()",
        ready=(f"{made}\nnoise = noise.cuda() if use else noise", f"{made}\nnoise = noise.to(accelerator.device)"),
    )


def test_a_number_that_settings_hold(changed):
    """Where the batches stay on the CPU until they are moved, each process would move them to the GPU of one."""
    changed(
        imports="import wave",
        setup="class Settings:\n    def __init__(self):\n        self.gpu = 0\n\nargs = Settings()",
        prepare="loader, model, optimizer = accelerator.prepare(\n"
        "    loader, model, optimizer, device_placement=[False, True, True]\n)",
        batch=(
            "wave.show(x, device=0)\nx = x.to(args.gpu)\ny = y.to(0)",
            "wave.show(x, device=0)\nx = x.to(accelerator.device)\ny = y.to(accelerator.device)",
        ),
    )


def test_a_question_about_the_batch_is_no_choice_of_a_device(changed):
    changed(batch=("if len(x) > 3:\n    x = x.cuda()", ""))
    changed(
        prepare="loader, model, optimizer = accelerator.prepare(\n"
        "    loader, model, optimizer, device_placement=[False, True, True]\n)",
        batch=("x = x.cuda() if x.is_sparse else x", "x = x.to(accelerator.device) if x.is_sparse else x"),
    )


DTYPES = {
    "by position": ("y = y.to(device, torch.float32)", "y = y.to(torch.float32)"),
    "by keyword": ("y = y.to(device, dtype=torch.float32)", "y = y.to(dtype=torch.float32)"),
    "with options": ("y = y.to(device, torch.float32, non_blocking=True)", "y = y.to(torch.float32)"),
}


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_stays(changed, name):
    changed(**CHOSEN, batch=DTYPES[name])


def test_in_the_models_call(changed):
    changed(**CHOSEN, forward=("model(x.to(device))", "model(x)"))


def test_variable_goes_with_its_import(changed):
    changed(
        imports=("from torch.autograd import Variable", ""),
        batch=("x, y = Variable(x.cuda()), Variable(y.cuda())", ""),
    )


def test_a_variable_that_asks_for_gradients_stays(changed):
    changed(
        imports="from torch.autograd import Variable",
        batch=("x = Variable(x.cuda(), requires_grad=True)", "x = Variable(x, requires_grad=True)"),
    )


REDIRECTED = {
    "to a number": ("noise = torch.randn(4, 2).to(0)", "noise = torch.randn(4, 2).to(accelerator.device)"),
    "made on a number": (
        "noise = torch.zeros(4, 2, device=0)",
        "noise = torch.zeros(4, 2, device=accelerator.device)",
    ),
    "cuda": ("noise = torch.randn(4, 2).cuda()", "noise = torch.randn(4, 2).to(accelerator.device)"),
    "to a text": ('noise = torch.randn(4, 2).to("cuda")', "noise = torch.randn(4, 2).to(accelerator.device)"),
    "made there": (
        'noise = torch.randn(4, 2, device="cuda")',
        "noise = torch.randn(4, 2, device=accelerator.device)",
    ),
    "non_blocking": (
        "noise = torch.randn(4, 2).cuda(non_blocking=True)",
        "noise = torch.randn(4, 2).to(accelerator.device, non_blocking=True)",
    ),
}


@pytest.mark.parametrize("name", REDIRECTED)
def test_redirected(changed, name):
    changed(batch=REDIRECTED[name])


def test_other_tensors_keep_the_variable(changed):
    changed(**KEPT, batch="noise = torch.randn(4, 2).to(device)\nmore = torch.ones(2, device=device)")


MADE = {
    "zeros": ("z = torch.zeros(4, 2)", "z = torch.zeros(4, 2, device=accelerator.device)"),
    "randn": ("z = torch.randn(x.size(0), 2)", "z = torch.randn(x.size(0), 2, device=accelerator.device)"),
    "a tensor from a list": ("z = torch.tensor([1.0])", "z = torch.tensor([1.0], device=accelerator.device)"),
    "an old type": ("z = torch.FloatTensor([1.0])", "z = torch.FloatTensor([1.0]).to(accelerator.device)"),
}


@pytest.mark.parametrize("name", MADE)
def test_made_in_a_loop_of_a_program_without_a_device(changed, name):
    changed(batch=MADE[name])


def test_a_batch_that_meets_a_tensor_made_elsewhere_keeps_a_program_without_a_device_on_the_cpu(changed):
    report = changed(
        accelerator="accelerator = Accelerator(cpu=True)",
        setup="noise = torch.ones(4, 2)",
        batch="x = x + noise\nz = torch.zeros(4, 2)",
        step="shown = output.detach().numpy()",
    )
    assert any("stays on the CPU" in finding.message for finding in report.findings)


def test_made_outside_of_loops_stays(unchanged):
    unchanged(setup="z = torch.zeros(4, 2)")


def test_made_like_a_batch_stays(unchanged):
    unchanged(batch="z = torch.zeros_like(x)")


THINNED = {
    "the second": ("x, y = x.cuda(), y.cuda().float()", "y = y.float()"),
    "the first": ("x, y = x.cuda().double().float(), y.cuda()", "x = x.double().float()"),
    "none": ("x, y = x.cuda().float(), y.cuda().float()", "x, y = x.float(), y.float()"),
    "an old wrapper": ("x, y = Variable(x, requires_grad=False), Variable(y)", "x = Variable(x, requires_grad=False)"),
}


@pytest.mark.parametrize("name", THINNED)
def test_names_that_nothing_is_left_for_go_out_of_an_assignment(changed, name):
    changed(imports="from torch.autograd import Variable" * (name == "an old wrapper"), batch=THINNED[name])


def test_in_a_function_the_moves_go(changed):
    function = "def put(batch, device):\n    return [{} for t in batch]"
    changed(
        accelerator="",
        setup=(f"{DEVICE}\n{function.format('t.to(device)')}", f"{KEPT['setup'][1]}\n{function.format('t')}"),
        target="batch",
        batch="x, y = put(batch, device)",
    )


KEPT_ON_HOST = (
    "loader, model, optimizer = accelerator.prepare(\n"
    "    loader, model, optimizer, device_placement=[False, True, True]\n"
    ")"
)
#: What happens to a batch before it is moved; `noise` and `onehot` are on the CPU.
ON_HOST = {
    "pinned": "x = x.pin_memory()",
    "arithmetic": "x = x + noise",
    "joined with what is made here": "x = torch.cat([x, torch.ones(4, 2)])",
    "an index into a tensor there": "rows = onehot[y.long()]",
    "a view of the batch": "flat = y.view(-1)\nrows = onehot.scatter_(0, flat.long(), 1)",
    "in place": "x += noise",
    "through NumPy": "x = torch.from_numpy(np.flip(x.numpy()))",
    "a random number for each element": "x = x + torch.randn_like(x)",
    "in a function": "rows = encoded(y)",
    "in another library": "x = library.augment(x)",
    "in a function of nobody knows what": "x = table['f'](x)",
    "what the last batch left": "old = x if old is None else old\nx = x + noise",
    "computed with": "x = torch.fft.fft(x).real",
    "lengths of a packed sequence": "rows = torch.nn.utils.rnn.pack_padded_sequence(x.cuda(), y)",
}


@pytest.mark.parametrize("name", ON_HOST)
def test_a_batch_that_the_program_needs_on_the_cpu_stays_there(changed, name):
    step = f"{ON_HOST[name]}\nx, y = x.cuda(), y.cuda()"
    report = changed(
        imports="import library\nimport numpy as np",
        setup="def encoded(y):\n    return torch.zeros(4, 2).scatter_(1, y.long(), 1)\n"
        "noise = torch.ones(4, 2)\nonehot = torch.zeros(4, 2)\nold = None",
        batch=(step, step.replace(".cuda()", ".to(accelerator.device)")),
        prepare=KEPT_ON_HOST,
    )
    assert any("stay on the CPU until they are moved" in finding.message for finding in report.findings)


#: Ways to count batches; the bar is drawn by one process.
NUMBERED = {
    "in a bar": {
        "over": ("tqdm(enumerate(loader))", "tqdm(enumerate(loader), disable=not accelerator.is_local_main_process)")
    },
    "by a name": {
        "start": (
            "bar = tqdm(enumerate(loader))",
            "bar = tqdm(enumerate(loader), disable=not accelerator.is_local_main_process)",
        ),
        "over": "bar",
    },
}


@pytest.mark.parametrize("name", NUMBERED)
def test_the_number_of_a_batch_is_none_of_its_tensors(changed, name):
    seen = "if i in shown:\n    continue"
    changed(
        imports="from tqdm import tqdm",
        setup="shown = [1, 3]",
        target="i, (x, y)",
        batch=(f"{seen}\nx, y = x.cuda(), y.cuda()", seen),
        **NUMBERED[name],
    )


FETCHED = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.randint(0, 3, (8,)))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 3).cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
batches = iter(loader)
{loop}:
    try:
        x, y = {taken}
    except StopIteration:
        batches = iter(loader)
        x, y = {taken}
    y = {labels}
    x, y = x.cuda(), y.cuda()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
LOOPS = {
    "a range": ("for step in range(9)", "next(batches)"),
    "for ever": ("while optimizer.state == {}", "next(batches)"),
    "a method": ("for step in range(9)", "batches.__next__()"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_batch_that_is_taken_by_hand_stays_there_too(convert_text, name):
    loop, taken = LOOPS[name]
    labels = "torch.zeros(4, 3).scatter_(1, y.view(-1, 1), 1)"
    _, kept = convert_text(FETCHED.format(loop=loop, taken=taken, labels=labels))
    _, gone = convert_text(FETCHED.format(loop=loop, taken=taken, labels="y.view(-1, 1) * torch.ones_like(x)"))

    assert "device_placement=[False, True, True]" in kept
    assert "x, y = x.to(accelerator.device), y.to(accelerator.device)" in kept
    assert "device" not in gone.partition("for step")[2]


#: What gives the same wherever the batch is.
ANYWHERE = {
    "a view": "x = x.view(-1, 2)",
    "arithmetic with a number": "x = x / 255",
    "a size": "count = x.size(0) + noise.size(0)",
    "a part": "x = x[:, :2]",
    "its own parts together": "x = torch.cat([x[:2], x[2:]])",
    "kept in a list": "kept = []\nkept.append(x)",
    "shown": "print(x.shape, y.item() if len(y) == 1 else '')",
    "a number of it": "top = x.max().item()",
    "in a function": "x = halved(x)",
}


@pytest.mark.parametrize("name", ANYWHERE)
def test_a_batch_that_may_be_anywhere_is_moved_by_its_loader(changed, name):
    show = ANYWHERE[name].replace("print(", "accelerator.print(")
    changed(
        setup="def halved(x):\n    return x.float() / 2\nnoise = torch.randn(4, 2)",
        batch=(f"{ANYWHERE[name]}\nx, y = x.cuda(), y.cuda()", show),
    )


APART = {
    "after its move": ("x = x.cuda()\nrows = x + onehot.cuda()", "rows = x + onehot.to(accelerator.device)"),
    "with a tensor that was moved": ("x = x.cuda()\nrows = moved[x.long()]", "rows = moved[x.long()]"),
}


@pytest.mark.parametrize("name", APART)
def test_a_batch_that_meets_a_tensor_on_its_device(changed, name):
    start = "onehot = torch.zeros(4, 2)\nmoved = torch.zeros(4, 2){}"
    changed(start=(start.format(".cuda()"), start.format(".to(accelerator.device)")), batch=APART[name])


def test_a_look_at_the_raw_loader_moves_its_batches_still(changed):
    look = "for x, y in loader:\n    x = x.to({})\n    break"
    changed(
        imports=('device = torch.device("cuda")', ""),
        setup=("", "device = accelerator.device"),
        made=look.format("device"),
    )


STAYS = "accelerator = Accelerator(cpu=True)"
ELSEWHERE = "kept = torch.randn(4, 2)"
#: Where a program without a device would meet the model, its loss or its batches with tensors on the CPU.
MET = {
    "the model": {"setup": ELSEWHERE, "epoch": "shown = model(kept)"},
    "the model after training": {"setup": ELSEWHERE, "end": "shown = model(kept[:2])"},
    "a function": {"setup": f"def look(rows):\n    return model(rows)\n{ELSEWHERE}", "end": "shown = look(kept)"},
    "the loss": {"setup": "wanted = torch.zeros(4, 1)", "step": "other = criterion(output, wanted)"},
    "an output": {"setup": "wanted = torch.zeros(4, 1)", "step": "wrong = (output != wanted).sum()"},
    "made of NumPy in the loop": {
        "imports": "import numpy as np",
        "step": "other = model(torch.from_numpy(np.zeros((4, 2), dtype=np.float32)))",
    },
    "a tensor that NumPy gives back": {
        "imports": "import numpy as np",
        "step": "noisy = np.clip(x, 0.0, 1.0)\nother = model(noisy)",
    },
    "an output that NumPy gives back": {
        "imports": "import numpy as np",
        "step": "noisy = np.clip(output.detach(), 0.0, 1.0)\nother = criterion(noisy, y)",
    },
    "not seen": {
        "imports": "import pickle",
        "setup": "kept = pickle.load(open('x', 'rb'))",
        "end": "shown = model(kept)",
    },
    "a loader that is not prepared": {
        "setup": "other = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)",
        "end": "for (x,) in other:\n    shown = model(x).sum().item()",
    },
    "a batch taken by hand": {"end": "x, y = next(iter(loader))\nshown = model(x)"},
    "weights of a loss function": {
        "made": "weighted = nn.BCEWithLogitsLoss(pos_weight=torch.ones(1))",
        "step": "other = weighted(output, y)",
    },
    "a model that nothing prepares": {
        "made": "teacher = nn.Linear(2, 1)",
        "step": "wanted = teacher(x)",
    },
    "one of a list, with parts": {
        "made": "teachers = [nn.Sequential(nn.Linear(2, 1), nn.ReLU())]",
        "step": "wanted = output - teachers[0](x)",
    },
    "a metric that counts where it was made": {
        "imports": "from torchmetrics import MeanSquaredError",
        "made": "error = MeanSquaredError()",
        "step": "error.update(output, y)",
    },
    "a collection": {"start": "rows = torch.tensor([])", "step": "rows = torch.cat([rows, output])"},
    "NumPy by a list": {
        "imports": "import numpy as np",
        "start": "rows = []",
        "step": "rows.append(loss.detach())",
        "epoch": (
            "shown = np.mean(rows)",
            "rows = accelerator.reduce(rows, reduction='mean')\nshown = np.mean(rows)",
        ),
    },
}


@pytest.mark.parametrize("name", MET)
def test_a_tensor_on_the_cpu_keeps_a_program_without_a_device_there(changed, name):
    report = changed(accelerator=STAYS, **MET[name])
    (note,) = [finding for finding in report.findings if "stays on the CPU" in finding.message]
    assert "accelerator.device" in note.hint


#: These go with the model, or have nothing that could stay behind.
ALONG = {
    "a part of the model": {
        "model": "head = nn.Linear(2, 1)\nmodel = nn.Sequential(nn.Identity(), head)",
        "step": "with torch.no_grad():\n    shown = head(x)",
    },
    "a number of the standard library": {
        "imports": "import math",
        "setup": "class Scaled(nn.Linear):\n    def forward(self, x, by):\n        return super().forward(x) / by",
        "model": "model = Scaled(2, 1)\nsteps = 0",
        "batch": "steps += 1",
        "forward": "model(x, max(0.5, math.exp(-0.1 * epoch)))",
    },
    "a layer without weights": {"made": "squash = nn.Sigmoid()", "step": "shown = squash(output)"},
    "a model that sees only what is on the CPU": {
        "made": "other = nn.Linear(2, 1)",
        "end": "shown = other(torch.ones(4, 2))",
    },
}


@pytest.mark.parametrize("name", ALONG)
def test_models_that_meet_nothing_on_the_cpu_go_to_the_device(unchanged, name):
    unchanged(**ALONG[name])


HIDDEN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(2, 1)
        {kept}

    def forward(self, x):
        {made}
        return self.out(x + noise)
model = Net()
"""
IN_MODELS = {
    "made in forward": {"kept": "self.size = 2", "made": "noise = torch.zeros(x.size(0), 2)"},
    "kept by the model": {"kept": "self.noise = torch.zeros(2)", "made": "noise = self.noise"},
}
MOVED_ALONG = {
    "made like the input": {"kept": "self.size = 2", "made": "noise = torch.zeros_like(x)"},
    "made where the input is": {"kept": "self.size = 2", "made": "noise = torch.zeros(2, device=x.device)"},
    "a buffer": {"kept": "self.register_buffer('noise', torch.zeros(2))", "made": "noise = self.noise"},
    "a parameter": {"kept": "self.noise = nn.Parameter(torch.zeros(2))", "made": "noise = self.noise"},
}


@pytest.mark.parametrize("name", IN_MODELS)
def test_a_tensor_of_a_model_that_does_not_move_with_it_keeps_the_program_on_the_cpu(changed, name):
    changed(accelerator=STAYS, model=HIDDEN.format(**IN_MODELS[name]))


@pytest.mark.parametrize("name", MOVED_ALONG)
def test_tensors_that_are_where_the_model_is(unchanged, name):
    unchanged(model=HIDDEN.format(**MOVED_ALONG[name]))


ON_THE_DEVICE = {
    "outputs": "shown = (output - y).abs().mean().item()",
    "counts": "right = (output.argmax(1) == 0).sum().item()",
    "another output": "again = model(output.expand(-1, 2))",
    "written down": "print(loss.item(), len(x))",
}


@pytest.mark.parametrize("name", ON_THE_DEVICE)
def test_what_comes_of_batches_keeps_no_program_on_the_cpu(changed, name):
    line = ON_THE_DEVICE[name]
    changed(step=(line, line.replace("print", "accelerator.print")))


@pytest.mark.parametrize("over", ["loader", "enumerate(loader)", "enumerate(loader, 1)"])
def test_a_counted_batch_meets_a_tensor_on_the_cpu_as_any_other_does(changed, over):
    changed(
        **KEPT,
        ready="noise = torch.ones(2)",
        target="x, y" if over == "loader" else "i, (x, y)",
        over=over,
        batch="x = x - noise\nx, y = x.to(device), y.to(device)",
        prepare=KEPT_ON_HOST,
    )


HELPER = """
import numpy as np
import torch
from torch import nn


def to_cuda(variable):
    if torch.cuda.is_available():
        return variable.cuda()
    return variable


rows = np.ones((8, 2))
model = to_cuda(nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for row in rows:
    loss = model({given}).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("given", ["to_cuda(torch.Tensor(row).float())", "to_cuda(torch.from_numpy(row))"])
def test_a_helper_that_moves_the_model_and_tensors_goes_on_moving(convert_text, given):
    _, result = convert_text(HELPER.format(given=given))

    assert "return variable.to(accelerator.device)" in result


def test_a_helper_that_moves_the_model_alone_moves_nothing(convert_text):
    _, result = convert_text(HELPER.format(given="torch.from_numpy(row).cuda()"))

    assert "        return variable\n    return variable" in result


PUT_BACK = """
import torch
from torch import nn
from torch.utils.data import DataLoader

from data import Data

device = torch.device("cuda")
loader = DataLoader(Data(), batch_size=4)
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader:
    {loop}
        {moved}
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(batch["x"]), batch["y"])
    loss.backward()
    optimizer.step()
{after}
"""


@pytest.mark.parametrize(
    ("loop", "moved"),
    [
        ("for k, v in batch.items():", "batch[k] = v.to(device)"),
        ("for k in batch:", "batch[k] = batch[k].to(device)"),
        ("for k in batch.keys():", "batch[k] = batch[k].cuda(non_blocking=True)"),
    ],
)
def test_a_loop_that_only_moves_the_items_of_a_batch_goes(convert_text, loop, moved):
    _, result = convert_text(PUT_BACK.format(loop=loop, moved=moved, after=""))

    assert "for batch in loader:\n    optimizer.zero_grad()\n" in result


@pytest.mark.parametrize(
    ("moved", "after", "stays"),
    [
        ("batch[k] = v.float().to(device)", "", "batch[k] = v.float()"),
        ("batch[k] = v.to(device)", "print(k)", "batch[k] = v"),
    ],
)
def test_a_loop_over_items_that_does_more_stays(convert_text, moved, after, stays):
    loop = "for k, v in batch.items():"
    _, result = convert_text(PUT_BACK.format(loop=loop, moved=moved, after=after))

    assert f"    {loop}\n        {stays}\n" in result


SCALED_BACK = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Scale:
    def __init__(self, rows):
        self.mean = torch.mean(rows)
        self.std = torch.std(rows)

    def undone(self, rows):
        return rows * self.std + self.mean


def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    scale = Scale(torch.ones(8, 1))
    model = nn.Linear(2, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        output = model(x.cuda())
        loss = nn.functional.mse_loss(output, y.cuda())
        print((scale.undone(output.data.cpu()) - y).abs().mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""


def test_a_batch_that_meets_what_was_scaled_on_the_cpu_stays_there(convert_text):
    _, result = convert_text(SCALED_BACK)

    assert "device_placement=[False, True, True]" in result


PICTURES = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
rows = [(torch.ones(1), torch.ones(1)) for _ in range(8)]
loader = DataLoader(rows, batch_size=2, collate_fn=lambda rows: tuple(zip(*rows)))
model = nn.Linear(1, 1).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for images, targets in loader:
    images = list(image.to(device) for image in images)
    targets = [target.to(device) for target in targets]
    {changed}
    loss = nn.functional.mse_loss(model(torch.stack(images)), torch.stack(targets))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("changed", ["images[0] = images[1]", "images.pop()"])
def test_a_list_that_is_changed_stays_one(convert_text, changed):
    _, result = convert_text(PICTURES.format(changed=changed))

    assert f"    images = list(images)\n    {changed}\n" in result
    assert "targets =" not in result


def test_a_list_that_is_only_read_is_the_batch(convert_text):
    _, result = convert_text(PICTURES.format(changed="shape = images[0].shape"))

    assert "images =" not in result
