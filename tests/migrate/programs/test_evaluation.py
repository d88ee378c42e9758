"""Which evaluation loops are shared out, what is gathered, and why others run in full."""

import ast

import pytest

TRAINING = """
import random
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
{data}
train, test = DataLoader(a, shuffle=True), DataLoader({dataset})
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
crit = nn.MSELoss()
for x, y in train:
    opt.zero_grad()
    crit(net(x), y).backward()
    opt.step()
net.eval()
correct = 0
found = []
with {context}:
    for {target} in test:
{body}
"""


def source(body, target="x, y", context="torch.no_grad()", data="", dataset="b"):
    """A program that trains, and evaluates with this loop."""
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return TRAINING.format(body=lines, target=target, context=context, data=data, dataset=dataset)


SHARED = {
    "sums of counts": ("out = net(x)\ncorrect += (out.argmax(1) == y).sum().item()", ("out", "y")),
    "means of batch means": ("out = net(x)\ncorrect += crit(out, y).item()", ("out", "y")),
    "lists": ("out = net(x)\nfound.append(out)", ("out",)),
    "after a computation on the result": ("pred = net(x).argmax(1)\ncorrect += (pred == y).sum()", ("pred", "y")),
    "the input read again": ("out = net(x)\nfound.append((x, out))", ("out", "x")),
    "a name that is replaced before it is read": ("out = net(x)\ny = 3\ncorrect += out.sum() * y", ("out",)),
    "a count of steps before": ("correct += 1\nout = net(x)\nfound.append(out)", ("out",)),
    "a result without a name": ("correct += (net(x).argmax(1) == y).sum()", ("outputs", "y")),
    "the model handed on": ("out = net(x)\nfound.append(measure(net, out))", ("out",)),
    "the last batch read after the loop": ("out = net(x)\nfound.append(out)", ("out", "x")),
    "a loss at once": ("correct += crit(net(x), y).item()", ("outputs", "y")),
    "a shape that goes by the batch": ("n = len(x)\nout = net(x.view(n, -1)).view(n, -1)\nfound.append(out)", ("out",)),
    "a row of the result": ("out = net(x)[0]\nfound.append(out)", ("outputs",)),
    "the last row of it": ("out = net(x).softmax(1)[-1]\nfound.append(out)", ("outputs",)),
    "the rows of it turned": ("out = net(x).flip(0)\nfound.append(out)", ("outputs",)),
    "the rows of it sorted": ("out = net(x).sort(0)[0]\nfound.append(out)", ("outputs",)),
    "a column of it": ("out = net(x)[:, 0]\nfound.append(out)", ("out",)),
    "the values of its maxima": ("out = net(x).max(1)[0]\nfound.append(out)", ("out",)),
    "the result in the shape of a whole batch": ("out = net(x).view(8, 1)\nfound.append(out)", ("outputs",)),
    "names in a block before": ("with torch.no_grad():\n    x = x + 0\nout = net(x)\nfound.append(out)", ("out",)),
}


LOSS = "out = net(x)\ncorrect += crit(out, y).item() * {}"
SIZE = LOSS.format("len(x)")
COUNTED = {
    "a size": LOSS.format("x.size(0)"),
    "a shape": LOSS.format("x.shape[0]"),
    "a length": LOSS.format("len(x)"),
    "twice": f"{LOSS.format('x.size(0)')}\nfound.append(len(x))",
    "after moves": f"x, y = x.cuda(), y.cuda()\n{LOSS.format('len(x)')}",
    "after moves where there is a GPU": f"x = x.cuda()\nif torch.cuda.is_available():\n    y = y.cuda()\n{SIZE}",
    "in one statement": "correct += crit(net(x), y).item() * len(x)",
    "asked for its size": "out = net(x)\nfound.append((out, y.size(1)))\ncorrect += len(x)",
    "given to a function that computes with it": "out = net(x)\ncorrect += right(out, y.cuda()) * len(x)",
}
DEFINED = """
def right(out, y):
    return (out.argmax(1) == y).sum()


def kept(out, y):
    found.append((out, y))
    return 1


def labelled(out, y):
    y = y["label"]
    return (out.argmax(1) == y).sum()
"""
TAKEN = {
    "out of the batch": ("batch", f"x, y = batch\n{SIZE}"),
    "out of the batch, moved": ("batch", f"x, y = batch\nx, y = x.cuda(), y.cuda()\n{SIZE}"),
    "by place": ("batch", f"x = batch[0]\ny = batch[-1]\n{SIZE}"),
    "by key, moved": ("batch", f"x = batch['image']\ny = batch['label'].cuda()\n{SIZE}"),
    "by place, at once": ("batch", f"x, y = batch[0].cuda(), batch[1].cuda()\n{SIZE}"),
}
NOT_TAKEN = {
    "a row": ("x, y", f"y = x[0]\n{SIZE}"),
    "a row of what was taken": ("batch", f"x, y = batch\ny = y[0]\n{SIZE}"),
    "something else beside": ("batch", f"x, y = batch[0], len(batch[1])\n{SIZE}"),
    "some rows in some cases": ("x, y", f"if correct:\n    y = y[:2]\n{SIZE}"),
    "rows that a test makes": ("x, y", f"if (y := y[:2]).sum():\n    y = y.cuda()\n{SIZE}"),
    "some rows": ("batch", f"x = batch[0]\ny = batch[1][:2]\n{SIZE}"),
}
NOT_COUNTED = {
    "another dimension": LOSS.format("x.size(1)"),
    "more than the count": f"{LOSS.format('len(x)')}\nfound.append(x)",
    "read after the loop": LOSS.format("len(x)"),
    "the other one has other rows": f"y = y.view(-1)\n{LOSS.format('len(x)')}",
    "the other one gets other rows": "out = net(x)\ny = y[y > 0]\ncorrect += (out == y).sum() * len(x)",
    "the other one may be no tensor": "out = net(x)\ncorrect += measure(out, y) * len(x)",
    "nor where it is given to": "out = net(x)\ncorrect += kept(out, y) * len(x)",
    "it is taken apart there": "out = net(x)\ncorrect += labelled(out, y) * len(x)",
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_only_counted_is_not_gathered(decide, name):
    _, conversion = decide(DEFINED + source(COUNTED[name]))

    (shared,) = conversion.shared
    assert "x" not in shared.names
    assert {(node.id, other) for node, other in shared.counted.items()} == {("x", "y")}


@pytest.mark.parametrize("name", TAKEN)
def test_nor_where_it_is_taken_out_of_the_batch_in_the_loop(decide, name):
    target, body = TAKEN[name]
    _, conversion = decide(source(body, target))

    (shared,) = conversion.shared
    assert "x" not in shared.names
    assert {(node.id, other) for node, other in shared.counted.items()} == {("x", "y")}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_one_that_may_have_other_rows_says_nothing_of_it(decide, name):
    target, body = NOT_TAKEN[name]
    _, conversion = decide(source(body, target))

    assert all("x" in shared.names and not shared.counted for shared in conversion.shared)


@pytest.mark.parametrize("name", NOT_COUNTED)
def test_others_are_gathered(decide, name):
    after = "if found:\n    show(x)\nfor y in found:\n    show(y)" if "after the loop" in name else ""
    _, conversion = decide(DEFINED + source(NOT_COUNTED[name]) + after)

    assert all("x" in shared.names and not shared.counted for shared in conversion.shared)


@pytest.mark.parametrize("name", SHARED)
def test_shared_out(decide, name):
    body, names = SHARED[name]
    after = "if found:\n    show(x)\nfor y in found:\n    show(y)" if "after the loop" in name else ""
    _, conversion = decide(source(body) + after)

    (shared,) = conversion.shared
    assert shared.names == names
    assert [loader.target for loader in conversion.loaders] == ["train", "test"]


def branches(*bodies, after="found.append(loss)", tests=("amp", "deep")):
    """`if amp:`, `elif deep:`, `else:`, and what comes below."""
    heads = ["if {}:", "elif {}:"][: len(bodies) - 1]
    lines = [head.format(test) for head, test in zip(heads, tests, strict=False)] + ["else:"]
    inner = ["\n".join(f"    {line}" for line in body.splitlines()) for body in bodies]
    return "\n".join(part for pair in zip(lines, inner, strict=True) for part in pair) + f"\n{after}"


OPTIONS = "import sys, torch\namp, deep, cast = len(sys.argv) > 1, len(sys.argv) > 2, torch.no_grad"
CALLED = "out = net(x)"
JUDGED = f"{CALLED}\nloss = crit(out, y)"
CAST = "with cast():\n    out = net(x)"
BRANCHES = {
    "below them": (branches(CAST, CALLED, after="found.append(out + y)"), ("If",)),
    "in each": (branches(f"{CAST}\n    loss = crit(out, y)", JUDGED), ("Assign", "Assign")),
    "in each of three": (branches(JUDGED, f"{JUDGED} * 2", JUDGED), ("Assign", "Assign", "Assign")),
    "below a count": ("correct += len(x)\n" + branches(CALLED, CALLED, after="found.append(out + y)"), ("If",)),
}
NOT_BRANCHES = {
    "one of them alone": (branches(CALLED, "out = x", after="found.append(out)"), "another block"),
    "another way out": (f"if amp:\n    {CALLED}\n    found.append(out)", "another block"),
    "by the batch": (branches(JUDGED, JUDGED, tests=("x.sum() > 0",)), "another block"),
    "other names": (branches(JUDGED, f"{CALLED}\nloss = out.sum()"), "differs from branch to branch"),
    "used at once": (branches("loss = crit(net(x), y)", "loss = crit(net(x), y)"), "in several branches"),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_that_all_call_the_model(decide, name):
    body, places = BRANCHES[name]
    _, conversion = decide(OPTIONS + source(body))

    (shared,) = conversion.shared
    assert shared.names == ("out", "y")
    assert tuple(type(each).__name__ for each in (shared.after, *shared.also)) == places


@pytest.mark.parametrize("name", NOT_BRANCHES)
def test_branches_that_cannot_be_gathered_run_in_full(decide, name):
    body, why = NOT_BRANCHES[name]
    _, conversion = decide(OPTIONS + source(body))

    assert not conversion.shared
    assert why in conversion.in_full[0].why


IN_FULL = {
    "a result without a name, under a condition": ("correct += net(x).sum() if y else 0", "part of a condition"),
    "two calls at once": ("correct += (net(x) - net(y)).sum()", "does more than call the model"),
    "a sum of the batch before the result": ("correct += x.sum()\nout = net(x)\nfound.append(out)", "before"),
    "a count in a block": (
        "with torch.no_grad():\n    correct += x.size(0)\nout = net(x)\nfound.append(out)",
        "before",
    ),
    "a size kept from before": ("n = x.size(0)\nout = net(x.view(n, 1))\ncorrect += out.sum() / n", "folds the rows"),
    "the model under a condition": ("if y is not None:\n    out = net(x)\n    found.append(out)", "another block"),
    "a row of the batch before": ("first = x[0]\nout = net(x.float())\nfound.append((first, out))", "chooses rows"),
    "no model": ("found.append(y)", "not called in the loop"),
    "the input in the shape of a whole batch": ("out = net(x.view(8, 1))\nfound.append(out)", "says how many rows"),
    "a name for that shape": (
        "x = torch.reshape(x, (size, -1))\nout = net(x)\nfound.append(out)",
        "says how many rows",
    ),
}


@pytest.mark.parametrize("name", IN_FULL)
def test_in_full(decide, name):
    body, why = IN_FULL[name]
    _, conversion = decide(source(body))

    (whole,) = conversion.in_full
    assert why in whole.why
    assert [loader.target for loader in conversion.loaders] == ["train"]


def test_in_full_where_the_mode_is_not_seen(decide):
    text = source("out = net(x)\nfound.append(out)", context="open(path)").replace("net.eval()", "")
    _, conversion = decide(text)

    assert "no_grad" in conversion.in_full[0].why


@pytest.mark.parametrize("drawn", ["random.random()", "other(index)"])
def test_in_full_where_samples_are_drawn_at_random(decide, drawn):
    data = f"""
class Noisy(Dataset):
    def __getitem__(self, index):
        return {drawn}, 1

def other(index):
    return random.choice([number for number in range(9) if number != index])
"""
    _, conversion = decide(source("out = net(x)\nfound.append(out)", data=data, dataset="Noisy()"))

    assert conversion.in_full[0].why == "Noisy.__getitem__ draws random numbers for each sample"


def test_of_several_data_sets_that_draw_the_first_is_named_in_each_run(decide):
    """Values are a set, of another order in each run: one run named this class, the next one that."""
    noisy = "class Noisy{0}(Dataset):\n    def __getitem__(self, index):\n        return random.random()\n"
    made = "sets = [{}]\nb = sets[int(input())]".format(", ".join(f"Noisy{number}()" for number in range(24)))
    data = "".join(map(noisy.format, range(24))) + made
    _, conversion = decide(source("correct += crit(net(x), y).item()", data=data))
    assert conversion.in_full[0].why == "Noisy0.__getitem__ draws random numbers for each sample"


SHUFFLED = """
class Shuffled(Dataset):
    def __init__(self):
        self.rows = list(range(8))
        {kept}

    def __getitem__(self, index):
        return {got}, 1

    def shuffle(self):
        random.shuffle(self.rows)
        return self.rows[0]
"""


@pytest.mark.parametrize(
    ("kept", "got", "draws"),
    [
        ("pass", "self.rows[index]", None),
        ("pass", "self.shuffle()", "Shuffled.__getitem__ draws random numbers for each sample"),
        ("self.take = self.shuffle", "self.take()", "Shuffled.__getitem__ draws random numbers for each sample"),
        ("self.shuffle()", "self.rows[index]", "Shuffled.shuffle() draws what its samples are"),
    ],
)
def test_a_method_that_nobody_calls_draws_nothing(decide, kept, got, draws):
    data = SHUFFLED.format(kept=kept, got=got)
    _, conversion = decide(source("out = net(x)\nfound.append(out)", data=data, dataset="Shuffled()"))

    assert [whole.why for whole in conversion.in_full] == ([draws] if draws is not None else [])


MODEL = """
class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        nn.init.uniform_(self.layer.weight)
        self.start = torch.rand(1)
    def sample(self, x):
        return torch.randn_like(x)
    def forward(self, x):
        {forward}
        return self.layer(x)
"""


@pytest.mark.parametrize(
    ("forward", "shares"),
    [
        ("x = self.sample(x)", False),
        ("x = x + torch.rand(1)", False),
        ("x = x + (self.sample(x) if x.any() else 0)", False),
        ("h = torch.zeros(len(x), 1)\n        nn.init.xavier_normal_(h)\n        x = x + h", False),
        ("x = x + x.data.new(x.size()).normal_()", False),
        ("h = torch.empty(len(x), 1)\n        nn.init.zeros_(h)\n        x = x + h", True),
        ("x = 2 * x", True),
        ("if self.training:\n            x = self.sample(x)", True),
    ],
)
def test_in_full_where_the_model_draws_when_it_is_evaluated(decide, forward, shares):
    text = source("out = net(x)\nfound.append(out)", data=MODEL.format(forward=forward))
    _, conversion = decide(text.replace("net = nn.Linear(1, 1)", "net = Sampler()"))

    assert bool(conversion.shared) is shares
    assert shares or conversion.in_full[0].why == "Sampler.forward draws random numbers"


@pytest.mark.parametrize(
    ("forward", "shares"),
    [
        ("x = x.view(self.rows, -1)", False),
        ("h = 2 * x\n        x = h.reshape((8, 1))", False),
        ("rows = x.shape[0]\n        x = x.view(rows, -1)", True),
        ("x = x.view(-1, 1) * self.start.view(1, 1)", True),
    ],
)
def test_in_full_where_the_model_says_how_many_rows_there_are(decide, forward, shares):
    text = source("out = net(x)\nfound.append(out)", data=MODEL.format(forward=forward))
    _, conversion = decide(text.replace("net = nn.Linear(1, 1)", "net = Sampler()"))

    assert bool(conversion.shared) is shares
    assert shares or "in the model" in conversion.in_full[0].why


RESULTS = """
class Losing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
    def forward(self, x, y=None):
        out = self.layer(x)
        mean = torch.nn.functional.mse_loss(out, x)
        {result}
"""

LOSING = {
    "by its name": ("return out", "loss = net(x)\nfound.append(loss)"),
    "one of several": ("return out, mean", "out, value = net(x)\nfound.append((out, value))"),
    "one number": ("return out", "value = net(x)\ncorrect += value.item()"),
    "the mean of one of several": ("return self.both(out)", "out, value = net(x)\ncorrect += value.mean()"),
    "by position": ("return mean, out", "result = net(x)\nfound.append(result[1])"),
    "several by position": ("return mean, out", "result = net(x)\nmean, out = result[:2]\nfound.append(out)"),
    "a row, or the first of several": ("return out", "first = net(x)[0]\nfound.append(first)"),
    "one of several, taken apart": ("return pairs, x", "out, value = net(x)\nfound.append((out[0], value))"),
    "fields": ("return out", "result = net(x)\nfound.append(result.logits)"),
    "a field at once": ("return out", "found.append(net(x).logits)"),
    "a state": ("return out, x", "out, state = net(x, state)\nfound.append((out, state))"),
}


@pytest.mark.parametrize("name", LOSING)
def test_in_full_where_the_model_gives_more_than_rows(decide, name):
    result, body = LOSING[name]
    text = source(body, data=RESULTS.format(result=result)).replace("net = nn.Linear(1, 1)", "net = Losing()")
    _, conversion = decide(text)

    assert len(conversion.in_full) == 1


@pytest.mark.parametrize("body", ["out = net(x)\nfound.append(out[0])", "out = net(x)[0]\nfound.append(out.mean())"])
def test_shared_where_a_model_gives_one_tensor(decide, body):
    text = source(body, data=RESULTS.format(result="return self.layer(x)"))
    _, conversion = decide(text.replace("net = nn.Linear(1, 1)", "net = Losing()"))

    assert conversion.shared


def test_shared_where_one_of_several_results_is_taken_at_once(decide):
    text = source("out = net(x)[0]\nfound.append(out)", data=RESULTS.format(result="return out, x"))
    _, conversion = decide(text.replace("net = nn.Linear(1, 1)", "net = Losing()"))

    assert [evaluation.names for evaluation in conversion.shared] == [("out",)]


def test_shared_where_the_first_rows_of_one_of_several_results_are_read(decide):
    text = source("out, again = net(x)\nfound.append((out[:8], again))", data=RESULTS.format(result="return out, x"))
    _, conversion = decide(text.replace("net = nn.Linear(1, 1)", "net = Losing()"))

    assert [evaluation.names for evaluation in conversion.shared] == [("out", "again")]


def test_lists_of_a_batch_are_gathered_by_themselves(decide):
    _, conversion = decide(source("out = net(x)\nfound.extend(z)\nfound.append((out, y))", target="x, y, z"))

    (shared,) = conversion.shared
    assert (shared.names, shared.lists) == (("out", "y"), ("z",))


def test_in_full_where_the_share_of_a_batch_decides(decide):
    _, conversion = decide(source("if x.size(0) == 1:\n    continue\nout = net(x)\nfound.append(out)"))

    assert "asks for the batch" in conversion.in_full[0].why


def test_dictionary_batches_are_not_gathered_whole(decide):
    _, conversion = decide(source('out = net(batch["x"])\nfound.append((out, batch["y"]))', target="batch"))

    assert "is a dictionary" in conversion.in_full[0].why


MOVED = """
def moved(batch):
    found = {}
    for key, value in batch.items():
        found[key] = value.to('cuda') if torch.is_tensor(value) else value
    return found

def anew(batch):
    return {key: value.to('cuda') if torch.is_tensor(value) else value for key, value in batch.items()}

def error(out, batch):
    return crit(out, batch['y'])
"""
PUT_TOGETHER = {
    "a dictionary that a loop fills": "batch = moved(batch)\nout = net(batch)\ncorrect += error(out, batch).item()",
    "a dictionary with a field for a function": (
        "batch = anew(batch)\nout = net(batch)\ncorrect += error(out, batch).item()"
    ),
    "a pair": "pair = (batch.cuda(), 0)\nout = net(pair[0])\ncorrect += crit(out, pair[0]).item()",
}


@pytest.mark.parametrize("name", PUT_TOGETHER)
def test_in_full_where_parts_of_the_batch_lie_in_a_container(decide, name):
    _, conversion = decide(source(PUT_TOGETHER[name], target="batch", data=MOVED))

    assert "not all of it may have rows" in conversion.in_full[0].why


def test_evaluating_on_the_training_loader_in_a_way_that_cannot_be_shared_is_refused(decide):
    above = "torch.no_grad():\n    rows = enumerate(train)\n    for x, y in rows:\n        break\nif True"
    text = source('found.append((net(y["a"]), y["b"]))', context=above)
    program, conversion = decide(text.replace("in test:", "in rows:").replace("if True:", "with torch.no_grad():"))

    assert conversion is None
    assert program.refusals[0].code == "MIG114"


CLASSES = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

train = DataLoader(a, shuffle=True)
net = nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
opt = optim.SGD(net.parameters(), lr=0.1)
count = 0
for batch in train:
    count += {counted}
weight = count / len(train.dataset)
for batch in train:
    opt.zero_grad()
    nn.functional.cross_entropy(net(batch["x"]), batch["y"]).backward()
    opt.step()
"""


def test_a_pass_over_the_training_data_that_runs_no_model_needs_no_mode(decide):
    _, conversion = decide(CLASSES.format(counted='batch["y"].sum().item()'))

    (shared,) = conversion.shared
    assert [ast.unparse(each) for each in shared.whole] == ["train"]


def test_one_that_runs_a_model_does(decide):
    program, conversion = decide(CLASSES.format(counted='net(batch["x"]).sum().item()'))

    assert conversion is None
    assert "not seen to be in eval mode" in program.refusals[0].why


def test_evaluating_on_the_training_loader_by_parts_of_its_batches_asks_for_whole_ones(decide):
    _, conversion = decide(source('found.append((net(x["a"]), x["b"]))').replace("in test:", "in train:"))

    (shared,) = conversion.shared
    assert [ast.unparse(each) for each in shared.whole] == ["train"]
    assert not shared.names


def test_accelerate_has_no_whole_batches(decide):
    """The loop runs without gradients in eval mode already: to say that it should would help nobody."""
    text = source('found.append((net(x["a"]), x["b"]))').replace("in test:", "in train:")
    program, conversion = decide(text, "accelerate")

    assert conversion is None
    (refusal,) = program.refusals
    assert refusal.way_out.startswith("make a second DataLoader over the same data for it, or convert with --target ")
    program, _ = decide(text.replace("net.eval()", "").replace("with torch.no_grad()", "if True"), "accelerate")
    assert program.refusals[0].way_out.startswith("run it under torch.no_grad() in eval mode, or make a second")


FIRST = {
    "the model twice": ("found.append(net(x) - net(y))", ("x", "y")),
    "a sum before": ("correct += x.sum()\nfound.append(net(x))", ("x",)),
    "no model": ("found.append(y)", ("y",)),
    "under a condition": ("if x.sum() > 0:\n    found.append(net(x))", ("x",)),
}


@pytest.mark.parametrize("name", FIRST)
def test_whole_batches_where_the_loader_is_trained_on(decide, name):
    body, names = FIRST[name]
    _, conversion = decide(source(body).replace("in test:", "in train:"))

    (shared,) = conversion.shared
    assert shared.before
    assert shared.names + shared.lists == names


def test_whole_batches_where_another_loop_runs_over_the_trained_loader_too(decide):
    text = source("out = net(x)\nfound.append(out)").replace("    for x, y in test:", "    for x, y in either:")
    text = text.replace("net.eval()", "either = train if random.random() > 0.5 else test\nnet.eval()")
    _, conversion = decide(f"{text}\nfor x, y in test:\n    print(x)")

    assert [bool(shared.before) for shared in conversion.shared] == [False, True]


STATES = """
def state(size):
    return torch.zeros(1, size), torch.zeros(1, size)
"""
BESIDE = {
    "a state that is made something else of first": (
        "h = tuple([each.data for each in h])\nout, h = net(x, h)\nfound.append((out, y))",
        "h = state(4)",
        "h is carried from batch to batch",
    ),
    "a state under another name": (
        "old = h\nout, h = net(x, old)\nfound.append((out, y))",
        "h = state(4)",
        "old is carried from batch to batch",
    ),
    "a state that is handed on at the end": (
        "out, after = net(x, h)\nfound.append((out, y))\nh = after",
        "h = state(4)",
        "may go by the batch's size",
    ),
    "a state for each batch": (
        "h = state(4)\nout, _ = net(x, h)\nfound.append((out, y))",
        "",
        "may go by the batch's size",
    ),
    "one state for all": ("out, _ = net(x, h)\nfound.append((out, y))", "h = state(4)", "may go by the batch's size"),
    "a mask for all": ("out = net(x, mask)\nfound.append((out, y))", "mask = torch.ones(4, 1)", "by the batch's size"),
    "noise": ("x = x + torch.randn_like(x)\nout = net(x)\nfound.append((out, y))", "", "random numbers are drawn"),
}


@pytest.mark.parametrize("name", BESIDE)
def test_in_full_where_what_meets_the_batch_was_made_for_the_whole_of_it(decide, name):
    body, made, why = BESIDE[name]
    _, conversion = decide(source(body, data=STATES).replace("found = []", f"found = []\n{made}"))

    (whole,) = conversion.in_full
    assert why in whole.why


def test_shared_where_a_state_is_made_for_the_rows_that_are_there(decide):
    made = "h = state(x.size(0))\nout, _ = net(x, h)\nfound.append((out, y))"
    _, conversion = decide(source(made, data=STATES))

    assert [shared.names for shared in conversion.shared] == [("out", "y")]


@pytest.mark.parametrize("given", ["x, 3", "x, (x, y)", "x, {'mask': y, 'scale': 2}", "**{'input': x}", "*[x, y]"])
def test_shared_where_the_model_is_given_the_batch_and_plain_values(decide, given):
    _, conversion = decide(source(f"out = net({given})\nfound.append(out)"))

    assert [shared.names for shared in conversion.shared] == [("out",)]


def test_the_names_of_a_comprehension_are_not_gathered(decide):
    body = "parts = [each.float() for each in (x, y)]\nout = net(parts[0])\nfound.append([each for each in (out, y)])"
    _, conversion = decide(source(body))

    assert all("each" not in shared.names for shared in conversion.shared)


@pytest.mark.parametrize("taken", ["next(batches)", "batches.next()", "batches.__next__()"])
def test_in_full_where_a_batch_is_taken_by_hand_too(decide, taken):
    """An evaluation pass gives each process a share of a batch, of which some code may want all rows."""
    shown = f"batches = iter(test)\nx, y = {taken}\nfor row in range(4):\n    show(x[row], net(x)[row])\n"
    _, conversion = decide(source("out = net(x)\nfound.append((out, y))") + shown)

    assert len(conversion.in_full) == 1
    assert [loader.target for loader in conversion.loaders] == ["train"]


@pytest.mark.parametrize("over", ["[*test]", "list(test)", "[each for each in test]"])
def test_a_loader_whose_batches_are_put_into_a_list_stays_whole(decide, over):
    text = source("out = net(x)\nfound.append(out)").replace("in test:", f"in {over}:")
    _, conversion = decide(text)

    assert [named.target for named in conversion.loaders] == ["train"]
    assert not conversion.shared


def test_loaders_of_a_list_that_is_handed_on_are_prepared(decide):
    text = source("out = net(x)\nfound.append(out)")
    _, conversion = decide(f"{text}\nprint(*[test])")

    assert [named.target for named in conversion.loaders] == ["train", "test"]
