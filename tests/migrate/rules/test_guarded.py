"""Programs that use an accelerator: what only some processes come to is found, and nothing else."""

import textwrap

import pytest

from migrate.engine import ENGINE
from migrate.options import Mode, Options
from migrate.pipeline import run, run_text
from migrate.report.model import Kind

PROGRAM = """\
import copy
import torch
import torch.distributed as dist
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

def evaluate(model, loader):
    return sum(model(x).sum() for x, y in loader)

def both(value):
    return accelerator.gather(value)

accelerator = Accelerator()
model = nn.Linear(2, 1)
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)))
plain = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
metric = torchmetrics.Accuracy()
loader, model, optimizer = accelerator.prepare(loader, model, optimizer)
for epoch in range(2):
    for x, y in loader:
        loss = (model(x) - y).mean()
        accelerator.backward(loss)
        optimizer.step()
{case}
print(epoch)
"""
MAIN = "if accelerator.is_main_process:\n    "
FOUND = {
    "gather": (MAIN + "print(accelerator.gather(loss))", "accelerator.gather()"),
    "a barrier": (MAIN + "accelerator.wait_for_everyone()", "accelerator.wait_for_everyone()"),
    "save_state": (MAIN + "accelerator.save_state('out')", "accelerator.save_state()"),
    "a backward": (MAIN + "accelerator.backward(loss)", "accelerator.backward()"),
    "a model": (MAIN + "print(model(x))", "the prepared model()"),
    "a loader": (MAIN + "for x, y in loader:\n        print(x)", "the loop over loader"),
    "a batch of a loader": (MAIN + "print(next(iter(loader)))", "iter(loader) of a prepared loader"),
    "the next batch": (f"rows = iter(loader)\n{MAIN}print(next(rows))", "next(rows) of a prepared loader"),
    "a step": (MAIN + "optimizer.step()", "optimizer.step()"),
    "a metric": (MAIN + "print(metric.compute())", "metric.compute()"),
    "a collective of torch": (MAIN + "dist.all_reduce(loss)", "dist.all_reduce()"),
    "a function": (MAIN + "print(both(loss))", "both(), which comes to accelerator.gather()"),
    "the other side": (MAIN + "pass\nelse:\n    accelerator.wait_for_everyone()", "every process but the main one"),
    "a rank": ("if accelerator.process_index == 0:\n    accelerator.wait_for_everyone()", "only the main process"),
    "torch's rank": ("if dist.get_rank() == 0:\n    accelerator.wait_for_everyone()", "only the main process"),
    "a machine": ("if accelerator.is_local_main_process:\n    both(loss)", "only the first process of each machine"),
    "a flag": ("first = accelerator.is_main_process\nif first:\n    both(loss)", "only the main process"),
    "one condition more": ("if epoch and accelerator.is_main_process:\n    both(loss)", "only the main process"),
    "an expression": ("loss = both(loss) if accelerator.is_main_process else loss", "both()"),
    "behind and": ("accelerator.is_main_process and both(loss)", "both()"),
    "in turns": ("with accelerator.main_process_first():\n    both(loss)", "one after the other"),
    "a continue": (
        "for i in range(3):\n    if not accelerator.is_main_process:\n        continue\n    both(loss)",
        "leaves by the `continue`",
    ),
    "a break": (
        "for i in range(3):\n    both(loss)\n    if accelerator.is_main_process and i == 1:\n        break",
        "leaves by the `break`",
    ),
    "a break, and what is before it in a block of the round": (
        (
            "for i in range(3):\n    with torch.no_grad():\n        both(loss)\n"
            "        if accelerator.is_main_process and i == 1:\n            break"
        ),
        "leaves by the `break`",
    ),
    "a return": (
        "def end():\n    if not accelerator.is_main_process:\n        return\n    both(loss)\nend()",
        "leaves by the `return`",
    ),
    "a function that was called before another one took its name": (
        f"def end():\n    {MAIN}    both(loss)\nend()\ndef end():\n    both(loss)\nend()",
        "only the main process",
    ),
    "a decorator": (
        "@accelerator.on_main_process\ndef end():\n    both(loss)\nend()",
        "only the main process",
    ),
}


def faults(case):
    report = run_text(PROGRAM.format(case=case).encode(), "train.py", Options(mode=Mode.CHECK))
    return report, report.of(Kind.FAULT)


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    case, says = FOUND[name]
    report, found = faults(case)

    assert [finding.code for finding in found] == ["MIG002"]
    assert says in found[0].message
    assert report.exit_status(Mode.CHECK) == 1


FINE = {
    "no guard": "both(loss)",
    "the model inside": MAIN + "print(accelerator.unwrap_model(model)(x))",
    "the model inside, under a name": f"net = accelerator.unwrap_model(model)\n{MAIN}print(net(x))",
    "a copy": f"net = copy.deepcopy(model)\n{MAIN}print(net(x))",
    "a batch of one that is not prepared": MAIN + "print(next(iter(plain)))",
    "a loader that is not prepared": MAIN + "for x, y in plain:\n        print(x)",
    "what was gathered before": f"values = accelerator.gather(loss)\n{MAIN}print(values)",
    "a check that all make": "if epoch == 1:\n    both(loss)",
    "both sides": MAIN + "both(loss)\nelse:\n    both(loss)",
    "barriers that meet": (
        "if not accelerator.is_main_process:\n    accelerator.wait_for_everyone()\nprint(epoch)\n"
        "if accelerator.is_main_process:\n    accelerator.wait_for_everyone()"
    ),
    "several processes": "if accelerator.num_processes > 1:\n    accelerator.wait_for_everyone()",
    "a print and a save": MAIN + "accelerator.print(1)\n    accelerator.save(accelerator.unwrap_model(model), 'x')",
    "a jump past nothing": (
        "for i in range(3):\n    both(loss)\n    if not accelerator.is_main_process:\n        continue\n    print(i)"
    ),
    "a jump inside": ("both(loss)\nif accelerator.is_main_process:\n    for i in range(3):\n        break\nboth(loss)"),
    "in turns without a meeting": "with accelerator.main_process_first():\n    print(epoch)",
    "a function that is only defined": MAIN + "def end():\n        both(loss)",
    "a function whose name another one takes": (
        f"def end():\n    {MAIN}    both(loss)\ndef end():\n    both(loss)\nend()"
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_nothing_is_found(name):
    report, found = faults(FINE[name])

    assert not found
    assert report.exit_status(Mode.CHECK) == 0


PREPARING = "loader, model, optimizer = accelerator.prepare"
EARLY = PROGRAM.replace("{case}", "pass").replace(PREPARING, "{early}\n" + PREPARING)


@pytest.mark.parametrize(
    ("early", "is_found"),
    [
        (f"{MAIN}print(evaluate(model, loader))", False),  # nothing is prepared yet
        (f"def show():\n    return evaluate(model, loader)\n{MAIN}print(show())", False),
        (f"{MAIN}print(both(torch.ones(1)))", True),
    ],
)
def test_a_function_that_is_called_before_anything_is_prepared(early, is_found):
    source = EARLY.replace("{early}", early).encode()
    report = run_text(source, "train.py", Options(mode=Mode.CHECK))

    assert bool(report.of(Kind.FAULT)) == is_found


def test_programs_without_an_accelerator_are_not_asked():
    source = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    report = run_text(source.encode(), "train.py", Options(mode=Mode.CHECK))

    assert not report.findings


def test_it_can_be_ignored():
    source = PROGRAM.format(case=MAIN + "both(loss)").encode()
    report = run_text(source, "train.py", Options(mode=Mode.CHECK, ignore=("MIG002",)))

    assert not report.findings


PLAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
model = nn.Linear(2, 1)
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = (model(x) - y).mean()
    loss.backward()
    optimizer.step()
"""
GUARDED = "if accelerator.is_main_process:\n    accelerator.wait_for_everyone()\n"


class Spoilt:
    """An edited file with a line more than was planned."""

    lost_comments = ()

    def __init__(self, applied):
        self.content = applied.content + GUARDED.encode()


@pytest.mark.parametrize("ignore", [(), ("MIG002",)])
def test_a_result_of_ours_with_such_a_place_is_dropped(ignore):
    engine = type(ENGINE)(ENGINE.plan, lambda *given: Spoilt(ENGINE.apply(*given)), lambda *given: [])
    report = run_text(PLAIN.encode(), "train.py", Options(ignore=ignore), engine)

    assert not report.changes
    (left,) = report.of(Kind.LEFT)
    assert (left.code, left.line) == ("MIG002", PLAIN.count("\n"))
    assert "accelerator.wait_for_everyone()" in left.message
    assert "The file stays as it was" in left.message


SEVERAL = {
    "show.py": """
        from told import begin

        begin()
        """,
    "told.py": """
        import logging

        import torch.distributed as dist


        def begin():
            level = logging.INFO
            if dist.is_initialized() and dist.get_rank() != 0:
                level = logging.ERROR
            logging.basicConfig(level=level)
        """,
    "train.py": """
        import torch
        import torch.distributed as dist
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel
        from torch.utils.data import DataLoader, TensorDataset
        from torch.utils.data.distributed import DistributedSampler

        from told import begin


        def main():
            dist.init_process_group("gloo")
            begin()
            data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
            loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
            model = DistributedDataParallel(nn.Linear(2, 1))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x, y in loader:
                loss = nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


        if __name__ == "__main__":
            main()
        """,
}


@pytest.mark.parametrize("is_spoilt", [False, True])
def test_what_was_made_ready_for_a_result_that_is_dropped_goes_with_it(tmp_path, is_spoilt):
    for name, text in SEVERAL.items():
        (tmp_path / name).write_text(textwrap.dedent(text).lstrip())

    def check(file, change, conversion):
        return ["spoilt"] if is_spoilt and file.path.endswith("train.py") else []

    engine = type(ENGINE)(ENGINE.plan, ENGINE.apply, check)
    report = run([str(tmp_path)], Options(mode=Mode.DIFF, cache=False), engine)

    assert [change.path.rsplit("/")[-1] for change in report.changes] == ([] if is_spoilt else ["told.py", "train.py"])
