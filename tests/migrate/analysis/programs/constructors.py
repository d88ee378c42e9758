# === library constructors
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
net = nn.Linear(2, 2)  #: model@4
opt = optim.SGD(net.parameters(), lr=0.1)  #: optimizer
loader = DataLoader(data)  #: dataloader
crit = nn.CrossEntropyLoss()  #: loss function
sched = torch.optim.lr_scheduler.StepLR(opt, 1)  #: scheduler
dev = torch.device("cuda")  #: device

# === what methods of its class make is each object's own, though the base has one __init__ for all
from torch import nn, optim
class Base:
    def __init__(self):
        self.net = self.build().cuda()
class Small(Base):
    def build(self):
        return nn.Linear(2, 2)
    def run(self):
        self.net  #: model@7
class Large(Base):
    def build(self):
        return nn.LSTM(2, 2)
    def run(self):
        self.net  #: model@12
trainer = {"small": Small, "large": Large}[name]()
trainer.run()

# === what a constructor gives several attributes at once is each object's own
from torch import nn
class Held:
    def __init__(self, net, number):
        self.net, self.number = net, number
one = Held(nn.Linear(1, 1), 1)
two = Held(nn.Conv2d(1, 1, 1), 2)
print(one.net)  #: one.net: model@5
print(two.net)  #: two.net: model@6

# === a constructor without parameters of its own
from torch import nn, optim
class Held:
    def __init__(*given):
        self = given[0]
        self.net = given[1]
net = nn.Linear(1, 1)
one = Held(net)
two = Held(nn.Linear(2, 2))
opt = optim.SGD(net.parameters(), lr=0.1)  #: optimizer

# === an object that is made with a star
from torch import nn
class Trainer:
    def __init__(self, net, number=0):
        self.net: nn.Module = net
one = Trainer(*[nn.Linear(1, 1)])
two = Trainer(nn.Conv2d(1, 1, 1), 2)
print(two.net)  #: two.net: model

# === a constructor that is not a function of the project
from torch import nn
import somelib
class Trainer:
    __init__ = somelib.make_init()
trainer = Trainer()  #: instance

# === a class that makes objects of another
from torch import nn
class Net(nn.Module):
    def __new__(cls, small):
        if small:
            return nn.Linear(1, 1)
        return super().__new__(cls)
net = Net(small())  #: model@5, model@7

# === a constructor without named parameters that makes another object
from torch import nn
class Holder:
    def __init__(self, net):
        self.net = net
class Trainer:
    def __init__(*args, **kwargs):
        args[0].holder = Holder(net=kwargs["net"])
        args[0].net = kwargs["net"]  #: model
trainer = Trainer(net=nn.Linear(1, 1))
net = trainer.net  #: model
held = trainer.holder.net  #: model
