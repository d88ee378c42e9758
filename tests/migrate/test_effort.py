"""What was found out once is not found out again."""

import ast
import textwrap

from migrate import analysis
from migrate.alone.world import World
from migrate.analysis.state import State
from migrate.analysis.syntax import Tree
from migrate.edits import apply
from migrate.options import Mode, Options
from migrate.pipeline import run_text
from migrate.programs.values import content

SEVERAL = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=10, sampler=sampler)
    net = torch.nn.Linear(2, 2)
    net = DDP(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    {rest}
    dist.destroy_process_group()
"""


def report(rest, mode):
    return run_text(textwrap.dedent(SEVERAL).format(rest=rest).encode(), "", Options(mode=mode))


def test_a_program_of_several_processes_that_is_left_is_analysed_once(monkeypatch):
    solved = []
    solve = analysis.solve
    monkeypatch.setattr(analysis, "solve", lambda *given, **more: solved.append(given) or solve(*given, **more))
    found = report("dist.send(torch.ones(2), 1 - rank)", Mode.CHECK)
    assert found.findings
    assert not found.touched
    assert len(solved) == 1


def test_edits_that_were_made_to_look_at_them_are_not_made_again(monkeypatch):
    made = []
    edited = apply._edited
    monkeypatch.setattr(apply, "_edited", lambda file, *rest: made.append(file.content) or edited(file, *rest))
    changes = report("if rank == 0:\n    print('done')", Mode.PREVIEW).changes
    assert b"accelerator.backward(loss)" in changes[0].new
    assert len(made) == len(set(made)) > 1


def test_each_test_of_a_function_that_says_something_is_looked_at_once_for_all_ways_to_it(monkeypatch):
    looked_at = []
    truth = World.truth
    monkeypatch.setattr(World, "truth", lambda self, test: looked_at.append(test) or truth(self, test))
    branches = "\n".join(f"    if word == {number}:\n        found.append(word)" for number in range(8))
    report(f"def says(word, found):\n{branches}\n    return found\nif says(rank, []):\n    print('done')", Mode.CHECK)
    mine = [test for test in looked_at if ast.unparse(test) == "word == 7"]
    assert 0 < len(mine) < 2**7


def test_names_that_are_given_from_each_other_are_each_looked_at_once(monkeypatch):
    looked_at = []
    asks = content.asks_for_size
    monkeypatch.setattr(content, "asks_for_size", lambda facts, node: looked_at.append(node) or asks(facts, node))
    steps = "\n".join(
        f"    if low > {number}:\n        low, high = high - low, low * high + mid" for number in range(12)
    )
    train = "    loss = net(data).sum()\n    loss.backward()\n    optimizer.step()\n"
    made = "import torch\nnet = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    made += "data, low, high, mid = torch.ones(8, 2), 1.0, 2.0, 3.0\nwhile True:\n"
    text = f"{made}{train}{steps}\n    mid = low / high\n    for part in range(int(mid)):\n        print(part)\n"
    run_text(text.encode(), "", Options(mode=Mode.PREVIEW))
    assert 0 < len(looked_at) < 10_000


def test_what_an_object_holds_by_others_is_each_looked_into_once(monkeypatch):
    looked_into = []
    held = State.held
    monkeypatch.setattr(State, "held", lambda state, owner: looked_into.append(owner) or held(state, owner))
    levels = ("leaf", "branch", "tree")
    made = ["import torch", "from torch.utils.data import DataLoader", "class Node:\n    pass"]
    made += [f"{level}{number} = Node()" for level in levels for number in range(12)]
    for outer, inner in (("branch", "leaf"), ("tree", "branch")):
        made += [f"{outer}{i}.part{j} = {inner}{j}" for i in range(12) for j in range(12)]
    parts = "".join(f"        self.part{number} = tree{number}\n" for number in range(12))
    feed = f"class Feed:\n    def __init__(self, loader):\n        self.loader = loader\n{parts}"
    made += [f"{feed}    def __iter__(self):\n        yield from self.loader"]
    made += ["first, second = Feed(DataLoader(torch.ones(8))), Feed(DataLoader(torch.ones(8)))"]
    made += ["net = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)"]
    made += ["for x in first:\n    net(x).sum().backward()\n    optimizer.step()", "for x in second:\n    print(x)"]
    run_text("\n".join(made).encode(), "", Options(mode=Mode.PREVIEW))
    assert 0 < len(looked_into) < 1000


def test_a_long_block_is_looked_through_once_for_where_to_prepare(monkeypatch):
    looked = []
    in_block = Tree.in_block
    monkeypatch.setattr(Tree, "in_block", lambda self, node, block: looked.append(node) or in_block(self, node, block))
    rest = "\n".join(f"x{number} = {number}" for number in range(300))
    assert report(rest, Mode.CHECK).touched
    assert len(looked) < 300
