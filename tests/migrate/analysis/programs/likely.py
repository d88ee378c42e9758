# Parameters that nobody fills, and what their annotations say of them.

# === annotations of libraries
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
def train(model: nn.Module, loader: DataLoader, optimizer: optim.Optimizer, epochs: int):  #: model: model@4 likely
    for x, y in loader:  #: training by optimizer@4 over dataloader@4; x: batch likely, y: batch likely
        loss = nn.functional.mse_loss(model(x), y)  #: statistic likely
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epochs)  #: epochs: nothing

# === unions, options and quotes
import torch
from typing import Optional, Union
from torch import nn, optim
from torch.utils.data import DataLoader
def train(a: Optional[nn.Module], b: "nn.Module", c: nn.Module | None, d: Union["DataLoader", optim.Optimizer]):
    a.cuda()  #: a: model likely
    b.cuda()  #: b: model likely
    c.cuda()  #: c: model likely
    d.load()  #: d: dataloader likely, optimizer likely

# === classes of the project
import torch
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return x
class Trainer:
    def __init__(self, net):
        self.net = net
    def save(self):
        return self.net.cuda()
def fit(net: Net, trainer: "Trainer", *nets: Net):  #: net: model(Net)@11 likely, trainer: instance(Trainer)@11 likely
    net.cuda()
    return trainer.save()

# === a type that is only imported for the checker
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from torch import nn
def train(net: "nn.Module"):  #: net: model@4 likely
    net.cuda()

# === a function that is called is given what its callers pass
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
def train(model: nn.Module, loader: DataLoader):  #: model: model@6, loader: nothing
    model.cuda()
train(nn.Linear(1, 1), unheard_of)

# === an annotation of something else says nothing
import torch
from torch import nn
def train(model: "my model", other: str, third: list[nn.Module], fourth: unheard_of.Net):  #: model: nothing
    model.cuda()  #: model: nothing
    other.cuda()  #: other: nothing
    third.cuda()  #: third: nothing
    fourth.cuda()  #: fourth: nothing

# === without an annotation nothing is likely
import torch
def train(model, optimizer, loader):  #: model: nothing, optimizer: nothing, loader: nothing
    for x in loader:
        model(x).backward()
        optimizer.step()

# === what is made of something likely
import torch
from torch import nn, optim
def setup(model: nn.Module):
    optimizer = optim.SGD(model.parameters(), 0.1)  #: optimizer@4; model.parameters(): parameters@3 likely
    weights = model.state_dict()  #: state dict likely
    wrapped = nn.DataParallel(model)  #: model likely
    return optimizer, wrapped.cuda()

# === a function that is called by one that nobody calls
import torch
from torch import nn
def run(net: nn.Module):
    net.cuda()
    step(net)
def step(net: nn.Linear):  #: net: model@3 likely
    net.cuda()
