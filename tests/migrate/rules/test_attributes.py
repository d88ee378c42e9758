import pytest

from migrate.options import Target

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
    "saved whole, among other things": (
        'torch.save({"net": model, "epoch": epoch}, "net.pt")',
        f'accelerator.save({{"net": {INNER}, "epoch": epoch}}, "net.pt")',
    ),
    "saved whole, under a name": (
        'state = dict(epoch=epoch)\nstate["net"] = model\ntorch.save(state, "net.pt")',
        f'state = dict(epoch=epoch)\nstate["net"] = {INNER}\naccelerator.save(state, "net.pt")',
    ),
    "saved whole, in a list": (
        'both = [model, optimizer]\ntorch.save(both, "net.pt")',
        f'both = [{INNER}, optimizer]\naccelerator.save(both, "net.pt")',
    ),
}


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
