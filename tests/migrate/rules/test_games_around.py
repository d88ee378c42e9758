"""Environments that are made above the object whose `__init__` makes the accelerator."""

import pytest

from migrate.options import Options
from migrate.pipeline import run

AGENT = """\
import torch
from torch import nn, optim


class Agent:
    def __init__(self, size, lr):
        self.net = nn.Linear(size, 1)
        self.optimizer = optim.Adam(self.net.parameters(), lr=lr)

    def act(self, state):
        with torch.no_grad():
            return int(self.net(torch.as_tensor(state)) > torch.rand(1))

    def learn(self, states, rewards):
        loss = (self.net(torch.stack(states)).squeeze(1) - torch.tensor(rewards)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
SCRIPT = """\
import gym
import torch

from agent import Agent


def main():
    env = gym.make("CartPole-v1")
    {above}
    agent = Agent(env.observation_space.shape[0], 0.1)
    for episode in range(3):
        state, done, states, rewards = env.reset(), False, [], []
        while not done:
            states.append(torch.as_tensor(state))
            state, reward, done, _ = env.step(agent.act(state))
            rewards.append(float(reward))
            agent.learn(states, rewards)


if __name__ == "__main__":
    main()
"""
SEEDED = """\
    agent = Agent(env.observation_space.shape[0], 0.1)
    if agent.accelerator.num_processes > 1:
        env.seed(torch.initial_seed() % 2**32)
"""


def converted(tmp_path, monkeypatch, above):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "play.py").write_text(SCRIPT.format(above=above))
    monkeypatch.chdir(tmp_path)
    return {change.path: change.new.decode() for change in run(["."], Options()).changes}


@pytest.mark.parametrize("above", ["print(env.action_space.n)", "if env is None:\n        env.seed(3)"])
def test_they_get_the_seed_once_the_object_is_there(tmp_path, monkeypatch, above):
    texts = converted(tmp_path, monkeypatch, above)

    assert SEEDED in texts["play.py"]


@pytest.mark.parametrize("above", ["env.reset()", "print(env.action_space.sample())"])
def test_a_game_that_is_begun_before_refuses_the_program(tmp_path, monkeypatch, above):
    assert converted(tmp_path, monkeypatch, above) == {}
