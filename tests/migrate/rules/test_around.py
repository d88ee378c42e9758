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
    assert '\nif os.environ.get("RANK", "0") == "0":\n    print("before")\n' in result
    assert "    if agent.accelerator.is_main_process:\n        report(step)" in result
    assert 'agent.accelerator.save(agent.accelerator.unwrap_model(agent.net).state_dict(), "net.pt")' in result


def test_what_the_code_around_an_agent_reads_again_is_waited_for(convert_text):
    read = 'agent.net.load_state_dict(torch.load("net.pt"))\n'
    _, result = convert_text(AGENT + AT_MODULE_LEVEL + read)

    read = read.replace("agent.net", "agent.accelerator.unwrap_model(agent.net)")
    assert f"agent.accelerator.wait_for_everyone()\n{read}" in result


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


ABOVE_AND_BELOW = """
def report(step):
    print("step", step)
    return step

done = report(-1)
agent = Agent()
for step in range(9):
    agent.learn()
    done = report(step)
"""


def test_a_function_that_is_called_above_the_agent_is_not_handed_its_accelerator(convert_text):
    report, result = convert_text(AGENT + ABOVE_AND_BELOW)

    assert "done = report(-1)" in result
    assert '    if os.environ.get("RANK", "0") == "0":\n        print("step", step)\n' in result
    assert "MIG117" not in [finding.code for finding in report.of(Kind.NOTE)]


LEARNER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 1)
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)

    def forward(self, x):
        losses = 0
        for i in range(x.size(0)):
            losses = losses + self.net(x[i]).pow(2).mean()
        self.optimizer.zero_grad()
        losses.backward()
        self.optimizer.step()
        return losses.item()

def main():
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    learner = Learner().to(device)
    loader = DataLoader(torch.randn(8, 3, 2), batch_size=2)
    for x in loader:
        x = x.to(device)
        learner(x)

main()
"""


def test_the_device_of_a_script_around_a_module(convert_text):
    report, result = convert_text(LEARNER)

    assert [finding.code for finding in report.of(Kind.LEFT)] == []
    assert "self.accelerator = Accelerator()" in result  # not on the CPU
    assert 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")' in result  # each process its own GPU
    assert "        x = x.to(device)\n" in result


SAVING = """
import time
import torch
from torch import nn, optim

class Trainer:
    def __init__(self):
        self.net = nn.Linear(2, 1)
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)

    def step(self, x):
        self.optimizer.zero_grad()
        self.net(x).sum().backward()
        self.optimizer.step()

    def save(self):
        stamp = time.strftime("%H%M%S")
        path = "net_%s" % stamp
        torch.save(self.net.state_dict(), path)
        return path

    def load(self, path):
        self.net.load_state_dict(torch.load(path))

trainer = Trainer()
loader = torch.utils.data.DataLoader(torch.randn(8, 2), 2)
for x in loader:
    trainer.step(x)
    best = trainer.save()
trainer.load(best)
"""


def test_a_name_that_a_method_makes_up_by_the_clock_is_that_of_the_main_process(convert_text):
    _, result = convert_text(SAVING)

    assert 'stamp = broadcast_object_list([time.strftime("%H%M%S")])[0]' in result


STOPPING = """
class Stopping:
    def __init__(self, path):
        self.path, self.best, self.stop = path, None, False

    def __call__(self, loss, net):
        if self.best is None or loss < self.best:
            self.best = loss
            self.save(net)
        else:
            self.stop = True

    def save(self, net):
        torch.save(net.state_dict(), self.path)

def main():
    agent = Agent()
    stopping = Stopping("best.pt")
    for step in range(9):
        stopping(agent.learn(), agent.net)
        if stopping.stop:
            break
    agent.net.load_state_dict(torch.load("best.pt"))

main()
"""


def test_what_an_object_without_the_accelerator_saves_is_the_model_itself(convert_text):
    _, result = convert_text(AGENT + STOPPING)

    assert "stopping(agent.learn(), agent.accelerator.unwrap_model(agent.net))" in result
