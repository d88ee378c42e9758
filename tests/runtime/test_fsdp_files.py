"""Sharded models: what is loaded into them, how processes are arranged, what they start with, and what is refused."""

from __future__ import annotations

import pytest
import torch
from ranks import run_ranks
from shards import needs_shards
from torch import nn
from torch.utils.checkpoint import checkpoint

from runtime import Accelerator, FullyShardedDataParallelPlugin, ParallelismConfig
from runtime.errors import ConfigurationError, PrepareError, SaveError, UnsupportedArgument
from runtime.sharding import Arrangement, WrapBy, sharding
from runtime.strategies.units import units

BY_CLASS = {"auto_wrap_policy": "transformer_based_wrap", "transformer_cls_names_to_wrap": ["Linear"]}


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3))


def accelerator_of(parallelism=None, **options):
    plugin = FullyShardedDataParallelPlugin(**{**BY_CLASS, **options})
    return Accelerator(cpu=True, fsdp_plugin=plugin, parallelism_config=parallelism)


def step(accelerator, model, optimizer, seed):
    torch.manual_seed(seed)
    x = torch.randn(8, 3)
    if accelerator is None:
        model(x).square().mean().backward()
    else:
        own = x.chunk(accelerator.num_processes)[accelerator.process_index]
        accelerator.backward(model(own).square().mean())
    optimizer.step()
    optimizer.zero_grad()


def plain(model, steps=2, state=None, optimizer_state=None):
    """`model` trained alone, in eval mode of its batch statistics, from a state on."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    if state is not None:
        model.load_state_dict(state)
        optimizer.load_state_dict(optimizer_state)
    model.eval()
    for seed in range(steps):
        step(None, model, optimizer, seed)
    return model.state_dict(), optimizer.state_dict()


def largest_difference(mine, expected):
    assert list(mine) == list(expected)
    return max(float((mine[key] - value).abs().max()) for key, value in expected.items())


def loads(folder):
    """A plain checkpoint into shards, a step, and back; only the main process has read it."""
    accelerator = accelerator_of()
    model, other = net(1), net(2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    model, other, optimizer = accelerator.prepare(model, other, optimizer)
    kept = torch.load(f"{folder}/plain.pt") if accelerator.is_main_process else {"model": {}, "optimizer": {}}
    strategy = accelerator._strategy
    strategy.load_state_dict(model, kept["model"])
    strategy.load_optimizer_state(optimizer, kept["optimizer"])
    model.eval()
    for seed in range(2):
        step(accelerator, model, optimizer, seed)
    state, own = strategy.state_dict(model), strategy.optimizer_state(optimizer)
    accelerator.save_model(model, f"{folder}/saved", safe_serialization=False)
    with pytest.raises(SaveError, match=r"accelerator\.get_state_dict"):
        accelerator.save({"model": model.state_dict()}, f"{folder}/parts.pt")
    second = strategy.state_dict(other)
    errors = []
    for wrong in ({"0.weight": torch.zeros(5, 3)}, {**kept["model"], "0.weight": torch.zeros(1)}):
        with pytest.raises(RuntimeError, match=r"Missing key|size mismatch") as caught:
            strategy.load_state_dict(model, wrong)
        errors.append(type(caught.value).__name__)
    return state, own, second, errors


def starts_equal():
    """Processes that bring other values, or none, get those of the main process; batch statistics stay equal."""
    accelerator = accelerator_of(cpu_ram_efficient_loading=True)
    mine = net(accelerator.process_index)
    with torch.device("cpu" if accelerator.is_main_process else "meta"):
        empty = net()
        empty.tied = nn.Linear(5, 3)
        empty.tied.weight = empty[3].weight
        optimizer = torch.optim.SGD(empty.parameters(), lr=0.1)
    mine, empty, optimizer = accelerator.prepare(mine, empty, optimizer)
    assert empty.tied.weight is empty[3].weight
    assert {id(p) for p in empty.parameters()} == {id(p) for p in optimizer.param_groups[0]["params"]}
    mine.train()(torch.randn(4, 3) + accelerator.process_index)
    statistics = accelerator.gather(mine[1].running_mean)
    return [accelerator.get_state_dict(model) for model in (mine, empty)], statistics.view(2, -1)


class Reentrant(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x, order):
        for number in order:
            x = checkpoint(self.layers[number], x, use_reentrant=True)
        return x.sum()


def computes_again():
    """A layer may be computed again by a reentrant checkpoint once in a backward; twice is refused."""
    accelerator = accelerator_of()
    model = accelerator.prepare(Reentrant())
    x = torch.ones(2, 3, requires_grad=True)
    for order in ([0, 1], [1, 0]):
        accelerator.backward(model(x, order))
    with pytest.raises(PrepareError, match="use_reentrant=False"):
        accelerator.backward(model(x, [0, 0]))
    return True


def steps_unprepared():
    """An optimizer that is not prepared holds parameters that sharding has emptied."""
    accelerator = accelerator_of()
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    apart = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    model = accelerator.prepare(model)
    apart.step()
    accelerator.backward(model(torch.ones(4, 3)).sum())
    with pytest.raises(PrepareError, match="this SGD was not prepared"):
        optimizer.step()
    optimizer = accelerator.prepare(optimizer)
    optimizer.step()
    return True


def two(folder):
    return loads(folder), starts_equal(), computes_again(), steps_unprepared()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    state, optimizer = plain(net())
    torch.save({"model": state, "optimizer": optimizer}, folder / "plain.pt")
    return folder, run_ranks(two, 2, str(folder))


@needs_shards
def test_plain_checkpoints_load_into_shards_and_shards_into_plain_models(files):
    folder, (main, other) = files
    kept = torch.load(folder / "plain.pt")
    expected, expected_optimizer = plain(net(1), 2, kept["model"], kept["optimizer"])
    (state, optimizer, second, errors), (empty, nothing, _, same_errors) = main[0], other[0]
    assert empty == nothing == {}
    assert largest_difference(state, expected) < 1e-6
    for number, own in expected_optimizer["state"].items():
        assert largest_difference(optimizer["state"][number], own) < 1e-6
    assert largest_difference(second, net(2).state_dict()) == 0
    assert largest_difference(torch.load(folder / "saved/pytorch_model.bin"), expected) < 1e-6
    net().load_state_dict(state)
    assert errors == same_errors == ["RuntimeError"] * 2


@needs_shards
def test_all_start_with_the_values_of_the_main_process(files):
    _, (main, other) = files
    (mine, empty), statistics = main[1]
    assert other[1][0] == [{}, {}]
    expected = net(0).state_dict()
    for key in ("0.weight", "0.bias", "3.weight", "3.bias", "1.weight"):
        assert torch.equal(mine[key], expected[key])
    assert not any(value.isnan().any() for value in empty.values())
    assert torch.equal(empty["tied.weight"], empty["3.weight"])
    assert torch.equal(statistics[0], statistics[1])


def hybrid():
    """Two replicas of two shards each; the parameters, and the arrangement of them."""
    accelerator = accelerator_of(ParallelismConfig(dp_replicate_size=2, dp_shard_size=2, tp_size=1))
    model = net(accelerator.process_index)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    model, optimizer = accelerator.prepare(model, optimizer)
    model.eval()
    for seed in range(2):
        step(accelerator, model, optimizer, seed)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    weight = model[0].weight
    return accelerator.get_state_dict(model), weight.device_mesh.shape, tuple(weight.to_local().shape)


@needs_shards
def test_replicas_of_shards_compute_what_one_process_does():
    expected, _ = plain(net())
    results = run_ranks(hybrid, 4)
    assert largest_difference(results[0][0], expected) < 1e-6
    assert [result[1] for result in results] == [(2, 2)] * 4
    assert [result[2] for result in results] == [(3, 3), (2, 3)] * 2


def settings(plugin=None, parallelism=None, processes=4, **environ):
    return sharding(plugin, parallelism, environ, processes)


def test_nobody_asks_for_shards():
    assert settings() is None
    assert settings(ACCELERATE_USE_FSDP="false") is None
    assert settings(parallelism=ParallelismConfig(dp_replicate_size=4)) is None
    assert Accelerator(cpu=True, fsdp_plugin=FullyShardedDataParallelPlugin()).distributed_type == "NO"


@pytest.mark.parametrize("name", ["ACCELERATE_USE_FSDP", "ACCELERATE_USE_PARALLELISM_CONFIG"])
def test_a_variable_that_is_neither_yes_nor_no_is_refused(name):
    """It was taken for yes."""
    with pytest.raises(ConfigurationError, match=f"{name}='of' is neither yes nor no"):
        settings(**{name: "of"})


def test_what_the_launcher_of_accelerate_sets_is_read():
    found = settings(
        ACCELERATE_USE_FSDP="true",
        FSDP_VERSION="1",
        FSDP_SHARDING_STRATEGY="2",
        FSDP_OFFLOAD_PARAMS="true",
        FSDP_AUTO_WRAP_POLICY="TRANSFORMER_BASED_WRAP",
        FSDP_TRANSFORMER_CLS_TO_WRAP="Block,Head",
        FSDP_STATE_DICT_TYPE="SHARDED_STATE_DICT",
        FSDP_ACTIVATION_CHECKPOINTING="true",
        FSDP_FORWARD_PREFETCH="false",
        FSDP_MIN_NUM_PARAMS="100000000",
    )
    assert not found.reshard_after_forward
    assert (found.cpu_offload, found.writes_shards, found.activation_checkpointing) == (True, True, True)
    assert (found.wrap, found.class_names, found.min_parameters) == (WrapBy.CLASS, ("Block", "Head"), 10**8)


def test_arguments_win_over_the_environment():
    plugin = FullyShardedDataParallelPlugin(reshard_after_forward=True, state_dict_type="FULL_STATE_DICT")
    found = settings(plugin, FSDP_RESHARD_AFTER_FORWARD="false", FSDP_STATE_DICT_TYPE="SHARDED_STATE_DICT")
    assert found.reshard_after_forward
    assert not found.writes_shards


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("FULL_SHARD", (True, False)),
        ("SHARD_GRAD_OP", (False, False)),
        ("hybrid_shard", (True, True)),
        (5, (False, True)),
    ],
)
def test_strategies_of_the_first_fsdp_are_translated(said, expected):
    found = settings(FullyShardedDataParallelPlugin(sharding_strategy=said))
    assert (found.reshard_after_forward, found.is_hybrid) == expected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sharding_strategy": "NO_SHARD"}, "Leave FSDP out"),
        ({"forward_prefetch": True}, "forward_prefetch"),
        ({"state_dict_type": "LOCAL_STATE_DICT"}, "FULL_STATE_DICT or SHARDED_STATE_DICT"),
        ({"auto_wrap_policy": "by_name"}, "transformer_based_wrap"),
        ({"min_num_params": "many"}, "'many' is not a number"),
        ({"min_num_params": "inf"}, "'inf' is not a number"),
        (
            {"sharding_strategy": "FULL_SHARDS"},
            "sharding_strategy='FULL_SHARDS' is not known. Known: true.*D_OP",
        ),
        ({"reshard_after_forward": "perhaps"}, "reshard_after_forward='perhaps' is not known"),
        ({"cpu_offload": "perhaps"}, "cpu_offload='perhaps' is neither yes nor no"),
        ({"activation_checkpointing": "perhaps"}, "activation_checkpointing='perhaps' is neither"),
    ],
)
def test_bad_options_are_refused(options, says):
    with pytest.raises(ConfigurationError, match=says):
        settings(FullyShardedDataParallelPlugin(**options))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: FullyShardedDataParallelPlugin(param_init_fn=print), "before prepare"),
        (lambda: ParallelismConfig(tp_size=2), "Tensor parallelism is not here"),
        (lambda: ParallelismConfig(cp_size=2), "Context parallelism is not here"),
    ],
)
def test_fields_that_are_not_here_are_refused(make, says):
    with pytest.raises(UnsupportedArgument, match=says):
        make()


@pytest.mark.parametrize(
    "options",
    [
        {"fsdp_version": 1},
        {"use_orig_params": True},
        {"backward_prefetch": "BACKWARD_PRE"},
        {"mixed_precision_policy": {"param_dtype": torch.bfloat16, "buffer_dtype": torch.bfloat16}},
    ],
)
def test_options_without_effect_are_warned_about(options):
    with pytest.warns(UserWarning, match=next(iter(options))):
        settings(FullyShardedDataParallelPlugin(**options))


def test_sizes_must_be_those_of_the_processes():
    assert Arrangement(replicate=2).sizes(4) == (2, 2)
    with pytest.raises(ConfigurationError, match="times dp_shard_size=2 is not the number of processes, 6"):
        Arrangement(replicate=2, shard=2).sizes(6)
    with pytest.raises(ConfigurationError, match="start 2 processes"):
        settings(parallelism=ParallelismConfig(dp_replicate_size=2))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 8)])
        self.layers[1].weight = self.layers[0].weight
        self.attention = nn.MultiheadAttention(4, 2)


def chosen(model, **options):
    found = settings(FullyShardedDataParallelPlugin(**options))
    names = {id(layer): name for name, layer in model.named_modules()}
    return [names[id(unit)] for unit in units(model, found)]


def test_layers_become_units_by_class_size_or_function():
    model = Tied()
    assert chosen(model, **BY_CLASS) == ["layers.2"]  # the others share a weight
    assert chosen(model, auto_wrap_policy="size_based_wrap", min_num_params=40) == ["layers.2", "attention"]
    assert chosen(model, auto_wrap_policy="size_based_wrap") == []
    assert chosen(model) == []
    model._no_split_modules = ["MultiheadAttention"]
    assert chosen(model, auto_wrap_policy="transformer_based_wrap") == ["attention"]
    wide = lambda module, recurse, nonwrapped_numel: recurse or getattr(module, "out_features", 0) == 8  # noqa: E731
    assert chosen(model, auto_wrap_policy=wide) == ["layers.2"]
    with pytest.raises(ConfigurationError, match="no such layer"):
        chosen(model, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["Block"])
