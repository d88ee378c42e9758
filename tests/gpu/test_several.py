"""Two processes that share a GPU, joined by NCCL: what they exchange, and that they train as one does."""

from __future__ import annotations

import pytest
import torch
from on_gpu import DEVICE, ON_CPU, accelerator, on_two
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from runtime import DistributedDataParallelKwargs, LocalSGD, ProjectConfiguration, broadcast_object_list
from runtime.errors import CollectiveError

SAMPLES = 37  # no number of batches shares them out evenly
GROUP = "gloo" if ON_CPU else "nccl"


def told_of_all():
    """Every call, with tensors on the GPU, on the host, of other dtypes, and objects."""
    own = accelerator()
    rank = own.process_index
    here = torch.arange(3, device=own.device) + 10 * rank
    words = [f"rank {rank}"]
    results = {
        "group": torch.distributed.get_backend(),
        "device": own.device.type,
        "gathered": own.gather({"here": here, "host": here.cpu(), "half": here.to(torch.bfloat16), "flag": here > 5}),
        "uneven": own.gather(torch.full((1 + rank, 2), float(rank), device=own.device)),
        "many": [float(x.sum()) for x in own.gather([torch.full((1000, 10), 1.0, device=own.device)] * 3)],
        "sum": own.reduce(here),
        "mean": own.reduce(here.float(), "mean"),
        "numbers": own.reduce((rank + 1, 0.5)),
        "large": float(own.reduce(torch.ones(1 << 20, device=own.device)).sum()),
        "padded": own.pad_across_processes(torch.ones(1 + rank, device=own.device)).shape,
        "objects": own.gather_for_metrics(words),
        "list": broadcast_object_list([rank, "a"], from_process=1),
    }
    with own.split_between_processes(list(range(5))) as part:
        results["part"] = list(part)
    if rank == 1:
        own.set_trigger()
    results["trigger"] = own.check_trigger()
    own.wait_for_everyone()
    own.end_training()
    return torch.utils._pytree.tree_map(lambda x: x.cpu() if isinstance(x, torch.Tensor) else x, results)


def test_what_is_exchanged_is_right():
    first, second = on_two(told_of_all)
    assert first["group"] == GROUP
    assert first["device"] == DEVICE.type
    assert first["gathered"]["here"].tolist() == [0, 1, 2, 10, 11, 12]
    assert first["gathered"]["host"].tolist() == [0, 1, 2, 10, 11, 12]
    assert first["gathered"]["half"].dtype is torch.bfloat16
    assert first["gathered"]["flag"].tolist() == [False] * 3 + [True] * 3
    assert first["uneven"].tolist() == [[0, 0], [1, 1], [1, 1]]
    assert first["many"] == [20_000.0] * 3
    assert first["sum"].tolist() == [10, 12, 14]
    assert first["mean"].tolist() == [5, 6, 7]
    assert first["numbers"] == (3, 1.0)
    assert first["large"] == 2 << 20
    assert first["padded"] == (2,)
    assert first["objects"] == ["rank 0", "rank 1"]
    assert first["list"] == second["list"] == [1, "a"]
    assert (first["part"], second["part"]) == ([0, 1, 2], [3, 4])
    assert first["trigger"] is second["trigger"] is True


def evaluates():
    """Every sample once, in order, whatever the number of processes."""
    own = accelerator()
    loader = own.prepare(DataLoader(TensorDataset(torch.arange(SAMPLES)), batch_size=4))
    seen, names = [], []
    for (x,) in loader:
        seen.append(own.gather_for_metrics(x))
        names += own.gather_for_metrics([f"sample {int(one)}" for one in x])
    own.end_training()
    return torch.cat(seen).tolist(), names


def test_metrics_see_each_sample_once():
    for seen, names in on_two(evaluates):
        assert seen == list(range(SAMPLES))
        assert names == [f"sample {number}" for number in range(SAMPLES)]


def trains(precision, window, layer="none"):
    """Losses and weights; each step sees the same samples on any number of processes."""
    own = accelerator(mixed_precision=precision, gradient_accumulation_steps=window, split_batches=True)
    torch.manual_seed(0)
    middle = nn.SyncBatchNorm(32) if layer == "joined" else nn.Identity()
    model = nn.Sequential(nn.Linear(6, 32), middle, nn.Tanh(), nn.Linear(32, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(96, 6), torch.randn(96, 3))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model, optimizer, loader = own.prepare(model, optimizer, loader)
    losses = []
    for _ in range(2):
        for x, y in loader:
            with own.accumulate(model):
                loss = nn.functional.mse_loss(model(x), y)
                own.backward(loss)
                if own.sync_gradients:
                    own.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(float(own.reduce(loss.detach(), "mean")))
    weights = [parameter.detach().cpu() for parameter in own.unwrap_model(model).parameters()]
    own.end_training()
    return losses, torch.cat([weight.flatten() for weight in weights])


TRAININGS = {
    "full precision": ("no", 1, "none", 1e-5),
    "windows": ("no", 2, "none", 1e-5),
    "bf16": ("bf16", 1, "none", 3e-2),
    "fp16 and windows": ("fp16", 2, "none", 1e-2),
    "joined statistics": ("no", 1, "joined", 1e-4),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_two_processes_train_as_one(name):
    if ON_CPU and name == "joined statistics":
        pytest.skip("PyTorch's layer refuses the CPU; there the runtime's own stands in for it")
    *case, tolerance = TRAININGS[name]
    (mine, weights), (other, others) = on_two(trains, *case)
    expected, _ = trains(*case)
    assert mine == other
    assert torch.equal(weights, others)
    assert torch.allclose(torch.tensor(mine), torch.tensor(expected), rtol=tolerance, atol=tolerance)


class Halves(nn.Module):
    """Only some steps use the second layer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, both):
        return self.second(self.first(x)) if both else self.first(x)


def some_are_missing():
    own = accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])
    torch.manual_seed(0)
    model = own.prepare(Halves())
    optimizer = own.prepare(torch.optim.SGD(model.parameters(), lr=0.1))
    x = torch.randn(2, 8, 4)[own.process_index].to(own.device)
    for both in (True, False, True):
        own.backward(model(x, both).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    result = own.gather(weights[None]).cpu()
    own.end_training()
    return result


def test_gradients_that_are_missing_are_no_harm():
    first, _ = on_two(some_are_missing)
    assert torch.equal(first[0], first[1])


def apart_for_a_while():
    """Local SGD."""
    own = accelerator()
    torch.manual_seed(0)
    model = own.prepare(nn.Linear(3, 1))
    optimizer = own.prepare(torch.optim.SGD(model.parameters(), lr=0.1))
    with LocalSGD(own, model, local_sgd_steps=3) as local:
        for _ in range(6):
            own.backward(model(torch.randn(4, 3, device=own.device) + own.process_index).square().mean())
            optimizer.step()
            optimizer.zero_grad()
            local.step()
    result = own.gather(own.unwrap_model(model).weight.detach()).cpu()
    own.end_training()
    return result


def test_local_steps_are_averaged():
    first, _ = on_two(apart_for_a_while)
    assert torch.equal(first[0], first[1])


def saves(folder, behind):
    own = accelerator(project_config=ProjectConfiguration(folder, automatic_checkpoint_naming=True))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    model, optimizer, loader = own.prepare(model, optimizer, DataLoader(data, batch_size=4, shuffle=True))

    def epoch():
        losses = []
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            own.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    epoch()
    own.save_state(async_save=behind)
    expected = epoch()
    own.wait_for_save()
    own.load_state()
    again = epoch()
    own.end_training()
    return again == expected


def test_processes_save_and_go_on_together(tmp_path):
    assert on_two(saves, str(tmp_path / "now"), False) == [True, True]
    assert on_two(saves, str(tmp_path / "behind"), True) == [True, True]


def differ():
    """Calls that do not fit together, with the watch of debug mode."""
    own = accelerator(debug=True)
    rank = own.process_index
    told = []
    for call in (
        lambda: own.gather(torch.ones(2, device=own.device)) if rank else own.wait_for_everyone(),
        lambda: own.reduce(torch.ones(2 + rank, device=own.device)),
    ):
        try:
            call()
        except CollectiveError as error:
            told.append(str(error))
    total = own.gather(torch.tensor(rank, device=own.device)).tolist()
    own.end_training()
    return told, total


def test_calls_that_differ_are_named():
    for (calls, shapes), total in on_two(differ):
        assert "rank 0: wait_for_everyone    at " in calls
        assert "different shapes to reduce" in shapes
        assert total == [0, 1]
