"""Agents, given their model and making its optimizer, beside a model that trains itself: one program."""

import pytest

from migrate.report.model import Kind

PROGRAM = """\
import argparse
import os
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 2)

    def act(self, x):
        return self.body(x)

    def values(self, x):
        return self.body(x).sum(1)


class Slow:
    def __init__(self, policy, lr):
        self.policy = policy
        self.optimizer = optim.SGD(policy.parameters(), lr=lr)

    def update(self, rows):
        loss = self.policy.values(rows.states).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


class Fast:
    def __init__(self, policy, lr):
        self.policy = policy
        self.optimizer = optim.Adam(policy.parameters(), lr=lr)

    def update(self, rows):
        for states in rows.batches(4):
            loss = self.policy.values(states).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


class Judge(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.trunk = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(device)
        self.optimizer = optim.Adam(self.trunk.parameters())

    def update(self, experts, rows):
        self.train()
        for (expert,), states in {zipped}:
            share = torch.rand(expert.size(0), 1).to(self.device)
            mixed = share * expert.to(self.device) + (1 - share) * states
            loss = self.trunk(mixed).mean() - self.trunk(states).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def reward(self, states):
        with torch.no_grad():
            self.eval()
            return self.trunk(states)


class Rows:
    def __init__(self, device):
        self.states = torch.zeros(8, 3, device=device)

    def batches(self, size):
        for start in range(0, 8, size):
            yield self.states[start : start + size]


class Log:
    def _scale(self, values):
        self.mean.update(values)


def clean(folder):
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--folder", default="logs")
    args = parser.parse_args()
    {seed}
    clean(args.folder)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy = Policy()
    policy.to(device)
    if args.fast:
        agent = Fast(policy, lr=0.01)
    else:
        agent = Slow(policy, lr=0.1)
    if args.judge:
        judge = Judge(device)
        experts = DataLoader(TensorDataset(torch.ones(16, 3)), batch_size=4, shuffle=True)
    rows = Rows(device)
    for step in range(4):
        with torch.no_grad():
            rows.states = torch.randn(8, 3, device=device) + policy.act(rows.states).sum()
        if args.judge:
            judge.update(experts, rows)
            rows.states = rows.states * judge.reward(rows.states)
        print(step, agent.update(rows))
    torch.save(policy.state_dict(), "policy.pt")


if __name__ == "__main__":
    main()
"""
FILLINGS = {"zipped": "zip(experts, rows.batches(experts.batch_size))", "seed": "torch.manual_seed(0)"}


@pytest.fixture
def convert(convert_text):
    def run(*changes, **holes):
        text = PROGRAM
        for name, filling in {**FILLINGS, **holes}.items():
            text = text.replace("{" + name + "}", filling)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return text, *convert_text(text)

    return run


def left(report):
    return {(finding.code, finding.message) for finding in report.of(Kind.LEFT)}


def test_each_agent_keeps_its_model_and_the_judge_is_prepared_where_it_is_made(convert):
    _, report, converted = convert()

    assert left(report) == set()
    assert "        judge.optimizer, judge = accelerator.prepare(judge.optimizer, judge)\n" in converted
    assert "    policy, agent.optimizer = accelerator.prepare(policy, agent.optimizer)\n" in converted
    assert converted.count("def update(self, rows, accelerator):") == 2
    assert "def update(self, experts, rows, accelerator):" in converted
    assert "accelerator.unwrap_model(judge).update(experts, rows, accelerator)" in converted


def test_a_loader_that_is_zipped_with_rows_of_the_program_stays_whole(convert):
    _, report, converted = convert()

    assert "experts = DataLoader(" in converted
    assert "accelerator.prepare(experts" not in converted
    assert "expert.to(self.device)" in converted
    notes = {finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG903"}
    assert (
        "every process runs over whole batches, which is no faster on several: they meet rows that each has whole"
        in notes
    )


def test_a_loader_that_is_zipped_with_numbers_is_shared_out(convert):
    _, _, converted = convert(zipped="zip(experts, range(4))")

    assert "experts, judge.optimizer, judge = accelerator.prepare(" in converted


def test_nothing_is_seeded_so_all_take_one_seed(convert):
    _, _, converted = convert(seed="")

    assert "set_seed(" in converted


def test_folders_are_made_by_one_process_before_the_device_is_chosen(convert):
    _, _, converted = convert()

    assert "    if accelerator.is_main_process:\n        clean(args.folder)\n" in converted
    assert converted.index("Accelerator(") < converted.index("clean(args.folder)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("self.mean.update(", "Slow(values, 1).update(", id="makes one"),
        pytest.param("self.mean.update(", "kinds = {1: Slow}; kinds[1](values, 1).update(", id="names it"),
        pytest.param("rows = Rows(device)\n", "rows = Rows(device)\n    rows.mean = agent\n", id="is given one"),
    ],
)
def test_code_that_nothing_calls_may_have_an_agent(convert, old, new):
    text, report, converted = convert((old, new))

    assert converted == text
    assert {code for code, _ in left(report)} == {"MIG904"}


def test_a_policy_that_an_agent_runs_is_prepared_above_the_agents(convert):
    _, report, converted = convert(("loss = self.policy.values(rows.states)", "loss = self.policy(rows.states)"))

    assert left(report) == set()
    assert "    policy = accelerator.prepare(policy)\n\n    if args.fast:\n        agent = Fast(" in converted
    assert "    agent.optimizer = accelerator.prepare(agent.optimizer)\n" in converted


SHARED = (
    "for (expert,), states in {zipped}:",
    "for (expert,) in experts:\n            states = rows.states[: expert.size(0)]",
)


@pytest.mark.parametrize(
    "rate",
    [
        pytest.param(
            "for group in agent.optimizer.param_groups:\n            group['lr'] = 0.1 * (1 - step / 4)", id="round"
        ),
        pytest.param("agent.optimizer.param_groups[0]['lr'] = 1 / (step + 1)", id="in one line"),
    ],
)
def test_rounds_to_which_nothing_is_dealt_out_are_counted_as_they_are(convert, rate):
    _, _, converted = convert(("print(step,", f"{rate}\n        print(step,"), zipped=FILLINGS["zipped"])
    _, _, shared = convert((SHARED[0].format(**FILLINGS), SHARED[1]), ("print(step,", f"{rate}\n        print(step,"))

    assert "experts, judge.optimizer, judge = accelerator.prepare(" in shared
    assert rate in converted
    assert rate in shared


MONITORED = """\
import os
import gym
import torch
from stable_baselines3.common.monitor import Monitor
from torch import nn, optim


def make(rank, folder):
    def start():
        env = gym.make("Pendulum-v1")
        env.seed(rank)
        return Monitor(env, {file})

    return start


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy = nn.Linear(3, 1).to(device)
    optimizer = optim.SGD(policy.parameters(), lr=0.1)
    env = make(0, "logs")()
    state = env.reset()
    for step in range(100):
        loss = policy(torch.as_tensor(state, device=device).float()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state, reward, done, info = env.step([0.0])
        if done:
            state = env.reset()


if __name__ == "__main__":
    main()
"""


def test_a_monitor_tells_every_process_and_writes_on_one(convert_text):
    _, converted = convert_text(MONITORED.replace("{file}", "os.path.join(folder, str(rank))"))

    named = 'os.path.join(folder, str(rank)) if os.environ.get("RANK", "0") == "0" else None'
    assert f"return Monitor(env, {named})" in converted


def test_a_monitor_without_a_file_stays(convert_text):
    _, converted = convert_text(MONITORED.replace("{file}", "None"))

    assert "return Monitor(env, None)" in converted


def test_to_train_in_every_fourth_round_accumulates_nothing(convert_text):
    step = "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n"
    rare = "        if step % 4 == 0:\n" + "".join(f"    {line}\n" for line in step.splitlines())
    report, converted = convert_text(MONITORED.replace("{file}", "None").replace(step, rare))

    assert "accelerator.backward(loss)" in converted
    assert "MIG108" not in {finding.code for finding in report.findings}


CURIOUS = """\
import torch
from torch import nn, optim


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 2)

    def act(self, x):
        return self.body(x)


class Curiosity(nn.Module):
    def __init__(self):
        super().__init__()
        self.guess = nn.Linear(3, 4)
        self.goal = nn.Linear(3, 4)
        for parameter in self.goal.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        return self.guess(x), self.goal(x)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
agent = Agent().to(device)
curiosity = Curiosity().to(device)
optimizer = optim.Adam(list(agent.parameters()) + list(curiosity.guess.parameters()), lr=0.1)
for step in range(6):
    states = torch.randn(8, 3, device=device)
    guess, goal = curiosity(states)
    loss = (guess - goal).pow(2).mean() + agent.act(states).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_part_that_is_trained_stands_for_its_model_beside_one_that_is_only_asked(convert_text):
    _, converted = convert_text(CURIOUS)

    assert "agent, curiosity, optimizer = accelerator.prepare(agent, curiosity, optimizer)" in converted
