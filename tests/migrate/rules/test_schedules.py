import pytest

from migrate.report.model import Kind

IMPORTS = {"imports": "from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau, StepLR"}

NOT_PREPARED = {
    "per epoch": {"ready": "schedule = StepLR(optimizer, 1)", "epoch": "schedule.step()"},
    "per batch, horizon after prepare": {
        "ready": "schedule = CosineAnnealingLR(optimizer, 2 * len(loader))",
        "step": "schedule.step()",
    },
    "per batch, horizon after prepare under a name": {
        "ready": "steps = 2 * len(loader)\nschedule = CosineAnnealingLR(optimizer, steps)",
        "step": "schedule.step()",
    },
    "on a metric": {"ready": "schedule = ReduceLROnPlateau(optimizer)", "epoch": "schedule.step(epoch / 2)"},
    "never stepped": {"ready": "schedule = StepLR(optimizer, 1)"},
}


@pytest.mark.parametrize("name", NOT_PREPARED)
def test_unchanged(unchanged, name):
    report = unchanged(**IMPORTS, **NOT_PREPARED[name])

    assert not [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG118"]


PREPARE = "loader, model, optimizer, schedule = accelerator.prepare(\n    loader, model, optimizer, schedule\n)"
BEFORE = {
    "made": "steps = 2 * len(loader)",
    "prepare": f"schedule = CosineAnnealingLR(optimizer, steps)\n{PREPARE}",
    "ready": ("schedule = CosineAnnealingLR(optimizer, steps)", ""),
    "step": "schedule.step()",
}
ABSOLUTE = {
    "prepare": f"schedule = CosineAnnealingLR(optimizer, 100)\n{PREPARE}",
    "ready": ("schedule = CosineAnnealingLR(optimizer, 100)", ""),
    "step": "schedule.step()",
}


def test_per_batch_with_a_horizon_measured_before_prepare(changed):
    report = changed(**IMPORTS, **BEFORE)

    assert not [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG118"]


def test_per_batch_over_a_number_of_steps_is_reported(changed, programs, remark):
    report = changed(**IMPORTS, **ABSOLUTE)

    remark(
        report,
        programs({**IMPORTS, **ABSOLUTE})[0],
        "MIG118",
        "schedule = CosineAnnealingLR",
        ["schedule is stepped per batch", "prepared"],
        Kind.NOTE,
    )


def test_the_report_can_be_left_out_and_the_decision_stays(programs, convert_text):
    before, _ = programs({**IMPORTS, **ABSOLUTE})
    report, result = convert_text(before, ignore=("MIG118",))

    assert PREPARE in result
    assert not [finding for finding in report.findings if finding.code == "MIG118"]
