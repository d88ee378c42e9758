"""`--notebook-launcher`: the cells that need several processes become functions that are started."""

import json
from textwrap import dedent, indent

import pytest

from migrate.analysis.roles import Role
from migrate.launching import NotStarted, started
from migrate.options import Mode, Options, Target
from migrate.pipeline import run_text
from migrate.report.model import Kind

MARK = "__mark"
OPTIONS = Options(notebook_launcher=True)
SETUP = """\
from runtime import Accelerator
accelerator = Accelerator()
losses = []
loader, model, optimizer = accelerator.prepare(loader, model, optimizer)"""
STEP = """\
for x in loader:
    loss = model(x).sum()
    accelerator.backward(loss)
    optimizer.step()"""
#: How the model that a cell trains comes back.
GIVEN = "accelerator.unwrap_model(model).state_dict(), model.training"
BACK = (
    "\nmodel_state, model_training = notebook_launcher(training)"
    "\nmodel.load_state_dict(model_state)\nmodel.train(model_training);"
)
ITEMS = SETUP.replace("loader", "loaders['train']")
STEP_ITEMS = STEP.replace("loader", "loaders['train']")
ROLES = {"model": Role.MODEL, "optimizer": Role.OPTIMIZER, "loader": Role.LOADER, "writer": Role.WRITER}


def _started(*cells, package="runtime", original=None):
    """The cells of a converted notebook after their start is written."""
    made = started(
        _module(cells),
        _module(original or cells),
        MARK,
        package,
        lambda n: frozenset({ROLES[n]} & {*Role}) if n in ROLES else frozenset(),
    )
    parts = made.split(f'"{MARK} ')[1:]
    return [part.partition("\n")[2].removesuffix("\n") for part in parts]


def _module(cells):
    return "".join(f'"{MARK} {number}"\n{dedent(cell)}\n' for number, cell in enumerate(cells, 1))


def test_items_of_a_dictionary_are_prepared_in_that_of_each_process():
    first, second, third = _started(ITEMS, STEP_ITEMS, "print(len(loaders['train'].dataset))")

    assert first == "from runtime import Accelerator, notebook_launcher\nlosses = []"
    assert "    loaders['train'], model, optimizer = accelerator.prepare(loaders['train'], model, optimizer)" in second
    assert "global model, optimizer\n" in second
    assert second.endswith(BACK)
    assert third == "print(len(loaders['train'].dataset))"


FIT = "    for x in loader:\n        accelerator.backward(net(x))\n        optimizer.step()\n    return"
GIVEN_BACK = {
    "model = fit(model)": f"def fit(net, n=1):\n{FIT} net",
    "n, model = fit(3, net=model)": f"def fit(n, net):\n    net = net.train()\n{FIT} n, net",
}


@pytest.mark.parametrize("call", GIVEN_BACK)
def test_model_that_a_function_gives_back_is_the_notebooks_own(call):
    """Another object would leave the notebook's optimizer with the one from before: nothing was trained below."""
    _, _, third, fourth = _started(SETUP, GIVEN_BACK[call], call, call)

    assert "accelerator.unwrap_model(model).state_dict(), model.training" in third
    assert "model.load_state_dict(model_state)" in third
    assert "prepare(loader, model, optimizer)" in fourth


def test_cell_becomes_a_function():
    first, second = _started(SETUP, STEP)

    assert first == "from runtime import Accelerator, notebook_launcher\nlosses = []"
    assert second == dedent("""\
        def training():
            global loader, model, optimizer

            accelerator = Accelerator()
            loader, model, optimizer = accelerator.prepare(loader, model, optimizer)

            for x in loader:
                loss = model(x).sum()
                accelerator.backward(loss)
                optimizer.step()

            return accelerator.unwrap_model(model).state_dict(), model.training

        model_state, model_training = notebook_launcher(training)
        model.load_state_dict(model_state)
        model.train(model_training);""")


def test_the_model_comes_back_for_a_cell_that_nobody_has_written_yet():
    """What was trained for hours would be gone with the processes; where nothing is trained, nothing comes."""
    *_, shown = _started(SETUP, f"{STEP}\nprint(3)")
    *_, below = _started(SETUP, f"{STEP}\nprint(accelerator.device)\nmore = 4")
    *_, evaluated = _started(SETUP, "for x in loader:\n    print(accelerator.gather(model(x)))")
    *_, accelerate = _started(*(cell.replace("runtime", "accelerate") for cell in (SETUP, STEP)), package="accelerate")

    assert "model.train(model_training);\nprint(3)" not in shown
    assert "model.train(model_training)\nprint(3)" in shown  # what is last decides what a cell shows
    assert "model.train(model_training)\nmore = 4" in below
    assert "state_dict" not in evaluated + accelerate


def test_what_later_cells_read_comes_back():
    *_, cell, last = _started(SETUP, f"{STEP}\n    losses.append(loss.item())", "print(losses, model)")

    assert "    return losses, accelerator.unwrap_model(model).state_dict(), model.training\n\n" in cell
    assert cell.endswith(
        "losses, model_state, model_training = notebook_launcher(training)\n"
        "model.load_state_dict(model_state)\nmodel.train(model_training);"
    )
    assert last == "print(losses, model)"


def test_optimizer_that_a_later_cell_goes_on_with_gets_its_state():
    *_, cell, again = _started(SETUP, STEP, STEP)

    assert "optimizer.load_state_dict(optimizer_state)" in cell
    assert "notebook_launcher(training_2)" in cell
    assert "notebook_launcher(training_3)" in again


@pytest.mark.parametrize(
    ("later", "result"),
    [
        ("for loss in losses:\n    pass", ["losses"]),  # bound before it is read
        ("loss = 3\nprint(loss)", []),
        ("if losses:\n    loss = 3\nprint(loss)", ["loss", "losses"]),
        ("match losses:\n    case []:\n        loss = 3\nprint(loss)", ["loss", "losses"]),
        ("match [1]:\n    case [loss]:\n        print(loss)", []),
        ("match 1:\n    case _ if loss:\n        pass", ["loss"]),
        ("[loss for loss in [1]]", ["loss"]),  # a name of its own: taken for one that is read
        ("def show():\n    print(loss)", []),
        ("def show():\n    print(loss)\nshow()", ["loss"]),
    ],
)
def test_result_is_what_is_read_before_it_is_bound(later, result):
    *_, cell, _ = _started(SETUP, f"{STEP}\n    losses.append(loss.item())", later)

    given = next((line.removeprefix("    return ") for line in cell.splitlines() if "    return " in line), "")
    assert [name for name in given.split(", ") if name] == [*result, *GIVEN.split(", ")]


ACCURACY = """\
def accuracy(m):
    right = 0
    for x in loader:
        right += accelerator.gather(m(x)).sum()
    return right"""


@pytest.mark.parametrize(
    "value", ["accuracy(model)", "accuracy(model) / 3, 'of all'", "accuracy(\n    model\n)  # in all"]
)
def test_value_that_a_cell_shows_is_shown(value):
    *_, cell = _started(SETUP, STEP, ACCURACY, value)

    first, *more = value.split("\n")
    assert "\n".join([f"    return {first}", *(f"    {line}" for line in more)]) in cell
    assert cell.endswith("\n\nnotebook_launcher(evaluation_4)")


def test_value_that_a_cell_shows_comes_back_beside_what_is_read_later():
    *_, cell, _ = _started(SETUP, ACCURACY, "rates = {}", f"{STEP}\nrates[1] = 2\naccuracy(model)", "print(rates)")

    assert f"    shown = accuracy(model)\n\n    return {GIVEN}, rates, shown\n" in cell
    assert "\nmodel_state, model_training, rates, shown = notebook_launcher(training)\n" in cell
    assert cell.endswith("\nmodel.train(model_training)\nshown")


METHODS = """\
class Trainer:
    def fit(self):
        accelerator.wait()
    def rate(self):
        self.fit()
        return 3"""


@pytest.mark.parametrize(
    "value",
    [
        "accuracy(model);",  # which a notebook does not show
        "told(model)",  # gives nothing
        "same(model)",  # a prepared model is nobody's to send
        "own()",
        "batches()",  # nor is a generator
        "for x in data:\n    trainer.fit()\ntrainer.fit()",
        "rate = accuracy(model)",
        "if losses:\n    accuracy(model)",
        "accelerator.print(accuracy(model))",
    ],
)
def test_value_that_no_cell_shows_is_not_sent(value):
    functions = """\
def told(m):
    def inner():
        return 3
    accelerator.wait()
def same(m):
    accelerator.wait()
    return 3, m
def own():
    accelerator.wait()
    return model
def batches():
    yield accelerator.num_processes"""
    *_, cell = _started(SETUP, STEP, f"{ACCURACY}\n{functions}\n{METHODS}\ntrainer = Trainer()", value)

    assert "return" not in cell
    assert cell.endswith("\n\nnotebook_launcher(evaluation_4)")


def test_value_of_a_method_is_shown():
    *_, cell = _started(
        SETUP, STEP, f"{METHODS}\ntrainer = Trainer()", "for x in data:\n    trainer.fit()\ntrainer.rate()"
    )

    assert "    return trainer.rate()\n" in cell


def test_accelerate_gives_back_no_value_to_show():
    *_, cell = _started(SETUP.replace("runtime", "accelerate"), ACCURACY, "accuracy(model)", package="accelerate")

    assert "return" not in cell


@pytest.mark.parametrize(
    ("changing", "results"),
    [
        ("for each, value in zip(lists, [1, 2]):\n        each.append(value)", "lists"),
        ("[each.update(3) for each in lists]", "lists"),
        ("for number, each in enumerate(lists):\n        each[0] = number", "lists"),
        ("for name, each in lists.items():\n        each.append(1)", "lists"),
        ("kept = lists['a']\n    kept.append(3)", "lists"),
        ("kept = lists\n    kept += [3]", "lists"),
        ("one = lists[0]\n    two = one[0]\n    two.append(1)", "lists"),
        ("for each in (lists, others):\n        each.append(1)", "lists, others"),
        ("fill(3)", "lists"),
        ("for each in lists:\n        print(each)", ""),
        ("for each in copied(3):\n        each.append(1)", ""),
        ("kept = sum(lists)\n    kept += 1", ""),
    ],
)
def test_what_is_changed_by_a_name_of_its_part_comes_back(changing, results):
    fill = "def fill(value):\n    for each in lists:\n        each.append(value)\n        accelerator.wait()"
    *_, cell, _ = _started(SETUP, fill, "lists, others = [], []", f"{STEP}\n    {changing}", "print(lists, others)")

    given = next((line.removeprefix("    return ") for line in cell.splitlines() if "    return " in line), "")
    assert [name for name in given.split(", ") if name not in GIVEN.split(", ")] == [*filter(None, results.split(", "))]


NET = """\
class Net(Module):
    def __init__(self):
        self.seen, self.rows = [], 0
    def forward(self, x):
        self.weights, self.rows = x.softmax(1), len(x)
        self.seen.append(x)
        return x
    def other(self):
        self.unseen = 3"""


def test_what_a_forward_keeps_comes_back_where_it_is_looked_at():
    *_, cell, _ = _started(
        SETUP,
        NET,
        STEP,
        "show(accelerator.unwrap_model(model).weights[0], model.seen)\nprint(other.rows, model.unseen)",
    )

    given = 'getattr(accelerator.unwrap_model(model), "{}", None)'
    assert f"model.training, {given.format('seen')}, {given.format('weights')}\n" in cell
    assert cell.endswith(
        "model_state, model_training, model_seen, model_weights = notebook_launcher(training)\n"
        "model.load_state_dict(model_state)\nmodel.train(model_training)\n"
        "model.seen = model_seen\nmodel.weights = model_weights"
    )


SEEDED = SETUP.replace(
    "losses = []",
    "if accelerator.num_processes > 1:\n    set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])",
).replace("import Accelerator", "import Accelerator, broadcast_object_list, set_seed")


def test_processes_of_the_runtime_draw_from_where_the_notebook_stands():
    first, cell = _started(f"import torch\n{SEEDED}", STEP)

    assert first == "import torch\nfrom runtime import Accelerator, notebook_launcher"
    assert "set_seed" not in cell


def test_what_a_cell_seeds_itself_it_seeds():
    first, *_ = _started(f"import torch\n{SEEDED}", "set_seed(3)", STEP)

    assert "import Accelerator, notebook_launcher, set_seed" in first


def test_those_of_accelerate_are_seeded():
    first, cell = _started(f"import torch\n{SEEDED}".replace("runtime", "accelerate"), STEP, package="accelerate")

    assert "broadcast_object_list, notebook_launcher, set_seed" in first
    assert "        set_seed(broadcast_object_list(" in cell


def test_what_a_cell_deletes_is_found():
    *_, cell = _started(SETUP, "old = [3]", f"{STEP}\n    del loss\ndel old\naccelerator.wait()")

    assert "    global loader, model, old, optimizer\n" in cell


def test_names_that_functions_read_stay_global():
    *_, cell = _started(
        SETUP,
        "def step(x):\n    global rate\n    accelerator.backward(model(x) * rate)",
        "rate = 1",
        "for x in loader:\n    step(x)",
    )

    assert "    global accelerator, loader, model\n" in cell


def test_only_what_a_cell_uses_is_prepared():
    *_, cell = _started(SETUP, "for x in loader:\n    print(accelerator.gather(x))")

    assert "    loader = accelerator.prepare(loader)\n" in cell
    assert "notebook_launcher(evaluation)" in cell


def test_output_of_other_cells_is_that_of_one_process():
    shown = """\
        accelerator.print(len(losses))
        with accelerator.main_process_first():
            data = fetch('''
        a text''')
        if accelerator.is_main_process:
            # a figure
            plot(losses)
        bar = tqdm(data, disable=not accelerator.is_local_main_process)
        print(accelerator.unwrap_model(model).weight)
        accelerator.wait_for_everyone()"""

    _, plain, _ = _started(SETUP, shown, STEP)

    assert plain == dedent("""\
        print(len(losses))
        data = fetch('''
        a text''')
        # a figure
        plot(losses)
        bar = tqdm(data)
        print(model.weight)""")


@pytest.mark.parametrize(
    ("converted", "plain"),
    [
        ("f = open(path if accelerator.is_main_process else os.devnull, 'w')", "f = open(path, 'w')"),
        ("f = open(path if accelerator.is_main_process else os.devnull)", "f = open(path)"),
        ("f = (path if accelerator.is_main_process else pathlib.Path(os.devnull)).open('w')", "f = path.open('w')"),
        ("log = Log(3) if accelerator.is_main_process else None", "log = Log(3)"),
        ("run = init(id=3, mode=None if accelerator.is_main_process else 'disabled')", "run = init(id=3)"),
        ("model = accelerator.unwrap_model(model)\nmodel.eval()", "model.eval()"),
        ("model = accelerator.unwrap_model(model).cpu()", "model = model.cpu()"),
    ],
)
def test_what_one_process_says_for_all_it_says(converted, plain):
    *_, cell = _started(SETUP, STEP, converted)

    assert cell.strip() == plain


SHOW = """\
def show(rows):
    for row in rows:
        accelerator.print(row)
    if accelerator.is_main_process:
        plot(rows)"""


@pytest.mark.parametrize("calling", ["show(losses)", "def both():\n    show(1)\n\nboth()"])
def test_function_that_only_speaks_is_the_notebooks_own(calling):
    _, function, cell, last = _started(SETUP, SHOW, STEP, calling)

    assert function == "def show(rows):\n    for row in rows:\n        print(row)\n    plot(rows)"
    assert "show" not in cell
    assert last == calling


@pytest.mark.parametrize(
    "cells",
    [
        [f"{STEP}\n    show(x)", "show(losses)"],  # several processes call it, too
        [STEP, "class Told:\n    def show(self):\n        show(1)", "show(losses)"],  # who has one is not seen
        [STEP, "def all_of(x):\n    show(accelerator.gather(x))", "all_of(losses)"],
    ],
)
def test_function_that_several_processes_call_speaks_by_the_accelerator(cells):
    _, function, *_, last = _started(SETUP, SHOW, *cells)

    assert function == SHOW
    assert "notebook_launcher(evaluation_" in last


def test_device_that_is_only_shown_is_chosen_as_before():
    setup = "import torch\n" + SETUP.replace("losses = []", "device = accelerator.device")
    before = setup.replace("accelerator.device", "torch.device('cuda')")

    first, shown, cell = _started(setup, "accelerator.print(device)", STEP, original=[before, "print(device)", STEP])

    assert "device = torch.device('cuda')" in first
    assert shown == "print(device)"
    assert "device = " not in cell


def test_text_over_several_lines_is_not_moved():
    *_, cell = _started(SETUP, f"{STEP}\n    print('''a\n  b''')")

    assert "        print('''a\n  b''')" in cell


def test_code_around_stays_where_it_is():
    *_, cell = _started(SETUP, f"rate = 3\n\n{STEP}\n\nmore = 4")

    assert cell.startswith("rate = 3\n\ndef training():\n")
    assert cell.endswith(f"{BACK.removesuffix(';')}\n\nmore = 4")


def test_accelerate_is_told_how_many():
    first, cell = _started(SETUP.replace("runtime", "accelerate"), STEP, package="accelerate")

    assert "from accelerate import Accelerator, notebook_launcher" in first
    assert "notebook_launcher(training, num_processes=torch.cuda.device_count() or 1)" in cell


@pytest.mark.parametrize(
    ("imported", "lines"),
    [("import torch", 0), ("import torch.optim", 0), ("import torch.nn as nn", 1), ("from torch import nn", 1)],
)
def test_torch_is_imported_where_it_is_asked_for_the_gpus(imported, lines):
    first, _ = _started(f"{imported}\n{SETUP}".replace("runtime", "accelerate"), STEP, package="accelerate")
    assert first.count("import torch\n") == (imported == "import torch") + lines
    runtime, _ = _started(f"{imported}\n{SETUP}", STEP)
    assert runtime.count("import torch\n") == (imported == "import torch")


def test_function_that_makes_the_accelerator_is_started():
    main = "from runtime import Accelerator\ndef main(rate):\n    accelerator = Accelerator()\n    return rate"

    _, cell, _ = _started(main, "result = main(3)", "print(result)")

    assert (
        cell == "def evaluation():\n    result = main(3)\n\n    return result\n\nresult = notebook_launcher(evaluation)"
    )


REFUSED = {
    "`display` is there in the notebook's own process only": [SETUP, f"{STEP}\n    display(x)"],
    "a line of IPython": [SETUP, f'{STEP}\n    "{MARK}_1_0"'],
    "something is awaited": [SETUP, f"{STEP}\n    await x"],
    "exec() would see other names": [SETUP, f"{STEP}\n    exec('x')"],
    "`device` is used in the notebook's own process": [
        f"{SETUP}\ndevice = accelerator.device",
        "x = y.to(device)",
        STEP,
    ],
    "methods of Net use the accelerator": [
        "class Net:\n    def forward(self, x):\n        accelerator.wait()",
        SETUP,
        STEP,
    ],
    "methods of Buffer use the accelerator": [
        "class Buffer:\n    def __len__(self):\n        return accelerator.num_processes",
        SETUP,
        STEP,
    ],
    "`accelerator` is used in the notebook's own process": [
        "class Net:\n    def act(self):\n        accelerator.wait()",
        SETUP,
        STEP,
        "net.act()",
    ],
    "`batches` is made of what each process has prepared for itself": [
        SETUP,
        "batches = iter(loader)",
        STEP.replace("in loader", "in batches"),
    ],
    "`diffusion` is made of what each process has prepared": [
        "class Diffusion:\n    def loss(self, x):\n        return self.net(x)",
        SETUP,
        "diffusion = Diffusion(model)",
        STEP.replace("model(x)", "diffusion.loss(x)"),
    ],
    "`schedule` is made of what each process has prepared": [
        SETUP,
        "steps = len(loader)\nschedule = rates(steps)",
        f"{STEP}\n    schedule.next()",
    ],
    "`log` writes with what one process has opened": [
        f"{SETUP}\nlog = open('log.txt', 'w')",
        f"{STEP}\n    log.write('x')",
    ],
    "`table` writes with what one process has opened": [
        SETUP,
        f"{STEP}\n    table = csv.writer(open('log.txt', 'w'))",
        "table.writerow([1])",
    ],
    "`loader` is made here, and later cells go on with it": [
        "from runtime import Accelerator\naccelerator = Accelerator()",
        "for z in y:\n    x = accelerator.gather(z)\nloader = DataLoader(x)\naccelerator.print(accelerator.gather(x))",
        "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)",
        STEP,
    ],
    "`model` is given another value after it is prepared": [SETUP, "model = Net()", STEP],
    "`optimizer` is made here": [SETUP, f"{STEP}\noptimizer = SGD(accelerator.device)", "optimizer.step()"],
    "`writer` writes with what one process has opened": [
        SETUP,
        "writer = SummaryWriter()",
        f"{STEP}\n    if accelerator.is_main_process:\n        writer.add_scalar('loss', loss)",
    ],
    "`wandb` writes with what one process has opened": [
        f"import wandb\n{SETUP}",
        "wandb.init(project='mine')",
        "def told(x):\n    wandb.log(x)",
        f"{STEP}\n    told(loss)",
    ],
    "`train` holds `loader` from where it is defined": [
        SETUP,
        "def train(net, data=loader):\n    for x in data:\n        accelerator.backward(net(x).sum())",
        "train(model)",
    ],
    "`Trainer` holds `model` from where it is defined": [
        SETUP,
        "class Trainer:\n    net = model\n    def fit(self):\n        accelerator.backward(self.net(1))",
        "for i in range(3):\n    Trainer().fit()",
    ],
    "`loss_of` holds `model` from where it is defined": [
        SETUP,
        "loss_of = lambda x, net=model: net(x)",
        STEP.replace("model(x)", "loss_of(x)"),
    ],
    "make an accelerator each": [SETUP, SETUP, STEP],
    "two statements share a line": [SETUP, "x = 3; y = accelerator.gather(x)"],
    "`loaders` holds what is prepared, and may be given something else": [
        ITEMS,
        f"{STEP_ITEMS}\n    loaders['new'] = make()",
        "print(loaders)",
    ],
    "`loaders` holds what is prepared, and may be given": [
        ITEMS,
        "def fit(kept):\n    for x in kept['train']:\n        accelerator.backward(model(x))\n    kept.clear()",
        "fit(loaders)",
        "print(loaders)",
    ],
    "`loaders` holds what is prepared, and may": [
        ITEMS,
        "def fit(kept, n):\n    n and fit(kept, n - 1)\n    for x in kept['train']: accelerator.backward(model(x))",
        "fit(loaders, 2)",
        "print(loaders)",
    ],
    "`loaders` is given another value after it is prepared": [ITEMS, "loaders['train'] = make()", STEP_ITEMS],
    "`batches` is made of what each process has prepared": [
        ITEMS,
        "batches = iter(loaders['train'])",
        STEP.replace("loader:", "batches:"),
    ],
    "`fit` holds `loaders` from where it is defined": [
        ITEMS,
        "def fit(loaders=loaders):\n    for x in loaders['train']:\n        accelerator.backward(model(x))",
        "fit()",
    ],
    "`model` is another object below, and `optimizer` goes on with the one from before": [
        SETUP,
        f"def fit(model):\n{indent(STEP, '    ')}\n    model = best(model)\n    return model",
        "model = fit(model)",
        "model = fit(model)",
    ],
    "is prepared, and is no plain name": [SETUP.replace("model", "my.model"), STEP.replace("model", "my.model")],
}


OWN_DEVICE = "device = torch.device('cuda')"
BESIDE_GPUS = f"""\
{OWN_DEVICE}
if torch.cuda.device_count() > 1:
    device = torch.device("cpu")"""


def _on_devices(*cells, chosen=OWN_DEVICE, above=None):
    """The cells after a setup that chooses a device, which the notebook did by `chosen`, and those of another above."""
    setup = f"import torch\n{SETUP}\ndevice = accelerator.device"
    before = setup.replace("device = accelerator.device", chosen)
    first = [above] if above is not None else []
    return _started(*first, setup, *cells, original=[*first, before, *cells])


@pytest.mark.parametrize(
    "own",
    ["x = y.to(device)", "def predict(x):\n    return x.to(device)\n\npredict(y)", "weights = load(path, device)"],
)
def test_the_notebooks_own_process_has_a_device_of_its_own(own):
    first, cell, last = _on_devices(STEP, own)

    assert first.endswith(BESIDE_GPUS)
    assert "device" not in cell
    assert last == own


def test_a_device_that_is_chosen_in_two_steps_is_chosen_in_both():
    chosen = "device = torch.device('cpu')\nif torch.cuda.is_available():\n    device = torch.device('cuda')"

    first, *_ = _on_devices(STEP, "x = y.to(device)", chosen=chosen)
    shown, *_ = _on_devices("accelerator.print(device)", STEP, chosen=chosen)

    assert f"{chosen}\nif torch.cuda.device_count() > 1:" in first
    assert shown.endswith(chosen)


def test_a_choice_that_also_sets_the_current_device_is_made_again():
    chosen = "if torch.cuda.is_available():\n    torch.cuda.set_device(0)\n    device = torch.device('cuda')"
    chosen += "\nelse:\n    device = torch.device('cpu')"

    first, *_ = _on_devices(STEP, "x = y.to(device)", chosen=chosen)

    assert first.endswith(f'{chosen}\nif torch.cuda.device_count() > 1:\n    device = torch.device("cpu")')


def test_what_the_choice_of_a_device_read_is_chosen_again_where_it_went_with_it():
    chosen = "if args.device is None:\n    args.device = 'cuda'\ndevice = torch.device(args.device)"

    _, first, *_ = _on_devices(STEP, "x = y.to(device)", chosen=chosen, above="args = options()")

    assert first.endswith(f'{chosen}\nif torch.cuda.device_count() > 1:\n    device = torch.device("cpu")')


def test_number_of_a_gpu_does_not_choose_one_that_is_not_there():
    first, *_ = _on_devices(STEP, "x = y.to(device)", chosen="device = torch.device('cuda:3')")

    assert first.endswith(BESIDE_GPUS)


def test_a_number_that_is_computed_is_not_chosen_again():
    with pytest.raises(NotStarted, match="`device` is used in the notebook's own process"):
        _on_devices("x = y.to(device)", STEP, chosen="device = f'cuda:{1}'")


def test_device_that_functions_of_the_training_use_is_that_of_each_process():
    make = "def noise(n):\n    return torch.randn(n).to(device)"

    first, _, cell, _ = _on_devices(make, f"{STEP}\n    noise(3)", "print(noise(2))")

    assert first.endswith(BESIDE_GPUS)
    assert "    global device, loader, model, optimizer\n" in cell
    assert "    device = accelerator.device\n" in cell


@pytest.mark.parametrize("own", ["x = y.to(device)", "accelerator.print(device)"])
@pytest.mark.parametrize("chosen", ["device = pick()", "if a:\n    device = 1\nelse:\n    print()\n    device = 2"])
def test_a_device_whose_choice_is_gone_is_not_chosen_again(chosen, own):
    if chosen.startswith("device = f") and "print" in own:
        pytest.skip("it is only shown")
    with pytest.raises(NotStarted, match="is used in the notebook's own process"):
        _on_devices(own, STEP, chosen=chosen)


@pytest.mark.parametrize(
    ("moved", "names"),
    [
        ("w = y.to(device)", ["w"]),
        ("w = torch.ones(3, device=device).view(3, 1)", ["w"]),
        ("w, v = y.to(device), torch.ones(1, device=device)", ["v", "w"]),
        ("w.to(device)", ["w"]),
        ("y = y.to(device)\nw = nn.BCELoss(weight=y)", ["w"]),
        ("w = y.to(device)\nw = 3", []),
        ("u = y.to(device)", []),
    ],
)
def test_what_a_cell_has_moved_is_moved_for_each_process(moved, names):
    *_, cell = _on_devices(moved, f"{STEP}\n    print(w, v)")

    assert [line.split(" = ")[0].strip() for line in cell.splitlines() if ".to(accelerator.device)" in line] == names


@pytest.mark.parametrize("asked", ["amp = device.type == 'cuda'", "amp = str(device).startswith('cuda')"])
def test_what_asks_the_device_alone_each_process_asks(asked):
    *_, cell = _on_devices(asked, f"{STEP}\n    print(amp)")

    assert cell.index("    device = accelerator.device\n") < cell.index(f"    {asked}\n") < cell.index("    for x in")


@pytest.mark.parametrize(
    "moved",
    [
        "w = read(device)",  # what it is nobody knows
        "u = y.to(device)\nw = u.sum().item() * u",
        "w = y.to(device)\nw.requires_grad = True",  # moved once more it would have no gradients
        "w = torch.ones(3, device=device, requires_grad=True)",
        "w.append(y.to(device))",
    ],
)
def test_what_else_cells_keep_on_the_device_is_refused(moved):
    with pytest.raises(NotStarted, match="`device` is used in the notebook's own process"):
        _on_devices(moved, f"{STEP}\n    print(w)")


def test_what_counts_batches_is_counted_by_each_process():
    *_, cell = _started(SETUP, "steps = len(loader)\nall_steps = 3 * steps", f"{STEP}\n    print(all_steps)")

    assert "    steps = len(loader)\n    all_steps = 3 * steps\n" in cell


@pytest.mark.parametrize(
    "kept",
    [
        "average = torch.optim.swa_utils.AveragedModel(model)",
        "average = Average(model)",  # which calls nothing that it holds
        "average = sum(p.numel() for p in model.parameters())",
    ],
)
def test_what_holds_a_model_and_does_not_call_it_stays(kept):
    cls = "class Average:\n    def update(self):\n        self.slow(self.net.parameters())\n    def slow(self): ..."

    *_, cell = _started(f"import torch\n{SETUP}", cls, kept, f"{STEP}\n    average.update()")

    assert "average" in cell


@pytest.mark.parametrize(
    "function",
    [
        "def train(net, rate=rate):\n    for x in loader:\n        accelerator.backward(net(x).sum() * rate)",
        "def train(net):\n    def step(x, inner=loader):\n        accelerator.backward(net(x).sum())\n    step(1)",
    ],
)
def test_what_a_function_reads_when_it_is_called_is_prepared(function):
    *_, cell = _started(SETUP, "rate = 3", function, "train(model)")

    assert "    loader, model = accelerator.prepare(loader, model)\n" in cell


def test_methods_that_need_the_accelerator_find_it():
    cls = "class Stopper:\n    def __call__(self, x):\n        accelerator.save(x)\n    def act(self):\n        self(1)"

    *_, cell, last = _started(SETUP, cls, "stop = Stopper()", f"{STEP}\n    stop(x)", "for x in data:\n    stop.act()")

    assert "    global accelerator, loader, model, optimizer\n" in cell
    assert last.startswith("def evaluation_")


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_started_is_refused(why):
    with pytest.raises(NotStarted) as refused:
        _started(*REFUSED[why])

    assert why in refused.value.what
    assert refused.value.cell
    assert refused.value.way_out


@pytest.mark.parametrize(
    "cells",
    [
        ["def train():\n    writer = SummaryWriter()\n    accelerator.wait()\n    writer.close()", "train()"],
        ["writer = SummaryWriter()\nwriter.add_graph(model)", STEP, "writer.close()"],
        [f"import wandb\nwandb.login()\n{STEP}\n    wandb.log(loss)"],
        ["import wandb\nwandb.init()", STEP],
        ["import mine\nmine.init()", f"{STEP}\n    mine.log(x)"],
    ],
)
def test_what_a_function_opens_for_itself_is_no_hindrance(cells):
    assert any("notebook_launcher(" in cell for cell in _started(SETUP, *cells))


def test_results_do_not_come_back_from_accelerate():
    with pytest.raises(NotStarted, match="gives nothing back"):
        _started(SETUP, f"{STEP}\n    losses.append(1)", "print(losses)", package="accelerate")


# --- through the whole of it ----------------------------------------------------------------------------------------


def _sources(content):
    return ["".join(cell["source"]) for cell in json.loads(content)["cells"]]


def test_notebook_is_converted_and_started(book, training):
    (change,) = run_text(book(*training), "train.ipynb", OPTIONS).changes

    settings, made, loop = _sources(change.new)
    assert "from runtime import Accelerator, notebook_launcher" in settings
    assert "accelerator" not in made
    assert loop.startswith("def training():\n    global loader, model, optimizer\n")
    assert loop.endswith(f"\n{BACK}")


def test_no_blank_line_stays_of_what_moves_into_the_function(book, training):
    settings, made, loop = training
    made += "\nloss_function = torch.nn.MSELoss()"
    (change,) = run_text(book(settings, made, loop), "train.ipynb", OPTIONS).changes

    _, cell, _ = _sources(change.new)
    assert cell.split("\n")[-2:] == made.split("\n")[-2:]
    assert "" not in cell.split("\n")


def test_blank_lines_that_were_there_stay(book, training):
    settings, made, loop = training
    made += "\n\nloss_function = torch.nn.MSELoss()"
    (change,) = run_text(book(settings, made, loop), "train.ipynb", OPTIONS).changes

    assert _sources(change.new)[1].split("\n")[-3:] == made.split("\n")[-3:]


def test_second_run_changes_nothing(book, training):
    (change,) = run_text(book(*training), "train.ipynb", OPTIONS).changes

    for options in (OPTIONS, Options()):
        again = run_text(change.new, "train.ipynb", options)
        assert (again.changes, again.of(Kind.LOOP), again.exit_status(Mode.CHECK)) == ((), (), 0)


def test_refused_notebook_stays_as_it_is_and_says_where(book, training):
    settings, made, loop = training
    report = run_text(book(settings, made, f"{loop}\n    display(loss)"), "train.ipynb", OPTIONS)

    assert report.changes == ()
    (left,) = [f for f in report.of(Kind.LEFT) if f.code == "MIG910"]
    assert (left.cell, left.line) == (3, 1)
    assert [loop.converts for loop in report.of(Kind.LOOP)] == [False]
    assert report.exit_status(Mode.WRITE) == 1


def test_scripts_are_converted_as_ever(training):
    script = "\n".join(training).encode()

    assert run_text(script, "train.py", OPTIONS).changes == run_text(script, "train.py", Options()).changes


def test_accelerate_gets_what_it_has(book, training):
    options = Options(notebook_launcher=True, target=Target.ACCELERATE)
    (change,) = run_text(book(*training), "train.ipynb", options).changes

    assert "from accelerate import Accelerator, notebook_launcher" in _sources(change.new)[0]


@pytest.mark.parametrize("saved", ["model.state_dict()", "model"])
def test_what_is_saved_in_a_later_cell_is_of_one_process(saved):
    wrapped = saved.replace("model", "accelerator.unwrap_model(model)")
    *_, last = _started(f"import torch\n{SETUP}", STEP, f"accelerator.save({wrapped}, 'm.pt')")

    assert last == f"torch.save({saved}, 'm.pt')"


def test_what_is_saved_by_another_name_of_torch_is_not():
    with pytest.raises(NotStarted):
        _started(f"import torch as th\n{SETUP}", STEP, "accelerator.save(1, 'm.pt')")


def test_where_loaders_stay_goes_with_what_is_prepared():
    placed = SETUP.replace("optimizer)", "optimizer, device_placement=[False, True, True])")
    _, first, last = _started(placed, STEP, "for x in loader:\n    print(accelerator.gather(x))")

    assert "= accelerator.prepare(loader, model, optimizer, device_placement=[False, True, True])" in first
    assert "loader = accelerator.prepare(loader, device_placement=[False])" in last
