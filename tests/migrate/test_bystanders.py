"""Scripts with processes of their own in which nothing trains, beside programs that train: they stay as they are."""

import textwrap

import pytest

from migrate.options import Mode, Options
from migrate.pipeline import run
from migrate.report.model import Kind

TOOLS = """
    import os

    import torch
    import torch.distributed as dist


    def is_started():
        return dist.is_available() and dist.is_initialized()


    def rank():
        return dist.get_rank() if is_started() else 0


    def keep(path, state):
        if rank() == 0:
            torch.save(state, path)


    def mute(is_first):
        import builtins
        told = builtins.print

        def print(*args, **kwargs):
            if is_first or kwargs.pop("force", False):
                told(*args, **kwargs)

        builtins.print = print


    def join(args):
        args.rank = int(os.environ["RANK"])
        args.gpu = int(os.environ["LOCAL_RANK"])
        dist.init_process_group("gloo")
        dist.barrier()
        mute(args.rank == 0)


    def told(loader):
        for i, item in enumerate(loader):
            print("step", i)
            yield item


    def restore(path, **objects):
        if not os.path.isfile(path):
            return
        state = torch.load(path, map_location="cpu")
        for key, each in objects.items():
            if key in state:
                print(each.load_state_dict(state[key]))
"""
TRAIN = """
    import argparse

    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    import tools


    def train(args):
        tools.join(args)
        torch.manual_seed(0)
        data = TensorDataset(torch.ones(32, 4), torch.ones(32, 1))
        loader = DataLoader(data, 4, sampler=DistributedSampler(data))
        net = torch.nn.Linear(4, 1)
        net = torch.nn.parallel.DistributedDataParallel(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        tools.restore("last.pt", net=net, optimizer=optimizer)
        for epoch in range(2):
            loader.sampler.set_epoch(epoch)
            for x, y in tools.told(loader):
                loss = torch.nn.functional.mse_loss(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            tools.keep("last.pt", {"net": net.state_dict(), "optimizer": optimizer.state_dict()})


    if __name__ == "__main__":
        train(argparse.ArgumentParser().parse_args())
"""
BESIDE = """
    import argparse

    import torch
    import torch.distributed as dist

    import tools


    @torch.no_grad()
    def features(net, loader):
        found = []
        for (x,) in tools.told(loader):
            parts = [torch.zeros(4, 1) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, net(x))
            found += parts
        return torch.cat(found)


    if __name__ == "__main__":
        tools.join(argparse.ArgumentParser().parse_args())
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(32, 4)), 4)
        print(features(torch.nn.Linear(4, 1), loader).shape)
"""
JOB = """
    import submitit

    import train


    class Job:
        def __init__(self, args):
            self.args = args

        def __call__(self):
            job = submitit.JobEnvironment()
            self.args.gpu = job.local_rank
            self.args.rank = job.global_rank
            print(job.global_rank, "of", job.num_tasks)
            train.train(self.args)
"""


@pytest.fixture
def converted(tmp_path, monkeypatch):
    """Gives back the report and the files after a run over files by name."""
    monkeypatch.chdir(tmp_path)

    def convert(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text).lstrip("\n"))
        report = run(["."], Options(mode=Mode.WRITE))
        return report, {name: (tmp_path / f"{name}.py").read_text() for name in files}

    return convert


def loops(report):
    return [finding.converts for finding in report.findings if finding.kind is Kind.LOOP]


def test_what_gathers_features_stays_with_what_it_uses(converted):
    report, files = converted(tools=TOOLS, train=TRAIN, beside=BESIDE)
    assert loops(report) == [True]
    assert files["beside"] == textwrap.dedent(BESIDE).lstrip("\n")
    assert "dist." not in files["train"]
    before, after = textwrap.dedent(TOOLS).lstrip("\n"), files["tools"]
    for name in ("mute", "join", "told"):
        start = before.index(f"def {name}")
        assert before[start : before.find("\n\n\n", start)] in after
    assert "def keep(path, state, accelerator):\n    if accelerator.is_main_process:" in after


def test_prints_of_shared_functions_stay_those_of_one_process(converted):
    report, files = converted(tools=TOOLS, train=TRAIN, beside=BESIDE)
    assert "tools.mute(accelerator.is_main_process)" in files["train"]
    assert not [finding for finding in report.findings if finding.code == "MIG117"]


def test_without_such_scripts_nothing_mutes_the_others(converted):
    _, files = converted(tools=TOOLS, train=TRAIN)
    assert "mute" not in files["train"] + files["tools"]


def test_a_model_that_is_one_of_many_objects_is_loaded_without_its_wrapper(converted):
    _, files = converted(tools=TOOLS, train=TRAIN, beside=BESIDE)
    assert "net=accelerator.unwrap_model(net), optimizer=optimizer)" in files["train"]
    strip = 'torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state[key], "module.")\n'
    assert strip + " " * 12 + "accelerator.print(each.load_state_dict(state[key]))" in files["tools"]


def test_what_both_use_and_distributes_is_refused(converted):
    shared = TOOLS + textwrap.dedent("""
        def total(value):
            dist.all_reduce(value)
            return value
    """).replace("\n", "\n    ")
    train = TRAIN.replace("tools.keep(", "print(tools.total(torch.ones(1)))\n            tools.keep(")
    beside = BESIDE.replace("found += parts", "found += [tools.total(parts[0])]")
    report, files = converted(tools=shared, train=train, beside=beside)
    assert loops(report) == [False]
    (left,) = [finding for finding in report.findings if finding.kind is Kind.LEFT]
    assert (left.code, left.message) == ("MIG113", "total() is run by several processes of its own in beside.py, too")
    assert files["train"] == textwrap.dedent(train).lstrip("\n")


def test_a_job_tells_the_accelerator_its_place(converted):
    report, files = converted(tools=TOOLS, train=TRAIN, job=JOB)
    assert loops(report) == [True]
    assert "import os\n" in files["job"]
    assert "os.environ.update(RANK=str(job.global_rank), LOCAL_RANK=str(job.local_rank)," in files["job"]
    assert 'print(job.global_rank, "of", job.num_tasks)' in files["job"]
    assert "self.args.rank" not in files["job"]
