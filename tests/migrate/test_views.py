"""Scripts that share a training function: each is a program of its own."""

import gc
import textwrap

import pytest

from migrate import views, workers
from migrate.analysis import analyse
from migrate.analysis.known import TABLES
from migrate.edits import Plan
from migrate.options import Mode, Options
from migrate.pipeline import run
from migrate.programs.along import Along
from migrate.programs.loops import Loops
from migrate.report.model import Kind
from migrate.rules.converting import convert_script
from migrate.source.project import Project, SourceFile
from migrate.views import _Sight

ENGINE = """
    import torch


    def fit(net, optimizer, batches, device):
        for x, y in batches:
            x, y = x.to(device), y.to(device)
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    def keep(net, path):
        torch.save(net.state_dict(), path)
        print("kept", path)
"""
SCRIPT = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    import engine


    def main():
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(0)
        data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))
        loader = DataLoader(data, batch_size=10, shuffle=True)
        net = torch.nn.Linear(2, 2).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        engine.fit(net, optimizer, loader, device)
        print("trained")


    if __name__ == "__main__":
        main()
"""
LEVEL = textwrap.dedent(SCRIPT).split("def main")[0] + textwrap.dedent(
    textwrap.dedent(SCRIPT).split("def main():\n")[1].split("\n\nif __name__")[0]
)
CLASS = """
    import torch


    class Trainer:
        def __init__(self, net, optimizer, device):
            self.net, self.optimizer, self.device = net, optimizer, device

        def fit(self, batches):
            for x, y in batches:
                loss = torch.nn.functional.cross_entropy(self.net(x.to(self.device)), y.to(self.device))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
"""


def reasons(report):
    return [(finding.path, finding.code) for finding in report.of(Kind.LEFT)]


def test_each_script_makes_an_accelerator_of_its_own(converted):
    report, files = converted(engine=ENGINE, train=SCRIPT, train_small=SCRIPT.replace("SGD", "Adam"))
    assert reasons(report) == []
    assert len(report.of(Kind.LOOP)) == 1
    assert report.of(Kind.LOOP)[0].converts
    for name in ("train", "train_small"):
        assert files[name].count("accelerator = Accelerator()") == 1
        assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in files[name]
        assert "engine.fit(net, optimizer, loader, accelerator)" in files[name]
    assert "def fit(net, optimizer, batches, accelerator):" in files["engine"]
    assert files["engine"].count("accelerator.backward(loss)") == 1


def test_one_of_them_at_module_level(converted):
    report, files = converted(engine=ENGINE, train=SCRIPT, notebook=LEVEL)
    assert reasons(report) == []
    assert all(files[name].count("Accelerator()") == 1 for name in ("train", "notebook"))


def test_a_trainer_that_they_share(converted):
    script = SCRIPT.replace("engine.fit(net, optimizer, loader, device)", "trainer.fit(loader)")
    make = "trainer = engine.Trainer(net, optimizer, device)\n        trainer.fit"
    script = script.replace("trainer.fit", make)
    report, files = converted(engine=CLASS, train=script, train_small=script.replace("SGD", "Adam"))
    assert reasons(report) == []
    assert "backward(loss)" in files["engine"].replace("loss.backward()", "")


def test_what_only_one_of_them_uses_changes_for_that_one(converted):
    keeping = SCRIPT.replace('print("trained")', 'engine.keep(net, "net.pth")')
    report, files = converted(engine=ENGINE, train=SCRIPT, train_and_keep=keeping)
    assert reasons(report) == []
    assert "def keep(net, path, accelerator):" in files["engine"] or "accelerator" in files["engine"].split("keep")[1]


LOADED = """

    class Net(torch.nn.Linear):
        @classmethod
        def load(cls, name):
            print(name)
            return cls(2, 2)
"""


def test_what_is_printed_out_of_reach_is_for_all_that_may_run_it(converted):
    """The one makes its model by a method that prints; of the other it is not known whether it calls that, too."""
    train = SCRIPT.replace("torch.nn.Linear(2, 2)", 'engine.Net.load("a")')
    other = SCRIPT.replace("torch.nn.Linear(2, 2)", "engine.Net(2, 2)").replace("main():\n", "main(*files):\n", 1)
    other = other.replace("net =", 'files[0].load("b")\n        net =')
    report, files = converted(engine=ENGINE + LOADED, train=train, train_small=other)
    assert reasons(report) == []
    assert 'if os.environ.get("RANK", "0") == "0":\n            print(name)' in files["engine"]


def test_a_script_that_evaluates_stays(converted):
    use = "import engine\nimport torch\nengine.keep(torch.nn.Linear(2, 2), 'fresh.pth')\n"
    report, files = converted(engine=ENGINE, train=SCRIPT, train_small=SCRIPT.replace("SGD", "Adam"), make=use)
    assert reasons(report) == []
    assert files["make"] == use
    assert "def keep(net, path):" in files["engine"]


STEP_OF_BOTH = """
    def step(loss, optimizer):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
LOOP_BY_STEPS = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from steps import step

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))
    loader = DataLoader(data, batch_size=10, shuffle=True)
    net = torch.nn.Linear(2, 2).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        step(torch.nn.functional.cross_entropy(net(x), y), optimizer)
"""


def test_loops_of_their_own_that_share_a_step_are_left_for_the_reason_of_the_one_that_is_left(converted):
    broken = LOOP_BY_STEPS.replace(
        "for x, y in", "import deepspeed\n    net, optimizer, _, _ = deepspeed.initialize(model=net)\n    for x, y in"
    )
    report, files = converted(steps=STEP_OF_BOTH, train=LOOP_BY_STEPS, train_fast=broken)
    messages = {finding.path: finding.message for finding in report.of(Kind.LOOP)}
    assert messages["train.py"].endswith("not converted: it shares code with train_fast.py, which is left")
    assert "MIG" in messages["train_fast.py"]
    assert {path for path, _ in reasons(report)} == {"train_fast.py"}
    assert all("ccelerator" not in text for text in files.values())


def test_loops_of_their_own_that_share_a_step_convert(converted):
    report, files = converted(steps=STEP_OF_BOTH, train=LOOP_BY_STEPS, train_small=LOOP_BY_STEPS.replace("SGD", "Adam"))
    assert reasons(report) == []
    assert "accelerator.backward(loss)" in files["steps"]
    assert "prepare(" in files["train"]
    assert "prepare(" in files["train_small"]


def test_different_edits_of_one_function_are_refused(converted):
    few = SCRIPT.replace("engine.fit(net, optimizer, loader, device)", "engine.fit(net, optimizer, few, device)")
    few = few.replace("loader = DataLoader(data, batch_size=10, shuffle=True)", "few = [data[:10], data[10:20]]")
    report, files = converted(engine=ENGINE, train=SCRIPT, train_few=few)
    assert [code for _, code in reasons(report)] == ["MIG901"]
    assert "give each script a copy" in report.of(Kind.LEFT)[0].hint
    assert all("ccelerator" not in text for text in files.values())


def test_one_that_is_refused_keeps_the_others(converted):
    fast = "import deepspeed\n        net, optimizer, _, _ = deepspeed.initialize(model=net)\n        engine.fit("
    broken = SCRIPT.replace("engine.fit(", fast)
    report, files = converted(engine=ENGINE, train=SCRIPT, train_fast=broken)
    assert reasons(report)
    assert all(path != "train.py" for path, _ in reasons(report))
    assert all("ccelerator" not in text for text in files.values())
    assert any("it shares code with train_fast.py, which is left" in s.text for s in report.summaries)


TWO_FITS = (
    ENGINE
    + """
    def fit_by_hand(net, batches):
        for x, y in batches:
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            for param in net.parameters():
                param.data -= 0.1 * param.grad
                param.grad = None
"""
)
BY_HAND = SCRIPT.replace(
    "engine.fit(", "engine.fit_by_hand(torch.nn.Linear(2, 2), [data[:10], data[10:20]])\n        engine.fit("
)


def test_of_scripts_that_share_two_loops_the_one_that_can_be_is_converted(converted):
    report, files = converted(engine=TWO_FITS, train=BY_HAND, train_small=BY_HAND.replace("SGD", "Adam"))
    assert [code for _, code in reasons(report)] == ["MIG902"]
    assert [(loop.converts, loop.path) for loop in report.of(Kind.LOOP)] == [(True, "engine.py"), (False, "engine.py")]
    assert files["engine"].count("accelerator.backward(loss)") == 1
    assert files["engine"].count("loss.backward()") == 1
    assert "prepare(" in files["train"]
    assert "prepare(" in files["train_small"]


def test_of_scripts_that_share_two_loops_what_is_left_has_its_own_reason(converted):
    few = BY_HAND.replace("engine.fit(net, optimizer, loader, device)", "engine.fit(net, optimizer, few, device)")
    few = few.replace("loader = DataLoader(data, batch_size=10, shuffle=True)", "few = [data[:10], data[10:20]]")
    report, files = converted(engine=TWO_FITS, train=BY_HAND, train_few=few)
    assert {code for _, code in reasons(report)} == {"MIG901", "MIG902"}
    fit, by_hand = (loop.message for loop in report.of(Kind.LOOP))
    assert fit.endswith("not converted (MIG901)")
    assert by_hand.endswith("not converted (MIG902)")
    assert all(summary.text.count("Left as it is") == 1 for summary in report.summaries)
    assert all("ccelerator" not in text for text in files.values())


def test_when_one_is_left_the_others_are_looked_at_by_several_processes(tmp_path, monkeypatch):
    if workers.count([1, 1], 2) < 2:
        pytest.skip("processes are not forked on this system")
    fast = "import deepspeed\n        net, optimizer, _, _ = deepspeed.initialize(model=net)\n        engine.fit("
    files = {"engine": ENGINE, "a_first": SCRIPT, "b_fast": SCRIPT.replace("engine.fit(", fast), "c_small": SCRIPT}
    files |= {f"d_fast{number}": files["b_fast"] for number in range(3)}
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    seen = []
    view = _Sight.view
    monkeypatch.setattr(_Sight, "view", lambda sight, one, **how: seen.append(one.path) or view(sight, one, **how))
    three = run(["."], Options(mode=Mode.PREVIEW, jobs=3))
    assert seen == ["a_first.py", "b_fast.py"]  # the others are seen by others
    assert reasons(three)
    gc.unfreeze()  # what a test before this has frozen goes away at any time
    one = run(["."], Options(mode=Mode.PREVIEW, jobs=1))
    assert gc.get_freeze_count() == 0
    assert sorted(seen[2:]) == sorted(f"{name}.py" for name in files if name != "engine")  # each once
    assert (one.findings, one.summaries, one.changes) == (three.findings, three.summaries, three.changes)
    assert len(one.summaries) == 6


def test_scripts_are_not_looked_at_one_by_one_where_that_would_take_for_ever(converted, monkeypatch):
    alone = []
    view = _Sight.view
    monkeypatch.setattr(_Sight, "view", lambda sight, one, **how: alone.append(one.path) or view(sight, one, **how))
    files = {"engine": ENGINE, "train": SCRIPT, "train_small": SCRIPT.replace("SGD", "Adam")}
    size = sum(len(textwrap.dedent(text)) for text in files.values())
    monkeypatch.setattr(views, "_MOST", 2 * size)
    assert not reasons(converted(**files)[0])
    assert {"train.py", "train_small.py"} <= set(alone)
    alone.clear()
    monkeypatch.setattr(views, "_MOST", 2 * size - 1)
    report, _ = converted(**files)
    assert alone == []
    assert [loop.converts for loop in report.of(Kind.LOOP)] == [False]
    assert reasons(report)  # what keeps them back when all of them are looked at together


def test_a_script_that_another_one_imports_is_no_program_of_its_own(converted):
    both = "import train\nimport train_small\n\ntrain.main()\ntrain_small.main()\n"
    report, files = converted(engine=ENGINE, train=SCRIPT, train_small=SCRIPT.replace("SGD", "Adam"), both=both)
    assert reasons(report)
    assert all("ccelerator" not in text for text in files.values())


STARTING = """
    import {script}


    class Job:
        def __call__(self):
            {script}.main()


    def submit(executor):
        executor.submit(Job())
"""


def test_a_module_that_only_starts_a_script_is_one_program_with_it(converted):
    small = SCRIPT.replace("SGD", "Adam")
    starting = {name: STARTING.format(script=name.removeprefix("submit_")) for name in ("submit_train", "submit_small")}
    report, files = converted(engine=ENGINE, train=SCRIPT, small=small, **starting)
    assert reasons(report) == []
    assert all("accelerator.prepare(loader, net, optimizer)" in files[name] for name in ("train", "small"))
    assert all(files[name] == textwrap.dedent(text) for name, text in starting.items())


def test_a_module_that_starts_one_of_two_scripts_is_refused(converted):
    one = "import train\nimport small\n\n\ndef start(name):\n    (train if name == 'train' else small).main()\n"
    report, files = converted(engine=ENGINE, train=SCRIPT, small=SCRIPT.replace("SGD", "Adam"), start=one)
    assert reasons(report)
    assert all("ccelerator" not in text for text in files.values())


STEPS = """
    import torch


    def every(batches):
        for number, batch in enumerate(batches):
            yield batch


    class Stepper:
        def __call__(self, loss, optimizer):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    def resume(path, net, optimizer):
        state = torch.load(path)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
"""
STEPPING = """
    import steps
    import torch


    def {name}(net, optimizer, batches, device):
        net.train()
        step = steps.Stepper()
        for x, y in steps.every(batches):
            loss = torch.nn.functional.cross_entropy(net(x.to(device)), y.to(device))
            step(loss, optimizer)
"""


def test_what_only_another_script_imports_is_not_there(converted):
    slow = SCRIPT.replace("import engine", "import slow_engine as engine").replace("engine.fit(", "engine.fit_slowly(")
    engines = {"engine": STEPPING.format(name="fit"), "slow_engine": STEPPING.format(name="fit_slowly")}
    report, files = converted(steps=STEPS, train=SCRIPT, train_slow=slow, **engines)
    assert reasons(report) == []
    assert "accelerator.backward(loss)" in files["steps"]
    assert all("accelerator.prepare(loader, net, optimizer)" in files[name] for name in ("train", "train_slow"))


def test_only_what_a_script_says_of_its_processes_is_handed_to_it(converted):
    several = SCRIPT.replace("torch.manual_seed(0)", 'torch.distributed.init_process_group("nccl")')
    several = several.replace("shuffle=True", "sampler=torch.utils.data.DistributedSampler(data)")
    several = several.replace("engine.fit", "loader.sampler.set_epoch(1)\n        engine.fit")
    several = several.replace(
        ".to(device)", ".to(device)\n        net = torch.nn.parallel.DistributedDataParallel(net)"
    )
    report, files = converted(engine=ENGINE, train=SCRIPT, train_several=several)
    assert reasons(report) == []
    assert "use_seedable_sampler=True" in files["train_several"]
    assert "accelerator = Accelerator()" in files["train"]
    assert "loader.set_epoch(1)" in files["train_several"]
    assert "set_epoch" not in files["train"] + files["engine"]


def test_a_sampler_that_draws_one_order_again_and_again_beside_one_that_does_not(converted):
    several = SCRIPT.replace("torch.manual_seed(0)", 'torch.distributed.init_process_group("nccl")')
    several = several.replace("shuffle=True", "sampler=torch.utils.data.DistributedSampler(data)")
    report, files = converted(engine=ENGINE, train=SCRIPT, train_several=several)
    assert ("train_several.py", "MIG113") in reasons(report)
    assert all("ccelerator" not in text for text in files.values())


ASKING = """
    import torch
    import torch.distributed as dist


    def is_started():
        return dist.is_available() and dist.is_initialized()


    def get_rank():
        if not is_started():
            return 0
        return dist.get_rank()


    def is_main_process():
        return get_rank() == 0


    class Scores:
        def __init__(self):
            self.right = 0

        def add(self, output, target):
            self.right += (output.argmax(1) == target).sum().item()

        def write(self):
            if is_main_process():
                print("right", self.right)
                with open("scores.txt", "w") as file:
                    file.write(str(self.right))


    def fit(net, optimizer, batches, device):
        for x, y in batches:
            x, y = x.to(device), y.to(device)
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    @torch.no_grad()
    def evaluate(net, batches, device):
        host = torch.device("cpu")
        net.eval()
        scores = Scores()
        for x, y in batches:
            output = net(x.to(device)).to(host)
            scores.add(output, y)
        scores.write()
        if is_main_process():
            print("evaluated")
        return scores.right
"""
SEVERAL = """
    import torch
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    import engine


    def main():
        torch.distributed.init_process_group("nccl")
        torch.manual_seed(0)
        data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))
        loader = DataLoader(data, batch_size=10, sampler=DistributedSampler(data))
        device = torch.device("cuda")
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).to(device))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        engine.fit(net, optimizer, loader, device)
        engine.evaluate(net, DataLoader(data, batch_size=10), device)


    if __name__ == "__main__":
        main()
"""
LOOK = """
    import torch

    import engine

    scores = engine.Scores()
    scores.add(torch.zeros(2, 2), torch.zeros(2))
    scores.write()
"""


def test_code_that_runs_without_an_accelerator_goes_on_asking_torch(converted):
    report, files = converted(engine=ASKING, train=SEVERAL, look=LOOK)
    assert reasons(report) == []
    write = files["engine"].split("def write")[1].split("def fit")[0]
    assert "if is_main_process():" in write
    assert "def get_rank():\n    if not is_started():" in files["engine"]
    assert "if accelerator.is_main_process:\n        print" in files["engine"].split("def evaluate")[1]
    assert not any("write()" in finding.message for finding in report.findings)


def test_without_such_code_all_ask_the_accelerator(converted):
    report, files = converted(engine=ASKING, train=SEVERAL)
    assert reasons(report) == []
    assert "is_main_process()" not in files["engine"]
    assert "get_rank" not in files["engine"]


@pytest.mark.parametrize("answer", ["dist.get_rank() == 0", "RANK == 0"])
def test_what_cannot_be_asked_without_an_accelerator_is_refused(converted, answer):
    engine = ASKING.replace("return get_rank() == 0", f"return {answer}").replace(
        "import torch.distributed as dist", "import torch.distributed as dist\n\n    RANK = dist.get_rank()"
    )
    report, files = converted(engine=engine, train=SEVERAL, look=LOOK)
    assert reasons(report)
    assert all("ccelerator" not in text for text in files.values())


def test_the_cpu_beside_a_device_that_is_handed_over_stays_the_cpu(converted):
    _, files = converted(engine=ASKING, train=SEVERAL)
    assert 'host = torch.device("cpu")' in files["engine"] or ".cpu()" in files["engine"]


TRAINING = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset


    def fit(net, optimizer, batches, device):
        step(net, optimizer, batches, device)


    def step(net, optimizer, batches, device):
        for x, y in batches:
            x, y = x.to(device), y.to(device)
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    def report(text):
        print(text)


    if __name__ == "__main__":
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))
        loader = DataLoader(data, batch_size=10, shuffle=True)
        net = torch.nn.Linear(2, 2).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        fit(net, optimizer, loader, device)
        report("trained")
"""
TEST = """
    import unittest

    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from train import fit


    class TestFit(unittest.TestCase):
        def test_weights(self):
            data = TensorDataset(torch.ones(8, 2), torch.randint(2, (8,)))
            net = torch.nn.Linear(2, 2)
            optimizer = torch.optim.Adam(net.parameters())
            fit(net, optimizer, DataLoader(data, 2), torch.device("cpu"))


    if __name__ == "__main__":
        unittest.main()
"""


def test_a_file_that_tries_a_training_function_out_hands_it_an_accelerator(converted):
    report, files = converted(train=TRAINING, test_train=TEST)
    assert reasons(report) == []
    assert "def fit(net, optimizer, batches, accelerator):" in files["train"]
    assert "step(net, optimizer, batches, accelerator)" in files["train"]
    assert "if accelerator.is_main_process:\n        report(" in files["train"]  # nobody else enters it: it stays
    assert '\naccelerator = Accelerator(cpu=True, mixed_precision="no")\n' in files["test_train"]
    assert "fit(net, optimizer, DataLoader(data, 2), accelerator)" in files["test_train"]


ON_A_GPU = TEST.replace('"cpu"', '"cuda"')
WITH_THE_NAME = TEST.replace("net = torch", "accelerator = None\n            net = torch")
AS_A_VALUE = TEST.replace("fit(net,", "runs = [fit]\n            runs[0](net,")
ACCUMULATING = TRAINING.replace("for x, y in", "for i, (x, y) in").replace("in batches", "in enumerate(batches)")
ACCUMULATING = ACCUMULATING.replace("optimizer.zero_grad()\n", "loss = loss / 2\n").replace(
    "            optimizer.step()\n",
    "            if (i + 1) % 2 == 0 or i + 1 == len(batches):\n"
    "                optimizer.step()\n                optimizer.zero_grad()\n",
)


@pytest.mark.parametrize(
    ("train", "test"),
    [(TRAINING, ON_A_GPU), (TRAINING, WITH_THE_NAME), (TRAINING, AS_A_VALUE), (ACCUMULATING, TEST)],
    ids=["on a GPU", "the name is taken", "a function as a value", "an accelerator that accumulates"],
)
def test_a_file_that_cannot_go_on_as_it_was_keeps_the_training(converted, train, test):
    report, files = converted(train=train, test_train=test)
    assert [code for _, code in reasons(report)] == ["MIG901"]
    assert files == {"train": textwrap.dedent(train), "test_train": textwrap.dedent(test)}


MODEL = """
    import torch


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x)

        def configure_optimizers(self, lr):
            decayed = [p for name, p in self.named_parameters() if p.dim() > 1]
            others = [p for name, p in self.named_parameters() if p.dim() < 2]
            return torch.optim.SGD([{"params": decayed, "weight_decay": 0.1}, {"params": others}], lr=lr)
"""
OWN_LOOP = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from model import Net

    data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))
    loader = DataLoader(data, batch_size=10, shuffle=True)
    net = Net()
    optimizer = net.configure_optimizers(0.1)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_scripts_with_loops_of_their_own_whose_model_makes_its_optimizer(converted):
    report, files = converted(model=MODEL, train=OWN_LOOP, bench=OWN_LOOP.replace("0.1", "0.2"))
    assert reasons(report) == []
    assert [loop.converts for loop in report.of(Kind.LOOP)] == [True, True]
    for name in ("train", "bench"):
        assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in files[name]
    assert files["model"] == textwrap.dedent(MODEL)


def test_what_makes_an_optimizer_alone_does_not_bind_a_script_that_converts_without_the_others(converted):
    _, files = converted(model=MODEL, train=OWN_LOOP, other=OWN_LOOP.replace("Net()", "torch.nn.Linear(2, 2)"))
    assert "optimizer = accelerator.prepare(" in files["train"]
    assert "ccelerator" not in files["other"]


PARTS = """
    import torch


    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x)

        def weights(self):
            return list(self.parameters())


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = Part(), Part()

        def forward(self, x):
            return self.head(self.body(x))

        def groups(self):
            fast, slow = [], []
            for name, child in self.named_children():
                if name == "head":
                    fast += child.weights()
                else:
                    slow += child.weights()
            return [{"params": fast}, {"params": slow, "lr": 0.01}]


    if __name__ == "__main__":
        net = Net()
        print(net(torch.zeros(3, 2)).shape, net.groups())
"""
TRYING = SCRIPT.replace("torch.nn.Linear(2, 2)", "parts.Net()").replace("net.parameters()", "net.groups()")


def test_what_a_file_makes_to_try_itself_out_is_no_model_of_the_program(converted):
    script = TRYING.replace("import engine", "import engine\n    import parts")
    report, files = converted(engine=ENGINE, parts=PARTS, train=script)
    assert reasons(report) == []
    assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in files["train"]
    assert files["parts"] == textwrap.dedent(PARTS)


def test_what_a_script_makes_under_its_main_guard_is(converted):
    guarded = SCRIPT.replace('if __name__ == "__main__":\n        main()\n', "")
    guarded = guarded.replace("def main():", 'if __name__ == "__main__":')
    report, files = converted(engine=ENGINE, train=guarded, test="import train\n")
    assert reasons(report) == []
    assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in files["train"]


META = """
    import torch


    class Meta(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(2, 2)
            self.optim = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def forward(self, x, y):
            loss = torch.nn.functional.cross_entropy(self.net(x), y)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            return loss.item()
"""
EPISODES = """
    import random

    import torch
    from torch.utils.data import DataLoader

    from meta import Meta


    def main():
        torch.manual_seed(222)
        device = torch.device("cuda")
        meta = Meta().to(device)
        rows = [(torch.ones(2) * number, number % 2) for number in range(40)]
        {choose}
        loader = DataLoader(rows, batch_size=10, shuffle=True)
        for step, (x, y) in enumerate(loader):
            loss = meta(x.to(device), y.to(device))
            print(step, loss)


    if __name__ == "__main__":
        main()
"""


def test_a_seed_that_one_of_them_needs_is_taken_by_all(converted):
    shuffled = "random.shuffle(rows)\n        rows = rows[:20]"
    report, files = converted(meta=META, first=EPISODES.format(choose=shuffled), second=EPISODES.format(choose="pass"))

    assert reasons(report) == []
    assert files["meta"].count("set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])") == 1
    assert all("meta.accelerator.print(step, loss)" in files[name] for name in ("first", "second"))


def test_a_seed_that_none_of_them_needs_is_not_set(converted):
    report, files = converted(meta=META, first=EPISODES.format(choose="pass"), second=EPISODES.format(choose="pass"))

    assert reasons(report) == []
    assert "set_seed" not in files["meta"]


def test_one_that_seeds_each_process_itself_takes_no_seed_of_another(converted):
    own = EPISODES.format(choose="random.seed(None)")
    report, files = converted(meta=META, first=EPISODES.format(choose="random.shuffle(rows)"), second=own)

    assert [code for _, code in reasons(report)] == ["MIG901"]
    assert all("ccelerator" not in text for text in files.values())


FETCHING = """
    import torch
    from torch.utils.data import DataLoader
    from torchvision import datasets


    def loaders():
        return DataLoader(datasets.MNIST("data", download=True), batch_size=10, shuffle=True)


    def train(net, loader, optimizer):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    def main():
        loader = loaders()
        net = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        train(net, loader, optimizer)


    if __name__ == "__main__":
        main()
"""


def test_a_download_in_a_function_of_another_script_is_left_to_one_at_the_call(converted):
    head, _, rest = textwrap.dedent(FETCHING).partition("def loaders")
    other = f"{head}from first import loaders\n\n\ndef train{rest.partition('def train')[2]}"
    report, files = converted(first=FETCHING, second=other)
    assert reasons(report) == []
    for name in ("first", "second"):
        assert "    with accelerator.main_process_first():\n        loader = loaders()" in files[name]


WHOLE = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(40, 2), torch.ones(40, 2)), batch_size=10)
net = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_model_that_another_script_goes_on_moving_is_moved_along(is_moved):
    file = SourceFile("train.py", WHOLE.encode())
    facts, plan = analyse(Project([file]), TABLES), Plan([file])
    along = Along(moves=frozenset({("train.py", 5, 6)} if is_moved else ()))

    _, does = convert_script(
        facts, plan, Options(mode=Mode.WRITE), (), {n.node for n in Loops(facts).training}, (), along
    )

    assert does == along
    (edit,) = (edit for edit in plan.edits("train.py") if edit.line == 5)
    assert edit.rule == ("MIG103" if is_moved else "MIG102")  # to the accelerator's device, or gone


PACED = """
    class Paced:
        def __init__(self, optimizer, warmup):
            self.optimizer, self.warmup, self.count = optimizer, warmup, 0

        def step(self):
            self.count += 1
            for group in self.optimizer.param_groups:
                group["lr"] = 0.1 * min(1.0, self.count / self.warmup)
            self.optimizer.step()

        def zero_grad(self):
            self.optimizer.zero_grad()
"""
PACED_SCRIPT = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from paced import Paced

    torch.manual_seed(0)
    data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))
    loader = DataLoader(data, batch_size=10, shuffle=True)
    net = torch.nn.Linear(2, 2)
    optimizer = Paced(torch.optim.SGD(net.parameters(), lr=0.1), 4)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
LOOKING = """
    import torch

    from paced import Paced


    def show(warmup):
        paced = Paced(torch.optim.Adam(torch.nn.Linear(3, 2).parameters()), warmup)
        for _ in range(9):
            paced.step()
            print(paced.optimizer.param_groups[0]["lr"])


    show(4)
"""


def test_what_another_script_hands_to_a_class_is_not_trained(converted):
    report, files = converted(paced=PACED, train=PACED_SCRIPT, look=LOOKING)
    assert not report.of(Kind.LEFT)
    assert "net, optimizer.optimizer = accelerator.prepare" in files["train"].replace("loader, net", "net")
    assert files["look"] == textwrap.dedent(LOOKING).lstrip("\n") or "ccelerator" not in files["look"]
