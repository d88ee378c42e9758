import pytest

from migrate.report.model import Kind

UNCHANGED = {
    "with a place": 'model.load_state_dict(torch.load("m.pt", map_location="cpu"))',
    "with a place by position": 'model.load_state_dict(torch.load("m.pt", torch.device("cpu")))',
    "with unknown options": 'model.load_state_dict(torch.load("m.pt", **options))',
    "a file that is no checkpoint": 'rows = torch.load("rows.pt")',
    "for a model that is not loaded": 'state = torch.load("m.pt")',
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(made=UNCHANGED[name])


LOAD = 'torch.load("m.pt", map_location="cpu")'
CHANGED = {
    "before prepare": {
        "made": ('model.load_state_dict(torch.load("m.pt"))', f"model.load_state_dict({LOAD})"),
    },
    "with another option": {
        "made": (
            'model.load_state_dict(torch.load("m.pt", weights_only=True))',
            'model.load_state_dict(torch.load("m.pt", weights_only=True, map_location="cpu"))',
        ),
    },
    "under a name": {
        "made": (
            'state = torch.load("m.pt")\nmodel.load_state_dict(state)',
            f"state = {LOAD}\nmodel.load_state_dict(state)",
        ),
    },
    "a part of it": {
        "made": (
            'state = torch.load("m.pt")\nmodel.load_state_dict(state["model"])',
            f'state = {LOAD}\nmodel.load_state_dict(state["model"])',
        ),
    },
    "the optimizer's": {
        "ready": (
            'optimizer.load_state_dict(torch.load("o.pt"))',
            'optimizer.load_state_dict(torch.load("o.pt", map_location="cpu"))',
        ),
    },
    "after prepare": {
        "end": (
            'model.load_state_dict(torch.load("m.pt"))',
            f"accelerator.unwrap_model(model).load_state_dict({LOAD})",
        ),
    },
    "single quotes": {
        "setup": "names = ['a', 'b', 'c']",
        "made": (
            "model.load_state_dict(torch.load('m.pt'))",
            "model.load_state_dict(torch.load('m.pt', map_location='cpu'))",
        ),
    },
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(**CHANGED[name])


STRIP = 'torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")'


def test_prefixes_of_data_parallel_are_taken_off(changed):
    changed(
        made=(
            'model = nn.DataParallel(model)\nstate = torch.load("m.pt")\nmodel.load_state_dict(state)',
            f"state = {LOAD}\n{STRIP}\nmodel.load_state_dict(state)",
        )
    )


def test_prefixes_that_cannot_be_taken_off_are_reported(changed):
    report = changed(
        made=(
            'model = nn.DataParallel(model)\nmodel.load_state_dict(torch.load("m.pt"))',
            f"model.load_state_dict({LOAD})",
        )
    )

    (note,) = (finding for finding in report.of(Kind.NOTE) if finding.code == "MIG116")
    assert "`module.`" in note.message
    assert "removeprefix" in note.hint


def test_it_can_be_left_out(programs, convert_text):
    before, _ = programs({"made": 'model.load_state_dict(torch.load("m.pt"))'})
    _, result = convert_text(before, ignore=("MIG116",))

    assert 'torch.load("m.pt")' in result
    assert "accelerator.backward(loss)" in result
