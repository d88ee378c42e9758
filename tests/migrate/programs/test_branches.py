"""What tests ask of the place where a process runs."""

import ast

import pytest

from migrate.programs.processes.branches import Branches, Side

HEAD = """
import argparse, os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
"""

HELPERS = """
def is_distributed():
    return dist.is_available() and dist.is_initialized()
def get_rank():
    if not is_distributed():
        return 0
    return dist.get_rank()
def get_world_size():
    return dist.get_world_size() if is_distributed() else 1
def is_main_process():
    return get_rank() == 0
"""

CASES = {
    "the rank": ("", "dist.get_rank() == 0", {Side.MAIN}, {Side.OTHERS}),
    "the other way round": ("", "0 != dist.get_rank()", {Side.OTHERS}, {Side.MAIN}),
    "the rank's truth": ("", "not dist.get_rank()", {Side.MAIN}, {Side.OTHERS}),
    "a name for it": ("rank = dist.get_rank()", "rank < 1", {Side.MAIN}, {Side.OTHERS}),
    "a name for the answer": ("main = dist.get_rank() == 0", "main", {Side.MAIN}, {Side.OTHERS}),
    "the environment": ("rank = int(os.environ['RANK'])", "rank > 0", {Side.OTHERS}, {Side.MAIN}),
    "with a default": ("rank = int(os.environ.get('RANK', 0))", "rank == 0", {Side.MAIN}, {Side.OTHERS}),
    "whether it was launched": ("", "'WORLD_SIZE' in os.environ", {Side.SEVERAL}, {Side.ONE}),
    "functions of the project": (HELPERS, "is_main_process()", {Side.MAIN}, {Side.OTHERS}),
    "how many, by a function": (HELPERS, "get_world_size() > 1", {Side.SEVERAL}, {Side.ONE}),
    "a number for alone": ("rank = int(os.getenv('LOCAL_RANK', -1))", "rank == -1", {Side.ONE}, {Side.SEVERAL}),
    "one of two ranks": ("rank = int(os.getenv('RANK', -1))", "rank in [-1, 0]", {Side.MAIN}, {Side.OTHERS}),
    "both": ("", "dist.is_initialized() and dist.get_rank() == 0", {Side.SEVERAL, Side.MAIN}, set()),
    "alone or the first": ("", "not dist.is_initialized() or dist.get_rank() == 0", {Side.MAIN}, {Side.OTHERS}),
    "the first on each machine": ("", "int(os.environ['LOCAL_RANK']) == 0", {Side.LOCAL_MAIN}, {Side.LOCAL_OTHERS}),
    "a GPU": ("", "torch.cuda.is_available()", {Side.CUDA}, {Side.HOST}),
    "a GPU that is wanted": ("use = wanted() and torch.cuda.is_available()", "use", {Side.CUDA}, set()),
    "GPUs": ("", "torch.cuda.device_count() > 1", {Side.MANY_DEVICES}, {Side.FEW_DEVICES}),
    "the kind of device": ("device = torch.device(name)", "device.type == 'cuda'", {Side.CUDA}, set()),
    "a flag that joins": (
        "if args.distributed:\n    dist.init_process_group('nccl')",
        "args.distributed",
        {Side.SEVERAL},
        {Side.ONE},
    ),
    "what the group is told": (
        "dist.init_process_group('nccl', rank=me, world_size=n)",
        "me == 0",
        {Side.MAIN},
        {Side.OTHERS},
    ),
    "a global": (
        "rank = 0\ndef join():\n    global rank\n    rank = dist.get_rank()\njoin()",
        "rank == 0",
        {Side.MAIN},
        {Side.OTHERS},
    ),
    "true where there is one": (
        "def is_main():\n    if not dist.is_initialized():\n        return True\n    return dist.get_rank() == 0",
        "is_main()",
        {Side.MAIN},
        {Side.OTHERS},
    ),
    "true for another reason": (
        "def is_main():\n    if ready():\n        return True\n    return dist.get_rank() == 0",
        "is_main()",
        set(),
        {Side.OTHERS},
    ),
    # what is not known
    "a name alone": ("rank = compute()", "rank == 0", set(), set()),
    "a name that is something else, too": ("rank = dist.get_rank()\nrank = best()", "rank == 0", set(), set()),
    "another rank": ("", "dist.get_rank() == n", set(), set()),
    "either": ("", "verbose or dist.get_rank() == 0", set(), {Side.OTHERS}),
}


@pytest.mark.parametrize("name", CASES)
def test_sides(analysed, name):
    before, test, holds, fails = CASES[name]
    parser = "args = argparse.ArgumentParser().parse_args()\n"
    facts, _ = analysed(f"{HEAD}{parser}{before}\nif {test}:\n    inside()\nelse:\n    outside()\n")
    branches = Branches(facts)
    calls = {ast.unparse(use.node.func): use.node for use in facts.calls_anywhere}

    assert branches.around(calls["inside"]) == holds
    assert branches.around(calls["outside"]) == fails


def test_the_first_parameter_of_a_spawned_function(analysed):
    source = "def worker(gpu, n):\n    if gpu == 0:\n        inside()\nmp.spawn(worker, nprocs=2, args=(2,))\n"
    facts, _ = analysed(HEAD + source)
    (branch,) = Branches(facts).all

    assert [meaning.holds for meaning in branch.meanings] == [Side.LOCAL_MAIN]


def test_what_a_caller_hands_over(analysed):
    source = "def save(is_main):\n    if is_main:\n        inside()\nsave(dist.get_rank() == 0)\n"
    facts, _ = analysed(HEAD + source)
    (branch,) = Branches(facts).all

    assert [meaning.holds for meaning in branch.meanings] == [Side.MAIN]


def test_a_parameter_with_a_caller_that_differs_is_not_known(analysed):
    source = "def save(is_main):\n    if is_main:\n        inside()\nsave(dist.get_rank() == 0)\nsave(best())\n"
    facts, _ = analysed(HEAD + source)

    assert Branches(facts).all == ()
