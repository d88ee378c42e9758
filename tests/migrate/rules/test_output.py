import pytest

from migrate.report.model import Kind

UNCHANGED = {
    "nothing is said": {"epoch": "best = loss.item()"},
    "a file that is read": {"setup": 'with open("rows.txt") as file:\n    rows = file.read()'},
    "the name alone": {"end": "say = print"},
    "a print of the project's own": {
        "setup": "class Screen:\n    def print(self, text):\n        self.text = text\n\nscreen = Screen()",
        "end": 'screen.print("done")',
    },
    "a loop over a range": {"end": "for i in range(3):\n    best = i"},
    "a bar that is switched": {
        "imports": "from tqdm import tqdm",
        "end": "for i in tqdm(range(3), disable=True):\n    best = i",
    },
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


def guarded(text):
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    return f"if accelerator.is_main_process:\n{indented}"


PRINTS = {
    "at the end": {"end": ('print("done")', 'accelerator.print("done")')},
    "in an epoch": {"epoch": ("print(epoch, loss.item())", "accelerator.print(epoch, loss.item())")},
    "in a batch": {"step": ('print("step", end="\\r")', 'accelerator.print("step", end="\\r")')},
    "under a condition": {"epoch": ("if epoch:\n    print(epoch)", "if epoch:\n    accelerator.print(epoch)")},
    "in a function": {
        "setup": (
            "def fit(batch):\n    print(batch)\n    return model(batch)",
            "def fit(batch):\n    accelerator.print(batch)\n    return model(batch)",
        ),
        "forward": "fit(x)",
    },
}


@pytest.mark.parametrize("name", PRINTS)
def test_prints(changed, name):
    changed(**PRINTS[name])


FILES = {
    "a directory": "os.mkdir('out')",
    "a file": "with open('log.txt', 'w') as file:\n    file.write('done')",
    "a file and what is said of it": "with open('log.txt', 'w') as file:\n    print('done', file=file)",
    "a figure": "plt.plot([1, 2])\nplt.savefig('figure.png')",
    "json": "with open('log.json', 'w') as file:\n    json.dump([], file)",
    "numpy": "np.save('rows.npy', [1])",
    "a service": "wandb.log({'loss': 1})",
    "neighbours": "os.mkdir('out')\nnp.save('out/rows.npy', [1])",
}


@pytest.mark.parametrize("name", FILES)
def test_files(changed, name):
    imports = "import json\nimport os\nimport matplotlib.pyplot as plt\nimport numpy as np\nimport wandb"
    changed(imports=imports, end=(FILES[name], guarded(FILES[name])))


def test_an_if_gets_one_condition_more(changed):
    changed(
        imports="import numpy as np",
        epoch=(
            "if epoch == 1:\n    np.save('rows.npy', [1])",
            "if epoch == 1 and accelerator.is_main_process:\n    np.save('rows.npy', [1])",
        ),
    )


def test_an_if_with_or_gets_brackets(convert_text, programs):
    before, _ = programs({"imports": "import wandb", "epoch": "if epoch or loss:\n    wandb.log({})"})
    _, result = convert_text(before)

    assert "if (epoch or loss) and accelerator.is_main_process:" in result


def test_a_writer(changed):
    make = "from torch.utils.tensorboard import SummaryWriter"
    changed(
        imports=make,
        ready=("writer = SummaryWriter()", guarded("writer = SummaryWriter()")),
        step=(
            "writer.add_scalar('loss', loss.item(), epoch)",
            guarded("writer.add_scalar('loss', loss.item(), epoch)"),
        ),
        end=("writer.close()", guarded("writer.close()")),
    )


BARS = {
    "tqdm": ("tqdm(loader)", "tqdm(loader, disable=not accelerator.is_local_main_process)"),
    "with options": (
        "tqdm(loader, leave=False)",
        "tqdm(loader, leave=False, disable=not accelerator.is_local_main_process)",
    ),
    "inside": ("enumerate(tqdm(loader))", "enumerate(tqdm(loader, disable=not accelerator.is_local_main_process))"),
    "around": ("tqdm(enumerate(loader))", "tqdm(enumerate(loader), disable=not accelerator.is_local_main_process)"),
}


@pytest.mark.parametrize("name", BARS)
def test_bars(changed, name):
    target = "i, (x, y)" if "enumerate" in BARS[name][0] else "x, y"
    changed(imports="from tqdm import tqdm", target=target, over=BARS[name])


UNHEARD = {
    "a bar that is moved by hand": {
        "imports": "from tqdm import tqdm",
        "start": "bar = tqdm(total=len(loader))",
        "step": "bar.update(1)",
    },
    "a print in an expression": {"end": "[print(i) for i in range(3)]"},
}


@pytest.mark.xfail(strict=True, reason="defect B: every process shows this, and nothing says so")
@pytest.mark.parametrize("name", UNHEARD)
def test_what_is_shown_in_other_ways_is_silenced_or_reported(programs, convert_text, name):
    report, result = convert_text(programs(UNHEARD[name])[0])

    assert "main_process" in result or [f for f in report.findings if f.code == "MIG117"]


SHOWING = "def show(step, value):\n    print(step)\n    print(value)"


def test_a_function_that_only_writes_is_left_and_its_calls_are_guarded(changed):
    changed(setup=SHOWING, epoch=("show(epoch, loss.item())", guarded("show(epoch, loss.item())")))


def test_a_function_whose_result_is_used_speaks_with_one_voice_inside(changed):
    function = "def show(value):\n    {}(value)\n    return value"
    changed(
        setup=(function.format("print"), function.format("accelerator.print")),
        epoch="best = show(loss.item())",
    )


def test_a_function_that_draws_random_numbers_is_entered_by_all(changed):
    function = "def show(value):\n    {}(value * torch.randn(1))"
    changed(
        setup=(function.format("print"), function.format("accelerator.print")),
        epoch="show(loss.item())",
    )


def test_what_runs_the_model_stays_outside(changed):
    changed(
        imports="import os",
        setup='OUT = "out"',
        epoch=(
            "os.mkdir(OUT)\nshown = model(x)\nprint(shown)",
            f"{guarded('os.mkdir(OUT)')}\nshown = model(x)\naccelerator.print(shown)",
        ),
    )


def test_what_writes_and_runs_the_model_is_left_with_the_reason(unchanged, programs, remark):
    holes = {"imports": "import json", "epoch": 'json.dump(model(x).tolist(), open("rows.json", "w"))'}
    report = unchanged(**holes)

    finding = remark(report, programs(holes)[0], "MIG117", "json.dump", ["runs the model"])
    assert "in a statement of its own" in finding.hint


def test_a_file_that_stays_open_is_left_with_the_reason(unchanged, programs, remark):
    holes = {"made": 'log = open("log.txt", "w")', "end": "log.close()"}
    report = unchanged(**holes)

    finding = remark(report, programs(holes)[0], "MIG117", "log = open", ["every process opens this file"])
    assert "os.devnull" in finding.hint


def test_what_is_said_before_the_accelerator_exists_is_reported(changed, programs, remark):
    parse = 'print("start")\nimport argparse\nargs = argparse.ArgumentParser().parse_args()'
    choice = 'device = torch.device("cuda" if args.gpu else "cpu")'
    holes = {
        "accelerator": "",
        "setup": (f"{parse}\n{choice}", f"{parse}\naccelerator = Accelerator(cpu=not args.gpu)"),
    }
    report = changed(**holes)

    remark(report, programs(holes)[0], "MIG117", 'print("start")', ["before the accelerator exists"], Kind.NOTE)


SILENT = "if not accelerator.is_main_process:\n    logging.disable(logging.INFO)"
LOGGED = {
    "through the module": {"epoch": 'logging.info("epoch %d", epoch)'},
    "through a logger": {"made": "log = logging.getLogger(__name__)", "epoch": 'log.info("epoch %d", epoch)'},
}


@pytest.mark.parametrize("name", LOGGED)
def test_logs_where_the_accelerator_takes_the_place_of_the_device(changed, name):
    choice = 'device = torch.device("cuda")'
    changed(
        imports="import logging",
        accelerator="",
        setup=(choice, f"accelerator = Accelerator()\n{SILENT}"),
        batch=("x, y = x.to(device), y.to(device)", ""),
        **LOGGED[name],
    )


@pytest.mark.parametrize("name", LOGGED)
def test_logs(changed, name):
    changed(imports="import logging", accelerator=f"accelerator = Accelerator()\n{SILENT}", **LOGGED[name])


def test_logs_that_cannot_be_silenced_are_reported(unchanged, programs, remark):
    holes = {
        "imports": "from logging import getLogger",
        "made": "log = getLogger(__name__)",
        "epoch": 'log.info("epoch %d", epoch)',
    }
    report = unchanged(**holes)

    finding = remark(report, programs(holes)[0], "MIG117", "log.info", ["every process logs this"], Kind.NOTE)
    assert "logging.disable" in finding.hint


def test_a_directory_that_may_be_there_is_made_by_all(unchanged):
    unchanged(imports="import os", end='os.makedirs("out", exist_ok=True)')


def test_it_can_be_left_out(programs, convert_text):
    before, _ = programs({"end": 'print("done")'})
    _, result = convert_text(before, ignore=("MIG117",))

    assert "accelerator.backward(loss)" in result
    assert "accelerator.print" not in result
