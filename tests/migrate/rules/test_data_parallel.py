import pytest

from migrate.report.model import Kind

UNCHANGED = {
    "another wrapper": {"made": "model = torch.compile(model)"},
    "an attribute called module of another object": {"end": "name = torch.nn.Linear.module"},
    "a class of the same name": {
        "setup": "class DataParallel:\n    def __init__(self, model):\n        self.model = model",
        "end": "wrapped = DataParallel(3)",
    },
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


CHANGED = {
    "assigned": {"made": ("model = nn.DataParallel(model)", "")},
    "where it is made": {"model": ("model = nn.DataParallel(nn.Linear(2, 1))", "model = nn.Linear(2, 1)")},
    "moved afterwards": {"model": ("model = nn.DataParallel(nn.Linear(2, 1)).cuda()", "model = nn.Linear(2, 1)")},
    "moved before": {"model": ("model = nn.DataParallel(nn.Linear(2, 1).cuda())", "model = nn.Linear(2, 1)")},
    "under another name": {
        "model": (
            "net = nn.Linear(2, 1)\nmodel = nn.DataParallel(net, device_ids=None).cuda()",
            "net = nn.Linear(2, 1)\nmodel = net",
        ),
    },
    "its full name": {"made": ("model = torch.nn.parallel.DataParallel(model)", "")},
    "imported, and the import goes": {
        "imports": ("from torch.nn import DataParallel", ""),
        "made": ("model = DataParallel(model)", ""),
    },
    "where there are several": {
        "made": ("if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)", ""),
    },
    "module after prepare": {
        "made": ("model = nn.DataParallel(model)", ""),
        "end": ("inner = model.module", "inner = accelerator.unwrap_model(model)"),
    },
    "module before prepare": {
        "model": (
            "model = nn.DataParallel(nn.Linear(2, 1))\nweight = model.module.weight",
            "model = nn.Linear(2, 1)\nweight = model.weight",
        ),
    },
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(**CHANGED[name])


def test_an_attribute_of_module(changed):
    changed(
        made=("model = nn.DataParallel(model)", ""),
        end=("state = model.module.state_dict()", "state = accelerator.unwrap_model(model).state_dict()"),
    )


def test_a_list_of_devices_is_reported(changed):
    report = changed(made=("model = nn.DataParallel(model, device_ids=[0, 1])", ""))

    (note,) = (finding for finding in report.of(Kind.NOTE) if finding.code == "MIG110")
    assert "--gpu_ids" in note.message


def test_another_dimension_is_left_with_the_reason(unchanged, programs, remark):
    holes = {"made": "model = nn.DataParallel(model, dim=1)"}
    report = unchanged(**holes)

    remark(report, programs(holes)[0], "MIG110", "dim=1", ["another dimension"])


REFUSED = {
    "FSDP": ("model = torch.distributed.fsdp.FullyShardedDataParallel(model)", "MIG110", "FSDP"),
    "sharded in place": ("torch.distributed.fsdp.fully_shard(model)", "MIG110", "FSDP"),
    "RPC": ('torch.distributed.rpc.init_rpc("worker")', "MIG111", "RPC"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused, name):
    made, code, mention = REFUSED[name]
    refused(code, made, [mention], made=made)


LIBRARIES = {
    "DeepSpeed": ("deepspeed", "model, optimizer, _, _ = deepspeed.initialize(model=model, optimizer=optimizer)"),
    "tensor parallel": (
        "torch.distributed.tensor.parallel",
        "model = torch.distributed.tensor.parallel.parallelize_module(model, mesh, plan)",
    ),
    "Horovod": ("horovod.torch", "horovod.torch.init()"),
    "BytePS": ("byteps.torch", "byteps.torch.init()"),
    "Bagua": ("bagua.torch_api", "bagua.torch_api.init_process_group()"),
    "Colossal-AI": ("colossalai", "colossalai.launch_from_torch()"),
    "FairScale": ("fairscale.nn", "model = fairscale.nn.FullyShardedDataParallel(model)"),
    "Ray Train": ("ray.train.torch", "model = ray.train.torch.prepare_model(model)"),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_that_joins_the_processes_is_refused(refused, name):
    module, made = LIBRARIES[name]
    refused("MIG110", made, [name], imports=f"import {module}", made=made)


def test_horovod_beside_a_sampler_for_several_processes_is_refused(refused):
    sampler = "torch.utils.data.distributed.DistributedSampler(data, hvd.size(), hvd.rank())"
    loader = f"loader = DataLoader(data, 4, sampler={sampler})"
    refused("MIG110", "hvd.init()", ["Horovod"], imports="import horovod.torch as hvd", made=f"hvd.init()\n{loader}")


NEEDED = {
    "a method of it": ("copies = model.replicate(model.module, [0])", "model.replicate"),
    "its devices": ("count = len(model.device_ids)", "model.device_ids"),
    "an assertion": ("assert isinstance(model, nn.DataParallel)", "isinstance(model, nn.DataParallel)"),
}


@pytest.mark.parametrize("name", NEEDED)
def test_what_needs_the_wrapper_is_refused(refused, name):
    made, mention = NEEDED[name]
    refused("MIG110", made, [mention], made="model = nn.DataParallel(model)", ready=made)


def test_an_attribute_of_the_model_itself_needs_no_wrapper(changed):
    net = "class Net(nn.Linear):\n    device_ids = [0]"
    made = ("model = nn.DataParallel(Net(2, 1))", "model = Net(2, 1)")
    changed(setup=net, model=made, end=("model.module.device_ids", f"{INSIDE}.device_ids"))


def test_a_test_for_the_wrapper_that_may_fail_is_none(changed):
    changed(
        made=("model = nn.DataParallel(model)", ""),
        ready=(
            "if isinstance(model, nn.DataParallel):\n    print(1)",
            "if isinstance(model, nn.DataParallel):\n    accelerator.print(1)",
        ),
    )


FOLDED = {
    "what is done for one GPU": {
        "setup": "keys = {'module.weight': 1}",
        "made": (
            (
                "if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)\n"
                "else:\n    keys = {key.replace('module.', ''): value for key, value in keys.items()}"
            ),
            "keys = {key.replace('module.', ''): value for key, value in keys.items()}",
        ),
    },
    "the other way round": {
        "made": (
            (
                "if torch.cuda.device_count() <= 1:\n    prefix = ''\n"
                "else:\n    model = nn.DataParallel(model)\n    prefix = 'module.'"
            ),
            "prefix = ''",
        ),
    },
    "more than the wrapper": {
        "made": (
            (
                "if torch.cuda.device_count() > 1:\n    print('many')\n    model = nn.DataParallel(model)\n"
                "else:\n    kind = 'one'"
            ),
            "kind = 'one'",
        ),
    },
    "all of it goes": {
        "made": (
            "if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model).cuda()\nelse:\n    model.cuda()",
            "",
        ),
    },
    "told apart by .module alone": {
        "setup": "several = torch.cuda.device_count() > 1",
        "made": ("model = nn.DataParallel(model)", ""),
        "end": (
            "if several:\n    state = model.module.state_dict()\nelse:\n    state = model.state_dict()",
            "state = accelerator.unwrap_model(model).state_dict()",
        ),
    },
    "by an option": {
        "imports": "import sys",
        "setup": "count = int(sys.argv[1])",
        "made": ("if count > 1:\n    model = nn.DataParallel(model)", ""),
        "end": (
            "if count > 1:\n    inner = model.module\nelse:\n    inner = model",
            "inner = accelerator.unwrap_model(model)",
        ),
    },
}


@pytest.mark.parametrize("name", FOLDED)
def test_branches_that_one_device_makes_needless(changed, name):
    changed(**FOLDED[name])


def test_branches_that_differ_otherwise_stay(changed):
    end = "if count > 1:\n    inner = {}\nelse:\n    inner = model.weight"
    changed(
        setup="count = torch.get_num_threads()",
        made=("model = nn.DataParallel(model)", ""),
        end=(
            end.format("model.module"),
            end.format("accelerator.unwrap_model(model)").replace(
                "= model.weight", "= accelerator.unwrap_model(model).weight"
            ),
        ),
    )


INNER = {
    "a choice by hasattr": 'inner = model.module if hasattr(model, "module") else model',
    "a choice the other way round": 'inner = model if not hasattr(model, "module") else model.module',
    "getattr with a default": 'inner = getattr(model, "module", model)',
}


@pytest.mark.parametrize("name", INNER)
def test_the_model_inside_is_unwrapped_once(changed, name):
    changed(
        end=(
            f'{INNER[name]}\ntorch.save(inner.state_dict(), "m.pt")',
            'inner = accelerator.unwrap_model(model)\naccelerator.save(inner.state_dict(), "m.pt")',
        )
    )


def test_a_choice_of_states(changed):
    changed(
        end=(
            'state = model.module.state_dict() if hasattr(model, "module") else model.state_dict()',
            "state = accelerator.unwrap_model(model).state_dict()",
        )
    )


def test_a_choice_before_prepare(changed):
    changed(made=('inner = getattr(model, "module", model)\nprint(inner)', "inner = model\naccelerator.print(inner)"))


def test_a_choice_by_something_else_stays(changed):
    changed(
        imports="import sys",
        end=(
            "inner = model.module if len(sys.argv) > 9 else None",
            "inner = accelerator.unwrap_model(model) if len(sys.argv) > 9 else None",
        ),
    )


INSIDE, LINEAR = "accelerator.unwrap_model(model)", "is_linear = isinstance({}, nn.Linear)"


def test_what_else_asks_for_the_wrapper_is_told_that_there_is_none(changed):
    changed(
        end=(
            f"prefix = 'module.' if hasattr(model, 'module') else ''\n{LINEAR.format('model')}",
            f"prefix = 'module.' if hasattr({INSIDE}, 'module') else ''\n{LINEAR.format(INSIDE)}",
        )
    )


AVERAGED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Average:
    def __init__(self):
        self.shadow = {{}}

    def register(self, module):
        self.shadow = {{name: value.detach().clone() for name, value in module.named_parameters()}}

    def update(self, module):
        {first}
        if isinstance(module, nn.DataParallel):
            {inside}
        for name, value in module.named_parameters():
            self.shadow[name].mul_(0.9).add_(value.detach(), alpha=0.1)


data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.DataParallel(nn.Linear(2, 1))
average = Average()
average.register(model.module)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    average.update(model)
"""
TAKEN_OUT = "        module = accelerator.unwrap_model(module)\n        for name, value in module.named_parameters():"


def test_a_model_that_is_taken_out_of_its_wrapper_where_it_has_one_is_taken_out_of_the_new_one(convert_text):
    _, result = convert_text(AVERAGED.format(first="", inside="module = module.module"))

    assert TAKEN_OUT in result
    assert "isinstance" not in result


def test_what_is_asked_before_it_is_taken_out_is_asked_of_the_model_inside(convert_text):
    _, result = convert_text(AVERAGED.format(first="print(module.weight)", inside="module = module.module"))

    assert "print(accelerator.unwrap_model(module).weight)" in result
    assert TAKEN_OUT in result


def test_a_branch_that_does_more_stays_and_the_model_is_taken_out_behind_it(convert_text):
    _, result = convert_text(AVERAGED.format(first="", inside="module = module.module\n            print(1)"))

    assert "if isinstance(module, nn.DataParallel):\n" in result
    assert "in accelerator.unwrap_model(module).named_parameters()" in result


def test_before_prepare_nothing_is_left_to_take_out(changed):
    changed(
        made=(
            "model = nn.DataParallel(model)\nif isinstance(model, nn.DataParallel):\n    model = model.module",
            "",
        )
    )


PART = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = {features}
        self.last = nn.Linear(2, 1)

    def forward(self, x):
        return self.last(self.features(x))


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.DataParallel(nn.Linear(2, 2))


model = Net().cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1)), batch_size=4):
    loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_part_of_a_model_that_stays_wrapped(convert_text, refused_text):
    refused_text(
        PART.format(features="nn.DataParallel(nn.Linear(2, 2))"),
        "MIG110",
        "for x, y in",
        ["a model is wrapped in DataParallel in program.py:9, which stays"],
    )
    report, _ = convert_text(PART.format(features="nn.Linear(2, 2)"))
    assert report.touched


FILLED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
{filled}
        self.last = nn.Linear(2, 1)

    def forward(self, x):
        return self.last(self.body(x))


model = Net().cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1)), batch_size=4):
    loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
OPENED = {
    "under its own name": """
        whole = nn.Sequential(nn.Linear(2, 2))
        whole = nn.DataParallel(whole)
        whole.load_state_dict(torch.load("whole.pth"))
        self.body = whole.module[0]
""",
    "under another name": """
        inner = nn.Linear(2, 2)
        wrapped = nn.DataParallel(inner)
        wrapped.load_state_dict(torch.load("whole.pth"))
        self.body = inner
""",
    "at once": """
        self.body = nn.DataParallel(nn.Linear(2, 2)).module
""",
}
NOT_ONLY_OPENED = {
    "what holds it may run it": """
        wrapped = nn.DataParallel(nn.Linear(2, 2))
        wrapped.load_state_dict(torch.load("whole.pth"))
        self.body = wrapped
""",
    "it is run": """
        wrapped = nn.DataParallel(nn.Linear(2, 2))
        self.mean = wrapped(torch.zeros(1, 2)).mean().item()
        self.body = wrapped.module
""",
    "it is a name of the file": """
        global wrapped
        wrapped = nn.DataParallel(nn.Linear(2, 2))
        self.body = wrapped.module
""",
    "it also moves what is in it": """
        self.body = nn.DataParallel(nn.Linear(2, 2), device_ids=[0]).module
""",
    "a holder keeps it": """
        self.wrapped = nn.DataParallel(nn.Linear(2, 2))
        self.body = self.wrapped.module
""",
}


@pytest.mark.parametrize("name", OPENED)
def test_a_wrapper_that_is_only_filled_and_opened_may_stay(convert_text, name):
    report, result = convert_text(FILLED.format(filled=OPENED[name].strip("\n")))

    assert report.touched
    assert OPENED[name] in result


@pytest.mark.parametrize("name", NOT_ONLY_OPENED)
def test_a_wrapper_that_may_run_stays_a_reason(refused_text, name):
    source = FILLED.format(filled=NOT_ONLY_OPENED[name].strip("\n"))
    refused_text(source, "MIG110", "for x, y in", ["a model is wrapped in DataParallel"])


PATCHING = '''
def replicated(modules):
    for module in modules:
        module.begun = True

def patch(data_parallel):
    """Tell the copies of one another."""
    assert isinstance(data_parallel, nn.DataParallel)
    old = data_parallel.replicate

    def new(module, device_ids):
        modules = old(module, device_ids)
        replicated(modules)
        return modules

    data_parallel.replicate = new
'''


def test_what_only_changes_the_wrapper_goes_with_it(changed):
    report = changed(setup=PATCHING, made=("model = nn.DataParallel(model)\npatch(model)", ""))

    assert any("changed DataParallel" in finding.message for finding in report.of(Kind.NOTE))


WRAPPED_LATE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{patching}
class Trainer:
    def __init__(self, cuda):
        self.loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
        model = nn.Linear(2, 2)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        self.model, self.optimizer = model, optimizer
        if cuda:
            self.model = nn.DataParallel(self.model)
            patch(self.model)
            self.model = self.model.cuda()

    def train(self):
        for (x,) in self.loader:
            self.optimizer.zero_grad()
            self.model(x.cuda() if torch.cuda.is_available() else x).sum().backward()
            self.optimizer.step()


torch.manual_seed(0)
Trainer(torch.cuda.is_available()).train()
"""


def test_it_stays_what_it_was_where_the_model_is_wrapped_late(convert_text):
    _, result = convert_text(WRAPPED_LATE.format(patching=PATCHING))

    assert PATCHING in result
    assert "patch(self.model" not in result


PATCHING_MORE = {
    "it counts": PATCHING.replace("    old =", "    data_parallel.count = 1\n    old ="),
    "it gives something back": (PATCHING + "    return old\n"),
    "it asks nothing first": PATCHING.replace("    assert isinstance(data_parallel, nn.DataParallel)\n", ""),
}


@pytest.mark.parametrize("name", PATCHING_MORE)
def test_what_does_more_than_that_keeps_the_program_from_being_converted(programs, convert_text, name):
    holes = {"setup": PATCHING_MORE[name], "made": "model = nn.DataParallel(model)\npatch(model)"}
    report, _ = convert_text(programs(holes)[0])

    assert any("needs the model in DataParallel" in finding.message for finding in report.of(Kind.LEFT))


BROUGHT = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.rand(2), torch.ones(1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x) + self.layer.bias

train_loader, val_loader = DataLoader(Noisy(), batch_size=4), DataLoader(Noisy(), batch_size=4)
model = {model}
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for i, (x, y) in enumerate(train_loader):
        loss = (model(x) - y.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            {batch}
            total += (model({given}) - y.cuda()).pow(2).mean().item()
    print(total)
"""
GIVEN = {
    "a batch that is asked for its size": ("n = x.size(0)", "x", "x.to(accelerator.device)"),
    "a variable": ("rows = torch.autograd.Variable(x, volatile=True)", "rows", "rows.to(accelerator.device)"),
    "computed from it": ("rows = x.view(-1, 2)", "rows", "rows.to(accelerator.device)"),
    "made on the CPU": ("x = torch.zeros(4, 2)", "x", "x.to(accelerator.device)"),
    "what may be no tensor": ("pass", "x", "send_to_device(x, accelerator.device)"),
    "what was moved": ("x = x.cuda()", "x", "x"),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_only_data_parallel_brought_to_the_gpu_is_moved(convert_text, name):
    batch, given, after = GIVEN[name]
    _, result = convert_text(BROUGHT.format(model="nn.DataParallel(Net()).cuda()", batch=batch, given=given))

    assert f"total += (model({after}) - y.to(accelerator.device))" in result
    assert (result.count("send_to_device") > 1) == ("send_to_device" in after)  # where it is imported, and there
    assert "loss = (model(x) - y).pow(2).mean()" in result  # of the loader that is prepared
    assert "device_placement" not in result


def test_a_model_that_was_not_in_data_parallel_is_given_what_it_was(convert_text):
    _, result = convert_text(BROUGHT.format(model="Net().cuda()", batch="n = x.size(0)", given="x"))

    assert "model(x) - y.to(accelerator.device)" in result


UNWRAPPED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader):
        self.loader = loader
        self.model = nn.DataParallel(model)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def epoch(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()

    def save(self):
        {inside}
        torch.save(self.model.state_dict(), "model.pt")
        {again}


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
trainer = Trainer(nn.Linear(2, 1), loader)
for epoch in range(3):
    trainer.epoch()
    trainer.save()
"""
SAVED = """
    def save(self):
        self.accelerator.save(self.accelerator.unwrap_model(self.model).state_dict(), "model.pt")


"""
INSIDE_ITSELF = {
    "at once": "self.model = self.model.module",
    "where it has one": "if isinstance(self.model, nn.DataParallel):\n            self.model = self.model.module",
    "where there are GPUs": "if torch.cuda.device_count() > 1:\n            self.model = self.model.module",
    "by a choice": "self.model = self.model.module if hasattr(self.model, 'module') else self.model",
    "by getattr": "self.model = getattr(self.model, 'module', self.model)",
}


@pytest.mark.parametrize("again", ["self.model = nn.DataParallel(self.model)", ""])
@pytest.mark.parametrize("inside", INSIDE_ITSELF)
def test_a_model_that_goes_on_training_keeps_its_wrapper(convert_text, inside, again):
    _, result = convert_text(UNWRAPPED.format(inside=INSIDE_ITSELF[inside], again=again))

    assert SAVED in result


def test_a_parameter_of_what_trains_keeps_its_wrapper(convert_text):
    text = """
    import torch
    from torch import nn, optim
    from torch.utils.data import DataLoader, TensorDataset


    def train(model, loader, optimizer):
        model = model.module
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.DataParallel(nn.Linear(2, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        train(model, loader, optimizer)
    """
    _, result = convert_text(text)

    assert "unwrap_model" not in result
    assert ".module" not in result


TEACHER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)
teacher = nn.DataParallel(nn.Linear(4, 4)).cuda()
{asked}
net = nn.DataParallel(nn.Linear(4, 4)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for (x,) in loader:
    x = x.cuda()
    loss = (net(x) - teacher(x)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{below}
"""
NOT_TRAINED = {
    "an attribute": ("teacher.module.requires_grad_(False)", "teacher.requires_grad_(False)"),
    "either": ("inner = teacher.module if hasattr(teacher, 'module') else teacher", "inner = teacher"),
    "by name": ("inner = getattr(teacher, 'module', teacher)", "inner = teacher"),
}


@pytest.mark.parametrize("name", NOT_TRAINED)
def test_a_model_that_nobody_trains_has_no_wrapper_any_more(convert_text, name):
    asked, becomes = NOT_TRAINED[name]
    _, text = convert_text(TEACHER.format(asked=asked, below=asked))
    assert f"\nteacher = nn.Linear(4, 4).to(accelerator.device)\n{becomes}\n" in text
    assert text.endswith(f"    optimizer.step()\n{becomes}\n")
