"""The TPU path on a device that stands in for one: what it computes is what the CPU computes.

The stand-in (`standin/`) is a device of PyTorch's own kind for such packages, in host memory, with the names, the
refusals and the process group of torch_tpu. What it cannot show is in docs/devices.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from runtime import (
    Accelerator,
    AcceleratorState,
    DistributedDataParallelKwargs,
    DistributedType,
    FullyShardedDataParallelPlugin,
    is_bf16_available,
    is_torch_tpu_available,
    set_seed,
    synchronize_rng_states,
)
from runtime.hardware import tpu_chips

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "standin"))

CLOSE = {"rtol": 0, "atol": 1e-6}  # the same kernels; only the order of sums may differ


@pytest.fixture(scope="session")
def library(request, tmp_path_factory):
    """The stand-in, compiled; kept in pytest's cache, so that this takes half a minute only once."""
    from compiled import NotBuilt, library

    cache = getattr(request.config, "cache", None)
    folder = cache.mkdir("standin-tpu") if cache is not None else tmp_path_factory.mktemp("standin")
    try:
        return str(library(folder))
    except NotBuilt as reason:
        pytest.skip(str(reason))


def begin(library):
    """Make the stand-in known to this process; without a library it goes on without one."""
    if library is not None:
        from tpu import install

        install(library)


class Net(nn.Module):
    """Statistics of batches, which are buffers, and a layer norm, which autocast computes in full precision."""

    def __init__(self, norm=nn.BatchNorm1d):
        super().__init__()
        self.first = nn.Linear(6, 8, bias=False)  # before batch statistics its gradient is nothing but rounding
        self.norm = norm(8)
        self.last = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 3))
        self.seen = None

    def forward(self, x):
        x = self.first(x)
        self.seen = x.dtype
        return self.last(torch.relu(self.norm(x)))


def data(size=22):
    made = torch.Generator().manual_seed(3)
    return TensorDataset(torch.randn(size, 6, generator=made), torch.randint(0, 3, (size,), generator=made))


def prepared(norm=nn.BatchNorm1d, **options):
    """An accelerator, and a model, an optimizer and a loader that it has prepared."""
    accelerator = Accelerator(**options)
    torch.manual_seed(5)
    net = Net(norm)
    return accelerator, *accelerator.prepare(
        net, torch.optim.AdamW(net.parameters(), lr=0.02), DataLoader(data(), batch_size=4, shuffle=True)
    )


def trained(accelerator, net, optimizer, loader, epochs=2):
    """The losses of each step."""
    losses = []
    for _ in range(epochs):
        net.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


def whole(library, shards, precision):
    """A training from the beginning to its end: its losses, weights, predictions, and where things were."""
    begin(library)
    plugin = FullyShardedDataParallelPlugin(min_num_params=20) if shards else None
    norm = nn.LayerNorm if shards else nn.BatchNorm1d
    accelerator, net, optimizer, loader = prepared(norm, fsdp_plugin=plugin, mixed_precision=precision)
    losses = trained(accelerator, net, optimizer, loader)
    net.eval()
    found = []
    with torch.no_grad():
        for x, y in accelerator.prepare_data_loader(DataLoader(data(13), batch_size=5)):
            found.append(accelerator.gather_for_metrics((net(x), y)))
    weights = {name: value.cpu() for name, value in accelerator.get_state_dict(net).items()}
    predictions, targets = (torch.cat(parts) for parts in zip(*found, strict=True))
    result = {
        "losses": torch.tensor(losses),
        "weights": weights,
        "predictions": predictions.cpu(),
        "targets": targets.cpu(),
        "placed": {str(x.device), str(predictions.device), str(accelerator.device)},
        "dtype": accelerator.unwrap_model(net).seen,
        "type": accelerator.distributed_type,
    }
    accelerator.end_training()
    return result


def assert_same(own, expected, **tolerance):
    for name in ("losses", "predictions", "targets"):
        torch.testing.assert_close(own[name], expected[name], **tolerance)
    assert own["weights"].keys() == expected["weights"].keys()
    for name, value in own["weights"].items():
        torch.testing.assert_close(value, expected["weights"][name], **tolerance)


@pytest.mark.parametrize(
    ("size", "shards", "precision", "kind"),
    [
        (1, False, "no", DistributedType.XLA),
        (2, False, "no", DistributedType.XLA),
        (2, False, "bf16", DistributedType.XLA),
        (2, True, "no", DistributedType.FSDP),
    ],
    ids=["one process", "ddp", "ddp, bf16", "fsdp2"],
)
def test_a_training_is_that_of_the_cpu(library, size, shards, precision, kind):
    on_cpu = run_ranks(whole, size, None, shards, precision)
    on_tpu = run_ranks(whole, size, library, shards, precision)
    for own, expected in zip(on_tpu, on_cpu, strict=True):
        assert own["placed"] == {"tpu:0"}
        assert expected["placed"] == {"cpu"}
        assert own["type"] is kind
        assert own["dtype"] is expected["dtype"] is (torch.bfloat16 if precision == "bf16" else torch.float32)
        assert len(own["targets"]) == 13  # every sample once, on every process
        tolerance = {"rtol": 0, "atol": 2e-2} if precision == "bf16" else CLOSE  # of two ways to round to 8 bits
        assert_same(own, expected, **tolerance)


def exchanged(library):
    """What all collectives of the runtime give, small and large, in order and out of step."""
    begin(library)
    accelerator = Accelerator()
    rank, device = accelerator.process_index, accelerator.device
    own = torch.arange(4.0, device=device) + 10 * rank
    large = torch.ones(3000, device=device) * (rank + 1)
    results = {
        "gather": accelerator.gather({"a": own, "b": own.to(torch.bool)}),
        "gather large": accelerator.gather(large)[::1000],
        "gather uneven": accelerator.gather(torch.full((rank + 1, 2), float(rank), device=device)),
        "pad": accelerator.pad_across_processes(torch.full((rank + 1,), 1.0, device=device)),
        "reduce": accelerator.reduce({"a": own, "n": 3}, "mean"),
        "reduce large": accelerator.reduce([large, large.long()], "sum")[1][:2],
        "largest": accelerator.reduce(large, "max")[:2],
        "objects": __import__("runtime").gather_object([rank]),
        "told": __import__("runtime").broadcast(own.clone(), from_process=1),
        "told large": __import__("runtime").broadcast([large.clone(), own.clone()], from_process=1)[0][:2],
    }
    accelerator.wait_for_everyone()
    backend = dist.get_backend()
    accelerator.end_training()
    return {name: _plain(value) for name, value in results.items()}, backend


def _plain(value):
    """Numbers and where they were, for comparison."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def test_exchanges_give_what_they_give_on_the_cpu(library):
    on_tpu, on_cpu = run_ranks(exchanged, 2, library), run_ranks(exchanged, 2, None)
    for (own, backend), (expected, _) in zip(on_tpu, on_cpu, strict=True):
        assert own == expected
        assert backend == "cpu:gloo,tpu:tpu_dist"
    assert on_tpu[0][0]["reduce large"] == [3, 3]
    assert on_tpu[1][0]["told large"] == [2.0, 2.0]


def around_the_forward(library):
    """Gradients that DistributedDataParallel does not average, and statistics of the rows of all processes."""
    begin(library)
    handler = DistributedDataParallelKwargs(find_unused_parameters=True)
    accelerator, net, optimizer, loader = prepared(nn.SyncBatchNorm, kwargs_handlers=[handler])
    losses = trained(accelerator, net, optimizer, loader, epochs=1)
    mean = accelerator.unwrap_model(net).norm.running_mean.cpu().clone()
    with accelerator.no_sync(net):
        accelerator.backward(net(next(iter(loader))[0]).sum())
    accelerator.end_training()
    return torch.tensor(losses), mean


def test_gradients_and_statistics_of_all_processes_are_joined(library):
    on_tpu, on_cpu = run_ranks(around_the_forward, 2, library), run_ranks(around_the_forward, 2, None)
    for own, expected in zip(on_tpu, on_cpu, strict=True):
        torch.testing.assert_close(own, expected, **CLOSE)
    torch.testing.assert_close(on_tpu[0][1], on_tpu[1][1], rtol=0, atol=0)


def saved(library, folder, behind):
    begin(library)
    accelerator, net, optimizer, loader = prepared()
    trained(accelerator, net, optimizer, loader, epochs=1)
    accelerator.save_state(folder, async_save=behind)
    accelerator.save_model(net, f"{folder}-alone", safe_serialization=False)
    accelerator.save({"net": accelerator.unwrap_model(net).state_dict()}, f"{folder}-alone/net.pt")
    rest = trained(accelerator, net, optimizer, loader, epochs=1)
    drawn = torch.rand(2, device=accelerator.device).cpu()
    accelerator.end_training()
    return torch.tensor(rest), drawn


def resumed(library, folder):
    begin(library)
    accelerator, net, optimizer, loader = prepared()
    accelerator.load_state(folder)
    rest = trained(accelerator, net, optimizer, loader, epochs=1)
    drawn = torch.rand(2, device=accelerator.device).cpu()
    accelerator.end_training()
    return torch.tensor(rest), drawn


@pytest.mark.parametrize(("size", "behind"), [(1, False), (2, True)], ids=["one process", "two, behind the training"])
def test_a_checkpoint_goes_on_there_and_on_the_cpu(library, tmp_path, size, behind):
    folder = str(tmp_path / "state")
    expected = run_ranks(saved, size, library, folder, behind)
    for name in ("pytorch_model.bin", "net.pt"):  # without map_location: nothing in it asks for a TPU
        torch.load(f"{folder}-alone/{name}")
    for own, (rest, drawn) in zip(run_ranks(resumed, size, library, folder), expected, strict=True):
        torch.testing.assert_close(own, (rest, drawn), rtol=0, atol=0)
    for (rest, _), (same, _) in zip(run_ranks(resumed, size, None, folder), expected, strict=True):
        torch.testing.assert_close(rest, same, **CLOSE)


def test_a_checkpoint_of_the_cpu_goes_on_there(library, tmp_path):
    folder = str(tmp_path / "state")
    (expected, _), *_ = run_ranks(saved, 1, None, folder, False)
    (rest, _), *_ = run_ranks(resumed, 1, library, folder)
    torch.testing.assert_close(rest, expected, **CLOSE)


def asked(library):
    """What a script can ask, and draw, before and after there is an accelerator."""
    begin(library)
    set_seed(7)
    first = torch.rand(3, device="tpu").cpu()
    with pytest.warns(UserWarning, match="fp16.*needs a GPU"):
        accelerator = Accelerator(mixed_precision="fp16")
    set_seed(7 + accelerator.process_index)
    own = torch.rand(3, device=accelerator.device).cpu()
    set_seed(7 + accelerator.process_index)
    synchronize_rng_states(["torch", "tpu"])
    told = torch.rand(3, device=accelerator.device).cpu()
    state = AcceleratorState()
    facts = (state.distributed_type, str(state.device), is_torch_tpu_available(), is_bf16_available())
    facts += (is_bf16_available(ignore_tpu=True), str(Accelerator(cpu=True).device))
    accelerator.free_memory()
    accelerator.end_training()
    return first, own, told, facts


def test_seeds_and_questions(library):
    (first, own, told, facts), (_, other, second, _) = run_ranks(asked, 2, library)
    torch.testing.assert_close(first, own, rtol=0, atol=0)
    assert not torch.equal(own, other)
    torch.testing.assert_close(told, second, rtol=0, atol=0)
    torch.testing.assert_close(told, first, rtol=0, atol=0)
    assert facts == (DistributedType.XLA, "tpu:0", True, True, False, "cpu")


def refused(library):
    """What torch_tpu refuses is refused here: a runtime that did one of these would fail these tests."""
    begin(library)
    accelerator = Accelerator()
    own = torch.ones(2, device="tpu")
    with pytest.raises(RuntimeError, match="does not support reduce"):
        dist.reduce(own, 0)
    parts = [torch.zeros(2 + rank, device="tpu") for rank in range(2)]
    with pytest.raises(RuntimeError, match="asymmetric"):
        dist.all_gather(parts, torch.ones(2 + accelerator.process_index, device="tpu"))
    for call in (torch.tpu.is_available, torch.tpu.synchronize, torch.tpu.get_rng_state):
        with pytest.raises(RuntimeError, match="internal to TorchTPU"):
            call()
    with pytest.raises(ValueError, match="index 1"):
        torch.accelerator.device_index(0) and torch._C and _set_from_torch(1)
    with pytest.raises(TypeError, match="numpy"):
        own.numpy()
    accelerator.wait_for_everyone()
    accelerator.end_training()


def _set_from_torch(index):
    """As PyTorch's own code would."""
    exec("torch.tpu.set_device(index)", {"torch": torch, "index": index, "__name__": "torch.standing"})  # noqa: S102


def test_the_stand_in_refuses_what_torch_tpu_refuses(library):
    run_ranks(refused, 2, library)


def test_chips_are_counted_without_torch(tmp_path):
    for number, (vendor, device) in enumerate(
        [("0x1ae0", "0x0063"), ("0x1ae0", "0x0063"), ("0x1ae0", "0x0042"), ("0x10de", "0x0063"), ("0x8086", "0x1237")]
    ):
        folder = tmp_path / f"0000:00:0{number}.0"
        folder.mkdir()
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "device").write_text(f"{device}\n")
        (folder / "iommu_group").symlink_to(tmp_path / "groups" / str(number))
    (tmp_path / "0000:00:09.0").mkdir()  # a device that tells nothing
    dev = tmp_path / "dev"
    assert tpu_chips(tmp_path, dev) == 0  # another container has them
    (dev / "vfio").mkdir(parents=True)
    (dev / "vfio" / "1").touch()
    assert tpu_chips(tmp_path, dev) == 1
    (dev / "accel0").touch()
    assert tpu_chips(tmp_path, dev) == 2
    assert tpu_chips(tmp_path / "missing", dev) == 0
    code = "import sys; from runtime.hardware import may_have_accelerator as m; m(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ)).returncode == 0
