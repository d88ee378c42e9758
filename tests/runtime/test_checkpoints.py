"""Checkpoints on one process: what is saved is what is loaded, damage is named, and a failed save spoils nothing."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from runtime import Accelerator, ProjectConfiguration
from runtime.checkpoints import contents, digest, manifest
from runtime.checkpoints.digest import CheckedFile, digests, digests_of
from runtime.checkpoints.formats import mapped, read_safetensors, write_safetensors
from runtime.checkpoints.sink import Sink
from runtime.errors import ConfigurationError, LoadError, SaveError
from runtime.tree import leaves

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    "custom_checkpoint_0.pkl",
    "manifest.json",
    "model.safetensors",
    "optimizer.bin",
    "random_states_0.pkl",
    "scheduler.bin",
]


class Counter:
    def __init__(self):
        self.value = 0

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


class Training:
    """A small training with something in it that goes into every kind of file."""

    def __init__(self, **options):
        self.accelerator = Accelerator(cpu=True, **options)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 1))
        optimizer = torch.optim.AdamW(model.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
        self.model, self.optimizer, self.scheduler = self.accelerator.prepare(model, optimizer, scheduler)
        self.counter = Counter()
        self.accelerator.register_for_checkpointing(self.counter)

    def steps(self, count):
        losses = []
        for _ in range(count):
            noise = random.random() + np.random.rand()  # noqa: NPY002, S311
            loss = self.model(torch.randn(3, 4) + noise).pow(2).mean()
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad()
            self.counter.value += 1
            losses.append((loss.item(), self.scheduler.get_last_lr()[0], self.counter.value))
        return losses

    def weights(self):
        return [p.detach().clone() for p in self.model.parameters()]


def automatic(folder, **options):
    return Training(project_config=ProjectConfiguration(folder, automatic_checkpoint_naming=True, **options))


def flip(path, position, bit=0):
    data = bytearray(path.read_bytes())
    data[position % len(data)] ^= 1 << bit
    path.write_bytes(data)


def hidden(folder):
    return [name for name in os.listdir(folder) if name.startswith(".")]


def test_a_training_goes_on_as_if_it_had_not_stopped(tmp_path):
    training = Training()
    training.steps(2)
    folder = training.accelerator.save_state(tmp_path / "a" / "b")
    expected = training.steps(3)
    assert folder == tmp_path / "a" / "b"
    assert sorted(os.listdir(folder)) == FILES
    assert hidden(tmp_path / "a") == []

    assert training.accelerator.load_state(str(folder)) == folder
    assert training.steps(3) == expected
    fresh = Training()
    fresh.accelerator.load_state(folder)
    assert fresh.steps(3) == expected


def test_the_manifest_says_what_is_there(tmp_path):
    folder = Training().accelerator.save_state(tmp_path / "a")
    told = json.loads((folder / "manifest.json").read_text())
    assert told["processes"] == 1
    assert {name: row["size"] for name, row in told["files"].items()} == {
        name: (folder / name).stat().st_size for name in FILES if name != "manifest.json"
    }


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found_and_named_and_nothing_is_loaded(tmp_path, name):
    training = Training()
    folder = training.accelerator.save_state(tmp_path / "a")
    whole = (folder / name).read_bytes()
    training.steps(1)
    before, state = training.weights(), torch.get_rng_state()
    draws = random.Random(name)  # noqa: S311
    for position in [0, len(whole) - 1, *(draws.randrange(len(whole)) for _ in range(20))]:
        flip(folder / name, position, draws.randrange(8))
        with pytest.raises(LoadError, match=rf"checkpoint .*a cannot be loaded: .*{name}") as raised:
            training.accelerator.load_state(folder)
        assert "another checkpoint" in str(raised.value)
        (folder / name).write_bytes(whole)
    assert all(map(torch.equal, training.weights(), before))
    assert torch.equal(torch.get_rng_state(), state)
    training.accelerator.load_state(folder)


def read_in_pieces(path, draws):
    """The digests of a file that was read in any order, some of it twice, some of it never."""
    file = CheckedFile(path)
    for _ in range(8):
        file.seek(draws.randrange(path.stat().st_size + 1))
        file.readinto(memoryview(bytearray(draws.randrange(1, 100_000))))
    result = file.digests()
    file.close()
    return result


def test_every_bit_of_a_digest_counts(tmp_path):
    path = tmp_path / "x"
    draws = random.Random(0)  # noqa: S311
    for size in (0, 1, 1023, 1025, 300_003):
        path.write_bytes(draws.randbytes(size))
        whole = digests(path)
        assert whole == digests(path) == read_in_pieces(path, draws)
        if size:
            assert whole == digests_of(torch.from_file(str(path), size=size, dtype=torch.uint8))
        for _ in range(5 if size else 0):
            place, bit = draws.randrange(size), draws.randrange(8)
            flip(path, place, bit)
            assert digests(path) != whole
            flip(path, place, bit)
    path.write_bytes(bytes(2048) + b"\x01" + bytes(2047))
    moved = digests(path)
    path.write_bytes(b"\x01" + bytes(4095))
    assert digests(path) != moved


def test_a_large_file_is_checked_in_segments(tmp_path, monkeypatch):
    for module in (digest, manifest):
        monkeypatch.setattr(module, "segments", lambda size: range(0, max(size, 1), 4096))
    monkeypatch.setattr(digest, "SEGMENT", 4096)
    training = Training()
    folder = training.accelerator.save_state(tmp_path / "a")
    assert len(json.loads((folder / "manifest.json").read_text())["files"]["random_states_0.pkl"]["digests"]) > 1
    flip(folder / "random_states_0.pkl", 5000)
    with pytest.raises(LoadError, match=r"random_states_0.pkl is damaged between bytes 4096 and 8192"):
        training.accelerator.load_state(folder)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "has 1[0-9]* bytes instead of"),
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(path.read_bytes() + b"0"), "has [0-9]* bytes instead of"),
    ],
)
def test_a_file_of_another_size_is_named(tmp_path, spoil, told):
    training = Training()
    folder = training.accelerator.save_state(tmp_path / "a")
    spoil(folder / "scheduler.bin")
    with pytest.raises(LoadError, match=f"scheduler.bin {told}"):
        training.accelerator.load_state(folder)


def test_checkpoints_are_numbered_and_only_the_newest_kept(tmp_path):
    training = automatic(tmp_path, total_limit=2)
    folders = [training.accelerator.save_state("not read") for _ in range(3)]
    assert [folder.name for folder in folders] == ["checkpoint_0", "checkpoint_1", "checkpoint_2"]
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["checkpoint_1", "checkpoint_2"]

    resumed = automatic(tmp_path, total_limit=2)
    with pytest.raises(SaveError, match=r"checkpoint_.* is there already. load_state\(\) first"):
        Training(
            project_config=ProjectConfiguration(tmp_path, automatic_checkpoint_naming=True, iteration=2)
        ).accelerator.save_state()
    resumed.accelerator.load_state()
    assert resumed.accelerator.save_iteration == 3
    assert resumed.accelerator.save_state().name == "checkpoint_3"


def test_ten_comes_after_nine(tmp_path):
    training = automatic(tmp_path, iteration=9, total_limit=1)
    training.accelerator.save_state()
    training.accelerator.save_state()
    assert os.listdir(tmp_path / "checkpoints") == ["checkpoint_10"]


def test_copies_under_other_names_are_neither_removed_nor_counted(tmp_path):
    training = automatic(tmp_path, total_limit=1)
    first = training.accelerator.save_state()
    shutil.copytree(first, first.with_name("checkpoint_0_best"))
    shutil.copytree(first, first.with_name("checkpoint_0_of_2026"))
    training.accelerator.save_state()
    names = ["checkpoint_0_best", "checkpoint_0_of_2026", "checkpoint_1"]
    assert sorted(os.listdir(tmp_path / "checkpoints")) == names
    training.accelerator.load_state(tmp_path / "checkpoints" / "checkpoint_1")
    assert training.accelerator.save_iteration == 2


def test_the_newest_good_checkpoint_is_found(tmp_path):
    training = automatic(tmp_path)
    for _ in range(3):
        training.steps(1)
        training.accelerator.save_state()
    flip(tmp_path / "checkpoints" / "checkpoint_2" / "optimizer.bin", 4000)
    (tmp_path / "checkpoints" / "checkpoint_1" / "model.safetensors").unlink()
    with pytest.warns(
        UserWarning, match=r"loading .*checkpoint_0: newer .* damaged: .*checkpoint_2 \(optimizer.bin is"
    ):
        assert training.accelerator.load_state().name == "checkpoint_0"
    assert training.counter.value == 1
    assert training.accelerator.save_iteration == 3
    flip(tmp_path / "checkpoints" / "checkpoint_0" / "optimizer.bin", 4000)
    with pytest.raises(LoadError, match=r"no checkpoint in .*checkpoints can be loaded: .*checkpoint_2 .*checkpoint_0"):
        training.accelerator.load_state()
    with pytest.raises(LoadError, match=r"or pass .*checkpoints for the newest good one"):
        training.accelerator.load_state(tmp_path / "checkpoints" / "checkpoint_2")


def test_checkpoints_of_any_names_are_taken_by_their_time(tmp_path):
    training = Training(project_dir=tmp_path)
    for name in ("z", "epoch_9", "a"):
        training.accelerator.save_state(tmp_path / name)
    for age, name in enumerate(("a", "z", "epoch_9")):
        os.utime(tmp_path / name / "manifest.json", (1e9 - age, 1e9 - age))
    assert training.accelerator.load_state(tmp_path).name == "a"
    assert training.accelerator.load_state().name == "a"


def test_what_cannot_be_found_is_told(tmp_path):
    training = Training()
    with pytest.raises(ConfigurationError, match=r"save_state\(\) needs a folder"):
        training.accelerator.save_state()
    with pytest.raises(ConfigurationError, match="project_dir"):
        training.accelerator.load_state()
    with pytest.raises(LoadError, match="nowhere cannot be searched"):
        training.accelerator.load_state(tmp_path / "nowhere")
    with pytest.raises(LoadError, match="is no checkpoint, and holds none"):
        training.accelerator.load_state(tmp_path)
    with pytest.raises(ConfigurationError, match="add_safe_globals"):
        training.accelerator.load_state(tmp_path, {"weights_only": False})


def test_an_existing_checkpoint_is_replaced_whole(tmp_path, monkeypatch):
    training = Training()
    training.accelerator.save_state(tmp_path / "a")
    training.steps(1)
    inode = (tmp_path / "a").stat().st_ino
    training.accelerator.save_state(tmp_path / "a")
    assert (tmp_path / "a").stat().st_ino != inode
    assert sorted(os.listdir(tmp_path / "a")) == FILES
    monkeypatch.setattr("runtime.checkpoints.aside._exchanged", lambda *_: False)  # as on other systems
    training.accelerator.save_state(tmp_path / "a")
    assert os.listdir(tmp_path) == ["a"]
    training.accelerator.load_state(tmp_path / "a")
    assert training.counter.value == 1


def test_a_checkpoint_that_was_moved_away_when_the_process_died_is_put_back(tmp_path):
    training = Training()
    training.accelerator.save_state(tmp_path / "a")
    (tmp_path / ".replaced-0").mkdir()
    os.rename(tmp_path / "a", tmp_path / ".replaced-0" / "a")
    training.accelerator.load_state(tmp_path / "a")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("case", ["files", "link", "current", "foreign"])
def test_a_folder_that_holds_more_than_a_checkpoint_stays(tmp_path, monkeypatch, case):
    training = Training()
    target = place = tmp_path / "a"
    if case == "link":
        place = tmp_path / "real"
        training.accelerator.save_state(place)
        target.symlink_to(place)
    else:
        training.accelerator.save_state(target)
    (place / "logs").mkdir()
    (place / "logs" / "events").write_text("kept")
    if case == "current":
        monkeypatch.chdir(place)
    if case == "foreign":
        (place / "manifest.json").unlink()
    (place / "optimizer_1.bin").write_text("not in the manifest, or stale")
    inode = place.stat().st_ino
    training.steps(1)
    training.accelerator.save_state("." if case == "current" else target)
    assert place.stat().st_ino == inode
    assert (place / "logs" / "events").read_text() == "kept"
    stale = set() if case == "foreign" else {"optimizer_1.bin"}
    assert set(os.listdir(place)) == {*FILES, "logs", *stale}
    training.steps(1)
    training.accelerator.load_state(target)
    assert training.counter.value == 1


@pytest.mark.parametrize("stop", range(7))
def test_a_save_that_was_killed_while_it_moved_files_in_is_finished(tmp_path, monkeypatch, stop):
    training = Training()
    target = tmp_path / "a"
    training.accelerator.save_state(target)
    (target / "notes").write_text("")
    training.steps(1)
    left, replace = [stop], os.replace

    def killed(one, other):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        replace(one, other)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        if stop < len(FILES):
            with pytest.raises(KeyboardInterrupt):
                training.accelerator.save_state(target)
        else:
            training.accelerator.save_state(target)
    training.steps(1)
    training.accelerator.load_state(tmp_path if stop % 2 else target)
    assert training.counter.value == 1
    assert sorted(os.listdir(target)) == sorted([*FILES, "notes"])


def test_what_a_killed_save_left_is_cleared_away_and_what_is_in_use_is_not(tmp_path):
    import fcntl

    for name in (".aside-dead", ".aside-alive"):
        (tmp_path / name / "a").mkdir(parents=True)
    handle = os.open(tmp_path / ".aside-alive", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    Training().accelerator.save_state(tmp_path / "b")
    os.close(handle)
    assert sorted(os.listdir(tmp_path)) == [".aside-alive", "b"]


def full(limit):
    """os.write on a disk that has room for `limit` more bytes."""
    left, write = [limit], os.write

    def limited(handle, data):
        if len(data) > left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= len(data)
        return write(handle, data)

    return limited


def saved(accelerator, behind):
    accelerator.save_state(async_save=behind)
    accelerator.wait_for_save()


@pytest.mark.parametrize("room", [0, 300, 1500, 4000, 20_000])
@pytest.mark.parametrize("behind", [False, True])
def test_a_full_disk_is_named_and_spoils_nothing(tmp_path, monkeypatch, room, behind):
    training = automatic(tmp_path)
    accelerator = training.accelerator
    accelerator.save_state()
    training.steps(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full(room))
        with pytest.raises(SaveError, match=r"checkpoint_1 was not saved: rank 0: .*No space left on device: '.*/"):
            saved(accelerator, behind)
    assert os.listdir(tmp_path / "checkpoints") == ["checkpoint_0"]
    accelerator.load_state()
    assert training.counter.value == 0
    assert accelerator.save_state().name == "checkpoint_1"


def test_a_limit_of_the_system_is_a_full_disk(tmp_path):
    code = f"""
import resource, torch
from torch import nn
from runtime import Accelerator
from runtime.errors import SaveError
accelerator = Accelerator(cpu=True)
model = accelerator.prepare(nn.Linear(100, 100))
accelerator.save_state({str(tmp_path / "a")!r})
with torch.no_grad():
    model.weight.zero_()
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    accelerator.save_state({str(tmp_path / "a")!r})
except SaveError as error:
    print(error)
accelerator.load_state({str(tmp_path / "a")!r})
print(bool(model.weight.any()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=90, check=False
    )
    assert "model.safetensors" in done.stdout, done.stderr
    assert "File too large" in done.stdout
    assert done.stdout.endswith("True\n")
    assert os.listdir(tmp_path) == ["a"]


def test_an_asynchronous_save_holds_the_state_of_its_moment(tmp_path):
    training = Training()
    training.steps(1)
    training.accelerator.save_state(tmp_path / "a", async_save=True)
    with torch.no_grad():
        for parameter in training.model.parameters():
            parameter.zero_()
    for state in training.optimizer.state.values():
        state["exp_avg"].fill_(7)
    training.counter.value = 99
    training.optimizer.param_groups[0]["lr"] = 99
    training.accelerator.load_state(tmp_path / "a")  # waits
    assert training.counter.value == 1
    assert training.model[0].weight.any()
    assert all(not state["exp_avg"].eq(7).any() for state in training.optimizer.state.values())
    assert training.optimizer.param_groups[0]["lr"] < 1


def test_the_copies_of_asynchronous_saves_use_the_same_memory(tmp_path):
    training = Training()
    training.steps(1)
    accelerator = training.accelerator
    places = []
    for name in "ab":
        accelerator.save_state(tmp_path / name, async_save=True)
        accelerator.wait_for_save()
        places.append(sorted(t.data_ptr() for t in accelerator._saver._staging._kept.values()))
    assert places[0] == places[1]
    accelerator.end_training()


def test_an_error_behind_the_training_is_raised_by_the_next_call_once(tmp_path, monkeypatch):
    training = Training()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full(0))
        training.accelerator.save_state(tmp_path / "a", async_save=True)
        training.accelerator._saver._thread.join()
    with pytest.raises(SaveError, match="a was not saved"):
        training.accelerator.save_state(tmp_path / "b")
    training.accelerator.save_state(tmp_path / "b")
    training.accelerator.end_training()


def test_hooks_take_weights_and_models_out_and_their_files_are_checked(tmp_path):
    training = Training()
    other = training.accelerator.prepare(nn.Linear(2, 2))

    def save(models, weights, folder):
        assert [type(model) for model in models] == [nn.Sequential, nn.Linear]
        assert os.path.basename(folder) == "a"
        torch.save(weights.pop(), os.path.join(folder, "own.pt"))

    def load(models, folder):
        models.pop().load_state_dict(torch.load(os.path.join(folder, "own.pt")))

    handles = [
        training.accelerator.register_save_state_pre_hook(save),
        training.accelerator.register_load_state_pre_hook(load),
    ]
    folder = training.accelerator.save_state(tmp_path / "a")
    assert not (folder / "model_1.safetensors").exists()
    kept = other.weight.detach().clone()
    with torch.no_grad():
        other.weight.zero_()
    training.accelerator.load_state(folder)
    assert torch.equal(other.weight, kept)
    flip(folder / "own.pt", 1000)
    with pytest.raises(LoadError, match=r"own.pt is damaged"):
        training.accelerator.load_state(folder)
    for handle in handles:
        handle.remove()
    assert (training.accelerator.save_state(tmp_path / "a") / "model_1.safetensors").exists()


def test_a_failing_hook_is_told_and_leaves_nothing(tmp_path):
    training = Training()
    training.accelerator.register_save_state_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(SaveError, match="ZeroDivisionError") as raised:
        training.accelerator.save_state(tmp_path / "a")
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert os.listdir(tmp_path) == []


def test_another_program_is_told(tmp_path):
    training = Training()
    folder = training.accelerator.save_state(tmp_path / "a")
    training.accelerator.register_for_checkpointing(Counter())
    with pytest.raises(LoadError, match="holds 1 registered objects, and 2 are registered"):
        training.accelerator.load_state(folder)
    more = Training()
    more.accelerator.prepare(torch.optim.SGD(more.model.parameters()))
    before = more.weights()
    with pytest.raises(LoadError, match=r"has no optimizer_1.bin, and 2 optimizers are prepared"):
        more.accelerator.load_state(folder)
    assert all(map(torch.equal, more.weights(), before))
    wider = Accelerator(cpu=True)
    wider.prepare(nn.Linear(7, 7))
    wider.register_for_checkpointing(Counter())
    with pytest.raises(LoadError, match=r"the weights are not those of model 0: .*Missing key"):
        wider.load_state(folder)


def test_what_could_not_be_loaded_again_is_not_saved(tmp_path):
    training = Training()
    training.counter.value = Counter()
    with pytest.raises(SaveError, match=r"the registered Counter holds .*Counter.*add_safe_globals"):
        training.accelerator.save_state(tmp_path / "a")
    training.counter.value = {"array": np.arange(3), "number": np.float64(2)}
    training.accelerator.save_state(tmp_path / "a")
    training.accelerator.load_state(tmp_path / "a")
    assert training.counter.value["array"].tolist() == [0, 1, 2]


def test_a_save_between_two_steps_is_warned_of(tmp_path):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = accelerator.prepare(nn.Linear(1, 1))
    with accelerator.accumulate(model), pytest.warns(UserWarning, match="between two optimizer steps"):
        accelerator.save_state(tmp_path / "a")


def test_a_window_begins_anew_when_a_state_is_loaded(tmp_path):
    """Micro-steps of before counted for the first window after it."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = accelerator.prepare(nn.Linear(1, 1))
    accelerator.save_state(tmp_path / "a")
    with accelerator.accumulate(model):
        pass
    accelerator.load_state(tmp_path / "a")
    assert accelerator.sync_gradients  # so that gradients of before can be cleared
    with accelerator.accumulate(model):
        assert not accelerator.sync_gradients


def test_models_of_other_formats(tmp_path):
    class Extra(nn.Linear):
        note = "first"

        def get_extra_state(self):
            return self.note

        def set_extra_state(self, state):
            self.note = state

    accelerator = Accelerator(cpu=True)
    extra, tied = accelerator.prepare(Extra(1, 1), nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)]))
    tied[1].weight = tied[0].weight
    accelerator.save_state(tmp_path / "a")
    assert {"pytorch_model.bin", "model_1.safetensors"} <= set(os.listdir(tmp_path / "a"))
    extra.note = "second"
    with torch.no_grad():
        tied[0].weight.zero_()
    accelerator.load_state(tmp_path / "a")
    assert extra.note == "first"
    assert tied[1].weight.any()
    accelerator.save_state(tmp_path / "b", safe_serialization=False)
    assert {"pytorch_model.bin", "pytorch_model_1.bin"} <= set(os.listdir(tmp_path / "b"))
    accelerator.load_state(tmp_path / "b")


def test_safetensors_are_those_of_the_package(tmp_path):
    package = pytest.importorskip("safetensors.torch")
    state = {
        "odd": torch.arange(3, dtype=torch.uint8),
        "half": torch.randn(3).bfloat16(),
        "wide": torch.randn(2, 3, dtype=torch.float64),
        "turned": torch.randn(3, 2).t(),
        "none": torch.empty(0, 4),
        "flag": torch.tensor([True, False]),
        "number": torch.tensor(3),
    }
    with Sink(tmp_path / "ours") as sink:
        write_safetensors(sink, state)
    package.save_file({name: value.contiguous() for name, value in state.items()}, tmp_path / "theirs")

    def own(path):
        return read_safetensors(path, mapped(path))

    for read, path in ((package.load_file, "ours"), (own, "ours"), (own, "theirs")):
        found = read(tmp_path / path)
        assert found.keys() == state.keys()
        for name, value in state.items():
            assert found[name].dtype is value.dtype
            assert torch.equal(found[name], value)


def accelerates_folder(folder, training):
    """The files of a checkpoint as Accelerate 1.15 writes them."""
    package = pytest.importorskip("safetensors.torch")
    folder.mkdir()
    state = {name: value.contiguous() for name, value in training.model.state_dict().items()}
    package.save_file(state, folder / "model.safetensors", {"format": "pt"})
    torch.save(training.optimizer.state_dict(), folder / "optimizer.bin")
    torch.save(training.scheduler.state_dict(), folder / "scheduler.bin")
    torch.save(training.counter.state_dict(), folder / "custom_checkpoint_0.pkl")
    states = {
        "step": 3,
        "random_state": random.getstate(),
        "numpy_random_seed": np.random.get_state(),  # noqa: NPY002
        "torch_manual_seed": torch.get_rng_state(),
    }
    torch.save(states, folder / "random_states_0.pkl")


def test_a_folder_of_accelerate_is_loaded(tmp_path):
    training = Training()
    training.steps(2)
    accelerates_folder(tmp_path / "checkpoint_7", training)
    expected = training.steps(2)
    fresh = Training()
    with pytest.warns(UserWarning, match=r"has no manifest.json"):
        fresh.accelerator.load_state(tmp_path / "checkpoint_7")
    assert fresh.steps(2) == expected


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.bin", "random_states_0.pkl"])
def test_a_truncated_file_of_accelerate_is_named(tmp_path, name):
    training = Training()
    accelerates_folder(tmp_path / "a", training)
    path = tmp_path / "a" / name
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(LoadError, match=f"checkpoint .*a cannot be loaded: {name} is not whole"):
        training.accelerator.load_state(tmp_path / "a")


def test_weights_under_the_names_of_wrappers_and_without_those_of_ties(tmp_path):
    package = pytest.importorskip("safetensors.torch")
    tied = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    tied[1].weight = tied[0].weight
    (tmp_path / "a").mkdir()
    state = {f"_orig_mod.{name}": torch.ones_like(value) for name, value in tied.state_dict().items()}
    del state["_orig_mod.0.weight"]
    package.save_file(state, tmp_path / "a" / "model.safetensors", {"format": "pt"})
    accelerator = Accelerator(cpu=True)
    accelerator.prepare(tied)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accelerator.load_state(tmp_path / "a")
    assert tied[0].weight.eq(1).all()


class Positioned:
    """A loader that can say where it stands."""

    def __init__(self):
        self.at = 0

    def state_dict(self):
        return {"at": self.at, "generator": torch.ones(2)}

    def load_state_dict(self, state):
        self.at = state["at"]


def test_only_what_belongs_to_parameters_is_read_to_the_device(tmp_path):
    """The states of generators, a loader's among them, are the CPU's: PyTorch takes no others."""
    accelerator = Accelerator(cpu=True)
    rows = torch.utils.data.TensorDataset(torch.arange(8.0)[:, None])
    data = torch.utils.data.DataLoader(rows, shuffle=True, generator=torch.Generator())
    model = nn.Linear(1, 1)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.Adam(model.parameters()), data)
    accelerator.register_for_checkpointing(nn.Linear(1, 1))
    for (x,) in loader:
        accelerator.backward(model(x).sum())
        optimizer.step()
        break
    accelerator.save_state(tmp_path / "state", safe_serialization=False)
    items, wrong = contents.read(tmp_path / "state", None, contents.Reading(rank=0, location="meta"))
    assert not wrong
    places = {
        name: {leaf.device.type for leaf in leaves(content) if isinstance(leaf, torch.Tensor)}
        for name, content in items.items()
    }
    assert places == {
        "pytorch_model.bin": {"meta"},
        "optimizer.bin": {"meta"},
        "dl_state_dict.bin": {"cpu"},
        "custom_checkpoint_0.pkl": {"cpu"},
        "random_states_0.pkl": {"cpu"},
    }


def test_the_position_of_the_data_is_kept(tmp_path):
    training = Training()
    loader = Positioned()
    training.accelerator._dataloaders.append(loader)
    loader.at = 17
    folder = training.accelerator.save_state(tmp_path / "a")
    assert json.loads((folder / "manifest.json").read_text())["data"] == [{"at": 17}]
    loader.at = 0
    training.accelerator.load_state(folder)
    assert loader.at == 17


def test_the_gradient_scaler_goes_on_with_its_scale(tmp_path):
    accelerator = Accelerator(cpu=True)
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    accelerator.save_state(tmp_path / "a")
    assert (tmp_path / "a" / "scaler.pt").exists()
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    accelerator.load_state(tmp_path / "a")
    assert accelerator.scaler.state_dict()["scale"] == 8.0
    accelerator.scaler = None
    accelerator.save_state(tmp_path / "b")
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    with pytest.warns(UserWarning, match="has no gradient scaler"):
        accelerator.load_state(tmp_path / "b")
