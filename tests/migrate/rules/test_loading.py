import textwrap

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

UNCHANGED = {
    "with a place": 'model.load_state_dict(torch.load("m.pt", map_location="cpu"))',
    "with a place by position": 'model.load_state_dict(torch.load("m.pt", torch.device("cpu")))',
    "onto the CPU by a lambda": 'state = torch.load("m.pt", map_location=lambda storage, loc: storage)',
    "with unknown options": 'model.load_state_dict(torch.load("m.pt", **options))',
    "a file that is no checkpoint": 'rows = torch.load("rows.pt")',
    "for a model that is not loaded": 'state = torch.load("m.pt")',
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(made=UNCHANGED[name])


CHOSEN = {"accelerator": "", "setup": ('device = torch.device("cuda")', "accelerator = Accelerator()")}
LOAD = 'torch.load("m.pt", map_location="cpu")'
CHANGED = {
    "before prepare": {
        "made": ('model.load_state_dict(torch.load("m.pt"))', f"model.load_state_dict({LOAD})"),
    },
    "by names": {
        "made": (
            'model.load_state_dict(state_dict=torch.load(f="m.pt"))',
            'model.load_state_dict(state_dict=torch.load(f="m.pt", map_location="cpu"))',
        ),
    },
    "with another option": {
        "made": (
            'model.load_state_dict(torch.load("m.pt", weights_only=True))',
            'model.load_state_dict(torch.load("m.pt", weights_only=True, map_location="cpu"))',
        ),
    },
    "under a name": {
        "made": (
            'state = torch.load("m.pt")\nmodel.load_state_dict(state)',
            f"state = {LOAD}\nmodel.load_state_dict(state)",
        ),
    },
    "a part of it": {
        "made": (
            'state = torch.load("m.pt")\nmodel.load_state_dict(state["model"])',
            f'state = {LOAD}\nmodel.load_state_dict(state["model"])',
        ),
    },
    "the optimizer's": {
        "ready": (
            'optimizer.load_state_dict(torch.load("o.pt"))',
            'optimizer.load_state_dict(torch.load("o.pt", map_location="cpu"))',
        ),
    },
    "after prepare": {
        "end": (
            'model.load_state_dict(torch.load("m.pt"))',
            f"accelerator.unwrap_model(model).load_state_dict({LOAD})",
        ),
    },
    "a whole model in the place of another": {
        "end": ('model = torch.load("m.pt")', 'model = torch.load("m.pt", map_location=accelerator.device)'),
    },
    "onto the GPU by a lambda, before prepare": {
        **CHOSEN,
        "made": (
            'state = torch.load("m.pt", map_location=lambda storage, loc: storage.cuda())',
            'state = torch.load("m.pt", map_location=accelerator.device)',
        ),
    },
    "onto a GPU by number, by position": {
        **CHOSEN,
        "end": ('state = torch.load("m.pt", lambda s, l: s.cuda(0))', 'state = torch.load("m.pt", accelerator.device)'),
    },
    "single quotes": {
        "setup": "names = ['a', 'b', 'c']",
        "made": (
            "model.load_state_dict(torch.load('m.pt'))",
            "model.load_state_dict(torch.load('m.pt', map_location='cpu'))",
        ),
    },
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(**CHANGED[name])


STRIP = 'torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")'


def test_prefixes_of_data_parallel_are_taken_off(changed):
    changed(
        made=(
            'model = nn.DataParallel(model)\nstate = torch.load("m.pt")\nmodel.load_state_dict(state)',
            f"state = {LOAD}\n{STRIP}\nmodel.load_state_dict(state)",
        )
    )


def test_what_is_loaded_before_the_model_is_wrapped_has_no_prefixes(changed):
    loads = "state = {}\nmodel.load_state_dict(state)\n"
    wraps = "model = nn.DataParallel(model)"
    changed(made=(loads.format('torch.load("m.pt")') + wraps, loads.format(LOAD)))


def test_what_each_round_wraps_and_loads_may_have_prefixes(convert_text, programs):
    made = 'for _ in range(2):\n    model.load_state_dict(torch.load("m.pt"))\n    model = nn.DataParallel(model)'

    assert "removeprefix" in convert_text(programs({"made": made})[0])[1]


PLAIN = '{key.removeprefix("module."): value for key, value in %s.items()}'


@pytest.mark.parametrize("part", ["", '["net"]'])
def test_prefixes_of_what_has_no_name_are_taken_off_where_it_is_loaded(changed, part):
    changed(
        made=(
            f'model = nn.DataParallel(model)\nmodel.load_state_dict(torch.load("m.pt"){part})',
            f"model.load_state_dict({PLAIN % (LOAD + part)})",
        )
    )


def test_prefixes_that_cannot_be_taken_off_are_reported(changed):
    report = changed(
        setup="def states(path):\n    return [torch.load(path, map_location='cpu')]",
        made=(
            'model = nn.DataParallel(model)\nmodel.load_state_dict(states("m.pt")[0])',
            'model.load_state_dict(states("m.pt")[0])',
        ),
    )

    (note,) = (finding for finding in report.of(Kind.NOTE) if finding.code == "MIG116")
    assert "`module.`" in note.message
    assert "removeprefix" in note.hint


def test_it_can_be_left_out(programs, convert_text):
    before, _ = programs({"made": 'model.load_state_dict(torch.load("m.pt"))'})
    _, result = convert_text(before, ignore=("MIG116",))

    assert 'torch.load("m.pt")' in result
    assert "accelerator.backward(loss)" in result


WAIT = "accelerator.wait_for_everyone()\n"
REREAD = {
    "a file that is open": (
        "with open('state.pt', 'wb') as f:\n    torch.save(torch.ones(2), f)",
        "with open('state.pt', 'rb') as f:\n    seen = torch.load(f)",
    ),
    "rows": ("np.save('rows.npy', [1])", "rows = np.load('rows.npy')"),
    "text": ("with open('log.txt', 'w') as file:\n    file.write('done')", "text = open('log.txt').read()"),
    "by their names": (
        "torch.save(obj=torch.ones(2), f=path)\nwith open(file='log.txt', mode='w') as log:\n    log.write('done')",
        "seen = torch.load(f=path)\ntext = open(file='log.txt').read()",
    ),
    "by the name of a parameter of NumPy": ("np.save(file='rows.npy', arr=[1])", "rows = np.load('rows.npy')"),
    "by the name of a parameter of pandas": ("table.to_csv(path_or_buf='rows.csv')", "rows = pd.read_csv('rows.csv')"),
}


@pytest.mark.parametrize("name", REREAD)
def test_a_file_that_the_program_has_just_written_is_waited_for(changed, name):
    write, read = REREAD[name]
    guarded = "if accelerator.is_main_process:\n" + textwrap.indent(write, "    ")
    imports = "import numpy as np\nimport pandas as pd"
    setup = 'path = "m.pt"\ntable = pd.DataFrame({"a": [1]})'
    changed(imports=imports, setup=setup, made=(f"{write}\n{read}", f"{guarded}\n{WAIT}{read}"))


def test_a_checkpoint_under_another_spelling_is_waited_for(changed):
    save = "torch.save(model.state_dict(), f'{OUT}/best.pt')"
    saved = "accelerator.save(accelerator.unwrap_model(model).state_dict(), f'{OUT}/best.pt')"
    load = "if os.path.exists(best):\n    seen = torch.load(best)"
    changed(
        imports="import os",
        setup="OUT = 'out'\nbest = os.path.join(OUT, 'best.pt')",
        epoch=(save, saved),
        end=(load, WAIT + load),
    )


def test_a_model_that_was_saved_under_another_spelling_is_waited_for(changed):
    load = "best = Net.from_pretrained(OUT)"
    changed(
        imports="import os\nfrom other import Net, Tokenizer",
        setup="OUT = 'out'\ntokenizer = Tokenizer()",
        epoch=(
            "tokenizer.save_pretrained(os.path.join('out'))",
            "if accelerator.is_main_process:\n    tokenizer.save_pretrained(os.path.join('out'))",
        ),
        end=(load, WAIT + load),
    )


@pytest.mark.parametrize("asked", ["os.path.getsize('end.pt') / 1e6", "os.stat('end.pt').st_size"])
def test_the_size_of_what_was_saved_is_waited_for(changed, asked):
    changed(
        imports="import os",
        end=(
            f"torch.save(model.state_dict(), 'end.pt')\nsize = {asked}",
            f"accelerator.save(accelerator.unwrap_model(model).state_dict(), 'end.pt')\n{WAIT}size = {asked}",
        ),
    )


def test_a_model_by_its_name_is_not_waited_for(programs, convert_text):
    holes = {
        "imports": "from other import Net, tokenizer",
        "epoch": "tokenizer.save_pretrained('out')",
        "end": "best = Net.from_pretrained('a-model')",
    }
    _, result = convert_text(programs(holes)[0])

    assert "wait_for_everyone" not in result


def test_a_checkpoint_that_is_read_before_the_training_is_not_waited_for(programs, convert_text):
    holes = {"made": "seen = torch.load('start.pt')", "end": "torch.save(model.state_dict(), 'end.pt')"}
    _, result = convert_text(programs(holes)[0])

    assert "wait_for_everyone" not in result


def test_each_of_several_files_is_waited_for_once(changed):
    save, load = "torch.save(model.state_dict(), '{}.pt')", "seen = torch.load('{}.pt')"
    saved = "accelerator.save(accelerator.unwrap_model(model).state_dict(), '{}.pt')\n" + WAIT
    changed(
        end=(
            "\n".join(each.format(name) for name in "ab" for each in (save, load)) + "\n" + load.format("a"),
            "\n".join((saved + load).format(name, name) for name in "ab") + "\n" + load.format("a"),
        )
    )


IN_MEMORY = """\
buffer = io.BytesIO()
torch.save({state}, buffer)
buffer.seek(0)
{model}.load_state_dict(torch.load(buffer{onto}))"""


def test_what_is_kept_in_memory_is_each_process_own(changed):
    inner = "accelerator.unwrap_model(model)"
    before = IN_MEMORY.format(state="model.state_dict()", model="model", onto="")
    after = IN_MEMORY.format(state=f"{inner}.state_dict()", model=inner, onto=", map_location='cpu'")
    changed(imports="import io", end=(before, after))


def test_what_only_the_main_process_reads_nobody_waits_for(changed):
    read = 'def show(path):\n    with open(path, "w") as file:\n        file.write("x")\n    print(open(path).read())'
    changed(setup=read, end=('show("a.txt")', 'if accelerator.is_main_process:\n    show("a.txt")'))


DRAWN = "for epoch in range(2):\n    pages.append(imageio.imread(f'{epoch}.png'))"


def test_images_that_the_program_has_drawn_are_waited_for_once(changed):
    draw = "plt.savefig('%d.png' % epoch)"
    changed(
        imports="import imageio\nimport matplotlib.pyplot as plt",
        setup="pages = []",
        epoch=(draw, "if accelerator.is_main_process:\n    " + draw),
        end=(DRAWN, WAIT + DRAWN),
    )


def test_images_of_others_are_not_waited_for(unchanged):
    unchanged(imports="import imageio", setup="pages = []", end=DRAWN)


LAYER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(2, 2)

    def forward(self, x):
        return self.features(x)

model = Net()
model.features = nn.DataParallel(model.features)
optimizer = optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.zeros(8, 2), torch.zeros(8, 2)), batch_size=4)
saved = torch.load("m.pt", map_location="cpu")
model.load_state_dict(saved["model"])
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""


def test_keys_of_a_wrapped_layer_are_made_plain(convert_text):
    _, result = convert_text(LAYER)
    renamed = 'key.replace("features.module.", "features."): value for key, value in saved["model"].items()'
    assert f'saved["model"] = {{\n    {renamed}\n}}\n' in result
    assert "consume_prefix" not in result
    assert "DataParallel" not in result


def test_a_wrapped_layer_that_is_loaded_without_a_name_is_said(convert_text):
    report, _ = convert_text(LAYER.replace('saved["model"])', 'dict(saved["model"]))'))
    (note,) = [finding for finding in report.findings if "`features.module.`" in finding.message]
    assert "key.replace('features.module.', 'features.')" in note.hint


def test_a_wrapped_model_that_was_saved_as_a_whole_is_said(convert_text):
    source = LAYER.replace('model.load_state_dict(saved["model"])\n', "").replace("model.features = ", "model = ")
    source = source.replace("nn.DataParallel(model.features)", "nn.DataParallel(model)")
    loaded = 'import sys\nif len(sys.argv) > 1:\n    saved = torch.load("m.pt")\n    model = saved["net"]\n'
    report, _ = convert_text(source.replace("model = nn.Data", f"{loaded}model = nn.Data"))
    (note,) = [finding for finding in report.findings if "hold the model in DataParallel" in finding.message]
    assert note.hint == "take it out: model = getattr(model, 'module', model)"


BESIDE = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Linear):
    pass


def show(many):
    model = Net(2, 1)
    {made}
    {load}
    print(model(torch.ones(1, 2)))


def train():
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = {trained}
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), "m.pt")


train()
show(True)
"""
WRAP, TRAINED = "model = nn.DataParallel(model)", "nn.DataParallel(Net(2, 1))"
FROM_FILE = 'state = torch.load("m.pt", map_location="cpu")\n    model.load_state_dict(state)'


def test_code_beside_the_training_loads_into_the_model_that_it_wraps(convert_text):
    _, result = convert_text(BESIDE.format(made=WRAP, load=FROM_FILE, trained=TRAINED))

    assert (
        f'consume_prefix_in_state_dict_if_present(state, "module.")\n    {"model.module.load_state_dict(state)"}'
        in result
    )


def test_keys_that_have_no_name_are_stripped_where_they_are_loaded(convert_text):
    load = 'model.load_state_dict(torch.load("m.pt", map_location="cpu"))'
    _, result = convert_text(BESIDE.format(made=WRAP, load=load, trained=TRAINED))

    assert f"model.module.load_state_dict({PLAIN % LOAD})" in result


def test_a_model_that_may_be_wrapped_is_told(convert_text):
    made = f"if many:\n        {WRAP}"
    report, result = convert_text(BESIDE.format(made=made, load=FROM_FILE, trained=TRAINED))

    assert "    model.load_state_dict(state)" in result
    assert [f.code for f in report.of(Kind.NOTE) if "any more" in f.message] == ["MIG116"]


STAYS = {
    "a plain model": {"made": "", "trained": TRAINED},
    "a checkpoint that had plain keys before": {"made": WRAP, "trained": "Net(2, 1)"},
    "a model of another class": {"made": "model = nn.DataParallel(nn.Linear(2, 1))", "trained": TRAINED},
    "a branch that is not taken": {
        "made": f"if many:\n        {WRAP}\n    else:\n        {FROM_FILE}".replace("\n    model", "\n        model"),
        "trained": TRAINED,
    },
}


@pytest.mark.parametrize("name", STAYS)
def test_what_else_loads_beside_the_training_stays(convert_text, name):
    load = "pass" if "branch" in name else FROM_FILE
    report, result = convert_text(BESIDE.format(load=load, **STAYS[name]))

    assert "    model.load_state_dict(state)" in result
    assert "consume" not in result
    assert not [f for f in report.of(Kind.NOTE) if f.code == "MIG116"]


RESUMES = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from net import Net

loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.DataParallel(Net(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
state = torch.load("{path}", map_location="cpu")
model.load_state_dict(state)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "{path}")
"""


def test_scripts_that_train_one_class_of_models_each_load_their_own(tmp_path):
    (tmp_path / "net.py").write_text("from torch import nn\n\n\nclass Net(nn.Linear):\n    pass\n")
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(RESUMES.format(path=f"{name}.pt"))

    report = run([str(tmp_path / f"{name}.py") for name in ("first", "second")], Options())

    assert not [f for f in report.findings if f.kind is Kind.LEFT]
    for change in report.changes:
        assert b"accelerator.unwrap_model(model).load_state_dict(state)" in change.new
        assert b"module.load" not in change.new
    assert len(report.changes) == 2


AVERAGE = """
class Average:
    def __init__(self):
        self.shadow = {{}}

    def load_state_dict(self, state):
        {keeps}
"""
RESUMED = (
    'state = torch.load("m.pt"{})\nmodel.load_state_dict(state["model"])\nAverage().load_state_dict(state["mean"])'
)
KEPT = {
    "as it is": ("self.shadow = state", ', map_location={"cuda:0": str(accelerator.device)}'),
    "a part of it": ('self.shadow = state["shadow"]', ', map_location={"cuda:0": str(accelerator.device)}'),
    "a copy where the average lies": ("self.shadow[0].copy_(state)", ', map_location="cpu"'),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_an_object_of_the_project_keeps_lies_where_it_was(changed, name):
    keeps, location = KEPT[name]
    changed(
        setup=AVERAGE.format(keeps=keeps),
        made=(RESUMED.format(""), RESUMED.format(location)),
    )


def test_what_an_object_is_given_by_name(changed):
    keeps, location = KEPT["as it is"]
    resumed = RESUMED.replace('(state["mean"])', '(state=state["mean"])')
    changed(setup=AVERAGE.format(keeps=keeps), made=(resumed.format(""), resumed.format(location)))


WRITTEN_AND_READ = """
import json
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def prepared(path):
    with open(path, "w") as file:
        json.dump([1.0, 2.0], file)
    with open(path) as file:
        print("prepared")
        return torch.tensor(json.load(file)).repeat(8, 1)


def main():
    rows = prepared("rows.json")
    loader = DataLoader(TensorDataset(rows), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()


main()
"""


def test_a_function_that_reads_what_it_has_written_waits_in_between(convert_text):
    _, result = convert_text(WRITTEN_AND_READ)

    assert "    accelerator.wait_for_everyone()\n    with open(path) as file:\n" in result
    assert '    accelerator = Accelerator()\n    rows = prepared("rows.json", accelerator)\n' in result


EITHER_OR = """
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def main(mode):
    loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    if mode == "train":
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        torch.save(model.state_dict(), "m.pt")
    else:
        model.load_state_dict(torch.load("m.pt"))
        print("loaded")


main(sys.argv[1])
"""
OTHERWISE = '    else:\n        model.load_state_dict(torch.load("m.pt"))\n        print("loaded")\n'
BELOW = '    if mode == "test":\n        model.load_state_dict(torch.load("m.pt"))\n        print("loaded")\n'
IN_TURNS = 'for mode in ("train", "test"):\n    main(mode)\n'


@pytest.mark.parametrize(
    ("source", "waits"),
    [
        (EITHER_OR, 0),
        (EITHER_OR.replace(OTHERWISE, BELOW), 1),
        (EITHER_OR.replace("main(sys.argv[1])\n", IN_TURNS), 1),
    ],
    ids=["in the other branch", "beside it", "in another round"],
)
def test_what_only_the_other_branch_writes_is_not_waited_for(convert_text, source, waits):
    _, result = convert_text(source)

    assert "accelerator.backward(" in result
    assert result.count("wait_for_everyone") == waits


SCORED = """
import json
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def score(path):
    with open(path) as file:
        answers = json.load(file)
    return sum(answers.values()) / len(answers)


def test(model, loader, path):
    model.eval()
    answers = {}
    with torch.no_grad():
        for n, (x, y) in enumerate(loader):
            answers[n] = nn.functional.mse_loss(model(x), y).item()
    with open(path, "w") as file:
        json.dump(answers, file)
    return score(path)


def main(path):
    data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    loader = DataLoader(data, batch_size=4)
    test_loader = DataLoader(data, batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        print(test(model, test_loader, path))


main("answers.json")
"""


def test_what_a_function_below_the_write_reads_is_waited_for_in_between(convert_text):
    _, result = convert_text(SCORED)

    assert (
        "            json.dump(answers, file)\n    accelerator.wait_for_everyone()\n    return score(path)\n" in result
    )
    assert result.count("wait_for_everyone") == 1


WRITTEN_FOR_ANOTHER = """
import {imports}
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def score(model, loader, save_path):
    model.eval()
    answers = []
    with torch.no_grad():
        for x, y in loader:
            answers.extend(model(x).view(-1).tolist())
    with open(save_path, "w") as file:
        for answer in answers:
            file.write(f"{{answer}}\\n")


def rated(scores):
    return {read}


def main(folder, other):
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(16, 2), torch.ones(16, 1))
    loader = DataLoader(data, batch_size=4)
    test_loader = DataLoader(data, batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    path = folder + sys.argv[0].replace("/", "_")
    for epoch in range(3):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        score(model, test_loader, path)
        found = {rated}
        print(found)


main("all_scores", __file__)
"""
READ_AGAIN = {
    "opened": {"imports": "math", "read": "sum(map(float, open(scores)))", "rated": "rated(path)"},
    "by its name": {"imports": "math", "read": "sum(map(float, open(scores)))", "rated": "rated(scores=path)"},
    "by numpy": {"imports": "numpy", "read": "numpy.genfromtxt(scores).sum()", "rated": "rated(path)"},
    "where it is handed out": {"imports": "math", "read": "0", "rated": "sum(map(float, open(path)))"},
}


@pytest.mark.parametrize("name", READ_AGAIN)
def test_what_one_function_writes_another_one_waits_for(convert_text, name):
    _, result = convert_text(WRITTEN_FOR_ANOTHER.format(**READ_AGAIN[name]))

    assert result.count("wait_for_everyone") == 1
    assert "        accelerator.wait_for_everyone()\n        found =" in result


def test_what_is_read_from_another_path_nobody_waits_for(convert_text):
    _, result = convert_text(
        WRITTEN_FOR_ANOTHER.format(imports="math", read="len(list(open(scores)))", rated="rated(other)")
    )

    assert "accelerator.backward" in result
    assert "wait_for_everyone" not in result


def test_two_processes_read_what_the_main_one_has_written(convert_text, numbers_printed, tmp_path):
    source = WRITTEN_FOR_ANOTHER.format(**READ_AGAIN["opened"]).replace("all_scores", f"{tmp_path}/scores")
    _, result = convert_text(source)
    writes = "    if accelerator.is_main_process:\n        with open(save_path"
    assert writes in result
    result = result.replace(writes, f"    __import__('time').sleep(accelerator.is_main_process)\n{writes}")

    two, one = (numbers_printed(result.replace("batch_size=4", f"batch_size={size}"), 4 // size) for size in (2, 4))
    assert len(one) == 3
    assert two == pytest.approx(one, rel=1e-4)


WAITED_FOR = """
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
if rank == 0:
    with open("rows.json", "w") as file:
        json.dump([1.0, 2.0], file)
dist.barrier()
with open("rows.json") as file:
    data = TensorDataset(torch.tensor(json.load(file)).repeat(8, 1))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler)
model = DDP(nn.Linear(2, 1).cuda(rank), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for (x,) in loader:
        optimizer.zero_grad()
        model(x.cuda(rank)).pow(2).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("between", ["", "times = 8\nshape = times, 1\n"])
def test_where_the_program_waits_itself_nothing_more_does(convert_text, between):
    _, result = convert_text(WAITED_FOR.replace("dist.barrier()\n", f"dist.barrier()\n{between}"))

    assert f'accelerator.wait_for_everyone()\n{between}with open("rows.json") as file:\n' in result
    assert result.count("wait_for_everyone") == 1


def test_a_wait_above_something_that_is_called_is_not_the_last(convert_text):
    _, result = convert_text(WAITED_FOR.replace("dist.barrier()\n", "dist.barrier()\ncount = torch.tensor(8).item()\n"))

    assert 'accelerator.wait_for_everyone()\nwith open("rows.json") as file:\n' in result
