import pytest

from migrate.options import Target
from migrate.report.model import Kind

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.steps = 0

    def forward(self, x):
        return self.layer(x)

    def decode(self, x):
        return self.layer(x)
"""
MODEL = {"setup": NET, "model": "model = Net()"}

UNCHANGED = {
    "calls": {"epoch": "result = model(x)"},
    "train and eval": {"start": "model.train()", "epoch": "model.eval()"},
    "zero_grad": {"batch": "model.zero_grad()"},
    "parameters": {"end": "count = sum(p.numel() for p in model.parameters())"},
    "the mode": {"end": "mode = model.training"},
    "before prepare": {"made": "state = model.state_dict()\nmodel.steps = 1"},
    "of a model that is not trained": {"made": "other = Net()", "end": "state = other.state_dict()"},
    "inside the model": {"forward": "model(x)"},
    "a look at the model": {"end": "isinstance(model, nn.Module)"},
    "compiled where it is trained": {"start": "fast = torch.compile(model)", "forward": "fast(x)"},
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**MODEL | UNCHANGED[name])


INNER = "accelerator.unwrap_model(model)"

OWN_PARAMETERS = (
    NET
    + """
    def parameters(self):
        return [self.layer.weight]
"""
)


def test_a_method_of_the_library_that_the_class_has_of_its_own(changed):
    changed(
        setup=OWN_PARAMETERS,
        model="model = Net()",
        end=("size = len(model.parameters())", f"size = len({INNER}.parameters())"),
    )


CHANGED = {
    "state_dict": ("state = model.state_dict()", f"state = {INNER}.state_dict()"),
    "a method": ("z = model.decode(x)", f"z = {INNER}.decode(x)"),
    "an attribute": ("steps = model.steps", f"steps = {INNER}.steps"),
    "an attribute that is set": ("model.steps = 3", f"{INNER}.steps = 3"),
    "an item": (
        'nets = {"net": model}\nstate = nets["net"].state_dict()',
        'nets = {"net": model}\nstate = accelerator.unwrap_model(nets["net"]).state_dict()',
    ),
    "a layer": ("weight = model.layer.weight", f"weight = {INNER}.layer.weight"),
    "named parameters": (
        "for name, p in model.named_parameters():\n    pass",
        f"for name, p in {INNER}.named_parameters():\n    pass",
    ),
    "twice in a statement": (
        "size = model.layer.in_features * model.layer.out_features",
        f"size = {INNER}.layer.in_features * {INNER}.layer.out_features",
    ),
    "given to a library": (
        "vector = nn.utils.convert_parameters.summary(model)",
        f"vector = nn.utils.convert_parameters.summary({INNER})",
    ),
    "printed": ("print(model)", f"accelerator.print({INNER})"),
    "printed in a sentence": ('print(f"net: {model}")', f'accelerator.print(f"net: {{{INNER}}}")'),
    "its class": ("name = type(model).__name__", f"name = type({INNER}).__name__"),
    "saved whole, among other things": (
        'torch.save({"net": model, "epoch": epoch}, "net.pt")',
        f'accelerator.save({{"net": {INNER}, "epoch": epoch}}, "net.pt")',
    ),
    "saved whole, under a name": (
        'state = dict(epoch=epoch)\nstate["net"] = model\ntorch.save(state, "net.pt")',
        f'state = dict(epoch=epoch)\nstate["net"] = {INNER}\naccelerator.save(state, "net.pt")',
    ),
    "saved whole, from the CPU": ('torch.save(model.cpu(), "net.pt")', f'accelerator.save({INNER}.cpu(), "net.pt")'),
    "saved whole from the CPU, among other things": (
        'torch.save({"net": model.eval().cpu()}, "net.pt")',
        f'accelerator.save({{"net": {INNER}.eval().cpu()}}, "net.pt")',
    ),
    "saved whole, in a list": (
        'both = [model, optimizer]\ntorch.save(both, "net.pt")',
        f'both = [{INNER}, optimizer]\naccelerator.save(both, "net.pt")',
    ),
}


TAKEN_APART = {
    "a loop": ("for layer in model:\n    layer", f"for layer in {INNER}:\n    layer"),
    "a comprehension": ("names = [type(m) for m in model]", f"names = [type(m) for m in {INNER}]"),
    "a list": ("layers = [*model]", f"layers = [*{INNER}]"),
}


@pytest.mark.parametrize("name", TAKEN_APART)
def test_layers_are_taken_of_the_model_inside(changed, name):
    changed(model="model = nn.Sequential(nn.Linear(2, 1))", end=TAKEN_APART[name])


def test_layers_of_a_list_of_models_stay(unchanged):
    unchanged(model="model = nn.Sequential(nn.Linear(2, 1))", end="for each in [model]:\n    each")


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(**MODEL, end=CHANGED[name])


def test_a_function_that_saves_the_whole_model(changed):
    function = 'def keep(net, path):\n    torch.save({{"net": {}}}, path)'
    changed(
        setup=(NET + function.format("net"), NET + function.format("accelerator.unwrap_model(net)")),
        model="model = Net()",
        epoch=('keep(model, "net.pt")', 'if accelerator.is_main_process:\n    keep(model, "net.pt")'),
    )


LAYERS = """
def first(net):
    for p in net.layer.parameters():
        yield p
"""


def test_a_function_that_is_only_called_before_prepare(unchanged):
    unchanged(setup=NET + LAYERS, model="model = Net()", made="count = sum(1 for p in first(model))")


def test_a_function_that_is_also_called_afterwards(changed):
    changed(
        setup=(NET + LAYERS, NET + LAYERS.replace("net.layer", "accelerator.unwrap_model(net).layer")),
        model="model = Net()",
        made="count = sum(1 for p in first(model))",
        end="count = sum(1 for p in first(model))",
    )


def test_given_to_a_writer(changed):
    changed(
        imports="from torch.utils.tensorboard import SummaryWriter",
        end=(
            "writer = SummaryWriter()\nwriter.add_graph(model, x)",
            (f"if accelerator.is_main_process:\n    writer = SummaryWriter()\n    writer.add_graph({INNER}, x)"),
        ),
    )


def test_a_method_under_no_grad_in_the_training_loop(changed):
    changed(
        **MODEL,
        step=(
            "with torch.no_grad():\n    shown = model.decode(x)",
            f"with torch.no_grad():\n    shown = {INNER}.decode(x)",
        ),
    )


CUT = {
    "made an array": "np.array({}.decode(x))",
    "a number of Python": "{}.decode(x).item()",
    "taken off": "{}.decode(x).detach()",
}


@pytest.mark.parametrize("name", CUT)
def test_a_method_that_gives_numbers_trains_nothing(convert_text, programs, name):
    step = f"shown = {CUT[name]}"
    holes = {**MODEL, "imports": "import numpy as np", "step": (step.format("model"), step.format(INNER))}
    before, after = programs(holes)
    report, result = convert_text(before)

    assert result.split() == after.split()
    assert not [finding for finding in report.findings if "trains around" in finding.message]


TOLD = (
    NET
    + """
def told(first, **others):
    found = [first.decode]
    for name, each in others.items():
        found.append((name, each.steps))
    return found
"""
)


def test_a_function_that_takes_models_by_any_name_is_given_the_model_itself(changed):
    changed(
        setup=(TOLD, TOLD.replace("each.steps", "accelerator.unwrap_model(each).steps")),
        model="model = Net()\nother = Net()",
        end=("told(other, net=model, second=other)", f"told(other, net={INNER}, second=other)"),
    )


HANDLED = "accelerator = Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])"
AROUND = {
    "a method": ("model.decode(x)", f"{INNER}.decode(x)"),
    "a layer": ("model.layer(x)", f"{INNER}.layer(x)"),
    "a keyword": ("model.decode(x=x)", f"{INNER}.decode(x=x)"),
}


@pytest.mark.parametrize("name", AROUND)
def test_training_around_forward_averages_after_backward(programs, convert_text, name):
    before, after = programs(MODEL | {"forward": AROUND[name], "accelerator": HANDLED})
    _, result = convert_text(before)

    assert result.replace(", DistributedDataParallelKwargs", "").split() == after.split()


@pytest.mark.parametrize("name", AROUND)
def test_accelerate_averages_in_forward(programs, convert_text, name):
    before, _ = programs(MODEL | {"forward": AROUND[name]})
    report, result = convert_text(before, target=Target.ACCELERATE)

    assert result == before
    (finding,) = (found for found in report.findings if found.code == "MIG119")
    assert "around its forward" in finding.message
    assert "forward" in finding.hint


DECODED = "model.decode(rows)"
BESIDE = {
    "a layer by a name of its own": {"made": "layer = model.layer", "forward": "layer(x)"},
    "a method of a layer by a name of its own": {"made": "layer = model.layer", "forward": "layer.forward(x)"},
    "a method that is handed lists of batches": {"batch": "rows = [x]", "forward": (DECODED, f"{INNER}.decode(rows)")},
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_runs_beside_the_forward_averages_after_backward(programs, convert_text, name):
    before, after = programs(MODEL | BESIDE[name] | {"accelerator": HANDLED})
    _, result = convert_text(before)

    assert result.replace(", DistributedDataParallelKwargs", "").split() == after.split()


SOLVED = {"imports": "from torchdiffeq import odeint"}
HANDED = {
    "a library": SOLVED | {"forward": ("odeint(model, x, 3)", f"odeint({INNER}, x, 3)")},
    "a library, of which a part is taken": SOLVED
    | {"forward": ("odeint(model, x, 3)[-1]", f"odeint({INNER}, x, 3)[-1]")},
}


@pytest.mark.parametrize("name", HANDED)
def test_what_runs_the_model_that_it_is_handed_averages_after_backward(programs, convert_text, name):
    _, result = convert_text(programs(HANDED[name])[0])

    assert "find_unused_parameters=True" in result


LOOKS_AT = {
    "that is shown": {"step": "print(model)"},
    "that is copied": {"imports": "import copy", "step": "kept = copy.deepcopy(model)"},
    "whose gradients rest": {**SOLVED, "step": "with torch.no_grad():\n    shown = odeint(model, x, 3)"},
    "that is only told": {"imports": "import wandb", "start": "wandb.watch(model)"},
}


@pytest.mark.parametrize("name", LOOKS_AT)
def test_a_model_that_is_handed_over(programs, convert_text, name):
    _, result = convert_text(programs(LOOKS_AT[name])[0])

    assert "accelerator = Accelerator()" in result


def test_in_a_function(changed):
    report = "def describe(net, rows):\n    return net.decode(rows)"
    changed(
        setup=(
            f"{NET}\n{report}",
            f"{NET}\n{report.replace('net.decode', 'accelerator.unwrap_model(net).decode')}",
        ),
        model="model = Net()",
        end="shown = describe(model, x)",
    )


def test_a_method_that_is_itself_without_gradients(changed):
    net = NET.replace("    def decode", "    @torch.no_grad()\n    def decode")
    changed(setup=net, model="model = Net()", batch=("z = model.decode(x)", f"z = {INNER}.decode(x)"))


PARTS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 2)), batch_size=4)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.maker = nn.Linear(2, 2)
        self.judge = nn.Linear(2, 1)

    def make(self, z):
        return self.maker(z)

    def score(self, x):
        return {self}.judge(x)


pair = Pair().to(device)
opt_m = optim.SGD(pair.maker.parameters(), lr=0.1)
opt_j = optim.SGD(pair.judge.parameters(), lr=0.1)
for x, z in loader:
    x, z = x.to(device), z.to(device)
    made = pair.make(z)
    loss = pair.score(made).mean()
    opt_m.zero_grad()
    loss.backward()
    opt_m.step()
    opt_j.zero_grad()
    loss = pair.score(made.detach()).mean() - pair.score(x).mean()
    loss.backward()
    opt_j.step()
pair = pair.to("cuda:0")
torch.save(pair.state_dict(), "pair.pt")
"""


def test_a_model_whose_parts_have_an_optimizer_each_is_prepared_as_a_whole(convert_text):
    report, result = convert_text(PARTS.replace("{self}", "self"))

    assert not report.of(Kind.LEFT)
    assert "loader, pair, opt_m, opt_j = accelerator.prepare(loader, pair, opt_m, opt_j)\n" in result
    assert "find_unused_parameters=True" in result
    assert "    made = accelerator.unwrap_model(pair).make(z)\n" in result
    assert 'accelerator.save(accelerator.unwrap_model(pair).state_dict(), "pair.pt")' in result
    assert "self.judge(x)" in result
    assert ".to(" not in result, "prepare has moved it, and it stays there"


def test_a_method_that_reads_the_name_of_the_module_for_its_own_model(convert_text):
    report, result = convert_text(PARTS.replace("{self}", "pair"))

    assert not report.of(Kind.LEFT)
    assert "        return accelerator.unwrap_model(pair).judge(x)\n" in result
    assert "        return self.maker(z)\n" in result


def test_parts_of_two_models_with_an_optimizer_each_are_no_whole(convert_text):
    source = PARTS.replace("{self}", "self").replace("pair.judge.parameters()", "other.judge.parameters()")
    report, result = convert_text(source.replace("opt_m = ", "other = Pair().to(device)\nopt_m = "))

    assert "accelerator" not in result
    assert [finding.code for finding in report.of(Kind.LEFT)] == ["MIG901"]


NAMESAKE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{imports}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)

    def size(self):
        return 2


def width():
    return {named}.size()


{between}
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
{named} = Net()
optimizer = optim.SGD({named}.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = ({named}(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
print(width())
"""


@pytest.mark.parametrize("imports", ["import json as net", "from json import decoder as net", ""])
def test_a_model_of_the_name_of_an_import(convert_text, imports):
    _, result = convert_text(NAMESAKE.format(named="net", imports=imports, between=""))

    assert "    return accelerator.unwrap_model(net).size()\n" in result


def test_an_import_that_a_function_reads_before_a_model_has_its_name(convert_text):
    _, result = convert_text(NAMESAKE.format(named="net", imports="import json as net", between="print(width())"))

    assert "    return net.size()\n" in result


OWN_STEP = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(2, 1))

    def forward(self, x):
        return x @ self.table

    {decorator}
    def step({first}, optimizer, x, y):
        optimizer.zero_grad()
        loss = ({first}(x) - y).pow(2).mean() + {first}.table.norm()
        loss.backward()
        optimizer.step()


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
net = Net()
optimizer = optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    net.step({given}optimizer, x, y)
"""


def test_a_static_method_of_the_model_is_handed_the_prepared_one(convert_text):
    _, result = convert_text(OWN_STEP.format(decorator="@staticmethod", first="model", given="net, "))

    assert "+ accelerator.unwrap_model(model).table.norm()" in result


def test_a_method_of_the_model_knows_itself_without_a_wrapper(convert_text):
    _, result = convert_text(OWN_STEP.format(decorator="", first="self", given=""))

    assert "+ self.table.norm()" in result


ONE_OR_TWO = """
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def build(several):
    if several:
        return nn.Linear(3, 3), nn.Linear(3, 1)
    return nn.Linear(3, 1)


model = build(len(sys.argv) > 3)
optimizer = optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(8, 3)), batch_size=2)
for (x,) in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""


def test_what_no_container_has_is_asked_of_the_model_that_a_name_may_be_else(convert_text):
    _, result = convert_text(ONE_OR_TWO)

    assert f'accelerator.save({INNER}.state_dict(), "model.pt")' in result
