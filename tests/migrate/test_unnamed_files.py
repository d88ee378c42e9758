"""A program of several files of which not all are named: one message says which, as a command that can be pasted."""

import shlex
import textwrap

import pytest
from typer.testing import CliRunner

from migrate.cli import app

PROJECT = {
    "pyproject.toml": "",
    "main.py": """
        import torch
        from torch import nn, optim
        from torch.utils.data import DataLoader, TensorDataset

        from lib.run import fit


        def main():
            data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
            loader = DataLoader(data, batch_size=4)
            model = nn.Linear(2, 1)
            optimizer = optim.SGD(model.parameters(), lr=0.1)
            fit(model, optimizer, loader)


        if __name__ == "__main__":
            main()
    """,
    "lib/__init__.py": "",
    "lib/run.py": """
        from lib.engine import train_epoch


        def fit(model, optimizer, loader):
            for epoch in range(2):
                train_epoch(model, optimizer, loader)
    """,
    "lib/engine.py": """
        from lib.step import backward


        def train_epoch(model, optimizer, loader):
            for x, y in loader:
                optimizer.zero_grad()
                loss = ((model(x) - y) ** 2).mean()
                backward(loss)
                optimizer.step()
    """,
    "lib/step.py": """
        import torch


        def backward(loss):
            loss.backward()
    """,
}
WHOLE = {"main.py", "lib/run.py", "lib/engine.py", "lib/step.py"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for path, text in PROJECT.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def migrate(*arguments):
    return CliRunner().invoke(app, list(arguments))


def commands(output):
    """The commands that a report tells."""
    flat = " ".join(output.split())
    found = [part.split("migrate ", 1)[1] for part in flat.split("too:")[1:]]
    return [{word for word in shlex.split(text) if word.endswith(".py")} for text in found]


@pytest.mark.parametrize("named", [["main.py"], ["main.py", "lib/engine.py"], ["main.py", "lib/run.py"]], ids=str)
def test_all_files_of_the_program_are_told_at_once(folder, named):
    result = migrate(*named)

    assert commands(result.output) == [WHOLE], result.output
    for path in WHOLE - set(named):
        assert path in result.output
    assert result.exit_code in (0, 1)


def test_what_is_told_can_be_pasted(folder):
    (told,) = commands(migrate("main.py").output)

    result = migrate(*sorted(told), "--write")

    assert result.exit_code == 0, result.output
    assert "accelerator.backward(loss)" in (folder / "lib/step.py").read_text()
    assert "accelerator = Accelerator()" in (folder / "main.py").read_text()


def test_the_whole_folder_is_the_same(folder):
    assert migrate(".", "--write").exit_code == 0
    assert "backward(loss, accelerator)" in (folder / "lib/engine.py").read_text()


def test_names_are_quoted_for_the_shell(folder):
    (folder / "my run").mkdir()
    (folder / "my run" / "the main.py").write_text((folder / "main.py").read_text())
    (folder / "main.py").unlink()

    result = migrate("my run/the main.py")

    assert "'my run/the main.py'" in result.output
    (told,) = commands(result.output)
    assert told == {"my run/the main.py", "lib/run.py", "lib/engine.py", "lib/step.py"}


def test_a_home_in_a_file_that_was_not_named(folder):
    (folder / "main.py").write_text(
        (folder / "main.py")
        .read_text()
        .replace("            fit(model, optimizer, loader)\n", "")
        .replace("    fit(model, optimizer, loader)\n", "    fit(model, optimizer, loader)\n    return model\n")
    )
    (folder / "start.py").write_text("import torch\n\nfrom main import main\n\nmain()\n")

    result = migrate("start.py", "lib/engine.py")

    assert "MIG901" in result.output
    (told,) = commands(result.output)
    assert told == WHOLE


def test_a_caller_that_was_not_named(folder):
    result = migrate("main.py", "lib/engine.py", "lib/step.py")

    assert commands(result.output) == [WHOLE], result.output
    assert "MIG904" in result.output


SHARED = {
    "group.py": """
        import torch.distributed as dist


        def world_size():
            return dist.get_world_size() if dist.is_initialized() else 1


        def summed(tensor):
            if dist.is_initialized():
                dist.all_reduce(tensor)
            return tensor


        def wait():
            if dist.is_initialized():
                dist.barrier()


        def join(backend):
            connect(backend)


        def connect(backend):
            dist.init_process_group(backend)
    """,
    "train.py": """
        import torch
        import torch.distributed as dist
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel
        from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

        import group

        START
        data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
        loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
        model = DistributedDataParallel(nn.Linear(2, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                loss = ((model(x) - y) ** 2).mean()
                loss.backward()
                optimizer.step()
                USE
    """,
}


OWN_START = 'dist.init_process_group("gloo")'


@pytest.mark.parametrize(
    ("start", "use", "why"),
    [
        (
            OWN_START,
            "print(group.summed(loss.detach()).item() / group.world_size())",
            "summed() exchanges what the processes have computed",
        ),
        ('group.join("gloo")', "pass", "join() joins the processes to a group"),
        (OWN_START, "group.wait()", ""),
    ],
)
def test_a_file_that_has_to_do_with_the_processes_has_to_be_named(tmp_path, monkeypatch, start, use, why):
    for path, source in SHARED.items():
        text = textwrap.dedent(source).lstrip().replace("START", start).replace("USE", use)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    alone = migrate("train.py")

    assert (f"{why}, and group.py was not named" in alone.output) is bool(why)
    assert ("1 loop would be converted" in alone.output) is (not why)
    assert "1 loop would be converted" in migrate("train.py", "group.py").output


@pytest.mark.parametrize(
    ("start", "why"),
    [('group.join("gloo")', "join() joins the processes to a group"), ("group.wait()", "")],
)
def test_a_group_that_only_a_file_that_is_not_named_joins(tmp_path, monkeypatch, start, why):
    """A program that asks for no more of its processes is one of several processes all the same."""
    for path, source in SHARED.items():
        text = textwrap.dedent(source).lstrip().replace("START", start).replace("USE", "pass")
        text = text.replace(", sampler=DistributedSampler(data)", "").replace("DistributedDataParallel(nn", "(nn")
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    alone = migrate("train.py")

    assert (f"{why}, and group.py was not named" in alone.output) is bool(why)
    assert ("1 loop would be converted" in alone.output) is (not why)
