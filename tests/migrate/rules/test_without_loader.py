"""Programs that make their batches themselves: converted as long as all processes take the same steps."""

import pytest

from migrate.report.model import Kind

HEAD = """
import random
import numpy as np
import torch
from torch import nn, optim

{seed}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
rows = torch.linspace(0, 1, 32, device=device).view(16, 2)
model = nn.Linear(2, 1).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """
{indent}loss = model(x).pow(2).mean()
{indent}optimizer.zero_grad()
{indent}loss.backward()
{indent}optimizer.step()
"""
SEEDED = "torch.manual_seed(0)"


def program(body, seed=SEEDED):
    indent = body.rsplit("x = ", 1)[0].rpartition("\n")[2]
    step = STEP.format(indent=indent).strip("\n")
    lines = [line if line.strip() != "STEP" else step for line in body.strip("\n").splitlines()]
    return (HEAD.format(seed=seed) + "\n".join(lines) + "\n").lstrip("\n")


def kept(report):
    return [(finding.code, finding.message) for finding in report.of(Kind.LEFT)]


STOP_BY_LOSS = """
for step in range(100):
    x = rows[torch.randperm(16)[:4]]
    STEP
    if loss.item() < 0.01:
        break
"""
CONVERTED = {
    "a rate that goes on from the one it was": (
        (
            "for epoch in range(9):\n    for group in optimizer.param_groups:\n        if group['lr'] > 0.01:\n"
            "            group['lr'] = group['lr'] * 0.9\n    x = rows\n    STEP\n"
            "    if optimizer.param_groups[0]['lr'] < 0.02:\n        break"
        ),
        "",
    ),
    "slices": ("for i in range(0, len(rows), 4):\n    x = rows[i:i + 4]\n    STEP", ""),
    "a shuffled order": ("for i in torch.randperm(len(rows)).split(4):\n    x = rows[i]\n    STEP", ""),
    "batches of random samples": (
        (
            "for step in range(100):\n    x = rows[torch.randint(16, (4,))]\n    STEP\n"
            "    if step % 10 == 0:\n        print(1)"
        ),
        "",
    ),
    "a generator": (
        (
            "def batches(size):\n    order = torch.randperm(len(rows))\n    for i in range(0, len(rows), size):\n"
            "        yield rows[order[i:i + size]]\n\nfor x in batches(4):\n    x = x + 0\n    STEP"
        ),
        "",
    ),
    "a replay buffer that fills evenly": (
        (
            "memory = []\nfor frame in range(100):\n    memory.append(random.random())\n    if len(memory) > 10:\n"
            "        x = torch.tensor(random.sample(memory, 8), device=device).view(4, 2)\n        STEP"
        ),
        "",
    ),
    "an early stop by a loss, seeded": (
        "for step in range(100):\n    x = rows\n    STEP\n    if loss.item() < 0.01:\n        break",
        SEEDED,
    ),
    "an early stop by the whole data, not seeded": (
        (
            "best = 9\nfor step in range(100):\n    model.train()\n    x = rows[torch.randperm(16)[:4]]\n    STEP\n"
            "    model.eval()\n    value = model(rows).mean().item()\n    if value > best:\n"
            "        break\n    best = value"
        ),
        "",
    ),
    "an early stop by a model without dropout, not seeded": (
        "for step in range(100):\n    x = rows\n    STEP\n    if loss.item() < 0.01:\n        break",
        "",
    ),
    "a learning rate by the whole data, not seeded": (
        (
            "lr, best = 0.1, 9\nfor step in range(100):\n    model.train()\n"
            "    x = rows[torch.randperm(16)[:4]]\n    STEP\n"
            "    model.eval()\n    value = model(rows).mean().item()\n    if value > best:\n        lr /= 10\n"
            "        for group in optimizer.param_groups:\n            group['lr'] = lr\n    best = value"
        ),
        "",
    ),
    "a learning rate by a counter that a checkpoint may give": (
        (
            "def rate(step):\n    if step < 10:\n        return step / 10\n    return 0.5 ** step\n\nstep = 0\n"
            "if random_start:\n    saved = torch.load('m.pt')\n    step = saved['step']\nwhile True:\n"
            "    x = rows[torch.randperm(16)[:4]]\n    STEP\n    for group in optimizer.param_groups:\n"
            "        group['lr'] = rate(step)\n    step += 1\n    if step > 100:\n        break\n"
            "    saved = {'step': step, 'loss': loss.item()}"
        ),
        "random_start = False",
    ),
    "a list of as many things": (
        (
            "def parts(row, n):\n    found = []\n    for i in range(n):\n        found.append(row * random.random())\n"
            "    return found\n\nfor step in range(100):\n"
            "    for part in parts(rows[int(random.random() * 9):], 3):\n        x = part\n        STEP"
        ),
        "",
    ),
    "things side by side": (
        (
            "noise, more = torch.rand(8, 4, 2, device=device), torch.randn(8, 4, 2, device=device)\n"
            "for i in range(noise.size(0)):\n    for a, b in zip(noise, more):\n        x = a + b\n        STEP"
        ),
        "",
    ),
    "a draw that decides what is shown": (
        "for step in range(100):\n    x = rows\n    STEP\n    if random.random() < 0.1:\n        print(loss.item())",
        "",
    ),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_converted(convert_text, name):
    body, seed = CONVERTED[name]
    report, result = convert_text(program(body, seed))

    assert kept(report) == []
    assert "model, optimizer = accelerator.prepare(model, optimizer)" in result
    assert "accelerator.backward(loss)" in result
    assert [f.code for f in report.of(Kind.NOTE) if "come from no DataLoader" in f.message] == ["MIG903"]


REFUSED = {
    "an early stop by a loss": (
        (
            "for step in range(100):\n    x = rows[torch.randperm(16)[:4]]\n    STEP\n"
            "    if loss.item() < 0.01:\n        break"
        ),
        "",
        "decided here by loss.item() < 0.01",
    ),
    "an early stop by a loss, another library seeded": (
        (
            "for step in range(100):\n    x = rows[np.random.permutation(16)[:4]]\n    STEP\n"
            "    if loss.item() < 0.01:\n        break"
        ),
        SEEDED,
        "numpy and a random generator of its own not seeded)",
    ),
    "a step in a comprehension": (
        "for step in range(100):\n    x = rows\n    STEP\n    [optimizer.step() for _ in [0] if random.random() < 0.5]",
        "",
        "decided here by [optimizer.step()",
    ),
    "a number of steps in a comprehension": (
        "for step in range(100):\n    x = rows\n    STEP\n    [optimizer.step() for _ in range(random.randint(1, 9))]",
        "",
        "decided here by [optimizer.step()",
    ),
    "steps in cases": (
        (
            "for step in range(100):\n    match random.random() < 0.5:\n        case True:\n            x = rows\n"
            "            STEP"
        ),
        "",
        "decided here by match",
    ),
    "a seed that is drawn itself": (
        STOP_BY_LOSS,
        "torch.manual_seed(random.randint(1, 10000))",
        "not seeded",
    ),
    "a seed that need not be set": (
        STOP_BY_LOSS,
        "if input():\n    torch.manual_seed(0)",
        "torch not seeded",
    ),
    "a clock, all seeded": (
        "import time\nstart = time.time()\nwhile time.time() - start < 60:\n    x = rows\n    STEP",
        SEEDED,
        "which a clock or the system gives",
    ),
    "steps until something is drawn": (
        "while random.random() < 0.9:\n    x = rows\n    STEP",
        "",
        "decided here by random.random() < 0.9",
    ),
    "a number of steps that is drawn": (
        "for step in range(random.randint(10, 20)):\n    x = rows\n    STEP",
        "",
        "how often this loop runs",
    ),
    "patience": (
        (
            "best, bad = 9, 0\nfor step in range(100):\n    x = rows[torch.randperm(16)[:4]]\n    STEP\n"
            "    if loss.item() < best:\n        best, bad = loss.item(), 0\n    else:\n        bad += 1\n"
            "    if bad > 3:\n        break"
        ),
        "",
        "decided here by bad > 3",
    ),
    "a learning rate that is drawn before it is set": (
        (
            "lr = 0.1\nfor step in range(100):\n    x = rows[torch.randperm(16)[:4]]\n    STEP\n"
            "    for group in optimizer.param_groups:\n        group['lr'] = lr\n    lr = 0.1 * loss.item()"
        ),
        "",
        "the learning rate is set here by lr",
    ),
    "a number of another function around it": (
        (
            "def train():\n    n = 0\n    def toss():\n        nonlocal n\n        if random.random() < 0.5:\n"
            "            n += 1\n    while n < 9:\n        toss()\n        x = rows\n        STEP\n\ntrain()"
        ),
        "",
        "decided here by n < 9",
    ),
    "steps by default": (
        "def run(steps=random.randint(5, 9)):\n    for step in range(steps):\n        x = rows\n        STEP\n\nrun()",
        "",
        "how often this loop runs is decided by range(steps)",
    ),
    "steps behind a star": (
        (
            "def run(steps, lr=0.1):\n    for step in range(steps):\n        x = rows\n        STEP\n\n"
            "run(*[random.randint(5, 9)])"
        ),
        "",
        "how often this loop runs is decided by range(steps)",
    ),
    "steps before a star": (
        (
            "def run(steps, *more):\n    for step in range(steps):\n        x = rows\n        STEP\n\n"
            "run(random.randint(5, 9), *rows)"
        ),
        "",
        "how often this loop runs is decided by range(steps)",
    ),
    "steps that are handed on behind a star": (
        (
            "def run(steps):\n    for step in range(steps):\n        x = rows\n        STEP\n\n"
            "def start(*given):\n    run(*given)\n\nstart(random.randint(5, 9))"
        ),
        "",
        "how often this loop runs is decided by range(steps)",
    ),
    "what was played, backwards": (
        (
            "played = []\nwhile random.random() < 0.9:\n    played.append(1.0)\n"
            "for reward in played[::-1]:\n    x = rows * reward\n    STEP"
        ),
        "",
        "how often this loop runs is decided by played[::-1]",
    ),
    "a list that is filled by chance in a function": (
        (
            "def parts(row, n):\n    found = []\n    for i in range(n):\n        if random.random() < 0.5:\n"
            "            found.append(row)\n    return found\n\nfor part in parts(rows, 3):\n    x = part\n    STEP"
        ),
        "",
        "how often this loop runs is decided by parts(rows, 3)",
    ),
    "a masked number of rows": (
        "for row in rows[torch.rand(16) > 0.5]:\n    x = row\n    STEP",
        "",
        "how often this loop runs",
    ),
    "a learning rate by a loss": (
        (
            "for step in range(100):\n    x = rows[torch.randperm(16)[:4]]\n    STEP\n"
            "    for group in optimizer.param_groups:\n        group['lr'] = 0.1 * loss.item()"
        ),
        "",
        "the learning rate is set here by",
    ),
    "a rate that goes on from one that a loss has set": (
        (
            "for step in range(100):\n    x = rows[torch.randperm(16)[:4]]\n    STEP\n"
            "    if step == 9:\n        optimizer.param_groups[0]['lr'] = 0.1 * loss.item()\n"
            "    for group in optimizer.param_groups:\n        group['lr'] = group['lr'] * 0.9"
        ),
        "",
        "the learning rate is set here by group['lr'] * 0.9",
    ),
    "a stop at a rate that a scheduler lowers by chance": (
        (
            "scheduler = optim.lr_scheduler.StepLR(optimizer, 1)\nfor step in range(100):\n"
            "    x = rows[torch.randperm(16)[:4]]\n    STEP\n    if random.random() < 0.5:\n        scheduler.step()\n"
            "    if optimizer.param_groups[0]['lr'] < 0.01:\n        break"
        ),
        "",
        "decided here by optimizer.param_groups[0]['lr'] < 0.01",
    ),
    "a plateau by a loss": (
        (
            "scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n"
            "for epoch in range(9):\n    for step in range(100):\n"
            "        x = rows[torch.randperm(16)[:4]]\n        STEP\n    scheduler.step(loss)"
        ),
        "",
        "the learning rate is set here by loss",
    ),
    "a buffer that fills unevenly": (
        (
            "memory = []\nfor frame in range(100):\n    if random.random() < 0.5:\n        memory.append(1.0)\n"
            "    if len(memory) > 10:\n        x = rows\n        STEP"
        ),
        "",
        "decided here by len(memory) > 10",
    ),
}


#: A generator that no seed of a library reaches.
OUT_OF_REACH = "generator = np.random.default_rng()"
#: What no seed makes the same on all processes.
NEVER_THE_SAME = ("a clock, all seeded", "a seed that need not be set")


@pytest.mark.parametrize("name", REFUSED)
def test_refused(convert_text, name):
    body, seed, says = REFUSED[name]
    source = program(body, seed if name in NEVER_THE_SAME else f"{seed}\n{OUT_OF_REACH}")
    report, result = convert_text(source)

    assert result == source
    assert [code for code, message in kept(report) if says in message] == ["MIG122"]
    assert all(finding.hint for finding in report.of(Kind.LEFT))


def test_of_many_decisions_for_one_reason_three_are_told(convert_text):
    ends = "\n".join(f"    if loss.item() < 0.0{number}:\n        break" for number in range(1, 6))
    body = f"for step in range(100):\n    x = rows[torch.randperm(16)[:4]]\n    STEP\n{ends}"
    report, _ = convert_text(program(body, OUT_OF_REACH))

    messages = [message for code, message in kept(report) if code == "MIG122"]
    assert len(messages) == 3
    assert sum("not seeded), as may 2 more decisions: they would" in message for message in messages) == 1


SEEDING = """
if accelerator.num_processes > 1:
    set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])
"""


@pytest.mark.parametrize("name", [name for name in REFUSED if name not in NEVER_THE_SAME])
def test_one_seed_lets_all_decide_alike(convert_text, name):
    body, seed, _ = REFUSED[name]
    report, result = convert_text(program(body, seed))

    assert kept(report) == []
    assert SEEDING in result
    assert "from runtime import Accelerator, broadcast_object_list, set_seed" in result


@pytest.mark.parametrize(
    "own",
    [
        "torch.manual_seed(int(time.time()))",
        "random.seed()",
        "np.random.seed(None)",
        "torch.seed()",
        "generator = random.Random()",
        "def set_seed(seed):\n    torch.manual_seed(seed)",
    ],
)
def test_a_seed_of_its_own_stays(convert_text, own):
    source = program(STOP_BY_LOSS, f"import time\n{own}")
    report, result = convert_text(source)

    assert result == source
    assert [code for code, _ in kept(report)] == ["MIG122"]


def test_what_is_drawn_is_drawn_after_the_seed(convert_text):
    source = program(STOP_BY_LOSS, "noise = torch.randn(16, 2)")
    report, result = convert_text(source)

    assert kept(report) == []
    assert result.index("set_seed(b") < result.index("noise =") < result.index("device = accelerator.device")


def test_what_is_drawn_before_the_program_begins_is_refused(convert_text):
    head, _, rest = program(STOP_BY_LOSS, "").partition("device =")
    body = "".join(f"    {line}\n" for line in f"device ={rest}".splitlines())
    source = f"{head}noise = torch.randn(16, 2)\n\ndef main():\n{body}\nmain()\n"
    report, result = convert_text(source)

    assert result == source
    assert [(code, "torch.randn(16, 2) draws something" in why) for code, why in kept(report)] == [("MIG123", True)]


TARGET = """
import random
import torch
from torch import nn, optim

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(2, 1)

    def forward(self, x):
        return self.out(x)

class Agent:
    def __init__(self, use_cuda, is_fast=True):
        self.target = Net()
        self.use_cuda = use_cuda and torch.cuda.is_available()
        self.device = torch.device("cuda" if self.use_cuda else "cpu")
        self.net = Net().to(self.device)
        self.target.to(self.device)
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)

    def learn(self):
        while random.random() < 0.9:
            x = torch.rand(4, 2, device=self.device)
            loss = (self.net(x) - self.target(x)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

Agent(True).learn()
"""


def test_a_model_that_nobody_trains_is_made_after_the_seed(convert_text):
    report, result = convert_text(TARGET)

    assert kept(report) == []
    assert "self.accelerator = Accelerator(cpu=not use_cuda)" in result
    assert result.index("set_seed(b") < result.index("self.target = Net()")


def test_a_model_that_nobody_trains_is_made_before_the_device_is_known(convert_text):
    source = TARGET.replace("= use_cuda and", "= use_cuda and is_fast and")
    report, result = convert_text(source)

    assert result.strip() == source.strip()
    assert kept(report) == [
        ("MIG123", "Net() draws something here, before there is an accelerator to agree on a seed with")
    ]
    above = source.replace("        self.target = Net()\n", "", 1)
    above = above.replace("        self.net =", "        self.target = Net()\n        self.net =")
    report, result = convert_text(above)
    assert kept(report) == []
    assert result.index("set_seed(b") < result.index("self.target = Net()")


COMMANDS = """
import sys
import torch
from torch import nn, optim

def show():
    print(torch.randn(4))

def train():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    goal = torch.load("goal.pt").to(device)
    image = torch.rand(4, device=device, requires_grad=True)
    optimizer = optim.SGD([image], lr=0.1)
    for step in range(9):
        loss = (image - goal).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def main():
    if sys.argv[1] == "show":
        show()
    elif sys.argv[1] == "train":
        train()

main()
"""


def test_what_another_command_draws_is_not_drawn_before(convert_text):
    report, result = convert_text(COMMANDS)

    assert kept(report) == []
    assert "set_seed(b" in result


@pytest.mark.parametrize("both", [("elif", "if"), ('    if sys.argv[1] == "show":\n    ', "")], ids=["if", "always"])
def test_what_may_be_drawn_before_the_training(convert_text, both):
    source = COMMANDS.replace(*both).replace("    elif", "    if")
    report, result = convert_text(source)

    assert result.strip() == source.strip()
    assert kept(report) == [
        ("MIG123", "show() draws something here, before there is an accelerator to agree on a seed with")
    ]


def test_weights_alone_need_no_seed(convert_text):
    report, result = convert_text(program("for step in range(9):\n    x = rows\n    STEP", ""))

    assert kept(report) == []
    assert "set_seed" not in result


def test_a_program_without_a_device_stays_on_the_cpu(convert_text):
    source = program("for step in range(9):\n    x = torch.zeros(4, 2)\n    STEP")
    source = source.replace('device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n', "")
    source = source.replace(", device=device", "").replace(".to(device)", "")
    report, result = convert_text(source)

    assert "accelerator = Accelerator(cpu=True)" in result
    assert "x = torch.zeros(4, 2)" in result
    assert any("stays on the CPU" in finding.message for finding in report.of(Kind.NOTE))


OLD = """
import gym
{made}
for episode in range(9):
    state, done = env.reset(), False
    while not done:
        x = torch.as_tensor(state, device=device)
        STEP
        state, reward, done, _ = env.step({action})
"""
NEW = OLD.replace("import gym", "import gymnasium as gym").replace("env.reset()", "env.reset()[0]")
NEW = NEW.replace("done, _ =", "done, cut, _ =")
ENVIRONMENTS = {
    "an older version": (OLD, "env = gym.make('A-v0')", "0", ["env.seed({})"]),
    "a newer one": (NEW, "env = gym.make('A-v0')", "0", ["env.reset(seed={})"]),
    "actions that it chooses": (
        NEW,
        "env = gym.make('A-v0')",
        "env.action_space.sample()",
        ["env.reset(seed={})", "env.action_space.seed({})"],
    ),
    "a wrapper around it": (OLD, "env = gym.wrappers.Clip(gym.make('A-v0').unwrapped)", "0", ["env.seed({})"]),
    "made above the function of the accelerator": (
        NEW,
        "env = gym.make('A-v0')\nsize = env.action_space.sample().shape",
        "env.action_space.sample()",
        ["env.reset(seed={})", "env.action_space.seed({})"],
    ),
    "made and wrapped in a function": (
        NEW,
        "def make():\n    it = gym.make('A')\n    return gym.wrappers.Clip(it)\nenv = make()",
        "0",
        ["env.unwrapped.reset(seed={})"],
    ),
    "made in a function": (
        OLD,
        "def make():\n    it = gym.make('A')\n    return it\nenv = make()",
        "0",
        ["env.seed({})"],
    ),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_gets_the_seed(convert_text, name):
    text, made, action, seeding = ENVIRONMENTS[name]
    report, result = convert_text(program(text.format(made=made, action=action), ""))

    assert kept(report) == []
    assert SEEDING in result
    lines = [line.strip() for line in result.splitlines()]
    at = lines.index(seeding[0].format("torch.initial_seed() % 2**32"))
    assert lines[at - 1] == "if accelerator.num_processes > 1:"
    assert lines[at : at + len(seeding)] == [call.format("torch.initial_seed() % 2**32") for call in seeding]


@pytest.mark.parametrize(
    "made",
    [
        "env = [gym.make('A-v0') for _ in range(2)][0]",
        "for i in range(2):\n    env = gym.make('A-v0')",
        "env = (lambda: gym.make('A-v0'))()",
        "import vizdoom\nenv = gym.make('A-v0')",
        "class Own(gym.Env):\n    def reset(self):\n        return self.np_random.random()\nenv = gym.make('A-v0')",
    ],
)
def test_an_environment_out_of_reach_is_refused(convert_text, made):
    source = program(OLD.format(made=made, action="0"), "")
    report, result = convert_text(source)

    assert result == source
    assert [code for code, message in kept(report) if "the environment not seeded" in message] == ["MIG122"]
    assert "env.reset(seed=0)" in report.of(Kind.LEFT)[0].hint


def test_a_library_of_games_that_is_only_imported(convert_text):
    report, result = convert_text(program(f"import gym\n{STOP_BY_LOSS.strip()}", ""))

    assert kept(report) == []
    assert SEEDING in result


def test_games_that_are_recorded_are_refused(convert_text):
    made = "env = gym.wrappers.Monitor(gym.make('A-v0'), 'films')"
    report, _ = convert_text(program(OLD.format(made=made, action="0"), ""))

    assert [code for code, _ in kept(report)] == ["MIG117"]


def test_a_backend_of_a_library_is_refused(convert_text):
    body = "for step in range(9):\n    x = rows\n    STEP"
    source = program(body).replace('"cuda" if torch.cuda.is_available() else "cpu"', '"tiny"')
    report, result = convert_text(source)

    assert result == source
    assert [code for code, _ in kept(report)] == ["MIG101"]


def test_what_a_tensor_is_like_is_the_same(convert_text):
    body = (
        "for step in range(100):\n    noise = torch.rand(4, 2, device=device)\n    if not noise.requires_grad:\n"
        "        x = noise\n        STEP"
    )
    report, result = convert_text(program(body, ""))

    assert kept(report) == []
    assert "set_seed" not in result


def test_an_environment_that_is_seeded(convert_text):
    report, result = convert_text(program(OLD.format(made="env = gym.make('A')\nenv.seed(0)", action="0")))

    assert kept(report) == []
    assert "set_seed" not in result


LAMBDA = "wrap = lambda rows: torch.as_tensor(rows).cuda() if has_gpu else torch.as_tensor(rows)"


def test_a_lambda_that_moves_sees_the_accelerator(convert_text):
    body = (
        f"has_gpu = torch.cuda.is_available()\n{LAMBDA}\nfor step in range(9):\n    x = wrap(np.ones((4, 2)))\n    STEP"
    )
    report, result = convert_text(program(body))

    assert kept(report) == []
    assert "wrap = lambda rows: torch.as_tensor(rows).to(accelerator.device)\n" in result


def test_a_lambda_that_does_not_see_the_accelerator_is_refused(convert_text):
    source = program("for step in range(9):\n    x = wrap(np.ones((4, 2)))\n    STEP")
    before, after = source.split("rows = torch.linspace")
    body = "".join(f"    {line}\n" for line in f"rows = torch.linspace{after}".splitlines())
    source = f"has_gpu = torch.cuda.is_available()\n{before}{LAMBDA}\n\ndef main():\n{body}\nmain()\n"
    source = source.replace("has_gpu = torch.cuda.is_available()\nimport random", "import random", 1)
    source = source.replace(LAMBDA, f"has_gpu = torch.cuda.is_available()\n{LAMBDA}")
    report, result = convert_text(source)

    assert result == source
    assert [code for code, _ in kept(report)] == ["MIG120"]


def test_rates_and_schedules_go_by_the_steps_that_every_process_takes(convert_text):
    steps = (
        "scheduler = optim.lr_scheduler.StepLR(optimizer, 10)\nfor step in range(100):\n    x = rows\n    STEP\n"
        "    scheduler.step()\n    optimizer.param_groups[0]['lr'] = 0.1 * (1 - step / 100)\n    if step % 10 == 0:\n"
        "        optimizer.param_groups[0]['lr'] *= 0.1\n    for group in optimizer.param_groups:\n"
        "        group['lr'] *= 0.99"
    )
    report, result = convert_text(program(steps))

    assert kept(report) == []
    assert "model, optimizer = accelerator.prepare(model, optimizer)" in result
    assert "(1 - step / 100)" in result


def test_rates_of_batches_taken_by_hand_go_by_the_loop(convert_text):
    made = "from torch.utils.data import DataLoader, TensorDataset\nloader = DataLoader(TensorDataset(rows, rows), 4)\n"
    rate = "    optimizer.param_groups[0]['lr'] = 0.1 * (1 - step / 100)"
    steps = "batches = iter(loader)\nfor step in range({n}):\n    x, y = next(batches)\n"
    step = STEP.format(indent="    ").strip("\n")
    _, counted = convert_text(program(f"{made}{steps.format(n=100)}{step}\n{rate}"))
    _, measured = convert_text(program(f"{made}{steps.format(n='len(loader)')}{step}\n{rate}"))

    assert "(1 - step / 100)" in counted
    assert "(1 - step * accelerator.num_processes / 100)" in measured


NEXT = {
    "next in a try": (
        "batches = iter(loader)\nfor step in range(9):\n    try:\n        x, y = next(batches)\n"
        "    except StopIteration:\n        batches = iter(loader)\n        x, y = next(batches)\n"
    ),
    "the method of an iterator": (
        "batches = iter(loader)\nfor step in range(len(loader)):\n    x, y = batches.__next__()\n"
    ),
    "a generator without an end": (
        "def cycle(loader):\n    while True:\n        for batch in loader:\n            yield batch\n\n"
        "batches = cycle(loader)\nfor step in range(9):\n    x, y = next(batches)\n"
    ),
}


@pytest.mark.parametrize("name", NEXT)
def test_batches_taken_by_hand_come_from_a_prepared_loader(convert_text, name):
    step = STEP.format(indent="    ").strip("\n")
    made = "from torch.utils.data import DataLoader, TensorDataset\nloader = DataLoader(TensorDataset(rows, rows), 4)\n"
    report, result = convert_text(program(f"{made}{NEXT[name]}    x = x.to(device)\n{step}"))

    assert kept(report) == []
    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in result
    assert ".to(device)" not in result
    assert not [f for f in report.of(Kind.NOTE) if f.code == "MIG903"]


def test_what_is_made_and_used_under_a_condition_is_prepared_under_it(convert_text):
    source = program("for step in range(9):\n    x = rows\n    STEP").replace(
        "optimizer = optim.SGD(model.parameters(), lr=0.1)\n",
        "if by_optimizer:\n    optimizer = optim.SGD(model.parameters(), lr=0.1)\n",
    )
    source = source.replace(SEEDED, f"{SEEDED}\nby_optimizer = True")
    source = source.replace("    optimizer.zero_grad()", "    model.zero_grad()")
    source = source.replace("    optimizer.step()", "    if by_optimizer:\n        optimizer.step()")
    report, result = convert_text(source)

    assert kept(report) == []
    assert "if by_optimizer:\n    optimizer = accelerator.prepare(optimizer)\n" in result
    assert "\nmodel = accelerator.prepare(model)\n" in result


SEEDS_ONLY = """
import torch
from torch import nn, optim

torch.manual_seed(42)
if torch.cuda.is_available():
    torch.cuda.manual_seed(42)
    torch.backends.cudnn.deterministic = True
model = nn.Linear(4, 1)
shift = torch.ones(1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    optimizer.zero_grad()
    loss = (model(torch.rand(8, 4)) + shift).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


def test_a_program_that_only_seeds_a_gpu_stays_on_the_cpu(convert_text):
    _, text = convert_text(SEEDS_ONLY)
    _, moved = convert_text(SEEDS_ONLY.replace("torch.ones(1)", "torch.ones(1).cuda()"))

    assert "Accelerator(cpu=True)" in text
    assert "Accelerator()" in moved


WITH_LOADER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

{seed}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.ones(10, 2), torch.ones(10, 1))
weights = torch.rand(10, 1).to(device)
steps, noted = torch.arange(1, 4), torch.zeros(3)
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
history = []
for epoch in range(2):
    start = 0
    for {target} in {over}:
        {rows}
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2 * w).mean()
        loss.backward()
        optimizer.step()
        history.append((loss.item(), epoch))
"""
ENUMERATED = {"target": "i, (x, y)", "over": "enumerate(loader)"}
#: Rows by the number of the batch, in many spellings.
BY_NUMBER = {
    "enumerate": {**ENUMERATED, "rows": "w = weights[i * 4:(i + 1) * 4]"},
    "a range beside it": {
        "target": "i, (x, y)",
        "over": "zip(range(3), loader)",
        "rows": "w = weights[i * 4:i * 4 + 4]",
    },
    "a number that is computed": {**ENUMERATED, "rows": "low = i * 4\nhigh = min(low + 4, 10)\nw = weights[low:high]"},
    "a counter": {"rows": "w = weights[start * 4:(start + 1) * 4]\nstart += 1"},
    "a counter that is set anew": {"rows": "w = weights[start * 4:start * 4 + 4]\nstart = start + 1"},
    "a count of rows": {"rows": "w = weights[start:start + len(x)]\nstart += len(x)"},
    "a count that begins again": {"rows": "w = weights[start:start + 4]\nstart += 4\nif start > 9:\n    start = 0"},
    "two dimensions": {**ENUMERATED, "rows": "w = weights[i * 4:(i + 1) * 4, :]"},
    "rows that the loop sets": {**ENUMERATED, "rows": "w = weights[i * 4:i * 4 + 4]\nweights[y] = 1.0"},
    "rows up to a batch": {**ENUMERATED, "rows": "w = weights[:(i + 1) * 4]"},
}
#: Slices that go by no number of the batch, or are the process's own.
BY_OTHERS = {
    "of the batch": {**ENUMERATED, "rows": "w = weights[0]\nx = x[i:]"},
    "of what it has seen": {**ENUMERATED, "rows": "w = weights[0]\nprint(history[i - 2:i])"},
    "of what it has noted": {
        **ENUMERATED,
        "rows": "w = weights[0]\nnoted[i] = 0.5\nprint(noted[i - 2:i])",
    },
    "one entry for each batch": {**ENUMERATED, "rows": "w = weights[0]\nprint(steps[:i + 1], steps[:i])"},
    "a place in the batch": {"rows": "at = 0\nat += 2\nw = weights[0] * weights[at:at + 2].mean()"},
    "as many as there are": {"rows": "x = x * 2 - 1\nlow = x * 1\nw = weights[:low.size(0)] + weights[:len(x)]"},
    "the epoch": {"rows": "w = weights[epoch:epoch + 1]"},
}


def with_loader(holes, seed=SEEDED):
    filled = {"target": "x, y", "over": "loader", **holes, "seed": seed}
    filled["rows"] = filled["rows"].replace("\n", "\n        ")
    return WITH_LOADER.lstrip("\n").format(**filled)


@pytest.mark.parametrize("name", BY_NUMBER)
def test_a_loader_whose_batches_meet_rows_by_their_number_stays_whole(convert_text, name):
    report, result = convert_text(with_loader(BY_NUMBER[name]))

    assert kept(report) == []
    assert "model, optimizer = accelerator.prepare(model, optimizer)" in result
    assert "x, y = x.to(device), y.to(device)" in result
    assert [f.message for f in report.of(Kind.NOTE) if f.code == "MIG903"] == [
        "every process runs over whole batches, which is no faster on several: they meet rows that each has whole"
    ]


@pytest.mark.parametrize("name", BY_OTHERS)
def test_other_slices_do_not_keep_it_whole(convert_text, name):
    report, result = convert_text(with_loader(BY_OTHERS[name]))

    assert kept(report) == []
    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in result


def test_whole_batches_are_drawn_with_one_seed(convert_text):
    report, result = convert_text(with_loader(BY_NUMBER["enumerate"], seed=""))

    assert kept(report) == []
    assert "set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])" in result


def test_rows_that_each_process_had_of_its_own_are_not_made_whole(convert_text):
    source = with_loader(
        BY_NUMBER["enumerate"], seed="torch.manual_seed(0)\ntorch.distributed.init_process_group('gloo')"
    )
    wrapped = "model = nn.parallel.DistributedDataParallel(model)\noptimizer = "
    report, result = convert_text(source.replace("optimizer = ", wrapped, 1))

    assert "accelerator" not in result
    assert [code for code, _ in kept(report)] == ["MIG103"]


OWN_STEPS = """
import numpy as np
import torch
from torch import nn, optim

class Layer(nn.Linear):
    def __init__(self, n):
        super().__init__(n, n)
        self.opt = optim.Adam(self.parameters())

    def fit(self, x):
        for i in range(3):
            loss = self(x).pow(2).sum()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return self(x).detach()

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = []
        for i in range(2):
            self.layers = self.layers + [Layer(n).to(device)]

    def fit(self, x):
        for i, layer in enumerate(self.layers):
            x = layer.fit(x)
            print(i, x.sum())

def main():
    net = Net(3)
    net.fit(rows.to(device))
    torch.save(net.state_dict(), "net.pt")

{seed}
device = "cuda" if torch.cuda.is_available() else "cpu"
rows = torch.ones(2, 3)
main()
"""


def test_layers_that_make_their_optimizers_stay_as_they_are(convert_text):
    report, result = convert_text(OWN_STEPS.format(seed=SEEDED))

    assert kept(report) == []
    assert result.count("prepare(") == 1
    assert "        self.opt = accelerator.prepare(self.opt)" in result
    assert "            accelerator.backward(loss)" in result
    assert "            accelerator.print(i, x.sum())" in result
    assert "set_seed" not in result
    assert "are not prepared: all processes train the same ones" in "".join(f.message for f in report.of(Kind.NOTE))


def test_layers_that_make_their_optimizers_are_drawn_with_one_seed(convert_text):
    report, result = convert_text(OWN_STEPS.format(seed=""))

    assert kept(report) == []
    assert "set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])" in result


def test_layers_that_make_their_optimizers_must_be_the_same_on_all(convert_text):
    source = OWN_STEPS.format(seed="scale = np.random.default_rng().random()")
    report, result = convert_text(source)

    assert result == source.lstrip("\n")
    assert "models that make their own optimizers are not prepared" in kept(report)[0][1]


PLAYER = """
import torch
from torch import nn, optim
{imports}

class Player:
    def __init__(self, env):
        self.env = env
        self.model = Net()
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for episode in range(9):
            state, total, done = self.env.reset(), 0, False
            while not done:
                odds = self.model(torch.as_tensor(state))
                state, reward, done, _ = self.env.step({action})
                total += reward
            loss = odds.sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if total > 100:
                break
"""
NET = "class Net(nn.Module):\n    def forward(self, x):\n        return {}(logits=x)\n"


@pytest.mark.parametrize("action", ["odds.sample().item()", "0"])
def test_a_game_that_is_handed_in_is_not_seeded(convert_text, action):
    net = NET.format("torch.distributions.Categorical") if "sample" in action else NET.format("dict")
    source = PLAYER.format(imports=net, action=action).lstrip("\n")
    report, result = convert_text(source)

    assert result == source
    (left,) = {message for code, message in kept(report) if code == "MIG122"}
    assert "by total > 100, which may differ between processes (torch and the environment not seeded)" in left


IN_AN_EXPRESSION = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64, 1)), batch_size=8)
model = nn.Linear(4, 1)
optimizer = optim.Adam(model.parameters(), lr=0.1)


def step(x, y):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for epoch in range(3):
    losses = [step(x, y) for x, y in loader]
"""


def test_a_loader_that_is_gone_through_in_an_expression_is_told(convert_text):
    report, _ = convert_text(IN_AN_EXPRESSION)

    (note,) = (finding for finding in report.of(Kind.NOTE) if "on the same data" in finding.message)
    assert "gone through in this expression" in note.message
    assert "`for` statement" in note.hint


BY_TURNS = """
import torch
from torch import nn, optim

torch.manual_seed(0)
rows = torch.ones(32, 3)
model = nn.Linear(3, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)


def run(chosen, optimizer=None):
    total = 0.0
    for first in range(0, len(chosen), 4):
        loss = model(rows[chosen[first : first + 4]]).mean()
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


for epoch in range(3):
    print(run(list(range(24)), optimizer), run(list(range(24, 32))))
"""


def test_a_loop_that_trains_or_evaluates_by_turns_fills_no_batch_up(convert_text):
    report, result = convert_text(BY_TURNS)

    assert "accelerator.backward(loss)" in result
    assert not report.of(Kind.LEFT)


SHOWN = """
import torch
from shiny import bar
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    {named}
    for {target} in {over}:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("named", "target", "over"),
    [
        ("pass", "x, y", "bar(loader)"),
        ("shown = bar(loader, width=9)", "x, y", "shown"),
        ("shown = bar(loader)", "i, (x, y)", "enumerate(shown)"),
    ],
)
def test_what_a_library_makes_of_a_loader_is_named(convert_text, named, target, over):
    report, _ = convert_text(SHOWN.format(named=named, target=target, over=over))

    (finding,) = [f for f in report.findings if "every process trains on the same data" in f.message]
    assert "nothing is known of what bar() makes of the loader" in finding.message
    assert finding.hint == "loop over the loader itself"


UNCALLED = """
def train(batches):
    for x in batches:
        STEP
"""


def test_a_loop_over_what_nobody_hands_over_is_told_so(convert_text):
    report, _ = convert_text(program(UNCALLED.replace("        STEP", "        x = x + 0\n        STEP")))
    (note,) = [finding for finding in report.findings if "nothing that was read calls" in finding.message]
    assert note.code == "MIG903"
    assert "so what `batches` is, is not known" in note.message
    assert note.hint == "name the file that calls train(), too, or take train() out"


def test_a_loop_over_what_a_call_hands_over_comes_from_no_loader(convert_text):
    body = UNCALLED.replace("        STEP", "        x = x + 0\n        STEP") + "\ntrain(list(rows.split(4)))\n"
    report, _ = convert_text(program(body))
    assert not [finding for finding in report.findings if "nothing that was read calls" in finding.message]
    assert [finding for finding in report.findings if "come from no DataLoader" in finding.message]


def test_an_optimizer_that_nobody_hands_over(convert_text):
    step = "model(x).sum().backward()\n        opt.step()\n"
    text = f"import torch\n\ndef train(model, batches, opt):\n    for x in batches:\n        {step}"
    report, _ = convert_text(text)
    (left,) = report.of(Kind.LEFT)
    assert left.code == "MIG902"
    assert left.hint.startswith("nothing that was read calls train()")
