"""The code around an object whose `__init__` makes the accelerator."""

from migrate.report.model import Kind

AGENT = """
import torch
from torch import nn, optim

class Agent:
    def __init__(self, lr=0.1):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = nn.Linear(2, 1).to(self.device)
        self.optimizer = optim.SGD(self.net.parameters(), lr=lr)

    def learn(self):
        loss = self.net(torch.ones(4, 2, device=self.device)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()
"""
AT_MODULE_LEVEL = """
print("before")
agent = Agent()
def report(step):
    print("step", step)
for step in range(9):
    agent.learn()
    report(step)
torch.save(agent.net.state_dict(), "net.pt")
"""
IN_A_FUNCTION = """
def report(agent, step):
    print("step", step, agent.net.weight)

def main():
    agent = Agent()
    for step in range(9):
        agent.learn()
        report(agent, step)
    print("done")

main()
"""
IN_A_LOOP = """
for lr in (0.1, 0.2):
    agent = Agent(lr)
    for step in range(9):
        agent.learn()
    print("done", lr)
"""
TWO = """
class Other(Agent):
    pass

agent = Agent()
print("made")
agent = Other()
for step in range(9):
    agent.learn()
print("done")
"""


def test_a_script_around_an_agent(convert_text):
    report, result = convert_text(AGENT + AT_MODULE_LEVEL)

    assert [finding.code for finding in report.of(Kind.LEFT)] == []
    assert '\nprint("before")\n' in result
    assert "    if agent.accelerator.is_main_process:\n        report(step)" in result
    assert 'agent.accelerator.save(agent.accelerator.unwrap_model(agent.net).state_dict(), "net.pt")' in result


def test_functions_that_are_handed_an_agent(convert_text):
    _, result = convert_text(AGENT + IN_A_FUNCTION)

    assert "        if agent.accelerator.is_main_process:\n            report(agent, step)" in result
    assert 'print("step", step, agent.accelerator.unwrap_model(agent.net).weight)' in result
    assert 'agent.accelerator.print("done")' in result


def test_agents_made_in_a_loop_are_no_names_for_one_accelerator(convert_text):
    _, result = convert_text(AGENT + IN_A_LOOP)

    assert "agent.accelerator" not in result


def test_a_name_for_two_agents_is_none_for_an_accelerator(convert_text):
    _, result = convert_text(AGENT + TWO)

    assert "agent.accelerator" not in result
