"""What gather, reduce and their like give back on several processes."""

from __future__ import annotations

from array import array as array_of_bytes
from collections import defaultdict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from ranks import run_ranks
from torch.utils.data import TensorDataset

from runtime import Accelerator, broadcast, broadcast_object_list, gather_object
from runtime.data.plan import Share
from runtime.messages import DTYPES
from runtime.split import split

Pair = namedtuple("Pair", "a b")  # noqa: PYI024  the untyped kind, too


@dataclass(frozen=True)
class Result:
    scores: torch.Tensor
    nothing: None = None


def message(call):
    try:
        call()
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return "no error"


def gathers():
    a = Accelerator(cpu=True)
    r = a.process_index
    assert a.gather(torch.tensor(r)).tolist() == [0, 1]
    assert a.gather(torch.full((2,), float(r))).tolist() == [0, 0, 1, 1]
    assert a.gather(torch.full((r + 1, 3), r)).tolist() == [[0] * 3, [1] * 3, [1] * 3]
    assert a.gather(torch.empty(0, 2)).shape == (0, 2)
    for dtype in DTYPES:
        own = torch.tensor([[r, 1], [0, r]]).to(dtype)
        got = a.gather(own)
        assert got.dtype is dtype
        assert torch.equal(got[2 * r : 2 * r + 2].view(torch.uint8), own.view(torch.uint8))
    tree = {
        "x": (torch.tensor([r]), [torch.tensor(1.5 * r)]),
        "p": Pair(torch.ones(1), None),
        "d": Result(torch.ones(1)),
    }
    got = a.gather(defaultdict(list, tree))
    assert got["x"][0].tolist() == [0, 1]
    assert got["x"][1][0].tolist() == [0, 1.5]
    assert isinstance(got["p"], Pair)
    assert got["d"].scores.tolist() == [1, 1]
    assert got["new"] == []
    many = a.gather([torch.full((50,), i + r) for i in range(40)])
    assert [t[[0, 50]].tolist() for t in many] == [[i, i + 1] for i in range(40)]
    big = torch.randn(300, 300)
    assert torch.equal(a.gather(big)[300 * r : 300 * r + 300], big)
    assert torch.equal(a.gather(big.t())[300 * r : 300 * r + 300], big.t())
    assert not a.gather(torch.ones(1, requires_grad=True)).requires_grad

    assert a.gather_for_metrics([3.5 + r]) == [3.5, 4.5]
    assert a.gather_for_metrics(f"rank {r}") == ["rank 0", "rank 1"]
    assert a.gather_for_metrics({"a": r}) == [{"a": 0}, {"a": 1}]
    assert a.gather_for_metrics([torch.tensor(r)], use_gather_object=True) == [0, 1]
    assert gather_object([r, "x"]) == [0, "x", 1, "x"]
    assert broadcast_object_list([f"rank {r}", r]) == ["rank 0", 0]
    told = [r]
    assert broadcast_object_list(told, from_process=1) is told
    assert told == [1]
    padded = a.pad_across_processes({"a": torch.ones(r + 1, 2), "b": torch.ones(2)}, pad_index=-1)
    assert padded["a"].tolist() == ([[1, 1], [-1, -1]] if r == 0 else [[1, 1], [1, 1]])
    assert padded["b"].tolist() == [1, 1]
    assert a.pad_across_processes(torch.ones(1, r + 1), dim=1, pad_first=True).tolist() == [[r, 1.0]]
    told = {"x": torch.full((2,), float(r)), "y": [torch.full((700,), r)]}
    assert broadcast(told, from_process=1) is told
    assert told["x"].tolist() == [1, 1]
    assert told["y"][0].unique().tolist() == [1]
    assert broadcast(torch.tensor(r)).item() == 0
    ragged = a.gather([torch.full((1000 * (r + 1),), r), torch.tensor(r)])
    assert [part.numel() for part in ragged] == [3000, 2]
    assert gather_object([b"x" * 5000 * (r + 1)]) == [b"x" * 5000, b"x" * 10000]
    assert not a.check_trigger()
    if r == 1:
        a.set_trigger()
    assert [a.check_trigger(), a.check_trigger()] == [True, False]
    return [
        message(lambda: a.gather("text")),
        message(lambda: a.gather_for_metrics({"a": torch.ones(1), "b": "text"})),
        message(lambda: a.gather(torch.ones(1, r + 2))),
        message(lambda: a.gather([torch.ones(1)] * (r + 1))),
        message(lambda: a.gather(torch.ones(1).to(torch.float64 if r else torch.float32))),
        message(lambda: a.gather(torch.eye(2).to_sparse())),
    ]


def large_ones():
    a = Accelerator(cpu=True)
    told = [broadcast(torch.full((4000,), a.process_index).to(dtype), from_process=1) for dtype in DTYPES]
    assert [tensor.dtype for tensor in told] == list(DTYPES)
    assert all(tensor.to(torch.complex128).eq(1).all() for tensor in told)
    return a.reduce(torch.full((4000,), 1 + a.process_index, dtype=torch.int16)).unique().tolist()


def test_large_tensors_of_any_dtype_travel():
    """They go by themselves, and gloo and NCCL do not know all dtypes."""
    assert run_ranks(large_ones, 2) == [[3], [3]]


def test_gather_joins_in_rank_order():
    for text, mixed, shapes, numbers, dtypes, sparse in run_ranks(gathers, 2):
        assert text == "TypeError: gather takes tensors, and got: str. Use gather_object for other objects."
        assert mixed.startswith("CollectiveError: gather_for_metrics got tensors and a str in one container. Make two")
        assert "rank 0: (1, 2), rank 1: (1, 3)" in shapes
        assert "different numbers of tensors to gather:\n  rank 0: 1 tensors    at " in numbers
        assert numbers.count("test_collectives.py:") == 2
        assert "torch.float32" in dtypes
        assert "torch.float64" in dtypes
        assert "torch.sparse_coo" in sparse


PARTS = [  # what is split, with padding?, the parts of three processes
    ([1, 2, 3, 4], False, [[1, 2], [3], [4]]),
    ([1, 2, 3, 4], True, [[1, 2], [3, 4], [4, 4]]),
    ((1, 2), False, [(1,), (2,), ()]),
    ((1, 2), True, [(1,), (2,), (2,)]),
    ("abcde", False, ["ab", "cd", "e"]),
    ({"a": [1, 2], "b": {"c": (3, 4)}}, True, [{"a": [i], "b": {"c": (i + 2,)}} for i in (1, 2, 2)]),
]


def test_inputs_are_split_between_processes():
    for inputs, apply_padding, parts in PARTS:
        assert [split(inputs, rank, 3, apply_padding) for rank in range(3)] == parts
    rows = torch.arange(8).view(4, 2)
    assert split(rows, 2, 3, apply_padding=True).tolist() == [[6, 7], [6, 7]]
    array = split({"x": np.arange(4)}, 2, 3, apply_padding=True)["x"]
    assert (type(array), array.tolist()) == (np.ndarray, [3, 3])
    assert split(range(4), 0, 3, apply_padding=True) == range(2)
    with Accelerator(cpu=True).split_between_processes(rows) as own:
        assert own is rows
    with pytest.raises(ValueError, match=r"differ in length: \{'a': 1, 'b': 2\}"):
        split({"a": [1], "b": [1, 2]}, 0, 2)
    for inputs in (3, {3, 4}, torch.tensor(3)):
        with pytest.raises(TypeError, match=f"cannot cut a {type(inputs).__name__}"):
            split(inputs, 0, 2)
    with pytest.raises(TypeError, match="cannot repeat the last element of a array"):
        split(array_of_bytes("b", [1, 2, 3]), 1, 2, apply_padding=True)


def test_the_parts_of_data_sets_and_ranges_are_such():
    """A slice of a TensorDataset is a tuple of tensors, and one of most others is an error."""
    data = TensorDataset(torch.arange(3))
    parts = [split(data, rank, 2, apply_padding=True) for rank in range(2)]
    assert [[row.item() for (row,) in own] for own in parts] == [[0, 1], [2, 2]]
    assert [list(split(range(3), rank, 2, apply_padding=True)) for rank in range(2)] == [[0, 1], [2, 2]]


def reduces():
    a = Accelerator(cpu=True)
    r = a.process_index
    own = torch.tensor([1.0, r])
    assert a.reduce(own).tolist() == [2, 1]
    assert own.tolist() == [1, r]
    assert a.reduce(own, "mean").tolist() == [1, 0.5]
    assert a.reduce(own, scale=3.0).tolist() == [6, 3]
    got = a.reduce({"n": 2**60 + r, "loss": 0.1 * (r + 1), "b": torch.tensor([True]), "c": torch.tensor(1j), "z": None})
    assert (got["n"], type(got["n"])) == (2**61 + 1, int)
    assert (got["loss"], type(got["loss"])) == (0.1 + 0.2, float)
    assert got["b"].tolist() == [2]
    assert got["c"].item() == 2j
    assert got["z"] is None
    assert a.reduce(3 + r, "mean") == 3.5
    assert a.reduce(torch.tensor([3 + r]), "mean").tolist() == [3.5]
    single, array = a.reduce((np.float32(r + 0.5), np.array([r, 2])))
    assert (type(single), single, array.tolist()) == (np.float32, 2.0, [1, 4])
    many = 2**25 + 1 + 2 * r  # float32 has no such number
    assert a.reduce(many, "mean") == 2**25 + 2
    assert a.reduce(many, scale=0.5) == 2**25 + 2
    assert a.reduce((np.int64(many), np.array([many])), "mean") == (2**25 + 2, [2**25 + 2])
    assert type(a.reduce(np.float64(r))) is np.float64
    assert a.reduce(torch.ones(2, dtype=torch.bfloat16)).tolist() == [2, 2]
    assert a.reduce(torch.ones(2, dtype=torch.float16)).tolist() == [2, 2]
    assert a.reduce(torch.tensor([1.0 - r, r]), "max").tolist() == [1, 1]
    assert a.reduce(torch.full((3000,), r), "max").sum() == 3000
    for count in (1, 3000):  # what is no number is no smaller, on whichever process it is
        for rank in (0, 1):
            lost = a.reduce(torch.full((count,), torch.nan if r == rank else 1.0), "max")
            assert lost.isnan().all()
    assert a.reduce(own, "none").tolist() == [1, r]
    return message(lambda: a.reduce(own, "min")), message(lambda: a.reduce("text"))


def summed_with_gradient(start):
    """A sum over all processes that the program goes on with in place, and what comes back to its own summand."""
    a = Accelerator(cpu=True)
    weight = torch.tensor(start, requires_grad=True)
    joined = a.reduce(weight * (a.process_index + 1))
    torch.diagonal(joined.reshape(1, 1)).add_(-1)
    joined.pow(2).sum().backward()
    mean = a.reduce(weight * 2, "mean")
    with torch.no_grad():
        told = a.reduce(weight)
    return (
        joined.tolist(),
        weight.grad.tolist(),
        torch.autograd.grad(mean.sum(), weight)[0].tolist(),
        told.requires_grad,
    )


def test_what_is_reduced_hands_its_gradient_to_each_summand():
    first, second = run_ranks(summed_with_gradient, 2, [3.0])
    assert first == ([8.0], [16.0], [1.0], False)
    assert second == ([8.0], [32.0], [1.0], False)
    assert summed_with_gradient([3.0]) == ([2.0], [4.0], [2.0], False)


def test_reduce_sums_and_averages():
    for kind, text in run_ranks(reduces, 2):
        assert kind == "ConfigurationError: reduction='min' is not known. Known: sum, mean, max, none."
        assert text == "TypeError: reduce takes tensors and numbers, and got a str."


METRICS = [  # rows per rank, rows that count, what the ranks bring (None: all the same shape as rows), what comes back
    ((2, 1), (2, 1), [[1, 2], [3]], [1, 2, 3]),
    ((1, 1), (1, 0), [[1], [1]], [1]),
    ((4, 4), (4, 1), [[1, 2, 3, 4], [5, 1, 2, 3]], [1, 2, 3, 4, 5]),
    ((2, 1), (2, 1), [[1, 2], 3], [1, 2, 3]),  # the row of rank 1 was squeezed
    ((2, 1), (2, 1), [[[1, 2], [3, 4]], [5, 6]], [[1, 2], [3, 4], [5, 6]]),  # the same with columns
    ((2, 2), (2, 2), [7, 8], [7, 8]),  # a mean per rank
    ((1, 1), (1, 0), [7, 8], [7]),  # a mean over padding
    ((2, 1), (2, 1), [[1, 2, 3], [4, 5, 6]], [1, 2, 3, 4, 5, 6]),  # not rows
    ((1, 1), (1, 0), [[1, 2, 3], [4, 5, 6]], [1, 2, 3]),
]


def metrics():
    from runtime.metrics import gather_for_metrics

    a = Accelerator(cpu=True)
    results = []
    for rows, valid, brought, _ in METRICS:
        share = Share(rows, valid, is_one_batch=True)
        results.append(gather_for_metrics(a._world, torch.tensor(brought[a.process_index]), share).tolist())
    for rows, valid, brought, _ in (METRICS[0], METRICS[2]):
        objects = [str(value) for value in brought[a.process_index]]
        results.append(gather_for_metrics(a._world, objects, Share(rows, valid, is_one_batch=True)))
    return results


def test_gather_for_metrics_drops_what_does_not_count():
    for results in run_ranks(metrics, 2):
        assert results[:-2] == [expected for *_, expected in METRICS]
        assert results[-2:] == [["1", "2", "3"], ["1", "2", "3", "4", "5"]]


def one_row_of_each():
    a = Accelerator(cpu=True)
    labels = torch.arange(6).reshape(1, 2, 3) + 6 * a.process_index
    own = {"few": labels, "many": labels.expand(4, 2, 3).contiguous(), "numbers": labels[:, 0, 0]}
    for call in (a.gather, a.gather_for_metrics):
        got = call(own)
        assert all(each.is_contiguous() for each in got.values())
        assert got["few"].view(-1).tolist() == list(range(12))


def test_what_is_gathered_can_be_seen_as_one_row():
    run_ranks(one_row_of_each, 2)


def found_in_few():
    """Rank 0 has found nothing in its samples: a list of empty lists, or of nothing at all."""
    a = Accelerator(cpu=True)
    r = a.process_index
    return [
        a.gather_for_metrics([[[]], [["cat"], []]][r]),
        a.gather_for_metrics([[], [{"box": 1}]][r]),
        a.gather_for_metrics([]),
        a.gather_for_metrics((torch.ones(1), None))[1],
        message(lambda: a.gather_for_metrics([[], [torch.ones(2)]][r])),
    ]


def test_lists_in_which_some_processes_have_nothing_are_objects():
    for labels, boxes, nothing, none, tensors in run_ranks(found_in_few, 2):
        assert labels == [[], ["cat"], []]
        assert boxes == [{"box": 1}]
        assert nothing == []
        assert none is None
        assert "rank 0: gather_for_metrics of objects    at " in tensors
        assert "rank 1: gather_for_metrics    at " in tensors


def after_the_end():
    a = Accelerator(cpu=True)
    model = a.prepare(torch.nn.Linear(1, 1))
    a.end_training()
    a.wait_for_everyone()  # nobody to wait for
    calls = (
        lambda: a.gather(torch.ones(1)),
        lambda: a.reduce(torch.ones(5000)),
        lambda: a.gather_for_metrics(["a"]),
        a.check_trigger,
        lambda: a.backward(model(torch.ones(1, 1)).sum()),
    )
    return [message(call) for call in calls]


def test_what_needs_all_processes_says_after_the_end_that_they_have_parted():
    for told in run_ranks(after_the_end, 2):
        for text, call in zip(told, ("gather", "reduce", "gather_for_metrics", "check_trigger", ""), strict=True):
            assert text.startswith(f"WorldError: {call}"), text
            assert "this process has left the others, in end_training()" in text


def test_on_one_process_data_come_back_as_they_are():
    a = Accelerator(cpu=True)
    for data in (torch.tensor(1.0), {"a": torch.ones(2), "b": "text"}, [3.5], "text"):
        assert a.gather_for_metrics(data) is data
        assert a.gather_for_metrics(data, use_gather_object=True) is data
    own = torch.ones(2)
    assert a.gather(own) is own
    assert a.pad_across_processes(own) is own
    assert gather_object([1]) == [1]
    reduced = a.reduce(own)
    assert reduced is not own
    assert torch.equal(reduced, own)
    for reduction in ("sum", "mean", "max", "none"):
        for value in (101, 0.5, True, np.int64(3), np.float32(0.5), torch.tensor(3), torch.tensor(True)):
            got = a.reduce(value, reduction)
            assert (str(got), type(got)) == (str(value), type(value))
    array = np.array([1, 2])
    assert a.reduce(array, "mean") is not array
    assert a.reduce(array, "mean").dtype == array.dtype
    assert a.reduce({"seen": 101, "none": None}, "mean") == {"seen": 101, "none": None}
    assert a.reduce(3, "mean", scale=0.5) == 1.5
    with pytest.raises(ValueError, match="reduction='min'"):
        a.reduce(own, "min")
