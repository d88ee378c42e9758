"""Checkpoints of a training on a GPU: go on to the last bit, behind the training too, and load without a GPU."""

from __future__ import annotations

import pytest
import torch
from on_gpu import DEVICE, Net, accelerator, parts
from torch import nn

from runtime import Accelerator

PRECISIONS = ("no", "fp16", "bf16")


class Training:
    """One that draws on the GPU (dropout)."""

    def __init__(self, precision="no"):
        self.accelerator = accelerator(mixed_precision=precision)
        model, make, loader, schedule = parts("adamw")
        optimizer = make(model.parameters())
        self.model, self.optimizer, self.loader, self.scheduler = self.accelerator.prepare(
            model, optimizer, loader, schedule(optimizer)
        )

    def epoch(self):
        """The losses of one."""
        losses = []
        for x, y in self.loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad()
            losses.append(loss.item())
        return losses


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("behind", [False, True])
def test_a_training_goes_on_where_it_was_saved(tmp_path, precision, behind):
    training = Training(precision)
    training.epoch()
    training.accelerator.save_state(tmp_path / "state", async_save=behind)
    expected = training.epoch()  # changes weights while they are written
    training.accelerator.wait_for_save()

    torch.rand(100, device=DEVICE)
    again = Training(precision)
    again.accelerator.load_state(tmp_path / "state")
    assert again.epoch() == expected


def test_what_is_saved_behind_the_training_is_what_was_there(tmp_path):
    training = Training()
    training.epoch()
    before = {key: value.clone() for key, value in training.model.state_dict().items()}
    for name in ("first", "second"):  # the second time the memory of the first is used again
        training.accelerator.save_state(tmp_path / name, async_save=True)
        with torch.no_grad():
            for parameter in training.model.parameters():
                parameter.add_(1)
        training.accelerator.wait_for_save()
    other = accelerator()
    model = other.prepare(Net())
    other.load_state(tmp_path / "first")
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    other.load_state(tmp_path / "second")
    changed = dict(model.named_parameters())
    assert all(torch.equal(value, before[key] + 1) for key, value in changed.items())


def test_a_checkpoint_of_a_gpu_loads_on_the_cpu_and_back(tmp_path):
    training = Training()
    training.epoch()
    training.accelerator.save_state(tmp_path / "gpu")
    model, make, _, _ = parts("adamw")
    own = Accelerator(cpu=True)
    model, optimizer = own.prepare(model, make(model.parameters()))
    own.load_state(tmp_path / "gpu")
    assert {state["exp_avg"].device.type for state in optimizer.state.values()} == {"cpu"}
    weights = training.model.state_dict()
    assert all(torch.equal(value, weights[key].cpu()) for key, value in model.state_dict().items())
    own.save_state(tmp_path / "cpu")

    model, make, _, _ = parts("adamw")
    back = accelerator()
    model, optimizer = back.prepare(model, make(model.parameters()))
    back.load_state(tmp_path / "cpu")
    assert {state["exp_avg"].device.type for state in optimizer.state.values()} == {DEVICE.type}
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())


def test_a_model_that_is_saved_loads_into_the_plain_one(tmp_path):
    training = Training()
    training.epoch()
    training.accelerator.save_model(training.model, tmp_path)
    training.accelerator.save(training.accelerator.get_state_dict(training.model), tmp_path / "model.pt")
    plain = Net()
    from safetensors.torch import load_file

    weights = {key: value.cpu() for key, value in training.model.state_dict().items()}
    for state in (load_file(tmp_path / "model.safetensors"), torch.load(tmp_path / "model.pt", map_location="cpu")):
        plain.load_state_dict(state)
        assert all(torch.equal(value, weights[key]) for key, value in plain.state_dict().items())
