"""Types of tensors that hide a device: `migrate/rules/tensor_types.py`, `migrate/rules/idle.py`."""

import pytest

CUDA = "cuda = torch.cuda.is_available()"
NAMED = "Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor"
KEPT = "Tensor = torch.FloatTensor"

MADE = {
    "sizes": ("z = Tensor(4, 2)", "z = Tensor(4, 2).to(accelerator.device)"),
    "filled": ("z = Tensor(x.size(0), 1).fill_(1.0)", "z = Tensor(x.size(0), 1).to(accelerator.device).fill_(1.0)"),
    "drawn on the device": ("z = Tensor(4, 2).normal_()", "z = Tensor(4, 2).to(accelerator.device).normal_()"),
    "numbers": ("z = Tensor([1.0, 2.0])", "z = Tensor([1.0, 2.0]).to(accelerator.device)"),
    "an array": (
        "z = Tensor(np.random.normal(0, 1, (x.shape[0], 6)))",
        "z = Tensor(np.random.normal(0, 1, (x.shape[0], 6))).to(accelerator.device)",
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_is_moved(changed, name):
    changed(imports="import numpy as np", setup=(f"{CUDA}\n{NAMED}", KEPT), batch=MADE[name])


def test_in_a_function(changed):
    function = "def made(x):\n    return Tensor(x.size(0)){}"
    changed(
        setup=(f"{CUDA}\n{NAMED}\n{function.format('')}", f"{KEPT}\n{function.format('.to(accelerator.device)')}"),
        batch="z = made(x)",
    )


CAST = {
    "a batch": ("x = x.type(Tensor)", "x = x.float()"),
    "in a Variable": ("x = Variable(x.type(Tensor))", "x = x.float()"),
    "another tensor": (
        "z = torch.ones(4, 2).type(Tensor)",
        "z = torch.ones(4, 2).float().to(accelerator.device)",
    ),
}


@pytest.mark.parametrize("name", CAST)
def test_a_cast_stays_where_the_tensor_is(changed, name):
    imports = "from torch.autograd import Variable"
    changed(
        imports=(imports, "" if "Variable" in CAST[name][0] else imports),
        setup=(f"{CUDA}\n{NAMED}", ""),
        batch=CAST[name],
    )


TYPES = {
    "Long": "long",
    "Double": "double",
    "Half": "half",
    "Int": "int",
    "Byte": "byte",
    "Bool": "bool",
}


@pytest.mark.parametrize("name", TYPES)
def test_each_type_has_its_cast(changed, name):
    changed(batch=(f"y = y.type(torch.cuda.{name}Tensor)", f"y = y.{TYPES[name]}()"))


def test_a_text(changed):
    changed(batch=("y = y.type('torch.cuda.LongTensor')", "y = y.long()"))


def test_a_type_of_the_cpu_brings_no_batch_back(changed):
    changed(batch=("y = y.type(torch.LongTensor).cuda()", "y = y.long()"))


def test_a_type_of_the_cpu_for_what_a_model_makes_stays(changed):
    changed(batch=("x = x.cuda()", ""), step="shown = output.type(torch.DoubleTensor)")


def test_without_a_name(changed):
    changed(
        batch=("z = torch.cuda.FloatTensor(4, 2).zero_()", "z = torch.FloatTensor(4, 2).to(accelerator.device).zero_()")
    )


DEFINED = {
    "a flag of its own": (f"{CUDA}\n{NAMED}", KEPT),
    "yes or no": (f"cuda = True if torch.cuda.is_available() else False\n{NAMED}", KEPT),
    "asked at once": (
        "Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.Tensor",
        "Tensor = torch.Tensor",
    ),
    "in branches": (
        f"{CUDA}\nif cuda:\n    Tensor = torch.cuda.FloatTensor\nelse:\n    Tensor = torch.FloatTensor",
        KEPT,
    ),
    "always": ("Tensor = torch.cuda.FloatTensor", KEPT),
}


@pytest.mark.parametrize("name", DEFINED)
def test_definitions(changed, name):
    changed(setup=DEFINED[name], batch=MADE["sizes"])


def test_a_flag_of_the_user_goes_on_deciding(changed):
    flag = "cuda = torch.cuda.is_available() and '--no-cuda' not in sys.argv"
    changed(
        imports="import sys",
        accelerator="",
        setup=(f"{flag}\n{NAMED}", f"{flag}\naccelerator = Accelerator(cpu=not cuda)"),
        batch=("x = x.type(Tensor)", "x = x.float()"),
    )


def test_handed_to_a_function(changed):
    function = "def made(kind, n):\n    return kind(n, 2){}"
    changed(
        setup=(f"{CUDA}\n{NAMED}\n{function.format('')}", f"{KEPT}\n{function.format('.to(accelerator.device)')}"),
        batch="z = made(Tensor, 4)",
    )


def test_a_type_that_follows_a_tensor_stays(unchanged):
    unchanged(
        batch="Tensor = torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor\nz = x.type(Tensor)",
    )


REFUSED = {
    "asked for": "same = isinstance(x, Tensor)",
    "made of a batch": "z = Tensor(x)",
    "kept in a table": "kinds = {'float': Tensor}",
    "of several kinds": "z = x.type(torch.cuda.HalfTensor if len(x) else torch.cuda.FloatTensor)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused, name):
    refused("MIG120", REFUSED[name], ["tensor type"], setup=f"{CUDA}\n{NAMED}", batch=REFUSED[name])


IDLE = {
    "around moves": ("if cuda:\n    model.cuda()", ""),
    "in an expression": ("model = model.cuda() if cuda else model", ""),
}


@pytest.mark.parametrize("name", IDLE)
def test_a_flag_that_nothing_asks_any_more_goes(changed, name):
    changed(setup=(CUDA, ""), made=IDLE[name])


def test_a_flag_that_something_asks_stays(changed):
    changed(setup=CUDA, made=("if cuda:\n    model.cuda()", ""), end=("print(cuda)", "accelerator.print(cuda)"))


def test_a_flag_that_nothing_asked_before_stays(unchanged):
    unchanged(setup=CUDA)


DRAWING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(2, 1)

    def forward(self, x):
        if {test}:
            noise = torch.cuda.FloatTensor(x.size()).normal_()
        else:
            noise = torch.FloatTensor(x.size()).normal_()
        return self.out(x + noise)
model = Net()"""


def test_in_a_model_the_current_gpu_is_the_right_one(changed):
    model = DRAWING.format(test="torch.cuda.is_available()")
    changed(
        model=(f"{model}\nif torch.cuda.is_available():\n    model.cuda()", model),
        batch=("x, y = x.cuda(), y.cuda()", ""),
    )


def test_a_flag_that_keeps_the_model_from_the_gpu(refused):
    model = DRAWING.format(test="torch.cuda.is_available()")
    refused(
        "MIG120",
        "torch.cuda.FloatTensor",
        imports="import sys",
        setup="use_cuda = '--cuda' in sys.argv\ndevice = torch.device('cuda' if use_cuda else 'cpu')",
        model=f"{model}\nmodel.to(device)",
        batch="x, y = x.to(device), y.to(device)",
    )


def test_always_on_a_gpu_in_a_model(refused):
    model = DRAWING.format(test="self.training")
    refused("MIG120", "torch.cuda.FloatTensor", model=f"{model}.cuda()", batch="x, y = x.cuda(), y.cuda()")


def test_a_function_that_only_the_model_calls(changed):
    function = "def drawn(x):\n    return Tensor(np.random.normal(0, 1, (x.size(0), 2))){}"
    model = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(2, 1)

    def forward(self, x):
        return self.out(x + drawn(x))
model = Net()"""
    changed(
        imports="import numpy as np",
        setup=(f"{CUDA}\n{NAMED}\n{function.format('')}", f"{KEPT}\n{function.format('.to(accelerator.device)')}"),
        model=(f"{model}\nif cuda:\n    model.cuda()", model),
        batch=("x = x.type(Tensor)", "x = x.float()"),
    )
