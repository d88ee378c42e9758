"""Optimizers that are given parts of a model by the model's name: the model is prepared, of which only methods run."""

AGENT = """
import torch
from torch import nn, optim

class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(4, 2)
        self.critic = nn.Linear(4, 1)

    def evaluate(self, states):
        return self.actor(states).softmax(1), self.critic(states)

class PPO:
    def __init__(self):
        self.policy = ActorCritic()
        self.optimizer = optim.Adam([
            {"params": self.policy.actor.parameters(), "lr": 0.1},
            {"params": self.policy.critic.parameters(), "lr": 0.01},
        ])
        self.policy_old = ActorCritic()
        self.policy_old.load_state_dict(self.policy.state_dict())

    def update(self):
        for _ in range(4):
            chances, values = self.policy.evaluate(torch.ones(3, 4))
            loss = (chances.log() * values).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

torch.manual_seed(0)
PPO().update()
"""


def test_the_model_of_which_an_optimizer_has_the_parts_is_prepared(convert_text):
    _, result = convert_text(AGENT)
    assert "self.policy, self.optimizer = self.accelerator.prepare(" in result
    assert "self.accelerator.unwrap_model(self.policy).evaluate(torch.ones(3, 4" in result
    assert "self.policy_old.load_state_dict(self.accelerator.unwrap_model(self.policy).state_dict())" in result


def test_both_models_of_which_an_optimizer_has_parts_are_prepared(convert_text):
    old = "        self.policy_old = ActorCritic()\n"
    source = AGENT.replace("self.policy.critic", "self.policy_old.critic").replace(old, "")
    _, result = convert_text(
        source.replace("        self.policy = ActorCritic()", f"{old}        self.policy = ActorCritic()")
    )
    assert "self.policy_old, self.policy, self.optimizer = self.accelerator.prepare(" in result
