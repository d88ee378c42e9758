"""Each contract is seen to hold, and to be broken by the conversion that breaks it and by no other."""

import pytest

from migrate.verify.model import Outcome

#: What is done to the right conversion: (what is replaced, by what), and the contracts that it breaks.
SABOTAGE = {
    "another learning rate": (("lr=0.1", "lr=0.2"), {"E1/1", "E5/2"}),
    "a number is drawn": (("for epoch in", "torch.rand(1)\nfor epoch in"), {"E1/1", "E2/2"}),
    "the loss grows with the processes": (("loss)", "loss * accelerator.num_processes)"), {"E2/2"}),
    "the order of the data": (("batch_size=4, shuffle=True", "batch_size=4"), {"E1/1", "E2/2"}),
    "each process counts its share": (
        ("outputs, targets = accelerator.gather_for_metrics((outputs, targets))", "pass"),
        {"E3/2"},
    ),
    "all processes speak": (("accelerator.print", "print"), {"E4/2"}),
    "all processes write": (("accelerator.save", "torch.save"), {"E4/2"}),
    "nothing is saved": (("accelerator.save(", "(lambda *_: None)("), {"E1/1", "E4/2"}),
    "the schedule goes by processes": (
        ("    scheduler.step()", "    [scheduler.step() for _ in range(accelerator.num_processes)]"),
        {"E5/2"},
    ),
    "keys with a prefix": (
        ("accelerator.unwrap_model(model).state_dict()", "{f'module.{k}': v for k, v in model.state_dict().items()}"),
        {"E1/1", "E6/1", "E6/2"},
    ),
    "a step of one process": (
        ("        optimizer.step()", "        if accelerator.is_main_process:\n            optimizer.step()"),
        {"ranks/2"},
    ),
    "it fails": (("model.eval()", "modell.eval()"), {"runs/1", "runs/2"}),
    "it fails on two": (("model.eval()", "1 / (2 - accelerator.num_processes)"), {"runs/2"}),
}


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


@pytest.mark.parametrize("name", SABOTAGE)
def test_a_wrong_conversion_breaks_its_contract(prove, converted, name):
    (right, wrong), broken = SABOTAGE[name]
    assert right in converted, converted
    processes = (1, 2) if any(each.endswith("/1") for each in broken) else (2,)
    found = prove(converted=converted.replace(right, wrong), processes=processes)

    assert failed(found) == broken, [f"{v.contract.code}/{v.processes} {v.message}" for v in found.failed]
    assert found.exit_status == 1


def test_the_first_difference_is_named_with_step_place_and_size(prove, converted):
    found = prove(converted=converted.replace("lr=0.1", "lr=0.2"))
    difference = verdict(found, "E1").difference

    assert (difference.what, difference.step, difference.place) == ("learning rate", 0, "train.py:19")
    assert (difference.original, difference.converted) == ("0.1", "0.2")

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


def test_dropout_and_batch_norm_do_not_hide_a_wrong_gradient(prove, converted):
    layers = ("model = nn.Linear(4, 1)", "model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))")
    program = prove.program.replace(*layers)
    right = converted.replace(*layers)

    found = prove(program, right, processes=(2,))
    assert verdict(found, "E2", 2).outcome is Outcome.PASS
    assert "gradients agree" in verdict(found, "E2", 2).message
    wrong = right.replace("accelerator.backward(loss)", "accelerator.backward(loss * accelerator.num_processes)")
    assert failed(prove(program, wrong, processes=(2,))) == {"E2/2"}
