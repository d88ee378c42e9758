"""Programs without a loader that are seeded: what no seed reaches must decide nothing."""

import pytest
from typer.testing import CliRunner

from migrate.cli import app
from migrate.report.model import Kind

HEAD = """
import os
import random
import time
import numpy as np
import torch
from torch import nn, optim
{first}
random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
{made}
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
UNTIL = """
for step in range(100):
    x = rows * {drawn}
    STEP
    if loss.item() < 0.01:
        break
"""


def program(body, made="", first=""):
    lines = []
    for line in body.strip("\n").splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        lines += STEP.format(indent=indent).strip("\n").splitlines() if line.strip() == "STEP" else [line]
    return HEAD.format(made=made, first=first).lstrip("\n") + "\n".join(lines) + "\n"


def kept(report):
    return [(finding.code, finding.message) for finding in report.of(Kind.LEFT)]


def refused(convert_text, source):
    report, result = convert_text(source)
    assert result == source
    assert {code for code, _ in kept(report)} == {"MIG122"}
    assert all(finding.hint for finding in report.of(Kind.LEFT))
    return [message for _, message in kept(report)]


#: What is made, and what is drawn of it.
OWN = {
    "a stream without a seed": ("g = np.random.RandomState()", "float(g.rand())"),
    "a stream whose seed is nothing": ("g = np.random.RandomState(None)", "float(g.rand())"),
    "a stream whose seed is nothing, by name": ("g = np.random.default_rng(seed=None)", "float(g.random())"),
    "a bit generator": ("g = np.random.Generator(np.random.PCG64())", "float(g.random())"),
    "a sequence of seeds": ("g = np.random.default_rng(np.random.SeedSequence())", "float(g.random())"),
    "a stream that is imported": ("from random import Random\ng = Random()", "g.random()"),
    "the system's stream": ("g = random.SystemRandom()", "g.random()"),
    "a generator that is seeded by the system": (
        "g = torch.Generator()\ng.seed()",
        "torch.rand(1, generator=g).item()",
    ),
    "the system": ("", "os.urandom(1)[0]"),
    "a name of its own": ("import uuid", "(uuid.uuid4().int % 7)"),
    "a secret": ("import secrets", "secrets.randbelow(7)"),
    "an address": ("", "(id(rows) % 7)"),
    "seeded again by the system": ("random.seed()", "random.random()"),
    "numpy seeded again by the system": ("np.random.seed(None)", "np.random.rand()"),
    "torch seeded again by the system": ("torch.seed()", "torch.rand(1).item()"),
    "seeded by the clock": ("torch.manual_seed(int(time.time()))", "torch.rand(1).item()"),
    "seeded by the process": ("random.seed(os.getpid())", "random.random()"),
    "an option that goes by the clock": (
        (
            "import argparse\np = argparse.ArgumentParser()\n"
            "p.add_argument('--seed', type=int, default=int(time.time()))\nargs = p.parse_args()\n"
            "random.seed(args.seed)"
        ),
        "random.random()",
    ),
    "an option that is nothing by default": (
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed', type=int)\n"
            "args = p.parse_args()\nnp.random.seed(args.seed)"
        ),
        "np.random.rand()",
    ),
    "a class of options that goes by the clock": (
        (
            "import tyro\nfrom dataclasses import dataclass, field\n@dataclass\nclass Args:\n"
            "    seed: int = field(default_factory=lambda: int(time.time()))\nargs = tyro.cli(Args)\n"
            "random.seed(args.seed)"
        ),
        "random.random()",
    ),
    "the user": ("import sys", "float(sys.stdin.readline())"),
    "another program": ("import subprocess", "float(subprocess.check_output(['date', '+%s']))"),
    "processes that draw": (
        "from multiprocessing import Pool\ndef work(i):\n    return np.random.rand()\npool = Pool(2)",
        "sum(pool.map(work, range(4)))",
    ),
    "a process that fills a queue": (
        (
            "import multiprocessing as mp\nq = mp.Queue()\ndef work(q):\n    q.put(random.random())\n"
            "mp.Process(target=work, args=(q,)).start()"
        ),
        "q.get()",
    ),
    "a thread that fills a list": (
        (
            "import threading\nheld = []\ndef work():\n    while True:\n        held.append(random.random())\n"
            "threading.Thread(target=work, daemon=True).start()"
        ),
        "(len(held) % 7)",
    ),
    "which thread is first": (
        (
            "from concurrent.futures import ThreadPoolExecutor, as_completed\npool = ThreadPoolExecutor(2)\n"
            "def work(i):\n    return i\n"
        ),
        "[f.result() for f in as_completed([pool.submit(work, i) for i in range(4)])][0]",
    ),
    "the time of day": ("from datetime import datetime", "datetime.now().second"),
    "what a name of the clock gives": ("from time import perf_counter as pc", "pc()"),
    "the memory": ("", "torch.cuda.memory_allocated()"),
}


@pytest.mark.parametrize("name", OWN)
def test_what_no_seed_reaches_decides_nothing(convert_text, name):
    made, drawn = OWN[name]
    refused(convert_text, program(UNTIL.format(drawn=drawn), made))


ALIKE = {
    "a stream with a seed": ("g = np.random.RandomState(0)", "float(g.rand())"),
    "a generator, which has a seed of its own": ("g = torch.Generator()", "torch.rand(1, generator=g).item()"),
    "the hash of a text": ("", "(hash('a') % 7)"),
    "how many files there are": ("", "len(os.listdir('.'))"),
    "an option": (
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed', type=int, default=1)\n"
            "args = p.parse_args()\nnp.random.seed(args.seed)"
        ),
        "np.random.rand()",
    ),
    "an option that is drawn": (
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed', type=int)\n"
            "args = p.parse_args()\nif args.seed is None:\n    args.seed = random.randint(1, 9)\n"
            "np.random.seed(args.seed)"
        ),
        "np.random.rand()",
    ),
    "a clock that is only shown": ("t0 = time.time()\nprint(time.time() - t0)", "random.random()"),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_is_the_same_may_decide(convert_text, name):
    made, drawn = ALIKE[name]
    report, result = convert_text(program(UNTIL.format(drawn=drawn), made))

    assert kept(report) == []
    assert "accelerator.backward(loss)" in result


CLASSES = {
    "a method": ("def over(self):\n        return time.time() - self.start > 60", "not timer.over()"),
    "a property": ("@property\n    def over(self):\n        return time.time() - self.start > 60", "not timer.over"),
    "a call": ("def __call__(self):\n        return time.time() - self.start < 60", "timer()"),
    "its truth": ("def __bool__(self):\n        return time.time() - self.start < 60", "timer"),
    "its length": ("def __len__(self):\n        return int(time.time() - self.start)", "len(timer) < 60"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_clock_in_a_class(convert_text, name):
    method, test = CLASSES[name]
    timer = f"class Timer:\n    def __init__(self):\n        self.start = time.time()\n    {method}\ntimer = Timer()"
    messages = refused(convert_text, program(f"while {test}:\n    x = rows\n    STEP", first=timer))

    assert "which a clock or the system gives" in messages[0]


BY_THE_CLOCK = {
    "a list": (
        "log = []\nfor step in range(99):\n    x = rows\n    STEP\n    log.append(time.time())\n"
        "    if log[-1] - log[0] > 60:\n        break"
    ),
    "a generator": (
        "def ticks():\n    t0 = time.time()\n    while time.time() - t0 < 60:\n        yield 1\n"
        "for _ in ticks():\n    x = rows\n    STEP"
    ),
    "an object that is run over": (
        "class Steps:\n    def __iter__(self):\n        t0 = time.time()\n        while time.time() - t0 < 60:\n"
        "            yield 1\nfor _ in Steps():\n    x = rows\n    STEP"
    ),
    "a default": (
        "def over(t0=time.time()):\n    return time.time() - t0 > 60\nwhile not over():\n    x = rows\n    STEP"
    ),
    "a lambda": "t0 = time.time()\nover = lambda: time.time() - t0 > 60\nwhile not over():\n    x = rows\n    STEP",
    "a context": (
        "class T:\n    def __enter__(self):\n        self.t = time.time()\n        return self\n"
        "    def __exit__(self, *a):\n        self.took = time.time() - self.t\nfor step in range(99):\n"
        "    with T() as t:\n        x = rows\n        STEP\n    if t.took > 1:\n        break"
    ),
    "a signal": (
        "import signal\nstop = False\ndef on(number, frame):\n    global stop\n    stop = True\n"
        "signal.signal(signal.SIGINT, on)\nwhile not stop:\n    x = rows\n    STEP"
    ),
    "an alarm": (
        "import signal\ndef on(number, frame):\n    raise TimeoutError\nsignal.signal(signal.SIGALRM, on)\n"
        "signal.alarm(60)\ntry:\n    while True:\n        x = rows\n        STEP\nexcept TimeoutError:\n    pass"
    ),
    "a thread": (
        "import threading\nstop = threading.Event()\nthreading.Timer(60, stop.set).start()\n"
        "while not stop.is_set():\n    x = rows\n    STEP"
    ),
    "a file that appears": "while not os.path.exists('stop'):\n    x = rows\n    STEP",
    "a file that appears, in the loop": (
        "for step in range(99):\n    x = rows\n    STEP\n    if os.path.exists('stop'):\n        break"
    ),
    "a learning rate": (
        "t0 = time.time()\nfor step in range(99):\n    x = rows\n    STEP\n    took = time.time() - t0\n"
        "    for group in optimizer.param_groups:\n        group['lr'] = 0.1 / took"
    ),
}


@pytest.mark.parametrize("name", BY_THE_CLOCK)
def test_what_stops_in_its_own_time(convert_text, name):
    refused(convert_text, program(BY_THE_CLOCK[name]))


GAME = """
for episode in range(9):
    state, done = env.reset(), False
    while not done:
        x = torch.as_tensor(state, device=device)
        STEP
        state, reward, done, _ = env.step({action})
"""
SECOND = "other = gym.make('A')\n{seed}def test():\n    other.reset()\n    return other.step(0)[1]"
SEEDED = {
    "one": "env = gym.make('A')\nenv.seed(0)",
    "both": f"env = gym.make('A')\nenv.seed(0)\n{SECOND.format(seed='other.seed(1)' + chr(10))}",
    "a wrapper": "raw = gym.make('A')\nenv = gym.wrappers.Clip(raw)\nenv.seed(0)",
    "a vector": "env = gym.vector.SyncVectorEnv([lambda: gym.make('A') for _ in range(4)])\nenv.seed(0)",
    "a vector of what functions make": (
        "def make(i):\n    def thunk():\n        game = gym.make('A')\n        return game\n    return thunk\n"
        "env = gym.vector.AsyncVectorEnv([make(i) for i in range(4)])\nenv.seed(0)"
    ),
    "in the function that makes it": "def make():\n    it = gym.make('A')\n    it.seed(0)\n    return it\nenv = make()",
    "an environment of its own, which draws from numpy": (
        "class Own(gym.Env):\n    def reset(self):\n        return np.random.rand()\n"
        "    def step(self, action):\n        return 0, 1, np.random.rand() < 0.1, {}\nenv = Own()"
    ),
    "one that is made with a seed": "import envpool\nenv = envpool.make('A', num_envs=4, seed=1)",
}


@pytest.mark.parametrize("name", SEEDED)
def test_every_environment_is_seeded(convert_text, name):
    report, result = convert_text(program(GAME.format(action="0"), SEEDED[name], "import gym"))

    assert kept(report) == []
    assert "set_seed" not in result


UNSEEDED = {
    "one of two": f"env = gym.make('A')\nenv.seed(0)\n{SECOND.format(seed='')}",
    "under an option": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed', type=int, default=None)\n"
        "args = p.parse_args()\nenv = gym.make('A')\nif args.seed is not None:\n    env.seed(args.seed)"
    ),
    "in a function that nobody calls": "env = gym.make('A')\ndef seed_it():\n    env.seed(0)",
}


@pytest.mark.parametrize("name", UNSEEDED)
def test_an_environment_without_a_seed_gets_one(convert_text, name):
    report, result = convert_text(program(GAME.format(action="0"), UNSEEDED[name], "import gym"))

    assert kept(report) == []
    assert "env.seed(torch.initial_seed() % 2**32)" in result


OUT_OF_REACH = {
    "the first of several": "envs = [gym.make('A') for _ in range(4)]\nenvs[0].seed(0)\nenv = envs[1]",
    "by the clock": "env = gym.make('A')\nenv.seed(int(time.time()))",
    "a library with a seed that is not given": "from procgen import ProcgenEnv\nenv = ProcgenEnv(4, 'coinrun')",
    "a goal that is drawn": "env = gym.make('A')\nenv.seed(0)\ngoal = env.observation_space.sample()",
    "an environment of its own with a clock": (
        "class Own(gym.Env):\n    def reset(self):\n        self.start = time.time()\n        return 0\n"
        "    def step(self, action):\n        return 0, 1, time.time() - self.start > 9, {}\nenv = Own()"
    ),
}


@pytest.mark.parametrize("name", OUT_OF_REACH)
def test_an_environment_that_cannot_be_seeded(convert_text, name):
    refused(convert_text, program(GAME.format(action="0"), OUT_OF_REACH[name], "import gym"))


FILM = """
def play(steps):
    raw = gym.make('A')
    raw = gym.wrappers.RecordVideo(raw, 'films')
    raw.seed(0)
    return raw.step(steps)[1]

{use}
env = gym.make('A')
env.seed(0)
"""


def test_films_are_the_main_process_s(convert_text):
    report, result = convert_text(program(GAME.format(action="0") + "play(9)", FILM.format(use=""), "import gym"))

    assert kept(report) == []
    assert "    if accelerator.is_main_process:\n        raw = gym.wrappers.RecordVideo(raw, 'films')\n" in result


def test_films_of_a_function_that_anybody_may_call(convert_text):
    source = program(GAME.format(action="0") + "play(9)", FILM.format(use="played = [play]"), "import gym")
    head, _, rest = source.partition("device =")
    body = "".join(f"    {line}\n" for line in f"device ={rest}".splitlines())
    report, result = convert_text(f"{head}def main():\n{body}\nmain()\n".replace('"', "'"))

    assert kept(report) == []
    guard = "    if os.environ.get('RANK', '0') == '0':\n"
    assert f"{guard}        raw = gym.wrappers.RecordVideo(raw, 'films')\n" in result


def test_films_of_a_file_that_was_not_named(tmp_path, monkeypatch):
    (tmp_path / "game.py").write_text("import gym\n" + FILM.format(use=""), encoding="utf-8")
    source = program(GAME.format(action="0") + "play(9)", "from game import env, play", "import gym")
    (tmp_path / "train.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, ["train.py"])

    assert "game.py records what is played, in every process\n    name game.py, too" in result.output
    assert "would be converted" not in result.output
