"""Where a setting comes from, and which are refused."""

from __future__ import annotations

import itertools

import pytest

from runtime import Accelerator, DataLoaderConfiguration, GradScalerKwargs
from runtime.config import UNSUPPORTED_ARGUMENTS, MixedPrecision, Source, resolve
from runtime.errors import ConfigurationError, UnsupportedArgument
from runtime.handlers import Handlers

PRECISIONS = ("no", "bf16", "fp16")


@pytest.mark.parametrize(
    ("argument", "variable"),
    list(itertools.product([None, *PRECISIONS], [None, "no", "BF16", "fp16"])),
)
def test_precision_comes_from_argument_then_environment_then_default(argument, variable):
    environ = {} if variable is None else {"ACCELERATE_MIXED_PRECISION": variable}
    config = resolve({"mixed_precision": argument}, environ)

    expected = argument or (variable and variable.lower()) or "no"
    source = Source.ARGUMENT if argument else Source.ENVIRONMENT if variable else Source.DEFAULT
    assert config.mixed_precision == expected
    assert config.origin["mixed_precision"].source is source


@pytest.mark.parametrize(
    ("argument", "variable", "expected", "origin"),
    [
        (1, None, 1, "default"),
        (1, "4", 4, "environment (ACCELERATE_GRADIENT_ACCUMULATION_STEPS)"),
        (2, "4", 2, "argument (gradient_accumulation_steps)"),
        (2, None, 2, "argument (gradient_accumulation_steps)"),
    ],
)
def test_accumulation_steps_at_their_default_leave_the_environment_to_decide(argument, variable, expected, origin):
    environ = {} if variable is None else {"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": variable}
    config = resolve({"gradient_accumulation_steps": argument}, environ)

    assert config.gradient_accumulation_steps == expected
    assert str(config.origin["gradient_accumulation_steps"]) == origin


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("1", True), ("False", False), ("no", False)])
def test_cpu_is_read_from_the_environment(text, expected):
    assert resolve({"cpu": False}, {"ACCELERATE_USE_CPU": text}).cpu is expected


@pytest.mark.parametrize(
    ("arguments", "environ", "says"),
    [
        ({"mixed_precision": "fp8"}, {}, "'fp8' is not known. Known: no, bf16, fp16. It came from: argument"),
        ({}, {"ACCELERATE_MIXED_PRECISION": "half"}, "'half'.*environment \\(ACCELERATE_MIXED_PRECISION\\)"),
        ({"data_seed": "one"}, {}, "data_seed='one' is not a whole number. It came from: argument"),
        ({"device_placement": "maybe"}, {}, "'maybe' is neither yes nor no.*argument \\(device_placement\\)"),
        ({"gradient_accumulation_steps": 0}, {}, "0 is not a whole number of at least 1"),
        ({}, {"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "auto"}, "'auto' is not a whole number"),
        ({}, {"ACCELERATE_USE_CPU": "maybe"}, "'maybe' is neither yes nor no"),
        ({}, {"ACCELERATE_USE_DEEPSPEED": "true"}, "ACCELERATE_USE_DEEPSPEED=true is not supported"),
        ({}, {"ACCELERATE_USE_MEGATRON_LM": "true"}, "Launch without Megatron-LM"),
    ],
)
def test_bad_values_are_refused_with_their_origin(arguments, environ, says):
    with pytest.raises(ConfigurationError, match=says):
        resolve(arguments, environ)


@pytest.mark.parametrize("variable", ["ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_MEGATRON_LM"])
def test_engines_that_are_off_are_accepted(variable):
    assert resolve({}, {variable: "NO"}).mixed_precision is MixedPrecision.NO


@pytest.mark.parametrize("name", sorted(UNSUPPORTED_ARGUMENTS))
def test_arguments_of_accelerate_that_are_not_here_are_named(name):
    with pytest.raises(UnsupportedArgument, match=rf"Accelerator\({name}=\.\.\.\) is not supported"):
        Accelerator(cpu=True, **{name: "something"})
    assert Accelerator(cpu=True, **{name: None}).num_processes == 1


def test_unknown_arguments_are_a_type_error():
    with pytest.raises(TypeError, match="no argument 'mixed_precison'"):
        Accelerator(mixed_precison="bf16")


def test_split_batches_is_honoured_in_both_places():
    assert Accelerator(cpu=True, split_batches=True).split_batches
    assert Accelerator(cpu=True, split_batches=True).dataloader_config == DataLoaderConfiguration(
        split_batches=True, dispatch_batches=False
    )
    assert Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(split_batches=True)).split_batches
    with pytest.raises(ConfigurationError, match="contradicts"):
        Accelerator(cpu=True, split_batches=True, dataloader_config=DataLoaderConfiguration())


def test_handlers_are_one_of_a_kind():
    with pytest.raises(ConfigurationError, match="two GradScalerKwargs"):
        Accelerator(cpu=True, kwargs_handlers=[GradScalerKwargs(), GradScalerKwargs()])
    with pytest.raises(ConfigurationError, match=r"kwargs_handlers is a list: \[GradScalerKwargs\(\.\.\.\)\]"):
        Accelerator(cpu=True, kwargs_handlers=GradScalerKwargs())
    with pytest.raises(ConfigurationError, match="has a dict"):
        Accelerator(cpu=True, kwargs_handlers=[{}])

    class Small(GradScalerKwargs):
        """A script's own."""

    given = Small(init_scale=2.0)
    assert Handlers.sorted_from([given]).scaler is given
