# === names prove nothing
import torch
model = {"a": 1}  #: container
optimizer = "adam"  #: text(adam)
loader = [1, 2]  #: container
device = 3  #: number
for batch in loader:  #: neither; batch: number
    use(batch)

# === what nobody knows is unknown
import torch
from somewhere import make
thing = make()  #: unknown object
part = thing.part  #: bound method
other = unheard_of  #: nothing
def use(model, optimizer):
    return model  #: nothing

# === a function of the project that is called like one of torch
import torch
def DataLoader(x):
    return [x]
loader = DataLoader(data)  #: container
for x in loader:  #: neither
    use(x)

# === a class of the project that is called like one of torch
class Adam:
    def step(self):
        pass
import torch
opt = Adam()  #: instance

# === an import of another library of the same name
import torch
from mylib import DataLoader
loader = DataLoader(data)  #: unknown object
for x in loader:  #: neither; x: nothing
    use(x)

# === builtins that are redefined
from torch.utils.data import DataLoader
def enumerate(x):
    return [("a", 1)]
def next(x):
    return "text"
loader = DataLoader(data)
for i, x in enumerate(loader):  #: neither; i: text, x: number
    use(x)
y = next(iter(loader))  #: text

# === a list that is called list
from torch import nn
list = nn.Linear(1, 1)
x = list  #: model
y = list([1])  #: tensor

# === an object with a step is no optimizer
import torch
class Environment:
    def step(self):
        return 1
    def backward(self):
        pass
env = Environment()
for i in range(3):  #: neither
    env.step()
    env.backward()

# === a model that is replaced by its state
from torch import nn
model = nn.Linear(1, 1)
model = model.state_dict()  #: state dict@2
keys = model.keys()  #: unknown object

# === a checkpoint is no model
import torch
ckpt = torch.load("x.pt")  #: checkpoint
state = ckpt["model"]  #: checkpoint
epoch = ckpt["epoch"]  #: checkpoint

# === a dataset is no loader
from torch.utils.data import Dataset
class Data(Dataset):
    def __getitem__(self, i):
        return i
data = Data()  #: dataset
for x in data:  #: neither
    use(x)

# === a list of numbers is no batch
import torch
for a, b in [(1, 2), (3, 4)]:  #: neither; a: number, b: number
    use(a)

# === a name of a for loop that hides a model
from torch import nn
model = nn.Linear(1, 1)
for model in ["a", "b"]:
    use(model)  #: model: text

# === a parameter of another function of the same name
from torch import nn
def one(model):  #: model: model
    return model
def two(model):  #: model: text
    return model
one(nn.Linear(1, 1))
two("resnet")

# === a method of an unknown object
import torch
client = connect()
model = client.get_model("x")  #: unknown object
client.train(model)

# === an argument that is called model
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--model", default="resnet")
args = parser.parse_args()
name = args.model  #: bound method
print(name)

# === torch is hidden
torch = connect()
net = torch.nn.Linear(1, 1)  #: unknown object

# === a function that returns nothing
from torch import nn
def build():
    net = nn.Linear(1, 1)
net = build()  #: nothing

# === an index is no text
from torch import nn
nets = [nn.Linear(1, 1), "none"]
a = nets[0]  #: model
b = nets[1]  #: text(none)

# === what a loop over a text gives
import torch
for letter in "abc":  #: neither; letter: nothing
    use(letter)

# === an optimizer of numpy
import numpy as np
import torch
optim = np.linalg
opt = optim.norm([1])  #: unknown object

# === one object of two kinds is both
from torch import nn, optim
def pick(flag):
    if flag:
        return nn.Linear(1, 1)
    return optim.SGD([], 1)
thing = pick(True)  #: model, optimizer

# === wrappers are told apart by what they are given
from torch import nn
def wrap(net):
    return nn.DataParallel(net).cuda()
g = wrap(nn.Linear(1, 1))  #: model@4
d = wrap(nn.Linear(2, 2))  #: model@5

# === loops of two trainers are told apart
from torch import nn, optim
from torch.utils.data import DataLoader
class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = optim.SGD(net.parameters(), 1)
    def fit(self, loader):
        for x in loader:  #: training by optimizer@6 over dataloader@11, dataloader@12
            self.net(x).mean().backward()
            self.opt.step()
Trainer(nn.Linear(1, 1)).fit(DataLoader(a))
Trainer(nn.Linear(2, 2)).fit(DataLoader(b))

# === a class of the project that derives from a model of a library without a row
import somelib
from torch import optim
from torch.utils.data import DataLoader
class Net(somelib.Block):
    def forward(self, x):
        return x
net = Net()  #: model@7
optimizer = optim.SGD(net.parameters(), 1)
for x in DataLoader(data()):  #: training by optimizer@8 over dataloader@9
    net(x).sum().backward()
    optimizer.step()

# === a name of a library that is longer than any
import torch
deep = torch.a.b.c.d.e.f.g.h.i.j.k  #: nothing

# === a method of something in a batch
from torch.utils.data import DataLoader
for batch in DataLoader(data()):
    count = batch.meta.count()  #: statistic
