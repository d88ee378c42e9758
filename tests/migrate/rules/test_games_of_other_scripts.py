"""Environments that only another script plays, though a file that both import leads to it."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

SHARED = """\
import gymnasium as gym


def evaluate(make, model):
    env = make()
    state, _ = env.reset()
    return model, state


if __name__ == "__main__":
    from second import make

    evaluate(make, None)
"""
SCRIPT = """\
import gymnasium as gym
import torch
from shared import evaluate
from torch import nn, optim


def make():
    return gym.make("CartPole-v1")


if __name__ == "__main__":
    torch.manual_seed(1)
    env = make()
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    state, _ = env.reset({seed})
    done = False
    while not done:
        state, reward, done, _, _ = env.step({action})
        loss = (model(torch.as_tensor(state)) - reward).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {end}
"""
SEEDED = SCRIPT.format(seed="seed=1", action="0", end="evaluate(make, model)")
OTHERS = {
    "not seeded": SCRIPT.format(seed="", action="0", end="evaluate(make, model)"),
    "actions that it chooses at random": SCRIPT.format(
        seed="", action="env.action_space.sample()", end="print(env.observation_space.sample())"
    ),
}


def converted(tmp_path, monkeypatch, second, shared=SHARED):
    for name, text in {"shared": shared, "first": SEEDED, "second": second}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    report = run(["."], Options())
    return report, {change.path: change.new.decode() for change in report.changes}


@pytest.mark.parametrize("name", OTHERS)
def test_what_another_script_plays_is_not_of_this_one(tmp_path, monkeypatch, name):
    _, texts = converted(tmp_path, monkeypatch, OTHERS[name])

    assert "accelerator.backward(loss)" in texts["first.py"]
    assert "set_seed" not in texts["first.py"]


@pytest.mark.parametrize("name", ["shared", "second"])
def test_what_a_file_plays_while_it_is_imported_is(tmp_path, monkeypatch, name):
    played = '\n\nGAME = gym.make("CartPole-v1")\nGAME.reset()\n'
    texts = {"shared": SHARED, "second": OTHERS["not seeded"]}
    texts[name] += played
    report, texts = converted(tmp_path, monkeypatch, texts["second"], texts["shared"])

    assert "first.py" not in texts
    assert report.of(Kind.LEFT)
