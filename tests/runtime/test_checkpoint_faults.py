"""A training that is killed, or asked to end, goes on from its last checkpoint as if nothing had happened."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time

import pytest
from torch import nn

from runtime import Accelerator, collectives
from runtime.errors import ConfigurationError

LIMIT_S = 120

TRAINING = """
    import os, signal, sys, time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    from runtime import Accelerator, ProjectConfiguration, set_seed

    class Progress:
        epoch, losses = 0, ()
        def state_dict(self):
            return {"epoch": self.epoch, "losses": self.losses}
        def load_state_dict(self, state):
            self.epoch, self.losses = state["epoch"], state["losses"]

    set_seed(1)
    project = ProjectConfiguration("project", automatic_checkpoint_naming=True, total_limit=2)
    accelerator = Accelerator(cpu=True, project_config=project)
    data = TensorDataset(torch.randn(24, 3), torch.randn(24, 1))
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
    model, optimizer, scheduler, loader = accelerator.prepare(
        model, optimizer, scheduler, DataLoader(data, batch_size=3, shuffle=True))
    progress = Progress()
    accelerator.register_for_checkpointing(progress)

    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        progress.losses += (accelerator.reduce(loss.detach(), "mean").item(),)
"""
KILLED = """
    if os.path.isdir("project/checkpoints"):
        accelerator.load_state()
    start = len(progress.losses)
    while progress.epoch < 4:  # of 4 steps; a checkpoint lies within an epoch
        for x, y in loader:
            step(x, y)
            done = len(progress.losses)
            if (os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and accelerator.process_index == 1
                    and done == 11 and "kill" in sys.argv):
                os.kill(os.getpid(), signal.SIGKILL)
            if done % 3 == 0:
                accelerator.save_state(async_save=done % 2 == 0)
        progress.epoch += 1
    accelerator.end_training()
    if accelerator.is_main_process:
        print(*progress.losses)
        print("from", start, file=sys.stderr)
"""
ASKED = """
    accelerator.on_termination(accelerator.save_state)
    steps = 0
    while not accelerator.check_termination():
        for x, y in loader:
            step(x, y)
            steps += 1
            if sys.argv[1:] == ["itself"] and steps == 5 and accelerator.process_index == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            if accelerator.check_termination():
                break
            if accelerator.is_main_process and steps == 3:
                open("running", "w").close()
    accelerator.end_training()
    print("ended", steps)
"""


@pytest.fixture
def launch(launched, tmp_path):
    """Starts `runtime launch` of the training with a body."""

    def start(name, body, *arguments, options=()):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(textwrap.dedent(TRAINING) + textwrap.dedent(body))
        return launched(folder, "-n", "2", "--cpu", *options, "train.py", *arguments)

    return start


@pytest.mark.long
def test_a_killed_process_is_started_again_and_the_losses_are_the_same(launch):
    killed = launch("killed", KILLED, "kill", options=("--max_restarts", "1"))
    whole = launch("whole", KILLED)
    out, err = killed.communicate(timeout=LIMIT_S)
    assert "was killed by SIGKILL" in err
    assert killed.returncode == 0, err
    assert "from 9" in err
    expected, _ = whole.communicate(timeout=LIMIT_S)
    assert len(out.split()) == 16
    assert out == expected


@pytest.mark.long
def test_a_signal_to_the_launcher_ends_all_processes_with_a_checkpoint(launch, tmp_path):
    process = launch("asked", ASKED)
    give_up = time.monotonic() + LIMIT_S
    while not (tmp_path / "asked" / "running").exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < give_up
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert "ended" in out, err
    assert "Traceback" not in err
    first, second = out.splitlines()
    assert first == second
    assert os.listdir(tmp_path / "asked" / "project" / "checkpoints") == ["checkpoint_0"]


@pytest.mark.long
def test_a_signal_to_one_process_ends_all_at_the_same_step(launch, tmp_path):
    process = launch("itself", ASKED, "itself")
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert out == "ended 5\nended 5\n"
    assert os.listdir(tmp_path / "itself" / "project" / "checkpoints") == ["checkpoint_0"]


def test_signals_are_given_back():
    accelerator = Accelerator(cpu=True)
    before = signal.getsignal(signal.SIGTERM)
    called = []
    accelerator.on_termination(lambda: called.append(1)).remove()
    accelerator.on_termination(lambda: called.append(2))
    assert not accelerator.check_termination()
    os.kill(os.getpid(), signal.SIGTERM)
    assert accelerator.check_termination()
    assert accelerator.check_termination()
    assert called == [2]
    accelerator.end_training()
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_right_after_the_processes_have_agreed_waits_for_the_next_check(monkeypatch):
    accelerator = Accelerator(cpu=True)
    accelerator.on_termination()
    agree = collectives.all_flags

    def and_a_signal(*arguments):
        agreed = agree(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)
        return agreed

    monkeypatch.setattr(collectives, "all_flags", and_a_signal)
    assert not accelerator.check_termination()  # the others heard nothing of it
    assert accelerator.check_termination()
    accelerator.end_training()


def test_another_thread_cannot_listen():
    accelerator = Accelerator(cpu=True)
    errors = []

    def listen():
        try:
            accelerator.on_termination()
        except ConfigurationError as error:
            errors.append(str(error))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert "main thread" in errors[0]
    assert accelerator.prepare(nn.Linear(1, 1)) is not None
