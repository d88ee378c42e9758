"""Folders that all processes need, and what is written by code that the accelerator does not come to."""

import pytest

from migrate.report.model import Kind


def notes(report):
    return [finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG117"]


def indented(text):
    return "\n".join(f"    {line}" for line in text.splitlines())


TRAINER = """
import json
import os

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, folder):
        self.folder = folder
        self.loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        self.model = nn.Linear(2, 1)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = (self.model(x) - y).pow(2).mean()
            loss.backward()
            self.optimizer.step()


def ready(folder):
    {ready}


def main(kind):
    ready("out")
    {main}
    if kind == "first":
        trainer = Trainer("out")
    else:
        trainer = Trainer("others")
    trainer.train()


if __name__ == "__main__":
    main("first")
"""


def test_a_folder_that_a_helper_makes_before_there_is_an_accelerator(convert_text):
    text = TRAINER.format(ready="if not os.path.exists(folder):\n        os.makedirs(folder)", main="")
    report, result = convert_text(text)

    assert "os.makedirs(folder, exist_ok=True)" in result
    assert not notes(report)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param("with open('out/options.json', 'w') as file:\n        json.dump([], file)", id="a file"),
        pytest.param("log = open('out/log.txt', 'w')", id="a file that stays open"),
        pytest.param("os.mkdir('other')", id="a folder that must not be there"),
    ],
)
def test_what_the_code_around_a_trainer_writes_is_told(convert_text, written):
    report, _ = convert_text(TRAINER.format(ready="pass", main=written))

    (note,) = notes(report)
    assert note.startswith("every process writes this")
    assert "main() runs without the accelerator" in note


def test_what_a_helper_writes_is_told_once_for_all_programs(convert_text):
    text = TRAINER.format(ready="torch.save([], 'ready.pt')", main="").replace(
        "\n\ndef ready", SECOND + "\n\ndef ready"
    )
    report, _ = convert_text(text.replace('Trainer("others")', 'Other("others")'))

    assert len([loop for loop in report.of(Kind.LOOP) if loop.converts]) == 2
    assert len(notes(report)) == 1


SECOND = (
    "\n\nclass Other" + TRAINER[TRAINER.index("class Trainer") + len("class Trainer") : TRAINER.index("\n\ndef ready")]
)


def test_what_a_data_set_writes_while_it_is_made_is_told(programs, convert_text):
    rows = "class Rows(TensorDataset):\n    def __init__(self, *parts):\n        super().__init__(*parts)\n"
    holes = {
        "setup": f"{rows}        torch.save(len(parts), 'rows.pt')",
        "made": "loader = DataLoader(Rows(*data.tensors), batch_size=4)",
    }
    report, _ = convert_text(programs(holes)[0])

    assert any("__init__() runs without the accelerator" in note for note in notes(report))


MISSING = {
    "isdir": "if not os.path.isdir('out'):\n    os.makedirs('out'{})",
    "asked beside others": "if len(x) and not os.path.exists('out'):\n    os.makedirs('out'{})",
    "false": "if os.path.exists('out') == False:\n    os.makedirs('out'{})",
}


@pytest.mark.parametrize("name", MISSING)
def test_a_folder_that_may_be_missing_is_made_by_all(changed, name):
    text = MISSING[name]
    changed(imports="import os", made=(text.format(""), text.format(", exist_ok=True")))


def test_a_path_that_may_be_missing_is_made_by_all(changed):
    text = "out = Path('out')\nif not out.exists():\n    out.mkdir(parents=True{})"
    changed(imports="from pathlib import Path", made=(text.format(""), text.format(", exist_ok=True")))


def test_a_folder_that_is_made_in_a_try_is_made_by_all(unchanged):
    unchanged(imports="import os", made="try:\n    os.makedirs('out')\nexcept OSError:\n    pass")


def test_a_folder_that_each_would_name_otherwise_is_the_main_process(changed):
    text = "out = f'runs/{time.time()}'\nif not os.path.exists(out)%s:\n    os.makedirs(out)"
    changed(imports="import os\nimport time", made=(text % "", text % " and accelerator.is_main_process"))


def test_a_log_file_goes_nowhere_on_the_others(changed):
    text = "handler = logging.FileHandler({})"
    changed(
        imports="import logging\nimport os",
        made=(text.format("'log.txt'"), text.format("'log.txt' if accelerator.is_main_process else os.devnull")),
    )


PICTURE = """\
def store(image, path):
    return put(image, path)

def put(image, path):
    whole = np.zeros((2, 2))
    whole[0] = image
    return imageio.imwrite(path, whole)
"""


def test_a_function_that_fills_an_array_of_its_own_only_writes(changed):
    call = "store(1, 'image.png')"
    changed(
        imports="import imageio\nimport numpy as np",
        setup=PICTURE,
        epoch=(call, f"if accelerator.is_main_process:\n    {call}"),
    )


JOB = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


class Log:
    def __init__(self, path):
        self.file = open(path, "w")
        self.count = 0

    def line(self, text):
        self.count += 1
        self.file.write(text)


class Job:
    def __init__(self, {parameters}):
        self.model, self.optimizer = {given}
        self.writer = {writer}

    def train(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = (self.model(x) - y).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            {write}


def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    Job(model=model, optimizer=optimizer).train(loader)


main()
"""


def test_a_writer_that_the_class_of_a_trainer_makes(convert_text):
    scalar = "self.writer.add_scalar('loss', loss)"
    text = JOB.format(
        parameters="model, optimizer", given="model, optimizer", writer="SummaryWriter('runs')", write=scalar
    )
    report, result = convert_text(text)

    assert "if accelerator.is_main_process:\n            self.writer = SummaryWriter('runs')\n" in result
    assert not notes(report)


def test_a_writer_that_is_asked_for_its_folder_is_told(convert_text):
    scalar = "self.writer.add_scalar('loss', loss)\n        print(self.writer.log_dir)"
    text = JOB.format(
        parameters="**given", given="given['model'], given['optimizer']", writer="SummaryWriter()", write=scalar
    )
    report, _ = convert_text(text)

    assert ["every process makes this writer" in note for note in notes(report)] == [True]


KEPT = """\
def step(config, loss):
    config{place}.add_scalar("loss", loss)
"""


@pytest.mark.parametrize("place", ["['writer']", ".writer"])
@pytest.mark.parametrize(
    ("imports", "made", "is_seen"),
    [
        ("from elsewhere import config", "", False),  # nobody sees what `config` holds: all take the writer from it
        ("import importlib", "config = importlib.import_module('settings').CONFIG", False),
        ("import argparse", "config = argparse.Namespace()", True),
    ],
)
def test_a_writer_that_is_kept_in_an_object(convert_text, programs, place, imports, made, is_seen):
    holes = {
        "imports": f"from torch.utils.tensorboard import SummaryWriter\n{imports}",
        "setup": KEPT.format(place=place),
        "ready": f"{made}\nconfig{place} = SummaryWriter()",
        "step": "step(config, loss.item())",
    }
    report, result = convert_text(programs(holes)[0])

    assert (f"if accelerator.is_main_process:\n    config{place} = " in result) == is_seen
    assert ("if accelerator.is_main_process:\n            step(config" in result) == is_seen
    assert ["every process makes this writer" in note for note in notes(report)] == [True] * (not is_seen)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param("Log('log.txt')", "if accelerator.is_main_process:\n            self.writer = Log(", id="a name"),
        pytest.param("[Log('log.txt')][0]", "open(path if accelerator.is_main_process else os.devnull", id="kept"),
    ],
)
def test_a_log_of_the_project(convert_text, made, expected):
    line = "self.writer.line(str(loss.item()))"
    text = JOB.format(parameters="model, optimizer", given="model, optimizer", writer=made, write=line)
    _, result = convert_text(text)

    assert expected in result


@pytest.mark.parametrize("which", ["fig", "'all'"])
def test_a_figure_that_all_open_is_closed_by_all(changed, which):
    drawn = "axes[0].imshow(shown.detach().cpu().numpy())\nfig.savefig('shown.png')\n"
    before = f"fig, axes = plt.subplots(2)\nshown = model(x)\n{drawn}plt.close({which})"
    changed(
        imports="import matplotlib.pyplot as plt",
        epoch=(before, before.replace(drawn, f"if accelerator.is_main_process:\n{indented(drawn)}\n")),
    )


def test_a_figure_under_a_branch_is_closed_by_all(changed):
    opened = "fig = plt.figure()\nshown = model(x)\nfig.savefig('shown.png')\n"
    before = f"{opened}if epoch:\n    plt.show()\nelse:\n    plt.close()"
    changed(
        imports="import matplotlib.pyplot as plt",
        epoch=(
            before,
            before.replace("fig.savefig", "if accelerator.is_main_process:\n    fig.savefig").replace(
                "    plt.show()", "    if accelerator.is_main_process:\n        plt.show()"
            ),
        ),
    )


def test_a_figure_of_the_main_process_is_closed_by_it(changed):
    text = "fig = plt.figure()\nplt.plot([1, 2])\nplt.savefig('figure.png')\nplt.close(fig)"
    changed(imports="import matplotlib.pyplot as plt", end=(text, f"if accelerator.is_main_process:\n{indented(text)}"))


PIXELS = "import matplotlib.pyplot as plt\nimport numpy as np"
#: How the pixels of a figure are taken, and what is put before that.
TAKEN = {
    "here": ("np.array(fig.canvas.renderer)", ""),
    "by a function": ("pixels(fig)", "def pixels(figure):\n    return np.asarray(figure.canvas.buffer_rgba())\n"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_figure_of_which_the_pixels_are_taken_is_drawn_by_all(changed, name):
    taken, made = TAKEN[name]
    before = (
        "fig, ax = plt.subplots()\nax.imshow(shown)\nplt.title('shown')\n{}"
        f"fig.canvas.draw()\npicture = {taken}\nplt.close(fig)"
    )
    guarded = "if accelerator.is_main_process:\n    plt.savefig('shown.png')\n"
    changed(
        imports=PIXELS,
        setup=(made, made) if made else "",
        epoch=(
            "shown = np.ones((2, 2)) * epoch\n" + before.format("plt.savefig('shown.png')\n"),
            "shown = np.ones((2, 2)) * epoch\n" + before.format(guarded),
        ),
        end=("print(picture.shape)", "accelerator.print(picture.shape)"),
    )


def test_a_bar_that_cannot_be_switched_off_is_told(unchanged):
    report = unchanged(imports="from progress.bar import Bar", start="bar = Bar('epoch', max=2)", step="bar.next()")

    assert notes(report) == ["every process shows this progress bar"]


RANKED = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Log:
    def __init__(self, path):
        self.file = open(path, "w")

    def line(self, text):
        self.file.write(text)


def main(workers, size):
    dist.init_process_group("gloo")
    rank, count = dist.get_rank(), dist.get_world_size()
    data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=size, sampler=sampler, num_workers={workers})
    model = DDP(nn.Linear(2, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    {made}
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
    {end}


main(4, 4)
"""


@pytest.mark.parametrize(
    ("made", "end", "expected"),
    [
        pytest.param(
            'log = open(f"log_{rank}.txt", "w")',
            "log.write(str(len(loader)))",
            ['    log = open(f"log_{accelerator.process_index}.txt", "w")', "    log.write(str(len(loader)))"],
            id="a file that stays open",
        ),
        pytest.param(
            'path = "rank-%d.txt" % rank',
            'with open(path, "w") as file:\n        file.write("done")',
            ['    with open(path, "w") as file:\n        file.write("done")'],
            id="a file by the name of a path",
        ),
        pytest.param(
            "pass",
            'torch.save(torch.get_rng_state(), f"state-{rank}.pt")',
            ['    torch.save(torch.get_rng_state(), f"state-{accelerator.process_index}.pt")'],
            id="a state",
        ),
    ],
)
def test_a_file_that_is_named_by_the_rank_is_that_of_each(convert_text, made, end, expected):
    _, result = convert_text(RANKED.replace("{workers}", "0").replace("{made}", made).replace("{end}", end))

    assert [text for text in expected if f"\n{text}\n" not in result] == []


def test_a_log_of_the_main_process_that_it_asks_for_is_not_left(convert_text):
    made = 'log = None\n    if rank == 0:\n        log = Log("log.txt")'
    end = "if log is not None:\n        log.line(str(loss.item()))"
    report, result = convert_text(RANKED.replace("{workers}", "0").replace("{made}", made).replace("{end}", end))

    assert 'if accelerator.is_main_process:\n        log = Log("log.txt")' in result
    assert not report.of(Kind.LEFT)


@pytest.mark.parametrize(("workers", "is_told"), [("workers // count", True), ("workers", False)])
def test_workers_that_were_shared_out_are_told(convert_text, workers, is_told):
    report, _ = convert_text(RANKED.replace("{workers}", workers).replace("{made}", "pass").replace("{end}", "pass"))

    told = [f.message for f in report.of(Kind.NOTE) if f.code == "MIG104"]
    assert any("as many workers" in message for message in told) is is_told


WRITTEN = {
    "a file that is opened for one line": "open('log.txt', 'w').write('done')",
    "a picture of a picture": "Image.fromarray(rows).convert('L').save('rows.png')",
    "a picture that was read": "Image.open('first.png').resize((2, 2)).save('second.png')",
    "what a transform made a picture": "T.Compose([T.ToPILImage()])(rows).save('rows.png')",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_a_chain_of_calls_writes(changed, name):
    text = WRITTEN[name]
    changed(
        imports="import numpy as np\nfrom PIL import Image\nfrom torchvision import transforms as T",
        setup="rows = np.zeros((2, 2))",
        end=(text, f"if accelerator.is_main_process:\n    {text}"),
    )


def test_a_writer_at_the_top_of_the_file_is_told_and_used_by_one(convert_text):
    text = JOB.format(
        parameters="model, optimizer", given="model, optimizer", writer="BOARD", write="BOARD.add_scalar('loss', loss)"
    ).replace("\n\nclass Log:", "\n\nBOARD = SummaryWriter('runs')\n\n\nclass Log:")
    text = text.replace("\nmain()\n", '\nif __name__ == "__main__":\n    main()\n')
    _, result = convert_text(text.replace("torch.utils.tensorboard", "tensorboard"))

    assert "if accelerator.is_main_process:\n                BOARD.add_scalar('loss', loss)" in result


CHOSEN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets


class Digits:
    def __init__(self, root):
        self.root = root

    def get(self, name):
        kinds = {"digits": lambda: datasets.MNIST(self.root, download=True)}
        make = kinds[name]
        return make()


def main():
    loader = DataLoader(Digits("data").get("digits"), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""


def test_a_data_set_that_is_chosen_of_lambdas(convert_text):
    report, _ = convert_text(CHOSEN)
    assert [finding.converts for finding in report.of(Kind.LOOP)] == [True]


ABOVE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


def train(rate):
    writer = SummaryWriter()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for (x,) in loader:
        loss = model(x.to(device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        writer.add_scalar("loss", loss.item())


train(0.1)
"""


def test_a_writer_above_the_choice_of_the_device_is_of_one_process(convert_text):
    report, result = convert_text(ABOVE)

    assert "    if accelerator.is_main_process:\n        writer = SummaryWriter()\n" in result
    assert not [finding for finding in report.findings if finding.code == "MIG117"]
