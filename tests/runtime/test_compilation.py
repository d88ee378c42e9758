"""Models that are compiled in place: what they compute, their keys, and which parts are compiled."""

from __future__ import annotations

import warnings

import pytest
import torch
from ranks import run_ranks
from shards import CAN_SHARD
from torch import nn

from runtime import (
    Accelerator,
    DistributedDataParallelKwargs,
    FullyShardedDataParallelPlugin,
    TorchDynamoPlugin,
)
from runtime.compilation import compilation
from runtime.errors import ConfigurationError

# dynamo looks at the gradients of what a graph is given, which PyTorch warns of and tests take for errors
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.inner(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.blocks = nn.ModuleList([Block(), Block(), Block()])
        self.last = nn.Linear(4, 1)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


class Counting:
    """A backend that runs the graph as it is, and counts those that it was given, and those of a `Block`."""

    def __init__(self):
        self.graphs = self.blocks = 0

    def __call__(self, graph, examples):
        self.graphs += 1
        self.blocks += "tanh" in graph.code
        return graph


def train(plugin=None, by_script="", precision="no", backend=None, **options):
    """The state after three steps, without a word of the compiler in its keys; and what was prepared."""
    torch._dynamo.reset()
    accelerator = Accelerator(
        cpu=True, dynamo_plugin=plugin, dynamo_backend=backend, mixed_precision=precision, **options
    )
    torch.manual_seed(0)
    model = Net()
    if by_script:
        model = torch.compile(model, backend=by_script)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for x in torch.randn(3, 8, 3):
        loss = model(x.chunk(accelerator.num_processes)[accelerator.process_index]).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    return accelerator.get_state_dict(model), accelerator.unwrap_model(model, keep_torch_compile=False)


def same(mine, expected, atol=0.0):
    assert list(mine) == list(expected)
    return all(torch.allclose(mine[key], value, atol=atol, rtol=0) for key, value in expected.items())


@pytest.mark.parametrize("precision", ["no", "bf16"])
@pytest.mark.parametrize("by_plugin", [True, False])
def test_a_compiled_model_stays_what_it_is(precision, by_plugin):
    expected, _ = train(precision=precision)
    counting = Counting()
    plugin = TorchDynamoPlugin(backend=counting, fullgraph=True) if by_plugin else None
    state, model = train(plugin, precision=precision, backend=None if by_plugin else "aot_eager")
    assert same(state, expected, 0.0 if by_plugin else 1e-6)
    assert type(model) is Net
    assert counting.graphs == by_plugin


def test_layers_that_are_repeated_are_compiled_once():
    counting = Counting()
    state, model = train(TorchDynamoPlugin(backend=counting, use_regional_compilation=True))
    assert same(state, train()[0])
    assert counting.blocks == 1
    assert counting.graphs in (1, 3)  # the layers beside the blocks are PyTorch's: before 2.14 dynamo took none
    assert model._compiled_call_impl is None


def test_models_that_the_script_has_compiled_stay_so():
    counting = Counting()
    state, model = train(TorchDynamoPlugin(backend=counting), by_script="eager")
    assert same(state, train()[0])
    assert type(model) is Net
    assert counting.graphs == 0


def compiled(name, **arguments):
    options = {
        "replicas": {},
        "averaged": {"kwargs_handlers": [DistributedDataParallelKwargs(find_unused_parameters=True)]},
        "shards": {
            "fsdp_plugin": FullyShardedDataParallelPlugin(
                auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["Block"]
            )
        },
    }[name]
    return train(**options, **arguments)[0]


def on_two():
    warnings.filterwarnings("ignore", message="The .grad attribute")
    found = {}
    for name in ("replicas", "averaged", "shards")[: 2 + CAN_SHARD]:
        counting = Counting()
        state, plain = compiled(name, plugin=TorchDynamoPlugin(backend=counting)), compiled(name)
        found[name] = (state, same(state, plain), counting.graphs > 0)
    by_script = compiled("replicas", by_script="eager")
    return found, by_script


def test_two_processes_compile_replicas_and_shards():
    expected, _ = train()
    (main, by_script), (other, _) = run_ranks(on_two, 2)
    for name, (state, is_same, was_compiled) in main.items():
        assert same(state, expected, 1e-6), name
        assert is_same
        assert was_compiled
        assert other[name][1:] == (True, True)
    assert same(by_script, expected, 1e-6)


def test_the_variables_of_the_launcher_are_read():
    assert compilation(None, None, {}) is None
    assert compilation(None, None, {"ACCELERATE_DYNAMO_BACKEND": "NO"}) is None
    assert compilation(None, "no", {"ACCELERATE_DYNAMO_BACKEND": "INDUCTOR"}) is None
    found = compilation(
        TorchDynamoPlugin(mode="max-autotune"),
        None,
        {
            "ACCELERATE_DYNAMO_BACKEND": "AOT_EAGER",
            "ACCELERATE_DYNAMO_MODE": "default",
            "ACCELERATE_DYNAMO_USE_FULLGRAPH": "True",
            "ACCELERATE_DYNAMO_USE_DYNAMIC": "False",
            "ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION": "yes",
        },
    )
    assert (found.backend, found.is_regional) == ("aot_eager", True)
    assert found.arguments == {"mode": "max-autotune", "fullgraph": True, "dynamic": False, "disable": False}


def test_one_place_says_how_models_are_compiled():
    with pytest.raises(ConfigurationError, match="both given"):
        Accelerator(cpu=True, dynamo_backend="eager", dynamo_plugin=TorchDynamoPlugin())
    with pytest.raises(ConfigurationError, match=r"'nvfuser' is not here\. PyTorch has: .*inductor"):
        Accelerator(cpu=True, dynamo_backend="NVFUSER").prepare(nn.Linear(1, 1))
