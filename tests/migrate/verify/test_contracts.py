"""Each contract is seen to hold, and to be broken by the conversion that breaks it and by no other."""

import pytest

from migrate.verify.model import Outcome

pytestmark = pytest.mark.long

#: What is done to the right conversion: what is replaced, by what.
SABOTAGE = {
    "another learning rate": ("lr=0.1", "lr=0.2"),
    "a number is drawn": ("for epoch in", "torch.rand(1)\nfor epoch in"),
    "the loss grows with the processes": ("backward(loss)", "backward(loss * accelerator.num_processes)"),
    "each process counts its share": ("outputs, targets = accelerator.gather_for_metrics((outputs, targets))", "pass"),
    "all processes speak": ("accelerator.print", "print"),
    "all processes write": ("accelerator.save", "torch.save"),
    "nothing is saved": ("accelerator.save(", "(lambda *_: None)("),
    "the schedule goes by processes": (
        "    scheduler.step()",
        "    [scheduler.step() for _ in range(accelerator.num_processes)]",
    ),
    "keys with a prefix": (
        "accelerator.unwrap_model(model).state_dict()",
        "{f'module.{k}': v for k, v in model.state_dict().items()}",
    ),
    "a step of one process": (
        "        optimizer.step()",
        "        if accelerator.is_main_process:\n            optimizer.step()",
    ),
    "it fails on two": ("model.eval()", "1 / (2 - accelerator.num_processes)"),
}
#: Which of them are done together, and what that breaks: this, and nothing else.
BROKEN = (
    (("another learning rate",), {"E1/1"}),
    (("a number is drawn", "all processes write"), {"E1/1", "E2/2", "E4/2"}),
    (("the loss grows with the processes", "the schedule goes by processes"), {"E2/2", "E5/2"}),
    (("each process counts its share", "keys with a prefix"), {"E3/2", "E6/2"}),
    (("all processes speak", "a step of one process"), {"E4/2", "ranks/2"}),
    (("nothing is saved",), {"E1/1", "E4/2"}),
    (("it fails on two",), {"runs/2"}),
)


def failed(verification):
    return {f"{each.contract.code}/{each.processes}" for each in verification.failed}


def verdict(verification, code, processes=1):
    return next(v for v in verification.verdicts if (v.contract.code, v.processes) == (code, processes))


def test_a_right_conversion_keeps_all(prove, converted):
    found = prove(converted=converted, processes=(1, 2))

    assert {each.outcome for each in found.verdicts} == {Outcome.PASS}
    assert len(found.verdicts) == 10
    assert found.exit_status == 0
    original, one = found.runs[0], found.runs[2]
    assert original.losses == one.losses
    assert len(original.losses) == 15
    assert original.lines == one.lines
    assert [line.split()[:2] for line in original.lines] == [["epoch", "0"], ["epoch", "1"], ["epoch", "2"]]
    assert original.files == ("model.pt",)
    assert "15 losses, 15 optimizer steps, 3 lines, 1 file" in verdict(found, "E1").message


@pytest.mark.parametrize(("names", "broken"), BROKEN, ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_a_wrong_conversion_breaks_its_contract(prove, converted, names, broken):
    for right, wrong in map(SABOTAGE.get, names):
        assert right in converted, converted
        converted = converted.replace(right, wrong)
    processes = tuple(sorted({int(each.partition("/")[2]) for each in broken}))
    found = prove(converted=converted, processes=processes)

    assert failed(found) == broken, [f"{v.contract.code}/{v.processes} {v.message}" for v in found.failed]
    assert found.exit_status == 1


def test_every_sabotage_is_done():
    assert {name for names, _ in BROKEN for name in names} == SABOTAGE.keys()


def test_the_first_difference_is_named_with_step_place_and_size(prove, converted):
    found = prove(converted=converted.replace("targets)\n        accel", "targets) * 1.5\n        accel"))
    difference = verdict(found, "E1").difference
    assert (difference.what, difference.step, difference.place) == ("loss", 0, "train.py:19")
    assert difference.size == pytest.approx(0.5 * float(difference.original), rel=1e-5)


def test_what_is_told_of_the_training_is_no_evaluation(prove, converted):
    """Each process has a share of the training loss; that it is printed after an evaluation does not make it wrong."""
    text = ("error {total / 6:.6f}", "error {total / 6:.6f} train {loss.item():.6f}")
    program = prove.program.replace(*text)
    found = prove(program, converted.replace(*text), processes=(2,))

    assert not failed(found)
    assert "about the training" in verdict(found, "E3", 2).message


ATTENDING = "nn.Unflatten(1, (1, 4)), nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True), nn.Flatten()"


@pytest.mark.parametrize("drawing", ["nn.BatchNorm1d(4), nn.Dropout(0.5)", ATTENDING], ids=["dropout", "attention"])
def test_gradients_are_compared_in_spite_of_dropout_and_batch_norm(prove, converted, drawing):
    layers = ("model = nn.Linear(4, 1)", f"model = nn.Sequential({drawing}, nn.Linear(4, 1))")
    program = prove.program.replace(*layers)
    found = prove(program, converted.replace(*layers), processes=(2,))
    assert verdict(found, "E2", 2).outcome is Outcome.PASS
    assert "gradients agree" in verdict(found, "E2", 2).message


@pytest.mark.parametrize(("mode", "outcome"), [("a", Outcome.PASS), ("w", Outcome.FAIL)])
def test_a_log_that_all_processes_open(prove, program, converted, mode, outcome):
    opened = f"import logging, torch\nlogging.getLogger().addHandler(logging.FileHandler('log.txt', '{mode}'))\n"
    texts = (text.replace("import torch\n", opened, 1) for text in (program, converted))
    found = prove(*texts, processes=(2,))

    assert verdict(found, "E4", 2).outcome is outcome


@pytest.mark.parametrize(("what", "broken"), [("summed", set()), ("summed / len(train_loader)", {"E3/2"})])
def test_a_sum_over_the_batches_is_one_of_all_processes_as_they_are_launched(prove, converted, what, broken):
    """Where the global batch is kept, each process has as many batches as one: there it is so many times as large."""
    said = f"print(f'in all {{{what}:.6f}}')"
    joined = f"summed = sum(accelerator.gather_for_metrics([summed])); accelerator.{said}"
    found = prove(_summing(prove.program, said), _summing(converted, joined), processes=(2,))

    assert failed(found) == broken


def _summing(program, said):
    """A program that adds its losses up, and says that."""
    program = program.replace("model.train()", "model.train(); summed = 0.0")
    program = program.replace("optimizer.step()", "optimizer.step(); summed += loss.item()")
    return program.replace("    model.eval()", f"    {said}\n    model.eval()")
