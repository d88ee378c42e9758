"""What is written in an expression that stands by itself: `migrate/programs/values/asides.py`."""

import pytest

from migrate.report.model import Kind

IMPORTS = "import json\nimport os\nfrom torch.utils.tensorboard import SummaryWriter"
STATE = ("model.state_dict()", "accelerator.unwrap_model(model).state_dict()")


def guarded(text):
    return "if accelerator.is_main_process:\n    " + text.replace("\n", "\n    ")


SAVES = {
    "behind and": 'epoch and {save}({state}, "m.pt")',
    "behind or": 'epoch or {save}({state}, "m.pt")',
    "a choice": '{save}({state}, "m.pt") if epoch else None',
    "for each path": '[{save}({state}, path) for path in ("a.pt", "b.pt")]',
    "behind what every process must do": 'next(names, None) and {save}({state}, "m.pt")',
    "whose result is kept": 'kept = {save}({state}, "m.pt")',
    "whose result may be kept": 'kept = epoch and {save}({state}, "m.pt")',
}


@pytest.mark.parametrize("name", SAVES)
def test_a_plain_save_in_an_expression(changed, name):
    pair = [
        SAVES[name].format(save=save, state=state)
        for save, state in zip(("torch.save", "accelerator.save"), STATE, strict=True)
    ]
    changed(setup="names = iter('ab')", epoch=tuple(pair))


WRITTEN = {
    "a save with options": 'epoch and torch.save({state}, "m.pt", pickle_protocol=4)',
    "a file behind two conditions": 'epoch and not os.path.exists("a") and os.remove("a")',
    "a choice": 'os.remove("a") if epoch else os.remove("b")',
    "a choice behind a condition": 'epoch and (os.remove("a") if output.size(0) else None)',
    "a display": '(os.remove("a"), print("gone"))',
    "a comprehension": '[os.remove(name) for name in ("a", "b") if os.path.exists(name)]',
    "a set of them": '{{os.remove(name) for name in ("a", "b")}}',
    "a comprehension in one": '[[os.remove(a + b) for a in "ab"] for b in "ab"]',
    "rows of a file": 'with open("rows.txt", "w") as file:\n    [file.write(row) for row in "ab"]',
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_an_expression_writes(changed, name):
    before, after = (WRITTEN[name].format(state=state) for state in STATE)
    changed(imports=IMPORTS, epoch=(before, guarded(after)))


def test_neighbours_that_write_stay_together(changed):
    block = 'os.mkdir("out")\nepoch and os.remove("a")\nos.remove("b")'
    changed(imports=IMPORTS, epoch=(block, guarded(block)))


def test_a_writer_that_is_called_in_a_comprehension_is_made_by_one(changed):
    made, used = "writer = SummaryWriter()", "[writer.add_scalar(k, v, epoch) for k, v in zip('ab', (1, 2))]"
    changed(imports=IMPORTS, ready=(made, guarded(made)), epoch=(used, guarded(used)))


@pytest.mark.parametrize(
    "test", ["accelerator.is_main_process", "epoch and accelerator.is_main_process", "not epoch or 1"]
)
def test_what_is_left_to_one_process_already_gets_no_second_guard(convert_text, programs, test):
    asked = test.replace("accelerator.is_main_process", "dist.get_rank() == 0")
    holes = {
        "imports": "import os\nimport torch.distributed as dist",
        "setup": "dist.init_process_group()",
        "epoch": f'{asked} and torch.save(rows, "m.pt")\nos.remove("a") if {asked} else None',
        "model": "rows = [1]\nmodel = nn.Linear(2, 1)",
    }
    report, result = convert_text(programs(holes)[0])

    is_asked = "accelerator" in test
    assert (f'    {test} and torch.save(rows, "m.pt")\n    os.remove("a") if {test} else None' in result) is is_asked
    assert "accelerator.save(" in result or is_asked
    assert not [finding for finding in report.findings if finding.kind is Kind.LEFT]


DOES_MORE = {
    "what takes something out of what others go on with": 'next(names) and os.remove("a")',
    "a queue that others go on with": '[1].pop() and os.remove("a")',
    "a name that is set": '(found := epoch) and os.remove("a")',
    "a draw": 'torch.rand(1) > 0.5 and os.remove("a")',
    "a function that changes something": 'count() and os.remove("a")',
    "a loader, whose passes draw": '[os.remove("a") for x in DataLoader(data)]',
}


@pytest.mark.parametrize("name", DOES_MORE)
def test_what_all_processes_must_do_on_the_way_stays_and_the_writing_is_left(unchanged, programs, remark, name):
    holes = {
        "imports": IMPORTS,
        "setup": "names = iter('ab')\nseen = []\n\n\ndef count():\n    seen.append(1)\n    return 1",
        "epoch": DOES_MORE[name],
    }
    finding = remark(unchanged(**holes), programs(holes)[0], "MIG117", DOES_MORE[name], ["in an expression"])
    assert "in a statement of its own" in finding.hint


def test_what_goes_nowhere_on_the_others_is_not_left(changed):
    report = changed(
        ready=("log = open('log', 'w')", "log = open('log' if accelerator.is_main_process else os.devnull, 'w')"),
        imports="import os",
        epoch="epoch and log.write('done')",
        end="log.close()",
    )
    assert not [finding for finding in report.findings if finding.kind is Kind.LEFT]


def test_what_is_only_printed_keeps_its_form(changed):
    changed(epoch=("[print(i) for i in range(3)]", "[accelerator.print(i) for i in range(3)]"))


def test_an_expression_that_writes_and_runs_the_model_is_left(unchanged, programs, remark):
    holes = {"imports": IMPORTS, "epoch": 'epoch and json.dump(model(x).tolist(), open("rows.json", "w"))'}
    remark(unchanged(**holes), programs(holes)[0], "MIG117", "json.dump", ["runs the model"])
