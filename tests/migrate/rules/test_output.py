import pytest

from migrate.options import Target
from migrate.report.model import Kind

UNCHANGED = {
    "an archive that is read": {
        "imports": "import tarfile",
        "end": "with tarfile.open('rows.tar.xz', 'r:xz') as tar:\n    rows = tar.getnames()",
    },
    "a member of an archive": {
        "imports": "import packed",
        "made": "archive = packed.Archive('rows.zip')",
        "end": "file = archive.open('data.txt')\nrows = file.read()",
    },
    "an address": {
        "imports": "import numpy as np",
        "end": "rows = np.DataSource().open('http://a.org/rows.txt').read()",
    },
    "nothing is said": {"epoch": "best = epoch + 1"},
    "a file that is read": {"setup": 'with open("rows.txt") as file:\n    rows = file.read()'},
    "the name alone": {"end": "say = print"},
    "what a printer makes a text of": {
        "imports": "import pprint",
        "made": "printer = pprint.PrettyPrinter()",
        "epoch": "best = printer.pformat({'lr': 0.1})",
    },
    "what only hastens what was said": {"imports": "import sys", "epoch": "sys.stdout.flush()"},
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


WRITER = "from torch.utils.tensorboard import SummaryWriter"
JOINED = "loss = accelerator.reduce(loss, reduction='mean')\n"  # the last loss, where it is read after the loop
PRINTS = {
    "at the end": {"end": ('print("done")', 'accelerator.print("done")')},
    "in an epoch": {"epoch": ("print(epoch, loss.item())", f"{JOINED}accelerator.print(epoch, loss.item())")},
    "in a batch": {"step": ('print("step", end="\\r")', 'accelerator.print("step", end="\\r")')},
    "under a condition": {"epoch": ("if epoch:\n    print(epoch)", "if epoch:\n    accelerator.print(epoch)")},
    "in a function": {
        "setup": (
            "def fit(batch):\n    print(batch)\n    return model(batch)",
            "def fit(batch):\n    accelerator.print(batch)\n    return model(batch)",
        ),
        "forward": "fit(x)",
    },
    "in what an optimizer calls": {
        "step": (
            "def again():\n    print('again')\n    return loss\n\noptimizer.step(again)",
            "def again():\n    accelerator.print('again')\n    return loss\n\noptimizer.step(again)",
        ),
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
    "a sound": "librosa.output.write_wav('take.wav', [0.1], 16000)",
    "an image by the version of its library": "imageio.imwrite('rows.png', [1])",
    "an image of scipy": "scipy.misc.toimage([1]).save('rows.png')",
    "a service": "wandb.log({'loss': 1})",
    "a dictionary that is shown": "pprint.pp({'loss': 1})",
    "an archive": "with tarfile.open('runs.tar.gz', 'w:gz') as tar:\n    tar.add('runs')",
    "a packed file": "with gzip.open('rows.gz', 'wb') as file:\n    file.write(b'rows')",
    "a file of arrays": "with h5py.File('rows.h5', 'w') as file:\n    file.create_dataset('rows', data=[1])",
    "items of a file of arrays": "with h5py.File('rows.h5', 'w') as file:\n    file['rows'] = [1]\n"
    "    file.attrs['by'] = 'me'",
    "a folder in an archive": "shutil.make_archive('runs', 'zip', 'runs')",
    "neighbours": "os.mkdir('out')\nnp.save('out/rows.npy', [1])",
}


@pytest.mark.parametrize("name", FILES)
def test_files(changed, name):
    imports = "import gzip\nimport h5py\nimport json\nimport os\nimport shutil\nimport tarfile\n"
    imports += "import imageio.v2 as imageio\nimport librosa\nimport scipy.misc\n"
    imports += "import matplotlib.pyplot as plt\nimport numpy as np\nimport pprint\nimport wandb"
    changed(imports=imports, end=(FILES[name], guarded(FILES[name])))


LOOKS = ["plt.ion()", "sns.set()", "sns.set_style('darkgrid')", "plt.style.use('ggplot')", "plt.rc('font', size=14)"]


@pytest.mark.parametrize("look", LOOKS)
def test_how_figures_will_look_is_said_by_all(changed, look):
    changed(imports="import matplotlib.pyplot as plt\nimport seaborn as sns", end=look)


@pytest.mark.parametrize("mode", ["'r'", "mode='r'", ""])
def test_a_file_of_arrays_that_is_read_is_opened_by_all(changed, mode):
    reads = f"with h5py.File('rows.h5'{', ' * bool(mode)}{mode}) as file:\n    rows = file['rows'][:]"
    changed(imports="import h5py", end=reads)


def test_a_file_of_arrays_that_all_read_again_is_waited_for(convert_text, programs):
    writes = "with h5py.File('rows.h5', 'w') as file:\n    file['rows'] = [1]\n"
    reads = "with h5py.File('rows.h5', 'r') as file:\n    rows = file['rows'][:]"
    _, result = convert_text(programs({"imports": "import h5py", "end": writes + reads})[0])

    assert f"accelerator.wait_for_everyone()\n{reads}" in result


def test_items_of_a_file_of_arrays_that_all_open_are_set_by_all_which_is_told(convert_text, programs):
    opened = "file = h5py.File('rows.h5', 'w')\nfile['rows'] = [1]\nfile.close()"
    report, result = convert_text(programs({"imports": "import h5py", "end": opened})[0])

    assert f"\n{opened}\n" in f"{result}\n"
    assert any("every process opens this file and writes into it" in f.message for f in report.findings)


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


CONDITIONS = {
    "one more": ("epoch and x", "epoch and x and accelerator.is_main_process"),
    "another word": ("epoch or x", "(epoch or x) and accelerator.is_main_process"),
    "in parentheses": ("(epoch and x)", "(epoch and x and accelerator.is_main_process)"),
    "over several lines": (
        "(\n    epoch is not None\n    and x\n)",
        "(\n    epoch is not None\n    and x\n) and accelerator.is_main_process",
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_gets_one_more(changed, name):
    before, after = CONDITIONS[name]
    write = "open('best.txt', 'w').write('x')"
    changed(made="x = 1", epoch=(f"if {before}:\n    {write}", f"if {after}:\n    {write}"))


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
    "switched on": ("tqdm(loader, disable=False)", "tqdm(loader, disable=not accelerator.is_local_main_process)"),
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


@pytest.mark.parametrize("flag", ["quiet", "not quiet", "quiet not in (True, 1)"])
def test_a_bar_that_the_user_may_switch_off(changed, flag):
    hidden = f"{flag} or not accelerator.is_local_main_process"
    bars = (f"tqdm(loader, disable={flag})", f"tqdm(loader, disable={hidden})")
    changed(imports="from tqdm import tqdm", made="quiet = False", over=bars)


@pytest.mark.parametrize("flag", ["True", "not is_first()", "None"])
def test_a_bar_that_something_else_switches(unchanged, flag):
    first = "def is_first():\n    return True\n"
    unchanged(imports="from tqdm import tqdm", made=first, over=f"tqdm(loader, disable={flag})")


@pytest.mark.parametrize("bar", ["progress_bar", "master_bar"])
@pytest.mark.parametrize("module", ["fastprogress", "fastprogress.fastprogress"])
def test_a_bar_that_is_switched_on(changed, module, bar):
    bars = (f"{bar}(loader)", f"{bar}(loader, display=accelerator.is_local_main_process)")
    changed(imports=f"from {module} import {bar}", over=bars)


@pytest.mark.parametrize(
    "name", ["progressbar.progressbar", "alive_progress.alive_it", "qqdm.qqdm", "qqdm.notebook.qqdm"]
)
def test_a_bar_that_cannot_be_switched_off_goes_over_the_loader_and_is_told(changed, name):
    module, _, bar = name.rpartition(".")
    report = changed(imports=f"from {module} import {bar}", over=(f"{bar}(loader)", f"{bar}(loader)"))

    (finding,) = [f for f in report.findings if f.message == "every process shows this progress bar"]
    assert finding.code == "MIG117"
    assert "tqdm" in finding.hint


def test_a_bar_that_the_user_may_switch_on(changed):
    bars = [f"progress_bar(loader, display={flag})" for flag in ("loud", "loud and accelerator.is_local_main_process")]
    changed(imports="from fastprogress import progress_bar", made="loud = False", over=tuple(bars))


BY_HAND = "bar = tqdm(total=len(loader){})"


def test_a_bar_that_is_moved_by_hand(changed):
    changed(
        imports="from tqdm import tqdm",
        start=(BY_HAND.format(""), BY_HAND.format(", disable=not accelerator.is_local_main_process")),
        step="bar.update(1)",
    )


def test_a_bar_that_is_asked_how_far_it_is_counts_on_every_process(unchanged, programs, remark):
    holes = {
        "imports": "from tqdm import tqdm",
        "start": BY_HAND.format(""),
        "step": "bar.update(1)\nif bar.n > 3:\n    best = epoch",
    }
    remark(unchanged(**holes), programs(holes)[0], "MIG117", "tqdm(total", ["every process shows"], Kind.NOTE)


def test_a_bar_over_a_range_that_is_all_there_is(unchanged, programs, remark):
    holes = {"imports": "from tqdm import tqdm", "ready": "bar = tqdm(range(4))", "step": "bar.update(1)"}
    remark(unchanged(**holes), programs(holes)[0], "MIG117", "tqdm(range", ["every process shows"], Kind.NOTE)


def test_what_is_written_to_a_bar(changed):
    changed(imports="from tqdm import tqdm", epoch=("tqdm.write('done')", guarded("tqdm.write('done')")))


INSIDE = {
    "a comprehension": "[{}(i) for i in range(3)]",
    "behind and": "epoch > 1 and {}('done')",
    "a choice": "{}('one') if epoch else {}('two')",
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_print_in_an_expression(changed, name):
    text = INSIDE[name]
    changed(end=(text.replace("{}", "print"), text.replace("{}", "accelerator.print")))


SHOWING = "def show(step, value):\n    print(step)\n    print(value)"


def test_a_function_that_only_writes_is_left_and_its_calls_are_guarded(changed):
    changed(setup=SHOWING, epoch=("show(epoch, loss.item())", JOINED + guarded("show(epoch, loss.item())")))


CALLBACKS = """
def told(step):
    print("step", step)

callbacks = [told]

def trigger(step):
    for callback in callbacks:
        callback(step)
"""


def test_a_callback_asks_for_itself_so_that_others_may_be_for_all_processes(changed):
    asks = CALLBACKS.replace("    print(", "    accelerator.print(")
    changed(setup=(CALLBACKS, asks), step=("trigger(1)", "trigger(1)"))


OBJECTS = """
class Printer:
    def on_epoch_end(self, net, loss):
        print("loss", loss)

class Keeper:
    def __init__(self):
        self.best = 9.0
    def on_epoch_end(self, net, loss):
        {kept}

callbacks = [Printer(), Keeper()]
"""
TOLD = "for callback in callbacks:\n    callback.on_epoch_end(model, epoch)"


def test_what_one_call_enters_is_guarded_only_together(changed):
    keeping = OBJECTS.format(kept="self.best = min(loss, self.best)")
    changed(setup=(keeping, keeping.replace("print(", "accelerator.print(")), epoch=TOLD)


def test_so_are_functions_that_only_write(changed):
    writing = OBJECTS.format(kept='open("log", "a").write(f"{loss}")').replace("print(", 'open("said", "a").write(')
    writing = writing.replace('write("loss", loss)', 'write(f"{loss}")')
    changed(setup=writing, epoch=(TOLD, guarded(TOLD)))


def test_a_function_that_is_called_by_its_name_is_left_and_its_calls_are_guarded(changed):
    direct = CALLBACKS.replace("for callback in callbacks:\n        callback(step)", "told(step)").replace(
        'print("step", step)', 'print("step", step, file=open("log", "a"))'
    )
    changed(setup=(direct, direct), step=("trigger(1)", guarded("trigger(1)")))


LAMBDA = """
def lengths(path):
    split = lambda text: text.split(" ")
    {lines}
    return [len(split(line)) for line in path]

def told(step):
    say = lambda text: print(text)
    say(step)
"""


def test_a_lambda_that_a_function_calls_by_its_name(changed):
    before = LAMBDA.format(lines='print(path)\n    print(path, file=open("log", "a"))')
    guard = 'if accelerator.is_main_process:\n        print(path, file=open("log", "a"))'
    after = LAMBDA.format(lines=f"accelerator.print(path)\n    {guard}")
    changed(setup=(before, after), made="sizes = lengths('a b')", step=("told(1)", guarded("told(1)")))


def test_a_function_whose_result_is_used_speaks_with_one_voice_inside(changed):
    function = "def show(value):\n    {}(value)\n    return value"
    changed(
        setup=(function.format("print"), function.format("accelerator.print")),
        epoch=("best = show(loss.item())", f"{JOINED}best = show(loss.item())"),
    )


def test_a_function_that_draws_random_numbers_is_entered_by_all(changed):
    function = "def show(value):\n    {}(value * torch.randn(1))"
    changed(
        setup=(function.format("print"), function.format("accelerator.print")),
        epoch=("show(loss.item())", f"{JOINED}show(loss.item())"),
    )


@pytest.mark.parametrize(
    "does",
    [
        "random.seed(1)",
        "torch.manual_seed(1)",
        "torch.cuda.manual_seed_all(1)",
        "torch.set_num_threads(1)",
        "sys.path.append('parts')",
        "os.environ.setdefault('MODE', 'a')",
        "os.chdir('runs')",
        "sys.exit()",
    ],
)
def test_what_sets_something_for_its_process_or_ends_it_is_entered_by_all(changed, does):
    text = "def begin():\n    {0}('begun')\n    " + does + "\nbegin()"
    changed(
        imports="import os\nimport random\nimport sys",
        setup=(text.format("print"), text.format("accelerator.print")),
    )


CHANGES_ITS_MODEL = {
    "a function that it hands to its model": "def init(m):\n        if hasattr(m, 'weight'):\n            "
    "nn.init.normal_(m.weight.data)\n    net.apply(init)",
    "a function of the library": "nn.init.zeros_(net.bias)",
    "a method of modules": "net.double()",
    "a buffer": "net.register_buffer('seen', torch.zeros(1))",
}


@pytest.mark.parametrize("name", CHANGES_ITS_MODEL)
def test_what_also_changes_the_model_that_it_is_given_is_entered_by_all(changed, name):
    text = f"def begin(net):\n    {{}}('begun')\n    {CHANGES_ITS_MODEL[name]}"
    changed(setup=(text.format("print"), text.format("accelerator.print")), made="begin(model)")


def test_what_runs_the_model_stays_outside(changed):
    changed(
        imports="import os",
        setup='OUT = "out"',
        epoch=(
            "os.mkdir(OUT)\nshown = model(x)\nprint(shown)",
            f"{guarded('os.mkdir(OUT)')}\nshown = model(x)\naccelerator.print(shown)",
        ),
    )


EVALUATE = """\
def evaluate(net, rows):
    net.eval()
    with torch.no_grad():
        return net(rows).mean().item()
"""
COMPUTED = {
    "rows": ({"imports": "import json"}, 'json.dump({}.tolist(), open("rows.json", "w"))', "model(x)"),
    "a picture": ({"imports": "from torchvision.utils import save_image"}, 'save_image({}, "a.png")', "model(x)"),
    "what another model makes of it": (
        {"imports": "from torchvision.utils import save_image"},
        'save_image({}.view(-1), "a.png")',
        "model(torch.cat([model(x), x], 1)[:, 1:])",
    ),
    "an evaluation": (
        {
            "imports": WRITER,
            "setup": EVALUATE,
            "ready": ("writer = SummaryWriter()", guarded("writer = SummaryWriter()")),
            "start": "model.train()",
        },
        'writer.add_scalar("mean", {}, epoch)',
        "evaluate(model, x)",
    ),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_all_must_compute_is_computed_before_one_writes_it(changed, name):
    holes, write, call = COMPUTED[name]
    changed(**holes, epoch=(write.format(call), f"result = {call}\n{guarded(write.format('result'))}"))


TAKEN = {
    "a batch": ("next(iter(loader))", "plt.imshow({}[0].cpu())", "plt.imshow({}[0])"),
    "the next batch": ("next(batches)", "plt.imshow({}[0].cpu())", "plt.imshow({}[0])"),
    "a batch for the project's own": ("next(iter(loader))", "show({}[0])", None),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_drawn_of_a_prepared_loader_all_take(changed, name):
    call, after, before = TAKEN[name]
    show = "def show(rows):\n    plt.figure()\n    plt.title(len(rows))\n    plt.savefig('rows.png')"
    changed(
        imports="import matplotlib.pyplot as plt",
        setup=show if before is None else "",
        ready="batches = iter(loader)" if "batches" in call else "",
        end=((before or after).format(call), f"batch = {call}\n{guarded(after.format('batch'))}"),
    )


def test_what_is_computed_stands_between_what_is_written(changed):
    first, last = 'json.dump([], open("a.json", "w"))', 'json.dump(1, open("c.json", "w"))'
    middle = 'json.dump({}.tolist(), open("b.json", "w"))'
    after = f"{guarded(first)}\nresult = model(x)\n{guarded(middle.format('result') + chr(10) + last)}"
    changed(imports="import json", epoch=(f"{first}\n{middle.format('model(x)')}\n{last}", after))


def test_the_name_of_what_is_computed_is_a_new_one(changed):
    write = 'json.dump([{}.tolist(), result], open("a.json", "w"))'
    after = f"model_result = model(x)\n{guarded(write.format('model_result'))}"
    changed(imports="import json", made="result = 1", epoch=(write.format("model(x)"), after))


MIXED = {
    "two calls": 'json.dump([model(x).tolist(), model(y).tolist()], open("rows.json", "w"))',
    "for each row": 'json.dump([model(row).tolist() for row in x], open("rows.json", "w"))',
    "if there is anything": 'json.dump(model(x).tolist() if len(x) else [], open("rows.json", "w"))',
}


@pytest.mark.parametrize("name", MIXED)
def test_what_writes_and_runs_the_model_is_left_with_the_reason(unchanged, programs, remark, name):
    holes = {"imports": "import json", "epoch": MIXED[name]}
    report = unchanged(**holes)

    finding = remark(report, programs(holes)[0], "MIG117", "json.dump", ["runs the model"])
    assert "in a statement of its own" in finding.hint


OPENED = {
    "a name": ("log = open({}, 'w')", "log.write('done')\nlog.close()"),
    "appended": ("log = open({}, 'a')", "print('done', file=log)"),
    "never read": ("log = open({}, 'w+')", "log.write('done')\nlog.close()"),
    "rows": ("log = open({}, 'w')\nrows = csv.writer(log)", "rows.writerow(['done'])"),
    "without a name": ("rows = csv.writer(open({}, 'a', 1))", "rows.writerow(['done'])"),
    "with a header": ("rows = csv.DictWriter(open({}, 'w'), ['a'])", "rows.writeheader()"),
    "around more than writing": ("with open({}, 'w') as log:\n    best = 1\n    log.write('start')", "seen = best"),
}


@pytest.mark.parametrize("name", OPENED)
def test_a_file_that_stays_open_is_the_null_device_for_the_others(changed, name):
    made, end = OPENED[name]
    printed = "accelerator.print" if "print" in end else "print"
    changed(
        imports="import csv\nimport os",
        made=(made.format("'log.txt'"), made.format("'log.txt' if accelerator.is_main_process else os.devnull")),
        end=(end, end.replace("print", printed)),
    )


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("log", "(log if accelerator.is_main_process else pathlib.Path(os.devnull))"),
        ("(log / 'a.txt')", "(log / 'a.txt' if accelerator.is_main_process else pathlib.Path(os.devnull))"),
    ],
)
@pytest.mark.parametrize(
    "end", ["with {}.open('w') as file:\n    best = 1\n    file.write('start')\nseen = best", "file = {}.open('a')"]
)
def test_a_path_that_is_opened_is_the_null_device_for_the_others(changed, path, other, end):
    changed(
        imports="import os\nimport pathlib",
        made="log = pathlib.Path('log.txt')",
        end=(end.format(path), end.format(other)),
    )


def test_the_null_device_stays_what_it_is(unchanged):
    """`with open(os.devnull, "w") as nowhere:`, into which the talk of a library goes: nothing is written there."""
    unchanged(
        imports="import contextlib\nimport os",
        end="with open(os.devnull, 'w') as nowhere:\n    with contextlib.redirect_stdout(nowhere):\n        best = 1",
    )


LEFT_OPEN = {
    "must not be there": ('log = open("log.txt", "x")', "log.close()"),
    "is read": ('log = open("log.txt", "w+")', 'log.write("done")\nlog.seek(0)\ntext = log.read()'),
}


@pytest.mark.parametrize("name", LEFT_OPEN)
def test_a_file_that_cannot_be_the_null_device_is_left_with_the_reason(unchanged, programs, remark, name):
    made, end = LEFT_OPEN[name]
    holes = {"made": made, "end": end}
    report = unchanged(**holes)

    finding = remark(report, programs(holes)[0], "MIG117", "log = open", ["every process opens this file"])
    assert "os.devnull" in finding.hint


def test_what_is_done_only_to_be_written_goes_under_the_guard(changed):
    text = "if epoch:\n    text = str(epoch)\n    with open('log.txt', 'w') as file:\n        file.write(text)"
    changed(epoch=(text, text.replace("if epoch:", "if epoch and accelerator.is_main_process:")))


def test_names_that_are_made_in_steps_go_with_what_writes_them(changed):
    text = "for name in ('a',):\n    part = name[:1]\n    part = part[1:]\n    np.save(part, [1])"
    changed(imports="import numpy as np", epoch=(text, guarded(text)))


def test_what_is_read_afterwards_stays_outside(changed):
    text = "if epoch:\n    best = epoch\n    np.save('rows.npy', [1])"
    rest = text.replace("    np.save", "    if accelerator.is_main_process:\n        np.save")
    changed(imports="import numpy as np", epoch=(text, rest), end="seen = best")


def test_what_decides_the_next_time_stays_outside(changed):
    one = "if best < epoch:\n    best = epoch\n    np.save('rows.npy', [1])"
    rest = one.replace("    np.save", "    if accelerator.is_main_process:\n        np.save")
    changed(imports="import numpy as np", ready="best = 0", epoch=(one, rest))


FIGURES = {
    "a figure": "fig = plt.figure()\nplt.plot([1])\nfig.savefig('loss.png')",
    "axes": "fig, ax = plt.subplots()\nax.plot([1])\nax.set_title('loss')\nfig.savefig('loss.png')\nplt.close(fig)",
    "the axes that are there": "plt.plot([1])\nplt.gca().set_title('loss')\nplt.gca().xaxis.set_ticks([1])\nplt.show()",
    "what is there of them": "plt.plot([1])\nplt.gca().set_xticks(plt.gca().get_xticks()[1:])\nplt.show()",
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_made_where_they_are_saved(changed, name):
    changed(imports="import matplotlib.pyplot as plt", epoch=(FIGURES[name], guarded(FIGURES[name])))


METHODS = {
    "a table": ("import pandas as pd", "pd.DataFrame([1]).to_csv('rows.csv')"),
    "a path": ("from pathlib import Path", "Path('out').mkdir()"),
    "a picture": ("from PIL import Image", "image.save('one.png')"),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_that_write(changed, name):
    imports, call = METHODS[name]
    made = "image = Image.new('RGB', (2, 2))" if "image" in call else ""
    changed(imports=imports, made=made, end=(call, guarded(call)))


PRINTERS = {
    "dictionaries": ("import pprint", "pprint.PrettyPrinter(indent=2)", "{}.pprint({{'lr': 0.1}})"),
    "a console": ("from rich.console import Console", "Console()", "{}.print('done')\n{}.rule('results')"),
    "the one console": ("import rich", "rich.get_console()", "{}.log('done')"),
}


@pytest.mark.parametrize("name", PRINTERS)
@pytest.mark.parametrize("is_kept", [True, False])
def test_objects_that_print(changed, name, is_kept):
    imports, maker, call = PRINTERS[name]
    made, printer = ("printer = " + maker, "printer") if is_kept else ("", maker)
    said = call.format(printer, printer)
    changed(imports=imports, made=made, epoch=(said, guarded(said)))


def test_what_prints_for_a_function_is_called_by_the_main_process(changed):
    shows = "def show(settings):\n    printer.pprint(settings)"
    changed(
        imports="from pprint import PrettyPrinter",
        setup=f"printer = PrettyPrinter()\n{shows}",
        ready=("show({'lr': 0.1})", guarded("show({'lr': 0.1})")),
    )


OR_NONE = "SummaryWriter() if accelerator.is_main_process else None"


def test_a_writer_that_is_handed_on_is_none_on_the_others(changed):
    function = "def fit(writer, epoch):\n    best = epoch\n    {}\n    return best"
    call = "writer.add_scalar('best', best, epoch)"
    changed(
        imports=WRITER,
        setup=(function.format(call), function.format(f"if accelerator.is_main_process:\n        {call}")),
        ready=("writer = SummaryWriter()", f"writer = {OR_NONE}"),
        epoch="seen = fit(writer, epoch)",
    )


TWO = """\
def fit(epoch, writers):
    if writers is not None:
        writer, other = writers
    best = epoch
    {}
    return best
"""
IN_ONE = {"a list": "[writer, other]", "a tuple by its name": "writers=(writer, other)"}


@pytest.mark.parametrize("name", IN_ONE)
def test_writers_that_are_handed_on_together_are_none_on_the_others(changed, name):
    call = "writer.add_scalar('best', best, epoch)\n{}other.add_scalar('best', best, epoch)"
    inside = f"if accelerator.is_main_process:\n        {call.format(' ' * 8)}"
    changed(
        imports=WRITER,
        setup=(TWO.format(call.format(" " * 4)), TWO.format(inside)),
        ready=("writer = SummaryWriter()\nother = SummaryWriter()", f"writer = {OR_NONE}\nother = {OR_NONE}"),
        epoch=f"seen = fit(epoch, {IN_ONE[name]})",
    )


ASKED = "def fit(writers):\n    writer, other = writers\n    return writer.log_dir"


@pytest.mark.parametrize(("imports", "setup"), [("\nfrom elsewhere import fit", "pass"), ("", ASKED)])
def test_a_writer_in_a_list_that_all_need_is_made_by_all(unchanged, imports, setup):
    unchanged(
        imports=f"{WRITER}{imports}",
        setup=setup,
        ready="writer = SummaryWriter()\nother = []",
        epoch="seen = fit([writer, other])",
    )


def test_a_writer_that_may_be_missing(changed):
    call = "if writer is not None{}:\n    writer.add_scalar('loss', loss.item(), epoch)"
    changed(
        imports=WRITER,
        ready=("writer = SummaryWriter()", f"writer = {OR_NONE}"),
        epoch=(call.format(""), JOINED + call.format(" and accelerator.is_main_process")),
    )


LOGGER = """\
class Logger:
    def __init__(self, folder):
        self.writer = SummaryWriter(folder)
        self.step = 0
    def scalar(self, name, value):
        self.writer.add_scalar(name, value, self.step)
        self.step += 1
"""


def test_a_writer_of_the_project(changed):
    made, call = "logger = Logger('out')", "logger.scalar('loss', loss.item())"
    changed(imports=WRITER, setup=LOGGER, ready=(made, guarded(made)), step=(call, guarded(call)))


LOGGERS = """\
class Loggers:
    def __init__(self, folders):
        self.loggers = [Logger(folder) for folder in folders]
"""


def test_a_writer_of_the_project_whose_class_is_also_used_elsewhere(changed):
    made, call = "logger = Logger('out')", "logger.scalar('loss', loss.item())"
    changed(imports=WRITER, setup=LOGGER + LOGGERS, ready=(made, guarded(made)), step=(call, guarded(call)))


BUCKETS = """\
def histogram(values):
    hist = tf.HistogramProto()
    for value in values:
        hist.bucket.append(value)
    writer.add_summary(hist)
"""


def test_a_function_that_fills_an_object_of_a_library_before_it_writes_it(changed):
    made = "writer = tf.summary.FileWriter('out')"
    changed(
        imports="import tensorflow as tf",
        setup=BUCKETS,
        ready=(made, guarded(made)),
        step=("histogram([1, 2])", guarded("histogram([1, 2])")),
    )


def test_a_picture_of_a_batch(changed):
    save = "Image.fromarray(shown).save('shown.png')"
    changed(
        imports="from PIL import Image",
        step=(
            f"shown = output.detach().cpu().numpy()\n{save}",
            f"shown = output.detach().cpu().numpy()\n{guarded(save)}",
        ),
    )


def test_a_project_writer_that_is_asked_for_something_is_made_by_all(unchanged, programs):
    holes = {
        "imports": WRITER,
        "setup": LOGGER,
        "ready": "logger = Logger('out')",
        "epoch": "best = logger.step",
    }
    before, _ = programs(holes)
    assert "logger = Logger" in before


def test_what_is_written_before_the_accelerator_exists_is_reported(changed, programs, remark):
    parse = 'torch.save([], "start.pt")\nimport argparse\nargs = argparse.ArgumentParser().parse_args()'
    choice = 'device = torch.device("cuda" if args.gpu else "cpu")'
    holes = {
        "accelerator": "",
        "setup": (f"{parse}\n{choice}", f"{parse}\naccelerator = Accelerator(cpu=not args.gpu)"),
    }
    report = changed(**holes)

    remark(report, programs(holes)[0], "MIG117", 'torch.save([], "start', ["before the accelerator exists"], Kind.NOTE)


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


def test_warnings_that_every_process_gives_are_told(changed, programs, remark):
    said = 'log.warning("epoch %d", epoch)\nlog.error("none")\nlog.warn("again")'
    holes = {"imports": "import logging", "made": "log = logging.getLogger(__name__)", "epoch": said}
    report = changed(**holes, accelerator=f"accelerator = Accelerator()\n{SILENT}")

    told = ["every process gives this warning, and what is in line"]
    remark(report, programs(holes)[0], "MIG117", 'log.warning("epoch', told, Kind.NOTE)


def test_logs_where_logging_is_not_imported(programs, convert_text):
    holes = {
        "imports": "from logging import getLogger",
        "made": "log = getLogger(__name__)",
        "epoch": 'log.info("epoch %d", epoch)',
    }
    _, result = convert_text(programs(holes)[0])

    assert "\nimport logging\nfrom logging import getLogger\n" in result
    assert SILENT in result


def test_logs_under_the_name_of_print(changed):
    changed(
        imports="import logging",
        accelerator=f"accelerator = Accelerator()\n{SILENT}",
        setup="print = logging.getLogger().info",
        epoch='print("epoch done")',
    )


def test_logs_above_the_choice_of_the_device(programs, convert_text):
    chosen = 'log = logging.getLogger()\nlog.info("start")\ndevice = torch.device("cuda")'
    _, result = convert_text(programs({"imports": "import logging", "setup": chosen})[0])

    assert result.index("logging.disable") < result.index('log.info("start")')


def test_trouble_that_is_logged_before_the_accelerator_exists_is_reported(changed, programs, remark):
    parse = 'logging.error("start")\nimport argparse\nargs = argparse.ArgumentParser().parse_args()'
    choice = 'device = torch.device("cuda" if args.gpu else "cpu")'
    made = f"accelerator = Accelerator(cpu=not args.gpu)\n{SILENT}"
    holes = {"imports": "import logging", "accelerator": "", "setup": (f"{parse}\n{choice}", f"{parse}\n{made}")}
    report = changed(**holes)

    remark(report, programs(holes)[0], "MIG117", 'logging.error("start")', ["every process writes this"], Kind.NOTE)


def test_what_silences_the_logs_stands_apart_from_what_follows(programs, convert_text):
    setup = 'def start():\n    logging.getLogger().addHandler(logging.FileHandler("log"))\n\n\nstart()'
    holes = {"imports": "import logging", "setup": setup, "epoch": 'logging.info("on")'}
    _, result = convert_text(programs(holes)[0])

    assert f"{SILENT}\n\ndef start" in result


ASKED = {
    "through the library": ("wandb.init(project='x'{})", "rate = wandb.config.lr"),
    "through the run": ("run = wandb.init(project='x'{})", "rate = run.config.lr"),
    "for its name": ("wandb.init(project='x'{})", "name = wandb.run.name"),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_service_that_is_asked_for_something_answers_on_every_process(programs, convert_text, name):
    made, asked = ASKED[name]
    off = ", mode=None if accelerator.is_main_process else 'disabled'"
    _, result = convert_text(programs({"imports": "import wandb", "made": made.format(""), "ready": asked})[0])

    assert f"\n{made.format(off)}\n" in result


def test_what_hangs_on_a_run_is_under_its_guard(programs, convert_text):
    run = "run = wandb.init(project='x')"
    update = "run.config.update({'lr': 0.1})"
    holes = {"imports": "import wandb", "made": f"{run}\n{update}", "epoch": "run.log({'epoch': epoch})"}
    _, result = convert_text(programs(holes)[0])

    assert f"\nif accelerator.is_main_process:\n    {run}\n    {update}\n" in result


def test_a_log_file_that_is_emptied(changed):
    text = "logging.basicConfig(filename={}, filemode='w')"
    changed(
        imports="import logging\nimport os",
        made=(text.format("'log.txt'"), text.format("'log.txt' if accelerator.is_main_process else os.devnull")),
    )


def test_a_question_to_the_user_is_left_with_the_reason(unchanged, programs, remark):
    holes = {"made": "name = input('name? ')"}
    remark(unchanged(**holes), programs(holes)[0], "MIG117", "input", ["every process asks"])


FIRST = "with accelerator.main_process_first():\n    {}"


def test_a_data_set_that_downloads_itself(changed):
    call = "digits = datasets.MNIST('data', download=True)"
    changed(imports="from torchvision import datasets", made=(call, FIRST.format(call)))


PREPARED = "loader, others, model, optimizer = accelerator.prepare(loader, others, model, optimizer)"
OWN = """\
class Digits(TensorDataset):
    def __init__(self, root, download=False):
        if download:
            self.fetch(root)
        super().__init__(torch.load(root))
    def fetch(self, root):
        print("downloading")
        torch.save(torch.ones(8, 2), root)

def digits(root):
    data = Digits(root, download=True)
    return DataLoader(data)
"""


def test_a_data_set_of_the_project_that_downloads_itself(changed):
    made = "    data = Digits(root, download=True)\n"
    first = "    with accelerator.main_process_first():\n        data = Digits(root, download=True)\n"
    changed(setup=(OWN, OWN.replace(made, first)), made="others = digits('data.pt')", prepare=PREPARED)


def test_a_data_set_that_is_there_already(unchanged):
    unchanged(imports="from torchvision import datasets", made="digits = datasets.MNIST('data', download=False)")


def test_a_name_that_all_processes_must_agree_on(programs, convert_text):
    now = "datetime.now().strftime('%H%M')"
    holes = {
        "imports": "import os\nfrom datetime import datetime",
        "made": f"name = {now}\nfolder = os.path.join('out', name)",
        "ready": "os.makedirs(folder, exist_ok=True)",
    }
    _, result = convert_text(programs(holes)[0])
    _, other = convert_text(programs(holes)[0], target=Target.ACCELERATE)

    assert f"name = broadcast_object_list([{now}])[0]" in result
    assert "from runtime import Accelerator, broadcast_object_list" in result
    assert "from accelerate.utils import broadcast_object_list" in other


NUMBERED = {
    "in one": "len(os.listdir('out'))",
    "under a name": "len(runs)",
}


@pytest.mark.parametrize("name", NUMBERED)
def test_a_folder_that_is_numbered_by_how_many_there_are(programs, convert_text, name):
    """Once a process has made its own there is one more: the next would make another folder."""
    folder = f"os.path.join('out', str({NUMBERED[name]}))"
    holes = {
        "imports": "import glob\nimport os",
        "made": f"runs = glob.glob('out/*')\nfolder = {folder}",
        "ready": "os.makedirs(folder, exist_ok=True)",
    }
    _, result = convert_text(programs(holes)[0])

    assert f"folder = broadcast_object_list([{folder}])[0]" in result


def test_a_folder_that_is_named_by_how_much_there_is_of_something_else(programs, convert_text):
    holes = {"imports": "import os", "ready": "os.makedirs(f'out/{len(data)}', exist_ok=True)"}
    _, result = convert_text(programs({**holes, "made": "data = [1, 2]"})[0])

    assert "accelerator.backward(loss)" in result
    assert "broadcast_object_list" not in result


def test_a_name_that_only_the_main_process_uses(unchanged):
    unchanged(imports="import os\nimport time", made="name = time.strftime('%H%M')\nfolder = os.path.join('out', name)")


EARLY = """\
import argparse
def options():
    parser = argparse.ArgumentParser()
    parser.add_argument('--gpu', action='store_true')
    args = parser.parse_args()
    with open('args.txt', 'w') as file:
        file.write(str(args))
    if not os.path.exists('out'):
        os.makedirs('out'{})
    return args
args = options()
"""


def test_a_function_that_runs_before_the_accelerator_is_made(changed, programs, remark):
    choice = 'device = torch.device("cuda" if args.gpu else "cpu")\n'
    holes = {
        "imports": "import os",
        "accelerator": "",
        "setup": (
            EARLY.format("") + choice,
            EARLY.format(", exist_ok=True") + "accelerator = Accelerator(cpu=not args.gpu)",
        ),
    }
    report = changed(**holes)

    remark(report, programs(holes)[0], "MIG117", "def options", ["before the accelerator is made"], Kind.NOTE)


def test_a_directory_that_may_be_there_is_made_by_all(unchanged):
    unchanged(imports="import os", end='os.makedirs("out", exist_ok=True)')


def test_a_folder_that_is_made_beside_what_all_do(changed):
    asked = 'if not os.path.isdir("out"):\n    os.makedirs("out"{})\n    os.chmod("out", 0o775)'
    changed(imports="import os", end=(asked.format(""), asked.format(", exist_ok=True")))


def test_a_folder_that_mkdir_makes_under_its_own_name_is_made_by_all(convert_text, programs):
    made = "if not os.path.exists('out'):\n    mkdir('out')\nwith open('out/a.txt', 'w') as file:\n    file.write('a')"
    _, result = convert_text(programs({"imports": "import os\nfrom os import mkdir", "ready": made})[0])

    assert "if not os.path.exists('out'):\n    os.makedirs('out', exist_ok=True)\n" in result
    assert "import mkdir" not in result


def test_it_can_be_left_out(programs, convert_text):
    before, _ = programs({"end": 'print("done")'})
    _, result = convert_text(before, ignore=("MIG117",))

    assert "accelerator.backward(loss)" in result
    assert "accelerator.print" not in result


EARLY_LOG = """
import logging

import torch
from torch import nn, optim
from torch.utils.data import DataLoader

logging.basicConfig(filename="run.log", filemode="w")


def main():
    loader = DataLoader(data)
    model = nn.Linear(1, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        model(x).sum().backward()
        optimizer.step()


main()
"""


def test_a_log_file_beside_the_function_that_trains(convert_text):
    _, result = convert_text(EARLY_LOG)

    assert 'filename="run.log" if accelerator.is_main_process else os.devnull' in result


def test_a_log_file_that_is_opened_before_there_is_an_accelerator_is_told(convert_text):
    report, _ = convert_text(EARLY_LOG.replace("\nmain()\n", '\nif __name__ == "__main__":\n    main()\n'))

    notes = [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG117"]
    assert [(note.line, "every process writes this" in note.message) for note in notes] == [(7, True)]


@pytest.mark.parametrize("change", ["setattr(args, 'lr', 0.1)", "global lr\n    lr = 0.1", "del args.lr"])
def test_a_function_that_sets_something_and_says_so_runs_everywhere(changed, change):
    function = f"def adjust(args):\n    {change}\n    {{}}('adjusted')"
    make = "lr, args = 1, type('Args', (), dict(lr=1))()\nadjust(args)"
    changed(setup=(f"{function.format('print')}\n{make}", f"{function.format('accelerator.print')}\n{make}"))


def test_a_logger_of_tensorboard_without_torch(changed):
    made, call = "logger = tb_logger.Logger(logdir='out')", "logger.log_value('loss', loss.item(), epoch)"
    start, told = "tb_logger.configure('out')", "tb_logger.log_value('loss', loss.item(), epoch)"
    changed(
        imports="import tensorboard_logger as tb_logger",
        ready=(f"{made}\n{start}", guarded(f"{made}\n{start}")),
        epoch=(f"{call}\n{told}", JOINED + guarded(f"{call}\n{told}")),
    )


SUMMARY = """
import torch
from pycocotools.cocoeval import COCOeval
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Evaluator:
    def __init__(self, truth):
        self.parts = {"bbox": COCOeval(truth, iouType="bbox")}

    def summarize(self):
        for kind, part in self.parts.items():
            print("metric:", kind)
            part.summarize()


def main():
    data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    loader = DataLoader(data, batch_size=4)
    model = nn.Linear(2, 1)
    criterion = nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        evaluator = Evaluator(None)
        evaluator.summarize()
        print(evaluator.parts["bbox"].stats[0])


main()
"""


def test_a_summary_that_keeps_its_numbers_is_made_by_every_process(convert_text):
    """`COCOeval.summarize()` prints, and sets the `stats` that all processes read."""
    _, result = convert_text(SUMMARY)

    assert "        evaluator.summarize(" in result
    assert "if accelerator.is_main_process:" not in result


def test_the_summary_of_a_model_is_said_to_come_from_every_process(unchanged):
    call = "summary(data, (2,))"
    report = unchanged(imports="from torchsummary import summary", made=call)

    (note,) = (f for f in report.findings if f.code == "MIG117")
    assert note.message == "every process prints this summary, for which the model is run"


COMMANDS = {
    "a command": ("os.system('ls')", True),
    "a process": ("subprocess.call(['ls'])", True),
    "a process that must end well": ("subprocess.check_output('cp a/* b', shell=True)", True),
    "one that is asked": ("kept = subprocess.check_output(['ls'])", False),
    "one that is printed": (
        ("print(subprocess.getoutput('ls'))", "accelerator.print(subprocess.getoutput('ls'))"),
        False,
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_every_process_runs_is_said(changed, name):
    command, is_said = COMMANDS[name]
    report = changed(imports="import os\nimport subprocess", epoch=command)
    assert is_said is any("every process runs this command" in finding.message for finding in report.findings)


FETCHING = """
import os
import subprocess
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def fetch():
    if not os.path.exists("data"):
        {command}


class Data(Dataset):
    def __init__(self):
        fetch()

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.ones(2), torch.ones(1)


def main():
    loader = DataLoader(Data(), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


main()
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_said_where_there_is_no_accelerator(convert_text, name):
    command, is_said = COMMANDS[name]
    report, result = convert_text(FETCHING.format(command=command))

    assert "accelerator.backward(" in result
    assert is_said is any("every process writes this: fetch() runs" in finding.message for finding in report.findings)


STAMPED = """
import argparse
import time

import torch
from torch import nn, optim

parser = argparse.ArgumentParser()
{made}
args = parser.parse_args()
torch.manual_seed(0)
rows = torch.ones(8, 2)
model = nn.Linear(2, 2)


def load(path):
    global model, optimizer
    with open(path, "rb") as file:
        model, optimizer = torch.load(file)


optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    step = 0
    while step < rows.size(0):
        optimizer.zero_grad()
        loss = (model(rows[step : step + 2]) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        step += 2
    optimizer.param_groups[0]["lr"] = optimizer.param_groups[0]["lr"] / 2
    with open(args.save, "wb") as file:
        torch.save([model, optimizer], file)
load(args.save)
print(model(rows))
"""


def test_a_name_that_an_option_has_by_default(convert_text):
    stamp = "str(time.time())"
    option = "parser.add_argument('--save', default={})"
    report, result = convert_text(STAMPED.format(made=f"stamp = {stamp}\n" + option.format("stamp + '.pt'")))

    assert f"stamp = broadcast_object_list([{stamp}])[0]\n" in result
    assert not [finding for finding in report.findings if finding.code == "MIG122"]  # what was loaded is on all alike
    report, result = convert_text(STAMPED.format(made=option.format(stamp)))
    assert ["every process makes up a name" in f.message for f in report.findings if f.kind is Kind.LEFT] == [True]
    report, _ = convert_text(STAMPED.format(made=option.format("'model.pt'")))
    assert not [finding for finding in report.findings if finding.kind is Kind.LEFT]


OWN_LOG = """\
import logging
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def make_logger(path):
    if dist.get_rank() == 0:
        logging.basicConfig(level=logging.INFO, handlers=[logging.FileHandler(path)])
    return logging.getLogger(__name__)


def main():
    dist.init_process_group("gloo")
    logger = make_logger("run.log")
    data = TensorDataset(torch.ones(8, 1))
    loader = DataLoader(data, sampler=DistributedSampler(data))
    model = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
    logger.info("done")


main()
"""


def test_a_log_file_that_only_the_main_process_opens_needs_no_other_name(convert_text):
    _, result = convert_text(OWN_LOG)

    assert "if accelerator.is_main_process:\n        logging.basicConfig(" in result
    assert "handlers=[logging.FileHandler(path)]" in result
